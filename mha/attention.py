"""Step 4: what does attention return?"""

import math
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from mha._checks import Array, Maybe, as_float, fit, fit_mask, rounded
from mha.masks import causal_mask, masked_softmax
from mha.similarity import dot_product_scores


@overload
def scaled_dot_product_attention(
    Q: ArrayLike, K: ArrayLike, V: ArrayLike, mask: Maybe = None, *,
    is_causal: bool = False, scale: float | None = None,
    return_weights: Literal[False] = False,
) -> Array: ...  # fmt: skip
@overload
def scaled_dot_product_attention(
    Q: ArrayLike, K: ArrayLike, V: ArrayLike, mask: Maybe = None, *,
    is_causal: bool = False, scale: float | None = None,
    return_weights: Literal[True],
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def scaled_dot_product_attention(
    Q: ArrayLike, K: ArrayLike, V: ArrayLike, mask: Maybe = None, *,
    is_causal: bool = False, scale: float | None = None, return_weights: bool,
) -> Array | tuple[Array, Array]: ...  # fmt: skip
def scaled_dot_product_attention(
    Q: ArrayLike, K: ArrayLike, V: ArrayLike, mask: Maybe = None, *,
    is_causal: bool = False, scale: float | None = None, return_weights: bool = False,
) -> Array | tuple[Array, Array]:  # fmt: skip
    """Return, for every query, the weighted average of the values.

    Equation: Y = A V with A = softmax(Q Kᵀ / √d_k)

    It is written to be read: all n_q · n_k scores are in memory, and it takes about
    four times as long as PyTorch's fused kernel. `chunked_attention` gives the same
    numbers faster and without holding them all.

    Parameters
    ----------
    Q : ndarray of shape (..., n_q, d_k)
        Queries.
    K : ndarray of shape (..., n_k, d_k)
        Keys.
    V : ndarray of shape (..., n_k, d_v)
        Values, one for each key. Values must be finite even where masked.
    mask : ndarray, optional
        Broadcasts to (..., n_q, n_k). bool: True = may attend. float: added to the
        scores.
    is_causal : bool, default False
        Query ``i`` attends to the keys ``j <= i`` only; `mask` still applies.
    scale : float, optional
        Factor on the scores, 1/√d_k by default.
    return_weights : bool, default False
        Return the weights too.

    Returns
    -------
    Y : ndarray of shape (..., n_q, d_v)
        One row per query, of zeros if its keys are all masked.
    A : ndarray of shape (..., n_q, n_k)
        Only with `return_weights`. Rows sum to 1, with exactly 0 where masked.

    Examples
    --------
    The query scores ln 3 with the first key and 0 with the second, so its output is
    three quarters of the first value and one quarter of the second.

    >>> Q, K = np.array([[np.log(3.0)]]), np.array([[1.0], [0.0]])
    >>> V = np.array([[8.0, 0.0], [0.0, 4.0]])
    >>> scaled_dot_product_attention(Q, K, V)
    array([[6., 1.]])
    """
    axes = "Q (..., n_q, d_k), K (..., n_k, d_k), V (..., n_k, d_v)"
    dtype, [Q, K, V] = fit(axes, Q, K, V)
    mask = fit_mask(mask, (*Q.shape[:-1], K.shape[-2]))
    scale = None if scale is None else as_float("scale", scale)

    d_k = Q.shape[-1]
    if scale is None:
        scale = 1 / math.sqrt(max(d_k, 1))  # any scale will do for d_k = 0
    S = dot_product_scores(Q, K) * scale
    if is_causal:
        S = np.where(causal_mask(*S.shape[-2:]), S, -np.inf)
    A = masked_softmax(S, mask)
    Y = A @ V
    return rounded(dtype, (Y, A) if return_weights else Y)
