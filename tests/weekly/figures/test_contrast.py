"""Every word of every drawing can be read in both themes, on whatever lies behind."""

import re
import sys
from pathlib import Path as File
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.path import Path

import figures
from figures.scene import LIGHT, Shape, Text
from figures.ten import ten

house = sys.modules["figures.house"]
CSS = File(figures.__file__).parents[1] / "_static" / "figures.css"
ENOUGH = 4.5


def colours_of_the_page(theme):
    """Return the colours of the roles that the style sheet names."""
    block = re.findall(r"--mha-(\w+): (#\w{6});", CSS.read_text(encoding="utf-8"))
    halves = block[: len(block) // 2], block[len(block) // 2 :]
    return dict(halves[theme == "dark"])


DARK = colours_of_the_page("dark")
THEMES = {"light": LIGHT, "dark": DARK}
rng = np.random.default_rng(0)
TABLE = rng.normal(size=(2, 3, 2))
DRAWINGS = {
    **{f"house {slug}": lambda s=slug: figures.house(s) for slug in house.PARTS},
    "bugs": figures.bugs,
    "lanes": figures.lanes,
    "one head": figures.one_head,
    "batch": lambda: figures.batch([["dog", "it"], ["food"]], alt="x"),
    "weights": lambda: figures.to_weights([3, 2, 0, 1], "abcd"),
    "fused": lambda: figures.fused(
        TABLE[0], TABLE[:, :2].round(1), "abc", follow=(0, 1)
    ),
    "board": lambda: figures.board(
        TABLE, rng.normal(size=(4, 3)), "abc", "xyz", names=["pq", "rs"], row=1, alt="x"
    ),
    "paths": lambda: figures.paths({"a": ["(", "attention", "+"]}, alt="x"),
}


def scene_of(draw):
    """Return the drawing that a function would make a picture of."""
    taken = []

    def take(scene, alt):
        taken.append(scene)

    modules = "house", "layers", "ten", "worked"
    with mock.patch.multiple("figures.tables", picture=take):
        patches = [mock.patch.object(sys.modules[f"figures.{m}"], "picture", take)
                   for m in modules]  # fmt: skip
        for patch in patches:
            patch.start()
        draw()
        for patch in patches:
            patch.stop()
    return taken[0]


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
        if isinstance(mark, Shape) and mark.fill:
            inside = np.any([Path(p).contains_points(places) for p in mark.lines], 0)
            for (k, _, fills), covered in zip(found, inside, strict=True):
                if covered and k > above:
                    fills.append((mark.fill, mark.alpha))
    return [(text, tuple(fills)) for _, text, fills in found]


def too_faint(scene, theme):
    """Return what cannot be read."""
    colours, faint = THEMES[theme], []
    kinds = {(text.role, fills): text.words for text, fills in texts(scene)}
    assert kinds
    for (role, fills), words in kinds.items():
        seen = rgb(colours["paper"])
        for fill, alpha in fills:
            seen = alpha * rgb(colours[fill]) + (1 - alpha) * seen
        if contrast(rgb(colours[role]), seen) < ENOUGH:
            faint.append((words, role, fills))
    return faint


def test_black_on_white_has_a_contrast_of_21():
    assert contrast(rgb("#000000"), rgb("#FFFFFF")) == pytest.approx(21)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", DRAWINGS)
def test_every_word_of_a_drawing_can_be_read(name, theme):
    assert too_faint(scene_of(DRAWINGS[name]), theme) == []


@pytest.mark.parametrize("theme", THEMES)
def test_every_word_on_a_phone_can_be_read(theme):
    for slug in house.PARTS:
        assert too_faint(house.drawing(slug, "narrow")[0], theme) == []
    assert too_faint(ten("narrow"), theme) == []


def test_the_page_has_the_colours_of_the_palette():
    named = {role: colour.upper() for role, colour in LIGHT.items()}
    assert colours_of_the_page("light") == {
        role: named[role] for role in colours_of_the_page("light")
    }
    assert set(DARK) == set(colours_of_the_page("light"))
