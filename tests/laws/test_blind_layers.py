"""Layers with one slip each, by a user who knew the laws from the README only."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mha import laws, zoo
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


def deaf_keys(X, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    """Grouped-query attention whose keys are detached, so that W_K never learns."""
    d = W_Q.shape[1] // n_heads
    q, k, v = (cut(X @ W, W.shape[1] // d) for W in (W_Q, W_K, W_V))
    each = n_heads // k.shape[-3]
    k, v = (x.repeat_interleave(each, -3) for x in (k.detach(), v))
    return merged(attend(q, k, v, mask)) @ W_O


def encoder_layer(X, weights, n_heads, mask=None, detach=False):
    four = [weights[f"W_{x}"] for x in "QKV"]
    q, k, v = three(X, *four, n_heads)
    k = k.detach() if detach else k
    X = X + merged(attend(q, k, v, mask)) @ weights["W_O"]
    X = F.layer_norm(X, X.shape[-1:], weights["gain_1"])
    X = X + torch.relu(X @ weights["W_1"]) @ weights["W_2"]
    return F.layer_norm(X, X.shape[-1:], weights["gain_2"])


def deaf_encoder(X, weights, n_heads, mask=None):
    return encoder_layer(X, weights, n_heads, mask, detach=True)


def as_encoder(run):
    return laws.Adapter(run, kind="encoder_layer")


# Laws


@pytest.mark.parametrize(
    ("layer", "slugs"),
    [
        (stale_denominator, "every_length_alike"),
        (FirstHeadsMask(8, 2), "batch_masks_reach_their_own"),
        (
            masks_of_the_first_two,
            "padding_changes_nothing batch_masks_reach_their_own",
        ),
        (lost_in_half, "every_dtype_gives_the_numbers"),
    ],
)
def test_the_slip_breaks_the_law_made_for_it_and_no_other(layer, slugs):
    assert broken(laws.check(layer)) == slugs.split()


@pytest.mark.parametrize(
    ("layer", "said"),
    [(deaf_keys, {"n_kv_heads": 2}), (as_encoder(deaf_encoder), {})],
)
def test_keys_that_never_learn_are_found_in_groups_and_in_encoders(layer, said):
    report = laws.check(layer, **said)
    assert broken(report) == ["gradients_are_slopes"]
    assert report.broken[0].why == "gradient of X"


def test_an_encoder_of_torch_is_asked_about_its_gradients():
    assert laws.gradients_are_slopes.check(as_encoder(encoder_layer)).holds
    theirs = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    assert laws.gradients_are_slopes.check(theirs).holds


def test_nan_is_never_expected():
    report = laws.check(lost_in_half, dtype="float16")
    assert len(report.broken) > 3
    assert not any(np.isnan(f.expected).any() for f in report.broken
                   if not isinstance(f.expected, str))  # fmt: skip


def test_an_example_says_how_the_layer_was_called():
    def over_heads(X, W_Q, W_K, W_V, W_O, n_heads):
        q, k, v = three(X, W_Q, W_K, W_V, n_heads)
        return merged((q @ k.mT / k.shape[-1] ** 0.5).softmax(-3) @ v) @ W_O

    finding = laws.rows_sum_to_one.check(over_heads)
    assert "called with 3 heads on tokens [Q, K, V] of width 6" in finding.setup
    assert "W_Q, W_K, W_V read one each" in finding.setup

    def tiled(X, W_Q, W_K, W_V, W_O, n_heads):
        d = W_Q.shape[1] // n_heads
        q, k, v = (cut(X @ W, W.shape[1] // d) for W in (W_Q, W_K, W_V))
        turns = [1] * (k.ndim - 3) + [n_heads // k.shape[-3], 1, 1]
        return merged(attend(q, k.repeat(turns), v.repeat(turns))) @ W_O

    report = laws.check(tiled, only=["equals_reference"], n_kv_heads=2)
    setup = report.broken[0].setup
    assert setup.startswith(
        "called with 4 heads, 2 of keys, X filled with 0 to width 12"
    )


def test_a_name_says_what_it_does_not_explain():
    def two_slips(Q, K, V, mask=None):
        Y = zoo.mask_ignored.attention(Q, K, V, mask)
        return Y * (1.5 if Q.shape[-2] > 60 else 1)

    report = laws.check(two_slips)
    assert report.looks_like is zoo.mask_ignored
    left = report.likely.partition("it does not explain ")[2]
    assert "every_length_alike" in left
    assert "padding_changes_nothing" not in left
    assert "it does not explain" not in laws.check(zoo.mask_ignored).likely


def test_the_report_says_which_laws_tried_long_sequences():
    few = ["every_length_alike", "rows_sum_to_one"]
    report = laws.check(attend, few)
    tried = " ".join(report.inputs.split())
    assert tried.startswith("lengths 1 to 3, 5, 7; longer: every_length_alike ")
    assert "63 to 65 127 to 129 257" in tried.replace("127 to 130", "127 to 129")


class Cross(nn.Module):
    """Other tokens must be given; a slip projects the values from the keys."""

    def __init__(self, d_model, n_heads, slip=False):
        super().__init__()
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            setattr(self, name, nn.Linear(d_model, d_model))
        self.n_heads, self.slip = n_heads, slip

    def forward(self, query, key, value, mask=None):
        value = key if self.slip else value
        given = (self.W_Q(query), self.W_K(key), self.W_V(value))
        return self.W_O(merged(attend(*(cut(x, self.n_heads) for x in given), mask)))


def crossing(X, weights, n_heads, key, value, mask=None, slip=False):
    value = key if slip else value
    given = X @ weights["W_Q"], key @ weights["W_K"], value @ weights["W_V"]
    return merged(attend(*(cut(x, n_heads) for x in given), mask)) @ weights["W_O"]


def crossing_from_keys(X, weights, n_heads, key, value, mask=None):
    return crossing(X, weights, n_heads, key, value, mask, slip=True)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (Cross(8, 2), Cross(8, 2, slip=True)),
        (laws.Adapter(crossing), laws.Adapter(crossing_from_keys)),
    ],
)
def test_cross_attention_is_asked_as_such(right, wrong):
    assert laws.check(right).holds
    found = broken(laws.check(wrong, only=laws.ATTENTION))
    assert {"rows_sum_to_one", "output_in_hull"} <= {*found}


def test_what_writes_into_its_input_is_not_told_about_strides():
    def residual(X, weights, n_heads, mask=None):
        X += merged(
            attend(*three(X, *[weights[f"W_{x}"] for x in "QKV"], n_heads), mask)
        )
        return F.layer_norm(X, X.shape[-1:], weights["gain_1"])

    finding = laws.strides_change_nothing.check(as_encoder(residual))
    assert finding.why == "it writes into the arrays that it is given"
