"""A declared design is what the laws compare with, and its bugs are found."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import mha
from mha import laws
from mha.laws import designs
from tests.laws.reports import breaks, broken


def turned(x, base=10000.0, ahead=0, table=10**6, dtype=torch.float64):
    n, d = x.shape[-2:]
    place = (torch.arange(n, dtype=dtype) + ahead).clamp(max=table - 1)
    angle = place[:, None] * base ** -(torch.arange(0, d, 2, dtype=dtype) / d)
    c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([a * c - b * s, b * c + a * s], -1)


class Llama(nn.Module):
    """Causal, rotary, two query heads for each head of keys; a slip may be named."""

    def __init__(self, slip="", near=10**6, **turns):
        super().__init__()
        self.num_heads, self.slip, self.near, self.turns = 4, slip, near, turns
        self.q_proj, self.o_proj = nn.Linear(16, 16), nn.Linear(16, 16)
        self.k_proj, self.v_proj = nn.Linear(16, 8), nn.Linear(16, 8)

    def forward(self, hidden_states, attention_mask=None):
        x, n = hidden_states, hidden_states.shape[1]
        q, k, v = (
            W(x).unflatten(-1, (-1, 4)).transpose(1, 2)
            for W in (self.q_proj, self.k_proj, self.v_proj)
        )
        q = turned(q, ahead=self.slip == "query ahead", **self.turns)
        k = k if self.slip == "keys at rest" else turned(k, **self.turns)
        in_turn, flat = self.slip == "groups in turn", self.slip == "padding (b, n_k)"
        k, v = (
            y.repeat(1, 2, 1, 1) if in_turn else y.repeat_interleave(2, 1)
            for y in (k, v)
        )
        k = k.roll(1, 1) if self.slip == "groups shifted" else k
        i, j = torch.arange(n)[:, None], torch.arange(n)
        seen = (j <= i) & (i - j < self.near)
        if attention_mask is not None:
            seen = seen & (attention_mask[:, None, None] if flat else attention_mask)
        S = (q @ k.mT / math.sqrt(4)).masked_fill(~seen, -torch.inf)
        Y = S.softmax(-1).nan_to_num(0.0) @ v
        return self.o_proj(Y.transpose(1, 2).flatten(2))


LLAMA = {"design": "rotary(), grouped(2)", "causal": "built in"}
FEW = ["equals_reference", "only_distance_counts"]


def test_a_right_layer_of_a_design_breaks_no_law_and_its_exceptions_follow():
    report = laws.check(Llama(), **LLAMA)
    assert broken(report) == []
    declared = {f.law.slug for f in report.findings if f.verdict == "declared"}
    assert {"rotation_changes_nothing", "shifting_keys_changes_nothing"} <= declared
    held = {f.law.slug for f in report.findings if f.verdict == "holds"}
    assert {*FEW, "silent_query_takes_the_mean", "running_means"} <= held
    assert "broken as declared, because rotary(" in repr(report)


@pytest.mark.parametrize(
    "layer",
    [
        Llama("query ahead"),
        Llama("keys at rest"),
        Llama("groups shifted"),
        Llama(base=500.0),
        Llama(table=16),
        Llama(dtype=torch.bfloat16),
        Llama(near=128),
    ],
)
def test_a_wrong_layer_of_a_design_breaks_the_comparison(layer):
    assert "equals_reference" in broken(laws.check(layer, FEW, **LLAMA))


@pytest.mark.parametrize("slip", [{"table": 16}, {"dtype": torch.bfloat16}])
def test_the_offset_law_reaches_behind_400_tokens(slip):
    assert "only_distance_counts" in broken(laws.check(Llama(**slip), FEW, **LLAMA))


def test_tables_of_float32_are_no_mistake():
    report = laws.check(Llama(dtype=torch.float32), FEW, **LLAMA)
    assert broken(report) == []


# Functions, written apart from mha.laws.designs


def attention(
    bend=lambda S: S, near=10**6, extra=None, norm=False, largest=True, keep=10**6,
    shared=True,
):  # fmt: skip
    def run(Q, K, V, mask=None):
        if norm:
            Q, K = (x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) for x in (Q, K))
        S = bend(Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1]))
        i, j = np.indices(S.shape[-2:])
        seen = abs(i - j) < near if mask is None else (abs(i - j) < near) & mask
        S = np.where(seen, S, -np.inf)
        S = np.where(S >= np.sort(S, -1)[..., -keep:][..., :1], S, -np.inf)
        least = -1e4 if extra is None or not shared else extra
        top = S.max(-1, keepdims=True, initial=least)
        E = np.exp(S - (top if largest else 0))
        rest = 0 if extra is None else np.exp(extra - (top if largest else 0))
        total = E.sum(-1, keepdims=True) + rest
        return (E @ V / np.where(total == 0, 1, total)).astype(
            np.result_type(Q, np.float16)
        )

    return run


def sloped(first):
    def bend(S):
        h = S.shape[-3] if S.ndim > 2 else 1
        slopes = 2.0 ** (-8 * (np.arange(h) + first) / h)
        i, j = np.indices(S.shape[-2:])
        penalty = slopes[:, None, None] * abs(i - j)
        return S - (penalty if S.ndim > 2 else penalty[0])

    return bend


DESIGNS = {
    "window(4)": ("window_ends_where_it_says", {"near": 4}, [{"near": 5}, {"near": 3}]),
    "sink(0.7)": ("sink_takes_its_share", {"extra": 0.7},
                  [{"extra": 0.7, "largest": False}, {"extra": 0.7, "shared": False},
                   {"extra": 0.0}, {}]),
    "qk_norm()": ("lengths_of_queries_do_not_count", {"norm": True}, [{}]),
    "soft_cap(5.0)": (
        "scores_stay_below_the_cap", {"bend": lambda S: 5 * np.tanh(S / 5)},
        [{"bend": lambda S: np.clip(S, -5, 5)}, {"bend": lambda S: np.tanh(S / 5)}]),
    "alibi()": ("distance_costs_the_slope", {"bend": sloped(1)}, [{"bend": sloped(0)}]),
    "top_k(3)": ("few_keys_are_all_kept", {"keep": 3},
                 [{"keep": 2}, {"keep": 4}]),
}  # fmt: skip


CALLED = "calls_agree", "every_length_alike", "every_dtype_gives_the_numbers"


@pytest.mark.parametrize("design", DESIGNS)
def test_the_right_function_of_a_design_breaks_no_law_and_a_wrong_one_does(design):
    own, right, wrong = DESIGNS[design]
    report = laws.check(attention(**right), [*FEW[:1], own, *CALLED], design=design)
    assert broken(report) == []
    assert any(f.holds for f in report.findings if f.law.slug == own)
    for options in wrong:
        assert breaks(attention(**options), [*FEW[:1], own], design=design)


def capped(inside=False, least=np.float16):
    def run(Q, K, V, mask=None):
        M = np.zeros(()) if mask is None else mask
        M = np.where(M, 0.0, -np.inf) if M.dtype == bool else M
        seen, S = M > -np.inf, Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])
        M = np.where(seen, M, 0)
        S = 5 * np.tanh((S + M) / 5) if inside else 5 * np.tanh(S / 5) + M
        Y = mha.masked_softmax(S, np.broadcast_to(seen, S.shape)) @ V
        return Y.astype(np.result_type(Q, least))

    return run


def test_a_design_excuses_neither_another_dtype_nor_numbers_that_a_mask_loses():
    asked, cap = ["float_masks_are_added", "dtype_is_kept"], {"design": "soft_cap(5)"}
    assert all(laws.check(capped(), asked, **cap).findings)
    assert breaks(capped(inside=True), asked, **cap) == asked[:1]
    assert breaks(capped(least=np.float64), asked, **cap) == asked[1:]


class Gated(nn.Module):
    def __init__(self, bend=torch.sigmoid):
        super().__init__()
        self.n_heads, self.bend, self.gate = 2, bend, nn.Linear(8, 8, bias=False)
        self.to_qkv, self.to_out = nn.Linear(8, 24), nn.Sequential(nn.Linear(8, 8))

    def forward(self, x):
        three = (y.unflatten(-1, (2, 4)).transpose(1, 2) for y in
                 self.to_qkv(x).chunk(3, -1))  # fmt: skip
        Y = nn.functional.scaled_dot_product_attention(*three)
        return self.to_out(Y.transpose(1, 2).flatten(2) * self.bend(self.gate(x)))


@pytest.mark.parametrize(("bend", "slugs"), [
    (torch.sigmoid, []), (nn.functional.silu, FEW[:1])])  # fmt: skip
def test_a_gate_that_is_learned_is_read_by_its_name(bend, slugs):
    layer = Gated(bend)
    before = layer.gate.weight.clone()
    assert broken(laws.check(layer, FEW[:1], design='sigmoid_gate("gate.weight")')) == (
        slugs
    )
    assert torch.equal(layer.gate.weight, before)
    with pytest.raises(ValueError, match="no parameter is called 'gain', but gate"):
        laws.check(layer, design=laws.sigmoid_gate("gain"))


def test_a_cache_is_asked_token_by_token():
    def run(X, weights, n_heads, is_causal=False):
        return mha.multi_head_attention(X, **weights, n_heads=n_heads, is_causal=True)

    def with_a_mask(X, weights, n_heads, mask=None):
        return mha.multi_head_attention(X, **weights, n_heads=n_heads, mask=mask)

    def stepwise(X, weights, n_heads, late=0):
        rows = range(1, X.shape[-2] + 1)
        three = (run(X[max(0, t - 2 * late - 1) * late : t], weights, n_heads)
                 for t in rows)  # fmt: skip
        return np.stack([Y[-1] for Y in three])

    def forgets(X, weights, n_heads):
        return stepwise(X, weights, n_heads, late=1)

    law = laws.one_at_a_time_is_all_at_once
    for step, holds in ((stepwise, True), (forgets, False)):
        adapter = laws.Adapter(run, step=step, causal="built in")
        assert laws.check(adapter, [law]).holds is holds
        assert laws.check(adapter, [law], design="window(99)").holds is holds
        # Where is_causal is unknown, the mask of the past does.
        masked = laws.Adapter(with_a_mask, step=step)
        assert laws.check(masked, [law]).holds is holds


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ("rotary(", "was never closed|closing"), ("spiral()", "no design is called"),
        ("rotary", r"write rotary\(\)"), ("sigmoid_gate()", "missing .* argument: 'W'"),
        ("window(w)", "malformed"), (3, "got 3"), ([laws.rotary], r"in rotary\(…\)"),
    ],
)  # fmt: skip
def test_what_is_no_design_is_refused_and_told_what_is_missing(given, missing):
    with pytest.raises(ValueError, match=f"a design must be .*{missing}"):
        designs.as_designs(given)


def test_what_a_design_makes_impossible_to_ask_is_not_counted():
    placed = ["large_scores_stay_exact", "rising_scores"]
    (why,) = laws.check(Llama(), placed, **LLAMA).unasked
    assert why.endswith("gives it other scores")
    tied = laws.check(
        attention(keep=5), ["doubling_changes_nothing"], design="top_k(5)"
    )
    assert "its design has no answer: ValueError: two scores" in repr(tied)


def test_numbers_of_a_design_and_functions_are_not_printed():
    gate = laws.sigmoid_gate(np.zeros((8, 8)))
    text = repr(laws.check(Gated(), FEW[:1], design=gate))
    assert "seed=0, design=design)" in text and "sigmoid_gate(W=…, b=0.0)" in text
    scaled = repr(laws.check(attention(), FEW[:1], scale=lambda d_k: 1 / d_k))
    assert "scale=scale" in scaled


def test_a_design_of_the_attention_in_an_encoder_is_refused():
    with pytest.raises(ValueError, match="about attention"):
        laws.check(mha.encoder, design="rotary()")


@pytest.mark.parametrize(
    ("wrong", "words", "hint"),
    [
        (lambda Q, K, V, mask=None: attention()(Q, K, V, None if mask is None else
                                                ~mask), {}, "say mask_true='hide'"),
        (attention(near=5), {"design": "window(4)"}, "design='window(w=5)'"),
        (lambda Q, K, V: np.float64(1) * attention()(Q, K, V), {}, "math.sqrt(d_k)"),
    ],
)  # fmt: skip
def test_a_hint_is_given_where_all_that_is_broken_holds_under_it(wrong, words, hint):
    asked = ["equals_reference", "self_only_mask", "dtype_is_kept", "rising_scores"]
    assert hint in laws.check(wrong, asked, **words).hinted.replace("\n    ", " ")


def test_hints_join_causal_masks_and_a_design_where_one_alone_explains_nothing():
    asked = ["equals_reference", "rows_sum_to_one", "rising_scores"]
    report = laws.check(Llama("padding (b, n_k)"), asked)
    hinted = report.hinted.replace("\n    ", " ")
    assert "mask_shape='bk', causal='built in', design=\"rotary(base=10000.0" in hinted
    said = {"mask_shape": "bk", "causal": "built in", "design": "rotary()"}
    assert broken(laws.check(Llama("padding (b, n_k)"), asked, **said)) == []
    without = laws.check(Llama("padding (b, n_k)"), asked, scale=1.0).hinted
    assert "mask_shape='bk': then padding_changes_nothing holds, but not" in without


def test_groups_that_are_mixed_up_are_told_first_and_with_the_change_made():
    asked = ["head_moves_its_own_slice", "groups_share_their_keys"]
    report = laws.check(Llama("groups in turn"), asked, **LLAMA)
    first, second = (repr(report).index(f"laws.{slug}") for slug in asked[::-1])
    assert first < second
    assert "W_K of key head 1 times −1: only slices [1, 2] may move" in repr(report)


def test_no_hint_is_given_for_what_stays_wrong():
    wrong = attention(bend=lambda S: 2 * S)
    assert laws.check(wrong, ["equals_reference"]).hinted == ""


@laws.parametrize(mha.multi_head_attention)
def test_a_layer_is_one_item_for_each_law(ask):
    ask()
