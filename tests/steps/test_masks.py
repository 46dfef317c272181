"""Step 3: who may look at whom."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mha import causal_mask, masked_softmax, padding_mask, softmax
from tests.samples import draw_mask, nothing_modified, peak_memory
from tests.tolerances import TORCH, assert_close

INF = np.inf

scores = arrays(np.float64, (5, 7), elements=st.floats(-50, 50))
masks = arrays(np.bool_, (5, 7))

# Every shape that broadcasts to (2, 3, 5, 7): any number of axes, each whole or 1.
SHAPES = [
    shape
    for n_axes in range(5)
    for shape in product(*((1, n) for n in (2, 3, 5, 7)[4 - n_axes :]))
]
every_mask_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


# By hand


def test_three_tokens_see_themselves_and_their_past():
    assert causal_mask(3).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_with_more_keys_than_queries_both_count_from_the_first_token():
    """Two queries and four keys: query 0 sees key 0, query 1 sees keys 0 and 1."""
    expected = [[True, False, False, False], [True, True, False, False]]
    assert causal_mask(2, 4).tolist() == expected


def test_with_more_queries_than_keys_the_late_ones_see_every_key():
    assert causal_mask(3, 2).tolist() == [[True, False], [True, True], [True, True]]


def test_a_lone_query_sees_the_first_key_only():
    """Decoding with a cache needs another mask: there the one query is the newest."""
    assert causal_mask(1, 3).tolist() == [[True, False, False]]


def test_padding_hides_the_keys_behind_each_sequence():
    """Of three places, the sequences fill two, none and three."""
    assert padding_mask([2, 0, 3]).tolist() == [
        [[[True, True, False]]],
        [[[False, False, False]]],
        [[[True, True, True]]],
    ]


def test_max_length_adds_padding_behind_the_longest_sequence():
    assert padding_mask([1, 2], 4)[:, 0, 0].tolist() == [
        [True, False, False, False],
        [True, True, False, False],
    ]


def test_the_open_keys_share_what_the_closed_one_loses():
    """Shares 1 : 3 : 4 without the last: 1/4 and 3/4."""
    S = np.log([[1, 3, 4]])
    assert_close(masked_softmax(S, [True, True, False]), [[0.25, 0.75, 0]])


def test_a_float_mask_is_added_to_the_scores():
    """Adding ln 3 to the first of two equal scores makes the shares 3 : 1."""
    assert_close(masked_softmax([[5, 5]], [[np.log(3), 0]]), [[0.75, 0.25]])


def test_a_row_that_may_look_at_nothing_gets_zeros():
    mask = [[False, False], [True, True]]
    assert masked_softmax([[1, 2], [3, 3]], mask).tolist() == [[0, 0], [0.5, 0.5]]


# Laws


@given(st.integers(0, 12), st.integers(0, 12))
def test_query_i_sees_key_j_exactly_if_j_is_not_after_i(n_q, n_k):
    mask = causal_mask(n_q, n_k)
    assert mask.shape == (n_q, n_k)
    assert mask.dtype == bool
    assert all(mask[i, j] == (j <= i) for i, j in np.ndindex(n_q, n_k))


@given(st.integers(0, 12))
def test_as_many_keys_as_queries_by_default(n):
    np.testing.assert_array_equal(causal_mask(n), causal_mask(n, n))


@given(st.lists(st.integers(0, 9), min_size=1), st.integers(0, 5))
def test_a_key_is_open_exactly_if_it_is_before_the_end_of_its_sequence(lengths, extra):
    n = max(lengths) + extra
    mask = padding_mask(lengths, n)
    assert mask.shape == (len(lengths), 1, 1, n)
    assert mask.dtype == bool
    cells = np.ndindex(len(lengths), n)
    assert all(mask[b, 0, 0, j] == (j < lengths[b]) for b, j in cells)


@given(st.lists(st.integers(0, 9), min_size=1))
def test_the_longest_sequence_sets_the_length_by_default(lengths):
    expected = padding_mask(lengths, max(lengths))
    np.testing.assert_array_equal(padding_mask(lengths), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_counts_may_be_integers_of_numpy(dtype):
    three, lengths = np.dtype(dtype).type(3), np.array([3, 1], dtype)
    np.testing.assert_array_equal(causal_mask(three, three), causal_mask(3, 3))
    np.testing.assert_array_equal(padding_mask(lengths, three), padding_mask([3, 1], 3))


def test_padding_and_causal_masks_combine_to_what_both_allow():
    both = padding_mask([2, 3]) & causal_mask(3)
    assert both.shape == (2, 1, 3, 3)
    for b, i, j in np.ndindex(2, 3, 3):
        assert both[b, 0, i, j] == (j <= i and j < (2, 3)[b])


@given(scores, masks)
def test_a_closed_key_gets_exactly_zero_and_an_open_one_more(S, mask):
    A = masked_softmax(S, mask)
    assert (A[~mask] == 0).all()
    assert (A[mask] > 0).all()


@given(scores, masks)
def test_rows_sum_to_one_unless_they_may_look_at_nothing(S, mask):
    assert_close(masked_softmax(S, mask).sum(-1), mask.any(-1).astype(float))


@given(scores, masks)
def test_what_a_closed_key_scores_does_not_matter(S, mask):
    other = np.where(mask, S, 1e300)
    np.testing.assert_array_equal(masked_softmax(other, mask), masked_softmax(S, mask))


@given(scores, masks)
def test_open_keys_share_as_if_closed_ones_did_not_exist(S, mask):
    A = masked_softmax(S, mask)
    for row, open_keys, weights in zip(S, mask, A, strict=True):
        assert_close(weights[open_keys], softmax(row[open_keys]))


@given(scores, masks)
def test_minus_infinity_in_a_float_mask_closes_like_false(S, mask):
    as_floats = np.where(mask, 0, -INF)
    np.testing.assert_array_equal(masked_softmax(S, as_floats), masked_softmax(S, mask))


@given(scores, arrays(np.float64, (5, 1), elements=st.floats(-50, 50)))
def test_a_float_mask_that_is_equal_for_all_keys_changes_nothing(S, bias):
    assert_close(masked_softmax(S, bias), softmax(S))


@given(scores)
def test_no_mask_and_an_open_mask_are_the_plain_softmax(S):
    expected = softmax(S)
    for mask in (None, True, np.ones(7, bool), 0.0):
        np.testing.assert_array_equal(masked_softmax(S, mask), expected)


@pytest.mark.parametrize("bad", [np.nan, INF, -INF])
@pytest.mark.parametrize(
    "mask", [[False, True, True], [-INF, 0, 0]], ids=["bool", "float"]
)
def test_a_closed_score_may_be_nan_or_infinite(bad, mask):
    """Closing sets the score; adding -∞ to it would keep NaN and make one of +∞."""
    assert masked_softmax([[bad, 2, 2]], mask).tolist() == [[0, 0.5, 0.5]]


def test_a_low_score_is_not_mistaken_for_a_closed_one():
    """A mask of -1e9 would prefer the closed key, whose score is not that low."""
    S = [[-2e9, -2e9, 0]]
    assert masked_softmax(S, [True, True, False]).tolist() == [[0.5, 0.5, 0]]


@every_mask_shape
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_masks_of_every_broadcastable_shape_mean_their_broadcast(rng, shape, kind):
    S = rng.normal(size=(2, 3, 5, 7))
    mask = rng.random(shape) < 0.6 if kind == "bool" else rng.normal(size=shape)
    whole = np.broadcast_to(mask, S.shape)
    expected = S + whole if kind == "float" else np.where(whole, S, -INF)
    assert_close(masked_softmax(S, mask), softmax(expected))


@pytest.mark.parametrize("axis", [0, 1, -1, -3])
def test_any_axis_works_as_the_last_one_does(rng, axis):
    S, mask = rng.normal(size=(3, 5, 7)), rng.random((3, 5, 7)) < 0.6
    A = masked_softmax(S, mask, axis)
    last = [np.moveaxis(x, axis, -1) for x in (S, mask, A)]
    assert_close(last[2], masked_softmax(last[0], last[1]))


def test_scores_may_have_a_single_axis():
    assert_close(
        masked_softmax(np.log([1, 3, 5]), [1 > 0, 2 > 0, False]), [0.25, 0.75, 0]
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
@pytest.mark.parametrize("mask", [None, "bool", "float16", "float64"])
def test_the_dtype_of_the_scores_is_kept_whatever_the_mask(rng, dtype, mask):
    S = rng.normal(size=(5, 7)).astype(dtype)
    mask = None if mask is None else np.ones((5, 7), mask)
    assert masked_softmax(S, mask).dtype == np.dtype(dtype)


def test_float16_is_summed_in_float32():
    """70000 equal scores: each exp is 1, and 70000 ones add up to ∞ in float16."""
    A = masked_softmax(np.zeros((1, 70_001), np.float16), np.arange(70_001) > 0)
    assert (A[0, 1:] == np.float16(1 / 70_000)).all()


def test_float32_is_computed_in_float32(rng):
    """It takes half the memory, a float64 mask included."""
    wide, bias = np.zeros((512, 512)), rng.normal(size=(512, 512))
    S = wide.astype(np.float32)
    half = peak_memory(lambda: masked_softmax(S, bias))
    assert half < 0.7 * peak_memory(lambda: masked_softmax(wide, bias))


@pytest.mark.parametrize("shape", [(0, 7), (5, 0), (2, 0, 0)])
def test_axes_of_length_zero_are_axes_too(shape):
    assert masked_softmax(np.ones(shape), np.ones(shape, bool)).shape == shape


@pytest.mark.parametrize("dtype", [bool, float])
def test_inputs_stay_as_they_are_even_read_only(rng, dtype):
    S, mask = rng.normal(size=(5, 7)), (rng.random((5, 7)) < 0.6).astype(dtype)
    S.flags.writeable = mask.flags.writeable = False
    with nothing_modified(S, mask):
        masked_softmax(S, mask)


# Agreement


@every_mask_shape
def test_weights_agree_with_torch(rng, shape):
    S, mask = rng.normal(size=(2, 3, 5, 7)), draw_mask(rng, shape)
    filled = torch.from_numpy(S).masked_fill(~torch.as_tensor(mask), -INF)
    expected = torch.softmax(filled, -1)
    assert_close(masked_softmax(S, mask), expected.numpy(), TORCH)


@pytest.mark.parametrize(("n_q", "n_k"), [(5, 5), (5, 7), (7, 5), (1, 7), (7, 1)])
def test_the_causal_mask_agrees_with_torch(n_q, n_k):
    """Only tril tells: PyTorch's own helper builds square masks."""
    expected = torch.ones(n_q, n_k, dtype=torch.bool).tril()
    np.testing.assert_array_equal(causal_mask(n_q, n_k), expected.numpy())


# Refusals


@pytest.mark.parametrize("mask", [np.ones((5, 7), int), [1] * 7, np.ones(7, np.uint8)])
def test_an_integer_mask_is_refused_because_one_could_mean_either(mask):
    message = r"^mask must be bool \(True = may attend\) or float .*got dtype u?int"
    with pytest.raises(TypeError, match=message):
        masked_softmax(np.ones((5, 7)), mask)


@pytest.mark.parametrize("mask", ["open", [None, True], np.ones(7, complex)], ids=str)
def test_a_mask_of_anything_else_is_refused(mask):
    with pytest.raises(TypeError, match=r"^mask must be bool .*got dtype"):
        masked_softmax(np.ones((5, 7)), mask)


def test_a_mask_that_is_a_tensor_is_sent_to_mha_nn():
    with pytest.raises(TypeError, match=r"^mask is a torch\.Tensor; .*mha\.nn"):
        masked_softmax(np.ones((5, 7)), torch.ones(5, 7, dtype=torch.bool))


def test_a_ragged_mask_is_refused():
    with pytest.raises(ValueError, match=r"^mask must be rectangular"):
        masked_softmax(np.ones((2, 2)), [[True], [True, False]])


@pytest.mark.parametrize("shape", [(5, 5), (7, 5), (5,), (3, 5, 7), (1, 5, 7), (0,)])
def test_a_mask_that_does_not_broadcast_is_refused_with_both_shapes(shape):
    S, mask = np.ones((5, 7)), np.ones(shape, bool)
    with nothing_modified(S, mask), pytest.raises(ValueError) as refusal:
        masked_softmax(S, mask)
    assert str(refusal.value) == (
        f"mask of shape {shape} does not broadcast to the shape of the scores "
        "(..., n_q, n_k) = (5, 7)"
    )


@pytest.mark.parametrize("bad", [INF, np.nan])
def test_a_float_mask_with_nan_or_plus_infinity_is_refused(bad):
    S, mask = np.ones((5, 7)), np.zeros((5, 7))
    mask[2, 3] = bad
    message = r"^a float mask must hold finite numbers or -inf, got \+inf or NaN$"
    with nothing_modified(S, mask), pytest.raises(ValueError, match=message):
        masked_softmax(S, mask)


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_is_not_there_is_refused_with_the_shape(axis):
    message = rf"^axis must be an axis of S, got {axis} for shape \(5, 7\)$"
    with pytest.raises(ValueError, match=message):
        masked_softmax(np.ones((5, 7)), None, axis)


@pytest.mark.parametrize("axis", [None, 0.0, True])
def test_an_axis_that_is_no_integer_is_refused(axis):
    with pytest.raises(TypeError, match=r"^axis must be an integer, got "):
        masked_softmax(np.ones((5, 7)), None, axis)


def test_a_bare_score_is_refused():
    with pytest.raises(
        ValueError, match=r"^S must have shape \(\.\.\., n_k\), got \(\)$"
    ):
        masked_softmax(3.0)


@pytest.mark.parametrize("n", [2.0, True, None, "2", [2]])
def test_the_counts_of_a_causal_mask_are_integers(n):
    with pytest.raises(TypeError, match=r"^n_q must be an integer, got "):
        causal_mask(n)
    if n is not None:
        with pytest.raises(TypeError, match=r"^n_k must be an integer, got "):
            causal_mask(3, n)


def test_the_counts_of_a_causal_mask_are_not_negative():
    with pytest.raises(ValueError, match=r"^n_q must be at least 0, got -1$"):
        causal_mask(-1)
    with pytest.raises(ValueError, match=r"^n_k must be at least 0, got -2$"):
        causal_mask(3, -2)


@pytest.mark.parametrize(
    ("lengths", "wrong"), [([3, 5, 9], 5), ([5], 5), ([2, -1], -1)]
)
def test_a_length_that_does_not_fit_is_refused_with_both_numbers(lengths, wrong):
    message = rf"^lengths must lie in 0 … max_length = 4, got {wrong}$"
    with pytest.raises(ValueError, match=message):
        padding_mask(lengths, 4)


def test_a_negative_length_is_refused_without_max_length_too():
    with pytest.raises(ValueError, match=r"max_length = 2, got -1$"):
        padding_mask([2, -1])
    with pytest.raises(ValueError, match=r"max_length = 0, got -3$"):
        padding_mask([-3])


def test_a_max_length_of_zero_has_room_for_no_token():
    assert padding_mask([0, 0], 0).shape == (2, 1, 1, 0)
    with pytest.raises(ValueError, match=r"max_length = 0, got 2$"):
        padding_mask([2], 0)


@pytest.mark.parametrize("lengths", [3, [[3, 1]], []], ids=str)
def test_lengths_of_another_shape_are_refused(lengths):
    shape = r"got \(" + ", ".join(map(str, np.shape(lengths)))
    message = rf"^lengths must have shape \(batch,\) and batch >= 1, {shape}"
    with pytest.raises(ValueError, match=message):
        padding_mask(lengths)


@pytest.mark.parametrize("lengths", [[2.0, 1.0], [True, False], ["2"]], ids=str)
def test_lengths_that_are_no_integers_are_refused(lengths):
    with pytest.raises(TypeError, match=r"^lengths must be integers, got dtype "):
        padding_mask(lengths)


def test_a_max_length_that_is_no_count_is_refused():
    with pytest.raises(TypeError, match=r"^max_length must be an integer, got 2\.0$"):
        padding_mask([2, 1], 2.0)
    with pytest.raises(ValueError, match=r"^max_length must be at least 0, got -1$"):
        padding_mask([0], -1)


def test_lengths_that_are_ragged_or_a_tensor_are_refused():
    with pytest.raises(ValueError, match=r"^lengths must be rectangular"):
        padding_mask([[1], [1, 2]])
    with pytest.raises(TypeError, match=r"^lengths is a torch\.Tensor"):
        padding_mask(torch.tensor([2, 1]))
