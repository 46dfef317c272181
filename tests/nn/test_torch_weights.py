"""mha.nn: weights from and to PyTorch's own layers, and the weights at the start."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import mha
from mha.nn import Encoder, EncoderLayer, MultiHeadAttention, from_torch, to_torch
from tests.nn import draws
from tests.nn.draws import SAME_AS_TORCH, assert_same, every_kind, normal

B, H, N_Q, N_K = draws.B, draws.H, draws.N_Q, draws.N_K
D_MODEL, D_FF = draws.D_MODEL, draws.D_FF
DOUBLE = {"dtype": torch.float64}
EXACT = {"rtol": 1e-12, "atol": 0}  # PyTorch takes the root of the bound in two steps
both_biases = pytest.mark.parametrize("bias", [True, False])
batch_first_or_not = pytest.mark.parametrize("batch_first", [True, False])


def named(module):
    return dict(module.named_parameters())


def their_encoder(norm=None, **options):
    options = {"dropout": 0.0, "batch_first": True} | DOUBLE | options
    layer = nn.TransformerEncoderLayer(D_MODEL, H, D_FF, **options)
    return draws.scramble(
        nn.TransformerEncoder(layer, 3, norm, enable_nested_tensor=False)
    )


# From PyTorch


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


@batch_first_or_not
@both_biases
def test_attention_from_torch_gives_the_same_answer(bias, batch_first):
    module = nn.MultiheadAttention(
        D_MODEL, H, bias=bias, batch_first=batch_first, **DOUBLE
    )
    layer, axis = from_torch(draws.scramble(module)), 0 if batch_first else 1
    X, X_k, X_v = (normal(B, n, D_MODEL, seed=n) for n in (N_Q, N_K, N_K))
    Y, A = module(
        *(x.transpose(0, axis) for x in (X, X_k, X_v)), average_attn_weights=False
    )
    expected = Y.transpose(0, axis), A
    assert_same(layer(X, X_k, X_v, return_weights=True), expected, SAME_AS_TORCH)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("final_norm", [True, False])
@batch_first_or_not
@every_kind
def test_an_encoder_from_torch_gives_the_same_answer(
    kind, batch_first, final_norm, training
):
    """Under their masks, which hide where ours open; in eval mode their fast path."""
    norm = nn.LayerNorm(D_MODEL, **DOUBLE) if final_norm else None
    options = {"batch_first": batch_first, "layer_norm_eps": 1e-3}
    theirs = their_encoder(norm, **options, **kind).train(training)
    model = from_torch(theirs)
    assert isinstance(model, Encoder) and model.training == training
    X, axis = normal(B, N_Q, D_MODEL), 0 if batch_first else 1
    keep = torch.from_numpy(mha.padding_mask([N_Q, 3], N_Q))
    causal = torch.ones(N_Q, N_Q, dtype=torch.bool).tril()
    with torch.no_grad():
        expected = theirs(
            X.transpose(0, axis), mask=~causal, src_key_padding_mask=~keep[:, 0, 0],
            is_causal=True,
        ).transpose(0, axis)  # fmt: skip
        assert_same(model(X, keep, is_causal=True), expected, SAME_AS_TORCH)


@pytest.mark.parametrize("activation", [F.relu, nn.ReLU(), F.gelu, nn.GELU()])
def test_an_activation_may_be_a_function_or_a_module(activation):
    theirs = nn.TransformerEncoderLayer(
        6, 2, 5, 0.0, activation, batch_first=True, **DOUBLE
    )
    X = normal(B, N_Q, 6)
    assert_same(from_torch(theirs)(X), theirs(X), SAME_AS_TORCH)


# To PyTorch, and back


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@every_kind
def test_there_and_back_again_changes_nothing(kind, dtype, training):
    options = {"dropout": 0.25, "dtype": dtype}
    attention = MultiHeadAttention(6, 2, bias=kind["bias"], **options)
    layer = EncoderLayer(6, 2, 5, eps=1e-3, **options, **kind)
    model = Encoder(3, 6, 2, 5, final_norm=True, eps=1e-3, **options, **kind)
    for ours in (attention, layer, model):
        theirs = to_torch(draws.scramble(ours).train(training))
        back = from_torch(theirs)
        assert type(back) is type(ours) and repr(back) == repr(ours)
        assert back.training == theirs.training == training
        assert_same(dict(back.state_dict()), dict(ours.state_dict()), EXACT)
        three = [p for m in (ours, theirs, back) for p in m.parameters()]
        assert len({p.data_ptr() for p in three}) == len(three)
        assert {p.dtype for p in three} == {dtype}
        assert all(p.requires_grad and p.is_leaf for p in three)


def test_padding_is_kept_in_the_output_of_to_torch():
    """PyTorch's nested tensors cut it off, and the output is shorter than the input."""
    model = Encoder(2, 6, 2, 5, **DOUBLE).eval()
    X, keep = normal(B, N_Q, 6), torch.from_numpy(mha.padding_mask([3, 2], N_Q))
    with torch.no_grad():
        Y = to_torch(model)(X, src_key_padding_mask=~keep[:, 0, 0])
        assert_same(Y, model(X, keep), SAME_AS_TORCH)


def test_conversion_stays_on_the_device_and_draws_no_random_numbers():
    torch.manual_seed(0)
    expected = torch.rand(1)
    for device in ("cpu", "meta"):
        model = Encoder(2, 6, 2, 5, device=device)
        torch.manual_seed(0)
        theirs = to_torch(model)
        both = [*theirs.parameters(), *from_torch(theirs).parameters()]
        assert {p.device.type for p in both} == {device}
        assert torch.equal(torch.rand(1), expected)


# The start


@both_biases
def test_all_layers_start_with_the_numbers_that_torchs_start_with(bias):
    pairs = [
        (MultiHeadAttention, nn.MultiheadAttention, (D_MODEL, H)),
        (EncoderLayer, nn.TransformerEncoderLayer, (D_MODEL, H, D_FF)),
    ]
    for ours, theirs, sizes in pairs:
        torch.manual_seed(5)
        layer, after = ours(*sizes, bias=bias), torch.rand(1)
        torch.manual_seed(5)
        expected = from_torch(theirs(*sizes, bias=bias))
        assert_same(named(layer), named(expected), EXACT)
        assert torch.equal(after, torch.rand(1))  # ours drew as many numbers


def test_reset_parameters_starts_again_also_without_memory_before():
    """On the device "meta", then empty, then reset: how large models are made."""
    torch.manual_seed(5)
    start = MultiHeadAttention(6, 2)
    changed, empty = copy.deepcopy(start), MultiHeadAttention(6, 2, device="meta")
    assert {p.device.type for p in empty.parameters()} == {"meta"}
    for parameter in changed.parameters():
        parameter.data.fill_(7.0)
    for layer in (changed, empty.to_empty(device="cpu")):
        torch.manual_seed(5)
        layer.reset_parameters()
        assert_same(named(layer), named(start), EXACT)
    with torch.device("meta"):
        model = Encoder(2, 6, 2, 5, final_norm=True)
    assert {p.device.type for p in model.parameters()} == {"meta"}


# Refusals


def changed(**parts):
    """Return PyTorch's encoder layer with some of its parts replaced."""
    layer = nn.TransformerEncoderLayer(6, 2, 5, 0.25)
    for name, part in parts.items():
        setattr(layer, name, part)
    return layer


@pytest.mark.parametrize(
    ("module", "error", "message"),
    [
        (
            nn.MultiheadAttention(6, 2, kdim=5),
            ValueError,
            r"kdim \(5\) and vdim \(6\) must equal embed_dim \(6\)",
        ),
        (nn.MultiheadAttention(6, 2, add_bias_kv=True), ValueError, "add_bias_kv and"),
        (nn.MultiheadAttention(6, 2, add_zero_attn=True), ValueError, "must be False"),
        (changed(activation=torch.tanh), ValueError, "relu or exact gelu, got .*tanh"),
        (changed(activation=nn.GELU("tanh")), ValueError, "exact gelu, got GELU"),
        (changed(norm1=nn.Identity()), TypeError, "a LayerNorm, got Identity"),
        (
            changed(dropout1=nn.Dropout(0.5)),
            ValueError,
            r"eps and dropout must be the same .* and \[0.25, 0.5\]",
        ),
        (
            changed(norm2=nn.LayerNorm(6, eps=0.5)),
            ValueError,
            r"must be the same in all parts, got \[1e-05, 0.5\]",
        ),
        (
            nn.TransformerEncoder(changed(), 2, nn.Identity(), False),
            TypeError,
            "a LayerNorm, got Identity",
        ),
        (nn.Linear(6, 6), TypeError, "attention or encoder, got Linear"),
    ],
)
def test_from_torch_says_what_our_layer_has_not(module, error, message):
    with pytest.raises(error, match=message):
        from_torch(module)


def test_to_torch_wants_a_layer_of_ours():
    with pytest.raises(TypeError, match=r"one of mha.nn, got MultiheadAttention"):
        to_torch(nn.MultiheadAttention(6, 2))
