"""Step 4: what does a word take home? Chapters 3 and 5."""

import math

import numpy as np

from mha._arrays import (
    as_floats,
    as_scale,
    broadcast_leading,
    never_zero,
    working_dtype,
)
from mha.masks import as_mask, causal_mask, mask_in_place
from mha.similarity import dot_product_scores
from mha.softmax import exponentiate_in_place

# A product, its softmax and the next product run fastest while the scores between them
# stay in the cache next to the processor; half a MiB fits into that of most machines.
CACHE_BYTES = 2**19


def scaled_dot_product_attention(
    Q, K, V, mask=None, *, is_causal=False, scale=None, return_weights=False
):
    """Return, for every query, the weighted mean of the values.

    Equation: Y = A V with A = softmax(Q Kᵀ / √d_k)  (chapter 5)

    Parameters
    ----------
    Q : ndarray of shape (..., n_q, d_k)
        Queries.
    K : ndarray of shape (..., n_k, d_k)
        Keys.
    V : ndarray of shape (..., n_k, d_v)
        Values, one for each key. Values must be finite even where masked.
    mask : ndarray, optional
        Broadcasts to (..., n_q, n_k). bool: True = may look. float: added to the
        scores.
    is_causal : bool, default False
        Query ``i`` sees the keys ``j <= i`` only; `mask` still applies.
    scale : float, optional
        Factor on the scores, 1/√d_k by default.
    return_weights : bool, default False
        Return the weights too.

    Returns
    -------
    Y : ndarray of shape (..., n_q, d_v)
        Each row lies in the convex hull of the value rows; a query that may look at
        nothing gets zeros. Same dtype as the inputs; float16 is summed in float32.
    A : ndarray of shape (..., n_q, n_k)
        Only with `return_weights`. Rows sum to 1; exactly 0 where masked.

    Raises
    ------
    ValueError
        If shapes do not fit, with both numbers; if a float mask holds NaN or +inf.
    TypeError
        If an argument does not hold real numbers, or `mask` holds integers.

    References
    ----------
    Vaswani et al. 2017, *Attention is all you need*, section 3.2.1.

    Examples
    --------
    The query scores ln 3 with the first key and 0 with the second, so it takes three
    quarters of the first value and one quarter of the second.

    >>> Q, K = np.array([[np.log(3.0)]]), np.array([[1.0], [0.0]])
    >>> V = np.array([[8.0, 0.0], [0.0, 4.0]])
    >>> scaled_dot_product_attention(Q, K, V)
    array([[6., 1.]])
    """
    Q, K, V, leading = _checked(Q, K, V)
    dtype, work = np.result_type(Q, K, V), working_dtype(Q, K, V)
    Q, K, V = (
        np.broadcast_to(x.astype(work, copy=False), leading + x.shape[-2:])
        for x in (Q, K, V)
    )
    # Scaling Q costs n_q·d_k products, scaling the scores n_q·n_k.
    Q = Q * as_scale(scale, Q.shape[-1])
    mask = _whole_mask(mask, is_causal, (*leading, Q.shape[-2], K.shape[-2]))
    if not return_weights:
        return _attend_in_parts(Q, K, V, mask).astype(dtype, copy=False)
    Y, A, total = _attend(Q, K, V, mask)
    A /= total
    return Y.astype(dtype, copy=False), A.astype(dtype, copy=False)


def _attend(Q, K, V, mask):
    """Return Y, exp(S) and the sums of its rows; `Q` is scaled already."""
    S = dot_product_scores(Q, K)
    mask_in_place(S, mask)
    exponentiate_in_place(S)
    # A product with ones adds up each row in half the time of sum().
    total = never_zero(S @ np.ones((S.shape[-1], 1), S.dtype))
    # Dividing Y, n_q × d_v, is cheaper than dividing A, n_q × n_k.
    return S @ V / total, S, total


def _attend_in_parts(Q, K, V, mask):
    """Return Y, a few heads at a time, so that their scores stay in the fast cache."""
    n_scores = math.prod(Q.shape[:-1]) * K.shape[-2]
    if Q.ndim == 2 or n_scores * Q.itemsize <= CACHE_BYTES:
        return _attend(Q, K, V, mask)[0]
    masks = [None] * len(Q) if mask is None else mask
    parts = zip(Q, K, V, masks, strict=True)
    return np.stack([_attend_in_parts(*part) for part in parts])


def _whole_mask(mask, is_causal, shape):
    """Return `mask` and the causal mask as one array of the given shape, or None."""
    mask = as_mask(mask, shape)
    if is_causal:
        causal = causal_mask(*shape[-2:])
        if mask is None:
            mask = causal
        elif mask.dtype.kind == "b":
            mask = mask & causal
        else:
            mask = np.where(causal, mask, -np.inf)
    return None if mask is None else np.broadcast_to(mask, shape)


def _checked(Q, K, V):
    """Return the three as arrays that fit, and their common leading shape."""
    Q, K = as_floats("Q", Q, "n_q, d_k"), as_floats("K", K, "n_k, d_k")
    V = as_floats("V", V, "n_k, d_v")
    # That Q and K have the same d_k is what dot_product_scores looks at.
    if K.shape[-2] != V.shape[-2]:
        raise ValueError(
            "K and V must have the same length n_k, "
            f"got {K.shape[-2]} and {V.shape[-2]}"
        )
    return Q, K, V, broadcast_leading({"Q": Q, "K": K, "V": V})
