"""Every page, light and dark, wide and narrow, in a real browser."""

import re

import pytest

from tests.browser.looks import RAW_MATH, SIDEWAYS, SMALL_TEXT, barriers, watch
from tests.browser.test_pages import PAGES, SCREENS, TOC, begins_on_the_first_screen

SECTIONS = [
    section["file"]
    for part in TOC["parts"]
    for chapter in part["chapters"]
    for section in chapter.get("sections", ())
]
LOOKS = [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)]
UNFOLD = (
    "document.querySelectorAll('article details').forEach((d) => { d.open = true })"
)


@pytest.mark.parametrize("name", [*PAGES, *SECTIONS, "genindex", "search"])
def test_every_page_is_whole_in_every_look(window, site, name):
    page = window()
    wrong = watch(page, site)
    page.goto(f"{site}{name}.html", wait_until="load")
    assert page.evaluate(RAW_MATH) == []
    page.evaluate(UNFOLD)
    for theme, width in LOOKS:
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(SIDEWAYS) <= 0, (theme, width)
        assert page.evaluate(SMALL_TEXT) == [], (theme, width)
        assert barriers(page) == [], (theme, width)
    page.wait_for_load_state("networkidle")
    assert wrong == []


@pytest.mark.parametrize("name", [n for n in PAGES if re.match(r"book/[01]\d", n)])
def test_every_chapter_asks_its_question_on_the_first_screen(open_page, name):
    page = open_page(name, java_script_enabled=False)
    if name == "book/00_overview":  # it has other sections
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.locator("article h2").first.bounding_box()["y"] < 400
        return
    for screen in SCREENS:
        assert begins_on_the_first_screen(page, *screen), screen
