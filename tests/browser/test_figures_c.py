"""Steps, blocks and laws, walked by mouse and by keyboard in a browser."""

import json

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")
pytest.importorskip("axe_playwright_python")

from axe_playwright_python.sync_playwright import Axe

from mha import softmax
from tests.browser.test_figures import show  # noqa: F401
from tests.figures.test_view_walks import MATRICES, WORDS, X, small_matrix

SCORES, VALUES = [1, 0.5, 3, 2, -1, 3.5, 0, 1], [1, 2, 3, 4, 5, 6, 7, 8]
STEPS = figures.steps(X, *MATRICES, 2, tokens=WORDS, is_causal=True, alt="Nine steps")
ONLINE = figures.online(SCORES, VALUES, list("abcdefgh"), alt="Blocks")
KILLS = figures.kills(small_matrix(), alt="Laws")
STEPS_END = json.loads(STEPS.data)["Y"][-1][-1]
FIGURES = {"steps": STEPS, "online": ONLINE, "kills": KILLS}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", FIGURES)
def test_no_barrier_and_no_sideways_scroll(show, name, theme):  # noqa: F811
    page = show(FIGURES[name], theme=theme, width=360).page
    found = Axe().run(page, context=".mha-view").response["violations"]
    assert [violation["id"] for violation in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_steps_end_at_the_output(show):  # noqa: F811
    figure = show(STEPS)
    forward = figure.root.get_by_role("button", name="next")
    for _ in range(8):
        forward.click()
    assert figure.data("step") == "9" and forward.is_disabled()
    assert figure.numbers("numbers")[-1] == pytest.approx(STEPS_END, abs=1e-4)


def test_a_number_tells_by_keyboard_how_it_comes_about(show):  # noqa: F811
    figure = show(STEPS)
    figure.root.get_by_role("button", name="next").focus()
    figure.press(*["Enter"] * 6, "Tab")
    figure.press("ArrowDown")
    assert figure.data("step") == "7"
    assert figure.says.startswith("e^") and "=" in figure.says


@pytest.mark.parametrize("size", ["1", "2", "3", "all"])
def test_every_block_size_ends_at_the_softmax(show, size):  # noqa: F811
    figure = show(ONLINE)
    figure.radio(size).check()
    figure.slider("blocks read").focus()
    figure.press(*["ArrowRight"] * 8)
    m, total, answer = figure.numbers("kept")
    weights = softmax(np.array(SCORES))
    assert m == 3.5
    assert total == pytest.approx(np.exp(np.array(SCORES) - 3.5).sum(), abs=1e-4)
    assert answer == pytest.approx(weights @ VALUES, abs=1e-4)


def test_without_the_rescaling_the_answer_is_another(show):  # noqa: F811
    figure = show(ONLINE)
    figure.radio("forget it").check()
    figure.slider("blocks read").focus()
    figure.press("End")
    answer = figure.numbers("kept")[2]
    assert abs(answer - softmax(np.array(SCORES)) @ VALUES) > 0.1


def test_laws_catch_by_mouse_and_by_keyboard(show):  # noqa: F811
    figure = show(KILLS)
    assert figure.data("left") == "2"
    figure.root.get_by_role("button", name="two").click()
    assert figure.data("left") == "1"
    figure.press("ArrowUp", "Enter")
    assert figure.data("left") == "0"
    figure.root.get_by_role("button", name="a: caught").click()
    assert figure.says == "a breaks 1: one."
