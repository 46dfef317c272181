"""Step 4: scaled dot-product attention."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mha import causal_mask, masked_softmax, padding_mask
from mha import scaled_dot_product_attention as attend
from tests import reference
from tests.samples import (
    LEADING,
    SIZES,
    draw_mask,
    draw_qkv,
    floats,
    keys,
    masks,
    nothing_modified,
    peak_memory,
    queries,
    values,
)
from tests.tolerances import FLOAT16, FLOAT32, NUMPY, TORCH, assert_close

INF = np.inf


every_leading = pytest.mark.parametrize("leading", LEADING, ids=str)
both_paths = pytest.mark.parametrize("path", ["output only", "with weights"])


def output(path, *args, **kwargs):
    """Return Y on the path that builds the weights or on the one that does not."""
    if path == "with weights":
        return attend(*args, **kwargs, return_weights=True)[0]
    return attend(*args, **kwargs)


# By hand


def test_a_query_0_root_2_weighs_the_unit_keys_1_to_e():
    """The scores are 0 and √2, divided by √d_k = √2: 0 and 1. So A = [1, e]/(1 + e)."""
    Y, A = attend([[0, np.sqrt(2)]], np.eye(2), [[1, 0], [0, 1]], return_weights=True)
    expected = np.array([[1, np.e]]) / (1 + np.e)
    assert_close(A, expected)
    assert_close(Y, expected)


def test_three_quarters_of_8_and_one_quarter_of_4_are_7():
    """d_k = 1; the scores ln 3 and 0 give the weights 3/4 and 1/4: 6 + 1."""
    assert_close(attend([[np.log(3)]], [[1], [0]], [[8], [4]]), [[7]])


def test_four_dimensions_halve_the_scores():
    """q · k = 4 · ln 3 / 2 = 2 ln 3, over √4 it is ln 3: weights 3/4 and 1/4."""
    q, k = np.full((1, 4), np.log(3) / 2), [[1, 1, 1, 1], [0, 0, 0, 0]]
    assert_close(attend(q, k, [[8], [4]]), [[7]])


def test_a_given_scale_takes_the_place_of_one_over_root_d_k():
    """Four equal products of ln 3, scaled by 1/4 and not by 1/2, make ln 3."""
    q, k = np.full((1, 4), np.log(3)), [[1, 1, 1, 1], [0, 0, 0, 0]]
    assert_close(attend(q, k, [[8], [4]], scale=0.25), [[7]])


def test_scale_zero_makes_every_score_equal():
    assert_close(attend([[9]], [[1], [0]], [[8], [4]], scale=0), [[6]])


def test_a_mask_leaves_the_open_keys_to_share():
    """Without the first of three equal keys: the mean of 4 and 6 is 5."""
    mask = [False, True, True]
    Y, A = attend([[1]], np.ones((3, 1)), [[99], [4], [6]], mask, return_weights=True)
    assert Y.tolist() == [[5]]
    assert A.tolist() == [[0, 0.5, 0.5]]


def test_causal_attention_to_equal_keys_is_a_running_mean():
    """Means of 3; 3, 5; 3, 5, 10."""
    one = np.ones((3, 1))
    assert_close(attend(one, one, [[3], [5], [10]], is_causal=True), [[3], [4], [6]])


@both_paths
def test_a_query_that_may_look_at_nothing_brings_home_zeros(path):
    mask = [[False, False], [True, False]]
    one = np.ones((2, 1))
    assert output(path, one, one, [[3], [5]], mask).tolist() == [[0], [3]]


# Laws


@given(queries, keys, values, masks)
def test_rows_sum_to_one_and_are_zero_where_masked(Q, K, V, mask):
    _, A = attend(Q, K, V, mask, return_weights=True)
    assert_close(A.sum(-1), mask.any(-1).astype(float))
    assert (A[~mask] == 0).all()
    assert (A[mask] > 0).all()


@given(queries, keys, values)
def test_the_output_is_the_weighted_mean_of_the_values(Q, K, V):
    Y, A = attend(Q, K, V, return_weights=True)
    assert_close(Y, A @ V)


@given(queries, keys, values)
def test_the_output_lies_between_the_smallest_and_the_largest_value(Q, K, V):
    Y = attend(Q, K, V)
    assert (V.min(0) - NUMPY <= Y).all()
    assert (V.max(0) + NUMPY >= Y).all()


@given(queries, keys, arrays(np.float64, (1, 3), elements=floats))
def test_equal_values_come_out_unchanged(Q, K, v):
    assert_close(attend(Q, K, np.repeat(v, 7, axis=0)), np.repeat(v, 5, axis=0))


@given(queries, keys, values, masks, st.permutations(range(7)))
def test_reordering_keys_with_their_values_changes_nothing(Q, K, V, mask, order):
    order = list(order)
    assert_close(attend(Q, K[order], V[order], mask[:, order]), attend(Q, K, V, mask))


@given(queries, keys, values, masks, st.permutations(range(5)))
def test_reordering_queries_reorders_the_output(Q, K, V, mask, order):
    order = list(order)
    assert_close(attend(Q[order], K, V, mask[order]), attend(Q, K, V, mask)[order])


@given(queries, keys, values, st.floats(0, 7))
def test_turning_queries_and_keys_together_changes_nothing(Q, K, V, angle):
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    assert_close(attend(Q @ turn, K @ turn, V), attend(Q, K, V))


@given(queries, keys, values, arrays(np.float64, (1, 2), elements=floats))
def test_adding_one_vector_to_every_key_changes_nothing(Q, K, V, shift):
    assert_close(attend(Q, K + shift, V), attend(Q, K, V))


@given(queries, keys, values, masks)
def test_doubling_every_key_with_its_value_changes_nothing(Q, K, V, mask):
    twice = attend(Q, np.r_[K, K], np.r_[V, V], np.c_[mask, mask])
    assert_close(twice, attend(Q, K, V, mask))


@given(queries, keys, values, st.integers(0, 4))
def test_changing_the_future_leaves_the_past_alone(Q, K, V, now):
    before = attend(Q, K, V, is_causal=True)
    K, V = K.copy(), V.copy()
    K[now + 1 :] += 3
    V[now + 1 :] -= 5
    after = attend(Q, K, V, is_causal=True)
    np.testing.assert_array_equal(after[: now + 1], before[: now + 1])


@given(queries, keys, values)
def test_padding_changes_nothing(Q, K, V):
    more = np.full((4, 2), 9.0), np.full((4, 3), 9.0)
    Y = attend(Q, np.r_[K, more[0]], np.r_[V, more[1]], padding_mask([7], 11)[0, 0])
    assert_close(Y, attend(Q, K, V))


@given(queries, keys, values, masks)
def test_attention_is_the_steps_below_it(Q, K, V, mask):
    A = masked_softmax(Q @ K.T / np.sqrt(2), mask)
    got = attend(Q, K, V, mask, return_weights=True)
    assert_close(got[0], A @ V)
    assert_close(got[1], A)


def test_what_a_masked_key_holds_does_not_matter(rng):
    """Not even NaN: its score is overwritten, not added to."""
    Q, K, V = draw_qkv(rng)
    mask = np.arange(7) != 3
    expected = attend(Q, K, V, mask)
    K[3] = np.nan
    np.testing.assert_array_equal(attend(Q, K, V, mask), expected)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_mask_and_is_causal_both_apply(rng, kind):
    Q, K, V = draw_qkv(rng, (2, 3))
    mask = draw_mask(rng, (2, 1, 1, 7))
    both = mask & causal_mask(5, 7)
    if kind == "float":
        bias = rng.normal(size=mask.shape)
        mask, both = np.where(mask, bias, -INF), np.where(both, bias, -INF)
    for got, expected in zip(
        attend(Q, K, V, mask, is_causal=True, return_weights=True),
        attend(Q, K, V, both, return_weights=True),
        strict=True,
    ):
        np.testing.assert_array_equal(got, expected)


@every_leading
@both_paths
def test_heads_and_sequences_do_not_see_each_other(rng, path, leading):
    Q, K, V = draw_qkv(rng, leading)
    mask = draw_mask(rng, (*leading, 5, 7))
    Y = output(path, Q, K, V, mask)
    for i in np.ndindex(leading):
        assert_close(Y[i], attend(Q[i], K[i], V[i], mask[i]))


@pytest.mark.parametrize(
    ("q", "k", "v", "leading"),
    [
        ((2, 3), (), (), (2, 3)),  # one set of keys and values for every head
        ((2, 3), (2, 1), (2, 1), (2, 3)),  # one for all heads of a sequence
        ((), (2,), (2,), (2,)),  # one query asks two texts
        ((2, 1), (1, 3), (3,), (2, 3)),
        ((), (), (2, 3), (2, 3)),  # the same weights for many values
    ],
)
@both_paths
def test_leading_axes_broadcast(rng, path, q, k, v, leading):
    n_q, n_k, d_k, d_v = (SIZES[name] for name in ("n_q", "n_k", "d_k", "d_v"))
    Q, K = rng.normal(size=(*q, n_q, d_k)), rng.normal(size=(*k, n_k, d_k))
    V = rng.normal(size=(*v, n_k, d_v))
    Y = output(path, Q, K, V)
    assert Y.shape == (*leading, n_q, d_v)
    whole = (np.broadcast_to(x, leading + x.shape[-2:]) for x in (Q, K, V))
    assert_close(Y, output(path, *whole))


def test_weights_have_the_leading_axes_of_the_values_too(rng):
    Q, K, _ = draw_qkv(rng)
    _, A = attend(Q, K, rng.normal(size=(2, 3, 7, 13)), return_weights=True)
    assert A.shape == (2, 3, 5, 7)


@pytest.mark.parametrize("kind", ["no mask", "bool", "float"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("shape", [(5, 7), (2, 5, 7), (2, 3, 5, 7), (2, 3, 301, 251)])
def test_asking_for_the_weights_does_not_change_one_bit_of_the_output(
    rng, shape, is_causal, kind
):
    *leading, n_q, n_k = shape
    Q, K = rng.normal(size=(*leading, n_q, 11)), rng.normal(size=(*leading, n_k, 11))
    V = rng.normal(size=(*leading, n_k, 13))
    mask = None if kind == "no mask" else draw_mask(rng, (n_q, n_k))
    if kind == "float":
        mask = np.where(mask, rng.normal(size=n_k), -INF)
    Y, _ = attend(Q, K, V, mask, is_causal=is_causal, return_weights=True)
    np.testing.assert_array_equal(attend(Q, K, V, mask, is_causal=is_causal), Y)


def test_scores_of_float32_are_computed_in_float32(rng):
    """It takes half the memory, whatever the dtype of the mask and the scale."""
    wide = rng.normal(size=(3, 512, 8))
    mask, scale = rng.normal(size=(512, 512)), np.float64(0.3)
    half, whole = (
        peak_memory(lambda QKV=QKV: attend(*QKV, mask, scale=scale))
        for QKV in (wide.astype(np.float32), wide)
    )
    assert half < 0.65 * whole


@both_paths
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
@pytest.mark.parametrize("mask", [None, "bool", "float64"])
def test_the_dtype_is_kept(rng, path, dtype, mask):
    Q, K, V = draw_qkv(rng, dtype=dtype)
    mask = None if mask is None else np.ones((5, 7), mask)
    assert output(path, Q, K, V, mask, is_causal=True).dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("scale", [np.float64(0.3), np.float32(0.3), 1])
def test_a_scale_of_another_type_does_not_change_the_dtype(rng, dtype, scale):
    Q, K, V = draw_qkv(rng, dtype=dtype)
    Y, A = attend(Q, K, V, scale=scale, return_weights=True)
    assert Y.dtype == A.dtype == np.dtype(dtype)


def test_the_wider_dtype_wins_when_inputs_differ(rng):
    Q, K, V = draw_qkv(rng, dtype=np.float16)
    assert attend(Q, K, V.astype(np.float32)).dtype == np.float32
    assert attend(Q.astype(np.float64), K, V).dtype == np.float64


@both_paths
def test_float16_scores_may_overflow_before_they_are_scaled(path):
    """256 · 16 · 16 = 65536 is beyond float16; over √256 it is 4096, in both keys."""
    Q, K = np.full((1, 256), 16, np.float16), np.full((2, 256), 16, np.float16)
    V = np.array([[3], [5]], np.float16)
    assert output(path, Q, K, V).tolist() == [[4]]


@both_paths
def test_float16_scores_may_overflow_after_they_are_scaled(path):
    """300 · 300 = 90000 is beyond float16, and 300 · 299 too: ∞ − ∞ would be NaN."""
    Q, K, V = (np.array(x, np.float16) for x in ([[300]], [[300], [299]], [[3], [5]]))
    assert output(path, Q, K, V).tolist() == [[3]]


def test_float16_weights_are_summed_in_float32():
    """70000 equal keys weigh 1/70000 each, but 70000 ones add up to ∞ in float16."""
    one = np.ones((70_000, 1), np.float16)
    Y, A = attend(one[:1], one, one, return_weights=True)
    assert Y.tolist() == [[1]]
    assert (A == np.float16(1 / 70_000)).all()


def test_huge_scores_pick_the_best_key():
    """Scores of ±10⁸: exp overflows without the shift, and the gap leaves one key."""
    assert attend([[1e4]], [[1e4], [-1e4]], [[3], [5]]).tolist() == [[3]]


def test_integers_and_lists_give_float64():
    assert attend([[1, 2]], [[3, 4]], [[5, 6]]).dtype == np.float64


@both_paths
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("leading", [(), (2,), (0,), (2, 0)], ids=str)
@pytest.mark.parametrize(
    ("n_q", "n_k", "d_k", "d_v"),
    [(0, 7, 11, 13), (5, 7, 11, 0), (0, 0, 11, 13), (5, 7, 11, 13)],
)
def test_axes_of_length_zero_are_axes_too(path, n_q, n_k, d_k, d_v, leading, is_causal):
    Q, K = np.ones((*leading, n_q, d_k)), np.ones((*leading, n_k, d_k))
    V = np.ones((*leading, n_k, d_v))
    mask = np.ones((*leading, 1, n_k), bool)
    Y = output(path, Q, K, V, mask, is_causal=is_causal)
    assert Y.shape == (*leading, n_q, d_v)


@both_paths
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("leading", [(), (2,)], ids=str)
def test_without_keys_there_is_nothing_to_bring_home(path, leading, is_causal):
    Q, K, V = (np.ones((*leading, n, d)) for n, d in ((5, 11), (0, 11), (0, 13)))
    Y = output(path, Q, K, V, is_causal=is_causal)
    assert Y.shape == (*leading, 5, 13)
    assert not Y.any()


@both_paths
@every_leading
def test_vectors_without_entries_weigh_all_keys_equally(rng, path, leading):
    V = rng.normal(size=(*leading, 7, 13))
    Y = output(path, np.ones((*leading, 5, 0)), np.ones((*leading, 7, 0)), V)
    assert_close(Y, np.broadcast_to(V.mean(-2, keepdims=True), Y.shape))


@both_paths
def test_inputs_may_be_read_only_and_in_any_order_in_memory(rng, path):
    Q, K, V = draw_qkv(rng, (2, 3))
    mask = rng.normal(size=(5, 7))
    expected = output(path, Q, K, V, mask)
    Q = np.asfortranarray(Q)
    K = np.repeat(K, 2, axis=-1)[..., ::2]
    V = V[..., ::-1, :].copy()[..., ::-1, :]
    mask = np.asfortranarray(mask)
    for x in (Q, K, V, mask):
        x.flags.writeable = False
    assert_close(output(path, Q, K, V, mask), expected)


@both_paths
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("mask", ["bool", "float"])
def test_inputs_stay_as_they_are(rng, path, is_causal, mask):
    Q, K, V = draw_qkv(rng, (2, 3))
    mask = rng.random((5, 7)) < 0.6 if mask == "bool" else rng.normal(size=(5, 7))
    with nothing_modified(Q, K, V, mask):
        Y = output(path, Q, K, V, mask, is_causal=is_causal, scale=1.0)
        Y += 1


# Agreement


@every_leading
@pytest.mark.parametrize("scale", [None, 0.3, -1.0])
@both_paths
def test_the_output_agrees_with_torch(rng, path, leading, scale):
    Q, K, V = draw_qkv(rng, leading)
    expected = reference.scaled_dot_product_attention(Q, K, V, scale=scale)
    assert_close(output(path, Q, K, V, scale=scale), expected, TORCH)


@pytest.mark.parametrize(("n_q", "n_k"), [(5, 5), (5, 7), (7, 5), (1, 7), (7, 1)])
@both_paths
def test_causal_attention_agrees_with_torch(rng, path, n_q, n_k):
    Q, K, V = (
        rng.normal(size=(2, 3, n, d)) for n, d in ((n_q, 11), (n_k, 11), (n_k, 13))
    )
    expected = reference.scaled_dot_product_attention(Q, K, V, is_causal=True)
    assert_close(output(path, Q, K, V, is_causal=True), expected, TORCH)


@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize(
    "shape",
    [
        shape
        for n_axes in (1, 2, 3, 4)
        for shape in product(*((1, n) for n in (2, 3, 5, 7)[4 - n_axes :]))
    ],
    ids=str,
)
def test_masks_of_every_broadcastable_shape_agree_with_torch(rng, shape, kind):
    Q, K, V = draw_qkv(rng, (2, 3))
    mask = draw_mask(rng, shape) if kind == "bool" else rng.normal(size=shape)
    whole = np.broadcast_to(mask, (2, 3, 5, 7)).copy()
    expected = reference.scaled_dot_product_attention(Q, K, V, whole)
    assert_close(attend(Q, K, V, mask), expected, TORCH)


@pytest.mark.parametrize(
    ("dtype", "atol"), [("float32", FLOAT32), ("float16", FLOAT16)]
)
def test_short_floats_differ_from_float64_by_rounding_only(rng, dtype, atol):
    Q, K, V = draw_qkv(rng, (2, 3))
    expected = attend(Q, K, V, return_weights=True)
    short = attend(*(x.astype(dtype) for x in (Q, K, V)), return_weights=True)
    assert_close(short[0], expected[0], atol)
    assert_close(short[1], expected[1], atol)


# Refusals


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (
            [(5, 11), (7, 13), (7, 13)],
            "Q and K must have the same last axis d_k, got 11 and 13",
        ),
        (
            [(5, 11), (7, 1), (7, 13)],
            "Q and K must have the same last axis d_k, got 11 and 1",
        ),
        (
            [(5, 11), (7, 11), (5, 13)],
            "K and V must have the same length n_k, got 7 and 5",
        ),
        (
            [(5, 11), (7, 11), (1, 13)],
            "K and V must have the same length n_k, got 7 and 1",
        ),
        (
            [(5, 11), (7, 11), (11, 13)],
            "K and V must have the same length n_k, got 7 and 11",
        ),
        (
            [(2, 5, 11), (3, 7, 11), (3, 7, 13)],
            "leading axes do not broadcast: Q (2, 5, 11), K (3, 7, 11), V (3, 7, 13)",
        ),
        (
            [(3, 5, 11), (3, 7, 11), (2, 7, 13)],
            "leading axes do not broadcast: Q (3, 5, 11), K (3, 7, 11), V (2, 7, 13)",
        ),
        ([(11,), (7, 11), (7, 13)], "Q must have shape (..., n_q, d_k), got (11,)"),
        ([(5, 11), (11,), (7, 13)], "K must have shape (..., n_k, d_k), got (11,)"),
        ([(5, 11), (7, 11), (7,)], "V must have shape (..., n_k, d_v), got (7,)"),
    ],
    ids=str,
)
def test_shapes_that_do_not_fit_are_refused_with_both_numbers(shapes, message):
    Q, K, V = (np.ones(shape) for shape in shapes)
    with nothing_modified(Q, K, V), pytest.raises(ValueError) as refusal:
        attend(Q, K, V)
    assert str(refusal.value) == message


@pytest.mark.parametrize("shape", [(7, 5), (3, 1, 5, 7), (2, 5, 7), (1, 2, 3, 5, 7)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_a_mask_that_does_not_broadcast_is_refused_with_both_shapes(
    rng, shape, is_causal
):
    Q, K, V = draw_qkv(rng, (2, 3))
    mask = np.ones(shape, bool)
    with nothing_modified(Q, K, V, mask), pytest.raises(ValueError) as refusal:
        attend(Q, K, V, mask, is_causal=is_causal)
    assert str(refusal.value) == (
        f"mask of shape {shape} does not broadcast to the shape of the scores "
        "(..., n_q, n_k) = (2, 3, 5, 7)"
    )


@both_paths
def test_an_integer_mask_is_refused_because_one_could_mean_either(rng, path):
    with pytest.raises(TypeError, match=r"^mask must be bool \(True = may attend\)"):
        output(path, *draw_qkv(rng), np.ones((5, 7), int))


@both_paths
@pytest.mark.parametrize("bad", [INF, np.nan])
def test_a_float_mask_with_nan_or_plus_infinity_is_refused(rng, path, bad):
    mask = np.zeros((5, 7))
    mask[2, 3] = bad
    with pytest.raises(ValueError, match=r"^a float mask must hold finite numbers or"):
        output(path, *draw_qkv(rng), mask, is_causal=True)


@pytest.mark.parametrize("scale", ["1", True, 1j, np.array(0.5)], ids=str)
def test_a_scale_that_is_no_number_is_refused(rng, scale):
    with pytest.raises(TypeError, match=r"^scale must be a number or None, got "):
        attend(*draw_qkv(rng), scale=scale)


@pytest.mark.parametrize("scale", [INF, np.nan])
def test_a_scale_that_is_not_finite_is_refused(rng, scale):
    with pytest.raises(ValueError, match=rf"^scale must be finite, got {scale}$"):
        attend(*draw_qkv(rng), scale=scale)


def test_options_are_given_by_name(rng):
    """Otherwise True in fifth place could be causal, scaled or with weights."""
    with pytest.raises(TypeError, match="positional"):
        attend(*draw_qkv(rng), None, True)


def test_tensors_are_sent_to_mha_nn(rng):
    Q, K, V = map(torch.from_numpy, draw_qkv(rng))
    with pytest.raises(TypeError, match=r"^Q is a torch\.Tensor; .*mha\.nn"):
        attend(Q, K, V)
    with pytest.raises(TypeError, match=r"^mask is a torch\.Tensor; .*mha\.nn"):
        attend(*draw_qkv(rng), torch.ones(5, 7, dtype=torch.bool))
