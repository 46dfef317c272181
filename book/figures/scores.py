"""Drag one score, watch the weights and the output (chapter overview)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from figures.charts import bars
from figures.view import View, as_numbers, as_words
from mha import softmax


def scores(
    scores: ArrayLike, values: ArrayLike, labels: Sequence[object],
    features: Sequence[object], *, query: str, move: str, alt: str,
    divided: bool = True,
) -> View:  # fmt: skip
    """Show the scores of one query, its attention weights and its output.

    Equation: y = softmax(s / √d_k) V  (chapter overview)

    The scores are those before the division by √d_k, from 0 to 10; without `divided`
    the softmax reads them as they are. There is one label for each key and one feature
    for each column of `values`, which are at least 0 and as wide as the keys. `move` is
    the label whose score can be dragged.

    >>> words, features = ["dog", "food"], ["animal", "edible"]
    >>> look = dict(query="it", move="food", alt="Both count equally at 5.")
    >>> scores([5, 0], [[2, 0], [0, 2]], words, features, **look)
    View: Both count equally at 5.
    """
    s, V = as_numbers(scores), as_numbers(values)
    labels, features = as_words(labels), as_words(features)
    data = {"scores": s, "values": V, "labels": labels, "features": features}
    data |= {"query": query, "moved": labels.index(move)}
    data["divisor"] = np.sqrt(len(features)) if divided else 1.0
    A = softmax(s / data["divisor"])
    return View(__file__, data, lambda: bars(A, labels, alt=alt))
