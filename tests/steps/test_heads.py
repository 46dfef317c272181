"""Steps 5 and 6: many heads at once, and positions."""

from itertools import product

import numpy as np
import pytest

from mha import (
    linear,
    merge_heads,
    multi_head_attention,
    scaled_dot_product_attention,
    sinusoidal_positional_encoding,
    split_heads,
)
from tests import reference
from tests.samples import LEADING, SIZES, draw_mask, nothing_modified
from tests.tolerances import TORCH, assert_close

N_HEADS, N_Q, N_K, D_K, D_V = (
    SIZES[s] for s in ("n_heads", "n_q", "n_k", "d_k", "d_v")
)
D_MODEL, D_OUT = 17, 19  # primes too: no width has to be the product of two others
EYE = np.eye(2)


def draw_tokens(rng, leading=()):
    """Return X, X_k and X_v."""
    return [rng.normal(size=(*leading, n, D_MODEL)) for n in (N_Q, N_K, N_K)]


def draw_weights(rng, d_v=D_V, d_out=D_OUT, bias=True):
    """Return the matrices, and their biases, as keyword arguments."""
    widths = dict(Q=N_HEADS * D_K, K=N_HEADS * D_K, V=N_HEADS * d_v, O=d_out)
    rows = dict.fromkeys("QKV", D_MODEL) | {"O": N_HEADS * d_v}
    weights = {
        f"W_{c}": rng.normal(size=(rows[c], widths[c])) / np.sqrt(rows[c])
        for c in widths
    }
    return weights | {f"b_{c}": rng.normal(size=widths[c]) for c in widths if bias}


# By hand


def test_a_bias_is_added_to_every_row():
    assert linear([1, 2], [[3, 0], [0, 5]]).tolist() == [3, 10]
    x, W, b = [[[1, 2]], [[0, 1]]], [[3, 0, 1], [0, 5, 1]], [100, 200, 300]
    assert linear(x, W, b).tolist() == [[[103, 210, 303]], [[100, 205, 301]]]


def test_heads_are_blocks_of_columns_and_merging_lays_them_side_by_side():
    x = [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]
    heads = [[[1, 2], [7, 8]], [[3, 4], [9, 10]], [[5, 6], [11, 12]]]
    assert split_heads(x, 3).tolist() == heads
    assert merge_heads(heads).tolist() == x


@pytest.mark.parametrize("shape", [(5, 6), (2, 5, 6), (2, 3, 5, 6), (0, 6), (5, 0)])
@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "longdouble"])
def test_splitting_copies_nothing_and_merging_undoes_it(shape, dtype):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    heads = split_heads(x, np.int64(3))
    assert heads.shape == (*shape[:-2], 3, shape[-2], shape[-1] // 3)
    assert not x.size or np.shares_memory(heads, x)
    assert heads.dtype == merge_heads(heads).dtype == x.dtype
    np.testing.assert_array_equal(merge_heads(heads), x)


def test_each_head_weighs_by_its_own_columns():
    """Head 1 reads column 1: scores of token 1 are ln 3 and 0, so 3/4 : 1/4.

    Column 2 is 0 for both tokens: head 2 takes the mean. The values are 8, 4 in
    column 1 and 2, 6 in column 2. Token 1 gets 6 + 1 = 7 and 4.
    """
    X, X_v, W_Q = [[1, 0], [0, 0]], [[8, 2], [4, 6]], np.diag([np.log(3), 1])
    Y, A = multi_head_attention(X, W_Q, EYE, EYE, EYE, 2, X_v=X_v, return_weights=True)
    assert_close(A, [[[0.75, 0.25], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]])
    assert_close(Y, [[7, 4], [6, 4]])


def test_W_O_mixes_the_heads_and_biases_are_added_behind_their_matrices():
    """One token attends to itself: 3·1 + 5·10 = 53, and (2·3 + 4)·5 + 7 = 57."""
    assert multi_head_attention([[3, 5]], EYE, EYE, EYE, [[1], [10]], 2) == 53
    Y = multi_head_attention([[3]], [[1]], [[1]], [[2]], [[5]], 1, b_V=[4], b_O=[7])
    assert Y.tolist() == [[57]]


# Laws


@pytest.mark.parametrize("leading", LEADING, ids=str)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
def test_many_heads_are_a_loop_over_heads(rng, leading, bias, is_causal):
    X, X_k, X_v = draw_tokens(rng, leading)
    mask, w = draw_mask(rng, (N_HEADS, 1, N_K)), draw_weights(rng, bias=bias)
    Y, A = multi_head_attention(
        X, **w, n_heads=N_HEADS, mask=mask[None] if leading else mask, X_k=X_k,
        X_v=X_v, is_causal=is_causal, return_weights=True,
    )  # fmt: skip
    w = dict.fromkeys(("b_Q", "b_K", "b_V", "b_O"), 0) | w
    Q, K, V = (
        np.split(x @ w[f"W_{c}"] + w[f"b_{c}"], N_HEADS, axis=-1)
        for x, c in ((X, "Q"), (X_k, "K"), (X_v, "V"))
    )
    heads = []
    for r in range(N_HEADS):
        Y_r, A_r = scaled_dot_product_attention(
            Q[r], K[r], V[r], mask[r], is_causal=is_causal, return_weights=True
        )
        heads.append(Y_r)
        assert_close(A[..., r, :, :], A_r)
    assert_close(Y, np.concatenate(heads, -1) @ w["W_O"] + w["b_O"])


def test_the_tokens_answer_themselves_unless_others_are_asked(rng):
    X, X_k, _ = draw_tokens(rng)
    w = draw_weights(rng) | {"n_heads": N_HEADS}
    assert_close(
        multi_head_attention(X, **w), multi_head_attention(X, **w, X_k=X, X_v=X)
    )
    Y = multi_head_attention(X, **w, X_k=X_k)
    assert_close(Y, multi_head_attention(X, **w, X_k=X_k, X_v=X_k))
    assert np.abs(Y - multi_head_attention(X, **w, X_k=X_k, X_v=X_k + 1)).max() > 0.1
    other = multi_head_attention(X, **w, X_v=X + 1)
    assert_close(other, multi_head_attention(X, **w, X_k=X, X_v=X + 1))


def test_asked_and_answering_tokens_may_have_other_widths(rng):
    X, (X_k, X_v) = rng.normal(size=(5, 2)), (rng.normal(size=(7, n)) for n in (3, 4))
    W = [rng.normal(size=shape) for shape in ((2, 6), (3, 6), (4, 10), (10, 5))]
    Y = multi_head_attention(X, *W, 2, X_k=X_k, X_v=X_v)
    Q, K, V = (split_heads(x @ w, 2) for x, w in zip((X, X_k, X_v), W, strict=False))
    assert_close(Y, merge_heads(scaled_dot_product_attention(Q, K, V)) @ W[3])


def test_leading_axes_broadcast_and_axes_may_be_empty(rng):
    w = draw_weights(rng) | {"n_heads": N_HEADS}
    X, X_k = rng.normal(size=(2, 1, 5, D_MODEL)), rng.normal(size=(3, 7, D_MODEL))
    Y, A = multi_head_attention(X, **w, X_k=X_k, return_weights=True)
    assert Y.shape == (2, 3, 5, D_OUT) and A.shape == (2, 3, N_HEADS, 5, 7)
    assert_close(Y[1, 2], multi_head_attention(X[1, 0], **w, X_k=X_k[2]))
    assert multi_head_attention(X[..., :0, :], **w).shape == (2, 1, 0, D_OUT)
    no_keys = multi_head_attention(X, **w, X_k=X_k[:, :0])
    np.testing.assert_array_equal(no_keys, np.broadcast_to(w["b_O"], no_keys.shape))


@pytest.mark.parametrize("kind", ["no mask", "padding", "per head", "float"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("leading", LEADING, ids=str)
def test_output_and_weights_are_those_of_torch(rng, leading, bias, kind):
    tokens = [rng.normal(size=(*leading, n, 33)) for n in (N_Q, N_K, N_K)]
    matrices = {f"W_{c}": rng.normal(size=(33, 33)) / 6 for c in "QKVO"}
    biases = {f"b_{c}": rng.normal(size=33) for c in "QKVO"} if bias else {}
    shape = dict(padding=(1, 1, N_K)).get(kind, (N_HEADS, N_Q, N_K))
    mask = None if kind == "no mask" else draw_mask(rng, (*leading, *shape))
    if kind == "float":
        mask = np.where(mask, rng.normal(size=mask.shape), -np.inf)
    given = matrices | biases | dict(n_heads=N_HEADS, mask=mask)
    X, X_k, X_v = tokens
    for others in ({}, {"X_k": X_k, "X_v": X_v}):
        if not others and mask is not None:
            continue  # the mask is for seven keys
        got = multi_head_attention(X, **given, **others, return_weights=True)
        for ours, theirs in zip(
            got, reference.multi_head_attention(X, **given, **others), strict=True
        ):
            assert_close(ours, theirs, TORCH)


def test_inputs_may_be_read_only_and_in_any_order_in_memory(rng):
    (X, X_k, X_v), w = draw_tokens(rng, (2,)), draw_weights(rng)
    mask = draw_mask(rng, (2, N_HEADS, N_Q, N_K))
    given = [X, X_k, X_v, mask, *w.values()]
    Y = multi_head_attention(X, **w, n_heads=N_HEADS, mask=mask, X_k=X_k, X_v=X_v)
    for x in given:
        x.flags.writeable = False
    X, X_k, X_v, mask = (np.asfortranarray(x) for x in (X, X_k, X_v, mask))
    w = {name: W[::-1][::-1] for name, W in w.items()}
    with nothing_modified(*given):
        again = multi_head_attention(
            X, **w, n_heads=N_HEADS, mask=mask, X_k=X_k, X_v=X_v
        )
    assert_close(again, Y)


# Positions


@pytest.mark.parametrize(("n", "d_model"), [(0, 4), (1, 1), (3, 2), (7, 5), (41, 8)])
def test_pair_i_turns_by_its_own_frequency(n, d_model):
    """An odd width ends with a sine that has no cosine."""
    P = sinusoidal_positional_encoding(n, d_model)
    assert P.shape == (n, d_model) and P.dtype == np.float64
    for t, column in product(range(n), range(d_model)):
        angle = t * 10000 ** (-2 * (column // 2) / d_model)
        assert_close(P[t, column], (np.cos if column % 2 else np.sin)(angle))
