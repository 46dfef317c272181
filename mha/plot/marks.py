"""What a drawing is made of: shapes and words in roles, as SVG and by matplotlib."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from matplotlib.patches import PathPatch
from matplotlib.path import Path

from mha.plot.palette import LIGHT, paint

Point = tuple[float, float]
SERIF = "'Iowan Old Style', 'Palatino Linotype', Palatino, P052, Georgia, serif"
CODES = {"M": Path.MOVETO, "L": Path.LINETO, "Q": Path.CURVE3, "Z": Path.CLOSEPOLY}
ALIGN = {"start": "left", "middle": "center", "end": "right"}


def short(x: float) -> str:
    """Return a coordinate with at most two decimals."""
    return f"{round(x, 2) + 0:g}"


@dataclass(frozen=True)
class Shape:
    """Lines or areas of one look, with round corners.

    With a `grid` (x, y, size) they are measured in its cells, and cells touch.
    """

    lines: Sequence[Sequence[Point]]
    fill: str | None
    alpha: float
    stroke: str | None = None
    width: float = 0
    radius: float = 0
    closed: bool = True
    grid: tuple[float, float, float] | None = None

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
        if self.fill and self.alpha < 1:
            look += f' fill-opacity="{short(self.alpha)}"'
        if self.stroke:
            look += f' stroke="{paint(self.stroke)}" stroke-width="{short(self.width)}"'
        if self.grid:
            x, y, size = map(short, self.grid)
            look += f' transform="translate({x} {y}) scale({size})"'
            look += ' shape-rendering="crispEdges"'
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
        x, y, size = self.grid or (0, 0, 1)
        places = [(x + size * p, y + size * q) for _, (p, q) in steps]
        path = Path(places, [code for code, _ in steps])
        look: dict[str, Any] = {"fc": _rgba(self.fill, self.alpha), "zorder": z}
        look |= {"ec": _rgba(self.stroke), "lw": self.width, "aa": not self.grid}
        ax.add_patch(PathPatch(path, capstyle="round", joinstyle="round", **look))


@dataclass(frozen=True)
class Text:
    """Words, as they are."""

    x: float
    y: float
    words: str
    size: float
    role: str
    anchor: str
    bold: bool
    serif: bool
    turn: float

    def svg(self) -> str:
        """Return a text element."""
        x, y = short(self.x), short(self.y)
        look = f'x="{x}" y="{y}" font-size="{short(self.size)}"'
        look += f' text-anchor="{self.anchor}"' * (self.anchor != "start")
        look += ' font-weight="600"' * self.bold
        look += f' font-family="{SERIF}"' * self.serif
        look += f' transform="rotate({short(self.turn)} {x} {y})"' * bool(self.turn)
        return f'<text {look} fill="{paint(self.role)}">{self.inside()}</text>'

    def inside(self) -> str:
        """Return what stands inside the text element."""
        return escape(self.words)

    def plot(self, ax: Any, z: int) -> None:
        """Write on axes whose units are points."""
        look: dict[str, Any] = {"ha": ALIGN[self.anchor], "va": "baseline", "zorder": z}
        look |= {"rotation": -self.turn, "rotation_mode": "anchor"}
        look |= {"family": "DejaVu Serif" if self.serif else "DejaVu Sans"}
        look |= {"weight": "bold" if self.bold else "normal", "parse_math": False}
        # DejaVu is wider than what most pages have
        look |= {"size": 0.92 * self.size, "color": _rgba(self.role)}
        ax.text(self.x, self.y, self.words, **look)


def _toward(b: Point, a: Point, radius: float) -> Point:
    """Return the point before corner `b`, on the way from `a`, where it turns."""
    long = math.dist(a, b) or 1
    r = min(radius, long / 2) / long
    return b[0] + (a[0] - b[0]) * r, b[1] + (a[1] - b[1]) * r


def _rgba(role: str | None, alpha: float = 1) -> Any:
    return (LIGHT[role], alpha) if role else "none"
