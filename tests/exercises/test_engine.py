"""The machinery under the exercises: what it says of any answer to any exercise."""

import itertools
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import exercises
import mha
from exercises.engine import Exercise, is_stub

DOUBLED = Exercise(
    task="twice a number",
    right=lambda x: 2 * x,
    cases=((np.array([0.0]),), (np.array([3.0, 5.0]),), (np.array([[2.0], [7.0]]),)),
    mistakes={
        "that is the square": lambda x: x * x,
        "that adds one": lambda x: x + 1,
    },
    reread='chapter 0, "By hand"',
)


# By hand


def test_a_known_mistake_is_named_with_its_smallest_failing_input():
    verdict = DOUBLED(lambda x: x**2)
    assert verdict.mistake == "that is the square"
    assert str(verdict) == (
        "not yet: that is the square\n"
        "  x =       [3. 5.]\n"
        "  expected  [ 6. 10.]\n"
        "  got       [ 9. 25.]\n"
        '  reread    chapter 0, "By hand"'
    )


def test_a_value_is_an_answer_too():
    exercise = Exercise(
        task="six times seven",
        right=42,
        cases=((),),
        mistakes={"that is the sum": 13},
        reread="chapter 0",
    )
    assert exercise(42.0).passed
    assert exercise(13).mistake == "that is the sum"
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

    said = "NameError: name 'unknown' is not defined: import or define it in your cell"
    assert said in DOUBLED(broken).text


ENDLESS = "while True: pass", "while True:\n  pass", "while True:\n  np.exp(x)"


@pytest.mark.skipif(bool(sys.gettrace()), reason="a tracer is at work: no limit")
@pytest.mark.parametrize("loop", ENDLESS)
def test_an_answer_without_an_end_is_stopped_and_told_so(loop):
    space = {"np": np}
    exec(f"def endless(x):\n {loop}", space)
    verdict = replace(DOUBLED, seconds=0.2)(space["endless"])
    assert str(verdict).startswith("not yet: stopped after 0.2 s: does a loop")
    assert DOUBLED(lambda x: 2 * x).passed


def test_an_answer_in_another_thread_is_judged_too():
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(DOUBLED, lambda x: 2 * x).result().passed


def busy(x):
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        pass
    return 2 * x


def test_time_that_an_answer_waits_does_not_count():
    def patient(x):
        time.sleep(0.3)
        return 2 * x

    assert replace(DOUBLED, seconds=0.1)(patient).passed


STOPS_AT_A_BREAKPOINT = """
import time
from exercises.engine import Exercise

def answer(x):
    breakpoint()
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        pass
    return 2 * x

print(Exercise("twice", lambda x: 2 * x, ((1,),), {}, "page 1", seconds=0.2)(answer))
"""


def test_an_answer_at_a_breakpoint_waits_and_goes_on_as_long_as_its_debugger_likes():
    debugged = subprocess.Popen(
        [sys.executable, "-c", STOPS_AT_A_BREAKPOINT],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, cwd=Path(exercises.__file__).parents[1],
    )  # fmt: skip
    prompt = ""
    while not prompt.endswith("(Pdb) ") and (letter := debugged.stdout.read(1)):
        prompt += letter
    time.sleep(1)
    said, _ = debugged.communicate("p 'x is', x\ncontinue\n", timeout=60)
    assert "('x is', 1)" in said
    assert said.endswith("passed: twice\n")


def test_an_answer_in_a_debugger_has_no_limit():
    debugger, before = (lambda *_: None), sys.gettrace()
    sys.settrace(debugger)
    try:
        verdict = replace(DOUBLED, seconds=0.1)(busy)
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(before)
    assert verdict.passed


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is newer")
def test_a_debugger_that_monitors_is_a_debugger_too():
    tools = sys.monitoring
    tools.use_tool_id(tools.DEBUGGER_ID, "a debugger")
    try:
        assert replace(DOUBLED, seconds=0.1)(busy).passed
    finally:
        tools.free_tool_id(tools.DEBUGGER_ID)


def test_a_long_verdict_is_cut_to_fifteen_lines():
    cube = np.zeros((2, 3, 5, 2))
    exercise = Exercise("a cube", lambda x: x + 0, ((cube,),), {}, "page 1")
    lines = str(exercise(lambda x: x + (np.arange(2) > 0))).splitlines()
    assert len(lines) == 15
    assert lines[-1] == "  reread    page 1" and lines[-2].endswith(" ...")


def test_a_long_name_keeps_its_distance_and_a_large_input_is_shown_by_its_shape():
    right = lambda tolerance, table: tolerance + 0 * table.sum()  # noqa: E731
    exercise = Exercise("x", right, ((4.0, np.ones((40, 2))),), {}, "page 1")
    lines = str(exercise(lambda tolerance, table: 2 * tolerance)).splitlines()
    assert lines[1:3] == ["  tolerance = 4", "  table =   shape (40, 2)"]
    assert lines[3:5] == ["  expected  4", "  got       8"]


def test_an_answer_may_not_call_the_step_that_it_should_be():
    rows = np.array([[0.0, 1.0], [3.0, 3.0]])
    exercise = Exercise(
        task="a softmax",
        right=lambda x: mha.softmax(x),
        cases=((rows,), (rows + 1000,)),
        mistakes={"over the rows": lambda x: mha.softmax(x, 0)},
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
    assert exercise(lambda x: torch.softmax(torch.from_numpy(x), -1)).passed
    assert "no attribute" in exercise(lambda x: mha.soft(x)).text


def test_a_profiler_at_work_sees_the_calls_of_an_answer_and_stays():
    def own(x):
        return np.exp(x)

    def profiler(frame, event, _):
        seen.add(frame.f_code)

    right = lambda x: np.exp(x)  # noqa: E731
    exercise = Exercise("e", right, ((ROWS,),), {}, "page 1", forbidden=(mha.softmax,))
    seen, before = set(), sys.getprofile()
    sys.setprofile(profiler)
    try:
        verdict = exercise(own)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)
    assert verdict.passed and own.__code__ in seen
    assert exercise(own).passed and sys.getprofile() is before


def said_of(answer, right, *inputs, **more):
    """Return the first line that an exercise without known mistakes says."""
    cases = tuple((given,) for given in inputs)
    text = Exercise("x", right, cases, {}, "page 1", **more)(answer).text
    return text.splitlines()[0]


ROWS = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
THIRDS = np.arange(5) / 3


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda x: np.append(x, 1), "has shape (7,), expected (2, 3)"),
        (lambda x: x * np.nan, "holds NaN"),
        (lambda x: x @ x, "a product A @ B does not fit: A is 3 wide and B 2 high"),
        (lambda x: 3 * x, "every number is 3 times what it should be"),
        (lambda x: x - 2, "every number is 2 too small"),
        (lambda x: -x, "every number is -1 times what it should be"),
        (lambda x: 100 * x, "every number is 100 times what it should be"),
        (lambda x: x[::-1], "the right numbers in a wrong order"),
        (lambda x: np.sin(x), "none of the mistakes this check knows"),
    ],
)
def test_of_an_unknown_mistake_is_said_what_can_be_said(answer, said):
    assert said in said_of(answer, lambda x: x + 0, ROWS, ROWS + 5)


def test_other_general_hints_are_true():
    square = ROWS[:, :2]
    assert "transpose" in said_of(lambda x: x.T, lambda x: x + 0, square)
    opposite = said_of(lambda x: x < 2, lambda x: x >= 2, ROWS)
    assert opposite == "every True should be False and every False True"
    rounded = said_of(lambda x: x.round(3), lambda x: x + 0, THIRDS)
    assert rounded == "the answer looks rounded to 3 decimals: keep them all"
    many = said_of(lambda x: x.round(3), lambda x: x + 0, THIRDS[:2] * 0.6, THIRDS)
    assert many == rounded, "0.2 has one decimal, and 0.333 three"
    wrong = said_of(lambda x: x.astype(np.float32) + 0.01, lambda x: x + 0, THIRDS)
    assert "rounded" not in wrong
    pair = said_of(lambda x: x / 3, lambda x: x + 0, np.array([[1.0, -1.0]]))
    assert "times what it should be" not in pair, "any x and -x are such a pair"
    second = said_of(lambda x: (x, 9 * x), lambda x: (x, 3 * x), ROWS)
    assert second == "result 2 of 2: every number is 3 times what it should be"
    assert "expected 2 results" in said_of(lambda x: x, lambda x: (x, x), ROWS)


def test_an_answer_in_float32_is_right_where_its_rounding_meets_a_zero():
    exact = Exercise("x", lambda x: x - 7.0, ((np.array([7.0, 0.1]),),), {}, "page 1")
    assert exact(lambda x: (x - 7).astype(np.float32) + np.float32(5e-7)).passed
    assert not exact(lambda x: x - 7 + 5e-7 * np.array([1.0, 0.0])).passed


def test_a_mistake_is_also_known_where_the_answer_stops_on_some_inputs():
    verdict = DOUBLED(lambda x: x * x if x.ndim == 1 else 1 / 0)
    assert verdict.mistake == "that is the square"
    assert verdict.text.startswith("it may be this: that is the square\n")


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: x * x if x.shape == (2,) else np.sin(x),  # agrees on one input only
        lambda x: np.full(2, np.inf),
        lambda x: x * x if len(x) == 1 else 1 / 0,  # right, and then an error
    ],
)
def test_a_mistake_that_does_not_explain_the_failure_is_not_named(answer):
    assert DOUBLED(answer).mistake is None


def test_what_is_given_is_kept_from_the_answer_and_the_exercise_runs_once():
    runs = []

    def counted(numbers):
        runs.append(len(numbers))
        return sum(numbers)

    total = Exercise("the total", counted, (([1, 2],),), {"longer": max}, "page 1")
    assert not total(lambda numbers: numbers.clear()).passed
    assert total(sum).passed and total(max).mistake == "longer"
    assert runs == [2]


def test_a_rounded_answer_is_shown_with_the_digits_in_which_it_differs():
    exercise = Exercise("thirds", lambda n: np.arange(n) / 3, ((2,), (3,)), {}, "p")
    text = exercise(lambda n: (np.arange(n) / 3).round(3)).text
    assert "expected  [0.         0.33333333]\n  got       [0.    0.333]" in text


# What a teacher is told


def exercise_with(**changed):
    parts = {
        "task": "twice a number",
        "right": lambda x: 2 * x,
        "cases": ((1,), (3,)),
        "mistakes": {"that is the square": lambda x: x * x},
        "reread": "page 1",
    }
    return Exercise(**parts | changed)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"cases": ()}, TypeError, "cases must be tuples of inputs"),
        ({"cases": (3,)}, TypeError, "cases must be tuples of inputs"),
    ],
)
def test_an_exercise_that_cannot_be_run_is_refused_when_it_is_made(
    changed, error, message
):
    with pytest.raises(error, match=message):
        exercise_with(**changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"mistakes": {"a sum": lambda x: x + x}},
            "the mistake 'a sum' is not recognised:\npassed: twice a number",
        ),
        (
            {"mistakes": {"a square": lambda x: x * x, "a power": lambda x: x**2}},
            "the mistake 'a power' is not recognised:\nnot yet: a square",
        ),
        ({"mistakes": {"lazy": None}}, "'lazy' is not recognised:\nnot attempted yet"),
        (
            {"right": itertools.count().__next__, "cases": ((),), "mistakes": {}},
            "the right answer does not pass",
        ),
        ({"right": lambda: 2}, "the right answer stops on every case: TypeError"),
    ],
)
def test_an_exercise_that_proves_nothing_fails_its_own_test(changed, message):
    with pytest.raises(AssertionError, match=message):
        exercise_with(**changed).self_test()


@pytest.mark.parametrize(
    "body", ["...", "pass", '"""Say it."""', "raise NotImplementedError"]
)
@pytest.mark.parametrize("arguments", ["", "x", "Q, K, mask=None", "*, W_O", "*args"])
def test_a_stub_is_a_stub_whatever_its_arguments(body, arguments):
    scope = {}
    exec(f"def stub({arguments}):\n    {body}", scope)
    assert is_stub(scope["stub"])
    assert exercise_with()(scope["stub"]).status == "not attempted yet"
