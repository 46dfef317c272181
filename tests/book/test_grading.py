"""What the command for teachers promises: a verdict on each answer, come what may."""

import csv

import nbformat
import pytest

import grade
from answer import bound, used
from tests.book import invented

SECONDS = "20"


def graded(folder, capsys, *options):
    """Return what the command writes and prints of a folder."""
    table = folder.parent / f"{folder.name}.csv"
    grade.main([str(folder), "--seconds", SECONDS, "--csv", str(table), *options])
    with open(table, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file)), capsys.readouterr().out


def one(folder, capsys, answers):
    """Grade one submission; return its verdicts and what was said, by exercise."""
    (folder / "s").mkdir()
    nbformat.write(invented.notebook(answers), folder / "s" / "04_masks.ipynb")
    rows, _ = graded(folder / "s", capsys)
    return {row["exercise"]: (row["verdict"], row["text"]) for row in rows}


TRICKS = {
    "class check:\n    causal_row = print\nanswer_4_1 = [22, 67, 11, 0]": (
        "slip",
        "these are percentages; a weight lies between 0 and 1",
    ),
    "import os\nfor k in range(1, 20):\n    try: os.write(k, b'[1]')\n"
    "    except OSError: pass\nanswer_4_1 = [2 / 9, 6 / 9, 1 / 9, 0]": ("passed", ""),
    "import os, pathlib\nfor path in pathlib.Path().iterdir():\n"
    "    path.write_text('[1]')\nos._exit(0)\nanswer_4_1 = 1": (
        "error",
        "the process of the answer ended",
    ),
    "import json\npath = open('found.json', 'w')\njson.dump({'status': 1}, path)\n"
    "path.close()\nimport os\nos._exit(0)\nanswer_4_1 = 1": (
        "error",
        "the process of the answer ended",
    ),
}


@pytest.mark.parametrize("source", TRICKS)
def test_an_odd_answer_costs_its_own_verdict_and_nobody_elses(source, tmp_path, capsys):
    found = one(tmp_path, capsys, {"4.1": source, "4.2": invented.RIGHT["4.2"]})
    assert found["4.1"] == TRICKS[source]
    assert found["4.2"] == ("passed", "")


def test_every_exercise_can_be_graded():
    tasks = [(each, task) for each in grade.chapters() for task in each.tasks]
    assert len({task.number for _, task in tasks}) == len(tasks) > 60
    for each, task in tasks:
        asks = task.check.rpartition("check.")[2].partition("(")[0]
        path = grade.BOOK / "solutions" / each.path.name
        cells = nbformat.read(path, as_version=4).cells
        own = [c.source for c in cells if f"check.{asks}(" in c.source]
        assert own and task.name in task.check


def test_only_examples_that_an_answer_needs_are_run():
    masks = next(each for each in grade.chapters() if each.slug == "masks")
    assert grade.needed_of(["x = 1"], masks.code, set()) == []
    needed = grade.needed_of(["A = softmax(S)"], masks.code, set())
    assert 0 < len(needed) < len(masks.code) / 4
    assert any("S = Q @ K.T" in source for source in needed)


def test_a_cell_that_is_no_python_has_a_name_all_the_same():
    assert bound("def law(attend)\n    ...") == {"law"}
    assert used("%matplotlib inline\nx = 7 % k") == {"k"}


def test_another_chapter_than_the_one_that_was_set_is_not_graded(tmp_path, capsys):
    (tmp_path / "s").mkdir()
    nbformat.write(invented.notebook({}), tmp_path / "s" / "Ada.ipynb")
    rows, printed = graded(tmp_path / "s", capsys, "--chapter", "scale")
    assert "  Ada: Ada.ipynb is chapter 4, masks" in printed.splitlines()
    assert [row["verdict"] for row in rows] == ["not graded"]
