"""Walks along a line, each a score that is added up product by product."""

import numpy as np
from matplotlib.collections import LineCollection
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array

from figures.charts import axes, legend
from figures.picture import INK, Picture
from mha.plot.matrices import as_matrix
from mha.plot.picture import house_style


def walks(steps: ArrayLike, *, alt: str) -> Picture:
    """Show where walks are after each step, and how far the root of their length goes.

    Parameters
    ----------
    steps : array_like of shape (n_walks, n_steps)
        Row k holds the steps of walk k, such as the products of a query and a key.
    alt : str
        One sentence with the finding, for readers who do not see the picture.

    Returns
    -------
    picture : Picture
        A dot ends each walk; the dashed lines are plus and minus the root of the
        number of steps.

    Raises
    ------
    ValueError
        If `steps` is not a matrix, or `alt` is empty.

    Examples
    --------
    >>> walks([[1, 1, -1], [-1, 1, -1]], alt="Both walks end one step from zero.")
    Picture: Both walks end one step from zero.
    """
    paths = ways(as_matrix("steps", steps, "(n_walks, n_steps)"))
    n = paths.shape[1]
    taken = np.arange(n)
    lines = [np.column_stack([taken, path]) for path in paths]
    with house_style():
        figure, ax = axes("products added up", "sum so far", taller=1.15)
        look = {"colors": "C0", "linewidths": 0.9, "alpha": 0.55}
        ax.add_collection(LineCollection(lines, label="a score", **look))
        ax.scatter(np.full(len(paths), n - 1), paths[:, -1], s=14, color="C0", zorder=3)
        far = np.linspace(0, n - 1, 128)
        for sign, label in ((1, "± root of the number of products"), (-1, None)):
            ax.plot(far, sign * np.sqrt(far), color=INK, ls="--", lw=1.4, label=label)
        top = 1.08 * max(np.abs(paths).max(), np.sqrt(n - 1))
        ax.set(xlim=(0, 1.03 * (n - 1)), ylim=(-top, top))
        legend(figure, ax)
        return Picture(figure, alt)


def ways(steps: Array) -> Array:
    """Return where each walk is before its first step and after each one.

    Examples
    --------
    >>> ways(np.array([[1, 1, -1]]))
    array([[0, 1, 2, 1]])
    """
    return np.cumsum(np.insert(steps, 0, 0, axis=1), axis=1)
