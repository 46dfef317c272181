"""What a check found, as text and as JSON."""

import json
import textwrap
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mha.laws.alike import Likeness
    from mha.laws.judge import Law

__all__ = ["Finding", "Report"]

MARKS = {
    "holds": "✓", "broken": "✗", "raised": "✗", "declared": "~", "not asked": "–",
}  # fmt: skip
# Of the title, in this order.
COUNTED = {
    "holds": "hold", "broken": "broken", "raised": "raised an error",
    "declared": "broken as declared", "not asked": "not asked",
}  # fmt: skip
TRIED = {
    "said": "", "batches": "batches of ", "masks": "masks ", "dtypes": "",
}  # fmt: skip
WIDTH, ROW, ERROR = 88, 72, 160
# What is expected where nothing came that a law could judge.
ANSWER = "an array"


class Raised(str):
    """What the subject raised, in the place of what it should have returned."""


@dataclass(frozen=True)
class Finding:
    """What one law found about one subject.

    `holds` is None where the subject could not be asked. `example` is the smallest
    input found on which the law breaks, `expected` what the law wants to see there,
    `got` what came, `why` where it broke (or why it could not be asked), `setup` how a
    layer was made to answer. `declared` says that the law was to be broken, and
    `breach` holds what failed first: the subject in its mode, the inputs as drawn, and
    the failure.
    """

    law: "Law"
    holds: bool | None
    example: dict[str, Any] = field(default_factory=dict)
    expected: Any = None
    got: Any = None
    why: str = ""
    setup: str = ""
    subject: str = ""
    seed: int = 0
    declared: bool = False
    breach: Any = ()

    def __bool__(self) -> bool:
        return self.holds is True

    @property
    def verdict(self) -> str:
        """One of "holds", "broken", "raised", "declared" and "not asked"."""
        if self.holds is None:
            return "not asked"
        if isinstance(self.got, Raised):
            return "raised"
        if self.declared:
            return "broken" if self.holds else "declared"
        return "holds" if self.holds else "broken"

    def __repr__(self) -> str:
        head = f"{MARKS[self.verdict]} {self.law.name}"
        if self.holds is None:
            return f"{head}: not asked, {self.why}"
        if self.holds:
            return f"{head}: declared broken, but it holds" * self.declared or head
        return "\n".join([head, *self.lines()])

    def lines(self, laws: Collection[str] = ()) -> list[str]:
        """Return the failing example, one line or block per name.

        `laws` are all that met the same error; by default this one.
        """
        shown = {"law": _listed(laws or [f"laws.{self.law.slug}"]), **self.example}
        if isinstance(self.got, Raised):
            error = textwrap.shorten(self.got, ERROR, placeholder=" …")
            shown["raised"] = textwrap.fill(error, ROW)
        elif not laws:
            shown |= {"expected": self.expected, "got": self.got}
            shown |= {"off by": _distance(self.expected, self.got)}
        shown |= {"where": self.why, "layer": self.setup}
        shown["seed"] = self.example.get("seed", self.seed)
        if not laws:
            shown["because"] = self.law.reason
        shown = {name: x for name, x in shown.items() if not isinstance(x, str) or x}
        return _block({name: _text(x) for name, x in shown.items()})


def _distance(expected, got):
    """Return how far two arrays differ, where their printed numbers do not tell."""
    arrays = isinstance(expected, np.ndarray) and isinstance(got, np.ndarray)
    if not arrays or _text(expected) != _text(got):
        return ""
    return f"at most {np.abs(expected - got).max():.2g}"


def _block(shown, indent=4):
    """Return lines with the names on the left."""
    column = indent + max(map(len, shown)) + 2
    lines = []
    for name, text in shown.items():
        first, *rest = text.splitlines() or [""]
        lines.append((" " * indent + name).ljust(column) + first)
        lines += [" " * column + line for line in rest]
    return lines


def _listed(names, width=ROW):
    return textwrap.fill(", ".join(names), width, break_on_hyphens=False)


def _text(value):
    """Return an array as nested rows with at most three decimals."""
    if not isinstance(value, np.ndarray):
        return str(value)
    if value.size > 200:
        # Of a wide example shrinking has left little but zeros.
        return _what_is_left(value, 8)
    if value.ndim < 2:
        return _row(value)
    if value.ndim > 2:
        return "\n".join(_text(part) for part in value)
    rows = [_row(row) for row in value]
    line = f"[{', '.join(rows)}]"
    if len(line) <= ROW:
        return line
    # A matrix that shrinking has emptied is read faster in words.
    if np.count_nonzero(value) > 2:
        return "[" + ",\n ".join(rows) + "]"
    return _what_is_left(value, 2)


def _what_is_left(value, most):
    places = np.argwhere(value)
    if len(places) > most:
        return f"shape {value.shape}, of which {len(places)} are not 0"
    kept = [f"{_number(value[(*at,)])} at {[*map(int, at)]}" for at in places]
    return f"zeros of shape {value.shape}" + ", but " * bool(kept) + ", ".join(kept)


def _row(x):
    return "[" + ", ".join(map(_number, x)) + "]" if x.ndim else _number(x)


def _number(x):
    if isinstance(x, bool | np.bool_):
        return str(bool(x))
    rounded = round(float(x), 3)
    if rounded == 0:
        return "0"
    if abs(rounded) >= 1e6 and np.isfinite(rounded):
        return f"{rounded:.3g}"
    return f"{rounded:.3f}".rstrip("0").rstrip(".") if np.isfinite(rounded) else str(x)


@dataclass(frozen=True, repr=False)
class Report:
    """What all laws found about one subject.

    `findings` has one `Finding` for each law, `tried` says what the subject was given,
    and `unread` names arguments that look like a mask and were never handed anything.
    """

    subject: str
    findings: tuple[Finding, ...]
    search: "Callable[[], Likeness | None]" = lambda: None
    seed: int = 0
    because: str = ""
    tried: dict[str, Any] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @cached_property
    def likeness(self) -> "Likeness | None":
        """The wrong version, and on how many inputs its wrong numbers came."""
        return self.search() if self.broken else None

    @property
    def looks_like(self) -> Any:
        """The wrong version that gives the same wrong numbers, or None."""
        return self.likeness and self.likeness.member

    @property
    def broken(self) -> list[Finding]:
        """The findings of the laws that do not hold, though nobody said so.

        A law that was declared broken and holds is one of them.
        """
        return [f for f in self.findings if f.verdict in ("broken", "raised")]

    @property
    def holds(self) -> bool:
        """Whether no law is broken, and at least one could be asked."""
        return not self.broken and any(self.findings)

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        parts = [self.title, *self.warnings, *self.failures, self.likely]
        parts += ["\n".join(lines) for lines in self._rest()]
        return "\n\n".join(filter(None, parts))

    @property
    def title(self) -> str:
        """Name and counts."""
        verdicts = [f.verdict for f in self.findings]
        counts = {words: verdicts.count(v) for v, words in COUNTED.items()}
        said = ", ".join(f"{n} {words}" for words, n in counts.items() if n)
        return f"{self.subject}: {said or 'no law was asked'}"

    @property
    def warnings(self) -> list[str]:
        """What a reader must know who sees no broken law."""
        return [textwrap.fill(_warning(name), WIDTH) for name in self.unread]

    @property
    def failures(self) -> list[str]:
        """One block for every broken law, and one for every error."""
        return [block for _, block in self._blocks]

    @cached_property
    def _blocks(self):
        """Pairs of a finding and its block: the same error is shown once."""
        met: dict[Any, list[Finding]] = {}
        for f in self.broken:
            place = f.why.partition("\n")[0]
            same = (f.got, place) if f.expected is ANSWER else f.law.slug
            met.setdefault(same, []).append(f)
        return [(some[0], _block_of(some)) for some in met.values()]

    @property
    def likely(self) -> str:
        """What it behaves like, in words, and the evidence."""
        if self.likeness is None:
            return ""
        member, laws, inputs = self.likeness
        many = f"{laws} law{'s' * (laws > 1)}"
        same = f"the same wrong numbers in {many}, the same answers on {inputs} inputs"
        return (
            f"behaves like zoo.{member.name}\n    {member.wrong}\n    evidence: {same}"
        )

    @property
    def complaint(self) -> str:
        """What `assert_lawful` says: what broke and the smallest example."""
        if self.holds and not self.unread:
            return ""
        parts = [self.title]
        for verdict in ("broken", "raised"):
            slugs = [f.law.slug for f in self.broken if f.verdict == verdict]
            parts += [_listed([f"{verdict}: {slugs[0]}", *slugs[1:]])] if slugs else []
        parts = ["\n".join(parts), *self.warnings]
        if not any(f.holds is not None for f in self.findings):
            parts.append("\n    ".join(["no law could be asked:", *self.unasked]))
        if self._blocks:
            parts += [min(self._blocks, key=_size)[1], self.likely]
        if len(self._blocks) > 1:
            parts.append("all of it: print(laws.check(...))")
        return "\n\n".join(filter(None, parts))

    def _rest(self):
        """Yield what is no failure: declared, not asked, held, tried."""
        declared = [f.law.slug for f in self.findings if f.verdict == "declared"]
        if declared:
            reason = f", because {self.because}" * bool(self.because)
            yield [f"~ broken as declared{reason}", _indented(declared)]
        if self.unasked:
            pairs = ((_indented([y]), _indented(x, 8)) for y, x in self.unasked.items())
            yield ["– not asked", *(line for pair in pairs for line in pair)]
        if held := [f.law.slug for f in self.findings if f.verdict == "holds"]:
            yield ["✓ held", _indented(held)]
        yield ["tried", _indented([self.inputs])]

    @property
    def unasked(self) -> dict[str, list[str]]:
        """The laws that were not asked, by reason."""
        reasons: dict[str, list[str]] = {}
        for f in self.findings:
            if f.holds is None:
                reasons.setdefault(f.why, []).append(f.law.slug)
        return reasons

    @property
    def inputs(self) -> str:
        """What was tried, in words."""
        pairs = [(words, self.tried.get(name)) for name, words in TRIED.items()]
        parts = [words + ", ".join(map(str, x)) for words, x in pairs if x]
        lengths = self.tried.get("lengths")
        parts += [f"{lengths[0]} to {lengths[-1]} tokens"] if lengths else []
        return "; ".join([*parts, f"seed {self.seed}"])

    def to_json(self) -> str:
        """Return all that the report says as JSON."""
        names = ("subject", "holds", "seed", "because", "tried", "unread")
        said = {name: plain(getattr(self, name)) for name in names}
        said |= {"laws": [_as_json(f) for f in self.findings], "looks_like": None}
        if member := self.looks_like:
            facts = ("name", "wrong", "seen", "link")
            said["looks_like"] = {name: getattr(member, name) for name in facts}
        return json.dumps(said, ensure_ascii=False, indent=2)


def _as_json(finding):
    law = finding.law
    shown = {"law": law.slug, "name": law.name, "holds": finding.holds}
    shown |= {x: getattr(finding, x) for x in ("verdict", "why", "declared")}
    if finding.holds is False:
        shown |= {x: plain(getattr(finding, x)) for x in ("example", "expected", "got")}
        shown |= {"layer": finding.setup, "because": law.reason}
    return shown


def plain(x: Any) -> Any:
    """Return what JSON has a word for; it has none for NaN."""
    if isinstance(x, dict):
        return {str(name): plain(part) for name, part in x.items()}
    if isinstance(x, np.ndarray | list | tuple):
        return [plain(part) for part in x]
    if isinstance(x, float | np.floating):
        return float(x) if np.isfinite(x) else str(x)
    if isinstance(x, np.bool_ | np.integer):
        return x.item()
    return x if isinstance(x, str | int | bool | None) else repr(x)


def _size(block):
    """Return how many numbers the example has; one without any comes last."""
    sizes = [np.size(x) for x in block[0].example.values() if np.ndim(x)]
    return not sizes, sum(sizes)


def _block_of(findings):
    first, laws = findings[0], [f.law.slug for f in findings]
    if first.expected is not ANSWER:
        return repr(first)
    raised = f"it raised {first.got.partition(':')[0]}"
    head = raised if first.verdict == "raised" else f"it returns {first.got}"
    met = f"met by {len(laws)} law{'s' * (len(laws) > 1)}"
    return "\n".join([f"✗ {head}, {met}", *first.lines(laws)])


def _indented(names, by=4):
    return textwrap.indent(_listed(names, WIDTH - by), " " * by)


def _warning(name):
    words = "mask_true='attend' or 'hide'"
    if "bias" in name:
        words = "mask_true='added'"
    elif "len" in name:
        words = "mask_shape='lengths'"
    return (
        f"! the argument {name} looks like a mask and was never handed one, so no law "
        f"was asked about it: say {words}, or give a laws.Adapter without it"
    )
