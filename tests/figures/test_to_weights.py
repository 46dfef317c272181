"""The bars from scores to weights show what the package computes."""

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")

import mha
from mha.plot.marks import Shape, Text
from tests.figures.test_contrast import THEMES, scene_of, too_faint

SCORES, WORDS = [5, 0, 3, 4], ["dog", "food", "it", "hungry"]


@pytest.fixture
def scene():
    return scene_of(figures.to_weights, SCORES, WORDS)


def test_every_number_in_the_bars_is_that_of_the_package(scene):
    shown = {mark.words for mark in scene.marks if isinstance(mark, Text)}
    powers = np.exp(SCORES)
    assert {f"{p:.3f}" for p in mha.softmax(np.array(SCORES))} <= shown
    assert {f"{power:.1f}" for power in powers} <= shown
    assert {f"total {powers.sum():.1f}", f"each ÷ {powers.sum():.1f}"} <= shown


def test_bars_of_exponentials_and_of_weights_are_equally_long(scene):
    bars = [m for m in scene.marks if isinstance(m, Shape) and m.fill]
    long = [max(x for x, _ in b.lines[0]) - b.lines[0][0][0] for b in bars]
    powers = [x for x, b in zip(long, bars, strict=True) if b.lines[0][0][0] == 138]
    weights = [x for x, b in zip(long, bars, strict=True) if b.lines[0][0][0] == 238]
    assert len(weights) >= 3 and powers[: len(weights)] == pytest.approx(weights)


@pytest.mark.parametrize("theme", THEMES)
def test_every_word_beside_the_bars_can_be_read(scene, theme):
    assert too_faint(scene, theme) == []


def test_the_alt_text_says_scores_exponentials_and_weights():
    picture = figures.to_weights(SCORES, WORDS)
    assert "5, 0, 3, 4" in picture.alt and "0.662, 0.004" in picture.alt
    assert len(picture.svg) < 20_000 and len(picture.png) < 60_000


@pytest.mark.parametrize("scores", [[], [-1, 2], [10, 2], [0] * 9])
def test_scores_that_do_not_fit_are_refused(scores):
    with pytest.raises(ValueError):
        figures.to_weights(scores, [f"w{k}" for k in range(len(scores))])
