"""Step 9: what does a long text cost? Chapter 15."""

from itertools import product

import numpy as np

from mha._arrays import (
    as_count,
    as_scale,
    never_zero,
    same_last_axis,
    working_dtype,
)
from mha.attention import _checked, _whole_mask
from mha.masks import causal_mask, mask_in_place


def chunked_attention(
    Q, K, V, mask=None, *, is_causal=False, scale=None, block_size=512
):
    """Return what attention returns, without ever holding all scores.

    Equation: with S₁, S₂, … the scores of the blocks of keys, and m the largest score
    so far, Y = Σ_b exp(S_b - m) V_b / Σ_b Σ_j exp(S_b - m)_j  (chapter 15)

    The scores of one block of queries with one block of keys are in memory at a time.
    When a block brings a larger score, the sums so far are multiplied by
    exp(old m - new m). The time still grows as n_q · n_k.

    Parameters
    ----------
    Q : ndarray of shape (..., n_q, d_k)
        Queries.
    K : ndarray of shape (..., n_k, d_k)
        Keys.
    V : ndarray of shape (..., n_k, d_v)
        Values, one for each key. Values must be finite even where masked.
    mask : ndarray, optional
        Broadcasts to (..., n_q, n_k) and is read block by block. bool: True = may look.
        float: added to the scores.
    is_causal : bool, default False
        Query ``i`` sees the keys ``j <= i`` only; `mask` still applies. Blocks of keys
        that lie wholly in the future are skipped.
    scale : float, optional
        Factor on the scores, 1/√d_k by default.
    block_size : int, default 512
        How many queries, and how many keys, a block holds. It changes the time and the
        memory, and the result in its last digits only.

    Returns
    -------
    Y : ndarray of shape (..., n_q, d_v)
        Each row lies in the convex hull of the value rows; a query that may look at
        nothing gets zeros. Same dtype as the inputs; float16 is summed in float32.

    Raises
    ------
    ValueError
        If shapes do not fit, with both numbers; if a float mask holds NaN or +inf; if
        `block_size` is less than 1.
    TypeError
        If an argument does not hold real numbers, `mask` holds integers, or
        `block_size` is not an integer.

    References
    ----------
    Milakov and Gimelshein 2018, *Online normalizer calculation for softmax*. Dao et al.
    2022, *FlashAttention*, section 3.1.

    Examples
    --------
    The query scores ln 3 with the first key and 0 with the second, and meets them one
    at a time: three quarters of 8 and one quarter of 4.

    >>> Q, K, V = [[np.log(3.0)]], [[1.0], [0.0]], [[8.0], [4.0]]
    >>> chunked_attention(Q, K, V, block_size=1)
    array([[7.]])
    """
    Q, K, V, leading = _checked(Q, K, V)
    same_last_axis("Q", Q, "K", K, "d_k")
    dtype, work = np.result_type(Q, K, V), working_dtype(Q, K, V)
    Q, K, V = (
        np.broadcast_to(x.astype(work, copy=False), leading + x.shape[-2:])
        for x in (Q, K, V)
    )
    scale, size = as_scale(scale, Q.shape[-1]), as_count("block_size", block_size)
    mask = _whole_mask(mask, False, (*leading, Q.shape[-2], K.shape[-2]))
    buffer = np.empty(min(size, Q.shape[-2]) * min(size, K.shape[-2]), work)
    Y = np.empty((*Q.shape[:-1], V.shape[-1]), dtype)
    for head, start in product(np.ndindex(leading), range(0, Q.shape[-2], size)):
        rows = (*head, slice(start, start + size))
        masks = None if mask is None else mask[rows], start if is_causal else None
        q = Q[rows] * scale
        scores = _score_blocks(q, K[head], *masks, size, buffer)
        Y[rows] = _bring_home(scores, V[head], len(q))
    return Y


def _bring_home(scores, V, n_q):
    """Return the answers to n_q queries; their scores come one block at a time."""
    # Less than any score; -inf would not do, since -inf - -inf is NaN.
    lowest = np.finfo(V.dtype).min
    top = np.full((n_q, 1), lowest)
    total, Y = np.zeros_like(top), np.zeros((n_q, V.shape[-1]), V.dtype)
    for keys, S in scores:
        higher = np.maximum(top, S.max(-1, keepdims=True, initial=lowest))
        # The gap of two huge scores may overflow to -inf; exp(-inf) = 0 is right.
        with np.errstate(over="ignore"):
            shrink = np.exp(top - higher)
            S -= higher
        np.exp(S, out=S)
        total *= shrink
        total += S @ np.ones((S.shape[-1], 1), S.dtype)
        Y *= shrink
        Y += S @ V[keys]
        top = higher
    return Y / never_zero(total)


def _score_blocks(Q, K, mask, first, size, buffer):
    """Yield a block of keys and its scores, in the same buffer each time.

    `first` is the place of the first query in the text; None lets all see the future.
    """
    n_k = len(K) if first is None else min(len(K), first + len(Q))
    for start in range(0, n_k, size):
        keys = slice(start, min(start + size, n_k))
        S = buffer[: len(Q) * (keys.stop - start)].reshape(len(Q), -1)
        np.matmul(Q, K[keys].T, out=S)
        if mask is not None:
            mask_in_place(S, mask[:, keys])
        if start == first:  # the only block that holds past and future
            mask_in_place(S, causal_mask(*S.shape))
        yield keys, S
