"""The laws: true of correct attention, false of some wrong one."""

import dataclasses
import functools
import html.parser
import inspect
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import mha
import mha.nn
from mha import laws, zoo
from mha._chapters import CHAPTERS, chapter_number
from mha.laws.subjects import as_subject
from mha.laws.subjects.conventions import Conventions
from tests.laws.reports import broken, killed_by, unasked

# The laws that the chapters print; others may stand between them.
SLUGS = """
rotation_changes_nothing rows_sum_to_one output_in_hull constant_values_stay
scores_keep_unit_variance doubling_changes_nothing masked_weights_are_zero
empty_rows_give_zero future_leaves_past_alone padding_changes_nothing self_only_mask
outputs_follow_tokens key_order_is_free shifting_keys_changes_nothing
scores_are_not_symmetric inputs_stay_untouched dtype_is_kept head_owns_its_columns
head_moves_its_own_slice concat_is_a_sum parameters_ignore_heads equals_reference
""".split()
NEED_MATRICES = """
head_owns_its_columns head_moves_its_own_slice concat_is_a_sum parameters_ignore_heads
""".split()
# What is asked of some only: of tensors, of what takes such a mask or shares keys.
NEED_MORE = "gradients_are_slopes integer_masks_hide groups_share_their_keys".split()
NEED_A_MASK = """
batch_masks_reach_their_own mask_and_causal_both_hide float_masks_are_added
integer_masks_hide
masked_weights_are_zero empty_rows_give_zero future_leaves_past_alone
padding_changes_nothing self_only_mask
""".split()

EVERYTHING = (*laws.ALL, *laws.ENCODER)

every_law = pytest.mark.parametrize("law", laws.ALL, ids=lambda law: law.slug)


def by_hand(Q, K, V):
    """Attention as chapter 2 has it: one head, no mask."""
    E = np.exp(Q @ K.T / K.shape[1] ** 0.5)
    return E / E.sum(1, keepdims=True) @ V


def stable_by_hand(Q, K, V):
    S = Q @ K.T / K.shape[1] ** 0.5
    E = np.exp(S - S.max(1, keepdims=True))
    return E / E.sum(1, keepdims=True) @ V


def self_attention_only(X, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    return mha.multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, mask)


def on_four_axes(query, key, value, attention_mask):
    """A function that insists on (batch, heads, n, d), on tensors and on a mask."""
    _batch, _heads, _n, _d = query.shape
    assert isinstance(attention_mask, torch.Tensor)
    return mha.nn.scaled_dot_product_attention(query, key, value, attention_mask)


def tensors_only(member):
    """Return the member as a function of tensors, to which arrays are an error."""

    def run(X, W_Q, W_K, W_V, W_O, n_heads, mask=None, *, X_k=None, X_v=None,
            is_causal=False, return_weights=False):  # fmt: skip
        if not isinstance(X, torch.Tensor):
            raise TypeError("no tensor")
        options = {"X_k": X_k, "X_v": X_v, "is_causal": is_causal}
        options["return_weights"] = return_weights
        return member(X, W_Q, W_K, W_V, W_O, n_heads, mask, **options)

    return run


def on_three_axes(X, W_q, W_k, W_v, W_o, num_heads, attn_mask=None):
    """A layer that insists on (batch, n, d)."""
    _batch, _n, _d = X.shape
    return mha.multi_head_attention(X, W_q, W_k, W_v, W_o, num_heads, attn_mask)


class SelfAttentionModule(torch.nn.Module):
    """A module of somebody's own: (batch, n, d) only, and no other tokens."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        for letter in "QKVO":
            setattr(self, f"W_{letter}", torch.nn.Linear(d_model, d_model))

    def forward(self, x, attention_mask=None):
        batch, n, d = x.shape
        cut = (batch, n, self.n_heads, -1)
        three = self.W_Q(x), self.W_K(x), self.W_V(x)
        Q, K, V = (y.view(cut).transpose(1, 2) for y in three)
        Y = F.scaled_dot_product_attention(Q, K, V, attention_mask)
        return self.W_O(Y.transpose(1, 2).reshape(batch, n, d))


class OnlyCallable:
    """A layer of somebody's own, with the parts the laws ask for."""

    def __call__(self, X, W_Q, W_K, W_V, W_O, n_heads, mask=None):
        return self_attention_only(X, W_Q, W_K, W_V, W_O, n_heads, mask)


LAWFUL = {
    "NumPy attention": mha.scaled_dot_product_attention,
    "NumPy layer": mha.multi_head_attention,
    "zoo": zoo.right,
    "zoo, attention": zoo.right.attention,
    "zoo, on tensors": tensors_only(zoo.right),
    "torch's function": F.scaled_dot_product_attention,
    "torch function": mha.nn.scaled_dot_product_attention,
    "module": mha.nn.MultiHeadAttention(6, 3),
    "module without bias": mha.nn.MultiHeadAttention(6, 3, bias=False),
    "module with dropout": mha.nn.MultiHeadAttention(6, 3, dropout=0.5),
    "module of self-attention": SelfAttentionModule(6, 3),
    "no mask": stable_by_hand,
    "lambda": lambda a, b, c: stable_by_hand(a, b, c),
    "partial": partial(mha.scaled_dot_product_attention, return_weights=True),
    "self-attention only": self_attention_only,
    "object": OnlyCallable(),
    "three axes": on_three_axes,
    "four axes, a mask in every call": on_four_axes,
}
STATES = {
    name: {key: x.clone() for key, x in module.state_dict().items()}
    for name, module in LAWFUL.items()
    if isinstance(module, torch.nn.Module)
}


@functools.cache
def report_on(name):
    """Return the report on a lawful subject; several tests read it."""
    return laws.check(LAWFUL[name])


# The same for the members of the zoo.
report_on_member = functools.cache(laws.check)


# By hand


def test_weights_that_sum_to_two_are_shown_with_their_sum():
    """Two equal keys, each taken with weight one: the row sums to 2."""

    def twice(Q, K, V):
        return 2 * stable_by_hand(Q, K, V)

    finding = laws.rows_sum_to_one.check(twice)
    assert finding.expected.tolist() == [1.0]
    assert finding.got.tolist() == [2.0]
    assert {name: x.shape for name, x in finding.example.items()} == {
        "Q": (1, 2),
        "K": (2, 2),
    }
    assert not any(x.any() for x in finding.example.values())


def test_a_finding_reads_as_one_block():
    assert repr(laws.rows_sum_to_one.check(zoo.scale_after_softmax.attention)) == (
        f"✗ every row of weights sums to one (chapter {chapter_number('softmax')})\n"
        "    law       laws.rows_sum_to_one\n"
        "    Q         [[0, 0]]\n"
        "    K         [[0, 0], [0, 0]]\n"
        "    expected  [1]\n"
        "    got       [0.707]\n"
        "    seed      0\n"
        "    because   each exponential is divided by the sum of its row, "
        "whatever the scores"
    )


def test_a_law_that_holds_takes_one_line():
    finding = laws.constant_values_stay.check(mha.scaled_dot_product_attention)
    chapter = chapter_number("softmax")
    law = laws.constant_values_stay.name
    assert repr(finding) == f"✓ {law} (chapter {chapter})"


def test_a_law_that_cannot_be_asked_says_why():
    finding = laws.concat_is_a_sum.check(mha.scaled_dot_product_attention)
    assert finding.holds is None
    assert not finding
    assert repr(finding).endswith("not asked, it has no weight matrices")


def test_a_law_of_your_own_kills_somebody_and_spares_the_right_one():
    def sees_value(attention, Q, K, V):
        return np.allclose(attention.attend(Q, K, V), V)

    def cases(rng):
        yield {"Q": rng.random((1, 2)), "K": rng.random((1, 2)), "V": np.ones((1, 2))}

    law = laws.Law("one_key", "one key takes all", cases=cases, judge=sees_value)
    matrix = laws.kill_matrix([law])
    assert "scale_after_softmax" in matrix.kills("one_key")
    assert "right" not in matrix.kills("one_key")


def test_a_law_of_your_own_that_is_false_accuses_the_right_one():
    law = laws.Law(
        "never", "never", cases=lambda rng: [{}], judge=lambda subject: False
    )
    assert laws.kill_matrix([law]).kills("never")[0] == "right"


# Laws


@pytest.mark.parametrize("name", LAWFUL)
def test_correct_attention_satisfies_every_law(name):
    report = report_on(name)
    assert broken(report) == []
    assert report.holds


@pytest.mark.parametrize("seed", range(1, 8))
def test_correct_attention_satisfies_every_law_for_other_seeds(seed):
    for subject in (mha.scaled_dot_product_attention, mha.multi_head_attention):
        assert broken(laws.check(subject, seed=seed)) == []


@every_law
def test_every_law_kills_somebody(law):
    assert laws.kill_matrix().kills(law.slug)


@every_law
def test_the_failing_example_is_reproducible_fails_again_and_spares_the_right_one(law):
    wrong = laws.kill_matrix().kills(law.slug)[0]
    member = getattr(zoo, wrong)
    finding, again = law.check(member), law.check(member)
    # Only what is random shows other numbers.
    assert (repr(finding) == repr(again)) == (law is not laws.calls_agree)
    assert isinstance(law.ask(as_subject(member), finding.example), laws.Failure)
    right = as_subject(zoo.right, Conventions(**member.says))
    right = right.but(tensors=as_subject(member).tensors)
    assert law.ask(right, finding.example) is None


@every_law
def test_a_law_says_what_why_and_where(law):
    assert getattr(laws, law.slug) is law
    assert law.name[0].islower() or law.name[0].isdigit()
    assert not law.name.endswith(".")
    assert law.equation
    assert law.reason
    assert law.chapter in CHAPTERS
    assert (law.level == "layer") == (law.slug in NEED_MATRICES)


def test_the_laws_come_in_the_order_of_the_book():
    assert [law.slug for law in laws.ALL if law.slug in SLUGS] == SLUGS
    chapters = [chapter_number(law.chapter) for law in laws.ALL]
    assert chapters == sorted(chapters)


def test_no_two_laws_have_one_name():
    assert len({law.slug for law in EVERYTHING}) == len(EVERYTHING)
    assert len({law.name for law in EVERYTHING}) == len(EVERYTHING)


@pytest.mark.parametrize("chapter", [None, "", "my seminar", "chapter 4"])
def test_a_law_of_your_own_may_name_any_chapter_and_no_number_is_made_up(chapter):
    law = dataclasses.replace(laws.rows_sum_to_one, chapter=chapter)
    report = laws.check(by_hand, only=[law])
    assert repr(law).splitlines()[0] == law.name
    assert repr(law.check(stable_by_hand)) == f"✓ {law.name}"
    assert f"\n✗ {law.name}\n" in repr(report)
    assert f'<tr><td></td><th scope="row">{law.name}</th>' in report._repr_html_()


def test_what_has_no_matrices_is_not_asked_about_them():
    assert unasked(report_on("NumPy attention")) == [*NEED_MATRICES, *NEED_MORE]


def test_what_takes_no_mask_is_not_asked_about_masks():
    others = {"batches_and_heads_stay_apart", "causal_corner", *NEED_MORE}
    others.add("returned_weights_make_the_output")
    assert set(unasked(report_on("no mask"))) == {*NEED_A_MASK, *NEED_MATRICES, *others}


def test_the_softmax_of_chapter_two_overflows_and_the_laws_see_it():
    assert broken(laws.check(by_hand)) == ["rows_sum_to_one"]
    assert laws.check(by_hand).looks_like is zoo.no_max_subtraction


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (mha.multi_head_attention, "mha.multi_head_attention"),
        (mha.nn.scaled_dot_product_attention, "mha.nn.scaled_dot_product_attention"),
        (mha.nn.MultiHeadAttention(6, 3), "mha.nn.MultiHeadAttention"),
        (torch.nn.MultiheadAttention(6, 3), "torch.nn.MultiheadAttention"),
        (zoo.no_scale, "zoo.no_scale"),
        (zoo.no_scale.attention, "zoo.no_scale.attention"),
        (lambda Q, K, V: V, "a lambda"),
        (by_hand, "by_hand"),
        (OnlyCallable(), "OnlyCallable"),
    ],
)
def test_a_subject_is_called_by_the_name_one_imports_it_by(subject, name):
    assert as_subject(subject).name == name


@pytest.mark.parametrize("name", STATES)
def test_a_module_that_is_handed_in_is_not_changed(name):
    module = LAWFUL[name]
    report_on(name)
    assert module.training
    state = module.state_dict()
    assert state.keys() == STATES[name].keys()
    assert all(torch.equal(x, STATES[name][key]) for key, x in state.items())


def test_a_module_is_asked_with_its_dropout_off():
    always = mha.nn.MultiHeadAttention(6, 3, dropout=0.99)
    assert laws.rows_sum_to_one.check(always)


def test_checking_draws_no_number_from_anybodys_generator():
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    laws.check(mha.multi_head_attention)
    laws.check(F.scaled_dot_product_attention)
    drawn = np.random.random(), torch.rand(()).item()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    assert drawn == (np.random.random(), torch.rand(()).item())  # noqa: NPY002


def test_laws_do_not_load_torch_unless_the_subject_did():
    code = (
        "import sys; from mha import laws, zoo;"
        "laws.rows_sum_to_one.check(zoo.no_scale); print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_a_bug_that_is_right_on_arrays_and_wrong_in_one_mode_is_found_there():
    class LeaksInEval(mha.nn.MultiHeadAttention):
        def forward(self, query, key=None, value=None, mask=None):
            mask = mask if self.training else None
            return super().forward(query, key, value, mask)

    finding = laws.self_only_mask.check(LeaksInEval(4, 2))
    assert finding.holds is False
    assert "eval mode" in finding.why
    assert "train mode" not in finding.why


def test_masks_that_do_not_reach_the_gradient_are_found_there():
    """NaN is replaced after the softmax: the output is fine and the gradient is not."""

    def repaired_too_late(Q, K, V, mask=None):
        S = Q @ K.mT / K.shape[-1] ** 0.5
        if mask is not None:
            S = S + torch.zeros_like(S).masked_fill(~mask, -torch.inf)
        return S.softmax(-1).nan_to_num(0) @ V

    report = laws.check(repaired_too_late)
    assert broken(report) == ["empty_rows_give_zero"]
    assert "gradients" in report.broken[0].why


def test_a_leak_between_the_samples_of_a_batch_is_found():
    assert not laws.outputs_follow_tokens.check(zoo.attends_across_batch)
    assert not laws.padding_changes_nothing.check(zoo.mask_in_wrong_order)


@pytest.mark.parametrize("law", ["rows_sum_to_one", laws.rows_sum_to_one])
def test_one_law_alone_can_be_asked(law):
    assert [f.law.slug for f in laws.check(by_hand, only=[law]).findings] == [
        "rows_sum_to_one"
    ]


def test_one_line_in_a_test_is_enough():
    laws.assert_lawful(mha.multi_head_attention)
    with pytest.raises(AssertionError, match=r"behaves like zoo\.no_scale"):
        laws.assert_lawful(zoo.no_scale)
    laws.assert_lawful(zoo.no_scale, except_=killed_by(zoo.no_scale))


# The report


def test_the_report_names_the_wrong_version_and_shows_its_mistake():
    report = report_on_member(zoo.scale_sqrt_n)
    assert report.looks_like is zoo.scale_sqrt_n
    lines = repr(report).splitlines()
    kills = len(killed_by(zoo.scale_sqrt_n))
    assert kills
    asked = len(laws.ALL) - len(unasked(report))
    assert lines[0].startswith(
        f"zoo.scale_sqrt_n: {asked - kills} hold, {kills} broken"
    )
    named = lines.index("behaves like zoo.scale_sqrt_n")
    assert lines[named + 1].strip() == zoo.scale_sqrt_n.wrong


def test_somebody_elses_bug_is_recognised_beside_a_second_one():
    """NumPy's square root is a float64, and so is all that follows."""

    def masked_with_a_small_number(Q, K, V, mask=None):
        S = Q @ K.T / np.sqrt(K.shape[1])
        S = S if mask is None else np.where(mask, S, -1e15)
        E = np.exp(S - S.max(1, keepdims=True))
        return E / E.sum(1, keepdims=True) @ V

    report = laws.check(masked_with_a_small_number)
    assert broken(report) == ["empty_rows_give_zero", "dtype_is_kept"]
    assert report.looks_like is zoo.minus_1e9_mask


def test_nobody_is_accused_where_several_could_be_meant():
    def halved(Q, K, V):
        return stable_by_hand(Q, K, V) / 2

    report = laws.check(halved, only=["rows_sum_to_one"])
    assert not report
    assert report.looks_like is None


def test_a_lawful_subject_looks_like_nothing_in_the_zoo():
    assert report_on("NumPy attention").looks_like is None


@pytest.mark.parametrize("member", zoo.ALL, ids=lambda member: member.name)
def test_the_text_fits_a_page_and_has_three_decimals(member):
    text = repr(report_on_member(member))
    assert all(len(line) <= 88 for line in text.splitlines())
    assert not any(len(word.partition(".")[2].rstrip("],;")) > 3
                   for word in text.split() if word[0].isdigit())  # fmt: skip


class Page(html.parser.HTMLParser):
    """Collects tags and text, and that every tag is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.mark.parametrize(
    "show",
    [
        lambda: report_on("NumPy attention"),
        lambda: report_on_member(zoo.no_scale),
        lambda: laws.rows_sum_to_one.check(by_hand),
        lambda: laws.kill_matrix(),
    ],
    ids=["lawful", "broken", "finding", "kill matrix"],
)
def test_the_html_is_well_formed_named_and_without_colours(show):
    text = show()._repr_html_()
    page = Page(text)
    tables = [tag for tag, _ in page.tags if tag == "table"]
    captions = [tag for tag, _ in page.tags if tag == "caption"]
    assert len(tables) == len(captions)
    assert all(
        attrs.get("scope") in {"row", "col"} for t, attrs in page.tags if t == "th"
    )
    assert "color" not in text
    assert "background" not in text


def test_the_html_says_in_words_what_the_marks_say():
    page = Page(report_on("NumPy attention")._repr_html_())
    cells = [word for word in page.words if word[0] in "✓✗–"]
    assert set(cells) == {"✓ holds", "– not asked"}


def test_the_html_links_to_where_the_wrong_version_was_seen():
    page = Page(report_on_member(zoo.no_scale)._repr_html_())
    assert ("a", {"href": zoo.no_scale.link}) in page.tags
    assert zoo.no_scale.seen in page.words


def test_names_are_escaped_in_html():
    def attend(Q, K, V):
        return stable_by_hand(Q, K, V)

    attend.__name__ = "<script>"
    assert "<script>" not in laws.check(attend)._repr_html_()


# Agreement


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_torchs_own_layer_breaks_the_law_of_empty_rows_and_no_other(bias, batch_first):
    module = torch.nn.MultiheadAttention(6, 3, bias=bias, batch_first=batch_first)
    report = laws.check(module)
    assert broken(report) == ["empty_rows_give_zero"]
    no_is_causal = ["mask_and_causal_both_hide", "causal_corner"]
    assert unasked(report) == [*no_is_causal, *NEED_MORE[1:]]
    assert report.looks_like is zoo.nan_on_empty_rows
    assert np.isnan(report.broken[0].got).any()


def test_the_report_says_in_which_modes_torchs_layer_gives_nan():
    """Without weights only the fast path, eval without gradients, gives NaN."""
    module = torch.nn.MultiheadAttention(6, 3, batch_first=True)
    assert laws.empty_rows_give_zero.check(module).why.splitlines() == [
        "train mode, need_weights=True",
        "eval mode, need_weights=True",
        "eval mode, no_grad, need_weights=False",
        "eval mode, no_grad, need_weights=True",
    ]


def test_what_torchs_layer_adds_to_the_keys_is_not_forgotten():
    module = torch.nn.MultiheadAttention(6, 3, add_zero_attn=True)
    assert "rows_sum_to_one" in broken(laws.check(module))


@pytest.mark.parametrize("member", zoo.WRONG, ids=lambda member: member.name)
def test_a_member_breaks_the_same_laws_on_tensors(member):
    # torch's own number type for 0.0 is float32, so this one is harmless there.
    expected = set(killed_by(member)) - {"dtype_is_kept"}
    if member is zoo.dropout_in_evaluation:
        assert not laws.calls_agree.check(tensors_only(member))
        return
    subject = as_subject(tensors_only(member), Conventions(**member.says))
    found = set(broken(laws.check(subject)))
    # Only tensors have gradients, and what is wrong may have wrong ones too.
    assert found - {"gradients_are_slopes"} == expected - {"gradients_are_slopes"}


# Refusals


@pytest.mark.parametrize("subject", ["x", None, 3, np.ones(3), np.ndarray])
def test_what_does_not_attend_is_refused_with_what_would_be_accepted(subject):
    with pytest.raises(TypeError, match=r"f\(Q, K, V, mask=None\).*got"):
        laws.check(subject)


def test_a_function_of_two_arguments_is_refused_with_its_signature():
    def f(x, y):
        return x

    with pytest.raises(TypeError, match=r"got f\(x, y\)"):
        laws.check(f)


def test_a_class_is_refused_where_its_instance_is_meant():
    with pytest.raises(TypeError, match="the class MultiHeadAttention"):
        laws.check(mha.nn.MultiHeadAttention)


def test_an_unknown_module_is_refused_with_the_one_line_that_helps():
    with pytest.raises(TypeError, match=r"W_Q, W_K, W_V, W_O.*f\(X, W_Q"):
        laws.check(torch.nn.Linear(3, 3))


def test_a_module_that_cannot_be_built_in_other_sizes_says_so():
    class OneSize(mha.nn.MultiHeadAttention):
        def __init__(self):
            super().__init__(6, 3)

    with pytest.raises(TypeError, match=r"OneSize\(d_model, n_heads\) failed"):
        laws.check(OneSize())


def test_an_unknown_law_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"'no_such_law'; there are rotation_changes"):
        laws.check(mha.scaled_dot_product_attention, only=["no_such_law"])


def test_a_subject_that_always_raises_is_refused_with_its_message():
    def stub(Q, K, V, mask=None):
        raise NotImplementedError("to be written")

    with pytest.raises(TypeError, match="NotImplementedError: to be written"):
        laws.check(stub)


def test_a_subject_that_returns_no_array_is_refused():
    def forgot(Q, K, V, mask=None):
        stable_by_hand(Q, K, V)

    with pytest.raises(TypeError, match="it returned NoneType, not an array"):
        laws.check(forgot)


def test_an_output_of_the_wrong_shape_breaks_laws_and_is_named():
    """Token by token the answers are right, and they stand in columns."""

    def sideways(Q, K, V, mask=None):
        return mha.scaled_dot_product_attention(Q, K, V, mask).T

    finding = laws.output_in_hull.check(sideways)
    assert finding.got == "an output of shape (2, 1), where (1, 2) is due"
    assert not laws.check(sideways)


def test_a_subject_that_raises_on_some_inputs_breaks_a_law_with_its_message():
    def square_only(Q, K, V):
        return stable_by_hand(Q, K.reshape(Q.shape), V)

    finding = laws.rows_sum_to_one.check(square_only)
    assert finding.holds is False
    assert finding.got.startswith("ValueError: cannot reshape")


@pytest.mark.parametrize(
    "function",
    [
        laws.check,
        laws.assert_lawful,
        laws.kill_matrix,
        laws.Law.check,
        laws.Law.search,
    ],
)
def test_public_functions_document_every_parameter(function):
    names = [n for n in inspect.signature(function).parameters if n != "self"]
    assert all(f"{name} : " in inspect.getdoc(function) for name in names)
