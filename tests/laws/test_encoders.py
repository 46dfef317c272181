"""An encoder is judged as a whole: a function, an adapter, or a module."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import mha
import mha.nn
from mha import laws, zoo
from tests.laws.reports import STORED, broken


def theirs(norm_first=False, activation="relu", bias=True, batch_first=True):
    return nn.TransformerEncoderLayer(
        8, 2, 12, activation=activation, norm_first=norm_first, bias=bias,
        batch_first=batch_first,
    )  # fmt: skip


def stack(layer, n_layers=3, norm=None):
    return nn.TransformerEncoder(layer, n_layers, norm, enable_nested_tensor=False)


def one_layer_by_hand(X, weights, n_heads):
    """Pre-norm, without mask and without a word about it; ε as in BERT."""
    options = {"norm_first": True, "eps": 1e-12, "activation": "gelu"}
    return mha.encoder_layer(X, weights, n_heads, **options)


def on_tensors(X, layers, n_heads, mask=None, norm_first=False):
    if not isinstance(X, torch.Tensor):
        raise TypeError("no tensor")
    return zoo.right_encoder(X, layers, n_heads, mask, norm_first=norm_first)


class BatchNorm(nn.BatchNorm1d):
    """Batch norm that reads (..., d_model)."""

    def forward(self, x):
        return super().forward(x.flatten(0, -2)).view(x.shape)


class LayersBackwards(mha.nn.Encoder):
    def forward(self, X, *args, **options):
        for layer in reversed(self.layers):
            X = layer(X, *args, **options)
        return X


def with_batch_norm():
    layer = mha.nn.EncoderLayer(8, 2, 12)
    layer.norm_1, layer.norm_2 = BatchNorm(8), BatchNorm(8)
    return layer


PRE = {"norm_first": True}
LAWFUL = {
    "layer": mha.encoder_layer,
    "stack": mha.encoder,
    "zoo": zoo.right_encoder,
    "pre-norm with a final norm": partial(mha.encoder, final_norm=(None, None), **PRE),
    "no mask, no norm_first, another eps": one_layer_by_hand,
    "tensors": on_tensors,
    "module with dropout": mha.nn.EncoderLayer(8, 2, 12, dropout=0.5),
    "module, pre-norm, gelu, no bias": mha.nn.EncoderLayer(
        8, 2, 12, activation="gelu", bias=False, **PRE
    ),
    "stack with a final norm": mha.nn.Encoder(3, 8, 2, 12, final_norm=True, **PRE),
    "torch, batch second": theirs(batch_first=False),
    "torch, pre-norm": theirs(True, "gelu", batch_first=False),
    "torch, a stack with a norm": stack(theirs(batch_first=False), 2, nn.LayerNorm(8)),
}
# tests/weekly asks all of these, and all wrong members.
FEW = "layer", "no mask, no norm_first, another eps", "torch, a stack with a norm"


@pytest.mark.parametrize("name", FEW)
def test_a_right_encoder_breaks_no_law(name):
    report = laws.check(LAWFUL[name])
    assert broken(report) == []
    held = {finding.law for finding in report.findings if finding}
    assert laws.self_only_mask in held or "no mask" in name
    assert laws.equals_reference in held and laws.calls_agree in held
    assert len(report.findings) == len(laws.ALL) + len(laws.ENCODER)


def test_what_sees_attention_alone_is_not_asked():
    whys = laws.check(mha.encoder, ["rows_sum_to_one", "concat_is_a_sum"]).unasked
    alone = "norms stand around its attention: check that alone"
    assert "rows_sum_to_one" in whys[alone] and "concat_is_a_sum" in whys[alone]
    finding = laws.batch_changes_nothing.check(mha.multi_head_attention)
    assert repr(finding).endswith("not asked, it is no encoder")


def test_torchs_own_layer_gives_nan_and_reads_a_float_mask_as_bool():
    report = laws.check(theirs())
    assert broken(report) == ["empty_rows_give_zero", "float_masks_are_added"]
    for finding in report.broken:
        assert finding.where.splitlines()[-1] == "eval mode, no_grad"


@pytest.mark.parametrize(
    ("layer", "slug"),
    [
        (with_batch_norm(), "batch_changes_nothing"),
        (with_batch_norm(), "training_mode_changes_nothing"),
        (LayersBackwards(2, 8, 2, 12), "layers_follow_each_other"),
    ],
)
def test_a_module_that_is_wrong_around_its_attention_is_found(layer, slug):
    assert getattr(laws, slug).check(layer).holds is False


@pytest.mark.parametrize("member", [zoo.residual_from_the_input])
def test_a_wrong_encoder_is_named_and_breaks_the_same_laws_on_tensors(member):
    def run(X, layers, n_heads, mask=None, *, norm_first=False, is_causal=False,
            training=True):  # fmt: skip
        if not isinstance(X, torch.Tensor):
            raise TypeError("no tensor")
        options = {"norm_first": norm_first, "is_causal": is_causal}
        return member(X, layers, n_heads, mask, training=training, **options)

    report = laws.check(run, laws.WHOLE)
    assert set(broken(report)) == set(STORED[member.name])
    assert report.looks_like is member


@pytest.mark.parametrize("eps", [1e-5, 1e-12])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_neither_eps_nor_the_activation_is_a_matter_of_law(eps, activation):
    for norm_first in (False, True):
        options = {"eps": eps, "activation": activation, "norm_first": norm_first}
        unspoken = partial(mha.encoder, **options)
        found = laws.check(lambda X, layers, n, u=unspoken: u(X, layers, n), laws.WHOLE)
        assert broken(found) == []


def test_the_weights_of_an_example_are_drawn_from_its_seed():
    first, second = laws.encoder_weights(seed=5, n_layers=2)
    (again,) = laws.encoder_weights(seed=5)
    assert all(np.array_equal(first[name], again[name]) for name in again)
    assert not np.array_equal(first["W_Q"], second["W_Q"])
    (wide,) = laws.encoder_weights(5, d_model=8, d_ff=12)
    assert wide["W_1"].shape == (8, 12)
    assert np.isfinite(mha.encoder(np.zeros((3, 6)), [first, second], 2)).all()


def test_a_finding_says_which_weights_and_what_was_done_to_them():
    found = repr(laws.silent_parts_pass_the_input_on.check(zoo.no_residual))
    assert "layers    laws.encoder_weights(seed=" in found
    assert "where     W_O, W_2 and biases 0: the token normalised" in found


def test_where_a_wrong_encoder_has_its_norms_is_told_as_far_as_it_is_known():
    said = {"norm_first": True, "eps": 1e-6}
    forgets = partial(mha.encoder, **said)
    found = laws.check(forgets, laws.ENCODER, final_norm=True)
    rows = {f.law.slug: f.where.splitlines()[0] for f in found.broken}
    last = rows["silent_parts_pass_the_input_on"]
    assert last.endswith("the token itself, and then the final norm")
    assert "after the final norm" in rows["post_norm_normalises_rows"]

    def strange(X, weights, n_heads):
        return 3 * mha.encoder_layer(X, weights, n_heads, **said)

    post_norm = laws.post_norm_normalises_rows.check(strange)
    assert "where its norms are is not known" in post_norm.why


def test_an_encoder_that_gives_no_answer_is_refused_with_its_message():
    def stub(X, layers, n_heads):
        raise NotImplementedError("to be written")

    with pytest.raises(TypeError, match=r"encoder_weights\(0\).*to be written"):
        laws.check(stub)
