"""The code review of chapter 15: three lines are wrong, and each can be mended."""

import functools
import itertools

import numpy as np
import pytest

import mha
from exercises import laws as check
from mha import laws, zoo
from tests.exercises.proof import prove

WRONG = check.code_review.right


@functools.cache
def report(*mended):
    return laws.check(check.layer_in_review.mend(*mended))


def broken(*mended):
    return {finding.law.slug for finding in report(*mended).broken}


def test_lines_are_accepted_in_any_order_and_each_correct_one_is_explained():
    prove(
        check.code_review,
        list(WRONG),
        set(WRONG),
        np.array(WRONG[::-1]),
        [str(line) for line in WRONG],
        ", ".join(map(str, WRONG)),
        wrong_ways={
            "line 19 is correct": [[19], "19", (19, *WRONG)],
            "line 9 is correct": [9, [9, 6]],
        },
    )


def test_each_mistake_is_one_that_the_laws_find_alone():
    for line in WRONG:
        others = [k for k in WRONG if k != line]
        assert "equals_reference" in broken(*others)
    assert broken(*WRONG) == set()


def test_the_mended_layer_is_multi_head_attention():
    rng = np.random.default_rng(0)
    X, *W = (rng.normal(size=s) for s in ((2, 5, 6), (6, 6), (6, 6), (6, 6), (6, 6)))
    mended = check.layer_in_review.mend(*WRONG)
    for options in ({}, {"is_causal": True}, {"mask": rng.random((5, 5)) < 0.3}):
        expected = mha.multi_head_attention(X, *W, 3, **options)
        np.testing.assert_allclose(mended(X, *W, 3, **options), expected, atol=1e-12)


def test_a_right_repair_can_make_things_worse():
    assert len(broken(6)) > len(broken())
    assert report(6, 25).looks_like is zoo.scale_sqrt_n


@pytest.mark.parametrize("lines", list(itertools.combinations(WRONG, 2)))
def test_a_reply_says_which_lines_are_right_and_how_many_are_missing(lines):
    text = check.code_review([*lines, 9]).text
    for line in lines:
        assert f"line {line}: yes" in text
    assert "line 9 is correct" in text and "not found yet: 1" in text


def test_mending_a_correct_line_changes_nothing_and_the_source_is_numbered():
    layer = check.layer_in_review
    assert layer.mend(9, 19).source == layer.source
    changed = zip(
        layer.source.splitlines(),
        layer.mend(*WRONG).source.splitlines(),
        strict=True,
    )
    differ = [k for k, (a, b) in enumerate(changed, start=1) if a != b]
    assert tuple(differ) == WRONG
    assert repr(layer.mend(6, 10)) == "the layer, line 6 and 10 mended"


def test_a_list_of_all_lines_is_told_nothing_else():
    text = check.code_review(range(1, 27)).text
    assert "you name 26 lines, but only 3 are wrong" in text
    assert "yes" not in text


def test_what_is_no_line_is_said_or_refused():
    assert "line 27: there is no such line" in check.code_review(27).text
    assert "line 6: yes" in check.code_review(np.int64(6)).text
    for nonsense in ("ten", [6.5, 10, 25]):
        verdict = check.code_review(nonsense)
        assert verdict.status == "not yet"
        assert "give the numbers of lines" in verdict.text


def test_no_line_is_no_attempt_and_an_empty_line_is_correct():
    for nothing in (None, [], ()):
        assert check.code_review(nothing).status == "not attempted yet"
    assert "nothing is computed there" in check.code_review([7]).text
