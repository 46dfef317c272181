"""The search puts the page that answers first, and its results can be read."""

import pytest

from tests.browser.test_pages import barriers, page_of

pytest.importorskip("playwright.sync_api")

# What is typed, the page that answers it, and how far down it may stand.
QUERIES = [
    ("mask", "masks", 1),
    ("masks", "masks", 1),
    ("padding", "masks", 1),
    ("causal", "masks", 3),
    ("nan", "masks", 3),
    ("softmax", "softmax", 1),
    ("temperature", "softmax", 1),
    ("jacobian", "softmax", 1),
    ("dot product", "dot_product", 1),
    ("cosine", "dot_product", 1),
    ("float16", "dot_product", 3),
    ("transpose", "split", 3),
    ("why sqrt", "scale", 1),
    ("gradient", "scale", 3),
    ("W_O", "output", 1),
    ("query", "attention", 1),
    ("attention weights", "attention", 3),
    ("multi-head", "multi_head", 1),
    ("dropout", "multi_head", 1),
    ("positional encoding", "positions", 3),
    ("sinusoidal", "positions", 1),
    ("residual", "encoder_layer", 1),
    ("layer norm", "encoder_layer", 1),
    ("encoder", "encoder", 1),
    ("warm-up", "what_heads_learn", 3),
    ("head pruning", "what_heads_learn", 3),
    ("pretrained", "real_encoder", 1),
    ("law", "laws", 1),
    ("zoo", "laws", 3),
    ("chunked", "long", 1),
    ("flash", "long", 3),
    ("kv cache", "long", 3),
    ("glossary", "glossary", 1),
    ("cheat sheet", "cheatsheet", 1),
    ("ten minutes", "overview", 1),
    ("prerequisites", "prerequisites", 1),
    ("standard deviation", "prerequisites", 4),
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


@pytest.mark.parametrize(("query", "slug", "place"), QUERIES)
def test_a_search_puts_the_page_that_answers_first(search, query, slug, place):
    assert page_of(slug) in search(query)[:place]


def test_a_search_that_no_page_answers_finds_nothing(search):
    assert search("zebra") == []


def test_the_first_result_is_shown_first_and_leads_to_its_page(open_page, site):
    page = open_page("search")
    page.goto(f"{site}search.html?q=layer+norm")
    first = page.locator("#search-results li a").first
    first.click()
    page.wait_for_load_state()
    assert page_of("encoder_layer") in page.url


def test_the_sign_of_the_search_covers_no_letter(open_page, site):
    page = open_page("search")
    page.goto(f"{site}search.html?q=softmax")
    form = page.locator(".bd-search-container form.bd-search")
    sign, text = (form.locator(tag).bounding_box() for tag in ("svg", "input"))
    assert sign["x"] + sign["width"] <= text["x"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier_after_a_search(open_page, site, theme):
    page = open_page("search", theme=theme)
    page.goto(f"{site}search.html?q=mask")
    page.wait_for_selector("#search-results li p.context span.highlighted")
    quotes = "document.querySelectorAll('#search-results li p.context').length"
    page.wait_for_function(f"{quotes} > 4")
    contrast = {"runOnly": ["color-contrast"]}
    assert barriers(page, {}) == []
    page.locator("#search-results li a").first.click()
    page.wait_for_selector("article span.highlighted")
    marked = {"include": [["span.highlighted"], ["#searchbox"]]}
    assert barriers(page, contrast, marked) == []


def test_the_marks_of_a_search_can_be_hidden(open_page, site):
    page = open_page("search")
    page.goto(f"{site}search.html?q=mask")
    page.locator("#search-results li a").first.click()
    page.wait_for_selector("article span.highlighted")
    link = page.get_by_role("link", name="Hide Search Matches")
    sign = link.evaluate("node => getComputedStyle(node, '::before').content")
    assert sign == '"×"'
    link.click()
    assert page.locator("span.highlighted").count() == 0
