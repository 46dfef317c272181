"""Nobody can hold more in mind: the lines of code have limits that only fall."""

import re

from tests.book.load import ROOT, load


def test_no_area_grows_beyond_what_it_may_have():
    lines = load(ROOT / ".ci" / "lines")
    counted = lines.counted()
    passed = {area for area in counted if counted[area] > lines.allowed(area)}
    assert not passed, lines.table(counted)


def test_the_table_of_lines_in_contributing_is_the_one_that_the_command_prints():
    lines = load(ROOT / ".ci" / "lines")
    page = lines.PAGE.read_text(encoding="utf-8").replace(",", "")
    shown = dict(re.findall(r"^\| (\w+) \| (\d+) \|", page, re.MULTILINE))
    for area, number in lines.counted().items():
        # A change of a few lines need not touch the page.
        assert abs(int(shown[area]) - number) <= 250, "run .ci/lines --write"
