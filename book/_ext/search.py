"""Sphinx extension: what the search reads, in place of Sphinx's index of words.

Every section of the book, every word of the glossary and every name of the API is a
passage. The script of the search page, search.js, finds what is typed in them and has
the text beside it, so it needs no server and shows an excerpt for each hit.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

FILE = "_static/passages.js"
PROSE = (nodes.paragraph, nodes.caption)
APART = (nodes.section, addnodes.desc, addnodes.glossary)  # passages of their own
UNREAD = {"cell_output", "takes", "need"}
NAME = re.compile(r"[A-Za-z_][\w.]*\w")
TEX = (  # what stands in a formula, and how a line of text says it
    (r"\\(?:text|mathrm|mathsf|mathbf|operatorname)\{([^{}]*)\}", r"\1"),
    (r"\\t?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2"),
    (r"\\sqrt", "√"),
    (r"\\d(model|ff)\b", r"d_\1"),
    (r"\^\{?\\top\}?", "ᵀ"),
    (r"\\cdot", "·"),
    (r"\\times", "×"),
    (r"\\le\b", "≤"),
    (r"\\infty", "∞"),
    (r"\\[lc]?dots", "…"),
    (r"\\[,;:! ]|\\(?:left|right)\b|[{}\\]", ""),
)


def said(node):
    """Return the text of a node, with its formulas in one line."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if not isinstance(node, nodes.math):
        return "".join(map(said, node.children))
    text = node.astext()
    for tex, plain in TEX:
        text = re.sub(tex, plain, text)
    return text


def blocks(node):
    """Yield prose and code of a node, without what is a passage of its own."""
    for child in node.children:
        if isinstance(child, (*PROSE, nodes.literal_block)):
            yield child
        elif not isinstance(child, (*APART, nodes.Text)):
            if not UNREAD & set(child["classes"]):
                yield from blocks(child)


def passage(anchor, title, node):
    """Return where a passage is, its title, its prose, and the names in its code."""
    found = [b for b in blocks(node) if not UNREAD & set(b["classes"])]
    prose = " ".join(said(b) for b in found if isinstance(b, PROSE))
    code = " ".join(b.astext() for b in found if not isinstance(b, PROSE))
    names = dict.fromkeys(n for n in NAME.findall(code) if n not in prose)
    return [anchor, title, " ".join(prose.split()), " ".join(names)]


def passages(tree):
    """Yield the passages of a page."""
    for node in tree.findall(nodes.section):
        anchor = "" if node.parent is tree else node["ids"][0]
        yield passage(anchor, said(node[0]), node)
    for item in tree.findall(nodes.definition_list_item):
        for term in item.findall(nodes.term):
            if isinstance(item.parent.parent, addnodes.glossary):
                yield passage(term["ids"][0], said(term), item[-1])
    for node in tree.findall(addnodes.desc):
        if node[0]["ids"]:
            yield passage(node[0]["ids"][0], node[0]["ids"][0], node[-1])


def note(app, tree, page):
    """Keep the passages of a page."""
    number = app.env.toc_secnumbers.get(page, {}).get("")
    title = said(app.env.titles[page])
    title = f"{number[0]}. {title}" if number else title
    app.passages[page] = [page, title, list(passages(tree))]


def begin(app):
    """Take over the search, and read what is known of pages that have not changed."""
    app.builder.search = False  # its index is not needed
    path = Path(app.outdir) / FILE
    text = path.read_text(encoding="utf-8") if path.exists() else "= []"
    app.passages = {each[0]: each for each in json.loads(text.partition("=")[2])}


def write(app, exception):
    """Write what the search reads."""
    if app.builder.name == "html" and not exception:
        known = [app.passages[p] for p in sorted(app.env.found_docs & {*app.passages})]
        text = json.dumps(known, ensure_ascii=False, separators=(",", ":"))
        path = Path(app.outdir) / FILE
        path.write_text(f"const PASSAGES = {text}", encoding="utf-8")


def setup(app):
    """Register with Sphinx."""
    app.connect("builder-inited", begin)
    app.connect("doctree-resolved", note, priority=900)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
