"""Walk through the nine steps of multi-head attention (chapter multi_head)."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from figures.view import View, as_numbers, as_words
from mha import multi_head_attention, plot, split_heads


def steps(
    X: ArrayLike, W_Q: ArrayLike, W_K: ArrayLike, W_V: ArrayLike, W_O: ArrayLike,
    n_heads: int, *, tokens: Sequence[object], alt: str,
) -> View:  # fmt: skip
    """Show every number between the tokens and the output, step by step.

    A number that is chosen shows the row and the column that made it.

    Equation: Y = Concat(H_1, …, H_h) W_O  (chapter multi_head)

    Parameters
    ----------
    X : array_like of shape (n, d_model)
        Few tokens with few features: each number is shown.
    W_Q, W_K, W_V, W_O : array_like
        As in `mha.multi_head_attention`.
    n_heads : int
        Number of heads.
    tokens : sequence of str
        The n words.
    alt : str
        One sentence with what there is to find out.
    """
    names, words = ("W_Q", "W_K", "W_V", "W_O"), as_words(tokens)
    X, *given = map(as_numbers, (X, W_Q, W_K, W_V, W_O))
    Y, A = multi_head_attention(X, *given, n_heads, return_weights=True)
    products = [X @ W for W in given[:3]]
    Q, K, V = (split_heads(product, n_heads) for product in products)
    S = Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])
    data = {
        "tokens": words, "n_heads": n_heads, "X": X,
        "W": dict(zip(names, given, strict=True)),
        "P": dict(zip("QKV", products, strict=True)), "Q": Q, "K": K, "V": V,
        "S": S, "A": A, "H": A @ V, "C": np.concatenate([*(A @ V)], axis=-1), "Y": Y,
    }  # fmt: skip
    panels = [(weights, f"head {r}") for r, weights in enumerate(A, 1)]
    return View(__file__, data, lambda: plot.heatmaps(panels, words, words, alt=alt))
