"""What the slides for lectures promise: the book's own figures, and no network."""

import re
from html import unescape

import nbformat
import pytest

pytest.importorskip("sphinx")

import slides
from tests.book.load import ROOT

CHAPTERS = ["03_scale", "04_masks"]
# What may load something: an attribute of a tag, or a rule of a stylesheet.
LOADS = re.compile(r'\b(?:src|href|srcset|data-src)="([^"]*)"|url\(([^)]*)\)|@import')


@pytest.fixture(scope="module")
def deck(tmp_path_factory):
    """One deck of two chapters."""
    folder = tmp_path_factory.mktemp("slides")
    slides.main([*CHAPTERS, "--out", str(folder)])
    (file,) = folder.iterdir()
    assert file.stat().st_size < 3e6
    return file.read_text(encoding="utf-8")


def figures_of_the_main_road(name):
    """Return the alt texts of the figures that a first reading shows."""
    cells = nbformat.read(ROOT / "book" / f"{name}.ipynb", as_version=4).cells
    for section, inside in slides.sections(cells):
        if section.startswith(("Deeper", "Sources")):
            continue
        for output in (o for c in inside for o in c.get("outputs", ())):
            words = output.get("data", {}).get("text/plain", "")
            if words.startswith(("Picture:", "View:")):
                yield words.partition(": ")[2]


def test_every_figure_of_the_main_road_is_there_with_alt_text_and_caption(deck):
    shown = re.findall(r'<figure>.*?(?:aria-label|alt)="([^"]+)"', deck, re.DOTALL)
    wanted = [[*figures_of_the_main_road(name)] for name in CHAPTERS]
    assert all(wanted), "each chapter has figures to show"
    assert [unescape(alt) for alt in shown] == [alt for alts in wanted for alt in alts]
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", deck, re.DOTALL)
    assert len(captions) == len(shown)
    assert all(caption.startswith("<strong>Figure ") for caption in captions)


def test_a_deck_loads_nothing_from_elsewhere(deck):
    found = [one or other for one, other in LOADS.findall(deck)]
    assert len(found) > 3
    assert [each for each in found if not each.startswith(("data:", "#"))] == []
    assert "@import" not in deck


def test_each_chapter_has_its_title_question_equation_law_and_exercises(deck):
    for heading in ("The question", "The equation", "The law", "On your own"):
        assert deck.count(f"<h2>{heading}</h2>") >= len(CHAPTERS), heading
    assert deck.count("<h1>") == len(CHAPTERS)
    assert 'class="law-card"' in deck


def test_formulas_are_typeset_and_links_are_gone(deck):
    body = deck.partition("<body>")[2]
    assert "mjx-math" in body and "\0" not in body and "$" not in body
    assert ".ipynb" not in body
