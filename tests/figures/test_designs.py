"""The figures of chapter 17: rotated arrows, and which design breaks which law."""

import numpy as np
import pytest

import figures
from figures.exceptions import broken
from figures.turns import rotated

pytest.importorskip("matplotlib")

WORDS, SAYS = ("it", "dog"), "The angle between the arrows stays the same."
TABLE = {
    "one": {"x": "satisfied", "y": "broken on purpose", "z": "not asked"},
    "two": {"x": "broken on purpose", "y": "broken on purpose", "z": "satisfied"},
}


def test_a_quarter_turn_is_counter_clockwise_and_keeps_the_length():
    turned = rotated(np.array([2.0, 1.0]), np.pi / 2)
    np.testing.assert_allclose(turned, [-1, 2], atol=1e-12)


def test_every_panel_shows_positions_and_one_offset_has_one_score():
    places = [(2, 0), (5, 3), (12, 10)]
    picture = figures.turns([2, 1], [2, 1], places, words=WORDS, alt=SAYS)
    for i, j in places:
        assert f"it at {i}" in picture.svg and f"dog at {j}" in picture.svg
    assert picture.svg.count(f"score {5 * np.cos(2):.2f}".replace("-", "−")) == 3


@pytest.mark.parametrize(
    ("query", "places", "alt"),
    [([1, 2, 3], [(0, 0)], SAYS), ([1, 2], [], SAYS), ([1, 2], [(0, 0)], " ")],
)
def test_what_cannot_be_drawn_is_refused(query, places, alt):
    with pytest.raises(ValueError, match=r"numbers|alt"):
        figures.turns(query, [1, 2], places, words=WORDS, alt=alt)


def test_only_laws_that_a_design_breaks_are_listed_the_most_broken_first():
    assert broken(TABLE) == ["y", "x"]
    svg = figures.exceptions(TABLE, alt=SAYS).svg
    for word in ("one", "two", "broken on purpose", "satisfied"):
        assert word in svg
    assert "not asked" not in svg
    silent = TABLE | {"three": dict.fromkeys("xyz", "not asked")}
    assert "not asked" in figures.exceptions(silent, alt=SAYS).svg


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({}, "no design"),
        ({"one": {"x": "satisfied"}}, "no design"),
        ({"one": {"x": "perhaps", "y": "broken on purpose"}}, "perhaps"),
    ],
)
def test_a_table_without_exceptions_or_with_other_words_is_refused(table, says):
    with pytest.raises(ValueError, match=says):
        figures.exceptions(table, alt=SAYS)
