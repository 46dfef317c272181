"""Drag a query among keys and see what it receives (chapter attention)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from figures.planes import convex_hull, vectors
from figures.view import View, as_numbers, as_words
from mha import scaled_dot_product_attention


def plane(
    query: ArrayLike, keys: ArrayLike, values: ArrayLike, words: Sequence[object], *,
    alt: str, asks: str, axes: Sequence[Sequence[str]],
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
    asks : str
        The word that asks.
    axes : two pairs of str
        What is drawn to the right and upwards: for keys, then for values.

    Examples
    --------
    >>> look = {"asks": "it", "axes": ["xy", "xy"], "alt": "All goes to dog."}
    >>> plane([2, 1], [[2, 1]], [[2, 0]], ["dog"], **look)
    View: All goes to dog.
    """
    q, K, V = map(as_numbers, (query, keys, values))
    words = as_words(words)
    data: dict[str, Any] = {"query": q, "keys": K, "values": V, "words": words}
    data |= {"asks": asks, "axes": [*map(list, axes)], "hull": convex_hull(V)}
    data["reach"] = np.ceil(1.7 * max(abs(q).max(), abs(K).max(), 0.5))
    output = scaled_dot_product_attention(q[None], K, V)[0]
    arrows = {**dict(zip(words, V, strict=True)), "output": output}
    roles = {**dict.fromkeys(words, "value"), "output": "output"}
    look: dict[str, Any] = {"alt": alt, "hull": words, "roles": roles}
    return View(__file__, data, lambda: vectors(arrows, **look))
