"""The page for teachers: its commands run, and its tables are the book."""

import re
import shlex
from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx")

from docutils import nodes

from mha._chapters import CHAPTERS
from tests.book.load import ROOT, extension, load

PAGE = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\.venv/bin/python (book/\w+\.py)(.*)$", PAGE, re.M)


@pytest.fixture(scope="module")
def teach():
    return extension("teach")


def test_the_commands_for_grading_have_the_options_that_the_page_shows():
    grade = load(ROOT / "book" / "grade.py")
    shown = [shlex.split(rest) for file, rest in COMMANDS if file == "book/grade.py"]
    assert len(shown) == 1
    (options,) = [grade.parsed(arguments) for arguments in shown]
    assert (options.folder.name, options.chapter.slug) == ("submissions", "masks")
    listed = dict(re.findall(r"`--(\w+)(?: ([\w.]+))?`", PAGE))
    defaults = grade.parsed(["submissions"])
    assert {"csv", "json", "seconds", "gigabytes", "jobs", "chapter"} == set(listed)
    assert (defaults.seconds, defaults.gigabytes) == (
        float(listed["seconds"]), float(listed["gigabytes"])
    )  # fmt: skip


def test_the_commands_for_slides_name_chapters_that_exist():
    pytest.importorskip("markdown_it")
    slides = load(ROOT / "book" / "slides.py")
    shown = [shlex.split(rest) for file, rest in COMMANDS if file == "book/slides.py"]
    assert len(shown) == 2
    assert all(slides.decks(names) for names in shown)
    assert slides.OUT == ROOT / "_build" / "slides"


def test_every_verdict_is_explained():
    source = (ROOT / "book" / "grading" / "run.py").read_text(encoding="utf-8")
    for verdict in re.findall(r'"(passed|slip|wrong|refused|error|stopped)"', source):
        assert f"| {verdict} |" in PAGE, verdict


def weeks():
    lines = PAGE.partition("```{teach} plan\n")[2].partition("```")[0].splitlines()
    return [line.partition("|")[0].split() for line in lines]


def test_the_plan_has_eight_weeks_and_names_no_chapter_twice():
    named = [slug for week in weeks() for slug in week]
    assert len(weeks()) == 8
    assert named == [slug for slug in CHAPTERS if slug in named]
    rest = [slug for slug in CHAPTERS if slug not in named]
    assert rest == list(CHAPTERS[len(named) :])  # which the last week takes


def test_chapter_4_has_the_levels_that_the_page_says():
    notebook = (ROOT / "book" / "04_masks.ipynb").read_text(encoding="utf-8")
    levels = re.findall(r"\*\*(Warm-up|Core|Stretch), ", notebook)
    assert levels == ["Warm-up", "Core", "Core", "Stretch", "Stretch"]
    assert "one warm-up, two core and two stretch" in " ".join(PAGE.split())


def test_the_points_of_the_project_add_up_to_a_hundred():
    points = re.findall(r"^\| [A-Z][^|]+ \| (\d+) \|", PAGE, re.M)
    assert sum(map(int, points)) == 100
    assert 25 * 14 / 20 + 5 == 22.5 and "= 22.5 of 35" in PAGE.replace("\n", " ")


# The extension


def section(title, *children):
    return nodes.section("", nodes.title("", title), *children)


def test_minutes_of_a_section_are_reading_and_predictions(teach):
    text = nodes.paragraph("", "word " * 340)
    asks = nodes.paragraph("", "", nodes.strong("", "Before you run it:"))
    made = section("The law", text, asks)
    assert teach.minutes_of(made, "law") == pytest.approx(3, abs=0.1)


def test_minutes_of_the_exercises_are_those_that_they_name(teach):
    level = nodes.strong("", "Core, 15 minutes.")
    task = section("Exercise 2.1: Write it", nodes.paragraph("", "", level))
    assert teach.minutes_of(section("On your own", task), "exercises") == 15


def test_every_chapter_has_a_row_with_its_promise(teach):
    notebooks = (ROOT / "book").glob("[0-9]*.ipynb")
    env = SimpleNamespace(
        found_docs=[f"book/{path.stem}" for path in notebooks],
        doc2path=lambda page: ROOT / f"{page}.ipynb",
        note_dependency=lambda path: None,
    )
    rows = list(teach.outcomes(env))
    assert len(rows) == len(CHAPTERS)
    assert all(len(promise.split()) > 10 for _, promise, _ in rows)
    assert "4.1 Predict a row (warm-up, 5)" in rows[4][2]


def test_a_table_has_a_head_and_rows(teach):
    made = teach.table(("a", "b"), [["1", "2"], ["3", ["x", "y"]]])
    cells = [entry.astext() for entry in made.findall(nodes.entry)]
    assert cells == ["a", "b", "1", "2", "3", "x, y"]
