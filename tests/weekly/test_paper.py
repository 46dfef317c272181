"""The book on paper: the command of the README prints every page."""

import re

import pytest

pytest.importorskip("playwright")
pytest.importorskip("pypdf")

from pypdf import PdfReader

from tests.book.load import ROOT, load
from tests.browser import chromium
from tests.browser.built import current_pages


@pytest.fixture(scope="module")
def paper():
    return load(ROOT / ".ci" / "paper", "paper")


@pytest.fixture(scope="module")
def pdf(paper, tmp_path_factory):
    if chromium.find() is None:
        pytest.skip(chromium.MISSING)
    paper.HTML = current_pages()
    out = tmp_path_factory.mktemp("paper") / "book.pdf"
    paper.main(out)
    return PdfReader(out)


def text_of(pdf, first, last):
    words = " ".join(pdf.pages[k - 1].extract_text() for k in range(first, last))
    return " ".join(words.split())


def test_the_contents_say_where_each_page_begins(paper, pdf):
    begins = dict(zip(titles_of(pdf), paper.starts(pdf), strict=True))
    contents = text_of(pdf, 2, 4)
    listed = [title for title in begins if not title.startswith("Solutions to ")]
    assert len(listed) > 25
    for title in listed:
        if title.isascii():  # formulas are no text
            assert squeezed(f"{title} {begins[title]}") in squeezed(contents), title


def squeezed(text):
    """Return a text without spaces, which a broken line may lose."""
    return "".join(text.split())


def titles_of(pdf):
    return [mark.title for mark in pdf.outline if not isinstance(mark, list)][2:]


def test_solutions_stand_at_the_end(paper, pdf):
    titles, begins = titles_of(pdf), paper.starts(pdf)
    at = titles.index("Solutions")
    assert titles[at + 1] == "Solutions to chapter 1" and len(titles) == at + 1 + 17
    solutions = text_of(pdf, begins[at + 1], len(pdf.pages) + 1)
    for number in ("1.1", "4.4", "18.3"):
        assert f"Exercise {number}:" in solutions
    assert "check.last_rows_mask" in solutions


def test_formulas_are_set_as_on_the_page(pdf):
    fonts = [
        font.get_object()
        for page in pdf.pages[:40]
        for font in page["/Resources"].get("/Font", {}).values()
    ]
    # Chromium embeds the fonts of the formulas as Type 3; MathML has one called Math
    assert "/Type3" in {font["/Subtype"] for font in fonts}
    assert not any("Math" in str(font.get("/BaseFont")) for font in fonts)


def test_nothing_asks_to_drag_below_a_still_and_no_lost_page_is_printed(pdf):
    text = " ".join(" ".join(page.extract_text() for page in pdf.pages).split())
    assert text.count("On the page, this figure can be moved.") > 5
    captions = re.findall(r"Figure \d+\.\d+ .*?can be moved\.", text)
    assert [c for c in captions if re.search("[Dd]rag|slider|arrow", c[-400:])] == []
    assert "No such page" not in text


def test_what_a_page_folds_is_printed(pdf, paper):
    begins = dict(zip(titles_of(pdf), paper.starts(pdf), strict=True))
    starts = [*begins.values(), len(pdf.pages) + 1]
    for title, first in begins.items():
        printed = text_of(pdf, first, starts[starts.index(first) + 1])
        assert len(printed.split()) > 20, title
        if title.startswith("4. "):
            assert "smallest float16" in printed  # of a deeper section
