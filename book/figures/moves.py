"""Points that move, in panels side by side."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array

from figures.picture import INK, WIDTH, Picture
from mha.plot.matrices import as_matrix
from mha.plot.picture import house_style

PANEL, MARGIN = 1.75, 0.75  # inches


def moves(
    panels: Mapping[str, tuple[ArrayLike, ArrayLike]], *, xlabel: str, ylabel: str,
    alt: str, names: tuple[str, str] = ("before", "after"),
) -> Picture:  # fmt: skip
    """Show where points move, one panel for each way of moving them.

    Parameters
    ----------
    panels : dict {label: (start, end)}
        Two ndarrays of shape (n, 2) each; row k of `end` is where row k of `start`
        went. The label stands above the panel.
    xlabel, ylabel : str
        What the two numbers are.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    names : pair of str
        What a ring (start) and a dot (end) stand for.

    Returns
    -------
    picture : Picture
        All panels share their limits; a thin line joins start and end.

    Raises
    ------
    ValueError
        If there is no panel, if an array is not an (n, 2) matrix, if `start` and `end`
        differ in shape, or `alt` is empty.

    Examples
    --------
    >>> moves({"halved": ([[2, 4]], [[1, 2]])}, xlabel="x", ylabel="y", alt="Nearer.")
    Picture: Nearer.
    """
    pairs = {label: _pair(label, *pair) for label, pair in panels.items()}
    if not pairs:
        raise ValueError("panels must hold at least one pair of (n, 2) matrices")
    top = 1.08 * max(np.abs(pair).max() for pair in pairs.values())
    with house_style():
        width = min(WIDTH, MARGIN + PANEL * len(pairs))
        figure = Figure((width, (width - MARGIN) / len(pairs) + 1.1))
        axes = figure.subplots(1, len(pairs), sharex=True, sharey=True, squeeze=False)
        line: dict[str, Any] = {"colors": INK, "linewidths": 0.6, "alpha": 0.45}
        ring = {"facecolors": "none", "edgecolors": "C0", "linewidths": 1.1}
        dot = {"color": "C1", "linewidths": 0, "zorder": 3}
        for ax, (label, (start, end)) in zip(axes[0], pairs.items(), strict=True):
            ax.grid(True)
            steps = LineCollection([*np.stack([start, end], axis=1)], **line)
            ax.add_collection(steps)
            ax.scatter(*start.T, s=26, label=names[0], **ring)
            ax.scatter(*end.T, s=9, label=names[1], **dot)
            ax.set(xlim=(-top, top), ylim=(-top, top), xlabel=xlabel, aspect="equal")
            ax.text(0.5, 1.04, label, transform=ax.transAxes, ha="center", va="bottom")
        axes[0, 0].set_ylabel(ylabel)
        handles, texts = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside upper left", ncols=2)
        return Picture(figure, alt)


def _pair(label: str, before: ArrayLike, after: ArrayLike) -> tuple[Array, Array]:
    start, end = (as_matrix(label, x, "(n, 2)") for x in (before, after))
    if start.shape != end.shape or start.shape[1] != 2:
        raise ValueError(
            f"{label} must hold two matrices of one shape (n, 2), got {start.shape} "
            f"and {end.shape}"
        )
    return start, end
