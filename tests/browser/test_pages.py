"""The pages in a real browser, a few of each kind; tests/weekly looks at every page."""

import re
from html import unescape

import pytest
import yaml

from tests.browser.conftest import ROOT, SUBPATH
from tests.browser.looks import RAW_MATH, SIDEWAYS, SMALL_TEXT, barriers, watch

CHAPTER = "book/05_attention"
LOOKS = {"light": 1280, "dark": 390}  # a theme, and the width at which it is seen
KINDS = {"book/index": "light", CHAPTER: "dark"}  # axe takes longest and sees one look
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
PAGES = [TOC["root"]]
PAGES += [each["file"] for part in TOC["parts"] for each in part["chapters"]]


@pytest.mark.parametrize("name", KINDS)
def test_a_page_of_each_kind_is_whole(window, site, name):
    page = window()
    wrong = watch(page, site)
    page.goto(f"{site}{name}.html", wait_until="load")
    assert page.evaluate(RAW_MATH) == []
    for theme, width in LOOKS.items():
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(SIDEWAYS) <= 0
        assert page.evaluate(SMALL_TEXT) == []
        assert theme != KINDS[name] or barriers(page) == []
    page.wait_for_load_state("networkidle")
    assert wrong == []


def test_every_page_has_a_title_and_a_description_of_its_own(html):
    pages = [(html / f"{name}.html").read_text("utf-8") for name in PAGES]
    pages = [page.partition("</head>")[0] for page in pages]
    for kind in (
        r"<title>([^<]+)</title>",
        r'<meta name="description" content="([^"]+)"',
    ):
        texts = [re.findall(kind, page) for page in pages]
        assert all(len(found) == 1 for found in texts), kind
        assert len(set(map(tuple, texts))) == len(texts), kind


SCREENS = [(1280, 900), (390, 844)]


def begins_on_the_first_screen(page, width, height):
    """Whether a chapter begins its story before the reader scrolls."""
    page.set_viewport_size({"width": width, "height": height})
    heading = page.locator("article h2").first.bounding_box()
    text = page.locator("article section section > p").first.bounding_box()
    return heading["y"] < 400 and text["y"] + text["height"] < height


def test_a_chapter_begins_with_title_promise_minutes_needs_and_its_story(open_page):
    """All chapters are looked at once a week."""
    page = open_page("book/03_scale", java_script_enabled=False)
    for screen in SCREENS:
        assert begins_on_the_first_screen(page, *screen), screen
    top = page.locator("article section").first
    texts = top.locator("> :is(h1, p)").all_inner_texts()
    assert re.match(r"3\. Scaling", texts[0]) and texts[1].startswith("Keep ")
    assert re.match(r"Core, about \d+ minutes; more below", texts[2])
    assert texts[3].startswith("You need ")


# Where a link or a search leads: a top of the page, of a section in a fold, of a table.
PLACES = {
    "03_scale": "the-scale-in-other-code-and-models-without-it",
    "04_masks": "check",
    "16_laws": "laws-table",
}
TOP = "node => node.getBoundingClientRect().top"


@pytest.mark.parametrize("name", PLACES)
def test_a_link_into_a_fold_opens_it_and_lands_there(open_page, name):
    page = open_page(f"book/{name}")
    height = "document.documentElement.scrollHeight"
    told = page.evaluate(height)
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert page.evaluate(height) == told  # no height is guessed
    page.goto(f"{page.url}#{PLACES[name]}")
    target = page.locator(f"#{PLACES[name]}")
    target.wait_for()
    page.wait_for_timeout(300)
    assert -2 <= target.evaluate(TOP) <= 100


def test_paper_shows_what_is_folded_and_nothing_to_press(open_page):
    page = open_page("book/03_scale")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("article details:not([open])").count() == 0
    for each in (".skip-to-content", ".guess", "article button:not([role])"):
        assert page.locator(f"{each} >> visible=true").count() == 0, each
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("article details[open]").count() == 0


def test_a_guess_opens_the_answer_and_stays_for_the_visit(open_page):
    page = open_page("book/02_softmax")
    choice = page.get_by_role("button", name="the same", exact=True).first
    choice.focus()
    page.keyboard.press("Enter")
    assert page.locator("details.answer[open]").count() == 1
    page.reload()
    assert choice.get_attribute("aria-pressed") == "true"


def test_a_keyboard_begins_at_the_text_and_code_can_be_copied(open_page, site):
    page = open_page(CHAPTER)
    page.keyboard.press("Tab")
    assert "Skip to content" in page.evaluate("document.activeElement.innerText")
    host = site.removesuffix(SUBPATH)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=host)
    cell = page.locator(".cell_input:visible").first
    cell.hover()
    cell.locator("button.copybtn").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == cell.locator("pre").inner_text().strip()
    assert page.locator(".output button.copybtn").count() == 0


def test_the_theme_is_that_of_the_reader_and_paper_is_white(open_page):
    page = open_page(CHAPTER, theme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(20, 24, 30)"
    page.emulate_media(media="print", color_scheme="dark")
    ink = page.locator("article p").first.evaluate("n => getComputedStyle(n).color")
    assert max(map(int, re.findall(r"\d+", ink)[:3])) < 120
    page.emulate_media(media="screen", color_scheme="dark")
    page.locator("button.theme-toggle:visible").click()
    assert page.evaluate(paper) == "rgb(255, 255, 255)"


def test_the_cheat_sheet_prints_on_two_pages(open_page):
    page = open_page("book/cheatsheet")
    page.emulate_media(media="print")
    pdf = page.pdf(format="A4", prefer_css_page_size=True)
    assert "prints on two pages" in page.locator("article p").first.inner_text()
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 2


def test_the_code_of_all_of_it_prints_on_one_sheet_behind_its_text(open_page):
    page = open_page("book/mini_mha")
    page.emulate_media(media="print")
    pdf = page.pdf(format="A4", prefer_css_page_size=True)
    assert "one sheet of A4" in page.locator("article").inner_text()
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 2


def test_the_book_works_from_the_file_system(window, html):
    page = window()
    wrong = watch(page, "file://")
    page.goto((html / "index.html").as_uri(), wait_until="load")
    page.get_by_role("link", name="New to attention?", exact=False).first.click()
    page.wait_for_url("**/00_overview.html")
    page.locator("a.next-page").click()
    page.wait_for_url("**/01_dot_product.html")
    assert wrong == []


APART = r"<(pre|code|script|style|svg|title|mjx-container)\b.*?</\1>|<[^>]+>"


def signs(page):
    """Return the signs of a page that are set in its typefaces."""
    return {*unescape(re.sub(APART, "", page, flags=re.S))}


def test_every_sign_of_the_prose_is_in_the_typeface(html):
    fonts = pytest.importorskip("fontTools.ttLib")
    pytest.importorskip("brotli", reason="the typefaces are packed with it")
    files = {path.stem: path for path in (html / "_static/fonts").glob("*.woff2")}
    has = {name: {*fonts.TTFont(path).getBestCmap()} for name, path in files.items()}
    used = set().union(*(signs((html / f"{x}.html").read_text("utf-8")) for x in PAGES))
    rare = set("\n\u2003\u2060⇔∧⊙⌊⌋▶")  # nothing to see, or from the system
    assert len(used) > 100 and {*map(chr, has["sans"])} >= used - rare
    assert has["sans"] >= has["sans-italic"] >= has["serif"]
    assert sum(path.stat().st_size for path in files.values()) <= 70_000


def test_without_scripts_text_figures_and_the_finding_on_the_front_page_are_there(
    open_page,
):
    page = open_page("book/02_softmax", java_script_enabled=False)
    assert page.locator("article h1").inner_text().startswith("2. Softmax")
    assert page.locator("svg.mha-picture").count() >= 2
    assert page.locator("mjx-container").count() >= 10
    front = open_page("book/index", java_script_enabled=False)
    assert front.locator("article svg.mha-picture").first.is_visible()
    assert front.get_by_text("Good scores, wrong code.").is_visible()


def test_old_addresses_and_wrong_ones_show_the_way(open_page, html):
    page = open_page("book/14_laws")
    page.wait_for_url("**/book/16_laws.html")
    lost = (html / "404.html").read_text("utf-8")
    assert "No such page" in lost and 'href="/book/index.html"' in lost
