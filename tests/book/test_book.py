"""The chapters keep the contract of the book.

The rules are in `tests/book/house.py`. Here each is run on each chapter, and on a
chapter made bad on purpose: a rule that refuses nothing would not be a rule.
"""

import copy
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.book import house
from tests.book.house import BOOK, CHAPTER_RULES, PROSE_RULES, ROOT, Chapter, Page

CHAPTERS = sorted(BOOK.glob("[0-9]*.ipynb"))
SOLUTIONS = sorted(BOOK.glob("solutions/[0-9]*.ipynb"))
PAGES = [*CHAPTERS, *sorted(BOOK.glob("*.md")), *ROOT.glob("README.md")]
FOR_SOLUTIONS = [
    house.code_keeps_to_itself,
    house.outputs_are_clean,
    house.numbers_are_short,
    house.notebook_is_portable,
]


def named(thing):
    return getattr(thing, "stem", None) or thing.__name__


def complaints(rules, page):
    return [text for rule in rules for text in rule(page)]


@pytest.mark.parametrize("path", CHAPTERS, ids=named)
def test_every_chapter_keeps_the_rules(path):
    assert complaints(CHAPTER_RULES, Chapter.read(path)) == []


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_every_page_keeps_the_rules(path):
    assert complaints(PROSE_RULES, Page.read(path)) == []


@pytest.mark.parametrize("path", SOLUTIONS, ids=named)
def test_every_notebook_of_solutions_keeps_the_rules(path):
    assert complaints(FOR_SOLUTIONS, Chapter.read(path)) == []


@pytest.mark.parametrize("path", [*CHAPTERS, *SOLUTIONS], ids=named)
def test_every_notebook_is_in_form(path):
    assert house.refresh().check(path), f"run .ci/refresh --form {path.stem}"


def exercises_of(chapter):
    return re.findall(r"^#{2,4} (Exercise .+)$", chapter.text, re.M)


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


# ------------------------------------------------------------ the rules themselves


def code(source, *outputs, tags=()):
    metadata = {"tags": list(tags)} if tags else {}
    return new_code_cell(source, metadata=metadata, outputs=list(outputs))


def printed(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def result(text, **other):
    return new_output("execute_result", data={"text/plain": text, **other})


PICTURE = result("Picture: One bar of height three.", **{"image/png": "iVBO"})
PAPER = "[Vaswani et al. (2017)](https://arxiv.org/abs/1706.03762)"
TEXTS = [
    "# How much is three?\n\nAt the end stands the number three.",
    code("three = 1 + 1 + 1\nprint(three)", printed("3\n")),
    "We look.",
    code('figures.bars([three], alt="One bar of height three.")', PICTURE),
    '<a id="fig-three"></a>\n\n**Figure 0.1.** The bar ends at three.',
    '## The equation\n\n<a id="eq-three"></a>\n\n$$\nn = 3 \\tag{0.1}\n$$',
    "## Experiment: is it random?\n\n**Before you run it:** is it 1?",
    code("print(rng.integers(3))", printed("1\n"), tags=["predict"]),
    house.ANSWER + "It is.\n\n</details>",
    "## Deeper\n\nFor counters: it is after two.",
    "### Write three",
    code("answer = None", tags=["exercise"]),
    code("check.number(answer)", result("not attempted yet: a number")),
    "<details>\n<summary>Hint</summary>\n\nCount.\n\n</details>\n\n"
    "[Solution](solutions/00_good.ipynb#cell-id=exercise-0-1)",
    f"## Sources\n\nThe paper of {PAPER}.",
]


def good_chapter():
    """Return the smallest chapter that keeps every rule, in form."""
    cells = [
        new_markdown_cell(part) if isinstance(part, str) else copy.deepcopy(part)
        for part in TEXTS
    ]
    text = house.refresh().in_form(new_notebook(cells=cells), "00_good")
    return nbformat.reads(text, as_version=4)


BAD = {  # what stands in the file of the good chapter, and what breaks each rule
    "title_is_followed_by_a_sentence": [("# How much is three?", "# Three")],
    "levels_begin_with_what_is_in_them": [
        ("For counters: it is after two.", ""), ("## Deeper", "## Deeper: why three?"),
    ],
    "code_keeps_to_itself": [
        ("three = 1 + 1 + 1", line) for line in (
            "%matplotlib inline", "sys.path.append('x')", "open('/tmp/x')",
            "urllib.request.urlopen(x)", "from mha import _checks, laws",
        )
    ],
    "outputs_are_clean": [
        ('"stdout"', '"stderr"'), ("3\\n", "/home/me/book.py:3: careful"),
    ],
    "numbers_are_short": [("3\\n", "3.00001")],
    "figures_have_caption_and_name": [
        ("**Figure 0.1.**", "Below"), ("Picture: One bar", "One bar"),
    ],
    "figures_are_pictures_with_alt_text": [
        ("Picture: One bar of height three.", "Picture: "),
        ("Picture: One bar of height three.", "Picture: The bar ends at three."),
    ],
    "figures_show_where_no_script_runs": [("image/png", "text/html")],
    "exercises_have_check_hint_and_link_to_a_solution": [
        ("check.number", "number"), ("<summary>Hint</summary>", "Hint"),
        ("[Solution](solutions/00_good.ipynb#cell-id=exercise-0-1)", "None"),
    ],
    "solutions_are_kept_apart": [("not attempted yet: a", "passed: a")],
    "predicted_outputs_are_asked_for_and_answered_in_a_fold": [
        ("**Before you run it:**", "Here:"), ("What happens", "After it"),
    ],
    "notebook_is_portable": [
        ("We look.", line)
        for line in ("See {doc}`01_dot_product`.", "```{math}", r"$\\softmax(s)$")
    ],
    "equations_with_a_number_have_an_address": [(r'<a id=\"eq-three\"></a>', "")],
    "folds_are_closed": [("</details>", "")],
    "papers_are_cited_as_the_bibliography_has_them": [("(2017)", "(2018)")],
}  # fmt: skip


def test_a_good_chapter_passes_every_rule():
    chapter = Chapter(good_chapter(), "00_good")
    assert complaints(CHAPTER_RULES + PROSE_RULES, chapter) == []


@pytest.mark.parametrize("rule", CHAPTER_RULES + PROSE_RULES, ids=named)
def test_a_bad_chapter_is_refused(rule):
    good = nbformat.writes(good_chapter())
    for old, new in BAD[named(rule)]:
        assert old in good
        bad = nbformat.reads(good.replace(old, new), as_version=4)
        assert list(rule(Chapter(bad, "00_good"))), (old, new)
