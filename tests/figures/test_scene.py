"""A drawing is a list of marks, and SVG and PNG show the same marks."""

import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from PIL import Image

from figures.scene import Scene
from mha.plot import Picture
from mha.plot.palette import LIGHT
from mha.plot.scene import corners

SAYS = "A drawing."
NAMESPACE = "{http://www.w3.org/2000/svg}"


def elements(scene, kind):
    return [*ET.fromstring(scene.svg(SAYS)).iter(NAMESPACE + kind)]


def pixel(scene, x, y):
    """Return the colour on paper at a point of the sheet."""
    with Image.open(io.BytesIO(Picture(scene, SAYS).png)) as image:
        size = image.width / scene.width
        return image.convert("RGB").getpixel((round(x * size), round(y * size)))


def rgb(role):
    return tuple(int(LIGHT[role][k : k + 2], 16) for k in (1, 3, 5))


# ------------------------------------------------------------------ by hand


def test_a_box_is_written_as_a_path_with_relative_steps():
    scene = Scene(20, 10)
    scene.box(2, 3, 7, 5, radius=0, fill="query")
    assert elements(scene, "path")[-1].get("d") == "M2 3h7v5h-7z"


def test_round_corners_are_curves_no_longer_than_half_a_side():
    scene = Scene(20, 10)
    scene.box(0, 0, 4, 10, radius=3, stroke="ink")
    (mark,) = scene.marks
    letters = [letter for letter, _ in mark.commands()]
    assert letters == ["M", "Q", "L", "Q", "L", "Q", "L", "Q", "Z"]
    assert next(mark.commands())[1] == [(0, 2 + 1)]  # 3 down, as 10 has room for it
    assert [*mark.commands()][1][1][1] == (2, 0)  # and 2 across, as 4 has not


def test_cells_are_measured_in_the_steps_of_a_grid():
    scene = Scene(40, 40)
    scene.shape(corners(2, 1, 3, 1), fill="weight", closed=True, grid=(10, 20, 5))
    (path,) = elements(scene, "path")
    assert path.get("d") == "M2 1h3v1h-3z"
    assert path.get("transform") == "translate(10 20) scale(5)"
    assert pixel(scene, 22, 27) == rgb("weight")
    assert pixel(scene, 18, 27) == pixel(scene, 22, 23) == (255, 255, 255)


def test_twin_lines_run_side_by_side_around_a_corner():
    scene = Scene(40, 40)
    scene.arrow([(0, 10), (20, 10), (20, 30)], twin=4, tip=False)
    left, right = (mark.lines[0] for mark in scene.marks)
    assert left == [(0, 8), (22, 8), (22, 30)]
    assert right == [(0, 12), (18, 12), (18, 30)]


def test_an_arrow_ends_at_its_last_point():
    scene = Scene(40, 40)
    scene.arrow([(0, 10), (30, 10)], "key")
    assert scene.marks[-1].lines[0][0] == (30, 10)
    assert pixel(scene, 28, 10) == rgb("key")


@pytest.mark.parametrize(
    ("words", "letters"),
    [("*Kᵀ* keys", "KT keys"), ("W_Q", "WQ"), ("n × d_k", "n × dk")],
)
def test_letters_and_subscripts_are_set_as_such(words, letters):
    scene = Scene(90, 20)
    scene.text(5, 15, words, math=True)
    (text,) = elements(scene, "text")
    assert "".join(text.itertext()) == letters
    shifts = [float(t.get("dy", "0").removesuffix("em")) for t in text]
    assert any(shifts)
    assert Picture(scene, SAYS).png  # matplotlib reads it, too


def test_without_math_words_are_what_they_are():
    scene = Scene(90, 20)
    scene.text(5, 15, "my_word * $5 <b>")
    (text,) = elements(scene, "text")
    assert text.text == "my_word * $5 <b>"
    assert Picture(scene, SAYS).png


def test_no_words_make_no_mark():
    scene = Scene(9, 9)
    scene.text(1, 1, "")
    scene.shape(stroke="ink")
    assert scene.marks == []


# ------------------------------------------------------------------ laws


def draw_all(scene):
    scene.box(1, 1, 8, 8, fill="value", stroke="key")
    scene.text(3, 8, "word", role="output", bold=True)
    scene.cell(10, 1, 8, 8, "0.9", "weight", 0.9)


@pytest.mark.parametrize("lit", [None, {"a"}, {"a", "c"}])
def test_a_lit_part_has_its_roles(lit):
    scene = Scene(20, 10, lit)
    scene.part("a", "b")
    draw_all(scene)
    box, word, cell, number = scene.marks
    assert (box.fill, box.stroke, word.role, word.bold) == (
        "value",
        "key",
        "output",
        True,
    )
    assert (cell.fill, cell.alpha, number.role) == ("weight", 0.9, "on2")


def test_a_part_at_rest_is_pale_and_has_no_number():
    scene = Scene(20, 10, {"c"})
    scene.part("a", "b")
    draw_all(scene)
    box, word, cell = scene.marks
    assert (box.fill, box.stroke, word.role, word.bold) == (
        "rest",
        "rest",
        "muted",
        False,
    )
    assert (cell.fill, cell.alpha) == ("rest", 0.16)


def test_a_given_part_has_numbers_and_no_colour():
    scene = Scene(20, 10, {"c"}, given={"b"})
    scene.part("a", "b")
    draw_all(scene)
    box, word, cell, number = scene.marks
    assert (box.stroke, word.role, cell.fill, number.words) == (
        "muted", "muted", "rest", "0.9",
    )  # fmt: skip


def test_the_sheet_is_the_same_on_the_page_and_on_paper():
    scene = Scene(90, 30)
    scene.box(60, 10, 20, 10, radius=0, fill="query")
    picture = Picture(scene, SAYS)
    root = ET.fromstring(picture.svg)
    assert root.get("viewBox") == "0 0 90 30" and root.get("aria-label") == SAYS
    with Image.open(io.BytesIO(picture.png)) as image:
        assert image.width / image.height == pytest.approx(3, rel=0.02)
    assert pixel(scene, 70, 15) == rgb("query")
    assert pixel(scene, 50, 15) == (255, 255, 255)


def test_opacity_mixes_with_the_paper():
    scene = Scene(90, 30)
    scene.box(0, 0, 90, 30, radius=0, fill="weight", alpha=0.25)
    mixed = 0.25 * np.array(rgb("weight")) + 0.75 * 255
    np.testing.assert_allclose(pixel(scene, 45, 15), mixed, atol=1)
