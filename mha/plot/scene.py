"""A drawing as a list of marks in roles: SVG for a page, PNG for paper.

A mark knows its role ("query", "ink", ...) and never a colour. The SVG leaves colours
to the page, so it follows light and dark; the PNG has those of the light theme.
"""

import math
from collections.abc import Collection, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from matplotlib.figure import Figure

from mha.plot.marks import Point, Shape, Text, short
from mha.plot.palette import ink_on

SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
FAINT = 0.16  # the densest fill of a part at rest


class Scene:
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
        self.width, self.height = width, height
        self.lit, self.given = lit, given
        self.marks: list[Any] = []
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
        stroke: str | None = None, width: float = 1.3, radius: float = 0,
        closed: bool = False, grid: tuple[float, float, float] | None = None,
    ) -> None:  # fmt: skip
        """Add lines, or areas, of one look."""
        alpha = self._alpha(alpha, fill)
        fill = fill and self._role(fill, fill=True)
        stroke = stroke and self._role(stroke)
        look = fill, alpha, stroke, width if stroke else 0, radius, closed, grid
        if lines:
            self.marks.append(Shape(lines, *look))

    def box(self, x: float, y: float, w: float, h: float, **look: Any) -> None:
        """Add a rectangle, as a `shape` that looks like this."""
        self.shape(corners(x, y, w, h), closed=True, **{"radius": 3, **look})

    def text(
        self, x: float, y: float, words: object, *, size: float = 11, role: str = "ink",
        anchor: str = "middle", bold: bool = False, serif: bool = False,
        turn: float = 0, math: bool = False,
    ) -> None:  # fmt: skip
        """Add words, if there are any; `turn` is in degrees, clockwise."""
        if not str(words):
            return
        lit = self.level == 2
        look = size, role if lit else "muted", anchor, bold and lit, serif, turn, math
        self.marks.append(Text(x, y, str(words), *look))

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
        """Add a number on its tint, in the ink that can be read there."""
        self.box(x, y, w, h, radius=2.5, fill=role, alpha=alpha)
        ink = ink_on(alpha) if role == "weight" and self.level == 2 else "ink"
        if self.level:
            self.text(x + w / 2, y + h / 2 + 0.36 * size, words, size=size, role=ink)

    def hatched(
        self, x: float, y: float, w: float, h: float, middle: bool = True
    ) -> None:
        """Add a masked cell; without the middle stroke there is room for a number."""
        strokes = [(0, 1), (0, 0.5), (0.5, 1)] if middle else [(0, 0.3), (0.7, 1)]
        ends = [[(x + a * w, y + b * h), (x + b * w, y + a * h)] for a, b in strokes]
        self.shape(*ends, stroke="muted" if self.level == 2 else "rest", width=1)

    def svg(self, alt: str, role: str = "img") -> str:
        """Return an SVG element without ids, so that several can share a page."""
        marks = "".join(mark.svg() for mark in self.marks)
        size = f"{short(self.width)} {short(self.height)}"
        wide = f"{self.width * 4 / 3:.0f}"  # pixels, from points
        key = f' data-key="{escape(self.key)}"' if self.key else ""
        return (
            '<svg class="mha-picture" xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {size}" width="{wide}" style="display: block; height: auto; '
            f"margin: 0 auto; font-family: {SANS}; font-variant-numeric: tabular-nums; "
            f'background: var(--mha-ground, white); max-width: 100%" role="{role}" '
            f'aria-label="{escape(alt)}"{key}>{marks}</svg>'
        )

    def figure(self) -> Figure:
        """Return the same marks drawn by matplotlib, in the light theme."""
        figure = Figure((self.width / 72, self.height / 72))
        figure.set_layout_engine("none")
        ax: Any = figure.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, self.width), ylim=(self.height, 0))
        ax.axis("off")
        for z, mark in enumerate(self.marks):
            mark.plot(ax, z)
        return figure


def corners(x: float, y: float, w: float, h: float) -> list[Point]:
    """Return the corners of a rectangle, clockwise from the upper left one."""
    return [(x, y), (x + w, y), (x + w, y + h), (x, y + h)]


def _beside(points: Sequence[Point], d: float) -> list[Point]:
    """Return a way along the axes, moved to its left by d."""
    sides = []
    for (x0, y0), (x1, y1) in pairwise(points):
        long = math.dist((x0, y0), (x1, y1)) or 1
        sides.append(((y1 - y0) / long * d, (x0 - x1) / long * d))
    corners = [(a[0] + b[0], a[1] + b[1]) for a, b in pairwise(sides)]
    moves = [sides[0], *corners, sides[-1]]
    return [(x + u, y + v) for (x, y), (u, v) in zip(points, moves, strict=True)]
