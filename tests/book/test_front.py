"""The front page: every number on it is computed or stored, and its map is the book."""

import json
import re
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("sphinx")
pytest.importorskip("matplotlib")

from docutils import nodes

from figures import front, ten
from mha import laws, multi_head_attention, scaled_dot_product_attention, zoo
from tests.book.load import ROOT, extension, load
from tests.tolerances import assert_close

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "book" / "index.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page():
    return extension("front")


def words(html):
    """Return the text of a piece of HTML."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


# The stored runs


@pytest.fixture(scope="module")
def hook():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield load(ROOT / "book" / "_data" / "hook.py")
    torch.set_num_threads(before)


def test_training_layer_b_again_begins_as_it_is_stored(hook):
    """Chapter 12 trains to the end, and the test after the next compares the two."""
    again, stored = hook.run(zoo.merge_without_transpose, 60), front.hook()[front.B]
    np.testing.assert_allclose(again["loss"], stored["loss"][:60], atol=0.02)
    assert again["example"] == stored["example"] == stored["answer"][::-1]
    assert again.keys() == stored.keys()


def test_as_many_sequences_and_letters_are_judged_as_the_page_says(hook):
    module = load(ROOT / "book" / "_data" / "wrong_attention.py")
    letters = module.TEST * module.N
    assert (
        f"{module.TEST:,} new sequences" in PAGE and f"{letters:,} new letters" in PAGE
    )
    heads = len(front.hook()[front.B]["maps"])
    assert heads == module.N_HEADS and f"so B has {heads * module.N}" in PAGE


def test_the_front_page_says_what_chapter_12_found():
    notebook = json.loads((ROOT / "book" / "12_encoder.ipynb").read_text("utf-8"))
    outputs = [o for cell in notebook["cells"] for o in cell.get("outputs", ())]
    said = "".join("".join(output.get("text", ())) for output in outputs)
    facts, name = front.facts(), front.B
    line = rf"{name} +{facts['accuracy']}, after the repair {facts['repaired']}"
    assert re.search(line, said)
    shown = ["".join(o.get("data", {}).get("text/plain", ())) for o in outputs]
    assert f"Picture: {ten.alt()}" in shown


def test_all_three_write_without_a_mistake_and_two_have_weights_that_sum_to_one():
    for name in (front.A, front.B):
        sums = np.sum(front.hook()[name]["maps"], -1)
        assert abs(sums - 1).max() < 0.06  # twelve rounded numbers
    for facts in front.hook().values():
        assert facts["accuracy"] == 1.0 and facts["loss"][-1] < 0.01
        assert facts["answer"] == facts["example"][::-1]


# Numbers and names


def test_every_name_in_the_page_stands_for_something(page):
    named = set(page.NAME.findall(PAGE))
    known = front.facts().keys() | page.cited().keys() | set(page.LATE)
    assert named <= known | {"prerequisites"}
    assert set(front.facts()) <= named, "what is computed is shown"


def test_no_result_is_typed():
    typed = re.sub(r"\{\{.*?\}\}", "", PAGE)
    for name in ("accuracy", "repaired", "got", "laws", "low"):
        assert not re.search(rf"\b{re.escape(front.facts()[name])}\b", typed), name


def test_the_sentence_shows_the_weights_of_the_four_words():
    X = front.numbers()["X"]
    assert len(X) == len(front.WORDS)
    weights = front.numbers()["A"][0]
    drawn = re.findall(r'data-of="(\w+)"(?: hidden)?>(.*?)</g>', front.sentence())
    assert [word for word, _ in drawn] == list(front.WORDS)
    for (_, arcs), row in zip(drawn, weights, strict=True):
        shown = {float(text) for text in re.findall(r">(0\.\d\d)<", arcs)}
        assert shown <= {round(float(weight), 2) for weight in row}
        assert round(float(row.max()), 2) in shown


def test_the_law_on_the_page_is_broken_by_b_and_satisfied_by_a():
    assert front.LAW.check(zoo.merge_without_transpose).holds is False
    assert front.LAW.check(zoo.right).holds
    for number in (*front.facts()["got"].split(", "),):
        assert f">{number.removeprefix('0') or '0'}<" in front.law()


def test_wrong_letters_are_marked():
    facts = front.facts()
    wrong = facts["after"].count('class="bad"')
    assert wrong == int(facts["length"]) - int(facts["good"]) > 0


def test_six_of_the_ten_are_correct_attention_with_other_numbers():
    """The page says six; three of them need no search: a scale goes into W_Q."""
    rng = np.random.default_rng(0)
    X, d = rng.normal(size=(5, 8)), 8
    W = {f"W_{letter}": rng.normal(size=(d, d)) for letter in "QKVO"}
    d_k = d // 2
    for name, factor in (
        ("no_scale", d_k**0.5),
        ("scale_sqrt_d_model", (d_k / d) ** 0.5),
    ):
        other = W | {"W_Q": W["W_Q"] * factor}
        wrong = getattr(zoo, name)(X, n_heads=2, **W)
        assert_close(wrong, multi_head_attention(X, n_heads=2, **other))
    wrong = zoo.no_output_projection(X, n_heads=2, **W)
    assert_close(wrong, multi_head_attention(X, n_heads=2, **W | {"W_O": np.eye(d)}))


# The emblem


def test_no_two_bugs_of_the_emblem_break_the_same_laws():
    rows = ten.rows()
    assert len(rows) == 11 and rows[0].broken == ()
    assert len({row.broken for row in rows}) == len(rows)
    assert {f"{row.accuracy:.3f}" for row in rows} == {"1.000"}


def test_the_emblem_says_what_a_report_says():
    for row in ten.rows()[::5]:
        report = laws.check(getattr(zoo, row.name), laws.ATTENTION)
        assert tuple(finding.law.slug for finding in report.broken) == row.broken


@pytest.mark.parametrize("layout", ten.LAYOUTS)
def test_the_emblem_has_a_square_for_each_broken_law(layout):
    svg = ten.ten(layout).svg("alt")
    red = "".join(re.findall(r'<path d="([^"]+)" fill="var\(--mha-wrong', svg))
    assert red.count("M") == sum(len(row.broken) for row in ten.rows())
    ElementTree.fromstring(svg)


def test_the_picture_of_the_readme_is_small_and_shows_the_emblem(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image")
    monkeypatch.setattr(ten, "PICTURE", tmp_path / "ten.png")
    stored = ten.Path(ROOT / "book" / "_static" / "ten.png")
    ten.main()
    assert stored.stat().st_size < 30_000
    with image.open(stored) as old, image.open(ten.PICTURE) as new:
        assert old.size == new.size
        pixels = [np.asarray(each.convert("L"), float) for each in (old, new)]
    assert np.mean(np.abs(pixels[0] - pixels[1])) < 4  # of 255: fonts may differ


def test_the_readme_says_of_the_emblem_what_it_shows():
    alt = re.search(r"!\[(.*?)\]\(book/_static/ten.png\)", README)[1]
    assert ten.worst() in alt and f"none of {len(laws.ATTENTION)} laws" in alt


def test_the_card_has_the_size_that_links_show():
    assert (ten.card().width, ten.card().height) == (1200, 630)


# Doors, map, root


def facts_of(minutes):
    """Return what a chapter knows of itself."""
    sections = {"Break it: twice": minutes, "The law": 10, "The equation": 5}
    return {"minutes": 60, "minutes_with_all": 120, "sections": sections}


def test_a_chapter_knows_how_long_each_of_its_sections_takes(page):
    short = nodes.section("", nodes.title("", "The law"), nodes.paragraph("", "So."))
    prose = nodes.paragraph("", "one two three four " * 500)
    long = nodes.section("", nodes.title("", "Break it: by hand"), prose)
    tree = nodes.container("", nodes.section("", nodes.title("", "T"), short, long))
    env = SimpleNamespace(docname="book/02_softmax", metadata={"book/02_softmax": {}})
    app = SimpleNamespace(env=env, config=SimpleNamespace(root_doc="book/index"))
    page.mark(app, tree)
    found = env.metadata["book/02_softmax"]["sections"]
    assert found == {"The law": 5, "Break it: by hand": 10}


def test_the_sections_of_the_front_page_have_names_for_its_style(page):
    section = nodes.section("", nodes.title("", "Run it"), ids=["run-it", "run"])
    env = SimpleNamespace(docname="book/index")
    app = SimpleNamespace(env=env, config=SimpleNamespace(root_doc="book/index"))
    page.mark(app, nodes.container("", section))
    assert section["classes"] == ["run"]


def test_the_fast_path_takes_what_its_sections_take(page):
    known = {slug: facts_of(15) for slug in page.FAST}
    # five times "Break it", a law, an equation, and all of two chapters
    assert page.fast_minutes(known) == 5 * 15 + 10 + 5 + 2 * 60
    times = page.times(known)
    assert (times["fast"], times["hours"], times["hours_all"]) == ("210", "9", "18")


def test_a_fast_path_through_a_section_that_is_gone_is_a_warning(page, monkeypatch):
    said = []
    monkeypatch.setattr(page.logger, "warning", lambda *words: said.append(words))
    known = {slug: facts_of(15) for slug in page.FAST}
    del known["softmax"]["sections"]["Break it: twice"]
    page.fast_minutes(known)
    assert [words[1:] for words in said] == [("Break it", "softmax")]


def test_the_fast_path_links_to_the_chapters_whose_time_it_counts(page):
    section = PAGE.partition("## The fast path")[2].partition("## ")[0]
    assert set(re.findall(r"\d\d_(\w+)\.ipynb", section)) == set(page.FAST)


def app_of(pages, root):
    """Return what the extension asks Sphinx about."""
    env = SimpleNamespace(
        found_docs=set(pages),
        titles={name: nodes.title("", title) for name, title in pages.items()},
    )
    uri = lambda start, name: name.removeprefix("book/") + ".html"  # noqa: E731
    builder = SimpleNamespace(get_relative_uri=uri)
    config = SimpleNamespace(root_doc="book/index")
    return SimpleNamespace(env=env, builder=builder, config=config, srcdir=root)


def test_the_map_follows_the_table_of_contents(page, tmp_path):
    (tmp_path / "_toc.yml").write_text("""
        parts:
          - {caption: Start, chapters: [{file: book/00_overview}]}
          - caption: One & all
            chapters: [{file: book/03_scale}, {file: book/01_dot_product}]
          - {caption: Back, chapters: [{file: book/glossary}]}
          - {caption: Two, chapters: [{file: book/02_softmax}]}
    """)
    pages = {
        "book/00_overview": "Attention in ten minutes",
        "book/01_dot_product": "Dot products: when are two vectors alike?",
        "book/02_softmax": "Softmax",
        "book/03_scale": "Scaling: why divide by √d_k?",
        "book/glossary": "Glossary",
    }
    html = page.the_map(app_of(pages, tmp_path))
    ElementTree.fromstring(f"<div>{html}</div>")
    addresses = ["00_overview", "03_scale", "01_dot_product", "02_softmax"]
    assert re.findall(r'href="(\w+)\.html"', html) == addresses
    assert "<span>Part I</span> One &amp; all" in html
    assert "<span>Part II</span> Two" in html
    assert "<b>3</b> Scaling</span>" in html and "√d<sub>k</sub>?" in html
    assert html.count('class="thumb"') == 4
    del pages["book/00_overview"]
    assert 'class="ground"' not in page.the_map(app_of(pages, tmp_path))


def test_a_formula_in_a_title_is_set(page):
    title = nodes.title("", "", nodes.Text("Why "), nodes.math("", r"\sqrt{d_k}"))
    assert page.title_of(title) == ("Why √d<sub>k</sub>", "")
    title = nodes.title("", "Output: why W_O?")
    assert page.title_of(title) == ("Output", "Why W<sub>O</sub>?")


def test_the_citation_is_that_of_the_project(page, monkeypatch):
    monkeypatch.delenv("BOOK_ADDRESS", raising=False)
    monkeypatch.delenv("BOOK_REPOSITORY", raising=False)
    facts = page.cited()
    assert facts["bib_authors"] == "{{The Head by Head authors}}"
    assert facts["bib_url"] == facts["clone"] == ""  # nothing is invented
    monkeypatch.setenv("BOOK_ADDRESS", "https://a.example/b")
    monkeypatch.setenv("BOOK_REPOSITORY", "https://c.example/d.git")
    facts = page.cited()
    assert "{https://a.example/b/}" in facts["bib_url"]
    assert facts["clone"] == "git clone https://c.example/d && cd d\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<a href="01_a.html#x">', '<a href="book/01_a.html#x">'),
        ('<a href="#x">', '<a href="#x">'),
        ('<img src="../_static/a.svg?v=1">', '<img src="_static/a.svg?v=1">'),
        ('<form action="../search.html">', '<form action="search.html">'),
        ('<html data-content_root="../">', '<html data-content_root="./">'),
        ('<a href="https://a.example/../b">', '<a href="https://a.example/../b">'),
    ],
)
def test_links_lead_to_the_same_place_from_the_root(page, before, after):
    assert page.at_root(before, "book") == after


def test_the_page_and_its_copy_say_that_the_root_is_their_address(page, tmp_path):
    (tmp_path / "book").mkdir()
    text = '<meta property="og:url" content="{}" /><a href="../b"><a class="x" {}>'
    address = "https://a.example/"
    own = text.format(f"{address}book/index.html", page.SIDEBAR)
    (tmp_path / "book" / "index.html").write_text(own, encoding="utf-8")
    config = SimpleNamespace(root_doc="book/index", html_baseurl=address)
    html = SimpleNamespace(name="html")
    page.copy(SimpleNamespace(builder=html, config=config, outdir=tmp_path), None)
    for name, link in (("book/index.html", "../b"), ("index.html", "b")):
        found = (tmp_path / name).read_text(encoding="utf-8")
        assert f'content="{address}"' in found and f'href="{link}"' in found
        assert "bd-sidebar pst-sidebar-hidden" in found


def test_one_head_of_the_sentence_is_attention_by_hand():
    """The arcs are the weights of head 1; scores, scale and softmax, nothing else."""
    found = front.numbers()
    Q, K, V = found["Q"][0], found["K"][0].T, found["V"][0]
    H, A = scaled_dot_product_attention(Q, K, V, return_weights=True)
    assert_close(A, found["A"][0])
    assert_close(H, found["H"][0])
