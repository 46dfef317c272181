"""What an answer gave: how it is read, compared, described and shown."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Answers are compared as a person would: rounding of float32 work is forgiven.
RTOL, ATOL = 1e-5, 1e-7
Many = Sequence[Any]  # the outcomes of all cases
LONGEST = 400  # characters of a foreign object that are shown

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
        return "the result holds NaN, and no NaN is expected here"
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
    # One number could be anything; that two agree is no accident.
    if np.count_nonzero(theirs) > 1 and np.array_equal(ours == 0, theirs == 0):
        factor = ours[theirs != 0] / theirs[theirs != 0]
        if np.allclose(factor, factor[0], rtol=RTOL):
            return f"every number is {factor[0]:.3g} times what it should be"
    off = ours[0] - theirs[0] if ours.size > 1 else 0
    if off and np.allclose(ours - theirs, off, RTOL):
        return f"every number is {abs(off):.3g} too {'large' if off > 0 else 'small'}"
    for digits in range(1, 6):
        if same(got, want.round(digits)) and np.allclose(got, got.round(digits), 1e-7):
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


def show(value: Any, indent: int = 0, digits: int = 3) -> str:
    """Return `value` as a learner wants to read it: few digits, aligned rows."""
    margin = "\n" + " " * indent
    if isinstance(value, tuple):
        return margin.join(show(v, indent, digits) for v in value)
    if isinstance(value, Other):
        return show(value.value, indent)
    if callable(value):
        return str(getattr(value, "slug", getattr(value, "__name__", printed(value))))
    if not isinstance(value, np.ndarray | np.generic | bool | int | float):
        return printed(value, str if isinstance(value, Raised) else repr)
    array = np.asarray(value)
    text = np.array2string(array, precision=digits, suppress_small=True, threshold=60)
    return re.sub(r"\n+", margin, text)


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
