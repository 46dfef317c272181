"""Charts: bars, lines, histograms, points, and tokens layer after layer."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib import style
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from figures.picture import COLOURS, Picture, finished

STYLE = Path(__file__).with_name("book.mplstyle")
INK = COLOURS["ink"]
WIDTH = 6.0  # inches; the text column of the book
SIZE = (4.8, 2.6)  # inches; narrower than the column: type stays large on a phone
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = "osD^vP"
STILL = 4  # states of the tokens that `collapse` shows
Scale = Literal["linear", "log"]


def house_style() -> AbstractContextManager[Any]:
    """Return a context: the style of the book, whatever the reader's own settings."""
    return style.context(["default", STYLE])


def bars(
    p: ArrayLike, labels: Sequence[object], *, alt: str, ylabel: str = "weight"
) -> Picture:
    """Show one value for each of n labels, written above its bar if n is at most 12.

    >>> bars([0.2, 0.8], ["dog", "food"], alt="Food gets four times the share of dog.")
    Picture: Food gets four times the share of dog.
    """
    names = [*map(str, labels)]
    with house_style():
        figure, ax = axes("", ylabel)
        drawn = ax.bar(range(len(names)), as_series("p", p, len(names)), 0.736)
        if len(names) <= 12:
            ax.bar_label(drawn, fmt=as_share, padding=2)
        ax.set_xticks(range(len(names)), names)
        if max(map(len, names)) * len(names) > 60:  # they would run into each other
            for text in ax.get_xticklabels():
                text.set(rotation=40, ha="right", rotation_mode="anchor")
        ax.grid(False, axis="x")
        ax.tick_params(axis="x", length=0)
        ax.axhline(0, color=INK, lw=0.8)
        ax.spines.bottom.set_visible(False)
        ax.margins(y=0.1)
        return finished(figure, alt)


def lines(
    x: ArrayLike, ys: Mapping[str, Any], *, xlabel: str, ylabel: str, alt: str,
    xscale: Scale = "linear", yscale: Scale = "linear",
    reference: Mapping[str, ArrayLike] | None = None,
) -> Picture:  # fmt: skip
    """Show values that follow `x`, with a band where their spread is known.

    Lines differ in dash and marker too, not in colour alone.

    Parameters
    ----------
    x : vector of n values
        Where the values were taken.
    ys : dict {name: vector of n values, or tuple (middle, low, high) of such vectors}
        A tuple draws a line and a band from low to high.
    xscale, yscale : {"linear", "log"}
        On a logarithmic axis up to eight values of `x` become the marks.
    reference : dict {name: number or vector of n values}, optional
        What theory says: dashed, in the ink of the text.

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
            y = np.broadcast_to(np.asarray(y, dtype=float), x.shape)
            ax.plot(x, y, color=INK, ls=(0, (2 + 4 * k, 2)), lw=1.2, label=name)
        _logarithmic(ax, x)
        if xscale == "linear" and not np.any(x % 1):
            ax.locator_params(axis="x", integer=True)
        legend(figure, ax)
        return finished(figure, alt)


def moves(
    panels: Mapping[str, tuple[ArrayLike, ArrayLike]], *, xlabel: str, ylabel: str,
    alt: str, names: tuple[str, str] = ("before", "after"),
) -> Picture:  # fmt: skip
    """Show where points move, one panel for each way of moving them.

    All panels share their limits; a thin line joins start and end.

    Parameters
    ----------
    panels : dict {label: (start, end)}
        Two ndarrays of shape (n, 2) each; row k of `end` is where row k of `start`
        went. The label stands above the panel.
    names : pair of str
        What a ring (start) and a dot (end) stand for.

    >>> moves({"halved": ([[2, 4]], [[1, 2]])}, xlabel="x", ylabel="y", alt="Nearer.")
    Picture: Nearer.
    """
    pairs = {label: np.array(pair, dtype=float) for label, pair in panels.items()}
    top = 1.08 * max(np.abs(pair).max() for pair in pairs.values())
    with house_style():
        width = min(WIDTH, 0.75 + 1.75 * len(pairs))
        figure = Figure((width, (width - 0.75) / len(pairs) + 1.1))
        grid = figure.subplots(1, len(pairs), sharex=True, sharey=True, squeeze=False)
        line: dict[str, Any] = {"colors": INK, "linewidths": 0.6, "alpha": 0.45}
        ring = {"facecolors": "none", "edgecolors": "C0", "linewidths": 1.1}
        dot = {"color": "C1", "linewidths": 0, "zorder": 3}
        for ax, (label, (start, end)) in zip(grid[0], pairs.items(), strict=True):
            ax.grid(True)
            steps = LineCollection([*np.stack([start, end], axis=1)], **line)
            ax.add_collection(steps)
            ax.scatter(*start.T, s=40, label=names[0], **ring)
            ax.scatter(*end.T, s=15, label=names[1], **dot)
            ax.set(xlim=(-top, top), ylim=(-top, top), xlabel=xlabel, aspect="equal")
            ax.text(0.5, 1.04, label, transform=ax.transAxes, ha="center", va="bottom")
        grid[0, 0].set_ylabel(ylabel)
        handles, texts = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside upper left", ncols=2)
        return finished(figure, alt)


def collapse(
    tracks: Mapping[str, ArrayLike], words: Sequence[str], *, alt: str
) -> Picture:
    """Show the first two numbers of each token before and after the first rounds.

    Below each panel stands the length of what is not common to the tokens, as a
    share of their length.

    Parameters
    ----------
    tracks : dict {name: array_like of shape (layers + 1, n, d)}
        The tokens before the first layer and after each, for every kind of layer. All
        tokens of a layer are divided by one number, the root of their mean squared
        length, so that only what differs between them is seen.
    words : sequence of n tokens
        Their names.

    >>> collapse({"halved": [[[2, 4], [0, 1]], [[1, 2], [0, 0]]]}, "ab", alt="Two.")
    Picture: Two.
    """
    states = {name: np.array(track)[:STILL] for name, track in tracks.items()}
    scaled = {
        name: x / np.sqrt((x**2).sum(-1).mean(-1))[:, None, None]
        for name, x in states.items()
    }
    reach = 1.1 * max(np.abs(x[..., :2]).max() for x in scaled.values())
    layers = len(next(iter(states.values())))
    with house_style():
        side = WIDTH / 5.3
        figure = Figure((side * (layers + 0.3), side * 0.85 * len(states) + 0.6))
        grid = figure.subplots(len(states), layers, squeeze=False)
        for row, (name, x) in zip(grid, scaled.items(), strict=True):
            for ax, tokens in zip(row, x, strict=True):
                for marker, word, place in zip(MARKERS, words, tokens, strict=False):
                    look = {"s": 30, "alpha": 0.8, "marker": marker}
                    ax.scatter(*place[:2], label=word, **look)
                limits = {"xlim": (-1.5 * reach, 1.5 * reach), "ylim": (-reach, reach)}
                ax.set(xticks=[], yticks=[], **limits)
                ax.axhline(0, linewidth=0.4, color=INK, alpha=0.3, zorder=0)
                ax.axvline(0, linewidth=0.4, color=INK, alpha=0.3, zorder=0)
                differ = float(spread(tokens))
                says = f"{differ:.2g}" if differ > 1e-15 else "0"  # else it is rounding
                ax.set_xlabel(says, labelpad=2)
            lines = name.replace("+ ", "+\N{NO-BREAK SPACE}").replace("-", "-\n")
            row[0].set_ylabel(lines.replace(" ", "\n"))
        for layer, ax in enumerate(grid[0]):
            ax.set_title(f"round {layer}" if layer else "before", fontsize=11.2)
        handles, texts = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside upper left", ncols=len(words))
        return finished(figure, alt)


def spread(tokens: ArrayLike) -> float:
    """Return the length of what is not common to the tokens, as a share of all.

    >>> spread([[3, 4], [3, 4]]), spread([[3, 4], [-3, -4]])
    (0.0, 1.0)
    """
    x = np.asarray(tokens, dtype=float)
    return float(np.linalg.norm(x - x.mean(0)) / np.linalg.norm(x))


def as_share(weight: float) -> str:
    """Return a share of 1 with two decimals; a small one is not called 0.

    >>> as_share(0.566), as_share(0.004), as_share(0.0)
    ('0.57', '<.01', '0.00')
    """
    return "<.01" if 0 < weight < 0.005 else f"{weight:.2f}"


def axes(xlabel: str, ylabel: str, taller: float = 1) -> tuple[Figure, Any]:
    """Return a figure with one pair of axes, `taller` than the others by this."""
    figure = Figure((SIZE[0], taller * SIZE[1]))
    ax = figure.add_subplot()
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.grid(True)
    return figure, ax


def as_series(name: str, values: ArrayLike, length: int | None = None) -> NDArray[Any]:
    """Return `values` as a vector of floats, of the right length."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or length not in (None, len(values)):
        expected = f"{length} values" if length else "a vector"
        raise ValueError(f"{name} must be {expected}, got shape {values.shape}")
    return values


def _logarithmic(ax: Any, x: NDArray[Any]) -> None:
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
        columns = int(SIZE[0] / (0.7 + 0.1 * max(map(len, names))))
        figure.legend(handles, names, loc="outside upper left", ncols=max(1, columns))
