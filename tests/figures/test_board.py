"""The board shows what each head adds to the output, and that the sum is the output."""

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")

import mha
from figures.house import FEATURES, IT, WEIGHTS, WORDS, X
from mha.plot.marks import Shape, Text
from tests.figures.test_contrast import THEMES, scene_of, too_faint

NAMES = (("animal", "edible"), ("edible", "thing"))
QKV = [mha.split_heads(X @ WEIGHTS[f"W_{name}"], 2) for name in "QKV"]
HEADS = mha.scaled_dot_product_attention(*QKV)
GIVEN = {"names": NAMES, "row": IT, "alt": "Two heads."}


@pytest.fixture
def scene():
    return scene_of(figures.board, HEADS, WEIGHTS["W_O"], WORDS, FEATURES, **GIVEN)


def test_the_last_table_is_the_output_of_the_package(scene):
    shown = [mark.words for mark in scene.marks if isinstance(mark, Text)]
    Y = mha.multi_head_attention(X, *(WEIGHTS[f"W_{name}"] for name in "QKVO"), 2)
    numbers = [f"{y:.2f}" if abs(y) >= 0.005 else "0" for y in Y.ravel()]
    first = [k for k in range(len(shown)) if shown[k : k + len(numbers)] == numbers]
    assert len(first) == 1


def test_what_a_head_adds_has_its_sign_and_its_place(scene):
    shown = [mark.words for mark in scene.marks if isinstance(mark, Text)]
    edible = np.split(WEIGHTS["W_O"], 2)[0][1, 1] * HEADS[0, IT, 1]
    assert edible < 0 and f"−{abs(edible):.2f}" in shown
    assert {"times rows 1–2 of *W_O*", "times rows 3–4 of *W_O*"} <= set(shown)


def test_the_row_to_follow_is_outlined_in_every_table(scene):
    outlines = [m for m in scene.marks if isinstance(m, Shape) and m.stroke == "ink"]
    assert sum(m.width == 1.6 and m.closed for m in outlines) == 5


@pytest.mark.parametrize("theme", THEMES)
def test_every_word_of_the_board_can_be_read(scene, theme):
    assert too_faint(scene, theme) == []


@pytest.mark.parametrize(
    ("heads", "words"),
    [(HEADS[:1], WORDS), (HEADS[..., :1], WORDS), (HEADS, WORDS[:3])],
)
def test_heads_that_do_not_fit_are_refused(heads, words):
    with pytest.raises(ValueError):
        figures.board(heads, WEIGHTS["W_O"], words, FEATURES, **GIVEN)
