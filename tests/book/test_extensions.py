"""What the Sphinx extensions of the book promise about its pages."""

import re
from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("matplotlib")

from docutils import nodes

from chapters import BUGS, CHAPTERS, LAWS, chapter_of, laws_until
from mha import laws, zoo
from tests.book.load import ROOT, extension


def section(title, *children):
    """Return a section of a page; a text becomes a paragraph."""
    made = [nodes.paragraph("", c) if isinstance(c, str) else c for c in children]
    return nodes.section("", nodes.title("", title), *made)


def cell(*outputs, tags=()):
    """Return a code cell as a page holds it."""
    made = nodes.container("", classes=["cell", *(f"tag_{tag}" for tag in tags)])
    made += nodes.container("", nodes.literal_block("", "code"), classes=["cell_input"])
    for text in outputs:
        inside = nodes.paragraph("", text)
        made += nodes.container("", inside, classes=["cell_output"])
    return made


# Formulas


def test_a_formula_is_typeset_with_our_macros_and_readable_aloud():
    css, html = extension("formulas").typeset(
        [("x \\in \\R", False), ("x", True), ("\\frac{1}", False)],
        {"R": "\\mathbb{R}"},
    )
    assert '<mi mathvariant="double-struck">R</mi>' in html["x \\in \\R", False]
    assert "mjx-c.mjx-c1D465" in css  # the letter x of the fonts
    assert 'display="true"' in html["x", True]
    assert 'display="true"' not in html["x \\in \\R", False]
    assert "data-mjx-error" in html["\\frac{1}", False]


def test_a_formula_wider_than_a_phone_comes_in_pieces():
    long = " + ".join(f"a_{n}" for n in range(20))
    _, html = extension("formulas").typeset([(long, True)], {})
    assert html[long, True].count("<mjx-piece>") > 1


# Predictions


def test_what_answers_a_prediction_is_folded_and_its_code_is_not():
    answer = nodes.admonition("", nodes.title("", "What happens"), classes=["answer"])
    answer += nodes.paragraph("", "Five.")
    tree = section("Sum", "Before you run it: what?", cell("ready"))
    tree += [cell("5", tags=["predict"]), answer, nodes.paragraph("", "On.")]
    extension("chapter").fold_answers(tree)
    kinds = [type(node).__name__ for node in tree]
    between = "raw container paragraph raw"
    assert kinds == f"title paragraph container container {between} paragraph".split()
    assert [node.astext() for node in tree[3:8]] == [
        "code",
        '<details class="answer"><summary>Show what happens</summary>',
        "5",
        "Five.",
        "</details>",
    ]


# Levels, laws and lines


def test_a_level_is_folded_behind_the_formulas_of_its_first_paragraph():
    said = nodes.paragraph("", "Why ", nodes.math("", "e^s"), nodes.Text("?"))
    level = section("Deeper", said, "The proof.")
    extension("chapter").close(level)
    kinds = [type(node).__name__ for node in level]
    assert kinds == "title raw inline raw paragraph raw".split()
    assert [type(node).__name__ for node in level[2]] == ["Text", "math", "Text"]


def test_only_a_quotation_that_begins_in_bold_is_a_law():
    law = nodes.paragraph("", "", nodes.Text(""), nodes.strong("", "Rows add up."))
    told = nodes.paragraph("", "He said ", nodes.strong("", "so"))
    tree = section("The law", *(nodes.block_quote("", each) for each in (law, told)))
    extension("chapter").mark(tree)
    assert [node["classes"] for node in tree[1:]] == [["law-card"], []]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("for 30 % before", "for 30~% before"),
        ("the vector (1.5, 0) of it", "the vector (1.5,~0) of it"),
        ("so x = 0 here", "so x~=~0 here"),
        ("then 0 · 0 = 0", "then 0~·~0~=~0"),
        ("so 5 = 2·2 + 1·1, or 1.1 − 0.8", "so 5~=~2·2~+~1·1, or 1.1~−~0.8"),
        ("so 2·2 − 1·1 of it", "so 2·2~−~1·1 of it"),
        ("(photograph, photography)", "(photograph, photography)"),
        ("about 1/√128 ≈ 0.09, or Q Kᵀ/√d", "about 1/|√128~≈~0.09, or Q Kᵀ/|√d"),
        ("it takes 5 minutes, perhaps", "it takes 5~minutes, perhaps"),
        ("see chapter 5 and chapters 6", "see chapter~5 and chapters~6"),
        ("a well-known rule, told before", "a well-known rule, told before"),
    ],
)
def test_a_pair_of_numbers_a_short_equation_or_a_fraction_stays_on_one_line(text, kept):
    said = extension("chapter").kept_together(text)
    assert said.replace("\xa0", "~").replace("\N{WORD JOINER}", "|") == kept


@pytest.mark.parametrize(
    ("printed", "wraps"),
    [
        ("head 1: 0.5\nhead 12: 0.25", True),
        ("def f(x):\n    return x", True),
        ("head  1: 0.5\nhead 12: 0.25", False),
        ("  right: 0.5\nwrong: 0.25", False),
    ],
)
def test_what_is_printed_in_columns_does_not_wrap(printed, wraps):
    tree = section("A cell", nodes.literal_block(printed, printed))
    extension("chapter").mark(tree)
    assert tree[1]["classes"] == ["sentences"] * wraps


def test_a_name_in_a_line_breaks_between_its_words_only():
    pieces = extension("chapter").breakable("mha.scaled_dot(nHeads=2)")
    text = "".join(node.astext() for node in pieces)
    assert text.replace("<wbr>", "|") == "mha.|scaled_|dot(|n|Heads=|2)"


# The table of chapters


def test_every_law_and_every_bug_of_the_table_exists_and_belongs_to_one_chapter():
    known = {law.name for law in laws.ALL}
    members = {member.name for member in (*zoo.WRONG, *zoo.ENCODERS)}
    for table, names in ((LAWS, known), (BUGS, members)):
        listed = " ".join(table.values()).split()
        assert len(listed) == len(set(listed)) and set(listed) <= names
        assert set(table) <= set(CHAPTERS)
    assert chapter_of("rows_sum_to_one") == "softmax"
    assert (chapter_of("calls_agree"), chapter_of("gradient_stopped")) == ("laws",) * 2


def test_a_misspelt_law_or_chapter_has_no_chapter():
    with pytest.raises(
        ValueError, match="no law and no bug is called 'rows_sum_to_two'"
    ):
        chapter_of("rows_sum_to_two")
    with pytest.raises(ValueError, match="no chapter is called 'softmx'"):
        laws_until("softmx")


def test_the_laws_until_a_chapter_are_its_own_and_those_before_it():
    names = [law.name for law in laws_until("scale")]
    assert names == f"{LAWS['dot_product']} {LAWS['softmax']} {LAWS['scale']}".split()


# Where it is published

FORK = {
    "BOOK_ADDRESS": "https://somebody.example/book",
    "BOOK_REPOSITORY": "https://github.com/somebody/book.git",
}


def test_a_fork_is_named_by_the_environment_alone():
    publish = extension("publish")
    address, repository, branch = publish.addresses(FORK)
    assert address == "https://somebody.example/book/"
    assert repository == "https://github.com/somebody/book" and branch == "main"
    assert publish.addresses({}) == ("", "", "main")
    with pytest.raises(ValueError, match="BOOK_ADDRESS must start with https://"):
        publish.addresses({"BOOK_ADDRESS": "somebody.example"})


def test_launch_links_appear_only_where_they_work():
    launch, source = extension("publish").launch, "book/01_dot_product.ipynb"
    found = dict(launch("https://github.com/somebody/book", source))
    assert found["Colab"].endswith(f"/somebody/book/blob/colab/{source}")
    assert found["Binder"].endswith(f"/somebody/book/colab?urlpath=lab/tree/{source}")
    assert launch("https://git.example/somebody/book", source) == []
    assert launch("", source) == []


def test_a_build_that_has_no_page_to_write_leaves_the_styles_alone(tmp_path):
    (tmp_path / "_static").mkdir()
    styles = tmp_path / "_static" / "all.css"
    styles.write_text("of the last build")
    builder = SimpleNamespace(name="html")  # Sphinx gives it no sheets in this case
    app = SimpleNamespace(builder=builder, outdir=tmp_path)
    extension("publish").join_styles(app, None)
    assert styles.read_text() == "of the last build"


def test_only_a_published_book_has_cards_and_every_one_says_its_edition(monkeypatch):
    publish = extension("publish")
    for name in FORK:
        monkeypatch.delenv(name, raising=False)
    for environ, cards in ({}, False), (FORK, True):
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        config = SimpleNamespace(
            copyright="us", html_theme_options={}, ogp_image="ten.png",
            ogp_social_cards={"enable": False},
        )  # fmt: skip
        publish.fill_in(None, config)
        assert re.fullmatch(r"us\. Version \d\S+, \d+ \w+ \d{4}", config.copyright)
        assert (config.ogp_social_cards == publish.CARDS) == cards
    assert all((ROOT / path).exists() for path in publish.CARDS.values())
