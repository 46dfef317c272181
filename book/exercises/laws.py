"""Exercises on laws: which numbers a failure needs, a review, laws of your own."""

import functools
import math
import reprlib
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from exercises import Exercise, pictures, random_arrays, section
from exercises.code_review import code_review as code_review
from exercises.code_review import layer_in_review as layer_in_review
from exercises.engine import Verdict, is_stub
from mha import scaled_dot_product_attention, softmax


def sum_is_above_six(x):
    return bool(np.sum(x) > 6)


def first_is_above_six(x):
    return bool(x[0] > 6)


def first_is_not_below_second(x):
    return bool(x[0] >= x[1])


def two_are_not_zero(x):
    return bool(np.count_nonzero(x) >= 2)


def always(x):
    return True


def _with_zero(numbers, k):
    return np.where(np.arange(len(numbers)) == k, 0, numbers)


def _shrunk(numbers, fails, order=None, at_most=None, stop=False):
    """Set numbers to 0 one after the other, rightly or with one of the slips."""
    smaller, changed = numbers.copy(), 0
    for k in range(len(smaller)) if order is None else order:
        attempt = _with_zero(smaller, k)
        if fails(attempt):
            smaller, changed = attempt, changed + 1
        elif stop:
            return smaller
        if changed == at_most:
            break
    return smaller


def _one_by_one(numbers, fails):
    needed = [not fails(_with_zero(numbers, k)) for k in range(len(numbers))]
    return np.where(needed, numbers, 0)


def _shrunk_inputs(shrink):
    """Let a learner's shrinker work on inputs that show bugs of the zoo."""
    from mha import zoo

    (x,) = random_arrays((27,), seed=8)
    drawn, titles = [x], ["Q, K (in a frame), V as drawn"]
    for name in ("scale_after_softmax", "no_scale", "key_reshaped"):
        wrong = getattr(zoo, name).attention

        def fails(x, wrong=wrong):
            Q, K, V = x.reshape(3, 3, 3)
            return not np.allclose(
                wrong(Q, K, V), scaled_dot_product_attention(Q, K, V)
            )

        drawn.append(np.asarray(shrink(x.copy(), fails)))
        needed = np.count_nonzero(drawn[-1])
        few = f"{needed} numbers show" if needed != 1 else "1 number shows"
        titles.append(f"{few} {name}")
    tables = [np.hstack(y.reshape(3, 3, 3)) for y in drawn]
    told = "Your function shrinks a random input that shows three bugs of the zoo:"
    return pictures.said(told) + pictures.maps(tables, titles, [(3, 3)] * len(tables))


shrink = Exercise(
    task="the array in which every number that is not needed is 0",
    right=_shrunk,
    names=("numbers", "fails"),
    cases=(
        (np.array([9.0, 1.0]), first_is_above_six),
        (np.array([0.5, 6.5, 0.5]), sum_is_above_six),
        (np.array([2.0, 4.0, 5.0, 3.0]), sum_is_above_six),
        (np.array([1.0, 2.0, 3.0, 4.0]), two_are_not_zero),
        (np.array([5.0, 7.0]), always),
        (np.array([1.0, 1.0]), first_is_not_below_second),
    ),
    mistakes={
        "all numbers are 0 now: does it still fail? "
        "Keep a 0 only if it does": lambda numbers, fails: np.zeros_like(numbers),
        "this is the array as it was given: "
        "try to set each number to 0": lambda numbers, fails: numbers,
        "you keep a 0 where `fails` becomes False: keep it where it is still "
        "True": lambda numbers, fails: _shrunk(numbers, lambda x: not fails(x)),
        "you stop after the first 0 that is kept: try the "
        "other numbers too": lambda numbers, fails: _shrunk(numbers, fails, at_most=1),
        "each of two numbers may be unnecessary, but not both at once: "
        "try the next 0 on the array that you already have": _one_by_one,
        "a number behind the first needed one is still there, and is not needed: "
        "try each of them": lambda numbers, fails: _shrunk(numbers, fails, stop=True),
        "this array is as small, but go from left to right": lambda numbers, fails: (
            _shrunk(numbers, fails, order=range(len(numbers))[::-1])
        ),
    },
    reread=section("laws", "The step in the package"),
    praise="the numbers that are left are those that the failure needs.",
    picture=_shrunk_inputs,
)


@dataclass(frozen=True, eq=False)
class Subject:
    """Attention under a name, right or wrong, for the laws of a reader.

    `run` takes (Q, K, V, mask, is_causal); `right` says whether it should satisfy every
    law, and `tip` what to try if a law judges it wrongly.
    """

    name: str
    run: callable
    right: bool
    tip: str

    def __call__(self, Q, K, V, mask=None, is_causal=False):
        """Return what it takes for attention."""
        # A mask of 0 and 1 means something else to each of them, and nothing here.
        if mask is not None and np.asarray(mask).dtype.kind != "b":
            raise TypeError("the mask must be a boolean array, True = may attend")
        return self.run(*map(np.asarray, (Q, K, V)), mask, is_causal)


def _visible(Q, K, mask, is_causal):
    """Return where a query may look, or None where it may look everywhere."""
    if not is_causal:
        return mask
    causal = np.tri(Q.shape[-2], K.shape[-2], dtype=bool)
    return causal if mask is None else causal & mask


def _numpy(Q, K, V, mask, is_causal):
    from mha import scaled_dot_product_attention

    return scaled_dot_product_attention(Q, K, V, mask, is_causal=is_causal)


def _loops(Q, K, V, mask, is_causal):
    mask = _visible(Q, K, mask, is_causal)
    if mask is None:
        mask = np.ones((1, 1), bool)
    mask = np.broadcast_to(mask, (*Q.shape[:-1], K.shape[-2]))
    Y = np.zeros((*Q.shape[:-1], V.shape[-1]), Q.dtype)
    for place in np.ndindex(Q.shape[:-1]):
        leading, seen = place[:-1], np.flatnonzero(mask[place])
        scores = [float(Q[place] @ K[*leading, j]) / Q.shape[-1] ** 0.5 for j in seen]
        top = max(scores, default=0)
        shares = [math.exp(s - top) for s in scores]
        if shares:
            Y[place] = np.array(shares) / sum(shares) @ V[*leading, seen]
    return Y


def _einsum(Q, K, V, mask, is_causal):
    mask = _visible(Q, K, mask, is_causal)
    S = np.einsum("...ic,...jc->...ij", Q, K) * Q.shape[-1] ** -0.5
    A = softmax(S if mask is None else np.where(mask, S, -np.inf))
    empty = np.zeros(1, bool) if mask is None else ~mask.any(-1, keepdims=True)
    return np.einsum("...ij,...jc->...ic", np.where(empty, 0, A).astype(S.dtype), V)


def _torch(Q, K, V, mask, is_causal):
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    mask = _visible(Q, K, mask, is_causal)
    mask = None if mask is None else torch.from_numpy(np.atleast_2d(mask).copy())
    Q, K, V = (torch.from_numpy(np.array(x)) for x in (Q, K, V))
    return scaled_dot_product_attention(Q, K, V, mask).numpy()


def _float32(Q, K, V, mask, is_causal):
    small = (x.astype(np.float32) for x in (Q, K, V))
    Y = _numpy(*small, mask, is_causal)
    return Y.astype(Q.dtype if Q.dtype.kind == "f" else float)


_RIGHT = {
    "the NumPy version": (_numpy, "it is the function of the package"),
    "the version with loops": (_loops, "the same numbers, from plain Python"),
    "the einsum version": (_einsum, "it sums in another order: compare with allclose"),
    "the torch version": (_torch, "it sums in another order: compare with allclose"),
    "the float32 version": (
        _float32,
        "it is correct to six digits, and float32 cannot do better",
    ),
}

if find_spec("torch") is None:  # in a page
    del _RIGHT["the torch version"]

# What to try against each wrong version. The last two change what they are given.
_TIPS = {
    "no_scale": "scores at several widths, or numbers you know",
    "scale_sqrt_n": "the same keys twice, with their values",
    "scale_sqrt_d_model": "more than one head: Q, K, V of shape (heads, n, d)",
    "scale_by_d_k": "scores at several widths, or numbers you know",
    "scale_after_softmax": "values that are all 1",
    "key_reshaped": "the same keys in another order, with their values",
    "softmax_over_queries": "values that are all 1, and more queries than keys",
    "softmax_over_heads": "values that are all 1, and several heads",
    "no_max_subtraction": "a score of 1000",
    "nan_on_empty_rows": "a mask with a row that is False throughout",
    "mask_ignored": "a mask, and new numbers behind it",
    "mask_inverted": "a mask, and new numbers behind it",
    "mask_after_softmax": "a mask, and values that are all 1",
    "mask_zero_score": "a mask, and new numbers behind it",
    "minus_1e9_mask": "a mask with a row that is False throughout",
    "causal_without_diagonal": "is_causal=True, and what the first token gets",
    "padding_hides_queries": "a mask of shape (1, n), as padding_mask makes it",
    "mask_in_wrong_order": "a batch of two, with a padding mask for each",
    "attends_across_batch": "a batch of two, and a change in one of them",
    "promotes_to_float64": "float32 with a mask, and the dtype of what comes out",
    "writes_into_its_input": "the mask, before the call and after it",
}


def as_subject(name, tip):
    """Return the member of the zoo that has this name."""
    from mha import zoo  # only the grading needs it

    def run(Q, K, V, mask, is_causal):
        return getattr(zoo, name).attention(Q, K, V, mask, is_causal=is_causal)

    return Subject(name, run, False, tip)


@functools.cache
def subjects():
    """Return the versions that laws are graded on, the correct ones first."""
    right = [Subject(name, run, True, tip) for name, (run, tip) in _RIGHT.items()]
    return tuple(right + [as_subject(name, tip) for name, tip in _TIPS.items()])


def broken_by(law, subject):
    """Return how `subject` breaks `law`, or an empty text if it satisfies it."""
    try:
        with np.errstate(all="ignore"):
            answer = law(subject)
        if answer is None:
            return "it returned None"
        return "" if np.asarray(answer).all() else "it returned False"
    except AssertionError:
        return "its assertion failed"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an error is no True
        return f"it stopped with {type(error).__name__}: {error}"


class Grading(Exercise):
    """Grade laws: wrong versions should break one, and correct ones none."""

    def judge(self, answer):
        """Return the `Verdict` on a list of laws."""
        laws = [answer] if callable(answer) or isinstance(answer, str) else answer
        laws = list(laws) if isinstance(laws, Iterable) else [laws]
        if not laws or all(is_stub(law) for law in laws):
            return Verdict("not attempted yet", self.task)
        for law in laws:
            if not callable(law):
                text = f"a law is a function of attend, got {reprlib.repr(law)}"
                return Verdict("not yet", text)
        print(f"trying your laws on {len(subjects())} versions, which may take a while")
        table = [[broken_by(law, s) for law in laws] for s in subjects()]
        found = tuple(any(row) for row in table)
        if all(dead != s.right for dead, s in zip(found, subjects(), strict=True)):
            return Verdict("passed", _score(table))
        slips = (
            hint for hint, slip in self.mistakes.items() if found == _pattern(slip)
        )
        slip = next(slips, None)
        lines = [_score(table), *([slip] if slip else [])]
        lines += [*_law_lines(laws[:8], table), *_next_lines(laws, table)]
        lines.append(f"  reread    {self.reread}")
        return Verdict("not yet", "\n".join(lines), slip)


@functools.cache
def _pattern(laws):
    """Return which versions break one of the laws."""
    return tuple(any(broken_by(law, s) for law in laws) for s in subjects())


def _score(table):
    pairs = list(zip(subjects(), map(any, table), strict=True))
    caught = sum(dead for s, dead in pairs if not s.right)
    alarms = sum(dead for s, dead in pairs if s.right)
    n_right = sum(s.right for s in subjects())
    n_wrong = len(pairs) - n_right
    return (
        f"{caught} of {n_wrong} wrong versions detected, "
        f"{alarms} false alarms on {n_right} correct ones"
    )


def _law_lines(laws, table):
    """Yield, for each law, how many versions break it."""
    width = max(len(_name(law)) for law in laws)
    for k, law in enumerate(laws):
        dead = [s for s, row in zip(subjects(), table, strict=True) if row[k]]
        alarms = sum(s.right for s in dead)
        kills = len(dead) - alarms
        yield f"  {_name(law):<{width}}  detects {kills:2}, false alarms {alarms}"
    if more := len(table[0]) - len(laws):
        yield f"  and {more} more laws"


def _next_lines(laws, table):
    """Yield one false alarm and one version that is missed."""
    rows = list(zip(subjects(), table, strict=True))
    yield "  expected  every wrong version detected, no false alarm"
    if alarm := next(((s, row) for s, row in rows if s.right and any(row)), None):
        subject, row = alarm
        k, why = next((k, why) for k, why in enumerate(row) if why)
        tip = "" if why.startswith("it stopped") else f" ({subject.tip})"
        text = f"{_name(laws[k])} is broken by {subject.name}: {why}{tip}"
        yield _wrapped("alarm", text)
    if free := next((s for s, row in rows if not (s.right or any(row))), None):
        from mha import zoo

        wrong = getattr(zoo, free.name).wrong
        yield _wrapped("missed", f"{free.name}. {wrong} Try {free.tip}.")


def _wrapped(head, text):
    margins = {"initial_indent": f"  {head:<10}", "subsequent_indent": " " * 12}
    return textwrap.fill(text, 76, **margins, max_lines=3, placeholder=" ...")


def _name(law):
    return getattr(law, "__name__", repr(law))


def _drawn(*shape, dtype=float):
    return np.random.default_rng(14).normal(size=(3, *shape)).astype(dtype)


def _close(attend, Q, K, V, mask=None, is_causal=False, **tolerance):
    kept = None if mask is None else mask.copy()
    want = _numpy(Q, K, V, mask, is_causal)
    return np.allclose(attend(Q, K, V, kept, is_causal), want, **tolerance)


def _equals_reference(attend):
    Q, K, V = _drawn(2, 3, 5, 7)
    lengths = np.arange(5) < np.array([3, 5])[:, None]
    masks = np.tri(5, dtype=bool), lengths[:, None, None]
    causal = _close(attend, Q, K, V, is_causal=True, atol=1e-5)
    one_row = _close(attend, Q[0, 0], K[0, 0], V[0, 0], lengths[:1], atol=1e-5)
    kept = all(_close(attend, Q, K, V, mask, atol=1e-5) for mask in masks)
    return causal and one_row and kept


def _huge_scores(attend):
    Q, K, _ = 1000 * _drawn(5, 7)
    return np.allclose(attend(Q, K, np.ones((5, 1))), 1)


def _empty_rows(attend):
    Q, K, V = _drawn(5, 7)
    return np.all(attend(Q, K, V, np.zeros((5, 5), bool)) == 0)


def _untouched(attend):
    Q, K, V = _drawn(5, 7)
    mask = np.tri(5, dtype=bool)
    attend(Q, K, V, mask)
    return np.array_equal(mask, np.tri(5, dtype=bool))


def _dtype(attend):
    Q, K, V = _drawn(5, 7, dtype=np.float32)
    return attend(Q, K, V, np.tri(5, dtype=bool)).dtype == np.float32


def _masked(attend, **tolerance):
    mask = np.tri(5, dtype=bool)
    return _close(attend, *_drawn(5, 7), mask, **{"atol": 1e-5} | tolerance)


def _rows(attend):
    Q, K, _ = _drawn(5, 7)
    return np.allclose(attend(Q, K, np.ones((5, 1))), 1)


grade_laws = Grading(
    task="a list of functions law(attend) that return True or False",
    right=(_equals_reference, _huge_scores, _empty_rows, _untouched, _dtype),
    cases=(("every version of attention",),),
    observe=lambda laws, subject: None,
    mistakes={
        "every version breaks it, the correct ones too: return True if it holds, and "
        "allow for rounding": (lambda attend: print(end=""),),
        "correct versions break it and wrong ones satisfy it: "
        "return True if it holds": (lambda attend: not _masked(attend),),
        "two correct programs round differently, so compare with np.allclose": (
            lambda attend: _masked(attend, rtol=0, atol=0),
        ),
        "weights that sum to one may still be wrong weights, so add other laws": (
            _rows,
        ),
    },
    reread=section("laws", "Every law against every wrong version"),
    seconds=600,
)
