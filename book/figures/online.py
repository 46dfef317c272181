"""Read the keys block by block and keep three numbers (chapter long)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from figures.charts import bars
from figures.view import as_numbers, as_words, live
from mha.view import View


def online(
    scores: ArrayLike, values: ArrayLike, labels: Sequence[object], *, alt: str,
    block: int = 2,
) -> View:  # fmt: skip
    """Show an online softmax at work for one query.

    Equation: m' = max(m, s_j), ℓ' = ℓ exp(m − m') + Σ_j exp(s_j − m')  (chapter long)

    There are at least 4 keys, each with a label and a number as its value, and 1, 2 or
    3 in a block. It starts after the first block that makes the old sums shrink.
    """
    s, words = as_numbers(scores), as_words(labels)
    data = {"labels": words, "scores": s, "values": as_numbers(values), "block": block}
    look = {"alt": alt, "ylabel": "exp(s − m)"}
    return live(__file__, alt, data, lambda: bars(np.exp(s - s.max()), words, **look))
