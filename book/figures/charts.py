"""Bars and lines."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array

from figures.checks import as_series
from figures.picture import INK, Picture
from mha.plot.matrices import as_names
from mha.plot.picture import house_style

SIZE = (4.8, 2.6)  # inches; narrower than the column: type stays large on a phone
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = "osD^vP"
Scale = Literal["linear", "log"]


def bars(
    p: ArrayLike | Mapping[str, ArrayLike], labels: Sequence[object] | Array, *,
    alt: str, ylabel: str = "weight",
) -> Picture:  # fmt: skip
    """Show one value, or one value a series, for each label.

    Parameters
    ----------
    p : vector of n values, or dict {series name: vector of n values}
        Heights; a dict draws grouped bars.
    labels : sequence of n names
        What the bars stand for, usually tokens.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    ylabel : str
        What a height means.

    Returns
    -------
    picture : Picture
        Up to twelve bars carry their value.

    Raises
    ------
    ValueError
        If the number of labels differs from the number of values, or `alt` is empty.

    Examples
    --------
    >>> bars([0.2, 0.8], ["dog", "food"], alt="Food gets four times the share of dog.")
    Picture: Food gets four times the share of dog.
    """
    named = p if isinstance(p, Mapping) else {"": p}
    series = {name: as_series(name or "p", y) for name, y in named.items()}
    for y in series.values():
        names = as_names("labels", labels, len(y), "values")
    width = 0.8 / len(series)
    with house_style():
        figure, ax = axes("", ylabel)
        for k, (name, y) in enumerate(series.items()):
            x = np.arange(len(y)) + (k - (len(series) - 1) / 2) * width
            drawn = ax.bar(x, y, 0.92 * width, label=name)
            if len(names) * len(series) <= 12:
                ax.bar_label(drawn, fmt="%.2f", fontsize=8.5, padding=2)
        ax.set_xticks(range(len(names)), names)
        if max(map(len, names)) * len(names) > 60:  # they would run into each other
            for text in ax.get_xticklabels():
                text.set(rotation=40, ha="right", rotation_mode="anchor")
        ax.grid(False, axis="x")
        ax.tick_params(axis="x", length=0)
        ax.axhline(0, color=INK, lw=0.8)
        ax.spines.bottom.set_visible(False)
        ax.margins(y=0.1)
        legend(figure, ax)
        return Picture(figure, alt)


def lines(
    x: ArrayLike, ys: Mapping[str, Any], *, xlabel: str, ylabel: str, alt: str,
    xscale: Scale = "linear", yscale: Scale = "linear",
    reference: Mapping[str, ArrayLike] | None = None,
) -> Picture:  # fmt: skip
    """Show values that follow `x`, with a band where their spread is known.

    Parameters
    ----------
    x : vector of n values
        Where the values were taken.
    ys : dict {name: vector of n values, or tuple (middle, low, high) of such vectors}
        A tuple draws a line and a band from low to high.
    xlabel, ylabel : str
        In lower case, with the unit if there is one.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    xscale, yscale : {"linear", "log"}
        On a logarithmic axis up to eight values of `x` become the marks.
    reference : dict {name: number or vector of n values}, optional
        What theory says: dashed, in the ink of the text.

    Returns
    -------
    picture : Picture
        Lines differ in dash and marker too, not in colour alone.

    Raises
    ------
    ValueError
        If a series is not as long as `x`, or `alt` is empty.

    Examples
    --------
    >>> lines([1, 4, 9], {"root": [1, 2, 3]}, xlabel="x", ylabel="y", alt="A root.")
    Picture: A root.
    """
    x = as_series("x", x)
    with house_style():
        figure, ax = axes(xlabel, ylabel)
        ax.set(xscale=xscale, yscale=yscale)
        for k, (name, y) in enumerate(ys.items()):
            middle, *band = y if isinstance(y, tuple) else (y,)
            y, marker = as_series(name, middle, len(x)), MARKERS[k % 6]
            marker = marker if len(x) <= 12 else ""
            ax.plot(x, y, ls=DASHES[k % 6], marker=marker, label=name)
            if band:
                low, high = (as_series(name, edge, len(x)) for edge in band)
                ax.fill_between(x, low, high, color=f"C{k}", alpha=0.25)
        for k, (name, y) in enumerate((reference or {}).items()):
            y = np.full(len(x), y) if np.ndim(y) == 0 else as_series(name, y, len(x))
            ax.plot(x, y, color=INK, ls=(0, (2 + 4 * k, 2)), lw=1.2, label=name)
        _logarithmic(ax, x)
        legend(figure, ax)
        return Picture(figure, alt)


def axes(xlabel: str, ylabel: str, taller: float = 1) -> tuple[Figure, Any]:
    """Return a figure with one pair of axes, `taller` than the others by this."""
    figure = Figure((SIZE[0], taller * SIZE[1]))
    ax = figure.add_subplot()
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.grid(True)
    return figure, ax


def _logarithmic(ax: Any, x: Array) -> None:
    """Write plain numbers along logarithmic axes, and enough of them."""
    for axis in (ax.xaxis, ax.yaxis):
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            subs = (1,) if high > 99 * low else (1, 2, 5)
            axis.set_major_locator(LogLocator(subs=subs))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_locator(NullLocator())
    if ax.get_xscale() == "log" and len(x) <= 8:
        ax.xaxis.set_major_locator(FixedLocator(x.tolist()))


def legend(figure: Figure, ax: Any) -> None:
    """Name the series above the axes, unless there is one without a name."""
    handles, names = ax.get_legend_handles_labels()
    if names:
        columns = int(SIZE[0] / (0.7 + 0.085 * max(map(len, names))))
        figure.legend(handles, names, loc="outside upper left", ncols=max(1, columns))
