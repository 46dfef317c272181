"""Defaults are part of the API: a changed one changes what every caller gets."""

import inspect

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import mha
from tests.samples import draw_qkv
from tests.tolerances import TORCH, assert_close

REQUIRED = inspect.Parameter.empty
LAYER = dict(activation="relu", norm_first=False, eps=1e-5)
ATTENTION = dict(mask=None, is_causal=False, scale=None)

DEFAULTS = {
    "causal_mask": dict(n_k=None),
    "chunked_attention": ATTENTION | dict(block_size=512),
    "cosine_similarity": {},
    "dot_product_scores": {},
    "encoder": LAYER
    | dict(mask=None, final_norm=None, is_causal=False, return_weights=False),
    "encoder_layer": LAYER | dict(mask=None, is_causal=False, return_weights=False),
    "feed_forward": dict(activation="relu"),
    "layer_norm": dict(gain=None, bias=None, eps=1e-5),
    "linear": dict(b=None),
    "masked_softmax": dict(mask=None, axis=-1),
    "merge_heads": {},
    "multi_head_attention": dict.fromkeys(
        ("mask", "X_k", "X_v", "b_Q", "b_K", "b_V", "b_O")
    )
    | dict(is_causal=False, return_weights=False),
    "padding_mask": dict(max_length=None),
    "scaled_dot_product_attention": ATTENTION | dict(return_weights=False),
    "sinusoidal_positional_encoding": {},
    "softmax": dict(axis=-1),
    "source": {},
    "split_heads": {},
}


def defaults_of(function):
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not REQUIRED}


@pytest.mark.parametrize("name", mha.__all__)
def test_every_default_is_what_the_table_says(name):
    got, expected = defaults_of(getattr(mha, name)), DEFAULTS[name]
    assert got == expected
    # True == 1 and 1.0 == 1, which a signature must not hide.
    assert {k: type(x) for k, x in got.items()} == {
        k: type(x) for k, x in expected.items()
    }


def test_the_default_axis_of_softmax_is_the_last(rng):
    S = rng.normal(size=(2, 5, 7))
    for p in (mha.softmax(S), mha.masked_softmax(S)):
        assert_close(p.sum(-1), np.ones((2, 5)))


def test_the_default_scale_is_that_of_torch(rng):
    Q, K, V = draw_qkv(rng)
    expected = F.scaled_dot_product_attention(*map(torch.as_tensor, (Q, K, V)))
    assert_close(mha.scaled_dot_product_attention(Q, K, V), expected, TORCH)
    assert_close(mha.chunked_attention(Q, K, V), expected, TORCH)


def test_the_default_eps_is_that_of_torchs_layer_norm(rng):
    """Rows of size 1e-3 have a variance near eps, where every eps shows."""
    x = rng.normal(size=(5, 7)) * 1e-3
    assert_close(mha.layer_norm(x), F.layer_norm(torch.as_tensor(x), (7,)), TORCH)


def test_a_layer_and_a_stack_take_their_defaults_from_the_paper(rng):
    """Post-norm, relu, no final norm, and the eps of torch, on small rows again."""
    names = "W_Q W_K W_V W_O W_1 W_2".split()
    weights = {name: rng.normal(size=(7, 7)) for name in names}
    X = rng.normal(size=(5, 7)) * 1e-3

    def norm(x):
        return F.layer_norm(torch.as_tensor(x), (7,), eps=1e-5).numpy()

    attention = {name: weights[name] for name in names[:4]}
    Z = norm(X + mha.multi_head_attention(X, **attention, n_heads=1))
    Y = norm(Z + np.maximum(Z @ weights["W_1"], 0) @ weights["W_2"])
    assert_close(mha.encoder_layer(X, weights, 1), Y, TORCH)
    assert_close(mha.encoder(X, [weights], 1), Y, TORCH)


def test_a_padded_batch_is_as_long_as_its_longest_sequence():
    assert mha.padding_mask([3, 1]).shape == (2, 1, 1, 3)
    assert mha.causal_mask(3).shape == (3, 3)
