"""What a check found: plain data that can be kept, compared, pickled and shown."""

import html
import re
import textwrap
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Finding", "Report"]

WORDS = {  # the verdicts in the order of a title, with its words
    "holds": "hold", "broken": "broken", "raised": "raised an error",
    "not as expected": "not as expected", "expected": "broken as expected",
    "not asked": "not asked",
}  # fmt: skip
SHOWN = "broken", "raised"  # of these an example is shown
MARKS = {"holds": "✓", "expected": "~", "not asked": "–"}  # and ✗
WIDTH, ROW, ERROR = 88, 72, 160
ROWS = 12  # more are not printed
IN_FULL = 2  # so many broken laws are told in full


@dataclass(frozen=True)
class Finding:
    """What one law found about one subject.

    `verdict` is "holds", "broken", "raised" (an error), "not asked", "expected" (it is
    broken, as was said) or "not as expected" (it is not); of the last three `why` says
    why. `example` is the smallest input found that breaks the law, `expected` what the
    law wants there, `got` what came, `where` what was compared; `correct` is the answer
    of the reference, where the other two are answers of the subject. `asked` says how a
    layer was asked about attention. `breach` is the input that failed first, and
    `other` an input, as (given, expected, got), on which the numbers are not the
    reference's. Of broken laws, those of low `rank` are told first.
    """

    law: str
    sentence: str
    verdict: str
    reason: str = ""
    why: str = ""
    example: dict[str, Any] = field(default_factory=dict)
    expected: Any = None
    got: Any = None
    where: str = ""
    correct: Any = None
    asked: str = ""
    shapes: str = ""
    seed: int = 0
    breach: dict[str, Any] | None = field(default=None, repr=False)
    other: Any = field(default=None, repr=False)
    rank: int = 0
    full_name: str = ""

    @property
    def holds(self) -> bool:
        """Whether the law was asked, and holds."""
        return self.verdict == "holds"

    @property
    def broken(self) -> bool:
        """Whether it is broken, raised an error, or was expected to and did not."""
        return self.verdict in (*SHOWN, "not as expected")

    def __bool__(self) -> bool:
        return self.holds

    def values(self) -> dict[str, Any]:
        """Return what is shown of a broken law."""
        shown = {"law": self.full_name or self.law, **self.example}
        if self.verdict == "raised":
            error = textwrap.shorten(str(self.got), ERROR, placeholder=" …")
            shown["raised"] = textwrap.fill(error, ROW)
        else:
            expected, got, where = _one_row(self.expected, self.got)
            shown |= {"expected": expected, "got": got}
            if isinstance(got, np.ndarray) and _text(expected) == _text(got):
                shown["off by"] = f"at most {np.abs(expected - got).max():.2g}"
            shown["correct"] = self.correct
            shown["where"] = ", ".join(filter(None, [self.where, where]))
        shown |= {"layer": self.asked, "shapes": _wrapped(self.shapes, ROW)}
        shown["seed"] = self.example.get("seed", self.seed)
        return shown | {"because": self.reason}

    def rows(self) -> dict[str, str]:
        """Return what is shown of a broken law, in words."""
        texts = {name: _text(x) for name, x in self.values().items() if x is not None}
        return {name: text for name, text in texts.items() if text}

    def __repr__(self) -> str:
        head = f"{MARKS.get(self.verdict, '✗')} {self.sentence}"
        if self.verdict in SHOWN:
            return _block(head, self.rows())
        said = f"{self.verdict}, " * (not self.broken)
        return _indented(f"{head}: {said}{self.why}") if self.why else head

    def _repr_html_(self) -> str:
        return f'<div class="report">{_finding_html(self)}</div>'


@dataclass(frozen=True)
class Report:
    """The findings of a check, one for each law, in the order of the laws.

    `notes` are what no law says, such as an argument that was never used. `alike` is
    the member of `mha.zoo` that gives the same wrong numbers, if there is one, and
    `wrong` its sentence. `tried` are the lengths and batches that the subject got.
    """

    subject: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    alike: str = ""
    wrong: str = ""
    tried: str = ""

    @property
    def broken(self) -> list[Finding]:
        """The findings of broken laws, those that say most first."""
        return sorted((x for x in self.findings if x.broken), key=lambda x: x.rank)

    @property
    def held(self) -> list[str]:
        """The names of the laws that hold."""
        return [x.law for x in self.findings if x.holds]

    @property
    def unasked(self) -> dict[str, list[str]]:
        """The names of the laws that were not asked, by reason."""
        return self._by_reason("not asked")

    @property
    def expected(self) -> dict[str, list[str]]:
        """The names of the laws that are broken as expected, by reason."""
        return self._by_reason("expected")

    def _by_reason(self, verdict: str) -> dict[str, list[str]]:
        reasons: dict[str, list[str]] = {}
        for x in self.findings:
            if x.verdict == verdict:
                reasons.setdefault(x.why, []).append(x.law)
        return reasons

    def records(self) -> list[dict[str, str]]:
        """Return one dictionary of strings for each law, for JSON or a table."""
        return [
            x.rows() | {"law": x.law, "sentence": x.sentence, "verdict": x.verdict,
                        "why": x.why, "subject": self.subject}
            for x in self.findings
        ]  # fmt: skip

    @property
    def holds(self) -> bool:
        """Whether no law is broken, and at least one could be asked."""
        return not self.broken and any(self.findings)

    def __bool__(self) -> bool:
        return self.holds

    @property
    def title(self) -> str:
        """Name and counts."""
        verdicts = [x.verdict for x in self.findings]
        counts = (f"{n} {WORDS[x]}" for x in WORDS if (n := verdicts.count(x)))
        return f"{self.subject}: {', '.join(counts) or 'no law was asked'}"

    def __repr__(self) -> str:
        blocks = _blocks(self.broken)
        parts = [self.title, *(block for _, block in blocks[:IN_FULL])]
        if rest := blocks[IN_FULL:]:
            parts.append("\n".join(_in_one_line(some) for some, _ in rest))
        if self.alike:
            parts.append(f"behaves like zoo.{self.alike}\n    {self.wrong}")
        parts += ["! " + textwrap.fill(x, WIDTH - 2) for x in self.notes]
        for head, reasons in (
            ("~ expected", self.expected),
            ("– not asked", self.unasked),
        ):
            rows = ((_listed([x], 4), _listed(y, 8)) for x, y in reasons.items())
            if reasons:
                parts.append("\n".join([head, *(x for row in rows for x in row)]))
        if self.held:
            parts.append(f"✓ held\n{_listed(self.held, 4)}")
        if self.tried:
            parts.append(f"tried\n{_listed([self.tried], 4)}")
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        full = [some[0] for some, _ in _blocks(self.broken)[:IN_FULL]]
        rest = (x for x in self.broken if x not in full)
        lines = [f"{x.sentence}: {x.why or x.law}" for x in rest]
        if self.alike:
            lines += [f"behaves like zoo.{self.alike}: {self.wrong}"]
        expected, unasked = (
            [f"{x}: {', '.join(y)}" for x, y in reasons.items()]
            for reasons in (self.expected, self.unasked)
        )
        folded = {"Laws that are broken as expected, and why": expected}
        folded["Laws that were not asked, and why"] = unasked
        folded["Laws that held"] = [", ".join(self.held)] if self.held else []
        folds = (
            f"<details><summary>{name}</summary>{_list_html(some)}</details>"
            for name, some in folded.items()
            if some
        )
        title = f'<p class="subject"><b>{html.escape(self.title)}</b></p>'
        told = "".join(map(_finding_html, full)) + _list_html([*lines, *self.notes])
        return f'<div class="report">{title}{told}{"".join(folds)}</div>'


# Text -------------------------------------------------------------------------------


def _blocks(broken: list[Finding]) -> list[tuple[list[Finding], str]]:
    """Return one block of text for each law, and one for laws met by the same error."""
    met: dict[Any, list[Finding]] = {}
    for x in broken:
        # One mistake raises the same error about arrays of many sizes.
        error = re.sub(r"\d+", "n", str(x.got)) if x.verdict == "raised" else x.law
        met.setdefault(error, []).append(x)
    return [(some, _block_of(some)) for some in met.values()]


def _block_of(some: list[Finding]) -> str:
    first = some[0]
    if len(some) == 1:
        return repr(first)
    rows = first.rows() | {"law": textwrap.fill(_names(some), ROW)}
    rows.pop("because", "")
    return _block(f"✗ it raised an error, met by {len(some)} laws", rows)


def _block(head: str, rows: dict[str, str]) -> str:
    column = max(map(len, rows)) + 6
    lines = [head]
    for name, text in rows.items():
        text = textwrap.indent(text, " " * column)
        lines.append(f"    {name}".ljust(column) + text[column:])
    return "\n".join(lines)


def _in_one_line(some: list[Finding]) -> str:
    return _indented(f"✗ {some[0].sentence}: {some[0].why or _names(some)}")


def _indented(text: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent="    ")


def _names(some: list[Finding]) -> str:
    return ", ".join(x.law for x in some)


def _listed(names: list[str], by: int) -> str:
    return textwrap.indent(_wrapped(", ".join(names), WIDTH - by), " " * by)


def _wrapped(text: str, width: int) -> str:
    # A name and its shape, such as Q (2, 3), stay in one line.
    kept = re.sub(r" (?=[\d(])", "\xa0", text)
    rule: Any = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(kept, width, **rule).replace("\xa0", " ")


def _one_row(expected: Any, got: Any) -> tuple[Any, Any, str]:
    """Return the row that is off most, where there are too many to read."""
    few = np.ndim(got) < 2 or got[..., 0].size <= ROWS
    if few or np.shape(expected) != got.shape:
        return expected, got, ""
    off = np.nan_to_num(abs(expected - got), nan=np.inf).max(-1)
    i = np.unravel_index(off.argmax(), off.shape)
    return expected[i], got[i], f"row {', '.join(str(n + 1) for n in i)}"


def _text(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"{len(value)} drawn at random" if len(value) > 1 else "drawn at random"
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


def _number(x: Any) -> str:
    if isinstance(x, np.bool_) or not np.isfinite(x):
        return str(x)
    rounded = round(float(x), 3)
    if abs(rounded) >= 1e6:
        return f"{rounded:.3g}"
    return f"{rounded + 0.0:.3f}".rstrip("0").rstrip(".")


# HTML, which report.css of the book lays out ------------------------------------------

NOTES = "where", "layer", "shapes", "seed", "law"  # in small letters


def _finding_html(finding: Finding) -> str:
    wrong = " wrong" * finding.broken
    mark = f'<span class="mark{wrong}">{MARKS.get(finding.verdict, "✗")}</span>'
    sentence = html.escape(finding.sentence[:1].upper() + finding.sentence[1:])
    head = f'<p class="name">{mark} {sentence}</p>'
    if finding.verdict not in SHOWN:
        return head + f"<p>{html.escape(finding.why)}</p>" * bool(finding.why)
    values, texts = finding.values(), finding.rows()
    reason = f'<p class="because">because {html.escape(finding.reason)}</p>'
    notes = "".join(
        f"<span><b>{x}</b> {html.escape(texts[x])}</span> " for x in NOTES if x in texts
    )
    seen, given = "", ""
    for name in [x for x in texts if x not in ("because", *NOTES)]:
        shown = re.sub("_(.+)", r"<sub>\1</sub>", name)
        due = values["expected" if name == "got" else name]
        value = _value_html(values[name], texts[name], due)
        part = f'<div class="part {name}"><b>{shown}</b>{value}</div>'
        if name in finding.example:
            given += part
        else:
            seen += part
    return (
        f'{head}{reason * bool(finding.reason)}<div class="parts seen">{seen}</div>'
        f'<div class="parts">{given}</div><p class="notes">{notes}</p>'
    )


def _value_html(x: Any, text: str, due: Any) -> str:
    """Return a matrix as a table, in which what differs from what is due is marked."""
    if not isinstance(x, np.ndarray) or x.ndim > 2 or x.size > 200:
        return html.escape(text)
    rows, due = "", due if np.shape(due) == x.shape else x
    for row in zip(np.atleast_2d(x), np.atleast_2d(due), strict=True):
        cells = (
            [_number(number) for number in pair] for pair in zip(*row, strict=True)
        )
        marked = (
            f"<td>{a}</td>" if a == b else f'<td class="differs"><b>{a}</b></td>'
            for a, b in cells
        )
        rows += f"<tr>{''.join(marked)}</tr>"
    return f'<table class="matrix">{rows}</table>'


def _list_html(lines: list[str]) -> str:
    items = "".join(f"<li>{html.escape(x)}</li>" for x in lines)
    return f"<ul>{items}</ul>" * bool(items)
