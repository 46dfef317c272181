"""Step 5: several heads look at once."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from mha import (
    causal_mask,
    merge_heads,
    multi_head_attention,
    padding_mask,
    scaled_dot_product_attention,
    split_heads,
)
from tests import reference
from tests.samples import LEADING, SIZES, draw_mask, nothing_modified
from tests.tolerances import FLOAT16, FLOAT32, FUSED, TORCH, assert_close

INF = np.inf
N_HEADS, N_Q, N_K, D_K, D_V = (
    SIZES[s] for s in ("n_heads", "n_q", "n_k", "d_k", "d_v")
)
D_MODEL, D_OUT = 17, 19  # primes too: no width has to be the product of two others

every_leading = pytest.mark.parametrize("leading", LEADING, ids=str)


def draw_tokens(rng, n, leading=(), d_model=D_MODEL):
    return rng.normal(size=(*leading, n, d_model))


def draw_weights(rng, d_model=D_MODEL, d_k=D_K, d_v=D_V, d_out=D_OUT, bias=False):
    """Return the four matrices, and their biases, as keyword arguments."""
    widths = dict(Q=N_HEADS * d_k, K=N_HEADS * d_k, V=N_HEADS * d_v, O=d_out)
    rows = dict.fromkeys("QKV", d_model) | {"O": N_HEADS * d_v}
    weights = {
        f"W_{c}": rng.normal(size=(rows[c], widths[c])) / np.sqrt(rows[c])
        for c in widths
    }
    biases = {f"b_{c}": rng.normal(size=widths[c]) for c in widths}
    return weights | (biases if bias else {})


def head_by_head(X, X_k, X_v, mask, is_causal=False, *, W_Q, W_K, W_V, W_O, **b):
    """Return output and weights from a loop over heads, each with its own columns."""
    b = dict.fromkeys(("b_Q", "b_K", "b_V", "b_O"), 0) | b
    Q, K, V = X @ W_Q + b["b_Q"], X_k @ W_K + b["b_K"], X_v @ W_V + b["b_V"]
    heads, maps = [], []
    for r in range(N_HEADS):
        Q_r = Q[..., r * D_K : (r + 1) * D_K]
        K_r = K[..., r * D_K : (r + 1) * D_K]
        V_r = V[..., r * D_V : (r + 1) * D_V]
        mask_r = None if mask is None else mask[..., r, :, :]
        Y_r, A_r = scaled_dot_product_attention(
            Q_r, K_r, V_r, mask_r, is_causal=is_causal, return_weights=True
        )
        heads.append(Y_r)
        maps.append(A_r)
    return np.concatenate(heads, -1) @ W_O + b["b_O"], np.stack(maps, -3)


# By hand


def test_two_heads_of_four_columns_are_the_left_and_the_right_half():
    x = [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert split_heads(x, 2).tolist() == [[[1, 2], [5, 6]], [[3, 4], [7, 8]]]


def test_merging_lays_the_heads_side_by_side():
    heads = [[[1, 2], [5, 6]], [[3, 4], [7, 8]]]
    assert merge_heads(heads).tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_each_head_weighs_by_its_own_columns():
    """Head 1 reads column 1: scores of token 1 are ln 3 and 0, so 3/4 : 1/4.

    Column 2 is 0 for both tokens: head 2 takes the mean. The values are 8, 4 in
    column 1 and 2, 6 in column 2. Token 1 gets 6 + 1 = 7 and 4.
    """
    X = np.array([[1.0, 0.0], [0.0, 0.0]])
    X_v = [[8, 2], [4, 6]]
    W_Q = np.diag([np.log(3), 1])
    eye = np.eye(2)
    Y, A = multi_head_attention(X, W_Q, eye, eye, eye, 2, X_v=X_v, return_weights=True)
    assert_close(A[0], [[0.75, 0.25], [0.5, 0.5]])
    assert_close(A[1], [[0.5, 0.5], [0.5, 0.5]])
    assert_close(Y, [[7, 4], [6, 4]])


def test_W_O_mixes_the_heads():
    """One token attends to itself with weight 1: heads 3 and 5, so 3·1 + 5·10 = 53."""
    eye = np.eye(2)
    assert multi_head_attention([[3, 5]], eye, eye, eye, [[1], [10]], 2).tolist() == [
        [53]
    ]


def test_biases_are_added_behind_their_matrices():
    """Token 3: value 2·3 + 4 = 10, then 10·5 + 7 = 57."""
    Y = multi_head_attention([[3]], [[1]], [[1]], [[2]], [[5]], 1, b_V=[4], b_O=[7])
    assert Y.tolist() == [[57]]


# Laws


@given(array_shapes(min_dims=2, max_dims=4, max_side=4), st.integers(1, 5))
def test_merging_undoes_splitting(shape, n_heads):
    x = np.arange(np.prod(shape) * n_heads).reshape(*shape[:-1], -1)
    np.testing.assert_array_equal(merge_heads(split_heads(x, n_heads)), x)


@given(array_shapes(min_dims=3, max_dims=5, max_side=4))
def test_splitting_undoes_merging(shape):
    heads = np.arange(np.prod(shape)).reshape(shape)
    np.testing.assert_array_equal(split_heads(merge_heads(heads), shape[-3]), heads)


@every_leading
def test_head_r_owns_column_block_r(rng, leading):
    x = rng.normal(size=(*leading, N_Q, N_HEADS * D_K))
    heads = split_heads(x, N_HEADS)
    assert heads.shape == (*leading, N_HEADS, N_Q, D_K)
    for r in range(N_HEADS):
        block = x[..., r * D_K : (r + 1) * D_K]
        np.testing.assert_array_equal(heads[..., r, :, :], block)


@every_leading
def test_merged_column_block_r_is_head_r(rng, leading):
    heads = rng.normal(size=(*leading, N_HEADS, N_Q, D_K))
    x = merge_heads(heads)
    assert x.shape == (*leading, N_Q, N_HEADS * D_K)
    for r in range(N_HEADS):
        block = x[..., r * D_K : (r + 1) * D_K]
        np.testing.assert_array_equal(block, heads[..., r, :, :])


def test_splitting_copies_nothing(rng):
    x = rng.normal(size=(2, N_Q, 6))
    assert np.shares_memory(split_heads(x, 3), x)
    assert np.shares_memory(split_heads(x[:, ::2, ::-1], 3), x)


@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "longdouble"])
def test_splitting_and_merging_keep_the_dtype(dtype):
    heads = split_heads(np.ones((5, 6), dtype), np.int64(3))
    assert heads.dtype == merge_heads(heads).dtype == np.dtype(dtype)


@pytest.mark.parametrize("shape", [(0, 6), (5, 0), (0, 5, 6), (2, 0, 0)])
def test_splitting_and_merging_take_axes_of_length_zero(shape):
    heads = split_heads(np.ones(shape), 3)
    assert heads.shape == (*shape[:-2], 3, shape[-2], shape[-1] // 3)
    assert merge_heads(heads).shape == shape


def test_one_head_is_plain_attention(rng):
    X = draw_tokens(rng, N_Q)
    W_Q, W_K, W_V, W_O = rng.normal(size=(4, D_MODEL, D_MODEL)) / 4
    Y = multi_head_attention(X, W_Q, W_K, W_V, W_O, 1)
    assert_close(Y, scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V) @ W_O)


@every_leading
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
def test_many_heads_are_a_loop_over_heads(rng, leading, bias, is_causal):
    X, X_k, X_v = (draw_tokens(rng, n, leading) for n in (N_Q, N_K, N_K))
    mask, weights = draw_mask(rng, (N_HEADS, 1, N_K)), draw_weights(rng, bias=bias)
    one_per_head = mask[None] if leading else mask
    Y, A = multi_head_attention(
        X, **weights, n_heads=N_HEADS, mask=one_per_head, X_k=X_k, X_v=X_v,
        is_causal=is_causal, return_weights=True,
    )  # fmt: skip
    expected_Y, expected_A = head_by_head(X, X_k, X_v, mask, is_causal, **weights)
    assert_close(Y, expected_Y)
    assert_close(A, expected_A)


def fused_and_separate(X, matrices, n_heads):
    """Return projections and heads from large matrices, and from copied blocks."""
    fused = np.array([split_heads(X @ W, n_heads) for W in matrices])
    blocks = zip(*(np.split(W, n_heads, axis=1) for W in matrices), strict=True)
    apart = np.array([[X @ W.copy() for W in three] for three in blocks])
    heads = np.array([scaled_dot_product_attention(*three) for three in apart])
    return (
        (fused, apart.swapaxes(0, 1)),
        (scaled_dot_product_attention(*fused), heads),
    )


every_number_of_heads = pytest.mark.parametrize("n_heads", [1, 2, 4, 8, 16, 32, 64])


@every_number_of_heads
@pytest.mark.parametrize("seed", range(3))
def test_fused_and_separate_projections_differ_by_the_order_of_sums(n_heads, seed):
    """Entries of size 3 may differ by an ulp or more; whole tables stay within 1e-15.

    Over sixty seeds and six kernels of OpenBLAS the relative length of the difference
    stayed below 4e-16 for projections and 8e-16 for the heads.
    """
    rng = np.random.default_rng(seed)
    X, matrices = rng.normal(size=(10, 64)), rng.normal(size=(3, 64, 64)) / 8
    for fused, separate in fused_and_separate(X, matrices, n_heads):
        gap = np.linalg.norm(fused - separate)
        assert gap <= FUSED * np.linalg.norm(fused)


@every_number_of_heads
def test_without_rounding_fused_and_separate_projections_are_equal(n_heads, rng):
    """Sixty-fourths times sixty-fourths are 4096ths: float64 adds them exactly."""
    X, matrices = rng.normal(size=(10, 64)), rng.normal(size=(3, 64, 64)) / 8
    exact = np.round(X * 64) / 64, np.round(matrices * 64) / 64
    (fused, separate), _ = fused_and_separate(*exact, n_heads)
    np.testing.assert_array_equal(fused, separate)


def test_the_output_is_the_sum_of_what_each_head_adds(rng):
    X, weights = draw_tokens(rng, N_Q), draw_weights(rng)
    total = 0
    for r in range(N_HEADS):
        only_r = np.zeros_like(weights["W_O"])
        only_r[r * D_V : (r + 1) * D_V] = weights["W_O"][r * D_V : (r + 1) * D_V]
        total += multi_head_attention(X, **weights | {"W_O": only_r}, n_heads=N_HEADS)
    assert_close(multi_head_attention(X, **weights, n_heads=N_HEADS), total)


def test_zero_W_O_leaves_the_bias(rng):
    X, weights = draw_tokens(rng, N_Q), draw_weights(rng, bias=True)
    weights["W_O"] = np.zeros_like(weights["W_O"])
    Y = multi_head_attention(X, **weights, n_heads=N_HEADS)
    np.testing.assert_array_equal(Y, np.tile(weights["b_O"], (N_Q, 1)))


@pytest.mark.parametrize("bias", [False, True])
def test_permuting_the_tokens_permutes_the_outputs(rng, bias):
    X, weights = draw_tokens(rng, N_Q), draw_weights(rng, bias=bias)
    order = rng.permutation(N_Q)
    Y = multi_head_attention(X, **weights, n_heads=N_HEADS)
    moved = multi_head_attention(X[order], **weights, n_heads=N_HEADS)
    assert_close(moved, Y[order])


def test_a_bias_of_the_keys_changes_nothing(rng):
    X, weights = draw_tokens(rng, N_Q), draw_weights(rng, bias=True)
    Y = multi_head_attention(X, **weights, n_heads=N_HEADS)
    del weights["b_K"]
    assert_close(multi_head_attention(X, **weights, n_heads=N_HEADS), Y)


def test_a_bias_of_the_queries_changes_something(rng):
    X, weights = draw_tokens(rng, N_Q), draw_weights(rng, bias=True)
    Y = multi_head_attention(X, **weights, n_heads=N_HEADS)
    del weights["b_Q"]
    assert not np.allclose(multi_head_attention(X, **weights, n_heads=N_HEADS), Y)


def test_the_tokens_answer_themselves_unless_others_are_asked(rng):
    X, X_k = draw_tokens(rng, N_Q), draw_tokens(rng, N_K)
    weights = draw_weights(rng) | {"n_heads": N_HEADS}
    np.testing.assert_array_equal(
        multi_head_attention(X, **weights),
        multi_head_attention(X, **weights, X_k=X, X_v=X),
    )
    np.testing.assert_array_equal(
        multi_head_attention(X, **weights, X_k=X_k),
        multi_head_attention(X, **weights, X_k=X_k, X_v=X_k),
    )


def test_asked_and_answering_tokens_may_have_other_widths(rng):
    """Only the columns of W_Q and W_K must match, and the rows of each its tokens."""
    X, X_k, X_v = (draw_tokens(rng, n, d_model=d) for n, d in ((5, 17), (7, 3), (7, 2)))
    weights = draw_weights(rng)
    weights |= {"W_K": rng.normal(size=(3, 33)), "W_V": rng.normal(size=(2, 39))}
    Y = multi_head_attention(X, **weights, n_heads=3, X_k=X_k, X_v=X_v)
    assert_close(Y, head_by_head(X, X_k, X_v, None, **weights)[0])


def test_changing_the_future_leaves_the_past_alone(rng):
    X, weights = draw_tokens(rng, N_Q, (2,)), draw_weights(rng, bias=True)
    ask = dict(n_heads=N_HEADS, is_causal=True, **weights)
    before = multi_head_attention(X, **ask)
    for now in range(N_Q):
        later = X.copy()
        later[:, now + 1 :] += 3
        after = multi_head_attention(later, **ask)
        assert_close(after[:, : now + 1], before[:, : now + 1])


def test_padding_changes_nothing(rng):
    """The second sequence has 3 tokens; behind them stands noise."""
    X, weights = draw_tokens(rng, N_Q, (2,)), draw_weights(rng, bias=True)
    Y = multi_head_attention(X, **weights, n_heads=3, mask=padding_mask([N_Q, 3]))
    alone = multi_head_attention(X[1, :3], **weights, n_heads=3)
    assert_close(Y[1, :3], alone)


def test_a_token_that_may_look_at_nothing_gets_the_bias_of_the_output(rng):
    X, weights = draw_tokens(rng, N_Q), draw_weights(rng, bias=True)
    mask = np.arange(N_Q)[:, None] != 2
    Y, A = multi_head_attention(
        X, **weights, n_heads=N_HEADS, mask=mask, return_weights=True
    )
    np.testing.assert_array_equal(Y[2], weights["b_O"])
    assert not A[:, 2].any()


@every_leading
def test_weights_come_per_head_and_their_rows_sum_to_one(rng, leading):
    X, weights = draw_tokens(rng, N_Q, leading), draw_weights(rng)
    mask = draw_mask(rng, (N_Q, N_Q))
    _, A = multi_head_attention(
        X, **weights, n_heads=N_HEADS, mask=mask, return_weights=True
    )
    assert A.shape == (*leading, N_HEADS, N_Q, N_Q)
    assert_close(A.sum(-1), np.ones(A.shape[:-1]))
    assert not A[..., ~mask].any()


@pytest.mark.parametrize("n", [5, 211])
def test_asking_for_the_weights_does_not_change_one_bit_of_the_output(rng, n):
    X, weights = draw_tokens(rng, n, (2,)), draw_weights(rng, bias=True)
    ask = dict(n_heads=N_HEADS, mask=draw_mask(rng, (n, n)), **weights)
    Y, _ = multi_head_attention(X, **ask, return_weights=True)
    np.testing.assert_array_equal(multi_head_attention(X, **ask), Y)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
@pytest.mark.parametrize("bias", [False, True])
def test_the_dtype_is_kept(rng, dtype, bias):
    X = draw_tokens(rng, N_Q).astype(dtype)
    weights = {k: x.astype(dtype) for k, x in draw_weights(rng, bias=bias).items()}
    mask = np.zeros((N_Q, N_Q))
    Y, A = multi_head_attention(
        X, **weights, n_heads=3, mask=mask, is_causal=True, return_weights=True
    )
    assert Y.dtype == A.dtype == np.dtype(dtype)


@pytest.mark.parametrize(
    "name", ["X", "X_k", "X_v"] + [f"{kind}_{c}" for kind in "Wb" for c in "QKVO"]
)
def test_one_wider_argument_widens_output_and_weights(rng, name):
    X = draw_tokens(rng, N_Q)
    given = draw_weights(rng, bias=True) | dict(X=X, X_k=X, X_v=X)
    given = {k: x.astype("f4" if k != name else "f8") for k, x in given.items()}
    Y, A = multi_head_attention(**given, n_heads=N_HEADS, return_weights=True)
    assert Y.dtype == A.dtype == np.float64


def test_a_wider_bias_is_not_rounded():
    zero = np.zeros((1, 1), np.float32)
    Y = multi_head_attention(zero, zero, zero, zero, zero, 1, b_O=np.array([0.1]))
    assert Y.tolist() == [[0.1]]


def test_float16_is_summed_in_float32():
    """4096 ones times a column of 16s is 2¹⁶, beyond float16; times 2⁻¹⁶ it is 1."""
    X, W = np.ones((1, 4096), np.float16), np.full((4096, 1), 16, np.float16)
    W_O = np.full((1, 1), 2**-16, np.float16)
    assert multi_head_attention(X, W, W, W, W_O, 1).tolist() == [[1]]


def test_lists_and_integers_give_float64():
    assert multi_head_attention([[3]], [[1]], [[1]], [[2]], [[5]], 1).dtype == float


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    ("leading", "n_q", "n_k"), [((0,), 5, 7), ((2,), 0, 7), ((), 5, 0), ((), 0, 0)]
)
def test_axes_of_length_zero_are_axes_too(rng, leading, n_q, n_k, is_causal):
    X, X_k = draw_tokens(rng, n_q, leading), draw_tokens(rng, n_k, leading)
    weights = draw_weights(rng, bias=True)
    Y, A = multi_head_attention(
        X, **weights, n_heads=3, X_k=X_k, is_causal=is_causal, return_weights=True
    )
    assert A.shape == (*leading, 3, n_q, n_k)
    assert Y.shape == (*leading, n_q, D_OUT)
    if n_k == 0:
        np.testing.assert_array_equal(Y, np.tile(weights["b_O"], (n_q, 1)))


@pytest.mark.parametrize(
    ("x", "x_k", "leading"),
    [((2,), (), (2,)), ((), (2,), (2,)), ((2, 1), (3,), (2, 3))],
)
def test_leading_axes_broadcast(rng, x, x_k, leading):
    X, X_k = draw_tokens(rng, N_Q, x), draw_tokens(rng, N_K, x_k)
    weights = draw_weights(rng) | {"n_heads": N_HEADS}
    Y = multi_head_attention(X, **weights, X_k=X_k)
    X = np.broadcast_to(X, leading + X.shape[-2:])
    X_k = np.broadcast_to(X_k, leading + X_k.shape[-2:])
    assert_close(Y, multi_head_attention(X, **weights, X_k=X_k))


def test_inputs_stay_as_they_are_even_read_only(rng):
    X, X_k = draw_tokens(rng, N_Q, (2,)), draw_tokens(rng, N_K, (2,))
    weights, mask = draw_weights(rng, bias=True), rng.normal(size=(N_Q, N_K))
    inputs = [X, X_k, mask, *weights.values()]
    with nothing_modified(*inputs):
        Y = multi_head_attention(X, **weights, n_heads=3, mask=mask, X_k=X_k)
        Y += 1
    for x in inputs:
        x.flags.writeable = False
    assert_close(
        multi_head_attention(X, **weights, n_heads=3, mask=mask, X_k=X_k), Y - 1
    )


def test_inputs_may_lie_in_any_order_in_memory(rng):
    X, weights = draw_tokens(rng, N_Q, (2,)), draw_weights(rng)
    expected = multi_head_attention(X, **weights, n_heads=N_HEADS)
    weights = {name: np.asfortranarray(W) for name, W in weights.items()}
    X = np.repeat(X, 2, axis=-1)[..., ::2]
    assert_close(multi_head_attention(X, **weights, n_heads=N_HEADS), expected)


# Agreement


@every_leading
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["no mask", "bool", "float", "causal"])
@pytest.mark.parametrize("cross", [False, True])
def test_output_and_weights_agree_with_torch(rng, leading, bias, kind, cross):
    d_model = N_HEADS * D_K  # PyTorch splits one width equally
    X = draw_tokens(rng, N_Q, leading, d_model)
    X_k, X_v = (draw_tokens(rng, N_K, leading, d_model) for _ in "kv")
    others = dict(X_k=X_k, X_v=X_v) if cross else {}
    n_k = N_K if cross else N_Q
    weights = draw_weights(rng, d_model, D_K, D_K, d_model, bias)
    mask = {
        "no mask": None,
        "bool": draw_mask(rng, (*leading, N_HEADS, 1, n_k)),
        "float": rng.normal(size=(N_Q, n_k)),
        "causal": causal_mask(N_Q, n_k),
    }[kind]
    ours = {"is_causal": True} if kind == "causal" else {"mask": mask}
    expected = reference.multi_head_attention(
        X, **weights, n_heads=N_HEADS, mask=mask, **others
    )
    got = multi_head_attention(
        X, **weights, n_heads=N_HEADS, **ours, **others, return_weights=True
    )
    assert_close(got[0], expected[0], TORCH)
    assert_close(got[1], expected[1], TORCH)


@pytest.mark.parametrize(
    ("dtype", "atol"), [("float32", FLOAT32), ("float16", FLOAT16)]
)
def test_short_floats_differ_from_float64_by_rounding_only(rng, dtype, atol):
    X, weights = draw_tokens(rng, N_Q), draw_weights(rng)
    short = {name: W.astype(dtype) for name, W in weights.items()}
    expected = multi_head_attention(X, **weights, n_heads=3)
    assert_close(
        multi_head_attention(X.astype(dtype), **short, n_heads=3), expected, atol
    )


# Refusals


@pytest.mark.parametrize(
    "n_heads", [True, 2.0, "2", None, np.bool_(True), [2]], ids=str
)
def test_a_number_of_heads_that_is_no_integer_is_refused(n_heads):
    message = r"^n_heads must be an integer, got "
    with pytest.raises(TypeError, match=message):
        split_heads(np.ones((5, 6)), n_heads)
    eye = np.eye(6)
    with pytest.raises(TypeError, match=message):
        multi_head_attention(eye, eye, eye, eye, eye, n_heads)


@pytest.mark.parametrize("n_heads", [0, -1])
def test_there_is_at_least_one_head(n_heads):
    message = rf"^n_heads must be at least 1, got {n_heads}$"
    with pytest.raises(ValueError, match=message):
        split_heads(np.ones((5, 6)), n_heads)
    eye = np.eye(6)
    with pytest.raises(ValueError, match=message):
        multi_head_attention(eye, eye, eye, eye, eye, n_heads)


def test_heads_that_do_not_divide_the_width_are_refused_with_both_numbers():
    x = np.ones((5, 10))
    message = r"^d_model \(10\) must be divisible by n_heads \(3\)$"
    with nothing_modified(x), pytest.raises(ValueError, match=message):
        split_heads(x, 3)


@pytest.mark.parametrize("letter", ["Q", "K", "V"])
def test_heads_that_do_not_divide_the_columns_are_refused_with_the_matrix(rng, letter):
    weights = draw_weights(rng)
    weights[f"W_{letter}"] = rng.normal(size=(D_MODEL, 10))
    message = rf"^the columns of W_{letter} \(10\) must be divisible by n_heads \(3\)$"
    with pytest.raises(ValueError, match=message):
        multi_head_attention(draw_tokens(rng, N_Q), **weights, n_heads=3)


def test_too_few_axes_are_refused():
    with pytest.raises(
        ValueError, match=r"^x must have shape \(\.\.\., n, d_model\), got"
    ):
        split_heads(np.ones(6), 2)
    message = r"^heads must have shape \(\.\.\., n_heads, n, d_head\), got \(5, 6\)$"
    with pytest.raises(ValueError, match=message):
        merge_heads(np.ones((5, 6)))
    eye = np.eye(6)
    with pytest.raises(
        ValueError, match=r"^X must have shape .*n, d_model\), got \(6,\)"
    ):
        multi_head_attention(np.ones(6), eye, eye, eye, eye, 2)


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("X", (N_Q, 5), "X has 5 columns and W_Q 17 rows; they must be equal"),
        ("X_k", (N_K, 5), "X_k has 5 columns and W_K 17 rows; they must be equal"),
        ("X_v", (N_K, 5), "X_v has 5 columns and W_V 17 rows; they must be equal"),
        (
            "W_O",
            (5, 3),
            "Concat(heads) has 39 columns and W_O 5 rows; they must be equal",
        ),
        ("W_Q", (2, 17, 33), "W_Q must have shape (d_in, d_out), got (2, 17, 33)"),
        ("W_V", (39,), "W_V must have shape (d_in, d_out), got (39,)"),
        ("W_Q", (17, 36), "Q and K must have the same last axis d_k, got 12 and 11"),
        ("X_v", (6, 17), "K and V must have the same length n_k, got 7 and 6"),
        ("b_Q", (39,), "b_Q must have shape (33,), got (39,)"),
        ("b_K", (1,), "b_K must have shape (33,), got (1,)"),
        ("b_V", (1, 39), "b_V must have shape (39,), got (1, 39)"),
        ("b_O", (), "b_O must have shape (19,), got ()"),
        (
            "mask",
            (7, 5),
            "mask of shape (7, 5) does not broadcast to the shape of the scores "
            "(..., n_q, n_k) = (3, 5, 7)",
        ),
    ],
    ids=str,
)
def test_shapes_that_do_not_fit_are_refused_with_both_numbers(
    rng, name, shape, message
):
    X, X_k, X_v = (draw_tokens(rng, n) for n in (N_Q, N_K, N_K))
    given = dict(X=X, X_k=X_k, X_v=X_v, n_heads=N_HEADS) | draw_weights(rng)
    given[name] = np.ones(shape)
    arrays = [x for x in given.values() if isinstance(x, np.ndarray)]
    with nothing_modified(*arrays), pytest.raises(ValueError) as refusal:
        multi_head_attention(**given)
    assert str(refusal.value) == message


def test_a_misfit_is_named_after_the_argument_that_was_given(rng):
    """In self-attention there is no X_k to look for."""
    X, X_k, weights = draw_tokens(rng, 5), draw_tokens(rng, 7), draw_weights(rng)
    W_K, W_V = weights["W_K"], weights["W_V"]
    with pytest.raises(ValueError, match=r"^X has 17 columns and W_K 16 rows"):
        multi_head_attention(X, **weights | {"W_K": W_K[1:]}, n_heads=3)
    with pytest.raises(ValueError, match=r"^X has 17 columns and W_V 16 rows"):
        multi_head_attention(X, **weights | {"W_V": W_V[1:]}, n_heads=3)
    with pytest.raises(ValueError, match=r"^X_k has 17 columns and W_V 16 rows"):
        multi_head_attention(X, **weights | {"W_V": W_V[1:]}, n_heads=3, X_k=X_k)


def test_an_integer_mask_is_refused_because_one_could_mean_either(rng):
    X, weights = draw_tokens(rng, N_Q), draw_weights(rng)
    with pytest.raises(TypeError, match=r"^mask must be bool \(True = may attend\)"):
        multi_head_attention(X, **weights, n_heads=3, mask=np.ones((N_Q, N_Q), int))


def test_options_are_given_by_name(rng):
    X, weights = draw_tokens(rng, N_Q), draw_weights(rng)
    with pytest.raises(TypeError, match="positional"):
        multi_head_attention(X, *weights.values(), N_HEADS, None, X)


def test_a_tensor_is_sent_to_mha_nn(rng):
    X, weights = torch.from_numpy(draw_tokens(rng, N_Q)), draw_weights(rng)
    with pytest.raises(TypeError, match=r"^X is a torch\.Tensor; .*mha\.nn"):
        multi_head_attention(X, **weights, n_heads=N_HEADS)
