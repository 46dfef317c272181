"""Tables of yes and no: marks that can be seen, and read by those who cannot."""

import numpy as np
import pytest

import figures
from figures.marks import _sorted

SAYS = "Each law kills one bug."
TABLE = np.array([[False, True, False], [True, True, False]])


def test_a_table_shows_all_names_and_what_the_marks_mean():
    picture = figures.marks(
        TABLE,
        ["one bug", "two bugs"],
        ["a", "bb", "ccc"],
        alt=SAYS,
        xlabel="law",
        ylabel="version",
        names=("convicts", "lets go"),
    )
    words = ["one bug", "two bugs", "bb", "ccc", "law", "version", "convicts"]
    for word in [*words, "lets go", SAYS]:
        assert word in picture.svg


def test_sorting_puts_busy_columns_first_and_moves_names_along():
    table, rows, cols = _sorted(TABLE, ["r0", "r1"], ["c0", "c1", "c2"])
    assert cols == ["c1", "c0", "c2"] and rows == ["r1", "r0"]
    assert table.tolist() == [[True, True, False], [True, False, False]]


@pytest.mark.parametrize("table", [np.ones((2, 2), bool), np.zeros((2, 2), bool)])
def test_a_table_of_yes_alone_or_no_alone_can_be_drawn(table):
    assert repr(figures.marks(table, alt=SAYS)) == f"Picture: {SAYS}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": np.eye(2)}, "table must be boolean, got float64"),
        ({"table": np.array([True])}, "table must have shape"),
        ({"rows": ["a"]}, "rows"),
        ({"cols": ["a"]}, "cols"),
        ({"alt": ""}, "alt must say"),
    ],
)
def test_misfits_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        figures.marks(**{"table": TABLE, "alt": SAYS} | options)
