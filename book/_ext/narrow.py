"""Sphinx extension: the house picture has a narrow layout for phones.

A notebook stores the wide layout. The page gets both, and its style sheet shows the one
that fits; where there is no style sheet, the wide one stands alone.
"""

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # the book's own figures
from figures.house import drawing

HOUSE = re.compile(r'<svg [^>]*data-key="house ([^"]+)".*?</svg>', re.DOTALL)


def both(found):
    """Return the wide layout that was found, and the narrow one beside it."""
    lit, _, causal = found[1].partition(" ")
    parts = {*lit.split(",")} - {""} if "," in lit else lit  # parts end in a comma
    scene, alt = drawing(parts, "narrow", is_causal=bool(causal))
    scene.key = ""  # so that it is not found again
    narrow = f'<div class="mha-narrow" style="display: none">{scene.svg(alt)}</div>'
    return f'<div class="mha-wide">{found[0]}</div>{narrow}'


def add(app, pagename, templatename, context, doctree):
    """Add the narrow layout to each house on a page."""
    if "data-key=" in context.get("body", ""):
        context["body"] = HOUSE.sub(both, context["body"])


def setup(app):
    """Register with Sphinx."""
    app.connect("html-page-context", add)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
