"""Sphinx extension: the numbers and the pictures of the front page.

The words of the page are in ``book/index.md``. A name in double braces stands there for
a number or a picture: what is computed by ``figures/front.py`` is filled in when the
page is read, and what is known of other pages (their minutes) when it is written.
"""

import os
import posixpath
import re

from docutils import nodes
from sphinx.util import logging

from _ext.minutes import afternoon, hours
from _ext.opening import slug
from _ext.publish import addresses
from figures import front

NAME = re.compile(r"\{\{ ?(\w+) ?\}\}")
LATE = ("overview", "afternoon", "hours", "hours_all")
logger = logging.getLogger(__name__)


def fill_in(app, page, source):
    """Put the numbers and the pictures where their names are."""
    if page == app.config.root_doc:
        known = front.facts() | addressed(os.environ)
        source[0] = NAME.sub(lambda found: value(found, known), source[0])


def value(found, known):
    """Return what a name stands for; what is known later stays as it is."""
    if found[1] in LATE:
        return found[0]
    if found[1] not in known:
        logger.warning("front: nothing is called %r", found[1])
    return known.get(found[1], "")


def addressed(environ):
    """Return what a book says of its address and its repository, published or not."""
    address, repository, _ = addresses(environ)
    folder = posixpath.basename(repository)
    return {
        "bib_url": f",\n  url    = {{{address}}}" if address else "",
        "clone": f"git clone {repository} && cd {folder}\n" if repository else "",
        "repository": f"a copy of [the repository]({repository})"
        if repository
        else "a copy of the repository that this page was built from",
        "install": f"pip install git+{repository}"
        if repository
        else "pip install path/to/the/copy",
        "downloads": PUBLISHED if environ.get("BOOK_DOWNLOADS") else UNPUBLISHED,
    }


PUBLISHED = (
    'The whole book is there <a href="../head-by-head.pdf">as one PDF</a>, and '
    '<a href="../head-by-head.zip">as an archive of these pages</a> to read offline.'
)
UNPUBLISHED = (
    "The README shows the command that prints the whole book as one PDF. These pages "
    "also work offline, from a folder."
)


def times(env):
    """Return the times that the page promises."""
    chapters = [env.metadata[page] for page in sorted(env.found_docs) if slug(page)]
    deeper = sum(each["minutes_deeper"] for each in chapters)
    text = deeper + sum(each["minutes"] for each in chapters)
    everything = deeper + sum(each["minutes_with_all"] for each in chapters)
    return {
        "overview": str(chapters[0]["minutes"]),
        "afternoon": hours(afternoon(env)),
        "hours": f"{text / 60:.0f}",
        "hours_all": f"{everything / 60:.0f}",
    }


def fill_in_late(app, tree, page):
    """Fill in what other pages know."""
    if page == app.config.root_doc:
        known = times(app.env)
        for text in [text for text in tree.findall(nodes.Text) if "{{" in text]:
            late = NAME.sub(lambda found: known[found[1]], text.astext())
            text.parent.replace(text, nodes.Text(late))


def setup(app):
    """Register with Sphinx."""
    app.connect("source-read", fill_in)
    app.connect("doctree-resolved", fill_in_late)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
