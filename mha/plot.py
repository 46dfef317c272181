"""Maps of weights for a notebook, with alt text; `mha.view` shows them to explore."""

import base64
import io
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

try:
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
except ModuleNotFoundError as error:
    text = f'mha.plot needs matplotlib ({error}): pip install "matplotlib>=3.9"'
    raise ModuleNotFoundError(text, name="matplotlib") from error

__all__ = ["Picture", "heatmap", "heatmaps"]

NUMBERS_UP_TO = 6  # a larger map has no room for numbers in its cells
COLOURS = {"weights": "Purples", "scores": "PuOr", "mask": "binary"}
CELL, LETTER = 0.45, 0.1  # inches: a cell with a number, and a typical letter


class Picture:
    """Hold a figure of matplotlib with the sentence that says what it shows.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Stays there as `figure`, for a title of your own or to be saved.
    alt : str
        One sentence with the finding, for readers who do not see the picture.

    Raises
    ------
    ValueError
        If `alt` is empty.
    """

    def __init__(self, figure: Figure, alt: str) -> None:
        if not isinstance(alt, str) or not alt.strip():
            raise ValueError("alt must say in one sentence what the picture shows")
        self.figure, self.alt = figure, alt.strip()

    @property
    def png(self) -> bytes:
        """The picture as an image."""
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
        return buffer.getvalue()

    def __repr__(self) -> str:
        return f"Picture: {self.alt}"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        image = base64.b64encode(self.png).decode("ascii")
        shown = {"text/plain": repr(self), "image/png": image}
        return shown, {"image/png": {"alt": self.alt}}


def heatmap(
    A: ArrayLike, rows: Sequence[object] | None = None,
    cols: Sequence[object] | None = None, **look: Any,
) -> Picture:  # fmt: skip
    """Show one matrix as a heat map: queries are rows, keys are columns.

    Parameters
    ----------
    A : ndarray of shape (n_q, n_k)
        Weights, scores, or a boolean mask.
    rows, cols, look
        As in `heatmaps`; `alt` must be there.

    Returns
    -------
    picture : Picture
        Up to 6 by 6 each cell holds its number. A larger map has a legend.

    Examples
    --------
    >>> heatmap(np.eye(2), ["a", "b"], ["a", "b"], alt="Each token looks at itself.")
    Picture: Each token looks at itself.
    """
    return heatmaps([(A, "")], rows, cols, **look)


def heatmaps(
    panels: Sequence[tuple[ArrayLike, str]], rows: Sequence[object] | None = None,
    cols: Sequence[object] | None = None, *, alt: str,
    kind: Literal["weights", "scores", "mask"] = "weights",
    mask: ArrayLike | None = None, xlabel: str = "key", ylabel: str = "query",
) -> Picture:  # fmt: skip
    """Show matrices of one shape side by side, with the same colours.

    Parameters
    ----------
    panels : sequence of (ndarray of shape (n_q, n_k), str)
        Each matrix with its title.
    rows, cols : sequence of n_q and of n_k names, optional
        Usually the tokens. None numbers the rows or columns from 0.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    kind : {"weights", "scores", "mask"}
        Weights run from white (0) to one hue (1), and scores from one hue through
        white (0) to another. In a mask True means *may attend* and is white.
    mask : bool ndarray that broadcasts to (n_q, n_k), optional
        Where it is False the cell is hatched, like a score of ``-inf``.
    xlabel, ylabel : str
        What a column and a row stand for.

    Returns
    -------
    picture : Picture
        All panels in one row.

    Raises
    ------
    ValueError
        If names or a mask do not fit, shapes differ, weights leave 0 to 1, or `alt` is
        empty.

    Examples
    --------
    >>> heatmaps([(np.eye(2), "right"), (1 - np.eye(2), "wrong")], alt="They differ.")
    Picture: They differ.
    """
    if kind not in COLOURS:
        raise ValueError(f"kind must be weights, scores or mask, got {kind!r}")
    A = _stacked([matrix for matrix, _ in panels], kind)
    n_q_n_k = A.shape[1:]
    names: list[list[str]] = []
    for argument, given, n in zip(("rows", "cols"), (rows, cols), n_q_n_k, strict=True):
        names += [[*map(str, range(n) if given is None else given)]]
        if len(names[-1]) != n:
            raise ValueError(f"{argument} has {len(names[-1])} names for {n} of them")
    hidden = np.isneginf(A) | ~_as_mask(mask, n_q_n_k)
    high = np.abs(A[np.isfinite(A)]).max(initial=0) if kind == "scores" else 1
    colours, low = COLOURS[kind], -high if kind == "scores" else 0
    numbered = kind != "mask" and max(n_q_n_k) <= NUMBERS_UP_TO
    cell = CELL if numbered else CELL / 2
    left, top = (LETTER * max(map(len, some)) + 0.5 for some in names)
    wide, tall = cell * n_q_n_k[1], cell * n_q_n_k[0]
    size = len(A) * (wide + 0.3) + left + (not numbered), tall + top + 0.3
    figure = Figure(size, layout="constrained")
    axes = figure.subplots(1, len(A), sharey=True, squeeze=False)[0]
    for ax, matrix, cells, (_, title) in zip(axes, A, hidden, panels, strict=True):
        image = ax.imshow(np.where(cells, 0, matrix), colours, vmin=low, vmax=high)
        for i, j in np.argwhere(cells):
            look: Any = {"fill": False, "lw": 0, "hatch": "////", "ec": "silver"}
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **look))
        ax.set(title=title, xlabel=xlabel, ylabel="" if ax is not axes[0] else ylabel)
        ax.set_yticks(range(n_q_n_k[0]), names[0], parse_math=False)
        ax.set_xticks(range(n_q_n_k[1]), names[1], rotation=90, parse_math=False)
        for (i, j), x in np.ndenumerate(matrix) if numbered else ():
            if not cells[i, j] or x not in (0, -np.inf):
                ink = "white" if abs(x) > 0.6 * high and not cells[i, j] else "black"
                words = f"{x:.2f}" if kind == "weights" else f"{x:.3g}"
                ax.text(j, i, words, ha="center", va="center", color=ink)
    if kind != "mask" and not numbered:
        figure.colorbar(image, ax=axes)
    return Picture(figure, alt)


def _stacked(matrices: Sequence[ArrayLike], kind: str) -> Any:
    """Return matrices of one shape as one array."""
    arrays = [np.asarray(A) for A in matrices]
    for A in arrays:
        if A.ndim != 2 or 0 in A.shape:
            raise ValueError(f"A must have shape (n_q, n_k), got {A.shape}")
        if A.shape != arrays[0].shape:
            shapes = f"{arrays[0].shape} and {A.shape}"
            raise ValueError(f"panels must share a shape, got {shapes}")
        if kind == "mask" and A.dtype != bool:
            raise ValueError(f"a mask must be boolean, got {A.dtype}")
    stack = np.stack(arrays)
    if kind == "weights" and not -1e-6 <= stack.min() <= stack.max() <= 1 + 1e-6:
        raise ValueError(
            f"weights lie between 0 and 1, got {stack.min():.3g} to {stack.max():.3g}; "
            'use kind="scores" for signed numbers'
        )
    return np.where(stack, 0.0, -np.inf) if kind == "mask" else stack.astype(float)


def _as_mask(mask: Any, shape: tuple[int, ...]) -> Any:
    mask = np.asarray(True if mask is None else mask)
    if mask.dtype != bool:
        raise ValueError(f"mask must be boolean, got {mask.dtype}")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(f"mask of shape {mask.shape} does not fit {shape}") from None
