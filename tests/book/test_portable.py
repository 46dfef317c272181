"""The extension that makes pages of portable notebooks."""

import json
import re
from html import unescape

import pytest

pytest.importorskip("sphinx")

import figures
from tests.book.load import ROOT, extension

PAPER = "https://arxiv.org/abs/1706.03762"
BECOMES = [
    (
        '<a id="eq-mask"></a>\n\n$$\nA = B \\tag{4.1}\n$$',
        "(eq-mask)=\n$$\nA = B \\tag{4.1}\n$$",
    ),
    (
        "see [equation (7.1)](07_split.ipynb#eq-07-blocks)",
        "see [equation (7.1)](#eq-07-blocks)",
    ),
    (f"[Vaswani et al. (2017)]({PAPER})", "{cite:t}`vaswani2017`"),
    (
        f"([Vaswani et al., 2017]({PAPER}); "
        "[Watson, 1964](bibliography.md#watson1964))",
        "{cite:p}`vaswani2017,watson1964`",
    ),
    ("[heads](glossary.md#term-head)", "{term}`heads <head>`"),
    ("[`mha.linear`](../mha/heads.py)", "{py:obj}`mha.linear <mha.heads.linear>`"),
    (
        "[Solution](solutions/04_masks.ipynb#cell-id=exercise-4-1)",
        "[Solution](#exercise-4-1)",
    ),
    ('<a id="here"></a>\n\n## Here', "(here)=\n## Here"),
    (
        "<details>\n<summary>What happens</summary>\n\nIt ends.\n\n</details>",
        "````````{admonition} What happens\n:class: answer\n\nIt ends.\n\n````````",
    ),
    (
        "<details>\n<summary>Hint</summary>\n\nCount.\n\n</details>",
        "<details>\n<summary>Show the hint</summary>\n\nCount.\n\n</details>",
    ),
]
STAYS = [
    f"[the paper]({PAPER})",
    "[chapter 4](04_masks.ipynb)",
    "<details>\n<summary>The rest</summary>\n\nCount.\n\n</details>",
    "$A[i](j)$ and `x[0](y)`",
    "> **A law.** A quotation.",
    "$$\nx = 3\n$$",
]


@pytest.fixture(scope="module")
def portable():
    return extension("portable")


@pytest.mark.parametrize(("text", "myst"), [*BECOMES, *zip(STAYS, STAYS, strict=True)])
def test_what_reads_well_everywhere_becomes_what_sphinx_knows(portable, text, myst):
    assert portable.to_myst(text) == myst


def test_a_word_that_the_glossary_lacks_is_refused(portable):
    with pytest.raises(ValueError, match="the glossary has no 'term-nothing'"):
        portable.to_myst("[x](glossary.md#term-nothing)")


def test_a_link_that_names_another_number_than_its_target_is_refused(portable):
    number = portable.numbers()["eq-07-blocks"]
    with pytest.raises(ValueError, match=f"leads to the number {number}"):
        portable.to_myst("[equation (7.99)](#eq-07-blocks)")


def test_figures_and_equations_are_numbered_in_order(portable):
    places = {}
    for path in sorted((ROOT / "book").glob("[0-9]*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for _, *both in portable.NUMBERED.findall(portable.source(cell)):
                kind, number = ("figure", both[0]) if both[0] else ("eq", both[1])
                chapter, place = map(int, number.split("."))
                assert chapter == int(path.stem[:2]), number
                places.setdefault((kind, chapter), []).append(place)
    assert len(places) > 20
    for key, found in places.items():
        assert found == list(range(1, len(found) + 1)), key


@pytest.mark.parametrize(
    ("code", "shown"),
    [("import figures\n\nfigures.house('mask')", False), ("x = 1\nprint(x)", True)],
)
def test_code_that_only_calls_a_figure_is_not_shown(portable, code, shown):
    cell = {"cell_type": "code", "source": code, "metadata": {"tags": ["hide-input"]}}
    tags = portable.for_a_page(cell)["metadata"]["tags"]
    assert ("remove-input" not in tags) == shown


def test_a_guess_has_the_choices_that_the_notebook_names(portable):
    cell = markdown("> *Your guess:* more / less", tags=["guess"])
    assert portable.for_a_page(cell)["source"] == (
        '<div class="guess" hidden>more / less</div>'
    )


PICTURE = """<svg class="mha-picture" viewBox="0 0 716 200" style="display: block">
<text style="font-size: 8.5px">a</text><text style="font-size: 30px">b</text></svg>"""


def test_small_text_of_a_wide_picture_grows_on_a_phone(portable):
    page = portable.PICTURE.sub(portable.legible, PICTURE)
    assert "max(8.5px, var(--least, 0px))" in page and "font-size: 30px" in page
    assert "--on-a-phone: 22.00px" in page


def test_the_still_of_a_live_figure_is_drawn_and_its_script_finds_the_drawings_there(
    portable,
):
    html = figures.house("scores")._repr_html_()
    page = portable.STILL.sub(portable.drawn, html)
    assert "<img" in html and "<img" not in page and page.count("<svg") == 2
    data = json.loads(re.search(r'json">(.*?)</script>', page)[1])
    assert "stills" not in data and data["words"][0] == "dog"


def markdown(source, **metadata):
    return {"cell_type": "markdown", "source": source, "metadata": metadata}


CAPTION = '<a id="fig-a"></a>\n\n**Figure 4.2.** It *ends*.'
FOLD = "<details>\n<summary>What happens</summary>\n\n"


@pytest.mark.parametrize(
    ("below", "rest"),
    [
        (CAPTION, []),
        (f"{FOLD}{CAPTION}\n\n</details>", []),
        (f"{FOLD}{CAPTION}\n\nBecause.\n\n</details>", ["Because."]),
    ],
)
def test_the_cell_below_a_figure_becomes_its_caption(portable, below, rest):
    data = {"image/svg+xml": "<svg></svg>", "text/plain": "Picture: a"}
    output = {"output_type": "execute_result", "data": data}
    drawn = {"cell_type": "code", "source": "1", "metadata": {}, "outputs": [output]}
    page = portable.page_of({"cells": [drawn, markdown(below)]})
    figure, *others = page["cells"]
    expected = {"name": "fig-a", "caption": "**Figure 4.2.** It *ends*."}
    assert figure["metadata"]["mystnb"]["figure"] == expected
    assert set(figure["outputs"][0]["data"]) == {"text/html", "text/plain"}
    texts = "".join(cell["source"] for cell in others)
    assert len(others) == len(rest) and all(text in texts for text in rest)
    assert "Figure" not in texts


def test_every_source_of_the_bibliography_has_an_address_of_its_own(portable):
    keys = [key for key, *_ in portable.entries().values()]
    source = (portable.BOOK / "references.bib").read_text(encoding="utf-8")
    assert len(keys) == len(set(keys)) == source.count("\n@") + source.startswith("@")


def answers():
    """Yield what the exercises of all chapters and solutions have answered."""
    for path in sorted((ROOT / "book").rglob("[0-9]*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if (
                cell["source"]
                and "".join(cell["source"]).split("\n")[-1][:6] == "check."
            ):
                yield from cell["outputs"]


def test_what_an_exercise_answers_is_marked_and_keeps_its_words(portable):
    found = [output for output in answers() if "data" in output]
    assert len(found) > 100
    for output in found:
        text = "".join(output["data"]["text/plain"])
        cell = {"cell_type": "code", "source": "", "outputs": [output]}
        html = portable.for_a_page(cell)["outputs"][0]["data"]["text/html"]
        assert 'class="report"' in html and 'class="mark' in html
        assert text in unescape(re.sub(r"<[^>]+>", "", html.replace("<pre>", "\n")))
