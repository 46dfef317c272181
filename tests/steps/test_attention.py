"""Steps 4 and 8: attention, written to be read and written to be fast."""

import math
import sys
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

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
    nothing_modified,
    peak_memory,
)
from tests.tolerances import FLOAT16, FLOAT32, NUMPY, TORCH, assert_close

INF = np.inf
ROUNDED = {np.float16: FLOAT16, np.float32: FLOAT32, np.float64: NUMPY}
PATHS = {
    "plain": scaled_dot_product_attention,
    "chunked": chunked_attention,
    "blocks of 1": partial(chunked_attention, block_size=1),
    "blocks of 3": partial(chunked_attention, block_size=3),
}
every_path = pytest.mark.parametrize("attend", PATHS.values(), ids=PATHS)
with_and_without_the_future = pytest.mark.parametrize("is_causal", [False, True])


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


def test_float16_is_summed_in_float32():
    """Products of 65536, and 70000 weights of 1/70000, leave the range of float16."""
    Q, K = np.full((1, 256), 16, np.float16), np.full((2, 256), 16, np.float16)
    one = np.ones((70_000, 1), np.float16)
    for attend in (scaled_dot_product_attention, chunked_attention):
        assert attend(Q, K, np.float16([[3], [5]])).tolist() == [[4]]
        assert attend(one[:1], one, one).tolist() == [[1]]


# The definition


def by_definition(Q, K, V, mask, is_causal, scale):
    """Return attention in float64, one query after another, without any trick."""
    Q, K, V = (np.asarray(x, np.float64) for x in (Q, K, V))
    scores = Q @ K.swapaxes(-1, -2) * scale
    n_q, n_k = scores.shape[-2:]
    if mask is not None:
        scores = np.where(mask, scores, -INF) if mask.dtype == bool else scores + mask
    if is_causal:
        i, j = np.indices((n_q, n_k))
        scores = np.where(j <= i, scores, -INF)
    leading = np.broadcast_shapes(scores.shape[:-2], V.shape[:-2])
    scores = np.broadcast_to(scores, leading + scores.shape[-2:])
    V = np.broadcast_to(V, leading + V.shape[-2:])
    Y = np.zeros((*leading, n_q, V.shape[-1]))
    for at in np.ndindex(*leading, n_q):
        open_keys = np.flatnonzero(scores[at] > -INF)
        powers = [math.exp(scores[at][j]) for j in open_keys]
        for j, power in zip(open_keys, powers, strict=True):
            Y[at] += power / sum(powers) * V[(*at[:-1], j)]
    return Y


@st.composite
def questions(draw):
    """Return arrays and options of any sizes, 0 included, that fit together."""
    axes = draw(mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_dims=2))
    n_q, n_k, d_k, d_v = (draw(st.integers(0, 7)) for _ in range(4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = draw(st.sampled_from([*ROUNDED]))
    sizes = (n_q, d_k), (n_k, d_k), (n_k, d_v)
    Q, K, V = (
        rng.normal(size=leading + size).astype(dtype)
        for leading, size in zip(axes.input_shapes, sizes, strict=True)
    )
    mask = None
    if kind := draw(st.sampled_from(["", "bool", "float"])):
        leading = draw(st.sampled_from([(), axes.result_shape]))
        mask = rng.random((*leading, n_q, n_k)) < 0.6
        mask = np.where(mask, rng.normal(size=mask.shape), -INF) if kind[4:] else mask
    options = {"is_causal": draw(st.booleans())}
    return Q, K, V, mask, options | {"scale": draw(st.sampled_from([0.3, -2.0, 0.0]))}


@given(questions(), st.sampled_from([*PATHS]))
def test_every_path_gives_attention_by_its_definition(question, path):
    """Whatever the sizes, the axes in front, the dtype, the mask and the scale."""
    Q, K, V, mask, options = question
    with nothing_modified(*(x for x in (Q, K, V, mask) if x is not None)):
        Y = PATHS[path](Q, K, V, mask, **options)
    assert Y.dtype == Q.dtype
    assert_close(Y, by_definition(Q, K, V, mask, **options), ROUNDED[Q.dtype.type])


@given(questions())
def test_the_output_is_the_mean_of_the_values_by_the_weights_to_the_last_bit(question):
    Q, K, V, mask, options = question
    Y, A = scaled_dot_product_attention(Q, K, V, mask, **options, return_weights=True)
    alone = scaled_dot_product_attention(Q, K, V, mask, **options)
    np.testing.assert_array_equal(alone, Y)
    atol = ROUNDED[Q.dtype.type]
    assert_close(np.broadcast_to(A @ V, Y.shape), Y, atol)
    sums = A.sum(-1, dtype=np.float64)
    assert_close(sums, (A > 0).any(-1), max(atol, 1e-12))


# Laws


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


@pytest.mark.parametrize("at_once", [1, 2, 3, 4, 6])
def test_going_through_the_heads_in_groups_changes_nothing(rng, monkeypatch, at_once):
    """Two sequences with three heads; the cache holds one head, some, or all six."""
    Q, V = rng.normal(size=(2, 3, 211, 11)), rng.normal(size=(2, 3, 223, 13))
    cache = at_once * 211 * 223 * Q.itemsize
    monkeypatch.setattr(sys.modules["mha.chunked"], "CACHE_BYTES", cache)
    for shape in ((1, 1, 1, 1), (2, 1, 211, 1), (1, 3, 1, 223), (2, 3, 211, 223)):
        mask = draw_mask(rng, shape)
        for K in (rng.normal(size=(3, 223, 11)), rng.normal(size=(2, 3, 223, 11))):
            A = masked_softmax(Q @ K.swapaxes(-1, -2) / np.sqrt(11), mask)
            assert_close(chunked_attention(Q, K, V, mask), A @ V)


# Agreement


@every_path
@pytest.mark.parametrize("leading", LEADING, ids=str)
def test_the_output_is_that_of_torch(rng, attend, leading):
    QKV = draw_qkv(rng, leading)
    mask = draw_mask(rng, (*leading, 5, 7))
    bias = np.where(mask, rng.normal(size=mask.shape), -INF)
    for scale, mask_or_none in product((None, -2.0), (None, mask, bias)):
        options = dict(mask=mask_or_none, is_causal=mask_or_none is None, scale=scale)
        expected = reference.scaled_dot_product_attention(*QKV, **options)
        assert_close(attend(*QKV, **options), expected, TORCH)
    both = attend(*QKV, mask, is_causal=True)
    assert_close(both, attend(*QKV, mask & causal_mask(5, 7)))
