"""torch.compile, export and vmap take our layers as they are."""

import pytest
import torch
from torch.func import functional_call, grad, vmap

from mha.nn import Encoder
from tests.nn.draws import SAME_AS_TORCH, B, assert_same, normal

N, D_MODEL, H, D_FF = 5, 21, 3, 13
DOUBLE = {"dtype": torch.float64}


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return Encoder(1, D_MODEL, H, D_FF, norm_first=True, final_norm=True, **DOUBLE)


def tokens(batch=B, n=N):
    """Return tokens and a mask with an empty row."""
    mask = normal(batch, 1, n, n, seed=1) > 0
    mask[0, 0, 2] = False
    return normal(batch, n, D_MODEL), mask


def test_a_compiled_layer_gives_the_same_values_and_gradients(encoder):
    """Whole, without generated code; it fails where the compiler must give up."""
    dynamo = pytest.importorskip("torch._dynamo")
    if not dynamo.is_dynamo_supported():
        pytest.skip("this PyTorch cannot compile for this version of Python")
    layer = encoder.layers[0]
    compiled = torch.compile(layer, fullgraph=True, backend="eager", dynamic=True)
    for sizes in ((2, 5), (3, 7)):
        X, mask = tokens(*sizes)
        found = []
        for run in (layer, compiled):
            layer.zero_grad()
            Y = run(X, mask, is_causal=True)
            Y.square().sum().backward()
            found.append((Y.detach(), [p.grad for p in layer.parameters()]))
        assert_same(*found, SAME_AS_TORCH)


def test_an_exported_encoder_leaves_batch_and_length_open(encoder):
    batch, n = torch.export.Dim("batch"), torch.export.Dim("n")
    axes = {"X": {0: batch, 1: n}, "mask": {0: batch, 2: n, 3: n}}
    exported = torch.export.export(encoder, tokens(), dynamic_shapes=axes).module()
    X, mask = tokens(3, 7)
    assert_same(exported(X, mask), encoder(X, mask))


# The kernel for the CPU has no rule for vmap yet, so it is called sample by sample.
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_each_sample_has_its_own_gradient(encoder):
    """What a loop over the samples finds, in one call."""

    def loss(parameters, X, mask):
        return functional_call(encoder, parameters, (X, mask)).square().sum()

    X, mask = tokens()
    assert_same(vmap(encoder)(X, mask), encoder(X, mask))
    parameters = {name: p.detach() for name, p in encoder.named_parameters()}
    found = vmap(grad(loss), (None, 0, 0))(parameters, X, mask)
    for b in range(B):
        expected = grad(loss)(parameters, X[b], mask[b])
        assert_same({name: x[b] for name, x in found.items()}, expected, SAME_AS_TORCH)
