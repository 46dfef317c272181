"""Sphinx extension: what pages show of the package and of stored runs.

``{catalogue} laws``, or another name of `TABLES`, becomes a table. On the front page, a
name in double braces stands for a number or a picture of ``figures/front.py``, or for
what publish.py knows of an address.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from _ext.portable import BOOK
from _ext.publish import words
from chapters import chapter_number, chapter_of
from figures import front
from mha import laws, zoo

# Where the page "Test your own attention" explains a broken law; some by library.
WHY = {
    "empty_rows_give_zero": "empty-rows",
    "float_masks_are_added": "torch-fast-path",
    "mask_and_causal_both_hide": "timm-unfused",
    "integer_masks_hide": {"timm": "timm-unfused", "transformers": "t5-integers"},
    "every_dtype_gives_the_numbers": {
        "torch": "integers", "jax": "integers", "keras": "own-float64",
        "x-transformers": "own-float64",
    },
}  # fmt: skip
NAME = re.compile(r"\{\{ ?(\w+) ?\}\}")
NOTES = {"integers": "integers only", "own-float64": "float64"}
PUBLIC = Path(__file__).parents[1] / "_data" / "public_layers.json"
LAYERS = json.loads(PUBLIC.read_text(encoding="utf-8"))


def table(head, rows):
    """Return the lines of a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(str(cell) for cell in line)} |" for line in lines]


def earned(name):
    """Return a link to the chapter of a law or a bug."""
    slug = chapter_of(name)
    number = chapter_number(slug)
    return f"[{number}. {slug.replace('_', ' ')}]({number:02}_{slug}.ipynb)"


def law_rows():
    """Yield what the table of the laws says of each."""
    for law in laws.ALL:
        yield earned(law.name), law.sentence, f"`{law.name}`"


def zoo_rows():
    """Yield what the table of the wrong versions says of each."""
    for member in (*zoo.WRONG, *zoo.ENCODERS[1:]):
        seen = f"[{member.seen}]({member.link})" if member.link else member.seen
        yield earned(member.name), member.wrong, seen, f"`{member.name}`"


def exercise_rows():
    """Yield the exercises of each chapter, as the solutions call them."""
    for path in sorted((BOOK / "solutions").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
        tasks = re.findall(r"^#+ Exercise ([\d.]+): (.+)$", text, re.MULTILINE)
        links = (
            f"[{number} {title}](#exercise-{number.replace('.', '-')})"
            for number, title in tasks
        )
        number, _, slug = path.stem.partition("_")
        name = f"{int(number)}. {slug.replace('_', ' ')}"
        yield f"[{name}]({path.name})", "; ".join(links)


def reason(row, law):
    """Return a link to what the page says of this law in this layer."""
    place = WHY[law] if isinstance(WHY[law], str) else WHY[law][row["library"]]
    return f"[{NOTES.get(place, 'why')}](#{place})"


def layer_rows():
    """Yield what the table of the layers says of each."""
    for row in LAYERS["layers"]:
        home = " ".join(filter(None, (row["library"], row["version"])))
        layer = f"{home} `{row['layer']}`" if home else row["layer"]
        layer += f" (PyTorch {row['torch']})" if row["torch"] else ""
        said = f"`{row['says']}`" if row["says"] else ""
        broken = [f"`{law}` ({reason(row, law)})" for law in row["broken"]]
        what = ", ".join(filter(None, (layer, row["mode"], said)))
        counts = row["lines"], row["held"], len(row["not asked"])
        yield what, *counts, ", ".join(broken) or "none"


TABLES = {  # the head of each table, and its rows
    "laws": (["chapter", "law", "in `mha.laws`"], law_rows),
    "zoo": (
        ["chapter", "what was done wrong", "seen in public", "in `mha.zoo`"],
        zoo_rows,
    ),
    "layers": (
        [f"layer, {LAYERS['date']}", "lines", "hold", "not asked", "broken"],
        layer_rows,
    ),
    "exercises": (["chapter", "solutions"], exercise_rows),
}


class Catalogue(SphinxDirective):
    """``{catalogue} laws``, or another name of `TABLES`, becomes a table."""

    required_arguments = 1

    def run(self):
        """Return the nodes of the table."""
        head, rows = TABLES[self.arguments[0]]
        box = nodes.container()
        lines = StringList(table(head, rows()), self.get_source_info()[0])
        self.state.nested_parse(lines, self.content_offset, box)
        return box.children


def fill_in(app, page, source):
    """Put the numbers and the pictures of the front page where their names are."""
    if page == app.config.root_doc:
        known = front.facts() | words()
        source[0] = NAME.sub(lambda found: str(known[found[1]]), source[0])


def setup(app):
    """Register with Sphinx."""
    app.add_directive("catalogue", Catalogue)
    app.connect("source-read", fill_in)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
