"""Walk through the nine steps of multi-head attention (chapter multi_head)."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mha.heads import multi_head_attention, split_heads
from mha.masks import causal_mask
from mha.view.base import View, as_numbers, as_words, short


def steps(
    X: ArrayLike, W_Q: ArrayLike, W_K: ArrayLike, W_V: ArrayLike, W_O: ArrayLike,
    n_heads: int, *, tokens: Sequence[object], alt: str, is_causal: bool = False,
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
    is_causal : bool, default False
        A token sees itself and those before it.

    Returns
    -------
    view : View
        Shows itself as the last line of a cell.

    Raises
    ------
    ValueError
        If shapes do not fit, or there is not one word for each token.
    """
    names, tokens = ("W_Q", "W_K", "W_V", "W_O"), as_words(tokens)
    X, *given = map(as_numbers, ("X", *names), (X, W_Q, W_K, W_V, W_O))
    if X.ndim != 2 or len(X) != len(tokens):
        raise ValueError(
            f"X must have shape (n, d_model) with a word for each of the n tokens, got "
            f"shape {X.shape} and {len(tokens)} words"
        )
    W_Q, W_K, W_V, W_O = given
    Y, A = multi_head_attention(
        X, W_Q, W_K, W_V, W_O, n_heads, is_causal=is_causal, return_weights=True
    )
    products = [X @ W for W in given[:3]]
    Q, K, V = (split_heads(product, n_heads) for product in products)
    S = Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])
    open_ = causal_mask(len(X)) if is_causal else np.ones((len(X), len(X)), bool)
    data = {
        "tokens": tokens, "n_heads": int(n_heads), "causal": bool(is_causal),
        "X": X, "W": dict(zip(names, given, strict=True)),
        "P": dict(zip("QKV", products, strict=True)), "Q": Q, "K": K, "V": V,
        "S": S, "scaled": np.where(open_, S, -np.inf), "A": A, "H": A @ V,
        "C": np.concatenate([*(A @ V)], axis=-1), "Y": Y,
    }  # fmt: skip
    panels = [(weights, f"head {r}") for r, weights in enumerate(A, 1)]
    look = panels, short(tokens), short(tokens)
    how: dict[str, Any] = {"mask": open_, "alt": alt}
    return View(__file__, data, alt, lambda plot: plot.heatmaps(*look, **how))
