"""Make vectors wider and watch a softmax saturate (chapter scale)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from figures.charts import bars
from figures.view import View, as_numbers
from mha import softmax


def scale(scores: ArrayLike, widths: Sequence[int], *, alt: str) -> View:
    """Show the weights of scores at each width, with and without the division by √d_k.

    Equation: A = softmax(Q K^T / √d_k)  (chapter scale)

    Parameters
    ----------
    scores : array_like of shape (draws, n_k, n_widths)
        Raw scores q · k of one query with n_k keys, at each width; several draws.
    widths : sequence of int
        The widths d_k, growing.
    alt : str
        One sentence with what there is to find out.

    Returns
    -------
    view : View
        Shows itself as the last line of a cell; it starts at the middle width.

    Examples
    --------
    >>> scale([[[1, 8], [0, -8]]], [1, 64], alt="Wide vectors leave one key.")
    View: Wide vectors leave one key.
    """
    s, first = as_numbers(scores), len(widths) // 2
    raw, scaled = (softmax(s[0, :, first] / c) for c in (1, widths[first] ** 0.5))
    series = {"raw": raw, "divided by √d_k": scaled}
    # the script shows one width after another
    data = {"scores": np.swapaxes(s, 1, 2), "widths": [*widths], "first": first}
    return View(__file__, data, lambda: bars(series, range(1, len(raw) + 1), alt=alt))
