"""Maps of weights for a notebook, with alt text; `mha.view` shows them to explore."""

import base64
import io
from collections.abc import Sequence
from typing import Any

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
CELL, LETTER = 0.45, 0.1  # inches: a cell with a number, and a typical letter


class Picture:
    """Hold a drawing with the sentence that says what it shows.

    Attributes
    ----------
    figure : figure of matplotlib
        The drawing, for a title of your own or to be saved.
    alt : str
        The sentence.
    svg : str
        The same drawing for a page, or nothing. It has to say `alt` itself.
    png : bytes
        The drawing as an image. Unless it was given, it shows `figure` as it is now.
    """

    def __init__(
        self, figure: Figure, alt: str, *, svg: str = "", png: bytes = b""
    ) -> None:
        if not isinstance(alt, str) or not alt.strip():
            raise ValueError("alt must say in one sentence what the picture shows")
        self.figure, self.alt, self.svg, self._png = figure, alt.strip(), svg, png

    @property
    def png(self) -> bytes:
        """The picture as an image."""
        if self._png:
            return self._png
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
        return buffer.getvalue()

    def __repr__(self) -> str:
        return f"Picture: {self.alt}"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        image = base64.b64encode(self.png).decode("ascii")
        if self.svg:
            shown = {"text/plain": repr(self), "image/svg+xml": self.svg}
            return shown | {"image/png": image}, {}
        shown = {"text/plain": repr(self), "image/png": image}
        return shown, {"image/png": {"alt": self.alt}}


def heatmap(
    A: ArrayLike, rows: Sequence[object] | None = None,
    cols: Sequence[object] | None = None, *, alt: str,
) -> Picture:  # fmt: skip
    """Show one matrix, or one for each head: queries are rows, keys are columns.

    Parameters
    ----------
    A : ndarray of shape ([heads,] n_q, n_k)
        Weights run from white (0) to one hue (1). If a number lies outside of that,
        all are scores and run from one hue through white (0) to another. A score of
        ``-inf`` is hatched, and so is False in a boolean mask.
    rows, cols : sequence of n_q and of n_k names, optional
        Usually the tokens. None numbers the rows or columns from 0.
    alt : str
        One sentence with the finding, for readers who do not see the picture.

    Returns
    -------
    picture : Picture
        Up to 6 by 6 each cell holds its number. A larger map has a legend.

    Examples
    --------
    >>> heatmap(np.eye(2), ["a", "b"], ["a", "b"], alt="Each token looks at itself.")
    Picture: Each token looks at itself.
    """
    A = np.asarray(A)
    if A.ndim not in (2, 3) or A.size == 0:
        raise ValueError(f"A must have shape ([heads,] n_q, n_k), got {A.shape}")
    numbers = np.where(A, 0, -np.inf) if A.dtype == bool else A.astype(float)
    maps = numbers.reshape(-1, *A.shape[-2:])
    names = []
    for name, words, n in ("rows", rows, A.shape[-2]), ("cols", cols, A.shape[-1]):
        names += [[*map(str, range(n) if words is None else words)]]
        if len(names[-1]) != n:
            raise ValueError(f"{name} must hold {n} names, got {len(names[-1])}")
    (n_q, n_k), finite = A.shape[-2:], maps[np.isfinite(maps)]
    signed = not np.all((finite > -1e-6) & (finite < 1 + 1e-6))
    colours, high = ("PuOr", np.abs(finite).max()) if signed else ("Purples", 1)
    numbered = A.dtype != bool and max(n_q, n_k) <= NUMBERS_UP_TO
    cell = CELL if numbered else CELL / 2
    left, top = (LETTER * max(map(len, some)) + 0.5 for some in names)
    wide = len(maps) * (cell * n_k + 0.3) + left + (not numbered)
    figure = Figure((wide, cell * n_q + top + 0.3), layout="constrained")
    axes = figure.subplots(1, len(maps), sharey=True, squeeze=False)[0]
    for head, (ax, matrix) in enumerate(zip(axes, maps, strict=True), start=1):
        hidden = np.isneginf(matrix)
        shown = np.where(hidden, 0, matrix)
        image = ax.imshow(shown, colours, vmin=-high if signed else 0, vmax=high)
        for i, j in np.argwhere(hidden):
            look: Any = {"fill": False, "lw": 0, "hatch": "////", "ec": "silver"}
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **look))
        ax.set(title=f"head {head}" if len(maps) > 1 else "", xlabel="key")
        ax.set_yticks(range(n_q), names[0], parse_math=False)
        ax.set_xticks(range(n_k), names[1], rotation=90, parse_math=False)
        for i, j in np.argwhere(~hidden) if numbered else ():
            ink = "white" if abs(matrix[i, j]) > 0.6 * high else "black"
            words = f"{matrix[i, j]:{'.3g' if signed else '.2f'}}"
            if not signed and 0 < matrix[i, j] < 0.005:
                words = "<.01"  # a weight that is not 0 is not called 0
            ax.text(j, i, words, ha="center", va="center", color=ink)
    axes[0].set_ylabel("query")
    if A.dtype != bool and not numbered:
        figure.colorbar(image, ax=axes)
    return Picture(figure, alt)
