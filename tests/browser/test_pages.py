"""The pages in a real browser, a few of each kind; tests/weekly looks at every page."""

import gzip
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
def test_a_page_of_each_kind_is_whole(windows, window, site, name):
    page = window()
    wrong = watch(windows, page, site)
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


def test_the_first_view_of_every_chapter_is_light(html):
    """At most 120 kB of HTML as a server sends it, beside 100 kB that pages share."""
    for name in PAGES:
        page = (html / f"{name}.html").read_bytes()
        assert len(gzip.compress(page)) < 120_000, name


SCREENS = [(1280, 900), (390, 844)]


def asks_on_the_first_screen(page, width, height):
    """Whether a chapter asks its question before the reader scrolls."""
    page.set_viewport_size({"width": width, "height": height})
    heading = page.locator("article h2").first
    asked = page.locator("#the-question > p strong", has_text="?").first
    box = asked.bounding_box()
    return (
        heading.bounding_box()["y"] < 400
        and heading.inner_text().startswith("The question")
        and box["y"] + box["height"] < height
    )


def test_a_chapter_begins_with_title_promise_minutes_needs_and_its_question(open_page):
    """All chapters are looked at once a week."""
    page = open_page("book/03_scale", java_script_enabled=False)
    for screen in SCREENS:
        assert asks_on_the_first_screen(page, *screen), screen
    top = page.locator("article section").first
    texts = top.locator("> :is(h1, p)").all_inner_texts()
    assert re.match(r"3\. Scaling", texts[0]) and texts[1].startswith("Keep ")
    assert re.match(r"Core, about \d+ minutes; more below", texts[2])
    assert texts[3].startswith("You need ")


def test_a_closed_level_opens_for_a_link_a_search_and_paper(open_page):
    page = open_page("book/03_scale")
    address, folds = page.url, page.locator("details.level")
    opened = "document.querySelectorAll('details.level')[{}].open".format
    assert folds.count() == 2 and not page.evaluate(opened(0))
    page.goto(f"{address}#the-scale-in-other-code-and-models-without-it")
    page.wait_for_function(opened(1))
    page.goto("about:blank")
    page.goto(f"{address}#:~:text=Suppose%20that%20we%20divide")  # as a search does
    page.wait_for_function(opened(0))
    page.evaluate("document.querySelector('details.level').open = false")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("article details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("article details[open]").count() == 0


def test_a_guess_opens_the_answer_and_stays_for_the_visit(open_page):
    page = open_page("book/02_softmax")
    answer = page.locator("details.answer").first
    assert not answer.locator("*").nth(1).is_visible()
    place = page.locator(".guess").first
    place.get_by_role("textbox").or_(place.get_by_role("button")).first.focus()
    page.keyboard.type("more")
    page.keyboard.press("Enter")
    assert answer.get_attribute("open") is not None
    page.reload()
    kept = page.locator(".guess").first
    assert (
        kept.locator("[aria-pressed=true]").count()
        or kept.locator("input").input_value() == "more"
    )


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


def test_the_book_works_from_the_file_system(window, windows, html):
    page = window()
    wrong = watch(windows, page, "file://")
    page.goto((html / "index.html").as_uri(), wait_until="load")
    page.get_by_role("link", name="New to attention?", exact=False).first.click()
    page.wait_for_url("**/00_overview.html")
    page.locator("a.next-page").click()
    page.wait_for_url("**/live.html")
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
    rare = set("\n\u2003⇔∧⊙⌊⌋▶")  # from a typeface of the system
    assert len(used) > 100 and {*map(chr, has["sans"])} >= used - rare
    assert has["sans"] >= has["sans-italic"] >= has["serif"]
    assert sum(path.stat().st_size for path in files.values()) <= 70_000


def test_the_text_hardly_moves_when_the_typefaces_arrive(open_page):
    page = open_page(CHAPTER)

    def heights():
        for width, height in SCREENS:
            page.set_viewport_size({"width": width, "height": height})
            tall = "document.querySelector('article').offsetHeight"
            yield page.evaluate(f"document.fonts.ready.then(() => {tall})")

    ours = [*heights()]
    faces = '--font-stack: "Stand-in Sans"; --font-stack--headings: "Stand-in Serif"'
    page.add_style_tag(content=f"html body {{ {faces} }}")
    assert [*heights()] == pytest.approx(ours, rel=0.005)


def test_a_page_on_a_disk_has_the_typefaces_at_the_first_visit(window, html):
    page = window()
    page.goto((html / "book/16_long.html").as_uri(), wait_until="load")
    page.evaluate("document.fonts.ready")
    ask = page.context.new_cdp_session(page).send
    ask("CSS.enable", ask("DOM.enable"))
    asked = {"nodeId": ask("DOM.getDocument")["root"]["nodeId"], "selector": "h1"}
    used = ask("CSS.getPlatformFontsForNode", ask("DOM.querySelector", asked))["fonts"]
    assert [font["isCustomFont"] for font in used] == [True]


def test_without_scripts_text_figures_and_the_story_of_the_front_page_are_there(
    open_page,
):
    page = open_page("book/02_softmax", java_script_enabled=False)
    assert page.locator("article h1").inner_text().startswith("2. Softmax")
    assert page.locator("svg.mha-picture").count() >= 2
    assert page.locator("mjx-container").count() >= 10
    front = open_page("book/index", java_script_enabled=False)
    for number in range(3):
        fold = front.locator("article details").nth(number)
        fold.locator("summary").click()
        assert fold.locator("p").first.is_visible()


def test_old_addresses_and_wrong_ones_show_the_way(open_page, html):
    page = open_page("book/14_laws")
    page.wait_for_url("**/book/15_laws.html")
    lost = (html / "404.html").read_text("utf-8")
    assert "No such page" in lost and 'href="/book/index.html"' in lost
