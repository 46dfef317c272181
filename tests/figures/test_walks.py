"""The picture of scores as walks: where they go, and how far the root goes."""

import numpy as np
import pytest

import figures
from figures.walks import ways

pytest.importorskip("matplotlib")

SAYS = "One sentence with the finding."


def test_a_walk_begins_at_zero_and_adds_its_steps():
    assert ways(np.array([[1, -1, -1], [2, 3, 5]])).tolist() == [
        [0, 1, 0, -1],
        [0, 2, 5, 10],
    ]


def test_the_last_place_of_a_walk_is_the_score():
    q, K = np.random.default_rng(0).normal(size=(2, 5, 11))
    np.testing.assert_allclose(ways(q[0] * K)[:, -1], K @ q[0])


def test_the_picture_names_its_lines():
    svg = figures.walks(np.ones((2, 3)), alt=SAYS).svg
    assert "a score" in svg and "root of the number of products" in svg


@pytest.mark.parametrize("steps", [[1, 2, 3], np.ones((2, 3, 5))])
def test_what_is_no_table_of_steps_is_refused(steps):
    with pytest.raises(ValueError, match="steps"):
        figures.walks(steps, alt=SAYS)
