"""What the commands for teachers promise, on the examples of the page for teachers."""

import argparse
import csv
import re
import shlex

import nbformat
import pytest

import grade
import trial
from exercises.laws import subjects
from tests.book.load import BOOK

PAGE = (BOOK / "teaching.md").read_text(encoding="utf-8")
COMMANDS = dict(re.findall(r"^\.venv/bin/python book/(\w+)\.py(.*)$", PAGE, re.M))
RIGHT = {
    "4.1": "def last_rows_mask(n_q, n_k):\n"
    "    return np.arange(n_k) <= np.arange(n_q)[:, None] + n_k - n_q",
    "4.2": "def batch_mask(lengths):\n"
    "    n = max(lengths)\n"
    "    real = np.arange(n) >= n - np.reshape(lengths, (-1, 1, 1, 1))\n"
    "    return np.tri(n, dtype=bool) & real",
    "4.3": "def safe_masked_softmax(S, mask):\n"
    "    S = np.where(mask, S, -np.inf)\n"
    "    e = np.exp(S - np.maximum(S.max(-1, keepdims=True), -1e300))\n"
    "    total = e.sum(-1, keepdims=True)\n"
    "    return e / np.where(total == 0, 1, total)",
    "4.4": "def denominator_law(attend):\n"
    "    Q, K, V = np.random.default_rng(0).normal(size=(3, 5, 2))\n"
    "    ones = attend(Q, K, np.ones_like(V), mask=causal_mask(5))\n"
    "    return np.allclose(ones, 1, atol=1e-5)",
}
CLASS = {  # what each student answers otherwise than right
    "ada": {},
    "ben": {
        "4.1": "def last_rows_mask(n_q, n_k):\n    return causal_mask(n_k)[:n_q]",
        "4.2": "",
        "4.3": "def safe_masked_softmax(S, mask):\n    return masked_softmax(S, mask)",
    },
    "cem": {
        "4.1": "import os\nlast_rows_mask = os._exit(1)",
        "4.2": "def batch_mask(lengths):\n    while True:\n        pass",
        "4.3": "safe_masked_softmax = print\nwhile True:\n    pass",
        "4.4": "def denominator_law(attend)\n    ...",
    },
    "dana": {"4.1": "def last_rows_mask(n_q, n_k):\n    return drawn(n_q, n_k)"},
}
HELPER = "def drawn(n_q, n_k):\n    return np.tri(n_q, n_k, n_k - n_q, dtype=bool)"


def shown_below(words):
    """Return the output that the page shows below these words."""
    return PAGE.partition(f"{words}\n\n```text\n")[2].partition("```")[0]


def notebook(answers):
    """Return chapter 4 with these answers in place of the stubs."""
    found = nbformat.read(BOOK / "04_masks.ipynb", as_version=4)
    stubs = [c for c in found.cells if "exercise" in c.metadata.get("tags", ())]
    for number, source in answers.items():
        stubs[int(number[2:]) - 1].source = source or stubs[int(number[2:]) - 1].source
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return what a class submits."""
    folder = tmp_path_factory.mktemp("submissions")
    for name, answers in CLASS.items():
        (folder / name).mkdir()
        nbformat.write(notebook(RIGHT | answers), folder / name / "04_masks.ipynb")
    (folder / "eli.ipynb").write_text("See my e-mail.")
    dana = notebook(
        RIGHT | CLASS["dana"]
    )  # with a helper below its use, edited checks,
    for at, cell in reversed([*enumerate(dana.cells)]):  # and no ids that are ours
        if "exercise-check" in cell.metadata.get("tags", ()):
            cell.source = "print('passed')"
        if "drawn(" in cell.source:
            dana.cells.insert(at, nbformat.v4.new_code_cell(HELPER))
        cell.id, cell.metadata = nbformat.v4.new_code_cell().id, {}
    nbformat.write(dana, folder / "dana" / "04_masks.ipynb")
    return folder


def test_a_class_gets_the_verdicts_that_the_page_shows(folder, capsys):
    """What the chapter asks besides, students have not attempted."""
    assert shlex.split(COMMANDS["grade"]) == ["submissions/", "--csv", "marks.csv"]
    table = folder.parent / "marks.csv"
    grade.main([f"{folder}/", "--csv", str(table), "--seconds", "10"])
    printed = capsys.readouterr().out.splitlines()
    shown = shown_below("five invented students:").partition("homework\n")[2]
    assert {*shown.splitlines()} - {""} <= {*printed}
    with open(table, encoding="utf-8", newline="") as file:
        verdicts = {
            (x["student"], x["exercise"]): x["verdict"] for x in csv.DictReader(file)
        }
    tables = shown_below("five invented students:").partition("homework\n")[0]
    _, head, *rows = tables.splitlines()
    numbers = head.split()[1:-1]
    for line in rows[: len(CLASS)]:
        student, *shown = line.split()
        found = [verdicts[student, number] for number in numbers]
        assert [x.replace(grade.NOT, "-") for x in found] == shown[: len(numbers)]
    said = [line for line in rows[len(CLASS) :] if line]
    assert len(said) == 6 and {*said} <= {*printed}


@pytest.mark.parametrize(
    "source",
    [
        "while True:\n    try:\n        while True: pass\n    except: pass",
        "sum(range(10**18))",  # in C, where Python sees no signal
        "import time; time.sleep(2.99)",  # it ends when the limit does
    ],
)
def test_no_cell_holds_up_the_grading(source):
    cell, after = map(nbformat.v4.new_code_cell, (source, "print(1)"))
    assert {*grade.executed([cell, after], 3)} <= {cell.id}
    assert after.outputs[0].text == "1\n"


def test_one_answer_is_enough_to_tell_the_chapter():
    """Cells of chapter 4 itself define `scores`, which exercise 1.1 asks for."""
    only, none = (notebook(x).cells for x in ({"4.2": RIGHT["4.2"]}, {}))
    assert [*map(grade.chapter_of, (only, none))] == ["04_masks", ""]


def test_a_stretch_exercise_makes_up_for_one_that_is_lost():
    def row(level, verdict):
        return {"level": level, "verdict": verdict}

    lost = [row("Warm-up", "passed"), row("Standard", "slip"), row("Standard", "wrong")]
    assert grade.points_of(lost) == (1, 3)
    assert grade.points_of([*lost, row("Stretch", "passed")]) == (2, 3)
    assert grade.points_of([row("Warm-up", "passed"), row("Stretch", "passed")]) == (
        1,
        1,
    )


def test_four_fifths_of_the_points_of_all_chapters_are_the_full_mark():
    def rows(chapter, student, *verdicts, file=""):
        row = {"chapter": chapter, "student": student, "file": file}
        row["level"] = "Standard"
        return [
            row | {"exercise": k, "verdict": verdict}
            for k, verdict in enumerate(verdicts)
        ]

    many = [
        *rows("04_masks", "ada", "passed", "passed", "wrong"),
        *rows("05_attention", "ada", "passed", "passed"),
        *rows("04_masks", "ben", "passed", "wrong", "wrong"),  # and no chapter 5
        *rows("04_masks", "ben", "wrong", "wrong", "wrong", file="first try"),
    ]
    assert grade.homework_of(many) == [
        f"  {'ada':<24}  4 of 5  100%",
        f"  {'ben':<24}  1 of 5  25%",
    ]


def test_a_mistake_in_an_answer_that_another_one_calls_counts_once():
    first, second = (
        grade.Task(number, "Standard", "", f"check.{name}({name})")
        for number, name in (("5.1", "attend"), ("5.3", "self_attention"))
    )
    code = nbformat.v4.new_code_cell
    answers = {
        first: code("def attend(Q, K, V):\n    ..."),
        second: code("def self_attention(X):\n    return attend(X, X, X)"),
    }
    found = {first: ("slip", "no scale"), second: ("slip", "no scale")}
    assert grade.once(first, answers, found) == ("slip", "no scale")
    verdict, text = grade.once(second, answers, found)
    assert verdict == grade.FOLLOWS and "see 5.1" in text
    row = {"level": "Standard"}
    assert grade.points_of([row | {"verdict": v} for v in ("slip", verdict)]) == (0, 1)


def test_every_exercise_can_be_graded():
    tasks = [task for _, some in grade.chapters().values() for task in some]
    assert len({task.number for task in tasks}) == len(tasks) > 45
    for task in tasks:
        assert re.search(rf"^(def )?{task.name} ?[(=]", task.stub, re.M), task.number
        assert task.level in ("Warm-up", "Standard", "Stretch")


LAWS = """
import numpy as np
def known_weights(attend):
    for d in (2, 8, 128):
        Q, K = np.zeros((1, d)), np.zeros((2, d))
        Q[0, 0], K[0, 0] = d**0.5, np.log(3)
        if not np.allclose(attend(Q, K, np.array([[1.0], [0.0]])), 3 / 4, atol=1e-5):
            return False
    return True
"""
FILES = {
    "cy_dan": f"{LAWS}my_laws = [known_weights]",
    "eve_finn": "my_laws = [lambda attend: False]",
    "gus_hal": "import numpy as np\nmy_laws = [lambda attend: np.exp(1)]",
}


def test_each_pair_gets_the_line_that_the_page_shows(tmp_path, capsys):
    for name, source in FILES.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    first, *options = shlex.split(COMMANDS["trial"])
    assert first == "laws/"
    trial.main([str(tmp_path), *options])
    assert capsys.readouterr().out == shown_below("three invented pairs:")


@pytest.mark.parametrize("text", ["no_scale", "no_scale:depth:4", "right:width:4"])
def test_a_hidden_version_needs_a_member_a_size_and_a_limit(text):
    with pytest.raises(argparse.ArgumentTypeError, match="NAME:SIZE:LIMIT"):
        trial.hidden(text)


def test_the_page_says_how_many_wrong_versions_there_are():
    wrong = [subject for subject in subjects() if not subject.right]
    assert f"from the {len(wrong)} wrong versions" in " ".join(PAGE.split())
