"""What a check found, as text and as HTML."""

import html
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mha._chapters import CHAPTERS, chapter_number

if TYPE_CHECKING:
    from mha.laws._law import Law
    from mha.zoo import EncoderMember, Member

__all__ = ["Finding", "Report"]

MARKS = {True: ("✓", "holds"), False: ("✗", "broken"), None: ("–", "not asked")}
WIDTH = 72


def number_of(chapter: str | None) -> int | None:
    """Return the number of a chapter of the book, and None for any other word."""
    return chapter_number(chapter) if chapter in CHAPTERS else None


def in_chapter(chapter: str | None) -> str:
    """Return the number in brackets, and nothing where the book has no such chapter."""
    number = number_of(chapter)
    return "" if number is None else f" (chapter {number})"


@dataclass(frozen=True)
class Finding:
    """What one law found about one subject.

    Attributes
    ----------
    law : Law
        The law.
    holds : bool or None
        None where the subject could not be asked; `why` says so.
    example : dict
        The smallest input found on which the law breaks.
    expected, got : ndarray or str
        What the law wants to see on the example, and what came.
    why : str
        Why it could not be asked, or where it broke (a row, a mode of PyTorch).
    setup : str
        How a layer was made to answer a law about attention.
    subject : str
        Name of what was checked.
    seed : int
        Fixes the cases that were tried.
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

    def __bool__(self) -> bool:
        return self.holds is True

    def __repr__(self) -> str:
        head = f"{MARKS[self.holds][0]} {self.law.name}{in_chapter(self.law.chapter)}"
        if self.holds is None:
            return f"{head}: not asked, {self.why}"
        return head if self.holds else "\n".join([head, *self.lines()])

    def lines(self) -> list[str]:
        """Return the failing example, one line or block per name."""
        shown = {"law": f"laws.{self.law.slug}", **self.example}
        shown |= {"expected": self.expected, "got": self.got, "where": self.why}
        shown |= {"layer": self.setup, "seed": self.example.get("seed", self.seed)}
        shown |= {"because": self.law.reason}
        shown = {name: x for name, x in shown.items() if not isinstance(x, str) or x}
        indent = max(map(len, shown)) + 2
        lines = []
        for name, value in shown.items():
            first, *rest = _text(value).splitlines()
            lines.append("    " + name.ljust(indent) + first)
            lines += [" " * (indent + 4) + line for line in rest]
        return lines

    def _repr_html_(self):
        # A wide example scrolls inside its box, by keyboard too.
        box = '<pre tabindex="0" style="overflow-x: auto">'
        return f"{box}{html.escape(repr(self))}</pre>"


def _text(value):
    """Return an array as nested rows with at most three decimals."""
    if not isinstance(value, np.ndarray):
        return str(value)
    if value.ndim < 2:
        return _row(value)
    if value.ndim > 2:
        return "\n".join(_text(part) for part in value)
    rows = [_row(row) for row in value]
    line = f"[{', '.join(rows)}]"
    return line if len(line) <= WIDTH else "[" + ",\n ".join(rows) + "]"


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

    Attributes
    ----------
    subject : str
        Name of what was checked.
    findings : tuple of Finding
        One for each law, in the order of the chapters.
    search : callable
        Finds the wrong version that breaks the same laws.
    seed : int
        Fixes the cases that were tried.
    """

    subject: str
    findings: tuple[Finding, ...]
    search: "Callable[[], Member | EncoderMember | None]" = lambda: None
    seed: int = 0

    @cached_property
    def looks_like(self) -> "Member | EncoderMember | None":
        """The wrong version that breaks the same laws, or None; found when asked."""
        return self.search()

    @property
    def broken(self) -> list[Finding]:
        """The findings of the laws that do not hold."""
        return [f for f in self.findings if f.holds is False]

    @property
    def holds(self) -> bool:
        """Whether no law is broken, and at least one could be asked."""
        return not self.broken and any(self.findings)

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        width = max(len(f.law.name) for f in self.findings)
        lines = [self._title(), "", f"  ch.  {'law'.ljust(width)}  verdict"]
        for finding in self.findings:
            number = number_of(finding.law.chapter) or ""
            verdict = " ".join(MARKS[finding.holds])
            lines.append(f"  {number:>3}  {finding.law.name.ljust(width)}  {verdict}")
        for finding in self.broken:
            lines += ["", repr(finding)]
        if self.looks_like is not None:
            lines += ["", self._lookalike()]
        return "\n".join(lines)

    def _title(self):
        words = {True: "hold", False: "broken", None: "not asked"}
        counts = {h: sum(f.holds is h for f in self.findings) for h in words}
        parts = [f"{n} {words[h]}" for h, n in counts.items() if n]
        return f"{self.subject}: {', '.join(parts)}"

    def _lookalike(self):
        member = self.looks_like
        where = in_chapter(member.chapter)
        return f"behaves like zoo.{member.name}{where}\n    {member.wrong}"

    def _repr_html_(self):
        head = "".join(f'<th scope="col">{h}</th>' for h in ("ch.", "law", "verdict"))
        rows = "".join(map(_html_row, self.findings))
        end = "".join(f._repr_html_() for f in self.broken)
        if member := self.looks_like:
            seen = html.escape(member.seen)
            if member.link:
                seen = f'<a href="{html.escape(member.link)}">{seen}</a>'
            end += f"<p>{html.escape(self._lookalike())} {seen}</p>"
        return (
            f"<table><caption>{html.escape(self._title())}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{end}"
        )


def _html_row(finding):
    law, number = finding.law, number_of(finding.law.chapter) or ""
    return (
        f'<tr><td>{number}</td><th scope="row">{html.escape(law.name)}</th>'
        f"<td>{' '.join(MARKS[finding.holds])}</td></tr>"
    )
