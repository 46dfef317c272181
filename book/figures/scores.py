"""Drag one score, watch the weights and the output (chapter overview)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from figures.charts import bars
from mha.softmax import softmax
from mha.view.base import View, as_numbers, as_words, short

LARGEST = 10


def scores(
    scores: ArrayLike, values: ArrayLike, labels: Sequence[object],
    features: Sequence[object], *, query: str, move: str, alt: str,
) -> View:  # fmt: skip
    """Show the scores of one query, its attention weights and its output.

    Equation: y = softmax(s / √d_k) V  (chapter overview)

    Parameters
    ----------
    scores : array_like of shape (n_k,)
        Before the division by √d_k, from 0 to 10.
    values : array_like of shape (n_k, d_v)
        What the weights average; the keys are as wide as the values, so d_k = d_v.
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

    Returns
    -------
    view : View
        Shows itself as the last line of a cell.

    Raises
    ------
    ValueError
        If shapes do not fit, a score lies outside 0..10, or no label is called `move`.

    Examples
    --------
    >>> words, features = ["dog", "food"], ["animal", "edible"]
    >>> look = dict(query="it", move="food", alt="Both count equally at 5.")
    >>> scores([5, 0], [[2, 0], [0, 2]], words, features, **look)
    View: Both count equally at 5.
    """
    s, V = as_numbers("scores", scores), as_numbers("values", values)
    labels, features = as_words(labels), as_words(features)
    if s.ndim != 1 or V.shape != (len(labels), len(features)) or len(s) != len(labels):
        raise ValueError(
            f"scores must be one row with a label and a value each, got shapes "
            f"{s.shape} and {V.shape}, {len(labels)} labels, {len(features)} features"
        )
    if s.min() < 0 or s.max() > LARGEST:
        raise ValueError(f"scores must lie in 0..{LARGEST}, got {s}")
    if V.min() < 0:
        raise ValueError(f"values must be at least 0, got {V.min()}")
    if move not in labels:
        raise ValueError(f"move: no word {move!r}; there are {', '.join(labels)}")
    data = {"scores": s, "values": V, "labels": labels, "features": features}
    data |= {"query": query, "moved": labels.index(move)}
    A = softmax(s / np.sqrt(len(features)))
    return View(__file__, data, alt, lambda _: bars(A, short(labels), alt=alt))
