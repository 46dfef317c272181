"""The page for teachers: its commands run, and its tables are the book."""

import re
import shlex
from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx")

from docutils import nodes

import grade
import slides
import trial
from tests.book.load import ROOT, extension

PAGE = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())
COMMANDS = re.findall(r"^\.venv/bin/python book/(\w+)\.py(.*)$", PAGE, re.M)
CHAPTERS = sorted((ROOT / "book").glob("[0-9]*.ipynb"))
SLUGS = [path.stem[3:] for path in CHAPTERS]


@pytest.fixture(scope="module")
def teach():
    return extension("teach")


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


def test_the_plan_has_eight_weeks_and_names_the_chapters_in_order():
    lines = PAGE.partition("```{teach} plan\n")[2].partition("```")[0].splitlines()
    named = [slug for line in lines for slug in line.partition("|")[0].split()]
    assert len(lines) == 8
    assert named == [slug for slug in SLUGS if slug in named]
    # the last week takes the rest
    assert [slug for slug in SLUGS if slug not in named] == SLUGS[len(named) :]


def test_levels_minutes_and_points_are_those_of_the_exercises():
    texts = {path.stem: path.read_text(encoding="utf-8") for path in CHAPTERS}
    level = r"\*\*(Warm-up|Standard|Stretch), (\d+) minutes"
    found = re.findall(level, texts["04_masks"])
    counted = [each for each, _ in found]
    assert counted == ["Warm-up", *["Standard"] * 2, *["Stretch"] * 2]
    assert "one warm-up, two standard and two stretch" in WORDS
    assert f"counts the {sum(int(m) for x, m in found if x != 'Stretch')} min" in WORDS


# The extension


def section(title, *children):
    return nodes.section("", nodes.title("", title), *children)


def made_chapter():
    text = nodes.paragraph("", "word " * 340)
    asks = nodes.paragraph("", "", nodes.strong("", "Before you run it:"))
    printed = nodes.container("", text.deepcopy(), classes=["cell_output"])
    tasks = [
        section(
            f"Exercise 2.{k}: Write it", nodes.paragraph("", "", nodes.strong("", x))
        )
        for k, x in enumerate(("Standard, 15 minutes.", "Stretch, 20 minutes."))
    ]
    return nodes.container(
        "",
        section(
            "A chapter",
            nodes.paragraph("", "word " * 170),
            section("The question", text.deepcopy()),
            section("The law", text, asks, printed),
            section("Deeper", section("More", text.deepcopy())),
            section("On your own", text.deepcopy(), *tasks),
            section("Sources", text.deepcopy()),
        ),
    )


def test_the_minutes_of_a_chapter_add_up(teach):
    assert teach.lesson(made_chapter()) == {
        "start": 3, "law": 4, "reading": 7, "homework": 15, "stretch": 20, "deeper": 2
    }  # fmt: skip


def test_every_chapter_has_a_row_with_what_a_student_can_say(teach):
    env = SimpleNamespace(
        found_docs=[f"book/{path.stem}" for path in CHAPTERS],
        doc2path=lambda page: ROOT / f"{page}.ipynb",
        note_dependency=lambda path: None,
    )
    rows = list(teach.outcomes(env))
    assert len(rows) == len(CHAPTERS)
    assert all(len(said.split()) > 10 for _, said, _ in rows)
    assert rows[1][1].startswith("The score of a query with a key is their dot product")
    assert "4.1 Predict a row (warm-up, 5)" in rows[4][2]
    late = "a cache (standard, 15, after the deeper section on the KV cache)"
    assert late in rows[16][2]
