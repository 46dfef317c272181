"""The adapter: whatever is called in another way can be checked all the same."""

import functools

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import mha
import mha.nn
from mha import laws, zoo
from mha.laws.subjects import as_subject
from mha.laws.subjects.layer import AdaptedLayer
from tests.laws.reports import broken, unasked

SEES_ALL = """
doubling_changes_nothing outputs_follow_tokens key_order_is_free
scores_are_not_symmetric
""".split()
FOUR = ("W_Q", "W_K", "W_V", "W_O")


class Fused(torch.nn.Module):
    """One matrix for Q, K and V, as in GPT: always causal, (batch, n, d)."""

    scale = None

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = torch.nn.Linear(d_model, 3 * d_model)
        self.out = torch.nn.Linear(d_model, d_model)

    def forward(self, x):
        batch, n, d = x.shape
        Q, K, V = (
            y.view(batch, n, self.n_heads, -1).transpose(1, 2)
            for y in self.qkv(x).chunk(3, -1)
        )
        Y = F.scaled_dot_product_attention(Q, K, V, is_causal=True, scale=self.scale)
        return self.out(Y.transpose(1, 2).reshape(batch, n, d))

    def load(self, weights):
        parts = {kind: [weights[f"{kind}_{x}"].T for x in "QKV"] for kind in "Wb"}
        self.qkv.weight.data = torch.cat(parts["W"])
        self.qkv.bias.data = torch.cat(parts["b"])
        self.out.weight.data, self.out.bias.data = weights["W_O"].T, weights["b_O"]
        return self


def with_zero_biases(weights):
    zeros = weights["W_O"].new_zeros(len(weights["W_O"]))
    return {f"b_{x}": zeros for x in "QKVO"} | weights


def fused(kind):
    def run(x, weights, n_heads):
        layer = kind(x.shape[-1], n_heads)
        return layer.load(with_zero_biases(weights))(x)

    return laws.Adapter(run, batch_first=True, causal="built in", biases=True)


def per_head(X, weights, n_heads, mask=None):
    """A loop over heads that reads one sequence."""
    n, _d = X.shape
    heads = []
    for block in np.split(np.arange(X.shape[1]), n_heads):
        Q, K, V = (X @ weights[name][:, block] for name in FOUR[:3])
        mask_ = None if mask is None else np.broadcast_to(mask, (n, n))
        A = mha.masked_softmax(Q @ K.T / len(block) ** 0.5, mask_)
        heads.append(A @ V)
    return np.concatenate(heads, 1) @ weights["W_O"]


def hides_where_true(x, weights, n_heads, mask=None):
    """(n, batch, d) in and out; True hides."""
    n, batch, _d = x.shape
    shown = None if mask is None else ~mask
    four = [weights[name] for name in FOUR]
    Y = mha.multi_head_attention(np.moveaxis(x, 0, 1), *four, n_heads, shown)
    assert Y.shape[:2] == (batch, n)
    return np.moveaxis(Y, 0, 1)


def block(x, weights, n_heads):
    """A GPT block: pre-norm, causal, no mask, biases everywhere, gelu."""
    return mha.encoder_layer(
        x, weights, n_heads, activation="gelu", norm_first=True, is_causal=True
    )


SIDEWAYS = {"batch_first": False, "mask_true": "hide"}

LAWFUL = {
    "a loop over heads": laws.Adapter(per_head),
    "fused and causal": fused(Fused),
    "sideways, True hides": laws.Adapter(hides_where_true, **SIDEWAYS),
    "attention, True hides": laws.Adapter(
        lambda q, k, v, mask=None: mha.scaled_dot_product_attention(
            q, k, v, None if mask is None else ~mask
        ),
        kind="attention",
        mask_true="hide",
    ),
    "torch's function with a batch": laws.Adapter(
        lambda q, k, v, mask=None: F.scaled_dot_product_attention(q, k, v, mask),
        kind="attention",
        batch_first=True,
    ),
    "torch's layer": laws.Adapter(
        lambda x, weights, n_heads, mask=None: (
            mha.nn.scaled_dot_product_attention(
                *(
                    (x @ weights[name]).unflatten(-1, (n_heads, -1)).transpose(-3, -2)
                    for name in FOUR[:3]
                ),
                mask,
            )
            .transpose(-3, -2)
            .flatten(-2)
            @ weights["W_O"]
        )
    ),
    "GPT block": laws.Adapter(
        block, kind="encoder_layer", causal="built in", biases=True
    ),
    "encoder": laws.Adapter(
        lambda X, layers, n_heads, mask, norm_first: mha.encoder(
            X, layers, n_heads, mask, norm_first=norm_first
        ),
        kind="encoder",
    ),
}


# By hand


def test_true_is_turned_round_for_those_that_hide_where_it_is_true():
    seen = []

    def run(Q, K, V, mask=None):
        seen.append(mask)
        return mha.scaled_dot_product_attention(Q, K, V)

    adapter = laws.Adapter(run, kind="attention", mask_true="hide")
    mask, X = np.array([[True, False]]), np.eye(2)
    as_subject(adapter).attend(X[:1], X, X, mask)
    assert seen[-1].tolist() == [[False, True]]
    assert mask.tolist() == [[True, False]]


@pytest.mark.parametrize(
    ("batch_first", "shape"), [(None, (3, 2)), (True, (1, 3, 2)), (False, (3, 1, 2))]
)
def test_tokens_come_in_the_layout_that_is_asked_for(batch_first, shape):
    def run(X, weights, n_heads):
        assert X.shape == shape
        return 2 * X

    X, eye = np.arange(6.0).reshape(3, 2), np.eye(2)
    adapter = laws.Adapter(run, batch_first=batch_first)
    subject = AdaptedLayer(adapter.call, "run", lead=int(batch_first is not None))
    Y = subject.layer(X, dict.fromkeys(FOUR, eye), 1)
    assert Y.tolist() == (2 * X).tolist()


# Laws


@functools.cache
def report_on(name):
    """Return the report on a lawful adapter; several tests read it."""
    return laws.check(LAWFUL[name])


@pytest.mark.parametrize("name", LAWFUL)
def test_what_is_correct_satisfies_every_law_through_the_adapter(name):
    report = report_on(name)
    assert broken(report) == []
    assert report


def test_what_is_always_causal_is_not_asked_to_see_everything():
    report = report_on("fused and causal")
    assert set(SEES_ALL) <= set(unasked(report))
    holding = [f.law.slug for f in report.findings if f]
    for slug in ("future_leaves_past_alone", "scores_keep_unit_variance",
                 "parameters_ignore_heads", "equals_reference"):  # fmt: skip
        assert slug in holding


def test_biases_are_handed_over_only_where_they_are_announced():
    def run(X, weights, n_heads):
        assert sorted(weights) == sorted(FOUR)
        return zoo.right(X, n_heads=n_heads, **weights)

    assert laws.check(laws.Adapter(run))


def test_a_causal_layer_that_is_not_causal_is_found():
    leaking = laws.Adapter(
        lambda X, weights, n_heads: zoo.right(X, n_heads=n_heads, **weights),
        causal="built in",
    )
    assert "future_leaves_past_alone" in broken(laws.check(leaking))


def test_a_wrong_scale_in_a_fused_layer_is_named():
    class Unscaled(Fused):
        scale = 1.0

    report = laws.check(fused(Unscaled))
    assert broken(report) == ["scores_keep_unit_variance", "equals_reference"]
    assert report.looks_like is zoo.no_scale


def test_a_mask_of_the_other_polarity_is_named():
    report = laws.check(laws.Adapter(hides_where_true, batch_first=False))
    assert report.looks_like is zoo.mask_inverted


def test_a_residual_that_is_missing_in_somebodys_block_is_named():
    def run(X, weights, n_heads, mask=None, norm_first=False):
        return zoo.no_residual.layer(X, weights, n_heads, mask, norm_first=norm_first)

    report = laws.check(laws.Adapter(run, kind="encoder_layer", biases=True))
    assert report.looks_like is zoo.no_residual


def test_what_run_must_be_given_it_is_given():
    def run(X, weights, n_heads, *, mask, is_causal):
        assert mask is None or mask.dtype == bool
        return zoo.right(X, n_heads=n_heads, mask=mask, is_causal=is_causal, **weights)

    assert laws.check(laws.Adapter(run))


def test_the_report_is_headed_by_the_name_of_run_or_another():
    assert report_on("a loop over heads").subject == "per_head"
    mine = laws.Adapter(per_head, name="mine")
    assert laws.check(mine, only=["rows_sum_to_one"]).subject == "mine"


def test_train_and_eval_mode_are_asked_where_run_tells_them_apart():
    def run(X, layers, n_heads, training):
        return zoo.batch_norm(X, layers, n_heads, training=training)

    adapter = laws.Adapter(run, kind="encoder", biases=True)
    finding = laws.training_mode_changes_nothing.check(adapter)
    assert finding.holds is False


# Refusals


@pytest.mark.parametrize("run", [None, 3, Fused])
def test_what_cannot_be_called_is_refused(run):
    with pytest.raises(TypeError, match="run must be a function, got"):
        laws.Adapter(run)


@pytest.mark.parametrize("option", [{"kind": "head"}, {"mask_true": True}])
def test_an_unknown_kind_or_polarity_is_refused_with_those_there_are(option):
    (name,) = option
    with pytest.raises(ValueError, match=f"{name} must be one of '"):
        laws.Adapter(per_head, **option)


def test_a_run_that_fails_is_refused_with_its_message():
    def run(X, weights, n_heads):
        raise KeyError("c_attn")

    with pytest.raises(TypeError, match=r"run gives no answer .* KeyError: 'c_attn'"):
        laws.check(laws.Adapter(run))
