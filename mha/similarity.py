"""Step 1: when are two vectors alike?"""

import numpy as np
from numpy.typing import ArrayLike

from mha._checks import Array, fit, rounded


def dot_product_scores(Q: ArrayLike, K: ArrayLike) -> Array:
    """Return the dot product of every query with every key.

    Equation: S = Q Kᵀ, that is S[i, j] = Q[i] · K[j]

    Parameters
    ----------
    Q : ndarray of shape (..., n_q, d_k)
        One query per row.
    K : ndarray of shape (..., n_k, d_k)
        One key per row. Leading axes broadcast against those of `Q`.

    Returns
    -------
    S : ndarray of shape (..., n_q, n_k)
        ``S[..., i, j]`` is query ``i`` dot key ``j``.

    Examples
    --------
    >>> dot_product_scores([[1.0, 0.0]], [[2.0, 5.0], [3.0, 7.0]])
    array([[2., 3.]])
    """
    dtype, [Q, K] = fit("Q (..., n_q, d_k), K (..., n_k, d_k)", Q, K)
    return rounded(dtype, Q @ K.swapaxes(-1, -2))


def cosine_similarity(Q: ArrayLike, K: ArrayLike) -> Array:
    """Return the cosine of the angle between every query and every key.

    Equation: cos θ = q · k / (‖q‖ ‖k‖)

    Parameters
    ----------
    Q, K : ndarray of shapes (..., n_q, d_k) and (..., n_k, d_k)
        As in `dot_product_scores`.

    Returns
    -------
    C : ndarray of shape (..., n_q, n_k)
        Numbers from -1 (opposite) through 0 (at right angles) to 1 (same direction).
        A vector of length zero has no direction, and its cosines are 0.

    Examples
    --------
    >>> cosine_similarity([[1.0, 0.0]], [[5.0, 0.0], [3.0, 4.0], [0.0, 2.0]])
    array([[1. , 0.6, 0. ]])
    """
    dtype, [Q, K] = fit("Q (..., n_q, d_k), K (..., n_k, d_k)", Q, K)
    C = dot_product_scores(unit_rows(Q), unit_rows(K))
    # Rounding may step over ±1 by one unit, and arccos of that is NaN.
    return rounded(dtype, np.clip(C, -1, 1))


def unit_rows(x: Array) -> Array:
    """Return the rows of `x` at length one; zero rows stay zero."""
    # Dividing by the largest entry first keeps the squares within range.
    largest = np.max(np.abs(x), axis=-1, keepdims=True, initial=0)
    x = x / np.where(largest == 0, 1, largest)
    length = np.sqrt(np.sum(x * x, axis=-1, keepdims=True))
    return x / np.where(length == 0, 1, length)
