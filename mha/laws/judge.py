"""What a law is, and how the smallest input that breaks it is found."""

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mha.attention import scaled_dot_product_attention
from mha.encoder import encoder
from mha.heads import multi_head_attention
from mha.laws.adapter import as_subject
from mha.laws.draw import SIZES, Case, by_name
from mha.laws.report import ANSWER, Finding, Raised
from mha.laws.stack import Stack
from mha.laws.subject import Broke, Sizes, Subject
from mha.laws.words import NotApplicable, near

__all__ = ["Failure", "Law", "law"]

# A wrong version is off by hundredths or more, float32 by less than a millionth.
TOLERANCE = 1e-5
# Shrinking must leave a difference that three printed decimals show.
CLEAR = 0.01
# An example of very many numbers is made smaller only so many times.
SHRINKS = 2000

OUT_OF_REACH = {
    ("layer", "attention"): "it has no weight matrices",
    ("layer", "encoder"): "norms stand around its attention: check that alone",
    ("encoder", "attention"): "it is no encoder",
    ("encoder", "layer"): "it is no encoder",
}
REFERENCES = {
    "attention": scaled_dot_product_attention,
    "layer": multi_head_attention,
    "encoder": encoder,
}


class Failure(NamedTuple):
    """What a law wanted to see, what it saw, and where (a mode of PyTorch, a name)."""

    expected: Any
    got: Any
    where: str = ""


# What failed, on which inputs, and how.
Breach = tuple[Subject, Case, Failure]


@dataclass(frozen=True, repr=False)
class Law:
    """State something that is true of correct attention and false of some wrong one.

    Attributes
    ----------
    slug : str
        Name of the law in `mha.laws`.
    name : str
        The law as a sentence.
    cases : callable
        ``cases(rng)`` yields dicts of inputs, the smallest first; with a second
        argument it gets the subject, whose `sizes` it may take. A case with a `mask`
        or `is_causal` that the subject has no argument for is left out.
    judge : callable
        ``judge(subject, **case)`` returns whether the law holds: True or None, else
        False or a `Failure`. The subject answers ``attend(Q, K, V, mask)``, and a layer
        also ``layer(X, weights, n_heads, mask)``, an encoder also
        ``encode(X, layers, mask)``, in NumPy.
    equation : str
        The law as a formula.
    reason : str
        Why it holds, one line.
    level : {"attention", "layer", "encoder"}
        Whether it can be asked of softmax(Q Kᵀ / √d_k) V alone, needs the weight
        matrices of a layer, or all that an encoder has around its attention.
    sees_all : bool, default False
        Whether it can be asked only where a token may attend to every other.
    orderless : bool, default False
        Whether it can be asked only where the order of the tokens does not count.

    Examples
    --------
    >>> from mha import laws, scaled_dot_product_attention
    >>> laws.rows_sum_to_one.check(scaled_dot_product_attention).holds
    True

    A law of your own:

    >>> one_key = Law(
    ...     "one_key", "one key takes all",
    ...     cases=lambda rng: [dict(zip("QKV", rng.random((3, 1, 2))))],
    ...     judge=lambda subject, Q, K, V: np.allclose(subject.attend(Q, K, V), V))
    >>> one_key.check(scaled_dot_product_attention).holds
    True
    """

    slug: str
    name: str
    cases: Callable[..., Iterable[Case]]
    judge: Callable[..., object]
    equation: str = ""
    reason: str = ""
    level: str = "attention"
    sees_all: bool = False
    orderless: bool = False

    def __repr__(self) -> str:
        parts = [self.equation, self.reason and f"because {self.reason}"]
        return "\n    ".join([self.name, *filter(None, parts)])

    def check(self, subject: Any, seed: int = 0) -> Finding:
        """Return what was found when `subject` was put to the test.

        Parameters
        ----------
        subject : callable or torch.nn.Module
            See `mha.laws.check`.
        seed : int, default 0
            Fixes the cases.

        Returns
        -------
        finding : Finding
            True when the law holds. ``finding.holds`` is None, and the finding false,
            when the subject cannot be asked.

        Raises
        ------
        TypeError
            If `subject` is nothing that attends.
        """
        subject = as_subject(subject)
        finding = Finding(self, True, subject=subject.name, seed=seed)
        with subject.borrowed():
            try:
                found = self.search(subject, seed)
            except NotApplicable as why:
                return replace(finding, holds=None, why=str(why))
            if found is None:
                return finding
            variant, case, failure = self.shrink(*found)
            variant.log.clear()
            self.ask(variant, case)
            everywhere = all(self.fails(twin, case) for twin in subject.variants())
        places = failure.where, "" if everywhere else str(variant.mode)
        return replace(
            finding, holds=False, example=case, expected=failure.expected,
            got=failure.got, why="\n".join(filter(None, places)),
            setup="\n".join(variant.log.values()), breach=found,
        )  # fmt: skip

    def drawn(self, subject: Subject, seed: int) -> Iterable[Case]:
        """Return the inputs on which a subject is asked."""
        given = (np.random.default_rng(seed), subject)
        return self.cases(*given[: len(inspect.signature(self.cases).parameters)])

    def search(self, subject: Subject, seed: int = 0) -> Breach | None:
        """Return the first case that fails, with its variant, or None if all pass.

        It raises `NotApplicable`, with the reason, if none can be asked.
        """
        asked, why = False, ""
        for case in self.drawn(subject, seed):
            for variant in subject.variants():
                try:
                    failure = self.ask(variant, case)
                except NotApplicable as reason:
                    why = why or str(reason)
                    continue
                if failure is not None:
                    return variant, case, failure
                asked = True
        if not asked:
            raise NotApplicable(why or "it was asked nothing")
        return None

    def shrink(self, subject: Subject, case: Case, failure: Failure) -> Breach:
        """Set to 0 what the failure does not need: whole rows first, then entries.

        What is left fails in the same way, three decimals show it, and the reference
        passes.
        """
        left = SHRINKS if subject.own is None else SHRINKS // 5
        for axes in (1, 0):
            for name, index in nonzero_places(case, axes):
                left -= 1
                if left < 0:
                    break
                smaller = case | {name: case[name].copy()}
                smaller[name][index] = 0
                try:
                    shown = self.ask(subject, smaller)
                except NotApplicable:
                    continue
                if shown is None or not is_visible(shown, failure):
                    continue
                if self.spares_reference(subject, smaller):
                    case, failure = smaller, shown
        return subject, case, failure

    def ask(self, subject: Subject, case: Case) -> Failure | None:
        """Return the failure of `subject` on `case`, or None."""
        if self.sees_all and subject.always_causal:
            raise NotApplicable("it is always causal")
        if self.orderless and subject.said.positional:
            raise NotApplicable("the order of its tokens counts (positional=True)")
        if why := OUT_OF_REACH.get((self.level, subject.kind)):
            raise NotApplicable(why)
        if case.get("mask") is not None and subject.mask_name is None:
            raise NotApplicable(subject.why_no_mask)
        if case.get("is_causal") and not subject.takes_causal:
            raise NotApplicable("it has no is_causal")
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                verdict = self.judge(subject, **case)
        except Broke as error:
            if isinstance(error.__cause__, NotImplementedError):
                raise NotApplicable(f"it is not made for this: {error}") from error
            text = Raised(error.text) if error.__cause__ else error.text
            return Failure(ANSWER, text, error.where)
        if isinstance(verdict, Failure) and not subject.said.forgives(*verdict[:2]):
            return verdict
        if verdict is None or isinstance(verdict, Failure):
            return None
        return None if verdict else Failure("the law holds", "it does not")

    def spares_reference(self, subject: Subject, case: Case) -> bool:
        """Whether correct attention passes: zeros may make a law trivially false."""
        try:
            pre_norm = subject.norm_first if isinstance(subject, Stack) else None
        except Broke:
            return False
        return not self.fails(correct(subject.kind, pre_norm, subject.own), case)

    def fails(self, subject: Subject, case: Case) -> bool:
        """Whether a case fails; what cannot be asked does not."""
        try:
            return self.ask(subject, case) is not None
        except NotApplicable:
            return False

    def breaks(self, subject: Subject) -> bool:
        """Whether any case fails."""
        try:
            return self.search(subject) is not None
        except NotApplicable:
            return False


def law(
    name: str, equation: str, reason: str, *, sizes: Any = SIZES, cases: Any = None,
    also: Any = None,
    level: str = "attention", sees_all: bool = False, orderless: bool = False,
    **values: Any,
) -> Callable[[Callable[..., object]], Law]:  # fmt: skip
    """Make the function below it the judge of a `Law`, and its name the slug.

    Without `cases` its arguments are drawn by their names, see `mha.laws.draw.by_name`.
    """

    def made(judge: Callable[..., object]) -> Law:
        drawn = cases or by_name(judge, sizes, values, also)
        facts = equation, reason, level, sees_all, orderless
        return Law(judge.__name__, name, drawn, judge, *facts)

    return made


@functools.cache
def correct(kind: str, pre_norm: bool | None, own: Sizes | None) -> Subject:
    """Return what is right, as a subject of this kind and of these sizes."""
    subject = as_subject(REFERENCES[kind])
    if pre_norm is not None:
        subject = subject.with_settings(norm_first=pre_norm)
    return subject.but(own=own)


def nonzero_places(case: Case, axes: int) -> list[tuple[str, tuple[int, ...]]]:
    """Return where numbers other than 0 are; the last `axes` axes are taken whole."""
    return [
        (name, index)
        for name, x in case.items()
        if isinstance(x, np.ndarray) and x.dtype.kind == "f"
        for index in np.ndindex(x.shape[: x.ndim - axes])
        if np.any(x[index])
    ]


def is_visible(failure: Failure, before: Failure) -> bool:
    """Whether the failure is of the same kind as before, and visible in print."""
    texts = [isinstance(x, str) for f in (before, failure) for x in f[:2]]
    if any(texts):
        return texts[:2] == texts[2:] and all(texts) and failure == before
    expected, got = np.asarray(failure.expected), np.asarray(failure.got)
    if np.isnan(got).any() != np.isnan(before.got).any():
        return False
    alike = expected.shape == got.shape
    return not (alike and np.allclose(got, expected, atol=CLEAR, rtol=CLEAR))


def differs(
    expected: Any, got: Any, where: str = "", within: float = TOLERANCE
) -> Failure | None:
    """Return a `Failure` where the two are not equal up to rounding, else None."""
    expected, got = np.asarray(expected), np.asarray(got)
    if expected.shape != got.shape:
        return Failure(f"shape {expected.shape}", f"shape {got.shape}", where)
    if np.isnan(expected).any():
        # What was expected came from the subject itself.
        return Failure("numbers", "NaN", where)
    return None if near(expected, got, within) else Failure(expected, got, where)


def weights_of(subject: Subject, Q: Any, K: Any, mask: Any = None) -> Any:
    """Return the weights, read off with values that are the unit vectors."""
    return subject.attend(Q, K, np.eye(K.shape[-2], dtype=K.dtype), mask)
