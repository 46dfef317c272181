"""Defaults are part of the interface: a changed one fails, by name or by number."""

import inspect

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import mha.nn
from mha import pretrained
from mha.nn import Encoder, EncoderLayer, MultiHeadAttention, to_torch

LOOK = {"mask": None, "is_causal": False, "return_weights": False}
STORAGE = {"device": None, "dtype": None}
KIND = {"dropout": 0.0, "activation": "relu", "norm_first": False, "eps": 1e-5}
DEFAULTS = {
    mha.nn.scaled_dot_product_attention: {**LOOK, "scale": None, "dropout_p": 0.0},
    mha.nn.from_torch: {},
    mha.nn.to_torch: {"batch_first": True},
    MultiHeadAttention: {"bias": True, "dropout": 0.0, **STORAGE},
    MultiHeadAttention.forward: {"key": None, "value": None, **LOOK},
    MultiHeadAttention.numpy_weights: {},
    MultiHeadAttention.reset_parameters: {},
    MultiHeadAttention.extra_repr: {},
    EncoderLayer: {**KIND, "bias": True, **STORAGE},
    EncoderLayer.forward: LOOK,
    EncoderLayer.numpy_weights: {},
    EncoderLayer.reset_parameters: {},
    EncoderLayer.extra_repr: {},
    Encoder: {**KIND, "bias": True, "final_norm": False, **STORAGE},
    Encoder.forward: LOOK,
    Encoder.numpy_weights: {},
    Encoder.reset_parameters: {},
    pretrained.load: {"path": None, "dtype": np.float32},
    pretrained.SentenceEncoder.tokenize: {},
    pretrained.SentenceEncoder.look_up: {},
    pretrained.SentenceEncoder.run: {"return_weights": False},
    pretrained.SentenceEncoder.embed: {},
    pretrained.SentenceEncoder.encode_ids: {"return_weights": False},
    pretrained.SentenceEncoder.without_heads: {},
}


def defaults_of(function):
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def public_callables():
    """Yield every public function and class of mha.nn, and their public methods."""
    for thing in [*(getattr(mha.nn, name) for name in mha.nn.__all__), pretrained.load]:
        yield thing
        if inspect.isclass(thing):
            yield from methods_of(thing)
    yield from methods_of(pretrained.SentenceEncoder)


def methods_of(kind):
    for name, method in vars(kind).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            yield method


@pytest.mark.parametrize("function", DEFAULTS, ids=lambda f: f.__qualname__)
def test_the_defaults_are_the_ones_written_here(function):
    assert defaults_of(function) == DEFAULTS[function]
    for name, default in defaults_of(function).items():
        assert type(default) is type(DEFAULTS[function][name])  # 0 is not False


def test_no_public_callable_is_forgotten():
    assert set(public_callables()) == set(DEFAULTS)


# What the defaults mean, next to what PyTorch does by default with the same seed. The
# tokens are small, so that the eps of a norm counts.

X = 1e-3 * torch.randn(
    2, 5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64
)
DOUBLE = {"dtype": torch.float64}
SAME = {"rtol": 1e-9, "atol": 0}


def made(kind, *sizes, **options):
    torch.manual_seed(3)
    return kind(*sizes, **options, **DOUBLE)


def test_attention_asked_for_nothing_is_torchs_own():
    torch.testing.assert_close(
        mha.nn.scaled_dot_product_attention(X, X, X),
        F.scaled_dot_product_attention(X, X, X),
        **SAME,
    )


def test_a_layer_asked_for_nothing_is_torchs_attention():
    ours, theirs = made(MultiHeadAttention, 6, 2), made(nn.MultiheadAttention, 6, 2)
    theirs.batch_first = True
    torch.testing.assert_close(ours(X), theirs(X, X, X)[0], **SAME)


@pytest.mark.parametrize("make", [EncoderLayer, lambda *s, **o: Encoder(1, *s, **o)])
def test_an_encoder_asked_for_nothing_is_torchs_without_dropout(make):
    """Post-norm, relu, eps 1e-5, biases, no final norm; torch drops 0.1, ours 0."""
    ours = made(make, 6, 2, 5)
    theirs = made(nn.TransformerEncoderLayer, 6, 2, 5, dropout=0, batch_first=True)
    expected = theirs(X)
    torch.testing.assert_close(ours(X), expected, **SAME)
    torch.testing.assert_close(ours(X), ours(X), rtol=0, atol=0)  # in train mode
    moved = made(make, 6, 2, 5, eps=1.00001e-5)(X)
    assert not torch.allclose(moved, expected, **SAME)


def test_a_layer_given_to_torch_reads_the_batch_first():
    layer = made(MultiHeadAttention, 6, 2)
    assert to_torch(layer).batch_first
    torch.testing.assert_close(to_torch(layer)(X, X, X)[0], layer(X), **SAME)
