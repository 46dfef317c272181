"""How an answer is checked: beside the right one, then beside each known mistake.

A mistake is not a pattern in the learner's text but a wrong program of our own. An
answer that gives what this program gives on every input has made this mistake, however
it is written.
"""

import copy
import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mha.check import _outcomes
from mha.check._outcomes import InputChanged, Raised, general_hint, same, show


@dataclass(frozen=True, repr=False)
class Verdict:
    """What a check found; prints as the text a learner reads.

    `status` is ``"not attempted yet"``, ``"passed"`` or ``"not yet"``, `text` is what
    is printed after it, and `mistake` is what is said to the recognised mistake, if
    there is one.

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

    Calling it with an answer returns a `Verdict`, whatever the answer is or does; only
    a KeyboardInterrupt passes through. A tensor of PyTorch, a list and a NumPy array
    with the same numbers are the same answer. The page of `mha.check` shows one.

    An exercise that asks for a value has one empty case, ``((),)``. Its verdicts never
    show the expected value, because that is the solution.

    Attributes
    ----------
    task : str
        What is asked, as a short noun phrase.
    right : object
        A right answer: a function, a number, a text.
    cases : sequence of tuple
        Inputs for a function, the smallest first; one empty tuple for a value.
    mistakes : dict
        Known wrong answers, each different from the others on some case, after the
        sentence that is said to it: ``{"that is the square": lambda x: x * x}``.
    reread : str
        Where a learner finds help, such as ``'chapter 2, "By hand"'``.
    praise : str, optional
        What is said to a right answer, one sentence; by default the task.
    names : sequence of str, optional
        Names for the inputs in messages; those of `right` by default.
    observe : callable, optional
        ``observe(answer, *case)``: what is compared. By default a function is called
        and a value stands for itself.
    forbidden : sequence of callable, optional
        The functions of `mha` that the task asks for, such as ``(mha.softmax,)``. An
        answer that calls one, however indirectly, is refused; none by default.

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

    def __post_init__(self) -> None:
        if len(self.cases) == 0:
            raise ValueError("cases must not be empty; a value has the one case ()")
        for k, case in enumerate(self.cases):
            if not isinstance(case, tuple):
                kind = type(case).__name__
                raise TypeError(f"cases[{k}] must be a tuple of inputs, got {kind}")

    def __repr__(self) -> str:
        return f"<Exercise: {self.task}>"

    def __call__(self, answer: object) -> Verdict:
        """Return the `Verdict` on a function, a value, or None for no attempt."""
        try:
            if is_stub(answer):
                return Verdict("not attempted yet", self.task)
            return self.judge(answer)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # an answer may resist even being looked at
            return Verdict("not yet", f"this answer cannot be read: {Raised(error)}")

    def judge(self, answer: object) -> Verdict:
        """Return the `Verdict` on an answer that is not a stub.

        An exercise that replies in a way of its own is a subclass that overrides this.
        """
        called: list[str] = []
        outcomes, wanted = self._outcomes(answer, called), self._wanted
        ours = (self.right, *self.mistakes.values())
        if called and not any(answer is each for each in ours):
            step = f"this calls mha.{called[0]}; the task is to do without it"
            return Verdict("not yet", f"{step}\n  reread    {self.reread}")
        for case, got, want in zip(self.cases, outcomes, wanted, strict=True):
            if not same(got, want):
                slip = self._recognise(outcomes)
                lines = [slip or general_hint(got, want, outcomes, wanted)]
                for name, value in zip(self._names(), case, strict=False):
                    lines.append(f"  {name + ' =':<10}{show(value, 12)}")
                digits = 3 if show(got) != show(want) else 8
                if case:  # of a value, the expected one would be the solution
                    lines.append(f"  expected  {show(want, 12, digits)}")
                lines.append(f"  got       {show(got, 12, digits)}")
                lines.append(f"  reread    {self.reread}")
                return Verdict("not yet", "\n".join(lines), slip)
        return Verdict("passed", self.praise or self.task)

    def self_test(self) -> None:
        """Prove the exercise: run it on a stub, the right answers and each mistake.

        Raises
        ------
        AssertionError
            If a stub counts as attempted, the right answer does not pass, or a mistake
            passes or is taken for another.
        """
        for stub in (None, ..., lambda *_: None):
            verdict = self(stub)
            if verdict.status != "not attempted yet":
                raise AssertionError(f"a stub counts as attempted:\n{verdict}")
        stops = [want for want in self._wanted if isinstance(want, Raised)]
        if len(stops) == len(self.cases):
            raise AssertionError(f"the right answer stops on every case: {stops[0]}")
        if not (verdict := self(self.right)).passed:
            raise AssertionError(f"the right answer does not pass:\n{verdict}")
        for hint, answer in self.mistakes.items():
            verdict = self(answer)
            for fault, words in (
                (verdict.passed, "equals the right answer on every case"),
                (verdict.mistake != hint, "is not recognised"),
                (self.reread not in verdict.text, "must be told what to reread"),
            ):
                if fault:
                    raise AssertionError(f"the mistake {hint!r} {words}:\n{verdict}")

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
        run = _watched(answer, self._note_in(called))
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
                return Raised(InputChanged(f"the input {name} must stay as it is"))
        return result

    def _note_in(self, called: Any) -> Any:
        """Return a profiler that adds the name of a forbidden step to `called`."""
        codes = {inspect.unwrap(step).__code__: step for step in self.forbidden}

        def note(frame: types.FrameType, event: str, _: Any) -> None:
            if event == "call" and frame.f_code in codes:
                called.append(codes[frame.f_code].__qualname__)

        return note if codes and isinstance(called, list) else None

    def _recognise(self, outcomes: list[Any]) -> str | None:
        """Return what is said to the mistake that gives the same, if there is one.

        If none does, it may be the one mistake that differs only where either stops
        with an error.
        """
        rows = [*zip(self.mistakes, self._theirs, strict=True)]
        for hint, theirs in rows:
            if all(map(same, outcomes, theirs)):
                return hint
        near = [
            hint
            for hint, theirs in rows
            if _outcomes.same_slip(outcomes, theirs, self._wanted)
        ]
        return near[0] if len(near) == 1 else None

    def _names(self) -> Sequence[str]:
        if self.names or not callable(self.right):
            return self.names
        try:
            return tuple(inspect.signature(self.right).parameters)
        except ValueError:  # some functions in C do not say what they take
            return ()


def _refuses() -> None:
    raise NotImplementedError


def _says_what_it_should_do() -> None:
    """Return."""


STUBS = {f.__code__.co_code for f in (lambda: None, _refuses, _says_what_it_should_do)}


def is_stub(answer: object) -> bool:
    """Tell whether `answer` is the untouched stub of an exercise: None, ``...``, or a
    function that holds nothing but a docstring or ``raise NotImplementedError``.

    One that computes and forgets to return is *not* a stub: its author needs to hear
    about the missing return.

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


def _watched(answer: Any, note: Any) -> Any:
    """Return an answer that gives arrays, and whose calls are told to `note`."""
    if not (inspect.isroutine(answer) or isinstance(answer, functools.partial)):
        return answer if callable(answer) else _outcomes.without_torch(answer)

    @functools.wraps(answer)
    def watched(*args: Any, **options: Any) -> Any:
        profiler = sys.getprofile()
        try:
            if note:
                sys.setprofile(note)
            return _outcomes.without_torch(answer(*args, **options))
        finally:
            sys.setprofile(profiler)

    return watched
