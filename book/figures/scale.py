"""Make vectors wider and watch a softmax saturate (chapter scale)."""

import numpy as np
from numpy.typing import ArrayLike

from figures.charts import bars
from mha.softmax import softmax
from mha.view.base import View, as_numbers


def scale(scores: ArrayLike, widths: ArrayLike, *, alt: str) -> View:
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

    Raises
    ------
    ValueError
        If shapes do not fit, a score is not finite, or widths do not grow.

    Examples
    --------
    >>> scale([[[1, 8], [0, -8]]], [1, 64], alt="Wide vectors leave one key.")
    View: Wide vectors leave one key.
    """
    scores, widths = as_numbers("scores", scores), np.asarray(widths)
    if widths.ndim != 1 or widths.size == 0:
        raise ValueError(f"widths must be a row of numbers that grow, got {widths}")
    if widths[0] < 1 or np.any(np.diff(widths) <= 0):
        raise ValueError(f"widths must grow, from 1 or more, got {widths.tolist()}")
    if scores.ndim != 3 or scores.shape[-1] != len(widths) or scores.size == 0:
        raise ValueError(
            f"scores must have shape (draws, n_k, n_widths = {len(widths)}), "
            f"got {scores.shape}"
        )
    first = len(widths) // 2
    raw, scaled = (softmax(scores[0, :, first] / c) for c in (1, widths[first] ** 0.5))
    series = {"raw": raw, "divided by √d_k": scaled}
    labels = np.arange(1, len(raw) + 1)
    # the script shows one width after another
    data = {"scores": np.swapaxes(scores, 1, 2), "widths": widths, "first": first}
    return View(__file__, data, alt, lambda _: bars(series, labels, alt=alt))
