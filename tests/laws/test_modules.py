"""A module is judged in its own sizes, as it was handed in, and gets all back."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import mha.nn
from mha import laws
from tests.laws.reports import breaks, broken, unasked

FEW = [
    "rows_sum_to_one", "masked_weights_are_zero", "head_owns_its_columns",
    "concat_is_a_sum", "equals_reference", "scores_keep_unit_variance",
    "key_order_is_free", "padding_changes_nothing",
]  # fmt: skip
NO_SCALE = ["scores_keep_unit_variance", "equals_reference"]


class Attn(nn.Module):
    """A layer as people write it."""

    names = "W_Q W_K W_V W_O".split()

    def __init__(self, d_model=8, n_heads=2, dropout=0.0, factor=None):
        super().__init__()
        self.n_heads, self.dropout = n_heads, dropout
        self.factor = factor or (d_model // n_heads) ** -0.5
        for name in self.names:
            setattr(self, name, nn.Linear(d_model, d_model))

    def forward(self, x, mask=None):
        cut = (*x.shape[:2], self.count(), -1)
        *three, out = (getattr(self, name) for name in self.names)
        Q, K, V = (W(x).view(cut).transpose(1, 2) for W in three)
        S = Q @ K.mT * self.factor
        if mask is not None:
            S = S.masked_fill(~mask, -torch.inf)
        Y = torch.nan_to_num(S.softmax(-1)) @ V
        return out(self.drop(Y.transpose(1, 2).reshape(x.shape)))

    def count(self):
        return self.n_heads

    def drop(self, Y):
        return F.dropout(Y, self.dropout, self.training)


def test_a_method_that_is_called_like_a_fused_matrix_is_none():
    class Named(Attn):
        def qkv(self, x):
            return x

    assert laws.check(Named(), [laws.rows_sum_to_one]).holds


class Projections(Attn):
    names = "q_proj k_proj v_proj o_proj".split()


class DropsAlways(Attn):
    def drop(self, Y):
        return F.dropout(Y, 0.5)


class SaysNoHeads(Attn):
    def __init__(self, d_model=8, parts=2):
        super().__init__(d_model, parts)
        del self.n_heads

    def count(self):
        return 2


class Secretive(Attn):
    """What it was told is kept where no constructor finds it."""

    def __init__(self, gain=1.0):
        super().__init__()
        self.kept = [gain]

    def drop(self, Y):
        return self.kept[0] * Y


class Gains(Attn):
    def __init__(self):
        super().__init__()
        self.gains = nn.Parameter(torch.ones(8))
        self.register_buffer("offset", torch.zeros(8))

    def drop(self, Y):
        return Y * self.gains + self.offset


class Remembers(Attn):
    """It keeps what it computed last, as many a layer does for a picture."""

    last = None

    def drop(self, Y):
        self.last = Y
        return super().drop(Y)


class Shares(Attn):
    """Groups of queries share keys and values; `apart` deals them out like cards."""

    def __init__(self, d_model, n_heads, n_kv, apart=False):
        super().__init__(d_model, n_heads)
        self.n_kv, self.apart = n_kv, apart
        for letter in "KV":
            setattr(self, f"W_{letter}", nn.Linear(d_model, n_kv * d_model // n_heads))

    def forward(self, x, mask=None):
        cut = (*x.shape[:2], -1, x.shape[-1] // self.n_heads)
        three = self.W_Q(x), self.W_K(x), self.W_V(x)
        Q, *others = (y.view(cut).transpose(1, 2) for y in three)
        times = self.n_heads // self.n_kv
        K, V = (
            y.repeat(1, times, 1, 1) if self.apart else y.repeat_interleave(times, 1)
            for y in others
        )
        Y = F.scaled_dot_product_attention(Q, K, V, mask)
        return self.W_O(Y.transpose(1, 2).reshape(x.shape))


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


def test_the_tables_of_a_module_give_the_attention_of_each_head():
    Q, K, V = np.random.default_rng(0).standard_normal((3, 5, 3))
    subject = laws.as_subject(Attn(8, 2))
    expected = mha.scaled_dot_product_attention(Q, K, V)
    with subject.borrowed():
        got = subject.attend(Q, K, V, heads=2)
    np.testing.assert_allclose(got, np.hstack([expected, expected]), atol=1e-12)


def test_more_tokens_than_columns_need_no_wider_layer():
    Q, K, V = np.random.default_rng(0).standard_normal((3, 300, 2))
    got = laws.as_subject(Attn(8, 2)).attend(Q, K, V)
    expected = mha.scaled_dot_product_attention(Q, K, V)
    np.testing.assert_allclose(got, expected, atol=1e-10)


# What is right


@pytest.mark.parametrize(
    "layer",
    [
        Attn(8, 2, dropout=0.3), Projections(8, 2), Gains(), Shares(8, 4, 2),
        Attn(8, 2).to(torch.bfloat16),
    ],
    ids=lambda layer: type(layer).__name__,
)  # fmt: skip
def test_a_right_layer_breaks_no_law_however_it_is_built(layer):
    assert broken(laws.check(layer, FEW)) == []


def test_every_law_is_asked_of_a_layer_and_none_is_broken():
    report = laws.check(Attn(8, 2))
    assert broken(report) == []
    assert "parameters_ignore_heads" not in unasked(report)


def test_few_calls_find_the_smallest_example_of_a_wide_layer():
    calls, layer = [], Attn(16, 4)
    layer.W_O.register_forward_hook(lambda part, x, y: calls.append(1) or x[0])
    finding = laws.concat_is_a_sum.check(layer)
    filled = {x: np.count_nonzero(y) for x, y in finding.example.items()}
    assert filled == {"X": 1, "W_Q": 0, "W_K": 0, "W_V": 1, "W_O": 0}
    assert len(calls) < 300


def test_weights_that_do_not_matter_are_counted_in_the_sizes_of_a_layer():
    finding = laws.parameters_ignore_heads.check(tied(Attn(8, 2)))
    assert (finding.expected, finding.got) == ("256", "192")
    assert finding.where.endswith("weights with 2 heads, d_model = 8")
    wide = laws.parameters_ignore_heads.check(Attn(66, 2))
    assert wide.why == "17424 weights are too many to try"


def test_heads_that_are_not_told_are_said():
    assert broken(laws.check(SaysNoHeads(), FEW, n_heads=2)) == []
    with pytest.raises(TypeError, match=r"does not tell how many heads .* n_heads="):
        laws.check(SaysNoHeads())


# What is wrong


@pytest.mark.parametrize(
    ("layer", "slugs"),
    [
        (Attn(8, 2, factor=1.0), NO_SCALE),
        (changed(Attn(8, 2), factor=1.0), NO_SCALE),
        (Attn(8, 2, factor=1.0).to(torch.bfloat16), NO_SCALE),
        (Secretive(gain=3.0), ["rows_sum_to_one", "equals_reference"]),
        (changed(Gains(), gains=nn.Parameter(torch.full((8,), 2.0))),
         ["rows_sum_to_one", "equals_reference"]),
        (Shares(8, 4, 2, apart=True), ["head_owns_its_columns", "equals_reference"]),
        (tied(Attn(8, 2)), ["equals_reference"]),
        (hooked(), ["rows_sum_to_one", "equals_reference"]),
        (hooked("W_K"), NO_SCALE),
        (hooked("W_V", "forward_pre_hook", lambda m, x: 2 * x[0]),
         ["rows_sum_to_one", "equals_reference"]),
        (nn.MultiheadAttention(8, 2, add_bias_kv=True), ["rows_sum_to_one"]),
        (nn.MultiheadAttention(8, 2, add_zero_attn=True), ["rows_sum_to_one"]),
    ],
)  # fmt: skip
def test_the_layer_that_was_handed_in_is_the_one_that_is_judged(layer, slugs):
    assert breaks(layer, slugs) == slugs


@pytest.mark.parametrize(("bare", "kept"), [("W_O", "W_V"), ("W_V", "W_O")])
def test_a_layer_is_asked_for_the_biases_that_it_has(bare, kept):
    layer = Attn(8, 2)
    getattr(layer, bare).bias = None
    assert breaks(layer, ["equals_reference"]) == []
    getattr(layer, kept).register_forward_hook(lambda part, x, y: y - part.bias)
    assert breaks(layer, ["equals_reference"]) == ["equals_reference"]


def test_dropout_that_is_on_in_eval_mode_is_randomness():
    assert broken(laws.check(DropsAlways(8, 2))) == ["calls_agree"]


def test_a_bug_in_a_module_is_named_by_the_same_numbers():
    found = laws.check(Attn(8, 2, factor=1.0), FEW).looks_like
    assert found is not None and found.name == "no_scale"
    assert laws.check(hooked(), FEW).looks_like is None
    # √16 is 4: whether it was divided by √d_model or d_k, nobody can tell.
    assert laws.check(Attn(16, 4, factor=1 / 4), FEW).looks_like is None


# What comes back


@pytest.mark.parametrize(
    "layer",
    [
        Remembers(8, 2, dropout=0.5),
        nn.MultiheadAttention(8, 2, batch_first=True),
        mha.nn.Encoder(2, 8, 2, 12, dropout=0.1),
        nn.BatchNorm1d(8),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_everything_comes_back(layer):
    if isinstance(layer, nn.BatchNorm1d):
        # A call writes into its buffers.
        layer = changed(Attn(8, 2), norm=layer)
        layer.register_forward_hook(lambda m, x, y: (m.norm(y.flatten(0, 1)), y)[1])
    tensors = [*layer.parameters(), *layer.buffers()]
    for parameter in layer.parameters():
        parameter.data.normal_()
        parameter.grad = torch.ones_like(parameter)
    before = [(id(t), t.data_ptr(), t.dtype, t.clone(), t.grad) for t in tensors]
    names = {part: {*vars(part)} for part in layer.modules()}
    torch.manual_seed(0)
    drawn = torch.rand(())
    torch.manual_seed(0)
    laws.check(layer, ["rows_sum_to_one", "calls_agree", "future_leaves_past_alone"])
    assert torch.equal(torch.rand(()), drawn)
    after = [*layer.parameters(), *layer.buffers()]
    for t, (name, place, dtype, numbers, slope) in zip(after, before, strict=True):
        assert (id(t), t.data_ptr(), t.dtype) == (name, place, dtype)
        assert torch.equal(t, numbers) and t.grad is slope
    assert layer.training
    assert {part: {*vars(part)} for part in layer.modules()} == names
    assert getattr(layer, "last", None) is None
    assert getattr(layer, "dropout", 0.5) in (0.5, 0.1, 0.0)


def test_numbers_come_back_after_an_error_too():
    layer = Attn(8, 2)
    before = layer.W_Q.weight.clone()
    layer.W_O.register_forward_hook(lambda m, x, y: y[..., :2])
    laws.check(layer, ["equals_reference"])
    assert torch.equal(layer.W_Q.weight, before)


# Refusals


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (nn.DataParallel(Attn(8, 2)), r"DataParallel is a wrapper .* layer\.module"),
        (nn.MultiheadAttention(8, 2, kdim=4), "kdim=4 and vdim=8, where 8 is due"),
        (Attn(8, 2).to("meta"), "has no numbers yet"),
        (changed(Attn(8, 2), W_Q=nn.LazyLinear(8)), "has no numbers yet"),
        (changed(Attn(8, 2), W_O=nn.Linear(8, 3)), r"its W_O is \(3, 8\), where"),
        (changed(Attn(8, 2), n_heads=5), "for 5 heads"),
        (nn.utils.parametrizations.weight_norm(Attn(8, 2).W_Q), "has no W_Q, W_K"),
        (nn.TransformerEncoder(nn.Linear(3, 3), 1), "a module must be"),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, nn.Module) else "",
)
def test_what_cannot_be_lent_is_refused_with_a_remedy(layer, message):
    with pytest.raises(TypeError, match=message):
        laws.check(layer)


def test_weights_that_are_computed_are_refused_until_they_are_plain():
    layer = Attn(8, 2)
    nn.utils.parametrizations.weight_norm(layer.W_Q)
    with pytest.raises(TypeError, match="it may compute them"):
        laws.check(layer)
    nn.utils.parametrize.remove_parametrizations(layer.W_Q, "weight")
    assert broken(laws.check(layer, FEW)) == []
