"""A drawing as a list of marks in roles: SVG for a page, PNG for paper.

A mark knows its role ("query", "ink", ...) and never a colour. The SVG leaves colours
to the page, so it follows light and dark; the PNG has those of the light theme.
"""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from mha.plot.palette import LIGHT, ink_on, paint

Point = tuple[float, float]
Run = tuple[float, float, float]
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
SERIF = "'Iowan Old Style', 'Palatino Linotype', Palatino, P052, Georgia, serif"
CODES = {"M": Path.MOVETO, "L": Path.LINETO, "Q": Path.CURVE3, "Z": Path.CLOSEPOLY}
MARKUP = re.compile(r"(\*|_\w+|ᵀ)")  # *letter*, subscript, transpose
ALIGN = {"start": "left", "middle": "center", "end": "right"}
LETTER = 1.3  # as large as the words beside it
FAINT = 0.16  # the densest fill of a part at rest


@dataclass(frozen=True)
class Shape:
    """A line or an area with round corners."""

    points: Sequence[Point]
    fill: str | None
    alpha: float
    stroke: str | None
    width: float
    radius: float
    closed: bool

    def commands(self) -> Iterator[tuple[str, list[Point]]]:
        """Yield the commands of a path, each with its points."""
        first, *_, last = self.points
        ring = [last, *self.points, first] if self.closed else self.points
        begun = not self.closed
        if begun:
            yield "M", [first]
        for a, b, c in zip(ring, ring[1:], ring[2:], strict=False):
            before, after = _toward(b, a, self.radius), _toward(b, c, self.radius)
            yield "L" if begun else "M", [before]
            begun = True
            if self.radius:
                yield "Q", [b, after]
        yield ("Z", [first]) if self.closed else ("L", [last])


@dataclass(frozen=True)
class Tiles:
    """Many cells of one shade: runs of them, as (column, row, length) in cells."""

    corner: Point
    cell: Point
    runs: Sequence[Run]
    fill: str
    alpha: float


@dataclass(frozen=True)
class Text:
    """Words; with `math` they may hold a *letter*, W_Q and Kᵀ."""

    x: float
    y: float
    words: str
    size: float
    role: str
    anchor: str
    bold: bool
    serif: bool
    turn: float
    math: bool


@dataclass(frozen=True)
class Raw:
    """A piece of SVG that paper leaves out, such as the start of a link."""

    svg: str


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
        self, points: Sequence[Point], *, fill: str | None = None, alpha: float = 1,
        stroke: str | None = None, width: float = 1.3, radius: float = 0,
        closed: bool = False,
    ) -> None:  # fmt: skip
        """Add a line or an area."""
        alpha = self._alpha(alpha, fill)
        fill = fill and self._role(fill, fill=True)
        stroke = stroke and self._role(stroke)
        self.marks.append(Shape(points, fill, alpha, stroke, width, radius, closed))

    def box(self, x: float, y: float, w: float, h: float, **look: Any) -> None:
        """Add a rectangle, as a `shape` that looks like this."""
        corners = [(x, y), (x + w, y), (x + w, y + h), (x, y + h)]
        self.shape(corners, closed=True, **{"radius": 3, **look})

    def text(
        self, x: float, y: float, words: object, *, size: float = 11, role: str = "ink",
        anchor: str = "middle", bold: bool = False, serif: bool = False,
        turn: float = 0, math: bool = False,
    ) -> None:  # fmt: skip
        """Add words; `turn` is in degrees, clockwise."""
        lit = self.level == 2
        look = size, role if lit else "muted", anchor, bold and lit, serif, turn, math
        self.marks.append(Text(x, y, str(words), *look))

    def tiles(
        self, corner: Point, cell: Point, runs: Sequence[Run], fill: str, alpha: float
    ) -> None:
        """Add many cells of one shade."""
        fill, alpha = self._role(fill, fill=True), self._alpha(alpha, fill)
        self.marks.append(Tiles(corner, cell, runs, fill, alpha))

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
            look = self._role(role), 1, None, 0, 0, True
            self.marks.append(Shape([(x, y), a, b], *look))

    def cell(
        self, x: float, y: float, w: float, h: float, words: str, role: str,
        alpha: float, *, size: float = 11,
    ) -> None:  # fmt: skip
        """Add a number on its tint, in the ink that can be read there."""
        self.box(x, y, w, h, radius=2.5, fill=role, alpha=alpha)
        ink = ink_on(alpha) if role == "weight" and self.level == 2 else "ink"
        if self.level:
            self.text(x + w / 2, y + h / 2 + 0.36 * size, words, size=size, role=ink)

    def hatched(self, x: float, y: float, w: float, h: float) -> None:
        """Add a masked cell."""
        ink = "muted" if self.level == 2 else "rest"
        for a, b in ((0, 1), (0, 0.5), (0.5, 1)):  # a line from (a, b) up to (b, a)
            line = [(x + a * w, y + b * h), (x + b * w, y + a * h)]
            self.shape(line, stroke=ink, width=1)

    def svg(self, alt: str, role: str = "img") -> str:
        """Return an SVG element without ids, so that several can share a page."""
        marks = "".join(SVG[type(mark)](mark) for mark in self.marks)
        size = f"{_n(self.width)} {_n(self.height)}"
        wide = f"max-width: {self.width * 4 / 3:.0f}px"  # from points
        return (
            '<svg class="mha-picture" xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {size}" width="100%" style="display: block; height: auto; '
            f"margin: 0 auto; font-family: {SANS}; font-variant-numeric: tabular-nums; "
            f'{wide}" role="{role}" aria-label="{escape(alt)}">'
            f'<path d="M0 0h{_n(self.width)}v{_n(self.height)}H0z" '
            f'fill="var(--mha-backdrop, {LIGHT["paper"]})"/>{marks}</svg>'
        )

    def figure(self) -> Figure:
        """Return the same marks drawn by matplotlib, in the light theme."""
        figure = Figure((self.width / 72, self.height / 72))
        figure.set_layout_engine("none")
        ax: Any = figure.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, self.width), ylim=(self.height, 0))
        ax.axis("off")
        for z, mark in enumerate(self.marks):
            PLOT[type(mark)](ax, mark, z)
        return figure


def _n(x: float) -> str:
    return f"{x:.2f}".rstrip("0").rstrip(".") if x % 1 else f"{x:.0f}"


def _toward(b: Point, a: Point, radius: float) -> Point:
    """Return the point before corner `b`, on the way from `a`, where it turns."""
    long = math.dist(a, b) or 1
    r = min(radius, long / 2) / long
    return b[0] + (a[0] - b[0]) * r, b[1] + (a[1] - b[1]) * r


def _beside(points: Sequence[Point], d: float) -> list[Point]:
    """Return a way along the axes, moved to its left by d."""
    sides = []
    for (x0, y0), (x1, y1) in pairwise(points):
        long = math.dist((x0, y0), (x1, y1)) or 1
        sides.append(((y1 - y0) / long * d, (x0 - x1) / long * d))
    corners = [(a[0] + b[0], a[1] + b[1]) for a, b in pairwise(sides)]
    moves = [sides[0], *corners, sides[-1]]
    return [(x + u, y + v) for (x, y), (u, v) in zip(points, moves, strict=True)]


def _svg_paint(mark: Shape | Tiles) -> str:
    look = f' fill="{paint(mark.fill) if mark.fill else "none"}"'
    if mark.fill and mark.alpha < 1:
        look += f' fill-opacity="{_n(mark.alpha)}"'
    if isinstance(mark, Shape) and mark.stroke:
        look += f' stroke="{paint(mark.stroke)}" stroke-width="{_n(mark.width)}"'
    return look + "/>"


def _svg_shape(mark: Shape) -> str:
    if mark.closed and len(mark.points) == 4:
        (x, y), (right, top), (x2, low), (left, _) = mark.points
        if (x, y, x2) == (left, top, right):
            place = f'x="{_n(x)}" y="{_n(y)}" rx="{_n(mark.radius)}"'
            size = f' width="{_n(right - x)}" height="{_n(low - y)}"'
            return f"<rect {place}{size}" + _svg_paint(mark)
    steps = [
        ("Z" if letter == "Z" else letter)
        + " ".join(f"{_n(x)} {_n(y)}" for x, y in points if letter != "Z")
        for letter, points in mark.commands()
    ]
    return f'<path d="{"".join(steps)}"' + _svg_paint(mark)


def _svg_tiles(mark: Tiles) -> str:
    (x, y), (a, b) = mark.corner, mark.cell
    place = f"translate({_n(x)} {_n(y)}) scale({_n(a)} {_n(b)})"
    runs = "".join(f"M{j} {i}h{k}v1h-{k}z" for j, i, k in mark.runs)
    look = f'shape-rendering="crispEdges" d="{runs}"'
    return f'<path transform="{place}" {look}' + _svg_paint(mark)


def _svg_text(mark: Text) -> str:
    look = f'x="{_n(mark.x)}" y="{_n(mark.y)}" font-size="{_n(mark.size)}"'
    look += f' text-anchor="{mark.anchor}"' * (mark.anchor != "start")
    look += ' font-weight="600"' * mark.bold
    look += f' font-family="{SERIF}"' * mark.serif
    if mark.turn:
        look += f' transform="rotate({_n(mark.turn)} {_n(mark.x)} {_n(mark.y)})"'
    words = _svg_runs(mark.words) if mark.math else escape(mark.words)
    return f'<text {look} fill="{paint(mark.role)}">{words}</text>'


def _svg_runs(words: str) -> str:
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
        look += f' font-size="{_n(size)}em"' * (size != 1)
        look += f' dy="{_n(down)}em"' * bool(down)
        runs += f"<tspan{look}>{escape(piece)}</tspan>" if look else escape(piece)
    return runs


def _rgba(role: str | None, alpha: float = 1) -> Any:
    return (LIGHT[role], alpha) if role else "none"


def _plot_path(ax: Any, mark: Shape | Tiles, z: int, path: Path, **look: Any) -> None:
    look |= {"fc": _rgba(mark.fill, mark.alpha), "zorder": z}
    ax.add_patch(PathPatch(path, **look))


def _plot_shape(ax: Any, mark: Shape, z: int) -> None:
    steps = [(CODES[letter], p) for letter, ps in mark.commands() for p in ps]
    path = Path([p for _, p in steps], [code for code, _ in steps])
    width = mark.width if mark.stroke else 0
    look = {"ec": _rgba(mark.stroke), "lw": width, "capstyle": "round"}
    _plot_path(ax, mark, z, path, joinstyle="round", **look)


def _plot_tiles(ax: Any, mark: Tiles, z: int) -> None:
    (x, y), (a, b) = mark.corner, mark.cell
    square: Any = Path.unit_rectangle()
    cells = [
        Path(square.vertices * (a * k, b) + (x + a * j, y + b * i), square.codes)
        for j, i, k in mark.runs
    ]
    _plot_path(ax, mark, z, Path.make_compound_path(*cells), lw=0, aa=False)


def _plot_text(ax: Any, mark: Text, z: int) -> None:
    words = _mathtext(mark.words) if mark.math else mark.words
    look: dict[str, Any] = {"ha": ALIGN[mark.anchor], "va": "baseline", "zorder": z}
    look |= {"rotation": -mark.turn, "rotation_mode": "anchor"}
    look |= {"family": "DejaVu Serif" if mark.serif else "DejaVu Sans"}
    look |= {"weight": "bold" if mark.bold else "normal", "parse_math": mark.math}
    # DejaVu is wider than what most pages have
    look |= {"size": 0.92 * mark.size, "color": _rgba(mark.role)}
    ax.text(mark.x, mark.y, words, math_fontfamily="dejavuserif", **look)


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


SVG: dict[type, Any] = {
    Shape: _svg_shape, Tiles: _svg_tiles, Text: _svg_text, Raw: lambda mark: mark.svg,
}  # fmt: skip
PLOT: dict[type, Any] = {
    Shape: _plot_shape, Tiles: _plot_tiles, Text: _plot_text, Raw: lambda *_: None,
}  # fmt: skip
