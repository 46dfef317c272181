"""What a law is, and how the smallest input that breaks it is found."""

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mha import zoo
from mha.laws.adapter import as_functions, as_subject, told
from mha.laws.designs import attends
from mha.laws.report import ANSWER, Finding, Raised
from mha.laws.stack import as_settings
from mha.laws.subject import Broke, Subject, quiet
from mha.laws.words import Conventions, NotApplicable, near

__all__ = ["Failure", "Law", "law"]

# A wrong version is off by hundredths or more, float32 by less than a millionth.
TOLERANCE = 1e-5
CLEAR = 0.01  # what shrinking leaves must be seen in three printed decimals
ROWS = 12  # more are not printed
# What was compared, by where: asked of correct attention, it is what is expected.
COMPARED: dict[str, Any] = {}
SHRINKS = 2000  # so many times an example is made smaller
OUT_OF_REACH = {
    ("layer", "attention"): "it has no weight matrices",
    ("layer", "encoder"): "norms stand around its attention: check that alone",
    ("encoder", "attention"): "it is no encoder",
    ("encoder", "layer"): "it is no encoder",
}
Case = dict[str, Any]


class Size(NamedTuple):
    """How large one trial is. Distinct primes keep axes from being confused."""

    n_q: int
    n_k: int
    d: int
    integers: bool = True


SIZES = (Size(1, 2, 2), Size(2, 3, 2), Size(3, 5, 2), Size(5, 7, 3, False))


def fitted(size: Size, subject: Any) -> Size:
    return size._replace(n_q=size.n_k, d=4) if subject.ordered else size


def numbers(rng: np.random.Generator, *shape: int, integers: bool = True) -> np.ndarray:
    """Return small integers, which are easy to read, or normal numbers."""
    drawn = rng.integers(-2, 3, shape) if integers else rng.standard_normal(shape)
    return drawn.astype(float)


def rows(rng: np.random.Generator, n: int, size: Size, *leading: int) -> np.ndarray:
    return numbers(rng, *leading, n, size.d, integers=size.integers)


def qkv(rng: np.random.Generator, size: Size, *leading: int) -> Case:
    counts = zip("QKV", (size.n_q, size.n_k, size.n_k), strict=True)
    return {name: rows(rng, n, size, *leading) for name, n in counts}


def open_mask(rng: np.random.Generator, n_q: int, n_k: int) -> np.ndarray:
    """Return a mask that leaves every query something visible and something hidden."""
    mask, i = rng.random((n_q, n_k)) < 0.5, np.arange(n_q)
    mask[i, i % n_k], mask[i, (i + 1) % n_k] = True, False
    return mask


# What an argument of a law means, by its name.
ARGUMENTS: dict[str, Callable[[np.random.Generator, Size], Any]] = {
    "Q": lambda rng, size: rows(rng, size.n_q, size),
    **dict.fromkeys("KVX", lambda rng, size: rows(rng, size.n_k, size)),
    "v": lambda rng, size: 1.0 + rng.integers(1, 5, size.d),
    "mask": lambda rng, size: open_mask(rng, size.n_q, size.n_k),
    "order": lambda rng, size: np.roll(np.arange(size.n_k), rng.integers(1, size.n_k)),
    "shift": lambda rng, size: rng.integers(1, 4, size.d).astype(float),
    **dict.fromkeys(("seed", "turn"), lambda rng, size: int(rng.integers(1000))),
}


def by_name(judge: Callable[..., Any], sizes: Any, values: Case, also: Case) -> Any:
    """Return cases that draw the arguments of a law by their names, `also` at the end.

    A `mask` that may be left out is so first. Lists in `values` are tried one by one,
    functions there draw. What has no other argument than a seed is drawn once.
    """
    meant = ARGUMENTS | {x: draw for x, draw in values.items() if callable(draw)}
    listed = {x: some for x, some in values.items() if not callable(some)}
    names = inspect.signature(judge).parameters
    drawn = [x for x in names if x in meant and x not in {*listed, "mask"}]
    sizes = sizes if {*names} & {*meant} - {"seed"} else sizes[:1]
    masked = [False, True] if "mask" in names else [False]
    if masked[1:] and names["mask"].default is inspect.Parameter.empty:
        masked = [True]

    def cases(rng: np.random.Generator, subject: Any) -> Iterator[Case]:
        for size, *chosen, hides in itertools.product(sizes, *listed.values(), masked):
            size = fitted(size, subject)
            case = {x: meant[x](rng, size) for x in drawn}
            case |= dict(zip(listed, chosen, strict=True))
            yield case | ({"mask": meant["mask"](rng, size)} if hides else {})
        yield from [also] if also else []

    return cases


class Failure(NamedTuple):
    """What a law wanted to see, what it saw, and where (a mode of PyTorch, a name)."""

    expected: Any
    got: Any
    where: str = ""

    def in_few_rows(self) -> "Failure":
        """Return the row that is off most, where there are too many to read."""
        expected, got, where = self
        if np.ndim(got) < 2 or got[..., 0].size <= ROWS or expected.shape != got.shape:
            return self
        i = np.unravel_index(abs(expected - got).max(-1).argmax(), got.shape[:-1])
        return Failure(expected[i], got[i], f"{where}, query {i[-1] + 1}")


class ByDesign(NotApplicable):
    """Correct attention of its design fails, too."""


class Unanswered(NotApplicable):
    """Its answers differ on an input for which its design has none."""


Breach = tuple[Subject, Case, Failure]  # what failed, on which inputs, and how
PATIENCE = 5  # so often a law is asked again that its design breaks


@dataclass(frozen=True, repr=False)
class Law:
    """State something that is true of correct attention and false of some wrong one.

    Parameters
    ----------
    slug, name, equation, reason : str
        Name of the law in `mha.laws`, the law as a sentence and a formula, and why.
    cases : callable
        ``cases(rng)`` yields dicts of inputs, the smallest first; with a second
        argument it gets the subject, whose `sizes` it may take.
    judge : callable
        ``judge(subject, **case)`` returns True or None where the law holds, else False
        or a `Failure`. The subject answers ``attend(Q, K, V, mask)`` in NumPy, a
        layer ``layer(X, weights, n_heads, mask)``, too, and an encoder
        ``encode(X, layers, mask)``.
    level, of : str
        What it needs: "attention" alone, weight matrices of a "layer", or an "encoder";
        and the one design, such as "rotary", of which it is asked.
    sees_all, orderless, places, correct : bool
        Whether it needs tokens that may attend to all others, or in any order, or
        scores of its own; whether a report expects what correct attention gives, as
        both answers may be wrong.

    Examples
    --------
    >>> from mha import scaled_dot_product_attention
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
    places: bool = False
    correct: bool = False
    of: str = ""

    def __repr__(self) -> str:
        parts = [self.equation, self.reason and f"because {self.reason}"]
        return "\n    ".join([self.name, *filter(None, parts)])

    def check(self, subject: Any, seed: int = 0) -> Finding:
        """Return what was found when `subject` was put to the test.

        Subject, seed and errors are those of `mha.laws.check`.
        """
        subject = as_subject(subject)
        finding = Finding(self, True, subject=subject.name, seed=seed)
        with subject.borrowed():
            try:
                found = self.search(subject, seed)
            except ByDesign:
                return replace(finding, holds=False, declared=True)
            except NotApplicable as why:
                return replace(finding, holds=None, why=str(why))
            if found is None:
                return finding
            variant, case, failure = self.shrink(*found)
            failure = self.with_correct(variant, case, failure).in_few_rows()
            variant.log.clear()
            self.ask(variant, case)
            everywhere = all(self.fails(x, case) for x in subject.variants())
        given = variant.log.pop("given", {}).items()
        arrays = (f"{x} {y.shape}" for x, y in given if isinstance(y, np.ndarray))
        return replace(
            finding, holds=False, example=case, expected=failure.expected,
            where=f"{failure.where}\n{'' if everywhere else variant.mode}".strip(),
            got=failure.got, setup="\n".join(variant.log.values()),
            shapes=", ".join(arrays), breach=found,
        )  # fmt: skip

    def drawn(self, subject: Subject, seed: int = 0) -> Iterator[Case]:
        fitted = len(inspect.signature(self.cases).parameters) == 2
        yield from self.cases(np.random.default_rng(seed), *[subject][:fitted])

    def search(self, subject: Subject, seed: int = 0) -> Breach | None:
        """Return the first case that fails, with its variant, or None if all pass.

        Raises `NotApplicable`, with the reason, if no case can be asked.
        """
        seen: list[Any] = []  # what was answered, and None where it passed
        for i, case in enumerate(self.drawn(subject, seed)):
            for variant in subject.variants(few=i > 1):
                answer = self.ask(variant, case)
                if isinstance(answer, Failure) and subject.designs:
                    answer = self._unless_by_design(variant, case, answer)
                if isinstance(answer, Failure):
                    return variant, case, answer
                seen.append(answer)
            if sum(isinstance(x, ByDesign) for x in seen) > PATIENCE:
                break
        for kind in (ByDesign, Unanswered):
            if found := [x for x in seen if isinstance(x, kind)]:
                raise found[0]
        if None not in seen:
            raise (seen or [NotApplicable("it was asked nothing")])[0]
        return None

    def _unless_by_design(self, subject, case, failure):
        if self.of == "step":  # no design excuses a cache
            return failure
        theirs = self.ask(right(subject), case)
        if not isinstance(theirs, Failure):
            return theirs or failure
        if theirs.expected is ANSWER:
            why = f"its design has no answer: {theirs.got}"
            # What differs from itself, where nothing is due, does not hold.
            return NotApplicable(why) if failure.expected is ANSWER else Unanswered(why)
        moving = next((design for design in subject.designs if design.moves), None)
        if self.places and moving:
            return NotApplicable(f"{moving!r} gives it other scores")
        return ByDesign()

    def breaks(self, subject: Subject) -> bool:
        with contextlib.suppress(NotApplicable):
            return self.search(subject) is not None
        return False

    def with_correct(self, subject, case, failure):
        if not self.correct:
            return failure
        COMPARED.clear()
        passes = self.ask(right(subject), case) is None
        correct = COMPARED.get(failure.where) if passes else None
        if correct is None or np.shape(correct) != np.shape(failure.expected):
            return failure
        if shown := differs(correct, failure.got, failure.where):
            return shown
        other = f"{failure.where}\nthe answer to compare with; the other is correct"
        return differs(correct, failure.expected, other.strip()) or failure

    def shrink(self, subject: Subject, case: Case, failure: Failure) -> Breach:
        """Set to 0 what the failure does not need: sequences, rows, then entries.

        Halves are tried first, so that a wide matrix takes few calls. What is left is
        of the same kind, visible, and passed by correct attention.
        """
        try:
            correct = right(subject)
        except Broke:
            return subject, case, failure
        tries = SHRINKS if subject.own is None else SHRINKS // 5

        def empty(name: str, places: list[Any]) -> None:
            """Set all of these to 0, or else those of each half."""
            nonlocal case, failure, tries
            if not places or tries == 0:
                return
            tries -= 1
            smaller = case | {name: case[name].copy()}
            for place in places:
                smaller[name][place] = 0
            shown: Any = self.ask(subject, smaller)
            visible = isinstance(shown, Failure) and _is_visible(shown, failure)
            if visible and not self.fails(correct, smaller):
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
        return subject, case, failure

    def fails(self, subject: Subject, case: Case) -> bool:
        return isinstance(self.ask(subject, case), Failure)

    def ask(self, subject: Any, case: Case) -> Failure | NotApplicable | None:
        """Return how `subject` fails, why it cannot be asked, or None if it passes."""
        subject = as_subject(subject)
        try:
            self._expect_askable(subject, case)
            with quiet():
                verdict = self.judge(subject, **case)
        except NotApplicable as why:
            return why
        except Broke as error:
            if isinstance(error.__cause__, NotImplementedError):
                return NotApplicable(f"it is not made for this: {error}")
            text = Raised(error.text) if error.__cause__ else error.text
            return Failure(ANSWER, text, error.where)
        if isinstance(verdict, Failure):
            return None if subject.said.forgives(*verdict[:2]) else verdict
        fine = verdict is None or verdict
        return None if fine else Failure("the law holds", "it does not")

    def _expect_askable(self, subject, case):
        why = OUT_OF_REACH.get((self.level, subject.kind), "")
        designs = {type(design).__name__ for design in subject.designs}
        if self.of not in {"", "step", *designs}:
            why = f"nobody said design=[{self.of}(…)]"
        elif self.sees_all and subject.always_causal:
            why = "it is always causal"
        elif self.orderless and subject.said.positional:
            why = "the order of its tokens counts (positional=True)"
        elif case.get("mask") is not None and subject.mask_name is None:
            why = why or subject.why_no_mask
        elif case.get("is_causal") and not subject.takes_causal:
            why = why or "it has no is_causal"
        if why:
            raise NotApplicable(why)


def law(
    name: str, equation: str, reason: str, *, sizes: Any = SIZES, cases: Any = None,
    also: Any = None, **values: Any,
) -> Callable[[Callable[..., object]], Law]:  # fmt: skip
    """Make the function below it the judge of a `Law`, and its name the slug.

    Without `cases` its arguments are drawn by their names, see `by_name`.
    """
    facts = {x: values.pop(x) for x in [*values] if x in Law.__dataclass_fields__}

    def made(judge: Callable[..., object]) -> Law:
        drawn = cases or by_name(judge, sizes, values, also)
        return Law(judge.__name__, name, drawn, judge, equation, reason, **facts)

    return made


@functools.cache
def _as_told(member, kind, tensors, causal, n_kv_heads):
    part = {"attention": "attention", "encoder_layer": "layer"}.get(kind)
    said = Conventions(causal="built in" if causal else None, n_kv_heads=n_kv_heads)
    readings = as_functions(getattr(member, part) if part else member)
    return told(readings[0], said).but(tensors=tensors)


def right(subject: Any) -> Subject:
    """Return correct attention, asked as the subject is: what laws compare with."""
    correct = zoo.right_encoder if subject.kind == "encoder" else zoo.right
    correct = attends(subject.designs) if subject.designs else correct
    twin = in_place_of(subject, correct)
    return twin.but(tensors=False, cast=None, direction=None, designs=subject.designs)


def in_place_of(variant: Any, member: Any) -> Subject:
    """Return the member as a subject that is asked as the variant is."""
    kind, causal = variant.kind, variant.always_causal
    if kind == "encoder" and not variant.many:
        kind = "encoder_layer"
    groups = variant.said.n_kv_heads if kind == "layer" else None
    twin = _as_told(member, kind, variant.tensors, causal, groups)
    twin = twin.but(own=variant.own, cast=variant.cast, direction=variant.direction)
    twin = twin.with_settings(is_causal=True) if causal else twin
    if variant.kind == "encoder":
        settings = as_settings(variant.facts)
        if kind == "encoder_layer":
            del settings["final_norm"]
        settings |= {x: y for x, y in variant.settings.items() if x == "training"}
        return twin.with_settings(**settings).but(takes_bias=variant.takes_bias)
    if variant.other_names is None:
        twin.other_names = None
    return twin


def _is_visible(failure, before):
    words = [isinstance(x, str) for x in (*failure[:2], *before[:2])]
    if any(words):
        return all(words) and failure == before
    expected, got = failure[:2]
    if np.isnan(got).any() != np.isnan(before.got).any():
        return False
    alike = np.shape(expected) == np.shape(got)
    return not (alike and np.allclose(got, expected, atol=CLEAR, rtol=CLEAR))


def differs(expected, got, where="", within=TOLERANCE) -> Failure | None:
    """Return a `Failure` where the two are not equal up to rounding, else None."""
    expected, got = np.asarray(expected), np.asarray(got)
    COMPARED[where] = got
    if expected.shape != got.shape:
        return Failure(f"shape {expected.shape}", f"shape {got.shape}", where)
    if np.isnan(expected).any():
        # What was expected came from the subject itself.
        return Failure("numbers", "NaN", where)
    return None if near(expected, got, within) else Failure(expected, got, where)


def weights_of(subject: Subject, Q: Any, K: Any, mask: Any = None) -> Any:
    return subject.attend(Q, K, np.eye(K.shape[-2], dtype=K.dtype), mask)
