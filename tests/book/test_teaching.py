"""The page for teachers: its commands run, and it counts as the book does."""

import re
import shlex

import pytest

pytest.importorskip("sphinx")

import grade
import slides
import trial
from tests.book.load import ROOT

PAGE = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())
COMMANDS = re.findall(r"^\.venv/bin/python book/(\w+)\.py(.*)$", PAGE, re.M)
CHAPTERS = sorted((ROOT / "book").glob("[0-9]*.ipynb"))


def shown(command):
    """Return the arguments with which the page shows a command."""
    return [shlex.split(rest) for name, rest in COMMANDS if name == command]


def test_the_commands_run_as_the_page_shows_them():
    (arguments,) = shown("grade")
    assert grade.parsed(arguments).chapter == "masks"
    listed = dict(re.findall(r"`--(\w+)(?: ([\w.]+))?`", PAGE))
    assert set(listed) == {"csv", "seconds", "chapter"}
    defaults = grade.parsed(["submissions"])
    assert defaults.seconds == float(listed["seconds"])
    assert [len(slides.decks(names)) for names in shown("slides")] == [5, 1]
    assert slides.OUT == ROOT / "_build" / "slides"
    ((folder, option, *names),) = shown("trial")
    assert (folder, option) == ("laws/", "--hidden")
    assert [trial.hidden(text).name for text in names] == names


def test_every_verdict_is_explained():
    source = (ROOT / "book" / "grade.py").read_text(encoding="utf-8")
    verdicts = set(re.findall(r'"(passed|slip|wrong|refused|error|stopped)"', source))
    assert len(verdicts) == 6
    assert [v for v in verdicts if f"| {v} |" not in PAGE] == []


def test_levels_minutes_and_points_are_those_of_the_exercises():
    texts = {path.stem: path.read_text(encoding="utf-8") for path in CHAPTERS}
    level = r"\*\*(Warm-up|Standard|Stretch), (\d+) minutes"
    found = re.findall(level, texts["04_masks"])
    counted = [each for each, _ in found]
    assert counted == ["Warm-up", *["Standard"] * 2, *["Stretch"] * 2]
    assert "one warm-up, two standard and two stretch" in WORDS
    assert f"counts the {sum(int(m) for x, m in found if x != 'Stretch')} min" in WORDS
