"""Nobody can hold more in mind: the lines of code have budgets that only fall."""

import re

from tests.book.load import ROOT, load


def test_no_area_passes_its_budget():
    lines = load(ROOT / ".ci" / "lines")
    counted = lines.counted()
    passed = {area for area in counted if counted[area] > lines.BUDGETS[area]}
    assert not passed, lines.table(counted)


def test_the_table_of_lines_in_contributing_is_the_one_that_the_command_prints():
    lines = load(ROOT / ".ci" / "lines")
    page = lines.PAGE.read_text(encoding="utf-8").replace(",", "")
    shown = dict(re.findall(r"^\| (\w+) \| (\d+) \|", page, re.MULTILINE))
    for area, number in lines.counted().items():
        # A change of a few lines need not touch the page.
        assert abs(int(shown[area]) - number) <= 250, "run .ci/lines --write"
