"""Move scores and temperature, watch the weights (chapter softmax)."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

import mha
from figures.charts import bars
from figures.view import as_numbers, as_words, live
from mha.view import View


def softmax(scores: ArrayLike, labels: Sequence[object], *, alt: str) -> View:
    """Show a row of scores and its softmax, both to be moved.

    Equation: p_j = exp(s_j / T) / Σ_l exp(s_l / T)  (chapter softmax)

    The scores lie from -5 to 5 and have at most 12 labels.

    >>> softmax([3, 2], ["dog", "food"], alt="Dog leads; heat makes both equal.")
    View: Dog leads; heat makes both equal.
    """
    data = {"scores": as_numbers(scores), "labels": as_words(labels)}
    p = mha.softmax(data["scores"])
    return live(__file__, alt, data, lambda: bars(p, data["labels"], alt=alt))
