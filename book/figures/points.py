"""Points in groups, with words beside them."""

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from figures.charts import MARKERS, axes, legend
from figures.checks import all_known
from figures.picture import Picture
from mha.plot.matrices import as_matrix, as_names
from mha.plot.picture import house_style


def points(
    groups: Mapping[str, ArrayLike], *, xlabel: str, ylabel: str, alt: str,
    names: Mapping[str, Sequence[object]] | None = None,
) -> Picture:  # fmt: skip
    """Show pairs of numbers as points, one colour and marker a group.

    Parameters
    ----------
    groups : dict {name: ndarray of shape (n, 2)}
        One row (x, y) a point.
    xlabel, ylabel : str
        What the two numbers are.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    names : dict {group: sequence of n names}, optional
        Words beside the points of a group, usually tokens.

    Returns
    -------
    picture : Picture
        More points are drawn smaller and lighter.

    Raises
    ------
    ValueError
        If a group is not an (n, 2) matrix, if names do not fit, or `alt` is empty.

    Examples
    --------
    >>> points({"a": [[0, 1], [1, 0]]}, xlabel="x", ylabel="y", alt="A falling pair.")
    Picture: A falling pair.
    """
    pairs = {name: as_matrix(name, xy, "(n, 2)") for name, xy in groups.items()}
    names = names or {}
    all_known("names", names, pairs)
    with house_style():
        figure, ax = axes(xlabel, ylabel, taller=1.3)
        for k, (name, xy) in enumerate(pairs.items()):
            if xy.shape[1] != 2:
                raise ValueError(f"{name} must have shape (n, 2), got {xy.shape}")
            size, alpha = (28, 0.9) if len(xy) <= 100 else (9, 0.5)
            look = {"marker": MARKERS[k % 6], "label": name, "linewidths": 0}
            ax.scatter(*xy.T, s=size, alpha=alpha, **look)
            words = names.get(name, [""] * len(xy))
            words = as_names("names", words, len(xy), "points")
            for word, place in zip(words, xy, strict=True):
                ax.annotate(word, place, (5, 3), textcoords="offset points", fontsize=9)
        legend(figure, ax)
        return Picture(figure, alt)
