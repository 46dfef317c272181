"""The exercises of the book, one module per chapter, named by the chapter's slug.

A notebook says ``from exercises import masks as check``, which works because a
notebook runs in its own folder; then ``check.causal_row(answer)`` prints what is to be
said of the answer. `engine` is what any exercise is made with, and the other modules
hold the exercises of a chapter. A row of `mistakes` is what is said to a slip, and
after it the slip itself: a wrong program, or a wrong value. A slip that is one change
of a right program needs no row: `families` makes such changes.
"""

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from chapters import CHAPTERS, chapter_number
from exercises import engine
from exercises.engine import Unfit, Verdict, same
from exercises.families import ENOUGH, bits, sizes_of, slip_in


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Exercise(engine.Exercise):
    """An exercise of the book, which knows the ordinary families of slips too.

    `axes` is how many of the last axes a task is about, if it promises any number in
    front of them, and `exact` that even the dtype of an answer counts.
    """

    axes: int = 0
    exact: bool = False

    def recognise(self, outcomes: list[Any]) -> tuple[str | None, bool]:
        slip, sure = super().recognise(outcomes)
        arrays = any(isinstance(x, np.ndarray | int | float) for x in self.cases[0])
        if sure or not arrays or not callable(self.right):
            return slip, sure
        pairs = [*zip(outcomes, self.wanted, strict=True)]
        wrong = [k for k, pair in enumerate(pairs) if not same(*pair)]
        axes = [max(map(np.ndim, case)) for case in self.cases]
        large = [k for k, most in enumerate(axes) if most > self.axes]
        if self.axes and wrong == large and len(wrong) < len(pairs):
            return _LEADING, True
        family = slip_in(self, self._solved(), outcomes, self.wanted)
        slip = slip or self._mostly(outcomes, wrong)
        place = _where(self, outcomes, self.wanted)
        return family or slip or place, bool(family or not slip)

    def _mostly(self, outcomes: list[Any], wrong: list[int]) -> str | None:
        """Return what is said to a mistake that explains most of what is wrong."""
        for hint, theirs in zip(self.mistakes, self.mistaken, strict=True):
            alike = [k for k in wrong if same(outcomes[k], theirs[k])]
            enough = sum(bits(outcomes[k]) for k in alike) >= ENOUGH
            if enough and alike[0] == wrong[0] and 2 * len(alike) > len(wrong):
                return hint
        return None

    def _solved(self) -> tuple[str, str] | None:
        """Return the chapter whose exercise this is, and its name there."""
        for slug in CHAPTERS:
            module = sys.modules.get(f"exercises.{slug}")
            for name, one in vars(module).items() if module else ():
                if getattr(one, "right", None) is self.right:
                    return slug, name
        return None

    def self_test(self) -> None:
        """Prove it, and run the right answer as lists, in float32 and in loops."""
        super().self_test()
        if not inspect.isroutine(self.right):
            return
        ways = {"in a loop over the axes in front": self._looped} if self.axes else {}
        if not self.exact:
            ways["as lists"] = lambda *given: _listed(self.right(*given))
            ways["in float32"] = lambda *given: self.right(*map(_single, given))
        free = dataclasses.replace(self, forbidden=())  # right may be a step of mha
        for way, answer in ways.items():
            if not (verdict := free(answer)).passed:
                raise AssertionError(f"the right answer {way} is refused:\n{verdict}")

    def _looped(self, *given: Any) -> Any:
        sizes = {len(x) for x in given if np.ndim(x) > self.axes}
        if not sizes:
            return self.right(*given)
        inner = (
            [x[k] if np.ndim(x) > self.axes else x for x in given]
            for k in range(*sizes)
        )
        return np.stack([self._looped(*row) for row in inner])


_LEADING = (
    "right without axes in front, such as that of a batch, and wrong with them: name "
    "your axes from the end, by -1, -2, -3"
)


def _listed(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_listed, result))
    return np.asarray(result).tolist()


def _single(x: Any) -> Any:
    return x.astype(np.float32) if getattr(x, "dtype", None) == np.float64 else x


def _where(exercise: Exercise, outcomes: Any, wanted: Any) -> str | None:
    """Return what inputs have to do with the size of a result, or of one of several."""
    if all(isinstance(x, tuple) for x in (*outcomes, *wanted)):
        each = (zip(*many, strict=False) for many in (outcomes, wanted))
        said = (_where(exercise, *pair) for pair in zip(*each, strict=False))
        return next(filter(None, said), None)
    facts = [sizes_of(exercise.inputs, case) for case in exercise.cases]
    shapes = [[getattr(x, "shape", ()) for x in many] for many in (outcomes, wanted)]
    shared = min(len(shape) for many in shapes for shape in many)
    for axis in range(-1, -1 - shared, -1):
        ours, theirs = ([shape[axis] for shape in many] for many in shapes)
        if ours == theirs:
            continue
        for name in facts[0]:
            if ours == [fact.get(name) for fact in facts]:
                return f"axis {axis} of your result is always as long as {name} says"
        by_chance = all(ours[0] in fact.values() for fact in facts)
        if len({*ours}) == 1 < len({*theirs}) and not by_chance:
            text = f"axis {axis} of your result has the length {ours[0]} every time"
            return f"{text}: where does this number come from?"
    return None


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Law(Exercise):
    """An exercise that asks for a law: True of some versions, and False of others.

    `changes` is what is said to a wrong law that changes these inputs and no others
    from call to call, such as ``"K V"``, with a star where the shape changes, or calls
    its function once, ``""``; `blind` is the same for a law that is True of every
    version. The rows of the inputs that `vary` names have to differ.
    """

    changes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    blind: Mapping[str, str] = dataclasses.field(default_factory=dict)
    vary: Sequence[str] = ("K", "V")

    def judge(self, answer: Any) -> Verdict:
        """Return the `Verdict`, which names the version that is judged wrongly."""
        verdict, found = super().judge(answer), self.outcomes(answer)
        judges = all(isinstance(x, np.ndarray) and x.dtype == bool for x in found)
        if verdict.passed or not judges:
            return verdict
        if many := next((x.shape for x in found if x.shape), None):
            text = f"your law returns an array of shape {many}"
            one = "return one True or False, as np.allclose and .all() do"
            return self._no(f"{text}: {one}")
        known = None if "may be" in verdict.text else verdict.mistake
        said = self._said(answer, [*map(bool, found)], known)
        text = "\n".join([said, *verdict.text.splitlines()[1:]])
        return Verdict("not yet", text, said)

    def _said(self, law: Any, found: list[bool], known: str | None) -> str:
        """Return what is said to a law that finds this of the versions."""
        wanted = [*map(bool, self.wanted)]
        calls = self._calls(law, self.cases[wanted.index(True)][0])
        if not calls:
            return "your law never calls the function that it is given"
        names = dict.fromkeys(name for call in calls for name in call)
        given = {name: [call.get(name) for call in calls] for name in names}
        changed = {name: how for name in names if (how := _change(name, given[name]))}
        if len(calls) > 1 and not changed:
            return "your law calls its function with the same inputs each time"
        for name in self.vary:
            if name in given and all(map(_has_equal_rows, given[name])):
                text = f"all rows of {name} are equal in your law"
                return f"{text}, so nothing tells one from another: let them differ"
        k = next(k for k, one in enumerate(found) if one != wanted[k])
        version = self.cases[k][0]
        name = getattr(version, "name", getattr(version, "__name__", ""))
        rounded = self.outcome(law, (_altered(version, _rounded),))
        # The first version computes what a law forgives; rounding makes others like it.
        if wanted[k] == wanted[0] and same(rounded, self.wanted[k]):
            said = f"your law is {found[k]} of {name} only by rounding"
            return f"{said}: allow for it, as np.allclose(a, b, atol=1e-5) does"
        stars = {n: "*" * (what == _SHAPE) for n, (_, what) in changed.items()}
        changed_names = " ".join(n + stars[n] for n in stars)
        blind = self.blind.get(changed_names) if all(found) else None
        if known := known or blind or self.changes.get(changed_names):
            return known
        if found[k] and (row := self._only_row(law, version)):
            said = f"your law stays True if all of the result but {row} is replaced"
            return f"{said}: every row has to matter"
        how: dict[str, list[str]] = {}
        for where, what in changed.values():
            how.setdefault(what, []).append(where)
        changes = [f"{' and '.join(some)} {what}" for what, some in how.items()]
        changes = f"; from call to call: {', '.join(changes)}" if changes else ""
        if len({*found}) == 1:
            return f"your law is {found[k]} of every version, right or wrong{changes}"
        does = getattr(version, "wrong", inspect.getdoc(version) or "").split("\n")[0]
        does = f" ({does})" if does and found[k] else ""
        said = f"your law is {found[k]} of {name}, and should be {wanted[k]}"
        return f"{said}{does}{changes}"

    def _only_row(self, law: Any, version: Any) -> str:
        """Return the one row that a law looks at, or an empty text."""

        def holds(kept: list[int]) -> bool:
            rng = np.random.default_rng(0)

            def spoil(x: Any) -> Any:
                noise = rng.normal(size=np.shape(x))
                noise[kept] = np.asarray(x)[kept]
                return noise

            found = self.outcome(law, (_altered(version, spoil),))
            return same(found, np.array(True))

        if holds([]) or (holds([0]) and holds([-1])):
            return ""
        return next((f"row {k}" for k in range(-1, 12) if holds([k])), "")

    def _calls(self, law: Any, right: Any) -> list[dict[str, Any]]:
        """Return the inputs with which a law calls a version that keeps it."""
        calls: list[dict[str, Any]] = []

        @functools.wraps(right)
        def listening(*given: Any, **options: Any) -> Any:
            inputs = inspect.signature(right).bind(*given, **options).arguments
            inputs |= inputs.pop("options", {})  # where right takes **options
            # Copies, because a law may write into an array between two calls.
            calls.append({name: np.array(x, ndmin=1) for name, x in inputs.items()})
            return right(*given, **options)

        self.outcome(law, (listening,))
        return calls


_SHAPE = "in another shape"


def _change(name: str, given: list[Any]) -> tuple[str, str] | None:
    """Return what of an input differs from call to call, and how."""
    first = given[0]
    if all(np.array_equal(x, first) for x in given):
        return None
    if len({np.shape(x) for x in given}) > 1:
        return name, _SHAPE
    if all(same(np.sort(x, None), np.sort(first, None)) for x in given):
        return name, "in another order"
    for x in given[1:]:
        factor = x.flat[0] / first.flat[0] if first.flat[0] else 1
        if factor != 1 and same(x, factor * first):
            return name, f"times {factor:.3g}"
    rows = [k for k, row in enumerate(first) if not all(same(x[k], row) for x in given)]
    some = ", ".join(f"{name}[{k}]" for k in rows)
    return some if len(rows) < min(len(first), 4) else name, "with other numbers"


def _has_equal_rows(x: Any) -> bool:
    return np.ndim(x) > 1 and x.shape[-2] > 1 and not np.ptp(x, axis=-2).any()


class _Loose(np.ndarray):
    """Numbers for which ``==`` forgives rounding."""

    def __eq__(self, other: Any) -> Any:
        return np.isclose(np.asarray(self), np.asarray(other), 1e-4, 1e-5)

    __hash__ = None


def _rounded(x: Any) -> Any:
    return np.round(x, 5).view(_Loose)


def _altered(version: Any, alter: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a version of which each result is altered."""

    def run(*given: Any, **options: Any) -> Any:
        out = version(*given, **options)
        return tuple(map(alter, out)) if isinstance(out, tuple) else alter(out)

    return run


def chapter(slug: str) -> str:
    """Return what a text calls the chapter, such as "chapter 4" for ``"masks"``."""
    return f"chapter {chapter_number(slug)}"


def section(slug: str, *headings: str) -> str:
    """Return what a text calls these sections, such as 'chapter 4, "By hand"'."""
    return f"{chapter(slug)}, " + " and ".join(f'"{heading}"' for heading in headings)


def random_arrays(*shapes: tuple[int, ...], seed: int) -> tuple[np.ndarray, ...]:
    """Return random arrays with numbers of one decimal, which are easy to read."""
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).round(1) for shape in shapes)


def each(*inputs: Any) -> tuple[tuple[Any, ...], ...]:
    """Return a case for each input, for an exercise that takes one."""
    return tuple((given,) for given in inputs)


def number(answer: Any, digits: int = 2) -> float:
    """Return a number to so many digits, also if it came as a text such as "2 / 3"."""
    try:
        if isinstance(answer, str):
            answer = Fraction(answer.replace(" ", ""))
        return round(np.asarray(answer, dtype=float).reshape(()).item(), digits)
    except (TypeError, ValueError, ZeroDivisionError):
        raise Unfit("answer with a number") from None


def judged(law: Callable[[Any], Any], attend: Any) -> Any:
    """Return what a law says of an attention: True, False, or what else it returns.

    Examples
    --------
    >>> judged(lambda attend: attend == "right", "right")
    True
    """
    try:
        answer = law(attend)
    except AssertionError:  # a law may be written as a test
        return False
    return answer if answer is None else bool(np.asarray(answer).all())


def member(name: str) -> Callable[..., Any]:
    """Return the attention of a member of the zoo, "right in float32" for example.

    Its last digits differ from ours, and with the number of keys, as those of a program
    that sums in blocks, so that ``==`` fails on every processor.
    """
    from mha import zoo  # only laws need it

    full, (name, _, float32) = name, name.partition(" in ")
    attention = getattr(zoo, name).attention
    kind = np.float32 if float32 else np.float64

    def rounded(Q: Any, K: Any, V: Any, *args: Any, **options: Any) -> Any:
        Q, K, V = (np.asarray(x, dtype=kind) for x in (Q, K, V))
        factor = 1 - (4 + len(K) % 13) * np.finfo(kind).eps
        out = attention(Q, K, V, *args, **options)
        if isinstance(out, tuple):
            return tuple((x * factor).astype(kind) for x in out)
        return (out * factor).astype(kind)

    rounded.__doc__ = getattr(getattr(zoo, name), "wrong", "")
    return named(full, rounded)


def named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function by another name, which verdicts then show."""
    function.__name__ = name
    return function


def partly(wrong: Any, right: Any, place: Any, where: str) -> Callable[..., Any]:
    """Return a version that is wrong at one place of its output, and right elsewhere.

    Examples
    --------
    >>> zeros = partly(np.zeros_like, np.copy, np.s_[1:], "behind the first")
    >>> zeros.__name__, zeros(np.ones(3))
    ('zeros_like behind the first', array([1., 0., 0.]))
    """

    @functools.wraps(right)
    def run(*given: Any, **options: Any) -> Any:
        Y = np.array(right(*given, **options))
        Y[place] = wrong(*given, **options)[place]
        return Y

    run.__doc__ = f"Be as {wrong.__name__}, {where} only."
    return named(f"{wrong.__name__} {where}", run)


def slips_of_the_zoo(*names: str, run: Any = lambda member: member.attention) -> Any:
    """Return members of the zoo by what is wrong; `run` turns one into an answer."""
    from mha import zoo

    return {getattr(zoo, name).wrong: run(getattr(zoo, name)) for name in names}
