"""The strip at the end of a core: the parts of a layer, those known so far lit.

The strip is a list of links. Each part has a small drawing in SVG, made from the
numbers of the four words, its name, and the number of the chapter that explains it.
Text and columns are laid out by the page, so that the strip is one row on a wide column
and two on a phone, and its letters keep their size.
"""

from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from typing import NamedTuple

import numpy as np

from figures.live_house import numbers as numbers_of_the_house
from figures.scene import Scene, corners

THREE = ("query", "key", "value")
WIDTH, HEIGHT, MIDDLE = 52, 36, (26, 18)


class Part(NamedTuple):
    """One part of a layer: its name, what a screen reader says, and its chapter."""

    key: str
    name: str
    says: str
    chapter: str


PARTS = (
    Part("X", "words", "words and positions", "positions"),
    Part("QKV", "Q, K, V", "queries, keys and values", "attention"),
    Part("S", "scores", "scores", "dot_product"),
    Part("scale", "scale", "scale", "scale"),
    Part("mask", "mask", "mask", "masks"),
    Part("softmax", "softmax", "softmax", "softmax"),
    Part("A", "weights", "weights", "softmax"),
    Part("H", "heads", "head outputs", "why_heads"),
    Part("C", "concat", "concatenated heads", "split"),
    Part("W_O", "output", "output projection", "output"),
    Part("add_1", "norm", "add and norm", "encoder_layer"),
    Part("ffn", "feed-fwd", "feed-forward network", "encoder_layer"),
    Part("add_2", "norm", "add and norm", "encoder_layer"),
)
NUMBERS = cache(numbers_of_the_house)  # the four words are the same on every page


def tiles(scene: Scene, M: np.ndarray, x: float, y: float, side: float, role: str):
    """Draw a matrix as tiles, the larger the entry the darker, in a frame."""
    shades: dict[float, list] = {}
    for (i, j), size in np.ndenumerate(np.abs(M) / np.abs(M).max()):
        left, top, a = x + side * j + 0.6, y + side * i + 0.6, side - 1.2
        shade = round(0.1 + 0.75 * float(size), 1)
        shades.setdefault(shade, []).append(corners(left, top, a, a))
    for shade, cells in sorted(shades.items()):
        scene.shape(*cells, fill=role, alpha=shade, closed=True)
    rows, columns = M.shape
    frame = x - 1, y - 1, side * columns + 2, side * rows + 2
    scene.box(*frame, radius=0, stroke=role, width=1.2)


def sheet(scene: Scene, M: np.ndarray, role: str) -> None:
    """Draw the matrix of one head, with a second sheet behind it."""
    side, (rows, columns) = 6, M.shape
    x, y = MIDDLE[0] - side * columns / 2 - 2, MIDDLE[1] - side * rows / 2 + 2
    right, low = x + side * columns, y + side * rows
    edge = [(x + 3, y - 1), (x + 3, y - 5), (right + 5, y - 5)]
    scene.shape([*edge, (right + 5, low - 4), (right + 1, low - 4)], stroke=role)
    tiles(scene, M, x, y, side, role)


def ring(scene: Scene, radius: float) -> None:
    """Draw a circle around the middle."""
    (x, y), side = MIDDLE, 2 * radius
    look = {"radius": radius, "stroke": "ink"}
    scene.box(x - radius, y - radius, side, side, **look)


def draw_words(scene: Scene) -> None:
    tiles(scene, NUMBERS()["X"], 12, 4, 7, "ink")


def draw_three(scene: Scene) -> None:
    for x, name, role in zip((6, 20.5, 35), "QKV", THREE, strict=True):
        tiles(scene, NUMBERS()[name][0], x, 7, 5.5, role)


def draw_scores(scene: Scene) -> None:
    sheet(scene, NUMBERS()["S"][0], "ink")


def draw_scale(scene: Scene) -> None:
    ring(scene, 14)
    scene.text(MIDDLE[0], MIDDLE[1] + 4.5, "÷√", size=12.5, bold=True)


def draw_mask(scene: Scene) -> None:
    tiles(scene, 0.1 + np.triu(np.ones((4, 4)), 1), 12, 4, 7, "ink")


def draw_softmax(scene: Scene) -> None:
    for i, height in enumerate(5 * np.exp([0.0, 0.5, 1.0, 1.5])):
        place = 11 + 8 * i, 31 - height, 6, height
        scene.box(*place, radius=0, fill="weight", alpha=0.25 + 0.25 * i)
    scene.shape([(8, 32.5), (44, 32.5)], stroke="weight", width=1.4)


def draw_weights(scene: Scene) -> None:
    sheet(scene, NUMBERS()["A"][0], "weight")


def draw_heads(scene: Scene) -> None:
    sheet(scene, NUMBERS()["H"][0], "output")


def draw_concat(scene: Scene) -> None:
    for x, head in zip((10, 27), NUMBERS()["H"], strict=True):
        tiles(scene, head, x, 4, 7, "output")


def draw_projection(scene: Scene) -> None:
    box = {"fill": "output", "alpha": 0.1, "stroke": "output", "width": 1.4}
    scene.box(9, 5, 34, 26, radius=0, **box)
    look = {"size": 12, "role": "output", "bold": True, "math": True}
    scene.text(MIDDLE[0], MIDDLE[1] + 4.5, "*W*_O", **look)


def draw_add(scene: Scene) -> None:
    x, y = MIDDLE
    ring(scene, 11)
    cross = [(x - 5, y), (x + 5, y)], [(x, y - 5), (x, y + 5)]
    scene.shape(*cross, stroke="ink", width=1.6)


def draw_feed_forward(scene: Scene) -> None:
    y = MIDDLE[1]
    for out, middle in ((9, 25), (43, 27)):
        half = [(out, y - 8), (middle, y - 15), (middle, y + 15), (out, y + 8)]
        scene.shape(half, fill="ink", alpha=0.08, stroke="ink", closed=True)


DRAWINGS: dict[str, Callable[[Scene], None]] = {
    "X": draw_words, "QKV": draw_three, "S": draw_scores, "scale": draw_scale,
    "mask": draw_mask, "softmax": draw_softmax, "A": draw_weights,
    "H": draw_heads, "C": draw_concat, "W_O": draw_projection,
    "add_1": draw_add, "ffn": draw_feed_forward, "add_2": draw_add,
}  # fmt: skip


@cache
def drawing(key: str, lit: bool) -> str:
    """Return one part as SVG; where it is not lit, it has the colour of rest."""
    scene = Scene(WIDTH, HEIGHT, lit)
    DRAWINGS[key](scene)
    marks = "".join(mark.svg() for mark in scene.marks)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{marks}</svg>'


def item(part: Part, lit: bool, number: int | None, address: str | None) -> str:
    """Return a part as an item of the list; a link if it has an address."""
    chapter = f'<small><span class="ch">ch. </span>{number}</small>' if number else ""
    says = f'<span class="visually-hidden">{escape(part.says)}, </span>'
    name = f'<span aria-hidden="true">{escape(part.name)}</span>'
    inside = f"{drawing(part.key, lit)}{says}{name}{chapter}"
    if address:
        inside = f'<a href="{escape(address)}">{inside}</a>'
    else:
        here = ' aria-current="page"' if number else ""
        inside = f"<span{here}>{inside}</span>"
    return f'<li class="lit">{inside}</li>' if lit else f"<li>{inside}</li>"


def strip(chapter: str, chapters: Mapping[str, tuple[int, str]]) -> str:
    """Return the strip for a chapter, as HTML.

    Parameters
    ----------
    chapter : str
        Slug of the chapter that the strip stands in. Its parts are lit, and those of
        the chapters before it.
    chapters : mapping {slug: (number, address)}
        The chapters there are. A part whose chapter is missing is no link.

    Returns
    -------
    html : str
        A ``<nav>`` with one link per part of a layer.

    >>> html = strip("softmax", {"softmax": (2, "02.html"), "scale": (3, "03.html")})
    >>> html.count("<li"), html.count("<a href"), html.count('class="lit"')
    (13, 1, 2)
    """
    items, here = [], chapters[chapter][0]
    for part in PARTS:
        number, address = chapters.get(part.chapter, (None, None))
        there = None if part.chapter == chapter else address
        lit = number is not None and number <= here
        items.append(item(part, lit, number, there))
    label = "The parts of a layer and their chapters"
    return f'<nav class="strip" aria-label="{label}"><ol>{"".join(items)}</ol></nav>'
