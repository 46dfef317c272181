"""Step 8: what does attention cost on a long sequence?"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from mha._checks import Array, as_float, as_integer, cast, fit, fit_mask, rounded

# A product, its softmax and the next product run fastest while the scores between them
# stay in the cache next to the processor; half a MiB fits into that of most machines.
CACHE_BYTES = 2**19


def chunked_attention(
    Q: ArrayLike, K: ArrayLike, V: ArrayLike, mask: ArrayLike | None = None, *,
    is_causal: bool = False, scale: float | None = None, block_size: int = 512,
) -> Array:  # fmt: skip
    """Return what attention returns, faster and without ever holding all scores.

    Equation: with S₁, S₂, … the scores of the blocks of keys, and m the largest score
    so far, Y = Σ_b exp(S_b - m) V_b / Σ_b Σ_j exp(S_b - m)_j

    One block of queries and one block of keys, in as many heads as fit the processor's
    cache, are in memory at a time. When a block contains a larger score, the sums so
    far are multiplied by exp(old m - new m). The time still grows as n_q · n_k.

    Parameters
    ----------
    Q, K, V : ndarray of shapes (..., n_q, d_k), (..., n_k, d_k) and (..., n_k, d_v)
        As in `scaled_dot_product_attention`.
    mask, is_causal, scale : optional
        As in `scaled_dot_product_attention`. The mask is read block by block, and
        blocks that lie wholly in the future are skipped.
    block_size : int, default 512
        How many queries, and how many keys, a block holds. It changes the time and the
        memory, and the result in its last digits only.

    Returns
    -------
    Y : ndarray of shape (..., n_q, d_v)
        As in `scaled_dot_product_attention`.

    Examples
    --------
    The query scores ln 3 with the first key and 0 with the second, and the keys come
    one at a time: three quarters of 8 and one quarter of 4 are 7.

    >>> Q, K, V = [[np.log(3.0)]], [[1.0], [0.0]], [[8.0], [4.0]]
    >>> chunked_attention(Q, K, V, block_size=1)
    array([[7.]])
    """
    axes = "Q (..., n_q, d_k), K (..., n_k, d_k), V (..., n_k, d_v)"
    dtype, [Q, K, V] = fit(axes, Q, K, V)
    mask = fit_mask(mask, (*Q.shape[:-1], K.shape[-2]))
    scale = None if scale is None else as_float("scale", scale)
    block_size = as_integer("block_size", block_size, least=1)

    if scale is None:
        scale = 1 / math.sqrt(max(Q.shape[-1], 1))
    leading, n_q, n_k = Q.shape[:-2], Q.shape[-2], K.shape[-2]
    if mask is not None:  # which has no say in the dtype
        mask = mask if mask.dtype == bool else cast(Q.dtype, mask)
        mask = np.broadcast_to(mask, (*leading, n_q, n_k))
    block = min(block_size, n_q) * min(block_size, n_k)
    most = max(1, CACHE_BYTES // (Q.itemsize * max(block, 1)))
    buffer = np.empty(block * min(most, math.prod(leading)), Q.dtype)
    Y = np.empty((*leading, n_q, V.shape[-1]), Q.dtype)
    for heads in head_groups(leading, most):
        for start in range(0, n_q, block_size):
            rows = slice(start, start + block_size)
            # Scaling Q costs n_q·d_k products, scaling the scores n_q·n_k.
            q = Q[heads][..., rows, :] * scale
            masks = None if mask is None else mask[heads][..., rows, :]
            past = start if is_causal else None
            blocks = score_blocks(q, K[heads], masks, past, block_size, buffer)
            Y[heads][..., rows, :] = online_softmax(blocks, V[heads])
    return rounded(dtype, Y)


def head_groups(leading: tuple[int, ...], most: int) -> Iterator[tuple]:
    """Yield the indices of heads, at most `most` at a time."""
    if not leading:
        yield ()
        return
    inside = math.prod(leading[1:])
    if inside <= most:
        step = most // max(inside, 1)
        yield from ((slice(i, i + step),) for i in range(0, leading[0], step))
    else:
        for i in range(leading[0]):
            yield from ((i, *rest) for rest in head_groups(leading[1:], most))


def online_softmax(blocks: Iterator[tuple[slice, Array]], V: Array) -> Array:
    """Return the outputs of some queries, whose scores come one block at a time."""
    # No finite score is less; -inf would not do, since -inf - -inf is NaN.
    top = lowest = np.finfo(V.dtype).min
    total = Y = 0.0
    for keys, S in blocks:
        higher = np.maximum(top, S.max(-1, keepdims=True, initial=lowest))
        # The gap of two huge scores may overflow to -inf; exp(-inf) = 0 is right.
        with np.errstate(over="ignore"):
            shrink = np.exp(top - higher)
            S -= higher
        np.exp(S, out=S)
        # A product with ones adds up each row in half the time of sum().
        total = total * shrink + S @ np.ones((S.shape[-1], 1), S.dtype)
        Y = Y * shrink + S @ V[..., keys, :]
        top = higher
    # On long texts Y, n_q × d_v, is smaller than the weights, n_q × n_k.
    return Y / np.where(total == 0, 1, total)


def score_blocks(
    Q: Array, K: Array, mask: Array | None, first: int | None, size: int, buffer: Array
) -> Iterator[tuple[slice, Array]]:
    """Yield a block of keys and its masked scores, in the same buffer each time.

    `first` is the position of the first query; None lets all attend to the future.
    """
    n_q, n_k = Q.shape[-2], K.shape[-2]
    n_k = n_k if first is None else min(n_k, first + n_q)
    for start in range(0, n_k, size):
        keys = slice(start, min(start + size, n_k))
        shape = (*Q.shape[:-1], keys.stop - start)
        S = buffer[: math.prod(shape)].reshape(shape)
        np.matmul(Q, K[..., keys, :].swapaxes(-1, -2), out=S)
        if mask is not None:
            hide_in_place(S, mask[..., keys])
        if start == first:  # the only block that holds past and future
            hide_in_place(S, np.tri(*shape[-2:], dtype=bool))
        yield keys, S


def hide_in_place(S: Array, mask: Array) -> None:
    """Do to the scores, in their own memory, what `mha.masked_softmax` does."""
    if mask.dtype == bool:
        np.copyto(S, -np.inf, where=~mask)
    else:
        np.copyto(S, -np.inf, where=np.isneginf(mask))
        S += mask
