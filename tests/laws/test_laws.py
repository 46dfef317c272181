"""Every law: a sentence, true of what is right, and false of some bug."""

import math

import numpy as np
import pytest
import torch

import mha
from mha import laws, zoo
from tests.laws.reports import STORED, broken

EVERY = (*laws.ALL, *laws.ENCODER)
every_law = pytest.mark.parametrize("law", EVERY, ids=lambda law: law.slug)


def killed_by(law):
    """Return the names of the members that a law kills."""
    return [name for name, slugs in STORED.items() if law.slug in slugs]


@every_law
def test_a_law_says_what_and_why(law):
    assert getattr(laws, law.slug) is law
    assert not law.name[0].isupper() and not law.name.endswith(".")
    assert law.equation and law.reason
    assert len(law.equation) <= 84
    assert repr(law).splitlines()[0] == law.name
    assert law.level in ("attention", "layer", "encoder")


def test_all_laws_are_found_in_their_modules_and_none_twice():
    assert laws.ALL == laws.ATTENTION + laws.CALLS
    assert len({law.slug for law in EVERY}) == len(EVERY)
    assert {law.level for law in laws.ENCODER} == {"encoder"}
    assert laws.WHOLE[-len(laws.ENCODER) :] == laws.ENCODER


@every_law
def test_a_law_kills_a_bug_and_spares_what_is_right(law):
    assert killed_by(law)
    assert not {"right", "right_encoder"} & {*killed_by(law)}


@every_law
def test_the_smallest_example_fails_again_and_spares_the_right_one(law):
    wrong = getattr(zoo, killed_by(law)[0])
    finding, again = law.check(wrong), law.check(wrong)
    assert finding.holds is False
    if law is not laws.calls_agree:
        assert repr(finding) == repr(again)
    assert repr(finding).startswith("✗ " + law.name)
    assert all(len(line) <= 120 for line in repr(finding).splitlines())
    subject, right = laws.as_subject(wrong), laws.as_subject(zoo.right)
    if subject.kind == "encoder":
        right = laws.as_subject(zoo.right_encoder)
    # What is random may agree with itself now and then.
    tries = subject.variants() * (50 if law is laws.calls_agree else 1)
    assert any(law.fails(x, finding.example) for x in tries)
    if not wrong.says:
        assert not any(law.fails(x, finding.example) for x in right.variants())


def test_a_row_of_weights_by_hand():
    Q, K = np.array([[math.log(3)]]), np.array([[1.0], [0.0]])
    subject = laws.as_subject(mha.scaled_dot_product_attention)
    assert np.allclose(laws.judge.weights_of(subject, Q, K), [[0.75, 0.25]])


def test_a_law_of_ones_own_is_asked_like_the_others():
    def cases(rng):
        yield {"Q": rng.random((1, 2)), "K": np.zeros((3, 2)), "V": np.eye(3)}

    def alike(subject, Q, K, V):
        return np.allclose(subject.attend(Q, K, V), 1 / 3)

    law = laws.Law("alike", "silent keys share", cases, alike)
    assert law.check(mha.scaled_dot_product_attention).holds
    assert law.check(zoo.mask_ignored, seed=1) is not False
    assert laws.kill_matrix([law], [zoo.right, zoo.heads_averaged]).rows[0] == "right"
    wrong = law.check(lambda Q, K, V: V[: len(Q)])
    assert (wrong.expected, wrong.got) == ("the law holds", "it does not")
    assert law.check(lambda Q, K, V: 1 / 0 if len(K) == 3 else V).verdict == "raised"


def test_shrinking_sets_to_0_what_the_failure_does_not_need():
    finding = laws.constant_values_stay.check(zoo.softmax_over_queries)
    (_, drawn, _) = finding.breach
    count = np.count_nonzero
    assert count(finding.example["Q"]) <= count(drawn["Q"])
    assert count(finding.example["K"]) <= count(drawn["K"])
    assert not np.allclose(finding.expected, finding.got, atol=0.01)


def test_a_tolerance_forgives_what_is_smaller_and_nothing_else():
    def rounded(Q, K, V):
        return mha.scaled_dot_product_attention(Q, K, V).round(3)

    few = ["equals_reference", "constant_values_stay"]
    assert broken(laws.check(rounded, few)) == ["equals_reference"]
    assert laws.check(rounded, few, tolerance=0.01)
    assert not laws.check(rounded, few, tolerance=0.0001)


@pytest.mark.parametrize("name", ["NumPy", "torch"])
def test_slopes_are_central_differences(name):
    def on_tensors(Q, K, V, mask=None):
        assert isinstance(Q, torch.Tensor)
        return torch.nn.functional.scaled_dot_product_attention(Q, K, V, mask)

    def stopped(Q, K, V, mask=None):
        return on_tensors(Q, K.detach() if name == "torch" else K, V, mask)

    finding = laws.gradients_are_slopes.check(on_tensors)
    assert finding.holds
    assert laws.gradients_are_slopes.check(stopped).holds is (name == "NumPy")


def test_a_design_is_declared_and_a_declared_law_that_holds_is_broken():
    both = ["scores_keep_unit_variance", "equals_reference"]
    because = "the scale is part of W_Q"
    report = laws.check(zoo.no_scale, both, breaks=both, because=because)
    assert [f.verdict for f in report.findings] == ["declared", "declared"]
    assert report.likeness is None and "behaves like" not in repr(report)
    right = laws.check(zoo.right, both, breaks=both)
    assert broken(right) == both and "declared broken, but it holds" in repr(right)
    with pytest.raises(ValueError, match="needs breaks="):
        laws.check(zoo.right, because=because)
    with pytest.raises(ValueError, match="no law is called 'gravity'"):
        laws.check(zoo.right, only=["gravity"])


def test_one_line_in_a_test_is_enough():
    with pytest.raises(AssertionError, match=r"behaves like zoo\.no_scale"):
        laws.assert_lawful(zoo.no_scale)
    laws.assert_lawful(zoo.no_scale, ["scores_keep_unit_variance", "equals_reference"])
    with pytest.raises(AssertionError, match="no law could be asked"):
        laws.assert_lawful(mha.multi_head_attention, laws.ALL)
