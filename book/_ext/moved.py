"""Sphinx extension: an address that a page once had leads to where it is now.

Each line of the table becomes a small page that sends its visitor on. Such pages stand
in no search and in no map of the site. A line whose target does not exist is a warning,
which stops a strict build.
"""

from html import escape
from pathlib import Path
from posixpath import basename

from sphinx.util import logging

MOVED = {
    "book/intro": "book/index",
    "book/01_similarity": "book/01_dot_product",
    "book/13_real_encoder": "book/14_real_encoder",
    "book/14_laws": "book/15_laws",
    "book/15_long": "book/16_long",
    "book/errata": "book/misstatements",
}
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="0; url={target}">
<link rel="canonical" href="{canonical}">
<title>{title}</title>
</head>
<body><main><p>This page has moved: <a href="{target}">{title}</a></p></main></body>
</html>
"""
logger = logging.getLogger(__name__)


def page(new, title, address=""):
    """Return the page that leads to `new`, a neighbour in the same folder."""
    target = f"{basename(new)}.html"
    canonical = f"{address}{new}.html" if address else target
    return PAGE.format(
        target=escape(target), canonical=escape(canonical), title=escape(title)
    )


def check(app, env):
    """Refuse a target that is no page, and an old address that is one again."""
    for old, new in app.config.moved_pages.items():
        if new not in env.found_docs:
            logger.warning("moved: %s leads to %s, which is no page", old, new)
        if old in env.found_docs:
            logger.warning("moved: %s is said to have moved, yet it is a page", old)
        if Path(old).parent != Path(new).parent:
            logger.warning("moved: %s and %s must share a folder", old, new)


def write(app, exception):
    """Write a page at each old address."""
    if exception or app.builder.name != "html":
        return
    for old, new in app.config.moved_pages.items():
        if new in app.env.found_docs and old not in app.env.found_docs:
            title = app.env.titles[new].astext()
            path = Path(app.outdir) / f"{old}.html"
            path.write_text(page(new, title, app.config.html_baseurl), "utf-8")


def setup(app):
    """Register with Sphinx."""
    app.add_config_value("moved_pages", MOVED, "env")
    app.connect("env-check-consistency", check)
    # slim.py takes what it finds at 900 for pages of the theme
    app.connect("build-finished", write, priority=950)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
