"""How a chapter opens, and what it asks before it shows, as a reader meets them."""

import json
import re
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from itertools import pairwise

import pytest

from tests.book import prediction
from tests.browser.conftest import SUBPATH, Quiet
from tests.browser.test_pages import CHAPTERS, barriers

SOFTMAX = next(name for name in CHAPTERS if name.endswith("softmax"))


def tops(page, *parts):
    boxes = (page.locator(f".opening {part}").first.bounding_box() for part in parts)
    return [box["y"] for box in boxes]


# The opening


def test_a_wide_page_has_its_place_and_the_buttons_above_the_title(open_page):
    page = open_page(SOFTMAX, width=1280)
    order = tops(page, ".place", "h1", ".promise", ".takes", ".strip", ".law-card")
    assert order == sorted(order)
    (runs, title), (place,) = tops(page, ".runs", "h1"), tops(page, ".place")
    assert runs < title and abs(runs - place) < 30


def test_a_wide_page_has_its_picture_beside_the_law_or_what_one_needs(open_page):
    for name, beside in ((SOFTMAX, ".law-card"), ("book/06_why_heads", ".need")):
        page = open_page(name, width=1280)
        picture = page.locator(".opening .thumb").bounding_box()
        other = page.locator(f".opening {beside}").bounding_box()
        assert picture["width"] == 200
        assert picture["x"] + 200 < other["x"]
        assert other["y"] < picture["y"] + picture["height"]
        assert picture["y"] < other["y"] + other["height"]


def test_a_phone_shows_the_law_before_the_strip(open_page):
    page = open_page(SOFTMAX, width=390)
    parts = (
        ".place",
        "h1",
        ".promise",
        ".takes",
        ".runs",
        ".law-card",
        ".strip",
        ".need",
    )
    order = tops(page, *parts)
    assert order == sorted(order)


SMALLEST = """() => Math.min(...[...document.querySelectorAll(".opening *")]
    .filter((node) => node.innerText?.trim() && !node.closest("svg, .visually-hidden"))
    .map((node) => parseFloat(getComputedStyle(node).fontSize)))"""


def at_widths(page, *widths):
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        yield width


def test_the_smallest_letters_have_nine_pixels(open_page):
    page = open_page("book/09_multi_head")
    for _ in at_widths(page, 320, 390, 700, 1280):
        assert page.evaluate(SMALLEST) >= 9
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


NAMES = """() => [...document.querySelectorAll(".strip li > *")].map((node) => {
    const range = document.createRange();
    range.selectNodeContents(node.querySelector("[aria-hidden]:not(svg)"));
    const { left, right, top } = range.getBoundingClientRect();
    return [top, left, right];
})"""


def test_the_names_in_the_strip_do_not_touch(open_page):
    page = open_page("book/09_multi_head")
    for width in at_widths(page, 320, 390, 640, 700, 1000, 1280):
        names = page.evaluate(NAMES)
        assert len({round(top) for top, *_ in names}) == (2 if width < 600 else 1)
        for (top, _, right), (below, left, _) in pairwise(names):
            assert right < left or below > top


def test_a_part_of_the_strip_leads_to_its_chapter(open_page):
    page = open_page(SOFTMAX)
    page.get_by_role("navigation", name="The parts of a layer").get_by_role(
        "link", name=re.compile("^mask")
    ).click()
    assert "04_masks" in page.url


def test_the_card_leads_to_the_section_on_the_law(open_page):
    page = open_page(SOFTMAX)
    page.locator(".law-card a[href='#the-law']").click()
    assert page.url.endswith("#the-law")
    assert page.locator("#the-law h2").is_visible()


def test_the_notebook_is_there_to_be_downloaded(open_page):
    page = open_page(SOFTMAX)
    with page.expect_download() as download:
        page.get_by_role("link", name="Notebook", exact=True).click()
    cells = json.loads(download.value.path().read_text(encoding="utf-8"))["cells"]
    assert "".join(cells[0]["source"]).startswith("# ")
    assert download.value.suggested_filename == f"{SOFTMAX[5:]}.ipynb"


def test_without_scripts_the_opening_stands(open_page):
    page = open_page(SOFTMAX, java_script_enabled=False)
    assert page.locator(".place").inner_text().startswith("Part I\n")
    assert page.locator(".strip a").count() >= 10
    assert page.locator(".law-card").is_visible()


def test_only_chapters_have_an_opening(open_page):
    page = open_page("book/glossary")
    assert page.locator(".opening").count() == 0


def test_on_paper_the_opening_is_plain(open_page):
    page = open_page(SOFTMAX, theme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert (
        not page.locator(".strip, .runs, .squares, .thumb")
        .locator("visible=true")
        .count()
    )
    assert page.locator(".law-card .name").is_visible()
    ink = page.locator(".law-card .name").evaluate("n => getComputedStyle(n).color")
    assert max(map(int, re.findall(r"\d+", ink)[:3])) < 100


# Predictions


@pytest.fixture(scope="module")
def predictions(tmp_path_factory):
    """Return the address of a small page with predictions."""
    pytest.importorskip("myst_nb")
    folder = prediction.build_once(tmp_path_factory)
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{SUBPATH}index.html"
        server.shutdown()


@pytest.fixture
def guess(window, predictions):
    """Return a function that opens the small page in a window of its own."""

    def open_it(anchor="", *, width=1200, **options):
        page = window(width=width, **options)
        page.goto(predictions + anchor, wait_until="load")
        return page

    return open_it


BOX = "#guess-ask-sum"
KEPT = "Object.keys(localStorage).filter((key) => key.startsWith('head-by-head'))"
OPENED = "folds => folds.map(fold => fold.open)"


def opened(page):
    return page.locator("details.reveal").evaluate_all(OPENED)


def test_what_happens_is_hidden_until_the_reader_asks_for_it(guess):
    page = guess()
    answer = page.get_by_text("know.")
    assert answer.is_hidden() and page.locator("#fig-1").is_hidden()
    page.locator("details.reveal summary").first.focus()
    page.keyboard.press("Enter")
    assert answer.is_visible() and page.locator("#fig-1").is_visible()
    assert opened(page) == [True, False, False]


def test_a_guess_is_kept_in_this_browser(guess):
    page = guess()
    page.get_by_label("Your guess").first.fill("six")
    page.reload()
    assert page.locator(BOX).input_value() == "six"
    assert page.evaluate(KEPT) == ["head-by-head:guess:index:ask-sum"]
    page.locator(BOX).fill(" ")
    assert page.evaluate(KEPT) == []


def test_a_box_grows_with_the_guess(guess):
    page = guess()
    box = page.locator(BOX)
    before = box.bounding_box()["height"]
    box.fill("one\ntwo\nthree")
    assert box.bounding_box()["height"] > before + 30
    assert box.evaluate("node => node.scrollHeight <= node.clientHeight")


# The theme does not survive a browser that keeps nothing at all.
KEEP_NOTHING = """for (const name of ["getItem", "setItem"]) {
    const old = Storage.prototype[name];
    Storage.prototype[name] = function (key, ...rest) {
        if (key.startsWith("head-by-head")) throw new Error("no room");
        return old.call(this, key, ...rest);
    };
}"""


def test_a_browser_that_keeps_nothing_lets_the_reader_guess(forgetful, predictions):
    page, errors = forgetful(KEEP_NOTHING), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(predictions)
    page.locator(BOX).fill("six")
    assert page.locator(BOX).input_value() == "six" and errors == []


def test_without_scripts_a_fold_works_and_no_box_shows(guess):
    page = guess(java_script_enabled=False)
    assert not page.locator(".your-guess").locator("visible=true").count()
    page.locator("details.reveal summary").first.click()
    assert page.get_by_text("know.").is_visible()


def test_a_link_to_a_figure_opens_its_fold(guess):
    page = guess("#fig-2")
    assert opened(page) == [False, True, False]
    assert 0 <= page.locator("#fig-2").bounding_box()["y"] < 900
    page.locator("a[href='#fig-1']").first.click()
    page.locator("#fig-1").wait_for(state="visible")
    page.locator("details.reveal").first.evaluate("fold => { fold.open = false; }")
    page.locator("a[href='#fig-1']").first.click()
    page.locator("#fig-1").wait_for(state="visible")


def test_what_a_search_has_found_is_not_hidden(guess):
    page = guess()
    page.route("**/searchtools.js", lambda route: route.abort())  # as slim.py does
    page.evaluate("localStorage.setItem('sphinx_highlight_terms', 'know')")
    page.reload()
    page.wait_for_function("document.querySelector('details.reveal').open")
    assert opened(page) == [True, False, False]


def test_paper_shows_what_happens(guess):
    page = guess()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened(page) == [True] * 3
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened(page) == [False] * 3
    page.emulate_media(media="print")
    assert page.get_by_text("know.").is_visible()
    assert not page.locator(".your-guess, details.reveal > summary").first.is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_no_barrier_around_a_prediction(guess, theme, width):
    page = guess("#fig-1", theme=theme, width=width)
    page.locator(BOX).fill("six")
    found = barriers(page, {}, {"include": [[".your-guess"], ["details.reveal"]]})
    assert found == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
