"""Sphinx extension: the front page of the book, which is also the root of the site.

The words of the page are in ``book/index.md``. A name in double braces stands there for
a number or a picture: what is computed by ``figures/front.py`` is filled in when the
page is read, and what other pages know (titles, minutes) when it is written.

At the end the page is copied to the root of the site, so that the address which people
share shows it and not a redirection.
"""

import os
import posixpath
import re
import sys
import tomllib
from html import escape
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.util import logging

sys.path.append(str(Path(__file__).parent))  # the other extensions
sys.path.append(str(Path(__file__).parents[1]))  # the book's own figures
from comfort import minutes
from opening import CHAPTER, NUMERALS, parts
from publish import addresses

from figures import front

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"\{\{ ?(\w+) ?\}\}")
LATE = ("map", "overview_door", "overview_minutes", "fast", "hours", "hours_all")
# What the fast path reads: a section of a chapter, or all of it.
FAST = {
    "softmax": "Break it", "scale": "Break it", "masks": "Break it",
    "attention": "The law", "why_heads": "The equation", "split": "Break it",
    "output": "Break it", "encoder": "", "laws": "",
}  # fmt: skip
STYLE, SCRIPT = "front.css", "front.js"
ADDRESS = re.compile(r'(\b(?:href|src|action|data-content_root)=")([^"#:][^":]*)(")')
SIDEBAR = 'class="bd-sidebar-primary bd-sidebar"'
logger = logging.getLogger(__name__)


# When it is read


def fill_in(app, page, source):
    """Put the numbers and the pictures where their names are."""
    if page == app.config.root_doc:
        known = front.facts() | cited() | {"prerequisites": prerequisites(app.srcdir)}
        source[0] = NAME.sub(lambda found: value(found, known), source[0])


def value(found, known):
    """Return what a name stands for; what is known later stays as it is."""
    if found[1] in LATE:
        return found[0]
    if found[1] not in known:
        logger.warning("front: nothing is called %r", found[1])
    return known.get(found[1], "")


def prerequisites(root):
    """Return a link to what chapters take from school, if the book has such a page."""
    page = Path(root) / "book" / "prerequisites.md"
    return f"[Prerequisites]({page.name})" if page.exists() else "the first chapter"


def cited():
    """Return the facts by which the book is cited."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    path = ROOT / ".github" / "CITATION.cff"
    book = yaml.safe_load(path.read_text("utf-8"))["preferred-citation"]
    authors = " and ".join(author["name"] for author in book["authors"])
    address, repository, _ = addresses(os.environ)
    folder = posixpath.basename(repository)
    return {
        "bib_title": f"{{{book['title']}}}",
        "bib_authors": f"{{{{{authors}}}}}",
        "bib_year": f"{{{book['year']}}}",
        "bib_note": f"{{Version {project['version']}}}",
        "bib_url": f",\n  url    = {{{address}}}" if address else "",
        "clone": f"git clone {repository} && cd {folder}\n" if repository else "",
    }


def mark(app, tree):
    """Name the sections of the page, and note how long sections of a chapter take."""
    page = app.env.docname
    if page == app.config.root_doc:
        for section in tree.findall(nodes.section):
            section["classes"] += [name for name in section["ids"] if name in SECTIONS]
    elif CHAPTER.fullmatch(page):
        facts = app.env.metadata[page]
        facts["sections"] = {
            section[0].astext(): minutes(section)
            for section in tree.findall(nodes.section)
            if isinstance(section.parent, nodes.section)
        }


SECTIONS = ("hook", "doors", "emblem", "map", "fast-path", "run", "cite")


# When it is written


def chapters(app):
    """Return ``{slug: page}`` of the chapters that exist, in order."""
    pages = sorted(filter(CHAPTER.fullmatch, app.env.found_docs))
    return {CHAPTER.fullmatch(page)[2]: page for page in pages}


def fast_minutes(facts_of):
    """Return how long the fast path takes, from what each chapter knows of itself."""
    total = 0
    for slug, start in FAST.items():
        facts = facts_of[slug]
        named = [m for title, m in facts["sections"].items() if title.startswith(start)]
        if not named:
            logger.warning("front: no section %r in the chapter %s", start, slug)
        total += facts["minutes"] if not start else sum(named[:1])
    return total


def hours(minutes):
    """Return minutes as whole hours.

    Examples
    --------
    >>> hours(505)
    '8'
    """
    return f"{max(1, minutes / 60):.0f}"


def times(facts_of):
    """Return the times that the doors promise."""
    known = facts_of.values()
    deeper = sum(facts.get("minutes_deeper", 0) for facts in known)
    return {
        "fast": str(10 * round(fast_minutes(facts_of) / 10)),
        "hours": hours(deeper + sum(facts["minutes"] for facts in known)),
        "hours_all": hours(deeper + sum(facts["minutes_with_all"] for facts in known)),
        "overview_minutes": str(facts_of.get("overview", {}).get("minutes", "")),
    }


def title_of(node):
    """Return the term and the question in the title of a chapter, as HTML."""
    html = "".join(map(plain, node.children))
    term, _, question = html.partition(": ")
    return term, question[:1].upper() + question[1:]


def plain(node):
    """Return a part of a title as HTML, formulas such as √d_k included."""
    text = re.sub(r"\\sqrt\{(.*?)\}", r"√\1", escape(node.astext()))
    return re.sub(r"(?<=\w)_\{?(\w)\}?", r"<sub>\1</sub>", text)


def the_map(app):
    """Return the chapters as stairs: the order is that of the table of contents."""
    toc = yaml.safe_load((Path(app.srcdir) / "_toc.yml").read_text("utf-8"))
    pages, flights = chapters(app), []
    steps = {page for slug, page in pages.items() if slug != "overview"}
    for caption, listed in parts(toc):
        tiles = [tile(app, page) for page in listed if page in steps]
        if tiles:
            numeral = NUMERALS[len(flights)]
            name = f"<span>Part {numeral}</span> {escape(caption)}"
            flights.append((name, tiles))
    return ground(app, pages.get("overview")) + front.stairs(flights)


def tile(app, page):
    """Return the number and the tile of a chapter."""
    number, slug = CHAPTER.fullmatch(page).groups()
    address = app.builder.get_relative_uri(app.config.root_doc, page)
    words = title_of(app.env.titles[page])
    return int(number), front.tile(int(number), *words, slug, address)


def ground(app, page):
    """Return the tile on which the stairs stand: the whole layer, chapter 0."""
    if not page:
        return ""
    address = app.builder.get_relative_uri(app.config.root_doc, page)
    return (
        f'<a class="ground" href="{escape(address)}"><div class="ground-text">'
        f'<span class="tile-term"><b>0</b> {title_of(app.env.titles[page])[0]}</span>'
        '<span class="tile-q">Follow one word through a whole layer, with numbers.'
        '</span><span class="go">Start here</span></div>'
        f"<div>{front.house()}</div></a>"
    )


def overview_door(app, first, minutes):
    """Return where a newcomer starts."""
    page, words = chapters(app).get("overview", first), "Start with chapter 1"
    if page != first:
        words = f"Start with chapter 0, {minutes} minutes"
    address = app.builder.get_relative_uri(app.config.root_doc, page)
    return f'<a class="go" href="{escape(address)}">{words}</a>'


def show(app, pagename, templatename, context, doctree):
    """Fill in what other pages know, and load what only this page needs."""
    if pagename != app.config.root_doc or not doctree:
        return
    pages = chapters(app)
    known = times({slug: app.env.metadata[page] for slug, page in pages.items()})
    known["map"] = the_map(app)
    first = next(page for slug, page in pages.items() if slug != "overview")
    known["overview_door"] = overview_door(app, first, known["overview_minutes"])
    body = NAME.sub(lambda found: known.get(found[1], found[0]), context["body"])
    context["body"] = f'<div class="front">{body}</div>'
    app.add_css_file(STYLE)
    app.add_js_file(SCRIPT, loading_method="defer")


# When all is written


def at_root(page, folder):
    """Return a page of `folder` as one of the folder above it.

    Examples
    --------
    >>> at_root('<a href="01.html"><img src="../a.svg"><a href="#b">', "book")
    '<a href="book/01.html"><img src="a.svg"><a href="#b">'
    """

    def move(found):
        path, mark, rest = re.match(r"([^?#]*)([?#]?)(.*)", found[2]).groups()
        moved = posixpath.normpath(posixpath.join(folder, path))
        moved += "/" if path.endswith("/") else ""
        return f"{found[1]}{moved}{mark}{rest}{found[3]}"

    return ADDRESS.sub(move, page)


def copy(app, exception):
    """Close the sidebar of the page at first, and copy the page to the root."""
    if exception or app.builder.name != "html":
        return
    root = app.config.root_doc
    path = Path(app.outdir) / f"{root}.html"
    page = path.read_text(encoding="utf-8")
    closed = SIDEBAR.replace('bar"', 'bar pst-sidebar-hidden"')
    page = page.replace(SIDEBAR, closed, 1)
    if address := app.config.html_baseurl:  # the root is where it is found
        page = page.replace(f'"{address}{root}.html"', f'"{address}"')
    path.write_text(page, encoding="utf-8")
    if folder := posixpath.dirname(root):
        door = Path(app.outdir) / "index.html"
        door.write_text(at_root(page, folder).lstrip(), encoding="utf-8")


def setup(app):
    """Register with Sphinx."""
    app.connect("source-read", fill_in)
    app.connect("doctree-read", mark)
    app.connect("html-page-context", show)
    # bundle.py gives the page its stylesheet at 910, and moved.py has no more at 950
    app.connect("build-finished", copy, priority=960)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
