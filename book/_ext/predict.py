"""Sphinx extension: a reader predicts before a page shows what happens.

A notebook asks for a prediction with a paragraph that holds, in bold, "Before you run
it:", "Before you look:" or the like. The code cells that answer it carry the tag
``predict``, and the cell after them may begin with the answer in prose, folded under
the title "What happens".

On the page one fold, "Show what happens", holds the outputs of these cells and then the
prose. Their code stays where it is. Figures in the fold keep number and anchor.
"""

from docutils import nodes
from sphinx.transforms import SphinxTransform


class Reveal(nodes.General, nodes.Element):
    """The fold with what happens."""


def is_predicted(node):
    """Return whether a node is a code cell whose output is to be predicted."""
    is_code = isinstance(node, nodes.container) and "cell" in node["classes"]
    return is_code and "tag_predict" in node["classes"]


def is_answer(node):
    """Return whether a node is the answer in prose, which a notebook folds."""
    return isinstance(node, nodes.admonition) and "answer" in node["classes"]


def take_output(cell):
    """Take the output out of a code cell, and return it in a cell of its own."""
    outputs = [node for node in cell.children if "cell_output" in node["classes"]]
    for node in outputs:
        cell.remove(node)
    if cell.get("hide_mode") == "all":
        cell["hide_mode"] = "input"  # what is left to hide
    shown = cell.copy()  # a copy has no children
    shown.attributes.pop("hide_mode", None)
    shown["ids"], shown["names"] = [], []
    shown += outputs
    return [shown] if outputs else []


def fold(parent, start):
    """Fold the answer that begins at `start`, and return how many nodes stand there."""
    end, inside = start, []
    while end < len(parent) and is_predicted(parent[end]):
        inside += take_output(parent[end])
        if parent[end].children:
            end += 1
        else:
            parent.pop(end)  # its code was removed by a tag
    if end < len(parent) and is_answer(parent[end]):
        answer = parent.pop(end)
        inside += [node for node in answer if not isinstance(node, nodes.title)]
    reveal = Reveal()
    reveal += inside
    parent.insert(end, reveal)
    return end + 1 - start


def fold_all(parent):
    """Fold the answers in a section and in those inside it."""
    at = 0
    while at < len(parent):
        node, step = parent[at], 1
        if isinstance(node, nodes.section):
            fold_all(node)
        elif is_predicted(node) or is_answer(node):
            step = fold(parent, at)
        at += step


class FoldAnswers(SphinxTransform):
    """Fold the answers of a page when the rest of it has been read."""

    default_priority = 860  # extensions that measure a page see it at 880

    def apply(self, **kwargs):
        """Fold what predicts."""
        fold_all(self.document)


def visit_reveal(translator, node):
    """Open the fold."""
    translator.body.append("<details><summary>Show what happens</summary>\n")


def depart_reveal(translator, node):
    """Close the fold."""
    translator.body.append("</details>\n")


def pass_through(translator, node):
    """Show what is inside, and nothing else."""


def setup(app):
    """Register with Sphinx."""
    plain = dict.fromkeys(("latex", "text"), (pass_through, pass_through))
    app.add_node(Reveal, html=(visit_reveal, depart_reveal), **plain)
    app.add_transform(FoldAnswers)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
