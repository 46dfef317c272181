"""The machinery under `mha.check`: what it says of any answer to any exercise."""

import itertools
import sys

import numpy as np
import pytest
import torch

import mha
from mha.check import Exercise, Mistake, Verdict, is_stub

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
    assert "raises" not in verdict.text, "the answer raised nothing"


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
        (
            lambda x: np.ones((2, 3)) @ np.ones((4, 5)),
            "a product A @ B does not fit: A is 3 wide and B 4 high",
        ),
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


def test_the_right_numbers_in_a_wrong_order_are_told_so():
    rows = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    exercise = Exercise("x again", lambda x: x.copy(), ((rows,),), (), "page 1")
    text = exercise(lambda x: x[::-1] + 0.0).text
    assert text.startswith("these are the right numbers in a wrong order\n")
    assert (
        "transpose"
        in Exercise("x", lambda x: x + 0, ((rows[:, :2],),), (), "p")(
            lambda x: x.T + 0
        ).text
    )


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


def test_a_mistake_that_agrees_on_the_first_failing_input_only_is_named_for_it():
    def squares_the_second_case_only(x):
        return x * x if x.shape == (2,) else np.sin(x)

    verdict = DOUBLED(squares_the_second_case_only)
    assert verdict.mistake == "squared"
    assert str(verdict) == (
        "not yet: on this input, though not on every one, you get what this slip "
        "gives: that is the square\n"
        "  x =       [3. 5.]\n"
        "  expected  [ 6. 10.]\n"
        "  got       [ 9. 25.]\n"
        '  reread    chapter 0, "By hand"'
    )


def test_a_mistake_that_agrees_later_or_by_accident_is_not_named():
    def squares_the_last_case_only(x):
        return x * x if x.ndim == 2 else np.sin(x)

    assert DOUBLED(squares_the_last_case_only).mistake is None
    whole = Exercise(
        task="twice a number",
        right=lambda x: 2 * x,
        cases=((3,), (5,)),
        mistakes=(Mistake("squared", "that is the square", lambda x: x * x),),
        reread="page 1",
    )
    assert whole(lambda x: 9).mistake is None  # any whole number may be an accident
    assert whole(lambda x: x**2).mistake == "squared"
    assert DOUBLED(lambda x: np.full(2, np.inf)).mistake is None


def test_of_two_mistakes_the_one_that_agrees_longer_is_named_and_none_if_both_do():
    inputs = [(np.array(x),) for x in ([3.0, 4.0], [1.0, 5.0], [4.0, 2.0], [7.0, 2.0])]
    exercise = Exercise(
        task="twice a number",
        right=lambda x: 2 * x,
        cases=inputs,
        mistakes=(
            Mistake("squared", "a square", lambda x: x * x),
            Mistake("by x", "half", lambda x: x * x if x[0] != 1 else x / 3),
        ),
        reread="page 1",
    )
    assert exercise(lambda x: x * x if x[1] > 2 else x).mistake == "squared"
    assert exercise(lambda x: x * x if x[0] == 3 else x).mistake is None


def test_a_mistake_is_not_named_for_an_error_that_it_does_not_explain():
    def stops_at_two_numbers(x):
        if len(x) == 2:
            raise IndexError("no second entry")
        return x * x + (x > 2)

    odd = Exercise(
        task="twice a number",
        right=lambda x: 2 * x,
        cases=((np.array([2.0, 2.0]),), (np.array([3.0]),)),
        mistakes=(Mistake("off", "yours is off", lambda x: x * x + (x > 2)),),
        reread="page 1",
    )
    verdict = odd(stops_at_two_numbers)
    assert verdict.mistake is None
    assert verdict.text.startswith("your answer raises IndexError: no second entry")


def test_where_an_error_is_asked_for_silence_fails():
    def strict(x):
        raise ValueError("no")

    refusing = Exercise("refuse", strict, ((np.array([1.0]),),), (), "chapter 0")

    def also_strict(x):
        raise ValueError("another text")

    assert refusing(also_strict).passed
    assert "expected an error here (ValueError)" in refusing(lambda x: x).text


def test_a_list_or_a_dict_of_a_case_is_kept_from_the_answer_too():
    total = Exercise("the total", sum, (([1, 2],),), (), "page 1")
    assert not total(lambda numbers: numbers.clear()).passed
    assert total(sum).passed


def test_an_answer_may_not_call_the_step_that_it_should_be():
    rows = np.array([[0.0, 1.0], [3.0, 3.0]])
    exercise = Exercise(
        task="a softmax",
        right=lambda x: mha.softmax(x),
        cases=((rows,), (rows + 1000,)),
        mistakes=(Mistake("columns", "over the rows", lambda x: mha.softmax(x, 0)),),
        reread="page 1",
        forbidden=(mha.softmax,),
    )
    exercise.self_test()
    refused = (
        "not yet: this calls mha.softmax; the task is to do without it\n"
        "  reread    page 1"
    )
    for answer in (mha.softmax, lambda x: mha.masked_softmax(x) + 1):
        assert str(exercise(answer)) == refused
    profiler = sys.getprofile()
    assert exercise(lambda x: torch.softmax(torch.from_numpy(x), -1)).passed
    assert "no attribute" in exercise(lambda x: mha.soft(x)).text
    assert sys.getprofile() is profiler


def test_a_rounded_answer_is_shown_with_the_digits_in_which_it_differs():
    thirds = Exercise("thirds", lambda n: np.arange(n) / 3, ((2,), (3,)), (), "page 1")
    assert str(thirds(lambda n: (np.arange(n) / 3).round(3))) == (
        "not yet: the answer looks rounded to 3 decimals: keep them all\n"
        "  n =       2\n"
        "  expected  [0.         0.33333333]\n"
        "  got       [0.    0.333]\n"
        "  reread    page 1"
    )
    text = thirds(lambda n: np.arange(n) / 3 + 1e-4).text
    assert (
        "expected  [0.         0.33333333]\n  got       [0.0001     0.33343333]" in text
    )


def test_a_complex_result_is_compared_up_to_rounding():
    spectrum = Exercise(
        "a Fourier transform", np.fft.fft, ((np.array([1.0, 2.0, 4.0]),),), (), "page 1"
    )
    assert spectrum(lambda a: np.fft.fft(a) + 1e-9j).passed
    assert not spectrum(lambda a: np.fft.fft(a).conj()).passed


def test_the_right_answer_and_the_mistakes_run_once_for_all_answers():
    runs = []

    def counted(name, function):
        def run(x):
            runs.append(name)
            return function(x)

        return run

    exercise = Exercise(
        task="twice a number",
        right=counted("right", lambda x: 2 * x),
        cases=((3,), (5,)),
        mistakes=(
            Mistake("squared", "that is the square", counted("wrong", lambda x: x * x)),
        ),
        reread="page 1",
    )
    for _ in range(3):
        assert exercise(lambda x: x * x).mistake == "squared"
    assert runs == ["right", "right", "wrong", "wrong"]


# What a teacher is told


def exercise_with(**changed):
    parts = {
        "task": "twice a number",
        "right": lambda x: 2 * x,
        "cases": ((1,), (3,)),
        "mistakes": (Mistake("squared", "that is the square", lambda x: x * x),),
        "reread": "page 1",
    }
    return Exercise(**parts | changed)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"cases": ()}, ValueError, "cases must not be empty"),
        (
            {"cases": (3,)},
            TypeError,
            r"cases\[0\] must be a tuple of inputs, .* got int",
        ),
        (
            {"cases": ((1,), (1, 2))},
            ValueError,
            r"cases\[1\] has 2 inputs, and right takes \(x\)",
        ),
        ({"cases": ((),)}, ValueError, r"cases\[0\] has 0 inputs, and right takes"),
        (
            {"right": 4},
            ValueError,
            r"cases\[0\] has 1 inputs, and right, a value, takes none",
        ),
        (
            {"observe": lambda answer: answer},
            ValueError,
            r"observe takes \(answer\): it is called with the answer and the inputs",
        ),
        ({"mistakes": ("squared",)}, TypeError, r"mistakes\[0\] must be a Mistake"),
        (
            {"mistakes": (Mistake("a", "b", abs), Mistake("a", "c", float))},
            ValueError,
            "mistakes must have different names, got 'a' 2 times",
        ),
    ],
)
def test_an_exercise_that_cannot_be_run_is_refused_when_it_is_made(
    changed, error, message
):
    with pytest.raises(error, match=message):
        exercise_with(**changed)


def test_a_function_in_c_that_does_not_say_what_it_takes_may_be_the_right_answer():
    assert exercise_with(right=max, cases=(([1, 2],),), mistakes=())(max).passed


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"mistakes": (Mistake("added", "a sum", lambda x: x + x),)},
            "the mistake 'added' equals the right answer on every case",
        ),
        (
            {
                "mistakes": (
                    Mistake("squared", "that is the square", lambda x: x * x),
                    Mistake("a power", "that is a power", lambda x: x**2),
                )
            },
            "the mistake 'a power' is taken for 'squared'",
        ),
        ({"mistakes": (Mistake("lazy", "write it", None),)}, "'lazy' is a stub"),
        (
            {
                "mistakes": (
                    Mistake("squared", "that is the square", lambda x: x * x),
                    Mistake("cubed", "that is", lambda x: x**3),
                )
            },
            "the mistake 'squared' must get its own hint only",
        ),
        (
            {"right": itertools.count().__next__, "cases": ((),), "mistakes": ()},
            "the right answer does not pass",
        ),
    ],
)
def test_an_exercise_that_proves_nothing_fails_its_own_test(changed, message):
    exercise = exercise_with(**changed)
    with pytest.raises(AssertionError, match=message):
        exercise.self_test()


def test_a_check_of_its_own_that_judges_stubs_or_knows_no_names_fails_its_own_test():
    class Eager(Exercise):
        def __call__(self, answer):
            return self.judge(answer)

    class Brief(Exercise):
        def judge(self, answer):
            verdict = super().judge(answer)
            hint = verdict.text.splitlines()[0]
            return Verdict(verdict.status, hint, verdict.mistake)

    class Blunt(Exercise):
        def judge(self, answer):
            verdict = super().judge(answer)
            text = f"{verdict.text}\n  expected  {self.right}"
            return Verdict(verdict.status, text, verdict.mistake)

    class Silent(Exercise):
        def judge(self, answer):
            passed = answer is self.right
            return Verdict("passed" if passed else "not yet", "no word")

    parts = exercise_with()
    parts = {name: getattr(parts, name) for name in parts.__dataclass_fields__}
    with pytest.raises(AssertionError, match="a stub counts as attempted"):
        Eager(**parts).self_test()
    with pytest.raises(AssertionError, match="'squared' is not recognised"):
        Silent(**parts).self_test()
    with pytest.raises(AssertionError, match="'squared' must be told what to reread"):
        Brief(**parts).self_test()
    parts |= {"right": 42, "cases": ((),), "mistakes": (Mistake("sum", "no", 13),)}
    with pytest.raises(AssertionError, match="'sum' must not be told the solution"):
        Blunt(**parts).self_test()


def test_an_exercise_and_its_mistakes_do_not_show_their_answers():
    exercise = Exercise("six times seven", 42, ((),), (Mistake("sum", "no", 13),), "p")
    shown = repr([exercise, exercise.mistakes])
    assert "42" not in shown and "13" not in shown
    assert shown == "[<Exercise: six times seven>, (<Mistake: sum>,)]"


@pytest.mark.parametrize(
    "body", ["...", "pass", '"""Say it."""', "raise NotImplementedError"]
)
@pytest.mark.parametrize("arguments", ["", "x", "Q, K, mask=None", "*, W_O", "*args"])
def test_a_stub_is_a_stub_whatever_its_arguments(body, arguments):
    scope = {}
    exec(f"def stub({arguments}):\n    {body}", scope)
    assert is_stub(scope["stub"])
    assert exercise_with()(scope["stub"]).status == "not attempted yet"
