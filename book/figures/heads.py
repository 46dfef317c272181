"""Follow one number through the cut into heads, right and wrong (chapter split)."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mha.heads import split_heads
from mha.view.base import View, as_words, short

MOST_ROWS, MOST_COLUMNS = 6, 8


def heads(
    cells: ArrayLike, words: Sequence[object], n_heads: int = 2, *, alt: str
) -> View:
    """Show where each number of a small table goes when it is cut into heads.

    Equation: head_r[i, c] = (X W)[i, r·d_k + c]  (chapter split)

    Parameters
    ----------
    cells : array_like of shape (n, d_model)
        What stands in the table: numbers or short names, at most 6 rows and 8 columns.
    words : sequence of str
        The n tokens.
    n_heads : int, default 2
        Number of heads at first; the reader may choose any that divides d_model.
    alt : str
        One sentence with what there is to find out.

    Returns
    -------
    view : View
        Shows itself as the last line of a cell.

    Raises
    ------
    TypeError
        If `n_heads` is not an integer.
    ValueError
        If shapes do not fit, the table is too large, or `n_heads` does not divide
        d_model.

    Examples
    --------
    >>> heads([["a", "b"], ["c", "d"]], ["it", "is"], alt="A head has every word.")
    View: A head has every word.
    """
    cells, words = np.asarray(cells), as_words(words)
    n_heads = operator.index(n_heads)
    most = MOST_ROWS, MOST_COLUMNS
    if cells.ndim != 2 or 0 in cells.shape or np.any(np.greater(cells.shape, most)):
        raise ValueError(
            f"cells must have shape (n, d_model), at most {most}, got {cells.shape}"
        )
    n, d_model = cells.shape
    if len(words) != n:
        raise ValueError(f"words must be {n}, one a row of cells, got {len(words)}")
    places = np.arange(cells.size).reshape(n, d_model)
    right = split_heads(places, n_heads)  # refuses a number that does not divide
    names = [as_words(row) for row in cells.tolist()]
    counts = [h for h in range(1, d_model + 1) if d_model % h == 0]
    data = {"cells": names, "words": words, "counts": counts, "first": n_heads}
    wrong = places.reshape(right.shape)
    panels = [(head, f"head {r}") for r, head in enumerate(right, 1)]
    panels += [(head, f"head {r}, no swap") for r, head in enumerate(wrong, 1)]
    labels: dict[str, Any] = {"xlabel": "column", "ylabel": "taken for"}
    labels |= {"kind": "scores", "alt": alt}
    look = panels, short(words), [""] * right.shape[-1]
    return View(__file__, data, alt, lambda plot: plot.heatmaps(*look, **labels))
