"""The front page: every number on it is computed or stored, and it says what holds."""

import json
import re

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("matplotlib")


from figures import front
from mha import zoo
from tests.book.load import ROOT, extension

PAGE = (ROOT / "book" / "index.md").read_text(encoding="utf-8")


def test_the_stored_runs_reach_what_the_page_says():
    for facts in (front.hook()[name] for name in (front.A, front.B)):
        assert facts["accuracy"] == 1.0 and facts["loss"] < 0.01
        assert facts["answer"] == facts["example"][::-1]


def test_the_front_page_says_what_chapter_12_found():
    notebook = json.loads((ROOT / "book" / "12_encoder.ipynb").read_text("utf-8"))
    outputs = [o for cell in notebook["cells"] for o in cell.get("outputs", ())]
    said = "".join("".join(output.get("text", ())) for output in outputs)
    facts, name = front.facts(), front.B
    line = rf"{name} +{facts['accuracy']} +{facts['repaired']}"
    assert re.search(line, said)


def test_every_name_in_the_page_stands_for_something_and_no_result_is_typed():
    named = set(extension("catalogue").NAME.findall(PAGE))
    known = front.facts().keys() | extension("publish").words({}).keys()
    assert named == known
    typed = re.sub(r"\{\{.*?\}\}", "", PAGE)
    for name in ("accuracy", "repaired", "got", "laws", "low"):
        assert not re.search(rf"\b{re.escape(front.facts()[name])}\b", typed), name


def test_a_published_front_page_links_the_repository_the_paper_and_the_archive():
    words = extension("publish").words
    known = {"BOOK_REPOSITORY": "https://git.example/a/b", "BOOK_DOWNLOADS": "yes"}
    said, unknown = words(known), words({})
    assert "(https://git.example/a/b)" in said["repository"]
    assert said["install"] == "pip install git+https://git.example/a/b"
    assert "head-by-head.pdf" in said["downloads"] and ".zip" in said["downloads"]
    assert not any("href" in text or "](" in text for text in unknown.values())


def test_the_law_on_the_page_is_broken_by_b_and_satisfied_by_a():
    assert front.LAW.check(zoo.merge_without_transpose).holds is False
    assert front.LAW.check(zoo.right).holds
    assert front.facts()["got"] != front.facts()["expected"]
