"""Drawings as lists of marks in roles: SVG for a page, PNG for paper.

A mark knows its role ("query", "ink", ...) and never a colour. The SVG leaves colours
to the page, so it follows light and dark; the PNG has those of the light theme. Words
may hold formulas.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke

from figures.picture import COLOURS, SANS, WIDEST, Picture, finished

Point = tuple[float, float]
LIGHT = COLOURS | {
    "ink": "#222832", "paper": "#FFFFFF",
    "on0": "#222832", "on1": "#000000", "on2": "#FFFFFF",  # numbers on a weight
}  # fmt: skip
SERIF = "'Iowan Old Style', 'Palatino Linotype', Palatino, P052, Georgia, serif"
CODES = {"M": Path.MOVETO, "L": Path.LINETO, "Q": Path.CURVE3, "Z": Path.CLOSEPOLY}
ALIGN = {"start": "left", "middle": "center", "end": "right"}
MARKUP = re.compile(r"(\*|_\w+|ᵀ)")  # *letter*, subscript, transpose
LETTER = 1.3  # as large as the words beside it
HALO = 3  # points of paper around words that stand on lines
# How wide letters are, in units of their size, if they are not as wide as most.
LETTERS = dict.fromkeys("mwMW", 0.86) | dict.fromkeys("ijltfr.,'[]I ", 0.34)
FONTS = {"font.family": "DejaVu Sans", "text.parse_math": False}


def picture(scene: "Scene", alt: str) -> Picture:
    """Return a finished drawing with its alt text."""
    return finished(scene.figure(), alt, scene.svg(alt.strip()))


def paint(role: str) -> str:
    """Return the colour of a role as a page looks it up.

    >>> paint("key")
    'var(--mha-key, #B04E00)'
    """
    return f"var(--mha-{role}, {LIGHT[role]})"


def ink_on(alpha: float) -> str:
    """Return the role of a number on a cell filled with the weight colour this densely.

    The two limits are where black and white have a contrast of 4.5 in both themes.

    >>> [ink_on(weight) for weight in (0, 0.5, 1)]
    ['on0', 'on1', 'on2']
    """
    return "on0" if alpha < 0.475 else "on1" if alpha < 0.635 else "on2"


def short(x: float) -> str:
    """Return a coordinate with at most two decimals."""
    return f"{round(x, 2) + 0:g}"


@dataclass(frozen=True)
class Shape:
    """Lines or areas of one look, with round corners."""

    lines: Sequence[Sequence[Point]]
    fill: str | None
    alpha: float
    stroke: str | None = None
    width: float = 0
    radius: float = 0
    closed: bool = True
    dash: Sequence[float] = ()

    def commands(self) -> Iterator[tuple[str, Sequence[Point]]]:
        """Yield the commands of a path, each with its points."""
        for points in self.lines:
            ring = [points[-1], *points, points[0]] if self.closed else points
            threes = zip(ring, ring[1:], ring[2:], strict=False)
            turns = [self._turn(*three) for three in threes]
            yield "M", turns[0][:1] if self.closed else points[:1]
            for k, turn in enumerate(turns):
                if k or not self.closed:
                    yield "L", turn[:1]
                if self.radius:
                    yield "Q", turn[1:]
            yield ("Z", turns[0][:1]) if self.closed else ("L", points[-1:])

    def _turn(self, a: Point, b: Point, c: Point) -> list[Point]:
        """Return where the way from a to c leaves for corner b, b, and the way on."""
        return [_toward(b, a, self.radius), b, _toward(b, c, self.radius)]

    def svg(self) -> str:
        """Return a path element."""
        look = f' fill="{paint(self.fill) if self.fill else "none"}"'
        if self.alpha < 1:
            look += f' {"fill" if self.fill else "stroke"}-opacity="{self.alpha:.2g}"'
        if self.stroke:
            look += f' stroke="{paint(self.stroke)}" stroke-width="{short(self.width)}"'
        if self.dash:
            look += f' stroke-dasharray="{" ".join(map(short, self.dash))}"'
        return f'<path d="{"".join(self._steps())}"{look}/>'

    def _steps(self) -> Iterator[str]:
        """Yield the commands as SVG writes them, relative to the point before."""
        x, y = 0.0, 0.0
        for letter, points in self.commands():
            u, v = points[0][0] - x, points[0][1] - y
            if letter == "M":
                yield f"M{short(points[0][0])} {short(points[0][1])}"
            elif letter == "Z":
                yield "z"
            elif letter == "Q":
                ends = [f"{short(p - x)} {short(q - y)}" for p, q in points]
                yield "q" + " ".join(ends)
            elif abs(u) > 0.005 and abs(v) > 0.005:
                yield f"l{short(u)} {short(v)}"
            else:
                yield f"h{short(u)}" if abs(u) > abs(v) else f"v{short(v)}"
            x, y = points[-1]

    def plot(self, ax: Any, z: int) -> None:
        """Draw the shape on axes whose units are points."""
        steps = [(CODES[letter], p) for letter, ps in self.commands() for p in ps]
        path = Path([place for _, place in steps], [code for code, _ in steps])
        look = {"fc": _rgba(self.fill, self.alpha), "zorder": z}
        alpha = 1 if self.fill else self.alpha
        look |= {"ec": _rgba(self.stroke, alpha), "lw": self.width}
        if self.dash:
            look["ls"] = 0, [length / self.width for length in self.dash]
        ax.add_patch(PathPatch(path, capstyle="round", joinstyle="round", **look))


@dataclass(frozen=True)
class Text:
    """Words, as they are; a formula may hold a *letter*, W_Q and Kᵀ."""

    x: float
    y: float
    words: str
    size: float
    role: str
    anchor: str
    bold: bool
    turn: float
    math: bool
    halo: bool = False

    def svg(self) -> str:
        """Return a text element."""
        x, y = short(self.x), short(self.y)
        look = f'x="{x}" y="{y}" font-size="{short(self.size)}"'
        look += f' text-anchor="{self.anchor}"' * (self.anchor != "start")
        look += ' font-weight="600"' * self.bold
        look += f' transform="rotate({short(self.turn)} {x} {y})"' * bool(self.turn)
        if self.halo:
            look += f' paint-order="stroke" stroke="{paint("paper")}"'
            look += f' stroke-width="{HALO}" stroke-linejoin="round"'
        inside = _tspans(self.words) if self.math else escape(self.words)
        return f'<text {look} fill="{paint(self.role)}">{inside}</text>'

    def plot(self, ax: Any, z: int) -> None:
        """Write on axes whose units are points."""
        look: dict[str, Any] = {"ha": ALIGN[self.anchor], "va": "baseline", "zorder": z}
        look |= {"rotation": -self.turn, "rotation_mode": "anchor"}
        look |= {"family": "DejaVu Sans"}
        look |= {"weight": "bold" if self.bold else "normal", "parse_math": self.math}
        look |= {"math_fontfamily": "dejavuserif"} if self.math else {}
        # DejaVu is wider than what most pages have
        look |= {"size": 0.92 * self.size, "color": _rgba(self.role)}
        words = _mathtext(self.words) if self.math else self.words
        drawn = ax.text(self.x, self.y, words, **look)
        if self.halo:
            drawn.set_path_effects([withStroke(linewidth=HALO, foreground="white")])


class Scene:
    """Collect the marks of a drawing.

    Parameters
    ----------
    width, height : float
        In points, with the origin in the upper left corner.

    >>> scene = Scene(20, 10)
    >>> scene.text(2, 8, "five")
    >>> scene.marks[0].role
    'ink'
    """

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.key = ""  # by which a page knows the drawing
        self.marks: list[Any] = []

    def shape(
        self, *lines: Sequence[Point], fill: str | None = None, alpha: float = 1,
        stroke: str | None = None, width: float = 1.3, radius: float = 0,
        closed: bool = False, dash: Sequence[float] = (),
    ) -> None:  # fmt: skip
        """Add lines, or areas, of one look."""
        look = fill, alpha, stroke, width if stroke else 0, radius, closed, dash
        if lines:
            self.marks.append(Shape(lines, *look))

    def box(self, x: float, y: float, w: float, h: float, **look: Any) -> None:
        """Add a rectangle, as a `shape` that looks like this."""
        self.shape(corners(x, y, w, h), closed=True, **{"radius": 3, **look})

    def dots(self, *circles: tuple[float, float, float], **look: Any) -> None:
        """Add circles (x, y, radius), as a `shape` that looks like this."""
        rings = [_octagon(*circle) for circle in circles]
        far = max((r for *_, r in circles), default=0)  # every side turns in its middle
        self.shape(*rings, closed=True, radius=far, **look)

    def text(
        self, x: float, y: float, words: object, *, size: float = 12, role: str = "ink",
        anchor: str = "middle", bold: bool = False, turn: float = 0, math: bool = False,
        halo: bool = False,
    ) -> None:  # fmt: skip
        """Add words, if there are any; `turn` is in degrees, clockwise."""
        if str(words):
            look = size, role, anchor, bold, turn, math, halo
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
            self.marks.append(Shape([[(x, y), a, b]], role, 1))

    def cells(
        self, cells: Iterable[tuple[float, float, str, float]], w: float, h: float,
        role: str, *, size: float = 11.8,
    ) -> None:  # fmt: skip
        """Add numbers (x, y, words, tint), each in the ink that can be read there.

        Cells of one tint are one mark, because a page has thousands of numbers.
        """
        tinted: dict[float, list[list[Point]]] = {}
        cells = [*cells]
        for x, y, _, alpha in cells:
            tinted.setdefault(alpha, []).append(corners(x, y, w, h))
        for alpha, boxes in tinted.items():
            self.shape(*boxes, closed=True, radius=2.5, fill=role, alpha=alpha)
        for x, y, words, alpha in cells:
            ink = ink_on(alpha) if role == "weight" else "ink"
            self.text(x + w / 2, y + h / 2 + 0.36 * size, words, size=size, role=ink)

    def hatched(self, x: float, y: float, w: float, h: float) -> None:
        """Add a masked cell, with room for a word in the middle."""
        strokes = [(0, 0.3), (0.7, 1)]
        ends = [[(x + a * w, y + b * h), (x + b * w, y + a * h)] for a, b in strokes]
        self.shape(*ends, stroke="muted", width=1)

    def plate(
        self, x: float, y: float, w: float, h: float, radius: float, role: str
    ) -> None:
        """Add a box that hides the line behind it."""
        self.box(x, y, w, h, radius=radius, fill="paper")
        edge = "ink" if role == "paper" else role
        self.box(x, y, w, h, radius=radius, fill=role, alpha=0.08, stroke=edge)

    def plus(self, x: float, y: float) -> None:
        """Add a plus in a circle: two ways meet and are added."""
        self.plate(x - 9, y - 9, 18, 18, 9, "paper")
        cross = [(x - 4.5, y), (x + 4.5, y)], [(x, y - 4.5), (x, y + 4.5)]
        self.shape(*cross, stroke="ink", width=1.6)

    def svg(self, alt: str) -> str:
        """Return an SVG element without ids, so that several can share a page."""
        marks = "".join(mark.svg() for mark in self.marks)
        size = f"{short(self.width)} {short(self.height)}"
        wide = f"{min(self.width * 4 / 3, WIDEST):.0f}"  # pixels, from points
        key = f' data-key="{escape(self.key)}"' if self.key else ""
        return (
            '<svg class="mha-picture" xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {size}" width="{wide}" style="display: block; height: auto; '
            f"margin: 0 auto; font-family: {SANS}; font-variant-numeric: tabular-nums; "
            f'background: var(--mha-ground, white); max-width: 100%" role="img" '
            f'aria-label="{escape(alt)}"{key}>{marks}</svg>'
        )

    def figure(self) -> Figure:
        """Return the same marks drawn by matplotlib, in the light theme."""
        with rc_context(rc=FONTS):
            figure = Figure((self.width / 72, self.height / 72), layout="none")
            ax: Any = figure.add_axes((0, 0, 1, 1))
            ax.set(xlim=(0, self.width), ylim=(self.height, 0))
            ax.axis("off")
            for z, mark in enumerate(self.marks):
                mark.plot(ax, z)
        return figure


def corners(x: float, y: float, w: float, h: float) -> list[Point]:
    """Return the corners of a rectangle, clockwise from the upper left one."""
    return [(x, y), (x + w, y), (x + w, y + h), (x, y + h)]


def curve(a: Point, b: Point, c: Point, d: Point, pieces: int = 12) -> list[Point]:
    """Return points of the curve from a to d that leaves towards b and comes from c.

    A `Shape` with a large radius joins them without corners.

    >>> curve((0, 0), (0, 4), (4, 4), (4, 0), pieces=2)
    [(0.0, 0.0), (2.0, 3.0), (4.0, 0.0)]
    """
    way = []
    for t in (k / pieces for k in range(pieces + 1)):
        shares = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3
        pairs = [*zip(shares, (a, b, c, d), strict=True)]
        way.append((sum(s * p[0] for s, p in pairs), sum(s * p[1] for s, p in pairs)))
    return way


def places(words: Sequence[str], size: float, left: float, right: float) -> list[float]:
    """Return the middle of each word of a line that reaches from left to right.

    >>> places(["to", "it"], 10, 0, 20)
    [4.6, 16.6]
    """
    wide = [sum(LETTERS.get(c, 0.58) for c in word) * size for word in words]
    gap = (right - left - sum(wide)) / max(len(words) - 1, 1)
    starts = [left + sum(wide[:k]) + k * gap for k in range(len(words))]
    return [round(x + w / 2, 1) for x, w in zip(starts, wide, strict=True)]


def _octagon(x: float, y: float, r: float) -> list[Point]:
    """Return corners of which a `Shape` with round corners makes a circle."""
    far, eighth = r / math.cos(math.pi / 8), math.pi / 4
    turns = [(k + 0.5) * eighth for k in range(8)]
    return [(x + far * math.cos(t), y + far * math.sin(t)) for t in turns]


def _toward(b: Point, a: Point, radius: float) -> Point:
    """Return the point before corner `b`, on the way from `a`, where it turns."""
    long = math.dist(a, b) or 1
    r = min(radius, long / 2) / long
    return b[0] + (a[0] - b[0]) * r, b[1] + (a[1] - b[1]) * r


def _rgba(role: str | None, alpha: float = 1) -> Any:
    return (LIGHT[role], alpha) if role else "none"


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
