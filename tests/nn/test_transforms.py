"""vmap takes our layers as they are; tests/weekly compiles and exports them."""

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
