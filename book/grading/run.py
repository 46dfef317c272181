"""Run the answers of a notebook, and go on when one of them does not end."""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass

from grading.notebooks import (
    BOOK,
    NotGraded,
    chapters,
    plain,
    ready_made,
    submission,
)

SETUP = 300  # seconds, for the examples of a chapter that an answer needs
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
REFUSED = "this calls mha."  # how mha.check begins when a step was forbidden


@dataclass
class Result:
    """What became of one exercise of one submission."""

    student: str
    file: str
    chapter: str
    exercise: str
    verdict: str
    slip: str = ""
    text: str = ""
    note: str = ""


def grade(path, student, wanted=None, seconds=30, gigabytes=4):
    """Return the results of one submitted file, one for each exercise."""
    try:
        found = submission(path, wanted)
    except NotGraded as why:
        number = f"{wanted.number:02}_{wanted.slug}" if wanted else ""
        return [Result(student, path.name, number, "", "not graded", text=str(why))]
    return [
        Result(student, path.name, found.chapter.path.stem, *facts)
        for facts in Watch(found, seconds, gigabytes).results()
    ]


class Watch:
    """One submission, and the process in which its answers run."""

    def __init__(self, found, seconds, gigabytes):
        self.tasks = found.chapter.tasks
        self.seconds, self.gigabytes = seconds, gigabytes
        self.steps = with_checks(found.steps)
        self.skip, self.facts, self.notes = set(), {}, {}
        tasks = {task.number: task for task in self.tasks}
        for at, (kind, number, source) in enumerate(self.steps):
            if kind != "check" and (name := ready_made(source, tasks.get(number))):
                self.leave_out(at, "refused", f"takes {name}, which is ready-made")
        for number in found.edited:
            self.note(number, "the edited check was ignored")
        sources = [source for _, source in found.steps]
        checks = [task.check for task in self.tasks]
        self.setup = found.chapter.setup([*sources, *checks])

    def note(self, number, text):
        """Remember something to tell the teacher about an exercise."""
        self.notes.setdefault(number, []).append(text)

    def results(self):
        """Run everything, and yield what is known about each exercise."""
        while self.once():
            pass
        for task in self.tasks:
            verdict, slip, text = self.facts.get(task.number, NOTHING)
            note = "; ".join(self.notes.get(task.number, ()))
            yield task.number, verdict, slip, text or task.title, note

    def remaining(self):
        """Return the steps that did not fail, and the checks that gave no verdict."""
        return [pair for pair in enumerate(self.steps) if pair[0] not in self.skip]

    def once(self):
        """Run the steps in a fresh process; return whether another one is needed."""
        todo = self.remaining()
        if not any(kind == "check" for _, (kind, *_) in todo):
            return False
        with (
            tempfile.TemporaryDirectory() as folder,
            Process(
                {
                    "setup": self.setup,
                    "checks": [(t.number, t.check, t.stub) for t in self.tasks],
                    "steps": [(k, n, plain(s)) for _, (k, n, s) in todo],
                    "gigabytes": self.gigabytes,
                    "paths": [str(BOOK), str(BOOK.parent)],
                    "book": str(BOOK),
                    "folder": folder,
                }
            ) as process,
        ):
            now, limit = -1, SETUP
            while now + 1 < len(todo) or limit:
                facts = process.next(limit or self.seconds)
                if facts is None or facts.get("changed"):
                    return self.failed(todo, now, process, facts)
                if "begins" in facts:
                    now = facts["begins"]
                    limit = SETUP if now < 0 else self.seconds
                else:
                    limit = 0 if now + 1 == len(todo) else self.seconds
                    self.take(todo, now, facts)
        return False

    def failed(self, todo, now, process, facts):
        """Note which step did not end well; return whether the others can run."""
        if now < 0:
            why = f"the examples of the chapter do not run: {process.why()}"
            for task in self.tasks:
                self.facts.setdefault(task.number, ("error", "", why))
            return False
        at = todo[now][0]
        if facts:
            self.leave_out(at, "refused", f"the answer replaces {facts['changed']}")
        elif process.late:
            late = f"did not end within {self.seconds:g} seconds"
            self.leave_out(at, "stopped", late)
        else:
            self.leave_out(at, "error", "the process of the answer ended")
        return True

    def leave_out(self, at, verdict, text):
        """Leave out a step. If it is an answer, this is its verdict."""
        kind, number, _ = self.steps[at]
        self.skip.add(at)
        if kind == "helper":
            self.note(number, f"a cell of its own was left out: it {text}")
        else:
            self.facts[number] = verdict, "", text
            self.skip |= {
                k for k, (what, n, _) in enumerate(self.steps)
                if (what, n) == ("check", number)
            }  # fmt: skip

    def take(self, todo, now, facts):
        """Keep what a step reports."""
        if now < 0:
            if facts["error"]:
                print(f"an example of the chapter: {facts['error']}", file=sys.stderr)
            return
        at, (kind, number, _) = todo[now]
        if kind == "check":
            self.skip.add(at)
            self.facts[number] = self.verdict(number, facts)
        elif facts["error"]:
            cell = "the cell" if kind == "answer" else "a cell of its own"
            text = f"{cell} stops with {facts['error']}"
            if text not in self.notes.get(number, ()):
                self.note(number, text)

    def verdict(self, number, facts):
        """Return the verdict in a word, the slip and the text."""
        status, text = facts.get("status"), facts.get("text", "")
        if status is None:
            return "error", "", facts["error"]
        if status == "passed":
            return "passed", "", text
        stops = [n for n in self.notes.get(number, ()) if n.startswith("the cell ")]
        if status == "not attempted yet":
            return ("error", "", stops[0]) if stops else NOTHING
        if text.startswith(REFUSED):
            return "refused", "", text
        return ("slip" if facts["slip"] else "wrong"), facts["slip"] or "", text


NOTHING = "not attempted", "", ""


def with_checks(steps):
    """Return the steps, each answer with its check before the next answer."""
    found, waiting, last = [], None, None
    for number, source in steps:
        if number and waiting:
            found.append(("check", waiting, ""))
        waiting = number or waiting
        last = waiting or next((n for n, _ in steps if n), None)
        found.append(("answer" if number else "helper", number or last, source))
    return [*found, ("check", waiting, "")] if waiting else []


class Process:
    """A fresh Python that runs answers. Leaving the block ends it."""

    def __init__(self, orders):
        self.late, self.lines = False, queue.Queue()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "grading.worker"],
            cwd=BOOK, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, encoding="utf-8",
            env={**os.environ, **ONE_THREAD, "MPLBACKEND": "Agg"},
            start_new_session=os.name == "posix",
        )  # fmt: skip
        threading.Thread(target=self.read, daemon=True).start()
        try:
            self.process.stdin.write(json.dumps(orders))
            self.process.stdin.close()
        except OSError:
            pass  # it has ended already, which the first question finds out

    def __enter__(self):
        return self

    def read(self):
        """Put what the process says into a queue; None when it says no more."""
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def next(self, seconds):
        """Return the next report, or None if none comes in time."""
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            self.late = True
            return None
        try:
            return line and json.loads(line)
        except ValueError:  # an answer has found this channel: no more of it
            return None

    def why(self):
        """Return what the process complained about before its first step."""
        if self.late:
            return f"its examples took longer than {SETUP} seconds"
        return self.process.stderr.read().strip().rpartition("\n")[2]

    def __exit__(self, *_):
        """End the process, and those that it may have started."""
        if os.name == "posix":
            try:
                os.killpg(self.process.pid, 9)
            except ProcessLookupError:
                pass
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


def student_of(path, folder):
    """Return who submitted a file: its folder's name, or else a part of its own.

    Examples
    --------
    >>> from pathlib import Path
    >>> student_of(Path("s/Ada/04_masks.ipynb"), Path("s"))
    'Ada'
    >>> student_of(Path("s/04_masks-Ada (1).ipynb"), Path("s"))
    'Ada'
    """
    inside = path.relative_to(folder)
    if len(inside.parts) > 1:
        return inside.parts[0]
    name = path.stem
    for each in chapters():
        for known in (each.path.stem, each.slug):
            cut = name.replace(known, "")
            if cut != name and (cut := cut.removesuffix(" (1)").strip(" -_.")):
                return cut
    return name
