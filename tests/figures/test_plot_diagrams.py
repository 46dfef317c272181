"""Diagrams: every part is there, in its order and its colour."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")

from mha.plot.marks import Shape, Text
from tests.figures.test_contrast import scene_of

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
    return [
        ("".join(t.itertext()), float(t.get("x")), float(t.get("y"))) for t in found
    ]


def filled(scene, role):
    """Return how many areas have a role."""
    return sum(isinstance(m, Shape) and m.fill == role for m in scene.marks)


# By hand


def test_the_steps_of_a_path_stand_from_the_bottom_to_the_top():
    written = texts(figures.paths({"post": POST}, alt=SAYS, names=("in", "out")))
    upwards = [text for text, _, y in sorted(written, key=lambda t: -t[2])]
    boxes = [step for step in POST if step not in "(+"]
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
        scene = scene_of(figures.blocks, {"group": group}, alt=SAYS)
        assert filled(scene, "ink") == seen


# Laws


def test_attention_has_the_colour_of_its_output_and_the_rest_has_ink():
    scene = scene_of(figures.paths, {"post": POST, "pre": PRE}, alt=SAYS)
    roles = {}
    for mark in scene.marks:
        if isinstance(mark, Text):
            roles.setdefault(mark.words, set()).add(mark.role)
    assert roles["attention"] == {"output"}
    assert roles["layer norm"] == roles["feed-forward"] == {"ink"}
    assert filled(scene, "output") == 2


def test_a_way_may_have_many_steps():
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
    assert picture.svg == draw().svg and "var(--mha-ink" in picture.svg
    assert repr(picture) == f"Picture: {SAYS}"


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


# A padded batch

SENTENCES = [["a", "b", "c"], ["d"], ["e", "f"]]


def in_rows(picture):
    """Return the texts of each line, from left to right."""
    rows = {}
    for text, x, y in texts(picture):
        rows.setdefault(round(y), []).append((x, text))
    return [[text for _, text in sorted(row)] for _, row in sorted(rows.items())]


def test_a_batch_is_filled_up_with_padding_behind_the_words():
    rows = [row for row in in_rows(figures.batch(SENTENCES, alt=SAYS)) if len(row) == 3]
    assert rows == [
        ["a", "b", "c"], ["d", "pad", "pad"], ["e", "f", "pad"],
        ["True", "True", "True"], ["True", "False", "False"], ["True", "True", "False"],
    ]  # fmt: skip


def test_padding_in_front_moves_the_words_to_the_end():
    drawn = figures.batch(SENTENCES, alt=SAYS, in_front=True)
    rows = [row for row in in_rows(drawn) if len(row) == 3]
    assert rows[1:3] == [["pad", "pad", "d"], ["pad", "e", "f"]]
    assert rows[4] == ["False", "False", "True"]


@pytest.mark.parametrize("sentences", [[], [[], []]])
def test_a_batch_without_a_word_is_refused(sentences):
    with pytest.raises(ValueError, match="at least one word"):
        figures.batch(sentences, alt=SAYS)
