"""Whatever a learner gives, an exercise answers with a verdict and tells the truth."""

import fractions
import sys

import numpy as np
import pytest
import torch

from exercises import (
    attention,
    masks,
    multi_head,
    scale,
    softmax,
    split,
    why_heads,
)
from exercises import laws as laws_exercises
from exercises.engine import Exercise, Verdict

# Half of these answers make NumPy, PyTorch or Python warn.
pytestmark = pytest.mark.filterwarnings("ignore")

# One for each way in which an exercise looks at an answer.
EXERCISES = {
    "a function of arrays": masks.safe_masked_softmax,
    "a value": softmax.score_for_half,
    "a law": masks.denominator_law,
    "several results": multi_head.matrices_of_torch,
    "a dtype": scale.scaled_scores,
    "a text": split.wrong_step,
    "two things": why_heads.break_the_theorem,
    "a number": softmax.score_for_half,
    "line numbers": laws_exercises.code_review,
    "a list of laws": laws_exercises.grade_laws,
    "a dict": multi_head.bug_hunt,
}


class Hostile:
    """Refuses everything that it is asked."""

    def _refuse(self, *_):
        raise RuntimeError("hands off")

    __repr__ = __str__ = __eq__ = __bool__ = __len__ = __iter__ = __array__ = _refuse
    __getattr__ = __float__ = __int__ = __index__ = __hash__ = __lt__ = _refuse


class HostileError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def endless(*_):
    return endless(*_)


def raising(error):
    def answer(*_):
        raise error

    return answer


def containing_itself():
    loop = []
    loop.append(loop)
    return loop


def nested(depth):
    value = ()
    for _ in range(depth):
        value = (value,)
    return value


ODD = {
    "a generator": lambda: (x for x in range(3)),
    "a hostile object": Hostile,
    "a list of hostile objects": lambda: [Hostile(), Hostile()],
    "a dict of a hostile object": lambda: {"A": Hostile()},
    "a dict": lambda: {"A": 1, 2: "b"},
    "a long text": lambda: "word " * 10_000,
    "a ragged list": lambda: [[1, 2], [3]],
    "a list that contains itself": containing_itself,
    "a tuple nested 1500 times": lambda: nested(1500),
    "an integer too long to print": lambda: 10**5000,
    "infinity": lambda: float("inf"),
    "a complex number": lambda: 1 + 2j,
    "None in an array": lambda: np.array([None, 1.0], dtype=object),
    "a tensor with a gradient": lambda: torch.ones(2, requires_grad=True),
    "a tensor without data": lambda: torch.ones(2, device="meta"),
    "a layer": lambda: torch.nn.Linear(2, 2),
}
RAISES = {
    "SystemExit": raising(SystemExit(3)),
    "RecursionError": endless,
    "MemoryError": raising(MemoryError()),
    "NotImplementedError": lambda *_: raising(NotImplementedError())(),
    "an error without words": raising(HostileError()),
    "a group of errors": raising(ExceptionGroup("two", [ValueError(), KeyError()])),
}


@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_an_odd_answer_gets_a_verdict_that_is_short_and_not_passed(make):
    for name, exercise in EXERCISES.items():
        for answer in (make(), lambda *_: make()):
            verdict = exercise(answer)
            assert isinstance(verdict, Verdict), name
            assert not verdict.passed, name
            assert len(repr(verdict)) < 5000, name
            assert len(repr(verdict).splitlines()) <= 15, name


@pytest.mark.parametrize("answer", RAISES.values(), ids=RAISES)
def test_an_error_of_any_kind_gets_a_verdict(answer):
    for name, exercise in EXERCISES.items():
        assert exercise(answer).status == "not yet", name
        assert exercise([answer, answer]).status == "not yet", name


# ------------------------------------------------------- what is said is true

ONES = Exercise(
    task="as many ones as x has numbers",
    right=np.ones_like,
    cases=((np.array([3.0, 5.0]),), (np.array([7.0]),)),
    mistakes={"these are zeros": np.zeros_like},
    reread="page 1",
)
READ_ONES = Exercise(
    task="ones again, looked at by observe",
    right=np.ones_like,
    cases=ONES.cases,
    observe=lambda answer, x: np.round(np.asarray(answer(x), dtype=float), 2),
    mistakes={"these are zeros": np.zeros_like},
    reread="page 1",
)


@pytest.mark.parametrize("exercise", [ONES, READ_ONES], ids=["plain", "observed"])
@pytest.mark.parametrize(
    "answer",
    [
        lambda x: torch.ones(len(x), dtype=torch.bfloat16),
        lambda x: torch.ones(len(x), requires_grad=True),
        lambda x: [torch.tensor(1.0, requires_grad=True) for _ in x],
        lambda x: np.array([fractions.Fraction(1)] * len(x), dtype=object),
    ],
)
def test_right_numbers_are_right_in_any_container(exercise, answer):
    assert exercise(answer).passed


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda x: x.sort(), "the result is None: is a return missing?"),
        (lambda x: np.array([None, 1]), "is an array, expected an array of numbers"),
        (lambda x: (1 for _ in x), "is a generator, expected an array of numbers"),
        (lambda x: {"x": 1}, "is a dict, expected an array of numbers"),
        (lambda x: [[1], [1, 2]], "is a list, expected an array of numbers"),
        (lambda x: "ones", "is a text, expected an array of numbers"),
        (lambda x: float, "is a class, expected an array of numbers"),
        (lambda x: 10**400, "your answer ends in OverflowError: int too"),
        (lambda x: x + 0j, "is an array of complex numbers, expected an array of num"),
        (lambda x: x.astype(str), "is an array of texts, expected an array of numbers"),
        (lambda x: (x, x), "is a tuple of 2 results, expected an array of numbers"),
        (lambda x: x[99], "your answer ends in IndexError: index 99 is out of bounds"),
        (lambda x: sys.exit(2), "your answer ends in SystemExit: 2"),
        (lambda x: torch.ones(2, device="meta"), "your answer ends in NotImpl"),
        (raising(HostileError()), "a HostileError that cannot be printed"),
    ],
)
def test_what_came_is_called_what_it_is(answer, said):
    assert said in str(ONES(answer))


def test_of_an_answer_that_observe_cannot_read_the_error_is_told():
    assert "your answer ends in ValueError" in str(READ_ONES(lambda x: "ones"))
    assert str(masks.batch_mask(np.ones_like)).startswith("not yet: a mask of numbers")
    assert "your answer ends in ZeroDivisionError" in str(READ_ONES(lambda x: 1 / 0))


def test_an_answer_that_cannot_even_be_looked_at_is_told_so():
    one = Exercise("one", 1, ((),), {}, "page 1")
    assert "cannot be read: RuntimeError: hands off" in str(one(Hostile()))


@pytest.mark.parametrize("given", [np.ones(2), 3.0, "ones", [1, 1]])
def test_a_result_in_the_place_of_the_function_is_called_what_it_is(given):
    said = str(ONES(given)).splitlines()[0]
    assert said.startswith("not yet: this is a")
    assert said.endswith("hand it over by its name, without a call")


def test_a_law_that_returns_an_array_is_told_to_return_one_truth_value():
    said = str(softmax.rows_law(lambda attend: np.isclose(np.ones(5), 1)))
    assert "your law returns an array of shape (5,): return one True or False" in said


def test_a_nan_is_told_with_what_numpy_met_on_the_way():
    large = np.array([[1000.0, 999.0]])
    powers = Exercise("x", np.ones_like, ((large,),), {}, "page 1")
    said = str(powers(lambda x: np.exp(x) / np.exp(x).sum()))
    assert "holds NaN, and no NaN is expected here; NumPy met this first: over" in said


def test_the_numbers_of_an_input_that_is_shown_by_its_shape_can_be_had():
    verdict = attention.attend(lambda Q, K, V: np.sin(Q @ K.T) @ V)
    np.testing.assert_array_equal(verdict.given["V"], attention.attend.cases[0][2])
