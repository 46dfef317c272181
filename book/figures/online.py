"""Read the keys block by block and keep three numbers (chapter long)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from figures.charts import bars
from mha.view.base import View, as_numbers, as_words, short

SIZES = (1, 2, 3)  # of a block, besides all keys at once


def online(
    scores: ArrayLike, values: ArrayLike, labels: Sequence[object], *, alt: str,
    block: int = 2,
) -> View:  # fmt: skip
    """Show an online softmax at work for one query.

    It starts after the first block that makes the old sums shrink.

    Equation: m' = max(m, s_j), ℓ' = ℓ exp(m − m') + Σ_j exp(s_j − m')  (chapter long)

    Parameters
    ----------
    scores : array_like of shape (n,)
        Scores of one query, n >= 4.
    values : array_like of shape (n,)
        One number for each key, its value.
    labels : sequence of str
        The n keys.
    alt : str
        One sentence with what there is to find out.
    block : {1, 2, 3}, default 2
        Keys in a block at first.

    Returns
    -------
    view : View
        Shows itself as the last line of a cell.

    Raises
    ------
    ValueError
        If there are not as many values and labels as scores, there are fewer than four
        scores, or `block` is another size.
    """
    scores, values = as_numbers("scores", scores), as_numbers("values", values)
    labels = as_words(labels)
    if scores.ndim != 1 or values.shape != scores.shape or len(labels) != len(scores):
        raise ValueError(
            f"scores, values and labels must be as many, got shapes {scores.shape} and "
            f"{values.shape} and {len(labels)} labels"
        )
    if len(scores) <= max(SIZES):
        raise ValueError(f"scores must be at least 4, got {len(scores)}")
    if block not in SIZES:
        raise ValueError(f"block must be one of {SIZES}, got {block}")
    data = {"labels": labels, "scores": scores, "values": values, "block": block}
    heights, words = np.exp(scores - scores.max()), short(labels)
    look: dict[str, Any] = {"alt": alt, "ylabel": "exp(s − m)"}
    return View(__file__, data, alt, lambda _: bars(heights, words, **look))
