#!/usr/bin/env python3
"""Grade a folder of notebooks; this guards against accidents, not against attackers.

book/grade.py submissions/                    print a table for each chapter
book/grade.py submissions/ --csv marks.csv    write the verdicts for a spreadsheet too
book/grade.py submissions/ --only 4.2 4.3     count these exercises and no others

A student is a folder inside `submissions`, or a file in it. Of each notebook the cells
that the student wrote are run in a kernel of their own, with the checks of this copy of
the book below them. A cell that does not end, or that ends its kernel, is left out of
a second run, so an answer costs its own verdict at most.
"""

import argparse
import csv
import json
import os
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat.v4 import new_code_cell, new_notebook

BOOK = Path(__file__).resolve().parent
HEADING = re.compile(r"^#{3,4} Exercise (\d+\.\d+): .+\n+\*\*([\w-]+)", re.M)
IMPORT = re.compile(r"^(?:import|from) [^(\n]+$", re.M)
COLUMNS = "student", "file", "chapter", "exercise", "level", "verdict", "text"
NOT, FOLLOWS = "not attempted", "follows"
FULL = 0.8  # of the points, which gives the full mark
VERDICT = "\nprint(__import__('json').dumps([_v.status, _v.text, _v.mistake]))"


@dataclass(frozen=True)
class Task:
    """An exercise of a chapter: its number and level, its stub and its check."""

    number: str
    level: str
    stub: str
    check: str

    @property
    def name(self):
        """The function or variable that an answer defines."""
        return self.check.rpartition("(")[2].strip(")")

    def is_answered_by(self, cell):
        """Return whether a cell defines that name, and is not the stub."""
        defines = re.search(rf"^(def )?{self.name} ?[(=]", cell.source, re.M)
        return defines and cell.source.strip() != self.stub


@cache
def chapters():
    """Return ``{name: (its code cells, its tasks)}`` of the chapters with exercises."""
    found = {}
    for path in sorted(BOOK.glob("[0-9][0-9]_*.ipynb")):
        code, tasks, heading = [], [], None
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type != "code":
                heading = [heading, *HEADING.findall(cell.source)][-1]
                continue
            code.append(cell)
            if "exercise-check" in cell.metadata.get("tags", ()):
                tasks.append(Task(*heading, code[-2].source, cell.source))
        if tasks:
            found[path.stem] = code, tasks
    return found


def chapter_of(cells):
    """Return the chapter of which cells answer most, or "" if they answer nothing."""
    ours = {cell.source.strip() for code, _ in chapters().values() for cell in code}
    own = [cell for cell in cells if cell.source.strip() not in ours]

    def answered(name):
        return sum(any(map(task.is_answered_by, own)) for task in chapters()[name][1])

    name = max(chapters(), key=answered)
    return name if answered(name) else ""


def graded(path, seconds):
    """Return the chapter of a submission, and its verdicts, or why there is none."""
    try:
        cells = nbformat.read(path, as_version=4).cells
        cells = [cell for cell in cells if cell.cell_type == "code"]
    except Exception:  # whatever a broken file makes nbformat raise
        return "", "not a notebook"

    name = chapter_of(cells)
    if not name:
        return "", "holds no answer to an exercise of the book"
    code, tasks = chapters()[name]
    given = {cell.source.strip() for cell in code} - {task.check for task in tasks}
    imports = [line for cell in code for line in IMPORT.findall(cell.source)]
    own = [new_code_cell("\n".join(imports))]
    own += [cell for cell in cells if cell.source.strip() not in given]
    verdicts = run(own, tasks, seconds)
    if any("NameError" in text for _, _, text in verdicts):  # it needs the chapter
        verdicts = run(cells, tasks, seconds)
    return name, verdicts


def run(cells, tasks, seconds):
    """Run cells with our checks below them, and return the verdicts."""
    cells = [new_code_cell(cell.source) for cell in cells]
    answers = {task: None for task in tasks}
    for task in tasks:
        for cell in cells:
            if task.is_answered_by(cell):
                answers[task] = cell
    checks = {task: check_of(task) for task in tasks if answers[task]}
    for task, check in checks.items():  # below a helper that follows the answer
        theirs = [c for c in cells if c.source.strip() == task.check]
        cells.insert(1 + cells.index((theirs or [answers[task]])[-1]), check)
    lost = executed(cells, seconds)
    found = {t: verdict_on(answers[t], checks.get(t), lost) for t in tasks}
    return [(t, *once(t, answers, found)) for t in tasks]


def once(task, answers, found):
    """Return a verdict, which counts a mistake once if one answer calls another."""
    if found[task][0] not in ("slip", "wrong"):
        return found[task]
    for other, (verdict, _) in found.items():
        calls = re.search(rf"\b{other.name}\(", answers[task].source)
        if other is not task and calls and verdict not in ("passed", NOT):
            return (
                FOLLOWS,
                f"calls {other.name}, which is not right: see {other.number}",
            )
    return found[task]


def check_of(task):
    """Return a cell that prints the verdict of a check."""
    before, _, last = task.check.rpartition("\n")
    return new_code_cell(f"{before}\n_v = {last}{VERDICT}")


def executed(cells, seconds):
    """Execute cells in a fresh kernel; return those that had to be left out, by id."""
    # A cell beyond the limit loses its kernel. An interrupt would not do: an answer can
    # catch it, and one that comes while a kernel replies lets the client wait for ever.
    lost, cells, started, failed = {}, list(cells), [], 0
    while True:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            client = NotebookClient(
                new_notebook(cells=cells), timeout=seconds, kernel_name="python3",
                startup_timeout=600, shutdown_kernel="immediate", allow_errors=True,
                resources={"metadata": {"path": folder}},
                extra_arguments=["--IPKernelApp.log_level=40"],
                on_cell_start=lambda cell, **_: started.append(cell),
            )  # fmt: skip
            try:
                client.execute()
                return lost
            except (DeadKernelError, CellTimeoutError) as error:
                guilty = started[-1]
                late = isinstance(error, CellTimeoutError)
                why = "did not end" if late else "the cell ended its kernel"
                lost[guilty.id] = ("stopped" if late else "error", why)
                cells.remove(guilty)
            except RuntimeError:  # no kernel: another program may have taken its port
                failed += 1
                if failed == 5:
                    raise


def verdict_on(answer, check, lost):
    """Return the verdict on one answer, and what to say about it."""
    if answer is None:
        return NOT, ""
    if answer.id in lost or check.id in lost:
        return lost.get(answer.id) or lost[check.id]
    errors = [o for cell in (answer, check) for o in cell.outputs if "ename" in o]
    for error in errors:
        text = re.sub(r" \(\d+\.py, line", " (line", error.evalue)
        return "error", f"{error.ename}: {text}".partition("\n")[0]
    printed = "".join(o.get("text", "") for o in check.outputs).strip()
    status, text, slip = json.loads(printed.splitlines()[-1])
    if status == "not attempted yet":
        return NOT, ""
    if status == "passed":
        return "passed", ""
    if text.startswith("this calls mha."):
        return "refused", text.partition("\n")[0]
    if text.startswith("stopped after"):
        return "stopped", "did not end"
    return ("slip", slip) if slip else ("wrong", text)


# The table


def table_of(chapter, rows):
    """Return the table of one chapter, and below it what was said to whom."""
    numbers = list(dict.fromkeys(row["exercise"] for row in rows))
    lines = [["student", *numbers, "points"]]
    for who in dict.fromkeys((row["student"], row["file"]) for row in rows):
        own = [row for row in rows if (row["student"], row["file"]) == who]
        shown = [row["verdict"].replace(NOT, "-") for row in own]
        points, most = points_of(own)
        lines.append([who[0][:24], *shown, f"{points} of {most}"])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    said = [
        f"{row['student'][:24]} {row['exercise']} {row['verdict']}: "
        + row["text"].partition("\n")[0]
        for row in rows
        if row["verdict"] not in ("passed", NOT)
    ]
    return "\n  ".join([chapter, *text, "", *said]).rstrip()


def points_of(rows):
    """Return the points of the rows of a chapter, and how many there are.

    A stretch exercise makes up for one that is lost, and what follows from a mistake in
    another answer counts neither way.
    """
    rows = [row for row in rows if row["verdict"] != FOLLOWS]
    stretch = [row["verdict"] == "passed" for row in rows if row["level"] == "Stretch"]
    others = [row["verdict"] == "passed" for row in rows if row["level"] != "Stretch"]
    return min(sum(others) + any(stretch), len(others)), len(others)


def homework_of(rows):
    """Return lines with the points of each student in all chapters, and the mark.

    A chapter that was not handed in is lost, and of its files the best one counts.
    """
    rows = [row for row in rows if "chapter" in row]
    asked = {(row["chapter"], row["exercise"]): row["level"] for row in rows}
    lines = []
    for student in sorted({row["student"] for row in rows}):
        points = most = 0
        for chapter in dict.fromkeys(name for name, _ in asked):
            files = {}
            for row in rows:
                if (row["student"], row["chapter"]) == (student, chapter):
                    files.setdefault(row["file"], []).append(row)
            levels = [level for (name, _), level in asked.items() if name == chapter]
            lost = [{"level": level, "verdict": NOT} for level in levels]
            its_points, its_most = max(map(points_of, files.values() or [lost]))
            points, most = points + its_points, most + its_most
        mark = min(1, points / (FULL * most)) if most else 1
        lines.append(f"  {student[:24]:<24}  {points} of {most}  {mark:.0%}")
    return lines


def rows_of(job):
    """Return the rows of one file."""
    path, folder, seconds = job
    inside = path.relative_to(folder).parts
    row = {"student": inside[0] if inside[1:] else path.stem, "file": path.name}
    chapter, found = graded(path, seconds)
    if not chapter:
        return [row | {"verdict": "not graded", "text": found}]
    facts = [
        {"exercise": task.number, "level": task.level, "verdict": verdict, "text": text}
        for task, verdict, text in found
    ]
    return [row | {"chapter": chapter} | fact for fact in facts]


def main(arguments=None):
    """Grade, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the submissions")
    parser.add_argument("--seconds", type=int, default=60, help="for one cell, or 60")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a table too")
    parser.add_argument("--only", nargs="+", metavar="N.N", help="these exercises")
    options = parser.parse_args(arguments)
    folder = options.folder
    path = [str(BOOK), str(BOOK.parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    files = [p for p in sorted(folder.rglob("*.ipynb")) if "/." not in p.as_posix()]
    if not files:
        sys.exit(f"{folder} holds no notebooks")
    with ProcessPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        jobs = [(path, folder, options.seconds) for path in files]
        rows = [row for some in pool.map(rows_of, jobs) for row in some]
    if options.only:
        rows = [row for row in rows if row.get("exercise") in (None, *options.only)]
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    for chapter in chapters():
        if own := [row for row in rows if row.get("chapter") == chapter]:
            print(table_of(chapter, own), end="\n\n")
    print("homework", *homework_of(rows), "", sep="\n")
    for row in rows:
        if row["verdict"] == "not graded":
            print(f"not graded: {row['student']}: {row['file']} {row['text']}")


if __name__ == "__main__":
    main()
