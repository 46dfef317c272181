"""What the slides for lectures promise: the book's own figures, and no network."""

import re

import nbformat
import pytest

pytest.importorskip("sphinx")
pytest.importorskip("sphinx_revealjs", reason="it brings reveal.js")

from tests.book.load import ROOT, load

CHAPTERS = ["03_scale", "04_masks"]
# What may load something: an attribute of a tag, or a rule of a stylesheet.
LOADS = re.compile(r'\b(?:src|href|srcset|data-src)="([^"]*)"|url\(([^)]*)\)|@import')


@pytest.fixture(scope="module")
def slides():
    return load(ROOT / "book" / "slides.py")


@pytest.fixture(scope="module")
def decks(slides, tmp_path_factory):
    """One deck of two chapters, as a file."""
    folder = tmp_path_factory.mktemp("slides")
    slides.main([*CHAPTERS, "--out", str(folder)])
    return folder


@pytest.fixture(scope="module")
def deck(decks):
    (file,) = decks.iterdir()
    return file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def body(deck):
    return deck.partition("<body>")[2].partition("<script>")[0]


def figures_of_the_main_road(slides, name):
    """Return the alt texts of the figures that a first reading shows."""
    cells = nbformat.read(ROOT / "book" / f"{name}.ipynb", as_version=4).cells
    for section, inside in slides.sections(cells):
        if section.startswith(("Deeper", "Sources")):
            continue
        for output in (o for c in inside for o in c.get("outputs", ())):
            data = output.get("data", {})
            if data.get("text/plain", "").startswith(("Picture:", "View:")):
                yield data["text/plain"].partition(": ")[2]


def test_every_figure_of_the_main_road_is_there_with_its_alt_text(slides, body):
    shown = re.findall(r'<figure>.*?(?:aria-label|alt)="([^"]+)"', body, re.DOTALL)
    wanted = [
        alt for name in CHAPTERS for alt in figures_of_the_main_road(slides, name)
    ]
    assert len(wanted) > 6
    assert [slides.unescape(alt) for alt in shown] == wanted


def test_every_figure_has_its_caption(body):
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", body, re.DOTALL)
    assert len(captions) == body.count("<figure>")
    assert all(caption.startswith("<strong>Figure ") for caption in captions)


def test_a_deck_loads_nothing_from_elsewhere(deck):
    found = [
        one or other for one, other in LOADS.findall(deck.partition("<script>")[0])
    ]
    assert len(found) > 3
    assert [each for each in found if not each.startswith(("data:", "#"))] == []
    assert "@import" not in deck.partition("<body>")[0]


def test_a_deck_is_small(decks):
    assert all(file.stat().st_size < 3e6 for file in decks.iterdir())


def test_each_chapter_has_its_title_question_equation_law_and_exercises(body):
    for heading in ("The question", "The equation", "The law", "On your own"):
        assert body.count(f"<h2>{heading}</h2>") >= len(CHAPTERS), heading
    assert body.count("<h1>") == len(CHAPTERS)
    assert 'class="law-card"' in body


def test_formulas_are_typeset_and_links_are_gone(body):
    assert "mjx-math" in body and "\0" not in body and "$" not in body
    assert ".ipynb" not in body


def test_every_chapter_is_in_one_deck(slides):
    paths = [path.stem for *_, paths in slides.decks([]) for path in paths]
    assert paths == sorted(p.stem for p in (ROOT / "book").glob("[0-9]*.ipynb"))


def test_a_chapter_that_does_not_exist_is_named(slides):
    with pytest.raises(SystemExit, match="no chapter is called mask"):
        slides.decks(["mask"])


def test_a_question_is_short_enough_to_be_read(slides):
    words = slides.NEVER_MORE
    cell = nbformat.v4.new_markdown_cell("First. " * 80 + "What then?")
    (made,) = slides.question([cell], slides.Text())
    assert len(made.split()) < words + 5 and "What then?" in made
