"""A module of torch is judged in its own sizes, with all its parameters, unchanged."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import mha.nn
from mha import laws
from tests.laws.reports import broken

FEW = [
    "rows_sum_to_one", "scores_keep_unit_variance", "head_owns_its_columns",
    "padding_changes_nothing", "equals_reference",
]  # fmt: skip
FOUR = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "o_proj"}


def masked(m, X, mask=None):
    return m(X, mask)


class Attn(nn.Module):
    """A layer as people write it, with grouped heads and a scale of its own."""

    def __init__(self, d_model=8, n_heads=2, n_kv=0, bias=True, scale=None):
        super().__init__()
        self.d_k, self.dropout = d_model // n_heads, 0.0
        self.scale, kv = scale or self.d_k**-0.5, (n_kv or n_heads) * self.d_k
        for name, width in (("q", d_model), ("k", kv), ("v", kv), ("o", d_model)):
            setattr(self, f"{name}_proj", nn.Linear(d_model, width, bias=bias))

    def project(self, x):
        return self.q_proj(x), self.k_proj(x), self.v_proj(x)

    def forward(self, x, mask=None):
        Q, K, V = (y.unflatten(-1, (-1, self.d_k)).transpose(1, 2)
                   for y in self.project(x))  # fmt: skip
        K, V = (self.share(y, Q.shape[1] // y.shape[1]) for y in (K, V))
        S = Q @ K.mT * self.scale
        S = S if mask is None else S.masked_fill(~mask, -torch.inf)
        A = F.dropout(S.softmax(-1).nan_to_num(0.0), self.dropout)
        return self.o_proj((A @ V).transpose(1, 2).flatten(2))

    def share(self, y, times):
        return y.repeat_interleave(times, 1)


class Fused(Attn):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        del self.q_proj, self.k_proj, self.v_proj

    def project(self, x):
        return self.qkv(x).chunk(3, -1)


class KeysWithValues(Attn):
    def __init__(self):
        super().__init__(n_heads=4)
        self.kv = nn.Linear(8, 8, bias=False)
        del self.k_proj, self.v_proj

    def project(self, x):
        return self.q_proj(x), *self.kv(x).chunk(2, -1)


class OnlyTheOutputHasBias(Attn):
    def __init__(self):
        super().__init__(bias=False)
        self.o_proj = nn.Linear(8, 8)


class WithoutBiasOfQueries(Attn):
    """A layer as in Qwen2: the output has no bias, and the one of queries is lost."""

    def __init__(self):
        super().__init__()
        self.o_proj = nn.Linear(8, 8, bias=False)

    def project(self, x):
        Q, K, V = super().project(x)
        return Q - self.q_proj.bias, K, V


class InTurn(Attn):
    def share(self, y, times):
        return y.repeat(1, times, 1, 1)


def as_layer(m, n_heads=2, **places):
    return laws.module(m, n_heads=n_heads, **places or FOUR, call=masked)


# What is right, and what is wrong


@pytest.mark.parametrize(
    "layer",
    [
        as_layer(Attn()),
        as_layer(Attn(8, 4, 2, bias=False), 4),
        as_layer(Attn(8, 4, 1), 4),
        as_layer(Fused(), qkv="qkv", o="o_proj"),
        as_layer(KeysWithValues(), 4, q="q_proj", kv="kv", o="o_proj"),
        as_layer(OnlyTheOutputHasBias()),
    ],
)
def test_a_right_module_breaks_no_law_however_it_is_built(layer):
    report = laws.check(layer, FEW)
    assert broken(report) == []
    # Beside a query and a key of two heads, a value finds no place in a token.
    asked = FEW if layer.sizes.n_heads > 2 else set(FEW) - {"head_owns_its_columns"}
    assert {*report.held} >= {*asked}


@pytest.mark.parametrize(
    ("layer", "law"),
    [
        (as_layer(Attn(8, 4, scale=1.0), 4), "scores_keep_unit_variance"),
        (as_layer(InTurn(8, 4, 2), 4), "head_owns_its_columns"),
        (as_layer(WithoutBiasOfQueries()), "equals_reference"),
        (as_layer(Attn(8, 4, 2), 2), "scores_keep_unit_variance"),
    ],
)
def test_a_wrong_module_or_wrong_number_of_heads_is_found(layer, law):
    assert {law, "equals_reference"} & {*broken(laws.check(layer, FEW))}


def test_a_bug_in_a_module_is_named():
    assert laws.check(as_layer(Attn(16, 2, scale=1.0)), FEW).alike == "no_scale"
    # √16 is 4: whether it was divided by √d_model or by d_k, nobody can tell.
    assert laws.check(as_layer(Attn(16, 4, scale=1 / 4), 4), FEW).alike == ""


def test_dropout_that_is_on_in_eval_mode_is_randomness():
    m = Attn()
    m.dropout = 0.5
    assert broken(laws.check(as_layer(m))) == ["calls_agree"]


class WithDropout(Attn):
    """It drops weights in train mode, and there `slip` loses its mask."""

    def __init__(self, slip):
        super().__init__(12, 3)
        self.slip = slip

    def forward(self, x, mask=None):
        self.dropout = 0.5 if self.training else 0.0
        return super().forward(x, None if self.slip and self.training else mask)


def test_a_mask_that_is_lost_in_train_mode_is_found_and_dropout_is_not():
    law = laws.hidden_in_training_too
    right, wrong = (law.check(as_layer(WithDropout(slip), 3)) for slip in (False, True))
    assert (right.verdict, wrong.verdict) == ("holds", "broken")
    assert law.check(mha.multi_head_attention).why.startswith("it has no train mode")


def test_the_module_that_was_handed_in_is_not_changed():
    m = Attn().train()
    m.norm, m.note = nn.BatchNorm1d(8), "mine"
    m.register_forward_hook(lambda m, x, y: (m.norm(y.flatten(0, 1)), y)[1])
    tensors = [*m.parameters(), *m.buffers()]
    before = [(id(t), t.clone(), t.grad) for t in tensors]
    torch.manual_seed(0)
    drawn = torch.rand(())
    torch.manual_seed(0)
    assert laws.check(as_layer(m), FEW).holds
    assert torch.equal(torch.rand(()), drawn)
    for t, (name, numbers, slope) in zip(tensors, before, strict=True):
        assert id(t) == name and torch.equal(t, numbers) and t.grad is slope
    assert m.training and m.note == "mine"


# Refusals


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ({"q": "q_proj", "k": "k_proj", "o": "o_proj"}, "what makes V.*q_proj.weight"),
        ({"qkv": "c_attn", "o": "o_proj"}, "it has no c_attn.weight; its parameters"),
    ],
)
def test_a_projection_that_is_not_there_is_told_beside_those_that_are(places, said):
    with pytest.raises(ValueError, match=said):
        laws.module(Attn(), n_heads=2, **places)


# Encoders


THEIRS = {x: "self_attn.in_proj" for x in "QKV"} | {"O": "self_attn.out_proj"}
THEIRS |= {"1": "linear1", "2": "linear2", "norm_1": "norm1", "norm_2": "norm2"}


def as_encoder(m, **options):
    return laws.encoder(m, n_heads=2, places=THEIRS, **options)


def theirs(**options):
    return nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, **options)


def hides(m, X, mask=None):
    """Their mask of all heads; True hides, and a token that sees nothing gives NaN."""
    if mask is not None and mask.dtype != torch.bool:
        raise NotImplementedError("booleans only")
    if mask is not None:
        n = X.shape[-2]
        mask = ~mask.expand(len(X), 2, n, n).flatten(0, 1)
    return m(X, mask)


def test_torchs_own_encoder_breaks_no_law_but_that_of_tokens_that_see_nothing():
    layer = as_encoder(theirs(), call=hides)
    report = laws.check(layer, [*USED, "self_only_mask", *laws.ENCODER])
    assert broken(report) == ["empty_rows_give_zero"]
    assert {"self_only_mask", "post_norm_normalises_rows"} <= {*report.held}
    many = nn.TransformerEncoder(theirs(), 3, enable_nested_tensor=False)
    assert laws.check(as_encoder(many, layers="layers"), laws.ENCODER).holds


def test_an_encoder_of_another_kind_has_a_reference_of_its_kind():
    layer = as_encoder(theirs(norm_first=True, activation="gelu"))

    def pre_norm(X, weights, n_heads):
        options = {"norm_first": True, "activation": "gelu"}
        return mha.encoder_layer(X, weights, n_heads, **options)

    assert not laws.check(layer, laws.ENCODER).holds
    report = laws.check(layer, reference=pre_norm)
    assert report.holds
    kept = report.unasked["the reference does not keep it"]
    assert kept == ["post_norm_normalises_rows"]


class BatchNorm(nn.BatchNorm1d):
    """Batch norm that reads (..., d_model)."""

    def forward(self, x):
        return super().forward(x.flatten(0, -2)).view(x.shape)


class Backwards(mha.nn.Encoder):
    def forward(self, X, *args, **options):
        for layer in reversed(self.layers):
            X = layer(X, *args, **options)
        return X


def with_batch_norm():
    layer = mha.nn.EncoderLayer(8, 2, 12)
    layer.norm_1, layer.norm_2 = BatchNorm(8), BatchNorm(8)
    return layer


OURS = {x: f"attention.W_{x}" for x in "QKVO"} | {"1": "W_1", "2": "W_2"}
OURS |= {"norm_1": "norm_1", "norm_2": "norm_2"}


@pytest.mark.parametrize(
    ("module", "layers", "law"),
    [
        (with_batch_norm(), "", "post_norm_normalises_rows"),
        (Backwards(2, 8, 2, 12), "layers", "equals_reference"),
    ],
)
def test_a_module_that_is_wrong_around_its_attention_is_found(module, layers, law):
    encoder = laws.encoder(module, n_heads=2, places=OURS, layers=layers)
    assert law in broken(laws.check(encoder, [law]))


# What needs no adapter


# tests/weekly asks all laws.
USED = [
    "calls_agree", "padding_changes_nothing", "batch_masks_reach_their_own",
    "mask_and_causal_both_hide", "empty_rows_give_zero", "gradients_are_slopes",
    "dtype_is_kept", "float_masks_are_added", "equals_reference",
]  # fmt: skip
READY = [
    nn.MultiheadAttention(8, 2),
    nn.MultiheadAttention(8, 2, batch_first=True, bias=False),
    F.scaled_dot_product_attention,
    mha.nn.MultiHeadAttention(6, 3),
]


@pytest.mark.parametrize("ready", READY, ids=lambda x: type(x).__name__)
def test_torchs_own_attention_and_that_of_this_package_need_no_adapter(
    ready, asked=USED
):
    report = laws.check(ready, asked)
    # PyTorch's own module may give NaN where a token sees nothing.
    theirs = isinstance(ready, nn.MultiheadAttention)
    assert {*broken(report)} <= ({"empty_rows_give_zero"} if theirs else set())
    assert {"equals_reference", "gradients_are_slopes"} <= {*report.held}
