"""Every page, light and dark, wide and narrow, in a real browser."""

import gzip
import re
from functools import cache
from types import SimpleNamespace

import pytest
import yaml

from tests.browser.conftest import ROOT

axe = pytest.importorskip("axe_playwright_python.sync_playwright")

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


# All rules in the first look; colours again in the dark, the rest again on a phone.
# Formulas are left out where they are drawn (hidden from readers), not their MathML.
RULES = {
    ("light", 1200): {},
    ("dark", 1200): {"runOnly": ["color-contrast"]},
    ("light", 390): {"rules": {"color-contrast": {"enabled": False}}},
    ("dark", 390): None,  # nothing that the other three have not shown
}
DRAWN = {"exclude": [["mjx-math"]]}


def barriers(page, rules):
    """Return what axe objects to, one line each."""
    options = {"resultTypes": ["violations"], "preload": False, **rules}
    found = axe.Axe().run(page, context=DRAWN, options=options)
    return [
        f"{v['id']}: {node['html'][:200]}"
        for v in found.response["violations"]
        for node in v["nodes"]
    ]


def look(page, theme, width):
    """Return what one look at an open page shows."""
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_function(f'document.documentElement.dataset.theme == "{theme}"')
    page.wait_for_timeout(500)  # the theme gives wide code a tab stop a moment later
    rules = RULES[theme, width]
    return SimpleNamespace(
        sideways=page.evaluate("[document.documentElement.scrollWidth, innerWidth]"),
        barriers=[] if rules is None else barriers(page, rules),
    )


@pytest.fixture(scope="session")
def visit(chromium, site):
    """Return a function that opens a page once and says what was seen."""

    @cache
    def look_around(name):
        page = chromium.new_page(viewport={"width": 1200, "height": 900})
        wrong = watch(page, site)
        page.goto(f"{site}{name}.html", wait_until="networkidle")
        found = SimpleNamespace(
            wrong=list(wrong),
            raw_math=page.evaluate(RAW_MATH),
            title=page.title(),
            description=page.evaluate(
                'document.querySelector("meta[name=description]")?.content'
            ),
            looks={each: look(page, *each) for each in RULES},
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
every_look = pytest.mark.parametrize(("theme", "width"), list(RULES))


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


def test_every_page_has_a_title_and_a_description_of_its_own(visit):
    pages = [visit(name) for name in PAGES[:-2]]
    for kind in ("title", "description"):
        texts = [getattr(page, kind) for page in pages]
        assert all(texts) and len(set(texts)) == len(texts), kind


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
    page = open_page("book/01_similarity", theme=theme)
    assert page.evaluate("document.documentElement.dataset.theme") == theme


CHAPTERS = [name for name in PAGES if re.match(r"book/\d", name)]


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_first_view_of_a_chapter_is_light(chromium, site, name):
    """At most 700 kB as a server sends it, gzip and all."""
    page, sizes = chromium.new_page(), {}
    page.on("response", lambda r: sizes.setdefault(r.url, len(gzip.compress(r.body()))))
    page.goto(f"{site}{name}.html", wait_until="networkidle")
    page.close()
    assert 100_000 < sum(sizes.values()) < 700_000


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
