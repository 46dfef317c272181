"""Drag a query among keys and see what it receives (chapter attention)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from figures.hull import convex_hull
from figures.vectors import vectors
from mha.attention import scaled_dot_product_attention
from mha.view.base import View, as_numbers, as_words

MOST = 8  # arrows that can be told apart


def plane(
    query: ArrayLike, keys: ArrayLike, values: ArrayLike, words: Sequence[object], *,
    alt: str, asks: str = "query", axes: Sequence[Sequence[str]] | None = None,
) -> View:  # fmt: skip
    """Show one query, keys and values in the plane; query and keys can be dragged.

    The reader is asked to give nine tenths of the attention to the key that leads.

    Equation: y = softmax(q K^T / √d_k) V, with d_k = d_v = 2  (chapter attention)

    Parameters
    ----------
    query : array_like of shape (2,)
        Where the query points at first.
    keys : array_like of shape (n_k, 2)
        At most 8 of them.
    values : array_like of shape (n_k, 2)
        Value vectors, which stay where they are.
    words : sequence of str
        The n_k words.
    alt : str
        One sentence with what there is to find out.
    asks : str, default "query"
        The word that asks.
    axes : two pairs of str, optional
        What is drawn to the right and upwards: for keys, then for values.

    Returns
    -------
    view : View
        Shows itself as the last line of a cell.

    Raises
    ------
    ValueError
        If shapes do not fit, a number is not finite, or there are more than 8 keys.

    Examples
    --------
    >>> plane([2, 1], [[2, 1]], [[2, 0]], ["dog"], alt="All goes to dog.")
    View: All goes to dog.
    """
    query, keys = as_numbers("query", query), as_numbers("keys", keys)
    values, words = as_numbers("values", values), as_words(words)
    if not 1 <= len(words) <= MOST:
        raise ValueError(f"words must be 1 to {MOST}, got {len(words)}")
    data: dict[str, Any] = {"query": query, "keys": keys, "values": values}
    for name, x in data.items():
        expected = (2,) if name == "query" else (len(words), 2)
        if x.shape != expected:
            raise ValueError(
                f"{name} must have shape {expected} for {len(words)} words, "
                f"got {x.shape}"
            )
    data |= {"words": words, "asks": as_words([asks])[0], "hull": convex_hull(values)}
    data["axes"] = [as_words(pair) for pair in axes or [["x", "y"], ["x", "y"]]]
    data["reach"] = np.ceil(1.7 * max(abs(query).max(), abs(keys).max(), 0.5))
    output = scaled_dot_product_attention(query[None], keys, values)[0]
    arrows = {**dict(zip(words, values, strict=True)), "output": output}
    look: dict[str, Any] = {"alt": alt, "hull": words}
    look["roles"] = {**dict.fromkeys(words, "value"), "output": "output"}
    return View(__file__, data, alt, lambda _: vectors(arrows, **look))
