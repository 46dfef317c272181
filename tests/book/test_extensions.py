"""What the Sphinx extensions of the book promise about its pages."""

import json
import re
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("matplotlib")

from docutils import nodes

import figures
from chapters import BUGS, CHAPTERS, LAWS, chapter_of
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


# Predictions and deeper sections


def test_what_answers_a_prediction_is_folded_and_its_code_is_not():
    answer = nodes.admonition("", nodes.title("", "What happens"), classes=["answer"])
    answer += nodes.paragraph("", "Five.")
    tree = section("Sum", "Before you run it: what?", cell("ready"))
    tree += [cell("5", tags=["predict"]), answer, nodes.paragraph("", "On.")]
    extension("predict").fold_all(tree)
    kinds = [type(node).__name__ for node in tree]
    assert kinds == [
        "title",
        "paragraph",
        "container",
        "container",
        "Reveal",
        "paragraph",
    ]
    assert tree[3].astext() == "code"  # the output is in the fold
    assert tree[4].astext().split() == ["5", "Five."]


def test_title_and_first_paragraph_of_a_deeper_section_stay():
    deeper, minutes = extension("deeper"), extension("minutes")
    found = section("Deeper: why three?", "For counters.", "One.", "word " * 2550)
    assert deeper.is_deeper(found) and not deeper.is_deeper(section("The law"))
    tree = nodes.document(None, None, "", section("The law", "word " * 2000), found)
    assert minutes.in_fives(minutes.exact_minutes(tree)) == 25
    deeper.fold(found)
    assert [node.astext()[:13] for node in found[:2]] == [
        "Deeper: why t",
        "For counters.",
    ]
    assert found[2]["minutes"] == 15
    assert minutes.in_fives(minutes.exact_minutes(tree)) == 10


# Minutes


def chapter():
    """Return a chapter with prose, code, a prediction and two exercises."""
    asks = nodes.paragraph("", "", nodes.strong("", "Before you run it:"))
    tasks = [section(f"Exercise 1.{n}: do") for n in (1, 2)]
    tasks[0] += nodes.paragraph("", "", nodes.strong("", "Stretch, 25 minutes."))
    code = nodes.literal_block("", "x " * 1000)
    own = section("On your own", "word " * 9999, *tasks)
    top = section("A title", section("By hand", "word " * 1700, asks, code), own)
    return nodes.document(None, None, "", top)


def test_prose_code_predictions_and_exercises_take_their_time():
    minutes, opening = extension("minutes"), extension("opening")
    env = SimpleNamespace(docname="book/01_x", metadata={"book/01_x": {}})
    minutes.measure(SimpleNamespace(env=env), chapter())
    facts = env.metadata["book/01_x"]
    assert facts == {"minutes": 20, "minutes_deeper": 0, "minutes_with_all": 55}
    said = "About 20 minutes to read, 55 with predictions and exercises."
    assert opening.takes(facts) == said
    assert list(minutes.levels(chapter())) == [("stretch", 25), ("", 10)]


# The opening, and the table of chapters


def test_every_law_and_every_bug_of_the_table_exists_and_belongs_to_one_chapter():
    known = {law.slug for law in (*laws.ALL, *laws.ENCODER)}
    members = {member.name for member in (*zoo.WRONG, *zoo.ENCODERS)}
    for table, names in ((LAWS, known), (BUGS, members)):
        listed = " ".join(table.values()).split()
        assert len(listed) == len(set(listed)) and set(listed) <= names
        assert set(table) <= set(CHAPTERS)
    assert chapter_of("rows_sum_to_one") == "softmax"
    assert chapter_of("nothing of the kind") == "laws"


def test_the_card_of_every_chapter_shows_its_law_and_what_breaks_it():
    opening = extension("opening")
    for slug in LAWS:
        html = opening.card(slug)
        ElementTree.fromstring(html)
        first = opening.laws_of(slug)[0]
        shown = [law for law in opening.laws_of(slug) if law.slug in opening.SHOWN]
        law = (shown or [first])[0]
        member, finding = opening.broken_by(law)
        assert finding.holds is False and member.wrong[:20] in html
        assert re.search(r"expected .+, got .+\.", html), slug
    assert opening.card("why_heads") == ""


def test_a_chapter_begins_with_title_minutes_needs_and_promise():
    opening = extension("opening")
    law = section("The law", "It holds.")
    top = section("A title", "You build it.", "You need masks.", law)
    page, other = "book/02_softmax", "book/04_masks"
    env = SimpleNamespace(metadata={page: {"minutes": 5, "minutes_deeper": 0}})
    env.metadata[page]["minutes_with_all"], env.found_docs = 5, {page, other}
    uri = "{1}.html".format
    builder = SimpleNamespace(format="html", get_relative_uri=uri)
    app = SimpleNamespace(env=env, builder=builder)
    opening.show(app, nodes.document(None, None, "", top), page)
    said = [node.astext() for node in top[:4]]
    assert said[1:] == ["About 5 minutes to read.", "You need masks.", "You build it."]
    kinds = [type(node).__name__ for node in law]
    assert kinds == ["title", "raw", "paragraph", "raw"]
    assert "law-card" in law[1].astext() and f'href="{other}.html"' in law[3].astext()


# Figures on a phone

PICTURE = """<svg class="mha-picture" viewBox="0 0 716 200" style="display: block">
<text style="font-size: 8.5px">a</text><text style="font-size: 30px">b</text></svg>"""


def test_small_text_in_a_picture_may_grow_and_large_text_stays():
    drawings = extension("drawings")
    page = drawings.PICTURE.sub(drawings.both, PICTURE)
    least = drawings.LEAST * 716 / drawings.COLUMN
    assert f'style="--on-a-phone: {least:.2f}px; display' in page
    assert "font-size: max(8.5px, var(--least, 0px))" in page
    assert "font-size: 30px" in page and "mha-narrow" not in page


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


# Words of the glossary


def test_the_first_use_of_a_word_leads_to_its_meaning():
    words = extension("words")
    tree = section("Heads", "Logits are scores.", "A logit again.")
    chosen = {"logit": ("term-logit", "A score.")}
    words.link_words(tree, chosen, "glossary.html")
    (link,) = tree.findall(nodes.reference)
    assert (link.astext(), link["reftitle"]) == ("Logits", "A score.")
    assert link["refuri"] == "glossary.html#term-logit"


# What a page loads


def test_a_page_loads_what_it_uses_and_asks_no_other_host():
    theme = extension("theme")
    names = "copybutton.js", "sphinx-thebe.js", "words.js", "book.css"
    assets = [SimpleNamespace(filename=name, attributes={}) for name in names]
    assets.append(SimpleNamespace(filename=None, attributes={"body": "THEBE_JS_URL"}))
    context = {
        "body": '<div class="highlight">',
        "script_files": assets,
        "css_files": [],
    }
    theme.choose(None, "", "", context, None)
    assert [each.filename for each in context["script_files"]] == [
        "copybutton.js", "book.css",
    ]  # fmt: skip


# Numbers from zero


def test_chapters_are_counted_from_zero_and_sphinx_gets_its_numbers_back():
    zero = extension("from_zero")
    reference = nodes.reference("", "Overview", secnumber=(1,))
    env = SimpleNamespace(
        toc_secnumbers={"a": {"": (1,), "#b": None}, "back": {"": None}},
        toc_fignumbers={"a": {"figure": {"fig": (1, 2)}}},
        titles={"a": nodes.title("", "Overview", secnumber=(1,))},
        tocs={"a": nodes.bullet_list("", reference)},
    )
    zero.count_from_zero(None, env)
    assert env.toc_secnumbers == {"a": {"": (0,), "#b": None}, "back": {"": None}}
    assert env.toc_fignumbers["a"]["figure"]["fig"] == (0, 2)
    assert env.titles["a"]["secnumber"] == reference["secnumber"] == (0,)
    zero.give_back(None, env)
    zero.give_back(None, env)  # only once
    assert env.toc_fignumbers["a"]["figure"]["fig"] == (1, 2)


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
    found = dict(launch("https://github.com/somebody/book", "main", source))
    assert found["Colab"].endswith(f"/somebody/book/blob/colab/{source}")
    assert found["Binder"].endswith(f"/somebody/book/main?urlpath=lab/tree/{source}")
    assert launch("https://git.example/somebody/book", "main", source) == []
    assert launch("", "main", source) == []


def test_the_copy_for_colab_installs_before_it_computes(tmp_path):
    load(ROOT / ".ci" / "colab", "colab").main(FORK["BOOK_REPOSITORY"], tmp_path)
    pattern = "book/**/[0-9]*.ipynb"
    copies = sorted(path.relative_to(tmp_path) for path in tmp_path.glob(pattern))
    assert copies == sorted(path.relative_to(ROOT) for path in ROOT.glob(pattern))
    for name in copies:
        copy = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        first = next(c for c in copy["cells"] if c["cell_type"] == "code")
        assert first["id"] == "install"
        source = "".join(first["source"])
        assert FORK["BOOK_REPOSITORY"] in source
        assert f"%cd /content/head-by-head/{name.parent.as_posix()}" in source
