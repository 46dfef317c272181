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
SOLUTIONS = sorted(BOOK.glob("solutions/[0-9]*.ipynb"))
PAGES = [*CHAPTERS, *sorted(BOOK.glob("*.md")), *ROOT.glob("README.md")]
FOR_SOLUTIONS = [
    house.code_keeps_to_itself,
    house.random_numbers_have_a_seed,
    house.outputs_are_committed,
    house.outputs_are_clean,
    house.numbers_are_short,
    house.chapter_is_in_form,
    house.notebook_is_portable,
]


def named(thing):
    return getattr(thing, "stem", None) or thing.__name__


@pytest.mark.parametrize("path", CHAPTERS, ids=named)
def test_every_chapter_keeps_the_rules(path):
    chapter = Chapter.read(path)
    problems = [text for rule in CHAPTER_RULES for text in rule(chapter)]
    assert problems == []


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_every_page_keeps_the_rules(path):
    page = Page.read(path)
    assert [text for rule in PROSE_RULES for text in rule(page)] == []


@pytest.mark.parametrize("path", SOLUTIONS, ids=named)
def test_every_notebook_of_solutions_keeps_the_rules(path):
    chapter = Chapter.read(path)
    assert [text for rule in FOR_SOLUTIONS for text in rule(chapter)] == []


def exercises_of(chapter):
    return re.findall(r"^#{2,3} (Exercise .+)$", chapter.text, re.M)


@pytest.mark.parametrize("path", CHAPTERS[1:], ids=named)
def test_every_exercise_has_a_solution_that_passes(path):
    solved = Chapter.read(BOOK / "solutions" / path.name)
    assert exercises_of(solved) == exercises_of(Chapter.read(path))
    texts = [
        "\n".join(house.shown(cell) for cell in cells if cell.cell_type == "code")
        for heading, cells in solved.sections[1:]
    ]
    assert texts and all("passed" in text for text in texts)


@pytest.mark.parametrize("path", [*CHAPTERS, *SOLUTIONS], ids=named)
def test_links_within_the_book_lead_to_a_file_and_a_place(path):
    for target in re.findall(r"\]\(([^()\s]+)\)", Chapter.read(path).text):
        page, _, place = target.partition("#")
        if "://" not in page:
            file = path.parent / page if page else path
            assert file.exists(), target
            if file.suffix == ".ipynb" and place:
                there = Chapter.read(file.resolve())
                anchor = place.removeprefix("cell-id=")
                assert f'<a id="{anchor}"></a>' in there.text
                assert anchor == place or anchor in [cell.id for cell in there.cells]
            if file.stem == "prerequisites" and place:
                assert f'<a id="{place}"></a>' in Page.read(file.resolve()).text


def test_addresses_are_unique_in_the_book():
    texts = [Chapter.read(path).text for path in [*CHAPTERS, *SOLUTIONS]]
    names = [n for text in texts for n in re.findall(r'<a id="([^"]+)">', text)]
    assert len(names) == len(set(names)) > 100, sorted(names)


def test_labels_are_unique_on_the_other_pages():
    found = r"^(?:\((\S+)\)=|:label: (\S+))$"
    pages = [page for page in PAGES if page.suffix == ".md"]
    labels = [n for p in pages for n in re.findall(found, Page.read(p).text, re.M)]
    assert len(labels) == len(set(labels)), sorted(map("".join, labels))


# ------------------------------------------------------------ the rules themselves


def code(source, *outputs, tags=()):
    metadata = {"tags": list(tags)} if tags else {}
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
        new_markdown_cell(
            "<details>\n<summary>Hint</summary>\n\nCount.\n\n</details>\n\n"
            f"[Solution](solutions/00_good.ipynb#cell-id=exercise-0-{number})"
        ),
    ]


PICTURE = result("Picture: One bar of height three.", **{"image/png": "iVBO"})
VIEW = result("View: One bar of height three.", **{"text/html": "<img alt='3'>"})
CAPTION = '<a id="fig-three"></a>\n\n**Figure 0.1.** The bar ends at three.'
PAPER = "[Vaswani et al. (2017)](https://arxiv.org/abs/1706.03762)"


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
        code('figures.bars([three], ["n"], alt="One bar of height three.")', PICTURE),
        new_markdown_cell(CAPTION),
        new_markdown_cell(
            '## The equation\n\n<a id="eq-three"></a>\n\n$$\nn = 3 \\tag{0.1}\n$$'
        ),
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
        new_markdown_cell(
            "## Experiment: is it random?\n\n**Before you run it:** is it 1?"
        ),
        new_markdown_cell(house.GUESS, metadata={"tags": ["guess"]}),
        code("rng = np.random.default_rng(0)\nprint(rng.integers(3))", printed("2\n")),
        code(
            "rng = np.random.default_rng(1)\nprint(rng.integers(3))",
            printed("1\n"),
            tags=["predict"],
        ),
        new_markdown_cell(house.ANSWER + "It is.\n\n</details>"),
        new_markdown_cell("## In practice\n\nTiming varies."),
        code(
            "seconds = 1.23456\nprint(seconds)",
            printed("1.23456"),
            tags=["nbval-ignore-output"],
        ),
        code("assert seconds < 9"),
        new_markdown_cell("## Deeper: why three?\n\nFor counters: it is after two."),
        new_markdown_cell("One, two, three."),
        new_markdown_cell("## On your own\n\nNow you."),
        *(cell for number in (1, 2, 3) for cell in exercise(number)),
        new_markdown_cell("## What you can now say\n\nThree."),
        new_markdown_cell(f"## Sources\n\nThe paper of {PAPER}."),
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


BAD = {
    "title_is_followed_by_a_promise": [
        replace("# How much is three?", "# Three"),
        replace("# How much is three?", "How much is three?"),
        replace("At the end stands the number three.", ""),
    ],
    "deeper_sections_begin_with_what_they_answer": [
        replace("\n\nFor counters: it is after two.", ""),
        replace("it is after two.", "it is after two.\n\nNo."),
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
    "random_numbers_have_a_seed": [
        replace("default_rng(0)", "default_rng()"),
        add_to("assert three == 3", "np.random.rand(3)"),
        add_to("assert three == 3", "np.random.seed(3)"),
        add_to("assert three == 3", "import random"),
        add_to("assert three == 3", "torch.randn(3)"),
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
        drop("**Figure 0.1.**"),
        both(output("figures.bars", [VIEW]), drop("**Figure 0.1.**")),
        replace("**Figure 0.1.** The bar ends at three.", "**Figure 0.1.**"),
        replace('<a id="fig-three"></a>', ""),
        output("figures.bars", []),
        output("figures.bars", [printed("3"), PICTURE]),
    ],
    "figures_are_pictures_with_alt_text": [
        output("figures.bars", [result("Picture: ")]),
        output(
            "figures.bars", [result("<Figure size 640x480>", **{"image/png": "iVBO"})]
        ),
        output("figures.bars", [result("Picture: The bar ends at three.")]),
        output("figures.bars", [result("View: ")]),
        output("figures.bars", [result("View: The bar ends at three.")]),
    ],
    "figures_show_where_no_script_runs": [
        output("figures.bars", [result("Picture: A bar.")]),
        output(
            "figures.bars", [result("View: A bar.", **{"text/html": "<svg></svg>"})]
        ),
        output(
            "figures.bars",
            [result("Picture: A.", **{"image/png": "i", "text/html": "<svg></svg>"})],
        ),
    ],
    "exercises_have_check_hint_and_link_to_a_solution": [
        drop("check.number(answer_1)"),
        replace("<summary>Hint</summary>", "<summary>Help</summary>"),
        replace("[Solution](solutions/00_good.ipynb#cell-id=exercise-0-1)", ""),
        output("check.number(answer_1)", [result("not yet: wrong")]),
    ],
    "solutions_are_kept_apart": [
        output("check.number(answer_1)", [result("passed: a number")]),
        metadata("check.number(answer_1)", {"tags": ["solution"]}),
    ],
    "predictions_have_room_for_a_guess_and_an_answer": [
        drop("Your guess"),
        metadata("default_rng(1)", {}),
    ],
    "predicted_outputs_are_asked_for_and_answered_in_a_fold": [
        metadata("three = 1", {"tags": ["predict"]}),
        replace("What happens", "The answer"),
        drop("What happens"),
        replace("**Before you run it:** is it 1?", "We draw."),
    ],
    "notebook_is_portable": [
        prose("See {doc}`01_dot_product`."),
        prose("See {cite:t}`vaswani2017`."),
        prose("```{math}\nx\n```"),
        prose(":::{note}\nx\n:::"),
        prose("(here)=\n### Here"),
        prose("$\\softmax(s)$"),
    ],
    "equations_with_a_number_have_an_address": [
        replace('<a id="eq-three"></a>', ""),
        replace("$$\nn = 3", "$$ n = 3"),
    ],
    "folds_are_closed": [
        replace("\n\n</details>", " </details>"),
        prose("<details>\n<summary>More</summary>\n\nmore"),
    ],
    "papers_are_cited_as_the_bibliography_has_them": [
        replace("Vaswani et al. (2017)", "Vaswani et al. (2018)"),
        replace("Vaswani et al. (2017)", "Vaswani (2017)"),
        prose("([Nobody, 1999](https://arxiv.org/abs/1706.03762))"),
    ],
    "citations_exist": [prose("See {cite}`vaswani2017,nobody1999`.")],
}


def test_a_good_chapter_passes_every_rule():
    chapter = Chapter(good_chapter(), "00_good")
    assert [
        text for rule in CHAPTER_RULES + PROSE_RULES for text in rule(chapter)
    ] == []


@pytest.mark.parametrize("rule", CHAPTER_RULES + PROSE_RULES, ids=named)
def test_a_bad_chapter_is_refused(rule):
    for number, edit in enumerate(BAD[named(rule)]):
        notebook = copy.deepcopy(good_chapter())
        edit(notebook)
        assert list(rule(Chapter(notebook, "00_good"))), number
