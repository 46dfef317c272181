"""What changed since 2017: correct attention with a step of it changed on purpose.

Each piece is a few lines on queries, keys, scores or weights, and a design is a
function that puts them into its order. It is the reference with which `mha.laws`
compares a layer of this design:

>>> from mha import designs, laws
>>> def gemma_2(Q, K, V, mask=None):
...     Q, K = designs.rotary(Q), designs.rotary(K)
...     S = designs.soft_cap(designs.scores(Q, K), 50.0)
...     seen = designs.both(designs.causal(Q, K), designs.window(Q, K, 4))
...     return designs.weights(S, designs.both(mask, seen)) @ V
>>> laws.check(designs.in_heads(gemma_2), reference=gemma_2).holds
True

Queries, keys and values have shape (..., n, d), and where heads differ from each other,
as in ALiBi, (..., heads, n, d). True in a mask means *may attend*. Where positions
count, as in a causal mask, there must be as many queries as keys. A design raises
NotImplementedError where it has no answer, and there a law asks nothing.

What a model learns, such as a gain, a sink or a gate, has no default: with a gain of 1
or a sink of 0 a mistake in them cannot be seen. Neither can a window, a block or a
number of keys that is larger than the text, so check a layer with small ones: most laws
hand over a handful of tokens, and none more than 521 where positions count.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from mha import merge_heads, softmax, split_heads

__all__ = [
    "alibi", "alibi_slopes", "best_blocks", "both", "causal", "delta_rule",
    "gate", "in_heads", "latent", "linear", "offsets", "rms", "rotary", "rotated",
    "scores", "soft_cap", "t5_bias", "top_k", "weights", "window",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Attend = Callable[..., Any]
OPTIONS = {"mask", "is_causal", "return_weights"}


def _like(x: Array, y: Any) -> Array:
    """Return y in the floating-point dtype of x, so that float32 stays float32."""
    return np.asarray(y, np.result_type(x, np.float16))


# Scores and weights -----------------------------------------------------------------


def scores(Q: Array, K: Array, scale: float | None = None) -> Array:
    """Return Q Kᵀ / √d_k, or Q Kᵀ times another scale.

    >>> scores(np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]), scale=1.0)
    array([[3., 4.]])
    """
    return Q @ K.swapaxes(-1, -2) * (Q.shape[-1] ** -0.5 if scale is None else scale)


def weights(S: Array, mask: Any = None, sink: Any = None) -> Array:
    """Return softmax(S) over the keys that the mask shows.

    Parameters
    ----------
    S : ndarray of shape (..., n_q, n_k)
        Scores.
    mask : ndarray, optional
        True (or 1) = may attend; floating-point numbers are added to the scores.
    sink : float or ndarray of shape (heads,), optional
        One more score in every row, which has no value, as in gpt-oss: it takes its
        share of the weight, so that rows sum to less than one.

    Returns
    -------
    A : ndarray of shape (..., n_q, n_k)

    Examples
    --------
    >>> weights(np.zeros((1, 4)), np.array([True, True, True, False]), sink=0.0)
    array([[0.25, 0.25, 0.25, 0.  ]])
    """
    S = _shown(S, mask)
    if sink is None:
        return softmax(S)
    column = np.reshape(sink, (-1, 1, 1)) if np.ndim(sink) else sink
    column = np.broadcast_to(_like(S, column), (*S.shape[:-1], 1))
    return softmax(np.concatenate([S, column], -1))[..., :-1]


def _shown(S: Array, mask: Any) -> Array:
    """Return the scores, -∞ where the mask hides."""
    if mask is None:
        return S
    return S + mask if mask.dtype.kind == "f" else np.where(mask != 0, S, -np.inf)


def soft_cap(S: Array, cap: float) -> Array:
    """Return cap · tanh(S / cap), which stays between ±cap; the mask comes after it.

    >>> soft_cap(np.array([-1000.0, 0.0, 1.0, 1000.0]), 50.0).round(3)
    array([-50.,   0.,   1.,  50.])
    """
    return cap * np.tanh(S / cap)


def rms(x: Array, gain: Any, eps: float = 1e-6) -> Array:
    """Return the rows of x at root mean square 1, times a learned gain.

    >>> rms(np.array([[3.0, 4.0], [30.0, 40.0]]), gain=5.0, eps=0) / 2**0.5
    array([[3., 4.],
           [3., 4.]])
    """
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * _like(x, gain)


# Masks ------------------------------------------------------------------------------


def both(*masks: Any) -> Any:
    """Return the mask that hides what any of these hides; None hides nothing.

    >>> both(None, np.array([True, True, False]), np.array([False, True, True]))
    array([False,  True, False])
    """
    given = [mask for mask in masks if mask is not None]
    added = [mask for mask in given if mask.dtype.kind == "f"]
    shown = [mask != 0 for mask in given if mask.dtype.kind != "f"]
    seen = np.logical_and.reduce(np.broadcast_arrays(*shown)) if shown else None
    if not added:
        return seen
    return sum(added) if seen is None else np.where(seen, sum(added), -np.inf)


def offsets(Q: Array, K: Array) -> Array:
    """Return i - j for every query i and key j, from which masks of positions are made.

    >>> X = np.zeros((3, 2))
    >>> offsets(X, X)
    array([[ 0, -1, -2],
           [ 1,  0, -1],
           [ 2,  1,  0]])
    """
    if Q.shape[-2] != K.shape[-2]:
        raise NotImplementedError("positions count, so n_q must be n_k")
    i, j = np.ogrid[: Q.shape[-2], : K.shape[-2]]
    return i - j


def causal(Q: Array, K: Array) -> Array:
    """Let every token attend to itself and to those before it: j ≤ i."""
    return offsets(Q, K) >= 0


def window(Q: Array, K: Array, w: int) -> Array:
    """Let a token attend to itself and the w - 1 nearest on either side.

    Some programs do not count the token itself, so that their w is one less.

    >>> X = np.zeros((4, 2))
    >>> both(causal(X, X), window(X, X, 2)).astype(int)
    array([[1, 0, 0, 0],
           [1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    """
    return abs(offsets(Q, K)) < w


def top_k(S: Array, k: int, mask: Any = None) -> Array:
    """Return where a score is among the k largest that the mask shows in its row.

    >>> top_k(np.array([[3.0, 1.0, 2.0]]), 1, np.array([False, True, True]))
    array([[False, False,  True]])
    """
    S = _shown(S, mask)
    if S.shape[-1] > k:
        ordered = np.sort(S, -1)
        last, first_out = ordered[..., -k, None], ordered[..., -k - 1, None]
        if (np.isfinite(first_out) & (last < first_out + 1e-9)).any():
            raise NotImplementedError("two scores are equal, and one must be dropped")
        S = np.where(S >= last, S, -np.inf)
    return S > -np.inf


def best_blocks(Q: Array, K: Array, size: int, k: int) -> Array:
    """Let a token attend to its own block of keys and to the k best ones before it.

    The score of a block is the query's product with the mean of its keys, as in mixture
    of block attention (MoBA), whose k also counts the token's own block.

    >>> Q, K = np.ones((5, 1)), np.array([[3.0], [2.0], [1.0], [1.0], [0.0]])
    >>> best_blocks(Q, K, size=2, k=1)[-1]
    array([ True,  True, False, False,  True])
    """
    past, n = causal(Q, K), K.shape[-2]
    own, starts = np.arange(n) // size, np.arange(0, n, size)
    counts = np.minimum(size, n - starts)[:, None]
    means = np.add.reduceat(K, starts, axis=-2) / counts
    block = np.arange(len(starts))
    chosen = top_k(Q @ means.swapaxes(-1, -2), k, block < own[:, None])
    return (chosen | (block == own[:, None]))[..., own] & past


# Positions --------------------------------------------------------------------------


def rotated(
    x: Array, angles: Array, pairs: Literal["halves", "neighbours"] = "halves"
) -> Array:
    """Rotate pairs of the first columns of x, pair m of row t by angles[t, m] radians.

    Of p pairs, the columns of pair m are m and m + p in "halves", as in Llama, or 2m
    and 2m + 1 in "neighbours", as in the paper. The columns behind them stay.

    >>> rotated(np.array([[1.0, 0.0, 7.0]]), np.array([[np.pi / 2]])).round(9)
    array([[0., 1., 7.]])
    """
    p, cos, sin = angles.shape[-1], np.cos(angles), np.sin(angles)
    one, two = {
        "halves": (slice(0, p), slice(p, 2 * p)),
        "neighbours": (slice(0, 2 * p, 2), slice(1, 2 * p, 2)),
    }[pairs]
    a, b, y = x[..., one], x[..., two], _like(x, x).copy()
    y[..., one], y[..., two] = cos * a - sin * b, sin * a + cos * b
    return y


def rotary(
    x: Array, base: float = 10000.0, pairs: Literal["halves", "neighbours"] = "halves",
    dims: int | None = None, at: Any = None,
) -> Array:  # fmt: skip
    """Rotate pair m of the columns by position · base^(-2m/d) radians.

    Parameters
    ----------
    x : ndarray of shape (..., n, d_k)
        Queries or keys.
    base : float
        The larger it is, the slower the last pairs are.
    pairs : {"halves", "neighbours"}
        Which columns are a pair: see `rotated`, which takes any angles.
    dims : int, optional
        Rotate so many first columns alone; d is this number, d_k by default.
    at : ndarray of shape (..., n), optional
        Positions, by default 0, 1, …

    Returns
    -------
    y : ndarray of the shape of `x`

    Examples
    --------
    A score depends on how far apart the positions are:

    >>> q, k = np.array([[2.0, 1.0]]), np.array([[1.0, 1.0]])
    >>> for t in (0, 100):
    ...     print(scores(rotary(q, at=[t + 3]), rotary(k, at=[t])).round(4))
    [[-2.0003]]
    [[-2.0003]]
    """
    d = x.shape[-1] if dims is None else dims
    if d % 2:
        raise NotImplementedError("columns turn in pairs, so d_k must be even")
    positions = np.arange(x.shape[-2]) if at is None else np.asarray(at)
    return rotated(x, positions[..., None] * base ** -(np.arange(0, d, 2) / d), pairs)


def alibi_slopes(n_heads: int) -> Array:
    """Return 2^(-8r/h) for head r of h, and what the authors' code takes for other h.

    If h is no power of two, these are the slopes of the power below it, and then every
    second one of the power above it.

    >>> np.log2(alibi_slopes(4)), np.log2(alibi_slopes(3))
    (array([-2., -4., -6., -8.]), array([-4., -8., -2.]))
    """
    power = 2 ** math.floor(math.log2(n_heads))
    slopes = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-4 * np.arange(1, 2 * power, 2) / power)
    return np.concatenate([slopes, between[: n_heads - power]])


def alibi(Q: Array, K: Array, slopes: Any = None) -> Array:
    """Return ``-m |i - j|``, to be added to the scores, with a slope m for each head.

    >>> X = np.zeros((1, 3, 2))
    >>> alibi(X, X, slopes=[0.5])[0, 2]
    array([-1. , -0.5, -0. ])
    """
    if slopes is None:
        slopes = alibi_slopes(Q.shape[-3] if Q.ndim > 2 else 1)
    bias = -np.reshape(slopes, (-1, 1, 1)) * abs(offsets(Q, K))
    return _like(Q, bias if Q.ndim > 2 else bias[0])


def t5_bias(Q: Array, K: Array, table: Array, far: int = 128) -> Array:
    """Return what the encoder of T5 adds to its scores, which it does not scale.

    Parameters
    ----------
    Q, K : ndarray of shape (..., heads, n, d_k)
        Only their shapes count.
    table : ndarray of shape (buckets, heads)
        Learned numbers. The first half of the buckets is for keys before the query, the
        second for those after it. Half of each is for single distances, and the rest
        grow, up to the distance `far`.

    Returns
    -------
    bias : ndarray of shape (heads, n, n)

    Examples
    --------
    >>> X, table = np.zeros((1, 4, 2)), np.arange(8.0)[:, None]
    >>> t5_bias(X, X, table)[0]
    array([[0., 5., 6., 6.],
           [1., 0., 5., 6.],
           [2., 1., 0., 5.],
           [2., 2., 1., 0.]])
    """
    i_minus_j, half = offsets(Q, K), len(table) // 2
    distance, exact = abs(i_minus_j), half // 2
    growth = np.log2(np.maximum(distance, 1) / exact) / np.log2(far / exact)
    distant = np.minimum(exact + (growth * (half - exact)).astype(int), half - 1)
    buckets = half * (i_minus_j < 0) + np.where(distance < exact, distance, distant)
    bias = np.moveaxis(table[buckets], -1, 0)
    return _like(Q, bias if Q.ndim > 2 else bias[0])


# Whole designs ----------------------------------------------------------------------


def linear(Q: Array, K: Array, V: Array, mask: Any = None) -> Array:
    """Return Y[i] = Σ_j φ(q_i)·φ(k_j) v_j / Σ_j φ(q_i)·φ(k_j) with φ = elu + 1.

    >>> linear(np.ones((1, 1)), np.array([[0.0], [2.0]]), np.array([[0.0], [4.0]]))
    array([[3.]])
    """
    if mask is not None and mask.dtype.kind == "f":
        raise NotImplementedError("it has no scores to which a mask is added")
    phi_Q, phi_K = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (Q, K))
    S = scores(phi_Q, phi_K, 1) * (True if mask is None else mask != 0)
    total = S.sum(-1, keepdims=True)
    return S / np.where(total == 0, 1, total) @ V


def delta_rule(Q: Array, K: Array, V: Array, beta: Array, decay: Any = 1.0) -> Array:
    """Correct a state by what it did not foretell (gated delta rule).

    S_t = a_t S_{t-1} + β_t k_tᵀ (v_t - k_t a_t S_{t-1}) and y_t = q_t S_t.

    Parameters
    ----------
    Q, K, V : ndarray of shape (..., n, d)
        Queries, keys of length 1, and values.
    beta : ndarray of shape (..., n, 1)
        How much of the error is corrected, between 0 and 1.
    decay : ndarray of shape (..., n, 1) or (..., n, d_k), optional
        a_t, what is left of the state, or of each of its rows, as in Kimi Linear.

    Returns
    -------
    Y : ndarray of the shape of `V`

    Examples
    --------
    With β = 1 a key that comes again gets its new value:

    >>> K, V = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[5.0], [7.0]])
    >>> delta_rule(K, K, V, beta=np.ones((2, 1)))
    array([[5.],
           [7.]])
    """
    offsets(Q, K)  # raises where there are other keys than queries
    S = np.zeros((*V.shape[:-2], K.shape[-1], V.shape[-1]))
    Y, decay = _like(V, np.zeros(V.shape)), np.broadcast_to(decay, K.shape)
    for t in range(V.shape[-2]):
        q, k, v, b, a = (x[..., t : t + 1, :] for x in (Q, K, V, beta, decay))
        S = a.swapaxes(-1, -2) * S
        S = S + b * k.swapaxes(-1, -2) @ (v - k @ S)
        Y[..., t : t + 1, :] = q @ S
    return Y


def latent(
    Q: Array, K: Array, V: Array, mask: Any = None, *, dims: int, base: float = 10000.0
) -> Array:
    """Multi-head latent attention, causal: positions stand in columns of their own.

    Parameters
    ----------
    Q, K : ndarray of shape (..., heads, n, d_k)
        The last `dims` columns are rotated, in pairs of neighbours, and all heads share
        those of the first head's keys. The others are made of the latent vectors, and
        have no position.
    V : ndarray of shape (..., heads, n, d_v)
        Made of the latent vectors, too.
    dims : int
        How many columns have positions.

    Returns
    -------
    Y : ndarray of shape (..., heads, n, d_v)

    Examples
    --------
    >>> Q, K, V = np.random.default_rng(0).normal(size=(3, 2, 5, 6))
    >>> K[1, :, -2:] = 99.0  # never read
    >>> bool(abs(latent(Q, K, V, dims=2)).max() < 9)
    True
    """
    shared = K[..., :1, :, -dims:] if K.ndim > 2 else K[..., -dims:]
    shared = np.broadcast_to(shared, (*K.shape[:-1], dims))
    Q, K = (
        np.concatenate([x[..., :-dims], rotary(r, base, "neighbours")], -1)
        for x, r in ((Q, Q[..., -dims:]), (K, shared))
    )
    return weights(scores(Q, K), both(mask, causal(Q, K))) @ V


# Layers -----------------------------------------------------------------------------


def gate(W: Array) -> Callable[[Array, Array], Array]:
    """Return ``after(heads, X)``, which multiplies each head by its part of σ(X W).

    >>> heads, X = np.ones((1, 3, 2)), np.zeros((3, 4))
    >>> gate(np.ones((4, 2)))(heads, X)[0, 0]
    array([0.5, 0.5])
    """

    def after(heads: Array, X: Array) -> Array:
        share = 1 / (1 + np.exp(-(X @ _like(X, W))))
        return heads * split_heads(share, heads.shape[-3])

    return after


def in_heads(
    attend: Attend, after: Callable[[Array, Array], Array] | None = None
) -> Attend:
    """Return the layer whose heads attend like `attend`.

    Parameters
    ----------
    attend : function
        ``attend(Q, K, V, mask=None)`` on arrays of shape (..., heads, n, d).
    after : function, optional
        ``after(heads, X)`` changes the outputs of the heads before W_O: see `gate`.

    Returns
    -------
    layer : function
        ``layer(X, W_Q, W_K, W_V, W_O, n_heads, mask=None)``, also with another
        sequence X_k to attend to and with biases. If W_K and W_V have columns for fewer
        heads, groups of neighbouring query heads share them (grouped attention).

    Examples
    --------
    >>> layer = in_heads(lambda Q, K, V: weights(scores(Q, K), causal(Q, K)) @ V)
    >>> X, W, W_few = np.ones((3, 4)), np.eye(4), np.eye(4)[:, :2]
    >>> layer(X, W, W_few, W_few, W, n_heads=2).shape
    (3, 4)
    """
    takes = {*inspect.signature(attend).parameters}

    def layer(
        X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, n_heads: int,
        mask: Any = None, *, X_k: Any = None, b_Q: Any = 0, b_K: Any = 0, b_V: Any = 0,
        b_O: Any = 0, **options: Any,
    ) -> Any:  # fmt: skip
        X_k = X if X_k is None else X_k
        n_kv_heads = W_K.shape[1] // (W_Q.shape[1] // n_heads)
        Q = split_heads(X @ W_Q + b_Q, n_heads)
        K, V = (
            np.repeat(split_heads(x, n_kv_heads), n_heads // n_kv_heads, -3)
            for x in (X_k @ W_K + b_K, X_k @ W_V + b_V)
        )
        Y = attend(Q, K, V, **options if mask is None else options | {"mask": mask})
        Y, *A = Y if isinstance(Y, tuple) else (Y,)
        Y = merge_heads(Y if after is None else after(Y, X)) @ W_O + b_O
        return (Y, *A) if A else Y

    four = "W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O"
    layer.accepts = {"X", "X_k", "n_heads", *four} | (takes & OPTIONS)  # type: ignore[attr-defined]
    layer.__name__ = f"in_heads({getattr(attend, '__name__', 'attend')})"
    return layer
