"""Every page, light and dark, wide and narrow, in a real browser."""

import gzip
import re
from contextlib import suppress
from functools import cache
from types import SimpleNamespace

import pytest
import yaml

from tests.browser.conftest import ROOT

axe = pytest.importorskip("axe_playwright_python.sync_playwright")
playwright = pytest.importorskip("playwright.sync_api")

TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
PAGES = [
    TOC["root"],
    *(chapter["file"] for part in TOC["parts"] for chapter in part["chapters"]),
    "genindex",
    "search",
]


def watch(page, host):
    """Return a list that fills with whatever goes wrong while the page loads."""
    wrong = []
    page.on("console", lambda m: m.type == "error" and wrong.append(m.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("requestfailed", lambda request: wrong.append(f"failed {request.url}"))

    def foreign(request):
        if not request.url.startswith((host, "data:", "blob:")):
            wrong.append(f"foreign {request.url}")

    page.on("request", foreign)
    page.on(
        "response", lambda r: r.status >= 400 and wrong.append(f"{r.status} {r.url}")
    )
    return wrong


# All rules on a wide light page; colours again in the dark, the rest again on a phone.
# Formulas are left out where they are drawn (hidden from readers), not their MathML.
COLOURS = ("color-contrast", "link-in-text-block")
LOOKS = [("light", 1200), ("light", 390), ("dark", 390), ("dark", 1200)]
DRAWN = {"exclude": [["mjx-math"]]}
CALM = "*, *::before, *::after { transition: none !important }"
# The theme gives code that scrolls a tab stop, some time after the width has changed.
TAB_STOPS = """[...document.querySelectorAll(
    "pre, .cell_output > .output, .pst-scrollable-table-container"
)].every((node) => node.scrollWidth <= node.clientWidth || node.tabIndex === 0)"""
# Most of the time goes into contrast, and most of that into code: thousands of words
# in a dozen pairs of colours. Of words that have colours, size and weight in common,
# also with all that they stand in, three stay. Call with the themes, one by one.
LOOK_ALIKES = """() => {
    const known = new Map(), count = new Map(), keep = (window.keep ??= new Set());
    const look = (node) => {
        if (!(node instanceof Element)) return "";
        if (!known.has(node)) {
            const its = getComputedStyle(node);
            known.set(node, [its.color, its.backgroundColor, its.backgroundImage,
                its.opacity, its.fontSize, its.fontWeight, its.textShadow, its.filter,
                its.mixBlendMode, look(node.parentNode)].join());
        }
        return known.get(node);
    };
    const ends = [...document.querySelectorAll("body *")].filter((node) =>
        !node.children.length && !node.closest("svg, mjx-math"));
    for (const node of ends) {
        const key = look(node), seen = count.get(key) ?? 0;
        count.set(key, seen + 1);
        if (seen < 3) keep.add(node);
    }
}"""
DROP_LOOK_ALIKES = """() => {
    const gone = [...document.querySelectorAll("body *")].filter((node) =>
        !node.children.length && !node.closest("svg, mjx-math") && !keep.has(node));
    gone.push(...document.querySelectorAll("mjx-math"));
    gone.forEach((node) => node.remove());
}"""


def barriers(page, options, context=DRAWN):
    """Return what axe objects to, one line each."""
    options = {"resultTypes": ["violations"], "preload": False, **options}
    found = axe.Axe().run(page, context=context, options=options)
    return [
        f"{v['id']}: {node['html'][:200]}"
        for v in found.response["violations"]
        for node in v["nodes"]
    ]


def turn(page, theme, width):
    """Show an open page in another theme or width."""
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_function(f'document.documentElement.dataset.theme == "{theme}"')
    with suppress(playwright.TimeoutError):
        page.wait_for_function(TAB_STOPS, timeout=2000)


def looks(page):
    """Return how wide a page is in each look, and what axe objects to there."""
    page.add_style_tag(content=CALM)
    found = {}
    for theme, width in LOOKS:
        turn(page, theme, width)
        sideways = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        found[theme, width] = SimpleNamespace(sideways=sideways, barriers=[])
        if theme == "light":
            off = COLOURS[:1] if width == 1200 else COLOURS
            rules = {rule: {"enabled": False} for rule in off}
            found[theme, width].barriers += barriers(page, {"rules": rules})
    for theme in ("dark", "light"):
        turn(page, theme, 1200)
        page.evaluate(LOOK_ALIKES)
    page.evaluate(DROP_LOOK_ALIKES)
    for theme in ("light", "dark"):
        turn(page, theme, 1200)
        contrast = {"runOnly": ["color-contrast"]}
        found[theme, 1200].barriers += barriers(page, contrast, None)
    return found


@pytest.fixture(scope="session")
def visit(chromium, site):
    """Return a function that opens a page once and says what was seen."""

    @cache
    def look_around(name):
        page = chromium.new_page(viewport={"width": 1200, "height": 900})
        wrong, answers = watch(page, site), []
        page.on("response", lambda answer: answers.append(answer))
        page.goto(f"{site}{name}.html", wait_until="networkidle")
        found = SimpleNamespace(
            sizes={each.url: len(gzip.compress(each.body())) for each in answers},
            raw_math=page.evaluate(RAW_MATH),
            looks=looks(page),
            wrong=wrong,
        )
        page.close()
        return found

    return look_around


# Formulas that were left as TeX, or that MathJax could not read.
RAW_MATH = """[...document.querySelectorAll(".math")]
    .filter((node) => !node.querySelector("mjx-container math")
                      || node.querySelector("[data-mjx-error]"))
    .map((node) => node.textContent.slice(0, 80))"""

every_page = pytest.mark.parametrize("name", PAGES)
every_look = pytest.mark.parametrize(("theme", "width"), LOOKS)


@every_page
def test_nothing_fails_and_nobody_else_is_asked(visit, name):
    assert visit(name).wrong == []


@every_page
@every_look
def test_no_page_scrolls_sideways(visit, name, theme, width):
    needed, there = visit(name).looks[theme, width].sideways
    assert needed <= there


@every_page
@every_look
def test_axe_finds_no_barrier(visit, name, theme, width):
    assert visit(name).looks[theme, width].barriers == []


@every_page
def test_every_formula_is_typeset(visit, name):
    assert visit(name).raw_math == []


def test_every_page_has_a_title_and_a_description_of_its_own(html):
    pages = [(html / f"{name}.html").read_text("utf-8") for name in PAGES[:-2]]
    for kind in (
        r"<title>([^<]+)</title>",
        r'<meta name="description" content="([^"]+)"',
    ):
        texts = [re.findall(kind, page) for page in pages]
        assert all(len(found) == 1 for found in texts), kind
        assert len(set(map(tuple, texts))) == len(texts), kind


def test_the_book_works_from_the_file_system(chromium, html):
    page = chromium.new_page()
    wrong = watch(page, "file://")
    page.goto((html / "book" / "05_attention.html").as_uri(), wait_until="load")
    page.locator("a.next-page, .next-next a, a.right-next").first.click()
    page.wait_for_load_state("load")
    assert "06_why_heads" in page.url and wrong == []
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_follows_the_readers_theme(open_page, theme):
    page = open_page("book/01_dot_product", theme=theme)
    assert page.evaluate("document.documentElement.dataset.theme") == theme


CHAPTERS = [name for name in PAGES if re.match(r"book/\d", name)]


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_first_view_of_a_chapter_is_light(visit, name):
    """At most 700 kB as a server sends it, gzip and all."""
    assert 100_000 < sum(visit(name).sizes.values()) < 700_000


def test_a_search_finds_the_chapter(open_page, site):
    page = open_page("search")
    page.goto(f"{site}search.html?q=softmax")
    page.wait_for_selector("#search-results li")
    found = page.locator("#search-results li a").all_inner_texts()
    assert any(re.search("shares", text) for text in found)


def test_without_scripts_the_text_and_the_figures_are_there(open_page):
    page = open_page("book/02_softmax", java_script_enabled=False)
    assert page.locator("article h1").inner_text().startswith("2. How do scores")
    assert page.locator("svg.mha-picture").count() >= 2
    assert page.locator("mjx-container").count() >= 10
