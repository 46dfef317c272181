"""The front page: every number on it is computed or stored, and it says what holds."""

import re

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("matplotlib")


from figures import front
from tests.book.load import ROOT, extension

PAGE = (ROOT / "book" / "index.md").read_text(encoding="utf-8")


def test_every_name_in_the_page_stands_for_something_and_no_result_is_typed():
    named = set(extension("catalogue").NAME.findall(PAGE))
    known = front.facts().keys() | extension("publish").words({}).keys()
    assert named == known
    typed = re.sub(r"\{\{.*?\}\}", "", PAGE)
    for name in ("padded", "padded_right", "alone_least", "alone_most"):
        assert not re.search(rf"\b{re.escape(front.facts()[name])}\b", typed), name


def test_a_published_front_page_links_the_repository_the_paper_and_the_archive():
    words = extension("publish").words
    known = {"BOOK_REPOSITORY": "https://git.example/a/b", "BOOK_DOWNLOADS": "yes"}
    said, unknown = words(known), words({})
    assert "(https://git.example/a/b)" in said["repository"]
    assert said["install"] == "pip install git+https://git.example/a/b"
    assert "head-by-head.pdf" in said["downloads"] and ".zip" in said["downloads"]
    assert not any("href" in text or "](" in text for text in unknown.values())
