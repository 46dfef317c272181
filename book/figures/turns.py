"""A query and a key, rotated by their positions, at several places of a text."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array

from figures.checks import as_series
from figures.picture import INK, WIDTH, Picture
from mha.plot.palette import LIGHT
from mha.plot.picture import house_style


def turns(
    query: ArrayLike, key: ArrayLike, places: Sequence[tuple[int, int]], *,
    words: tuple[str, str], alt: str,
) -> Picture:  # fmt: skip
    """Show a query and a key of two numbers, rotated by one radian per position.

    Equation: (R_i q) · (R_j k) = q · (R_{j−i} k)  (chapter since_2017)

    Parameters
    ----------
    query, key : array_like of shape (2,)
        Before they are rotated.
    places : sequence of (i, j)
        One panel for each: the positions of the query and of the key.
    words : pair of str
        The words that the query and the key belong to.
    alt : str
        One sentence with the finding, for readers who do not see the picture.

    Returns
    -------
    picture : Picture
        Two arrows per panel, and the dot product below.

    Raises
    ------
    ValueError
        If a vector does not have two numbers, there is no place, or `alt` is empty.

    Examples
    --------
    >>> turns([2, 1], [1, 1], [(0, 0)], words=("it", "dog"), alt="One angle.")
    Picture: One angle.
    """
    q, k = as_series("query", query), as_series("key", key)
    if len(q) != 2 or len(k) != 2 or not places:
        raise ValueError(
            "query and key must have two numbers, and there must be places"
        )
    reach = 1.15 * max(np.hypot(*q), np.hypot(*k))
    with house_style():
        figure = Figure((min(1.9 * len(places), WIDTH), 2.75))
        row = figure.subplots(1, len(places), squeeze=False)[0]
        for ax, (i, j) in zip(row, places, strict=True):
            tips = rotated(q, i), rotated(k, j)
            _plane(ax, reach)
            for tip, role, dash in zip(
                tips, ("query", "key"), ("-", "--"), strict=True
            ):
                look = {"color": LIGHT[role], "lw": 2.2, "linestyle": dash}
                ax.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", **look})
            ax.set_title(f"{words[0]} at {i}\n{words[1]} at {j}", fontsize=10)
            score = f"score {tips[0] @ tips[1]:.2f}".replace("-", "−")
            ax.text(0, -1.28 * reach, score, ha="center", va="center", fontsize=10)
        names = f"query of {words[0]}", f"key of {words[1]}"
        handles = [
            row[0].plot([], [], dash, color=LIGHT[role], lw=2.2)[0]
            for role, dash in (("query", "-"), ("key", "--"))
        ]
        figure.legend(handles, names, loc="outside lower center", ncols=2)
        return Picture(figure, alt)


def rotated(x: Array, angle: float) -> Array:
    """Return two numbers, rotated counter-clockwise by an angle in radians.

    Examples
    --------
    >>> rotated(np.array([1.0, 0.0]), np.pi / 2).round(3)
    array([0., 1.])
    """
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * x[0] - s * x[1], s * x[0] + c * x[1]])


def _plane(ax: Any, reach: float) -> None:
    """Draw the axes of a plane without numbers."""
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.set(xlim=(-reach, reach), ylim=(-1.45 * reach, reach))
    ax.grid(False)
    ax.spines[:].set_visible(False)
    for ends in (((-reach, reach), (0, 0)), ((0, 0), (-reach, reach))):
        ax.plot(*ends, color=INK, lw=0.8, alpha=0.4)
