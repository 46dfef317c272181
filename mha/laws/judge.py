"""What a law is, and how the smallest input that breaks it is found.

A law is a function. Its first argument is the question that it asks, `attend`,
`tokens`, `layer` or `encode`, and the others are inputs, drawn by their names. It
returns None or True where it holds, else False or what `differs` returns.

One rule says which laws a subject must keep: **a law is asked on an input where the
reference keeps it, and on that input the subject must give the reference's numbers.**
"""

import inspect
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

import mha
from mha.laws.report import Finding
from mha.laws.subject import (
    TOLERANCE,
    Asked,
    Broke,
    NotAsked,
    Sizes,
    Subject,
    Unable,
    WrongReference,
    draw_layers,
    draw_matrices,
)  # fmt: skip
from mha.laws.tensors import ready

__all__ = ["Failure", "Law", "differs", "law", "skip_if"]

CLEAR = 0.01  # what shrinking leaves must be seen in three printed decimals
SHRINKS = 600  # so many times an example is made smaller
QUESTIONS = "attend", "tokens", "layer", "encode"
CORRECT = {
    "attend": mha.scaled_dot_product_attention, "layer": mha.multi_head_attention,
    "encode": mha.encoder, "encoder_layer": mha.encoder_layer,
}  # fmt: skip
Case = dict[str, Any]


class Failure(NamedTuple):
    """What a law wanted to see, what it saw, and what it compared."""

    expected: Any
    got: Any
    where: str = ""


def near(expected: Any, got: Any, within: float = 1e-5) -> bool:
    """Return whether two arrays are equal up to rounding."""
    return bool(np.allclose(got, expected, rtol=within, atol=within))


def differs(
    expected: Any, got: Any, where: str = "", within: float = 1e-5
) -> Failure | None:
    """Return a `Failure` where the two are not equal up to rounding, else None."""
    expected, got = np.asarray(expected), np.asarray(got)
    if expected.shape != got.shape:
        return Failure(f"shape {expected.shape}", f"shape {got.shape}", where)
    if np.isnan(expected).any():  # what was expected came from the subject itself
        return Failure("numbers", "NaN", where)
    return None if near(expected, got, within) else Failure(expected, got, where)


def skip_if(condition: Any, why: str) -> None:
    """Do not ask the law on this input."""
    if condition:
        raise NotAsked(why)


def weights_of(attend: Any, Q: Any, K: Any, mask: Any = None, **options: Any) -> Any:
    """Return the weights: with unit vectors as values they are the output."""
    return attend(Q, K, np.eye(K.shape[-2], dtype=K.dtype), mask, **options)


class Tried(NamedTuple):
    """What was found on one input.

    `verdict` is None where the law holds, a `Failure`, or a `NotAsked`. `other` is
    (given, expected, got) of a call whose numbers are not those of the reference.
    """

    case: dict[str, Any]
    verdict: Any
    other: Any = None


def other_numbers(pairs: Iterable[Any], tolerance: float) -> Any:
    """Return the first of some calls in which the subject gives other numbers."""
    for (given, expected), (_, got) in pairs:
        if expected.shape == got.shape:
            # What is due where nothing is seen, empty_rows_give_zero says.
            got = np.where(expected.any(-1, keepdims=True), got, 0)
            if np.isnan(expected).any() and not np.isnan(got).any():
                raise WrongReference(
                    "the reference gave NaN where the subject does not"
                )
            if shown := differs(expected, got, "", tolerance):
                return given, *shown[:2]
    return None


# Inputs -----------------------------------------------------------------------------


class Size(NamedTuple):
    """How large one trial is. Distinct primes keep axes from being confused."""

    n_q: int
    n_k: int
    d: int
    integers: bool = True


# Square ones of even width are for what has positions.
SIZES = (
    Size(1, 2, 2), Size(2, 3, 2), Size(3, 3, 4), Size(3, 5, 2), Size(5, 7, 3, False),
    Size(7, 7, 4, False),
)  # fmt: skip


def numbers(rng: Any, *shape: int, integers: bool = True) -> np.ndarray:
    """Return small integers, which are easy to read, or normal numbers."""
    drawn = rng.integers(-2, 3, shape) if integers else rng.standard_normal(shape)
    return drawn.astype(float)


def open_mask(rng: Any, n_q: int, n_k: int) -> np.ndarray:
    """Return a mask that leaves every query something visible and something hidden."""
    mask, i = rng.random((n_q, n_k)) < 0.5, np.arange(n_q)
    mask[i, i % n_k], mask[i, (i + 1) % n_k] = True, False
    return mask


# What an input of a law means, by its name: draw(rng, size, subject).
DRAWN: dict[str, Callable[..., Any]] = {
    "Q": lambda rng, z, s: numbers(rng, z.n_q, z.d, integers=z.integers),
    "K": lambda rng, z, s: numbers(rng, z.n_k, z.d, integers=z.integers),
    "V": lambda rng, z, s: numbers(rng, z.n_k, z.d, integers=z.integers),
    "X": lambda rng, z, s: numbers(rng, z.n_k, s.width(z.d), integers=z.integers),
    "v": lambda rng, z, s: 1.0 + rng.integers(1, 5, z.d),
    "mask": lambda rng, z, s: open_mask(rng, z.n_q, z.n_k),
    "order": lambda rng, z, s: np.roll(np.arange(z.n_k), rng.integers(1, z.n_k)),
    "shift": lambda rng, z, s: rng.integers(1, 4, z.d).astype(float),
    "seed": lambda rng, z, s: int(rng.integers(1000)),
    "weights": lambda rng, z, s: draw_matrices(rng, s.sizes, z.integers),
    "layers": lambda rng, z, s: draw_layers(rng, s.sizes),
}


@dataclass(frozen=True, repr=False, eq=False)
class Law:
    """State something that is true of correct attention and false of some wrong one.

    Attributes
    ----------
    statement : function
        Returns None or True where the law holds, else False or a `Failure`.
    sentence, equation, reason : str
        What it says, the same as a formula, and why it is so.
    cases : function, optional
        ``cases(rng, subject)`` yields inputs by name, the smallest first; by default
        they are drawn by the names of the arguments in several `sizes`, with each of
        the `listed` values, and those of `also` come last.
    alone : bool
        Every function must keep it, so that the reference is not asked.
    exact : bool
        Whether no tolerance forgives anything.
    compares : bool
        Whether the numbers must be those of the reference on its inputs, too.
    borrows : bool
        Whether the subject gets the arrays of the law, and no copies.
    rank : int
        Broken laws of low rank are told first.

    Examples
    --------
    >>> @law("one key takes all the weight")
    ... def one_key(attend, Q, K, V):
    ...     return differs(V[:1].repeat(len(Q), 0), attend(Q, K[:1], V[:1]))
    >>> one_key.check(mha.scaled_dot_product_attention)
    ✓ one key takes all the weight
    """

    statement: Callable[..., Any]
    sentence: str
    equation: str = ""
    reason: str = ""
    cases: Callable[..., Any] | None = None
    sizes: tuple[Size, ...] = SIZES
    listed: dict[str, Any] = field(default_factory=dict)
    also: tuple[Case, ...] = ()
    alone: bool = False
    exact: bool = False
    compares: bool = True
    borrows: bool = False
    rank: int = 0

    @property
    def name(self) -> str:
        """Its name in `mha.laws`."""
        return self.statement.__name__

    @property
    def full_name(self) -> str:
        """How to write it, with ``laws.`` in front of a law of the package."""
        ours = self.statement.__module__.startswith("mha.laws.")
        return f"laws.{self.name}" if ours else self.name

    @property
    def asks(self) -> str:
        """The question that it asks, the name of its first argument."""
        return next(iter(inspect.signature(self.statement).parameters))

    def __call__(self, ask: Any, *inputs: Any, **named: Any) -> Any:
        """Return what the statement says of a plain function on these inputs."""
        return self.statement(ask, *inputs, **named)

    def __repr__(self) -> str:
        parts = [self.equation, self.reason and f"because {self.reason}"]
        return "\n    ".join([self.sentence, *filter(None, parts)])

    def check(
        self, subject: Any, reference: Any = None, *, seed: int = 0, **sized: Any
    ) -> Finding:
        """Return what was found: it holds, the smallest example, or why not asked.

        The arguments are those of `mha.laws.check`.
        """
        return self.found(*paired(subject, reference, **sized), seed)

    def breaks(self, subject: Any, reference: Any = None, seed: int = 0) -> bool:
        """Return whether the subject breaks this law."""
        tried = [*self.tried(*paired(subject, reference), seed)]
        return any(isinstance(x.verdict, Failure) for x in tried)

    # In the order in which it happens: inputs are drawn; each is judged, which asks
    # the subject and its reference; and the first that breaks the law is made smaller.

    def drawn(self, subject: Subject, seed: int) -> Iterator[Case]:
        """Yield the inputs, the smallest first."""
        rng = np.random.default_rng(seed)
        if self.cases:
            yield from self.cases(rng, subject)
            return
        inputs = list(inspect.signature(self.statement).parameters.values())[1:]
        self._expect_known(inputs)
        names = [x.name for x in inputs if x.name in DRAWN.keys() - self.listed.keys()]
        optional = [x.name for x in inputs if x.default is None]
        shown = [True, False] if "mask" in optional else [False]
        sizes = self.sizes if {*names} - {"seed"} else self.sizes[:1]
        for size, *chosen, bare in itertools.product(
            sizes, *self.listed.values(), shown
        ):
            drawn = [x for x in names if x != "mask" or not bare]
            case = {x: DRAWN[x](rng, size, subject) for x in drawn}
            if {"X", "mask"} <= case.keys():
                case["mask"] = open_mask(rng, size.n_k, size.n_k)
            yield case | dict(zip(self.listed, chosen, strict=True))
        yield from self.also

    def _expect_known(self, inputs: list[inspect.Parameter]) -> None:
        known = DRAWN.keys() | self.listed.keys()
        for x in inputs:
            if x.default is x.empty and x.name not in known:
                raise TypeError(
                    f"the law {self.name} has the input {x.name}, and inputs are drawn "
                    f"by their names: {', '.join(DRAWN)}; list its values in @law, as "
                    f"{x.name}=(…), or say how to draw it with cases="
                )

    def ask(self, subject: Subject, case: Case) -> Any:
        """Return None where it holds, else a `Failure`, or a `NotAsked`."""
        subject.borrows = self.borrows
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                verdict = self.statement(Asked(subject, self.asks), **case)
        except NotAsked as why:
            return why
        except Broke as error:
            return Failure("an array", error)
        if isinstance(verdict, Failure):
            return None if self._forgives(verdict, subject.tolerance) else verdict
        holds = verdict is None or bool(verdict)
        return None if holds else Failure("that the law holds", "that it does not")

    def _forgives(self, failure: Failure, tolerance: float) -> bool:
        """Return whether it is rounding to a subject that was said to be coarse."""
        expected, got = failure[:2]
        arrays = isinstance(expected, np.ndarray) and isinstance(got, np.ndarray)
        coarse = tolerance > TOLERANCE and not self.exact
        return coarse and arrays and near(expected, got, tolerance)

    def tried(
        self, subject: Subject, reference: Subject, seed: int = 0
    ) -> Iterator[Tried]:
        """Yield what is found on input after input, until one breaks the law."""
        for i, case in enumerate(self.drawn(subject, seed)):
            subject.head = reference.head = i % subject.sizes.n_heads
            found = self.judged(subject, reference, case, (self.name, seed, i))
            yield found
            if isinstance(found.verdict, Failure):
                return

    def judged(
        self, subject: Subject, reference: Subject, case: Case, key: Any = None
    ) -> Tried:
        """Return what is found on one input: the rule at the top of this file.

        `key` is the name of an input that was drawn, of which the reference remembers
        its answers.
        """
        with subject.recorded() as ours:
            verdict = self.ask(subject, case)
        # What the subject refuses, the reference need not know.
        if self.alone or isinstance(verdict, NotAsked):
            return Tried(case, verdict)
        if verdict is None and key is None:  # made smaller, the input breaks nothing
            return Tried(case, verdict)
        due, theirs = self._of_reference(reference, case, key)
        if isinstance(due, NotAsked) and not isinstance(due, Unable):
            return Tried(case, due)
        # Plain attention keeps every law on what is drawn, or is broken itself.
        if isinstance(due, Failure) and (reference.declared or key is None):
            verdict = NotAsked("the reference does not keep it")
        pairs = zip(theirs, ours, strict=False) if self.compares else ()
        return Tried(case, verdict, other_numbers(pairs, subject.tolerance))

    def _of_reference(self, reference: Subject, case: Case, key: Any) -> Any:
        """Return how the reference keeps the law, and its answers."""
        if key in reference.known:
            return reference.known[key]
        with reference.recorded() as answers:
            due = self.ask(reference, case)
        if isinstance(due, Failure) and isinstance(due.got, Broke):
            raise reference.blamed_for(due.got) from due.got
        if key is not None:
            reference.known[key] = due, answers
        return due, answers

    def found(self, subject: Subject, reference: Subject, seed: int) -> Finding:
        """Return the verdict on all inputs, with the smallest example if it breaks."""
        tried = [*self.tried(subject, reference, seed)]
        facts: Any = {"reason": self.reason, "seed": seed, "rank": self.rank}
        facts |= {"full_name": self.full_name, "verdict": "holds"}
        facts["other"] = next((x.other for x in tried if x.other), None)
        if tried and isinstance(tried[-1].verdict, Failure):
            facts |= self._example(subject, reference, *tried[-1][:2])
        elif all(isinstance(x.verdict, NotAsked) for x in tried):
            why = str(tried[0].verdict) if tried else "it was asked nothing"
            facts |= {"verdict": "not asked", "why": why}
        return Finding(self.name, self.sentence, **facts)

    def _example(
        self, subject: Subject, reference: Subject, case: Case, failure: Failure
    ) -> Case:
        """Return the facts of a finding: the smallest input that still breaks it."""
        breach = {"head": subject.head, **case}
        raised = isinstance(failure.got, Broke)
        if not isinstance(failure.got, str | Broke):
            case, failure = self.shrink(subject, reference, case, failure)
        with subject.recorded() as ours, reference.recorded() as theirs:
            self.ask(subject, case)
            given = subject.last.items()
            if not self.alone:
                self.ask(reference, case)
        answers = zip((due for _, due in theirs), (Y for _, Y in ours), strict=False)
        right = [due for due, Y in answers if np.array_equal(Y, failure.got)]
        # It is worth saying where both answers of the subject are wrong.
        worth = right and not raised and differs(failure.expected, right[0])
        return {
            "verdict": "raised" if raised else "broken", "example": case,
            "expected": failure.expected, "where": failure.where,
            "got": str(failure.got) if raised else failure.got, "breach": breach,
            "correct": right[0] if worth else None,
            "asked": subject.way if self.asks == "attend" else "",
            "shapes": ", ".join(f"{x} {y.shape}" for x, y in given
                                if hasattr(y, "shape")),
        }  # fmt: skip

    def shrink(
        self, subject: Subject, reference: Subject, case: Case, failure: Failure
    ) -> tuple[Case, Failure]:
        """Set to 0 what the failure does not need: sequences, rows, then entries.

        Halves are tried first, so that a wide matrix takes few calls. What is left is
        visible, and the reference keeps the law on it.
        """
        tries = SHRINKS

        def empty(name: str, places: list[Any]) -> None:
            """Set all of these to 0, or else those of each half."""
            nonlocal case, failure, tries
            if not places or tries <= 0:
                return
            tries -= 1
            smaller = case | {name: case[name].copy()}
            for place in places:
                smaller[name][place] = 0
            shown = self.judged(subject, reference, smaller).verdict
            if isinstance(shown, Failure) and _is_visible(shown, failure):
                case, failure = smaller, shown
            elif half := len(places) // 2:
                empty(name, places[:half])
                empty(name, places[half:])

        arrays = [(x, y) for x, y in case.items() if isinstance(y, np.ndarray)]
        names = [x for x, y in arrays if y.dtype.kind == "f"]
        for axes, name in itertools.product((3, 2, 1, 0), names):
            if axes < case[name].ndim:
                filled = case[name].any(tuple(range(-axes, 0)))
                for front in np.ndindex(filled.shape[:-1]):
                    empty(name, [(*front, i) for i in np.flatnonzero(filled[front])])
        return case, failure


def _is_visible(failure: Failure, before: Failure) -> bool:
    words = [isinstance(x, str | Broke) for x in (*failure[:2], *before[:2])]
    if any(words):
        return str(failure) == str(before)
    expected, got = failure[:2]
    if np.isnan(got).any() != np.isnan(before.got).any():
        return False
    return np.shape(expected) != np.shape(got) or not near(expected, got, CLEAR)


def law(
    sentence: str, equation: str = "", reason: str = "", **facts: Any
) -> Callable[[Callable[..., Any]], Law]:
    """Make the function below it a `Law`.

    Facts are fields of `Law`; any other keyword lists values for one argument, which
    are tried one by one.
    """
    fields = {x: facts.pop(x) for x in [*facts] if x in Law.__dataclass_fields__}

    def made(statement: Callable[..., Any]) -> Law:
        found = Law(statement, sentence, equation, reason, listed=facts, **fields)
        if found.asks not in QUESTIONS:
            raise TypeError(
                f"the first argument of a law must be one of {', '.join(QUESTIONS)}, "
                f"got {found.asks!r} in {found.name}"
            )
        return found

    return made


def paired(
    subject: Any, reference: Any = None, *, sizes: Sizes | None = None,
    tolerance: float | None = None,
) -> tuple[Subject, Subject]:  # fmt: skip
    """Return a subject and what it is compared with, asked in the same way."""
    subject = Subject(ready(subject))
    subject.sizes = sizes or subject.sizes
    subject.tolerance = tolerance or subject.tolerance
    correct = reference
    if correct is None:
        grouped = subject.sizes.n_heads != subject.sizes.n_kv_heads
        correct = CORRECT["attend" if grouped else subject.kind]
    theirs = subject.as_reference(ready(correct))
    # Plain attention keeps all laws: were it broken itself, no law may be silent.
    theirs.declared = reference is not None
    # What one of them cannot be asked, neither is asked.
    apart = {"X_k", "X_v"} - (subject.accepts & theirs.accepts)
    subject.accepts, theirs.accepts = subject.accepts - apart, theirs.accepts - apart
    subject.reference = theirs.reference = theirs
    return subject, theirs
