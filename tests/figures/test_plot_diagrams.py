"""Diagrams: every part is there, in its order and its colour."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")

from figures.diagrams import FILLS, PLUS

SAYS = "One sentence with the finding."
POST = ["(", "attention", "+", "layer norm", "(", "feed-forward", "+", "layer norm"]
PRE = ["(", "layer norm", "attention", "+", "(", "layer norm", "feed-forward", "+"]


def block(*index, shape=(2, 3, 5)):
    made = np.zeros(shape, dtype=bool)
    made[index] = True
    return made


def texts(picture):
    """Return [(text, x, y)] of all that is written, in the order of drawing."""
    found = ET.fromstring(picture.svg).iter("{http://www.w3.org/2000/svg}text")
    return [(t.text, float(t.get("x", 0)), float(t.get("y", 0))) for t in found]


def filled(picture, colour):
    return len(re.findall(rf"fill: {colour}", picture.svg, re.I))


# By hand


def test_the_steps_of_a_path_stand_from_the_bottom_to_the_top():
    written = texts(figures.paths({"post": POST}, alt=SAYS, names=("in", "out")))
    upwards = [text for text, _, y in sorted(written, key=lambda t: -t[2])]
    boxes = [step for step in POST if step != "("]
    assert upwards == ["post", "in", *boxes, "out"]


def test_columns_stand_side_by_side():
    written = texts(figures.paths({"post": POST, "pre": PRE}, alt=SAYS))
    x = {text: x for text, x, _ in written}
    assert x["post"] < x["pre"]
    assert sum(text == "layer norm" for text, *_ in written) == 4


def test_a_row_a_slab_and_a_column_show_as_many_cells_as_can_be_seen():
    """5 cells of the row and 1 at the side; 3 in front and 2 on top; 3 and 1."""
    for group, seen in (
        (block(0, 1), 5 + 1),
        (block(slice(None), slice(None), 2), 3 + 2),
        (block(0, slice(None), 2), 3 + 1),
        (block(1, 1, 1), 0),
    ):
        assert filled(figures.blocks({"group": group}, alt=SAYS), FILLS[0]) == seen


# Laws


def test_the_same_word_has_the_same_colour():
    picture = figures.paths({"post": POST, "pre": PRE}, alt=SAYS)
    assert [filled(picture, colour) for colour in FILLS[:3]] == [2, 4, 2]
    assert filled(picture, PLUS) == 4


def test_more_words_than_colours_are_drawn_all_the_same():
    steps = [f"part {k}" for k in range(7)]
    written = texts(figures.paths({"long": steps}, alt=SAYS))
    assert set(steps) <= {text for text, *_ in written}


def test_the_axes_of_a_block_carry_their_names():
    picture = figures.blocks({"one": block(0, 1)}, alt=SAYS, axes=("a", "b", "c"))
    assert {text for text, *_ in texts(picture)} == {"one", "a", "b", "c"}


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.paths({"post": POST}, alt=SAYS),
        lambda: figures.blocks({"one": block(0, 1)}, alt=SAYS),
    ],
)
def test_a_diagram_follows_the_theme_and_is_the_same_on_every_run(draw):
    picture = draw()
    assert picture.svg == draw().svg and "currentColor" in picture.svg
    assert "#010203" not in picture.svg and repr(picture) == f"Picture: {SAYS}"


# Refusals


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: figures.paths({}, alt=SAYS), "at least one way"),
        (lambda: figures.paths({"a": ["x", "+"]}, alt=SAYS), "a: .* must take turns"),
        (lambda: figures.paths({"a": ["(", "(", "+"]}, alt=SAYS), "must take turns"),
        (lambda: figures.paths({"a": ["(", "x"]}, alt=SAYS), "never joins"),
        (lambda: figures.paths({"a": ["x"]}, alt=" "), "alt must say"),
        (lambda: figures.blocks({}, alt=SAYS), "at least one block"),
        (lambda: figures.blocks({"a": block(0)[0]}, alt=SAYS), r"shape \(3, 5\)"),
        (lambda: figures.blocks({"a": 1.0 * block(0)}, alt=SAYS), "got float64"),
        (lambda: figures.blocks({"a": block(0)}, alt=""), "alt must say"),
    ],
)
def test_a_refusal_says_what_is_wrong(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
