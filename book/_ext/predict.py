"""Sphinx extension: a reader predicts before a page shows what happens.

A notebook asks for a prediction with a paragraph that holds, in bold, "Before you run
it:", "Before you look:" or the like. The code cells that answer it carry the tag
``predict``, and the cell after them may begin with the answer in prose, folded under
the title "What happens".

On the page a box for a guess follows the question, and one fold, "Reveal", holds the
outputs of these cells and then the prose. Their code stays where it is. Figures in the
fold keep number and anchor. The guess stays in the browser of the reader.
"""

import json
import re
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

ASKS = re.compile(r"Before\s+you\s+\w[^*]*:")
NOTE = "Your guess stays in this browser and is sent to nobody."


class Guess(nodes.General, nodes.Element):
    """The box for a guess. Its `name` says to which question it belongs."""


class Reveal(nodes.General, nodes.Element):
    """The fold with what happens."""


# What a prediction is made of


def is_code(node):
    """Return whether a node is a code cell."""
    return isinstance(node, nodes.container) and "cell" in node["classes"]


def is_predicted(node):
    """Return whether a node is a code cell whose output is to be predicted."""
    return is_code(node) and "tag_predict" in node["classes"]


def is_answer(node):
    """Return whether a node is the answer in prose, which a notebook folds."""
    return isinstance(node, nodes.admonition) and {"dropdown", "answer"} <= set(
        node["classes"]
    )


def prose_of(answer):
    """Return what an answer says, without the title of its fold."""
    return [node for node in answer.children if not isinstance(node, nodes.title)]


def asks_of(tree):
    """Return the words in bold that ask for a prediction."""
    bold = tree.findall(nodes.strong)
    return [node for node in bold if ASKS.fullmatch(node.astext().strip())]


def is_question(node):
    """Return whether a paragraph or a list asks for a prediction."""
    apart = isinstance(node, nodes.section) or is_code(node) or is_answer(node)
    return not apart and bool(asks_of(node))


# The names of the questions


def cells_that_ask(notebook):
    """Return for each question of a notebook the id of the cell that asks it."""
    found = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            asks = re.findall(rf"\*\*{ASKS.pattern}\*\*", text)
            found += [
                f"{cell['id']}-{n}" if n else cell["id"] for n in range(len(asks))
            ]
    return found


def name_questions(tree, names):
    """Give every question of a page a name that stays, the id of its cell."""
    asks = asks_of(tree)
    if len(names) != len(asks):  # a page that is no notebook, or quotes a question
        names = [f"question-{number}" for number in range(1, len(asks) + 1)]
    for ask, name in zip(asks, names, strict=True):
        ask["prediction"] = name


# The fold


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
        inside += prose_of(parent.pop(end))
    reveal = Reveal()
    reveal += inside
    parent.insert(end, reveal)
    return end + 1 - start


def place_of_box(parent, question):
    """Return where the box for a guess stands: behind the cell that asks."""
    for at in range(question + 1, len(parent)):
        if is_code(parent[at]) or isinstance(parent[at], Reveal):
            return at
    raise LookupError("a box belongs to a question with an answer")


def fold_all(parent):
    """Fold the answers in a section and in those inside it.

    A box is set where a question has an answer. An answer that nothing asks for is
    folded as well, and an answer in prose alone needs its question.
    """
    at, question = 0, None
    while at < len(parent):
        node, step = parent[at], 1
        if isinstance(node, nodes.section):
            fold_all(node)
        elif is_question(node):
            question = at
        elif is_predicted(node) or (is_answer(node) and question is not None):
            step = fold(parent, at)
            if question is not None:
                name = asks_of(parent[question])[-1]["prediction"]
                parent.insert(place_of_box(parent, question), Guess(name=name))
                question, step = None, step + 1
        at += step


class FoldAnswers(SphinxTransform):
    """Fold the answers of a page when the rest of it has been read."""

    default_priority = 860  # extensions that measure a page see it at 880

    def apply(self, **kwargs):
        """Name the questions, then fold."""
        if asks_of(self.document) or any(self.document.findall(is_predicted)):
            path = Path(self.env.doc2path(self.env.docname))
            text = path.read_text(encoding="utf-8") if path.suffix == ".ipynb" else ""
            names = cells_that_ask(json.loads(text)) if text else []
            name_questions(self.document, names)
            fold_all(self.document)


# What a page shows


def visit_guess(translator, node):
    """Write the box, hidden until the script knows where to keep the guess."""
    name = escape(f"guess-{node['name']}")
    translator.body.append(
        f'<div class="your-guess" hidden><label for="{name}">Your guess</label>'
        f'<textarea id="{name}" rows="1" aria-describedby="{name}-note"></textarea>'
        f'<p id="{name}-note">{NOTE}</p></div>\n'
    )
    raise nodes.SkipNode


def visit_reveal(translator, node):
    """Open the fold."""
    translator.body.append('<details class="reveal"><summary>Reveal</summary>\n')


def depart_reveal(translator, node):
    """Close the fold."""
    translator.body.append("</details>\n")


def skip(translator, node):
    """Leave out what only a page can have."""
    raise nodes.SkipNode


def pass_through(translator, node):
    """Show what is inside, and nothing else."""


def load(app, pagename, templatename, context, doctree):
    """Load the script where there is something to reveal."""
    if '<details class="reveal">' in context.get("body", ""):
        app.add_js_file("predict.js", loading_method="defer", **{"data-page": pagename})


def setup(app):
    """Register with Sphinx."""
    plain = {"latex": (skip, None), "text": (skip, None)}
    app.add_node(Guess, html=(visit_guess, None), **plain)
    plain = dict.fromkeys(plain, (pass_through, pass_through))
    app.add_node(Reveal, html=(visit_reveal, depart_reveal), **plain)
    app.add_transform(FoldAnswers)
    app.connect("html-page-context", load)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
