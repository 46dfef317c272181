"""Every law: a sentence, true of what is right, and false of some bug; and the rule."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch.nn.functional as F

import mha
from mha import designs, laws, zoo
from mha.laws.judge import paired, weights_of
from tests.laws.reports import STORED, broken

attend = mha.scaled_dot_product_attention
every_law = pytest.mark.parametrize("law", laws.ALL, ids=lambda law: law.name)
# No member of the zoo has a cache or dropout: test_tensors.py and test_modules.py break
# these laws.
ELSEWHERE = "one_at_a_time_is_all_at_once", "hidden_in_training_too"
BY_THE_ZOO = [x for x in laws.ALL if x.name not in ELSEWHERE]


def killed_by(law):
    """Return the members of the zoo that a law kills."""
    return [getattr(zoo, name) for name in STORED if law.name in STORED[name]]


# A law


@every_law
def test_a_law_says_what_and_why(law):
    assert getattr(laws, law.name) is law
    assert not law.sentence[0].isupper() and not law.sentence.endswith(".")
    assert law.equation and law.reason
    assert repr(law).splitlines()[0] == law.sentence


def test_each_law_is_in_one_of_the_three_lists_and_in_none_twice():
    assert laws.ALL == laws.ATTENTION + laws.CALLS + laws.ENCODER
    assert len({law.name for law in laws.ALL}) == len(laws.ALL)
    assert {law.name for law in laws.ALL} <= {*dir(laws)}
    with pytest.raises(AttributeError, match="no law is called 'gravity'"):
        _ = laws.gravity


@pytest.mark.parametrize("law", BY_THE_ZOO, ids=lambda law: law.name)
def test_the_smallest_example_breaks_the_law_again_and_not_for_the_right_one(law):
    assert not {zoo.right, zoo.right_encoder} & {*killed_by(law)}
    wrong = killed_by(law)[0]
    wrong = laws.torch(wrong) if wrong.on_tensors else wrong
    finding = law.check(wrong)
    assert finding.verdict == "broken"
    assert repr(finding).startswith("✗ " + law.sentence)
    subject, right = paired(wrong)
    subject.head = right.head = finding.breach["head"]
    # What is random may agree with itself now and then.
    tries = 50 if law is laws.calls_agree else 1
    assert any(law.ask(subject, finding.example) for _ in range(tries))
    assert not isinstance(law.ask(right, finding.example), laws.Failure)


def test_shrinking_sets_to_0_what_the_failure_does_not_need():
    finding = laws.constant_values_stay.check(zoo.softmax_over_queries)
    left, drawn = (
        sum(np.count_nonzero(case[x]) for x in ("Q", "K"))
        for case in (finding.example, finding.breach)
    )
    assert left < drawn
    assert not np.allclose(finding.expected, finding.got, atol=0.01)


def test_a_row_of_weights_by_hand():
    Q, K = np.array([[math.log(3)]]), np.array([[1.0], [0.0]])
    np.testing.assert_allclose(weights_of(attend, Q, K), [[0.75, 0.25]])


def test_a_law_is_a_plain_function_of_attention_and_inputs():
    Q, K = np.array([[math.log(3)]]), np.array([[1.0], [0.0]])
    assert laws.rows_sum_to_one(attend, Q=Q, K=K) is None
    failure = laws.rows_sum_to_one(lambda *given: 2 * attend(*given), Q=Q, K=K)
    assert (failure.expected, failure.got) == (1, 2)


def test_a_tolerance_forgives_what_is_smaller_and_nothing_else():
    def rounded(Q, K, V):
        return attend(Q, K, V).round(3)

    law = ["equals_reference"]
    assert broken(laws.check(rounded, law)) == law
    assert laws.check(rounded, law, tolerance=0.01)
    assert not laws.check(rounded, law, tolerance=0.0001)


def test_a_seed_fixes_the_inputs_and_another_draws_others():
    law = laws.key_order_is_free
    first, again, other = (
        law.check(zoo.key_reshaped.attention, seed=s) for s in (3, 3, 4)
    )
    assert repr(first) == repr(again) != repr(other)
    assert first.seed == 3


def test_six_threads_find_what_one_finds():
    members = [zoo.no_scale.attention, zoo.mask_ignored.attention, attend] * 2
    few = ["scores_keep_unit_variance", "padding_changes_nothing", "equals_reference"]
    alone = [repr(laws.check(x, few)) for x in members[:3]] * 2
    with ThreadPoolExecutor(6) as pool:
        reports = pool.map(lambda member: repr(laws.check(member, few)), members)
        assert list(reports) == alone


# A law of one's own


@laws.law("silent keys share", "k = 0 ⇒ y = mean of V", "all scores are 0")
def silent_keys_share(attend, Q, V):
    return laws.differs(V.mean(0, keepdims=True).repeat(len(Q), 0), attend(Q, 0 * V, V))


def test_a_law_of_ones_own_is_asked_like_the_others():
    assert silent_keys_share.check(mha.multi_head_attention).holds
    report = laws.check(zoo.scale_after_softmax, [silent_keys_share])
    assert broken(report) == ["silent_keys_share"]
    assert "k = 0" not in repr(report) and "because   all scores are 0" in repr(report)
    again = pickle.loads(pickle.dumps(report))
    assert repr(again) == repr(report)
    matrix = laws.kill_matrix([silent_keys_share], [zoo.right, zoo.scale_after_softmax])
    assert matrix.kills("silent_keys_share") == ("scale_after_softmax",)


def test_an_input_that_nothing_draws_is_refused_with_the_names_that_are_drawn():
    @laws.law("a law of Z")
    def of_z(attend, Q, Z):
        return True

    with pytest.raises(TypeError, match=r"the input Z, .* Q, K, V, X, v, mask"):
        of_z.check(attend)


def test_a_step_that_was_broken_is_found_though_it_is_what_is_compared_with(
    monkeypatch,
):
    right = mha.softmax
    monkeypatch.setattr("mha.masks.softmax", lambda S, axis=-1: 7 * right(S, axis))
    assert laws.rows_sum_to_one.breaks(attend)


def test_a_law_returns_none_or_a_truth_or_what_differs():
    for returned, verdict in ((None, "holds"), (True, "holds"), (False, "broken")):
        law = laws.law("own", alone=True)(lambda attend, Q, given=returned: given)
        assert law.check(attend).verdict == verdict
    with pytest.raises(TypeError, match="first argument of a law must be one of atten"):
        laws.law("own")(lambda f, Q: True)


# The rule: the reference decides what is asked, and which numbers are due


def causal(Q, K, V, mask=None):
    return attend(Q, K, V, designs.both(mask, designs.causal(Q, K)))


def alibi(Q, K, V, mask=None):
    S = designs.scores(Q, K) + designs.alibi(Q, K)
    return designs.weights(S, mask) @ V


def test_what_differs_on_purpose_is_right_beside_a_reference_that_does_the_same():
    def unscaled(Q, K, V, mask=None):
        return attend(Q, K, V, mask, scale=1.0)

    few = ["rows_sum_to_one", "scores_keep_unit_variance", "equals_reference"]
    assert not laws.check(unscaled, few)
    report = laws.check(unscaled, few, reference=unscaled)
    assert report.holds
    why = "the reference does not keep it"
    assert "scores_keep_unit_variance" in report.unasked[why]


def test_a_reference_that_raises_stops_the_check_and_silences_no_law():
    def raises(Q, K, V, mask=None):
        if len(K) == 40:  # as many keys as equals_reference alone asks about
            raise IndexError("a slip of the reference")
        return attend(Q, K, V, mask)

    with pytest.raises(laws.WrongReference, match=r"raises raised IndexError: a slip"):
        laws.check(attend, reference=raises)


def test_a_reference_that_gives_nan_is_blamed_and_not_the_subject():
    def overflows(Q, K, V, mask=True):
        with np.errstate(all="ignore"):
            E = np.exp(designs.scores(Q, K)) * (True if mask is None else mask)
            return E / E.sum(-1, keepdims=True) @ V

    with pytest.raises(laws.WrongReference, match="the reference gave NaN"):
        laws.check(attend, reference=overflows)


@pytest.mark.parametrize("refusal", [NotImplementedError, laws.NotAsked])
def test_a_reference_may_say_that_it_has_no_answer(refusal):
    def without_masks(Q, K, V, mask=None):
        if mask is not None:
            raise refusal("masks are not written yet")
        return attend(Q, K, V)

    few = ["rows_sum_to_one", "self_only_mask"]
    report = laws.check(attend, few, reference=without_masks)
    assert report.holds
    assert "self_only_mask" in report.unasked["masks are not written yet"]


def test_a_wrong_reference_is_found_by_the_right_numbers():
    few = ["scores_keep_unit_variance", "equals_reference"]
    report = laws.check(attend, few, reference=zoo.no_scale.attention)
    assert "equals_reference" in broken(report)
    assert "scores_keep_unit_variance" not in broken(report)


def test_an_error_of_the_subject_is_broken_and_its_refusal_is_not():
    def raises(Q, K, V, error=KeyError):
        raise error("c_attn")

    def refuses(Q, K, V):
        raises(Q, K, V, NotImplementedError)

    (finding,) = laws.check(raises, ["rows_sum_to_one"]).broken
    assert (finding.verdict, finding.got) == ("raised", "KeyError: 'c_attn'")
    report = laws.check(refuses, ["rows_sum_to_one"])
    assert not report.holds and not report.broken
    assert list(report.unasked) == ["c_attn"]


def test_the_subject_is_asked_first_so_the_reference_need_not_know_what_it_refuses():
    def of_padding(Q, K, V, mask=None):
        laws.padding(mask, Q)  # refuses all other masks
        return attend(Q, K, V, mask)

    def raises_too(Q, K, V, mask=None):
        if mask is not None and mask.shape[-2] > 1:
            raise ValueError("only rows")
        return attend(Q, K, V, mask)

    few = ["padding_changes_nothing", "self_only_mask"]
    report = laws.check(of_padding, few, reference=raises_too)
    assert report.held == ["padding_changes_nothing"]
    assert report.unasked == {"it takes a mask of padding only": ["self_only_mask"]}


def test_what_a_numpy_reference_cannot_do_is_asked_of_the_subject_all_the_same():
    def stopped(Q, K, V, mask=None):
        return F.scaled_dot_product_attention(Q, K.detach(), V, mask)

    for reference in (None, attend, alibi):
        finding = laws.gradients_are_slopes.check(laws.torch(stopped), reference)
        assert finding.verdict == "broken"


def test_subject_and_reference_are_asked_in_the_same_way():
    """One takes keys of other tokens; were they handed to it alone, numbers differ."""

    def layer(X, W_Q, W_K, W_V, W_O, n_heads, mask=None):
        return mha.multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, mask)

    few = ["rows_sum_to_one", "equals_reference"]
    for pair in ((layer, mha.multi_head_attention), (mha.multi_head_attention, layer)):
        assert laws.check(pair[0], few, reference=pair[1]).held == few


def test_rows_that_see_nothing_are_not_compared():
    def mean_of_all(Q, K, V, mask=None, is_causal=False):
        Y = attend(Q, K, V, mask, is_causal=is_causal)
        if mask is None:
            return Y
        seen = mask & np.tri(*mask.shape[-2:], dtype=bool) if is_causal else mask
        empty = ~np.broadcast_to((seen != 0).any(-1, keepdims=True), (*Y.shape[:-1], 1))
        return np.where(empty, V.mean(-2, keepdims=True), Y)

    few = ["empty_rows_give_zero", "mask_and_causal_both_hide", "equals_reference"]
    assert broken(laws.check(mean_of_all, few)) == ["empty_rows_give_zero"]


def test_heads_that_differ_are_asked_one_by_one():
    """With a slope for each head, a mean over heads would keep no law of ratios."""
    few = ["rows_sum_to_one", "shifting_keys_changes_nothing", "equals_reference"]
    assert laws.check(designs.in_heads(alibi), few, reference=alibi).held == few


def test_a_design_with_positions_is_asked_where_there_are_as_many_queries_as_keys():
    def rotary(Q, K, V, mask=None):
        return causal(designs.rotary(Q), designs.rotary(K), V, mask)

    few = ["rows_sum_to_one", "output_in_hull", "only_distance_counts"]
    assert laws.check(rotary, few, reference=rotary).held == few
    assert broken(laws.check(rotary, few, reference=causal)) == []
    assert laws.equals_reference.breaks(rotary, causal)


def test_a_law_is_asked_on_those_inputs_where_the_reference_keeps_it():
    def first_four(Q, K, V):
        return attend(Q, K[..., :4, :], V[..., :4, :])

    law = laws.silent_query_takes_the_mean
    subject, reference = paired(lambda Q, K, V: V[:1], first_four)
    short = law.judged(subject, reference, {"n_k": 2, "seed": 0})
    assert isinstance(short.verdict, laws.Failure)
    _, verdict, other = law.judged(subject, reference, {"n_k": 257, "seed": 0})
    assert str(verdict) == "the reference does not keep it"
    given, expected, got = other  # and yet its numbers are due
    np.testing.assert_allclose(expected, given["V"][:4].mean(0, keepdims=True))
    assert np.array_equal(got, given["V"][:1])


def test_masks_of_numbers_are_probed_before_they_are_asked():
    """`mask == 0` hides, so that floats would accuse what reads booleans rightly."""

    def hides_zeros(Q, K, V, mask=None):
        return attend(Q, K, V, None if mask is None else mask != 0)

    report = laws.check(hides_zeros, ["float_masks_are_added", "integer_masks_hide"])
    assert report.held == ["integer_masks_hide"]
    (why,) = report.unasked
    assert why == "a mask of floats, all 0, hides keys: hand over booleans"


def test_a_layer_is_asked_about_the_attention_in_its_heads():
    def unscaled(X, W_Q, W_K, W_V, W_O, n_heads, mask=None):
        W_Q = W_Q * math.sqrt(len(W_Q) / n_heads)
        return mha.multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, mask)

    finding = laws.scores_keep_unit_variance.check(unscaled)
    assert finding.verdict == "broken"
    assert finding.asked == "head 1, alone"
    encoder = laws.rows_sum_to_one.check(mha.encoder)
    assert encoder.why == "norms stand around its attention: check that alone"


def test_other_numbers_on_the_inputs_of_any_law_break_equals_reference():
    few, clipped = ["rows_sum_to_one", "equals_reference"], zoo.clips_scores.attention
    assert laws.check(clipped, ["equals_reference"]).holds
    (finding,) = laws.check(clipped, few).broken
    assert finding.where == "inputs of rows_sum_to_one"
    np.testing.assert_allclose(finding.expected, [[1, 0]], atol=1e-9)


def test_a_layer_that_gives_nan_is_not_said_to_remember_a_call():
    def blocked(Q, K, V):  # it loses what does not fill a block of 4
        n = K.shape[-2] // 4 * 4
        Y = mha.scaled_dot_product_attention(Q, K[..., :n, :], V[..., :n, :])
        return Y if n else Y * np.nan

    report = laws.check(blocked)
    assert {"calls_agree", "calls_do_not_remember"} <= {*report.held}
    assert "every_length_alike" in [x.law for x in report.broken]


def test_a_report_names_the_biases_that_a_reference_does_not_take():
    def plain(X, W_Q, W_K, W_V, W_O, n_heads, mask=None):
        return mha.multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, mask)

    few = ["equals_reference"]
    (note,) = laws.check(mha.multi_head_attention, few, reference=plain).notes
    assert note.startswith("never used: b_K, b_O, b_Q, b_V, which the reference")
    assert laws.check(plain, few, reference=plain).notes == ()


def test_what_remembers_or_is_random_is_asked_nothing_else():
    for member in (zoo.remembers_the_mask, zoo.dropout_in_evaluation):
        report = laws.check(member)
        assert len(report.broken) == 1 and {*report.held} <= {"calls_agree"}
        assert report.alike == ""


def test_the_same_wrong_numbers_have_the_name_of_the_zoo():
    def unscaled(Q, K, V, mask=None):
        Q = np.asarray(Q, np.float64)  # conventions make no other bug of it
        return attend(Q, K, V, mask, scale=1.0)

    few = ["scores_keep_unit_variance", "dtype_is_kept", "equals_reference"]
    report = laws.check(unscaled, few)
    assert "dtype_is_kept" in broken(report)
    assert (report.alike, report.wrong) == ("no_scale", zoo.no_scale.wrong)
    assert laws.check(lambda Q, K, V: 2 * attend(Q, K, V), few).alike == ""


def test_other_numbers_are_answered_with_the_question_for_a_reference():
    law, layer = ["equals_reference"], designs.in_heads(causal)
    (note,) = laws.check(layer, law).notes
    assert "If it differs on purpose" in note and "reference=" in note
    assert laws.check(layer, law, reference=causal).notes == ()


def test_an_argument_that_no_law_knows_is_told():
    def cached(Q, K, V, mask=None, layer_past=None):
        return attend(Q, K, V, mask)

    (note,) = laws.check(cached, ["rows_sum_to_one"]).notes
    assert note.startswith("never used: layer_past") and "laws.steps" in note


# In a test, and over the zoo


def test_one_line_in_a_test_is_enough():
    with pytest.raises(laws.Unlawful, match=r"behaves like zoo\.no_scale") as error:
        laws.assert_lawful(zoo.no_scale, ["equals_reference"])
    assert error.value.report.alike == "no_scale"
    laws.assert_lawful(zoo.no_scale, ["equals_reference"], reference=zoo.no_scale)
    with pytest.raises(laws.Unlawful, match="not asked"):
        laws.assert_lawful(mha.multi_head_attention, laws.ENCODER)


ITEMS = """
import mha
from mha import laws, zoo

@laws.parametrize(mha.multi_head_attention, ["rows_sum_to_one", "gradients_are_slopes"])
def test_right(ask):
    ask()

FEW = ["rows_sum_to_one", "head_owns_its_columns", "scores_keep_unit_variance"]

@laws.parametrize(zoo.no_scale, FEW, skip=["head_owns_its_columns"])
def test_wrong(ask):
    ask()
"""


def test_a_layer_is_one_item_of_pytest_for_each_law(pytester):
    pytester.makepyfile(ITEMS)
    result = pytester.runpytest_inprocess("-rfs", "--disable-plugin-autoload")
    result.assert_outcomes(failed=1, skipped=1, passed=2)
    result.stdout.fnmatch_lines([
        "FAILED *test_wrong?scores_keep_unit_variance?*",
        "*no gradients: a function of tensors has, laws.torch(f)*",
    ])  # fmt: skip


def test_a_name_of_no_law_is_refused():
    for asked in ({"only": ["gravity"]}, {"skip": ["gravity"]}):
        with pytest.raises(ValueError, match="no law is called 'gravity'; there are r"):
            laws.check(attend, **asked)


def later_layers_read_the_first(X, layers, n_heads, mask=None):
    """Be right with one layer and with two, and wrong with three."""
    first, *later = layers
    X = Y = mha.encoder(X, [first], n_heads, mask)
    for weights in later:
        Y = mha.encoder(X, [weights], n_heads, mask)
    return Y


def test_a_stack_that_is_wrong_from_its_third_layer_on_is_caught():
    assert laws.layers_follow_each_other.breaks(later_layers_read_the_first)


def test_the_kill_matrix_says_who_kills_whom():
    few = [laws.scores_keep_unit_variance, laws.padding_changes_nothing]
    matrix = laws.kill_matrix(few, [zoo.right, zoo.no_scale, zoo.mask_ignored])
    assert matrix.killed.tolist() == [[False, False], [True, False], [False, True]]
    assert matrix.killed_by("no_scale") == ("scores_keep_unit_variance",)
    assert matrix.kills("padding_changes_nothing") == ("mask_ignored",)
    plain = laws.kill_matrix(few, [lambda Q, K, V: attend(Q, K, V)])
    assert plain.rows == ("<lambda>",) and not plain.killed.any()
