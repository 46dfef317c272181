"""The live encoder on its pages: a reader types, changes, breaks and opens."""

import json
import re

import pytest

pytest.importorskip("torch")

from _data import stress
from tests.browser.looks import SIDEWAYS, barriers, watch

PAGE = "book/live_encoder"


@pytest.fixture
def figure(open_page):
    """Return a function that opens the figure of a page."""

    def open_one(name=PAGE, **options):
        page = open_page(name, **options)
        found = page.locator(".mha-encoder")
        found.scroll_into_view_if_needed()
        found.locator(".live").wait_for()
        return found

    return open_one


def test_a_word_is_marked_changed_and_broken(figure):
    shown = figure()
    shown.get_by_role("textbox").fill("photography")
    assert shown.locator(".verdict b").inner_text() == "O"
    assert shown.get_attribute("data-top") == "4"
    shown.get_by_role("textbox").fill("x-ray")
    assert "Only the letters a to z" in shown.locator(".refused").first.inner_text()
    shown.get_by_role("textbox").fill("democrat")
    letters = shown.locator(".letter")
    letters.nth(6).focus()
    for key in ("ArrowRight", "Delete"):
        shown.page.keyboard.press(key)
    assert shown.get_attribute("data-word") == "democra"
    shown.get_by_label("Break it").select_option("split_without_transpose")
    shown.page.wait_for_function("document.querySelector('.answers.differ')")
    assert "before any training" in shown.locator(".told").inner_text()
    shown.get_by_label("padded to 14 letters").check()
    assert shown.locator(".key").count() == stress.LONGEST


def test_a_readers_own_weights_open_and_a_wrong_file_gets_a_sentence(figure, tmp_path):
    shown = figure()
    mine, wrong = tmp_path / "mine.json", tmp_path / "wrong.json"
    model = stress.StressFinder(n_layers=1, n_heads=3, d_model=12)
    mine.write_text(json.dumps(stress.exported(model)), encoding="utf-8")
    wrong.write_text('{"a": 1}', encoding="utf-8")
    shown.get_by_label("Your own weights").set_input_files(wrong)
    shown.get_by_text("This file cannot be opened. It is not").wait_for()
    shown.get_by_label("Your own weights").set_input_files(mine)
    shown.get_by_text("These are your weights").wait_for()
    assert shown.locator(".maps label").count() == 3
    word = shown.get_attribute("data-word")
    marked = stress.mark(model, word)
    top = int(shown.get_attribute("data-top"))
    assert marked == word[:top] + word[top].upper() + word[top + 1 :]


@pytest.mark.parametrize("name", [PAGE, "book/index"])
def test_the_figure_is_whole_on_a_phone_in_the_dark(figure, name):
    shown = figure(name, theme="dark", width=390, has_touch=True)
    shown.get_by_role("textbox").fill("transformation")
    assert shown.page.evaluate(SIDEWAYS) <= 0
    sizes = "all => all.map((x) => x.getBoundingClientRect().width)"
    widths = shown.locator(".letter").evaluate_all(sizes)
    assert len(widths) == stress.LONGEST and min(widths) >= 22
    assert barriers(shown.page, {"include": [[".mha-encoder"]]}) == []


def test_models_come_only_into_view_and_from_a_disk_too(window, html):
    page = window()
    wrong, asked = watch(page, "file://"), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((html / f"{PAGE}.html").as_uri(), wait_until="load")
    page.locator(".mha-encoder .live").wait_for()
    assert [re.sub(".*/", "", x) for x in asked if "live_encoder/" in x] == [
        "live.css", "model.js", "right.js", "live.js",
    ]  # fmt: skip
    assert wrong == []
