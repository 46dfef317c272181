"""Random tensors, masks and layers for the tests of mha.nn, in float64."""

import math
import re

import pytest
import torch

from tests.samples import SIZES
from tests.tolerances import NUMPY, TORCH

B, H, N_Q, N_K, D_K, D_V = SIZES.values()
D_MODEL, D_FF = H * D_K, 17
# A gradient is a longer sum, over batch and tokens.
SAME, SAME_AS_TORCH = {"rtol": 0, "atol": NUMPY}, {"rtol": 0, "atol": TORCH}
both_norms = pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])
KINDS = [
    {"activation": activation, "norm_first": norm_first, "bias": bias}
    for activation, norm_first, bias in (
        ("relu", False, True), ("gelu", True, True), ("gelu", False, False)
    )
]  # fmt: skip
every_kind = pytest.mark.parametrize("kind", KINDS, ids=["post", "pre", "no bias"])


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def random_qkv(*leading, n_q=N_Q, n_k=N_K, d_k=D_K, d_v=D_V, seed=0):
    shapes = ((n_q, d_k), (n_k, d_k), (n_k, d_v))
    return [normal(*leading, *s, seed=3 * seed + i) for i, s in enumerate(shapes)]


def random_mask(*shape, seed=0, kind="bool"):
    """Return a mask that leaves every row at least its first key."""
    mask = normal(*shape, seed=seed) > 0
    mask[..., 0] = True
    return as_float_mask(mask, seed) if kind == "float" else mask


def as_float_mask(mask, seed=0):
    return torch.where(mask, normal(*mask.shape, seed=seed + 1), -torch.inf)


def scramble(module, seed=0):
    """Fill all parameters, gains and biases too, with numbers of a known size."""
    for i, (name, p) in enumerate(module.named_parameters()):
        p.data = normal(*p.shape, seed=100 * seed + i).to(p) / math.sqrt(p.shape[-1])
        if "norm" in name and name.endswith("weight"):
            p.data += 1
    return module


def with_gradients(module, forward, *inputs):
    """Return output, gradients of the inputs, and gradients of parameters by name."""
    inputs = [x.detach().clone().requires_grad_() for x in inputs]
    module.zero_grad()
    Y = forward(*inputs)
    (Y * normal(*Y.shape, seed=9)).sum().backward()
    gradients = {name: p.grad.clone() for name, p in module.named_parameters()}
    return Y.detach(), [x.grad for x in inputs], gradients


def in_our_names(theirs):
    """Return a dict of PyTorch's parameters, or their gradients, by our names."""
    ours = {}
    for name, x in theirs.items():
        name = name.replace("self_attn.", "attention.").replace("out_proj", "W_O")
        name = name.replace("linear", "W_").replace("norm.", "final_norm.")
        name = re.sub(r"norm(\d)", r"norm_\1", name)
        if "in_proj_" not in name:
            ours[name] = x
            continue
        for letter, piece in zip("QKV", x.chunk(3), strict=True):
            ours[name.replace("in_proj_", f"W_{letter}.")] = piece
    return ours


def assert_same(got, expected, tolerance=SAME):
    torch.testing.assert_close(got, expected, **tolerance)
