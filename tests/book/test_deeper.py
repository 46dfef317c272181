"""Sections that a first reading may leave closed: title and first paragraph stay."""

from types import SimpleNamespace

from docutils import nodes

from tests.book.load import extension


def section(title, *texts):
    paragraphs = (nodes.paragraph("", text) for text in texts)
    return nodes.section("", nodes.title("", title), *paragraphs)


def test_title_and_first_paragraph_stay_and_the_rest_is_folded():
    deeper = extension("deeper")
    found = section("Deeper: why three?", "For counters.", "One.", "word " * 2550)
    deeper.fold(found)
    assert [type(node) for node in found] == [
        nodes.title,
        nodes.paragraph,
        deeper.Deeper,
    ]
    assert found[1].astext() == "For counters."
    assert [node.astext()[:4] for node in found[2]] == ["One.", "word"]
    assert found[2]["minutes"] == 15


def test_only_sections_that_say_so_are_folded():
    deeper = extension("deeper")
    assert deeper.is_deeper(section("Deeper: why three?", "For counters."))
    assert not deeper.is_deeper(section("The law", "Deeper: no."))


def test_what_is_folded_is_not_on_the_main_road_and_is_counted_apart():
    deeper, comfort = extension("deeper"), extension("comfort")
    long = section("Deeper: why three?", "For counters.", "word " * 2550)
    asks = nodes.paragraph("", "", nodes.strong("", "Before you run it:"))
    long += asks
    tree = nodes.document(None, None, "", section("The law", "word " * 2000), long)
    assert (comfort.minutes(tree), comfort.predictions(tree)) == (25, 1)
    deeper.fold(long)
    assert (comfort.minutes(tree), comfort.predictions(tree)) == (10, 0)


def test_the_button_says_how_long_it_takes():
    deeper = extension("deeper")
    translator = SimpleNamespace(body=[])
    deeper.visit_deeper(translator, deeper.Deeper(minutes=10))
    deeper.depart_deeper(translator, None)
    assert "".join(translator.body) == (
        '<details class="reveal deeper">'
        "<summary>Read this section: about 10 minutes</summary>\n</details>\n"
    )
