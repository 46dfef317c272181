"""What a chapter opens with, and what it asks before it shows, without a browser."""

import re
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx")

import yaml
from docutils import nodes

from _data import designs
from figures import strip as drawings
from figures import thumbs
from mha import laws, zoo
from mha._chapters import CHAPTERS as SLUGS
from tests.book import prediction
from tests.book.load import ROOT, extension

TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
SMALL = {"parts": [
    {"caption": "One & two", "chapters": [{"file": f"book/0{n}_x{n}"} for n in (1, 2)]},
    {"caption": "Back", "chapters": [{"file": "book/glossary"}]},
    {"caption": "Three", "chapters": [{"file": "book/03_x3"}]},
]}  # fmt: skip


@pytest.fixture(scope="module")
def opening():
    return extension("opening")


@pytest.fixture(scope="module")
def predict():
    return extension("predict")


def words(html):
    """Return the text of a piece of HTML."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


# Where the chapter stands


def test_the_second_of_two_chapters_fills_two_squares(opening):
    html = opening.place("book/02_x2", opening.parts(SMALL))
    assert words(html) == "Part I One &amp; two chapter 2 of 2"
    assert html.count("<i") == html.count('<i class="on"') == 2


def test_parts_without_chapters_are_not_counted(opening):
    html = opening.place("book/03_x3", opening.parts(SMALL))
    assert words(html) == "Part II Three chapter 1 of 1"


def test_a_chapter_before_all_parts_has_its_number(opening):
    before = {"parts": [{"chapters": [{"file": "book/00_x0"}]}, *SMALL["parts"]]}
    assert opening.parts(before) == opening.parts(SMALL)
    html = opening.place("book/00_x0", opening.parts(before))
    assert words(html) == "Chapter 0"


def test_every_chapter_in_a_part_of_the_book_has_its_place(opening):
    parts = opening.parts(TOC)
    pages = [page for _, each in parts for page in each]
    assert len(pages) >= 15 and all(opening.place(page, parts) for page in pages)


# What one needs


def need(*children):
    """Return what the chips of a paragraph say, and the text after them."""
    links = [
        nodes.reference("", text[1:], refuri="#")
        if text[0] == "@"
        else nodes.Text(text)
        for text in children
    ]
    paragraph = nodes.paragraph("", "", *links)
    opening = extension("opening")
    assert opening.is_need(paragraph)
    opening.chips(paragraph)
    named = [
        (node["classes"], node.astext()) for node in paragraph.findall(nodes.inline)
    ]
    assert named[0] == (["head"], "You need ")
    chips = [text for classes, text in named if classes == ["chip"]]
    return chips, "".join(text for classes, text in named if classes == ["after"])


def test_each_thing_that_one_needs_is_a_chip():
    sentence = "You need scores (", "@chapter 1", "), shares (", "@chapter 2", ")"
    chips, rest = need(*sentence, " and masks (", "@chapter 4", ").")
    assert chips == ["scores (chapter 1)", "shares (chapter 2)", "masks (chapter 4)"]
    assert rest == ""


def test_a_new_line_between_two_things_is_a_space():
    chips, _ = need(
        "You need words (", "@1", ")", "\n", "and ", "their scores (", "@2", ")."
    )
    assert chips == ["words (1)", "their scores (2)"]


def test_two_links_in_one_bracket_stay_in_one_chip():
    chips, _ = need("You need heads (", "@6", ", ", "@7", ") and W_O (", "@8", ").")
    assert chips == ["heads (6, 7)", "W_O (8)"]


def test_what_has_no_link_stays_with_what_it_explains():
    chips, _ = need("You need ", "@chapter 1", ": the words, and their scores.")
    assert chips == ["chapter 1: the words, and their scores"]
    chips, _ = need("You need Python, NumPy and some patience.")
    assert chips == ["Python, NumPy and some patience"]


def test_what_has_no_link_waits_for_the_next_link():
    chips, _ = need("You need masks (", "@4", "), heads and W_O (", "@8", ").")
    assert chips == ["masks (4)", "heads and W_O (8)"]
    chips, _ = need(
        "You need a scale (", "@3", ") and, in one place, masks (", "@4", ")."
    )
    assert chips == ["a scale (3)", "in one place, masks (4)"]
    chips, _ = need("You need Python and ", "@chapter 1", ".")
    assert chips == ["Python and chapter 1"]


def test_a_relative_clause_stays_with_its_noun():
    chips, _ = need(
        "You need words (", "@1", "), which are rows, and masks (", "@4", ")."
    )
    assert chips == ["words (1), which are rows", "masks (4)"]


def test_the_sentences_after_the_first_are_kept_as_they_are():
    chips, rest = need(
        "You need ", "@chapter 5", ". Read ", "@chapter 2", " too, (once)."
    )
    assert chips == ["chapter 5"]
    assert rest == "Read chapter 2 too, (once)."


def test_a_chapter_that_needs_no_other_says_so_in_the_same_place(opening):
    texts = "We promise.", "School mathematics is enough here."
    tree = nodes.section("", nodes.title("", "T"))
    tree += [nodes.paragraph("", text) for text in texts]
    app = SimpleNamespace(builder=SimpleNamespace(name="html"))
    opening.mark(app, tree, "book/00_overview")
    classes = [node["classes"] for node in tree.findall(nodes.paragraph)]
    assert classes == [["promise"], ["need"]]


def test_only_the_paragraphs_above_the_first_cell_open_a_page(opening):
    late = nodes.paragraph("", "You need no more.")
    texts = "We promise.", "More of it.", "You need chapter 1."
    first = [nodes.paragraph("", text) for text in texts]
    tree = nodes.section("", nodes.title("", "T"), *first, nodes.container(), late)
    app = SimpleNamespace(builder=SimpleNamespace(name="html"))
    opening.mark(app, tree, "book/02_softmax")
    classes = [node["classes"] for node in tree.findall(nodes.paragraph)]
    assert classes == [["promise"], [], ["need"], []]


# The law


def laws_with_chapters():
    return [law for law in (*laws.ALL, *laws.ENCODER) if law.chapter != "laws"]


@pytest.mark.parametrize("law", laws_with_chapters(), ids=lambda law: law.slug)
def test_every_law_has_a_counterexample_of_one_line(opening, law):
    line = opening.counterexample(law)
    assert "\n" not in line and len(line) < 260
    assert re.search(r"xpected .+, got .+\.$", line)


def test_the_card_quotes_what_the_law_has_found(opening):
    law = laws.rows_sum_to_one
    member, finding = opening.broken_by(law)
    assert member.chapter == law.chapter and not law.check(member).holds
    html = opening.card(law.chapter, "the-law")
    assert (
        "Every row of weights sums to one" in html and "Σ<sub>j</sub> A[i, j]" in html
    )
    expected, got = (float(x.max()) for x in (finding.expected, finding.got))
    assert f"{member.wrong} One query and two keys are enough:" in html
    assert f"expected {expected:.0f}, got {got:.0f}." in html
    assert '<a href="#the-law">See it break, and 2 more</a>' in html


def test_the_card_shows_the_law_that_is_named_for_the_chapter(opening):
    assert "The output is the sum of head times" in opening.card("output", "the-law")
    assert opening.SHOWN <= {law.slug for law in laws.ALL}


LINKED = {"since_2017": (17, "17_since_2017.html")}


def test_the_card_links_the_designs_that_break_its_law_on_purpose(opening):
    html = opening.card("softmax", "the-law", LINKED)
    link = '<a href="17_since_2017.html#the-law">chapter 17</a>'
    assert opening.laws_of("softmax")[0] is laws.rows_sum_to_one
    assert f"<p>Broken on purpose by softmax-off-by-one ({link}).</p>" in html
    assert "on purpose" not in opening.card("softmax", "the-law")


def test_the_card_links_exceptions_to_the_other_laws_of_a_chapter_too(opening):
    exceptions = {
        slug for slug in SLUGS if "on purpose" in opening.card(slug, None, LINKED)
    }
    assert {"softmax", "scale", "attention", "multi_head"} <= exceptions
    assert "masks" not in exceptions


def test_every_exception_is_a_law_and_every_design_has_a_name():
    known = {law.slug for law in (*laws.ALL, *laws.ENCODER)}
    assert set(designs.NAMES) == set(designs.BREAKS)
    assert set(designs.UNSEEN) <= set(designs.BREAKS)
    for broken in (designs.BREAKS, designs.UNSEEN):
        assert {slug for slugs in broken.values() for slug in slugs} <= known


def test_a_chapter_without_a_law_has_no_card(opening):
    assert opening.card("why_heads", "the-law") == ""


def test_without_a_section_on_the_law_nothing_is_linked(opening):
    assert "<a" not in opening.card("softmax", None)


def test_a_law_that_nothing_breaks_is_no_law(opening):
    law = laws.Law("always", "always true", lambda rng: [{}], lambda subject: True)
    with pytest.raises(LookupError, match="always"):
        opening.broken_by(law)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("√d_k", "√d<sub>k</sub>"),
        ("4 d_model²", "4 d<sub>model</sub>²"),
        ("encoder_{1,2}(X) < 1", "encoder<sub>1,2</sub>(X) &lt; 1"),
        ("LN_2(LN_1(X))", "LN<sub>2</sub>(LN<sub>1</sub>(X))"),
        ("is_causal, rows_sum_to_one", "is_causal, rows_sum_to_one"),
    ],
)
def test_subscripts_are_set_and_names_of_code_are_not(opening, text, html):
    assert opening.formula(text) == html


@pytest.mark.parametrize(
    ("example", "text"),
    [
        ({"Q": (1, 2), "K": (1, 2)}, "one query and one key are enough: "),
        ({"Q": (3, 2), "K": (11, 2)}, "three queries and 11 keys are enough: "),
        ({"X": (2, 1, 5)}, "one token is enough: "),
        ({"X": (3, 5)}, "three tokens are enough: "),
        ({"d_k": 16, "n": 8, "seed": 5}, "At d_k = 16 and n = 8: "),
        ({}, ""),
    ],
)
def test_the_smallest_input_is_named_by_its_size(opening, example, text):
    from numpy import zeros

    arrays = {k: zeros(v) if isinstance(v, tuple) else v for k, v in example.items()}
    assert opening.size(arrays) == text


def test_of_many_numbers_the_one_that_is_furthest_off_is_quoted(opening):
    def said(expected, got):
        return opening.seen(SimpleNamespace(expected=expected, got=got))

    assert said([1.0, 2.0, 3.0], [1.0, -2.25, 3.5]) == "expected 2, got −2.25"
    assert said([1.0, 2.0], [9.0, float("nan")]) == "expected 2, got NaN"
    assert said([True, False], [True, True]) == "expected 0, got 1"
    assert said("float32", "float64") == "expected float32, got float64"


# Its figures, how to run it, and all of it


def test_the_line_links_to_the_first_of_the_figures(opening):
    numbers = {"page": {"figure": {"fig-b": (2, 2), "fig-a": (2, 1)}}, "bare": {}}
    env = SimpleNamespace(toc_fignumbers=numbers)
    line = '<p>25 minutes · <span id="solved-here">5 exercises</span></p>'
    html = opening.with_figures(line, env, "page")
    assert words(html) == "25 minutes · 2 figures · 5 exercises"
    assert 'href="#fig-a"' in html and opening.with_figures(line, env, "bare") == line
    del numbers["page"]["figure"]["fig-b"]
    assert "· Figure 2.1 ·" in words(opening.with_figures(line, env, "page"))


def test_where_a_page_can_be_launched_stands_before_its_notebook(opening):
    launch = {"label": "launch-buttons", "buttons": [
        {"text": "Binder", "url": "https://binder.example/"},
        {"text": "Colab", "url": "https://colab.example/?a=1&b=2"},
    ]}  # fmt: skip
    context = {"header_buttons": [{"label": "other", "buttons": []}, launch]}
    context |= {
        "sourcename": "book/02_softmax.ipynb",
        "pathto": lambda *_: "../_sources",
    }
    html = opening.runs(context)
    assert re.findall(r'href="([^"]+)"', html) == [
        "https://colab.example/?a=1&amp;b=2",
        "https://binder.example/",
        "../_sources/book/02_softmax.ipynb",
    ]
    assert words(html) == "Colab Binder Notebook"
    assert opening.runs({"sourcename": "book/glossary.md"}) == ""


GIVEN = dict.fromkeys(("place", "takes", "runs", "thumb", "card", "strip"), "")


def test_the_opening_is_in_the_order_of_a_phone(opening):
    body = (
        '<section><h1>T<a href="#">#</a></h1>\n<p class="promise">P</p>\n<p>more</p>'
        '\n<p class="need">N</p><p>text</p>'
    )
    given = {key: f"<p>{key}</p>" for key in GIVEN}
    html = opening.compose(body, **given)
    order = "place T # P takes runs thumb card strip N more text"
    assert words(html) == order and html.endswith(
        "</div></div>\n<p>more</p><p>text</p>"
    )


def test_a_page_without_promise_or_need_opens_as_well(opening):
    html = opening.compose("<h1>T</h1><p>text</p>", **GIVEN | {"place": "<p>here</p>"})
    assert words(html) == "here T text"
    assert opening.compose("<p>no title</p>", **GIVEN) == "<p>no title</p>"


# The strip

CHAPTERS = {
    part.chapter: (number, f"{number:02}.html")
    for number, part in enumerate(drawings.PARTS, 1)
}


def test_what_a_chapter_lights_is_there():
    keys = {part.key for part in drawings.PARTS}
    assert keys == set(drawings.DRAWINGS) == set(drawings.ALL.split())
    assert all(set(lit.split()) <= keys for lit in drawings.LIT.values())


@pytest.mark.parametrize("chapter", drawings.LIT)
def test_the_strip_of_a_chapter_is_well_formed_and_lights_its_parts(chapter):
    tree = ElementTree.fromstring(drawings.strip(chapter, CHAPTERS))
    items = tree.findall(".//li")
    assert len(items) == len(drawings.PARTS)
    lit = [item for item in items if item.get("class") == "lit"]
    assert len(lit) == len(drawings.LIT[chapter].split())


def test_a_part_at_rest_has_no_colour_of_its_own():
    bright, pale = (drawings.drawing("A", lit) for lit in (True, False))
    assert "--mha-weight" in bright and "--mha-rest" not in bright
    assert "--mha-weight" not in pale and "--mha-rest" in pale


def test_each_part_leads_to_its_chapter_and_the_chapter_not_to_itself():
    tree = ElementTree.fromstring(drawings.strip("softmax", CHAPTERS))
    links = [link.get("href") for link in tree.iter("a")]
    others = [part for part in drawings.PARTS if part.chapter != "softmax"]
    assert links == [CHAPTERS[part.chapter][1] for part in others]
    here = tree.findall(".//span[@aria-current='page']")
    assert [span.find("span[@aria-hidden]").text for span in here] == ["softmax"]


def test_a_chapter_that_does_not_exist_is_no_link():
    tree = ElementTree.fromstring(drawings.strip("unknown", {"masks": (4, "04.html")}))
    assert [link.get("href") for link in tree.iter("a")] == ["04.html"]
    assert not tree.findall(".//li[@class='lit']")


def test_the_weights_of_the_drawings_are_those_of_the_package():
    numbers = drawings.numbers()
    assert numbers["A"].sum(-1).round(9).tolist() == [[1] * 4] * 2
    assert abs(numbers["A"] @ numbers["V"] - numbers["H"]).max() < 1e-12


# The pictures

every_thumb = pytest.mark.parametrize("chapter", thumbs.DRAWINGS)


def test_the_strip_and_the_pictures_know_the_same_chapters():
    assert set(thumbs.DRAWINGS) == set(drawings.LIT)
    assert thumbs.thumb("unknown") == ""


@every_thumb
def test_a_picture_is_well_formed_and_says_what_it_shows(chapter):
    tree = ElementTree.fromstring(thumbs.thumb(chapter))
    assert tree.get("role") == "img" and len(tree.get("aria-label")) > 20
    assert "\n" not in tree.get("aria-label")
    # on the page a unit is a pixel
    assert all(float(text.get("font-size")) >= 9 for text in tree.iter("text"))


@every_thumb
def test_a_picture_stays_in_its_frame(chapter):
    tree = ElementTree.fromstring(thumbs.thumb(chapter))
    outlines = "".join(path.get("d") for path in tree.iter("path"))
    found = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", outlines)
    starts = [(float(x), float(y)) for x, y in found]
    assert starts and all(0 <= x <= 200 and 0 <= y <= 112 for x, y in starts)


def texts(chapter):
    tree = ElementTree.fromstring(thumbs.thumb(chapter))
    return [text.text for text in tree.iter("text")]


def test_the_pictures_show_the_numbers_of_their_chapters():
    assert texts("softmax")[::2] == [".30", ".11", ".30", ".30"]  # of 3, 2, 3 and 3
    assert "by hand: 3.2 GB" in texts("long") and "chunked: 5 MB" in texts("long")
    assert sorted(texts("encoder")) == sorted("–✓" + 10 * "✗")


def test_the_picture_of_the_laws_shows_what_the_laws_find():
    assert thumbs.breaks(zoo.softmax_over_queries, laws.output_in_hull)
    assert not thumbs.breaks(zoo.right, laws.output_in_hull)
    assert not thumbs.breaks(zoo.no_scale, laws.batch_changes_nothing)  # not asked


# Predictions


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    pytest.importorskip("myst_nb")
    folder = prediction.build_once(tmp_path_factory)
    return (folder / "index.html").read_text(encoding="utf-8")


def between(text, start, end):
    """Return what stands between two marks, the first of each."""
    return text.split(start, 1)[1].split(end, 1)[0]


def folds(page):
    return re.findall(r'<details class="reveal">(.*?)</details>\n', page, re.DOTALL)


def test_one_fold_holds_the_outputs_and_then_the_answer(page):
    first = words(folds(page)[0])
    assert first == "Reveal five Fig. 1 A square. # Five, as all know."
    assert len(folds(page)) == 3


def test_code_stays_where_it_was_and_what_follows_is_visible(page):
    before = between(page, 'id="sum"', '<details class="reveal">')
    assert words(before).count("print ( two + 3 )") == 1
    assert "ready" in before  # the output of a cell that predicts nothing
    after = between(page, "know.</p>", "</section>")
    assert words(after) == "Then we go on."


def test_a_box_follows_the_cell_that_asks_and_has_its_name(page):
    boxes = re.findall(r'<textarea id="([^"]+)"', page)
    assert boxes == ["guess-ask-sum", "guess-ask-twice", "guess-ask-why"]
    question = between(page, "what is 2 + 3?", '<div class="cell')
    assert words(question).startswith("We add. Your guess")


def test_a_figure_in_a_fold_keeps_its_number_and_its_anchor(page):
    links = dict(
        re.findall(r'href="#(fig-\w+)"><span class="std std-numref">(.*?)<', page)
    )
    assert links == {"fig-1": "Fig. 1", "fig-2": "Fig. 2"}
    inside = "".join(folds(page))
    assert all(inside.count(f'id="{name}"') == 1 for name in links)


def test_a_hint_stays_a_hint(page):
    exercise = between(page, 'id="exercise"', "</article>")
    assert 'sd-summary-text">Hint<' in exercise and "reveal" not in exercise


def test_text_without_folds_shows_everything(tmp_path):
    pytest.importorskip("myst_nb")
    text = prediction.build(tmp_path, "text")
    assert "Reveal" not in text and "guess" not in text
    assert text.index("print(two + 3)") < text.index("five") < text.index("Five, as")


def test_two_questions_in_one_cell_have_two_names(predict):
    asks = ["**Before you run it:** a?\n", "and **Before you look:** b?"]
    cells = [{"cell_type": "markdown", "id": "m", "source": asks}]
    cells += [{"cell_type": "code", "id": "c", "source": ["# **Before you run:**"]}]
    cells += [{"cell_type": "markdown", "id": "n", "source": ["**Before you** go"]}]
    assert predict.cells_that_ask({"cells": cells}) == ["m", "m-1"]


def test_questions_that_do_not_match_the_notebook_are_counted(predict):
    asks = [nodes.strong("", "Before you run it:") for _ in range(2)]
    tree = nodes.section("", *(nodes.paragraph("", "", ask) for ask in asks))
    predict.name_questions(tree, ["only-one"])
    assert [ask["prediction"] for ask in asks] == ["question-1", "question-2"]


def cell(*tags, output=True):
    classes = ["cell", *(f"tag_{tag}" for tag in tags)]
    inside = [nodes.container(classes=["cell_input"])]
    inside += [nodes.container(classes=["cell_output"])] * output
    return nodes.container("", *inside, classes=classes)


def kinds(tree):
    return [type(node).__name__ for node in tree.children]


def test_a_question_without_an_answer_gets_no_box(predict):
    ask = nodes.paragraph("", "", nodes.strong("", "Before you run it:"))
    tree = nodes.section("", ask, cell())
    predict.name_questions(tree, ["id"])
    predict.fold_all(tree)
    assert kinds(tree) == ["paragraph", "container"]


def test_an_answer_that_nothing_asks_for_is_folded_without_a_box(predict):
    tree = nodes.section("", cell("predict"), cell("predict"), nodes.paragraph())
    predict.fold_all(tree)
    assert kinds(tree) == ["container", "container", "Reveal", "paragraph"]
    assert len(tree[2]) == 2


def test_a_hidden_cell_keeps_hiding_its_code(predict):
    hidden = cell("predict")
    hidden["hide_mode"] = "all"
    (shown,) = predict.take_output(hidden)
    assert hidden["hide_mode"] == "input" and "hide_mode" not in shown
    assert len(hidden) == len(shown) == 1
