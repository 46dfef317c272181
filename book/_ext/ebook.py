"""Sphinx extension: in an e-book a page is XML and runs no script.

A figure to move keeps its first state, and a line break is closed.
"""

import re

from docutils import nodes

SCRIPT = re.compile(r"<script.*?</script>", re.DOTALL)
BREAK = re.compile(r"<br\s*>")


def for_readers(html):
    """Return HTML that an e-book may hold."""
    return BREAK.sub("<br/>", SCRIPT.sub("", html))


def rewrite(app, doctree, docname):
    """Rewrite the HTML of outputs when an e-book is built."""
    if app.builder.name != "epub":
        return
    for node in list(doctree.findall(nodes.raw)):
        text = for_readers(node.astext())
        node.replace_self(nodes.raw("", text, format=node["format"]))


def setup(app):
    """Register with Sphinx."""
    app.connect("doctree-resolved", rewrite)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
