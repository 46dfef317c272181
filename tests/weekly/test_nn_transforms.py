"""torch.compile, export, vmap and functional gradients for every kind of call."""

from functools import partial

import pytest
import torch

from mha.nn import Encoder, EncoderLayer, MultiHeadAttention
from tests.nn.draws import SAME_AS_TORCH, B, H, assert_same, normal

N, D_MODEL, D_FF = 5, 21, 13
DTYPE = {"dtype": torch.float64}
LAYERS = {
    "attention": partial(MultiHeadAttention, D_MODEL, H, **DTYPE),
    "layer": partial(EncoderLayer, D_MODEL, H, D_FF, activation="gelu", **DTYPE),
    "encoder": partial(
        Encoder, 2, D_MODEL, H, D_FF, norm_first=True, final_norm=True, **DTYPE
    ),
}
CASES = "no mask", "causal", "bool", "bool and causal", "float", "weights"
every_case = pytest.mark.parametrize("case", CASES)
every_layer = pytest.mark.parametrize("name", LAYERS)


# The kernel for the CPU has no rule for vmap yet, so it is called sample by sample.
def layer_of(name):
    torch.manual_seed(0)
    return LAYERS[name]()


def question(case):
    """Return tokens and options; each mask has an empty row."""
    mask = normal(B, 1, N, N, seed=1) > 0
    mask[0, 0, 2] = False
    bias = normal(B, H, N, N, seed=2)
    bias[-1, :, 1] = -torch.inf
    options = {
        "no mask": {},
        "causal": {"is_causal": True},
        "bool": {"mask": mask},
        "bool and causal": {"mask": mask, "is_causal": True},
        "float": {"mask": bias},
        "weights": {"mask": bias, "is_causal": True, "return_weights": True},
    }
    return normal(B, N, D_MODEL), options[case]


@pytest.fixture(scope="module")
def compile_whole():
    """Return torch.compile without generated code; it fails where it must give up."""
    dynamo = pytest.importorskip("torch._dynamo")
    if not dynamo.is_dynamo_supported():
        pytest.skip("this PyTorch cannot compile for this version of Python")
    dynamo.reset()
    return partial(torch.compile, fullgraph=True, backend="aot_eager")


@every_case
@every_layer
def test_the_compiled_layer_is_the_layer_and_has_its_gradients(
    compile_whole, name, case
):
    layer, (X, options) = layer_of(name), question(case)
    found = []
    for run in (layer, compile_whole(layer, dynamic=False)):
        layer.zero_grad()
        answer = run(X, **options)
        Y = answer[0] if "return_weights" in options else answer
        Y.square().sum().backward()
        found.append((answer, [p.grad for p in layer.parameters()]))
    assert_same(*found, SAME_AS_TORCH)


@every_layer
def test_a_bad_mask_is_refused_outside_and_looked_through_inside(compile_whole, name):
    """What is traced has no numbers to look at: there a NaN stays a NaN."""
    layer, (X, options) = layer_of(name), question("float")
    options["mask"][0, 0, 3, 0] = torch.nan
    with pytest.raises(ValueError, match=r"^a float mask must hold finite numbers"):
        layer(X, **options)
    assert compile_whole(layer)(X, **options)[0, 3].isnan().all()


@every_case
@every_layer
def test_the_exported_layer_is_the_layer(name, case):
    layer, (X, options) = layer_of(name), question(case)
    exported = torch.export.export(layer, (X,), options).module()
    assert_same(exported(X, **options), layer(X, **options))


def test_an_exported_encoder_leaves_batch_and_length_open():
    encoder = layer_of("encoder")
    X, options = question("bool")
    batch, n = torch.export.Dim("batch"), torch.export.Dim("n")
    axes = {"X": {0: batch, 1: n}, "mask": {0: batch, 2: n, 3: n}}
    exported = torch.export.export(
        encoder, (X, options["mask"]), dynamic_shapes=axes
    ).module()
    X, mask = normal(3, 7, D_MODEL), normal(3, 1, 7, 7, seed=1) > 0
    assert_same(exported(X, mask), encoder(X, mask))
