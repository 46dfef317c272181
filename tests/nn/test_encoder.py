"""mha.nn: the encoder, equal to the NumPy steps and to PyTorch's own."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import mha
from mha.nn import Encoder, EncoderLayer, MultiHeadAttention, from_torch, to_torch
from tests import reference
from tests.samples import SIZES
from tests.tolerances import NUMPY, TORCH

B, H, N, D_K = (SIZES[name] for name in ("b", "n_heads", "n_q", "d_k"))
D_MODEL, D_FF, N_LAYERS = H * D_K, 17, 2
SAME = {"rtol": 0, "atol": NUMPY}
SAME_AS_TORCH = {"rtol": 0, "atol": TORCH}
LEADING = [(), (B,), (B, 3)]
KINDS = [
    {"activation": activation, "norm_first": norm_first, "bias": bias}
    for activation, norm_first, bias in itertools.product(
        ("relu", "gelu"), (False, True), (True, False)
    )
]


def label(kind):
    norm = "pre" if kind["norm_first"] else "post"
    return f"{kind['activation']} {norm} {'bias' if kind['bias'] else 'no bias'}"


every_kind = pytest.mark.parametrize("kind", KINDS, ids=label)
both_norms = pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])
every_leading = pytest.mark.parametrize("leading", LEADING, ids=str)


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def scramble(module, seed=0):
    """Fill all parameters, gains and biases too, with numbers of a known size."""
    for i, (name, p) in enumerate(module.named_parameters()):
        p.data = normal(*p.shape, seed=100 * seed + i).to(p) / math.sqrt(p.shape[-1])
        if "norm" in name and name.endswith("weight"):
            p.data += 1
    return module


def random_layer(seed=0, **options):
    layer = EncoderLayer(D_MODEL, H, D_FF, dtype=torch.float64, **options)
    return scramble(layer, seed)


def random_encoder(n_layers=N_LAYERS, seed=0, **options):
    model = Encoder(n_layers, D_MODEL, H, D_FF, dtype=torch.float64, **options)
    return scramble(model, seed)


def random_mask(*shape, seed=0, kind="bool"):
    """Return a mask that leaves every row at least its first key."""
    mask = normal(*shape, seed=seed) > 0
    mask[..., 0] = True
    if kind == "bool":
        return mask
    return torch.where(mask, normal(*shape, seed=seed + 1), -torch.inf)


def with_gradients(module, forward, X):
    """Return output, gradient of the input, and gradients of parameters by name."""
    X = X.detach().clone().requires_grad_()
    module.zero_grad()
    Y = forward(X)
    (Y * normal(*Y.shape, seed=9)).sum().backward()
    gradients = {name: p.grad.clone() for name, p in module.named_parameters()}
    return Y.detach(), X.grad, gradients


def in_our_names(theirs):
    """Return a dict of PyTorch's parameters, or their gradients, by our names."""
    parts = {"linear": "W_", "norm": "norm_"}
    ours = {}
    for name, x in theirs.items():
        *path, part, kind = name.split(".")
        if part == "self_attn":
            kind = kind.removeprefix("in_proj_")
            pieces = zip("QKV", x.chunk(3), strict=True)
            new = {f"attention.W_{letter}.{kind}": piece for letter, piece in pieces}
        elif part == "out_proj":
            new = {f"attention.W_O.{kind}": x}
            path = path[:-1]
        elif part == "norm":
            new = {f"final_norm.{kind}": x}
        else:
            new = {f"{parts[part[:-1]]}{part[-1]}.{kind}": x}
        prefix = "".join(f"{step}." for step in path)
        ours |= {prefix + name: piece for name, piece in new.items()}
    return ours


def assert_same(got, expected, tolerance=SAME):
    torch.testing.assert_close(got, expected, **tolerance)


# --- by hand ---------------------------------------------------------------------


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


def test_a_layer_has_so_many_parameters():
    """d_model 6, d_ff 10: 4·(36 + 6) + (60 + 10) + (60 + 6) + 2·12 = 328."""
    assert sum(p.numel() for p in EncoderLayer(6, 2, 10).parameters()) == 328
    model = Encoder(3, 6, 2, 10, final_norm=True)
    assert sum(p.numel() for p in model.parameters()) == 3 * 328 + 12


def test_a_layer_prints_what_it_does():
    line = "activation=gelu, norm_first=True, dropout=0.25"
    options = {"activation": "gelu", "norm_first": True, "dropout": 0.25}
    assert line in repr(EncoderLayer(6, 2, 10, **options))


# --- laws ------------------------------------------------------------------------


@every_kind
@every_leading
def test_numpy_weights_make_the_numpy_steps_equal_the_modules(leading, kind):
    model = random_encoder(**kind, eps=1e-3, final_norm=True)
    X, mask = normal(*leading, N, D_MODEL), random_mask(*leading, H, N, N)
    options = {"activation": kind["activation"], "norm_first": kind["norm_first"]}
    options |= {"n_heads": H, "mask": mask.numpy(), "eps": 1e-3, "is_causal": True}
    Y, A = model(X, mask, is_causal=True, return_weights=True)
    Y_2, A_2 = mha.encoder(
        X.numpy(), **model.numpy_weights(), **options, return_weights=True
    )
    assert_same(Y.detach(), torch.from_numpy(Y_2))
    for A_l, expected in zip(A, A_2, strict=True):
        assert_same(A_l.detach(), torch.from_numpy(expected))
    layer = model.layers[1]
    Y = layer(X, mask, is_causal=True).detach()
    Y_2 = mha.encoder_layer(X.numpy(), layer.numpy_weights(), **options)
    assert_same(Y, torch.from_numpy(Y_2))


def test_numpy_weights_are_copies_that_numpy_can_hold():
    model = random_encoder(final_norm=True)
    weights = model.numpy_weights()
    before = copy.deepcopy(weights)
    for p in model.parameters():
        p.data += 1
    np.testing.assert_equal(weights, before)
    half = Encoder(1, 6, 2, 5, final_norm=True, dtype=torch.bfloat16).numpy_weights()
    arrays = [*half["layers"][0].values(), *half["final_norm"]]
    assert {W.dtype for W in arrays} == {np.dtype("float32")}


def test_without_a_final_norm_there_is_none():
    assert random_encoder().numpy_weights()["final_norm"] is None
    gain, bias = random_encoder(bias=False, final_norm=True).numpy_weights()[
        "final_norm"
    ]
    assert gain.shape == (D_MODEL,) and bias is None


@both_norms
@every_leading
def test_asking_for_the_weights_changes_no_answer(leading, norm_first):
    model, X = random_encoder(norm_first=norm_first), normal(*leading, N, D_MODEL)
    mask = random_mask(*leading, H, N, N)
    Y, A = model(X, mask, return_weights=True)
    assert_same(model(X, mask), Y)
    assert isinstance(A, list) and len(A) == N_LAYERS
    for A_l in A:
        assert A_l.shape == (*leading, H, N, N)
        assert (A_l[~mask] == 0).all() and (A_l[mask] > 0).all()
        assert_same(A_l.sum(-1), torch.ones(*leading, H, N).double())


@both_norms
def test_permuting_the_tokens_permutes_the_output(norm_first):
    model, X = random_encoder(norm_first=norm_first), normal(B, N, D_MODEL)
    order = [3, 0, 4, 1, 2]
    assert_same(model(X[:, order]), model(X)[:, order])


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@both_norms
def test_masked_padding_changes_nothing(norm_first, training):
    """Neither its length nor what stands in it, for outputs and for gradients."""
    model = random_encoder(norm_first=norm_first).train(training)
    X, length = normal(1, N, D_MODEL), 3
    mask = mha.padding_mask([length], N)

    def padded(X):
        return model(X, mask)[:, :length]

    Y, grad, of_parameters = with_gradients(model, padded, X)
    Y_2, grad_2, of_parameters_2 = with_gradients(model, model, X[:, :length])
    assert_same(Y, Y_2)
    assert_same(grad[:, :length], grad_2, SAME_AS_TORCH)
    assert (grad[:, length:] == 0).all()
    assert_same(of_parameters, of_parameters_2, SAME_AS_TORCH)
    X[:, length:] = 100
    assert torch.equal(padded(X).detach(), Y)


@both_norms
def test_changing_the_future_leaves_the_past_alone(norm_first):
    model, X = random_encoder(norm_first=norm_first), normal(B, N, D_MODEL)
    changed = X.clone()
    changed[:, 3:] += 1
    before, after = model(X, is_causal=True), model(changed, is_causal=True)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.isclose(before[:, 3:], after[:, 3:]).any()


@pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])
@pytest.mark.parametrize("mask_kind", ["bool", "float"])
@pytest.mark.parametrize("return_weights", [False, True])
@every_kind
def test_a_token_that_may_look_at_nothing_stays_finite(
    kind, return_weights, mask_kind, mode
):
    """Also its gradients, with dropout, and where PyTorch's own layer gives NaN."""
    model = random_encoder(**kind, dropout=0.3, final_norm=True).train(mode == "train")
    mask = torch.from_numpy(mha.padding_mask([0, 3], N))
    mask = mask if mask_kind == "bool" else torch.where(mask, 0.0, -torch.inf)
    X = normal(B, N, D_MODEL).requires_grad_()
    with torch.set_grad_enabled(mode != "no_grad"):
        Y = model(X, mask, return_weights=return_weights)
    Y = Y[0] if return_weights else Y
    assert Y.isfinite().all()
    if mode == "no_grad":
        return
    with torch.autograd.set_detect_anomaly(True):
        (Y * normal(*Y.shape, seed=9)).sum().backward()
    assert X.grad.isfinite().all() and X.grad.any()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@both_norms
def test_dropout_works_in_train_mode_only(norm_first):
    model, X = random_encoder(norm_first=norm_first, dropout=0.5), normal(N, D_MODEL)
    torch.manual_seed(0)
    assert not torch.isclose(model(X), model(X)).all(-1).any()
    model.eval()
    assert torch.equal(model(X), model(X))
    assert_same(model(X), random_encoder(norm_first=norm_first)(X))


def test_what_attention_and_feed_forward_bring_is_dropped_before_the_sum():
    """With matrices of 0 and biases of 1, pre-norm adds 1/(1-p) or 0 twice.

    So each number grows by 0, 2 or 4 for p = 1/2: never by 2 in all places, and X
    itself is never dropped.
    """
    layer = EncoderLayer(100, 1, 5, dropout=0.5, norm_first=True)
    for W in (layer.attention.W_O, layer.W_2):
        nn.init.zeros_(W.weight)
        nn.init.ones_(W.bias)
    torch.manual_seed(0)
    grown = layer(torch.full((30, 100), 7.0)) - 7
    shares = [(grown == k).double().mean().item() for k in (0, 2, 4)]
    np.testing.assert_allclose(shares, [1 / 4, 1 / 2, 1 / 4], atol=0.05)


def test_the_hidden_layer_is_dropped_too():
    """W_2 sums 1000 hidden ones, each 2 or 0: even, and not all 1000."""
    layer = EncoderLayer(1, 1, 1000, dropout=0.5, norm_first=True).double()
    nn.init.zeros_(layer.attention.W_O.weight)
    nn.init.zeros_(layer.attention.W_O.bias)
    nn.init.zeros_(layer.W_1.weight)
    nn.init.ones_(layer.W_1.bias)
    nn.init.ones_(layer.W_2.weight)
    nn.init.zeros_(layer.W_2.bias)
    torch.manual_seed(0)
    sums = layer(torch.zeros(50, 1).double()) / 2  # half of them dropped as a whole
    kept = sums[sums != 0]
    assert (kept % 2 == 0).all() and 900 < kept.mean() < 1100 and kept.std() > 10


HALVES = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
@every_kind
def test_dtype_is_kept(kind, dtype):
    model = Encoder(2, 6, 2, 5, **kind, final_norm=True, dtype=dtype)
    Y, A = model(normal(N, 6).to(dtype), return_weights=True)
    assert {Y.dtype, *(A_l.dtype for A_l in A)} == {dtype}


def test_inputs_stay_untouched():
    X, mask = normal(B, N, D_MODEL), random_mask(B, H, N, N, kind="float")
    before = X.clone(), mask.clone()
    random_encoder()(X, mask, is_causal=True)
    assert torch.equal(X, before[0]) and torch.equal(mask, before[1])


def test_layers_start_with_different_weights():
    first, second = Encoder(2, 6, 2, 5).layers
    for W, W_2 in (
        (first.W_1, second.W_1),
        (first.attention.W_Q, second.attention.W_Q),
    ):
        assert not torch.isclose(W.weight, W_2.weight).any()


def test_a_model_comes_back_from_a_file_under_its_public_name():
    model, X = random_encoder(final_norm=True), normal(N, D_MODEL)
    assert torch.equal(pickle.loads(pickle.dumps(model))(X), model(X))
    other = random_encoder(final_norm=True, seed=1)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(X), model(X))
    for kind in (Encoder, EncoderLayer, MultiHeadAttention):
        assert getattr(mha.nn, kind.__name__) is kind


@both_norms
def test_gradients_are_the_slopes_of_the_function(norm_first):
    model = Encoder(2, 2, 1, 3, norm_first=norm_first, activation="gelu").double()
    X, mask = normal(3, 2).requires_grad_(), random_mask(3, 3, kind="float")
    assert torch.autograd.gradcheck(lambda X: scramble(model)(X, mask), X)


# --- agreement: PyTorch ----------------------------------------------------------

MASKS = ["none", "padding", "per head", "float", "causal"]


def peer_mask(kind, leading):
    if kind == "none":
        return None
    if kind == "padding":
        return random_mask(*leading, 1, 1, N)
    if kind == "causal":
        return torch.from_numpy(mha.causal_mask(N))
    return random_mask(*leading, H, N, N, kind="bool" if kind == "per head" else kind)


@pytest.mark.parametrize("mask_kind", MASKS)
@every_kind
def test_the_encoder_equals_torchs_in_values_and_gradients(kind, mask_kind):
    """The reference builds PyTorch's encoder from `numpy_weights`, without to_torch."""
    model = random_encoder(**kind, eps=1e-3, final_norm=True)
    options = {"activation": kind["activation"], "norm_first": kind["norm_first"]}
    theirs = reference.encoder_with(
        **model.numpy_weights(), n_heads=H, eps=1e-3, **options
    )
    X, mask = normal(B, N, D_MODEL), peer_mask(mask_kind, (B,))

    def ask(X):
        return reference.encode(theirs, X, mask)

    Y, grad, of_parameters = with_gradients(model, lambda X: model(X, mask), X)
    Y_2, grad_2, of_theirs = with_gradients(theirs, ask, X)
    assert_same(Y, Y_2, SAME_AS_TORCH)
    assert_same(grad, grad_2, SAME_AS_TORCH)
    assert_same(of_parameters, in_our_names(of_theirs), SAME_AS_TORCH)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("batch_first", [True, False])
@every_kind
def test_from_torch_gives_a_layer_with_the_same_answer(kind, batch_first, training):
    theirs = nn.TransformerEncoderLayer(
        D_MODEL, H, D_FF, 0.0, batch_first=batch_first, layer_norm_eps=1e-3,
        dtype=torch.float64, **kind,
    )  # fmt: skip
    layer = from_torch(scramble(theirs).train(training))
    assert isinstance(layer, EncoderLayer) and layer.training == training
    X = normal(B, N, D_MODEL)
    axis = 0 if batch_first else 1

    def ask(X):
        return theirs(X.transpose(0, axis)).transpose(0, axis)

    Y, grad, of_parameters = with_gradients(layer, layer, X)
    Y_2, grad_2, of_theirs = with_gradients(theirs, ask, X)
    assert_same(Y, Y_2, SAME_AS_TORCH)
    assert_same(grad, grad_2, SAME_AS_TORCH)
    assert_same(of_parameters, in_our_names(of_theirs), SAME_AS_TORCH)
    with torch.no_grad():  # in eval mode this is PyTorch's fast path
        assert_same(layer(X), ask(X), SAME_AS_TORCH)


def their_encoder(norm=None, **options):
    options = {"dropout": 0.0, "batch_first": True, "dtype": torch.float64} | options
    layer = nn.TransformerEncoderLayer(D_MODEL, H, D_FF, **options)
    return scramble(nn.TransformerEncoder(layer, 3, norm, enable_nested_tensor=False))


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("final_norm", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@every_kind
def test_from_torch_gives_an_encoder_with_the_same_answer(
    kind, batch_first, final_norm, training
):
    """Under their masks, which hide where ours open."""
    norm = nn.LayerNorm(D_MODEL, dtype=torch.float64) if final_norm else None
    theirs = their_encoder(norm, batch_first=batch_first, **kind).train(training)
    model = from_torch(theirs)
    assert isinstance(model, Encoder) and model.training == training
    X, axis = normal(B, N, D_MODEL), 0 if batch_first else 1
    keep = torch.from_numpy(mha.padding_mask([N, 3], N))
    causal = torch.ones(N, N, dtype=torch.bool).tril()
    expected = theirs(
        X.transpose(0, axis),
        mask=~causal,
        src_key_padding_mask=~keep[:, 0, 0],
        is_causal=True,
    ).transpose(0, axis)
    assert_same(model(X, keep, is_causal=True), expected, SAME_AS_TORCH)


@both_norms
def test_the_same_seed_drops_the_same_numbers(norm_first):
    """Dropout stands in the same places and is drawn in the same order.

    One sequence only: with more of them PyTorch's attention lays its output out token
    by token, and numbers are drawn in the order in which they lie in memory.
    """
    theirs = their_encoder(norm_first=norm_first, dropout=0.3)
    model, X = from_torch(theirs), normal(1, N, D_MODEL)
    torch.manual_seed(1)
    Y = model(X)
    torch.manual_seed(1)
    assert_same(Y, theirs(X), SAME_AS_TORCH)
    assert not torch.isclose(Y, model.eval()(X)).all(-1).any()


def assert_nothing_shared(*modules):
    places = [p.data_ptr() for module in modules for p in module.parameters()]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("batch_first", [True, False])
@every_kind
def test_there_and_back_again_changes_nothing(kind, batch_first, training, dtype):
    options = {"dropout": 0.25, "eps": 1e-3, "dtype": dtype, **kind}
    layer = scramble(EncoderLayer(6, 2, 5, **options))
    model = scramble(Encoder(3, 6, 2, 5, final_norm=True, **options))
    for ours in (layer.train(training), model.train(training)):
        theirs = to_torch(ours, batch_first)
        back = from_torch(theirs)
        assert type(back) is type(ours)
        assert repr(back) == repr(ours)
        assert back.training == theirs.training == training
        assert back.state_dict().keys() == ours.state_dict().keys()
        for name, x in ours.state_dict().items():
            assert torch.equal(x, back.state_dict()[name])
            assert x.dtype == dtype
        assert_nothing_shared(ours, theirs, back)


@pytest.mark.parametrize("batch_first", [True, False])
@every_kind
def test_to_torch_gives_what_torch_would_have_built(kind, batch_first):
    options = {"dropout": 0.25, "batch_first": batch_first, "dtype": torch.float64}
    expected = nn.TransformerEncoderLayer(
        D_MODEL, H, D_FF, layer_norm_eps=1e-3, **options, **kind
    )
    layer = random_layer(dropout=0.25, eps=1e-3, **kind)
    module = to_torch(layer, batch_first)
    assert repr(module) == repr(expected)
    assert module.self_attn.batch_first == batch_first
    assert module.norm_first == expected.norm_first
    assert module.activation is expected.activation
    assert_same(
        in_our_names(dict(module.named_parameters())), dict(layer.named_parameters())
    )


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_padding_is_kept_in_the_output_of_to_torch(training, batch_first):
    """PyTorch's nested tensors cut it off, and the output is shorter than the input."""
    model = Encoder(2, 6, 2, 5, dtype=torch.float64).train(training)
    theirs, X = to_torch(model, batch_first), normal(B, N, 6)
    keep = torch.from_numpy(mha.padding_mask([3, 2], N))
    axis = 0 if batch_first else 1
    with torch.no_grad():
        x = X.transpose(0, axis)
        Y = theirs(x, src_key_padding_mask=~keep[:, 0, 0]).transpose(0, axis)
        expected = model(X, keep)
    assert_same(Y, expected, SAME_AS_TORCH)


@pytest.mark.parametrize("activation", [F.relu, nn.ReLU(), F.gelu, nn.GELU()])
def test_an_activation_may_be_a_function_or_a_module(activation):
    theirs = nn.TransformerEncoderLayer(6, 2, 5, 0.0, activation, batch_first=True)
    X = torch.randn(B, N, 6, generator=torch.Generator().manual_seed(0))
    assert_same(from_torch(theirs)(X), theirs(X), {"rtol": 0, "atol": 1e-5})


def test_a_final_norm_may_have_a_bias_where_the_layers_have_none():
    theirs = their_encoder(nn.LayerNorm(D_MODEL, dtype=torch.float64), bias=False)
    model, X = from_torch(theirs), normal(B, N, D_MODEL)
    assert_same(model(X), theirs(X), SAME_AS_TORCH)
    Y = mha.encoder(X.numpy(), n_heads=H, **model.numpy_weights())
    assert_same(torch.from_numpy(Y), theirs(X).detach(), SAME_AS_TORCH)


def test_conversion_stays_on_the_device():
    theirs = nn.TransformerEncoderLayer(6, 2, 5, device="meta")
    model = from_torch(nn.TransformerEncoder(theirs, 2, enable_nested_tensor=False))
    assert {p.device.type for p in model.parameters()} == {"meta"}
    assert {p.device.type for p in to_torch(model).parameters()} == {"meta"}


# --- refusals --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_heads": 4}, ValueError, r"d_model \(6\) must be .* n_heads \(4\)"),
        ({"d_model": 0}, ValueError, "d_model must be at least 1, got 0"),
        ({"d_ff": 0}, ValueError, "d_ff must be at least 1, got 0"),
        ({"d_ff": 5.0}, TypeError, "d_ff must be an integer, got 5.0"),
        ({"dropout": 1.0}, ValueError, "dropout must be .* below 1, got 1.0"),
        ({"activation": "tanh"}, ValueError, "'relu' or 'gelu', got 'tanh'"),
        ({"activation": F.relu}, ValueError, "'relu' or 'gelu', got <function relu"),
        ({"eps": -1e-5}, ValueError, "eps must be at least 0 and finite, got -1e-05"),
        ({"eps": None}, TypeError, "eps must be a number, got None"),
    ],
)
def test_a_wrong_number_is_named(change, error, message):
    sizes = {"d_model": 6, "n_heads": 2, "d_ff": 5} | change
    with pytest.raises(error, match=message):
        EncoderLayer(**sizes)
    with pytest.raises(error, match=message):
        Encoder(2, **sizes)


@pytest.mark.parametrize(
    ("n", "error", "message"),
    [
        (0, ValueError, "n_layers must be at least 1, got 0"),
        (2.0, TypeError, "n_layers must be an integer, got 2.0"),
    ],
)
def test_an_encoder_has_layers(n, error, message):
    with pytest.raises(error, match=message):
        Encoder(n, 6, 2, 5)


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


def changed_layer(**parts):
    layer = nn.TransformerEncoderLayer(6, 2, 5, 0.25)
    for name, part in parts.items():
        setattr(layer, name, part)
    return layer


@pytest.mark.parametrize(
    ("layer", "error", "message"),
    [
        (
            changed_layer(activation=torch.tanh),
            ValueError,
            "relu or exact gelu, got .*",
        ),
        (
            changed_layer(activation=nn.GELU(approximate="tanh")),
            ValueError,
            r"must be relu or exact gelu, got GELU\(approximate='tanh'\)",
        ),
        (
            changed_layer(dropout1=nn.Dropout(0.5)),
            ValueError,
            r"dropout must be the same in all parts, got \[0.25, 0.25, 0.5, 0.25\]",
        ),
        (
            changed_layer(norm2=nn.LayerNorm(6, eps=0.5)),
            ValueError,
            r"eps must be the same in all parts, got \[1e-05, 0.5\]",
        ),
        (
            changed_layer(norm1=nn.Identity()),
            TypeError,
            "a norm must be a torch.nn.LayerNorm, got Identity",
        ),
        (
            changed_layer(self_attn=nn.MultiheadAttention(6, 2, add_zero_attn=True)),
            ValueError,
            "add_zero_attn must be False",
        ),
    ],
)
def test_from_torch_says_what_our_layer_has_not(layer, error, message):
    with pytest.raises(error, match=message):
        from_torch(layer)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"norm": nn.LayerNorm(6, eps=0.5)}, ValueError, r"eps must .* 1e-05, 0.5\]"),
        ({"norm": nn.Identity()}, TypeError, "LayerNorm, got Identity"),
        ({"layers": nn.ModuleList()}, ValueError, "num_layers must be at least 1"),
        (
            {
                "layers": nn.ModuleList(
                    [changed_layer(), changed_layer(norm_first=True)]
                )
            },
            ValueError,
            r"norm_first must be the same in all parts, got \[False, True\]",
        ),
    ],
)
def test_from_torch_says_what_our_encoder_has_not(change, error, message):
    module = nn.TransformerEncoder(changed_layer(), 2, enable_nested_tensor=False)
    for name, part in change.items():
        setattr(module, name, part)
    with pytest.raises(error, match=message):
        from_torch(module)
