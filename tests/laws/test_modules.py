"""The module that is handed in is the one that is judged, or the check stops."""

import re
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import mha
import mha.nn
from mha import laws
from mha.laws.subjects import as_subject
from tests.laws.reports import broken, unasked

NO_SCALE = ["scores_keep_unit_variance", "equals_reference"]
SEES_ALL = ["outputs_follow_tokens", "key_order_is_free", "equals_reference"]


class Attn(nn.Module):
    """A layer as people write it; no option of its constructor is called `factor`."""

    def __init__(self, d_model, n_heads, scale=True, causal=False, dropout=0.0):
        super().__init__()
        self.n_heads, self.causal, self.dropout = n_heads, causal, dropout
        self.factor = (d_model // n_heads) ** -0.5 if scale else 1.0
        for letter in "QKVO":
            setattr(self, f"W_{letter}", nn.Linear(d_model, d_model))

    def forward(self, x, mask=None):
        cut = (*x.shape[:2], self.count(), -1)
        three = self.W_Q(x), self.W_K(x), self.W_V(x)
        Q, K, V = (y.view(cut).transpose(1, 2) for y in three)
        S = Q @ K.mT * self.factor
        if self.causal:
            S = S.masked_fill(~torch.ones(S.shape[-2:]).tril().bool(), -torch.inf)
        if mask is not None:
            S = S.masked_fill(~mask, -torch.inf)
        Y = S.masked_fill(S.isneginf().all(-1, keepdim=True), 0).softmax(-1)
        Y = (Y * ~S.isneginf()) @ V
        return self.W_O(self.drop(Y.transpose(1, 2).reshape(x.shape)))

    def count(self):
        return self.n_heads

    def drop(self, Y):
        return F.dropout(Y, self.dropout, self.training)


class DropsAlways(Attn):
    def drop(self, Y):
        return F.dropout(Y, self.dropout)


class DropsByNumber(Attn):
    def drop(self, Y):
        return F.dropout(Y, 0.1, self.training)


class DropsWeightsAlways(mha.nn.MultiHeadAttention):
    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        tokens = query, key, key if value is None else value
        parts = zip((self.W_Q, self.W_K, self.W_V), tokens, strict=True)
        Q, K, V = (self._split_heads(W(x)) for W, x in parts)
        Y = F.scaled_dot_product_attention(Q, K, V, mask, dropout_p=self.dropout)
        return self.W_O(Y.transpose(-3, -2).flatten(-2))


class HeadsFirst(Attn):
    def __init__(self, n_heads, d_model):
        super().__init__(d_model, n_heads)


class NamelessSizes(Attn):
    def __init__(self, first, second):
        super().__init__(first, second)
        self.first, self.second = first, second


class SaysNoHeads(Attn):
    """The number of heads is kept where nobody finds it."""

    def __init__(self, d_model, parts):
        super().__init__(d_model, parts)
        del self.n_heads
        self.cuts = [parts]

    def count(self):
        return self.cuts[0]


class Secretive(Attn):
    """What it was told is kept where nobody finds it."""

    def __init__(self, d_model, n_heads, gain=1.0):
        super().__init__(d_model, n_heads)
        self.kept = [gain]

    def drop(self, Y):
        return self.kept[0] * Y


class DerivedScale(Attn):
    """As in many vision layers: None means 1/√d_k, and the number is kept."""

    def __init__(self, d_model, n_heads, factor=None):
        super().__init__(d_model, n_heads)
        self.factor = factor or (d_model // n_heads) ** -0.5


class Window(Attn):
    def __init__(self, d_model, n_heads, *, window):
        super().__init__(d_model, n_heads)
        self.window = window

    def forward(self, x, mask=None):
        near = torch.ones(2 * x.shape[1:2]).bool().tril(self.window).triu(-self.window)
        return super().forward(x, near if mask is None else mask & near)


class Temperature(Attn):
    """One number to train, and one that stays, besides the four matrices."""

    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.heat = nn.Parameter(torch.ones(()))
        self.register_buffer("gain", torch.ones(()))

    def drop(self, Y):
        return Y * self.heat * self.gain


class Gains(Attn):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.gains = nn.Parameter(torch.ones(d_model))

    def drop(self, Y):
        return Y * self.gains


class Remembers(Attn):
    """It keeps what it computed last, as many a layer does for a picture."""

    last = None

    def drop(self, Y):
        self.last = Y
        return Y


class Shares(Attn):
    """Groups of queries share keys and values; `apart` deals them out like cards."""

    def __init__(self, d_model, n_heads, n_kv_heads, apart=False):
        super().__init__(d_model, n_heads)
        self.n_kv_heads, self.apart = n_kv_heads, apart
        for letter in "KV":
            part = nn.Linear(d_model, n_kv_heads * d_model // n_heads)
            setattr(self, f"W_{letter}", part)

    def forward(self, x, mask=None):
        cut = (*x.shape[:2], -1, x.shape[-1] // self.n_heads)
        three = self.W_Q(x), self.W_K(x), self.W_V(x)
        Q, *others = (y.view(cut).transpose(1, 2) for y in three)
        times = self.n_heads // self.n_kv_heads
        K, V = (
            y.repeat(1, times, 1, 1) if self.apart else y.repeat_interleave(times, 1)
            for y in others
        )
        Y = F.scaled_dot_product_attention(Q, K, V, mask)
        return self.W_O(Y.transpose(1, 2).reshape(x.shape))


class Amplified(mha.nn.EncoderLayer):
    def __init__(self, d_model, n_heads, d_ff, gain=1.0, **options):
        super().__init__(d_model, n_heads, d_ff, **options)
        self.gain = gain

    def forward(self, X, mask=None):
        return self.gain * super().forward(X, mask)


class Hands(mha.nn.MultiHeadAttention):
    """It hands every option on."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)


def changed(module, **attributes):
    for name, value in attributes.items():
        setattr(module, name, value)
    return module


def hooked(part=None, kind="forward_hook", hook=lambda m, x, y: 2 * y):
    module = mha.nn.MultiHeadAttention(8, 2)
    getattr(module if part is None else getattr(module, part), f"register_{kind}")(hook)
    return module


def tied(module):
    module.W_K.weight = module.W_Q.weight
    return module


# By hand


def test_a_twin_of_the_same_size_gives_the_same_numbers_with_the_same_weights():
    layer = Attn(8, 2, scale=False, causal=True).eval()
    names = {f"W_{x}": getattr(layer, f"W_{x}").weight for x in "QKVO"}
    names |= {f"b_{x}": getattr(layer, f"W_{x}").bias for x in "QKVO"}
    weights = {x: y.detach().double().numpy() for x, y in names.items()}
    weights = {x: y.T.copy() for x, y in weights.items()}
    X = np.random.default_rng(0).standard_normal((2, 5, 8))
    with torch.no_grad():
        expected = layer.double()(torch.from_numpy(X))
    got = as_subject(layer).layer(X, weights, 2)
    np.testing.assert_allclose(got, expected, atol=1e-12)


# Laws


@pytest.mark.parametrize(
    "layer",
    [
        Attn(8, 2),
        Attn(8, 2, dropout=0.3),
        DropsAlways(8, 2),
        DropsByNumber(8, 2),
        HeadsFirst(2, 8),
        NamelessSizes(8, 2),
        SaysNoHeads(8, 2),
        DerivedScale(8, 2),
        Temperature(8, 2),
        Gains(8, 2),
        Shares(8, 4, 2),
        Shares(12, 6, n_kv_heads=1),
        Hands(8, n_heads=2, dropout=0.5, bias=False),
        Attn(8, 2).half(),
        Attn(8, 2).to(torch.bfloat16),
        Attn(8, 2).eval(),
        Amplified(8, 2, 12, dropout=0.5, norm_first=True),
        changed(Attn(8, 2), note="mine", calls=3),
        changed(SaysNoHeads(8, 2), h=5),
        hooked(hook=lambda m, x, y: None),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_a_right_layer_breaks_no_law_however_it_is_built(layer):
    assert broken(laws.check(layer)) == []


@pytest.mark.parametrize(
    ("layer", "slugs"),
    [
        (Attn(8, 2, scale=False), NO_SCALE),
        (Attn(8, 2, causal=True), SEES_ALL),
        (changed(Attn(8, 2), factor=1.0), NO_SCALE),
        (changed(Attn(8, 2), causal=True), SEES_ALL),
        (Attn(8, 2, scale=False).to(torch.bfloat16), NO_SCALE),
        (DerivedScale(8, 2, factor=1.0), NO_SCALE),
    ],
    ids=["scale=False", "causal=True", "factor later", "causal later", "half", "None"],
)
def test_options_and_what_was_set_later_are_judged(layer, slugs):
    found = broken(laws.check(layer))
    assert [slug for slug in found if slug in slugs] == slugs
    assert "rows_sum_to_one" not in found


def test_keys_that_are_dealt_out_to_the_wrong_heads_are_found():
    assert as_subject(Shares(12, 6, 3)).said.n_kv_heads == 3
    found = broken(laws.check(Shares(8, 4, 2, apart=True)))
    assert {"head_owns_its_columns", "equals_reference"} <= set(found)


def test_an_option_of_an_encoder_layer_is_judged():
    report = laws.check(Amplified(8, 2, 12, gain=2.0), only=laws.WHOLE)
    assert "silent_parts_pass_the_input_on" in broken(report)


def test_an_integer_that_is_no_size_is_taken_over():
    assert laws.masked_weights_are_zero.check(Window(8, 2, window=1)).holds is True
    assert laws.equals_reference.check(Window(8, 2, window=1)).holds is False
    assert (
        laws.silent_query_takes_the_mean.check(Window(8, 2, window=200)).holds is False
    )
    assert laws.check(Window(8, 2, window=6000))


@pytest.mark.parametrize(
    ("layer", "slug"),
    [
        (hooked(), "rows_sum_to_one"),
        (hooked("W_K"), "scores_keep_unit_variance"),
        (hooked("W_V", "forward_pre_hook", lambda m, x: 2 * x[0]), "rows_sum_to_one"),
    ],
    ids=["the layer", "a part", "before a part"],
)
def test_a_hook_is_carried_over(layer, slug):
    finding = laws.equals_reference.check(layer)
    assert finding.holds is False
    assert getattr(laws, slug).check(layer).holds is False


def test_a_hook_that_wants_keywords_gets_them():
    seen, layer = [], Attn(8, 2)

    def look(module, tokens, options, Y):
        seen.append(options)

    layer.register_forward_hook(look, with_kwargs=True)
    laws.self_only_mask.check(layer)
    assert any("mask" in options for options in seen)


def test_numbers_that_fit_every_size_are_taken_over():
    layer = Temperature(8, 2)
    layer.heat.data.fill_(2.0)
    assert "rows_sum_to_one" in broken(laws.check(layer))
    layer = Temperature(8, 2)
    layer.gain.fill_(2.0)
    assert "rows_sum_to_one" in broken(laws.check(layer))


@pytest.mark.parametrize("kind", [DropsAlways, DropsWeightsAlways])
def test_dropout_that_is_on_in_eval_mode_breaks_laws_there(kind):
    report = laws.check(kind(8, 2, dropout=0.5))
    # Where two calls differ, no other law is asked.
    assert broken(report) == ["calls_agree"]
    assert all("train mode" not in finding.why for finding in report.broken)
    assert broken(laws.check(kind(8, 2))) == []


def test_dropout_that_nobody_can_turn_off_keeps_train_mode_from_being_asked():
    modes = as_subject(DropsByNumber(8, 2)).variants()
    assert [str(twin.mode) for twin in modes] == ["eval mode, no_grad"]


def test_the_layer_its_mode_and_everybodys_random_numbers_stay_as_they_are():
    layer = Remembers(8, 2, dropout=0.5)
    Y = layer(torch.ones(1, 3, 8))
    before = {x: y.clone() for x, y in layer.state_dict().items()}
    torch.manual_seed(0)
    drawn = torch.rand(())
    torch.manual_seed(0)
    assert broken(laws.check(layer)) == []
    assert torch.equal(torch.rand(()), drawn)
    assert layer.training and layer.last is not None and layer.dropout == 0.5
    assert layer.last.shape == Y.shape and layer.last.requires_grad
    assert all(torch.equal(y, before[x]) for x, y in layer.state_dict().items())


def test_a_layer_that_was_trained_is_judged_as_before():
    for layer in (
        mha.nn.MultiHeadAttention(8, 2),
        mha.nn.Encoder(2, 8, 2, 12, norm_first=True, final_norm=True, dropout=0.1),
    ):
        for parameter in layer.parameters():
            parameter.data.normal_()
        assert broken(laws.check(layer)) == []


def test_what_torchs_layer_adds_to_the_keys_is_judged():
    for option in ("add_bias_kv", "add_zero_attn"):
        layer = nn.MultiheadAttention(8, 2, **{option: True})
        assert "rows_sum_to_one" in broken(laws.check(layer))


def test_a_hook_on_every_layer_of_a_stack_is_carried_over():
    stack = mha.nn.Encoder(3, 8, 2, 12)
    for layer in stack.layers:
        layer.attention.register_forward_hook(lambda m, x, y: 2 * y)
    assert "equals_reference" in broken(laws.check(stack, only=laws.WHOLE))


# Refusals


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (torch.compile(Attn(8, 2)), r"wrapper around Attn; .* layer\._orig_mod"),
        (nn.DataParallel(Attn(8, 2)), r"DataParallel is a wrapper .* layer\.module"),
        (torch.optim.swa_utils.AveragedModel(Attn(8, 2)), "AveragedModel is a wrapper"),
        (torch.jit.script(nn.MultiheadAttention(8, 2)), "is a script; give laws.check"),
        (nn.MultiheadAttention(8, 2, kdim=4), "kdim=4 and vdim=8, where 8 is due"),
        (nn.MultiheadAttention(8, 2, vdim=4), "kdim=8 and vdim=4, where 8 is due"),
        (tied(Attn(8, 2)), "other parts share their weights than here"),
        (Attn(8, 2).to("meta"), r"no numbers in W_Q\.weight"),
        (Secretive(8, 2, gain=3.0), r"gives other numbers: eval .* up to .* gain"),
        (changed(Attn(8, 2), W_K=nn.Linear(8, 3)), r"W_K\.weight is \(3, 8\)"),
        (changed(Attn(8, 2), W_Q=nn.LazyLinear(8)), r"no numbers in W_Q\.weight"),
        (changed(Gains(8, 2), gains=nn.Parameter(torch.rand(8))), "gains holds numb"),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, nn.Module) else "",
)
def test_what_would_be_judged_as_another_layer_is_refused_with_a_remedy(layer, message):
    with pytest.raises(TypeError, match=message) as refusal:
        laws.check(layer)
    assert re.search("give laws.check|call it once", str(refusal.value))


def test_a_forward_that_was_exchanged_is_carried_over_or_refused():
    layer = Attn(8, 2)
    layer.forward = partial(lambda f, *x, **y: 2 * f(*x, **y), layer.forward)
    with pytest.raises(TypeError, match=r"because of .*forward"):
        laws.check(layer)


def test_weights_that_are_computed_are_refused_until_they_are_plain():
    layer = Attn(8, 2)
    nn.utils.parametrizations.weight_norm(layer.W_Q)
    with pytest.raises(TypeError, match=r"W_Q\.weight from other numbers"):
        laws.check(layer)
    nn.utils.parametrize.remove_parametrizations(layer.W_Q, "weight")
    assert broken(laws.check(layer)) == []


def test_layers_of_a_stack_that_differ_are_refused_by_name():
    stack = mha.nn.Encoder(3, 8, 2, 12)
    stack.layers[1].norm_first = True
    with pytest.raises(TypeError, match=r"layers\.1 was given norm_first otherwise"):
        laws.check(stack)


def test_only_what_it_has_no_argument_for_is_unasked_of_a_layer_that_masks():
    assert unasked(laws.check(Attn(8, 2))) == [
        "mask_and_causal_both_hide", "causal_corner",
        "returned_weights_make_the_output", "float_masks_are_added",
        "integer_masks_hide", "groups_share_their_keys",
    ]  # fmt: skip
