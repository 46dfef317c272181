"""What a check found, in words."""

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["Finding", "Report"]

VERDICTS = {  # in the order of the title, with its words
    "holds": "hold", "broken": "broken", "raised": "raised an error",
    "declared": "broken as declared", "not asked": "not asked",
}  # fmt: skip
WIDTH, ROW, ERROR = 88, 72, 160
STRINGS = r"'[^']*'|\"[^\"]*\""
# So many broken laws are told in full, those first that few mistakes break, and those
# last, behind all others, that nearly all do.
IN_FULL, OTHERS = 2, ""
ORDER = (
    "head_moves_its_own_slice", "batches_and_heads_stay_apart",
    "padding_changes_nothing", "mask_and_causal_both_hide", "future_leaves_past_alone",
    "self_only_mask", "masked_weights_are_zero", "rows_sum_to_one",
    "scores_keep_unit_variance", OTHERS, "dtype_is_kept", "running_means",
    "empty_rows_give_zero", "every_length_alike", "gradients_are_slopes",
    "equals_reference",
)  # fmt: skip
ANSWER = "an array"  # expected where nothing came that a law could judge


class Raised(str):
    """What the subject raised, in the place of what it should have returned."""


@dataclass(frozen=True)
class Finding:
    """What one law found about one subject.

    `holds` is None where the subject could not be asked, and `why` says so. `example`
    is the smallest input found that breaks the law, `expected` what is due on it, `got`
    what came, and `where` what was compared, in which mode. `setup` is how a layer
    answered about attention, and `breach` what failed first: the subject in its mode,
    the inputs and the failure.
    """

    law: Any
    holds: bool | None
    example: dict[str, Any] = field(default_factory=dict)
    expected: Any = None
    got: Any = None
    why: str = ""
    where: str = ""
    setup: str = ""
    shapes: str = ""
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
        if self.declared and not self.holds:
            return "declared"
        return "holds" if self.holds != self.declared else "broken"

    def __repr__(self) -> str:
        mark = {"holds": "✓", "declared": "~", "not asked": "–"}.get(self.verdict, "✗")
        head = f"{mark} {self.law.name}"
        if self.holds is None:
            return f"{head}: not asked, {self.why}"
        if self.holds:
            return f"{head}: declared broken, but it holds" * self.declared or head
        return _block(head, self.shown())

    def shown(self) -> dict[str, str]:
        """Return the failing example, what was expected, and what came, in words."""
        shown = {"law": f"laws.{self.law.slug}", **self.example}
        if isinstance(self.got, Raised):
            error = textwrap.shorten(self.got, ERROR, placeholder=" …")
            shown["raised"] = textwrap.fill(error, ROW)
        elif self.holds is False:
            shown |= {"expected": self.expected, "got": self.got}
            arrays = isinstance(self.got, np.ndarray)
            if arrays and _text(self.got) == _text(self.expected):
                most = np.abs(self.expected - self.got).max()
                shown["off by"] = f"at most {most:.2g}"
        shown |= {"where": self.where, "layer": self.setup}
        shown["shapes"] = _wrapped(self.shapes, ROW, r" (?=[\d(])")
        shown["seed"] = self.example.get("seed", self.seed)
        shown["because"] = self.law.reason
        return {name: text for name, x in shown.items() if (text := _text(x))}


def _block(head, shown):
    column = max(map(len, shown)) + 6
    lines = [head]
    for name, text in shown.items():
        text = textwrap.indent(text, " " * column)
        lines.append(f"    {name}".ljust(column) + text[column:])
    return "\n".join(lines)


def _listed(names, by=0):
    return textwrap.indent(_wrapped(", ".join(names), WIDTH - by), " " * by)


def _wrapped(text, width, whole="$"):
    """Return the text in lines, none of which ends within what `whole` matches."""
    kept = re.sub(whole, lambda found: found[0].replace(" ", "\xa0"), text)
    rule = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(kept, width, **rule).replace("\xa0", " ")


def _text(value):
    if not isinstance(value, np.ndarray):
        return str(value)
    if value.ndim > 2 and value.size <= 200:
        return "\n".join(map(_text, value))
    places = np.argwhere(value)
    if value.size <= 200:
        form: Any = {"formatter": {"all": _number}, "max_line_width": 10_000}
        rows = np.array2string(value, separator=", ", **form)
        line = rows.replace("\n", "")
        if len(line) <= ROW or value.ndim < 2:
            return line
        # What shrinking has emptied is read faster in words.
        if len(places) > 2:
            return rows
    if len(places) > 8:
        return f"shape {value.shape}, of which {len(places)} are not 0"
    kept = [f"{_number(value[(*at,)])} at {[*map(int, at)]}" for at in places]
    return f"zeros of shape {value.shape}" + ", but " * bool(kept) + ", ".join(kept)


def _number(x):
    if isinstance(x, np.bool_) or not np.isfinite(x):
        return str(x)
    rounded = round(float(x), 3)
    if abs(rounded) >= 1e6:
        return f"{rounded:.3g}"
    return f"{rounded + 0.0:.3f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, repr=False)
class Report:
    """What all laws found about one subject: `findings` has one entry for each law.

    `tried` is what it was given, {"lengths": …, "batches": …, …}, and `unread`
    are arguments that look like a mask and were never handed anything. `code` stands
    for the subject in code to paste, beside what was said.
    """

    subject: str
    findings: tuple[Finding, ...]
    search: Callable[[], Any] = lambda: None
    advise: Callable[[], list[str]] = lambda: []
    seed: int = 0
    because: str = ""
    tried: dict[str, Any] = field(default_factory=dict)
    unread: Sequence[str] = ()
    code: tuple[str, list[str]] | None = None

    @cached_property
    def likeness(self) -> Any:
        """The wrong version, in how many laws, and on how many inputs it is alike."""
        return self.search() if self.broken else None

    @property
    def looks_like(self) -> Any:
        """The wrong version that gives the same wrong numbers, or None."""
        return self.likeness and self.likeness[0]

    @property
    def broken(self) -> list[Finding]:
        """The findings of laws that do not hold, or hold though they were declared."""
        return [f for f in self.findings if f.verdict in ("broken", "raised")]

    @property
    def unasked(self) -> dict[str, list[str]]:
        """The laws that were not asked, by reason."""
        reasons: dict[str, list[str]] = {}
        for f in self.findings:
            if f.holds is None:
                reasons.setdefault(f.why, []).append(f.law.slug)
        return reasons

    @property
    def holds(self) -> bool:
        """Whether no law is broken, and at least one could be asked."""
        return not self.broken and any(self.findings)

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        return "\n\n".join(filter(None, [*self._told(), *self._rest()]))

    def _told(self):
        found = sorted(self._blocks, key=_rank)
        rest = "\n".join(
            f"{text.splitlines()[0]}: {', '.join(f.law.slug for f in some)}"
            for some, text in found[IN_FULL:]
        )
        warnings = (textwrap.fill(_warning(x), WIDTH) for x in self.unread)
        blocks = (block for _, block in found[:IN_FULL])
        yield from (self.title, *warnings, *blocks, rest, self.likely, self.hinted)
        yield self._again(found)

    @property
    def title(self) -> str:
        """Name and counts."""
        verdicts = [f.verdict for f in self.findings]
        counts = [f"{n} {VERDICTS[v]}" for v in VERDICTS if (n := verdicts.count(v))]
        return f"{self.subject}: {', '.join(counts) or 'no law was asked'}"

    @property
    def complaint(self) -> str:
        """What `assert_lawful` says: the report, as far as something is wrong."""
        if self.holds and not self.unread:
            return ""
        asked = any(f.holds is not None for f in self.findings)
        none = "" if asked else "\n    ".join(["no law could be asked:", *self.unasked])
        return "\n\n".join(filter(None, [*self._told(), none]))

    def _slugs(self, verdict):
        return [f.law.slug for f in self.findings if f.verdict == verdict]

    @property
    def failures(self) -> list[str]:
        """One block for each broken law; the same error is shown once."""
        return [block for _, block in self._blocks]

    @cached_property
    def _blocks(self):
        met: dict[Any, list[Finding]] = {}
        for f in self.broken:
            place = f.where.partition("\n")[0]
            # One mistake raises the same error about arrays of many sizes.
            error = re.sub(r"\d+", "n", str(f.got)), place
            met.setdefault(error if f.expected is ANSWER else f.law, []).append(f)
        return [(some, _block_of(*some)) for some in met.values()]

    @cached_property
    def hinted(self) -> str:
        """What to say or to change, if that explains what is broken."""
        texts = self.advise() if self.broken else []
        texts = [textwrap.indent(textwrap.fill(x, WIDTH - 4), "    ") for x in texts]
        return "\n".join(["hint", *texts]) if texts else ""

    def _again(self, told):
        if not told or self.code is None:
            return ""
        f, (target, words) = told[0][0][0], self.code
        case = ", ".join(f"{name!r}: {_code(x)}" for name, x in f.example.items())
        # Who has a function, or numbers of a design, has them under some name.
        said = "".join(", " + re.sub("(.*?)=.*[…<].*", r"\1=\1", x) for x in words)
        lines = [f"from mha import laws{', zoo' * target.startswith('zoo.')}"]
        if target.startswith("mha."):
            lines.append(f"import {target.rpartition('.')[0]}")
        call = f"laws.check({target}, ['{f.law.slug}'], seed={f.seed}{said})"
        if len(case) < 250 and not words:
            lines.append("import numpy as np")
            call = f"laws.{f.law.slug}.ask({target}, {{{case}}})"
        text = "\n".join([*lines, _wrapped(f"print({call})", WIDTH - 4, STRINGS)])
        return "to see it again\n" + textwrap.indent(text, "    ")

    @property
    def likely(self) -> str:
        """What it behaves like, in words, and the evidence."""
        if self.likeness is None:
            return ""
        member, laws, inputs = self.likeness
        many = f"{laws} law{'s' * (laws > 1)}"
        same = f"the same wrong numbers in {many}, the same answers on {inputs} inputs"
        lines = f"behaves like zoo.{member.name}", member.wrong, f"evidence: {same}"
        return "\n    ".join(lines)

    def _rest(self):
        reason = f", because {self.because}" * bool(self.because)
        if declared := self._slugs("declared"):
            yield f"~ broken as declared{reason}\n{_listed(declared, 4)}"
        if self.unasked:
            rows = ((_listed([x], 4), _listed(y, 8)) for x, y in self.unasked.items())
            yield "\n".join(["– not asked", *(text for row in rows for text in row)])
        if held := self._slugs("holds"):
            yield f"✓ held\n{_listed(held, 4)}"
        words = {"said": "", "batches": "batches of ", "masks": "masks ", "dtypes": ""}
        tried = [(words[x], self.tried[x]) for x in words if self.tried.get(x)]
        parts = [word + ", ".join(map(str, x)) for word, x in tried]
        if lengths := self.tried.get("lengths"):
            first, last = lengths[0], lengths[-1]
            many = f"{first} to {last}" if first < last else last
            parts.append(f"{many} tokens")
        yield "tried\n" + _listed(["; ".join([*parts, f"seed {self.seed}"])], 4)


def _block_of(first, *others):
    if first.expected is not ANSWER:
        return repr(first)
    laws = [f.law.slug for f in (first, *others)]
    raised = f"it raised {first.got.partition(':')[0]}"
    head = raised if first.verdict == "raised" else f"it returns {first.got}"
    shown = first.shown() | {"law": textwrap.fill(", ".join(laws), ROW)}
    shown = {x: y for x, y in shown.items() if x not in ("expected", "got", "because")}
    return _block(f"✗ {head}, met by {len(laws)} law{'s' * bool(others)}", shown)


def _rank(block):
    finding, slug = block[0][0], block[0][0].law.slug
    # What a design says itself comes first; one token shows heads without any scores.
    groups = slug == "groups_share_their_keys" and finding.example.get("n") == 1
    order = ORDER.index(slug if slug in ORDER else OTHERS)
    return finding.expected is not ANSWER, not (finding.law.of or groups), order


def _code(x):
    text = f"np.array({x.tolist()})" if isinstance(x, np.ndarray) else repr(x)
    return text.replace("inf", "np.inf").replace("nan", "np.nan")


def _warning(name):
    words = {"bias": "mask_true='added'", "len": "mask_shape='lengths'"}
    words = next((words[x] for x in words if x in name), "mask_true='attend' or 'hide'")
    return (
        f"! the argument {name} looks like a mask and was never handed one, so no law "
        f"was asked about it: say {words}, or give a laws.Adapter without it"
    )
