"""The laws of encoders, and their attention seen through norms and residuals."""

import functools
import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import mha
import mha.nn
from mha import laws, zoo
from mha._chapters import chapter_number
from mha.laws.subjects import NotApplicable, as_subject
from tests.laws.reports import broken, killed_by, unasked
from tests.tolerances import assert_close

# The laws that the chapters print; others may stand between them.
SLUGS = """
batch_changes_nothing training_mode_changes_nothing silent_parts_pass_the_input_on
both_parts_write_on_one_stream tokens_meet_in_attention_only post_norm_normalises_rows
layers_follow_each_other
""".split()
# What an encoder is not asked: its norms and its own tokens stand in between.
OF_ATTENTION_ALONE = """
batches_and_heads_stay_apart batch_masks_reach_their_own causal_corner
large_scores_stay_exact
every_dtype_gives_the_numbers groups_share_their_keys
""".split()
NEED_WEIGHTS = "returned_weights_make_the_output"
NEED_OTHER_MASKS = ["mask_and_causal_both_hide", "integer_masks_hide"]
NEED_TENSORS = "gradients_are_slopes"
NEED_A_STACK = "layers_follow_each_other"
NEED_MODES = "training_mode_changes_nothing"
NEED_BIASES = "both_parts_write_on_one_stream"
NEED_A_NORM_AT_THE_END = "post_norm_normalises_rows"

every_law = pytest.mark.parametrize("law", laws.ENCODER, ids=lambda law: law.slug)


def theirs(norm_first=False, activation="relu", bias=True, batch_first=True):
    return nn.TransformerEncoderLayer(
        8, 2, 12, activation=activation, norm_first=norm_first, bias=bias,
        batch_first=batch_first,
    )  # fmt: skip


def stack(layer, n_layers=3, norm=None):
    return nn.TransformerEncoder(layer, n_layers, norm, enable_nested_tensor=False)


def shell(attend, norm=mha.layer_norm):
    """Return an encoder of ours whose attention, or whose norm, is somebody's own."""

    def run(X, layers, n_heads, mask=None, *, norm_first=False, is_causal=False):
        options = {"n_heads": n_heads, "mask": mask, "is_causal": is_causal}
        for weights in layers:
            own = {k: W for k, W in weights.items() if k[-1] in "QKVO"} | options
            norm_1, norm_2 = (
                partial(norm, gain=weights.get(f"gain_{i}"),
                        bias=weights.get(f"bias_{i}"))
                for i in (1, 2)
            )  # fmt: skip
            feed = [weights.get(name) for name in ("W_1", "b_1", "W_2", "b_2")]
            if norm_first:
                X = X + attend(norm_1(X), **own)
                X = X + mha.feed_forward(norm_2(X), *feed)
            else:
                X = norm_1(X + attend(X, **own))
                X = norm_2(X + mha.feed_forward(X, *feed))
        return X

    return run


def one_layer_by_hand(X, weights, n_heads):
    """Pre-norm, without mask and without a word about it; ε as in BERT."""
    norm = partial(mha.layer_norm, eps=1e-12)
    four = {name: weights[name] for name in ("W_Q", "W_K", "W_V", "W_O")}
    biases = {f"b_{x}": weights.get(f"b_{x}") for x in "QKVO"}
    h = norm(X, weights.get("gain_1"), weights.get("bias_1"))
    X = X + mha.multi_head_attention(h, n_heads=n_heads, **four, **biases)
    h = norm(X, weights.get("gain_2"), weights.get("bias_2"))
    W_1, W_2 = weights["W_1"], weights["W_2"]
    return X + mha.feed_forward(
        h, W_1, weights.get("b_1"), W_2, weights.get("b_2"), activation="gelu"
    )


def on_tensors(X, layers, n_heads, mask=None, norm_first=False):
    if not isinstance(X, torch.Tensor):
        raise TypeError("no tensor")
    return zoo.right_encoder(X, layers, n_heads, mask, norm_first=norm_first)


class BatchNorm(nn.BatchNorm1d):
    """Batch norm that reads (..., d_model)."""

    def __init__(self, d_model, eps=1e-5, **options):
        super().__init__(d_model, eps)

    def forward(self, x):
        return super().forward(x.flatten(0, -2)).view(x.shape)


class WithBatchNorm(mha.nn.EncoderLayer):
    def __init__(self, d_model, *args, **options):
        super().__init__(d_model, *args, **options)
        self.norm_1, self.norm_2 = BatchNorm(d_model), BatchNorm(d_model)


LAWFUL = {
    "layer": mha.encoder_layer,
    "stack": mha.encoder,
    "zoo": zoo.right_encoder,
    "zoo, one layer": zoo.right_encoder.layer,
    "post-norm by partial": partial(mha.encoder_layer, norm_first=False),
    "pre-norm by partial": partial(mha.encoder, norm_first=True),
    "no mask, no norm_first, another eps": one_layer_by_hand,
    "tensors": on_tensors,
    "module": mha.nn.EncoderLayer(8, 2, 12),
    "module with dropout": mha.nn.EncoderLayer(8, 2, 12, dropout=0.5),
    "module, pre-norm, gelu, no bias": mha.nn.EncoderLayer(
        8, 2, 12, norm_first=True, activation="gelu", bias=False
    ),
    "stack of modules with dropout": mha.nn.Encoder(3, 8, 2, 12, dropout=0.3),
    "stack of modules with a final norm": mha.nn.Encoder(
        3, 8, 2, 12, norm_first=True, final_norm=True
    ),
}
STATES = {
    name: {key: x.clone() for key, x in module.state_dict().items()}
    for name, module in LAWFUL.items()
    if isinstance(module, nn.Module)
}


@functools.cache
def report_on(name):
    """Return the report on a lawful encoder; several tests read it."""
    return laws.check(LAWFUL[name])


# By hand


def test_the_weights_of_an_example_are_drawn_from_its_seed():
    first, second = laws.encoder_weights(seed=5, n_layers=2)
    (again,) = laws.encoder_weights(seed=5)
    assert all(np.array_equal(first[name], again[name]) for name in again)
    assert not np.array_equal(first["W_Q"], second["W_Q"])
    X = np.zeros((3, 6))
    assert mha.encoder(X, [first, second], n_heads=2).shape == (3, 6)


def test_a_finding_says_which_weights_and_what_was_done_to_them():
    assert repr(laws.silent_parts_pass_the_input_on.check(zoo.no_residual)) == (
        "✗ where both parts return zeros, the token passes through "
        f"(chapter {chapter_number('encoder_layer')})\n"
        "    law       laws.silent_parts_pass_the_input_on\n"
        "    X         [[0, 0, 0, 0, 0, -2]]\n"
        "    layers    laws.encoder_weights(seed=75)\n"
        "    expected  [[0.447, 0.447, 0.447, 0.447, 0.447, -2.236]]\n"
        "    got       [[0, 0, 0, 0, 0, 0]]\n"
        "    where     W_O, W_2 and biases 0: the token normalised\n"
        "    seed      0\n"
        "    because   each part adds to the token, and 0 adds nothing"
    )


def test_a_second_add_and_norm_that_is_missing_shows_as_mean_and_variance():
    finding = laws.post_norm_normalises_rows.check(zoo.one_add_and_norm)
    assert finding.expected.tolist() == [[0, 1]]
    (layer,) = finding.example["layers"].draw()
    plain = {f"{name}_{i}": None for name in ("gain", "bias") for i in (1, 2)}
    Y = zoo.one_add_and_norm.layer(finding.example["X"], layer | plain, n_heads=2)
    assert_close(finding.got, [[Y.mean(), Y.var()]])


def test_attention_is_seen_through_the_norms_to_the_last_digit():
    """The weights of a query between two keys, read off a post-norm encoder."""
    Q, K = np.array([[1.0, 0.0]]), np.array([[1.0, 1.0], [-1.0, 1.0]])
    V = np.array([[1.0, 0.0], [0.0, 1.0]])
    expected = mha.scaled_dot_product_attention(Q, K, V)
    for norm_first in (False, True):
        encoder = as_subject(partial(mha.encoder, norm_first=norm_first, eps=0.5))
        encoder.known[("conventions", encoder.mode)] = 0.5, "relu"
        assert_close(encoder.attend(Q, K, V), expected)


# Laws


@pytest.mark.parametrize("name", LAWFUL)
def test_a_correct_encoder_satisfies_every_law(name):
    report = report_on(name)
    assert broken(report) == []
    assert report.looks_like is None
    assert len(report.findings) == len(laws.ALL) + len(laws.ENCODER)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_correct_encoder_satisfies_every_law_for_other_seeds(seed):
    assert broken(laws.check(mha.encoder, seed=seed)) == []


def unasked_but(report, *slugs):
    """Return what is not asked, besides these laws and those of attention alone."""
    left = [slug for slug in unasked(report) if slug not in slugs]
    assert left[: len(OF_ATTENTION_ALONE)] == OF_ATTENTION_ALONE
    assert set(slugs) <= set(unasked(report))
    return left[len(OF_ATTENTION_ALONE) :]


def test_what_cannot_be_asked_is_not_asked():
    integers = NEED_OTHER_MASKS[-1]
    few = integers, NEED_TENSORS
    assert unasked_but(report_on("stack"), *few) == [NEED_MODES]
    assert unasked_but(report_on("layer"), *few) == [NEED_MODES, NEED_A_STACK]
    assert unasked_but(report_on("zoo"), NEED_WEIGHTS, NEED_TENSORS) == []
    plain = mha.nn.Encoder(2, 8, 2, 12, norm_first=True, bias=False)
    ends = [NEED_BIASES, NEED_A_NORM_AT_THE_END]
    assert unasked_but(laws.check(plain), integers) == ends


def test_what_is_no_encoder_is_not_asked_about_encoders():
    for subject in (mha.scaled_dot_product_attention, mha.multi_head_attention):
        asked = [finding.law for finding in laws.check(subject).findings]
        assert tuple(asked) == laws.ALL
        finding = laws.batch_changes_nothing.check(subject)
        assert repr(finding).endswith("not asked, it is no encoder")


@every_law
def test_a_law_of_encoders_says_what_why_and_where(law):
    assert getattr(laws, law.slug) is law
    assert law.name[0].islower() and not law.name.endswith(".")
    assert law.equation and law.reason
    assert len(law.equation) <= 84
    assert law.chapter in ("encoder_layer", "encoder")
    assert law.level == "encoder"


def test_the_laws_of_encoders_come_in_the_order_of_the_book():
    assert [law.slug for law in laws.ENCODER if law.slug in SLUGS] == SLUGS
    chapters = [chapter_number(law.chapter) for law in laws.ENCODER]
    assert chapters == sorted(chapters)
    assert laws.WHOLE[-len(laws.ENCODER) :] == laws.ENCODER
    assert not set(laws.ENCODER) & set(laws.ALL)


def fails(law, subject, example):
    try:
        return isinstance(law.judge(subject, **example), laws.Failure)
    except NotApplicable:
        return False


@every_law
def test_the_failing_example_fails_again_and_spares_the_right_one(law):
    wrong = laws.kill_matrix(members=zoo.ENCODERS).kills(law.slug)[0]
    finding, again = (law.check(getattr(zoo, wrong)) for _ in range(2))
    assert repr(finding) == repr(again)
    subject, right = as_subject(getattr(zoo, wrong)), as_subject(zoo.right_encoder)
    assert any(fails(law, s, finding.example) for s in subject.variants())
    assert not any(fails(law, s, finding.example) for s in right.variants())


@pytest.mark.parametrize("member", zoo.ENCODERS[1:], ids=lambda member: member.name)
def test_the_report_names_the_wrong_encoder(member):
    report = laws.check(member, only=laws.WHOLE)
    assert not report
    assert report.looks_like is member
    assert all(len(line) <= 88 for line in repr(report).splitlines())


@pytest.mark.parametrize(
    ("name", "norm_first"),
    [
        ("no_scale", False),
        ("scale_sqrt_n", True),
        ("merge_without_transpose", False),
        ("tied_query_key", True),
        ("mask_zero_score", False),
    ],
)
def test_wrong_attention_inside_a_right_encoder_is_named(name, norm_first):
    wrong = partial(shell(getattr(zoo, name)), norm_first=norm_first)
    assert laws.check(wrong).looks_like is getattr(zoo, name)


def test_a_mistake_that_is_none_in_post_norm_is_found_in_pre_norm_and_said_to_be():
    finding = laws.silent_parts_pass_the_input_on.check(zoo.residual_after_norm)
    assert "norm_first=True" in finding.why
    post = partial(zoo.residual_after_norm, norm_first=False)
    assert laws.silent_parts_pass_the_input_on.check(post)


def test_the_attention_of_a_broken_shell_is_not_accused():
    report = laws.check(zoo.no_residual)
    rows = next(f for f in report.findings if f.law is laws.rows_sum_to_one)
    assert repr(rows).endswith("should bring home itself, not [inf, -inf]")


def with_sink(X, W_Q, W_K, W_V, W_O, n_heads, mask=None, *, is_causal=False, b_V=0,
              b_O=0, **biases):  # fmt: skip
    """Return half of the answer, as if a sink took the other half of the weight."""
    V = {"b_V": b_V} if np.any(b_V) else {}
    options = {"mask": mask, "is_causal": is_causal} | V | biases
    return mha.multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, **options) / 2 + b_O


def shared_keys(
    X, W_Q, W_K, W_V, W_O, n_heads, mask=None, *, is_causal=False, **biases
):
    """Two heads after each other share the keys and values of the first."""
    d = X.shape[-1] // n_heads
    kept = np.arange(X.shape[-1]) // d // 2 * 2 * d + np.arange(X.shape[-1]) % d
    biases |= {x: biases[x][kept] for x in ("b_K", "b_V") if x in biases}
    options = {"mask": mask, "is_causal": is_causal} | biases
    four = W_Q, W_K[:, kept], W_V[:, kept], W_O
    return mha.multi_head_attention(X, *four, n_heads, **options)


@pytest.mark.parametrize("norm_first", [False, True])
def test_attention_of_another_kind_is_seen_in_an_encoder(norm_first):
    """One token alone brings home a share, or what another head has read."""
    sink = laws.check(partial(shell(with_sink), norm_first=norm_first))
    assert {"rows_sum_to_one", "output_in_hull"} <= set(broken(sink))
    shared = laws.check(partial(shell(shared_keys), norm_first=norm_first))
    assert {"head_owns_its_columns", "equals_reference"} <= set(broken(shared))
    for report in (sink, shared):
        held = {finding.law.slug for finding in report.findings if finding}
        assert {"future_leaves_past_alone", "padding_changes_nothing"} <= held
        whys = {f.why for f in report.findings if f.holds is None}
        assert not any("one token alone" in why for why in whys)


def test_a_layer_that_looks_up_every_name_is_asked_about_its_attention():
    def run(X, weights, n_heads, mask=None):
        given = {name: weights[name] for name in laws.encoder_weights(0)[0]}
        return mha.encoder_layer(X, given, n_heads, mask)

    adapter = laws.Adapter(run, kind="encoder_layer", biases=True)
    spared = NEED_WEIGHTS, NEED_TENSORS, *NEED_OTHER_MASKS
    left = unasked_but(laws.check(adapter), *spared)
    assert left == [NEED_MODES, NEED_A_STACK]


def test_an_error_that_keeps_attention_from_being_seen_is_told():
    def run(X, weights, n_heads, mask=None):
        if n_heads > 2:
            raise KeyError("c_attn")
        return mha.encoder_layer(X, weights, n_heads, mask)

    adapter = laws.Adapter(run, kind="encoder_layer", biases=True)
    finding = laws.rows_sum_to_one.check(adapter)
    assert finding.holds is None
    assert finding.why == "one token alone gave no answer: KeyError: 'c_attn'"


def test_no_two_sizes_of_the_laws_are_roots_or_equal():
    n_heads, d_model = 2, laws.encoder_weights(0)[0]["W_Q"].shape[0]
    d_k = d_model // n_heads
    sizes = [1, d_k**0.5, d_k, d_model**0.5, d_model, 5**0.5, 2**0.5]
    assert len({round(size, 9) for size in sizes}) == len(sizes)


def test_the_width_of_a_head_and_the_root_of_d_model_are_told_apart():
    for name in ("scale_sqrt_d_model", "scale_by_d_k"):
        assert laws.check(shell(getattr(zoo, name))).looks_like is getattr(zoo, name)


def test_batch_norm_in_a_module_is_named_and_raises_at_a_batch_of_one():
    report = laws.check(WithBatchNorm(8, 2, 12))
    assert report.looks_like is zoo.batch_norm
    kills = {"batch_changes_nothing", "training_mode_changes_nothing"}
    assert kills < set(broken(report))
    silent = laws.silent_parts_pass_the_input_on.check(WithBatchNorm(8, 2, 12))
    assert "more than 1 value per channel" in silent.got
    place, mode = silent.why.splitlines()
    assert place.startswith("test_encoder.py:")
    assert mode == "train mode, no_grad"


@pytest.mark.parametrize("eps", [1e-5, 1e-6, 1e-12])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_neither_eps_nor_the_activation_is_a_matter_of_law(eps, activation):
    for norm_first in (False, True):
        options = {"eps": eps, "activation": activation, "norm_first": norm_first}
        unspoken = partial(mha.encoder, **options)
        assert (
            broken(laws.check(lambda X, layers, n, u=unspoken: u(X, layers, n))) == []
        )


def test_another_activation_gives_other_numbers_and_nobody_is_accused():
    def leaky(X, layers, n_heads, norm_first=False):
        for weights in layers:
            weights = weights | {"W_1": np.hstack([weights["W_1"], -weights["W_1"]])}
            if "b_1" in weights:
                b = weights["b_1"]
                weights |= {"b_1": np.hstack([b, -b])}
            weights |= {"W_2": np.vstack([weights["W_2"], -0.1 * weights["W_2"]])}
            X = mha.encoder_layer(X, weights, n_heads, norm_first=norm_first)
        return X

    report = laws.check(leaky)
    assert "equals_reference" in broken(report)
    assert report.looks_like is None


def test_inputs_and_weights_are_left_as_they_are():
    def writes(X, layers, n_heads, mask=None):
        Y = mha.encoder(X, layers, n_heads, mask)
        layers[0]["gain_1"] += 1
        return Y

    finding = laws.inputs_stay_untouched.check(writes)
    assert finding.why == "gain_1 of layer 0 after the call"


@pytest.mark.parametrize("name", STATES)
def test_a_module_that_is_handed_in_is_not_changed(name):
    module = LAWFUL[name]
    report_on(name)
    assert module.training
    state = module.state_dict()
    assert state.keys() == STATES[name].keys()
    assert all(torch.equal(x, STATES[name][key]) for key, x in state.items())


def test_one_line_in_a_test_is_enough_for_an_encoder():
    laws.assert_lawful(mha.encoder_layer)
    with pytest.raises(AssertionError, match=r"behaves like zoo\.one_add_and_norm"):
        laws.assert_lawful(zoo.one_add_and_norm)
    laws.assert_lawful(zoo.batch_norm, except_=killed_by(zoo.batch_norm))


# Agreement


@pytest.mark.parametrize(
    ("norm_first", "activation", "bias", "batch_first"),
    [
        (False, "relu", True, True),
        (False, "gelu", False, False),
        (True, "gelu", True, True),
        (True, "relu", False, True),
        (True, "relu", True, False),
    ],
)
def test_torchs_own_layer_breaks_no_law_but_that_of_empty_rows(
    norm_first, activation, bias, batch_first
):
    report = laws.check(theirs(norm_first, activation, bias, batch_first))
    # Its fast path, which gives NaN there, wants batch_first and biases.
    fast = bias and batch_first
    # It reads a float mask as one of bool, too: what is not 0 is hidden.
    assert broken(report) == ["empty_rows_give_zero", "float_masks_are_added"] * fast
    if fast:
        assert [f.why.splitlines()[-1] for f in report.broken] == [
            "eval mode, no_grad", "eval mode, no_grad",
        ]  # fmt: skip
    no_end = [NEED_A_NORM_AT_THE_END] * norm_first
    assert unasked_but(report, NEED_WEIGHTS, *NEED_OTHER_MASKS) == (
        [NEED_BIASES] * (not bias) + no_end + [NEED_A_STACK]
    )


def test_the_fast_path_of_torch_reads_a_float_mask_as_bool():
    """Nothing but torch: a bias of ln 3 hides what it is to bring out."""
    layer = theirs(batch_first=True).eval()
    X, bias = torch.randn(1, 2, 8), torch.tensor([[math.log(3), 0.0]] * 2)
    slow = layer(X, bias)
    with torch.no_grad():
        fast, hidden = layer(X, bias), layer(X, torch.tensor([[True, False]] * 2))
    assert torch.allclose(fast, hidden, atol=1e-6)
    assert not torch.allclose(fast, slow, atol=1e-3)


@pytest.mark.parametrize("norm_first", [False, True])
def test_torchs_own_stack_breaks_no_law_but_that_of_empty_rows(norm_first):
    plain = stack(theirs(norm_first))
    found = ["empty_rows_give_zero", "float_masks_are_added"]
    assert broken(laws.check(plain)) == found
    normed = stack(theirs(norm_first, batch_first=False), norm=nn.LayerNorm(8))
    report = laws.check(normed)
    assert report
    assert unasked_but(report, NEED_WEIGHTS, *NEED_OTHER_MASKS) == []


def test_a_module_in_half_precision_is_judged_in_full_precision():
    few = [laws.dtype_is_kept, *laws.WHOLE]
    assert laws.check(mha.nn.EncoderLayer(8, 2, 12, dtype=torch.float16), only=few)
    assert laws.check(theirs(batch_first=False).to(torch.bfloat16), only=few)


@pytest.mark.parametrize("member", zoo.ENCODERS[1:], ids=lambda member: member.name)
def test_a_wrong_encoder_breaks_the_same_laws_on_tensors(member):
    def run(X, layers, n_heads, mask=None, *, norm_first=False, is_causal=False,
            training=True):  # fmt: skip
        if not isinstance(X, torch.Tensor):
            raise TypeError("no tensor")
        options = {"norm_first": norm_first, "is_causal": is_causal}
        return member(X, layers, n_heads, mask, training=training, **options)

    assert set(broken(laws.check(run, only=laws.WHOLE))) == set(killed_by(member))


# Refusals


def test_a_part_that_was_exchanged_later_is_refused_by_name():
    """The class is built anew in other sizes, and would be judged without it."""
    layer = mha.nn.EncoderLayer(8, 2, 12)
    layer.norm_1 = BatchNorm(8)
    with pytest.raises(TypeError, match=r"norm_1 is LayerNorm, here BatchNorm"):
        laws.check(layer)
    layer = theirs()
    layer.linear2 = nn.Identity()
    with pytest.raises(TypeError, match=r"linear2 is Linear, here Identity"):
        laws.check(layer)


def test_a_stack_of_strange_layers_is_refused():
    with pytest.raises(TypeError, match=r"a module must be .* laws\.Adapter"):
        laws.check(stack(nn.Linear(3, 3)))


def test_an_encoder_that_gives_no_answer_is_refused_with_its_message():
    def stub(X, layers, n_heads):
        raise NotImplementedError("to be written")

    with pytest.raises(TypeError, match=r"encoder_weights\(0\).*to be written"):
        laws.check(stub)


def test_an_encoder_whose_rows_are_lost_breaks_laws_and_is_named():
    finding = laws.both_parts_write_on_one_stream.check(
        lambda X, layers, n_heads: mha.encoder(X, layers, n_heads)[..., :2]
    )
    assert finding.got == "an output of shape (1, 2), where (1, 6) is due"
