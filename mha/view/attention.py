"""Look at real attention: choose a layer, a head and the word that attends."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mha.view.base import View, as_numbers, as_words, short

ROUNDING = 1e-6  # by which a weight in float32 may leave 0..1


def attention(
    weights: Any, tokens: Sequence[object], keys: Sequence[object] | None = None, *,
    alt: str, names: Sequence[object] | None = None, first: int | str = 0,
    layer: int = 1, head: int = 1,
) -> View:  # fmt: skip
    """Show which word attends to which, for one head or many.

    All heads are small maps to choose from. Beside each other lie the map of the chosen
    head and lines from one word to all it attends to.

    Equation: A = softmax(Q K^T / √d_k), one for each head
    (chapters attention and multi_head)

    Parameters
    ----------
    weights : ndarray or Tensor of shape ([layers,] [heads,] n_q, n_k)
        Weights of attention, 0 to 1; also a list with one array for each layer.
    tokens : sequence of str
        The n_q words that attend. They may hold any text; it is escaped.
    keys : sequence of str, optional
        The n_k words attended to, if they are not the same.
    alt : str
        One sentence with what there is to find.
    names : sequence of str, optional
        Names of the heads; "head 1", "head 2", … otherwise.
    first : int or str, default 0
        The word that attends at first: its index, or the first one that is this text.
    layer, head : int, default 1
        The head that is shown at first, counted from 1 as in the figure.

    Returns
    -------
    view : View
        Shows itself as the last line of a cell.

    Raises
    ------
    ValueError
        If shapes do not fit the words, or a weight is NaN or lies outside 0..1.

    Examples
    --------
    >>> attention([[1.0, 0.0], [0.5, 0.5]], ["a", "b"], alt="b looks at both")
    View: b looks at both
    """
    A = as_numbers("weights", weights)
    if not 2 <= A.ndim <= 4:
        raise ValueError(
            f"weights must have shape ([layers,] [heads,] n_q, n_k), got {A.shape}; "
            "of a batch show one sentence"
        )
    if A.size == 0 or A.min() < -ROUNDING or A.max() > 1 + ROUNDING:
        low: Any = A.min() if A.size else "no"
        high: Any = A.max() if A.size else "no number"
        raise ValueError(f"weights must lie in 0..1, got {low:.3} to {high:.9}")
    A = np.clip(A, 0, 1).reshape((1,) * (4 - A.ndim) + A.shape)
    queries = as_words(tokens)
    words = queries if keys is None else as_words(keys)
    expected = (len(queries), len(words))
    if A.shape[-2:] != expected:
        raise ValueError(
            f"weights must end in shape (n_q, n_k) = {expected} for {len(queries)} "
            f"tokens and {len(words)} keys, got shape {A.shape}"
        )
    if names is not None and len(names) != A.shape[1]:
        raise ValueError(
            f"names must hold one name for each of the {A.shape[1]} heads, "
            f"got {len(names)}"
        )
    at = queries.index(first) if first in queries else first
    if not isinstance(at, int | np.integer) or not 0 <= at < len(queries):
        raise ValueError(f"first must be one of {len(queries)} tokens, got {first!r}")
    for name, place, count in ("layer", layer, len(A)), ("head", head, A.shape[1]):
        if not 1 <= place <= count:
            raise ValueError(f"{name} must lie in 1..{count}, got {place}")
    data = {"weights": A, "queries": queries, "keys": words, "first": int(at)}
    data |= {"layer": layer - 1, "head": head - 1}
    if names is not None:
        data["names"] = as_words(names)
    look = A[layer - 1, head - 1], short(queries), short(words)
    return View(__file__, data, alt, lambda plot: plot.heatmap(*look, alt=alt))
