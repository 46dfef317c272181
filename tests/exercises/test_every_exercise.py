"""What holds for every exercise of the book, and for the folder they stand in."""

import ast
import functools
import importlib
import math
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest

import chapters
import exercises
import mha
from exercises.engine import Exercise
from tests.exercises.right_ways import WAYS

BOOK = Path(exercises.__file__).parent.parent
CHAPTERS = chapters.CHAPTERS[1:]  # the overview has no exercises


@functools.cache
def cells_of(slug, folder=BOOK):
    (path,) = folder.glob(f"{chapters.chapter_number(slug):02}_*.ipynb")
    return nbformat.read(path, as_version=4).cells


def code_of(slug, folder=BOOK):
    cells = cells_of(slug, folder)
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def headings_of(slug):
    markdown = (c.source for c in cells_of(slug) if c.cell_type == "markdown")
    return re.findall(r"^#+ (.+)$", "\n".join(markdown), re.M)


def module_of(slug):
    return importlib.import_module(f"exercises.{slug}")


EVERY = [
    pytest.param(value, slug, name, id=f"{slug}.{name}")
    for slug in CHAPTERS
    for name, value in vars(module_of(slug)).items()
    if isinstance(value, Exercise)
]
every_exercise = pytest.mark.parametrize(("exercise", "slug", "name"), EVERY)


@every_exercise
def test_an_exercise_knows_right_answers_a_stub_and_each_of_its_slips(
    exercise, slug, name
):
    exercise.self_test()
    assert "\n" not in str(exercise(exercise.right)), "all is well in one line"
    for answer in WAYS.get(f"{slug}.{name}", ()):
        verdict = exercise(answer)
        assert verdict.passed, f"a right answer is refused:\n{verdict}"


def test_no_right_answer_belongs_to_an_exercise_that_is_gone():
    assert {*WAYS} <= {each.id for each in EVERY}


# In these tasks a learner has to find that the step computes what is asked.
ALLOWED = {("fuse", "merge_heads")}


@every_exercise
def test_no_step_of_the_package_is_an_answer(exercise, slug, name, monkeypatch):
    monkeypatch.setattr(exercises.families, "SECONDS", 0)  # nobody reads a hint here
    accepted = [step for step in mha.__all__ if exercise(getattr(mha, step)).passed]
    assert [step for step in accepted if (name, step) not in ALLOWED] == []


@every_exercise
def test_the_section_to_reread_stands_in_the_chapter(exercise, slug, name):
    number, named = re.fullmatch(r"chapter (\d+), (.+)", exercise.reread).groups()
    present = [h.casefold() for h in headings_of(chapters.CHAPTERS[int(number)])]
    present += [heading.partition(":")[0] for heading in present]
    # A heading may hold quotes itself; two headings are joined by "and".
    for heading in re.split(r'(?<=") and (?=")', named):
        name = heading[1:-1].removeprefix("Deeper: ").casefold()
        assert name in present, f"{heading} is none of {present}"


@every_exercise
def test_an_exercise_is_asked_in_its_chapter_and_solved_in_the_solutions(
    exercise, slug, name
):
    assert f"check.{name}(" in code_of(slug)
    assert f"{name}(" in code_of(slug, BOOK / "solutions")


@pytest.mark.parametrize("slug", CHAPTERS)
def test_a_notebook_imports_its_own_exercises_and_asks_for_nothing_they_lack(slug):
    code = code_of(slug)
    assert f"from exercises import {slug} as check" in code
    asked = set(re.findall(r"(?<![\w.])check\.([A-Za-z_]\w*)", code))
    assert [name for name in asked if not hasattr(module_of(slug), name)] == []


@pytest.mark.parametrize("slug", CHAPTERS)
def test_each_check_runs_alone_after_the_cell_of_the_answer(slug):
    cells = cells_of(slug)
    stubs = [k for k, cell in enumerate(cells) if "exercise" in tags(cell)]
    for k in stubs:
        *before, last = ast.parse(cells[k + 1].source).body
        call = ast.unparse(last)
        exercise, name = re.fullmatch(r"check\.(\w+)\((\w+)\)", call).groups()
        for wanted in ("not attempted yet", "passed"):
            fresh = {}
            exec(cells[k].source, fresh)
            if wanted == "passed":
                fresh[name] = getattr(module_of(slug), exercise).right
            exec(ast.unparse(ast.Module(before, [])), fresh)
            assert eval(call, fresh).status == wanted
    assert len(stubs) >= 3


@pytest.mark.parametrize(
    ("slug", "name", "answer", "said"),
    [
        ("dot_product", "cosine", "cosine_by_hand", "a vector of zeros has length 0"),
        ("softmax", "stable_softmax", "softmax_by_hand", "too large for a float"),
        ("attention", "attend", "weights_by_hand", "does not subtract the largest"),
    ],
)
def test_a_copy_of_what_the_chapter_itself_computes_is_told_what_it_lacks(
    slug, name, answer, said
):
    space, cells = {"np": np, "math": math}, cells_of(slug)
    for cell in cells:
        if cell.cell_type == "code" and "_by_hand(" in cell.source:
            parts = ast.parse(cell.source).body
            parts = [part for part in parts if isinstance(part, ast.FunctionDef)]
            exec(ast.unparse(ast.Module(parts, [])), space)
    by_hand = space[answer]
    copies = {
        "cosine": lambda Q, K: [[by_hand(q, k) for k in K] for q in Q],
        "stable_softmax": lambda x, axis: by_hand(x),
        "attend": lambda Q, K, V: np.array([by_hand(q, K) for q in Q]) @ V,
    }
    with np.errstate(all="ignore"):
        assert said in getattr(module_of(slug), name)(copies[name]).text


def tags(cell):
    return cell.metadata.get("tags", ())


def test_the_folder_is_found_from_the_folder_of_a_notebook_and_loads_quickly():
    slugs = ", ".join(CHAPTERS)
    heavy = "{'torch', 'matplotlib', 'mha.laws'} & set(sys.modules)"
    program = f"import sys; from exercises import {slugs}; print({heavy} or 'light')"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=BOOK, capture_output=True, text=True
    )
    assert done.stdout == "light\n", done.stderr
