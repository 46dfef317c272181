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

__all__ = ["Picture", "heatmap"]

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
    cols: Sequence[object] | None = None, *, alt: str,
    kind: Literal["weights", "scores", "mask"] = "weights",
    mask: ArrayLike | None = None, titles: Sequence[str] | None = None,
    xlabel: str = "key", ylabel: str = "query",
) -> Picture:  # fmt: skip
    """Show one matrix, or one for each head: queries are rows, keys are columns.

    Parameters
    ----------
    A : ndarray of shape ([heads,] n_q, n_k)
        Weights, scores, or boolean masks.
    rows, cols : sequence of n_q and of n_k names, optional
        Usually the tokens. None numbers the rows or columns from 0.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    kind : {"weights", "scores", "mask"}
        Weights run from white (0) to one hue (1), and scores from one hue through
        white (0) to another. In a mask True means *may attend* and is white.
    mask : bool ndarray that broadcasts to (n_q, n_k), optional
        Where it is False the cell is hatched, like a score of ``-inf``.
    titles : sequence of str, optional
        One for each head.
    xlabel, ylabel : str
        What a column and a row stand for.

    Returns
    -------
    picture : Picture
        Up to 6 by 6 each cell holds its number. A larger map has a legend.

    Raises
    ------
    ValueError
        If names or a mask do not fit, weights leave 0 to 1, or `alt` is empty.

    Examples
    --------
    >>> heatmap(np.eye(2), ["a", "b"], ["a", "b"], alt="Each token looks at itself.")
    Picture: Each token looks at itself.
    """
    maps = _as_maps(A, kind)
    names = []
    given = {"titles": titles or [""] * len(maps), "rows": rows, "cols": cols}
    for (name, words), n in zip(given.items(), maps.shape, strict=True):
        names += [[*map(str, range(n) if words is None else words)]]
        if len(names[-1]) != n:
            raise ValueError(f"{name} must hold {n} names, got {len(names[-1])}")
    n_q, n_k = maps.shape[1:]
    hidden = np.isneginf(maps) | ~_as_mask(mask, (n_q, n_k))
    high = np.abs(maps[np.isfinite(maps)]).max(initial=0) if kind == "scores" else 1
    colours, low = COLOURS[kind], -high if kind == "scores" else 0
    numbered = kind != "mask" and max(n_q, n_k) <= NUMBERS_UP_TO
    cell = CELL if numbered else CELL / 2
    left, top = (LETTER * max(map(len, some)) + 0.5 for some in names[1:])
    wide = len(maps) * (cell * n_k + 0.3) + left + (not numbered)
    figure = Figure((wide, cell * n_q + top + 0.3), layout="constrained")
    axes = figure.subplots(1, len(maps), sharey=True, squeeze=False)[0]
    for ax, matrix, cells, title in zip(axes, maps, hidden, names[0], strict=True):
        image = ax.imshow(np.where(cells, 0, matrix), colours, vmin=low, vmax=high)
        for i, j in np.argwhere(cells):
            look: Any = {"fill": False, "lw": 0, "hatch": "////", "ec": "silver"}
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **look))
        ax.set(title=title, xlabel=xlabel, ylabel=ylabel if ax is axes[0] else "")
        ax.set_yticks(range(n_q), names[1], parse_math=False)
        ax.set_xticks(range(n_k), names[2], rotation=90, parse_math=False)
        for (i, j), x in np.ndenumerate(matrix) if numbered else ():
            if not cells[i, j] or x not in (0, -np.inf):
                ink = "white" if abs(x) > 0.6 * high and not cells[i, j] else "black"
                words = f"{x:.2f}" if kind == "weights" else f"{x:.3g}"
                ax.text(j, i, words, ha="center", va="center", color=ink)
    if kind != "mask" and not numbered:
        figure.colorbar(image, ax=axes)
    return Picture(figure, alt)


def _as_maps(A: ArrayLike, kind: str) -> Any:
    """Return an array of shape (heads, n_q, n_k), in which masks are 0 and -∞."""
    if kind not in COLOURS:
        raise ValueError(f"kind must be weights, scores or mask, got {kind!r}")
    A = np.asarray(A)
    if A.ndim not in (2, 3) or A.size == 0:
        raise ValueError(f"A must have shape ([heads,] n_q, n_k), got {A.shape}")
    A = A.reshape(-1, *A.shape[-2:])
    if kind == "mask":
        return np.where(_as_mask(A, A.shape), 0.0, -np.inf)
    low, high = A.min(), A.max()
    if kind == "weights" and not -1e-6 <= low <= high <= 1 + 1e-6:
        raise ValueError(
            f"weights lie between 0 and 1, got {low:.3g} to {high:.3g}; "
            'use kind="scores" for signed numbers'
        )
    return A.astype(float)


def _as_mask(mask: Any, shape: tuple[int, ...]) -> Any:
    mask = np.asarray(True if mask is None else mask)
    if mask.dtype != bool:
        raise ValueError(f"mask must be boolean, got {mask.dtype}")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(f"mask of shape {mask.shape} does not fit {shape}") from None
