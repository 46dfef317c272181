"""Sphinx extension: what a search reads, here and elsewhere.

Every section of the book, every word of the glossary and every name of the API is a
passage. The script of the search page, search.js, finds what is typed in them and has
the text beside it, so it needs no server and shows an excerpt for each hit. Other hosts
read the title of a page and its first words.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

FILE = "_static/passages.js"
PROSE = (nodes.paragraph, nodes.caption)
APART = (nodes.section, addnodes.desc, addnodes.glossary)  # passages of their own
UNREAD = {"cell_output", "need"}
BRACED = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
FRACTION = re.compile(r"\\t?frac" + BRACED + BRACED)
SIGNS = {  # of a formula in a line of text; other names stay as they are
    "sqrt": "√", "cdot": "·", "times": "×", "le": "≤", "infty": "∞", "dots": "…",
    "ldots": "…", "top": "ᵀ", "dmodel": "d_model", "dff": "d_ff", "text": "",
    "mathrm": "", "operatorname": "", "left": "", "right": "",
}  # fmt: skip


def said(node):
    """Return the text of a node, with its formulas in one line."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if not isinstance(node, nodes.math):
        return "".join(map(said, node.children))
    text = FRACTION.sub(r"\1/\2", node.astext())
    text = re.sub(r"\\([a-zA-Z]+) ?", lambda found: SIGNS.get(found[1], found[1]), text)
    return re.sub(r"[{}^\\]", "", text)


def blocks(node):
    """Yield prose and code of a node, without what is a passage of its own."""
    for child in node.children:
        if isinstance(child, (*PROSE, nodes.literal_block)):
            if not UNREAD & set(child["classes"]):
                yield child
        elif not isinstance(child, (*APART, nodes.Text)):
            if not UNREAD & set(child["classes"]):
                yield from blocks(child)


def passages(tree):
    """Yield where each passage is, its title, its prose, and the names in its code."""
    kinds = nodes.section, nodes.term, addnodes.desc_signature
    for node in tree.findall(lambda n: isinstance(n, kinds) and n["ids"]):
        anchor, home, title = node["ids"][0], node.parent[-1], said(node)
        if isinstance(node, nodes.section):
            home, title = node, said(node[0])
            anchor = anchor if node.parent is not tree else ""
        elif isinstance(node, addnodes.desc_signature):
            title = anchor
        found = list(blocks(home))
        prose = " ".join(said(b) for b in found if isinstance(b, PROSE))
        code = " ".join(b.astext() for b in found if not isinstance(b, PROSE))
        names = dict.fromkeys(n for n in re.findall(r"\w{3,}", code) if n not in prose)
        if prose or names:
            yield [anchor, title, " ".join(prose.split()), " ".join(names)]


def note(app, tree, page):
    """Keep the passages of a page."""
    app.passages[page] = [page, said(app.env.titles[page]), list(passages(tree))]


def show(app, page, template, context, tree):
    """Let the tab, and a link to the page elsewhere, say its title and first words."""
    if tree:
        context["title"] = said(app.env.titles[page])
        tree[0].remove(tree[0][0])  # the title, which others would repeat
        for node in list(tree.findall(nodes.math)):
            node.parent.replace(node, nodes.Text(said(node)))


def begin(app):
    """Take over the search, and read what is known of pages that have not changed."""
    app.builder.search = False  # Sphinx needs no index of its own
    path = Path(app.outdir) / FILE
    text = path.read_text(encoding="utf-8") if path.exists() else "= []"
    app.passages = {each[0]: each for each in json.loads(text.partition("=")[2])}


def write(app, exception):
    """Write what the search reads."""
    if app.builder.name == "html" and not exception:
        known = [app.passages[p] for p in sorted(app.env.found_docs & {*app.passages})]
        text = json.dumps(known, ensure_ascii=False, separators=(",", ":"))
        (Path(app.outdir) / FILE).write_text(f"const PASSAGES = {text}", "utf-8")


def setup(app):
    """Register with Sphinx."""
    app.connect("builder-inited", begin)
    app.connect("doctree-resolved", note, priority=900)
    app.connect("html-page-context", show, priority=400)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
