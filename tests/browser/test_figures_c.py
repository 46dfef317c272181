"""Steps, blocks and laws, walked by mouse and by keyboard in a browser."""

import json
import re
from itertools import combinations

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")
pytest.importorskip("axe_playwright_python")

from mha import laws, softmax
from tests.browser.test_figures import BROKEN as REPORTS
from tests.browser.test_figures import LEARNED as VERSIONS
from tests.browser.test_figures import show  # noqa: F401
from tests.browser.test_figures_b import swipe
from tests.figures.test_view_walks import MATRICES, WORDS, X, small_matrix

SCORES, VALUES = [1, 0.5, 3, 2, -1, 3.5, 0, 1], [1, 2, 3, 4, 5, 6, 7, 8]
STEPS = figures.steps(X, *MATRICES, 2, tokens=WORDS, is_causal=True, alt="Nine steps")
ONLINE = figures.online(SCORES, VALUES, list("abcdefgh"), alt="Blocks")
KILLS = figures.kills(small_matrix(), alt="Laws")
LEARNED = figures.learned(VERSIONS, REPORTS, alt="Versions")
STEPS_END = json.loads(STEPS.data)["Y"][-1][-1]


# ------------------------------------------------------------------ steps


def lit(figure):
    """Return the lit numbers, in the order of the page."""
    return figure.root.locator(".here .lit").all_inner_texts()


def as_shown(numbers):
    return [f"{x:.2f}".replace("-", "−") for x in numbers]


def test_the_steps_open_at_a_product_and_end_at_the_output(show):  # noqa: F811
    figure = show(STEPS)
    assert figure.data("step") == "3"
    forward = figure.root.get_by_role("button", name="next")
    for _ in range(6):
        forward.click()
    assert figure.data("step") == "9" and forward.is_disabled()
    assert figure.numbers("numbers")[-1] == pytest.approx(STEPS_END, abs=1e-4)


def test_a_number_tells_by_keyboard_how_it_comes_about(show):  # noqa: F811
    figure = show(STEPS)
    figure.root.get_by_role("button", name="next").focus()
    figure.press(*["Enter"] * 4, "Tab")
    figure.press("ArrowUp")
    assert figure.data("step") == "7"
    assert figure.says.startswith("“is” attends to “All”: e^") and "=" in figure.says


def test_a_number_lights_the_row_and_the_column_that_made_it(show):  # noqa: F811
    figure = show(STEPS)
    table = figure.root.locator(".here .made table").first
    table.get_by_role("button").nth(1 * 4 + 2).click()  # row 1, column 2 of Q
    W_Q = MATRICES[0]
    assert lit(figure) == as_shown([*W_Q[:, 2], *X[1]])
    made = f"{X[1] @ W_Q[:, 2]:.2f}".replace("-", "−")
    assert figure.says.startswith("“is” in column 3 of Q: ")
    assert figure.says.endswith(f" = {made}") and figure.says.count("·") == 5
    assert table.locator(".on").inner_text() == made


def test_a_weight_lights_its_whole_row_of_scores(show):  # noqa: F811
    figure = show(STEPS)
    figure.button("step 7: Softmax, row by row").click()
    second = figure.root.locator(".here .block").nth(1)
    second.get_by_role("button").nth(3).click()
    scores = json.loads(STEPS.data)["scaled"][1][1]
    assert lit(figure) == [*as_shown(scores[:2]), "−∞"]


@pytest.mark.parametrize("width", [800, 390])
def test_no_step_moves_the_page_below(show, width):  # noqa: F811
    figure = show(STEPS, width=width)
    live, heights = figure.root.locator(".live"), set()
    for step in range(1, 10):
        figure.root.get_by_role("button", name=f"step {step}:").click()
        heights.add(live.bounding_box()["height"])
        assert figure.page.evaluate("document.documentElement.scrollWidth") <= width
    assert len(heights) == 1


def test_what_earlier_steps_made_stays_in_sight(show):  # noqa: F811
    figure = show(STEPS)
    small = figure.root.locator(".map button")
    assert small.count() == 9
    assert figure.root.locator(".map .later").count() == 6
    figure.button("step 5: Scores: Q Kᵀ, divided by √dₖ").click()
    figure.button("step 2: Four matrices, learned").click()
    assert figure.root.locator(".map .later").count() == 4
    assert min(node.locator("svg").count() for node in small.all()) > 0


def test_a_number_has_the_colour_of_its_role(show):  # noqa: F811
    figure = show(STEPS, reduced_motion="reduce")
    colour = "node => getComputedStyle(node).color"
    found = [
        node.evaluate(colour) for node in figure.root.locator(".here .made table").all()
    ]
    assert found == ["rgb(11, 99, 197)", "rgb(176, 78, 0)", "rgb(0, 124, 102)"]


def test_the_weight_that_must_be_one_is_found(show):  # noqa: F811
    figure = show(STEPS)
    assert figure.aim == "○ Not found yet."
    figure.root.get_by_role("button", name="step 7:").click()
    figure.root.locator(".here .made button").first.click()
    assert figure.aim.startswith("✓ Reached. “All” may attend to itself only")


# ------------------------------------------------------------------ online


def test_the_blocks_open_where_the_old_sums_shrink(show):  # noqa: F811
    figure = show(ONLINE)
    assert figure.data("read") == "2"
    factor = np.exp(max(SCORES[:2]) - max(SCORES[:4]))
    assert f"the old sums were multiplied by {factor:.2f}" in figure.says
    marks = figure.root.locator(".key u")
    assert [mark.is_visible() for mark in marks.all()] == [True] * 2 + [False] * 6


def test_without_rescaling_the_figure_says_which_factor_is_missing(show):  # noqa: F811
    figure = show(ONLINE)
    figure.radio("forget it").check()
    factor = np.exp(max(SCORES[:2]) - max(SCORES[:4]))
    assert f"not multiplied by {factor:.2f}, as they should be" in figure.says


def test_all_sizes_are_tried_without_rescaling(show):  # noqa: F811
    figure = show(ONLINE)
    figure.radio("forget it").check()
    right = softmax(np.array(SCORES)) @ VALUES
    said = []
    for size in (1, 2, 3, 8):
        blocks = [SCORES[k : k + size] for k in range(0, 8, size)]
        largest = np.maximum.accumulate([max(block) for block in blocks])
        # without rescaling, a key keeps the factor of its own block
        factors = np.repeat(largest, size)[:8]
        powers = np.exp(np.array(SCORES) - factors)
        same = abs(powers @ VALUES / powers.sum() - right) < 0.005
        name = "all" if size == 8 else str(size)
        said.append(f"{name} {'right' if same else '✗ wrong'}")
        assert figure.aim.startswith("○")
        figure.radio(name).check()
        figure.slider("blocks read").press("End")
    assert figure.aim.startswith(f"✓ Reached. {', '.join(said)}. ")


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


# ------------------------------------------------------------------ kills

# version a is detected by "one" alone, and so on; two laws are enough
TABLE = np.array([[0, 0, 0], [1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 1]], dtype=bool)
LARGER = laws.KillMatrix(("right", *"abcd"), ("one", "two_words", "three"), TABLE)


def row(figure, name):
    return figure.root.get_by_role("rowheader", name=re.compile(f"^{name},"))


def test_the_table_is_one_stop_of_the_tab_key(show):  # noqa: F811
    figure = show(figures.kills(LARGER, alt="Laws"))
    assert figure.root.locator("[tabindex='0']").count() == 1
    figure.press("Tab")
    assert figure.page.evaluate("document.activeElement.role") == "rowheader"
    figure.press("Tab")
    assert not figure.page.evaluate("!!document.activeElement.closest('.mha-view')")


def test_laws_are_chosen_by_mouse_in_the_table_itself(show):  # noqa: F811
    figure = show(figures.kills(LARGER, alt="Laws"))
    assert figure.data("left") == "2"  # the strongest is chosen, one of three
    row(figure, "three").click()
    assert figure.data("left") == "1"
    assert figure.aim == "○ 1 wrong version is left with 2 laws."
    row(figure, "two words").click()
    assert figure.data("left") == "0"
    assert figure.aim == "○ All are detected by 3 laws. It can be done with 2."
    figure.root.get_by_role("row", name="three").get_by_role("gridcell").nth(1).click()
    assert figure.data("left") == "0"
    assert figure.aim.startswith("✓ Reached. All are detected by 2 laws, and fewer")


def test_laws_are_chosen_by_keyboard(show):  # noqa: F811
    figure = show(KILLS)
    assert figure.data("left") == "2"  # one law would catch all, so none is chosen
    figure.press("Tab", "ArrowDown", "Enter")
    assert figure.data("left") == "1"
    figure.press("ArrowUp", "Space")
    assert figure.data("left") == "0"
    selected = figure.root.locator("[aria-selected=true]")
    assert selected.count() == 2


def test_a_version_tells_which_laws_it_breaks(show):  # noqa: F811
    figure = show(KILLS)
    figure.press("Tab", "ArrowRight")
    assert figure.says == "a breaks 1: one."
    figure.press("ArrowRight", "ArrowUp")
    assert figure.says == "b breaks 2: one, two."
    focused = figure.page.evaluate("document.activeElement.ariaLabel")
    assert focused == "b: not detected"
    figure.root.get_by_role("columnheader", name="a:").click()
    assert figure.says == "a breaks 1: one."


def test_a_finger_slides_along_the_versions(show):  # noqa: F811
    figure = show(KILLS, has_touch=True, width=390)
    head = figure.root.get_by_role("columnheader", name="a:")
    head.tap()
    assert figure.says == "a breaks 1: one."
    swipe(figure, head, head.bounding_box()["width"], 0)
    assert figure.says == "b breaks 2: one, two."


def test_a_finger_chooses_a_law(show):  # noqa: F811
    figure = show(KILLS, has_touch=True, width=390)
    row(figure, "one").tap()
    assert figure.data("left") == "0"


@pytest.mark.parametrize("seed", range(3))
def test_the_fewest_laws_are_those_that_a_search_finds(show, seed):  # noqa: F811
    killed = np.random.default_rng(seed).random((11, 7)) < 0.3
    killed[~killed.any(1), 0] = True
    rows = ("right", *"abcdefghijk")
    whole = np.vstack([np.zeros(7, bool), killed])
    matrix = laws.KillMatrix(rows, tuple("ABCDEFG"), whole)
    figure = show(figures.kills(matrix, alt="Laws"))
    for law in "ABCDEFG":
        if row(figure, law).locator("..").get_attribute("aria-selected") == "false":
            row(figure, law).click()
    fewest = next(
        k
        for k in range(1, 8)
        if any(killed[:, c].any(1).all() for c in map(list, combinations(range(7), k)))
    )
    assert figure.data("left") == "0"
    assert figure.aim.endswith(f"It can be done with {fewest}.")


# ------------------------------------------------------------------ learned


def test_a_version_shows_its_maps_its_accuracy_and_its_laws(show):  # noqa: F811
    figure = show(LEARNED)
    assert (figure.data("layer"), figure.data("accuracy")) == ("0", "1.000")
    assert "4 of 4 rows have their largest weight on the anti-diagonal" in figure.says
    figure.radio("same W for Q and K").check()
    shades = figure.root.locator("rect").evaluate_all(
        "all => all.map(cell => cell.getAttribute('fill-opacity'))"
    )
    assert shades == ["1", "0", "0", "1"] * 2
    assert "0 of 4 rows" in figure.says
    assert "laws broken by the code: 2 (two, one law)" in figure.root.inner_text()


def test_a_repair_that_ruins_a_version_is_found(show):  # noqa: F811
    figure = show(LEARNED)
    assert figure.aim == "○ 0 of 1 found."
    figure.radio("repaired").check()
    assert figure.aim == "○ 0 of 1 found."
    figure.radio("same W for Q and K").check()
    assert figure.data("code") == "bug"
    figure.radio("repaired").check()
    assert figure.data("accuracy") == "0.224"
    assert figure.aim == "✓ Reached. 1 of 1 found."
