"""The front page: every number on it is computed or stored, and it says what holds."""

import json
import re

import numpy as np
import pytest

pytest.importorskip("sphinx")
pytest.importorskip("matplotlib")


from figures import front, ten
from mha import laws, multi_head_attention, scaled_dot_product_attention, zoo
from tests.book.load import ROOT, extension
from tests.tolerances import assert_close

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "book" / "index.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page():
    return extension("front")


def test_the_stored_runs_reach_what_the_page_says():
    for facts in front.hook().values():
        assert facts["accuracy"] == 1.0 and facts["loss"][-1] < 0.01
        assert facts["answer"] == facts["example"][::-1]


def test_the_front_page_says_what_chapter_12_found():
    notebook = json.loads((ROOT / "book" / "12_encoder.ipynb").read_text("utf-8"))
    outputs = [o for cell in notebook["cells"] for o in cell.get("outputs", ())]
    said = "".join("".join(output.get("text", ())) for output in outputs)
    facts, name = front.facts(), front.B
    line = rf"{name} +{facts['accuracy']}, after the repair {facts['repaired']}"
    assert re.search(line, said)


def test_every_name_in_the_page_stands_for_something_and_no_result_is_typed(page):
    named = set(page.NAME.findall(PAGE))
    known = front.facts().keys() | page.addressed().keys() | set(page.LATE)
    assert named == known
    typed = re.sub(r"\{\{.*?\}\}", "", PAGE)
    for name in ("accuracy", "repaired", "got", "laws", "low"):
        assert not re.search(rf"\b{re.escape(front.facts()[name])}\b", typed), name


def test_the_sentence_shows_the_weights_of_it():
    found = front.numbers()
    Q, K, V = found["Q"][0], found["K"][0], found["V"][0]
    A = scaled_dot_product_attention(Q, K, V, return_weights=True)[1]
    svg = front.sentence()
    for word, weight in zip(front.WORDS, A[front.IT], strict=True):
        assert f"{weight:.2f} to {word}" in svg
    assert f">{A[front.IT].max():.2f}<" in svg


def test_the_law_on_the_page_is_broken_by_b_and_satisfied_by_a():
    assert front.LAW.check(zoo.merge_without_transpose).holds is False
    assert front.LAW.check(zoo.right).holds
    assert front.facts()["got"] != front.facts()["expected"]


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


def test_the_picture_says_of_the_ten_bugs_what_a_report_says():
    rows = ten.rows()
    assert rows[0].broken == () and len({row.broken for row in rows}) == len(rows)
    for row in rows[::5]:
        report = laws.check(getattr(zoo, row.name), laws.ATTENTION)
        assert tuple(finding.law.slug for finding in report.broken) == row.broken
    alt = re.search(r"!\[(.*?)\]\(book/_static/ten.png\)", README)[1]
    assert ten.worst() in alt


def test_the_fast_path_links_to_the_chapters_whose_time_it_counts(page):
    part = PAGE.partition("## The fast path")[2].partition("## ")[0]
    assert set(re.findall(r"\d\d_(\w+)\.ipynb", part)) == set(page.FAST)
