"""What the command for teachers promises: a verdict on each answer, come what may."""

import csv
import json
import subprocess
import sys

import nbformat
import pytest

pytest.importorskip("nbformat")

from grading import notebooks, report, run
from tests.book import invented
from tests.book.load import ROOT

GRADE = [sys.executable, "book/grade.py"]
SECONDS = "4"


@pytest.fixture(scope="module")
def submitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    invented.submit(folder)
    return folder


@pytest.fixture(scope="module")
def graded(submitted):
    """What the command prints and writes of the ten."""
    table = submitted.parent / "marks.csv"
    options = [
        "--chapter",
        "masks",
        "--seconds",
        SECONDS,
        "--csv",
        str(table),
        "--json",
    ]
    ran = subprocess.run(
        [*GRADE, str(submitted), *options],
        cwd=ROOT, capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    with open(table, encoding="utf-8", newline="") as file:
        return json.loads(ran.stdout), list(csv.DictReader(file))


def verdicts(graded, student):
    return [r["verdict"] for r in graded[0]["results"] if r["student"] == student]


def said(graded, student, exercise):
    for result in graded[0]["results"]:
        if (result["student"], result["exercise"]) == (student, exercise):
            return result
    raise AssertionError(f"nothing about {student} {exercise}")


def test_right_answers_pass_and_a_stub_is_not_attempted(graded):
    assert verdicts(graded, "01_all_right") == ["passed"] * 5
    assert verdicts(graded, "02_untouched") == ["not attempted"] * 5


def test_an_endless_loop_is_stopped_and_the_other_answers_get_their_verdicts(graded):
    expected = ["passed", "passed", "stopped", "passed", "passed"]
    assert verdicts(graded, "03_endless_loop") == expected
    assert "within 4 seconds" in said(graded, "03_endless_loop", "4.3")["text"]


def test_a_process_that_ends_and_a_cell_that_is_no_python_cost_their_own_answer(graded):
    expected = ["passed", "error", "passed", "passed", "error"]
    assert verdicts(graded, "04_crashes") == expected
    assert "SyntaxError" in said(graded, "04_crashes", "4.5")["text"]


def test_known_slips_are_named(graded):
    slip = said(graded, "05_known_slips", "4.2")
    assert (slip["verdict"], slip["slip"]) == (
        "slip",
        "these are the first rows of the square mask; return the last ones",
    )


def test_edited_checks_do_not_count_and_are_reported(graded):
    assert verdicts(graded, "06_edited_checks") == ["slip"] + ["not attempted"] * 4
    assert "edited check" in said(graded, "06_edited_checks", "4.3")["note"]


def test_an_answer_that_calls_the_package_for_the_task_is_refused(graded):
    assert said(graded, "07_uses_mha", "4.4")["verdict"] == "refused"


def test_neither_the_name_of_the_file_nor_ids_of_cells_are_needed(graded):
    assert verdicts(graded, "08_other_name") == ["passed"] * 5


def test_a_file_that_is_no_notebook_is_named(graded):
    lost = said(graded, "09_no_notebook", "")
    assert (lost["verdict"], lost["text"]) == ("not graded", "not a notebook")


def test_a_helper_in_a_cell_of_its_own_is_found(graded):
    assert verdicts(graded, "10_half_done")[:2] == ["passed", "passed"]


def test_the_csv_file_holds_the_same_and_the_sums_are_right(graded):
    printed, table = graded
    assert table == printed["results"]
    for student, sums in printed["students"].items():
        assert sums["passed"] == verdicts(graded, student).count("passed")


def one(folder, answers, **options):
    """Grade one submission; return its results by exercise."""
    path = folder / "04_masks.ipynb"
    nbformat.write(invented.notebook(answers), path)
    return {r.exercise: r for r in run.grade(path, "a learner", **options)}


TAMPERED = {
    "numpy.allclose": "np.allclose = lambda *args, **options: True",
    "exercises.masks.causal_row": "from exercises import masks\n"
    "masks.causal_row = lambda answer: None",
    "exercises.masks.causal_row.right": "from exercises import masks\n"
    "object.__setattr__(masks.causal_row, 'right', [22, 67, 11, 0])",
    "mha.check._engine.Exercise.__call__": "from mha.check import Exercise\n"
    "Exercise.__call__ = lambda self, answer: None",
}


@pytest.mark.parametrize("name", TAMPERED)
def test_an_answer_that_replaces_what_checks_rest_on_is_refused(tmp_path, name):
    first = f"{TAMPERED[name]}\n{invented.PERCENT}"
    results = one(tmp_path, {"4.1": first, "4.2": invented.FIRST_ROWS})
    assert results["4.1"].verdict == "refused"
    assert results["4.1"].text == f"the answer replaces {name}"
    assert results["4.2"].verdict == "slip"  # judged by what the book has again


def test_an_answer_that_takes_a_ready_one_is_refused(tmp_path):
    takes = "from exercises import masks\nrow = masks.causal_row.right"
    results = one(tmp_path, {"4.1": takes, "4.2": invented.RIGHT["4.2"]})
    assert results["4.1"].verdict == "refused"
    assert results["4.1"].text == "takes masks.causal_row.right, which is ready-made"
    assert results["4.2"].verdict == "passed"


def test_a_name_of_another_library_is_refused_where_the_task_asks_for_it():
    tasks = {t.number: t for each in notebooks.chapters() for t in each.tasks}
    ready = notebooks.ready_made
    theirs = "import torch.nn.functional as F\nF.scaled_dot_product_attention(Q, K, V)"
    assert ready(theirs, tasks["5.1"]) == "F.scaled_dot_product_attention"
    assert ready("from torch.nn import MultiheadAttention", tasks["9.2"])
    assert ready("from scipy.special import softmax", tasks["2.2"])
    assert not ready("Y = mha.softmax(S)\ndef softmax(S): ...", tasks["5.1"])


def test_no_solution_is_refused():
    for each in notebooks.chapters():
        path = notebooks.BOOK / "solutions" / each.path.name
        for cell in nbformat.read(path, as_version=4).cells:
            for task in each.tasks:
                if cell.cell_type == "code" and f"check.{task.asks}(" in cell.source:
                    assert not notebooks.ready_made(cell.source, task), task.number


def test_an_answer_that_writes_into_the_channel_of_the_verdicts_is_not_believed(
    tmp_path,
):
    noise = "import os\nfor k in range(3, 20):\n    try: os.write(k, b'passed\\n')\n"
    noise += "    except OSError: pass\n" + invented.RIGHT["4.1"]
    results = one(tmp_path, {"4.1": noise, "4.2": invented.RIGHT["4.2"]})
    assert results["4.1"].verdict == "error"
    assert results["4.2"].verdict == "passed"


def test_an_answer_that_takes_the_name_of_the_checks_changes_nothing(tmp_path):
    mine = "class check:\n    causal_row = print\n" + invented.PERCENT
    assert one(tmp_path, {"4.1": mine})["4.1"].verdict == "slip"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this limit")
def test_an_answer_that_fills_the_memory_is_stopped(tmp_path):
    greedy = "def batch_mask(lengths):\n    return np.ones((2**33,))"
    result = one(tmp_path, {"4.3": greedy}, gigabytes=2)["4.3"]
    assert result.verdict in ("wrong", "error") and "Memory" in result.text


def test_an_example_that_does_not_run_costs_one_submission_and_not_the_class(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(run, "SETUP", 0.001)
    results = one(tmp_path, {"4.1": invented.RIGHT["4.1"]})
    assert {r.verdict for r in results.values()} == {"error"}
    assert "examples took longer" in results["4.1"].text


def test_only_examples_that_an_answer_needs_are_run():
    masks = next(each for each in notebooks.chapters() if each.slug == "masks")
    assert masks.setup(["x = 1"]) == []
    needed = masks.setup(["A = softmax(S)"])
    assert 0 < len(needed) < len(masks.code) / 4
    assert any("S = dot_product_scores" in source for source in needed)


def test_another_chapter_than_the_one_that_was_set_is_not_graded(tmp_path):
    scale = next(each for each in notebooks.chapters() if each.slug == "scale")
    (result,) = one(tmp_path, {}, wanted=scale).values()
    assert result.text == "is chapter 4, masks"


def test_the_table_names_every_student_and_what_to_say_to_each():
    results = [
        run.Result("Ada", "04_masks.ipynb", "04_masks", "4.1", "passed"),
        run.Result("Bo", "b.ipynb", "04_masks", "4.1", "slip", "no mask", "these are"),
        run.Result("Cy", "c.txt", "", "", "not graded", text="not a notebook"),
    ]
    assert report.table(results).splitlines() == [
        "chapter 4, masks",
        "  student  4.1     passed",
        "  Ada      passed  1 of 1",
        "  Bo       slip    0 of 1",
        "",
        "  Bo 4.1 slip: no mask",
        "",
        "not graded",
        "  Cy: c.txt not a notebook",
    ]


def test_every_exercise_of_the_book_can_be_graded():
    exercises = [task for each in notebooks.chapters() for task in each.tasks]
    assert len(exercises) == len({task.number for task in exercises}) > 60
    assert all(task.title and task.name for task in exercises)


def test_the_page_for_teachers_shows_what_the_command_prints(graded):
    printed = report.table([run.Result(**r) for r in graded[0]["results"]])
    page = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
    shown = page.partition("ten invented students:\n\n```text\n")[2].partition("```")[0]
    assert len(shown.splitlines()) > 15
    assert set(shown.splitlines()) <= set(printed.splitlines())
