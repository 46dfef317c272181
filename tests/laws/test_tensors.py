"""Functions of tensors, of matrices only, of padding, and layers with a cache."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import mha
from mha import designs, laws
from tests.laws.reports import broken

# Tensors


def test_a_function_of_tensors_gets_tensors_and_has_gradients_and_bfloat16():
    dtypes = set()

    def attend(Q, K, V, mask=None):
        assert isinstance(Q, torch.Tensor)
        dtypes.add(Q.dtype)
        return F.scaled_dot_product_attention(Q, K, V, mask)

    report = laws.check(laws.torch(attend))
    assert report.holds and report.subject == "attend"
    asked = {"gradients_are_slopes", "every_dtype_gives_the_numbers"}
    assert asked <= {*report.held}
    assert dtypes >= {torch.float64, torch.float32, torch.float16, torch.bfloat16}


def test_four_axes_are_put_in_front_and_taken_away():
    def attend(Q, K, V, mask=None):
        assert Q.ndim == K.ndim == V.ndim == 4
        return F.scaled_dot_product_attention(Q, K, V, mask)

    few = ["rows_sum_to_one", "batch_masks_reach_their_own", "gradients_are_slopes"]
    assert laws.check(laws.torch(attend, axes=4), few).held == few
    plain = laws.check(laws.torch(attend), ["rows_sum_to_one"])
    assert plain.broken[0].verdict == "raised"


def stopped(Q, K, V, mask=None):
    return F.scaled_dot_product_attention(Q, K.detach(), V, mask)


@torch.no_grad()
def without_gradients(Q, K, V):
    return F.scaled_dot_product_attention(Q, K, V)


def leaking(Q, K, V, mask=None):
    """A hidden value reaches the output with a weight of 0, and its gradient."""
    Y = F.scaled_dot_product_attention(Q, K, V, mask)
    return Y + 1e-30 * V.sum(-2, keepdim=True)


def test_gradients_are_asked_for():
    law = laws.gradients_are_slopes
    assert law.check(laws.torch(stopped)).verdict == "broken"
    finding = law.check(laws.torch(leaking))
    assert finding.expected == "exactly 0"
    assert finding.where == "gradient of the hidden key"
    assert law.check(laws.torch(without_gradients)).why == (
        "no gradient flows through it"
    )


def test_bfloat16_that_loses_more_than_it_must_is_found():
    def attend(Q, K, V, mask=None):
        if Q.dtype == torch.bfloat16:
            Q = (Q * 2).round() / 2 + 0.25
        return F.scaled_dot_product_attention(Q, K, V, mask)

    finding = laws.every_dtype_gives_the_numbers.check(laws.torch(attend))
    assert finding.where == "bfloat16"


def in_bfloat16(block, rescales):
    """Return a kernel of 16 bits that reads its keys in blocks, with a running sum."""

    def attend(Q, K, V):
        q, k, v = (x.bfloat16() for x in (Q, K, V))
        top, total, Y = torch.tensor(-torch.inf), 0.0, 0.0
        for at in range(0, K.shape[-2], block):
            keys = k[..., at : at + block, :].float()
            S = q.float() @ keys.mT / Q.shape[-1] ** 0.5
            new = torch.maximum(top, S.amax(-1, keepdim=True))
            old, E = (top - new).exp(), (S - new).exp()
            total = total * (old if rescales else 1) + E.sum(-1, keepdim=True)
            Y = Y * old + E @ v[..., at : at + block, :].float()
            top = new
        return (Y / total).bfloat16().to(Q.dtype)

    return laws.torch(attend)


def test_a_right_kernel_of_16_bits_breaks_no_law_and_a_wrong_one_does():
    report = laws.check(in_bfloat16(64, rescales=True), tolerance=0.02)
    assert broken(report) == []
    asked = {"rising_scores", "every_dtype_gives_the_numbers", "equals_reference"}
    assert asked <= {*report.held}
    wrong = in_bfloat16(64, rescales=False)
    assert "rising_scores" in broken(laws.check(wrong, tolerance=0.02))


# Padding


@pytest.mark.parametrize(
    ("mask", "tokens", "expected"),
    [
        (np.array([[True, False]]), (2, 3), [[True, False]]),
        (np.array([[True, False]]), (2, 2, 3), [[True, False]] * 2),
        (
            np.array([[True, False], [True, True]])[:, None, None],
            (2, 2, 3),
            [[True, False], [True, True]],
        ),
    ],
)
def test_padding_is_one_row_for_each_sequence(mask, tokens, expected):
    assert laws.padding(mask, np.zeros(tokens)).tolist() == expected
    assert laws.padding(None, np.zeros(tokens)) is None


# A cache


def positions(n, mask):
    """Return the positions of tokens; behind padding the first real one has 0."""
    if mask is None:
        return np.arange(n)
    if mask.dtype != bool or mask.shape[-2] > 1:
        raise NotImplementedError("it takes padding only")
    return np.maximum(mask.cumsum(-1) - 1, 0)[..., 0, :]


def rotary_attention(Q, K, V, mask=None):
    at = positions(K.shape[-2], mask)
    Q, K = designs.rotary(Q, at=at), designs.rotary(K, at=at)
    seen = designs.both(mask, designs.causal(Q, K))
    return mha.scaled_dot_product_attention(Q, K, V, seen)


def cached(slip=""):
    """Return a layer with rotary positions and a cache of keys and values."""

    def step(X, W_Q, W_K, W_V, W_O, n_heads, mask=None, state=None):
        before = 0 if state is None else state[0].shape[-2]
        n, n_k = X.shape[-2], before + X.shape[-2]
        at = positions(n_k, mask)[..., before:]
        if slip == "positions begin anew":
            at = at - before
        if slip == "padding is counted":
            at = np.arange(before, n_k)
        Q, K, V = (mha.split_heads(X @ W, n_heads) for W in (W_Q, W_K, W_V))
        Q, K = designs.rotary(Q, at=at), designs.rotary(K, at=at)
        if state is not None:
            old = state[::-1] if slip == "keys and values are exchanged" else state
            K, V = (np.concatenate(x, -2) for x in zip(old, (K, V), strict=True))
        seen = np.tri(n_k, dtype=bool)[n_k - n :]
        if slip == "causal from the first key":
            seen = np.tri(n, n_k, dtype=bool)
        if slip == "no causal mask behind a prompt" and state is not None:
            seen = np.ones((n, n_k), bool)
        if mask is not None and not (slip == "padding is shown later" and before):
            seen = seen & mask
        if slip == "a window that nobody declared":
            seen = seen & ~np.tri(n_k, k=-13, dtype=bool)[n_k - n :]
        Y = mha.scaled_dot_product_attention(Q, K, V, seen)
        return mha.merge_heads(Y) @ W_O, (K, V)

    return laws.steps(step)


BY_PARTS = [
    "positions begin anew", "keys and values are exchanged",
    "causal from the first key", "no causal mask behind a prompt",
    "padding is shown later",
]  # fmt: skip


@pytest.mark.parametrize("slip", BY_PARTS)
def test_a_slip_of_a_cache_is_found_by_handing_the_tokens_over_in_parts(slip):
    finding = laws.one_at_a_time_is_all_at_once.check(cached(slip))
    assert finding.verdict == "broken"
    assert finding.where.startswith("tokens in parts of ")


@pytest.mark.parametrize(
    "slip", ["padding is counted", "a window that nobody declared"]
)
def test_what_is_wrong_in_parts_and_at_once_is_found_by_its_reference(slip):
    laws_too = ["one_at_a_time_is_all_at_once", "equals_reference"]
    report = laws.check(cached(slip), laws_too, reference=rotary_attention)
    assert broken(report) == ["equals_reference"]


def test_a_right_cache_breaks_no_law_behind_padding_either():
    report = laws.check(cached(), reference=rotary_attention)
    assert broken(report) == [] and report.notes == ()
    asked = {"one_at_a_time_is_all_at_once", "padding_changes_nothing"}
    assert asked <= {*report.held}


def test_a_cache_of_attention_alone_and_of_tensors_is_asked_like_that_of_a_layer():
    law = laws.one_at_a_time_is_all_at_once

    def step(Q, K, V, mask=None, state=None):
        if state is not None:
            K, V = (torch.cat(x, -2) for x in zip(state, (K, V), strict=True))
        n, n_k = Q.shape[-2], K.shape[-2]
        seen = torch.ones(n, n_k, dtype=torch.bool).tril(n_k - n)
        seen = seen if mask is None else seen & mask
        return F.scaled_dot_product_attention(Q, K, V, seen), (K, V)

    def forgets(Q, K, V, mask=None, state=None):
        return step(Q, K, V, mask, None)

    assert law.check(laws.steps(laws.torch(step))).holds
    assert not law.check(laws.steps(laws.torch(forgets))).holds
    assert law.check(mha.multi_head_attention).why == (
        "it has no cache: see laws.steps"
    )
