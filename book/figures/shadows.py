"""A dot product seen: the shadow of one vector on the line of another."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array

from figures.checks import as_series
from figures.picture import INK, Picture
from mha.plot.palette import LIGHT
from mha.plot.picture import house_style

Named = tuple[str, ArrayLike]


def shadows(pairs: Sequence[tuple[Named, Named]], *, alt: str) -> Picture:
    """Show dot products of vectors of the plane as shadow times length.

    Parameters
    ----------
    pairs : sequence of ((name, q), (name, k))
        Each pair is a panel, in which q throws its shadow on the line of k.
    alt : str
        One sentence with the finding, for readers who do not see the picture.

    Returns
    -------
    picture : Picture
        Above each panel stand the length of the shadow, that of k, and their product.
        The shadow is negative where it falls on the other side of the origin.

    Raises
    ------
    ValueError
        If there is no pair, a vector is not in the plane, a k has length 0, or `alt`
        is empty.

    Examples
    --------
    >>> shadows([(("q", (1, 1)), ("k", (2, 0)))], alt="Its shadow has length 1.")
    Picture: Its shadow has length 1.
    """
    if not len(pairs):
        raise ValueError("pairs must hold at least one pair")
    read = [[(name, as_series(name, x, 2)) for name, x in pair] for pair in pairs]
    for _, (name, k) in read:
        if not k.any():
            raise ValueError(f"{name} has length 0, and no line to throw a shadow on")
    corners = np.array([(0, 0), *(x for pair in read for _, x in pair)])
    low, high = corners.min(0), corners.max(0)
    pad = 0.28 * (high - low).max()
    across, up = high - low + 2 * pad
    with house_style():
        width = min(2.3 * len(read), 4.6) / len(read)
        figure = Figure((width * len(read), width * up / across + 0.5))
        row = figure.subplots(1, len(read), squeeze=False)[0]
        for ax, (q, k) in zip(row, read, strict=True):
            ax.set(
                xlim=(low[0] - pad, high[0] + pad), ylim=(low[1] - pad, high[1] + pad)
            )
            _panel(ax, q, k, pad)
        return Picture(figure, alt)


def _panel(ax: Any, q: tuple[str, Array], k: tuple[str, Array], unit: float) -> None:
    (q_name, q_tip), (k_name, k_tip) = q, k
    length = np.linalg.norm(k_tip)
    along = k_tip / length
    shadow = q_tip @ along
    foot = shadow * along
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.axline((0, 0), along, color=INK, lw=0.8, alpha=0.5)
    ax.plot(*zip((0, 0), foot, strict=True), lw=9, color=LIGHT["query"], alpha=0.3,
            solid_capstyle="butt")  # fmt: skip
    ax.plot(*zip(q_tip, foot, strict=True), lw=1.2, ls=":", color=INK)
    for tip, role in ((k_tip, "key"), (q_tip, "query")):
        look = {"arrowstyle": "-|>", "color": LIGHT[role], "lw": 2}
        ax.annotate("", tip, (0, 0), arrowprops=look | {"shrinkA": 0, "shrinkB": 0})
    across = np.array([along[1], -along[0]])
    away = across if across @ q_tip <= 0 else -across  # the side where q is not
    ahead = q_tip / (np.linalg.norm(q_tip) or 1)
    for name, at, role in (
        (f"{shadow:.3g}", foot / 2 + 0.55 * unit * away, "ink"),
        (k_name, k_tip + 0.45 * unit * away, "key"),
        (q_name, q_tip + 0.45 * unit * ahead, "query"),
    ):
        colour = INK if role == "ink" else LIGHT[role]
        ax.text(*at, name, color=colour, ha="center", va="center")
    ax.set_title(
        f"shadow of {q_name} on {k_name}:\n"
        f"{shadow:.3g} × {length:.3g} = {q_tip @ k_tip:.3g}",
        fontsize=10,
    )
