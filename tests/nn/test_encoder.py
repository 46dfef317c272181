"""mha.nn: the encoder, equal to the NumPy steps and to PyTorch's own."""

import pickle

import numpy as np
import pytest
import torch
from torch import nn

import mha
from mha.nn import Encoder, EncoderLayer
from tests import reference
from tests.nn import draws
from tests.nn.draws import SAME_AS_TORCH, assert_same, both_norms, every_kind, normal

B, H, N_Q = draws.B, draws.H, draws.N_Q
D_MODEL, D_FF = draws.D_MODEL, draws.D_FF


def random_encoder(n_layers=2, **options):
    model = Encoder(n_layers, D_MODEL, H, D_FF, dtype=torch.float64, **options)
    return draws.scramble(model)


# By hand


def eyes(layer):
    for W in layer.modules():
        if isinstance(W, nn.Linear):
            nn.init.eye_(W.weight)
    return layer


def test_post_norm_normalises_the_sum():
    """One token looks at itself: 1, 9 twice is 2, 18, and its norm -1, 1.

    Feed-forward adds relu = 0, 1: -1, 2 becomes -1, 1 again; gain 2, 3 and bias 5, 7
    make it 3, 10.
    """
    layer = eyes(EncoderLayer(2, 1, 2, eps=0, bias=False))
    layer.norm_2 = nn.LayerNorm(2, eps=0)
    layer.norm_2.weight.data = torch.tensor([2.0, 3.0])
    layer.norm_2.bias.data = torch.tensor([5.0, 7.0])
    assert_same(layer(torch.tensor([[1.0, 9.0]])).tolist(), [[3.0, 10.0]])


def test_pre_norm_normalises_what_goes_in():
    """1, 9 plus its norm -1, 1 is 0, 10; that plus relu of -1, 1 is 0, 11."""
    layer = eyes(EncoderLayer(2, 1, 2, eps=0, bias=False, norm_first=True))
    assert_same(layer(torch.tensor([[1.0, 9.0]])).tolist(), [[0.0, 11.0]])


# Agreement with the NumPy steps and with PyTorch

MASKS = {
    "none": None,
    "padding": draws.random_mask(B, 1, 1, N_Q),
    "per head": draws.random_mask(B, H, N_Q, N_Q),
    "float": draws.random_mask(B, H, N_Q, N_Q, kind="float"),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@every_kind
def test_the_encoder_is_numpys_and_torchs_in_values_and_gradients(kind, mask):
    """The reference builds PyTorch's encoder from `numpy_weights`, without to_torch."""
    model, X = (
        random_encoder(**kind, eps=1e-3, final_norm=True),
        normal(B, N_Q, D_MODEL),
    )
    options = {"activation": kind["activation"], "norm_first": kind["norm_first"]}
    options |= {"n_heads": H, "eps": 1e-3}
    Y, A = model(X, mask, return_weights=True)
    assert_same(model(X, mask), Y)
    Y_2, A_2 = mha.encoder(
        X.numpy(), mask=None if mask is None else mask.numpy(), return_weights=True,
        **model.numpy_weights(), **options,
    )  # fmt: skip
    expected = torch.from_numpy(Y_2), [torch.from_numpy(A_l) for A_l in A_2]
    assert_same((Y.detach(), [A_l.detach() for A_l in A]), expected)
    theirs = reference.encoder_with(**model.numpy_weights(), **options)
    found = draws.with_gradients(model, lambda X: model(X, mask), X)
    Y_2, gradient, of_parameters = draws.with_gradients(
        theirs, lambda X: reference.encode(theirs, X, mask), X
    )
    expected = Y_2, gradient, draws.in_our_names(of_parameters)
    assert_same(found, expected, SAME_AS_TORCH)


@both_norms
def test_a_layer_alone_is_numpys(norm_first):
    layer = random_encoder(norm_first=norm_first).layers[1]
    X, options = normal(N_Q, D_MODEL), {"is_causal": True}
    expected = mha.encoder_layer(
        X.numpy(), layer.numpy_weights(), H, norm_first=norm_first, **options
    )
    assert_same(layer(X, **options).detach(), torch.from_numpy(expected))


def test_numpy_weights_are_copies_that_numpy_can_hold():
    model = random_encoder(final_norm=True)
    weights = model.numpy_weights()
    before = weights["layers"][1]["gain_2"].copy()
    for p in model.parameters():
        p.data += 1
    np.testing.assert_array_equal(weights["layers"][1]["gain_2"], before)
    half = Encoder(1, 6, 2, 5, final_norm=True, dtype=torch.bfloat16).numpy_weights()
    arrays = [*half["layers"][0].values(), *half["final_norm"]]
    assert {W.dtype for W in arrays} == {np.dtype("float32")}
    assert random_encoder().numpy_weights()["final_norm"] is None
    plain = random_encoder(bias=False, final_norm=True).numpy_weights()
    assert plain["final_norm"][1] is None and "b_1" not in plain["layers"][0]


# Laws


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@both_norms
def test_masked_padding_changes_nothing(norm_first, training):
    """Neither its length nor what stands in it, for outputs and for gradients."""
    model = random_encoder(norm_first=norm_first).train(training)
    X, length = normal(1, N_Q, D_MODEL), 3
    mask = mha.padding_mask([length], N_Q)

    def padded(X):
        return model(X, mask)[:, :length]

    Y, (grad,), of_parameters = draws.with_gradients(model, padded, X)
    Y_2, (grad_2,), of_parameters_2 = draws.with_gradients(model, model, X[:, :length])
    assert_same(Y, Y_2)
    assert_same(
        (grad[:, :length], of_parameters), (grad_2, of_parameters_2), SAME_AS_TORCH
    )
    assert (grad[:, length:] == 0).all()
    X[:, length:] = 100
    assert torch.equal(padded(X).detach(), Y)


@pytest.mark.parametrize("return_weights", [False, True])
@every_kind
def test_a_token_that_may_look_at_nothing_stays_finite(kind, return_weights):
    """Also its gradients, with dropout, and where PyTorch's own layer gives NaN."""
    mask = torch.from_numpy(mha.padding_mask([0, 3], N_Q))
    for given in (mask, torch.where(mask, 0.0, -torch.inf)):
        model = random_encoder(**kind, dropout=0.3, final_norm=True)
        X = normal(B, N_Q, D_MODEL).requires_grad_()
        Y = model(X, given, return_weights=return_weights)
        Y = Y[0] if return_weights else Y
        with torch.autograd.set_detect_anomaly(True):
            (Y * normal(*Y.shape, seed=9)).sum().backward()
        assert Y.isfinite().all() and X.grad.isfinite().all() and X.grad.any()
        assert all(p.grad.isfinite().all() for p in model.parameters())


@both_norms
def test_dropout_works_in_train_mode_only(norm_first):
    model, X = random_encoder(norm_first=norm_first, dropout=0.5), normal(N_Q, D_MODEL)
    torch.manual_seed(0)
    assert not torch.isclose(model(X), model(X)).all(-1).any()
    model.eval()
    assert torch.equal(model(X), model(X))
    assert_same(model(X), random_encoder(norm_first=norm_first)(X))


def test_a_model_comes_back_from_a_file_and_from_its_state_dict():
    """The names in the file are part of the interface: old files must open."""
    model, X = random_encoder(final_norm=True), normal(N_Q, D_MODEL)
    assert torch.equal(pickle.loads(pickle.dumps(model))(X), model(X))
    other = Encoder(2, D_MODEL, H, D_FF, final_norm=True, dtype=torch.float64)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(X), model(X))
    parts = [f"attention.W_{x}" for x in "QKVO"] + ["W_1", "W_2", "norm_1", "norm_2"]
    parts = [f"layers.{i}.{part}" for i in (0, 1) for part in parts] + ["final_norm"]
    assert list(model.state_dict()) == [
        f"{part}.{kind}" for part in parts for kind in ("weight", "bias")
    ]


# Refusals


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_heads": 4}, ValueError, r"d_model \(6\) must be .* n_heads \(4\)"),
        ({"d_ff": 0}, ValueError, "d_ff must be at least 1, got 0"),
        ({"d_ff": 5.0}, TypeError, "d_ff must be an integer, got 5.0"),
        ({"dropout": 1.0}, ValueError, "dropout must be .* below 1, got 1.0"),
        ({"activation": "tanh"}, ValueError, "'relu' or 'gelu', got 'tanh'"),
        ({"eps": -1e-5}, ValueError, "eps must be at least 0 and finite, got -1e-05"),
        ({"eps": None}, TypeError, "eps must be a number, got None"),
        ({"d_f": 5}, TypeError, "unexpected keyword argument 'd_f'"),
    ],
)
def test_a_wrong_option_is_named(change, error, message):
    sizes = {"d_model": 6, "n_heads": 2, "d_ff": 5} | change
    with pytest.raises(error, match=message):
        EncoderLayer(**sizes)
    with pytest.raises(error, match=message):
        Encoder(2, **sizes)


@pytest.mark.parametrize(
    ("X", "mask", "error", "message"),
    [
        (np.ones((3, 6)), None, TypeError, "X must be a torch.Tensor, got ndarray"),
        (torch.ones(3, 6).long(), None, TypeError, "X must hold floating-point"),
        (torch.ones(3, 5), None, ValueError, "X has 5 columns and d_model is 6"),
        (torch.ones(6), None, ValueError, r"X must have shape .* got \(6,\)"),
        (torch.ones(3, 6), torch.ones(3, 3).long(), TypeError, "mask must be bool"),
        (torch.ones(3, 6), torch.ones(4, 3).bool(), ValueError, r"= \(2, 3, 3\)"),
    ],
)
@both_norms
def test_a_wrong_input_is_named(norm_first, X, mask, error, message):
    for model in (EncoderLayer(6, 2, 5, norm_first=norm_first), Encoder(2, 6, 2, 5)):
        with pytest.raises(error, match=message):
            model(X, mask)
