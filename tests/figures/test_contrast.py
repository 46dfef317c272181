"""Every word of a drawing can be read on what lies behind it, in both themes.

The ratio of 4.5 is what accessibility guidelines ask of text. No browser is needed: the
marks of a drawing are laid over each other here.
"""

import re
import sys
from pathlib import Path as File
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.path import Path

from figures.house import PARTS, TABLES, house
from figures.scene import Scene
from mha import plot
from mha.plot import palette
from mha.plot.marks import Shape, Text

DARK = {
    "query": "#62B4FF", "key": "#FFA552", "value": "#63E6BE", "weight": "#DCDAFF",
    "output": "#E08BD6", "wrong": "#FF8098",
    "amber": "#E0B454", "olive": "#B5CC6A",
    "ink": "#CED6DD", "muted": "#98A2AE", "rest": "#48566B", "paper": "#14181E",
    "on0": "#FFFFFF", "on1": "#000000", "on2": "#000000",
}  # fmt: skip
THEMES = {"light": palette.LIGHT, "dark": DARK}
CSS = File(plot.__file__).parents[2] / "book" / "_static" / "figures.css"
ENOUGH = 4.5
in_both_themes = pytest.mark.parametrize("theme", THEMES)


def scene_of(draw, *args, **options):
    """Return the drawing that a function would make a picture of."""
    module = sys.modules[draw.__module__]
    with mock.patch.object(module, "Picture", lambda scene, alt: scene):
        return draw(*args, **options)


def map_of(cells, **options):
    return scene_of(plot.heatmaps, [(np.array(cells), "")], alt="x.", **options)


def rgb(colour):
    """Return the three parts of a colour such as #25215F, from 0 to 1."""
    return np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255


def luminance(colour):
    linear = np.where(
        colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4
    )
    return linear @ (0.2126, 0.7152, 0.0722)


def contrast(one, other):
    """Return the ratio of luminances, from 1 to 21, as WCAG 2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def middle(text):
    """Return about the middle of a text; letters are half as wide as high."""
    wide = 0.5 * text.size * len(re.sub(r"[*_]", "", text.words))
    along = {"start": wide / 2, "middle": 0, "end": -wide / 2}[text.anchor]
    turn = np.radians(text.turn)
    right, down = np.array([np.cos(turn), np.sin(turn)]), [-np.sin(turn), np.cos(turn)]
    return (text.x, text.y) + along * right - 0.36 * text.size * np.array(down)


def texts(scene):
    """Return each text with the fills behind it, as (role, opacity)."""
    found = [(k, m, []) for k, m in enumerate(scene.marks) if isinstance(m, Text)]
    places = np.array([middle(text) for _, text, _ in found])
    for above, mark in enumerate(scene.marks):
        if isinstance(mark, Shape) and mark.fill and not mark.grid:
            inside = np.any([Path(p).contains_points(places) for p in mark.lines], 0)
            for (k, _, fills), covered in zip(found, inside, strict=True):
                if covered and k > above:
                    fills.append((mark.fill, mark.alpha))
    return [(text, tuple(fills)) for _, text, fills in found]


def behind(fills, colours):
    """Return the colour that fills make on the page."""
    seen = rgb(colours["paper"])
    for fill, alpha in fills:
        seen = alpha * rgb(colours[fill]) + (1 - alpha) * seen
    return seen


def too_faint(scene, theme):
    colours = THEMES[theme]
    kinds = {(text.role, fills): text.words for text, fills in texts(scene)}
    assert kinds
    return [
        (words, role, fills)
        for (role, fills), words in kinds.items()
        if contrast(rgb(colours[role]), behind(fills, colours)) < ENOUGH
    ]


# ------------------------------------------------------------------ by hand


def test_black_on_white_has_a_contrast_of_21():
    assert contrast(rgb("#000000"), rgb("#FFFFFF")) == pytest.approx(21)


def test_fills_are_laid_over_each_other_in_their_order():
    colours = {"paper": "#FFFFFF", "a": "#000000", "b": "#FF0000"}
    np.testing.assert_allclose(behind([("a", 0.5)], colours), [0.5] * 3)
    np.testing.assert_allclose(behind([("a", 0.5), ("b", 1)], colours), [1, 0, 0])


def test_a_number_is_found_on_its_cell():
    scene = map_of([[0.75]])
    found = {text.words: fills for text, fills in texts(scene)}
    assert found["0.75"] == (("weight", 0.75),) and found["key"] == ()


def test_a_faint_word_is_found():
    scene = Scene(9, 9)
    scene.text(2, 7, "pale", role="rest")
    assert [words for words, *_ in too_faint(scene, "light")] == ["pale"]


# ------------------------------------------------------------------ laws


@in_both_themes
@pytest.mark.parametrize("layout", ["wide", "narrow"])
@pytest.mark.parametrize("slug", PARTS)
def test_every_word_of_the_house_can_be_read(slug, layout, theme):
    assert too_faint(scene_of(house, slug, layout), theme) == []


@in_both_themes
@pytest.mark.parametrize("part", sorted(set().union(*PARTS.values()) - {"all"}))
def test_every_word_can_be_read_when_one_part_is_lit(part, theme):
    assert too_faint(scene_of(house, {part}, is_causal=True), theme) == []


@in_both_themes
@pytest.mark.parametrize("kind", ["weights", "scores"])
def test_numbers_can_be_read_on_the_whole_ramp(kind, theme):
    ramp = np.linspace(0, 1, 37 * 36).reshape(37, 6, 6)
    for cells in ramp if kind == "weights" else -3 * ramp:
        assert too_faint(map_of(cells, kind=kind), theme) == []


@in_both_themes
@pytest.mark.parametrize("name", ["query", "key", "value", "weight", "output", "wrong"])
def test_roles_can_be_read_on_the_page_and_on_a_card(name, theme):
    card = {"light": "#F5F6F8", "dark": "#1B2129"}[theme]
    for page in (THEMES[theme]["paper"], card):
        assert contrast(rgb(THEMES[theme][name]), rgb(page)) >= ENOUGH


@in_both_themes
def test_the_page_has_the_colours_of_the_palette(theme):
    """The style sheet of the book and, by night, its settings repeat them."""
    if theme == "light":
        text = CSS.read_text(encoding="utf-8").partition("body {")[2]
        said = dict(re.findall(r"--mha-(\w+): (#\w{6});", text))
    else:
        text = (CSS.parents[2] / "_config.yml").read_text(encoding="utf-8")
        said = dict(re.findall(r'mha-(\w+): "(#\w{6})"', text))
    assert said == THEMES[theme]


def test_both_layouts_show_the_same_matrices():
    wide, narrow = (TABLES[layout]["at"] for layout in ("wide", "narrow"))
    assert list(wide) == list(narrow) == list(TABLES["matrices"])
