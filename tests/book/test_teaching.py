"""The page for teachers: its commands run, and its tables are the book."""

import json
import re
import shlex
from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx")

from docutils import nodes

import mha
from mha import laws
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
    minutes = re.findall(r"\*\*(?:Warm-up|Core), (\d+) minutes", notebook)
    assert f"counts the {sum(map(int, minutes))} minutes" in " ".join(PAGE.split())


def test_the_first_line_of_the_laws_is_as_the_page_says():
    first = str(laws.check(mha.scaled_dot_product_attention)).splitlines()[0]
    assert re.search(r": \d+ hold, \d+ not asked$", first)


def test_the_points_of_the_project_add_up_to_a_hundred():
    points = re.findall(r"^\| [A-Z][^|]+ \| (\d+) \|", PAGE, re.M)
    assert sum(map(int, points)) == 100
    assert f"| Laws | {load(ROOT / 'book' / 'trial.py').POINTS} |" in PAGE
    assert 35 * 6 / 8 * (1 - 1 / 5) == pytest.approx(21)
    assert "35 · 6/8 · 4/5 = 21" in PAGE.replace("\n", " ")


def test_the_command_for_laws_names_versions_that_exist():
    trial = load(ROOT / "book" / "trial.py")
    (shown,) = [shlex.split(rest) for file, rest in COMMANDS if file == "book/trial.py"]
    assert shown[:2] == ["laws/", "--hidden"]
    assert [trial.hidden(text).name for text in shown[2:]] == shown[2:]


def test_exercises_need_no_torch_as_the_page_says():
    for path in (ROOT / "book" / "solutions").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        assert "import torch" not in "\n".join(code), path.name


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
        for k, x in enumerate(("Core, 15 minutes.", "Stretch, 20 minutes."))
    ]
    return nodes.container(
        "",
        section(
            "A chapter",
            nodes.paragraph("", "word " * 170),
            section("The question", text.deepcopy()),
            section("The law", text, asks, printed),
            section("Deeper: more", text.deepcopy()),
            section("On your own", text.deepcopy(), *tasks),
            section("Sources", text.deepcopy()),
        ),
    )


def test_the_minutes_of_a_chapter_add_up(teach):
    assert teach.lesson(made_chapter()) == {
        "start": 3, "law": 3, "reading": 6, "homework": 15, "stretch": 20, "deeper": 2
    }  # fmt: skip


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
    assert "a cache (core, 15, after the deeper section on the KV cache)" in rows[16][2]


def test_a_table_has_a_head_and_rows(teach):
    made = teach.table(("a", "b"), [["1", "2"], ["3", ["x", "y"]]])
    cells = [entry.astext() for entry in made.findall(nodes.entry)]
    assert cells == ["a", "b", "1", "2", "3", "x, y"]
