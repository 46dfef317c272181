"""The machinery under `mha.check`: what it says of any answer to any exercise."""

import numpy as np
import pytest
import torch

from mha.check import Exercise, Mistake, is_stub

DOUBLED = Exercise(
    task="twice a number",
    right=lambda x: 2 * x,
    cases=((np.array([0.0]),), (np.array([3.0, 5.0]),), (np.array([[2.0], [7.0]]),)),
    mistakes=(
        Mistake("squared", "that is the square", lambda x: x * x),
        Mistake("one more", "that adds one", lambda x: x + 1),
    ),
    reread='chapter 0, "By hand"',
)


# By hand


def test_a_known_mistake_is_named_with_its_smallest_failing_input():
    verdict = DOUBLED(lambda x: x**2)
    assert verdict.mistake == "squared"
    assert str(verdict) == (
        "not yet: that is the square\n"
        "  x =       [3. 5.]\n"
        "  expected  [ 6. 10.]\n"
        "  got       [ 9. 25.]\n"
        '  reread    chapter 0, "By hand"'
    )


def test_a_right_answer_passes_whatever_library_computes_it():
    assert DOUBLED(lambda x: x + x).passed
    assert DOUBLED(lambda x: (2 * x).tolist()).passed
    assert DOUBLED(lambda x: torch.from_numpy(x) * 2).passed


def test_a_value_is_an_answer_too():
    exercise = Exercise(
        task="six times seven",
        right=42,
        cases=((),),
        mistakes=(Mistake("added", "that is the sum", 13),),
        reread="chapter 0",
    )
    assert exercise(42.0).passed
    assert exercise(13).mistake == "added"
    assert exercise(41).mistake is None
    assert "42" not in exercise(41).text, "a wrong guess must not print the solution"
    assert exercise(None).status == "not attempted yet"


# Laws


def test_a_function_that_forgets_to_return_is_not_taken_for_a_stub():
    def forgetful(x):
        y = 2 * x  # noqa: F841

    assert not is_stub(forgetful)
    assert "is a return missing?" in DOUBLED(forgetful).text


def test_a_function_that_writes_into_its_input_is_told_so():
    def greedy(x):
        x *= 2
        return x

    verdict = DOUBLED(greedy)
    assert verdict.status == "not yet"
    assert "the input x must stay as it is" in verdict.text


def test_an_answer_that_raises_is_quoted_not_propagated():
    def broken(x):
        return x + unknown  # noqa: F821

    assert "NameError: name 'unknown' is not defined" in DOUBLED(broken).text


def test_a_check_leaves_its_own_cases_alone():
    def spoils(x):
        x[:] = np.nan
        return x

    DOUBLED(spoils)
    assert DOUBLED(lambda x: 2 * x).passed


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (lambda x: np.append(x, 1), "has shape (2,), expected (1,)"),
        (lambda x: x * np.nan, "holds NaN"),
        (lambda x: 6 * x, "3 times what it should be"),
        (lambda x: "two", "a text, expected an array of numbers"),
        (lambda x: np.sin(x), "none of the mistakes this check knows"),
    ],
)
def test_an_unknown_mistake_gets_what_can_be_said(answer, hint):
    verdict = DOUBLED(answer)
    assert verdict.mistake is None
    assert hint in verdict.text


def test_a_transposed_answer_is_called_transposed():
    outer = Exercise(
        task="all products",
        right=lambda a, b: np.outer(a, b),
        cases=((np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 5.0])),),
        mistakes=(),
        reread="chapter 0",
    )
    assert "transpose" in outer(lambda a, b: np.outer(b, a)).text


def test_a_wrong_one_of_several_results_is_counted_and_its_factor_told():
    two = Exercise(
        task="twice and three times x",
        right=lambda x: (2 * x, 3 * x),
        cases=((np.array([1.0, 2.0]),), (np.array([-3.0]),)),
        mistakes=(),
        reread="nowhere",
    )
    text = two(lambda x: (2 * x, 9 * x)).text
    assert "result 2 of 2: every number is 3 times what it should be" in text
    text = two(lambda x: (x + 5, 3 * x)).text
    assert "result 1 of 2: the numbers differ" in text
    assert "expected 2 results" in two(lambda x: 2 * x).text


def test_a_mistake_is_not_named_when_one_of_its_results_differs():
    def squares_the_second_case_only(x):
        return x * x if x.shape == (2,) else np.sin(x)

    assert DOUBLED(squares_the_second_case_only).mistake is None


def test_where_an_error_is_asked_for_silence_fails():
    def strict(x):
        raise ValueError("no")

    refusing = Exercise("refuse", strict, ((np.array([1.0]),),), (), "chapter 0")

    def also_strict(x):
        raise ValueError("another text")

    assert refusing(also_strict).passed
    assert "expected an error here (ValueError)" in refusing(lambda x: x).text
