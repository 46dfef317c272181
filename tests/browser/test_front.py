"""The front page in a browser: what a reader can play with, and how it degrades."""

import pytest

pytest.importorskip("playwright.sync_api")

from figures import front
from tests.browser.test_pages import barriers, watch

FRONT = "book/index"
SIDEWAYS = "document.documentElement.scrollWidth - innerWidth"
SMALL = """[...document.querySelectorAll(
    ".front :is(button, summary, .door :is(.go, p:last-child a), .word rect)")]
    .map((node) => [node.getBoundingClientRect(), node.outerHTML.slice(0, 80)])
    .filter(([box]) => box.width && (box.width < 24 || box.height < 22))
    .map(([, html]) => html)"""


def focused(page):
    return page.evaluate("document.activeElement.getAttribute('aria-label')")


def texts(page, *selectors):
    return [page.locator(selector).inner_text() for selector in selectors]


def test_a_reader_finds_the_broken_layer_by_keyboard(open_page):
    page = open_page(FRONT, width=1280, reduced_motion="reduce")
    facts, says = front.facts(), front.sayings()

    # the sentence is one stop; arrow keys go around its four words
    words = page.get_by_role("radiogroup").get_by_role("radio")
    assert words.count() == 4 and page.locator(".word[tabindex='0']").count() == 1
    page.locator(".word[tabindex='0']").focus()
    for key, word in (("ArrowRight", "hungry"), ("ArrowRight", "dog")):
        page.keyboard.press(key)
        assert focused(page) == word and says[word] in texts(page, "#saying")
        assert page.locator(".look:not([hidden])").get_attribute("data-of") == word
    assert page.get_by_role("radio", checked=True).count() == 1

    # a wrong guess opens the answer, and the maps move into a pile
    assert page.locator(".twist").is_hidden()
    page.get_by_role("button", name="A is broken").press("Enter")
    assert texts(page, "#verdict") == ["It is B, not A."]
    assert page.evaluate("document.activeElement.parentNode.id") == "step-guess"
    assert page.locator(".maps.piled").count() == 2
    assert barriers(page, {}) == []

    # repaired, it is worse than before
    page.locator("#step-repair summary").press("Enter")
    page.wait_for_function(
        f'document.querySelector(".repaired .score")?.textContent == '
        f'"{facts["repaired"]}"'
    )
    wrong = int(facts["length"]) - int(facts["good"])
    assert page.locator(".now .bad").count() == wrong
    assert facts["repaired"] in texts(page, "#live")[0]
    assert barriers(page, {}) == []

    # the law needs no training
    page.locator("#step-law summary").press("Space")
    said = f"B breaks {facts['broken']}"
    page.wait_for_function(
        f'document.querySelector("#live").textContent.includes("{said}")'
    )
    assert texts(page, '[data-layer="B"] .score') == [facts["accuracy"]]
    assert page.locator(".twist").is_visible()
    assert page.locator(".step[open]").count() == 1

    # and there is room for everything
    assert page.evaluate(SMALL) == []
    page.evaluate("document.querySelectorAll('.step').forEach((s) => s.open = true)")
    for width in (320, 390, 800, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(SIDEWAYS) <= 0, width
    page.emulate_media(color_scheme="dark", forced_colors="active")
    mark = page.locator(".word.on rect")
    assert mark.evaluate("node => getComputedStyle(node).stroke") != "none"


def test_without_scripts_the_whole_story_is_there(open_page):
    page = open_page(FRONT, java_script_enabled=False)
    assert page.locator(".choose").first.is_hidden()
    assert page.locator(".twist").is_visible()
    for name in ("guess", "repair", "law"):
        page.locator(f"#step-{name} summary").click()
        assert page.locator(f"#step-{name} > p").first.is_visible()
    assert page.locator(".piles svg").count() == 2
    assert page.locator(".arcs").get_attribute("role") == "img"


def test_the_root_of_the_site_is_the_front_page(window, windows, html, site):
    """As files too, and every chapter is one click away."""
    page = window()
    wrong = watch(windows, page, "file://")
    page.goto((html / "index.html").as_uri(), wait_until="load")
    root = page.locator("article").inner_text()
    page.locator(".tile a").first.click()
    page.wait_for_load_state("load")
    assert page.url.endswith("book/01_dot_product.html") and wrong == []
    page.goto(f"{site}{FRONT}.html", wait_until="load")
    assert page.locator("article").inner_text() == root
    head = (html / "index.html").read_text("utf-8").partition("</head>")[0]
    assert '<meta property="og:title" content="Head by Head" />' in head
    assert 'name="description" content="Attention ' in head
    page.close()


def test_the_front_page_is_light(html):
    import gzip

    files = (f"{FRONT}.html", "_static/front.css", "_static/front.js")
    sizes = [len(gzip.compress((html / name).read_bytes())) for name in files]
    assert sum(sizes) < 45_000
