"""What a learner finds in the notebooks: form, solutions, and links that lead there."""

import re

import nbformat
import pytest
import yaml

from chapters import CHAPTERS, chapter_number
from tests.book.load import BOOK, ROOT, load, text_of

NOTEBOOKS = sorted(BOOK.glob("[0-9]*.ipynb"))
SOLUTIONS = sorted(BOOK.glob("solutions/[0-9]*.ipynb"))
every_chapter = pytest.mark.parametrize("path", NOTEBOOKS[1:], ids=lambda p: p.stem)


def exercises_of(path):
    return re.findall(r"^#{2,4} (Exercise .+)$", text_of(path), re.M)


@every_chapter
def test_every_exercise_has_a_solution_that_passes(path):
    solved = BOOK / "solutions" / path.name
    assert exercises_of(solved) == exercises_of(path)
    printed = []
    for cell in nbformat.read(solved, as_version=4).cells:
        if cell.id.startswith("exercise-"):
            printed.append("")
        for output in cell.get("outputs", ()):
            text = output.get("text", "") or output.get("data", {}).get("text/plain")
            printed[-1] += text or ""
    assert len(printed) == len(exercises_of(path))
    assert [text for text in printed if "passed" not in text] == []


@every_chapter
def test_a_link_to_a_solution_opens_it_in_jupyterlab_too(path):
    """JupyterLab opens a notebook at the id of a cell, and at no other address."""
    links = re.findall(r"\(solutions/(\w+)\.ipynb#([\w=-]+)\)", text_of(path))
    assert len(links) >= 3
    for name, target in links:
        solved = nbformat.read(BOOK / "solutions" / f"{name}.ipynb", as_version=4)
        assert target.removeprefix("cell-id=") in [cell.id for cell in solved.cells]


@pytest.mark.parametrize("path", [*NOTEBOOKS, *SOLUTIONS], ids=lambda p: p.stem)
def test_equations_and_figures_have_the_numbers_that_links_say(path):
    refresh = load(ROOT / ".ci" / "refresh", "refresh")
    assert refresh.check(path), f"run .ci/refresh --form {path.stem}"


@every_chapter
def test_an_equation_of_several_lines_is_aligned_by_itself(path):
    """The built pages align it; a notebook shows an error in its place."""
    for equation in re.findall(r"^\$\$\n(.*?)\$\$$", text_of(path), re.M | re.S):
        outside = re.sub(r"\\begin\{(\w+)\}.*?\\end\{\1\}", "", equation, flags=re.S)
        assert "&" not in outside and r"\\" not in outside, equation


def test_the_contents_list_the_chapters_in_the_order_of_their_numbers():
    files = [f"{chapter_number(slug):02}_{slug}" for slug in CHAPTERS]
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [each["file"] for part in contents["parts"] for each in part["chapters"]]
    assert [file[5:] for file in listed if file[5:7].isdigit()] == files
    assert files == [path.stem for path in NOTEBOOKS]
