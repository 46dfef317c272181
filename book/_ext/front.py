"""Sphinx extension: the numbers and the pictures of the front page.

The words of the page are in ``book/index.md``. A name in double braces stands there for
a number or a picture: what is computed by ``figures/front.py`` is filled in when the
page is read, and what is known of other pages (their minutes) when it is written.
"""

import os
import posixpath
import re
import sys
from pathlib import Path

from docutils import nodes
from minutes import exact_minutes
from opening import slug
from publish import addresses
from sphinx.util import logging

sys.path.append(str(Path(__file__).parents[1]))  # the book's own figures
from figures import front

NAME = re.compile(r"\{\{ ?(\w+) ?\}\}")
LATE = ("overview", "fast", "hours", "hours_all")
# What the fast path reads: a section of a chapter, or all of it.
FAST = {
    "softmax": "Break it", "scale": "Break it", "masks": "Break it",
    "attention": "The law", "why_heads": "The equation", "split": "Break it",
    "output": "Break it", "encoder": "", "laws": "",
}  # fmt: skip
logger = logging.getLogger(__name__)


def fill_in(app, page, source):
    """Put the numbers and the pictures where their names are."""
    if page == app.config.root_doc:
        known = front.facts() | addressed()
        source[0] = NAME.sub(lambda found: value(found, known), source[0])


def value(found, known):
    """Return what a name stands for; what is known later stays as it is."""
    if found[1] in LATE:
        return found[0]
    if found[1] not in known:
        logger.warning("front: nothing is called %r", found[1])
    return known.get(found[1], "")


def addressed():
    """Return what a book that is published says of its address."""
    address, repository, _ = addresses(os.environ)
    folder = posixpath.basename(repository)
    return {
        "bib_url": f",\n  url    = {{{address}}}" if address else "",
        "clone": f"git clone {repository} && cd {folder}\n" if repository else "",
    }


def fast_minutes(app, pages):
    """Return how long the fast path takes."""
    total = 0
    for name, start in FAST.items():
        if not start:
            total += app.env.metadata[pages[name]]["minutes"]
            continue
        sections = app.env.get_doctree(pages[name]).findall(nodes.section)
        named = [s for s in sections if s[0].astext().startswith(start)]
        if not named:
            logger.warning("front: no section %r in the chapter %s", start, name)
        total += sum(map(exact_minutes, named[:1]))
    return total


def times(app):
    """Return the times that the page promises."""
    pages = {slug(page): page for page in app.env.found_docs if slug(page)}
    facts = [app.env.metadata[page] for page in pages.values()]
    deeper = sum(each["minutes_deeper"] for each in facts)
    hours = (deeper + sum(each["minutes"] for each in facts)) / 60
    hours_all = (deeper + sum(each["minutes_with_all"] for each in facts)) / 60
    return {
        "fast": f"{10 * round(fast_minutes(app, pages) / 10)}",
        "hours": f"{hours:.0f}",
        "hours_all": f"{hours_all:.0f}",
        "overview": f"{app.env.metadata[pages['overview']]['minutes']}",
    }


def show(app, pagename, templatename, context, doctree):
    """Fill in what other pages know."""
    if pagename == app.config.root_doc and doctree:
        known = times(app)
        context["body"] = NAME.sub(lambda found: known[found[1]], context["body"])


def setup(app):
    """Register with Sphinx."""
    app.connect("source-read", fill_in)
    app.connect("html-page-context", show)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
