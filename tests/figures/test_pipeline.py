"""The shapes in the diagrams are those that the package has."""

import re
import sys

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")

import mha
from mha.plot.marks import Shape, Text
from tests.figures.test_contrast import THEMES, scene_of, too_faint

SIZES = {"n": 5, "d_model": 13, "h": 3, "d_k": 7, "d_v": 11}
lanes = sys.modules["figures.lanes"]  # whose function has the same name
DIAGRAMS = (figures.projections, figures.one_head, figures.many_heads)
every_diagram = pytest.mark.parametrize("diagram", DIAGRAMS)


def shapes_in(diagram):
    """Return all shapes of a diagram with the sizes above: "h d_v × n" is (33, 5)."""
    found = set()
    for mark in scene_of(diagram).marks:
        if isinstance(mark, Text) and "×" in mark.words:
            sides = [side.split() for side in mark.words.split("×")]
            found.add(tuple(np.prod([SIZES[x] for x in side]) for side in sides))
    return found


def shapes_of(n_heads):
    """Return the shapes of X, the four matrices, Q, K, V, S, C and Y, without heads."""
    n, d_model, _, d_k, d_v = SIZES.values()
    X, W_O = np.ones((n, d_model)), np.ones((n_heads * d_v, d_model))
    W_Q = W_K = np.ones((d_model, n_heads * d_k))
    W_V = np.ones((d_model, n_heads * d_v))
    Q, K, V = (mha.split_heads(mha.linear(X, W), n_heads) for W in (W_Q, W_K, W_V))
    H, A = mha.scaled_dot_product_attention(Q, K, V, return_weights=True)
    C = mha.merge_heads(H)
    Y = mha.linear(C, W_O)
    assert Y.shape == X.shape
    return {
        "projections": {x.shape[-2:] for x in (X, W_Q, W_V, Q, V)},
        "one_head": {x.shape[-2:] for x in (X, W_Q, W_V, Q, V, A, H)},
        "many_heads": {x.shape[-2:] for x in (X, W_Q, W_V, Q, V, C, W_O, Y)},
    }


@pytest.mark.parametrize(
    ("diagram", "n_heads"), [*zip(DIAGRAMS, (1, 1, SIZES["h"]), strict=True)]
)
def test_a_diagram_shows_the_shapes_that_the_package_has(diagram, n_heads):
    assert shapes_in(diagram) == shapes_of(n_heads)[diagram.__name__]


def test_the_lanes_show_the_shapes_of_the_package_with_their_numbers():
    n, heads, d_k = 5, lanes.HEADS, lanes.D_K
    X, W = np.ones((n, lanes.D_MODEL)), np.ones((heads, lanes.D_MODEL, d_k))
    H, A = mha.scaled_dot_product_attention(X @ W, X @ W, X @ W, return_weights=True)
    C = mha.merge_heads(H)
    W_O = np.ones((heads * d_k, lanes.D_MODEL))
    expected = {x.shape[-2:] for x in (X, W, H, A, C, W_O, C @ W_O)}
    words = [m.words for m in scene_of(lanes.lanes).marks if isinstance(m, Text)]
    found = re.findall(r"(n|\d+) × (n|\d+)", "; ".join(words))
    assert {
        tuple(n if x == "n" else int(x) for x in pair) for pair in found
    } == expected
    assert all(f"{a} × {b}" in figures.lanes().alt for a, b in found)
    assert sum(word.startswith("head ") for word in words) == len(lanes.LANES)


@pytest.mark.parametrize("theme", THEMES)
def test_every_word_of_the_lanes_can_be_read(theme):
    assert too_faint(scene_of(lanes.lanes), theme) == []


@every_diagram
def test_a_diagram_has_the_colours_of_the_roles(diagram):
    scene = scene_of(diagram)
    strokes = {mark.stroke for mark in scene.marks if isinstance(mark, Shape)}
    assert {"query", "key", "value"} <= strokes
    words = {m.words: m.role for m in scene.marks if isinstance(m, Text)}
    assert [words[f"*W_{x}*"] for x in "QKV"] == ["query", "key", "value"]


@every_diagram
@pytest.mark.parametrize("theme", THEMES)
def test_every_word_of_a_diagram_can_be_read(diagram, theme):
    assert too_faint(scene_of(diagram), theme) == []


@every_diagram
def test_the_alt_text_of_a_diagram_says_its_shapes(diagram):
    picture = diagram()
    assert re.search(r"\bn rows|n × d_model", picture.alt)
    assert len(picture.svg) < 60_000 and len(picture.png) < 120_000
