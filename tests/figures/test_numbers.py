"""What each figure of the book shows is what the package computes."""

import json
import re
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import figures
import mha
from chapters import LAWS
from figures import ten, worked
from mha import laws, zoo
from tests.figures.reading import figure_of, numbers, shows, words

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
SPREADS = [float(f"{figures.charts.spread(tokens):.2g}") for tokens in TRACK]


def negative():
    return figures.heatmap([[-1.5, 2.25]], alt="x", kind="scores")


PICTURES = {  # what draws, numbers that stand in it one after another, decimals
    "weights": (lambda: figures.heatmap(A, alt="x"), A, 2),
    "scores": (negative, [-1.5, 2.25], 2),
    "product": (
        lambda: figures.fused(X, BLOCKS, "abc", follow=(2, 1)),
        X @ BLOCKS[1],
        0,
    ),
    "a head adds": (
        lambda: figures.board(H, W_O, "abc", "xyz", names=["pq", "rs"], row=1, alt="x"),
        ADDED[0],
        2,
    ),
    "the board": (
        lambda: figures.board(H, W_O, "abc", "xyz", names=["pq", "rs"], row=1, alt="x"),
        sum(ADDED),
        2,
    ),
    "bars": (lambda: figures.bars(A[0], "abc", alt="x"), A[0], 2),
    "means": (lambda: figures.exam(EXAMS, alt="x"), [0.999, 0.625, 0.375], 3),
    "collapse": (lambda: figures.collapse({"x": TRACK}, "abcd", alt="x"), SPREADS, 9),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_figure_shows_the_numbers_that_are_computed(name):
    draw, expected, digits = PICTURES[name]
    picture = draw()
    if name == "collapse":  # one below each panel
        assert {f"{x:.2g}" for x in expected} <= set(words(picture))
    else:
        assert shows(picture, expected, digits)


ROTATED = [figures.planes.rotated(x, t) for x, t in ((Q, 3), (K, 5))]
CLOCK = mha.sinusoidal_positional_encoding(3, 4)[2]
SHADOW = Q @ K / np.linalg.norm(K)
WRITTEN = {  # what draws, and words that stand in it
    "a mask says True where it is open": (
        lambda: figures.batch([WORDS, ["it"]], alt="x"),
        {*WORDS, "pad", "True", "False"},
    ),
    "an angle in degrees": (
        lambda: figures.vectors(
            {"a": (1, 0), "b": (0, 2)}, angles=[("a", "b")], alt="x"
        ),
        {"90°", "a", "b"},
    ),
    "a shadow times a length": (
        lambda: figures.shadows([(("q", Q), ("k", K))], alt="x"),
        {f"{SHADOW:.3g} × {np.linalg.norm(K):.3g} = {Q @ K:.3g}"},
    ),
    "the score of a rotated pair": (
        lambda: figures.turns(Q, K, [(3, 5)], words=("it", "dog"), alt="x"),
        {f"score {ROTATED[0] @ ROTATED[1]:.2f}".replace("-", "−"), "dog at 5"},
    ),
    "the tips of a clock": (
        lambda: figures.clocks(WORDS[:3], alt="x"),
        {", ".join(f"{x:.2f}".replace("-", "−") for x in CLOCK[:2]), "position 2"},
    ),
    "fractions as they are given": (
        lambda: figures.sheet(PARTS, ["a", "b"], ["f", "g"], alt="x"),
        {"1/2", "3/8", "7/8", "5/8"},
    ),
    "what each version is called": (
        lambda: figures.learned(LEARNED, alt="x"),
        {"no scale"},
    ),
    "small numbers in full": (
        lambda: figures.lines(
            [0.0001, 1], {"y": [1, 2]}, xlabel="x", ylabel="y", xscale="log", alt="x"
        ),
        {"0.0001"},
    ),
    "steps of a layer": (
        lambda: figures.paths({"pre": ["(", "layer norm", "attention", "+"]}, alt="x"),
        {"pre", "layer norm", "attention"},
    ),
    "axes of a block": (
        lambda: figures.blocks({"one": np.ones((2, 3, 5), bool)}, alt="x"),
        {"one", "batch", "token", "feature"},
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_figure_says(name):
    draw, expected = WRITTEN[name]
    assert expected <= set(words(draw()))


def test_a_turn_of_both_keeps_the_score_and_the_alt_text_is_computed():
    other = [figures.planes.rotated(x, t) for x, t in ((Q, 10), (K, 12))]
    assert other[0] @ other[1] == pytest.approx(ROTATED[0] @ ROTATED[1])
    number = (X @ BLOCKS[0])[2, 1]
    said = figures.fused(X, BLOCKS, "abc", follow=(2, 1)).alt
    assert f"The number {number:g} needs one row of X and one column of head 1" in said


# ------------------------------------------------------------------ charts

x = np.arange(1.0, 8)
BAND = (x**2, x**2 - 1, x**2 + 1)
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


def test_a_table_of_marks_names_its_rows_and_sorts_encoders(matrix):
    shown = words(figures.encoders(matrix, alt="x"))
    assert {*matrix.rows, *matrix.columns, "broken", "satisfied"} <= set(shown)


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


def test_numbers_helper_reads_what_a_picture_writes():
    """The reader that the tests above rely on sees signs and decimals."""
    assert numbers(negative()).tolist()[:2] == [-1.5, 2.25]
    assert not shows(negative(), [2.25, -1.5]) and worked.NUMBER > 9
