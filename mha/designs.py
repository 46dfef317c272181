"""What changed since 2017: correct attention with a step of it changed on purpose.

Each piece is a few lines on queries, keys, scores or weights, and a design is a
function that puts them into its order. It is the reference with which `mha.laws`
compares a layer of this design:

>>> from mha import laws
>>> def gemma_2(Q, K, V, mask=None):
...     Q, K = rotary(Q), rotary(K)
...     S = soft_cap(scores(Q, K), 50.0)
...     return weights(S, both(mask, causal(Q, K), window(Q, K, 4096))) @ V
>>> laws.check(in_heads(gemma_2), reference=gemma_2).holds
True

True in a mask means *may attend*. Where positions count, as in a causal mask or in
rotary, there must be as many queries as keys. A design raises NotImplementedError where
it has no answer, and there a law asks nothing. Numbers that a model learns, such as
gains and sinks, have no defaults: with a gain of 1 or a sink of 0 a mistake in them
cannot be seen.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from mha import merge_heads, softmax, split_heads

__all__ = [
    "alibi", "alibi_slopes", "best_blocks", "both", "causal", "delta_rule",
    "gate", "in_heads", "latent", "linear", "rms", "rotary", "scores", "soft_cap",
    "t5_bias", "top_k", "weights", "window",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Attend = Callable[..., Any]
OPTIONS = {"mask", "is_causal", "return_weights"}


# Scores and weights -----------------------------------------------------------------


def _like(x: Array, y: Any) -> Array:
    """Return y in the floating-point dtype of x, so that float32 stays float32."""
    return np.asarray(y, np.result_type(x, np.float16))


def scores(Q: Array, K: Array, scale: float | None = None) -> Array:
    """Return Q Kᵀ / √d_k, or times another scale."""
    return Q @ K.swapaxes(-1, -2) * (Q.shape[-1] ** -0.5 if scale is None else scale)


def weights(S: Array, mask: Any = None, sink: Any = None) -> Array:
    """Return softmax(S) where the mask is True.

    A `sink`, one number or one for each head, is one more score that has no value: it
    takes its share of the weight, so that rows sum to less than one.
    """
    if mask is not None:
        S = S + mask if mask.dtype.kind == "f" else np.where(mask != 0, S, -np.inf)
    if sink is None:
        return softmax(S)
    column = np.reshape(sink, (-1, 1, 1)) if np.ndim(sink) else np.asarray(sink)
    column = np.broadcast_to(_like(S, column), (*S.shape[:-1], 1))
    S = np.concatenate([S, column], -1)
    return softmax(S)[..., :-1]


def soft_cap(S: Array, cap: float) -> Array:
    """Return scores that approach ±cap and never reach it; the mask comes after."""
    return cap * np.tanh(S / cap)


def rms(x: Array, gain: Any, eps: float = 1e-6) -> Array:
    """Return the rows of x at root mean square 1, times a gain that is learned."""
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * _like(x, gain)


# Masks ------------------------------------------------------------------------------


def both(*masks: Any) -> Any:
    """Return the mask that hides what any of these hides; None hides nothing."""
    seen, added = None, None
    for mask in masks:
        if mask is not None and mask.dtype.kind == "f":
            added = mask if added is None else added + mask
        elif mask is not None:
            seen = mask != 0 if seen is None else seen & (mask != 0)
    if added is None or seen is None:
        return seen if added is None else added
    return np.where(seen, added, -np.inf)


def offsets(Q: Array, K: Array) -> Array:
    """Return i - j for every query i and key j."""
    if Q.shape[-2] != K.shape[-2]:
        raise NotImplementedError("positions count, so n_q must be n_k")
    i, j = np.ogrid[: Q.shape[-2], : K.shape[-2]]
    return i - j


def causal(Q: Array, K: Array) -> Array:
    """Let every token attend to itself and to those before it."""
    return offsets(Q, K) >= 0


def window(Q: Array, K: Array, w: int) -> Array:
    """Let a token attend to itself and the w - 1 nearest on either side."""
    return abs(offsets(Q, K)) < w


def top_k(S: Array, k: int) -> Array:
    """Return where a score is among the k largest of its row."""
    if S.shape[-1] <= k:
        return np.ones(S.shape, bool)
    ordered = np.sort(S, -1)
    last, first_out = ordered[..., -k, None], ordered[..., -k - 1, None]
    if (np.isfinite(first_out) & (last < first_out + 1e-9)).any():
        raise NotImplementedError("two scores are equal, and one must be dropped")
    return S >= last


def best_blocks(Q: Array, K: Array, size: int, k: int) -> Array:
    """Let a token attend to its own block of keys and to the k best ones before it.

    The score of a block is the query's product with the mean of its keys, as in mixture
    of block attention.
    """
    past, n = causal(Q, K), K.shape[-2]
    own = np.arange(n) // size
    starts = np.arange(0, n, size)
    sizes = np.minimum(size, n - starts)[:, None]
    means = np.add.reduceat(K, starts, axis=-2) / sizes
    earlier = np.arange(len(starts)) < own[:, None]
    S = np.where(earlier, Q @ means.swapaxes(-1, -2), -np.inf)
    blocks = (top_k(S, k) & earlier) | (np.arange(len(starts)) == own[:, None])
    return blocks[..., own] & past


# Positions --------------------------------------------------------------------------


def rotary(
    x: Array, base: float = 10000.0, pairs: Literal["halves", "neighbours"] = "halves",
    dims: int | None = None, at: Any = None,
) -> Array:  # fmt: skip
    """Turn pairs of columns, pair m by position · base^(-2m/d) radians.

    The pairs are (m, m + d/2) in "halves", as in Llama, and (2m, 2m + 1) in
    "neighbours", as in the paper. `dims` turns the first columns alone, and `at` holds
    the positions, 0, 1, … by default.
    """
    d = x.shape[-1] if dims is None else dims
    if d % 2:
        raise NotImplementedError("columns turn in pairs, so d_k must be even")
    positions = np.arange(x.shape[-2]) if at is None else np.asarray(at)
    angles = positions[..., None] * base ** -(np.arange(0, d, 2) / d)
    halves = slice(0, d // 2), slice(d // 2, d)
    one, two = halves if pairs == "halves" else (slice(0, d, 2), slice(1, d, 2))
    turned = _like(x, x).copy()
    a, b = x[..., one], x[..., two]
    turned[..., one] = a * np.cos(angles) - b * np.sin(angles)
    turned[..., two] = a * np.sin(angles) + b * np.cos(angles)
    return turned


def alibi_slopes(n_heads: int) -> Array:
    """Return the slopes of the authors' code, also where n_heads is no power of 2."""
    power = 2 ** math.floor(math.log2(n_heads))
    slopes = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-4 * np.arange(1, 2 * power + 1, 2) / power)
    return np.concatenate([slopes, between[: n_heads - power]])


def alibi(Q: Array, K: Array, slopes: Any = None) -> Array:
    """Return what is added to the scores: minus a slope per head times the distance."""
    if slopes is None:
        slopes = alibi_slopes(Q.shape[-3] if Q.ndim > 2 else 1)
    bias = -np.reshape(slopes, (-1, 1, 1)) * abs(offsets(Q, K))
    return _like(Q, bias if Q.ndim > 2 else bias[0])


def t5_bias(Q: Array, K: Array, table: Array, far: int = 128) -> Array:
    """Return what is added to the scores: an entry of a table (buckets, heads).

    The first half of the buckets is for keys before the query, the second for those
    after it. Half of each is for single distances, and the rest grow up to `far`.
    """
    half = len(table) // 2
    j_minus_i, distance, exact = -offsets(Q, K), abs(offsets(Q, K)), half // 2
    growth = np.log(np.maximum(distance, 1) / exact) / np.log(far / exact)
    distant = np.minimum(exact + (growth * (half - exact)).astype(int), half - 1)
    buckets = half * (j_minus_i > 0) + np.where(distance < exact, distance, distant)
    bias = np.moveaxis(table[buckets], -1, 0)
    return _like(Q, bias if Q.ndim > 2 else bias[0])


# Whole designs ----------------------------------------------------------------------


def linear(Q: Array, K: Array, V: Array, mask: Any = None) -> Array:
    """Linear attention with elu + 1: products take the place of exponentials."""
    Q, K = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (Q, K))
    S = Q @ K.swapaxes(-1, -2) * (1.0 if mask is None else mask)
    total = S.sum(-1, keepdims=True)
    return S / np.where(total == 0, 1, total) @ V


def delta_rule(Q: Array, K: Array, V: Array, beta: Array, decay: Any = 1.0) -> Array:
    """Gated delta rule: a state is corrected by what it did not yet foretell.

    S_t = a_t S_{t-1} + β_t k_t (v_t - a_t k_tᵀ S_{t-1}) and y_t = q_tᵀ S_t, with β and
    a of shape (..., n, 1). Keys have length 1, by the layer's own norm.
    """
    S = np.zeros((*V.shape[:-2], K.shape[-1], V.shape[-1]))
    Y, decay = np.empty(V.shape), np.broadcast_to(decay, np.shape(beta))
    for t in range(V.shape[-2]):
        now = (..., slice(t, t + 1), slice(None))
        S = decay[now] * S
        S = S + beta[now] * K[now].swapaxes(-1, -2) @ (V[now] - K[now] @ S)
        Y[now] = Q[now] @ S
    return Y


def latent(
    Q: Array, K: Array, V: Array, mask: Any = None, *, dims: int, base: float = 10000.0
) -> Array:
    """Multi-head latent attention: positions stand in `dims` columns of their own.

    The last `dims` columns of queries and keys are rotated, in pairs of neighbours, and
    all heads share those of the first head's keys. The other columns come out of the
    compressed tokens without a position.
    """
    shared = K[..., :1, :, -dims:] if K.ndim > 2 else K[..., -dims:]
    k = rotary(np.broadcast_to(shared, (*K.shape[:-1], dims)), base, "neighbours")
    Q = np.concatenate([Q[..., :-dims], rotary(Q[..., -dims:], base, "neighbours")], -1)
    K = np.concatenate([K[..., :-dims], k], -1)
    return weights(scores(Q, K), both(mask, causal(Q, K))) @ V


def gate(W: Array) -> Callable[[Array, Array], Array]:
    """Return ``after(heads, X)``, which multiplies each head by its sigmoid(X W)."""
    return lambda heads, X: heads / (1 + np.exp(-split_heads(X @ W, heads.shape[-3])))


def in_heads(
    attend: Attend, after: Callable[[Array, Array], Array] | None = None
) -> Attend:
    """Return the layer whose heads attend like `attend`.

    Keys and values of fewer heads are shared by groups of neighbouring query heads
    (grouped attention). `after` gets the outputs of the heads and X, before W_O.
    """
    takes = {*inspect.signature(attend).parameters}

    def layer(
        X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, n_heads: int, *,
        X_k: Any = None, b_Q: Any = 0, b_K: Any = 0, b_V: Any = 0, b_O: Any = 0,
        **options: Any,
    ) -> Any:  # fmt: skip
        X_k = X if X_k is None else X_k
        n_kv_heads = W_K.shape[1] // (W_Q.shape[1] // n_heads)
        Q = split_heads(X @ W_Q + b_Q, n_heads)
        K, V = (
            np.repeat(split_heads(x, n_kv_heads), n_heads // n_kv_heads, -3)
            for x in (X_k @ W_K + b_K, X_k @ W_V + b_V)
        )
        Y = attend(Q, K, V, **options)
        Y, *A = Y if isinstance(Y, tuple) else (Y,)
        Y = merge_heads(Y if after is None else after(Y, X)) @ W_O + b_O
        return (Y, *A) if A else Y

    four = "W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O"
    layer.accepts = {"X", "X_k", "n_heads", *four} | (takes & OPTIONS)  # type: ignore[attr-defined]
    layer.__name__ = f"in_heads({getattr(attend, '__name__', 'attend')})"
    return layer
