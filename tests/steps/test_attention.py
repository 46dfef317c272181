"""Steps 4 and 8: attention, written to be read and written to be fast."""

import sys
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mha import (
    causal_mask,
    chunked_attention,
    masked_softmax,
    padding_mask,
    scaled_dot_product_attention,
)
from tests import reference
from tests.samples import (
    LEADING,
    MIB,
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
from tests.tolerances import FLOAT16, FLOAT32, TORCH, assert_close

INF = np.inf
biases = arrays(np.float64, (5, 7), elements=st.just(-INF) | floats)

PATHS = {
    "plain": scaled_dot_product_attention,
    "chunked": chunked_attention,
    "blocks of 1": partial(chunked_attention, block_size=1),
    "blocks of 3": partial(chunked_attention, block_size=3),
}
every_path = pytest.mark.parametrize("attend", PATHS.values(), ids=PATHS)
with_and_without_the_future = pytest.mark.parametrize("is_causal", [False, True])


def draw_kind(rng, kind, shape):
    """Return a mask of that kind, bool or float, or none."""
    if kind == "no mask":
        return None
    mask = draw_mask(rng, shape)
    return mask if kind == "bool" else np.where(mask, rng.normal(size=shape), -INF)


# By hand


@every_path
def test_three_quarters_of_8_and_one_quarter_of_4_are_7(attend):
    """In four dimensions scores are halved: ln 9 becomes ln 3."""
    assert_close(attend([[np.log(3)]], [[1], [0]], [[8], [4]]), [[7]])
    assert_close(attend([[np.log(3)]], [[0], [1]], [[4], [8]]), [[7]])
    four = np.eye(2, 4)
    assert_close(attend(np.log(9) * four[:1], four, [[8], [4]]), [[7]])
    assert_close(attend([[np.log(9)]], [[1], [0]], [[8], [4]], scale=0.5), [[7]])
    assert_close(attend([[np.log(9)]], [[1], [0]], [[8], [4]], scale=0), [[6]])


@every_path
def test_causal_attention_to_equal_keys_is_a_running_mean(attend):
    one = np.ones((3, 1))
    assert_close(attend(one, one, [[3], [5], [10]], is_causal=True), [[3], [4], [6]])


@every_path
@pytest.mark.parametrize("closed", [False, -INF])
def test_a_mask_leaves_open_keys_to_share_and_may_leave_none(attend, closed):
    mask = np.full((3, 3), closed)
    mask[0, 1:] = mask[1, 0] = closed is False  # True in one mask, 0 in the other
    Y = attend(np.ones((3, 1)), np.ones((3, 1)), [[99], [4], [6]], mask)
    assert_close(Y, [[5], [99], [0]])


@every_path
@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_huge_scores_pick_the_best_key_without_a_warning(attend, order, recwarn):
    """Of ±10⁸, of ±3·10³⁸ in float32, whose gap is ∞, and of 90000 in float16."""
    K, V = np.array([[1e4], [-1e4]])[order], np.array([[3], [5]])[order]
    assert attend([[1e4]], K, V).tolist() == [[3]]
    K = np.float32([[3e38], [-3e38]])[order]
    assert attend(np.ones((1, 1), np.float32), K, np.float32(V)).tolist() == [[3]]
    K = np.float16([[300], [299]])[order]
    assert attend(np.float16([[300]]), K, np.float16(V)).tolist() == [[3]]
    assert not recwarn


@every_path
def test_the_lowest_number_there_is_is_a_score_like_any_other(attend):
    """Many libraries write it for "closed": in a row of nothing else, all share."""
    mask = np.full((1, 2), np.finfo(np.float64).min)
    assert attend([[0]], np.ones((2, 1)), [[4], [6]], mask).tolist() == [[5]]


@every_path
def test_float16_is_summed_in_float32(attend):
    """Products of 65536, and 70000 weights of 1/70000, leave the range of float16."""
    Q, K = np.full((1, 256), 16, np.float16), np.full((2, 256), 16, np.float16)
    assert attend(Q, K, np.float16([[3], [5]])).tolist() == [[4]]
    if attend in (scaled_dot_product_attention, chunked_attention):
        one = np.ones((70_000, 1), np.float16)
        assert attend(one[:1], one, one).tolist() == [[1]]


# Laws


@given(queries, keys, values, masks | biases, st.integers(1, 8), st.booleans())
def test_neither_blocks_nor_masks_nor_the_future_change_the_answer(
    Q, K, V, mask, size, is_causal
):
    Y = chunked_attention(Q, K, V, mask, is_causal=is_causal, block_size=size)
    assert_close(Y, scaled_dot_product_attention(Q, K, V, mask, is_causal=is_causal))


@given(queries, keys, values, masks)
def test_the_output_is_the_mean_of_the_values_by_the_weights(Q, K, V, mask):
    Y, A = scaled_dot_product_attention(Q, K, V, mask, return_weights=True)
    assert_close(A.sum(-1), mask.any(-1).astype(float))
    assert not A[~mask].any()
    assert_close(Y, A @ V)


@every_path
def test_no_query_needs_the_future_and_blocks_of_it_are_not_even_read(rng, attend):
    """The plain function multiplies it by weights of zero, so it may not be NaN."""
    Q, K, V = draw_qkv(rng)
    before = attend(Q, K, V, is_causal=True)
    K, V = K.copy(), V.copy()
    K[3:] += 3
    V[3:] -= 5
    after = attend(Q, K, V, is_causal=True)
    np.testing.assert_array_equal(after[:3], before[:3])
    assert (after[3:] != before[3:]).all()
    V[3:] = np.nan
    Y = chunked_attention(Q, K, V, is_causal=True, block_size=3)
    np.testing.assert_array_equal(np.isnan(Y).all(-1), [0, 0, 0, 1, 1])


@every_path
def test_what_a_masked_key_holds_does_not_matter_and_other_nans_show(rng, attend):
    Q, K, V = draw_qkv(rng)
    mask = np.arange(7) != 3
    expected = attend(Q, K, V, mask)
    K[3] = np.nan
    for closed in (mask, np.where(mask, 0, -INF)):
        np.testing.assert_array_equal(attend(Q, K, V, closed), expected)
    Q[2, 3] = np.nan
    Y = attend(Q, K, V, mask)
    np.testing.assert_array_equal(np.isnan(Y).all(-1), np.arange(5) == 2)


@every_path
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_mask_and_is_causal_both_apply(rng, attend, kind):
    QKV, mask = draw_qkv(rng, (2, 3)), draw_kind(rng, kind, (2, 1, 1, 7))
    both = mask & causal_mask(5, 7) if kind == "bool" else None
    both = np.where(causal_mask(5, 7), mask, -INF) if both is None else both
    assert_close(attend(*QKV, mask, is_causal=True), attend(*QKV, both))


@every_path
@pytest.mark.parametrize(
    ("q", "k", "v", "leading"),
    [
        ((2, 3), (2, 3), (2, 3), (2, 3)),
        ((2, 3), (2, 1), (2, 1), (2, 3)),  # one of keys and values for all heads
        ((), (2,), (2,), (2,)),  # one query asks two texts
        ((2, 1), (1, 3), (3,), (2, 3)),
        ((), (), (2, 3), (2, 3)),  # the same weights for many values
    ],
    ids=str,
)
def test_leading_axes_broadcast_and_do_not_see_each_other(
    rng, attend, q, k, v, leading
):
    Q, K = rng.normal(size=(*q, 5, 11)), rng.normal(size=(*k, 7, 11))
    V, mask = rng.normal(size=(*v, 7, 13)), draw_mask(rng, (*leading, 5, 7))
    Y = attend(Q, K, V, mask)
    assert Y.shape == (*leading, 5, 13)
    Q, K, V = (np.broadcast_to(x, leading + x.shape[-2:]) for x in (Q, K, V))
    for i in np.ndindex(leading):
        assert_close(Y[i], attend(Q[i], K[i], V[i], mask[i]))
    _, A = scaled_dot_product_attention(Q[0], K[0], V, return_weights=True)
    assert A.shape == (*leading, 5, 7)


@with_and_without_the_future
@pytest.mark.parametrize("kind", ["no mask", "bool", "float"])
def test_asking_for_the_weights_does_not_change_one_bit(rng, is_causal, kind):
    Q, K, V = rng.normal(size=(3, 2, 211, 11))
    mask = draw_kind(rng, kind, (211, 211))
    attend = partial(scaled_dot_product_attention, Q, K, V, mask, is_causal=is_causal)
    np.testing.assert_array_equal(attend(), attend(return_weights=True)[0])


@every_path
@with_and_without_the_future
@pytest.mark.parametrize("leading", [(), (2,), (0,), (2, 0), (0, 2)], ids=str)
def test_axes_of_length_zero_are_axes_too(attend, is_causal, leading):
    """Without keys there is nothing to bring home; without entries all keys share."""
    for n_q, n_k, d_k, d_v in [(0, 7, 2, 3), (5, 7, 2, 0), (0, 0, 2, 3), (5, 0, 2, 3)]:
        Q, K = np.ones((*leading, n_q, d_k)), np.ones((*leading, n_k, d_k))
        V, mask = np.ones((*leading, n_k, d_v)), np.ones((*leading, 1, n_k), bool)
        Y = attend(Q, K, V, mask, is_causal=is_causal)
        added = attend(Q, K, V, np.zeros(mask.shape), is_causal=is_causal)
        np.testing.assert_array_equal(added, Y)
        assert Y.shape == (*leading, n_q, d_v)
        assert n_k or not Y.any()
    Q, K = np.ones((*leading, 1, 0)), np.ones((*leading, 2, 0))
    Y = attend(Q, K, np.broadcast_to([[3], [5]], (*leading, 2, 1)))
    assert (Y == 4).all()


# Memory


def test_scores_of_float32_are_computed_in_float32(rng):
    """It takes half the memory, whatever the dtype of the mask and the scale."""
    wide, mask = rng.normal(size=(3, 512, 8)), rng.normal(size=(512, 512))
    half, whole = (
        peak_memory(
            lambda QKV=QKV: scaled_dot_product_attention(
                *QKV, mask, scale=np.float64(0.3)
            )
        )
        for QKV in (wide.astype(np.float32), wide)
    )
    assert half < 0.65 * whole


@pytest.mark.parametrize("extra", [None, "bool", "float32"])
@with_and_without_the_future
def test_the_scores_of_one_block_are_in_memory_at_a_time(rng, extra, is_causal):
    """All scores of one head are 16 MiB, and two blocks would be 2 MiB."""
    n = 2048
    Q, K, V = rng.normal(size=(3, 2, n, 8)).astype(np.float32)
    mask = None if extra is None else np.ones((n, n), extra)
    peak = peak_memory(lambda: chunked_attention(Q, K, V, mask, is_causal=is_causal))
    answer = 2 * n * 8 * 4
    assert answer + MIB < peak < answer + 1.9 * MIB


def test_scores_of_a_few_heads_are_in_memory_at_a_time_and_masks_are_not_copied(rng):
    """Sixteen heads of 512 × 512 float32 scores are 16 MiB; a block holds 512 keys."""
    Q, K, V = rng.normal(size=(3, 16, 512, 8)).astype(np.float32)
    mask = padding_mask([500] * 16, 512)[:, 0]
    assert peak_memory(lambda: chunked_attention(Q, K, V, mask)) < 3 * MIB


@pytest.mark.parametrize(
    "mask_shape", [(1, 1, 1, 1), (2, 1, 211, 1), (1, 3, 1, 223), (2, 3, 211, 223)]
)
@pytest.mark.parametrize("at_once", [1, 2, 3, 4, 6])
def test_going_through_the_heads_in_groups_changes_nothing(
    rng, monkeypatch, mask_shape, at_once
):
    """Two sequences with three heads; the cache holds one head, some, or all six."""
    Q, V = rng.normal(size=(2, 3, 211, 11)), rng.normal(size=(2, 3, 223, 13))
    cache = at_once * 211 * 223 * Q.itemsize
    monkeypatch.setattr(sys.modules["mha.chunked"], "CACHE_BYTES", cache)
    mask = draw_mask(rng, mask_shape)
    for K in (rng.normal(size=(3, 223, 11)), rng.normal(size=(2, 3, 223, 11))):
        A = masked_softmax(Q @ K.swapaxes(-1, -2) / np.sqrt(11), mask)
        assert_close(chunked_attention(Q, K, V, mask), A @ V)


# Agreement


@every_path
@pytest.mark.parametrize(
    ("leading", "scale"), list(product(LEADING, [None, 0.3, -2.0])), ids=str
)
def test_the_output_is_that_of_torch(rng, attend, leading, scale):
    QKV = draw_qkv(rng, leading)
    for is_causal, kind in product((False, True), ("no mask", "bool", "float")):
        if is_causal and kind != "no mask":
            continue  # PyTorch takes one of the two
        mask = draw_kind(rng, kind, (*leading, 5, 7))
        options = dict(mask=mask, is_causal=is_causal, scale=scale)
        expected = reference.scaled_dot_product_attention(*QKV, **options)
        assert_close(attend(*QKV, **options), expected, TORCH)


@every_path
@pytest.mark.parametrize(("n_q", "n_k"), [(1, 7), (7, 5), (11, 11), (13, 17)])
def test_causal_attention_is_that_of_torch_for_any_two_lengths(rng, attend, n_q, n_k):
    Q, K, V = (rng.normal(size=(n, 3)) for n in (n_q, n_k, n_k))
    expected = reference.scaled_dot_product_attention(Q, K, V, is_causal=True)
    assert_close(attend(Q, K, V, is_causal=True), expected, TORCH)


@every_path
@pytest.mark.parametrize(
    ("dtype", "atol"), [(np.float16, FLOAT16), (np.float32, FLOAT32)]
)
def test_short_floats_differ_from_float64_by_rounding_only(rng, attend, dtype, atol):
    QKV = draw_qkv(rng, (2, 3), dtype)
    expected = attend(*(x.astype(np.float64) for x in QKV), is_causal=True)
    assert_close(attend(*QKV, is_causal=True), expected, atol)


@every_path
def test_inputs_stay_as_they_are(rng, attend):
    Q, K, V = draw_qkv(rng, (2, 3))
    for kind, is_causal in product(("bool", "float"), (False, True)):
        mask = draw_kind(rng, kind, (2, 3, 5, 7))
        with nothing_modified(Q, K, V, mask):
            attend(Q, K, V, mask, is_causal=is_causal)
