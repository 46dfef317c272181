"""Steps 1 to 3: likeness, softmax and masks."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mha import (
    causal_mask,
    cosine_similarity,
    dot_product_scores,
    masked_softmax,
    padding_mask,
    softmax,
)
from tests.samples import LEADING, draw_qkv, masks
from tests.tolerances import TORCH, assert_close

INF = np.inf
HUGE = np.finfo(np.float64).max
scores = arrays(np.float64, (5, 7), elements=st.floats(-30, 30))
both_likenesses = pytest.mark.parametrize(
    "function", [dot_product_scores, cosine_similarity]
)

# Likeness


def test_a_score_is_the_sum_of_products_and_keys_are_columns():
    Q, K = [[1, 2, 3], [0, 1, 0]], [[4, 5, 6], [7, 8, 9]]
    assert dot_product_scores(Q, K).tolist() == [[32, 50], [5, 8]]


@pytest.mark.parametrize("leading", LEADING, ids=str)
def test_likeness_is_that_of_torch(rng, leading):
    Q, K, _ = map(torch.from_numpy, draw_qkv(rng, leading))
    assert_close(dot_product_scores(Q.numpy(), K.numpy()), Q @ K.mT, TORCH)
    cosines = F.cosine_similarity(Q[..., :, None, :], K[..., None, :, :], dim=-1)
    assert_close(cosine_similarity(Q.numpy(), K.numpy()), cosines, TORCH)


def test_cosines_of_same_right_and_opposite_directions_are_1_0_and_minus_1():
    K = [[5, 0], [0, 2], [-3, 0], [3, 4]]
    assert_close(cosine_similarity([[1, 0]], K), [[1, 0, -1, 0.6]])


def test_a_vector_of_length_zero_is_at_right_angles_to_all():
    assert cosine_similarity([[0, 0]], [[1, 2], [0, 0]]).tolist() == [[0, 0]]


def test_squares_that_leave_the_range_of_floats_do_not_matter():
    Q = [[3e200, -4e200], [3e-200, -4e-200]]
    assert_close(cosine_similarity(Q, [[0, -7]]), [[0.8], [0.8]])


def test_a_cosine_never_leaves_minus_one_to_one_even_by_rounding(rng):
    X = rng.normal(size=(97, 3))
    assert cosine_similarity(X, X).max() == 1
    assert cosine_similarity(X, -X).min() == -1


@both_likenesses
def test_leading_axes_broadcast_and_axes_may_be_empty(rng, function):
    Q, K = rng.normal(size=(2, 1, 5, 11)), rng.normal(size=(3, 7, 11))
    S = function(Q, K)
    assert S.shape == (2, 3, 5, 7)
    assert_close(S[1, 2], function(Q[1, 0], K[2]))
    assert function(Q[:, :, :0], K).shape == (2, 3, 0, 7)
    assert function(Q[..., :0], K[..., :0]).tolist() == np.zeros((2, 3, 5, 7)).tolist()


# Softmax


def test_logarithms_of_2_3_and_5_share_in_tenths():
    assert_close(softmax(np.log([2, 3, 5])), [0.2, 0.3, 0.5])


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_softmax_is_that_of_torch_along_every_axis(rng, axis):
    x = 10 * rng.normal(size=(2, 5, 7))
    expected = torch.softmax(torch.as_tensor(x), axis)
    assert_close(softmax(x, axis), expected, TORCH)
    assert_close(masked_softmax(x, None, axis), expected, TORCH)


@pytest.mark.parametrize(
    ("x", "shares"),
    [
        ([1e4, 1e4 - math.log(3), -1e4], [0.75, 0.25, 0]),
        ([-1e300, -1e300], [0.5, 0.5]),
        ([HUGE, -HUGE], [1, 0]),
        ([0, -INF, 0], [0.5, 0, 0.5]),
        ([-INF, -INF], [0, 0]),
        ([INF, 0], [np.nan, np.nan]),
        ([np.nan, 0], [np.nan, np.nan]),
        ([], []),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_scores_of_every_size_are_safe_and_nan_is_not_hidden(x, shares):
    assert_close(softmax(x), shares)
    assert_close(softmax([x, x, x]), [shares] * 3)


def test_a_gap_beyond_all_numbers_gives_no_warning(recwarn):
    softmax([HUGE, -HUGE])
    masked_softmax(np.float32([3e38, -3e38]))
    assert not recwarn


@given(scores, st.floats(-100, 100), st.permutations(range(7)))
def test_a_constant_changes_nothing_and_order_is_kept(x, constant, order):
    assert_close(softmax(x + constant), softmax(x))
    assert_close(softmax(x[:, order]), softmax(x)[:, order])


# Masks


def test_a_query_sees_itself_and_its_past():
    assert causal_mask(3).tolist() == [[True, j > 0, j > 1] for j in range(3)]
    assert causal_mask(2, 3).tolist() == [[True, False, False], [True, True, False]]
    assert causal_mask(3, 1).tolist() == [[True]] * 3
    assert causal_mask(0).shape == (0, 0) and causal_mask(2, 0).shape == (2, 0)
    assert causal_mask(np.int8(2)).dtype == bool


@pytest.mark.parametrize(("lengths", "n"), [([3, 0, 1], None), (np.uint8([2, 1]), 5)])
def test_padding_hides_the_keys_behind_each_sequence(lengths, n):
    mask = padding_mask(lengths, n)
    n = n or max(lengths)
    assert mask.shape == (len(lengths), 1, 1, n) and mask.dtype == bool
    for row, length in zip(mask[:, 0, 0], lengths, strict=True):
        assert row.tolist() == [True] * length + [False] * (n - length)
    assert (mask & causal_mask(n)).shape == (len(lengths), 1, n, n)


def test_no_token_at_all_is_a_length():
    assert padding_mask([0]).shape == padding_mask([0], 0).shape == (1, 1, 1, 0)


def test_a_closed_key_gets_nothing_and_a_bias_is_added():
    S = np.log([[1, 3, 4]])
    assert_close(masked_softmax(S, [True, True, False]), [[0.25, 0.75, 0]])
    assert_close(masked_softmax(S, np.log([9, 1, 1 / 4])), [[9 / 13, 3 / 13, 1 / 13]])


@given(scores, masks)
def test_open_keys_share_as_if_closed_ones_did_not_exist(S, mask):
    """A row that may look at nothing gets zeros, and -inf closes like False."""
    A = masked_softmax(S, mask)
    for row, weights, is_open in zip(S, A, mask, strict=True):
        assert_close(weights[is_open], softmax(row[is_open]))
        assert not weights[~is_open].any()
    assert_close(masked_softmax(S, np.where(mask, 0, -INF)), A)
    assert_close(masked_softmax(S, np.where(mask, 2.5, -INF)), A)


@pytest.mark.parametrize("bad", [np.nan, INF, -INF])
def test_a_closed_score_may_be_anything(bad):
    for mask in ([True, False], [0.0, -INF]):
        assert masked_softmax([[1, bad]], mask).tolist() == [[1, 0]]


def test_a_low_score_is_not_mistaken_for_a_closed_one():
    assert masked_softmax([[-1e9, -1e30, 0]], [True, False, False])[0, 0] == 1
    lowest = np.finfo(np.float64).min
    assert masked_softmax([[0, 0]], [lowest, lowest]).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize(
    "shape", [(), (7,), (5, 1), (1, 5, 7), (3, 1, 1), (2, 3, 5, 7)]
)
@pytest.mark.parametrize("kind", [bool, float])
def test_masks_of_every_broadcastable_shape_mean_their_broadcast(rng, shape, kind):
    S, mask = rng.normal(size=(2, 3, 5, 7)), rng.random(shape) < 0.6
    mask = mask if kind is bool else np.where(mask, 0.5, -INF)
    whole = np.broadcast_to(mask, S.shape).copy()
    assert_close(masked_softmax(S, mask), masked_softmax(S, whole))
