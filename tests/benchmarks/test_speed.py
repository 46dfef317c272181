"""Run ``python -m pytest tests/benchmarks``. The unit suite leaves this folder out.

Only ratios are judged, because seconds belong to one machine; ``-s`` prints them.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import mha
from mha import _doors
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


@pytest.mark.parametrize("activation, at_most", [("relu", 2.5), ("gelu", 6.0)])
def test_the_numpy_layer_keeps_within_sight_of_torchs(activation, at_most):
    """gelu reads the error function, which NumPy does not have, from a table."""
    torch.manual_seed(0)
    layer, X = EncoderLayer(256, 8, 1024, activation=activation), torch.randn(128, 256)
    weights, tokens = layer.numpy_weights(), X.numpy()
    judge(
        lambda: mha.encoder_layer(tokens, weights, 8, activation=activation),
        forward(to_torch(layer), X),
        at_most,
    )


SMALL = np.random.default_rng(0).standard_normal((5, 12))
MATRIX = np.random.default_rng(1).standard_normal((12, 12))
HEADS = dict.fromkeys(("W_Q", "W_K", "W_V", "W_O"), MATRIX)
CALLS = {
    "softmax": {"x": SMALL},
    "masked_softmax": {"S": SMALL, "mask": SMALL > 0},
    "scaled_dot_product_attention": {"Q": SMALL, "K": SMALL, "V": SMALL},
    "chunked_attention": {"Q": SMALL, "K": SMALL, "V": SMALL},
    "multi_head_attention": HEADS
    | {"X": SMALL, "n_heads": 3, "mask": np.tri(5, dtype=bool)},
    "encoder_layer": {
        "X": SMALL,
        "weights": HEADS | {"W_1": MATRIX, "W_2": MATRIX},
        "n_heads": 3,
    },
}


@pytest.mark.parametrize("step", CALLS)
def test_checking_small_arguments_takes_no_longer_than_the_step_itself(step):
    getattr(mha, step)(**CALLS[step])  # the first call connects the bare steps
    judge(
        lambda: getattr(mha, step)(**CALLS[step]),
        lambda: _doors.BARE[step](**CALLS[step]),
        at_most=2,
    )
