"""The extension that makes pages of portable notebooks."""

import pytest

from tests.book.load import extension

PAPER = "https://arxiv.org/abs/1706.03762"


@pytest.fixture(scope="module")
def portable():
    return extension("portable")


@pytest.mark.parametrize(
    ("text", "myst"),
    [
        (
            '<a id="eq-mask"></a>\n\n$$\nA = B \\tag{4.1}\n$$',
            "```{math}\n:label: eq-mask\nA = B\n```",
        ),
        ("see [equation (4.1)](04_masks.ipynb#eq-mask)", "see equation {eq}`eq-mask`"),
        ("see [(4.1)](#eq-mask)", "see {eq}`eq-mask`"),
        ("see [Figure 4.2](#fig-mask)", "see {numref}`fig-mask`"),
        (f"[Vaswani et al. (2017)]({PAPER})", "{cite:t}`vaswani2017`"),
        (f"([Vaswani et al., 2017]({PAPER}))", "{cite:p}`vaswani2017`"),
        (
            f"([Vaswani et al., 2017]({PAPER}); "
            "[Watson, 1964](bibliography.md#watson1964))",
            "{cite:p}`vaswani2017,watson1964`",
        ),
        ("[heads](glossary.md#term-head)", "{term}`heads <head>`"),
        (
            "[`mha.linear`](../mha/heads.py)",
            "{py:obj}`mha.linear <mha.heads.linear>`",
        ),
        (
            "[Solution](solutions/04_masks.ipynb#cell-id=exercise-4-1)",
            "{ref}`Solution <exercise-4-1>`",
        ),
        (
            "[transpose](prerequisites.md#pre-transpose)",
            "{ref}`transpose <pre-transpose>`",
        ),
        ('<a id="here"></a>\n\n## Here', "(here)=\n## Here"),
        (
            "<details>\n<summary>Hint</summary>\n\nCount.\n\n</details>",
            "<details>\n<summary>Hint</summary>\n\nCount.\n\n</details>",
        ),
        (
            "<details>\n<summary>What happens</summary>\n\nIt ends.\n\n</details>",
            "````````{admonition} What happens\n:class: answer\n\nIt ends.\n\n````````",
        ),
        ("> **A title.** One\n> two.", "``````{admonition} A title\nOne\ntwo.\n``````"),
    ],
)
def test_what_reads_well_everywhere_becomes_what_sphinx_knows(portable, text, myst):
    assert portable.to_myst(text) == myst


@pytest.mark.parametrize(
    "text",
    [
        f"[the paper]({PAPER})",
        f"([as they write]({PAPER}))",
        "[chapter 4](04_masks.ipynb)",
        "[there](https://somebody.example/page#part)",
        "$A[i](j)$ and `x[0](y)`",
        "> a quotation without a title",
        "$$\nx = 3\n$$",
    ],
)
def test_other_text_stays_as_it_is(portable, text):
    assert portable.to_myst(text) == text


def test_a_word_that_the_glossary_lacks_is_refused(portable):
    with pytest.raises(ValueError, match="the glossary has no 'term-nothing'"):
        portable.to_myst("[x](glossary.md#term-nothing)")


def markdown(source):
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def drawn():
    data = {
        "image/svg+xml": "<svg></svg>",
        "image/png": "i",
        "text/plain": "Picture: a",
    }
    output = {"output_type": "execute_result", "data": data}
    return {"cell_type": "code", "source": "1", "metadata": {}, "outputs": [output]}


CAPTION = '<a id="fig-a"></a>\n\n**Figure 4.2.** It *ends*.'
FOLD = "<details>\n<summary>What happens</summary>\n\n"


def test_the_cell_below_a_figure_becomes_its_caption(portable):
    page = portable.page_of({"cells": [drawn(), markdown(CAPTION), markdown("On.")]})
    figure, following = page["cells"]
    expected = {"name": "fig-a", "caption": "It *ends*."}
    assert figure["metadata"]["mystnb"]["figure"] == expected
    assert set(figure["outputs"][0]["data"]) == {"text/html", "image/png", "text/plain"}
    assert following["source"] == "On."


def test_a_caption_within_an_answer_leaves_the_answer(portable):
    answer = markdown(FOLD + CAPTION + "\n\nBecause.\n\n</details>\n\nOn.")
    figure, following = portable.page_of({"cells": [drawn(), answer]})["cells"]
    assert figure["metadata"]["mystnb"]["figure"]["caption"] == "It *ends*."
    assert "Figure" not in following["source"]
    assert "\nBecause.\n" in following["source"] and following["source"].endswith("On.")


def test_a_fold_that_holds_a_caption_only_disappears(portable):
    answer = markdown(FOLD + CAPTION + "\n\n</details>")
    assert len(portable.page_of({"cells": [drawn(), answer]})["cells"]) == 1


def test_room_for_a_guess_is_left_to_the_page(portable):
    guess = markdown("> *Your guess:*") | {"metadata": {"tags": ["guess"]}}
    assert portable.page_of({"cells": [guess, markdown("On.")]})["cells"] == [
        markdown("On.")
    ]


def test_every_source_of_the_bibliography_has_an_address_of_its_own(portable):
    keys = [key for key, *_ in portable.entries().values()]
    assert len(keys) == len(set(keys)) > 50
    source = (portable.BOOK / "references.bib").read_text(encoding="utf-8")
    assert len(keys) == source.count("\n@") + source.startswith("@")
