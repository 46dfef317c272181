"""Sphinx extension: the house picture and the ten bugs have a narrow layout for phones.

A notebook stores the wide layout. The page gets both, and its style sheet shows the one
that fits; where there is no style sheet, the wide one stands alone.
"""

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # the book's own figures
from figures.house import drawing
from figures.ten import alt as ten_alt
from figures.ten import ten

KEYED = re.compile(r'<svg [^>]*data-key="(house|ten) ([^"]+)".*?</svg>', re.DOTALL)


def narrow(kind, key):
    """Return the narrow layout of a drawing, and its alt text."""
    if kind == "ten":
        return ten("narrow"), ten_alt()
    lit, _, causal = key.partition(" ")
    parts = {*lit.split(",")} - {""} if "," in lit else lit  # parts end in a comma
    return drawing(parts, "narrow", is_causal=bool(causal))


def both(found):
    """Return the wide layout that was found, and the narrow one beside it."""
    scene, alt = narrow(*found.groups())
    scene.key = ""  # so that it is not found again
    small = f'<div class="mha-narrow" style="display: none">{scene.svg(alt)}</div>'
    return f'<div class="mha-wide">{found[0]}</div>{small}'


def add(app, pagename, templatename, context, doctree):
    """Add the narrow layout to each drawing on a page that has one."""
    if "data-key=" in context.get("body", ""):
        context["body"] = KEYED.sub(both, context["body"])


def setup(app):
    """Register with Sphinx."""
    app.connect("html-page-context", add)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
