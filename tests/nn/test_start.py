"""The weights that the layers of mha.nn start with are those of PyTorch's layers."""

import copy
import math

import pytest
import torch
from torch import nn

from mha.nn import Encoder, EncoderLayer, MultiHeadAttention, from_torch

D_MODEL, H, D_FF = 66, 3, 34
SAME = {"rtol": 1e-12, "atol": 0}  # PyTorch takes the root of the bound in two steps
both_biases = pytest.mark.parametrize("bias", [True, False])


def assert_same_parameters(ours, theirs):
    torch.testing.assert_close(
        dict(ours.named_parameters()), dict(theirs.named_parameters()), **SAME
    )


# By hand


def test_projections_start_within_the_bound_of_the_packed_matrix():
    """√(6 / (6 + 18)) is 1/2; a projection on its own would start within √(6 / 12).

    The largest of 3 · 36 uniform numbers lies above 0.9 of the bound but once in 10⁵.
    """
    torch.manual_seed(0)
    layer = MultiHeadAttention(6, 2)
    largest = max(W.weight.abs().max() for W in (layer.W_Q, layer.W_K, layer.W_V))
    assert 0.45 < largest <= 0.5


def test_the_output_projection_starts_as_a_linear_layer():
    """Within 1/√d_model: 1/10 for a width of 100."""
    torch.manual_seed(0)
    W_O = MultiHeadAttention(100, 2).W_O
    assert 0.099 < W_O.weight.abs().max() <= 0.1


def test_all_biases_of_attention_start_at_zero():
    for name, parameter in MultiHeadAttention(6, 2).named_parameters():
        assert parameter.any() == name.endswith("weight"), name


# Agreement


@both_biases
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_attention_starts_with_the_numbers_of_torchs_attention(dtype, bias):
    options = {"bias": bias, "dtype": dtype}
    torch.manual_seed(5)
    ours = MultiHeadAttention(D_MODEL, H, **options)
    after = torch.rand(1)
    torch.manual_seed(5)
    theirs = nn.MultiheadAttention(D_MODEL, H, **options)
    assert_same_parameters(ours, from_torch(theirs))
    torch.manual_seed(5)
    nn.MultiheadAttention(D_MODEL, H, **options)
    assert torch.equal(after, torch.rand(1))  # ours drew as many numbers


@both_biases
def test_an_encoder_layer_starts_with_the_numbers_of_torchs_layer(bias):
    torch.manual_seed(5)
    ours = EncoderLayer(D_MODEL, H, D_FF, bias=bias)
    torch.manual_seed(5)
    theirs = nn.TransformerEncoderLayer(D_MODEL, H, D_FF, bias=bias)
    assert_same_parameters(ours, from_torch(theirs))


def test_the_first_layer_of_an_encoder_starts_as_torchs_and_the_next_goes_on():
    torch.manual_seed(5)
    ours = Encoder(2, D_MODEL, H, D_FF)
    torch.manual_seed(5)
    theirs = [nn.TransformerEncoderLayer(D_MODEL, H, D_FF) for _ in range(2)]
    for layer, their_layer in zip(ours.layers, theirs, strict=True):
        assert_same_parameters(layer, from_torch(their_layer))


@pytest.mark.parametrize("part", [0, 1, 2])
def test_each_projection_has_the_spread_that_torchs_has(part):
    """Uniform numbers within ±b have standard deviation b/√3; 66 · 66 of them, 3 %."""
    layer = MultiHeadAttention(D_MODEL, H)
    theirs = nn.MultiheadAttention(D_MODEL, H).in_proj_weight.chunk(3)[part]
    ours = (layer.W_Q, layer.W_K, layer.W_V)[part].weight
    expected = math.sqrt(6 / (4 * D_MODEL)) / math.sqrt(3)
    for W in (ours, theirs):
        assert abs(W.std() / expected - 1) < 0.03


# Laws

LAYERS = {
    "attention": lambda **options: MultiHeadAttention(6, 2, **options),
    "layer": lambda **options: EncoderLayer(6, 2, 5, **options),
    "encoder": lambda **options: Encoder(2, 6, 2, 5, final_norm=True, **options),
}
every_layer = pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)


@every_layer
@both_biases
def test_reset_parameters_starts_again_whatever_was_learned(make, bias):
    torch.manual_seed(5)
    layer = make(bias=bias)
    start = copy.deepcopy(layer)
    for parameter in layer.parameters():
        parameter.data.fill_(7.0)
    torch.manual_seed(5)
    layer.reset_parameters()
    assert_same_parameters(layer, start)


@every_layer
def test_a_layer_made_without_memory_starts_like_any_other(make):
    """On the device "meta", then empty, then reset: how large models are made."""
    torch.manual_seed(5)
    expected = make()
    layer = make(device="meta")
    assert {p.device.type for p in layer.parameters()} == {"meta"}
    layer = layer.to_empty(device="cpu")
    torch.manual_seed(5)
    layer.reset_parameters()
    assert_same_parameters(layer, expected)


def test_a_layer_is_made_where_torch_is_told_to_make_it():
    with torch.device("meta"):
        layer = MultiHeadAttention(6, 2)
    assert layer.W_Q.weight.device.type == "meta"
    assert MultiHeadAttention(6, 2).W_Q.weight.device.type == "cpu"
