"""The search puts the place that answers first, and says what it has found."""

import re

import pytest

from tests.browser.looks import barriers

QUERIES = {  # what is typed, and the page that answers it
    "mask": "04_masks", "padding": "04_masks", "softmax": "02_softmax",
    "multi-head": "09_multi_head", "W_O": "08_output", "flash attention": "17_long",
    "temperature": "02_softmax", "dot product": "01_dot_product",
    "positional encoding": "10_positions", "residual": "11_encoder_layer",
    "pretrained": "15_real_encoder", "kv cache": "17_long", "law": "16_laws",
    "glossary": "glossary", "prerequisites": "prerequisites",
}  # fmt: skip
HIT = ".found li > a"


@pytest.fixture(scope="module")
def search(chromium, site):
    """Return the page of the search, which finds while one types."""
    page = chromium.new_page()
    page.goto(f"{site}search.html")
    yield page
    page.close()


@pytest.mark.parametrize("query", QUERIES)
def test_a_search_puts_the_page_that_answers_first(search, query):
    search.get_by_label("Search the book").fill(query)
    hits = search.locator(HIT).evaluate_all("links => links.map((a) => a.pathname)")
    assert hits[0].endswith(f"book/{QUERIES[query]}.html"), hits[:5]
    kinds = re.findall(r"/book/(solutions/|\d\d_)", " ".join(hits))
    assert kinds[:1] != ["solutions/"]


def test_every_hit_has_an_excerpt_and_the_number_is_that_of_the_hits(search):
    search.get_by_label("Search the book").fill("layer norm")
    assert search.locator(".meant").inner_text().startswith("layer normalization: ")
    hits, excerpts = search.locator(HIT).count(), search.locator(".found li > a + p")
    said = search.get_by_role("status").inner_text()
    assert re.fullmatch(rf"\d+ places on {hits} pages", said)
    assert hits > 5 and all(len(text) > 20 for text in excerpts.all_inner_texts())
    search.get_by_label("Search the book").fill("mask")
    assert "mask" in excerpts.first.inner_text().casefold()
    search.get_by_label("Search the book").fill("xyzzy")
    assert search.get_by_role("status").inner_text() == "Nothing found"
    assert search.locator(HIT).count() == 0


def test_the_first_result_leads_to_its_page_and_marks_the_word(open_page, site):
    page = open_page("search")
    page.goto(f"{site}search.html?q=layer+norm")
    page.wait_for_selector(HIT)
    assert barriers(page) == []
    page.locator(HIT).first.click()
    page.wait_for_url("**/book/**")
    page.wait_for_selector("article .highlighted >> visible=true")
