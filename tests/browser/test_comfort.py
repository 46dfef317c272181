"""Ticks, meanings, the way on and the way by keyboard, as a reader meets them."""

import json
import re

import pytest

from tests.browser.conftest import SUBPATH

axe = pytest.importorskip("axe_playwright_python.sync_playwright")

CHAPTER = "book/05_attention"
KEY = "head-by-head:solved"
WORD = "a:has(> .std-term)"
BOXES = "label.solved input"


def stored(page):
    return json.loads(page.evaluate(f"localStorage.getItem('{KEY}')"))


def head(page):
    return page.locator("article .takes").inner_text()


# What a chapter takes


def test_a_chapter_says_what_it_takes(open_page):
    line = head(open_page(CHAPTER, java_script_enabled=False))
    time = r"About (\d+) minutes to read, (\d+) with predictions and exercises"
    rest = r"deeper sections \d+ minutes more · \d+ seconds to run"
    rest += r" · \d+ figures · \d exercises"
    found = re.fullmatch(rf"{time} · {rest}", line)
    assert int(found[1]) < int(found[2])


def test_the_way_on_is_the_question_of_the_next_chapter(open_page):
    link = open_page(CHAPTER).locator("nav.prev-next-area .right-next")
    words = " ".join(link.inner_text().split())
    assert words == "Next question 6. Why more than one head?"
    link.click()
    assert "06_why_heads" in link.page.url


# Ticks


def test_a_tick_is_counted_and_kept_in_this_browser(open_page):
    page = open_page(CHAPTER)
    assert head(page).endswith("0 of 4 exercises solved")
    page.locator(BOXES).nth(1).check()
    assert head(page).endswith("1 of 4 exercises solved")
    assert stored(page) == ["5.2"]
    page.reload()
    assert [box.is_checked() for box in page.locator(BOXES).all()] == [0, 1, 0, 0]
    assert page.locator(".bd-docs-nav small:visible").inner_text() == "1 of 4 solved"
    page.locator(BOXES).nth(1).uncheck()
    assert stored(page) == [] and not page.locator(".bd-docs-nav small:visible").count()


def test_a_tick_is_made_by_keyboard_and_by_its_name(open_page):
    page = open_page(CHAPTER)
    box = page.get_by_role("checkbox", name="solved exercise 5.1")
    box.focus()
    page.keyboard.press("Space")
    assert box.is_checked() and stored(page) == ["5.1"]


def test_the_front_page_adds_up_and_erases(open_page):
    page = open_page(CHAPTER)
    page.locator(BOXES).first.check()
    page.goto(page.url.replace("05_attention", "index"))
    total = page.locator("article .takes")
    assert re.fullmatch(r"1 of \d\d exercises solved", total.inner_text())
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Erase all ticks").click()
    assert stored(page) == ["5.1"]
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Erase all ticks").click()
    assert stored(page) == [] and total.is_hidden()


@pytest.mark.parametrize("rubbish", ["not json", "{}", "[1, null]", '["99.1", "5.9"]'])
def test_rubbish_in_the_store_harms_nothing(open_page, rubbish):
    page = open_page(CHAPTER)
    page.evaluate("([key, text]) => localStorage.setItem(key, text)", [KEY, rubbish])
    page.reload()
    assert head(page).endswith("0 of 4 exercises solved")
    page.locator(BOXES).first.check()
    assert "5.1" in stored(page)


def test_ticks_are_kept_for_a_book_opened_as_files(window, html):
    page = window()
    page.goto((html / f"{CHAPTER}.html").as_uri())
    page.locator(BOXES).first.check()
    page.reload()
    assert page.locator(BOXES).first.is_checked()


def test_without_scripts_there_is_nothing_to_tick(open_page):
    page = open_page(CHAPTER, java_script_enabled=False)
    assert page.locator(".solved, .solved-note").count() == 0


def test_a_browser_that_keeps_nothing_shows_nothing_to_tick(forgetful, site):
    page = forgetful("Storage.prototype.getItem = () => { throw new Error('no'); }")
    page.goto(f"{site}{CHAPTER}.html")
    assert page.locator(".solved, .solved-note").count() == 0
    assert head(page).endswith(" 4 exercises")


def test_only_chapters_and_the_front_page_load_the_script(html):
    def loads(name):
        return "progress.js" in (html / f"{name}.html").read_text("utf-8")

    assert loads(CHAPTER) and loads("book/index")
    assert not loads("book/glossary")


# Meanings


def test_a_word_shows_its_meaning_to_a_mouse_and_hides_it_again(open_page):
    page = open_page("book/09_multi_head")
    page.locator(WORD).first.hover()
    box = page.get_by_role("tooltip")
    assert box.inner_text().startswith("Several heads that attend to the same tokens")
    box.hover()  # a pointer may go there
    page.wait_for_timeout(400)
    assert box.is_visible()
    page.mouse.move(5, 5)
    box.wait_for(state="hidden")


def test_a_word_shows_its_meaning_to_a_keyboard(open_page):
    page = open_page("book/09_multi_head")
    word = page.locator(WORD).first
    page.keyboard.press("Tab")
    word.focus()
    assert page.get_by_role("tooltip").is_visible()
    described = page.locator(f"#{word.get_attribute('aria-describedby')}")
    assert described.inner_text().startswith("Several heads")
    page.keyboard.press("Escape")
    assert page.get_by_role("tooltip").count() == 0


def test_the_first_tap_shows_the_meaning_and_the_second_goes_there(open_page):
    page = open_page("book/09_multi_head", width=390, has_touch=True)
    word = page.locator(WORD).first
    word.tap()
    box = page.get_by_role("tooltip")
    assert box.is_visible() and "09_multi_head" in page.url
    left, width = (box.bounding_box()[key] for key in ("x", "width"))
    assert left >= 0 and left + width <= 390
    word.tap()
    page.wait_for_url("**/glossary.html#term-multi-head-attention")


def test_without_scripts_the_meaning_is_the_title_of_the_link(open_page):
    page = open_page("book/09_multi_head", java_script_enabled=False)
    title = page.locator(WORD).first.get_attribute("title")
    assert title.startswith("Several heads")


# By keyboard


def test_the_first_key_leads_past_the_bars(open_page):
    page = open_page(CHAPTER)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to main content"
    page.keyboard.press("Enter")
    assert page.url.endswith("#main-content")
    page.keyboard.press("Tab")
    inside = "document.querySelector('main').contains(document.activeElement)"
    assert page.evaluate(inside)


FOCUS = """() => {
  const node = document.activeElement, style = getComputedStyle(node);
  let opacity = 1;
  for (let each = node; each instanceof Element; each = each.parentElement)
    opacity *= getComputedStyle(each).opacity;
  const seen = style.outlineStyle !== "none" || style.boxShadow !== "none";
  return [node.outerHTML.slice(0, 120), seen && opacity > 0.9, node.tagName === "BODY"];
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_stop_of_the_keyboard_can_be_seen(open_page, theme):
    page = open_page(CHAPTER, theme=theme, reduced_motion="reduce")
    page.add_style_tag(content="* { transition: none !important }")
    hidden, stops = [], 0
    while stops < 250:
        page.keyboard.press("Tab")
        html, seen, outside = page.evaluate(FOCUS)
        if outside:
            break
        stops += 1
        hidden += [] if seen else [html]
    assert stops > 60 and hidden == []


def test_a_copy_button_stands_at_code_and_copies_it(open_page, site):
    page = open_page(CHAPTER)
    host = site.removesuffix(SUBPATH)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=host)
    assert page.locator(".output button.copybtn").count() == 0
    cell = page.locator(".cell_input").first
    cell.hover()
    cell.locator("button.copybtn").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == cell.locator("pre").inner_text().strip()


# The logo, and paper


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_logo_is_drawn_once_beside_the_name(open_page, theme):
    page = open_page("book/glossary", theme=theme)
    logo = page.locator(".navbar-brand img:visible")
    assert logo.count() == 1
    assert logo.evaluate("image => image.naturalWidth > 0")
    assert page.locator(".navbar-brand").inner_text().strip() == "Head by Head"


def test_paper_shows_nothing_that_only_a_screen_can_do(open_page):
    page = open_page("book/09_multi_head")
    page.locator(BOXES).first.check()
    page.emulate_media(media="print")
    only = ".takes, .solved, .solved-note, #meaning, .prev-next-area, .copybtn"
    assert page.locator(only).locator("visible=true").count() == 0


CLEAR = "rgba(0, 0, 0, 0)"
BRIGHTEST = (
    r"node => Math.max(...getComputedStyle(node).color.match(/\d+/g).slice(0, 3))"
)


def test_paper_is_white_for_a_reader_in_the_dark_too(open_page):
    page = open_page("book/09_multi_head", theme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    for part in ("p:not(.takes)", ".highlight .kn", "figcaption", "svg.mha-picture"):
        ink = page.locator(f"article {part}").first
        assert ink.evaluate(BRIGHTEST) < 100, part
    paper = page.locator("article .highlight").first
    assert paper.evaluate("node => getComputedStyle(node).backgroundColor") == CLEAR


def test_the_cheat_sheet_prints_on_two_pages(open_page):
    page = open_page("book/cheatsheet")
    page.emulate_media(media="print")
    pdf = page.pdf(format="A4", prefer_css_page_size=True)
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 2


def test_a_print_is_light_and_the_screen_is_dark_again_after_it(open_page):
    page = open_page(CHAPTER, theme="dark")
    theme = "document.documentElement.dataset.theme"
    seen = [page.evaluate(theme)]
    for event in ("beforeprint", "afterprint"):
        page.evaluate(f"dispatchEvent(new Event('{event}'))")
        seen.append(page.evaluate(theme))
    assert seen == ["dark", "light", "dark"]


def test_long_lines_wrap_on_paper(open_page):
    page = open_page(CHAPTER, width=640)  # A4 between its margins
    page.emulate_media(media="print")
    wide = page.locator("article pre").evaluate_all(
        "all => all.filter((node) => node.scrollWidth > node.clientWidth + 1).length"
    )
    assert page.locator("article pre").count() > 20 and wide == 0


def test_the_way_back_to_the_top_can_be_read(open_page):
    page = open_page(CHAPTER, width=390)
    page.mouse.wheel(0, 5000)
    page.wait_for_timeout(500)
    page.mouse.wheel(0, -500)
    button = page.locator("#pst-back-to-top:visible")
    button.wait_for()
    found = axe.Axe().run(
        page,
        context="#pst-back-to-top",
        options={"runOnly": ["color-contrast"], "preload": False},
    )
    assert found.response["violations"] == [] and found.response["passes"]
