"""Step 1: how alike are two vectors? Chapters 1 and 3."""

import numpy as np

from mha._arrays import (
    as_floats,
    broadcast_leading,
    never_zero,
    same_last_axis,
    working_dtype,
)


def dot_product_scores(Q, K):
    """Return the dot product of every query with every key.

    Equation: S = Q Kᵀ, that is S[i, j] = Q[i] · K[j]  (chapter 1)

    Parameters
    ----------
    Q : ndarray of shape (..., n_q, d_k)
        One query per row.
    K : ndarray of shape (..., n_k, d_k)
        One key per row. Leading axes broadcast against those of `Q`.

    Returns
    -------
    S : ndarray of shape (..., n_q, n_k)
        ``S[..., i, j]`` is query ``i`` dot key ``j``. For entries of unit variance
        its typical size is √d_k. The dtype is that of the inputs; float16 is summed
        in float32.

    Raises
    ------
    ValueError
        If the last axes differ or the leading axes do not broadcast.
    TypeError
        If an argument does not hold real numbers.

    Examples
    --------
    >>> dot_product_scores([[1.0, 0.0]], [[2.0, 5.0], [3.0, 7.0]])
    array([[2., 3.]])
    """
    Q, K = as_floats("Q", Q, "n_q, d_k"), as_floats("K", K, "n_k, d_k")
    same_last_axis("Q", Q, "K", K, "d_k")
    broadcast_leading({"Q": Q, "K": K})
    work = working_dtype(Q, K)
    S = Q.astype(work, copy=False) @ K.astype(work, copy=False).swapaxes(-1, -2)
    return S.astype(np.result_type(Q, K), copy=False)


def cosine_similarity(Q, K):
    """Return the cosine of the angle between every query and every key.

    Equation: cos θ = q · k / (‖q‖ ‖k‖)  (chapter 1)

    Parameters
    ----------
    Q : ndarray of shape (..., n_q, d_k)
        One vector per row.
    K : ndarray of shape (..., n_k, d_k)
        One vector per row. Leading axes broadcast against those of `Q`.

    Returns
    -------
    C : ndarray of shape (..., n_q, n_k)
        Numbers from -1 (opposite) over 0 (at right angles) to 1 (same direction).
        A vector of length zero points nowhere: its cosines are 0.

    Raises
    ------
    ValueError
        If the last axes differ or the leading axes do not broadcast.
    TypeError
        If an argument does not hold real numbers.

    Examples
    --------
    >>> cosine_similarity([[1.0, 0.0]], [[5.0, 0.0], [3.0, 4.0], [0.0, 2.0]])
    array([[1. , 0.6, 0. ]])
    """
    Q, K = as_floats("Q", Q, "n_q, d_k"), as_floats("K", K, "n_k, d_k")
    dtype, work = np.result_type(Q, K), working_dtype(Q, K)
    C = dot_product_scores(_unit_rows(Q.astype(work)), _unit_rows(K.astype(work)))
    # Rounding may step over ±1 by one unit, and arccos of that is NaN.
    return np.clip(C, -1, 1).astype(dtype, copy=False)


def _unit_rows(x):
    """Return the rows of `x` at length one; zero rows stay zero."""
    # Dividing by the largest entry first keeps the squares from over- or underflowing.
    x = x / never_zero(np.abs(x).max(-1, keepdims=True, initial=0))
    return x / never_zero(np.sqrt((x * x).sum(-1, keepdims=True)))
