"""A class and its laws, as the page for teachers shows, and the limits of our own."""

import pytest

import trial
from exercises.laws import subjects
from mha import laws
from tests.book import invented
from tests.book.load import ROOT
from tests.book.test_grading import graded
from tests.book.test_trial import LAWS, LINES, tried

FIVE = ["passed"] * 5
VERDICTS = {
    "01_all_right": FIVE,
    "02_untouched": ["not attempted"] * 5,
    "03_endless_loop": ["passed", "passed", "stopped", "passed", "passed"],
    "04_crashes": ["passed", "error", "passed", "passed", "error"],
    "05_known_slips": ["slip", "slip", "not attempted", "not attempted", "slip"],
    "06_edited_checks": ["slip"] + ["not attempted"] * 4,
    "07_uses_mha": ["passed", "passed", "passed", "refused", "passed"],
    "08_other_name": FIVE,
    "10_half_done": ["passed", "passed"] + ["not attempted"] * 3,
}


def test_a_class_gets_its_verdicts_as_the_page_for_teachers_shows(tmp_path, capsys):
    invented.submit(tmp_path / "class")
    rows, printed = graded(tmp_path / "class", capsys, "--chapter", "masks")
    for student, verdicts in VERDICTS.items():
        own = [row["verdict"] for row in rows if row["student"] == student]
        assert own == verdicts, student
    page = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
    shown = page.partition("ten invented students:\n\n```text\n")[2].partition("```")[0]
    assert len(shown.splitlines()) > 15
    assert set(shown.splitlines()) <= set(printed.splitlines())


def test_each_pair_gets_its_line(tmp_path, capsys):
    printed = tried(tmp_path, LAWS, capsys)
    assert dict(line.split("  ", 1) for line in printed) == LINES


@pytest.mark.parametrize(
    ("limit", "most"), [("batch:20", 0), ("width:64", 0), ("length:600", 3)]
)
def test_the_laws_of_the_package_detect_little_beyond_the_limits_of_the_page(
    limit, most
):
    wrong = [subject.name for subject in subjects() if not subject.right]
    hidden = [trial.hidden(f"{name}:{limit}") for name in wrong]
    assert len(wrong) == 21
    assert len([each for each in hidden if laws.check(each).broken]) == most
