"""Pictures say what they show, follow the theme, and leave no trace."""

import base64
import functools
import inspect
import itertools
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import figures

pytest.importorskip("matplotlib")

import matplotlib as mpl
from matplotlib.figure import Figure

from figures.hull import convex_hull
from figures.picture import WIDTH, Picture
from figures.vectors import label_side
from mha import plot
from mha.plot.marks import Shape, Text
from mha.plot.matrices import SHADES, number
from mha.plot.palette import LIGHT, paint
from tests.figures.test_contrast import scene_of

A = np.array([[0.1, 0.9, 0.0], [0.5, 0.25, 0.25]])
QUERIES, KEYS = ["it", "was"], ["the", "dog", "ran"]
SAYS = "One sentence with the finding."
LABELS = {"xlabel": "width", "ylabel": "variance"}
PICTURES = {
    "heatmap": lambda alt: plot.heatmap(A, QUERIES, KEYS, alt=alt),
    "scores": lambda alt: plot.heatmap(A - 0.3, alt=alt, kind="scores"),
    "mask": lambda alt: plot.heatmap(A > 0.2, alt=alt, kind="mask"),
    "large": lambda alt: plot.heatmap(np.eye(37), alt=alt, mask=np.tri(37) > 0),
    "heatmaps": lambda alt: plot.heatmaps([(A, "right"), (A, "wrong")], alt=alt),
    "many": lambda alt: plot.heatmaps([(A, "a")] * 7, QUERIES, KEYS, alt=alt),
    "bars": lambda alt: figures.bars(A[0], KEYS, alt=alt),
    "groups of bars": lambda alt: figures.bars({"a": A[0], "b": A[1]}, KEYS, alt=alt),
    "lines": lambda alt: figures.lines(
        [2, 4, 8], {"a": [1, 2, 3], "b": ([1] * 3, [0] * 3, [2] * 3)}, **LABELS, alt=alt
    ),
    "logarithmic": lambda alt: figures.lines(
        [2, 16], {"a": [2, 16]}, **LABELS, alt=alt, xscale="log", yscale="log"
    ),
    "reference": lambda alt: figures.lines(
        [2, 4], {"a": [2, 4]}, **LABELS, alt=alt, reference={"b": 1.0, "c": [2, 4]}
    ),
    "histogram": lambda alt: figures.histogram({"a": A}, xlabel="weight", alt=alt),
    "vectors": lambda alt: figures.vectors(
        {"q": (1, 0), "k": (1, 1), "v": (0, 1)},
        alt=alt,
        roles={"q": "query"},
        angles=[("q", "k")],
        hull=["q", "k", "v"],
    ),
    "shadows": lambda alt: figures.shadows(
        [(("q", (1, 1)), ("k", (2, 0))), (("k", (2, 0)), ("q", (1, 1)))], alt=alt
    ),
    "points": lambda alt: figures.points(
        {"a": A.T, "b": A.T + 1}, **LABELS, alt=alt, names={"a": KEYS}
    ),
    "moves": lambda alt: figures.moves(
        {"halved": (A.T, A.T / 2), "turned": (A.T, -A.T)}, **LABELS, alt=alt
    ),
}
every_picture = pytest.mark.parametrize("name", PICTURES)


@functools.cache
def drawn(name):
    return PICTURES[name](SAYS)


def words(picture):
    """Return {text: (x, y)} of all that is written in a picture."""
    texts = ET.fromstring(picture.svg).iter("{http://www.w3.org/2000/svg}text")
    return {t.text: (float(t.get("x", 0)), float(t.get("y", 0))) for t in texts}


def ids(picture):
    return set(re.findall(r'\bid="([^"]+)"', picture.svg))


def painted(picture):
    """Return (role, opacity, number of cells) of every filled mark of a picture."""
    found = []
    for path in ET.fromstring(picture.svg).iter("{http://www.w3.org/2000/svg}path"):
        role = re.match(r"var\(--mha-(\w+)", path.get("fill", ""))
        if role:
            cells = path.get("d").count("M")
            found.append((role[1], float(path.get("fill-opacity", 1)), cells))
    return found


def pixels(picture):
    """Return the size of the PNG, which stands after its signature."""
    assert picture.png.startswith(b"\x89PNG")
    return [int.from_bytes(picture.png[k : k + 4], "big") for k in (16, 20)]


# ------------------------------------------------------------------ by hand


def test_queries_are_rows_and_keys_are_columns():
    """0.90 belongs to query "it", the upper row, and key "dog", the middle column."""
    at = words(drawn("heatmap"))
    for weight, query, key in (("0.90", "it", "dog"), ("0.50", "was", "the")):
        assert at[weight][0] == pytest.approx(at[key][0], abs=1)
        assert at[weight][1] == pytest.approx(at[query][1], abs=2)
    assert at["it"][1] < at["was"][1]
    assert at["the"][0] < at["dog"][0] < at["ran"][0]


def test_the_opacity_of_a_cell_is_its_weight():
    """Zero is the background and one the hue, whatever the theme."""
    expected = [("weight", weight, 1) for weight in A.ravel()]
    assert painted(drawn("heatmap")) == expected


def test_a_large_map_has_one_mark_for_each_shade():
    large = np.kron(np.array([[0.0, 0.5], [0.25, 1.0]]), np.ones((5, 5)))
    marks = painted(plot.heatmap(large, alt=SAYS))[: 3 * 1]
    assert marks == [("weight", shade, 5) for shade in (0.25, 0.5, 1.0)]


def test_scores_are_tinted_by_size_and_keep_their_sign():
    """The largest size is 4, so −4 and 4 have the same tint and 0 the faintest."""
    picture = plot.heatmap(np.array([[-4.0, 0.0, 4.0]]), alt=SAYS, kind="scores")
    assert painted(picture) == [("ink", a, 1) for a in (0.32, 0.05, 0.32)]
    assert {"−4", "0", "4"} <= set(words(picture))


def test_without_numbers_the_sign_has_a_hue():
    waves = np.array([[-2.0, 0, 2, 1, -1, 2, -2]])
    marks = painted(plot.heatmap(waves, alt=SAYS, kind="scores"))
    expected = [("amber", 1, 2), ("amber", 0.5, 1), ("ink", 0.5, 1), ("ink", 1, 2)]
    assert marks[:4] == expected
    assert len(marks) == 4 + 2 * SHADES  # the legend


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.125, "0.12"),
        (-1.5, "−1.50"),
        (-0.001, "0.00"),
        (-np.inf, "−∞"),
        (np.nan, "nan"),
        (1e6, "1000000.00"),
    ],
)
def test_cells_hold_two_decimals(value, text):
    assert number(value, digits=2) == text


def test_whole_scores_need_no_decimals():
    S = np.array([[5.0, -3.0, -np.inf]])
    whole, broken = (plot.heatmap(x, alt=SAYS, kind="scores") for x in (S, S / 2))
    assert {"5", "−3", "−∞"} <= set(words(whole))
    assert {"2.50", "−1.50"} <= set(words(broken))


@pytest.mark.parametrize("panels", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("kind", "value"), [("weights", 0.57), ("scores", -1.25), ("scores", -12.0)]
)
def test_a_number_has_room_in_its_cell(kind, value, panels):
    """A digit is a little more than half as wide as high."""
    shown = [(np.full((2, 5), value), "panel")] * panels
    scene = scene_of(plot.heatmaps, shown, ["a long name"] * 2, kind=kind, alt=SAYS)
    pairs = [
        (cell, text)
        for cell, text in itertools.pairwise(scene.marks)
        if isinstance(cell, Shape) and cell.fill and isinstance(text, Text)
    ]
    assert len(pairs) == 10 * panels
    for cell, text in pairs:
        across = np.ptp([x for x, _ in cell.lines[0]])
        assert 0.58 * text.size * len(text.words) <= across + 0.5
        assert text.size > 8.9


def test_a_tight_cell_leaves_out_what_is_not_needed():
    panels = [(np.array([[0.5, 1.0, 0.25, 0.0]]), "weights")] * 4
    names = ["a long name of a row"]
    assert {".50", "1", ".25", "0"} <= set(
        words(plot.heatmaps(panels, names, alt=SAYS))
    )


def test_numbers_stand_in_maps_up_to_six_by_six():
    small, large = (plot.heatmap(np.full((n, n), 0.5), alt=SAYS) for n in (6, 7))
    assert small.svg.count(">0.50<") == 36
    assert ">0.50<" not in large.svg


def test_a_larger_map_has_a_legend_from_zero_to_one():
    picture = plot.heatmap(np.full((7, 7), 0.5), alt=SAYS)
    assert {"weight", "0", "1.00"} <= set(words(picture))


def test_the_legend_says_what_a_number_is():
    waves = np.full((7, 7), 0.5)
    picture = plot.heatmap(waves, alt=SAYS, kind="scores", unit="height")
    assert "height" in words(picture) and "score" not in words(picture)


def test_the_shares_of_bars_are_written_above_them():
    assert {"0.10", "0.90", "0.00", *KEYS} <= set(words(drawn("bars")))


def test_the_angle_between_the_axes_is_90_degrees():
    tips = {"q": (2, 0), "k": (0, 3), "v": (-1, -1)}
    angles = [("q", "k"), ("v", "q")]
    assert {"90°", "135°"} <= set(words(figures.vectors(tips, angles=angles, alt=SAYS)))


def test_an_angle_is_the_smaller_of_the_two():
    tips = {"up": (-1, 1), "down": (-1, -1)}
    for pair in (("up", "down"), ("down", "up")):
        assert "90°" in words(figures.vectors(tips, angles=[pair], alt=SAYS))


def test_a_shadow_times_the_length_below_it_is_the_dot_product():
    assert {"1 × 2 = 2", "1.41 × 1.41 = 2"} <= set(words(drawn("shadows")))
    pairs = [(("q", (-3, 5)), ("k", (2, 0))), (("q", (0, 7)), ("k", (2, 0)))]
    written = words(figures.shadows(pairs, alt=SAYS))
    assert {"-3 × 2 = -6", "0 × 2 = 0"} <= set(written)


@pytest.mark.parametrize(
    ("other", "side"),
    [
        ((0, 3), (1, 0)),  # elsewhere: ahead of the tip
        ((0.5, 0), (1, 0)),  # shorter: ahead as well
        ((3, 0), (0, 1)),  # right behind the tip: above it
        ((3, 0.2), (0, -1)),  # passing above: below it
        ((3, -0.2), (0, 1)),
    ],
)
def test_a_name_keeps_clear_of_longer_arrows(other, side):
    np.testing.assert_array_equal(label_side((1, 0), [(1, 0), other]), side)


@pytest.mark.parametrize("tip", [(2.4, -0.4), (0.3, 0.7), (-1.1, 0.1), (0, 0)])
def test_an_arrow_does_not_crowd_itself(tip):
    ahead = np.divide(tip, np.linalg.norm(tip) or 1)
    np.testing.assert_array_equal(label_side(tip, [tip]), ahead)


def test_the_hull_of_a_square_and_its_middle_is_the_square():
    square = [(0, 0), (1, 0), (1, 1), (0, 1)]
    np.testing.assert_array_equal(convex_hull([*square, (0.5, 0.5)]), square)


def test_the_hull_of_points_on_a_line_is_its_ends():
    np.testing.assert_array_equal(
        convex_hull([(0, 0), (1, 1), (2, 2)]), [(0, 0), (2, 2)]
    )


def test_the_hull_of_one_point_is_the_point():
    np.testing.assert_array_equal(convex_hull([(3, 5), (3, 5)]), [(3, 5)])


# ------------------------------------------------------------------ laws


@every_picture
def test_a_picture_says_what_it_shows(name):
    alt = 'Weights "a" & <b>: é.'
    picture = PICTURES[name](f"  {alt} ")
    root = ET.fromstring(picture.svg)
    assert (root.get("role"), root.get("aria-label")) == ("img", alt)
    assert repr(picture) == f"Picture: {alt}"


@every_picture
def test_a_picture_comes_for_screen_and_for_paper(name):
    picture = drawn(name)
    bundle = picture._repr_mimebundle_()
    assert list(bundle) == ["text/plain", "image/svg+xml", "image/png"]
    assert bundle["image/svg+xml"] == picture.svg
    assert base64.b64decode(bundle["image/png"]) == picture.png


@every_picture
def test_a_picture_is_drawn_the_same_every_time(name):
    first, second = drawn(name), PICTURES[name](SAYS)
    assert first.svg == second.svg
    assert first.png == second.png


@every_picture
def test_a_picture_leaves_every_colour_to_the_page(name):
    """What is left is what a page shows that says nothing: the light theme."""
    svg = drawn(name).svg
    assert "currentColor" in svg or "var(--mha-ink" in svg
    assert set(re.findall(r"var\(--mha-(\w+)", svg)) <= {*LIGHT, "ground"}
    assert re.findall(r"#[0-9a-fA-F]{6}", re.sub(r"var\([^)]*\)", "", svg)) == []


@every_picture
def test_a_picture_styles_nothing_but_itself(name):
    svg = drawn(name).svg
    assert "<style" not in svg
    assert "DejaVu" not in svg.partition(">")[2]


@every_picture
def test_a_picture_is_at_most_six_inches_wide(name):
    picture = drawn(name)
    width = float(ET.fromstring(picture.svg).get("viewBox").split()[2])
    assert width <= 72 * WIDTH + 4
    assert pixels(picture)[0] <= 110 * WIDTH + 6


@every_picture
def test_a_picture_stays_small(name):
    picture = drawn(name)
    assert len(picture.svg) < 60_000
    assert len(picture.png) < 120_000


def test_pictures_share_a_page_without_sharing_ids():
    found = [own for name in PICTURES for own in ids(drawn(name))]
    assert found
    assert len(found) == len(set(found))


@every_picture
def test_a_picture_refers_to_its_own_ids_only(name):
    picture = drawn(name)
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', picture.svg))
    assert used == ids(picture)


def test_the_settings_of_the_reader_neither_change_nor_matter():
    with mpl.rc_context({"font.size": 30, "xtick.major.size": 90}):
        before = dict(mpl.rcParams)
        assert PICTURES["lines"](SAYS).svg == drawn("lines").svg
        assert dict(mpl.rcParams) == before


def test_drawing_needs_no_pyplot():
    code = (
        "import sys, figures; figures.bars([1], ['a'], alt='x.'); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    book = Path(figures.__file__).parents[1]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=book)


def test_the_data_stay_untouched():
    S = np.array([[-np.inf, 1.0], [2.0, np.nan]])
    before = S.copy()
    plot.heatmap(S, alt=SAYS, kind="scores", mask=np.array([[True, False]] * 2))
    np.testing.assert_array_equal(S, before)


def masked(picture):
    """Return how many masked cells are drawn one by one."""
    stroke = f'stroke="{paint("muted")}"'
    return sum(stroke in mark for mark in re.findall(r"<path[^>]*>", picture.svg))


def test_a_masked_cell_is_hatched_and_an_open_one_is_not():
    for kind in ("mask", "weights"):
        cells = np.array([[True, False, True]])
        A = cells if kind == "mask" else cells / 2
        picture = plot.heatmap(A, alt=SAYS, kind=kind, mask=cells)
        assert masked(picture) == 1 + (kind == "mask")  # the legend has one, too


def test_a_masked_cell_that_has_a_weight_shows_it():
    """That is what a leaking mask looks like."""
    cells = np.array([[True, False, False]])
    picture = plot.heatmap(np.array([[0.5, 0.5, 0.0]]), alt=SAYS, mask=cells)
    assert masked(picture) == 2
    assert picture.svg.count(">0.50<") == 2 and ">0.00<" not in picture.svg


def test_a_score_of_minus_infinity_counts_as_masked():
    S = np.array([[0.5, -np.inf]])
    assert masked(plot.heatmap(S, alt=SAYS, kind="scores")) == 1


def test_masked_cells_of_a_large_map_share_their_strokes():
    """A causal mask of 37 words has one stroke for each of its 71 diagonals."""
    picture = plot.heatmap(np.tri(37) > 0, alt=SAYS, kind="mask")
    strokes = re.search(
        rf'd="([^"]+)" fill="none" stroke="{re.escape(paint("muted"))}"', picture.svg
    )[1]
    assert strokes.count("M") == 71


def test_a_dollar_sign_is_a_dollar_sign():
    assert {"$5", "$6$"} <= set(words(figures.bars([1, 2], ["$5", "$6$"], alt=SAYS)))


def test_every_token_of_a_long_sentence_is_named():
    tokens = [f"token{k}" for k in range(13)]
    keys = [token.upper() for token in tokens]
    at = words(plot.heatmaps([(np.eye(13), "head")] * 4, tokens, keys, alt=SAYS))
    assert {*tokens, *keys} <= set(at)
    lines = sorted(at[token][1] for token in tokens)
    assert min(np.diff(lines)) > 9  # the size of the type: no name covers another


@settings(max_examples=10)
@given(
    hnp.arrays(float, st.tuples(*[st.integers(1, 5)] * 2), elements=st.floats(-9, 9)),
)
def test_any_scores_can_be_drawn(S):
    assert plot.heatmap(S, alt=SAYS, kind="scores").alt == SAYS


@settings(max_examples=50)
@given(st.lists(st.tuples(*[st.integers(-9, 9)] * 2), min_size=1, max_size=11))
def test_no_point_lies_outside_its_hull(points):
    corners = convex_hull(points)
    following = np.roll(corners, -1, axis=0)
    for p in np.array(points):
        (ax, ay), (bx, by) = (following - corners).T, (p - corners).T
        assert np.all(ax * by - ay * bx >= 0)


# ------------------------------------------------------------------ refusals


@every_picture
def test_a_picture_without_alt_text_is_refused(name):
    with pytest.raises(ValueError, match="alt must say"):
        PICTURES[name]("")


@pytest.mark.parametrize("alt", [" ", None, 3])
def test_alt_text_must_say_something(alt):
    with pytest.raises(ValueError, match="alt must say"):
        Picture(Figure(), alt)


@pytest.mark.parametrize("name", plot.__all__[1:])
def test_alt_is_a_keyword_that_must_be_given(name):
    parameter = inspect.signature(getattr(plot, name)).parameters["alt"]
    assert parameter.kind is parameter.KEYWORD_ONLY
    assert parameter.default is parameter.empty


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plot.heatmap(A[0], alt=SAYS), r"\(n_q, n_k\), got \(3,\)"),
        (lambda: plot.heatmap(A[:0], alt=SAYS), r"got \(0, 3\)"),
        (lambda: plot.heatmap(A, KEYS, KEYS, alt=SAYS), "rows has 3 names for 2 rows"),
        (lambda: plot.heatmap(A, None, QUERIES, alt=SAYS), "cols has 2 names for 3"),
        (lambda: plot.heatmap(A, alt=SAYS, kind="map"), "kind must be one of"),
        (lambda: plot.heatmap(A * 2, alt=SAYS), "between 0 and 1, got 0 to 1.8"),
        (lambda: plot.heatmap(-A, alt=SAYS), "between 0 and 1"),
        (lambda: plot.heatmap(A, alt=SAYS, kind="mask"), "must be boolean"),
        (lambda: plot.heatmap(A, alt=SAYS, mask=A), "mask must be boolean"),
        (
            lambda: plot.heatmap(A, alt=SAYS, mask=np.ones(2, bool)),
            r"mask of shape \(2,\) does not fit \(2, 3\)",
        ),
        (
            lambda: plot.heatmaps([(A, ""), (A.T, "")], alt=SAYS),
            r"share a shape, got \(2, 3\) and \(3, 2\)",
        ),
        (
            lambda: plot.heatmaps([(A, "")] * 2, alt=SAYS, mask=[None]),
            "mask holds 1 masks for 2 panels",
        ),
        (
            lambda: figures.bars([1, 2], KEYS, alt=SAYS),
            "labels has 3 names for 2 values",
        ),
        (lambda: figures.bars(A, QUERIES, alt=SAYS), r"p must be a vector.*\(2, 3\)"),
        (
            lambda: figures.bars({"a": [1, 2, 3], "b": [1, 2]}, KEYS, alt=SAYS),
            "labels has 3 names for 2 values",
        ),
        (
            lambda: figures.lines([1, 2], {"loss": [1, 2, 3]}, **LABELS, alt=SAYS),
            "loss has 3 values, expected 2",
        ),
        (
            lambda: figures.lines([1, 2], {}, **LABELS, alt=SAYS, reference={"r": [1]}),
            "r has 1 values, expected 2",
        ),
        (
            lambda: figures.histogram({}, xlabel="x", alt=SAYS),
            "values must hold numbers",
        ),
        (
            lambda: figures.histogram({"a": []}, xlabel="x", alt=SAYS),
            r"none for \['a'\]",
        ),
        (
            lambda: figures.vectors({"q": (1, 2, 3)}, alt=SAYS),
            "q has 3 values, expected 2",
        ),
        (
            lambda: figures.vectors({"q": (1, 2)}, alt=SAYS, angles=[("q", "k")]),
            r"'k' is not one of \['q'\]",
        ),
        (
            lambda: figures.vectors({"q": (1, 2)}, alt=SAYS, roles={"q": "keys"}),
            "roles: 'keys' is not one of",
        ),
        (lambda: figures.shadows([], alt=SAYS), "at least one pair"),
        (
            lambda: figures.shadows([(("q", (1, 2)), ("k", (0, 0)))], alt=SAYS),
            "k has length 0",
        ),
        (
            lambda: figures.points({"a": A}, **LABELS, alt=SAYS),
            r"a must have shape \(n, 2\), got \(2, 3\)",
        ),
        (
            lambda: figures.points(
                {"a": A.T}, **LABELS, alt=SAYS, names={"a": QUERIES}
            ),
            "names has 2 names for 3 points",
        ),
        (
            lambda: figures.points({"a": A.T}, **LABELS, alt=SAYS, names={"b": KEYS}),
            "names: 'b' is not one of",
        ),
        (lambda: figures.moves({}, **LABELS, alt=SAYS), "at least one pair"),
        (
            lambda: figures.moves({"a": (A.T, A.T[:2])}, **LABELS, alt=SAYS),
            r"a must hold .* got \(3, 2\) and \(2, 2\)",
        ),
        (
            lambda: figures.moves({"a": (A, A)}, **LABELS, alt=SAYS),
            r"one shape \(n, 2\), got \(2, 3\)",
        ),
    ],
)
def test_misfits_are_refused_by_name_and_number(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_numbers_of_one_digit_are_written_into_three_tight_maps():
    ones = np.ones((4, 4))
    picture = plot.heatmaps(
        [(ones, "a"), (ones, "b"), (ones, "c")],
        list("abcd"),
        list("abcd"),
        kind="scores",
        alt="Three maps of ones.",
    )
    assert picture.svg.count(">1</text>") == 48
