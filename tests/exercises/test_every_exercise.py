"""What holds for every exercise of the book, and for the folder they stand in."""

import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

import exercises
import mha
from mha import _chapters
from mha.check import Exercise

BOOK = Path(exercises.__file__).parent.parent
# __init__ shows in its examples what is made of a slug.
SOURCES = sorted(Path(exercises.__file__).parent.glob("[!_]*.py"))


CHAPTERS = _chapters.CHAPTERS[1:]  # the overview has no exercises


@functools.cache
def notebook_of(slug):
    number = _chapters.chapter_number(slug)
    (path,) = BOOK.glob(f"{number:02}_*.ipynb")
    return nbformat.read(path, as_version=4)


def code_of(slug):
    cells = notebook_of(slug).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def headings_of(slug):
    cells = notebook_of(slug).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return re.findall(r"^#+ (.+)$", text, re.M)


def module_of(slug):
    return importlib.import_module(f"exercises.{slug}")


def all_exercises():
    for slug in CHAPTERS:
        for name, value in vars(module_of(slug)).items():
            if isinstance(value, Exercise):
                yield pytest.param(value, id=f"{slug}.{name}")
    hunt = importlib.import_module("exercises.multi_head")
    for letter in hunt.suspects:  # made when asked for, as they cost a second
        later = functools.partial(hunt.suspect_exercise, letter)
        yield pytest.param(later, id=f"suspect {letter}")


EVERY = list(all_exercises())
every_exercise = pytest.mark.parametrize("exercise", EVERY, indirect=True)


@pytest.fixture
def exercise(request):
    made = isinstance(request.param, Exercise)
    return request.param if made else request.param()


# ------------------------------------------------------- chapters and sections


def test_there_are_about_five_exercises_for_each_chapter():
    assert len(EVERY) >= 4 * len(CHAPTERS)


@every_exercise
def test_the_section_to_reread_stands_in_the_chapter(exercise):
    number, named = re.fullmatch(r"chapter (\d+), (.+)", exercise.reread).groups()
    present = headings_of(_chapters.CHAPTERS[int(number)])
    # A heading may hold quotes itself; two headings are joined by "and".
    for name in re.split(r'(?<=") and (?=")', named):
        heading = name[1:-1]
        found = [h for h in present if h == heading or h.startswith(f"{heading}:")]
        assert found, f"{heading!r} is none of {present}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_exercise_types_the_number_of_a_chapter(path):
    typed = r"(?i)\bchapters? \d|\bexercises? \d+\.\d|\bchapter (one|two|three|four)\b"
    assert re.findall(typed, path.read_text(encoding="utf-8")) == []


def test_a_chapter_inserted_in_front_changes_what_every_text_calls_the_others(
    monkeypatch,
):
    assert exercises.section("masks", "By hand") == 'chapter 4, "By hand"'
    monkeypatch.setattr(_chapters, "CHAPTERS", ("preface", *_chapters.CHAPTERS))
    assert exercises.section("masks", "By hand") == 'chapter 5, "By hand"'
    assert exercises.chapter("softmax") == "chapter 3"


def test_a_chapter_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="no chapter is called 'mask'"):
        exercises.section("mask", "By hand")


# ------------------------------------------------------- the notebooks' one import


@pytest.mark.parametrize("slug", CHAPTERS)
def test_a_notebook_imports_its_own_exercises_and_asks_for_nothing_they_lack(slug):
    code = code_of(slug)
    assert f"from exercises import {slug} as check" in code
    asked = set(re.findall(r"(?<![\w.])check\.([A-Za-z_]\w*)", code))
    asked |= set(re.findall(rf"from exercises\.{slug} import (\w+)", code))
    assert len(asked) >= 4
    assert [name for name in asked if not hasattr(module_of(slug), name)] == []


@pytest.mark.parametrize("slug", CHAPTERS)
def test_each_exercise_is_asked_in_its_notebook(slug):
    code = code_of(slug)
    names = [n for n, v in vars(module_of(slug)).items() if isinstance(v, Exercise)]
    assert [name for name in names if f"check.{name}(" not in code] == []


def test_the_folder_is_found_from_the_folder_of_a_notebook_and_loads_quickly():
    slugs = ", ".join(CHAPTERS)
    heavy = "{'torch', 'matplotlib', 'mha.laws'} & set(sys.modules)"
    program = f"import sys; from exercises import {slugs}; print({heavy} or 'light')"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=BOOK, capture_output=True, text=True
    )
    assert done.stdout == "light\n", done.stderr


# ------------------------------------------------------- nothing is given away


# In these tasks a learner has to find that the step computes what is asked.
ALLOWED = {
    ("one large matrix out of many small ones", "merge_heads"),
    ("one bias at the output that does the work of two", "linear"),
}


@every_exercise
def test_no_step_of_the_package_is_an_answer(exercise):
    accepted = [name for name in mha.__all__ if exercise(getattr(mha, name)).passed]
    assert [name for name in accepted if (exercise.task, name) not in ALLOWED] == []


@every_exercise
def test_an_exercise_shows_its_task_and_not_its_answers(exercise):
    assert repr(exercise) == f"<Exercise: {exercise.task}>"
    for mistake in exercise.mistakes:
        assert repr(mistake) == f"<Mistake: {mistake.name}>"
