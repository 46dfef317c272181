"""Tables of yes and no: a mark where something holds, a faint dot where not."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array

from figures.picture import INK, WIDTH, Picture
from mha.plot.matrices import as_matrix, as_names
from mha.plot.palette import LIGHT
from mha.plot.picture import house_style

LETTER, ROW = 0.078, 0.155  # inches


def marks(
    table: ArrayLike, rows: Sequence[object] | None = None,
    cols: Sequence[object] | None = None, *, alt: str, xlabel: str = "",
    ylabel: str = "", names: tuple[str, str] = ("yes", "no"), sort: bool = False,
) -> Picture:  # fmt: skip
    """Show a table of yes and no as marks, so that its structure can be seen.

    Parameters
    ----------
    table : bool ndarray of shape (n_rows, n_cols)
        A square is drawn where it is True, a faint dot where it is False.
    rows, cols : sequence of names, optional
        None numbers them from 0. Column names stand upright above the table.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    xlabel, ylabel : str
        What a column and a row stand for.
    names : pair of str
        What a square and a dot mean.
    sort : bool, default False
        Put the columns with most marks first, and rows that are alike together.

    Returns
    -------
    picture : Picture
        Rows and columns come in the order they are given, unless they are sorted.

    Raises
    ------
    ValueError
        If `table` is not a boolean matrix, the names do not fit it, or `alt` is empty.

    Examples
    --------
    >>> marks(np.eye(2) > 0, ["a", "b"], ["c", "d"], alt="Each law kills one bug.")
    Picture: Each law kills one bug.
    """
    holds = as_matrix("table", table, "(n_rows, n_cols)")
    if holds.dtype != bool:
        raise ValueError(f"table must be boolean, got {holds.dtype}")
    down = as_names("rows", rows, holds.shape[0], "rows")
    across = as_names("cols", cols, holds.shape[1], "columns")
    if sort:
        holds, down, across = _sorted(holds, down, across)
    margin = 0.5 + LETTER * max(map(len, down))
    cell = min(ROW * 1.15, (WIDTH - margin) / len(across))  # inches
    width = min(WIDTH, margin + cell * len(across) + 0.2)
    height = ROW * len(down) + LETTER * max(map(len, across)) + 0.8
    with house_style():
        figure = Figure((width, height))
        ax: Any = figure.subplots()
        yes, no = np.argwhere(holds), np.argwhere(~holds)
        size = (0.66 * min(cell, ROW) * 72) ** 2
        handles = [
            ax.scatter(
                *yes.T[::-1], s=size, marker="s", color=LIGHT["wrong"], linewidths=0
            ),
            ax.scatter(*no.T[::-1], s=2, color=INK, alpha=0.45, linewidths=0),
        ]
        ax.set(xlim=(-0.6, len(across) - 0.4), ylim=(len(down) - 0.4, -0.6))
        ax.grid(False)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0, labelsize=8)
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        ax.set_xticks(range(len(across)), across, rotation=90)
        ax.set_yticks(range(len(down)), down)
        ax.set(xlabel=xlabel, ylabel=ylabel)
        figure.legend(handles, names, loc="outside lower center", ncols=2)
        return Picture(figure, alt)


def _sorted(
    table: Array, rows: list[str], cols: list[str]
) -> tuple[Array, list[str], list[str]]:
    busy = np.argsort(-table.sum(0), kind="stable")
    alike = sorted(range(len(table)), key=lambda k: tuple(~table[k, busy]))
    return table[alike][:, busy], [rows[k] for k in alike], [cols[k] for k in busy]
