"""Heat maps: queries are rows, keys are columns."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from numpy.typing import ArrayLike

from mha._arrays import Array
from mha.plot._checks import as_matrix, as_names
from mha.plot.picture import INK, WIDTH, Picture, house_style

MAY_LOOK = "#56B4E9"
BLOCKED: dict[str, Any] = {"facecolor": "#80808055", "edgecolor": INK, "hatch": "////"}
COLOURS: dict[str, Any] = {
    "weights": colormaps["cividis"], "scores": colormaps["PuOr"],
    "mask": ListedColormap([MAY_LOOK]),
}  # fmt: skip
Kind = Literal["weights", "scores", "mask"]
NUMBERS_UP_TO = 6  # a larger map has no room for numbers in its cells
LETTER = 0.085  # inches; a typical letter of a token
LINE = 0.14  # inches; a smaller cell has no room for the name of its row
NUMBER = 0.3  # inches; a smaller cell has no room for a number


def heatmap(
    A: ArrayLike, rows: Sequence[object] | None = None,
    cols: Sequence[object] | None = None, *, alt: str, kind: Kind = "weights",
    mask: ArrayLike | None = None, xlabel: str = "key", ylabel: str = "query",
    unit: str | None = None,
) -> Picture:  # fmt: skip
    """Show one matrix as a heat map.

    Parameters
    ----------
    A : ndarray of shape (n_q, n_k)
        Weights, scores, or a boolean mask.
    rows, cols : sequence of n_q and of n_k names, optional
        Usually the tokens. None numbers the rows or columns from 0.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    kind : {"weights", "scores", "mask"}
        Weights have the fixed limits 0 and 1. Scores have limits symmetric about 0;
        a score of ``-inf`` counts as blocked. In a mask True means *may look*.
    mask : bool ndarray that broadcasts to (n_q, n_k), optional
        Where it is False the cell is drawn as blocked.
    xlabel, ylabel : str
        What a column and a row stand for.
    unit : str, optional
        What a number is, for the colour bar; "weight" or "score" by default.

    Returns
    -------
    picture : Picture
        Up to 6 by 6 each cell holds its number, to two decimals unless all scores are
        whole; a larger map gets a colour bar.

    Raises
    ------
    ValueError
        If the names do not fit the matrix, if weights leave 0 to 1, or if `alt` is
        empty.

    Examples
    --------
    >>> heatmap(np.eye(2), ["a", "b"], ["a", "b"], alt="Each token looks at itself.")
    Picture: Each token looks at itself.
    """
    return heatmaps(
        [(A, "")], rows, cols, alt=alt, kind=kind, mask=[mask], xlabel=xlabel,
        ylabel=ylabel, unit=unit,
    )  # fmt: skip


def heatmaps(
    panels: Sequence[tuple[ArrayLike, str]], rows: Sequence[object] | None = None,
    cols: Sequence[object] | None = None, *, alt: str, kind: Kind = "weights",
    mask: Any = None, xlabel: str = "key", ylabel: str = "query",
    unit: str | None = None,
) -> Picture:  # fmt: skip
    """Show matrices of one shape side by side, with the same colours and limits.

    Parameters
    ----------
    panels : sequence of (ndarray of shape (n_q, n_k), str)
        Each matrix with the words that stand below it.
    rows, cols, alt, kind, mask, xlabel, ylabel, unit
        As in `heatmap`. `mask` may also be a list with one mask (or None) a panel.

    Returns
    -------
    picture : Picture
        Up to four panels in a row, then a new row begins.

    Raises
    ------
    ValueError
        As in `heatmap`, or if the shapes of the panels differ.

    Examples
    --------
    >>> heatmaps([(np.eye(2), "right"), (1 - np.eye(2), "wrong")], alt="They differ.")
    Picture: They differ.
    """
    matrices, blocked = _read(panels, mask, kind)
    n_q, n_k = matrices[0].shape
    down = as_names("rows", rows, n_q, "rows")
    across = as_names("cols", cols, n_k, "columns")
    values = np.concatenate([A[np.isfinite(A)] for A in matrices]).astype(float)
    norm = _limits(values, kind)
    whole = kind == "scores" and np.array_equal(values, np.round(values))
    digits = 0 if whole else 2  # of whole scores, decimals say nothing
    smallest = 0 if cols is None else LINE  # a cell needs room for what it holds
    if kind != "mask" and max(n_q, n_k) <= NUMBERS_UP_TO:
        smallest = NUMBER
    with house_style():
        figure, axes, cell = _grid(len(matrices), down, across, smallest)
        paired = zip(figure.axes, matrices, blocked, panels, strict=True)
        for ax, A, hidden, (_, below) in paired:
            image = _cells(ax, A, hidden, kind, norm, cell, digits)
            first = ax in axes[:, 0]
            _tokens(ax, down, across, cell, first)
            ax.set(xlabel=xlabel, ylabel=ylabel if first else "")
            ax.text(0.5, -0.04, below, transform=ax.transAxes, ha="center", va="top")
        _legend(figure, image, kind, unit)
        return Picture(figure, alt)


def _read(
    panels: Sequence[tuple[ArrayLike, str]], mask: Any, kind: Kind
) -> tuple[list[Array], list[Array]]:
    """Return the matrices, and for each the cells to draw as blocked."""
    if kind not in COLOURS:
        raise ValueError(f"kind must be one of {sorted(COLOURS)}, got {kind!r}")
    matrices = [as_matrix("A", A, "(n_q, n_k)") for A, _ in panels]
    masks = mask if isinstance(mask, list) else [mask] * len(matrices)
    if len(masks) != len(matrices):
        raise ValueError(f"mask holds {len(masks)} masks for {len(matrices)} panels")
    first = matrices[0].shape
    for A in matrices:
        if A.shape != first:
            raise ValueError(f"panels must share a shape, got {first} and {A.shape}")
        if kind == "mask" and A.dtype != bool:
            raise ValueError(f"a mask must be boolean, got {A.dtype}")
    pairs = zip(matrices, masks, strict=True)
    return matrices, [_blocked(A, M, kind) for A, M in pairs]


def _blocked(A: Array, mask: Any, kind: Kind) -> Array:
    if kind == "mask":
        return ~A
    if mask is None:
        return np.isneginf(A)
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError(f"mask must be boolean, got {mask.dtype}")
    try:
        return ~np.broadcast_to(mask, A.shape) | np.isneginf(A)
    except ValueError:
        raise ValueError(f"mask of shape {mask.shape} does not fit {A.shape}") from None


def _limits(values: Array, kind: Kind) -> Normalize:
    if kind == "scores":
        top = np.abs(values).max(initial=0) or 1
        return Normalize(-top, top)
    if np.any(values < -1e-6) or np.any(values > 1 + 1e-6):
        raise ValueError(
            f"weights lie between 0 and 1, got {values.min():.3g} to "
            f'{values.max():.3g}; use kind="scores" for signed numbers'
        )
    return Normalize(0, 1)


def _grid(
    count: int, rows: list[str], cols: list[str], smallest: float
) -> tuple[Figure, Any, float]:
    """Return a figure, its square-celled axes by row, and the inches of a cell."""
    n_q, n_k = len(rows), len(cols)
    margin = 1.1 + LETTER * max(map(len, rows))
    room = (WIDTH - margin) / (n_k + 0.5)
    down = -(-count // max((m for m in (2, 3, 4) if room / m > smallest), default=1))
    across = -(-count // down)
    cell = min(room / across, 0.6, 3.6 / n_q)
    width = min(WIDTH, margin + across * cell * (n_k + 0.5))
    height = cell * n_q + 0.7 + LETTER * max(map(len, cols))
    figure = Figure((width, down * height))
    axes = figure.subplots(down, across, squeeze=False)
    for ax in axes.ravel()[count:]:
        ax.remove()
    return figure, axes, cell


def _cells(
    ax: Any, A: Array, blocked: Array, kind: Kind, norm: Normalize, cell: float,
    digits: int,
) -> Any:  # fmt: skip
    """Paint the cells; return the image, which knows colours and limits."""
    hidden = blocked | ~np.isfinite(A.astype(float))
    seen: Any = np.ma.array(A, float, mask=hidden)
    image = ax.imshow(seen, COLOURS[kind], norm, interpolation="none")
    for i, start, length in _runs(blocked):
        ax.add_patch(Rectangle((start - 0.5, i - 0.5), length, 1, **BLOCKED))
    if kind != "mask" and max(A.shape) <= NUMBERS_UP_TO:
        for (i, j), value in np.ndenumerate(A):
            ink = INK if hidden[i, j] else ink_on(image.to_rgba(value))
            look = {"ha": "center", "va": "center", "color": ink}
            ax.text(j, i, number(value, digits), size=min(8.5, 22 * cell), **look)
    return image


def _runs(blocked: Array) -> Iterator[tuple[int, int, int]]:
    """Yield (row, first column, length) of each unbroken run of blocked cells."""
    for i, row in enumerate(np.pad(blocked, ((0, 0), (1, 1))).astype(int)):
        edges = np.diff(row)
        starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        yield from ((i, int(s), int(e - s)) for s, e in zip(starts, ends, strict=True))


def number(value: float, digits: int) -> str:
    """Return a number as it stands in a cell, without a minus before zero."""
    if np.isneginf(value):
        return "−∞"
    text = f"{value:.{digits}f}".replace("-", "−")
    return text if text.strip("−0.") else text.removeprefix("−")


def ink_on(colour: Sequence[float]) -> str:
    """Return dark or white, whichever has more contrast on a colour (r, g, b, a)."""
    luminance = np.dot(np.power(colour[:3], 2.2), (0.2126, 0.7152, 0.0722))
    return "#111111" if luminance > 0.19 else "#ffffff"


def _tokens(
    ax: Any, rows: list[str], cols: list[str], cell: float, first: bool
) -> None:
    """Name the rows, beside the first panel only, and the columns, above each."""
    ax.spines[:].set_visible(True)
    ax.tick_params(length=0)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    step = 1 if cell > LINE else int(np.ceil(0.3 / cell))
    ax.set_xticks(range(0, len(cols), step), cols[::step])
    ax.set_yticks(range(0, len(rows), step), rows[::step])
    ax.tick_params(labelleft=first)
    if max(map(len, cols)) * LETTER > cell * step:
        for text in ax.get_xticklabels():
            text.set(rotation=60 if cell > 0.22 else 90, ha="left")
            text.set(va="center", rotation_mode="anchor")


def _legend(figure: Figure, image: Any, kind: Kind, unit: str | None) -> None:
    """Say what the colours mean, where no number does."""
    if kind == "mask":
        open_, closed = Patch(fc=MAY_LOOK), Patch(**BLOCKED)
        words = "may look", "blocked"
        figure.legend([open_, closed], words, loc="outside lower center", ncols=2)
    elif max(image.get_array().shape) > NUMBERS_UP_TO:
        name = unit or ("weight" if kind == "weights" else "score")
        look: Any = {"label": name, "shrink": 0.8, "aspect": 25}
        bar: Any = figure.colorbar(image, ax=figure.axes, **look)
        bar.solids.set_rasterized(True)  # one image instead of 256 slivers
        bar.outline.set_visible(False)
