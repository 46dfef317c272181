"""Vectors in the plane."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Polygon
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array

from figures.checks import all_known, as_series
from figures.hull import convex_hull
from figures.picture import INK, Picture
from mha.plot.palette import LIGHT, ROLES
from mha.plot.picture import house_style


def vectors(
    arrows: Mapping[str, ArrayLike], *, alt: str,
    roles: Mapping[str, str] | None = None,
    angles: Sequence[tuple[str, str]] = (), hull: Sequence[str] = (),
) -> Picture:  # fmt: skip
    """Show vectors of the plane as arrows from the origin.

    Parameters
    ----------
    arrows : dict {name: (x, y)}
        The tips.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    roles : dict {name: "query" | "key" | "value" | "output"}, optional
        Gives an arrow the colour of its role; without one it has the ink of the text.
    angles : sequence of (name, name)
        Pairs between which an arc shows the angle in degrees.
    hull : sequence of names
        Vectors whose convex hull is shaded.

    Returns
    -------
    picture : Picture
        Both axes have the same unit, so lengths and angles are true.

    Raises
    ------
    ValueError
        If a vector is not in the plane, a name or a role is unknown, or `alt` is empty.

    Examples
    --------
    >>> vectors({"q": (1, 0), "k": (0, 1)}, angles=[("q", "k")], alt="A right angle.")
    Picture: A right angle.
    """
    tips = {name: as_series(name, tip, 2) for name, tip in arrows.items()}
    roles = roles or {}
    named = [*roles, *(name for pair in angles for name in pair), *hull]
    all_known("roles, angles and hull", named, tips)
    all_known("roles", roles.values(), ROLES)
    corners = np.array([(0, 0), *tips.values()])
    with house_style():
        figure, ax = _plane(corners)
        if len(hull):
            shape = convex_hull([tips[name] for name in hull])
            ax.add_patch(Polygon(shape, fc=LIGHT["value"], alpha=0.2))
        for name, tip in tips.items():
            colour = LIGHT.get(roles.get(name, ""), INK)
            look = {"arrowstyle": "-|>", "color": colour, "lw": 2}
            look |= {"shrinkA": 0, "shrinkB": 0}
            ax.annotate("", tip, (0, 0), arrowprops=look)
            side = label_side(tip, tips.values())
            place = {"ha": _nearest(side[0], "right", "left")}
            place["va"] = _nearest(side[1], "top", "bottom")
            ax.annotate(name, tip, 5 * side, textcoords="offset points", **place)
        reach = np.linalg.norm(corners, axis=1).max()
        for k, (a, b) in enumerate(angles):
            _angle(ax, tips[a], tips[b], reach * (0.25 + 0.12 * k))
        return Picture(figure, alt)


def _plane(corners: Array) -> tuple[Figure, Any]:
    """Return axes with equal units that hold all corners and the origin."""
    low, high = corners.min(0), corners.max(0)
    pad = 0.18 * (high - low).max() or 1
    across, up = high - low + 2 * pad
    scale = min(4.2 / across, 3.2 / up)
    figure = Figure((across * scale + 0.5, up * scale + 0.4))
    ax = figure.add_subplot(aspect="equal")
    ax.set(xlim=(low[0] - pad, high[0] + pad), ylim=(low[1] - pad, high[1] + pad))
    ax.grid(True)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.axhline(0, color=INK, lw=0.8, alpha=0.5)
    ax.axvline(0, color=INK, lw=0.8, alpha=0.5)
    return figure, ax


def _nearest(part: float, low: str, high: str) -> str:
    return "center" if abs(part) < 0.3 else low if part < 0 else high


def label_side(tip: ArrayLike, others: Iterable[ArrayLike]) -> Array:
    """Return the direction in which the name of an arrow stands from its tip.

    Ahead of the tip there is room, unless a longer arrow goes the same way; then the
    name stands beside the tip, on the side away from that arrow.

    Examples
    --------
    >>> label_side((0, 1), others=[(2, 0)])
    array([0., 1.])
    >>> label_side((0, 1), others=[(0.1, 2)])
    array([-1.,  0.])
    """
    length = np.linalg.norm(tip) or 1
    x, y = np.divide(tip, length)
    crowd = []
    for a, b in map(np.asarray, others):
        along, across = x * a + y * b, x * b - y * a
        # An arrow is not longer than itself, rounding aside.
        if along > 1.001 * length and abs(across) < 0.2 * along:
            crowd.append(across)
    if not crowd:
        return np.array([x, y])
    return np.array([y, -x]) if sum(crowd) > 0 else np.array([-y, x])


def _angle(ax: Any, a: Array, b: Array, radius: float) -> None:
    """Draw the arc between two vectors and write its degrees beside the middle."""
    first, second = (np.degrees(np.arctan2(v[1], v[0])) for v in (a, b))
    turn = (second - first + 180) % 360 - 180
    start, end = (first, first + turn) if turn >= 0 else (first + turn, first)
    ends = {"theta1": start, "theta2": end}
    ax.add_patch(Arc((0, 0), 2 * radius, 2 * radius, **ends, ec=INK, lw=1))
    middle = np.radians((start + end) / 2)
    place = 1.25 * radius * np.array([np.cos(middle), np.sin(middle)])
    ax.text(*place, f"{abs(turn):.0f}°", ha="center", va="center", fontsize=9)
