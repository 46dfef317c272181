"""Every live view reacts to keyboard, mouse and finger, and logs no error.

What a view shows stands in its data attributes with four decimals; the package must
come to the same numbers.
"""

import json
import re

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")

import mha
from mha import view

SHOWN = 1.01e-4  # four decimals in, four decimals out
WORDS = ["dog", "food", "it", "hungry"]
SCORES = np.array([5.0, 0.0, 3.0, 4.0])
rng = np.random.default_rng(0)
A = mha.softmax(2 * rng.normal(size=(2, 5, 4, 4)))
NIGHTS = rng.normal(size=(53, 2))
CELLS = np.arange(4 * 6).reshape(4, 6)
ONLINE = np.array([1, 0.5, 3, 2, -1, 3.5, 0, 1])
ALT = "Something to find out"
FIGURES = {
    "softmax": lambda: figures.softmax(SCORES, WORDS, alt=ALT),
    "attention": lambda: view.attention(A, WORDS, alt=ALT),
    "dragons": lambda: figures.dragons(NIGHTS, [0.4, 0.2], alt=ALT),
    "heads": lambda: figures.heads(CELLS, WORDS, n_heads=3, alt=ALT),
    "online": lambda: figures.online(ONLINE, np.arange(1, 9), "abcdefgh", alt=ALT),
}
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<title>Figure</title>
<meta name="viewport" content="width=device-width"><style>
:root {{ color-scheme: light dark; }} body {{ background: #fff; color: #222; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #121212; color: #ccc; }} }}
{}</style></head><body><main><h1>Figure</h1>{}</main></body></html>"""


class Figure:
    """One figure on a page, and the hands that move it."""

    def __init__(self, page, place=0):
        self.page, self.root = page, page.locator(".mha-view").nth(place)

    def data(self, name):
        return self.root.get_attribute(f"data-{name}")

    def numbers(self, name):
        return np.array(self.data(name).split(), dtype=float)

    def button(self, name):
        return self.root.get_by_role("button", name=name, exact=True)

    def radio(self, name):
        return self.root.get_by_role("radio", name=name, exact=True)

    def slider(self, name):
        return self.root.get_by_role("slider", name=re.compile(name))

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    @property
    def aim(self):
        return re.sub("[\u2068\u2069]", "", self.root.locator(".aim").inner_text())

    @property
    def says(self):
        return re.sub("[\u2068\u2069]", "", self.root.locator(".readout").inner_text())


@pytest.fixture
def show(window):
    """Return a function that shows figures on a page; in the end nothing went wrong."""
    wrong = []

    def foreign(request):
        if not request.url.startswith(("data:", "about:")):
            wrong.append(request.url)

    def show_all(*views, theme="light", style="", width=800, **options):
        page = window(theme=theme, width=width, **options)
        page.on("console", lambda m: m.type == "error" and wrong.append(m.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", foreign)
        drawn = "".join(each._repr_html_() for each in views)
        page.set_content(PAGE.format(style, drawn))
        return Figure(page)

    yield show_all
    assert wrong == []


def agree(found, expected):
    np.testing.assert_allclose(found, np.ravel(expected), rtol=0, atol=SHOWN)


def test_scripts_replace_the_stills_and_without_them_they_stay(show):
    """All views on one page, so none disturbs another."""
    views = [draw() for draw in FIGURES.values()]
    shown = show(*views)
    assert shown.page.locator(".mha-view .live").count() == len(views)
    stills = shown.page.locator(".still img")
    assert not any(still.is_visible() for still in stills.all())
    quiet = show(*views, java_script_enabled=False).page.locator(".still img")
    assert [still.is_visible() for still in quiet.all()] == [True] * len(views)


# How JupyterLab and VS Code run the scripts of an output: in place, and elsewhere.
LIKE_AN_EDITOR = """([html, elsewhere]) => {
    const host = document.querySelector("main");
    host.innerHTML = html;
    for (const old of [...host.querySelectorAll("script")]) {
        const script = document.createElement("script");
        script.type = old.type;
        script.text = old.textContent;
        if (elsewhere) document.body.append(script); else old.replaceWith(script);
    }
}"""


@pytest.mark.parametrize("elsewhere", [False, True])
def test_views_come_alive_when_an_editor_inserts_them(show, elsewhere):
    """The one of the package and one of the book, each twice."""
    pair = FIGURES["attention"]()._repr_html_() + FIGURES["softmax"]()._repr_html_()
    figure = show()
    figure.page.evaluate(LIKE_AN_EDITOR, [2 * pair, elsewhere])
    assert figure.page.locator(".mha-view .live").count() == 4


def test_softmax_follows_keyboard_and_mouse(show):
    figure = show(FIGURES["softmax"]())
    agree(figure.numbers("weights"), mha.softmax(SCORES))
    figure.slider("temperature").focus()
    figure.press("ArrowRight", "ArrowRight", "ArrowRight")
    agree(figure.numbers("weights"), mha.softmax(SCORES / 10**0.06))
    box = figure.slider("temperature").bounding_box()
    at = box["x"] + box["width"] - 1, box["y"] + box["height"] / 2
    figure.page.mouse.click(*at)
    agree(figure.numbers("weights"), mha.softmax(SCORES / 10))
    figure.button("back to the start").press("Enter")
    figure.slider("add to all").press("End")
    agree(figure.numbers("weights"), mha.softmax(SCORES))
    assert "“dog” 0.66" in figure.says


def test_attention_follows_mouse_keyboard_and_finger(show):
    figure = show(FIGURES["attention"](), has_touch=True, width=390)
    agree(figure.numbers("weights"), A[0, 0, 0])
    figure.radio("it").hover()
    agree(figure.numbers("weights"), A[0, 0, 2])
    figure.radio("layer 2, head 4").check()
    agree(figure.numbers("weights"), A[1, 3, 2])
    beside = figure.root.locator(".words b").all_inner_texts()
    assert beside == ["<0.01" if w < 0.005 else f"{w:.2f}" for w in A[1, 3, 2]]
    assert figure.says.startswith("layer 2, head 4: “it” attends to ")
    figure.press("ArrowLeft", "ArrowUp")
    agree(figure.numbers("weights"), A[1, 1, 2])
    figure.radio("hungry").tap()
    agree(figure.numbers("weights"), A[1, 1, 3])
    figure.press("Tab")
    assert not figure.page.evaluate("!!document.activeElement.closest('.mha-view')")


def test_dragons_know_what_least_squares_finds(show):
    figure = show(FIGURES["dragons"]())
    nights = FIGURES["dragons"]().data
    nights = np.array(json.loads(nights)["nights"])

    def expect(heads):
        home = nights @ figure.numbers("looks").reshape(heads, 2).T
        guess = home @ np.linalg.lstsq(home, nights, rcond=1e-9)[0]
        found = 1 - ((nights - guess) ** 2).sum(0) / (nights**2).sum(0)
        np.testing.assert_allclose(figure.numbers("known"), found, atol=1e-3)
        return found.sum()

    assert expect(1) == pytest.approx(1, abs=SHOWN)
    figure.slider("head 1: weight").press("ArrowRight")
    assert expect(1) == pytest.approx(1, abs=SHOWN)
    figure.radio("two").check()
    assert expect(2) == pytest.approx(2, abs=SHOWN)
    assert figure.aim.startswith("✓ Done. Two heads with different weights")


def test_every_number_goes_to_the_head_where_numpy_puts_it(show):
    figure = show(FIGURES["heads"]())
    for way, n_heads in (("reshape and swap", 2), ("reshape only", 6)):
        figure.radio(way).check()
        figure.radio(str(n_heads)).check()
        right = mha.split_heads(CELLS, n_heads)
        cut = right if way != "reshape only" else CELLS.reshape(n_heads, 4, -1)
        np.testing.assert_array_equal(figure.numbers("heads"), cut.ravel())
        assert int(figure.data("held")) == (cut == right).sum()
        assert figure.root.locator("table .lost").count() == (cut != right).sum()
    figure.root.locator("table.whole button").first.press("ArrowRight")
    assert figure.data("place") == "1"


def test_every_block_size_ends_at_the_softmax_unless_rescaling_is_forgotten(show):
    figure = show(FIGURES["online"]())
    right = mha.softmax(ONLINE) @ np.arange(1, 9)
    for size in ("1", "3", "all"):
        figure.radio(size).check()
        figure.slider("blocks read").press("End")
        m, _, answer = figure.numbers("kept")
        assert m == 3.5 and answer == pytest.approx(right, abs=1e-4)
    figure.radio("1").check()
    figure.radio("forget it").check()
    figure.slider("blocks read").press("End")
    assert abs(figure.numbers("kept")[2] - right) > 0.1
