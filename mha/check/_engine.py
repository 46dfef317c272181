"""How an answer is checked: beside the right one, then beside each known mistake.

A mistake is not a pattern in the learner's text but a wrong program of our own. An
answer that gives what this program gives on every input has made this mistake, however
it is written.
"""

import _thread
import copy
import functools
import inspect
import sys
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mha.check import _outcomes
from mha.check._outcomes import Raised, Unfit, few, general_hint, same, show

MOST = 15  # lines of a verdict


@dataclass(frozen=True, repr=False)
class Verdict:
    """What a check found; prints as the text a learner reads.

    `status` is ``"not attempted yet"``, ``"passed"`` or ``"not yet"``, `text` what is
    printed after it, and `mistake` what is said to the recognised mistake, or None.

    Examples
    --------
    >>> Verdict("not yet", "these are sums: divide them").passed
    False
    """

    status: str
    text: str
    mistake: str | None = None

    @property
    def passed(self) -> bool:
        """Whether the answer is right."""
        return self.status == "passed"

    def __repr__(self) -> str:
        return f"{self.status}: {self.text}"


@dataclass(frozen=True, eq=False, repr=False)
class Exercise:
    """A task with its right answer, its inputs and the mistakes people make.

    Calling it with an answer returns a `Verdict` of few lines, whatever the answer is
    or does; only a KeyboardInterrupt passes through. A tensor of PyTorch, a list and a
    NumPy array with the same numbers are the same answer, in float64 or float32. The
    page of `mha.check` shows one.

    An exercise that asks for a value has one empty case, ``((),)``, and its verdicts
    never show the expected one.

    Attributes
    ----------
    task : str
        What is asked, as a short noun phrase.
    right : object
        A right answer: a function, a number, a text.
    cases : sequence of tuple
        Inputs for a function, the smallest first; one empty tuple for a value.
    mistakes : dict
        Known wrong answers that differ on some case, each after what is said to it:
        ``{"that is the square": lambda x: x * x}``.
    reread : str
        Where a learner finds help, such as ``'chapter 2, "By hand"'``.
    praise : str, optional
        What is said to a right answer; by default the task.
    names : sequence of str, optional
        Names for the inputs in messages; those of `right` by default.
    observe : callable, optional
        ``observe(answer, *case)`` is compared; by default what a function returns, or
        a value itself. An `Unfit` that it raises is what is said.
    forbidden : sequence of callable, optional
        The functions of `mha` that the task asks for, such as ``(mha.softmax,)``. An
        answer that calls one, however indirectly, is refused.
    seconds : float, default 60
        After which an answer is stopped and told so.

    Raises
    ------
    TypeError, ValueError
        If a case is not a tuple, or there is none.
    """

    task: str
    right: Any
    cases: Sequence[tuple[Any, ...]]
    mistakes: Mapping[str, Any]
    reread: str
    praise: str = ""
    names: Sequence[str] = ()
    observe: Callable[..., Any] | None = None
    forbidden: Sequence[Callable[..., Any]] = ()
    seconds: float = 60

    def __post_init__(self) -> None:
        if len(self.cases) == 0:
            raise ValueError("cases must not be empty; a value has the one case ()")
        for case in self.cases:
            if not isinstance(case, tuple):
                kind = type(case).__name__
                raise TypeError(f"each of cases must be a tuple of inputs, got {kind}")

    def __repr__(self) -> str:
        return f"<Exercise: {self.task}>"

    def __call__(self, answer: object) -> Verdict:
        """Return the `Verdict` on a function, a value, or None for no attempt."""
        late = threading.Event()
        timer = threading.Timer(self.seconds, _interrupt, [late])
        timer.daemon = True
        try:
            if threading.current_thread() is threading.main_thread():
                timer.start()
            if is_stub(answer):
                return Verdict("not attempted yet", self.task)
            return self.judge(answer)
        except KeyboardInterrupt:
            if not late.is_set():
                raise
            return self._no(f"stopped after {self.seconds:g} s: does a loop not end?")
        except BaseException as error:  # an answer may resist even being looked at
            return Verdict("not yet", f"this answer cannot be read: {Raised(error)}")
        finally:
            timer.cancel()

    def judge(self, answer: object) -> Verdict:
        """Return the `Verdict` on an answer that is not a stub.

        An exercise that replies in a way of its own is a subclass that overrides this.
        """
        called: list[str] = []
        outcomes, wanted = self._outcomes(answer, called), self._wanted
        ours = (self.right, *self.mistakes.values())
        if called and not any(answer is each for each in ours):
            return self._no(f"this calls mha.{called[0]}; the task is to do without it")
        for case, got, want in zip(self.cases, outcomes, wanted, strict=True):
            if not same(got, want):
                slip, sure = self._recognise(outcomes)
                said = slip or general_hint(got, want, outcomes, wanted)
                text = said if sure or not slip else f"it may be this: {slip}"
                return self._no(text, *self._seen(case, got, want), slip=slip)
        return Verdict("passed", self.praise or self.task)

    def _no(self, *lines: str, slip: str | None = None) -> Verdict:
        text = "\n".join([*lines, f"  reread    {self.reread}"])
        return Verdict("not yet", text, slip)

    def _seen(self, case: tuple[Any, ...], got: Any, want: Any) -> list[str]:
        """Return lines that show the input, what was expected, and what came."""
        digits = 3 if show(got) != show(want) else 8
        pairs = [*zip(self._names(), case, strict=False)]
        rows = [f"  {name + ' =':<10}" + show(value, 12) for name, value in pairs]
        if case:  # of a value, the expected one would be the solution
            rows.append("  expected  " + show(want, 12, digits))
        if not isinstance(got, Raised) or not isinstance(got.error, Unfit):
            rows.append("  got       " + show(got, 12, digits))
        return few(rows, MOST - 2)

    def self_test(self) -> None:
        """Prove the exercise: run it on a stub, the right answers and each mistake.

        Raises
        ------
        AssertionError
            If a stub counts as attempted, the right answer does not pass, or a mistake
            passes or is taken for another.
        """
        if (verdict := self(lambda *_: None)).status != "not attempted yet":
            raise AssertionError(f"a stub counts as attempted:\n{verdict}")
        stops = [want for want in self._wanted if isinstance(want, Raised)]
        if len(stops) == len(self.cases):
            raise AssertionError(f"the right answer stops on every case: {stops[0]}")
        if not (verdict := self(self.right)).passed:
            raise AssertionError(f"the right answer does not pass:\n{verdict}")
        for hint, answer in self.mistakes.items():
            verdict = self(answer)
            if verdict.mistake != hint:
                same_as = "equals the right answer on every case"
                words = same_as if verdict.passed else "is not recognised"
                raise AssertionError(f"the mistake {hint!r} {words}:\n{verdict}")
            if len(verdict.text.splitlines()) > MOST:
                raise AssertionError(f"more than {MOST} lines are too many:\n{verdict}")

    @functools.cached_property
    def _wanted(self) -> list[Any]:
        """What the right answer gives on each case, computed once."""
        return self._outcomes(self.right)

    @functools.cached_property
    def _theirs(self) -> list[list[Any]]:
        """What each mistake gives on each case, computed once."""
        return [self._outcomes(answer) for answer in self.mistakes.values()]

    def _outcomes(self, answer: Any, called: Any = ()) -> list[Any]:
        return [self._outcome(answer, case, called) for case in self.cases]

    def _outcome(self, answer: Any, case: tuple[Any, ...], called: Any) -> Any:
        """Return what `answer` gives for `case`, an error included."""
        containers = np.ndarray | list | dict  # which an answer could write into
        given = [copy.deepcopy(x) if isinstance(x, containers) else x for x in case]
        run = _watched(answer, self.forbidden, called)
        plainly = run if callable(run) else lambda: run
        observe = self.observe or (lambda _, *given: plainly(*given))
        try:
            with np.errstate(all="ignore"):
                result = _outcomes.as_plain(observe(run, *given))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # of the answer, or of reading its result
            return Raised(error)
        for name, before, after in zip(self._names(), case, given, strict=False):
            if isinstance(before, np.ndarray) and not same(before, after):
                text = "must stay as it is, and your answer writes into it"
                return Raised(Unfit(f"the input {name} {text}"))
        return result

    def _recognise(self, outcomes: list[Any]) -> tuple[str | None, bool]:
        """Return what is said to the mistake that gives the same, and whether it is so.

        It may be one that differs only where either stops with an error.
        """
        near = []
        for hint, theirs in zip(self.mistakes, self._theirs, strict=True):
            if all(map(same, outcomes, theirs)):
                return hint, True
            if _outcomes.same_slip(outcomes, theirs, self._wanted):
                near.append(hint)
        return (near[0] if len(near) == 1 else None), False

    def _names(self) -> Sequence[str]:
        if self.names or not callable(self.right):
            return self.names
        try:
            return tuple(inspect.signature(self.right).parameters)
        except ValueError:  # some functions in C do not say what they take
            return ()


def _interrupt(late: threading.Event) -> None:
    late.set()
    _thread.interrupt_main()


def _refuses() -> None:
    raise NotImplementedError


def _says_what_it_should_do() -> None:
    """Return."""


STUBS = {f.__code__.co_code for f in (lambda: None, _refuses, _says_what_it_should_do)}


def is_stub(answer: object) -> bool:
    """Tell whether `answer` is the untouched stub of an exercise: None, ``...``, or a
    function that holds nothing but a docstring or ``raise NotImplementedError``.

    Examples
    --------
    >>> def f(x):
    ...     '''Return twice x.'''
    >>> is_stub(f), is_stub(...), is_stub(lambda x: 2 * x)
    (True, True, False)
    """
    if answer is None or answer is Ellipsis:
        return True
    if not isinstance(answer, types.FunctionType):
        return False
    code, text = answer.__code__, answer.__doc__
    named = set(code.co_names) <= {"NotImplementedError"}
    return named and code.co_code in STUBS and {*code.co_consts} <= {None, ..., text}


def _watched(answer: Any, forbidden: Sequence[Any], called: Any) -> Any:
    """Return an answer that gives arrays, and adds forbidden calls to `called`."""
    if not (inspect.isroutine(answer) or isinstance(answer, functools.partial)):
        return answer if callable(answer) else _outcomes.without_torch(answer)
    names = {inspect.unwrap(step).__code__: step.__qualname__ for step in forbidden}

    def note(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in names:
            called.append(names[frame.f_code])

    @functools.wraps(answer)
    def watched(*args: Any, **options: Any) -> Any:
        profiler = sys.getprofile()
        try:
            if names and isinstance(called, list):
                sys.setprofile(note)
            return _outcomes.without_torch(answer(*args, **options))
        finally:
            sys.setprofile(profiler)

    return watched
