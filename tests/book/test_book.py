"""The chapters keep the contract of the book, and its style.

The rules are in `tests/book/house.py`. Here each is run on each chapter, and on a
chapter made bad on purpose: a rule that refuses nothing would not be a rule.
"""

import copy
import re

import nbformat
import pytest
from nbformat.v4 import (
    new_code_cell,
    new_markdown_cell,
    new_notebook,
    new_output,
)

from tests.book import house
from tests.book.house import BOOK, CHAPTER_RULES, PROSE_RULES, ROOT, Chapter, Page

CHAPTERS = sorted(BOOK.glob("[0-9]*.ipynb"))
PAGES = [*CHAPTERS, *sorted(BOOK.glob("*.md")), *ROOT.glob("README.md")]


def named(thing):
    return getattr(thing, "stem", None) or thing.__name__


def complaints(rule, subject):
    return "\n\n".join(rule(subject))


@pytest.mark.parametrize("path", CHAPTERS, ids=named)
@pytest.mark.parametrize("rule", CHAPTER_RULES, ids=named)
def test_every_chapter_keeps_the_rule(rule, path):
    problems = complaints(rule, Chapter.read(path))
    assert not problems, f"{path.name}: {problems}"


@pytest.mark.parametrize("path", PAGES, ids=named)
@pytest.mark.parametrize("rule", PROSE_RULES, ids=named)
def test_every_page_keeps_the_rule(rule, path):
    problems = complaints(rule, Page.read(path))
    assert not problems, f"{path.name}: {problems}"


def test_names_of_figures_are_unique_in_the_book():
    names = [
        cell.metadata["mystnb"]["figure"].get("name")
        for path in CHAPTERS
        for cell in Chapter.read(path).code
        if "figure" in cell.metadata.get("mystnb", {})
    ]
    assert len(names) == len(set(names)), sorted(names)


def test_labels_are_unique_in_the_book():
    labels = [
        label
        for path in PAGES
        for label in re.findall(
            r"^(?:\((\S+)\)=|:label: (\S+))$", Page.read(path).text, re.M
        )
    ]
    assert len(labels) == len(set(labels)), sorted(map("".join, labels))


# ------------------------------------------------------------ the rules themselves


def code(source, *outputs, tags=(), figure=None):
    metadata = {"tags": list(tags)} if tags else {}
    if figure:
        metadata["mystnb"] = {"figure": figure}
    return new_code_cell(source, metadata=metadata, outputs=list(outputs))


def printed(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def result(text, **other):
    return new_output("execute_result", data={"text/plain": text, **other})


def exercise(number):
    return [
        new_markdown_cell(f"### Write number {number}"),
        code(f"answer_{number} = None", tags=["exercise"]),
        code(f"check.number(answer_{number})", result("not attempted yet: a number")),
        new_markdown_cell("```{dropdown} Hint\nCount.\n```"),
        code(
            "check.number(3)",
            result("passed: a number"),
            tags=["solution", "hide-cell"],
        ),
    ]


def good_chapter():
    """Return the smallest chapter that keeps every rule, in form."""
    cells = [
        new_markdown_cell(
            "# How much is three?\n\nAt the end stands the number three."
        ),
        new_markdown_cell("## The question\n\nHow many heads are there?"),
        new_markdown_cell("## By hand\n\nWe count."),
        code("import numpy as np\n\nthree = 1 + 1 + 1\nprint(three)", printed("3\n")),
        code("def count_by_hand(words):\n    return len(words)"),
        new_markdown_cell("## The picture\n\nWe look."),
        code(
            'plot.bars([three], ["n"], alt="One bar of height three.")',
            result("Picture: One bar of height three."),
            figure={"caption": "The bar ends at three.", "name": "fig-three"},
        ),
        new_markdown_cell("## The equation\n\n$$n = 3$$"),
        new_markdown_cell("## The step in the package\n\nHere it is."),
        code("print(mha.source(mha.softmax))", printed("def softmax")),
        new_markdown_cell("## Check\n\nBoth agree."),
        code("assert three == 3"),
        new_markdown_cell("## Break it: four\n\nFour is wrong."),
        code(
            "def wrong(x):\n    return x + 1\n\n\nprint(wrong(three))", printed("4\n")
        ),
        new_markdown_cell("## The law\n\nThree is three."),
        code("laws.rows_sum_to_one", result("holds")),
        new_markdown_cell("## Experiment: is it random?\n\nWhat do you expect?"),
        code("rng = np.random.default_rng(0)\nprint(rng.integers(3))", printed("2\n")),
        code("rng = np.random.default_rng(1)\nprint(rng.integers(3))", printed("1\n")),
        new_markdown_cell("## In practice\n\nTiming varies."),
        code(
            "seconds = 1.23456\nprint(seconds)",
            printed("1.23456"),
            tags=["nbval-ignore-output"],
        ),
        code("assert seconds < 9"),
        new_markdown_cell("## On your own\n\nNow you."),
        *(cell for number in (1, 2, 3) for cell in exercise(number)),
        new_markdown_cell("## What you can now say\n\nThree."),
        new_markdown_cell("## Sources\n\nThe paper {cite}`vaswani2017`."),
    ]
    return in_form(new_notebook(cells=cells))


def in_form(notebook):
    return nbformat.reads(house.refresh().in_form(notebook, "00_good"), as_version=4)


def find(notebook, text):
    return next(cell for cell in notebook.cells if text in cell.source)


def replace(old, new):
    """Return an edit: put `new` in the place of `old`."""

    def edit(notebook):
        cell = find(notebook, old)
        cell.source = cell.source.replace(old, new)

    return edit


def add_to(old, new):
    return replace(old, old + "\n" + new)


def output(text, new):
    """Return an edit: the cell that holds `text` shows `new`."""

    def edit(notebook):
        find(notebook, text).outputs = new

    return edit


def metadata(text, new):
    def edit(notebook):
        find(notebook, text).metadata = nbformat.from_dict(new)

    return edit


def drop(text):
    def edit(notebook):
        notebook.cells.remove(find(notebook, text))

    return edit


def both(*edits):
    def edit(notebook):
        for one in edits:
            one(notebook)

    return edit


def prose(text):
    return add_to("How many heads are there?", text)


def clear_count(notebook):
    find(notebook, "three = 1").execution_count = None


PICTURE = result("Picture: One bar of height three.")
VIEW = result("View: One bar of height three.")
CAPTION = {"caption": "The bar ends at three.", "name": "fig-three"}
BAD = {
    "title_is_a_question_with_a_promise": [
        replace("# How much is three?", "# Three"),
        replace("At the end stands the number three.", ""),
    ],
    "headings_stand_in_order": [
        drop("## Check"),
        replace("## Check", "## Checks"),
        replace("## The law", "## The equation"),
        replace("## Experiment: is it random?", "## Experiment"),
        replace("## In practice", "## In practice\n\n## Experiment: late"),
    ],
    "sections_keep_their_promise": [
        replace("plot.bars", "draw"),
        replace("$$n = 3$$", "Three."),
        replace("mha.source(mha.softmax)", "3"),
        replace("assert three == 3", "three == 3"),
        replace("laws.rows_sum_to_one", "three"),
        replace("{cite}`vaswani2017`", "of 2017"),
    ],
    "experiments_ask_for_a_prediction": [replace("What do you expect?", "We draw.")],
    "cells_are_short": [
        replace("assert seconds < 9", "\n".join(["assert True"] * 21)),
        replace("assert seconds < 9", "\n".join(["assert True", ""] * 10 + ["1"])),
        both(
            replace("three = 1 + 1 + 1", "\n".join(["three = 3"] * 13)),
            replace("assert seconds < 9", "\n".join(["assert True"] * 13)),
            replace("assert three == 3", "\n".join(["assert True"] * 13)),
        ),
    ],
    "code_is_introduced_by_prose": [
        both(drop("## Check"), drop("## Break it"), drop("## The law"))
    ],
    "code_keeps_to_itself": [
        add_to("assert three == 3", line)
        for line in (
            "%matplotlib inline",
            "!ls",
            "sys.path.append('x')",
            "warnings.filterwarnings('ignore')",
            "urllib.request.urlopen(x)",
            'open("/tmp/x")',
            'open("~/x")',
            "print(mha.source(mha.heads._project))",
            "from mha import _arrays, laws",
            "from mha.heads import _project",
            "time.sleep(1)",
            "matplotlib.use('agg')",
            "import matplotlib.pyplot as plt",
        )
    ],
    "names_of_the_package_are_not_taken": [
        add_to("assert three == 3", "softmax = 3"),
        add_to("assert three == 3", "def softmax(x):\n    return x"),
        replace("answer_1 = None", "def softmax(x): ..."),
    ],
    "twins_are_marked_by_hand": [replace("def count_by_hand", "def count")],
    "random_numbers_have_a_seed": [
        replace("default_rng(0)", "default_rng()"),
        add_to("assert three == 3", "np.random.rand(3)"),
        add_to("assert three == 3", "np.random.seed(3)"),
        add_to("assert three == 3", "import random"),
        add_to("assert three == 3", "torch.randn(3)"),
    ],
    "what_cells_share_is_assigned_once": [
        add_to("assert three == 3", "three = 4"),
        add_to("assert three == 3", "three += 1"),
        add_to("assert seconds < 9", "for three in (1, 2): pass"),
        add_to(
            "assert seconds < 9", "def count_by_hand(x): return three + 1\n\nthree = 1"
        ),
    ],
    "outputs_are_committed": [clear_count, output("three = 1", [])],
    "outputs_are_clean": [
        output("three = 1", [new_output("error", ename="E", evalue="", traceback=[])]),
        output("three = 1", [printed("careful", name="stderr")]),
        output("three = 1", [printed("/home/me/book.py:3: careful")]),
        output("three = 1", [printed("    Y = self._project(X)")]),
        output("three = 1", [printed("def _project(X):")]),
    ],
    "numbers_are_short": [output("three = 1", [printed("3.00001")])],
    "unstable_outputs_are_asserted": [replace("assert seconds < 9", "seconds < 9")],
    "chapter_is_in_form": [
        metadata("three = 1", {"collapsed": True}),
        lambda notebook: notebook.metadata.update(author="me"),
        lambda notebook: notebook.cells[3].update(id="not valid"),
    ],
    "figures_have_caption_and_name": [
        metadata("plot.bars", {}),
        both(output("plot.bars", [VIEW]), metadata("plot.bars", {})),
        metadata("plot.bars", {"mystnb": {"figure": CAPTION | {"caption": ""}}}),
        metadata("plot.bars", {"mystnb": {"figure": CAPTION | {"name": "three"}}}),
        output("plot.bars", []),
        output("plot.bars", [printed("3"), PICTURE]),
    ],
    "figures_are_pictures_with_alt_text": [
        output("plot.bars", [result("Picture: ")]),
        output("plot.bars", [result("<Figure size 640x480>", **{"image/png": "iVBO"})]),
        output("plot.bars", [result("Picture: The bar ends at three.")]),
        output("plot.bars", [result("View: ")]),
        output("plot.bars", [result("View: The bar ends at three.")]),
    ],
    "exercises_are_three_to_five": [metadata("answer_1 = None", {})],
    "exercises_have_check_hint_and_solution": [
        drop("check.number(answer_1)"),
        drop("{dropdown}"),
        drop("check.number(3)"),
        output("check.number(answer_1)", [result("not yet: wrong")]),
        output("check.number(3)", [result("not yet: wrong")]),
        metadata("check.number(3)", {"tags": ["solution"]}),
    ],
    "no_banned_words": [
        prose("We just count."),
        prose("Simply three."),
        prose("It is, of\ncourse, three."),
        prose("```{dropdown} Hint\nClearly three.\n```"),
    ],
    "no_exclamation_marks": [prose("Three!")],
    "sentences_are_short": [prose("word " * 41 + "ends.")],
    "dashes_stay_rare": [prose("One — two — three — four.")],
    "citations_exist": [replace("vaswani2017", "vaswani2017, nobody1999")],
}
HARMLESS = [
    prose('The sentence says "just" and `just`, and $n! > 3$ holds.'),
    prose("```python\nprint('simply!')\n```"),
    prose("Half a sentence of twenty words. " * 9),
    add_to("assert three == 3", "squares = [three * k for k in range(3)]"),
    add_to("def count_by_hand(words):", "    three = 2"),
    both(replace("plot.bars", "view.bars"), output("view.bars", [VIEW])),
]


@pytest.mark.parametrize("rule", CHAPTER_RULES + PROSE_RULES, ids=named)
def test_a_good_chapter_passes_the_rule(rule):
    assert not complaints(rule, Chapter(good_chapter(), "00_good"))


@pytest.mark.parametrize(
    ("rule", "edit"),
    [
        pytest.param(rule, edit, id=f"{named(rule)}-{number}")
        for rule in CHAPTER_RULES + PROSE_RULES
        for number, edit in enumerate(BAD[named(rule)])
    ],
)
def test_a_bad_chapter_is_refused(rule, edit):
    notebook = copy.deepcopy(good_chapter())
    edit(notebook)
    assert complaints(rule, Chapter(notebook, "00_good"))


@pytest.mark.parametrize("edit", HARMLESS)
def test_harmless_changes_are_accepted(edit):
    notebook = good_chapter()
    edit(notebook)
    notebook = in_form(notebook)
    for rule in CHAPTER_RULES + PROSE_RULES:
        assert not complaints(rule, Chapter(notebook, "00_good")), named(rule)
