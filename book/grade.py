#!/usr/bin/env python3
"""Grade a folder of notebooks; this guards against accidents, not against attackers.

book/grade.py submissions/                    every notebook in the folder
book/grade.py submissions/ --chapter masks    only one chapter was set
book/grade.py submissions/ --csv marks.csv    write the results for a spreadsheet too

A student is a folder inside `submissions`, or a file in it. Of each notebook only cells
that the student wrote are run, and the checks are those of this copy of the book. Each
answer runs in a process of its own (answer.py), beside others, and is stopped if it
does not end. So it costs its own verdict at most. But it is a program with your rights:
what is printed first is a command that takes network and home away from it, on Linux.
"""

import argparse
import csv
import re
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from os import cpu_count
from pathlib import Path

import nbformat

from answer import bound, in_a_process, in_words, needed_of

BOOK = Path(__file__).parent
HEADING = re.compile(r"^#{3,4} Exercise (\d+\.\d+): ", re.M)
COLUMNS = "student", "file", "chapter", "exercise", "verdict", "text"
NOT = "not attempted"
WIDEST = 24  # letters of a name


class NotGraded(Exception):
    """A file that cannot be graded, with the reason."""


@dataclass(frozen=True)
class Task:
    """An exercise of a chapter: what was given out, and how an answer is checked."""

    number: str
    id: str
    stub: str
    check: str

    @property
    def name(self):
        """The function or variable that an answer defines."""
        return self.check.rpartition("(")[2].strip(")")


@dataclass(frozen=True)
class Chapter:
    """A chapter as it is in this folder, with its cells that are no exercises."""

    path: Path
    code: list
    tasks: list
    ids: set  # of all code cells but the stubs

    @property
    def slug(self):
        """The name without the number, such as masks."""
        return self.path.stem[3:]

    def __str__(self):
        return f"chapter {int(self.path.stem[:2])}, {self.slug}"


@cache
def chapters():
    """Return every chapter with exercises, in order."""
    read = map(chapter, sorted(BOOK.glob("[0-9][0-9]_*.ipynb")))
    return [each for each in read if each.tasks]


def chapter(path):
    """Read a chapter of the book."""
    code, tasks, ids = [], [], set()
    number = stub = None
    for cell in nbformat.read(path, as_version=4).cells:
        tags = cell.metadata.get("tags", ())
        if cell.cell_type != "code":
            number = [number, *HEADING.findall(cell.source)][-1]
        elif "exercise" in tags:
            stub = cell
        else:
            ids.add(cell.id)
            if "exercise-check" in tags:
                tasks.append(Task(number, stub.id, stub.source, cell.source))
            else:
                code.append(cell.source)
    return Chapter(path, code, tasks, ids)


# What a student submitted


def submitted(path, wanted=None):
    """Return the chapter of a notebook, and the cells that the student wrote."""
    try:
        cells = nbformat.read(path, as_version=4).cells
        code = [cell for cell in cells if cell.cell_type == "code"]
    except Exception:  # whatever a broken file makes nbformat raise
        raise NotGraded("not a notebook") from None
    names = set().union(*(bound(cell.source) for cell in code))
    found = max(chapters(), key=lambda each: sum(t.name in names for t in each.tasks))
    if not any(task.name in names for task in found.tasks):
        raise NotGraded("holds no exercise of the book")
    if wanted not in (None, found.slug):
        raise NotGraded(f"is {found}")
    given = {text.strip() for t in found.tasks for text in (t.stub, t.check)}
    given |= {text.strip() for text in found.code}
    own = [
        cell
        for cell in code
        if id_of(cell) not in found.ids and cell.source.strip() not in given | {""}
    ]
    return found, own


def id_of(cell):
    """Return the id of a cell; some programs keep it among the metadata."""
    return cell.metadata.get("id") or cell.get("id")


def answer_to(task, own):
    """Return the cell with the answer: the stub's, or else the last to define it."""
    by_name = [cell for cell in own if task.name in bound(cell.source)]
    by_id = [cell for cell in own if id_of(cell) == task.id]
    return [None, *by_name, *by_id][-1]


def student_of(path, folder):
    """Return who submitted a file: the name of its folder, or else its own."""
    inside = path.relative_to(folder)
    return inside.parts[0] if len(inside.parts) > 1 else path.stem


# Grading


def jobs_of(path, folder, options):
    """Yield a row for each exercise of a file, with a function that grades it."""
    row = {"student": student_of(path, folder), "file": path.name}
    try:
        found, own = submitted(path, options.chapter)
    except Exception as why:  # whatever a student has made of a notebook
        text = str(why) if isinstance(why, NotGraded) else in_words(why)
        yield row | {"verdict": "not graded", "text": text}, None
        return
    answers = {task: answer_to(task, own) for task in found.tasks}
    helpers = [cell for cell in own if cell not in answers.values()]
    for task, answer in answers.items():
        others = [a for a in answers.values() if a is not None and a is not answer]
        pool = [*found.code, *(cell.source for cell in [*helpers, *others])]
        facts = {"chapter": found.path.stem, "exercise": task.number}
        yield row | facts, (task, answer and answer.source, pool, options)


def verdict_on(task, answer, pool, options):
    """Return the verdict on one answer, and what to say about it."""
    if answer is None:
        return NOT, ""
    orders = {
        "setup": needed_of([answer, task.check], pool, {task.name, "check"}),
        "stub": task.stub,
        "answer": answer,
        "check": task.check,
    }
    found = in_a_process("answer", orders, options.seconds)
    if found.get("late"):
        return "stopped", f"did not end within {options.seconds:g} seconds"
    if "status" not in found:
        return "error", found.get("error") or "the process of the answer ended"
    status, text, slip = found["status"], found["text"], found["slip"]
    if status == "not attempted yet":
        return ("error", found["stops"]) if found["stops"] else (NOT, "")
    if text.startswith("this calls mha."):
        return "refused", text
    if status == "passed":
        return "passed", ""
    return ("slip", slip) if slip else ("wrong", text)


def table(rows):
    """Return one table for each chapter, and below it what was said to whom."""
    parts = []
    for each in chapters():
        if own := [row for row in rows if row.get("chapter") == each.path.stem]:
            parts.append(f"{each}\n{table_of(own)}")
    lost = [row for row in rows if "exercise" not in row]
    lines = [f"  {row['student']}: {row['file']} {row['text']}" for row in lost]
    return "\n\n".join(parts + (["not graded\n" + "\n".join(lines)] if lost else []))


def table_of(rows):
    """Return the table of one chapter."""
    numbers = list(dict.fromkeys(row["exercise"] for row in rows))
    lines = [["student", *numbers, "passed"]]
    for who in dict.fromkeys((row["student"], row["file"]) for row in rows):
        own = [r["verdict"] for r in rows if (r["student"], r["file"]) == who]
        passed = f"{own.count('passed')} of {len(own)}"
        shown = ["-" if verdict == NOT else verdict for verdict in own]
        lines.append([who[0][:WIDEST], *shown, passed])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True))
        for line in lines
    ]
    said = [
        f"{row['student'][:WIDEST]} {row['exercise']} {row['verdict']}: "
        + row["text"].partition("\n")[0]
        for row in rows
        if row["verdict"] not in ("passed", NOT)
    ]
    return "\n".join(f"  {x}".rstrip() for x in [*text, *([""] if said else []), *said])


def main(arguments=None):
    """Grade, and print the table."""
    options = parsed(arguments)
    folder = options.folder
    sys.stdout.reconfigure(errors="replace")  # names, on a terminal without Unicode
    print("This guards against accidents, not against attackers. For strangers:")
    print(f"  {apart(folder, arguments or sys.argv[1:])}\n")
    hidden = ".", "__"  # what programs keep for themselves, such as a checkpoint
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(part.startswith(hidden) for part in path.relative_to(folder).parts)
    ]
    if not files:
        sys.exit(f"{folder} holds no files")
    jobs = [job for path in files for job in jobs_of(path, folder, options)]
    with ThreadPoolExecutor(min(4, cpu_count() or 1)) as pool:
        runs = [(row, job and pool.submit(verdict_on, *job)) for row, job in jobs]
        for row, run in runs:
            if run:
                row["verdict"], row["text"] = verdict_of(run)
    rows = [row for row, _ in runs]
    if options.csv:
        form = {"encoding": "utf-8", "errors": "replace", "newline": ""}
        with open(options.csv, "w", **form) as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    print(table(rows))


def verdict_of(run):
    """Return a verdict, whatever an answer has done to its grader."""
    try:
        return run.result()
    except Exception as error:
        return "error", in_words(error)


def apart(folder, arguments):
    """Return a command that grades without network and home, and the book read-only."""
    python = Path(sys.executable)
    if python.is_relative_to(BOOK.parent):
        python = Path("/mnt", python.relative_to(BOOK.parent))
    options = [text for text in arguments if text != str(folder)]
    base = sys.base_prefix  # Python itself, which may be at home
    steps = [
        ["mount", "--bind", str(BOOK.parent), "/mnt"],
        ["mount", "-o", "remount,ro,bind", "/mnt"],
        ["mount", "--bind", str(folder.resolve()), "/srv"],
        ["mount", "--bind", base, "/media"],
        ["mount", "-t", "tmpfs", "none", str(Path.home())],
        ["mkdir", "-p", base],
        ["mount", "--bind", "/media", base],
        ["cd", "/mnt"],
        ["exec", str(python), "book/grade.py", "/srv", *options],
    ]
    inside = " && ".join(map(shlex.join, steps))
    return f"unshare -rnmpf --kill-child --mount-proc sh -c {shlex.quote(inside)}"


def parsed(arguments):
    """Return the options of the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("folder", type=Path, help="the submissions")
    add("--chapter", choices=[each.slug for each in chapters()], metavar="NAME")
    add("--seconds", type=float, default=60, help="for one answer, by default 60")
    add("--csv", type=Path, metavar="FILE", help="write a table too")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
