"""Run ``python -m pytest tests/benchmarks``. The unit suite leaves this folder out.

Only ratios are judged, because seconds belong to one machine; ``-s`` prints them.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import mha
from mha.nn import EncoderLayer, MultiHeadAttention, to_torch
from tests.benchmarks.clock import ratio


def judge(ours, theirs, at_most):
    """Print the ratio and fail if it is above `at_most`."""
    measured = ratio(ours, theirs)
    print(f"\n    {measured:.2f} of at most {at_most}")
    assert measured <= at_most


def draw(*shape):
    """Return queries, keys and values, as arrays and as tensors."""
    rng = np.random.default_rng(0)
    QKV = [rng.standard_normal(shape, dtype=np.float32) for _ in range(3)]
    return QKV, [torch.from_numpy(x) for x in QKV]


@pytest.mark.parametrize("shape", [(8, 8, 128, 32), (1, 8, 2048, 64)])
def test_plain_numpy_takes_less_than_six_times_as_long_as_the_fused_kernel(shape):
    """Its docstring says about four times."""
    QKV, tensors = draw(*shape)
    judge(
        lambda: mha.scaled_dot_product_attention(*QKV),
        lambda: F.scaled_dot_product_attention(*tensors),
        at_most=6,
    )


@pytest.mark.parametrize(
    ("shape", "at_most"),
    [
        ((8, 8, 128, 32), 1.8),
        ((1, 8, 2048, 64), 1.6),
        ((1, 1, 4096, 64), 1.6),
        ((1, 1, 8192, 64), 1.6),
    ],
)
def test_chunks_keep_within_sight_of_the_fused_kernel(shape, at_most):
    QKV, tensors = draw(*shape)
    judge(
        lambda: mha.chunked_attention(*QKV),
        lambda: F.scaled_dot_product_attention(*tensors),
        at_most,
    )


@pytest.mark.parametrize("n", [4096, 8192])
def test_chunks_beat_the_plain_function_on_a_long_text(n):
    QKV, _ = draw(n, 64)
    judge(
        lambda: mha.chunked_attention(*QKV),
        lambda: mha.scaled_dot_product_attention(*QKV),
        at_most=0.9,
    )


def test_skipping_the_future_saves_a_third():
    QKV, _ = draw(4096, 64)
    judge(
        lambda: mha.chunked_attention(*QKV, is_causal=True),
        lambda: mha.chunked_attention(*QKV),
        at_most=0.65,
    )


def bare(layer, X):
    """Return what `layer` must do at least: its projections around the kernel."""
    shape = (*X.shape[:-1], layer.n_heads, -1)
    Q, K, V = (W(X).view(shape) for W in (layer.W_Q, layer.W_K, layer.W_V))
    Q, K, V = (x.transpose(1, 2) for x in (Q, K, V))
    heads = F.scaled_dot_product_attention(Q, K, V)
    return layer.W_O(heads.transpose(1, 2).reshape(X.shape))


def layer_and_tokens(batch, n, d_model):
    torch.manual_seed(0)
    return MultiHeadAttention(d_model, 8), torch.randn(batch, n, d_model)


def forward(program, X):
    def run():
        with torch.no_grad():
            program(X)

    return run


def forward_and_backward(program, X):
    X = X.clone().requires_grad_()
    return lambda: program(X).sum().backward()


@pytest.mark.parametrize("way", [forward, forward_and_backward])
@pytest.mark.parametrize("sizes", [(8, 128, 256), (32, 64, 512), (1, 2048, 512)])
def test_our_layer_costs_no_more_than_its_kernel(sizes, way):
    layer, X = layer_and_tokens(*sizes)
    torch.testing.assert_close(layer(X), bare(layer, X))
    judge(way(layer, X), way(lambda X: bare(layer, X), X), at_most=1.1)


def encoder_layer_and_tokens(norm_first=False):
    torch.manual_seed(0)
    layer = EncoderLayer(512, 8, 2048, norm_first=norm_first)
    return layer, torch.randn(1, 2048, 512)


@pytest.mark.parametrize("way", [forward, forward_and_backward])
@pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])
def test_at_2048_tokens_our_encoder_layer_costs_what_torchs_costs(norm_first, way):
    layer, X = encoder_layer_and_tokens(norm_first)
    theirs = to_torch(layer)
    torch.testing.assert_close(layer(X), theirs(X))
    judge(way(layer, X), way(theirs, X), at_most=1.1)


@pytest.mark.parametrize("activation, at_most", [("relu", 2.5), ("gelu", 9.0)])
def test_the_numpy_layer_keeps_within_sight_of_torchs(activation, at_most):
    """gelu calls Python's error function for each number, since NumPy has none."""
    torch.manual_seed(0)
    layer, X = EncoderLayer(256, 8, 1024, activation=activation), torch.randn(128, 256)
    weights, tokens = layer.numpy_weights(), X.numpy()
    judge(
        lambda: mha.encoder_layer(tokens, weights, 8, activation=activation),
        forward(to_torch(layer), X),
        at_most,
    )


SMALL = np.random.default_rng(0).standard_normal((4, 8))
MATRIX = np.random.default_rng(1).standard_normal((8, 8))


def unchecked_softmax(x):
    top = np.max(x, axis=-1, keepdims=True, initial=-np.inf)
    top = np.where(top == -np.inf, 0, top)
    with np.errstate(over="ignore"):
        e = np.exp(x - top)
    total = np.sum(e, axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def unchecked_split(x, n_heads):
    *leading, n, d_model = x.shape
    return x.reshape(*leading, n, n_heads, d_model // n_heads).swapaxes(-3, -2)


def unchecked_heads(X, W_Q, W_K, W_V, W_O, n_heads):
    """Return what `mha.multi_head_attention` computes, asking nothing."""
    Q, K, V = (unchecked_split(X @ W, n_heads) for W in (W_Q, W_K, W_V))
    heads = unchecked_softmax(Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])) @ V
    *leading, n_heads, n, d_head = heads.shape
    return heads.swapaxes(-3, -2).reshape(*leading, n, n_heads * d_head) @ W_O


@pytest.mark.parametrize(
    ("ours", "unchecked", "args", "at_most"),
    [
        (mha.softmax, unchecked_softmax, (SMALL,), 1.7),
        (mha.multi_head_attention, unchecked_heads, (SMALL, *[MATRIX] * 4, 2), 2.5),
    ],
    ids=["softmax", "multi_head_attention"],
)
def test_checking_small_arguments_costs_little(ours, unchecked, args, at_most):
    """Every step checks again, also where another step calls it."""
    np.testing.assert_allclose(ours(*args), unchecked(*args))
    judge(lambda: ours(*args), lambda: unchecked(*args), at_most)
