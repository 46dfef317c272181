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

    Parameters
    ----------
    scores : array_like of shape (n_k,)
        Before the division by √d_k, from 0 to 10.
    values : array_like of shape (n_k, d_v)
        What the weights average, at least 0; the keys are as wide, so d_k = d_v.
    labels : sequence of str
        One word for each key.
    features : sequence of str
        One word for each column of `values`.
    query : str
        The word that attends.
    move : str
        The word whose score can be dragged, one of `labels`.
    alt : str
        One sentence with what there is to find out.
    divided : bool, default True
        Without it the softmax reads the scores as they are, as before chapter scale.

    Examples
    --------
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
