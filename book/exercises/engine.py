"""Exercises that name a learner's mistake, for people who write their own.

An `Exercise` holds a right answer, a few inputs and the wrong answers that learners
give. It runs an answer beside all of these, so that a mistake is recognised by what it
computes, however it is written.

Examples
--------
An exercise of a teacher: a right answer, two inputs with the smaller one first, and
two slips, each a wrong program after what is said to it. `Exercise.self_test` proves
that each is told apart.

>>> import numpy as np
>>> from exercises.engine import Exercise
>>> row_means = Exercise(
...     task="the mean of each row",
...     right=lambda X: X.mean(axis=1),
...     cases=(
...         (np.array([[1.0, 3.0]]),),
...         (np.array([[1.0, 2.0, 6.0], [0.0, 1.0, 2.0]]),),
...     ),
...     mistakes={
...         "these are sums: divide them": lambda X: X.sum(axis=1),
...         "one mean for each column: use axis 1": lambda X: X.mean(axis=0),
...     },
...     reread="lecture 2, page 5",
...     praise="one mean per row, for every number of columns.",
... )
>>> row_means.self_test()

A learner calls it with her function, at first with the stub that she was given:

>>> def answer(X):
...     '''Return the mean of each row.'''
>>> row_means(answer)
not attempted yet: the mean of each row
>>> row_means(lambda X: X.sum(1) / X.shape[1])
passed: one mean per row, for every number of columns.

A known mistake gets its hint, with the smallest input on which the answer is wrong, and
any other what the check can say, such as "the result has shape (2,), expected (3,)":

>>> row_means(lambda X: np.einsum("ij->i", X))
not yet: these are sums: divide them
  X =       [[1. 3.]]
  expected  [2.]
  got       [4.]
  reread    lecture 2, page 5
"""

import _thread
import copy
import functools
import inspect
import re
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np

__all__ = ["Exercise", "Late", "Unfit", "Verdict", "is_stub", "limited", "same"]

MOST = 15  # lines of a verdict


@dataclass(frozen=True, repr=False)
class Verdict:
    """What a check found; prints as the text a learner reads.

    `status` is ``"not attempted yet"``, ``"passed"`` or ``"not yet"``, `text` what is
    printed after it, and `mistake` what is said to the recognised mistake, or None.
    `given` holds the inputs that are shown by name, and `picture` is called for the
    HTML that a notebook shows below a passed answer.

    Examples
    --------
    >>> Verdict("not yet", "these are sums: divide them").passed
    False
    """

    status: str
    text: str
    mistake: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    picture: Callable[[], str] | None = None

    @property
    def passed(self) -> bool:
        """Whether the answer is right."""
        return self.status == "passed"

    def __repr__(self) -> str:
        return f"{self.status}: {self.text}"

    def _repr_html_(self) -> str | None:
        if not self.picture:
            return None  # and a notebook prints the text
        mark = f'<span class="mark">✓</span> <b>{self.status}</b>'
        line = f"<p>{mark}: {escape(self.text)}</p>"
        return f'<div class="report">{line}</div>{self.picture()}'


@dataclass(frozen=True, eq=False, repr=False)
class Exercise:
    """A task with its right answer, its inputs and the mistakes people make.

    Calling it with an answer returns a `Verdict` of few lines, whatever the answer is
    or does; only a KeyboardInterrupt passes through. A tensor of PyTorch, a list and a
    NumPy array with the same numbers are the same answer, in float64 or float32.

    Attributes
    ----------
    task : str
        What is asked, as a short noun phrase.
    right : object
        A right answer: a function, a number, a text.
    cases : sequence of tuple
        Inputs for a function, the smallest first; for a value the one case ``((),)``,
        and its verdicts never show the expected one.
    mistakes : dict
        Known wrong answers that differ on some case, each after what is said to it:
        ``{"that is the square": lambda x: x * x}``.
    reread : str
        Where a learner finds help, such as ``"lecture 2, page 5"``.
    praise : str, optional
        What is said to a right answer; by default the task.
    names : sequence of str, optional
        Names for the inputs in messages; those of `right` by default.
    observe : callable, optional
        ``observe(answer, *case)`` is compared; by default what a function returns, or
        a value itself. An `Unfit` that it raises is what is said.
    forbidden : sequence of callable, optional
        The functions of `mha` that the task asks for, such as ``(mha.softmax,)``. An
        answer that calls one, however indirectly, is refused, unless a profiler runs.
    picture : callable, optional
        ``picture(answer)`` is the HTML that a right answer is rewarded with.
    seconds : float, default 60
        Of computing, after which an answer is stopped and told so. Waiting is free, and
        a debugger switches the limit off; see `limited`.
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
    picture: Callable[[Any], str] | None = None
    seconds: float = 60

    def __post_init__(self) -> None:
        if not self.cases or not all(isinstance(case, tuple) for case in self.cases):
            raise TypeError("cases must be tuples of inputs; a value has the one ()")

    def __call__(self, answer: object) -> Verdict:
        """Return the `Verdict` on a function, a value, or None for no attempt."""
        try:
            if is_stub(answer):
                return Verdict("not attempted yet", self.task)
            return limited(self.seconds, lambda: self.judge(answer))
        except KeyboardInterrupt:
            raise
        except Late:
            return self._no(f"stopped after {self.seconds:g} s: does a loop not end?")
        except BaseException as error:  # an answer may resist even being looked at
            return Verdict("not yet", f"this answer cannot be read: {Raised(error)}")

    def judge(self, answer: object) -> Verdict:
        """Return the `Verdict` on an answer that is not a stub.

        An exercise that replies in a way of its own is a subclass that overrides this.
        """
        if callable(self.right) and any(self.cases) and not callable(answer):
            text = "a function is asked for: hand it over by its name, without a call"
            return self._no(f"this is {_a(answer)}, and {text}")
        called: list[str] = []
        wanted = self.wanted
        outcomes = [*map(_alike, self.outcomes(answer, called), wanted)]
        ours = (self.right, *self.mistakes.values())
        if called and not any(answer is each for each in ours):
            return self._no(f"this calls mha.{called[0]}; the task is to do without it")
        for case, got, want in zip(self.cases, outcomes, wanted, strict=True):
            if not same(got, want):
                slip, sure = self.recognise(outcomes)
                said = slip or general_hint(got, want, outcomes, wanted)
                if said == NAN:
                    said += self._warned(answer, case)
                text = said if sure or not slip else f"it may be this: {slip}"
                no = self._no(text, *self._seen(case, got, want), slip=slip)
                return replace(no, given=dict(zip(self.inputs, case, strict=False)))
        picture = self.picture and functools.partial(self.picture, answer)
        return Verdict("passed", self.praise or self.task, picture=picture)

    def _no(self, *lines: str, slip: str | None = None) -> Verdict:
        text = "\n".join([*lines, f"  reread    {self.reread}"])
        return Verdict("not yet", text, slip)

    def _warned(self, answer: Any, case: tuple[Any, ...]) -> str:
        """Return what NumPy met first while an answer came to its NaN."""
        met: list[str] = []
        with np.errstate(call=lambda kind, _: met.append(kind)):
            self.outcome(answer, case, errors="call")
        return f"; NumPy met this first: {met[0]}" if met else ""

    def _seen(self, case: tuple[Any, ...], got: Any, want: Any) -> list[str]:
        """Return lines that show the input, what was expected, and what came."""
        digits = 3 if show(got) != show(want) else 8
        whole = 9 if sum(getattr(x, "size", 1) for x in case) > 36 else 36
        rows = [
            (label := f"  {name + ' =':<9} ") + show(value, len(label), whole=whole)
            for name, value in zip(self.inputs, case, strict=False)
        ]
        if case:  # of a value, the expected one would be the solution
            rows.append("  expected  " + show(want, 12, digits))
        if not isinstance(got, Raised) or not isinstance(got.error, Unfit):
            rows.append("  got       " + show(got, 12, digits))
        return few(rows, MOST - 2)

    def self_test(self) -> None:
        """Prove the exercise: run it on a stub, the right answers and each mistake.

        It raises an AssertionError if a stub counts as attempted, the right answer does
        not pass, or a mistake passes or is taken for another.
        """
        if (verdict := self(lambda *_: None)).status != "not attempted yet":
            raise AssertionError(f"a stub counts as attempted:\n{verdict}")
        stops = [want for want in self.wanted if isinstance(want, Raised)]
        if len(stops) == len(self.cases):
            raise AssertionError(f"the right answer stops on every case: {stops[0]}")
        if not (verdict := self(self.right)).passed:
            raise AssertionError(f"the right answer does not pass:\n{verdict}")
        for hint, answer in self.mistakes.items():
            verdict = self(answer)
            if verdict.mistake != hint:
                text = f"the mistake {hint!r} is not recognised:\n{verdict}"
                raise AssertionError(text)

    # What judging is made of, for an exercise that replies in a way of its own

    @functools.cached_property
    def wanted(self) -> list[Any]:
        """What the right answer gives on each case, computed once."""
        return self.outcomes(self.right)

    @functools.cached_property
    def mistaken(self) -> list[list[Any]]:
        """What each mistake gives on each case, computed once."""
        return [self.outcomes(answer) for answer in self.mistakes.values()]

    @functools.cached_property
    def inputs(self) -> Sequence[str]:
        """The names of the inputs, those of `right` if the exercise has none."""
        if self.names or not callable(self.right):
            return self.names
        try:
            return tuple(inspect.signature(self.right).parameters)
        except ValueError:  # some functions in C do not say what they take
            return ()

    def outcomes(self, answer: Any, called: list[str] | None = None) -> list[Any]:
        """Return what `answer` gives on each case, see `outcome`."""
        return [self.outcome(answer, case, called) for case in self.cases]

    def outcome(
        self,
        answer: Any,
        case: tuple[Any, ...],
        called: list[str] | None = None,
        errors: Any = "ignore",
    ) -> Any:
        """Return what `answer` gives for `case`, an error included.

        The names of forbidden functions that it calls are added to `called`.
        """
        containers = np.ndarray | list | dict  # which an answer could write into
        given = [copy.deepcopy(x) if isinstance(x, containers) else x for x in case]
        run = _watched(answer, self.forbidden, called)
        plainly = run if callable(run) else lambda: run
        observe = self.observe or (lambda _, *given: plainly(*given))
        try:
            with np.errstate(all=errors, under="ignore"):
                result = as_plain(observe(run, *given))
        except (KeyboardInterrupt, Late):
            raise
        except BaseException as error:  # of the answer, or of reading its result
            return Raised(error)
        for name, before, after in zip(self.inputs, case, given, strict=False):
            if isinstance(before, np.ndarray) and not same(before, after):
                text = "must stay as it is, and your answer writes into it"
                return Raised(Unfit(f"the input {name} {text}"))
        return result

    def recognise(self, outcomes: list[Any]) -> tuple[str | None, bool]:
        """Return what is said to the mistake that gives the same, and whether it is so.

        It may be one that differs only where either stops with an error.
        """
        near = []
        for hint, theirs in zip(self.mistakes, self.mistaken, strict=True):
            if all(map(same, outcomes, theirs)):
                return hint, True
            if same_slip(outcomes, theirs, self.wanted):
                near.append(hint)
        return (near[0] if len(near) == 1 else None), False


class Late(BaseException):
    """Stops an answer; ``except Exception`` in the answer lets it pass."""


# A signal that nothing else uses, and that Python lets a program handle.
SIGNAL = getattr(signal, "SIGVTALRM", None) or getattr(signal, "SIGBREAK", None)


def limited(seconds: float, run: Callable[[], Any]) -> Any:
    """Return ``run()``, or raise `Late` in it after so many seconds of computing.

    An answer runs in its notebook and not in a process of its own, because a function
    that a notebook defines cannot be sent to another process. So it is interrupted
    there, as by Ctrl-C: a thread reminds the main thread now and then to look at the
    clock. (A trace function would need no thread. But it makes loops 15 times slower,
    a debugger wants its place, and some versions of Python hide ``while True: pass``
    from it.)

    Nobody who debugs an answer is interrupted, and a debugger that is seen at work ends
    the limit. Only time of the processor counts, in this thread, so that one may think
    at any prompt.

    What cannot be stopped is one call that waits, such as ``time.sleep(1e9)``, or that
    does not return to Python. There, in a thread that is not the main one, and where
    threads cannot be started, as in a browser, the learner interrupts the kernel, as of
    any cell.

    Examples
    --------
    >>> def endless():
    ...     while True:
    ...         pass
    >>> try:
    ...     limited(0.01, endless)
    ... except Late:
    ...     print("stopped")
    stopped
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or sys.platform in ("emscripten", "wasi") or _traced():
        return run()
    start, over, counts = time.thread_time(), threading.Event(), True

    def look(*_: Any) -> None:
        nonlocal counts
        if _traced():
            counts = False
        elif counts and time.thread_time() - start > seconds:
            counts = False
            raise Late

    def remind() -> None:
        while not over.wait(seconds / 10):
            _thread.interrupt_main(SIGNAL)

    before = signal.signal(SIGNAL, look)
    reminder = threading.Thread(target=remind, daemon=True)
    try:
        reminder.start()
        return run()
    finally:
        counts = False  # first, so that nothing interrupts the rest
        over.set()
        reminder.join()
        signal.signal(SIGNAL, before)


def _traced() -> bool:
    """Tell whether a debugger, or whoever else traces, is at work."""
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12 on
    debugger = monitoring and monitoring.get_tool(monitoring.DEBUGGER_ID)
    return bool(sys.gettrace() or debugger)


def _refuses() -> None:
    raise NotImplementedError


def _says_what_it_should_do() -> None:
    """Return."""


STUBS = {f.__code__.co_code for f in (lambda: None, _refuses, _says_what_it_should_do)}


def is_stub(answer: object) -> bool:
    """Tell whether `answer` is the untouched stub of an exercise: None, ``...``, or a
    function that holds nothing but a docstring or ``raise NotImplementedError``.

    >>> is_stub(...), is_stub(lambda x: None), is_stub(lambda x: 2 * x)
    (True, True, False)
    """
    if answer is None or answer is Ellipsis:
        return True
    if not isinstance(answer, types.FunctionType):
        return False
    code, text = answer.__code__, answer.__doc__
    named = set(code.co_names) <= {"NotImplementedError"}
    return named and code.co_code in STUBS and {*code.co_consts} <= {None, ..., text}


def _watched(answer: Any, forbidden: Sequence[Any], called: list[str] | None) -> Any:
    """Return an answer that gives arrays, and adds forbidden calls to `called`.

    Calls are seen by a profiler. Where one is at work already, it stays, and they are
    not seen.
    """
    if not (inspect.isroutine(answer) or isinstance(answer, functools.partial)):
        return answer if callable(answer) else without_torch(answer)
    names = {inspect.unwrap(step).__code__: step.__qualname__ for step in forbidden}

    def note(frame: types.FrameType, event: str, _: Any) -> None:
        if called is not None and event == "call" and frame.f_code in names:
            called.append(names[frame.f_code])

    @functools.wraps(answer)
    def watched(*args: Any, **options: Any) -> Any:
        if not names or called is None or sys.getprofile():
            return without_torch(answer(*args, **options))
        sys.setprofile(note)
        try:
            return without_torch(answer(*args, **options))
        finally:
            if sys.getprofile() is note:  # and not one that the answer has started
                sys.setprofile(None)

    return watched


# What an answer gave: how it is read, compared, described and shown

# Answers are compared as a person would: rounding of float32 work is forgiven.
RTOL, ATOL = 1e-5, 1e-7
Many = Sequence[Any]  # the outcomes of all cases
LONGEST = 400  # characters of a foreign object that are shown

NAN = "the result holds NaN, and no NaN is expected here"
_HOLDS = {"b": "truth values", "c": "complex numbers", "T": "texts", "U": "texts"}


class Unfit(Exception):
    """What is said of an answer that cannot be compared, such as a text for a number.

    An observer of an `Exercise` raises it, and its words are the verdict.
    """


@dataclass(frozen=True)
class Raised:
    """The outcome of an answer that stopped with an error."""

    error: BaseException

    def __str__(self) -> str:
        kind, text = type(self.error).__name__, printed(self.error, str)
        return f"{kind}: {text}" if text else kind


@dataclass(frozen=True, eq=False)
class Other:
    """A result that is neither numbers nor text."""

    value: Any


def as_plain(result: Any) -> Any:
    """Return a result as arrays, texts and tuples of these, if it can be read so."""
    if isinstance(result, tuple):
        return tuple(as_plain(each) for each in result)
    if isinstance(result, str):
        return result.strip().lower()
    try:
        array = np.asarray(without_torch(result))
        if array.dtype.kind != "O":
            return array
        if None not in array.ravel().tolist():
            return array.astype(np.float64)  # of fractions, for example
    except (TypeError, ValueError):  # other things, or rows that differ in length
        pass
    return Other(result)


def _alike(got: Any, want: Any) -> Any:
    """Return a list, or a stack, of several results as the tuple that is expected."""
    if isinstance(want, tuple):
        if isinstance(got, Other) and isinstance(got.value, list):
            return tuple(map(as_plain, got.value))
        if isinstance(got, np.ndarray) and got.ndim:
            if [*map(np.shape, got)] == [*map(np.shape, want)]:
                return tuple(got)
    return got


def without_torch(result: Any) -> Any:
    """Return arrays for the tensors of PyTorch in a result, and all else as it is."""
    if isinstance(result, list | tuple) and type(result) in (list, tuple):
        return type(result)(map(without_torch, result))
    if not all(hasattr(result, name) for name in ("detach", "cpu", "numpy")):
        return result
    tensor = result.detach().cpu().to_dense()
    unknown = str(tensor.dtype) == "torch.bfloat16"  # to NumPy
    return (tensor.float() if unknown else tensor).numpy()


def same(a: Any, b: Any) -> bool:
    """Tell whether two outcomes agree: same kind, same shape, same numbers.

    Numbers agree up to the rounding of float32, and NaN agrees with NaN.
    """
    try:
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            kinds = {a.dtype.kind, b.dtype.kind}
            if a.shape == b.shape and (kinds <= set("biuf") or kinds == {"c"}):
                return bool(np.allclose(a, b, RTOL, _smallest(a, b), equal_nan=True))
            return a.shape == b.shape and len(kinds) == 1 and bool((a == b).all())
        if type(a) is not type(b):
            return False
        if isinstance(a, Raised):
            return type(a.error) is type(b.error)
        if isinstance(a, tuple):
            return len(a) == len(b) and all(map(same, a, b))
        if isinstance(a, Other):
            return type(a.value) is type(b.value) and bool(a.value == b.value)
        return bool(a == b)
    except Exception:  # what cannot be compared does not agree
        return False


def _smallest(a: np.ndarray, b: np.ndarray) -> float:
    """Return a difference that counts as rounding, even where 0 is expected."""
    if np.float32 not in (a.dtype, b.dtype):
        return ATOL
    sizes = np.abs(np.concatenate([a.ravel(), b.ravel()]))
    return max(ATOL, 1e-6 * float(sizes[np.isfinite(sizes)].max(initial=0)))


def same_slip(a: Many, b: Many, wanted: Many) -> bool:
    """Tell whether two answers fail first in one way, and agree where neither stops."""
    first = next(k for k, want in enumerate(wanted) if not same(a[k], want))
    pairs = [*zip(a, b, strict=True)]
    stops = [any(isinstance(x, Raised) for x in pair) for pair in pairs]
    agree = all(stop or same(*pair) for stop, pair in zip(stops, pairs, strict=True))
    return agree and not stops[first]


def general_hint(got: Any, want: Any, outcomes: Many, wanted: Many) -> str:
    """Return what can be said of a wrong outcome that matches no known mistake."""
    if isinstance(got, Raised):
        if isinstance(got.error, Unfit):
            return str(got.error)
        if isinstance(got.error, NameError):
            return f"{got}: import or define it in your cell"
        unfit = re.search(r"matmul.*size (\d+) is different from (\d+)", str(got))
        if unfit:
            sizes = f"A is {unfit[2]} wide and B {unfit[1]} high"
            return f"your answer stops, because a product A @ B does not fit: {sizes}"
        if str(got) == "OverflowError: math range error":
            return f"your answer ends in {got}, so a result is too large for a float"
        return f"your answer ends in {got}"
    if isinstance(want, tuple):
        if not isinstance(got, tuple) or len(got) != len(want):
            return f"expected {len(want)} results, in the order of the task"
        k = list(map(same, got, want)).index(False)  # the first one that differs
        hint = general_hint(got[k], want[k], [got[k]], [want[k]])
        return f"result {k + 1} of {len(want)}: {hint}"
    if isinstance(got, Other) and got.value is None:
        return "the result is None: is a return missing?"
    arrays = isinstance(got, np.ndarray) and isinstance(want, np.ndarray)
    if arrays and got.shape != want.shape:
        return f"the result has shape {got.shape}, expected {want.shape}"
    if _what(got) != _what(want) and (not arrays or got.dtype.kind not in "biuf"):
        return f"the result is {_what(got)}, expected {_what(want)}"
    if not arrays or want.dtype.kind not in "biuf":
        return "the result differs from the expected one"
    return _of_numbers(got, want, outcomes, wanted)


def _of_numbers(got: Any, want: Any, outcomes: Many, wanted: Many) -> str:
    """Return what wrong numbers, or truth values, have in common with the right."""
    if np.isnan(got).any() and not np.isnan(want).any():
        return NAN
    ours, theirs = _in_one_row(outcomes, got), _in_one_row(wanted, want)
    if ours.shape != theirs.shape:
        ours, theirs = _in_one_row([got], got), _in_one_row([want], want)
    if want.dtype.kind == "b":
        if same(ours, 1 - theirs):
            return "every True should be False and every False True"
        return "a truth value differs from the expected one"
    if want.ndim >= 2 and same(got.swapaxes(-1, -2).copy(), want):
        return "the result is the transpose of the expected one"
    if want.size > 2 and same(np.sort(got, None), np.sort(want, None)):
        return "these are the right numbers in a wrong order"
    # One number could be anything, and so could x and -x; two sizes are no accident.
    sizes = np.unique(np.abs(theirs[theirs != 0]).round(9))
    if len(sizes) > 1 and np.array_equal(ours == 0, theirs == 0):
        factor = ours[theirs != 0] / theirs[theirs != 0]
        if np.allclose(factor, factor[0], rtol=RTOL):
            return f"every number is {factor[0]:.3g} times what it should be"
    off = ours[0] - theirs[0] if ours.size > 1 else 0
    if off and np.allclose(ours - theirs, off, RTOL):
        return f"every number is {abs(off):.3g} too {'large' if off > 0 else 'small'}"
    for digits in range(5, 0, -1):
        cut = theirs.round(digits)
        if same(ours, cut) and np.allclose(ours, ours.round(digits), 1e-7):
            return f"the answer looks rounded to {digits} decimals: keep them all"
    return "the numbers differ, and it is none of the mistakes this check knows"


def _in_one_row(results: Sequence[Any], one: np.ndarray) -> np.ndarray:
    """Return all numbers of all results, or of `one` if they hold something else."""
    if not all(isinstance(x, np.ndarray) and x.dtype.kind in "biuf" for x in results):
        results = [one]
    return np.concatenate([np.asarray(x, dtype=float).ravel() for x in results])


def _what(outcome: Any) -> str:
    """Return in a few words what kind of thing an outcome is."""
    if isinstance(outcome, tuple):
        return f"a tuple of {len(outcome)} results"
    if not isinstance(outcome, np.ndarray):
        return "a text" if isinstance(outcome, str) else _a(outcome.value)
    holds = _HOLDS.get(outcome.dtype.kind, "numbers")
    return f"an array of {holds}" if outcome.shape else f"a {holds[:-1]}"


def show(value: Any, indent: int = 0, digits: int = 3, whole: float = np.inf) -> str:
    """Return `value` in few digits and aligned rows, or the shape of a large one."""
    margin = "\n" + " " * indent
    if isinstance(value, tuple):
        return margin.join(show(v, indent, digits) for v in value)
    if isinstance(value, Other):
        return show(value.value, indent)
    if callable(value):
        return str(getattr(value, "slug", getattr(value, "__name__", printed(value))))
    if not isinstance(value, np.ndarray | np.generic | bool | int | float):
        return printed(value, str if isinstance(value, Raised) else repr)
    if (array := np.asarray(value)).size > whole:
        return f"shape {array.shape}"
    text = np.array2string(array, precision=digits, suppress_small=True, threshold=60)
    return re.sub(r"\n+", margin, text if array.ndim else text.removesuffix("."))


def few(texts: Iterable[str], most: int) -> list[str]:
    """Return texts that have at most so many lines together, the longest ones cut."""
    rows = [text.split("\n") for text in texts]
    while sum(map(len, rows)) > max(most, len(rows)):
        longest = max(rows, key=len)
        longest[-2:] = [longest[-2].removesuffix(" ...") + " ..."]
    return ["\n".join(lines) for lines in rows]


def printed(value: Any, how: Any = repr) -> str:
    """Return the text of a foreign object, which may refuse to give one."""
    try:
        text = str(how(value))
    except Exception:
        return f"{_a(value)} that cannot be printed"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _a(value: Any) -> str:
    """Return the type of a value with its article, such as "a dict"."""
    if value is None or isinstance(value, type):
        return "None" if value is None else "a class"
    name = type(value).__name__.removeprefix("nd")  # NumPy's is an array
    return f"an {name}" if name[0] in "aeiouAEIO" else f"a {name}"
