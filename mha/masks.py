"""Step 3: who may look at whom? Chapter 4. In every mask True means *may look*."""

import numpy as np

from mha._arrays import (
    as_array,
    as_axis,
    as_count,
    as_floats,
    never_zero,
    working_dtype,
)
from mha.softmax import exponentiate_in_place


def causal_mask(n_q, n_k=None):
    """Return the mask under which query i looks at the keys 0 … i.

    Equation: M[i, j] = (j ≤ i)  (chapter 4)

    Parameters
    ----------
    n_q : int
        Number of queries.
    n_k : int, optional
        Number of keys; as many as queries by default.

    Returns
    -------
    mask : ndarray of bool, shape (n_q, n_k)
        True where query ``i`` may look at key ``j``. The diagonal is True: a token
        sees itself. With ``n_q != n_k`` both count from the first token (the top-left
        rule of PyTorch and JAX).

    Raises
    ------
    TypeError
        If a count is not an integer.
    ValueError
        If a count is negative.

    Examples
    --------
    >>> causal_mask(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    """
    n_q = as_count("n_q", n_q, at_least=0)
    n_k = n_q if n_k is None else as_count("n_k", n_k, at_least=0)
    return np.tri(n_q, n_k, dtype=bool)


def padding_mask(lengths, max_length=None):
    """Return the mask that hides the padding behind each sequence of a batch.

    Equation: M[b, 0, 0, j] = (j < lengths[b])  (chapter 4)

    Parameters
    ----------
    lengths : sequence of int, shape (batch,)
        How many tokens of each sequence are real; 0 is allowed, an empty batch is not.
    max_length : int, optional
        The padded length, ``max(lengths)`` by default.

    Returns
    -------
    mask : ndarray of bool, shape (batch, 1, 1, max_length)
        True where key ``j`` is real. It hides *keys* (columns) from every head and
        every query; combine it with other masks by ``&``.

    Raises
    ------
    ValueError
        If there is no length, or one is negative or greater than `max_length`.
    TypeError
        If the lengths are not integers.

    Examples
    --------
    >>> padding_mask([3, 1])[:, 0, 0].astype(int)
    array([[1, 1, 1],
           [1, 0, 0]])
    """
    lengths = as_array("lengths", lengths)
    if lengths.ndim != 1 or len(lengths) == 0:
        raise ValueError(
            f"lengths must have shape (batch,) and batch >= 1, got {lengths.shape}"
        )
    if lengths.dtype.kind not in "iu":
        raise TypeError(f"lengths must be integers, got dtype {lengths.dtype}")
    longest = max(0, int(lengths.max()))
    n = longest if max_length is None else max_length
    n = as_count("max_length", n, at_least=0)
    if lengths.min() < 0 or longest > n:
        wrong = lengths[(lengths < 0) | (lengths > n)][0]
        raise ValueError(f"lengths must lie in 0 … max_length = {n}, got {wrong}")
    return (np.arange(n) < lengths[:, None])[:, None, None, :]


def masked_softmax(S, mask=None, axis=-1):
    """Turn scores into weights that are exactly 0 where the mask says so.

    Equation: A = softmax(S with -∞ where M is False)  (chapter 4)

    Parameters
    ----------
    S : ndarray of any shape, such as (..., n_q, n_k)
        Scores.
    mask : ndarray, optional
        Broadcasts to the shape of `S`. bool: True = may look. float: added to the
        scores, so 0 keeps a score and ``-inf`` closes it. Integers are refused, because
        0/1 could mean either.
    axis : int, default -1
        The axis along which weights sum to one.

    Returns
    -------
    A : ndarray of the shape of `S`
        Rows sum to 1; exactly 0 where masked. A row that may look at nothing is all
        zeros, not NaN.

    Raises
    ------
    ValueError
        If `mask` does not broadcast to the shape of `S`, or a float mask holds NaN or
        ``+inf``, or `axis` is not an axis of `S`.
    TypeError
        If `mask` is neither bool nor float, `S` does not hold real numbers, or `axis`
        is not an integer.

    Examples
    --------
    >>> masked_softmax(np.log([[1.0, 3.0, 4.0]]), np.array([True, True, False]))
    array([[0.25, 0.75, 0.  ]])
    """
    S = as_floats("S", S, "n_k")
    axis = as_axis(axis, "S", S)
    A = S.astype(working_dtype(S))
    mask_in_place(A, as_mask(mask, S.shape))
    exponentiate_in_place(A, axis)
    A /= never_zero(A.sum(axis, keepdims=True))
    return A.astype(S.dtype, copy=False)


def as_mask(mask, shape):
    """Return `mask` as an array that broadcasts to `shape`, or None for None."""
    if mask is None:
        return None
    mask = as_array("mask", mask)
    if mask.dtype.kind not in "bf":
        raise TypeError(
            "mask must be bool (True = may look) or float (added to the scores), "
            f"got dtype {mask.dtype}; write mask.astype(bool) if 1 means may look"
        )
    try:
        np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(
            f"mask of shape {mask.shape} does not broadcast to the shape of the scores "
            f"(..., n_q, n_k) = {shape}"
        ) from None
    # The largest entry is NaN where any is; a comparison would write a second mask.
    if mask.dtype.kind == "f" and not mask.max(initial=-np.inf) < np.inf:
        raise ValueError(
            "a float mask must hold finite numbers or -inf, got +inf or NaN"
        )
    return mask


def mask_in_place(S, mask):
    """Close the scores that `mask` forbids; `mask` has been through `as_mask`."""
    if mask is None:
        return
    if mask.dtype.kind == "b":
        np.copyto(S, -np.inf, where=~mask)
    else:
        # Set before the sum, since NaN - inf and inf - inf are NaN.
        np.copyto(S, -np.inf, where=np.isneginf(mask))
        np.add(S, mask, out=S, casting="same_kind")
