"""Layers with one slip each, by a user who knew the laws from the README only."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from mha import laws
from tests.laws.reports import broken


def cut(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3)


def merged(x):
    return x.transpose(-2, -3).flatten(-2)


def attend(q, k, v, mask=None):
    s = q @ k.mT / math.sqrt(q.shape[-1])
    s = s if mask is None else s.masked_fill(~mask, -math.inf)
    return s.softmax(-1).nan_to_num(0.0) @ v


def three(X, W_Q, W_K, W_V, n_heads):
    return (cut(X @ W, n_heads) for W in (W_Q, W_K, W_V))


def stale_denominator(X, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    """Blocks of 128 keys; the denominator is not rescaled when the maximum grows."""
    q, k, v = three(X, W_Q, W_K, W_V, n_heads)
    top, den, num = torch.full(q.shape[:-1], -1e30, dtype=X.dtype), 0.0, 0.0
    for a in range(0, k.shape[-2], 128):
        s = q @ k[..., a : a + 128, :].mT / math.sqrt(q.shape[-1])
        if mask is not None:
            s = s.masked_fill(~mask[..., a : a + 128], -math.inf)
        new = torch.maximum(top, s.amax(-1))
        p = torch.exp(s - new[..., None])
        num = num * torch.exp(top - new)[..., None] + p @ v[..., a : a + 128, :]
        den, top = den + p.sum(-1), new
    return merged(num / torch.where(den == 0, 1.0, den)[..., None]) @ W_O


class FirstHeadsMask(nn.Module):
    """A mask (b, h, q, k): that of the first head is used for all."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))
        self.n_heads = n_heads

    def forward(self, x, mask=None):
        mask = mask[:, :1] if mask is not None and mask.ndim == 4 else mask
        four = (cut(W(x), self.n_heads) for W in (self.W_Q, self.W_K, self.W_V))
        return self.W_O(merged(attend(*four, mask)))


def masks_of_the_first_two(X, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    """Batches are cut into pairs, and each pair gets the masks of the first."""
    parts = X.split(2) if X.ndim == 3 else [X]
    several = mask is not None and mask.ndim > 2 and len(mask) > 2
    return torch.cat([
        merged(attend(*three(x, W_Q, W_K, W_V, n_heads),
                      mask[: len(x)] if several else mask)) @ W_O
        for x in parts
    ])  # fmt: skip


def lost_in_half(X, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    """(1 - mask) * -1e9 is 0 * -inf in float16, which is NaN."""
    q, k, v = three(X, W_Q, W_K, W_V, n_heads)
    s = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is None:
        return merged(s.softmax(-1) @ v) @ W_O
    s = s + (1 - mask.to(s.dtype)) * torch.tensor(-1e9, dtype=s.dtype)
    return merged(s.softmax(-1) * mask.any(-1, keepdim=True) @ v) @ W_O


# Laws


@pytest.mark.parametrize(
    ("layer", "law"),
    [
        (stale_denominator, "every_length_alike"),
        (FirstHeadsMask(8, 2), "batch_masks_reach_their_own"),
        (masks_of_the_first_two, "batch_masks_reach_their_own"),
        (lost_in_half, "every_dtype_gives_the_numbers"),
    ],
)
def test_the_slip_breaks_one_law(layer, law):
    assert broken(laws.check(layer)) == [law]


def test_nan_is_never_expected():
    report = laws.check(lost_in_half, dtype="float16")
    assert len(report.broken) > 3
    assert not any(np.isnan(f.expected).any() for f in report.broken
                   if not isinstance(f.expected, str))  # fmt: skip
