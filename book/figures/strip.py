"""The strip at the head of a chapter: the parts of a layer in a row, today's lit.

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

from figures.house import numbers as numbers_of_the_house
from mha.plot.marks import SERIF
from mha.plot.palette import paint

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
    Part("A", "weights", "weights", "what_heads_learn"),
    Part("H", "heads", "head outputs", "why_heads"),
    Part("C", "concat", "concatenated heads", "split"),
    Part("W_O", "output", "output projection", "output"),
    Part("add_1", "norm", "add and norm", "encoder_layer"),
    Part("ffn", "feed-fwd", "feed-forward network", "encoder_layer"),
    Part("add_2", "norm", "add and norm", "encoder_layer"),
)
ATTENTION = "QKV S scale mask softmax A H"
ALL = " ".join(part.key for part in PARTS)
# What each chapter lights, by slug.
LIT = {
    "overview": ALL,
    "dot_product": "S",
    "softmax": "softmax A",
    "scale": "S scale",
    "masks": "mask A",
    "attention": ATTENTION,
    "why_heads": "A H",
    "split": "QKV C",
    "output": "C W_O",
    "multi_head": f"{ATTENTION} C W_O",
    "positions": "X",
    "encoder_layer": "add_1 ffn add_2",
    "encoder": ALL,
    "what_heads_learn": "A",
    "real_encoder": ALL,
    "laws": ALL,
    "long": "S A",
    "since_2017": "X QKV S mask softmax add_1 ffn add_2",
}


numbers = cache(numbers_of_the_house)  # the four words are the same on every page


def short(x: float) -> str:
    """Return a coordinate with at most two decimals."""
    return f"{x:.2f}".rstrip("0").rstrip(".")


def box(x: float, y: float, width: float, height: float) -> str:
    """Return the outline of a rectangle."""
    x, y, width, height = map(short, (x, y, width, height))
    return f"M{x} {y}h{width}v{height}h-{width}z"


def line(*points: tuple[float, float]) -> str:
    """Return an open line."""
    return "M" + "L".join(f"{short(x)} {short(y)}" for x, y in points)


class Pen:
    """Draw in roles; where the part is not lit, everything has the colour of rest."""

    def __init__(self, lit: bool) -> None:
        self.lit, self.marks = lit, []

    def colour(self, role: str) -> str:
        """Return the colour of a role, as the page has it."""
        return paint(role if self.lit else "rest")

    def fill(self, outline: str, role: str, alpha: float = 1) -> None:
        """Fill an outline; at rest it is pale."""
        alpha = alpha if self.lit else min(alpha, 0.16)
        opacity = f' fill-opacity="{short(alpha)}"' if alpha < 1 else ""
        self.marks.append(f'<path d="{outline}" fill="{self.colour(role)}"{opacity}/>')

    def stroke(self, outline: str, role: str = "ink", width: float = 1.2) -> None:
        """Draw an outline."""
        self.marks.append(
            f'<path d="{outline}" fill="none" stroke="{self.colour(role)}" '
            f'stroke-width="{short(width)}" stroke-linejoin="round"/>'
        )

    def circle(self, radius: float, role: str = "ink") -> None:
        """Draw a circle around the middle."""
        x, y = MIDDLE
        self.marks.append(
            f'<circle cx="{x}" cy="{y}" r="{radius}" fill="none" '
            f'stroke="{self.colour(role)}" stroke-width="1.3"/>'
        )

    def text(self, words: str, role: str = "ink", style: str = "") -> None:
        """Write in the middle of a part of the strip; `words` may hold a tspan."""
        x, y = MIDDLE
        self.write(x, y + 4.5, words, role, 12.5, f'font-weight="600" {style}')

    def write(
        self, x: float, y: float, words: str, role: str = "ink", size: float = 11,
        style: str = "",
    ) -> None:  # fmt: skip
        """Write with the middle of the line at x."""
        self.marks.append(
            f'<text x="{short(x)}" y="{short(y)}" text-anchor="middle" '
            f'font-size="{short(size)}" fill="{self.colour(role)}" {style}>{words}'
            "</text>"
        )

    def map(self, M: np.ndarray, x: float, y: float, side: float, role: str) -> None:
        """Draw a matrix as tiles, the larger the entry the darker, in a frame."""
        tints = 0.1 + 0.75 * np.abs(M) / np.abs(M).max()
        shades: dict[float, str] = {}
        for (i, j), tint in np.ndenumerate(tints):
            tile = box(x + side * j + 0.6, y + side * i + 0.6, side - 1.2, side - 1.2)
            shade = round(float(tint), 1) if self.lit else 0.16
            shades[shade] = shades.get(shade, "") + tile
        for shade, tiles in sorted(shades.items()):
            self.fill(tiles, role, shade)
        rows, columns = M.shape
        self.stroke(box(x - 1, y - 1, side * columns + 2, side * rows + 2), role)

    def sheet(self, M: np.ndarray, side: float, role: str) -> None:
        """Draw the matrix of one head, with a second sheet behind it."""
        rows, columns = M.shape
        x, y = MIDDLE[0] - side * columns / 2 - 2, MIDDLE[1] - side * rows / 2 + 2
        right, low = x + side * columns, y + side * rows
        edge = (x + 3, y - 1), (x + 3, y - 5), (right + 5, y - 5)
        self.stroke(line(*edge, (right + 5, low - 4), (right + 1, low - 4)), role, 1)
        self.map(M, x, y, side, role)


def draw_words(pen: Pen) -> None:
    pen.map(numbers()["X"], 12, 4, 7, "ink")


def draw_three(pen: Pen) -> None:
    for x, name, role in zip((6, 20.5, 35), "QKV", THREE, strict=True):
        matrix = numbers()[name][0]
        pen.map(matrix.T if name == "K" else matrix, x, 7, 5.5, role)


def draw_scores(pen: Pen) -> None:
    pen.sheet(numbers()["S"][0], 6, "ink")


def draw_scale(pen: Pen) -> None:
    pen.circle(14)
    pen.text("÷√")


def draw_mask(pen: Pen) -> None:
    pen.map(0.1 + np.triu(np.ones((4, 4)), 1), 12, 4, 7, "ink")


def draw_softmax(pen: Pen) -> None:
    for i, height in enumerate(np.exp([0.0, 0.5, 1.0, 1.5])):
        x, height = 11 + 8 * i, 5 * height
        pen.fill(box(x, 31 - height, 6, height), "weight", 0.25 + 0.25 * i)
    pen.stroke(line((8, 32.5), (44, 32.5)), "weight", 1.4)


def draw_weights(pen: Pen) -> None:
    pen.sheet(numbers()["A"][0], 6, "weight")


def draw_heads(pen: Pen) -> None:
    pen.sheet(numbers()["H"][0], 6, "output")


def draw_concat(pen: Pen) -> None:
    for x, head in zip((10, 27), numbers()["H"], strict=True):
        pen.map(head, x, 4, 7, "output")


def draw_projection(pen: Pen) -> None:
    pen.fill(box(9, 5, 34, 26), "output", 0.1)
    pen.stroke(box(9, 5, 34, 26), "output", 1.4)
    low = '<tspan dy=".25em" font-size=".74em">O</tspan>'
    pen.text(f"W{low}", "output", f'font-style="italic" font-family="{SERIF}"')


def draw_add(pen: Pen) -> None:
    x, y = MIDDLE
    pen.circle(11)
    pen.stroke(line((x - 5, y), (x + 5, y)) + line((x, y - 5), (x, y + 5)), "ink", 1.6)


def draw_feed_forward(pen: Pen) -> None:
    y = MIDDLE[1]
    for out, middle in ((9, 25), (43, 27)):
        half = line((out, y - 8), (middle, y - 15), (middle, y + 15), (out, y + 8))
        pen.fill(half + "z", "ink", 0.08)
        pen.stroke(half + "z", "ink", 1.3)


DRAWINGS: dict[str, Callable[[Pen], None]] = {
    "X": draw_words, "QKV": draw_three, "S": draw_scores, "scale": draw_scale,
    "mask": draw_mask, "softmax": draw_softmax, "A": draw_weights,
    "H": draw_heads, "C": draw_concat, "W_O": draw_projection,
    "add_1": draw_add, "ffn": draw_feed_forward, "add_2": draw_add,
}  # fmt: skip


def drawing(key: str, lit: bool) -> str:
    """Return one part as SVG."""
    pen = Pen(lit)
    DRAWINGS[key](pen)
    marks = "".join(pen.marks)
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
        here = ' aria-current="page"' if lit and number else ""
        inside = f"<span{here}>{inside}</span>"
    return f'<li class="lit">{inside}</li>' if lit else f"<li>{inside}</li>"


def strip(chapter: str, chapters: Mapping[str, tuple[int, str]]) -> str:
    """Return the strip for a chapter, as HTML.

    Parameters
    ----------
    chapter : str
        Slug of the chapter that the strip stands in. Its parts are lit; a chapter that
        is not known lights none.
    chapters : mapping {slug: (number, address)}
        The chapters there are. A part whose chapter is missing is no link.

    Returns
    -------
    html : str
        A ``<nav>`` with one link per part of a layer.

    Examples
    --------
    >>> html = strip("softmax", {"softmax": (2, "02.html"), "scale": (3, "03.html")})
    >>> html.count("<li"), html.count("<a href"), html.count('class="lit"')
    (13, 1, 2)
    """
    lit = LIT.get(chapter, "").split()
    items = []
    for part in PARTS:
        number, address = chapters.get(part.chapter, (None, None))
        there = None if part.chapter == chapter else address
        items.append(item(part, part.key in lit, number, there))
    label = "The parts of a layer and their chapters"
    return f'<nav class="strip" aria-label="{label}"><ol>{"".join(items)}</ol></nav>'
