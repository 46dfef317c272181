"""What a law is, and how the smallest input that breaks it is found."""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mha.attention import scaled_dot_product_attention
from mha.encoder import encoder
from mha.heads import multi_head_attention
from mha.laws._recognise import as_subject
from mha.laws._report import Finding
from mha.laws._subjects import Broke, NotApplicable

# A wrong version is off by hundredths or more, float32 by less than a millionth.
TOLERANCE = 1e-5
# Shrinking must leave a difference that three printed decimals show.
CLEAR = 0.01


OUT_OF_REACH = {
    ("layer", "attention"): "it has no weight matrices",
    ("encoder", "attention"): "it is no encoder",
    ("encoder", "layer"): "it is no encoder",
}


class Failure(NamedTuple):
    """What a law wanted to see, what it saw, and where (a mode of PyTorch, a name)."""

    expected: object
    got: object
    where: str = ""


@dataclass(frozen=True, repr=False)
class Law:
    """State something that is true of right attention and false of some wrong one.

    Attributes
    ----------
    slug : str
        Name of the law in `mha.laws`.
    name : str
        The law as a sentence.
    cases : callable
        ``cases(rng)`` yields dicts of inputs, the smallest first. A case with a `mask`
        or `is_causal` that the subject has no argument for is left out.
    judge : callable
        ``judge(subject, **case)`` returns whether the law holds: True or None, else
        False or a `Failure`. The subject answers ``attend(Q, K, V, mask)``, and a layer
        also ``layer(X, weights, n_heads, mask)``, an encoder also
        ``encode(X, layers, n_heads, mask)``, in NumPy.
    equation : str
        The law as a formula.
    chapter : int, default 14
        The chapter that earns it.
    reason : str
        Why it holds, one line.
    level : {"attention", "layer", "encoder"}
        Whether it can be asked of softmax(Q Kᵀ / √d_k) V alone, needs the weight
        matrices of a layer, or all that an encoder has around its attention.
    sees_all : bool, default False
        Whether it can be asked only where a token may see every other.

    Examples
    --------
    >>> from mha import laws, scaled_dot_product_attention
    >>> laws.rows_sum_to_one.check(scaled_dot_product_attention)
    ✓ every row of weights sums to one (chapter 2)

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
    cases: callable
    judge: callable
    equation: str = ""
    chapter: int = 14
    reason: str = ""
    level: str = "attention"
    sees_all: bool = False

    def __repr__(self):
        head = f"{self.name} (chapter {self.chapter})"
        parts = [self.equation, self.reason and f"because {self.reason}"]
        return "\n    ".join([head, *filter(None, parts)])

    def check(self, subject, seed=0):
        """Return what was found when `subject` was put to the test.

        Equation: holds ⇔ no case fails  (chapter 14)

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
        why = OUT_OF_REACH.get((self.level, subject.kind))
        if self.sees_all and subject.always_causal:
            why = "it is always causal"
        if why:
            return Finding(self, None, why=why, subject=subject.name, seed=seed)
        return self._search(subject, seed)

    def _search(self, subject, seed):
        asked, why = False, "it was asked nothing"
        for case in self.cases(np.random.default_rng(seed)):
            for variant in subject.variants():
                try:
                    failure = self._try(variant, case)
                except NotApplicable as reason:
                    why = str(reason)
                    continue
                asked = True
                if failure is not None:
                    return self._broken(subject, variant, case, failure, seed)
        if not asked:
            return Finding(self, None, why=why, subject=subject.name, seed=seed)
        return Finding(self, True, subject=subject.name, seed=seed)

    def _try(self, subject, case):
        """Return the failure of `subject` on `case`, or None."""
        if case.get("mask") is not None and subject.mask_name is None:
            raise NotApplicable("it takes no mask")
        if case.get("is_causal") and not subject.takes_causal:
            raise NotApplicable("it has no is_causal")
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                verdict = self.judge(subject, **case)
        except Broke as error:
            return Failure("an array", str(error))
        if verdict is None or isinstance(verdict, Failure):
            return verdict
        return None if verdict else Failure("the law holds", "it does not")

    def _fails(self, subject, case):
        try:
            return self._try(subject, case) is not None
        except NotApplicable:
            return False

    def _right_passes(self, subject, case):
        """Whether right attention passes: shrinking may make a law trivially false."""
        right = {
            "attention": scaled_dot_product_attention,
            "layer": multi_head_attention,
            "encoder": encoder,
        }[subject.kind]
        right = as_subject(right)
        try:
            if subject.kind == "encoder":
                right = right.with_settings(norm_first=subject.norm_first)
        except Broke:
            return False
        return not self._fails(right, case)

    def _broken(self, subject, variant, case, failure, seed):
        case, failure = self._shrink(variant, case, failure)
        variant.log.clear()
        self._try(variant, case)
        everywhere = all(self._fails(twin, case) for twin in subject.variants())
        mode = "" if everywhere else str(variant.mode)
        return Finding(
            self,
            False,
            case,
            failure.expected,
            failure.got,
            why="\n".join(filter(None, (failure.where, mode))),
            setup=variant.log.get("attend", ""),
            subject=subject.name,
            seed=seed,
        )

    def _shrink(self, subject, case, failure):
        """Set to 0 what the failure does not need: whole rows first, then entries."""
        for axes in (1, 0):
            for name, index in _places(case, axes):
                smaller = case | {name: case[name].copy()}
                smaller[name][index] = 0
                shown = self._try(subject, smaller)
                if shown is None or not _clear(shown, failure):
                    continue
                if self._right_passes(subject, smaller):
                    case, failure = smaller, shown
        return case, failure


def _places(case, axes):
    """Return where numbers other than 0 are; the last `axes` axes are taken whole."""
    return [
        (name, index)
        for name, x in case.items()
        if isinstance(x, np.ndarray) and x.dtype.kind == "f"
        for index in np.ndindex(x.shape[: x.ndim - axes])
        if np.any(x[index])
    ]


def _clear(failure, before):
    """Whether the failure is of the same kind as before, and visible in print."""
    texts = [isinstance(x, str) for f in (before, failure) for x in f[:2]]
    if any(texts):
        return texts[:2] == texts[2:] and all(texts) and failure == before
    expected, got = np.asarray(failure.expected), np.asarray(failure.got)
    if np.isnan(got).any() != np.isnan(before.got).any():
        return False
    return expected.shape != got.shape or not np.allclose(
        got, expected, atol=CLEAR, rtol=CLEAR
    )


def differs(expected, got, where=""):
    """Return a `Failure` where the two are not equal up to rounding, else None."""
    expected, got = np.asarray(expected), np.asarray(got)
    if expected.shape != got.shape:
        return Failure(f"shape {expected.shape}", f"shape {got.shape}", where)
    size = max(1.0, np.abs(expected).max(initial=0.0))
    if np.allclose(got, expected, rtol=0, atol=TOLERANCE * size):
        return None
    return Failure(expected, got, where)


def weights_of(subject, Q, K, mask=None, *, is_causal=False):
    """Return the weights, read off with values that are the unit vectors."""
    V = np.eye(K.shape[-2], dtype=K.dtype)
    return subject.attend(Q, K, V, mask, is_causal=is_causal)
