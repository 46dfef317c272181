"""A drawing as a list of marks in roles: SVG for a page, PNG for paper.

A mark knows its role ("query", "ink", ...) and never a colour. The SVG leaves colours
to the page, so it follows light and dark; the PNG has those of the light theme.
"""

from collections.abc import Sequence
from html import escape
from typing import Any

from matplotlib.figure import Figure

from mha.plot.marks import Point, Shape, Text, short
from mha.plot.palette import ink_on

# Pixels of a column, because a notebook draws a picture as wide as the picture says.
WIDEST = 736
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


class Scene:
    """Collect the marks of a drawing.

    Parameters
    ----------
    width, height : float
        In points, with the origin in the upper left corner.

    Examples
    --------
    >>> scene = Scene(20, 10)
    >>> scene.text(2, 8, "five")
    >>> scene.marks[0].role
    'ink'
    """

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.marks: list[Any] = []

    def shape(
        self, *lines: Sequence[Point], fill: str | None = None, alpha: float = 1,
        stroke: str | None = None, width: float = 1.3, radius: float = 0,
        closed: bool = False, grid: tuple[float, float, float] | None = None,
    ) -> None:  # fmt: skip
        """Add lines, or areas, of one look."""
        look = fill, alpha, stroke, width if stroke else 0, radius, closed, grid
        if lines:
            self.marks.append(Shape(lines, *look))

    def box(self, x: float, y: float, w: float, h: float, **look: Any) -> None:
        """Add a rectangle, as a `shape` that looks like this."""
        self.shape(corners(x, y, w, h), closed=True, **{"radius": 3, **look})

    def text(
        self, x: float, y: float, words: object, *, size: float = 11, role: str = "ink",
        anchor: str = "middle", bold: bool = False, serif: bool = False,
        turn: float = 0, kind: type[Text] = Text,
    ) -> None:  # fmt: skip
        """Add words, if there are any; `turn` is in degrees, clockwise."""
        if str(words):
            look = size, role, anchor, bold, serif, turn
            self.marks.append(kind(x, y, str(words), *look))

    def cell(
        self, x: float, y: float, w: float, h: float, words: str, role: str,
        alpha: float, *, size: float = 11,
    ) -> None:  # fmt: skip
        """Add a number on its tint, in the ink that can be read there."""
        self.box(x, y, w, h, radius=2.5, fill=role, alpha=alpha)
        ink = ink_on(alpha) if role == "weight" else "ink"
        self.text(x + w / 2, y + h / 2 + 0.36 * size, words, size=size, role=ink)

    def hatched(
        self, x: float, y: float, w: float, h: float, middle: bool = True,
        stroke: str = "muted",
    ) -> None:  # fmt: skip
        """Add a masked cell; without the middle stroke there is room for a number."""
        strokes = [(0, 1), (0, 0.5), (0.5, 1)] if middle else [(0, 0.3), (0.7, 1)]
        ends = [[(x + a * w, y + b * h), (x + b * w, y + a * h)] for a, b in strokes]
        self.shape(*ends, stroke=stroke, width=1)

    def svg(self, alt: str, role: str = "img") -> str:
        """Return an SVG element without ids, so that several can share a page."""
        marks = "".join(mark.svg() for mark in self.marks)
        size = f"{short(self.width)} {short(self.height)}"
        wide = f"{min(self.width * 4 / 3, WIDEST):.0f}"  # pixels, from points
        return (
            '<svg class="mha-picture" xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {size}" width="{wide}" style="display: block; height: auto; '
            f"margin: 0 auto; font-family: {SANS}; font-variant-numeric: tabular-nums; "
            f'background: var(--mha-ground, white); max-width: 100%" role="{role}" '
            f'aria-label="{escape(alt)}">{marks}</svg>'
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
