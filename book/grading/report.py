"""The table of a class, as text, CSV or JSON."""

import csv
import json
from dataclasses import asdict, fields

from grading.run import Result

WIDEST = 24  # letters of a name


def table(results):
    """Return one table for each chapter, and below it what was said to whom."""
    parts = []
    for chapter in sorted({r.chapter for r in results if r.exercise}):
        rows = [r for r in results if r.chapter == chapter and r.exercise]
        parts.append(table_of(chapter, rows))
    lost = [f"  {r.student}: {r.file} {r.text}" for r in results if not r.exercise]
    return "\n\n".join(parts + (["not graded\n" + "\n".join(lost)] if lost else []))


def table_of(chapter, rows):
    """Return the table of one chapter."""
    numbers = list(dict.fromkeys(r.exercise for r in rows))
    head = ["student", *numbers, "passed"]
    lines = []
    for who, file in dict.fromkeys((r.student, r.file) for r in rows):
        own = {r.exercise: r for r in rows if (r.student, r.file) == (who, file)}
        passed = sum(r.verdict == "passed" for r in own.values())
        verdicts = ["-" if own[n].verdict == NOT else own[n].verdict for n in numbers]
        lines.append([who[:WIDEST], *verdicts, f"{passed} of {len(numbers)}"])
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    text = [f"chapter {int(chapter[:2])}, {chapter[3:]}"]
    for line in (head, *lines):
        cells = (cell.ljust(w) for cell, w in zip(line, widths, strict=True))
        text.append(("  " + "  ".join(cells)).rstrip())
    said = [said_of(r) for r in rows if r.note or r.verdict not in ("passed", NOT)]
    return "\n".join([*text, *(["", *said] if said else [])])


NOT = "not attempted"


def said_of(result):
    """Return in one line what there is to say about an answer."""
    text = result.slip or result.text.partition("\n")[0]
    text = "" if result.verdict in ("passed", NOT) else f": {text}"
    note = f" ({result.note})" if result.note and result.note != text[2:] else ""
    who = f"{result.student[:WIDEST]} {result.exercise}"
    return f"  {who} {result.verdict}{text}{note}"


def write_csv(results, path):
    """Write one line per exercise."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Result)])
        writer.writeheader()
        writer.writerows(map(asdict, results))


def as_json(results):
    """Return the results, and the sum of each student, as JSON."""
    sums = {}
    for r in results:
        own = sums.setdefault(r.student, {"passed": 0, "exercises": 0})
        own["passed"] += r.verdict == "passed"
        own["exercises"] += bool(r.exercise)
    facts = {"results": [asdict(r) for r in results], "students": sums}
    return json.dumps(facts, indent=2, ensure_ascii=False)
