"""torch.compile, torch.export and torch.func take our layers as they are."""

from functools import cache, partial

import pytest
import torch
from torch.func import functional_call, grad, jacrev, vmap

from mha.nn import Encoder, EncoderLayer, MultiHeadAttention, from_torch
from tests.tolerances import NUMPY, TORCH

B, H, N, D_MODEL, D_FF = 2, 3, 5, 21, 13
SAME = {"rtol": 0, "atol": NUMPY}
# A gradient is a longer sum, over batch and tokens.
SAME_GRADIENT = {"rtol": 0, "atol": TORCH}

DTYPE = {"dtype": torch.float64}
LAYERS = {
    "attention": partial(MultiHeadAttention, D_MODEL, H, **DTYPE),
    "layer": partial(EncoderLayer, D_MODEL, H, D_FF, activation="gelu", **DTYPE),
    "encoder": partial(
        Encoder, 2, D_MODEL, H, D_FF, norm_first=True, final_norm=True, **DTYPE
    ),
}

every_layer = pytest.mark.parametrize("name", LAYERS)
# The kernel for the CPU has no rule for vmap yet, so it is called sample by sample.
slow_vmap = pytest.mark.filterwarnings("ignore:There is a performance drop")


def layer_of(name):
    torch.manual_seed(0)
    return LAYERS[name]()


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def tokens(batch=B, n=N):
    """Return tokens, a bool mask and a float mask, each with an empty row."""
    mask = draw(batch, 1, n, n, seed=1) > 0
    mask[0, 0, 2] = False
    bias = draw(batch, H, n, n, seed=2)
    bias[-1, :, 1] = -torch.inf
    return draw(batch, n, D_MODEL), mask, bias


def options_of(case, mask, bias):
    return {
        "no mask": {},
        "causal": {"is_causal": True},
        "bool": {"mask": mask},
        "bool and causal": {"mask": mask, "is_causal": True},
        "float": {"mask": bias},
        "weights": {"mask": bias, "is_causal": True, "return_weights": True},
    }[case]


CASES = "no mask", "causal", "bool", "bool and causal", "float", "weights"
every_case = pytest.mark.parametrize("case", CASES)
every_mask = pytest.mark.parametrize("case", CASES[2:])


@pytest.fixture(scope="module")
def compile_whole():
    """Return torch.compile without generated code; it fails where it must give up."""
    dynamo = pytest.importorskip("torch._dynamo")
    if not dynamo.is_dynamo_supported():
        pytest.skip("this PyTorch cannot compile for this version of Python")
    dynamo.reset()
    return partial(torch.compile, fullgraph=True, backend="aot_eager")


@pytest.fixture(scope="module")
def compiled(compile_whole):
    """Return a function from the name of a layer to the layer and its compiled twin.

    It compiles each layer for each kind of call once, however many tests ask.
    """

    @cache
    def both(name):
        layer = layer_of(name)
        return layer, compile_whole(layer, dynamic=False)

    return both


# Laws


@slow_vmap
@every_layer
@pytest.mark.parametrize("is_causal", [False, True])
def test_the_jacobian_has_a_block_for_each_pair_of_tokens(name, is_causal):
    """Token i of a causal layer does not change with the tokens j > i."""
    layer, X = layer_of(name), draw(N, D_MODEL)
    J = jacrev(lambda X: layer(X, is_causal=is_causal))(X)
    assert J.shape == (N, D_MODEL, N, D_MODEL)
    moves = J.abs().amax((1, 3)) > 0
    assert (moves == (torch.ones(N, N).tril() > 0 if is_causal else True)).all()


# Agreement


@every_layer
@every_case
def test_the_compiled_layer_is_the_layer_and_has_its_gradients(compiled, name, case):
    layer, twin = compiled(name)
    X, mask, bias = tokens()
    options = options_of(case, mask, bias)
    answers, gradients = [], []
    for run in (layer, twin):
        layer.zero_grad()
        answer = run(X, **options)
        answers.append(answer)
        Y = answer[0] if "return_weights" in options else answer
        Y.square().sum().backward()
        gradients.append([p.grad for p in layer.parameters()])
    torch.testing.assert_close(*answers, **SAME)
    torch.testing.assert_close(*gradients, **SAME_GRADIENT)


def test_a_compiled_encoder_takes_texts_of_another_length(compile_whole):
    """One layer is enough: what may depend on the length is inside it."""
    encoder = Encoder(1, D_MODEL, H, D_FF, norm_first=True, final_norm=True, **DTYPE)
    compiled = compile_whole(encoder, dynamic=True)
    for batch, n in ((2, 5), (3, 7)):
        X, mask, _ = tokens(batch, n)
        torch.testing.assert_close(compiled(X, mask), encoder(X, mask), **SAME)


@every_layer
@every_case
def test_the_exported_layer_is_the_layer(name, case):
    layer = layer_of(name)
    X, mask, bias = tokens()
    options = options_of(case, mask, bias)
    exported = torch.export.export(layer, (X,), options).module()
    torch.testing.assert_close(exported(X, **options), layer(X, **options), **SAME)


def test_an_exported_encoder_leaves_batch_and_length_open():
    encoder = layer_of("encoder")
    X, mask, _ = tokens()
    batch, n = torch.export.Dim("batch"), torch.export.Dim("n")
    axes = {"X": {0: batch, 1: n}, "mask": {0: batch, 2: n, 3: n}}
    exported = torch.export.export(encoder, (X, mask), dynamic_shapes=axes).module()
    X, mask, _ = tokens(3, 7)
    torch.testing.assert_close(exported(X, mask), encoder(X, mask), **SAME)


@slow_vmap
@every_layer
@every_case
def test_one_sample_at_a_time_gives_what_the_batch_gives(name, case):
    layer = layer_of(name)
    X, mask, bias = tokens()
    options = options_of(case, mask, bias)
    expected, masks = layer(X, **options), [options.pop("mask", None)]
    if masks == [None]:
        found = vmap(lambda X: layer(X, **options))(X)
    else:
        found = vmap(lambda X, mask: layer(X, mask=mask, **options))(X, *masks)
    torch.testing.assert_close(found, expected, **SAME)


@every_layer
@every_case
def test_the_functional_gradient_is_that_of_backward(name, case):
    layer = layer_of(name)
    X, mask, bias = tokens()
    options = options_of(case, mask, bias) | {"return_weights": False}

    def loss(parameters):
        return functional_call(layer, parameters, (X,), options).square().sum()

    parameters = dict(layer.named_parameters())
    layer(X, **options).square().sum().backward()
    expected = {name: p.grad for name, p in parameters.items()}
    found = grad(loss)({name: p.detach() for name, p in parameters.items()})
    torch.testing.assert_close(found, expected, **SAME_GRADIENT)


@slow_vmap
@every_layer
@every_mask
def test_each_sample_has_its_own_gradient(name, case):
    """What a loop over the samples finds, in one call."""
    layer = layer_of(name)
    X, mask, bias = tokens()
    options = options_of(case, mask, bias) | {"return_weights": False}
    mask = options.pop("mask")

    def loss(parameters, X, mask):
        options["mask"] = mask
        return functional_call(layer, parameters, (X,), options).square().sum()

    parameters = {name: p.detach() for name, p in layer.named_parameters()}
    found = vmap(grad(loss), (None, 0, 0))(parameters, X, mask)
    one_by_one = [grad(loss)(parameters, X[b], mask[b]) for b in range(B)]
    for parameter in parameters:
        expected = torch.stack([gradients[parameter] for gradients in one_by_one])
        torch.testing.assert_close(found[parameter], expected, **SAME_GRADIENT)


def test_a_layer_from_torch_compiles_too(compile_whole):
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(D_MODEL, H, batch_first=True, **DTYPE)
    X, mask, _ = tokens()
    layer = from_torch(theirs)
    torch.testing.assert_close(compile_whole(layer)(X, mask=mask), layer(X, mask=mask))


# Refusals


@every_layer
def test_a_bad_mask_is_refused_outside_and_looked_through_inside(compiled, name):
    """What is traced has no numbers to look at: there a NaN stays a NaN."""
    layer, twin = compiled(name)
    X, _, bias = tokens()
    bias[0, 0, 3, 0] = torch.nan
    with pytest.raises(ValueError, match=r"^a float mask must hold finite numbers"):
        layer(X, mask=bias)
    assert twin(X, mask=bias)[0, 3].isnan().all()
