"""What the extensions for reading comfort promise, without a browser."""

import json
import re
from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx")

from docutils import nodes

from figures.scene import LIGHT
from tests.book.load import ROOT, extension, load

CHAPTERS = sorted(path.stem for path in (ROOT / "book").glob("[0-9]*.ipynb"))
STATIC = ROOT / "book" / "_static"


def page(*children):
    """Return the tree of a small page."""
    tree = nodes.section("", nodes.title("", "A title"))
    tree += children
    return tree


def paragraph(text):
    return nodes.paragraph("", text)


# What a chapter takes


def test_three_hundred_and_forty_words_a_page_and_ten_pages_take_twenty_minutes():
    comfort = extension("comfort")
    assert comfort.minutes(page(*[paragraph("word " * 340)] * 10)) == 20


def test_code_takes_longer_than_prose():
    comfort = extension("comfort")
    code = nodes.literal_block("", "word " * 1000)
    assert comfort.minutes(page(paragraph("word " * 1000))) == 5
    assert comfort.minutes(page(code)) == 10


@pytest.mark.parametrize("name", ["tag_solution", "tag_hide-input", "cell_output"])
def test_what_is_folded_or_printed_takes_no_time(name):
    comfort = extension("comfort")
    code = nodes.container("", nodes.literal_block("", "word " * 3000), classes=[name])
    assert comfort.minutes(page(nodes.container("", code))) == 5


def exercise(task):
    return nodes.section("", nodes.title("", "Exercise 2.1: Write it"), task)


def test_an_exercise_takes_the_minutes_that_it_names():
    comfort = extension("comfort")
    level = nodes.strong("", "Warm-up, 7 minutes.")
    timed = exercise(nodes.paragraph("", "", level, nodes.Text(" Write a softmax.")))
    plain = exercise(paragraph("Wait 3 minutes, then write it."))
    assert comfort.exercises(page(timed, plain)) == [7, comfort.UNTIMED]
    assert comfort.exercises(page(paragraph("Exercise 2.1: is mentioned here."))) == []


def test_a_prediction_is_asked_in_bold():
    comfort = extension("comfort")
    asks = nodes.strong("", "Before you run it:"), nodes.strong("", "Before you look:")
    bold = nodes.strong("", "Before you run"), nodes.strong("", "before")
    tree = page(*(nodes.paragraph("", "", node) for node in (*asks, *bold)))
    assert comfort.predictions(tree) == len(asks)


def test_predictions_and_exercises_add_to_the_minutes():
    comfort = extension("comfort")
    asks = nodes.paragraph("", "", nodes.strong("", "Before you run it:"))
    words = paragraph("word " * 2550)
    tree = page(words, *[asks.deepcopy() for _ in range(5)], exercise(paragraph("Do.")))
    env = SimpleNamespace(docname="book/02_softmax", metadata={"book/02_softmax": {}})
    comfort.measure(SimpleNamespace(env=env), tree)
    facts = env.metadata["book/02_softmax"]
    assert facts["minutes"] == 15 and facts["exercises"] == 1
    assert facts["minutes_with_all"] == 15 + 5 * comfort.PREDICTION + comfort.UNTIMED


def test_the_line_names_only_what_there_is():
    comfort = extension("comfort")
    facts = {"minutes": 20, "minutes_with_all": 65, "exercises": 4}
    facts["minutes_deeper"] = 15
    line = comfort.head(facts, 8)
    assert "About 20 minutes to read, 65 with predictions and exercises · " in line
    assert " · deeper sections 15 minutes more · 8 seconds to run · " in line
    assert ">4 exercises</span>" in line
    facts = {"minutes": 20, "minutes_with_all": 20, "exercises": 0, "minutes_deeper": 0}
    line = comfort.head(facts, None)
    assert line == '<p class="takes">About 20 minutes to read</p>'


def test_only_chapters_count_as_chapters():
    comfort = extension("comfort")
    assert comfort.chapter("book/04_masks") == "04_masks"
    assert comfort.chapter("book/glossary") is None
    assert comfort.chapter("_modules/mha/masks") is None


def test_every_chapter_has_its_seconds_and_keeps_to_its_thirty():
    file = ROOT / "book" / "_data" / "seconds.json"
    seconds = json.loads(file.read_text(encoding="utf-8"))
    assert sorted(seconds) == CHAPTERS
    assert all(0 < each <= 30 for each in seconds.values())


def test_seconds_change_only_when_a_chapter_did(tmp_path):
    refresh = load(ROOT / ".ci" / "refresh", "refresh")
    file = tmp_path / "seconds.json"

    def stored_after(spent):
        refresh.note_seconds("05_attention", spent, file)
        return json.loads(file.read_text(encoding="utf-8"))["05_attention"]

    assert [stored_after(each) for each in (8.7, 7.0, 14.0)] == [10, 10, 10]
    assert stored_after(3.2) == 3
    assert stored_after(0.0) == 3  # a machine that cannot tell


# Words of the glossary

WORDS = {
    "mask": ("term-mask", "A table."),
    "padding mask": ("term-padding-mask", "A mask for filler."),
}


def links(tree):
    return [
        (node.astext(), node["refuri"], node["reftitle"])
        for node in tree.findall(nodes.reference)
    ]


def test_the_first_use_of_a_word_carries_its_meaning():
    words = extension("words")
    tree = page(paragraph("Two masks, one mask."), paragraph("A mask again."))
    words.link_words(tree, {"mask": WORDS["mask"]}, "glossary.html")
    assert links(tree) == [("masks", "glossary.html#term-mask", "A table.")]
    assert tree.children[1].astext() == "Two masks, one mask."


def test_the_longest_word_wins_and_parts_of_words_do_not_count():
    words = extension("words")
    tree = page(paragraph("Unmask it, mask-like. The padding mask and the mask."))
    words.link_words(tree, WORDS, "")
    assert [text for text, *_ in links(tree)] == ["padding mask", "mask"]


def test_titles_links_and_code_are_left_alone():
    words = extension("words")
    tree = page(paragraph(""))
    tree[0] += nodes.Text(" with a mask")
    inside = nodes.reference("", "the mask", refuri="#", reftitle="")
    tree[1] += [inside, nodes.literal("", "mask")]
    words.link_words(tree, WORDS, "")
    assert links(tree) == [("the mask", "#", "")]


def test_a_page_explains_the_words_it_has_in_bold():
    words = extension("words")
    tree = page(nodes.paragraph("", "", nodes.strong("", "Masks")))
    assert "mask" in words.defined_here(tree)


def test_a_word_that_most_chapters_use_stays_plain():
    words = extension("words")
    texts = {"book/01_a": "mask", "book/02_b": "mask and gain", "book/glossary": "gain"}
    trees = {name: page(paragraph(text)) for name, text in texts.items()}
    env = SimpleNamespace(found_docs=set(trees), get_doctree=trees.get)
    assert words.rare_words(SimpleNamespace(env=env), ["mask", "gain"]) == {"gain"}


# The picture for links


def test_the_picture_for_links_shows_the_emblem(tmp_path):
    from matplotlib.image import imread

    preview = extension("preview")
    preview.draw(tmp_path / "preview.png")
    picture = imread(tmp_path / "preview.png")
    assert picture.shape[:2] == (preview.HEIGHT, preview.WIDTH)
    pixels = (255 * picture[::8, ::8, :3]).round().astype(int).reshape(-1, 3)
    colours = {f"#{r:02X}{g:02X}{b:02X}" for r, g, b in pixels}
    assert {LIGHT[role] for role in ("weight", "wrong", "paper")} <= colours


def test_only_a_book_with_an_address_announces_the_picture():
    preview = extension("preview")
    for address, image in (("", None), ("https://somebody.example/", preview.PICTURE)):
        config = SimpleNamespace(
            html_baseurl=address, ogp_image=None, ogp_custom_meta_tags=(), project="H"
        )
        preview.announce(None, config)
        assert config.ogp_image == image
        assert bool(config.ogp_custom_meta_tags) == bool(image)


# Weight, in bytes

LIMITS = [("progress.js", 3072), ("words.js", 2048), ("predict.js", 2304)]


@pytest.mark.parametrize(("name", "limit"), LIMITS)
def test_our_scripts_stay_small_and_speak_to_nobody(name, limit):
    script = (STATIC / name).read_text(encoding="utf-8")
    assert len(script.encode()) <= limit
    assert not re.search(r"fetch|XMLHttp|sendBeacon|cookie|https?:", script)
