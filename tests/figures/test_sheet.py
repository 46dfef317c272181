"""The sheet with every number of multi-head attention."""

import math
from fractions import Fraction

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")

import mha
from mha.plot.marks import Shape, Text
from tests.figures.test_contrast import THEMES, scene_of, too_faint

WORDS, FEATURES = (
    ["dog", "food", "it", "hungry"],
    ["animal", "edible", "wanting", "thing"],
)
X = [[2, 0, 1, 0], [0, 2, 0, 1], [1, 1, 1, 0], [1, 0, 2, 0]]
MATRICES = {
    "W_Q": [[0, 1, 0, 1], [0, 0, 0, 0], [2, 0, 2, 0], [0, 0, 0, 1]],
    "W_K": [[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 1], [1, 1, 1, 1]],
    "W_V": [[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]],
    "W_O": [[1, 0, 0, 0], [0, -1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]],
}
SAYS = {"alt": "Two heads attend to different words."}


def exact(M):
    return [[Fraction(x).limit_denominator(1000) for x in row] for row in M]


def parts():
    """Return all steps, computed by the package and made into fractions."""
    W = {name: np.array(M, dtype=float) for name, M in MATRICES.items()}
    Q, K, V = (mha.split_heads(np.array(X) @ W[f"W_{x}"], 2) for x in "QKV")
    W["W_Q"] = W["W_Q"] * math.sqrt(2) * math.log(2)
    Y, A = mha.multi_head_attention(np.array(X), **W, n_heads=2, return_weights=True)
    found = {"Q": Q, "K": K, "V": V, "S": Q @ K.mT, "A": A, "H": A @ V}
    found = {name: [exact(M) for M in heads] for name, heads in found.items()}
    return {"X": X, **MATRICES, **found, "Y": exact(Y)}


@pytest.fixture
def scene():
    return scene_of(figures.sheet, parts(), WORDS, FEATURES, **SAYS)


def written(scene):
    return [mark.words for mark in scene.marks if isinstance(mark, Text)]


def test_every_number_of_the_layer_is_on_the_sheet(scene):
    given = parts()
    two = [M for name in "QKVSAH" for M in given[name]]
    one = [given[name] for name in ("X", *MATRICES, "Y")]
    numbers = [str(x).replace("-", "−") for M in two + one for row in M for x in row]
    shown = sorted(x for x in written(scene) if x[-1].isdigit() and "*" not in x)
    extra = [*"1234567", *["head 1", "head 2"] * 3]
    assert shown == sorted(numbers + extra)


def test_the_fractions_are_those_of_the_chapter(scene):
    assert {"11/8", "9/8", "21/20", "−2/5", "4/5"} <= set(written(scene))


def test_a_masked_score_is_written_as_minus_infinity():
    masked = parts()
    masked["S"][0][0][3] = -math.inf
    scene = scene_of(figures.sheet, masked, WORDS, FEATURES, **SAYS)
    assert "−∞" in written(scene)


def test_nothing_leaves_the_sheet(scene):
    for mark in scene.marks:
        if isinstance(mark, Shape):
            x, y = np.array([p for line in mark.lines for p in line]).T
            assert x.min() >= 0 and x.max() <= scene.width
            assert y.min() >= 0 and y.max() <= scene.height


@pytest.mark.parametrize("theme", THEMES)
def test_every_number_on_the_sheet_can_be_read(scene, theme):
    assert too_faint(scene, theme) == []


def test_a_missing_part_is_named():
    given = parts()
    del given["W_O"], given["A"]
    with pytest.raises(ValueError, match="parts lacks W_O, A"):
        figures.sheet(given, WORDS, FEATURES, **SAYS)


def test_three_heads_do_not_fit():
    given = parts()
    with pytest.raises(ValueError, match="each of 2 heads"):
        figures.sheet(given | {"A": given["A"] * 2}, WORDS, FEATURES, **SAYS)
