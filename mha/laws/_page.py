"""A report as HTML and as JSON; the text is written in `mha.laws._report`."""

import html
import json
from typing import Any

import numpy as np

from mha._chapters import CHAPTERS, chapter_number

MARKS = {
    "holds": "✓", "broken": "✗", "raised": "✗", "declared": "~", "not asked": "–",
}  # fmt: skip
PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>
body {{ font: 1rem/1.5 sans-serif; margin: 2rem auto; max-width: 56rem }}
table {{ border-collapse: collapse }} caption {{ font-weight: bold; text-align: left }}
th, td {{ border-bottom: 1px solid; padding: 0.2rem 0.6rem; text-align: left }}
</style></head>
<body><main>{main}</main></body></html>
"""


def number_of(chapter: str | None) -> int | None:
    """Return the number of a chapter of the book, and None for any other word."""
    return chapter_number(chapter) if chapter in CHAPTERS else None


def boxed(text: str) -> str:
    """Return lines as they are; a wide one scrolls inside its box, by keyboard too."""
    return f'<pre tabindex="0" style="overflow-x: auto">{html.escape(text)}</pre>'


def as_html(report: Any) -> str:
    """Return the report as a part of a page: first what broke, last what was tried."""
    parts = [f"<p><strong>{html.escape(report.title)}</strong></p>"]
    parts += [f"<p>{html.escape(text)}</p>" for text in report.warnings]
    parts += map(boxed, report.failures)
    if report.looks_like is not None:
        parts.append(f"<p>{html.escape(report.likely)} {_seen(report.looks_like)}</p>")
    names = ("ch.", "law", "verdict", "because")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "".join(_row(f, report.because) for f in report.findings)
    parts.append(
        "<table><caption>What each law found</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>tried: {html.escape(report.inputs)}</p>"
    )
    return "".join(parts)


def _seen(member):
    seen = html.escape(member.seen)
    return f'<a href="{html.escape(member.link)}">{seen}</a>' if member.link else seen


def _row(finding, because):
    law, verdict = finding.law, finding.verdict
    why = {"not asked": finding.why, "declared": because}.get(verdict, "")
    return (
        f"<tr><td>{number_of(law.chapter) or ''}</td>"
        f'<th scope="row">{html.escape(law.name)}</th>'
        f"<td>{MARKS[verdict]} {verdict}</td><td>{html.escape(why)}</td></tr>"
    )


def as_page(report: Any) -> str:
    """Return the report as a page of its own."""
    return PAGE.format(title=html.escape(report.title), main=as_html(report))


def as_json(report: Any) -> str:
    """Return what the report says as JSON."""
    names = ("subject", "holds", "seed", "because", "tried", "unread")
    said = {name: plain(getattr(report, name)) for name in names}
    said |= {"laws": [_finding(f) for f in report.findings], "looks_like": None}
    if member := report.looks_like:
        facts = ("name", "wrong", "seen", "link")
        shown = {name: getattr(member, name) for name in facts}
        evidence = {"inputs": report.likeness.inputs, "wrong_on": report.likeness.wrong}
        said["looks_like"] = shown | evidence
    return json.dumps(said, ensure_ascii=False, indent=2)


def _finding(finding):
    law = finding.law
    shown = {"law": law.slug, "name": law.name} | _chapter(law)
    shown |= {"holds": finding.holds, "verdict": finding.verdict, "why": finding.why}
    shown["declared"] = finding.declared
    if finding.holds is False:
        shown |= {"example": plain(finding.example), "layer": finding.setup}
        shown |= {"expected": plain(finding.expected), "got": plain(finding.got)}
        shown |= {"because": law.reason}
    return shown


def _chapter(x):
    return {"chapter": x.chapter, "chapter_number": number_of(x.chapter)}


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
