"""Step 6: waves that tell the order."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mha import sinusoidal_positional_encoding
from tests.tolerances import TORCH, assert_close

positions = st.integers(0, 300)
even_widths = st.integers(1, 12).map(lambda pairs: 2 * pairs)


def frequencies(d_model):
    """Return one frequency for each pair of columns, by the paper's formula."""
    return np.array([1 / 10000 ** (2 * i / d_model) for i in range(d_model // 2)])


# By hand


def test_three_positions_of_width_four():
    """Frequencies 1 and 10000^(-2/4) = 1/100; sines in columns 0, 2, cosines in 1, 3.

    sin 1 = 0.8415, cos 1 = 0.5403, sin 2 = 0.9093, cos 2 = -0.4161.
    """
    P = sinusoidal_positional_encoding(3, 4)
    expected = [
        [0, 1, 0, 1],
        [0.8415, 0.5403, 0.0100, 0.9999],
        [0.9093, -0.4161, 0.0200, 0.9998],
    ]
    assert_close(P, expected, atol=1e-4)


def test_an_odd_width_ends_with_a_sine():
    """Width 3: frequencies 1 and 10000^(-2/3) = 0.0021544; the second has no cosine."""
    P = sinusoidal_positional_encoding(2, 3)
    assert_close(P[0], [0, 1, 0])
    assert_close(P[1], [math.sin(1), math.cos(1), math.sin(10000 ** (-2 / 3))])


def test_width_one_is_a_single_sine():
    expected = [[0], [math.sin(1)], [math.sin(2)]]
    assert_close(sinusoidal_positional_encoding(3, 1), expected)


def test_no_positions_give_no_rows():
    assert sinusoidal_positional_encoding(0, 5).shape == (0, 5)


# Laws


@given(positions, positions, even_widths)
def test_k_steps_further_is_a_rotation_by_k_frequencies(t, k, d_model):
    """The same rotation at every t, which is why the paper chose waves."""
    P = sinusoidal_positional_encoding(t + k + 1, d_model)
    angle = k * frequencies(d_model)
    sines, cosines = P[t, 0::2], P[t, 1::2]
    turned = np.empty(d_model)
    turned[0::2] = sines * np.cos(angle) + cosines * np.sin(angle)
    turned[1::2] = cosines * np.cos(angle) - sines * np.sin(angle)
    assert_close(P[t + k], turned)


@given(positions, positions, even_widths)
def test_a_dot_product_of_two_positions_depends_on_their_distance_only(t, k, d_model):
    P = sinusoidal_positional_encoding(t + k + 1, d_model)
    assert_close(P[t] @ P[t + k], np.cos(k * frequencies(d_model)).sum())


def test_likeness_does_not_simply_fall_with_distance():
    """The sum of cosines comes back up: at width 16 distance 6 is more alike than 4."""
    P = sinusoidal_positional_encoding(64, 16)
    likeness = P @ P[0]
    assert likeness[0] == max(likeness)
    assert likeness[6] > likeness[4] + 0.5


@given(st.integers(1, 50), even_widths)
def test_every_position_has_the_same_length(n, d_model):
    """Each pair lies on the unit circle."""
    P = sinusoidal_positional_encoding(n, d_model)
    assert_close((P**2).sum(-1), np.full(n, d_model / 2))


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 13))
def test_a_longer_text_changes_nothing_for_the_first_tokens(n, more, d_model):
    short = sinusoidal_positional_encoding(n, d_model)
    long = sinusoidal_positional_encoding(n + more, d_model)
    np.testing.assert_array_equal(long[:n], short)


@given(st.integers(2, 13))
def test_no_two_positions_are_the_same(d_model):
    P = sinusoidal_positional_encoding(97, d_model)
    gaps = np.abs(P[:, None] - P).max(-1)
    assert gaps[~np.eye(97, dtype=bool)].min() > 1e-3


def test_an_even_column_is_not_the_same_for_all_tokens():
    """The waves run down the columns; a swapped axis would make rows of waves."""
    P = sinusoidal_positional_encoding(7, 6)
    assert P.shape == (7, 6)
    assert (np.ptp(P[:, 0::2], axis=0) > 0).all()


# Agreement


@pytest.mark.parametrize(("n", "d_model"), [(5, 2), (7, 11), (13, 6), (97, 512)])
def test_it_is_the_wave_of_the_paper_computed_another_way(n, d_model):
    """Frequencies by exp and log, sine or cosine chosen column by column."""
    j = torch.arange(d_model, dtype=torch.float64)
    rate = torch.exp(-(2 * (j // 2)) * math.log(10000) / d_model)
    angle = torch.arange(n)[:, None] * rate
    expected = torch.where(j % 2 == 0, angle.sin(), angle.cos())
    assert_close(sinusoidal_positional_encoding(n, d_model), expected, TORCH)


def test_it_comes_in_float64():
    assert sinusoidal_positional_encoding(3, 4).dtype == np.float64


# Refusals


@pytest.mark.parametrize(
    ("n", "d_model", "error", "message"),
    [
        (-1, 4, ValueError, "n must be at least 0, got -1"),
        (3, 0, ValueError, "d_model must be at least 1, got 0"),
        (3.0, 4, TypeError, "n must be an integer, got 3.0"),
        (3, 4.0, TypeError, "d_model must be an integer, got 4.0"),
        (True, 4, TypeError, "n must be an integer, got True"),
    ],
)
def test_it_says_which_number_is_wrong(n, d_model, error, message):
    with pytest.raises(error, match=message):
        sinusoidal_positional_encoding(n, d_model)
