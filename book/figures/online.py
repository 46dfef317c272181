"""Read the keys block by block and keep three numbers (chapter long)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from figures.charts import bars
from figures.view import View, as_numbers, as_words


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
    """
    s, words = as_numbers(scores), as_words(labels)
    data = {"labels": words, "scores": s, "values": as_numbers(values), "block": block}
    look = {"alt": alt, "ylabel": "exp(s − m)"}
    return View(__file__, data, lambda: bars(np.exp(s - s.max()), words, **look))
