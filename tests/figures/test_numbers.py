"""What each figure of the book shows is what the package computes.

The chapters store their figures and are compared with them, so a figure that changes
is seen there. Here stand the numbers that a figure itself computes.
"""

import re

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import figures
import mha
from mha import laws, zoo
from tests.figures.reading import shows, words

rng = np.random.default_rng(5)
A = mha.softmax(rng.normal(size=(2, 3)))
X, BLOCKS = rng.integers(-3, 4, size=(3, 4)), rng.integers(-3, 4, size=(2, 4, 2))
TRACK = rng.normal(size=(3, 4, 5))
SCORES = [[-1.5, 2.25]]


PICTURES = {  # what draws, numbers that stand in it one after another, decimals
    "weights": (lambda: figures.heatmap(A, alt="x"), A, 2),
    "scores": (lambda: figures.heatmap(SCORES, alt="x", kind="scores"), SCORES, 2),
    "product": (
        lambda: figures.fused(X, BLOCKS, "abc", follow=(2, 1)), X @ BLOCKS[1], 0
    ),
    "bars": (lambda: figures.bars(A[0], "abc", alt="x"), A[0], 2),
}  # fmt: skip


@pytest.mark.parametrize("name", PICTURES)
def test_a_figure_shows_the_numbers_that_are_computed(name):
    draw, expected, digits = PICTURES[name]
    assert shows(draw(), expected, digits)


FOUND = np.array([5.0, 0, 3, 4])  # scores of "it" with dog, food, it and hungry
POWERS, LATER = np.exp(FOUND / 2**0.5), np.exp(np.array([5, 0, 3, 8]) / 2**0.5)
CLOCK = mha.sinusoidal_positional_encoding(3, 4)[2]
WRITTEN = {  # what draws, and words that stand in it
    "the score of rotated pairs": (  # query and key are (2, 1)
        figures.rotary,
        {f"score {5 * np.cos(far):.2f}".replace("-", "−") for far in (2, 4)},
    ),
    "how a word shares its attention": (
        figures.sentence,
        {f"{p:.2f}" for p in POWERS / POWERS.sum()},
    ),
    "what rules make of scores": (
        figures.rules,
        {f"+10: dog falls from {5 / 12:.2f} to {15 / 52:.2f}", ".66", ".24", ".09"},
    ),
    "how high powers are": (figures.exponential, {"dog 148", "hungry 55", "it 20"}),
    "what is missing after a late mask": (
        figures.leak,
        {f"missing {x[-1] / x.sum():.2f}" for x in (POWERS, LATER)},
    ),
    "the tips of a clock": (
        lambda: figures.clocks(dict(enumerate("abc")), alt="x"),
        {", ".join(f"{x:.2f}".replace("-", "−") for x in CLOCK[:2]), "position 2"},
    ),
    "how far tokens differ": (
        lambda: figures.collapse({"x": TRACK}, "abcd", alt="x"),
        {f"{np.linalg.norm(x - x.mean(0)) / np.linalg.norm(x):.2g}" for x in TRACK},
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_figure_says_what_it_has_computed(name):
    draw, expected = WRITTEN[name]
    assert expected <= set(words(draw()))


def test_the_alt_text_of_a_product_is_computed():
    number = (X @ BLOCKS[0])[2, 1]
    said = figures.fused(X, BLOCKS, "abc", follow=(2, 1)).alt
    assert f"The number {number:g} needs one row of X and one column of head 1" in said


def test_every_broken_law_is_a_mark_and_is_counted():
    some = [zoo.softmax_over_queries, zoo.mask_ignored, zoo.promotes_to_float64]
    shown_laws = laws.ATTENTION + laws.CALLS
    matrix = laws.kill_matrix(shown_laws, [zoo.right, *some])
    picture = figures.detected(matrix, alt="x")
    paths = re.findall(r'd="([^"]+)" fill="var\(--mha-wrong', picture.svg)
    marks = "".join(paths).count("M")
    assert marks == np.sum(matrix.killed)
    shown = words(picture)
    for law in shown_laws:
        count = len(matrix.kills(law.name))
        assert shown[shown.index(law.name.replace("_", " ")) + 1] == str(count)


SIZES = {"n": 5, "d_model": 13, "d_k": 7, "d_v": 11}


def shapes(picture):
    """Return all shapes that a diagram writes, with the sizes above."""
    sides = (text.split("×") for text in words(picture) if "×" in text)
    named = ([re.sub(r"^d([mkv])", r"d_\1", s.strip()) for s in pair] for pair in sides)
    return {tuple(SIZES[s] for s in pair) for pair in named if {*pair} <= {*SIZES}}


def test_diagrams_show_the_shapes_that_the_package_has():
    n, d_model, d_k, d_v = SIZES.values()
    W_Q, W_V = np.ones((d_model, d_k)), np.ones((d_model, d_v))
    inputs = np.ones((n, d_model))
    Q, V = mha.linear(inputs, W_Q), mha.linear(inputs, W_V)
    Y, weights = mha.scaled_dot_product_attention(Q, Q, V, return_weights=True)
    factors = {inputs.shape, W_Q.shape, W_V.shape, Q.shape, V.shape}
    assert shapes(figures.one_head()) == factors | {weights.shape, Y.shape}
