"""Dragons, heads and the plane, moved by mouse, finger and keyboard in a browser."""

import json

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")
pytest.importorskip("axe_playwright_python")

import mha
from mha import zoo
from tests.browser.test_figures import Figure, agree, middle, show  # noqa: F401

WORDS = ["dog", "food", "it", "hungry"]
QUERY, KEYS = np.array([2.0, 1.0]), np.array([[2.0, 1], [0, 0], [1, 1], [1, 2]])
VALUES = np.array([[2.0, 0], [0, 2], [1, 1], [1, 0]])
CELLS = np.arange(4 * 6).reshape(4, 6)
PLANE = figures.plane(QUERY, KEYS, VALUES, WORDS, asks="it", alt="A query to drag")
DRAGONS = figures.dragons(
    np.random.default_rng(5).normal(size=(160, 3)),
    [[0.4, 0.2], [0.2, 0.8]],
    alt="Two dragons and a sheep",
)
HEADS = figures.heads(CELLS, WORDS, n_heads=3, alt="24 numbers in heads")
NIGHTS = np.array(json.loads(DRAGONS.data)["nights"])


def drag(figure, node, right, down):
    """Press on a mark, and pull it that many pixels."""
    x, y = middle(node)
    figure.page.mouse.move(x, y)
    figure.page.mouse.down()
    figure.page.mouse.move(x + right, y + down, steps=3)
    figure.page.mouse.up()


def swipe(figure, node, right, down):
    """The same with a finger."""
    x, y = middle(node)
    send = figure.page.context.new_cdp_session(figure.page).send
    for kind, at in (
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x + right / 2, "y": y + down / 2}]),
        ("touchMove", [{"x": x + right, "y": y + down}]),
        ("touchEnd", []),
    ):
        send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})


@pytest.mark.parametrize("figure", [PLANE, DRAGONS], ids=["plane", "dragons"])
def test_marks_are_large_enough_for_a_finger(show, figure):  # noqa: F811
    shown = show(figure, width=390)
    for mark in shown.root.locator(".handle").all():
        if mark.is_visible():
            box = mark.bounding_box()
            assert min(box["width"], box["height"]) >= 24


# ------------------------------------------------------------------ plane


def expect_attention(figure):
    """Scores, weights, output and table are the package's for this query and keys."""
    query = figure.numbers("query").reshape(1, 2)
    keys = figure.numbers("keys").reshape(4, 2)
    scores = mha.dot_product_scores(query, keys)
    Y, A = mha.scaled_dot_product_attention(query, keys, VALUES, return_weights=True)
    agree(figure.numbers("scores"), scores)
    agree(figure.numbers("weights"), A)
    agree(figure.numbers("output"), Y)
    rows = figure.root.locator("tr").all_inner_texts()[1:]
    for row, score, weight in zip(rows, scores[0], A[0], strict=True):
        found = [float(x.replace("−", "-")) for x in row.split()[1:]]
        expected = [score, score / 2**0.5, weight]
        np.testing.assert_allclose(found, expected, atol=0.00501)


def test_the_plane_starts_with_the_numbers_of_the_chapter(show):  # noqa: F811
    figure = show(PLANE)
    expect_attention(figure)
    assert "“dog” leads with 0.57. “it” receives (1.55, 0.17)" in figure.says


def test_the_query_follows_the_mouse_and_stays_in_the_picture(show):  # noqa: F811
    figure = show(PLANE)
    query = figure.slider("query of it")
    drag(figure, query, -150, 60)
    assert (figure.numbers("query") < 0).all()
    expect_attention(figure)
    assert "“food” leads" in figure.says
    drag(figure, query, -900, 900)
    agree(figure.numbers("query"), [-4, -4])
    expect_attention(figure)


def test_a_mark_lands_where_it_is_dropped(show):  # noqa: F811
    figure = show(PLANE)
    query = figure.slider("query of it")
    x, y = middle(query)
    drag(figure, query, -150, 60)
    assert middle(query) == pytest.approx((x - 150, y + 60), abs=1.5)


def test_query_and_keys_follow_the_keyboard(show):  # noqa: F811
    figure = show(PLANE)
    figure.slider("query of it").focus()
    figure.press("ArrowLeft", "ArrowLeft", "ArrowUp")
    agree(figure.numbers("query"), [1.8, 1.1])
    figure.slider("key of it").focus()
    figure.press("ArrowRight", "ArrowDown")
    agree(figure.numbers("keys"), [2, 1, 0, 0, 1.1, 0.9, 1, 2])
    expect_attention(figure)
    figure.button("back to the start").press("Enter")
    agree(figure.numbers("query"), QUERY)
    agree(figure.numbers("keys"), KEYS)
    label = "2.00, 1.00"
    assert figure.slider("query of it").get_attribute("aria-valuetext") == label


def test_the_query_follows_a_finger(show):  # noqa: F811
    figure = show(PLANE, has_touch=True, width=390)
    swipe(figure, figure.slider("query of it"), -120, 90)
    assert (figure.numbers("query") < [1, 0]).all()
    expect_attention(figure)


def test_the_key_in_the_middle_never_leads(show):  # noqa: F811
    figure = show(PLANE)
    query = figure.slider("query of it")
    for right, down in ((-80, -90), (-90, 80), (30, 150), (160, -20), (-20, -80)):
        drag(figure, query, right, down)
        assert figure.numbers("weights")[2] <= 0.25 + 1e-4


def overlap(one, other):
    return all(
        one[start] < other[start] + other[size]
        and other[start] < one[start] + one[size]
        for start, size in (("x", "width"), ("y", "height"))
    )


@pytest.mark.parametrize("query", [(2, 1), (2, 2), (0, 0), (-1, 3)])
def test_the_query_hides_no_key_and_no_name_hides_another(show, query):  # noqa: F811
    figure = show(
        figures.plane(query, KEYS, VALUES, WORDS, asks="it", alt="A query to drag")
    )
    knob = middle(figure.slider("query of it"))
    for word in WORDS:
        x, y = middle(figure.slider(f"key of {word}"))
        assert np.hypot(knob[0] - x, knob[1] - y) > 24
        at = "([x, y]) => document.elementFromPoint(x, y).closest('.handle').ariaLabel"
        assert figure.page.evaluate(at, [x, y]) == f"key of {word}"
    for part in figure.root.locator(".planes svg").all():
        names = [node.bounding_box() for node in part.locator("text.name").all()]
        names = [box for box in names if box and box["width"]]
        marks = [node.bounding_box() for node in part.locator(".handle path").all()]
        assert len(names) >= 4
        for k, name in enumerate(names):
            assert not any(overlap(name, other) for other in [*names[:k], *marks])


def test_nine_tenths_for_dog_need_a_longer_query(show):  # noqa: F811
    figure = show(PLANE)
    task = figure.root.locator(".task").inner_text()
    assert "more than 0.90 of its attention to \u2068“dog”" in task
    assert figure.aim.startswith("○ “dog” has 0.57")
    figure.slider("query of it").focus()
    figure.press(*["ArrowRight"] * 20)
    assert figure.aim.startswith("○")
    figure.press(*["ArrowDown"] * 20)
    agree(figure.numbers("query"), [4, -1])
    assert figure.numbers("weights")[0] > 0.9
    assert figure.aim.startswith("✓ Reached. q is 4.1 long now and was 2.2")


# ------------------------------------------------------------------ dragons


def expect_knowledge(figure, heads):
    """What is known is what least squares finds on the nights that are shown."""
    A = figure.numbers("looks").reshape(heads, 3)
    home = NIGHTS @ A.T
    guess = home @ np.linalg.lstsq(home, NIGHTS, rcond=1e-9)[0]
    error, total = ((NIGHTS - guess) ** 2).sum(0), (NIGHTS**2).sum(0)
    close = {"rtol": 0, "atol": 0.5e-3}
    np.testing.assert_allclose(figure.numbers("known"), 1 - error / total, **close)
    r2 = 1 - error[:2].sum() / total[:2].sum()
    np.testing.assert_allclose(figure.numbers("r2"), r2, **close)
    assert f"R² of both is {r2:.2f}" in figure.says
    return r2


def test_no_place_of_one_look_passes_one_half(show):  # noqa: F811
    figure = show(DRAGONS)
    mark, found = figure.slider("head 1: weights"), []
    for right, down in ((9, 0), (-9, -9), (4, 30), (140, 5), (-290, 90), (7, -270)):
        drag(figure, mark, right, down)
        found.append(expect_knowledge(figure, 1))
        assert found[-1] <= 0.5 + 1e-4
    assert max(found) == pytest.approx(0.5, abs=1e-3)
    assert figure.numbers("best") == pytest.approx(max(found), abs=1e-3)
    assert figure.aim.startswith("○ Largest so far: 0.50 with one head")
    figure.radio("two").check()
    expect_knowledge(figure, 2)
    assert figure.aim.startswith("✓ Reached. Two heads: 1.00")


def test_what_the_marks_mean_stands_outside_of_the_cloud(show):  # noqa: F811
    figure = show(DRAGONS)
    legend = figure.root.locator(".legend").bounding_box()
    cloud = figure.root.locator(".night").bounding_box()
    assert legend["y"] + legend["height"] <= cloud["y"]
    triangle = figure.root.locator(".edge").bounding_box()
    assert min(triangle["width"], triangle["height"]) > 180


def test_a_look_that_spares_the_sheep_knows_one_half_everywhere(show):  # noqa: F811
    figure = show(DRAGONS)
    figure.slider("head 1: weights").focus()
    figure.press(*["ArrowUp"] * 30)
    for _ in range(12):
        figure.press("ArrowRight", "ArrowRight")
        assert figure.numbers("looks")[2] == 0
        assert expect_knowledge(figure, 1) == pytest.approx(0.5, abs=2e-4)


def test_two_looks_know_all_until_they_are_equal(show):  # noqa: F811
    figure = show(DRAGONS)
    figure.radio("two").check()
    expect_knowledge(figure, 2)
    figure.slider("head 1: weights").focus()
    figure.press(*["ArrowUp"] * 30)
    sliders = figure.root.locator("input[type=range]")
    sliders.nth(0).fill("0.71")
    sliders.nth(1).fill("0.7")
    assert expect_knowledge(figure, 2) == pytest.approx(1, abs=2e-4)
    assert "W_O needs numbers up to 71.0" in figure.says
    sliders.nth(1).press("ArrowRight")
    assert figure.data("rank") == "1" and "equal: one average" in figure.says
    assert expect_knowledge(figure, 2) == pytest.approx(0.5, abs=2e-4)
    sliders.nth(1).press("ArrowRight")
    assert expect_knowledge(figure, 2) == pytest.approx(1, abs=2e-4)


def test_numbers_that_unmix_are_those_of_the_inverse(show):  # noqa: F811
    figure = show(DRAGONS)
    figure.radio("two").check()
    figure.root.locator("input[type=range]").nth(0).fill("0.6")
    figure.slider("head 1: weights").focus()
    figure.press(*["ArrowUp"] * 40)  # to the corner: all to the right dragon
    figure.press("ArrowRight", "ArrowRight")
    A = figure.numbers("looks").reshape(2, 3)[:, :2]
    largest = np.abs(np.linalg.inv(A)).max()
    assert f"W_O needs numbers up to {largest:.1f}" in figure.says


def test_the_sheep_keeps_its_share_when_a_slider_moves(show):  # noqa: F811
    figure = show(DRAGONS)
    figure.root.locator("input[type=range]").nth(0).fill("0.25")
    agree(figure.numbers("looks"), [0.25, 0.35, 0.4])
    expect_knowledge(figure, 1)
    mark = figure.slider("head 1: weights")
    assert mark.get_attribute("aria-valuetext") == "0.25, 0.35"
    figure.root.locator("input[type=range]").nth(0).fill("0.9")
    agree(figure.numbers("looks"), [0.9, 0, 0.1])


def test_a_slider_shows_the_weight_that_the_words_tell(show):  # noqa: F811
    figure = show(DRAGONS)
    drag(figure, figure.slider("head 1: weights"), 30, -20)
    first = figure.numbers("looks")[0]
    sliders = figure.root.locator("input[type=range]")
    assert sliders.nth(0).input_value() == f"{first:g}"
    assert f"Head 1 gives {first:.2f} to" in figure.says


def test_a_look_at_the_sheep_alone_knows_no_dragon(show):  # noqa: F811
    figure = show(DRAGONS)
    figure.slider("head 1: weights").focus()
    figure.press(*["ArrowLeft"] * 25, *["ArrowDown"] * 15)
    agree(figure.numbers("looks"), [0, 0, 1])
    assert expect_knowledge(figure, 1) == pytest.approx(0, abs=2e-4)


def test_dragons_follow_a_finger(show):  # noqa: F811
    figure = show(DRAGONS, has_touch=True, width=390)
    swipe(figure, figure.slider("head 1: weights"), 180, -20)
    assert figure.numbers("looks")[0] == 1
    expect_knowledge(figure, 1)


# ------------------------------------------------------------------ heads


def goes(way, n_heads):
    """Return the places of the tape as the heads hold them."""
    return (
        mha.split_heads(CELLS, n_heads)
        if way != "reshape only"
        else (CELLS.reshape(n_heads, 4, -1))
    )


WAYS = ["reshape and swap", "reshape only", "cut the input"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_heads", [1, 2, 3, 6])
def test_every_number_goes_where_numpy_puts_it(show, way, n_heads):  # noqa: F811
    figure = show(HEADS)
    figure.radio(way).check()
    figure.radio(str(n_heads)).check()
    heads, right = goes(way, n_heads), mha.split_heads(CELLS, n_heads)
    np.testing.assert_array_equal(figure.numbers("heads"), heads.ravel())
    assert int(figure.data("held")) == (heads == right).sum()
    owner = np.empty(24, int)
    owner[right] = np.arange(n_heads)[:, None, None]
    holder = np.arange(n_heads)[:, None, None]
    assert int(figure.data("strays")) == (owner[heads] != holder).sum()
    crossed = figure.root.locator("table .lost").count()
    assert crossed == (heads != right).sum()


@pytest.mark.parametrize("way", WAYS[:2])
def test_one_number_is_followed_with_its_indices(show, way):  # noqa: F811
    figure = show(HEADS)
    figure.radio(way).check()
    for place in (0, 8, 23):
        figure.button(f"{place}: {WORDS[place // 6]}, column {place % 6}").click()
        (index,) = np.argwhere(goes(way, 3) == place)
        assert figure.data("index") == " ".join(map(str, index))
        steps = figure.root.locator(".steps").inner_text()
        assert f"{place // 6}·6 + {place % 6} = {place} →" in steps
        assert f"[{', '.join(map(str, index))}]" in steps.splitlines()[-1]


def test_wrong_numbers_are_marked_by_more_than_a_colour(show):  # noqa: F811
    figure = show(HEADS)
    figure.radio("reshape only").check()
    sign = "node => getComputedStyle(node, '::after').content"
    for number in figure.root.locator("table .lost").all():
        assert number.evaluate(sign) == '"✗"'
    captions = figure.root.locator(".stage caption").all_inner_texts()
    assert captions[1:] == [f"lands in head {r}" for r in (1, 2, 3)]


def test_the_guess_is_answered_for_two_numbers_of_heads(show):  # noqa: F811
    figure = show(HEADS)
    assert figure.aim.startswith("○ Choose")
    figure.radio("reshape only").check()
    for n_heads, sign in ((3, "○"), (6, "✓ Reached.")):
        figure.radio(str(n_heads)).check()
        kept = (goes("reshape only", n_heads) == mha.split_heads(CELLS, n_heads)).sum()
        assert figure.aim.startswith(f"{sign} With {n_heads} heads {kept} of 24")


def test_heads_follow_the_keyboard(show):  # noqa: F811
    figure = show(HEADS)
    figure.radio("reshape and swap").focus()
    figure.press("ArrowRight", "Tab", "ArrowRight", "Tab")
    assert figure.data("way") == "reshape" and figure.data("n_heads") == "6"
    figure.press("ArrowDown", "ArrowRight")
    assert figure.data("place") == "7"
    (index,) = np.argwhere(goes("reshape only", 6) == 7)
    assert figure.data("index") == " ".join(map(str, index))


def test_a_number_is_chosen_wherever_it_stands(show):  # noqa: F811
    figure = show(HEADS, has_touch=True, width=390)
    figure.radio("reshape only").check()
    figure.root.locator(".tape .cell").nth(13).tap()
    assert figure.data("place") == "13"
    last = figure.root.locator(".stage").nth(1).locator(".cell").last
    last.click()
    assert figure.data("place") == "23"
    assert figure.root.locator("button[aria-pressed=true]").inner_text() == "23"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_heads", [2, 3])
def test_dark_cells_are_what_a_number_is_made_from(show, way, n_heads):  # noqa: F811
    figure = show(HEADS)
    figure.radio(way).check()
    figure.radio(str(n_heads)).check()
    member = zoo.input_split_before_projection if "input" in way else zoo.right
    X, W = np.random.default_rng(0).normal(size=(2, 6, 6))
    place = 15  # row 2, column 3
    figure.root.locator("button.cell").nth(place).click()
    dark = [
        "on" in (node.get_attribute("class") or "").split()
        for node in figure.root.locator(".words i").all()
    ]
    for q in range(24):
        moved = X[:4].copy()
        moved[q // 6, q % 6] += 1
        change = member.project(moved, W, n_heads) - member.project(X[:4], W, n_heads)
        assert (abs(change[2, 3]) > 1e-9) == dark[q]
