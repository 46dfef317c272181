"""The command that puts the book on paper, tried on two pages; all runs weekly."""

import subprocess
import sys

import pytest

pytest.importorskip("playwright")
pytest.importorskip("pypdf")

from pypdf import PdfReader

from tests.book.load import ROOT
from tests.browser import chromium
from tests.browser.built import current_pages

ONLY = "book/00_overview", "book/solutions/01_dot_product"
# in a process of its own, because other tests have a browser open in this one
PRINT = """
import sys
from pathlib import Path
from tests.book.load import ROOT, load
paper = load(ROOT / ".ci" / "paper", "paper")
paper.HTML = Path(sys.argv[1])
paper.main(*sys.argv[2:])
"""


@pytest.fixture(scope="module")
def pdf(tmp_path_factory):
    if chromium.find() is None:
        pytest.skip(chromium.MISSING)
    out = tmp_path_factory.mktemp("paper") / "book.pdf"
    command = [sys.executable, "-c", PRINT, str(current_pages()), str(out), *ONLY]
    subprocess.run(command, cwd=ROOT, check=True)
    return PdfReader(out)


def test_two_pages_are_printed_with_contents_and_formulas_as_on_the_page(pdf):
    titles = [mark.title for mark in pdf.outline if not isinstance(mark, list)]
    assert titles[1] == "Contents" and titles[-1] == "Solutions to chapter 1"
    chapter = pdf.get_destination_page_number(pdf.outline[2]) + 1
    assert f" {chapter}" in " ".join(pdf.pages[1].extract_text().split("\n"))
    fonts = [
        font.get_object()
        for page in pdf.pages
        for font in page["/Resources"].get("/Font", {}).values()
    ]
    # Chromium embeds the fonts of the formulas as Type 3; MathML has one called Math
    assert "/Type3" in {font["/Subtype"] for font in fonts}
    assert not any("Math" in str(font.get("/BaseFont")) for font in fonts)


def test_paper_opens_what_is_folded_and_asks_nobody_to_drag(pdf):
    text = " ".join(" ".join(p.extract_text() for p in pdf.pages).split())
    assert "check." in text and "passed" in text
    assert "On the page, this figure can be moved." in text
    assert "Drag the" not in text and "No such page" not in text
