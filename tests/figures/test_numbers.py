"""What each figure of the book shows is what the package computes."""

import json
import re
import sys
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import figures
import mha
from chapters import LAWS
from figures import tables, ten, worked
from mha import laws, plot, zoo
from tests.figures.reading import figure_of, numbers, shows, words

house = sys.modules["figures.house"]  # the function has its name
rng = np.random.default_rng(5)
WORDS = ["dog", "food", "it", "hungry"]
SCORES = np.array([3.0, 2.0, 0.0, 1.0])
A = mha.softmax(rng.normal(size=(2, 3)))
X, BLOCKS = rng.integers(-3, 4, size=(3, 4)), rng.integers(-3, 4, size=(2, 4, 2))
H, W_O = rng.normal(size=(2, 3, 2)), rng.normal(size=(4, 3))
ADDED = [h @ w for h, w in zip(H, np.split(W_O, 2), strict=True)]
Q, K = np.array([2.0, 1.0]), np.array([0.5, 1.5])
SEEDS = {"right": [1.0, 0.998], "no_scale": [0.5, 0.75], "tied_query_key": [0.25, 0.5]}
LEARNED = {"right": {"maps": ["0ff0"]}, "no_scale": {"maps": ["00ff"]}}
EXAMS = {"cards\nlong": SEEDS, "letters": SEEDS}
TRACK = rng.normal(size=(3, 4, 5))
HALVES = [[Fraction(1, 2), Fraction(3, 8)], [Fraction(7, 8), Fraction(5, 8)]]
PARTS = dict.fromkeys(["X", "W_Q", "W_K", "W_V", "W_O", "Y"], HALVES)
PARTS |= {letter: [HALVES, HALVES] for letter in "QKVSAH"}
NEGATIVE = plot.heatmap([[-1.5, 2.25]], alt="x", kind="scores")
SPREADS = [float(f"{figures.charts.spread(tokens):.2g}") for tokens in TRACK]
PICTURES = {  # a picture, numbers that stand in it one after another, decimals
    "weights": (plot.heatmap(A, alt="x"), A, 2),
    "scores": (NEGATIVE, [-1.5, 2.25], 2),
    "exponentials": (figures.to_weights(SCORES, WORDS), np.exp(SCORES), 1),
    "shares": (figures.to_weights(SCORES, WORDS), mha.softmax(SCORES), 3),
    "product": (figures.fused(X, BLOCKS, "abc", follow=(2, 1)), X @ BLOCKS[1], 0),
    "a head adds": (
        figures.board(H, W_O, "abc", "xyz", names=["pq", "rs"], row=1, alt="x"),
        ADDED[0],
        2,
    ),
    "the board": (
        figures.board(H, W_O, "abc", "xyz", names=["pq", "rs"], row=1, alt="x"),
        sum(ADDED),
        2,
    ),
    "bars": (figures.bars(A[0], "abc", alt="x"), A[0], 2),
    "means": (figures.exam(EXAMS, alt="x"), [0.999, 0.625, 0.375], 3),
    "collapse": (figures.collapse({"x": TRACK}, "abcd", alt="x"), SPREADS, 9),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_figure_shows_the_numbers_that_are_computed(name):
    picture, expected, digits = PICTURES[name]
    if name == "collapse":  # one below each panel
        assert {f"{x:.2g}" for x in expected} <= set(words(picture))
    else:
        assert shows(picture, expected, digits)


ROTATED = [figures.planes.rotated(x, t) for x, t in ((Q, 3), (K, 5))]
CLOCK = mha.sinusoidal_positional_encoding(3, 4)[2]
SHADOW = Q @ K / np.linalg.norm(K)
WRITTEN = {  # a picture, and words that stand in it
    "a mask says True where it is open": (
        figures.batch([WORDS, ["it"]], alt="x"),
        {*WORDS, "pad", "True", "False"},
    ),
    "an angle in degrees": (
        figures.vectors({"a": (1, 0), "b": (0, 2)}, angles=[("a", "b")], alt="x"),
        {"90°", "a", "b"},
    ),
    "a shadow times a length": (
        figures.shadows([(("q", Q), ("k", K))], alt="x"),
        {f"{SHADOW:.3g} × {np.linalg.norm(K):.3g} = {Q @ K:.3g}"},
    ),
    "the score of a rotated pair": (
        figures.turns(Q, K, [(3, 5)], words=("it", "dog"), alt="x"),
        {f"score {ROTATED[0] @ ROTATED[1]:.2f}".replace("-", "−"), "dog at 5"},
    ),
    "the tips of a clock": (
        figures.clocks(WORDS[:3], alt="x"),
        {", ".join(f"{x:.2f}".replace("-", "−") for x in CLOCK[:2]), "position 2"},
    ),
    "fractions as they are given": (
        figures.sheet(PARTS, ["a", "b"], ["f", "g"], alt="x"),
        {"1/2", "3/8", "7/8", "5/8"},
    ),
    "what each version is called": (figures.learned(LEARNED, alt="x"), {"no scale"}),
    "small numbers in full": (
        figures.lines(
            [0.0001, 1], {"y": [1, 2]}, xlabel="x", ylabel="y", xscale="log", alt="x"
        ),
        {"0.0001"},
    ),
    "steps of a layer": (
        figures.paths({"pre": ["(", "layer norm", "attention", "+"]}, alt="x"),
        {"pre", "layer norm", "attention"},
    ),
    "axes of a block": (
        figures.blocks({"one": np.ones((2, 3, 5), bool)}, alt="x"),
        {"one", "batch", "token", "feature"},
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_figure_says(name):
    picture, expected = WRITTEN[name]
    assert expected <= set(words(picture))


def test_a_turn_of_both_keeps_the_score_and_the_alt_text_is_computed():
    other = [figures.planes.rotated(x, t) for x, t in ((Q, 10), (K, 12))]
    assert other[0] @ other[1] == pytest.approx(ROTATED[0] @ ROTATED[1])
    p = ", ".join(f"{x:.3f}" for x in mha.softmax(SCORES))
    assert figures.to_weights(SCORES, WORDS).alt.endswith(f"weights {p}.")
    number = (X @ BLOCKS[0])[2, 1]
    said = figures.fused(X, BLOCKS, "abc", follow=(2, 1)).alt
    assert f"The number {number:g} needs one row of X and one column of head 1" in said


# ------------------------------------------------------------------ charts

x = np.arange(1.0, 8)
BAND = (x**2, x**2 - 1, x**2 + 1)
STEPS = rng.choice([-1, 1], size=(3, 13))
CHARTS = {  # what draws, its arguments, and the data of its lines or points
    "lines": (
        lambda: figure_of(
            figures.lines, x, {"y": BAND}, xlabel="x", ylabel="y", alt="x."
        ),
        lambda ax: ax.lines[0].get_xydata(),
        np.stack([x, x**2], 1),
    ),
    "points": (
        lambda: figure_of(
            figures.points, {"a": H[0]}, xlabel="x", ylabel="y", alt="x."
        ),
        lambda ax: ax.collections[0].get_offsets(),
        H[0],
    ),
    "moves": (
        lambda: figure_of(
            figures.moves, {"a": (H[0], H[1])}, xlabel="x", ylabel="y", alt="x."
        ),
        lambda ax: ax.collections[0].get_segments(),
        np.stack([H[0], H[1]], 1),
    ),
    "walks": (
        lambda: figure_of(figures.walks, STEPS, alt="x."),
        lambda ax: np.array(ax.collections[0].get_segments())[:, -1, 1],
        STEPS.sum(1),
    ),
    "histogram": (
        lambda: figure_of(
            figures.histogram, {"a": [0, 0, 1, 2]}, bins=[0, 1, 2, 3], xlabel="x",
            alt="x.",
        ),
        lambda ax: ax.patches[0].get_data().values,
        [0.5, 0.25, 0.25],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_has_the_data_that_it_is_given(name):
    draw, found, expected = CHARTS[name]
    np.testing.assert_allclose(found(draw().axes[0]), expected)


def test_series_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="y must be 7 values"):
        figures.lines(x, {"y": [1, 2]}, xlabel="x", ylabel="y", alt="x.")


def test_a_hull_holds_its_points_and_a_name_keeps_clear_of_longer_arrows():
    corners = [(0, 0), (4, 0), (4, 4), (0, 4)]
    hull = figures.planes.convex_hull([*corners, (2, 2), (2, 0)])
    assert sorted(map(tuple, hull)) == sorted(corners)
    side = figures.planes.label_side((1, 1), [(3, 3.1)])
    assert side @ (1, 1) == pytest.approx(0, abs=1e-12) and side[0] > side[1]


# ------------------------------------------------------------------ the ten, the laws


def test_the_emblem_counts_the_laws_that_each_version_breaks():
    """Its numbers are computed: what the laws find, and what training has stored."""
    stored = json.loads(ten.STORE.read_text(encoding="utf-8"))["reverse"]
    for row in ten.rows():
        assert row.accuracy == min(stored[row.name])
    for row in ten.rows()[1:2]:
        found = (law.check(getattr(zoo, row.name)) for law in laws.ATTENTION)
        broken = {finding.law.slug for finding in found if finding.verdict == "broken"}
        assert broken == set(row.broken)
    counts = [str(len(row.broken) or "none") for row in ten.rows()]
    shown = words(figures.bugs())
    assert [text for text in shown if text == "none" or text.isdigit()][-11:] == counts
    assert shown.count("1.000") == 11
    assert f"breaks none of {len(laws.ATTENTION)} laws" in figures.bugs().alt


def test_the_emblem_groups_the_laws_by_their_chapters():
    numbers_above = [chapter for chapter, _ in ten._chapters(0, 1, 1)]
    assert numbers_above == sorted(numbers_above, key=int)
    places = dict(ten._places(0, 10, 3))
    assert list(places) == [law.slug for law in laws.ATTENTION]
    masks = [places[slug] for slug in LAWS["masks"].split() if slug in places]
    assert np.ptp(masks) == 10 * (len(masks) - 1)


@pytest.fixture(scope="module")
def matrix():
    some = [zoo.softmax_over_queries, zoo.mask_ignored, zoo.promotes_to_float64]
    return laws.kill_matrix(laws.ALL, [zoo.right, *some])


def test_every_broken_law_is_a_mark_and_is_counted(matrix):
    picture = figures.detected(matrix, alt="x")
    marks = picture.svg.count('fill="var(--mha-wrong')
    assert marks == np.sum(matrix.killed)
    expected = {law.slug: len(matrix.kills(law.slug)) for law in laws.ALL}
    shown = words(picture)
    for law, count in expected.items():
        assert shown[shown.index(law.replace("_", " ")) + 1] == str(count)


def test_laws_that_designs_break_are_listed_the_most_broken_first():
    table = {
        "a": {"x": "satisfied", "y": "broken on purpose", "z": "broken on purpose"},
        "b": {"x": "not asked", "y": "satisfied", "z": "broken on purpose"},
    }
    assert tables.broken(table) == ["z", "y"]
    shown = words(figures.exceptions(table, alt="x"))
    assert {"z", "y", "a", "b", "satisfied"} <= set(shown) and "x" not in shown


def test_a_table_of_marks_names_its_rows_and_sorts_encoders(matrix):
    shown = words(figures.encoders(matrix, alt="x"))
    assert {*matrix.rows, *matrix.columns, "broken", "satisfied"} <= set(shown)


def test_a_result_is_worse_or_better_only_if_all_its_seeds_are():
    right = [0.9, 1.0]
    for seeds, margin, expected in (
        ([0.7, 0.8], 0, "worse"), ([0.7, 0.95], 0, ""), ([0.88, 0.87], 0.05, ""),
        ([1.1, 1.2], 0, "better"),
    ):  # fmt: skip
        assert tables.verdict(seeds, right, margin) == expected


# ------------------------------------------------------------------ diagrams

SIZES = {"n": 5, "d_model": 13, "d_k": 7, "d_v": 11}


def shapes(picture):
    """Return all shapes that a diagram writes, with the sizes above or as numbers."""
    sides = (text.split("×") for text in words(picture) if "×" in text)
    named = ([re.sub(r"^d([mkv])", r"d_\1", s.strip()) for s in pair] for pair in sides)
    return {
        tuple(SIZES[s] if s in SIZES else int(s) for s in pair)
        for pair in named
        if all(s in SIZES or s.isdigit() for s in pair)
    }


def test_diagrams_show_the_shapes_that_the_package_has():
    n, d_model, d_k, d_v = SIZES.values()
    W_Q, W_V = np.ones((d_model, d_k)), np.ones((d_model, d_v))
    inputs = np.ones((n, d_model))
    Q, V = mha.linear(inputs, W_Q), mha.linear(inputs, W_V)
    Y, weights = mha.scaled_dot_product_attention(Q, Q, V, return_weights=True)
    factors = {inputs.shape, W_Q.shape, W_V.shape, Q.shape, V.shape}
    assert shapes(figures.one_head()) == factors | {weights.shape, Y.shape}


def test_the_lanes_have_the_shapes_of_the_encoder_of_chapter_14():
    written = " ".join(words(figures.lanes()))
    for shape in ("n × 384", "n × 32", "384 × 32", "384 × 384", "n × n"):
        assert shape in written
    assert 12 * 32 == 384


# ------------------------------------------------------------------ the house


@pytest.mark.parametrize("is_causal", [False, True])
def test_every_number_of_the_house_is_what_the_package_computes(is_causal):
    found = house.numbers(is_causal)
    W = [house.WEIGHTS[f"W_{letter}"] for letter in "QKVO"]
    Y, A = mha.multi_head_attention(
        house.X, *W, 2, is_causal=is_causal, return_weights=True
    )
    np.testing.assert_array_equal(found["A"], A)
    np.testing.assert_array_equal(found["Y"], Y)
    N = mha.encoder_layer(house.X, house.WEIGHTS, 2, is_causal=is_causal)
    np.testing.assert_array_equal(found["N"], N)
    np.testing.assert_array_equal(found["Q"] @ found["K"], found["S"])
    np.testing.assert_array_equal(found["A"] @ found["V"], found["H"])


@pytest.mark.parametrize("layout", ["wide", "narrow"])
def test_the_house_shows_every_matrix_and_stays_on_its_sheet(layout):
    scene, alt = house.drawing("overview", layout)
    shown = [mark.words for mark in scene.marks if hasattr(mark, "words")]
    for letter in house.TABLES["matrices"]:
        M = house.numbers()[letter]
        for value in (M[0] if M.ndim == 3 else M).ravel():
            assert house.short(value, 1 if M.min() < 0 else 2) in shown
    for mark in scene.marks:
        points = [p for line in getattr(mark, "lines", ()) for p in line]
        assert all(-1 <= x <= scene.width + 1 for x, _ in points)
        assert all(-1 <= y <= scene.height + 1 for _, y in points)
    assert "{" not in alt


@pytest.mark.parametrize("chapter", house.PARTS)
def test_a_chapter_lights_its_parts_of_the_house_and_says_which(chapter):
    scene, alt = house.drawing(chapter)
    svg = scene.svg(alt)
    assert "{" not in alt and f'data-key="house {chapter}"' in svg
    roles = {"query", "key", "value", "weight", "output"}
    seen = {role for role in roles if f'"var(--mha-{role},' in svg}
    part_of = {p: role for p, role, *_ in house.TABLES["matrices"].values()}
    parts = house.PARTS[chapter]
    wanted = roles if "all" in parts else {part_of.get(part) for part in parts} & roles
    assert wanted <= seen


def test_it_attends_mostly_to_dog_and_the_chapter_on_masks_hides_later_words():
    found = house.numbers()
    assert found["S"][0, house.IT].tolist() == [5, 0, 3, 4]
    assert found["A"][0, house.IT].argmax() == house.WORDS.index("dog")
    said = house.facts(found, house.short)
    assert said["product"] == "2·2 + 1·1" and said["score"] == "5"
    assert "hides 6 of 16 pairs" in house.drawing("masks")[1]


@pytest.mark.parametrize(
    ("value", "cell", "aloud"),
    [(2, "2", "2"), (0.566, ".57", "0.57"), (-1.55, "−1.55", "−1.55"),
     (0.001, "0", "0"), (-1e-12, "0", "0"), (1.999, "2.00", "2")],
)  # fmt: skip
def test_numbers_are_short_in_cells_and_whole_in_words(value, cell, aloud):
    assert (house.short(value), house.spoken(value)) == (cell, aloud)


def test_numbers_helper_reads_what_a_picture_writes():
    """The reader that the tests above rely on sees signs and decimals."""
    assert numbers(NEGATIVE).tolist()[-2:] == [-1.5, 2.25]
    assert not shows(NEGATIVE, [2.25, -1.5]) and worked.NUMBER > 9
