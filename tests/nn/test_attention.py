"""mha.nn: PyTorch's speed, our conventions, the same answers as the NumPy steps."""

import copy
import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import mha
from mha.nn import (
    Encoder,
    EncoderLayer,
    MultiHeadAttention,
    from_torch,
    scaled_dot_product_attention,
    to_torch,
)
from tests import reference
from tests.samples import SIZES
from tests.tolerances import NUMPY, TORCH

B, H, N_Q, N_K, D_K, D_V = SIZES.values()
D_MODEL = H * D_K
# Ours is held to the same tolerance as NumPy, even where PyTorch is on the other side.
SAME = {"rtol": 0, "atol": NUMPY}
# A gradient is a longer sum, over batch and tokens.
SAME_GRADIENT = {"rtol": 0, "atol": TORCH}
LEADING = [(), (B,), (B, H), (B, 2, H)]
LONG = 211  # one row of weights is then wider than many tokens
HALVES = [torch.float16, torch.bfloat16]


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def random_qkv(*leading, n_q=N_Q, n_k=N_K, d_k=D_K, d_v=D_V, seed=0):
    shapes = ((n_q, d_k), (n_k, d_k), (n_k, d_v))
    return [normal(*leading, *s, seed=3 * seed + i) for i, s in enumerate(shapes)]


def random_layer(d_model=D_MODEL, n_heads=H, seed=0, **options):
    """Return a layer in float64 whose biases are not close to zero either."""
    layer = MultiHeadAttention(d_model, n_heads, dtype=torch.float64, **options)
    for i, p in enumerate(layer.parameters()):
        p.data = normal(*p.shape, seed=100 * seed + i) / math.sqrt(d_model)
    return layer


def random_mask(*shape, seed=0, kind="bool"):
    """Return a mask that leaves every row at least its first key."""
    mask = normal(*shape, seed=seed) > 0
    mask[..., 0] = True
    return as_float_mask(mask, seed) if kind == "float" else mask


def as_float_mask(mask, seed=0):
    return torch.where(mask, normal(*mask.shape, seed=seed + 1), -torch.inf)


def with_gradients(function, *inputs):
    """Return the output, and the gradients of a random weighted sum of it."""
    inputs = [x.detach().clone().requires_grad_() for x in inputs]
    Y = function(*inputs)
    (Y * normal(*Y.shape, seed=9)).sum().backward()
    return Y.detach(), [x.grad for x in inputs]


def assert_same(got, expected, tolerance=SAME):
    """Compare tensors or lists of tensors, NaN being equal to nothing."""
    if isinstance(got, torch.Tensor):
        got, expected = [got], [expected]
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, **tolerance)


class Tensors(TorchDispatchMode):
    """Note the size of every tensor that PyTorch makes."""

    def __init__(self):
        super().__init__()
        self.bytes = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for x in made if isinstance(made, tuple | list) else [made]:
            if isinstance(x, torch.Tensor):
                self.bytes.append(x.untyped_storage().nbytes())
        return made


# --- by hand ---------------------------------------------------------------------


@pytest.mark.parametrize("return_weights", [False, True])
def test_the_nearer_key_gets_e_times_the_weight(return_weights):
    """q = (0, √2) scores 0 and √2 with the axes; divided by √2 that is 0 and 1.

    The weights are (1, e) / (1 + e), and values 0 and 1 bring out the second.
    """
    Q = torch.tensor([[0.0, math.sqrt(2)]], dtype=torch.float64)
    K, V = torch.eye(2, dtype=Q.dtype), torch.tensor([[0.0], [1.0]], dtype=Q.dtype)
    answer = scaled_dot_product_attention(Q, K, V, return_weights=return_weights)
    Y, A = answer if return_weights else (answer, None)
    weights = torch.tensor([[1, math.e]], dtype=Q.dtype) / (1 + math.e)
    assert_same(Y, weights[:, 1:])
    if return_weights:
        assert_same(A, weights)


def test_head_r_owns_row_block_r_of_a_torch_matrix():
    """One head sees column 0 and copies the same token; the other sees equal keys.

    Scores of head 0 are ±81·1, so each token takes its own 9 or -9. Column 1 holds 2
    everywhere, so head 1 takes the mean, 2. W_O swaps the two heads.
    """
    layer = MultiHeadAttention(2, 2, bias=False)
    for W in (layer.W_Q, layer.W_K, layer.W_V):
        nn.init.eye_(W.weight)
    layer.W_O.weight.data = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    Y = layer(torch.tensor([[9.0, 2.0], [-9.0, 2.0]]))
    assert Y.tolist() == [[2.0, 9.0], [2.0, -9.0]]


def test_from_torch_cuts_the_stacked_matrix_into_q_k_v():
    """in_proj_weight of width 2 is 6 × 2: rows 0-1 are W_Q, 2-3 W_K, 4-5 W_V."""
    module = nn.MultiheadAttention(2, 1)
    module.in_proj_weight.data = torch.arange(12.0).reshape(6, 2)
    module.in_proj_bias.data = torch.arange(6.0)
    layer = from_torch(module)
    assert layer.W_Q.weight.tolist() == [[0, 1], [2, 3]]
    assert layer.W_K.weight.tolist() == [[4, 5], [6, 7]]
    assert layer.W_V.weight.tolist() == [[8, 9], [10, 11]]
    assert layer.W_K.bias.tolist() == [2, 3]


def test_numpy_weights_are_transposed():
    layer = MultiHeadAttention(2, 1)
    layer.W_V.weight.data = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert layer.numpy_weights()["W_V"].tolist() == [[1, 3], [2, 4]]


def test_the_layer_prints_its_three_numbers():
    line = "d_model=8, n_heads=2, dropout=0.25"
    assert line in repr(MultiHeadAttention(8, 2, dropout=0.25))


# --- laws ------------------------------------------------------------------------

MASKS = {
    "none": None,
    "bool": random_mask(B, H, N_Q, N_K),
    "float": random_mask(B, H, N_Q, N_K, kind="float"),
    "padding": random_mask(B, 1, 1, N_K, seed=1),
    "one row": random_mask(N_K, seed=2),
    "one column": normal(N_Q, 1, seed=3) > 0,
    "float row": random_mask(N_K, seed=4, kind="float"),
    "empty rows": normal(B, 1, N_Q, N_K, seed=5) > 1,
    "empty float rows": as_float_mask(normal(H, N_Q, N_K, seed=6) > 1),
}


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
@pytest.mark.parametrize("d_v", [D_K, D_V], ids=["fused", "d_v != d_k"])
def test_asking_for_the_weights_changes_no_answer(mask, is_causal, d_v):
    def fused(*QKV):
        return scaled_dot_product_attention(*QKV, mask, is_causal=is_causal)

    def step_by_step(*QKV):
        return scaled_dot_product_attention(
            *QKV, mask, is_causal=is_causal, return_weights=True
        )[0]

    QKV = random_qkv(B, H, d_v=d_v)
    Y, gradients = with_gradients(fused, *QKV)
    Y_2, gradients_2 = with_gradients(step_by_step, *QKV)
    assert_same(Y, Y_2)
    assert_same(gradients, gradients_2)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("leading", LEADING)
def test_without_weights_no_tensor_of_their_size_is_made(leading, is_causal):
    QKV = random_qkv(*leading, n_q=LONG, n_k=LONG, d_v=D_K)
    Q, K, V = (x.requires_grad_() for x in QKV)
    with Tensors() as made:
        scaled_dot_product_attention(Q, K, V, is_causal=is_causal)
    assert max(made.bytes) == Q.nbytes


@pytest.mark.parametrize(
    "leading, shape",
    [
        ((B, H), (LONG,)),
        ((B, H), (B, 1, 1, LONG)),
        ((B, 2, H), (B, 1, 1, 1, LONG)),
        ((B, H), (1, 1, LONG, LONG)),
    ],
)
def test_a_mask_is_written_out_no_larger_than_it_came(leading, shape):
    """A padding mask stays one row for a sequence, a common mask one for a batch."""
    Q, K, V = random_qkv(*leading, n_q=LONG, n_k=LONG, d_v=D_K)
    mask = random_mask(*shape)
    with Tensors() as made:
        scaled_dot_product_attention(Q, K, V, mask)
    assert max(made.bytes) == max(Q.nbytes, mask.numel() * Q.itemsize)


@pytest.mark.parametrize("scale", [-0.7, 0.0, 2.0])
@pytest.mark.parametrize("is_causal", [False, True])
def test_a_scale_of_any_sign_is_a_factor_on_the_scores(scale, is_causal):
    Q, K, V = random_qkv(B, H, d_v=D_K)
    Y = scaled_dot_product_attention(Q, K, V, is_causal=is_causal, scale=scale)
    scaled = Q * scale * math.sqrt(D_K)
    assert_same(Y, scaled_dot_product_attention(scaled, K, V, is_causal=is_causal))


def test_is_causal_lets_query_i_see_the_keys_up_to_i():
    Q, K, V = random_qkv(B, H)
    mask = torch.from_numpy(mha.causal_mask(N_Q, N_K))
    expected = scaled_dot_product_attention(Q, K, V, mask)
    for return_weights in (False, True):
        Y = scaled_dot_product_attention(
            Q, K, V, is_causal=True, return_weights=return_weights
        )
        assert_same(Y[0] if return_weights else Y, expected)


@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("return_weights", [False, True])
def test_a_mask_and_is_causal_both_apply(kind, return_weights):
    Q, K, V = random_qkv(B, H)
    mask = random_mask(B, 1, 1, N_K, kind=kind)
    causal = torch.from_numpy(mha.causal_mask(N_Q, N_K))
    if kind == "bool":
        both = mask & causal
    else:
        both = torch.where(causal, mask, -torch.inf)
    options = {"return_weights": return_weights}
    Y = scaled_dot_product_attention(Q, K, V, mask, is_causal=True, **options)
    assert_same(Y, scaled_dot_product_attention(Q, K, V, both, **options))


def test_a_mask_made_by_numpy_is_as_good():
    Q, K, V = random_qkv(B, H)
    mask = mha.padding_mask([3, 7])
    expected = scaled_dot_product_attention(Q, K, V, torch.from_numpy(mask))
    assert_same(scaled_dot_product_attention(Q, K, V, mask), expected)


def test_changing_the_future_leaves_the_past_alone():
    layer, X = random_layer(), normal(B, N_K, D_MODEL)
    changed = X.clone()
    changed[:, 4:] = normal(B, 3, D_MODEL, seed=1)
    before, after = layer(X, is_causal=True), layer(changed, is_causal=True)
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.isclose(before[:, 4:], after[:, 4:]).any()


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_weights_belong_to_heads_and_are_exactly_zero_where_masked(kind):
    layer = random_layer()
    mask = random_mask(B, H, N_Q, N_K, kind=kind)
    X, X_k = normal(B, N_Q, D_MODEL), normal(B, N_K, D_MODEL, seed=1)
    _, A = layer(X, X_k, mask=mask, return_weights=True)
    open_ = mask if kind == "bool" else mask > -torch.inf
    assert A.shape == (B, H, N_Q, N_K)
    assert (A[~open_] == 0).all() and (A[open_] > 0).all()
    assert_same(A.sum(-1), torch.ones(B, H, N_Q).double())


# Rows that may look at nothing: hidden as a whole, by padding, or by padding on the
# left together with the causal rule.
left_padding = torch.from_numpy(mha.padding_mask([5, 4], N_Q)).flip(-1)
all_hidden = torch.from_numpy(mha.padding_mask([0, 4], N_Q))
some_rows = normal(1, H, N_Q, N_Q) > 0.3
some_rows[..., 2, :] = False
EMPTY = {
    "some rows": (some_rows, False),
    "a sequence": (all_hidden, False),
    "left of a causal one": (left_padding, True),
}


def empty_rows(mask, is_causal):
    causal = torch.from_numpy(mha.causal_mask(N_Q)) if is_causal else True
    empty = ~(mask & causal).any(-1).expand(B, H, N_Q)
    assert empty.any() and not empty.all()
    return empty


@pytest.mark.parametrize("grad", [True, False], ids=["grad", "no_grad"])
@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize("mask, is_causal", EMPTY.values(), ids=EMPTY.keys())
def test_a_row_that_may_look_at_nothing_gives_zeros(
    mask, is_causal, return_weights, kind, grad
):
    empty = empty_rows(mask, is_causal)
    mask = mask if kind == "bool" else torch.where(mask, 0.5, -torch.inf)
    QKV = [x.requires_grad_() for x in random_qkv(B, H, n_k=N_Q, d_v=D_K)]
    with torch.set_grad_enabled(grad):
        answer = scaled_dot_product_attention(
            *QKV, mask, is_causal=is_causal, return_weights=return_weights
        )
    answer = answer if return_weights else [answer]
    for x in answer:
        assert (x[empty] == 0).all() and x.isfinite().all() and x[~empty].any(-1).all()
    if grad:
        # No NaN on the way either: anomaly detection would stop a user's training.
        with torch.autograd.set_detect_anomaly(True):
            sum(x.sum() for x in answer).backward()
        assert (QKV[0].grad[empty] == 0).all()
        assert all(x.grad.isfinite().all() for x in QKV)


@pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])
@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize("mask, is_causal", EMPTY.values(), ids=EMPTY.keys())
def test_a_token_that_may_look_at_nothing_gets_the_bias_of_W_O(
    mask, is_causal, return_weights, kind, mode
):
    silent = empty_rows(mask, is_causal).all(1)  # for every head
    mask = mask if kind == "bool" else torch.where(mask, 0.5, -torch.inf)
    layer = random_layer(dropout=0.5).train(mode == "train")
    X = normal(B, N_Q, D_MODEL).requires_grad_()
    with torch.set_grad_enabled(mode != "no_grad"):
        Y = layer(X, mask=mask, is_causal=is_causal, return_weights=return_weights)
    Y = Y[0] if return_weights else Y
    assert (Y[silent] == layer.W_O.bias).all() and Y.isfinite().all()
    if mode != "no_grad":
        with torch.autograd.set_detect_anomaly(True):
            Y.sum().backward()
        assert all(x.grad.isfinite().all() for x in (X, *layer.parameters()))


def test_an_empty_row_gives_a_learned_mask_finite_gradients():
    """A bias on the scores may be trained, as in ALiBi or T5, and have closed rows."""
    Q, K, V = random_qkv(H)
    bias = as_float_mask(normal(N_Q, N_K, seed=5) > 0)
    bias[2] = -torch.inf
    for return_weights in (False, True):
        bias = bias.detach().requires_grad_()
        Y = scaled_dot_product_attention(Q, K, V, bias, return_weights=return_weights)
        (Y[0] if return_weights else Y).sum().backward()
        assert bias.grad.isfinite().all() and (bias.grad[2] == 0).all()
        assert bias.grad[bias > -torch.inf].all()


@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("return_weights", [False, True])
def test_a_hidden_key_gets_nothing_however_low_the_others_score(return_weights, kind):
    """All open scores lie below -10⁹, so a hidden -10⁹ would take the whole weight."""
    Q, K, V = random_qkv(B, H, d_v=D_K)
    Q, K = Q.abs(), -1e10 * K.abs()
    K[..., 0, :] = 0
    mask = torch.arange(N_K) > 0
    mask = mask if kind == "bool" else torch.where(mask, 0.0, -torch.inf)
    Y = scaled_dot_product_attention(Q, K, V, mask, return_weights=return_weights)
    expected = scaled_dot_product_attention(Q, K[..., 1:, :], V[..., 1:, :])
    assert_same(Y[0] if return_weights else Y, expected)
    assert not return_weights or (Y[1][..., 0] == 0).all()


@pytest.mark.parametrize("leading, n_q", [((0,), N_Q), ((B, 0), N_Q), ((B, H), 0)])
def test_nothing_asked_gives_nothing(leading, n_q):
    Q, K, V = random_qkv(*leading, n_q=n_q)
    Y, A = scaled_dot_product_attention(Q, K, V, return_weights=True)
    assert Y.shape == (*leading, n_q, D_V) and A.shape == (*leading, n_q, N_K)
    assert scaled_dot_product_attention(Q, K, V, is_causal=True).shape == Y.shape


@pytest.mark.parametrize("is_causal", [False, True])
def test_no_keys_give_zeros(is_causal):
    Q, K, V = (x.requires_grad_() for x in random_qkv(B, H, n_k=0))
    options = {"is_causal": is_causal}
    Y = scaled_dot_product_attention(Q, K, V, **options)
    assert Y.shape == (B, H, N_Q, D_V) and (Y == 0).all()
    mask = torch.ones(N_Q, 1, dtype=torch.bool)
    Y, A = scaled_dot_product_attention(Q, K, V, mask, return_weights=True, **options)
    assert A.shape == (B, H, N_Q, 0) and (Y == 0).all()
    Y.sum().backward()
    assert (Q.grad == 0).all()


def test_a_long_hidden_beginning_does_no_harm():
    """The fused kernel reads keys in blocks; here the first blocks are all hidden."""
    n_k, start = 1511, 1201
    Q, K, V = random_qkv(1, H, n_k=n_k, d_v=D_K)
    mask = torch.arange(n_k) >= start
    expected = scaled_dot_product_attention(Q, K[:, :, start:], V[:, :, start:])
    assert_same(scaled_dot_product_attention(Q, K, V, mask), expected)
    mask = torch.where(mask, 0.0, -torch.inf)
    assert_same(scaled_dot_product_attention(Q, K, V, mask), expected)


def test_leading_axes_broadcast():
    Q, K, V = normal(B, 1, N_Q, D_K), normal(H, N_K, D_K), normal(N_K, D_V)
    whole = [x.expand(B, H, *x.shape[-2:]) for x in (Q, K, V)]
    Y = scaled_dot_product_attention(Q, K, V)
    assert Y.shape == (B, H, N_Q, D_V)
    assert_same(Y, scaled_dot_product_attention(*whole))


def test_a_layer_reads_one_sequence_or_any_number():
    layer, X = random_layer(), normal(B, 3, N_Q, D_MODEL)
    Y, A = layer(X, return_weights=True)
    assert Y.shape == X.shape and A.shape == (B, 3, H, N_Q, N_Q)
    assert_same(layer(X), Y)
    assert_same(layer(X[1]), Y[1])
    assert_same(layer(X[1, 2]), Y[1, 2])


def test_key_is_query_and_value_is_key_by_default():
    layer = random_layer()
    X, X_k, X_v = (normal(B, N_Q, D_MODEL, seed=i) for i in range(3))
    assert torch.equal(layer(X), layer(X, X, X))
    assert torch.equal(layer(X, X_k), layer(X, X_k, X_k))
    assert torch.equal(layer(X, value=X_v), layer(X, X, X_v))
    assert not torch.isclose(layer(X, X_k), layer(X, X_k, X_v)).any()


@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
def test_dtype_is_kept(dtype, return_weights):
    QKV = [x.to(dtype) for x in random_qkv(B, H)]
    mask = random_mask(N_Q, N_K, kind="float")
    layer = MultiHeadAttention(D_MODEL, H, dtype=dtype)
    X = normal(B, N_Q, D_MODEL).to(dtype)
    for answer in (
        scaled_dot_product_attention(*QKV, mask, return_weights=return_weights),
        layer(X, is_causal=True, return_weights=return_weights),
    ):
        assert {x.dtype for x in (answer if return_weights else [answer])} == {dtype}


def test_mixed_dtypes_meet_where_numpy_lets_them_meet():
    Q, K, V = random_qkv(B, H)
    Y, A = scaled_dot_product_attention(Q.half(), K.float(), V, return_weights=True)
    assert Y.dtype == A.dtype == torch.float64
    assert scaled_dot_product_attention(Q.half(), K.float(), V).dtype == torch.float64


@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_is_summed_in_float32(dtype, return_weights):
    """Scores of 300 · 300 · d_k lie beyond float16, their softmax does not."""
    Q, K, V = random_qkv(B, H, n_q=N_K, d_v=D_K)
    Q, K, V = (Q.to(dtype) + 300, K.to(dtype) + 300, V.to(dtype))
    Y = scaled_dot_product_attention(Q, K, V, return_weights=return_weights)
    Y = Y[0] if return_weights else Y
    exact = scaled_dot_product_attention(Q.double(), K.double(), V.double())
    atol = 4 * torch.finfo(dtype).eps  # values of size 2, rounded once or twice
    torch.testing.assert_close(Y.double(), exact, rtol=0, atol=atol)


@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_inputs_stay_untouched(kind, return_weights):
    mask = as_float_mask(some_rows) if kind == "float" else some_rows.clone()
    inputs = [*random_qkv(B, H, n_k=N_Q), mask]
    before = copy.deepcopy(inputs)
    scaled_dot_product_attention(*inputs, is_causal=True, return_weights=return_weights)
    X = normal(B, N_Q, D_MODEL)
    random_layer()(X, mask=mask, return_weights=return_weights)
    assert all(torch.equal(a, b) for a, b in zip(inputs, before, strict=True))
    assert torch.equal(X, normal(B, N_Q, D_MODEL))


def test_dropout_is_right_on_average_and_leaves_the_reported_weights_alone():
    """With V = I the output *is* the weights that were used.

    Each is 0 or 4/3 of the reported one, for dropout 1/4; rows no longer sum to one.
    """
    draws, p = 20_000, 0.25
    Q, K, _ = random_qkv(n_q=3, n_k=N_K)
    eye = torch.eye(N_K).double()
    torch.manual_seed(0)
    used, A = scaled_dot_product_attention(
        Q.expand(draws, *Q.shape), K, eye, dropout_p=p, return_weights=True
    )
    assert torch.equal(A[0], A[-1])
    assert_same(A[0], scaled_dot_product_attention(Q, K, eye))
    kept = used > 0
    assert_same(used[kept], (A / (1 - p))[kept])
    assert abs(kept.double().mean() - (1 - p)) < 0.01
    assert (abs(used.sum(-1) - 1) > 0.01).double().mean() > 0.9
    # One weight has standard deviation below √(1/3), its mean over draws 0.4 %.
    assert_same(used.mean(0), A[0], {"rtol": 0, "atol": 5 * math.sqrt(1 / 3 / draws)})


def test_dropout_without_weights_has_the_same_mean():
    draws, p = 20_000, 0.25
    Q, K, _ = random_qkv(n_q=3, n_k=N_K)
    eye = torch.eye(N_K).double()
    torch.manual_seed(0)
    used = scaled_dot_product_attention(Q.expand(draws, *Q.shape), K, eye, dropout_p=p)
    expected = scaled_dot_product_attention(Q, K, eye)
    assert abs((used > 0).double().mean() - (1 - p)) < 0.01
    assert_same(
        used.mean(0), expected, {"rtol": 0, "atol": 5 * math.sqrt(1 / 3 / draws)}
    )


@pytest.mark.parametrize("return_weights", [False, True])
def test_a_layer_drops_weights_in_train_mode_only(return_weights):
    def answer(layer):
        Y = layer(X, return_weights=return_weights)
        return Y if return_weights else (Y, None)

    layer, X = random_layer(dropout=0.5), normal(B, N_Q, D_MODEL)
    (Y, A), (Y_2, A_2) = answer(layer), answer(layer)
    assert not torch.isclose(Y, Y_2).any()
    layer.eval()
    (calm, calm_A), (calm_2, _) = answer(layer), answer(layer)
    assert torch.equal(calm, calm_2)
    assert_same(calm, random_layer()(X))
    if return_weights:
        assert torch.equal(A, A_2) and torch.equal(A, calm_A)


def test_parameters_do_not_depend_on_the_number_of_heads():
    shapes = [
        [(name, p.shape) for name, p in MultiHeadAttention(12, h).named_parameters()]
        for h in (1, 2, 3, 12)
    ]
    assert all(s == shapes[0] for s in shapes)
    assert sum(p.numel() for p in MultiHeadAttention(12, 3).parameters()) == 624
    plain = MultiHeadAttention(12, 3, bias=False)
    assert sum(p.numel() for p in plain.parameters()) == 576


def test_a_copied_layer_leads_its_own_life():
    layer, X = random_layer(), normal(B, N_Q, D_MODEL)
    before = layer(X)
    twin = copy.deepcopy(layer)
    assert torch.equal(twin(X), before)
    twin.W_V.weight.data += 1
    assert torch.equal(layer(X), before) and not torch.equal(twin(X), before)


def test_a_state_dict_carries_the_whole_layer():
    layer, other, X = random_layer(), random_layer(seed=1), normal(N_Q, D_MODEL)
    assert not torch.isclose(layer(X), other(X)).any()
    other.load_state_dict(layer.state_dict())
    assert torch.equal(layer(X), other(X))


def test_functional_call_uses_the_parameters_it_is_given():
    layer, other, X = random_layer(), random_layer(seed=1), normal(N_Q, D_MODEL)
    Y = torch.func.functional_call(layer, other.state_dict(), (X,))
    assert torch.equal(Y, other(X))


def test_no_grad_gives_the_same_numbers_and_no_graph():
    layer, X = random_layer(), normal(B, N_Q, D_MODEL)
    with torch.no_grad():
        Y, A = layer(X, return_weights=True)
        fused = layer(X)
    assert not Y.requires_grad and not A.requires_grad
    assert torch.equal(fused, layer(X))


def test_gradients_flow_through_the_weights():
    """A loss on A must train W_Q and W_K, as when attention is guided."""
    layer = random_layer()
    _, A = layer(normal(B, N_Q, D_MODEL), return_weights=True)
    (A**2).sum().backward()
    assert layer.W_Q.weight.grad.any() and layer.W_K.weight.grad.any()
    assert layer.W_V.weight.grad is None


# --- agreement: NumPy -------------------------------------------------------------

axes = st.lists(st.integers(1, 3), max_size=3).map(tuple)


@st.composite
def questions(draw):
    """Return Q, K, V and options, with a mask of any kind that broadcasts."""
    leading, seed = draw(axes), draw(st.integers(0, 10**6))
    n_q, n_k, d_k, d_v = (draw(st.integers(1, 6)) for _ in range(4))
    QKV = random_qkv(*leading, n_q=n_q, n_k=n_k, d_k=d_k, d_v=d_v, seed=seed)
    shape = [draw(st.sampled_from([1, n])) for n in (*leading, n_q, n_k)]
    mask = normal(*shape[draw(st.integers(0, len(shape))) :], seed=seed) > 0
    kind = draw(st.sampled_from(["none", "bool", "float"]))
    mask = {"none": None, "bool": mask, "float": as_float_mask(mask)}[kind]
    scale = draw(st.sampled_from([None, 1.0, -0.3]))
    return QKV, {"mask": mask, "is_causal": draw(st.booleans()), "scale": scale}


@settings(max_examples=60, deadline=None)
@given(questions())
def test_tensors_and_arrays_get_the_same_answer(question):
    QKV, options = question
    Y, A = scaled_dot_product_attention(*QKV, return_weights=True, **options)
    assert_same(scaled_dot_product_attention(*QKV, **options), Y)
    if options["mask"] is not None:
        options["mask"] = options["mask"].numpy()
    Y_2, A_2 = mha.scaled_dot_product_attention(
        *(x.numpy() for x in QKV), return_weights=True, **options
    )
    np.testing.assert_allclose(Y.numpy(), Y_2, **SAME)
    np.testing.assert_allclose(A.numpy(), A_2, **SAME)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("leading", LEADING)
def test_numpy_weights_make_the_numpy_layer_equal_the_module(leading, bias):
    layer = random_layer(bias=bias)
    weights = layer.numpy_weights()
    assert ("b_Q" in weights) == bias
    X, X_k, X_v = (
        normal(*leading, n, D_MODEL, seed=i) for i, n in enumerate((N_Q, N_K, N_K))
    )
    mask = normal(*leading, H, N_Q, N_K) > 0.5
    Y, A = layer(X, X_k, X_v, mask, return_weights=True)
    Y_2, A_2 = mha.multi_head_attention(
        X.numpy(),
        n_heads=H,
        mask=mask.numpy(),
        X_k=X_k.numpy(),
        X_v=X_v.numpy(),
        return_weights=True,
        **weights,
    )
    np.testing.assert_allclose(Y.detach().numpy(), Y_2, **SAME)
    np.testing.assert_allclose(A.detach().numpy(), A_2, **SAME)


def test_numpy_weights_are_copies_that_numpy_can_hold():
    layer = random_layer()
    weights = layer.numpy_weights()
    before = weights["W_Q"].copy()
    layer.W_Q.weight.data += 1
    np.testing.assert_array_equal(weights["W_Q"], before)
    half = MultiHeadAttention(4, 2, dtype=torch.bfloat16).numpy_weights()
    assert {W.dtype for W in half.values()} == {np.dtype("float32")}


# --- agreement: PyTorch -----------------------------------------------------------

SIZES = [(1, 1, 2, 3, 1), (B, H, N_Q, N_K, D_K), (3, 5, 7, 2, 4)]
PEER_MASKS = ["none", "padding", "per head", "float"]


def peer_mask(kind, b, h, n_q, n_k):
    if kind == "none":
        return None
    if kind == "padding":
        return random_mask(b, 1, 1, n_k)
    return random_mask(b, h, n_q, n_k, kind="float" if kind == "float" else "bool")


def outputs_and_gradients(module, forward, *inputs):
    """Return what `forward` gives and all gradients, those of parameters by name."""
    outputs, gradients = with_gradients(forward, *inputs)
    return outputs, gradients, {n: p.grad for n, p in module.named_parameters()}


def assert_same_parameter_gradients(ours, theirs, bias):
    for kind in ("weight", "bias") if bias else ("weight",):
        stacked = torch.cat([ours[f"W_{letter}.{kind}"] for letter in "QKV"])
        assert_same(stacked, theirs[f"in_proj_{kind}"], SAME_GRADIENT)
        assert_same(ours[f"W_O.{kind}"], theirs[f"out_proj.{kind}"], SAME_GRADIENT)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", PEER_MASKS)
@pytest.mark.parametrize("b, h, n_q, n_k, d_head", SIZES)
def test_the_layer_equals_torchs_with_the_same_weights(
    b, h, n_q, n_k, d_head, kind, bias, need_weights
):
    layer = random_layer(h * d_head, h, bias=bias)
    weights = layer.numpy_weights()
    module = reference.module_with(**weights, n_heads=h, batch_first=need_weights)
    X, X_k, X_v = (
        normal(b, n, h * d_head, seed=i) for i, n in enumerate((n_q, n_k, n_k))
    )
    mask = peer_mask(kind, b, h, n_q, n_k)

    def ours(*inputs):
        Y = layer(*inputs, mask, return_weights=need_weights)
        return torch.cat([x.flatten() for x in Y]) if need_weights else Y

    def theirs(*inputs):
        Y, A = reference.ask(module, *inputs, mask, need_weights=need_weights)
        return torch.cat([Y.flatten(), A.flatten()]) if need_weights else Y

    Y, gradients, of_parameters = outputs_and_gradients(layer, ours, X, X_k, X_v)
    Y_2, gradients_2, of_theirs = outputs_and_gradients(module, theirs, X, X_k, X_v)
    assert_same(Y, Y_2)
    assert_same(gradients, gradients_2, SAME_GRADIENT)
    assert_same_parameter_gradients(of_parameters, of_theirs, bias)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_self_attention_under_torchs_own_masks(batch_first, training):
    """Their key_padding_mask and attn_mask hide where ours opens."""
    module = to_torch(random_layer()).train(training)
    X = normal(B, N_K, D_MODEL)
    keep = torch.tensor([[True] * N_K, [True] * 3 + [False] * 4])
    causal = torch.ones(N_K, N_K, dtype=torch.bool).tril()
    with torch.no_grad():
        x = X if batch_first else X.transpose(0, 1)
        Y, A = module(
            x,
            x,
            x,
            key_padding_mask=~keep,
            attn_mask=~causal,
            average_attn_weights=False,
        )
        Y = Y if batch_first else Y.transpose(0, 1)
    layer = from_torch(module)
    mask = keep[:, None, None, :]
    Y_2, A_2 = layer(X, mask=mask, is_causal=True, return_weights=True)
    assert_same(Y_2.detach(), Y)
    assert_same(A_2.detach(), A)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_from_torch_gives_a_layer_with_the_same_answer(bias, batch_first):
    torch.manual_seed(0)
    module = nn.MultiheadAttention(
        D_MODEL, H, bias=bias, batch_first=batch_first, dtype=torch.float64
    )
    for p in module.parameters():
        p.data = normal(*p.shape)
    X, X_k, X_v = (normal(B, n, D_MODEL, seed=n) for n in (N_Q, N_K, N_K))
    layer = from_torch(module)
    Y, A = layer(X, X_k, X_v, return_weights=True)
    expected, A_2 = reference.ask(module, X, X_k, X_v)
    # Unit weights of this width make outputs of size 1000.
    assert_same(Y, expected, {"rtol": 1e-12, "atol": 1e-10})
    assert_same(A, A_2, {"rtol": 0, "atol": 1e-10})
    module.in_proj_weight.data += 1
    assert torch.equal(layer(X, X_k, X_v), layer(X, X_k, X_v))
    assert not torch.equal(layer.W_Q.weight, module.in_proj_weight[:D_MODEL])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_there_and_back_again_changes_nothing(training, bias, dtype):
    layer = MultiHeadAttention(6, 2, bias=bias, dropout=0.25, dtype=dtype)
    layer.train(training)
    module = to_torch(layer)
    back = from_torch(module)
    assert module.batch_first and not to_torch(layer, batch_first=False).batch_first
    for other in (module, back):
        assert other.training == training and other.dropout == 0.25
        assert {p.dtype for p in other.parameters()} == {dtype}
    assert layer.state_dict().keys() == back.state_dict().keys()
    for name, x in layer.state_dict().items():
        assert torch.equal(x, back.state_dict()[name])
        assert x.data_ptr() != back.state_dict()[name].data_ptr()
    layer.W_O.weight.data += 1
    assert not torch.equal(layer.W_O.weight, module.out_proj.weight)


def test_conversion_stays_on_the_device():
    layer = from_torch(nn.MultiheadAttention(6, 2, device="meta"))
    assert layer.W_Q.weight.device.type == "meta"
    assert to_torch(layer).in_proj_weight.device.type == "meta"


# --- refusals ---------------------------------------------------------------------

Q, K, V = random_qkv(B, H)
WRONG = {
    "keys and values, one key more": (
        (Q, normal(B, H, 6, D_K), normal(B, H, 5, D_K)),
        ValueError,
        "K and V must have the same length n_k, got 6 and 5",
    ),
    "keys and values, one value more": (
        (Q, normal(B, H, 5, D_K), normal(B, H, 6, D_K)),
        ValueError,
        "K and V must have the same length n_k, got 5 and 6",
    ),
    "widths": (
        (Q, normal(B, H, N_K, 8), V),
        ValueError,
        "Q and K must have the same last axis d_k, got 11 and 8",
    ),
    "leading axes": (
        (Q, normal(5, H, N_K, D_K), V),
        ValueError,
        r"leading axes do not broadcast: Q \(2, 3, 5, 11\), K \(5, 3, 7, 11\)",
    ),
    "a vector": ((Q[0, 0, 0], K, V), ValueError, r"Q must have shape .* got \(11,\)"),
    "integers": ((Q, K.long(), V), TypeError, "K must hold floating-point.*int64"),
    "complex": ((Q, K, V.cfloat()), TypeError, "V must hold floating-point.*complex64"),
    "an array": ((Q.numpy(), K, V), TypeError, "Q must be a torch.Tensor, got ndarray"),
    "an integer mask": (
        (Q, K, V, torch.ones(N_Q, N_K).long()),
        TypeError,
        "mask must be bool .* got dtype torch.int64",
    ),
    "a mask that misfits": (
        (Q, K, V, torch.ones(3, 3).bool()),
        ValueError,
        r"mask of shape \(3, 3\) does not broadcast .* = \(2, 3, 5, 7\)",
    ),
    "a mask with an axis too many": (
        (Q, K, V, torch.ones(4, B, H, N_Q, N_K).bool()),
        ValueError,
        r"mask of shape \(4, 2, 3, 5, 7\) does not broadcast",
    ),
    "a mask with +inf": (
        (Q, K, V, torch.full((N_Q, N_K), torch.inf)),
        ValueError,
        "must hold finite numbers or -inf",
    ),
    "a mask with NaN": (
        (Q, K, V, torch.full((N_Q, N_K), torch.nan)),
        ValueError,
        "must hold finite numbers or -inf",
    ),
}


@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize("arguments, error, message", WRONG.values(), ids=WRONG.keys())
def test_attention_says_what_is_wrong(arguments, error, message, return_weights):
    with pytest.raises(error, match=message):
        scaled_dot_product_attention(*arguments, return_weights=return_weights)


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"scale": "0.5"}, TypeError, "scale must be a number or None, got '0.5'"),
        ({"scale": math.nan}, ValueError, "scale must be finite, got nan"),
        ({"dropout_p": 1}, ValueError, "dropout_p must be at least 0 .* got 1"),
        ({"dropout_p": -0.1}, ValueError, "dropout_p must be at least 0 .* got -0.1"),
        ({"dropout_p": True}, TypeError, "dropout_p must be a number, got True"),
    ],
)
def test_attention_says_which_option_is_wrong(options, error, message):
    with pytest.raises(error, match=message):
        scaled_dot_product_attention(Q, K, V, **options)


@pytest.mark.parametrize(
    "arguments, options, error, message",
    [
        ((10, 3), {}, ValueError, r"d_model \(10\) must be divisible by n_heads \(3\)"),
        ((0, 1), {}, ValueError, "d_model must be at least 1, got 0"),
        ((8, 0), {}, ValueError, "n_heads must be at least 1, got 0"),
        ((8.0, 2), {}, TypeError, "d_model must be an integer, got 8.0"),
        ((8, True), {}, TypeError, "n_heads must be an integer, got True"),
        ((8, 2), {"dropout": 1.0}, ValueError, "dropout must be .* below 1, got 1.0"),
        ((8, 2), {"dropout": "no"}, TypeError, "dropout must be a number, got 'no'"),
    ],
)
def test_the_layer_says_which_number_is_wrong(arguments, options, error, message):
    with pytest.raises(error, match=message):
        MultiHeadAttention(*arguments, **options)


@pytest.mark.parametrize(
    "shapes, message",
    [
        ([(5, 7)], "query has 7 columns and d_model is 8; they must be equal"),
        ([(5, 8), (5, 7)], "key has 7 columns and d_model is 8"),
        ([(5, 8), (5, 8), (5, 7)], "value has 7 columns and d_model is 8"),
        ([(5, 8), (6, 8), (5, 8)], "key and value .* length n_k, got 6 and 5"),
        ([(5, 8), (5, 8), (6, 8)], "key and value .* length n_k, got 5 and 6"),
        ([(2, 5, 8), (3, 5, 8)], r"do not broadcast: query \(2, 5, 8\), key \(3, 5, 8"),
        ([(8,)], r"query must have shape .* got \(8,\)"),
    ],
)
def test_the_layer_says_which_input_is_wrong(shapes, message):
    inputs = [torch.ones(shape) for shape in shapes]
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(8, 2)(*inputs)


def test_the_layer_wants_tensors_and_open_or_closed_masks():
    layer, X = MultiHeadAttention(8, 2), torch.ones(5, 8)
    with pytest.raises(TypeError, match=r"query must be a torch.Tensor, got ndarray"):
        layer(X.numpy())
    with pytest.raises(TypeError, match="key must hold floating-point numbers"):
        layer(X, X.long())
    with pytest.raises(TypeError, match=r"mask must be bool .* torch.int32"):
        layer(X, mask=torch.ones(5, 5).int())
    with pytest.raises(ValueError, match=r"= \(2, 5, 5\)"):
        layer(X, mask=torch.ones(5, 4).bool())


BATCHED = {"one sequence axis": (3, 5, 6), "two sequence axes": (2, 3, 5, 6)}
ASKED = {
    "attention": lambda X, mask: MultiHeadAttention(6, 3)(X, mask=mask),
    "an encoder layer": lambda X, mask: EncoderLayer(6, 3, 4)(X, mask),
    "an encoder": lambda X, mask: Encoder(2, 6, 3, 4)(X, mask),
}
as_given = pytest.mark.parametrize(
    "convert", [lambda M: M, lambda M: M.numpy(), lambda M: M.tolist()]
)


@as_given
@pytest.mark.parametrize("shape", BATCHED.values(), ids=BATCHED.keys())
@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_a_mask_for_each_sequence_does_not_pass_as_one_for_each_head(
    ask, shape, convert
):
    """Three sequences and three heads: (3, 5, 5) would fit either."""
    scores = (*shape[:-2], 3, 5, 5)
    message = (
        f"mask of shape (3, 5, 5) has 3 axes, and the scores have {len(scores)}: "
        f"{scores} = (..., n_heads, n_q, n_k); write mask[:, None] for one mask per "
        "sequence, mask[None] for one per head"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ask(torch.ones(shape), convert(torch.ones(3, 5, 5, dtype=torch.bool)))


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_one_mask_for_all_may_have_three_axes(ask):
    X = torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(0))
    mask, answers = random_mask(5, 5), []
    for one in (mask, mask[None]):
        torch.manual_seed(0)
        answers.append(ask(X, one))
    torch.testing.assert_close(*answers, rtol=0, atol=0)


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_the_two_remedies_are_taken_and_differ(ask):
    X = torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(0))
    mask = random_mask(3, 5, 5)
    answers = []
    for remedy in (mask[:, None], mask[None]):
        torch.manual_seed(0)
        answers.append(ask(X, remedy))
    assert not torch.isclose(*answers).all()
    torch.manual_seed(0)
    # Each sequence on its own, without a batch axis, may have a mask of three axes.
    assert_same(ask(X[1], mask[1][None]), answers[0][1], {"rtol": 0, "atol": 1e-5})


@pytest.mark.parametrize(
    "options, message",
    [
        ({"kdim": 5}, r"kdim \(5\) and vdim \(6\) must equal embed_dim \(6\)"),
        ({"vdim": 7}, r"kdim \(6\) and vdim \(7\) must equal embed_dim \(6\)"),
        ({"add_bias_kv": True}, "add_bias_kv must be False"),
        ({"add_zero_attn": True}, "add_zero_attn must be False"),
    ],
)
def test_from_torch_says_what_our_layer_has_not(options, message):
    with pytest.raises(ValueError, match=message):
        from_torch(nn.MultiheadAttention(6, 2, **options))


def test_conversions_want_the_layer_they_convert():
    with pytest.raises(TypeError, match=r"one of Multihead.* of torch.nn, got Linear"):
        from_torch(nn.Linear(6, 6))
    with pytest.raises(TypeError, match=r"one of MultiHead.* of mha.nn, got Multihead"):
        to_torch(nn.MultiheadAttention(6, 2))
