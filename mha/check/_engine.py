"""How an answer is checked: beside the right one, then beside each known mistake.

A mistake is not a pattern in the learner's text but a wrong program of our own. An
answer that gives what this program gives on every input has made this mistake, however
it is written.
"""

import dis
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# Answers are compared as a person would: rounding of float32 work is forgiven.
RTOL, ATOL = 1e-5, 1e-7


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that we have seen, and what to say to it.

    Attributes
    ----------
    name : str
        A few words, such as ``"softmax over the queries"``.
    hint : str
        One sentence that helps without giving the solution away.
    answer : object
        The wrong answer itself: a function, a number, a word.
    """

    name: str
    hint: str
    answer: Any


@dataclass(frozen=True)
class Verdict:
    """What a check found; prints as the text a learner reads.

    Attributes
    ----------
    status : str
        ``"not attempted yet"``, ``"passed"`` or ``"not yet"``.
    text : str
        All that is printed.
    mistake : str or None
        The name of the recognised mistake.
    """

    status: str
    text: str
    mistake: str | None = None

    @property
    def passed(self):
        """Whether the answer is right."""
        return self.status == "passed"

    def __repr__(self):
        return f"{self.status}: {self.text}"


class InputChanged(Exception):
    """An answer wrote into the array it was given."""


@dataclass(frozen=True)
class Raised:
    """The outcome of an answer that stopped with an error."""

    error: Exception

    def __str__(self):
        return f"{type(self.error).__name__}: {self.error}"


@dataclass(frozen=True)
class Exercise:
    """A task with its right answer, its inputs and the mistakes people make.

    Calling the exercise with an answer returns a `Verdict`.

    Attributes
    ----------
    task : str
        What is asked, as a short noun phrase.
    right : object
        A right answer: a function, a number, a word.
    cases : tuple of tuple
        Inputs for a function, the smallest first; one empty tuple for a value.
    mistakes : tuple of Mistake
        Known wrong answers, each different from the others on some case.
    reread : str
        The section that helps, such as ``'chapter 2, "Break it"'``.
    praise : str
        What a right answer has earned, one sentence.
    names : tuple of str
        Names for the inputs in messages; those of `right` by default.
    observe : callable, optional
        ``observe(answer, *case)``: what is compared. By default a function is called
        and a value stands for itself.
    """

    task: str
    right: Any
    cases: tuple
    mistakes: tuple
    reread: str
    praise: str = ""
    names: tuple = ()
    observe: Callable | None = None

    def __call__(self, answer):
        """Return the `Verdict` on `answer`."""
        if is_stub(answer):
            return Verdict("not attempted yet", self.task)
        outcomes = [self._outcome(answer, case) for case in self.cases]
        wanted = [self._outcome(self.right, case) for case in self.cases]
        for case, got, want in zip(self.cases, outcomes, wanted, strict=True):
            if not same(got, want):
                return self._explain(outcomes, wanted, case, got, want)
        return Verdict("passed", self.praise or self.task)

    def _outcome(self, answer, case):
        """Return what `answer` gives for `case`, an error included."""
        given = [_copied(x) for x in case]
        try:
            with np.errstate(all="ignore"):
                if self.observe is not None:
                    result = self.observe(answer, *given)
                else:
                    result = answer(*given) if callable(answer) else answer
        except Exception as error:  # a learner's function may raise anything
            return Raised(error)
        for name, before, after in zip(self._names(), case, given, strict=False):
            if isinstance(before, np.ndarray) and not same(before, after):
                return Raised(InputChanged(f"the input {name} must stay as it is"))
        return as_plain(result)

    def _explain(self, outcomes, wanted, case, got, want):
        mistake = self._recognise(outcomes, wanted)
        hint = mistake.hint if mistake else general_hint(got, want, outcomes, wanted)
        lines = [hint]
        for name, value in zip(self._names(), case, strict=False):
            lines.append(f"  {name + ' =':<10}{show(value, 12)}")
        if case:  # of a value, the expected one would be the solution
            lines.append(f"  expected  {show(want, 12)}")
        lines.append(f"  got       {show(got, 12)}")
        lines.append(f"  reread    {self.reread}")
        return Verdict("not yet", "\n".join(lines), mistake.name if mistake else None)

    def _recognise(self, outcomes, wanted):
        """Return the mistake with the same outcomes, or the one that comes closest.

        Where one of the two stops with an error they may differ: the same slip can
        run or stop, depending on how it is written.
        """
        closest, most = None, 0
        for mistake in self.mistakes:
            theirs = [self._outcome(mistake.answer, case) for case in self.cases]
            if all(map(same, outcomes, theirs)):
                return mistake
            shared = _shared_results(outcomes, theirs, wanted)
            if shared == most:
                closest = None
            elif shared > most:
                closest, most = mistake, shared
        return closest

    def _names(self):
        if self.names or not callable(self.right):
            return self.names
        return tuple(inspect.signature(self.right).parameters)


def is_stub(answer):
    """Tell whether `answer` is the untouched stub of an exercise.

    A function counts as untouched while its body holds nothing but a docstring,
    ``...``, ``pass`` or ``raise NotImplementedError``. One that computes and forgets
    to return is *not* a stub: its author needs to hear about the missing return.

    Examples
    --------
    >>> def f(x):
    ...     '''Return twice x.'''
    >>> is_stub(f), is_stub(...), is_stub(lambda x: 2 * x)
    (True, True, False)
    """
    if answer is None or answer is Ellipsis:
        return True
    code = getattr(answer, "__code__", None)
    if code is None or set(code.co_names) - {"NotImplementedError"}:
        return False
    idle = {
        "RESUME",
        "NOP",
        "POP_TOP",
        "RAISE_VARARGS",
        "LOAD_GLOBAL",
        "CALL",
        "PRECALL",
    }
    idle |= {"LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "PUSH_NULL", "CACHE"}
    idle |= {"LOAD_COMMON_CONSTANT"}  # Python 3.14
    steps = list(dis.get_instructions(code))
    values = {s.argval for s in steps if s.opname in ("LOAD_CONST", "RETURN_CONST")}
    raises = any(s.opname == "RAISE_VARARGS" for s in steps)
    return {s.opname for s in steps} <= idle and (raises or values <= {None, Ellipsis})


def same(a, b):
    """Tell whether two outcomes agree: same kind, same shape, same numbers."""
    if isinstance(a, Raised) or isinstance(b, Raised):
        return type(a) is type(b) and type(a.error) is type(b.error)
    if isinstance(a, tuple) or isinstance(b, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.shape != b.shape:
            return False
        if not {a.dtype.kind, b.dtype.kind} <= set("biuf"):
            return a.dtype.kind == b.dtype.kind and bool((a == b).all())
        return np.allclose(a, b, rtol=RTOL, atol=ATOL, equal_nan=True)
    return type(a) is type(b) and a == b


def _shared_results(outcomes, theirs, wanted):
    """Count the wrong results that two answers share; 0 if their results differ."""
    shared = 0
    for a, b, want in zip(outcomes, theirs, wanted, strict=True):
        if isinstance(a, Raised) or isinstance(b, Raised):
            continue
        if not same(a, b):
            return 0
        shared += not same(a, want)
    return shared


def as_plain(result):
    """Return a result as arrays and tuples of arrays, whatever library made it."""
    if isinstance(result, tuple):
        return tuple(as_plain(r) for r in result)
    if hasattr(result, "detach"):
        result = result.detach().numpy()
    if isinstance(result, str):
        return result.strip().lower()
    try:
        return np.asarray(result)
    except ValueError:
        return Raised(TypeError("the result is a list whose rows differ in length"))


def general_hint(got, want, outcomes, wanted):
    """Return what can be said of a wrong outcome that matches no known mistake."""
    if isinstance(got, Raised):
        return f"your answer stops with {got}"
    if isinstance(want, Raised):
        return f"here an error is wanted ({type(want.error).__name__}), and none came"
    if isinstance(got, tuple) and isinstance(want, tuple) and len(got) == len(want):
        return _hint_for_one_of(got, want, outcomes, wanted)
    if isinstance(want, tuple):
        return f"asked for are {len(want)} results, in the order of the task"
    if not isinstance(got, np.ndarray) or not isinstance(want, np.ndarray):
        return "the result is not of the kind that is asked for"
    if got.dtype.kind == "O":
        return _hint_for_an_object(got)
    if got.shape != want.shape:
        return f"the result has shape {got.shape}, asked for is {want.shape}"
    if got.dtype.kind not in "biuf" or want.dtype.kind not in "uif":
        return "the result differs from what is asked for"
    if np.isnan(got).any() and not np.isnan(want).any():
        return "the result holds NaN, and no NaN is due here"
    return _numeric_hint(got, want, outcomes, wanted)


def _hint_for_one_of(got, want, outcomes, wanted):
    """Return what can be said of the first of several results that differs."""
    pairs = enumerate(zip(got, want, strict=True))
    k = next(k for k, pair in pairs if not same(*pair))
    cases = [[_part(x, k) for x in xs] for xs in (outcomes, wanted)]
    return f"result {k + 1} of {len(want)}: {general_hint(got[k], want[k], *cases)}"


def _part(outcome, k):
    """Return result `k` of an outcome, or the outcome if it has no such part."""
    return outcome[k] if isinstance(outcome, tuple) and len(outcome) > k else outcome


def _hint_for_an_object(got):
    if got.shape == () and got.item() is not None:
        return f"a {type(got.item()).__name__} is not of the kind that is asked for"
    return "the result is None: is a return missing?"


def _numeric_hint(got, want, outcomes, wanted):
    if want.ndim >= 2 and same(got.swapaxes(-1, -2).copy(), want):
        return "the result is the transpose of what is asked for"
    factor = _common_factor(outcomes, wanted)
    if factor is not None:
        return f"every number is {factor:.3g} times what it should be"
    return "the numbers differ, and it is none of the mistakes this check knows"


def _common_factor(outcomes, wanted):
    """Return the factor between all results and all that is wanted, if there is one."""
    if not all(isinstance(x, np.ndarray) for x in (*outcomes, *wanted)):
        return None
    if [x.shape for x in outcomes] != [x.shape for x in wanted]:
        return None
    got, want = (np.concatenate([x.ravel() for x in xs]) for xs in (outcomes, wanted))
    # One ratio could be anything; that two agree is no accident.
    if np.count_nonzero(want) < 2 or not np.array_equal(got == 0, want == 0):
        return None
    ratios = got[want != 0] / want[want != 0]
    return ratios[0] if np.allclose(ratios, ratios[0], rtol=RTOL) else None


def show(value, indent=0):
    """Return `value` as a learner wants to read it: few digits, aligned rows."""
    if isinstance(value, tuple):
        return ("\n" + " " * indent).join(show(v, indent) for v in value)
    if isinstance(value, Raised):
        return str(value)
    if callable(value):
        return getattr(value, "slug", None) or getattr(value, "__name__", repr(value))
    if isinstance(value, np.ndarray) or np.isscalar(value):
        text = np.array2string(
            np.asarray(value), precision=3, suppress_small=True, threshold=60
        )
        return text.replace("\n", "\n" + " " * indent)
    return repr(value)


def _copied(x):
    return x.copy() if isinstance(x, np.ndarray) else x
