"""The exercises of chapter 15: right answers in several ways, mistakes by name."""

import math

import numpy as np
import pytest
import torch

import mha
from exercises import laws as check
from exercises.laws import STRANGER, broken_by, subjects
from mha import laws, zoo
from tests.exercises.proof import prove

# ------------------------------------------------------- how many inputs


def test_inputs_needed_accepts_every_way_to_count_and_names_each_mistake():
    chance, count = 0.0, 0
    while chance < 0.99:
        chance, count = 1 - 0.99 ** (count + 1), count + 1
    prove(
        check.inputs_needed,
        count,
        math.ceil(math.log(0.01) / math.log(0.99)),
        459.0,
        wrong_ways={
            "rounded down": [math.floor(math.log(0.01) / math.log(0.99))],
            "a part of an input": [math.log(0.01) / math.log(0.99)],
            "the logarithm approximated": [math.ceil(math.log(100) / 0.01)],
        },
    )


# ------------------------------------------------------- shrinking


def by_list(numbers, fails):
    kept = numbers.tolist()
    for k, number in enumerate(kept):
        kept[k] = 0.0
        if not fails(np.array(kept)):
            kept[k] = number
    return kept


def by_recursion(numbers, fails, k=0):
    if k == len(numbers):
        return numbers
    attempt = np.where(np.arange(len(numbers)) == k, 0, numbers)
    return by_recursion(attempt if fails(attempt) else numbers, fails, k + 1)


def by_torch(numbers, fails):
    kept = torch.tensor(numbers)
    for k in range(len(kept)):
        attempt = kept.clone()
        attempt[k] = 0
        kept = attempt if fails(attempt.numpy()) else kept
    return kept


def from_the_right(numbers, fails):
    kept = numbers.tolist()
    for k in range(len(kept) - 1, -1, -1):
        attempt = [*kept[:k], 0.0, *kept[k + 1 :]]
        kept = attempt if fails(np.array(attempt)) else kept
    return kept


def handing_lists(numbers, fails):
    kept = list(numbers)
    for k in range(len(kept)):
        attempt = [*kept[:k], 0, *kept[k + 1 :]]
        kept = attempt if fails(attempt) else kept
    return kept


def by_size(numbers, fails):
    kept = numbers
    for k in sorted(range(len(numbers)), key=lambda k: abs(numbers[k])):
        attempt = np.where(np.arange(len(numbers)) == k, 0, kept)
        kept = attempt if fails(attempt) else kept
    return kept


def test_shrink_does_not_accept_numbers_that_were_rounded():
    def in_integers(numbers, fails):
        return by_list(numbers.astype(int), fails)

    assert not check.shrink(in_integers).passed


def test_shrink_accepts_lists_recursion_and_torch_and_names_each_mistake():
    prove(
        check.shrink,
        by_list,
        by_recursion,
        by_torch,
        handing_lists,
        wrong_ways={
            "all zeros": [lambda numbers, fails: 0 * numbers],
            "from the right": [from_the_right],
            "the smallest first": [by_size],
            "numbers thrown away": [
                lambda numbers, fails: [x for x in by_list(numbers, fails) if x]
            ],
        },
    )


# ------------------------------------------------------- laws of the reader's own

RIGHT = [s for s in subjects() if s.right]
WRONG = [s for s in subjects() if not s.right]


def draw(*shape, dtype=float):
    return np.random.default_rng(5).normal(size=(3, *shape)).astype(dtype)


def asserting_law(attend):
    Q, K, V = draw(2, 3, 5, 7)
    padding = mha.padding_mask([3, 5])
    for mask, causal in ((None, True), (padding, False), (np.tri(5) > 0, False)):
        kept = None if mask is None else mask.copy()
        got = attend(Q, K, V, kept, causal)
        want = zoo.right.attention(Q, K, V, mask, is_causal=causal)
        np.testing.assert_allclose(got, want, atol=1e-5)
        assert kept is None or (kept == mask).all()
    got = attend(Q[0, 0], K[0, 0], V[0, 0], padding[0, 0])
    np.testing.assert_allclose(got, attend(Q, K, V, padding)[0, 0], atol=1e-5)
    return True


def corners_law(attend):
    Q, K, V = draw(5, 7, dtype=np.float32)
    nothing = attend(Q, K, V, np.zeros((5, 5), dtype=bool))
    single = attend(Q, K, V, np.tri(5, dtype=bool)).dtype == np.float32
    huge = attend(500 * Q, 500 * K, np.ones((5, 1), np.float32))
    return single and np.abs(nothing).max() == 0 and np.allclose(huge, 1)


def one_for_all(attend):
    return bool(asserting_law(attend) and corners_law(attend))


def test_laws_are_accepted_however_they_are_cut_and_each_mistake_is_named():
    prove(
        check.grade_laws,
        [asserting_law, corners_law],
        (corners_law, one_for_all),
        one_for_all,
        {"first": asserting_law, "second": corners_law}.values(),
        wrong_ways={
            "shapes only": [
                [lambda attend: True],
                [lambda attend: attend(*draw(3, 2)).ndim == 2],
            ],
            "always broken": [[lambda attend: False], [lambda attend: 1 / 0]],
            "too strict": [
                lambda attend: np.allclose(
                    attend(*draw(5, 7), np.tri(5, dtype=bool)),
                    zoo.right.attention(*draw(5, 7), np.tri(5, dtype=bool)),
                    rtol=0,
                    atol=1e-11,
                )
            ],
        },
    )


@pytest.mark.parametrize("subject", RIGHT, ids=lambda s: s.name)
def test_the_right_versions_keep_all_laws_of_the_package(subject):
    Q, K, V = draw(2, 3, 5, 7)
    expected = mha.scaled_dot_product_attention(Q, K, V, is_causal=True)
    np.testing.assert_allclose(subject(Q, K, V, is_causal=True), expected, atol=1e-5)
    assert laws.check(subject.__call__, tolerance=1e-5).holds


def test_the_wrong_versions_are_the_steps_that_go_wrong_inside_attention():
    inside = {"softmax", "masked_softmax", "dot_product_scores", "causal_mask"}
    inside |= {"scaled_dot_product_attention"}
    expected = {member.name for member in zoo.STEPS if inside & member.steps.keys()}
    assert {s.name for s in WRONG} == expected
    assert len({s.name for s in subjects()}) == len(subjects())


def test_each_law_of_the_right_answer_is_needed():
    answer = check.grade_laws.right
    for k in range(len(answer)):
        assert not check.grade_laws(answer[:k] + answer[k + 1 :]).passed


def test_a_reply_counts_kills_and_alarms_and_names_one_who_got_away():
    def row_law(attend):
        Q, K, _ = draw(5, 7)
        return np.allclose(attend(Q, K, np.ones((5, 1))), 1)

    verdict = check.grade_laws([row_law])
    caught = sum(bool(broken_by(row_law, s)) for s in WRONG)
    assert f"{caught} of {len(WRONG)} wrong versions detected" in verdict.text
    assert f"0 false alarms on {len(RIGHT)} correct ones" in verdict.text
    assert f"row_law  detects {caught:2}, false alarms 0" in verdict.text
    assert "no_scale" in verdict.text and "alarm  " not in verdict.text


def test_a_law_that_stops_or_returns_nothing_is_told_so():
    def forgetful(attend):
        attend(*draw(5, 7))

    def hasty(attend):
        return attend(1, 2, 3)

    for law, reply in ((forgetful, "it returned None"), (hasty, "it stopped with")):
        said = " ".join(check.grade_laws([law]).text.split())
        assert f"{law.__name__} is broken by the NumPy version: {reply}" in said


def test_a_mask_that_is_not_boolean_is_refused_by_all_in_the_same_words():
    def zeros_and_ones(attend):
        Q, K, V = draw(5, 7)
        return np.isfinite(attend(Q, K, V, np.tri(5))).all()

    said = " ".join(check.grade_laws([zeros_and_ones]).text.split())
    assert "the mask must be a boolean array" in said
    for subject in subjects():
        assert "TypeError" in broken_by(zeros_and_ones, subject)


def test_the_stranger_is_right_up_to_64_tokens_and_may_be_caught():
    assert not broken_by(asserting_law, STRANGER)
    assert "passes all of them" in check.grade_laws([one_for_all]).text

    def far_law(attend):
        Q, K, V = draw(100, 7)
        twice = attend(Q, np.tile(K, (2, 1)), np.tile(V, (2, 1)))
        return np.allclose(attend(Q, K, V), twice, atol=1e-5)

    assert "wrong beyond 64 tokens" in check.grade_laws([one_for_all, far_law]).text


def test_no_laws_are_no_attempt_and_what_is_no_law_is_refused():
    def stub(attend):
        """Return whether the law holds."""

    for nothing in (None, [], (), [stub]):
        assert check.grade_laws(nothing).status == "not attempted yet"
    verdict = check.grade_laws([3])
    assert verdict.status == "not yet"
    assert "a law is a function of attend, got 3" in verdict.text
