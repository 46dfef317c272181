"""The convex hull of points of the plane: where a weighted average can be."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Point = Sequence[float] | NDArray[Any]


def convex_hull(points: Iterable[Point]) -> NDArray[Any]:
    """Return the corners of the convex hull, counter-clockwise.

    Parameters
    ----------
    points : sequence of (x, y)
        At least one point of the plane.

    Returns
    -------
    corners : ndarray of shape (n, 2)
        Points inside the hull, or on an edge, are left out.

    Examples
    --------
    >>> convex_hull([(0, 0), (2, 0), (1, 0.5), (1, 2)]).tolist()
    [[0.0, 0.0], [2.0, 0.0], [1.0, 2.0]]
    """
    ordered = sorted({(float(x), float(y)) for x, y in points})
    corners = _chain(ordered) + _chain(ordered[::-1])
    return np.array(corners or ordered)


def _chain(ordered: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Walk along the points and keep only those where the path turns left."""
    kept: list[tuple[float, float]] = []
    for p in ordered:
        while len(kept) > 1 and _turn(kept[-2], kept[-1], p) <= 0:
            kept.pop()
        kept.append(p)
    return kept[:-1]  # the other chain begins with it


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
