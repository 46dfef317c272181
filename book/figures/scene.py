"""The drawings of the book: some of their parts are lit, and words hold formulas."""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from mha.plot import scene
from mha.plot.marks import SERIF, Point, Shape, Text, short

FAINT = 0.16  # the densest fill of a part at rest
MARKUP = re.compile(r"(\*|_\w+|ᵀ)")  # *letter*, subscript, transpose
LETTER = 1.3  # as large as the words beside it


class Scene(scene.Scene):
    """Collect the marks of a drawing; parts of it are lit, given or at rest.

    A lit part has its colours and its numbers. A given part, which the lit ones read,
    has its numbers and no colour. A part at rest has neither.

    Parameters
    ----------
    width, height : float
        In points, with the origin in the upper left corner.
    lit, given : collection of str, optional
        Names of parts; None lights everything.

    Examples
    --------
    >>> scene = Scene(20, 10, lit={"a"})
    >>> scene.part("b")
    >>> scene.text(2, 8, "five")
    >>> scene.marks[0].role
    'muted'
    """

    def __init__(
        self, width: float, height: float, lit: Collection[str] | None = None,
        given: Collection[str] = (),
    ) -> None:  # fmt: skip
        super().__init__(width, height)
        self.lit, self.given = lit, given
        self.level = 2
        self.key = ""  # by which a page knows the drawing

    def part(self, *names: str) -> None:
        """Let the marks to come belong to these parts; the brightest one decides."""
        lit = self.lit is None or not set(names).isdisjoint(self.lit)
        self.level = 2 if lit else 0 if set(names).isdisjoint(self.given) else 1

    def _role(self, role: str, fill: bool = False) -> str:
        if self.level == 2 or role in ("paper", "muted"):
            return role
        return "muted" if self.level and not fill else "rest"

    def _alpha(self, alpha: float, fill: str | None) -> float:
        return alpha if self.level == 2 or fill == "paper" else min(alpha, FAINT)

    def shape(
        self, *lines: Sequence[Point], fill: str | None = None, alpha: float = 1,
        stroke: str | None = None, **look: Any,
    ) -> None:  # fmt: skip
        """Add lines, or areas, of one look."""
        alpha = self._alpha(alpha, fill)
        fill = fill and self._role(fill, fill=True)
        stroke = stroke and self._role(stroke)
        super().shape(*lines, fill=fill, alpha=alpha, stroke=stroke, **look)

    def text(
        self, x: float, y: float, words: object, *, role: str = "ink",
        bold: bool = False, math: bool = False, **look: Any,
    ) -> None:  # fmt: skip
        """Add words, if there are any; with `math` they are a `Formula`."""
        lit = self.level == 2
        look |= {"role": role if lit else "muted", "bold": bold and lit}
        super().text(x, y, words, kind=Formula if math else Text, **look)

    def arrow(
        self, points: Sequence[Point], role: str = "ink", *, width: float = 1.6,
        radius: float = 9, twin: float = 0, tip: bool = True,
    ) -> None:  # fmt: skip
        """Add a way along the axes; `twin` draws two of them, so far apart."""
        (x0, y0), (x, y) = points[-2:]
        long = math.hypot(x - x0, y - y0) or 1
        u, v = (x - x0) / long, (y - y0) / long
        size = (7.5 if twin else 6.5) * tip
        half = size * 0.52 + twin / 4
        base = x - u * size, y - v * size
        way = [*points[:-1], (x - u * size * 0.7, y - v * size * 0.7)]
        for aside in (twin / 2, -twin / 2) if twin else (0,):
            line = _beside(way, aside)
            self.shape(line, stroke=role, width=width, radius=radius)
        if tip:
            a, b = ((base[0] - s * v, base[1] + s * u) for s in (half, -half))
            self.marks.append(Shape([[(x, y), a, b]], self._role(role), 1))

    def cell(
        self, x: float, y: float, w: float, h: float, words: str, role: str,
        alpha: float, *, size: float = 11,
    ) -> None:  # fmt: skip
        """Add a number on its tint; at rest there is no number."""
        words = words if self.level else ""
        super().cell(x, y, w, h, words, role, alpha, size=size)

    def hatched(
        self, x: float, y: float, w: float, h: float, middle: bool = True,
        stroke: str = "muted",
    ) -> None:  # fmt: skip
        """Add a masked cell, pale at rest."""
        super().hatched(x, y, w, h, middle, stroke if self.level else "rest")

    def svg(self, alt: str, role: str = "img") -> str:
        """Return an SVG element, with the key by which a page knows it."""
        key = f' data-key="{escape(self.key)}"' if self.key else ""
        start, end, marks = super().svg(alt, role).partition(">")
        return start + key + end + marks


@dataclass(frozen=True)
class Formula(Text):
    """Words that may hold a *letter*, W_Q and Kᵀ."""

    def inside(self) -> str:
        """Return spans, in which a letter, a subscript or a transpose is set so."""
        return _tspans(self.words)

    def plot(self, ax: Any, z: int) -> None:
        """Write on axes whose units are points."""
        super().plot(ax, z)
        look = {"parse_math": True, "math_fontfamily": "dejavuserif"}
        ax.texts[-1].set(text=_mathtext(self.words), **look)


def _beside(points: Sequence[Point], d: float) -> list[Point]:
    """Return a way along the axes, moved to its left by d."""
    sides = []
    for (x0, y0), (x1, y1) in pairwise(points):
        long = math.dist((x0, y0), (x1, y1)) or 1
        sides.append(((y1 - y0) / long * d, (x0 - x1) / long * d))
    corners = [(a[0] + b[0], a[1] + b[1]) for a, b in pairwise(sides)]
    moves = [sides[0], *corners, sides[-1]]
    return [(x + u, y + v) for (x, y), (u, v) in zip(points, moves, strict=True)]


def _tspans(words: str) -> str:
    """Return words in which a letter, a subscript or a transpose is set as such."""
    runs, letter, back = "", False, 0.0
    for piece in filter(None, MARKUP.split(words)):
        if piece == "*":
            letter = not letter
            continue
        size, down, back = LETTER if letter else 1, back, 0.0
        look = f' font-family="{SERIF}" font-style="italic"' * letter
        if piece[0] in "_ᵀ":
            down, piece = (0.3, piece[1:]) if piece[0] == "_" else (-0.5, "T")
            size, back = 0.74 * size, -0.74 * down
        look += f' font-size="{short(size)}em"' * (size != 1)
        look += f' dy="{short(down)}em"' * bool(down)
        runs += f"<tspan{look}>{escape(piece)}</tspan>" if look else escape(piece)
    return runs


def _mathtext(words: str) -> str:
    runs, letter = "", False
    for piece in filter(None, MARKUP.split(words)):
        if piece == "*":
            letter = not letter
        elif piece[0] in "_ᵀ":
            sign, inside = ("_", piece[1:]) if piece[0] == "_" else ("^", "T")
            kind = "mathbfit" if letter else "mathsf"
            runs += rf"${sign}{{\{kind}{{{inside}}}}}$"
        else:
            runs += rf"$\mathbfit{{{piece}}}$" if letter else piece
    return runs
