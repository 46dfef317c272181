"""Step 9: attention whose scores are never all there at once."""

import sys
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mha import (
    causal_mask,
    chunked_attention,
    laws,
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
block_sizes = st.integers(1, 8)

every_leading = pytest.mark.parametrize("leading", LEADING, ids=str)
every_block_size = pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 512])
with_and_without_the_future = pytest.mark.parametrize("is_causal", [False, True])


# By hand


def test_a_larger_score_shrinks_what_was_gathered_before():
    """The scores 0 and ln 3 come one at a time: 1/4 of 4 and 3/4 of 8 are 7."""
    Y = chunked_attention([[np.log(3)]], [[0], [1]], [[4], [8]], block_size=1)
    assert_close(Y, [[7]])


def test_a_smaller_score_shrinks_itself():
    Y = chunked_attention([[np.log(3)]], [[1], [0]], [[8], [4]], block_size=1)
    assert_close(Y, [[7]])


@every_block_size
def test_causal_attention_to_equal_keys_is_a_running_mean(size):
    """Means of 3; 3, 5; 3, 5, 10."""
    one, V = np.ones((3, 1)), [[3], [5], [10]]
    Y = chunked_attention(one, one, V, is_causal=True, block_size=size)
    assert_close(Y, [[3], [4], [6]])


@pytest.mark.parametrize("mask", [[False, True, True], [-INF, 0, 0]], ids=str)
@every_block_size
def test_a_mask_leaves_the_open_keys_to_share(mask, size):
    """Without the first of three equal keys: the mean of 4 and 6 is 5."""
    Y = chunked_attention(
        [[1]], np.ones((3, 1)), [[99], [4], [6]], mask, block_size=size
    )
    assert_close(Y, [[5]])


@pytest.mark.parametrize("closed", [False, -INF])
@every_block_size
def test_a_query_that_may_look_at_nothing_brings_home_zeros(closed, size):
    one, mask = np.ones((2, 1)), np.full((2, 2), closed)
    mask[1, 0] = closed is False  # True in one mask, 0 in the other
    Y = chunked_attention(one, one, [[3], [5]], mask, block_size=size)
    assert Y.tolist() == [[0], [3]]


@pytest.mark.parametrize("open_key", range(4))
def test_blocks_without_an_open_key_leave_no_trace(open_key):
    mask = np.arange(4) == open_key
    V = np.arange(4.0)[:, None]
    Y = chunked_attention([[1]], np.ones((4, 1)), V, mask, block_size=1)
    assert Y.tolist() == [[open_key]]


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_huge_scores_pick_the_best_key(order):
    """Scores of ±10⁸: exp overflows without the shift, and the gap leaves one key."""
    K, V = np.array([[1e4], [-1e4]])[order], np.array([[3], [5]])[order]
    assert chunked_attention([[1e4]], K, V, block_size=1).tolist() == [[3]]


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_the_gap_between_two_scores_may_be_wider_than_all_numbers(order):
    """In float32 3e38 + 3e38 is ∞, and exp(-∞) is the right 0."""
    K, V = np.array([[3e38], [-3e38]])[order], np.array([[3], [5]])[order]
    one, K, V = (x.astype(np.float32) for x in (np.ones((1, 1)), K, V))
    assert chunked_attention(one, K, V, block_size=1).tolist() == [[3]]


def test_the_lowest_number_there_is_is_a_score_like_any_other():
    """Many libraries write it for "closed": in a row of nothing else, all share."""
    mask = np.full((1, 2), np.finfo(np.float64).min)
    Y = chunked_attention([[0]], np.ones((2, 1)), [[4], [6]], mask, block_size=1)
    assert Y.tolist() == [[5]]


# Laws


@pytest.mark.parametrize("size", [1, 2, 3, 512])
def test_it_keeps_all_laws(size):
    laws.assert_lawful(partial(chunked_attention, block_size=size))


@given(queries, keys, values, masks | biases, block_sizes, st.booleans())
def test_neither_blocks_nor_masks_nor_the_future_change_the_answer(
    Q, K, V, mask, size, is_causal
):
    Y = chunked_attention(Q, K, V, mask, is_causal=is_causal, block_size=size)
    assert_close(Y, scaled_dot_product_attention(Q, K, V, mask, is_causal=is_causal))


@given(queries, keys, values, block_sizes, st.integers(0, 4))
def test_changing_the_future_leaves_the_past_alone(Q, K, V, size, now):
    before = chunked_attention(Q, K, V, is_causal=True, block_size=size)
    K, V = K.copy(), V.copy()
    K[now + 1 :] += 3
    V[now + 1 :] -= 5
    after = chunked_attention(Q, K, V, is_causal=True, block_size=size)
    np.testing.assert_array_equal(after[: now + 1], before[: now + 1])


def test_blocks_of_the_future_are_not_even_read(rng):
    """Queries 0 to 3 are two blocks; 0 · NaN would be NaN in their answers."""
    Q, K, V = draw_qkv(rng)
    V[4:] = np.nan
    Y = chunked_attention(Q, K, V, is_causal=True, block_size=2)
    assert np.isfinite(Y[:4]).all()
    assert np.isnan(Y[4]).all()


@pytest.mark.parametrize("size", [1, 3, 512])
def test_what_a_masked_key_holds_does_not_matter(rng, size):
    """Not even NaN: its score is overwritten, not added to."""
    Q, K, V = draw_qkv(rng)
    mask = np.arange(7) != 3
    expected = chunked_attention(Q, K, V, mask, block_size=size)
    K[3] = np.nan
    Y = chunked_attention(Q, K, V, mask, block_size=size)
    np.testing.assert_array_equal(Y, expected)


@pytest.mark.parametrize("size", [1, 3, 512])
def test_a_score_of_nan_is_not_hidden(rng, size):
    Q, K, V = draw_qkv(rng)
    Q[2, 3] = np.nan
    Y = chunked_attention(Q, K, V, block_size=size)
    assert np.isnan(Y[2]).all()
    assert np.isfinite(np.delete(Y, 2, axis=0)).all()


@every_leading
def test_heads_and_sequences_do_not_see_each_other(rng, leading):
    Q, K, V = draw_qkv(rng, leading)
    mask = draw_mask(rng, (*leading, 5, 7))
    Y = chunked_attention(Q, K, V, mask, block_size=3)
    for at in np.ndindex(leading):
        one = chunked_attention(Q[at], K[at], V[at], mask[at], block_size=3)
        np.testing.assert_array_equal(Y[at], one)


@pytest.mark.parametrize("extra", ["nothing", "bool", "float32"])
@with_and_without_the_future
def test_the_scores_of_one_block_are_in_memory_at_a_time(rng, extra, is_causal):
    """All scores of one head are 16 MiB, and two blocks would be 2 MiB."""
    n = 2048
    Q, K, V = rng.normal(size=(3, 2, n, 8)).astype(np.float32)
    mask = None if extra == "nothing" else np.ones((n, n), extra)
    peak = peak_memory(
        lambda: chunked_attention(Q, K, V, mask, is_causal=is_causal, block_size=512)
    )
    answer = 2 * n * 8 * 4
    assert answer + MIB < peak < answer + 1.9 * MIB


def test_scores_of_a_few_heads_are_in_memory_at_a_time(rng):
    """Sixteen heads of 512 × 512 float32 scores are 16 MiB, one head is 1 MiB."""
    Q, K, V = rng.normal(size=(3, 16, 512, 8)).astype(np.float32)
    mask = padding_mask([500] * 16, 512)[:, 0]
    assert peak_memory(lambda: chunked_attention(Q, K, V, mask)) < 3 * MIB


@pytest.mark.parametrize(
    "mask_shape", list(product((1, 2), (1, 3), (1, 211), (1, 223))), ids=str
)
@pytest.mark.parametrize("shared_keys", [False, True])
@pytest.mark.parametrize("n_heads_at_once", [1, 2, 3, 4, 6])
def test_going_through_the_heads_in_groups_changes_nothing(
    rng, monkeypatch, mask_shape, shared_keys, n_heads_at_once
):
    """Two sequences with three heads; the cache holds one head, some, or all six."""
    Q, V = rng.normal(size=(2, 3, 211, 11)), rng.normal(size=(2, 3, 223, 13))
    K = rng.normal(size=(3, 223, 11) if shared_keys else (2, 3, 223, 11))
    cache = n_heads_at_once * 211 * 223 * Q.itemsize
    monkeypatch.setattr(sys.modules["mha.chunked"], "CACHE_BYTES", cache)
    mask = draw_mask(rng, mask_shape)
    A = masked_softmax(Q @ K.swapaxes(-1, -2) / np.sqrt(11), mask)
    assert_close(chunked_attention(Q, K, V, mask), A @ V)


def test_a_mask_that_broadcasts_is_not_written_out(rng):
    """Five sequences of three heads would need a mask of 60 MiB."""
    Q, K, V = rng.normal(size=(3, 5, 3, 2048, 2)).astype(np.float32)
    mask = rng.random((5, 1, 1, 2048)) < 0.6
    peak = peak_memory(lambda: chunked_attention(Q, K, V, mask, block_size=256))
    assert peak < Q.nbytes + MIB


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
@pytest.mark.parametrize("mask", [None, "bool", "float64"])
@pytest.mark.parametrize("scale", [None, np.float64(0.3), 1])
def test_the_dtype_is_kept(rng, dtype, mask, scale):
    mask = None if mask is None else np.ones((5, 7), mask)
    Q, K, V = draw_qkv(rng, dtype=dtype)
    Y = chunked_attention(Q, K, V, mask, is_causal=True, scale=scale, block_size=3)
    assert Y.dtype == np.dtype(dtype)


def test_the_wider_dtype_wins_when_inputs_differ(rng):
    Q, K, V = draw_qkv(rng, dtype=np.float16)
    assert chunked_attention(Q, K, V.astype(np.float32)).dtype == np.float32
    assert chunked_attention(Q.astype(np.float64), K, V).dtype == np.float64


def test_integers_and_lists_give_float64():
    assert chunked_attention([[1, 2]], [[3, 4]], [[5, 6]]).dtype == np.float64


def test_float16_is_summed_in_float32():
    """70000 equal keys weigh 1/70000 each, but 70000 ones add up to ∞ in float16."""
    one = np.ones((70_000, 1), np.float16)
    assert chunked_attention(one[:1], one, one).tolist() == [[1]]


def test_float16_scores_may_overflow():
    """300 · 300 = 90000 is beyond float16, and 300 · 299 too: ∞ − ∞ would be NaN."""
    Q, K, V = (np.array(x, np.float16) for x in ([[300]], [[300], [299]], [[3], [5]]))
    assert chunked_attention(Q, K, V, block_size=1).tolist() == [[3]]


@with_and_without_the_future
@pytest.mark.parametrize("leading", [(), (2,), (0,), (2, 0)], ids=str)
@pytest.mark.parametrize(
    ("n_q", "n_k", "d_k", "d_v"),
    [(0, 7, 11, 13), (5, 7, 11, 0), (0, 0, 11, 13), (5, 0, 11, 13), (5, 7, 0, 13)],
)
def test_axes_of_length_zero_are_axes_too(n_q, n_k, d_k, d_v, leading, is_causal):
    Q, K = np.ones((*leading, n_q, d_k)), np.ones((*leading, n_k, d_k))
    V, mask = np.ones((*leading, n_k, d_v)), np.ones((*leading, 1, n_k), bool)
    Y = chunked_attention(Q, K, V, mask, is_causal=is_causal, block_size=2)
    expected = scaled_dot_product_attention(Q, K, V, mask, is_causal=is_causal)
    assert_close(Y, expected)


def test_inputs_may_be_read_only_and_in_any_order_in_memory(rng):
    Q, K, V = draw_qkv(rng, (2, 3))
    mask = rng.normal(size=(5, 7))
    expected = chunked_attention(Q, K, V, mask, block_size=3)
    Q = np.asfortranarray(Q)
    K = np.repeat(K, 2, axis=-1)[..., ::2]
    V = V[..., ::-1, :].copy()[..., ::-1, :]
    mask = np.asfortranarray(mask)
    for x in (Q, K, V, mask):
        x.flags.writeable = False
    assert_close(chunked_attention(Q, K, V, mask, block_size=3), expected)


@with_and_without_the_future
@pytest.mark.parametrize("mask", ["bool", "float"])
def test_inputs_stay_as_they_are(rng, is_causal, mask):
    Q, K, V = draw_qkv(rng, (2, 3))
    mask = rng.random((5, 7)) < 0.6 if mask == "bool" else rng.normal(size=(5, 7))
    options = {"is_causal": is_causal, "scale": 1.0, "block_size": 3}
    with nothing_modified(Q, K, V, mask):
        Y = chunked_attention(Q, K, V, mask, **options)
        Y += 1


# Agreement


@with_and_without_the_future
@pytest.mark.parametrize("kind", ["no mask", "bool", "float"])
@pytest.mark.parametrize("size", [64, 257, 512, 1033])
def test_long_texts_agree_with_the_plain_function(rng, size, kind, is_causal):
    Q, K, V = (rng.normal(size=(n, d)) for n, d in ((611, 64), (1033, 64), (1033, 13)))
    Q *= 5  # scores of ±50: the largest so far changes often
    mask = None if kind == "no mask" else rng.random((611, 1033)) < 0.3
    if kind == "float":
        mask = np.where(mask, rng.normal(size=1033), -INF)
    Y = chunked_attention(Q, K, V, mask, is_causal=is_causal, block_size=size)
    assert_close(Y, scaled_dot_product_attention(Q, K, V, mask, is_causal=is_causal))


@pytest.mark.parametrize(
    "leading", list(product([(), (3,), (2, 1), (2, 3)], repeat=3)), ids=str
)
def test_leading_axes_broadcast_as_in_the_plain_function(rng, leading):
    shapes = zip(leading, ((5, 11), (7, 11), (7, 13)), strict=True)
    Q, K, V = (rng.normal(size=axes + shape) for axes, shape in shapes)
    Y = chunked_attention(Q, K, V, block_size=3)
    assert_close(Y, scaled_dot_product_attention(Q, K, V))


@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize(
    "shape",
    [
        shape
        for n_axes in (0, 1, 2, 3, 4)
        for shape in product(*((1, n) for n in (2, 3, 5, 7)[4 - n_axes :]))
    ],
    ids=str,
)
def test_masks_of_every_broadcastable_shape_agree_with_the_plain_function(
    rng, shape, kind
):
    Q, K, V = draw_qkv(rng, (2, 3))
    mask = rng.random(shape) < 0.6
    if kind == "float":
        mask = np.where(mask, rng.normal(size=shape), -INF)
    Y = chunked_attention(Q, K, V, mask, is_causal=True, block_size=3)
    assert_close(Y, scaled_dot_product_attention(Q, K, V, mask, is_causal=True))


@every_leading
@pytest.mark.parametrize("scale", [None, 0.3, -1.0, 0])
def test_the_output_agrees_with_torch(rng, leading, scale):
    Q, K, V = draw_qkv(rng, leading)
    expected = reference.scaled_dot_product_attention(Q, K, V, scale=scale)
    Y = chunked_attention(Q, K, V, scale=scale, block_size=3)
    assert_close(Y, expected, TORCH)


@pytest.mark.parametrize(("n_q", "n_k"), [(5, 5), (5, 7), (7, 5), (1, 7), (7, 1)])
@every_block_size
def test_causal_attention_agrees_with_torch(rng, n_q, n_k, size):
    """Both count queries and keys from the first token."""
    Q, K, V = (
        rng.normal(size=(2, 3, n, d)) for n, d in ((n_q, 11), (n_k, 11), (n_k, 13))
    )
    expected = reference.scaled_dot_product_attention(Q, K, V, is_causal=True)
    Y = chunked_attention(Q, K, V, is_causal=True, block_size=size)
    assert_close(Y, expected, TORCH)
    masked = chunked_attention(Q, K, V, causal_mask(n_q, n_k), block_size=size)
    assert_close(Y, masked)


@pytest.mark.parametrize(
    ("dtype", "atol"), [("float32", FLOAT32), ("float16", FLOAT16)]
)
def test_short_floats_differ_from_float64_by_rounding_only(rng, dtype, atol):
    Q, K, V = (rng.normal(size=(2, n, 64)) for n in (211, 307, 307))
    short = chunked_attention(*(x.astype(dtype) for x in (Q, K, V)), block_size=32)
    assert_close(short, scaled_dot_product_attention(Q, K, V), atol)


# Refusals

Q, K, V = np.ones((2, 5, 11)), np.ones((2, 7, 11)), np.ones((2, 7, 13))
REFUSED = {
    "d_k": (Q, np.ones((2, 7, 13)), V),
    "one column": (Q, np.ones((2, 7, 1)), V),
    "n_k": (Q, K, np.ones((2, 5, 13))),
    "leading axes": (Q, np.ones((3, 7, 11)), np.ones((3, 7, 13))),
    "one axis": (Q, K, np.ones(7)),
    "text": (Q, K, np.full((2, 7, 13), "x")),
    "complex": (Q * 1j, K, V),
    "tensor": (torch.ones(2, 5, 11), K, V),
    "mask of the wrong shape": (Q, K, V, np.ones((7, 5), bool)),
    "mask with more axes": (Q, K, V, np.ones((3, 2, 5, 7), bool)),
    "mask of integers": (Q, K, V, np.ones((5, 7), int)),
    "mask with +inf": (Q, K, V, np.where(np.arange(7) == 3, INF, 0)),
    "mask with NaN": (Q, K, V, np.where(np.arange(7) == 3, np.nan, 0)),
    "option without its name": (Q, K, V, None, True),
}


@pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED)
@with_and_without_the_future
def test_it_refuses_what_the_plain_function_refuses_in_the_same_words(
    arguments, is_causal
):
    said = []
    for function in (scaled_dot_product_attention, chunked_attention):
        with pytest.raises((ValueError, TypeError)) as refusal:
            function(*arguments, is_causal=is_causal)
        said.append((refusal.type, str(refusal.value).removeprefix(function.__name__)))
    assert said[0] == said[1]


@pytest.mark.parametrize("scale", ["1", True, 1j, np.array(0.5), INF, np.nan], ids=str)
def test_it_refuses_the_same_scales_in_the_same_words(scale):
    said = []
    for function in (scaled_dot_product_attention, chunked_attention):
        with pytest.raises((ValueError, TypeError)) as refusal:
            function(Q, K, V, scale=scale)
        said.append((refusal.type, str(refusal.value)))
    assert said[0] == said[1]


@pytest.mark.parametrize("size", [0, -3])
def test_a_block_holds_at_least_one_key(size):
    with pytest.raises(ValueError, match=f"^block_size must be at least 1, got {size}"):
        chunked_attention(Q, K, V, block_size=size)


@pytest.mark.parametrize("size", [2.0, "2", None, True])
def test_a_block_holds_whole_keys(size):
    with pytest.raises(TypeError, match=r"^block_size must be an integer, got "):
        chunked_attention(Q, K, V, block_size=size)
