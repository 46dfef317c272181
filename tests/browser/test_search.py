"""The search puts the page that answers first, and its results can be read."""

import pytest

from tests.browser.looks import barriers

# What is typed, the page that answers it, and how far down it may stand.
QUERIES = [
    ("mask", "04_masks", 1),
    ("padding", "04_masks", 3),
    ("softmax", "02_softmax", 1),
    ("temperature", "02_softmax", 3),
    ("dot product", "01_dot_product", 1),
    ("positional encoding", "10_positions", 1),
    ("residual", "11_encoder_layer", 3),
    ("pretrained", "14_real_encoder", 3),
    ("kv cache", "16_long", 3),
    ("law", "15_laws", 1),
    ("glossary", "glossary", 1),
    ("prerequisites", "prerequisites", 1),
]


@pytest.fixture(scope="module")
def search(windows, site):
    """Return a function that gives the pages that a search finds, best first."""
    page = windows.take()
    page.goto(f"{site}search.html?q=softmax")
    page.wait_for_selector("#search-results li")

    def found(query):
        results = page.evaluate(
            "query => Search._performSearch(...Search._parseQuery(query))", query
        )
        return list(dict.fromkeys(result[0] for result in reversed(results)))

    yield found
    windows.give_back(page)


@pytest.mark.parametrize(("query", "name", "place"), QUERIES)
def test_a_search_puts_the_page_that_answers_first(search, query, name, place):
    assert f"book/{name}" in search(query)[:place]


def test_the_first_result_leads_to_its_page_and_marks_the_word(open_page, site):
    page = open_page("search")
    page.goto(f"{site}search.html?q=layer+norm")
    page.wait_for_selector("#search-results li a")
    assert barriers(page) == []
    page.locator("#search-results li a").first.click()
    page.wait_for_url("**/book/**")
    assert page.locator("article .highlighted").count() > 0
