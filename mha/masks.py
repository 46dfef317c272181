"""Step 3: who may attend to whom?

In every mask True means *may attend*. What a mask does stands in `masked_softmax`, and
again in `mha.chunked`, in place, and in `mha.nn`, as a bias of the fused kernel.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mha._checks import (
    Array,
    as_axis,
    as_integer,
    as_lengths,
    cast,
    fit,
    fit_mask,
    rounded,
)
from mha.weighting import softmax


def causal_mask(n_q: int, n_k: int | None = None) -> Array:
    """Return the mask under which query i attends to the keys 0 … i.

    Equation: M[i, j] = (j ≤ i)

    Parameters
    ----------
    n_q : int
        Number of queries.
    n_k : int, optional
        Number of keys; as many as queries by default.

    Returns
    -------
    mask : ndarray of bool, shape (n_q, n_k)
        True where query ``i`` may attend to key ``j``, itself included. With
        ``n_q != n_k`` both count from the first token, as in PyTorch and JAX.

    Examples
    --------
    >>> causal_mask(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    """
    n_q = as_integer("n_q", n_q, least=0)
    n_k = n_q if n_k is None else as_integer("n_k", n_k, least=0)
    return np.tri(n_q, n_k, dtype=bool)


def padding_mask(
    lengths: Sequence[int] | Array, max_length: int | None = None
) -> Array:
    """Return the mask that hides the padding behind each sequence of a batch.

    Equation: M[b, 0, 0, j] = (j < lengths[b])

    Parameters
    ----------
    lengths : sequence of int, shape (batch,)
        How many tokens of each sequence are real; 0 is allowed, an empty batch is not.
    max_length : int, optional
        The padded length, ``max(lengths)`` by default.

    Returns
    -------
    mask : ndarray of bool, shape (batch, 1, 1, max_length)
        True where key ``j`` is real, for every head and every query; ``&`` combines it
        with other masks.

    Examples
    --------
    >>> padding_mask([3, 1])[:, 0, 0].astype(int)
    array([[1, 1, 1],
           [1, 0, 0]])
    """
    lengths, max_length = as_lengths(lengths, max_length)
    return (np.arange(max_length) < lengths[:, None])[:, None, None, :]


def masked_softmax(
    S: ArrayLike, mask: ArrayLike | None = None, axis: int = -1
) -> Array:
    """Turn scores into weights that are exactly 0 where the mask says so.

    Equation: A = softmax(S with -∞ where M is False)

    Parameters
    ----------
    S : ndarray of any shape, such as (..., n_q, n_k)
        Scores.
    mask : ndarray, optional
        Broadcasts to the shape of `S`. bool: True = may attend. float: added to the
        scores, so that ``-inf`` hides; NaN and ``+inf`` are refused. So are integers,
        because 0/1 could mean either.
    axis : int, default -1
        The axis along which weights sum to one.

    Returns
    -------
    A : ndarray of the shape of `S`
        Rows sum to 1, with exactly 0 where masked. A row in which everything is masked
        is all zeros, not NaN.

    Examples
    --------
    >>> masked_softmax(np.log([[1.0, 3.0, 4.0]]), np.array([True, True, False]))
    array([[0.25, 0.75, 0.  ]])
    """
    dtype, [S] = fit("S (..., n_k)", S)
    axis = as_axis(axis, "S", S)
    mask = fit_mask(mask, S.shape)

    if mask is not None and mask.dtype == np.bool:
        S = np.where(mask, S, -np.inf)
    elif mask is not None:
        mask = cast(S.dtype, mask)  # a mask has no say in the dtype
        # A hidden score may be NaN, so it is replaced: NaN + (-inf) would stay NaN.
        S = np.where(mask == -np.inf, -np.inf, S) + mask
    return rounded(dtype, softmax(S, axis))
