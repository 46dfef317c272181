"""mha.nn: PyTorch's speed, our conventions, the same answers as the NumPy steps."""

import math
import re

import pytest
import torch
from torch import nn

import mha
from mha.nn import Encoder, EncoderLayer, MultiHeadAttention
from mha.nn import scaled_dot_product_attention as attention
from tests import reference
from tests.nn import draws
from tests.nn.draws import SAME_AS_TORCH, assert_same, normal, scramble

B, H, N_Q, N_K, D_K, D_V = draws.B, draws.H, draws.N_Q, draws.N_K, draws.D_K, draws.D_V
D_MODEL = draws.D_MODEL
HALVES = torch.float16, torch.bfloat16
both_ways = pytest.mark.parametrize("return_weights", [False, True])
both_kinds = pytest.mark.parametrize("kind", ["bool", "float"])


def random_layer(**options):
    layer = MultiHeadAttention(D_MODEL, H, dtype=torch.float64, **options)
    return scramble(layer)


def outputs(answer, return_weights):
    return list(answer) if return_weights else [answer]


# By hand


@both_ways
def test_the_nearer_key_gets_e_times_the_weight(return_weights):
    """q = (0, √2) scores 0 and √2 with the axes; divided by √2 that is 0 and 1.

    The weights are (1, e) / (1 + e), and values 0 and 1 bring out the second.
    """
    Q = torch.tensor([[0.0, math.sqrt(2)]], dtype=torch.float64)
    K, V = torch.eye(2, dtype=Q.dtype), torch.tensor([[0.0], [1.0]], dtype=Q.dtype)
    Y, *A = outputs(attention(Q, K, V, return_weights=return_weights), return_weights)
    weights = torch.tensor([[1, math.e]], dtype=Q.dtype) / (1 + math.e)
    assert_same(Y, weights[:, 1:])
    assert_same(A, [weights] * return_weights)


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


# Agreement with the NumPy steps and with PyTorch

MASKS = {
    "none": None,
    "bool": draws.random_mask(B, H, N_Q, N_K),
    "float": draws.random_mask(B, H, N_Q, N_K, kind="float"),
    "padding": draws.random_mask(B, 1, 1, N_K, seed=1),
    "one row": draws.random_mask(N_K, seed=2),
    "one column": normal(N_Q, 1, seed=3) > 0,
    "empty rows": normal(B, 1, N_Q, N_K, seed=5) > 1,
    "empty float rows": draws.as_float_mask(normal(1, H, N_Q, N_K, seed=6) > 1),
}
every_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
QUESTIONS = {
    "causal": {"is_causal": True},
    "no flag": {},
    "negative scale": {"scale": -0.7, "is_causal": True},
    "no scale": {"scale": 0.0},
}


@every_mask
@pytest.mark.parametrize("options", QUESTIONS.values(), ids=QUESTIONS)
def test_with_and_without_weights_the_answer_is_that_of_numpy(options, mask):
    """And the gradients of the fused way are those of the step-by-step way."""
    QKV = draws.random_qkv(B, H)
    numpy_mask = None if mask is None else mask.numpy()
    expected = mha.scaled_dot_product_attention(
        *(x.numpy() for x in QKV), numpy_mask, return_weights=True, **options
    )
    found = []
    for return_weights in (False, True):
        inputs = [x.clone().requires_grad_() for x in QKV]
        answer = attention(*inputs, mask, return_weights=return_weights, **options)
        answer = outputs(answer, return_weights)
        for x, y in zip(answer, expected, strict=False):
            assert_same(x.detach(), torch.from_numpy(y))
        (answer[0] * normal(*answer[0].shape, seed=9)).sum().backward()
        found.append([x.grad for x in inputs])
    assert_same(*found)


@pytest.mark.parametrize("leading", [(), (B,), (B, H), (B, 2, H)], ids=str)
def test_leading_axes_are_any_and_broadcast(leading):
    Q, K, V = draws.random_qkv(*leading)
    mask = draws.random_mask(*leading, N_Q, N_K)
    for given in (K, K[(0,) * len(leading)]):
        whole = given.expand(K.shape)
        expected = mha.scaled_dot_product_attention(
            Q.numpy(), whole.numpy(), V.numpy(), mask.numpy()
        )
        assert_same(attention(Q, given, V, mask.numpy()), torch.from_numpy(expected))


@pytest.mark.parametrize("bias", [True, False])
@every_mask
def test_the_layer_is_numpys_and_torchs_in_values_and_gradients(mask, bias):
    """Rows that are all masked are left out where PyTorch answers: it gives NaN."""
    layer = random_layer(bias=bias)
    X, X_k, X_v = (normal(B, n, D_MODEL, seed=n) for n in (N_Q, N_K, N_K + 1))
    X_v = X_v[:, 1:]
    Y, A = layer(X, X_k, X_v, mask, return_weights=True)
    assert_same(layer(X, X_k, X_v, mask), Y)
    weights = layer.numpy_weights()
    assert ("b_Q" in weights) == bias
    Y_2, A_2 = mha.multi_head_attention(
        X.numpy(), n_heads=H, mask=None if mask is None else mask.numpy(),
        X_k=X_k.numpy(), X_v=X_v.numpy(), return_weights=True, **weights,
    )  # fmt: skip
    assert_same((Y.detach(), A.detach()), tuple(map(torch.from_numpy, (Y_2, A_2))))
    if mask is not None and A.sum(-1).min() < 0.5:
        return
    module = reference.module_with(**weights, n_heads=H, batch_first=True)

    def ours(*inputs):
        return layer(*inputs, mask)

    def theirs(*inputs):
        return reference.ask(module, *inputs, mask)[0]

    found = draws.with_gradients(layer, ours, X, X_k, X_v)
    Y_2, gradients, of_parameters = draws.with_gradients(module, theirs, X, X_k, X_v)
    expected = Y_2, gradients, draws.in_our_names(of_parameters)
    assert_same(found, expected, SAME_AS_TORCH)


def test_key_is_query_and_value_is_key_by_default():
    layer = random_layer()
    X, X_k, X_v = (normal(B, N_Q, D_MODEL, seed=i) for i in range(3))
    assert torch.equal(layer(X), layer(X, X, X))
    assert torch.equal(layer(X, X_k), layer(X, X_k, X_k))
    assert torch.equal(layer(X, value=X_v), layer(X, X, X_v))
    assert not torch.isclose(layer(X, X_k), layer(X, X_k, X_v)).any()


# Laws


# Rows that may look at nothing: hidden as a whole, by padding, or by padding on the
# left together with the causal rule.
some_rows = normal(1, H, N_Q, N_Q) > 0.3
some_rows[..., 2, :] = False
EMPTY = {
    "some rows": (some_rows, False),
    "a sequence": (torch.from_numpy(mha.padding_mask([0, 4], N_Q)), False),
    "left of a causal one": (
        torch.from_numpy(mha.padding_mask([5, 4], N_Q)).flip(-1),
        True,
    ),
}


@both_kinds
@both_ways
@pytest.mark.parametrize("mask, is_causal", EMPTY.values(), ids=EMPTY)
def test_a_row_that_may_look_at_nothing_gives_zeros(
    mask, is_causal, return_weights, kind
):
    """No NaN on the way either: anomaly detection would stop a user's training."""
    causal = torch.from_numpy(mha.causal_mask(N_Q)) if is_causal else True
    empty = ~(mask & causal).any(-1).expand(B, H, N_Q)
    assert empty.any() and not empty.all()
    mask = mask if kind == "bool" else torch.where(mask, 0.5, -torch.inf)
    options = {"is_causal": is_causal, "return_weights": return_weights}
    QKV = [x.requires_grad_() for x in draws.random_qkv(B, H, n_k=N_Q, d_v=D_K)]
    answer = outputs(attention(*QKV, mask, **options), return_weights)
    for x in answer:
        assert (x[empty] == 0).all() and x.isfinite().all() and x[~empty].any(-1).all()
    with torch.autograd.set_detect_anomaly(True):
        sum(x.sum() for x in answer).backward()
    assert (QKV[0].grad[empty] == 0).all()
    assert all(x.grad.isfinite().all() for x in QKV)
    layer, X = random_layer(dropout=0.5), normal(B, N_Q, D_MODEL)
    Y = outputs(layer(X, mask=mask, **options), return_weights)[0]
    assert (Y[empty.all(1)] == layer.W_O.bias).all() and Y.isfinite().all()


@both_ways
def test_a_learned_mask_with_an_empty_row_gets_finite_gradients(return_weights):
    """A bias on the scores may be trained, as in ALiBi or T5, and have closed rows."""
    Q, K, V = draws.random_qkv(H)
    bias = draws.as_float_mask(normal(N_Q, N_K, seed=5) > 0)
    bias[2] = -torch.inf
    bias.requires_grad_()
    Y = attention(Q, K, V, bias, return_weights=return_weights)
    outputs(Y, return_weights)[0].sum().backward()
    assert bias.grad.isfinite().all() and (bias.grad[2] == 0).all()
    assert bias.grad[bias > -torch.inf].all()


@both_kinds
@both_ways
def test_a_hidden_key_gets_nothing_however_low_the_others_score(return_weights, kind):
    """All open scores lie below -10⁹, so a hidden -10⁹ would take the whole weight."""
    Q, K, V = draws.random_qkv(B, H, d_v=D_K)
    Q, K = Q.abs(), -1e10 * K.abs()
    K[..., 0, :] = 0
    mask = torch.arange(N_K) > 0
    mask = mask if kind == "bool" else torch.where(mask, 0.0, -torch.inf)
    answer = attention(Q, K, V, mask, return_weights=return_weights)
    Y, *A = outputs(answer, return_weights)
    assert_same(Y, attention(Q, K[..., 1:, :], V[..., 1:, :]))
    assert not A or (A[0][..., 0] == 0).all()


@pytest.mark.parametrize(
    "leading, n_q, n_k", [((0,), N_Q, N_K), ((B, H), 0, N_K), ((B, H), N_Q, 0)]
)
def test_no_queries_no_batch_and_no_keys_give_empty_answers_or_zeros(leading, n_q, n_k):
    Q, K, V = draws.random_qkv(*leading, n_q=n_q, n_k=n_k)
    for is_causal in (False, True):
        Y = attention(Q, K, V, is_causal=is_causal)
        assert Y.shape == (*leading, n_q, D_V) and not Y.any()
    mask = torch.ones(n_q, 1, dtype=torch.bool)
    Y, A = attention(Q, K, V, mask, return_weights=True)
    assert A.shape == (*leading, n_q, n_k) and not Y.any()


@both_ways
@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
def test_dtype_is_kept_and_halves_are_summed_in_float32(dtype, return_weights):
    """Scores of 300 · 300 · d_k lie beyond float16, their softmax does not."""
    Q, K, V = (x.to(dtype) for x in draws.random_qkv(B, H, d_v=D_K))
    Q, K = Q + 300, K + 300
    answer = outputs(attention(Q, K, V, return_weights=return_weights), return_weights)
    exact = attention(Q.double(), K.double(), V.double())
    atol = 4 * torch.finfo(dtype).eps  # values of size 2, rounded once or twice
    if dtype in HALVES:
        torch.testing.assert_close(answer[0].double(), exact, rtol=0, atol=atol)
    layer = MultiHeadAttention(D_MODEL, H, dtype=dtype)
    X, mask = (
        normal(B, N_Q, D_MODEL).to(dtype),
        draws.random_mask(N_Q, N_Q, kind="float"),
    )
    answer += outputs(
        layer(X, mask=mask, return_weights=return_weights), return_weights
    )
    assert {x.dtype for x in answer} == {dtype}
    mixed = attention(Q, K.float(), V.double(), return_weights=return_weights)
    assert outputs(mixed, return_weights)[0].dtype == torch.float64


@both_ways
def test_dropout_is_right_on_average_and_leaves_the_reported_weights(return_weights):
    """With V = I the output *is* the weights that were used.

    Each is 0 or 4/3 of the true one, for dropout 1/4; rows no longer sum to one.
    """
    n_draws, p = 5_000, 0.25
    Q, K, _ = draws.random_qkv(n_q=3, n_k=N_K)
    eye = torch.eye(N_K).double()
    torch.manual_seed(0)
    answer = attention(
        Q.expand(n_draws, *Q.shape), K, eye, dropout_p=p, return_weights=return_weights
    )
    used, *A = outputs(answer, return_weights)
    expected, kept = attention(Q, K, eye), used > 0
    assert abs(kept.double().mean() - (1 - p)) < 0.01
    assert_same(used[kept], (expected / (1 - p)).expand_as(used)[kept])
    assert not A or torch.equal(A[0], A[0][:1].expand_as(A[0]))
    # One weight has standard deviation below √(1/3).
    assert_same(
        used.mean(0), expected, {"rtol": 0, "atol": 5 * math.sqrt(1 / 3 / n_draws)}
    )


# Refusals

Q, K, V = draws.random_qkv(B, H)
INF, NAN = (torch.full((N_Q, N_K), x) for x in (torch.inf, torch.nan))
WRONG = [
    (
        (Q, K[..., 1:, :], V),
        ValueError,
        "K and V must have the same .* n_k, got 6 and 7",
    ),
    (
        (Q, K, V[..., 1:, :]),
        ValueError,
        "K and V must have the same .* n_k, got 7 and 6",
    ),
    (
        (Q, K[..., :8], V),
        ValueError,
        "Q and K must .* same last axis d_k, got 11 and 8",
    ),
    (
        (Q, normal(5, H, N_K, D_K), V),
        ValueError,
        r"do not broadcast: Q \(2, 3, 5, 11\), K \(5, 3, 7, 11\)",
    ),
    ((Q[0, 0, 0], K, V), ValueError, r"Q must have shape .* got \(11,\)"),
    ((Q, K.long(), V), TypeError, "K must hold floating-point.*int64"),
    ((Q, K, V.cfloat()), TypeError, "V must hold floating-point.*complex64"),
    ((Q.numpy(), K, V), TypeError, "Q must be a torch.Tensor, got ndarray"),
    ((Q, K, V, NAN.long()), TypeError, "mask must be bool .* got dtype torch.int64"),
    (
        (Q, K, V, INF[:3, :3]),
        ValueError,
        r"mask of shape \(3, 3\) does not broadcast .* = \(2, 3, 5, 7\)",
    ),
    ((Q, K, V, INF.expand(4, B, H, N_Q, N_K)), ValueError, "does not broadcast"),
    ((Q, K, V, INF), ValueError, "must hold finite numbers or -inf"),
    ((Q, K, V, NAN), ValueError, "must hold finite numbers or -inf"),
]


@both_ways
@pytest.mark.parametrize("arguments, error, message", WRONG)
def test_attention_says_what_is_wrong(arguments, error, message, return_weights):
    with pytest.raises(error, match=message):
        attention(*arguments, return_weights=return_weights)


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"scale": "0.5"}, TypeError, "scale must be a number, got '0.5'"),
        ({"scale": math.nan}, ValueError, "scale must be finite, got nan"),
        ({"dropout_p": 1}, ValueError, "dropout_p must be at least 0 .* got 1"),
        ({"dropout_p": -0.1}, ValueError, "dropout_p must be at least 0 .* got -0.1"),
        ({"dropout_p": True}, TypeError, "dropout_p must be a number, got True"),
    ],
)
def test_attention_says_which_option_is_wrong(options, error, message):
    with pytest.raises(error, match=message):
        attention(Q, K, V, **options)


@pytest.mark.parametrize(
    "arguments, options, error, message",
    [
        ((10, 3), {}, ValueError, r"d_model \(10\) must be divisible by n_heads \(3\)"),
        ((0, 1), {}, ValueError, "d_model must be at least 1, got 0"),
        ((8, 0), {}, ValueError, "n_heads must be at least 1, got 0"),
        ((8.0, 2), {}, TypeError, "d_model must be an integer, got 8.0"),
        ((8, 2), {"dropout": 1.0}, ValueError, "dropout must be .* below 1, got 1.0"),
        ((8, 2), {"dropout": "no"}, TypeError, "dropout must be a number, got 'no'"),
    ],
)
def test_the_layer_says_which_number_is_wrong(arguments, options, error, message):
    with pytest.raises(error, match=message):
        MultiHeadAttention(*arguments, **options)


ASKED = {
    "attention": lambda X, mask: MultiHeadAttention(6, 3)(X, mask=mask),
    "an encoder layer": lambda X, mask: EncoderLayer(6, 3, 4)(X, mask),
    "an encoder": lambda X, mask: Encoder(2, 6, 3, 4)(X, mask),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_mask_for_each_sequence_does_not_pass_as_one_for_each_head(ask):
    """Three sequences and three heads: (3, 5, 5) would fit either."""
    message = (
        "mask of shape (3, 5, 5) has 3 axes, and the scores have 4: "
        "(3, 3, 5, 5) = (..., n_heads, n_q, n_k); write mask[:, None] for one mask per "
        "sequence, mask[None] for one per head"
    )
    X, mask = torch.ones(3, 5, 6), draws.random_mask(3, 5, 5)
    for given in (mask, mask.numpy()):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            ask(X, given)
    for remedy in (mask[:1], mask[:, None], mask[None]):
        assert ask(X, remedy).shape == X.shape
    assert ask(X[0], mask).shape == X[0].shape  # no batch, so one for each head
