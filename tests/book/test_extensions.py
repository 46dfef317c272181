"""What the Sphinx extensions of the book promise about its pages."""

import json
import re
from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("matplotlib")

import pygments
from docutils import nodes
from pygments.lexers import PythonLexer

import figures
from chapters import BUGS, CHAPTERS, LAWS, chapter_of, laws_until
from mha import laws, zoo
from tests.book.load import ROOT, extension, load


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
    extension("predict").fold_all(tree)
    kinds = [type(node).__name__ for node in tree]
    assert kinds == "title paragraph container container Reveal paragraph".split()
    assert tree[3].astext() == "code"  # the output is in the fold
    assert tree[4].astext().split() == ["5", "Five."]


# Minutes


def levelled():
    """Return a chapter with a core, code and checks with an exercise, and one more."""
    asks = nodes.paragraph("", "", nodes.strong("", "Before you run it:"))
    code = nodes.literal_block("", "x = 1\n\n" * 24)
    row = nodes.row("", nodes.entry("", nodes.paragraph("", "word " * 999)))
    picture = nodes.figure("", nodes.raw("", "<i class='mha-view'>", format="html"))
    printed = cell("word " * 999, tags=["hide-input"])
    law = section("The law", row, row.deepcopy(), nodes.math_block("", "x"), printed)
    task = section("Exercise 1.1: do", nodes.paragraph("", "", nodes.strong("", "")))
    task[1][0] += nodes.Text("Stretch, 25 minutes.")
    own = section("On your own", "word " * 9999, task)
    top = section("A title", section("By hand", "word " * 1700, asks, code, picture))
    top += section("Code and checks", "What is in it.", law, own)
    top += section("Deeper", "What is in it.", section("Why?", "word " * 340))
    for node in top.findall(nodes.section):
        node["ids"] = [nodes.make_id(node[0].astext())]
    return nodes.document(None, None, "", top)


def facts_of(tree):
    env = SimpleNamespace(docname="book/01_x", metadata={"book/01_x": {}})
    extension("minutes").measure(SimpleNamespace(env=env), tree)
    return env.metadata["book/01_x"]


def test_minutes_are_those_of_the_rule_added_exactly():
    facts = facts_of(levelled())
    # 10 of prose, 2 of code, 2 for the figure, 1.5 and 4 words for the prediction
    core = 1.3 * (10 + 4 / 170 + 2 + 2 + 1.5)
    assert facts["minutes_core"] == pytest.approx(core)
    assert facts["sections"] == {
        "by-hand": 20, "the-law": 1, "code-and-checks": 1, "on-your-own": 25,
        "deeper": 2, "why": 2,
    }  # fmt: skip
    assert (facts["minutes"], facts["minutes_deeper"]) == (round(core + 1.2), 2)


def test_a_line_below_the_title_says_how_long_it_takes():
    takes, facts = extension("opening").takes, facts_of(levelled())
    assert takes(facts) == "Core, about 20 minutes; more below"
    whole = facts | {"has_levels": False}
    assert takes(whole) == "About 21 minutes; 2 more in deeper sections"
    assert takes(whole | {"minutes_deeper": 0}) == "About 21 minutes"


def test_the_afternoon_route_is_the_cores_of_chapters_0_to_9():
    minutes = extension("minutes")
    pages = {f"book/{k:02}_x": {"minutes_core": 10.25} for k in range(12)}
    env = SimpleNamespace(found_docs=[*pages, "book/index"], metadata=pages)
    assert minutes.afternoon(env) == 102
    context = {
        "furo_navigation_tree": '<li class="toctree-l1"><a href="#">9. Nine</a></li>'
        '<li class="toctree-l1"><a href="#">10. Ten</a></li>',
        "toc": '<a href="#by-hand">By hand</a>',
    }
    pages["book/01_x"]["sections"] = {"by-hand": 3}
    minutes.show(SimpleNamespace(env=env), "book/01_x", "", context, None)
    assert context["toc"] == '<a href="#by-hand">By hand <small>3 min</small></a>'
    tree = context["furo_navigation_tree"]
    assert "chapters 0 to 9, 1¾ hours" in tree
    assert tree.count("afternoon toctree-l1") == 1
    assert tree.count("<small>10 min</small>") == 2


# The opening, and the table of chapters


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


# Figures on a phone

PICTURE = """<svg class="mha-picture" viewBox="0 0 716 200" style="display: block">
<text style="font-size: 8.5px">a</text><text style="font-size: 30px">b</text></svg>"""


def test_a_wide_picture_stands_beside_its_narrow_layout():
    drawings = extension("drawings")
    keyed = PICTURE.replace(" viewBox=", ' data-key="ten bugs" viewBox=')
    page = drawings.PICTURE.sub(drawings.both, keyed)
    assert page.count("<svg") == 2 and 'class="mha-narrow"' in page


def test_the_still_of_a_live_figure_is_drawn_and_its_script_finds_the_drawings_there():
    drawings = extension("drawings")
    html = figures.house("overview")._repr_html_()
    page = drawings.STILL.sub(drawings.drawn, html)
    assert "<img" in html and "<img" not in page and page.count("<svg") == 2
    data = json.loads(re.search(r'json">(.*?)</script>', page)[1])
    assert "stills" not in data and data["words"][0] == "dog"


def test_code_has_elements_only_for_what_has_a_colour():
    lean = extension("theme").Lean(nowrap=True)
    shown = pygments.highlight("a, b = f(1)", PythonLexer(), lean)
    assert "a, b " in shown and '<span class="mi">1</span>' in shown


def test_all_pages_share_one_script_of_the_live_layer(tmp_path):
    builder = SimpleNamespace(get_relative_uri=lambda page, to: "../index.html")
    app = SimpleNamespace(outdir=tmp_path, builder=builder)
    first, second = (
        extension("drawings").shared(app, "book/a", figures.house(part)._repr_html_())
        for part in ("overview", "attention")
    )
    source, version = re.search(
        r'<script defer src="../(.*?)(\?v=\w+)">', first
    ).groups()
    assert source + version in second and "IntersectionObserver" not in first
    assert "IntersectionObserver" in (tmp_path / source).read_text("utf-8")


# Words of the glossary


def test_the_first_use_of_a_word_leads_to_its_meaning():
    words = extension("words")
    tree = section("Heads", "A logit rate. Logits are scores.", "A logit again.")
    terms = {"logit": ("term-logit", "A score."), "logit rate": ("term-rate", "")}
    words.link_words(tree, terms, {"logit"}, "glossary.html")
    (link,) = tree.findall(nodes.reference)
    assert (link.astext(), link["reftitle"]) == ("Logits", "A score.")
    assert link["refuri"] == "glossary.html#term-logit"


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


def test_the_copy_of_a_chapter_installs_only_what_the_chapter_needs():
    colab = load(ROOT / ".ci" / "colab", "colab")

    def libraries(*lines):
        return set(colab.libraries("\n".join(lines), set()))

    assert libraries("import numpy as np", "import mha") == set()
    assert libraries("from sklearn import metrics") == {"scikit-learn"}
    assert "torch" in libraries("from mha import nn")
    assert libraries("import pretrained") >= {"tokenizers", "safetensors"}
