"""Exercises that reply in a way of their own: a hunt, a review, laws on trial."""

import functools

import numpy as np
import pytest

import mha
from exercises import laws as check
from exercises import long, multi_head, scale, why_heads
from mha import laws, zoo

LETTERS = tuple(multi_head.suspects)


@functools.cache
def culprits():
    return {letter: multi_head.suspect_exercise(letter).right for letter in LETTERS}


@functools.cache
def matrix():
    members = [getattr(zoo, wanted) for wanted in multi_head.WANTED]
    return laws.kill_matrix(laws.ATTENTION, members)


# The bug hunt


@pytest.mark.parametrize("letter", LETTERS)
def test_a_suspect_is_named_by_slug_sentence_or_member_and_hints_name_a_law(letter):
    exercise, slug = multi_head.suspect_exercise(letter), culprits()[letter]
    exercise.self_test()
    for answer in (getattr(zoo, slug), getattr(zoo, slug).wrong, f" zoo.{slug} "):
        assert exercise(answer).passed
    broken = set(matrix().killed_by(slug))
    for hint, accused in exercise.mistakes.items():
        (named,) = [law.name for law in laws.ALL if f'"{law.sentence}"' in hint]
        would_break = named in matrix().killed_by(accused)
        assert would_break != (named in broken)
        assert ("would break" in hint) == would_break


@pytest.mark.parametrize("letter", LETTERS)
def test_a_suspect_keeps_and_breaks_the_laws_that_a_hint_says_of_it(letter):
    exercise = multi_head.suspect_exercise(letter)
    suspect = multi_head.suspects[letter]
    for law in laws.ALL:
        said = [hint for hint in exercise.mistakes if f'"{law.sentence}"' in hint]
        if said:
            broken = law.check(suspect).broken
            assert all(("would keep" in hint) == broken for hint in said), law


@pytest.mark.parametrize("letter", LETTERS)
def test_a_suspect_does_what_its_member_does_and_does_not_say_its_name(letter):
    suspect, slug = multi_head.suspects[letter], culprits()[letter]
    rng = np.random.default_rng(0)
    X, *W = (rng.normal(size=s) for s in ((5, 6), (6, 6), (6, 6), (6, 6), (6, 6)))
    for options in ({}, {"is_causal": True}):
        expected = getattr(zoo, slug)(X, *W, 3, **options)
        np.testing.assert_array_equal(suspect(X, *W, 3, **options), expected)
    for text in (repr(suspect), suspect.step):
        assert slug not in text and "zoo" not in text


def test_the_hunt_answers_each_letter_and_passes_with_six():
    hunt = multi_head.bug_hunt
    assert hunt(dict.fromkeys(LETTERS)).status == "not attempted yet"
    assert hunt(culprits()).passed
    text = hunt(culprits() | {"C": None}).text
    assert "not accused yet: C" in text and text.count("mistake found") == 5
    text = hunt({"A": "no_scale"}).text
    assert culprits()["A"] not in text
    assert any(f'"{law.sentence}"' in " ".join(text.split()) for law in laws.ALL)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"A": "the dog did it"}, "not on the list"),
        ({"G": "no_scale"}, "suspects A, B, C, D, E, F, got G"),
        (["no_scale"], "give a dict"),
    ],
)
def test_the_hunt_says_what_it_cannot_use(answer, said):
    assert said in multi_head.bug_hunt(answer).text


# The code review


def test_the_mended_layer_is_multi_head_attention_and_each_mistake_is_found_alone():
    rng, wrong = np.random.default_rng(0), check.code_review.right
    X, *W = (rng.normal(size=s) for s in ((2, 5, 6), (6, 6), (6, 6), (6, 6), (6, 6)))
    mended = check.layer_in_review.mend(*wrong)
    for options in ({}, {"is_causal": True}, {"mask": rng.random((5, 5)) < 0.3}):
        expected = mha.multi_head_attention(X, *W, 3, **options)
        np.testing.assert_allclose(mended(X, *W, 3, **options), expected, atol=1e-12)
        for line in wrong:
            others = check.layer_in_review.mend(*(k for k in wrong if k != line))
            assert not np.allclose(others(X, *W, 3, **options), expected)
    assert check.layer_in_review.mend(9, 19).source == check.layer_in_review.source


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([6, 10, 9], ["line 6: yes", "line 9 is correct", "not found yet: 1"]),
        ("6, 27", ["line 6: yes", "line 27: there is no such line"]),
        (range(1, 27), ["you name 26 lines, but only 3 are wrong"]),
        ([7], ["nothing is computed there"]),
        ("ten", ["give the numbers of lines"]),
        ([6.5, 10, 25], ["give the numbers of lines"]),
    ],
)
def test_a_review_replies_to_each_line(answer, said):
    verdict = check.code_review(answer)
    assert verdict.status == "not yet"
    assert [words for words in said if words not in verdict.text] == []


# The theorem


@pytest.mark.parametrize(
    ("weights", "premise", "said"),
    [
        (lambda left: left / 0, 1, "NaN or infinite"),
        (lambda left: left - 2, 1, "some of your weights are negative"),
        (lambda left: 0 * left + 0.3, 1, "the same weights in every row"),
        (lambda left: np.random.default_rng().random(len(left)), 1, "drawn at random"),
        (lambda left: np.linspace(0, 1, len(left)), 1, "do not depend on the contents"),
        (lambda left: abs(left - 0.5), 1, "hardly more from them"),
        (lambda left: left, 2, "but there is still one query in one layer"),
    ],
)
def test_the_theorem_stands_until_weights_tell_of_the_contents(weights, premise, said):
    def answer(contents):
        left = weights(mha.softmax(contents / 10)[:, 0])
        return np.stack([left, 1 - left], axis=1), premise

    assert said in why_heads.break_the_theorem(answer).text
    halves = why_heads.break_the_theorem(lambda contents: (contents**2, 1))
    assert "the two weights of a row should sum to 1" in halves.text


# Laws on trial


def test_laws_are_graded_in_any_order_and_each_of_the_right_answer_is_needed():
    answer = check.grade_laws.right
    assert check.grade_laws(answer[::-1]).passed
    for k in range(len(answer)):
        assert not check.grade_laws(answer[:k] + answer[k + 1 :]).passed


def row_law(attend):
    Q, K = np.random.default_rng(5).normal(size=(2, 5, 7))
    return np.allclose(attend(Q, K, np.ones((5, 1))), 1)


def forgetful_law(attend):
    attend(*np.random.default_rng(5).normal(size=(3, 5, 7)))


def zeros_and_ones(attend):
    Q, K, V = np.random.default_rng(5).normal(size=(3, 5, 7))
    return np.isfinite(attend(Q, K, V, np.tri(5))).all()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([row_law], "row_law detects"),
        ([row_law], "missed no_scale"),
        ([forgetful_law], "is broken by the NumPy version: it returned None"),
        ([zeros_and_ones], "the mask must be a boolean array"),
        ([lambda attend: attend(1, 2, 3)], "it stopped with"),
        ([lambda attend: False], "and allow for rounding"),
        ([3], "a law is a function of attend, got 3"),
        ([row_law] * 9, "false alarms 0 and 1 more laws expected"),
    ],
)
def test_a_reply_to_laws_says_what_happened(answer, said):
    assert said in " ".join(check.grade_laws(answer).text.split())


@pytest.mark.parametrize("subject", check.subjects()[:5], ids=lambda s: s.name)
def test_the_correct_versions_are_correct_with_any_mask_that_fits(subject):
    Q, K, V = np.random.default_rng(5).normal(size=(3, 2, 3, 5, 7))
    for mask in (None, np.arange(5) < 3, np.tri(5) > 0):
        expected = mha.scaled_dot_product_attention(Q, K, V, mask)
        np.testing.assert_allclose(subject(Q, K, V, mask), expected, atol=1e-5)


@pytest.mark.parametrize("answer", ["d_v", 4, [], "√d_k"])
def test_a_divisor_in_other_words_is_told_the_six_that_are_known(answer):
    text = scale.mystery_divisor(answer).text
    assert "nothing, sqrt d_k, d_k, sqrt n_k, n_k, after the softmax" in text


def test_a_law_that_knows_the_functions_of_the_package_does_not_pass():
    friends = mha.scaled_dot_product_attention, mha.chunked_attention
    assert not long.long_text_law(lambda attend: attend in friends).passed
