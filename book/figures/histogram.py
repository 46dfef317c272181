"""How often values occur."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array

from figures.charts import DASHES, axes, legend
from figures.picture import Picture
from mha.plot.picture import house_style


def histogram(
    values: Mapping[str, ArrayLike], *, xlabel: str, alt: str,
    bins: int | Sequence[float] | Array = 40,
) -> Picture:  # fmt: skip
    """Show how often values occur, as densities on shared bins.

    Parameters
    ----------
    values : dict {name: array of numbers}
        Each array is flattened.
    xlabel : str
        What the values measure.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    bins : int or sequence of edges
        Shared by all series, so that heights compare.

    Returns
    -------
    picture : Picture
        Each outline encloses an area of 1.

    Raises
    ------
    ValueError
        If `values` or one of its arrays is empty, or `alt` is empty.

    Examples
    --------
    >>> histogram({"scores": [-1, 0, 0, 1]}, xlabel="score", alt="Symmetric about 0.")
    Picture: Symmetric about 0.
    """
    arrays = {name: np.ravel(v).astype(float) for name, v in values.items()}
    empty = [name for name, v in arrays.items() if v.size == 0]
    if empty or not arrays:
        which = empty or "any name"
        raise ValueError(f"values must hold numbers, got none for {which}")
    edges = np.histogram_bin_edges(np.concatenate([*arrays.values()]), bins)
    with house_style():
        figure, ax = axes(xlabel, "density")
        for k, (name, v) in enumerate(arrays.items()):
            density = np.histogram(v, edges, density=True)[0]
            look = {"color": f"C{k}", "ls": DASHES[k % 6], "label": name}
            ax.stairs(density, edges, fill=True, color=f"C{k}", alpha=0.2)
            ax.stairs(density, edges, lw=1.6, **look)
        legend(figure, ax)
        return Picture(figure, alt)
