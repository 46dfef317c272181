"""Clocks under words: the numbers of the table, and hands that point as they say."""

import numpy as np
import pytest

import figures
from figures.clocks import _dial

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

import mha

SAYS = "The first hand turns by 57 degrees."


def test_the_clocks_show_words_positions_and_the_numbers_that_are_added():
    picture = figures.clocks(["dog", "food", "it"], alt=SAYS)
    words = ["dog", "food", "it", "position 0", "position 2", "first hand", SAYS]
    for word in [*words, "0.84, 0.54", "0.91, −0.42", "0.02, 1.00"]:
        assert word in picture.svg


def test_a_hand_points_right_by_its_sine_and_up_by_its_cosine():
    ax = Figure().subplots()
    tips = mha.sinusoidal_positional_encoding(6, 4)[5].reshape(2, 2)
    _dial(ax, tips)
    for line, tip in zip(ax.get_lines()[-2:], tips, strict=True):
        np.testing.assert_allclose(np.transpose(line.get_data()), [(0, 0), tip])


@pytest.mark.parametrize(
    ("words", "alt", "says"), [([], SAYS, "words"), (["dog"], " ", "alt")]
)
def test_no_words_and_no_finding_are_refused(words, alt, says):
    with pytest.raises(ValueError, match=says):
        figures.clocks(words, alt=alt)
