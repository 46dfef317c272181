"""Step 7: what surrounds attention?"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from mha._checks import (
    Array,
    DType,
    Maybe,
    as_activation,
    as_float,
    as_integer,
    as_layers,
    as_pair,
    cast,
    common_dtypes,
    fit,
    fit_dict,
    fit_mask,
    rounded,
)
from mha.heads import linear, multi_head_attention

Weights = Mapping[str, ArrayLike | None]
Activation = Literal["relu", "gelu"]
Part = Callable[[Any], Any]


def layer_norm(
    x: ArrayLike,
    gain: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Array:
    """Give every token mean 0 and variance 1 over its own features.

    Equation: LN(x) = (x - μ) / √(σ² + ε) ⊙ g + b

    Parameters
    ----------
    x : ndarray of shape (..., d_model)
        One token per row.
    gain, bias : ndarray of shape (d_model,), optional
        Stretch and shift each feature afterwards; 1 and 0 by default.
    eps : float, default 1e-5
        Added to the variance, so that the root is not 0.

    Returns
    -------
    y : ndarray of the shape of `x`
        Without gain and bias each row has mean 0 and variance σ² / (σ² + ε). A row of
        equal numbers becomes `bias`.

    Examples
    --------
    The first row has mean 5 and variance 16, the second mean 30 and variance 100.

    >>> layer_norm(np.array([[1.0, 9.0], [40.0, 20.0]]), eps=0)
    array([[-1.,  1.],
           [ 1., -1.]])
    """
    axes = "x (..., d_model), gain (d_model,), bias (d_model,)"
    dtype, [x, gain, bias] = fit(axes, x, gain, bias)
    eps = as_float("eps", eps, least=0)

    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    spread = np.sqrt(variance + eps)
    y = centred / np.where(spread == 0, 1, spread)
    y = y if gain is None else y * gain
    return rounded(dtype, y if bias is None else y + bias)


def feed_forward(
    x: ArrayLike,
    W_1: ArrayLike,
    b_1: ArrayLike | None,
    W_2: ArrayLike,
    b_2: ArrayLike | None,
    activation: Activation = "relu",
) -> Array:
    """Send every token through the same two linear maps with an activation between.

    Equation: FFN(x) = φ(x W_1 + b_1) W_2 + b_2 with φ(z) = max(0, z) or
    φ(z) = z Φ(z)

    Parameters
    ----------
    x : ndarray of shape (..., n, d_model)
        One token per row.
    W_1, W_2 : ndarray of shapes (d_model, d_ff) and (d_ff, d_model)
        The map to the hidden features, and the map back.
    b_1, b_2 : ndarray or None
        One number per column of the matrix of the same number.
    activation : {"relu", "gelu"}, default "relu"
        "gelu" is the exact one, in which Φ(z) is the probability that a standard normal
        number lies below z, and not its approximation by tanh.

    Returns
    -------
    y : ndarray of shape (..., n, d_model)
        Row ``i`` depends on row ``i`` of `x` only.

    Examples
    --------
    Two hidden features, max(0, x) and max(0, -x), and their sum: the absolute value.

    >>> feed_forward([[3.0], [-5.0]], [[1.0, -1.0]], None, [[1.0], [1.0]], None)
    array([[3.],
           [5.]])
    """
    axes = """x (..., n, d_model), W_1 (d_model, d_ff), b_1 (d_ff,),
        W_2 (d_ff, d_out), b_2 (d_out,)"""
    dtype, [x, W_1, b_1, W_2, b_2] = fit(axes, x, W_1, b_1, W_2, b_2)
    activation = as_activation(activation)

    phi = {"relu": relu, "gelu": gelu}[activation]
    return rounded(dtype, linear(phi(linear(x, W_1, b_1)), W_2, b_2))


def relu(z: Array) -> Array:
    """Return max(0, z) for every entry."""
    return np.maximum(z, 0)


erfc = np.frompyfunc(math.erfc, 1, 1)  # NumPy itself has no error function


def gelu(z: Array) -> Array:
    """Return z Φ(z) for every entry, where Φ(z) = erfc(-z/√2) / 2."""
    return z * cast(z.dtype, erfc(-z / math.sqrt(2))) / 2


@overload
def encoder_layer(
    X: ArrayLike, weights: Weights, n_heads: int, mask: Maybe = None, *,
    activation: Activation = "relu", norm_first: bool = False, eps: float = 1e-5,
    is_causal: bool = False, return_weights: Literal[False] = False,
) -> Array: ...  # fmt: skip
@overload
def encoder_layer(
    X: ArrayLike, weights: Weights, n_heads: int, mask: Maybe = None, *,
    activation: Activation = "relu", norm_first: bool = False, eps: float = 1e-5,
    is_causal: bool = False, return_weights: Literal[True],
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def encoder_layer(
    X: ArrayLike, weights: Weights, n_heads: int, mask: Maybe = None, *,
    activation: Activation = "relu", norm_first: bool = False, eps: float = 1e-5,
    is_causal: bool = False, return_weights: bool,
) -> Array | tuple[Array, Array]: ...  # fmt: skip
def encoder_layer(
    X: ArrayLike, weights: Weights, n_heads: int, mask: Maybe = None, *,
    activation: Activation = "relu", norm_first: bool = False, eps: float = 1e-5,
    is_causal: bool = False, return_weights: bool = False,
) -> Array | tuple[Array, Array]:  # fmt: skip
    """Let the tokens attend to each other, then transform each on its own.

    Equation: Z = LN(X + MultiHead(X)), Y = LN(Z + FFN(Z)); with `norm_first`
    Z = X + MultiHead(LN(X)), Y = Z + FFN(LN(Z))

    Parameters
    ----------
    X : ndarray of shape (..., n, d_model)
        The tokens.
    weights : dict of ndarray
        `W_Q`, `W_K`, `W_V`, `W_O` and `b_Q` … `b_O` of `multi_head_attention`, `W_1`,
        `W_2`, `b_1`, `b_2` of `feed_forward`, and `gain_1`, `bias_1`, `gain_2`,
        `bias_2` of the norms of the two. The six matrices must be there. A missing bias
        counts as 0, a missing gain as 1, and other names are refused.
    n_heads, mask, is_causal, return_weights : optional but `n_heads`
        As in `multi_head_attention`; `mask` broadcasts to (..., n_heads, n, n).
    activation, eps : optional
        As in `feed_forward` and `layer_norm`.
    norm_first : bool, default False
        Normalise the input of each part (pre-norm) instead of the sum after it
        (post-norm, as in the paper).

    Returns
    -------
    Y : ndarray of shape (..., n, d_model)
        The tokens after one layer, finite even where all keys of a token are masked.
    A : ndarray of shape (..., n_heads, n, n)
        Only with `return_weights`, as `multi_head_attention` returns them.

    Examples
    --------
    Matrices of zeros add nothing, so only the two norms are left.

    >>> weights = dict.fromkeys("W_Q W_K W_V W_O W_1 W_2".split(), np.zeros((2, 2)))
    >>> encoder_layer([[1.0, 9.0], [40.0, 20.0]], weights, n_heads=1, eps=0)
    array([[-1.,  1.],
           [ 1., -1.]])
    """
    n_heads = as_integer("n_heads", n_heads, least=1)
    eps, activation = as_float("eps", eps, least=0), as_activation(activation)
    dtype, X, weights = fit_layer("weights", weights, X, n_heads)
    n = X.shape[-2]
    mask = fit_mask(mask, (*X.shape[:-2], n_heads, n, n), of_heads=True)

    projections = {name: W for name, W in weights.items() if name[-1] in "QKVO"}
    maps: list[Array] = []

    def attend(x: Array) -> Array:
        H, A = multi_head_attention(
            x, n_heads=n_heads, mask=mask, is_causal=is_causal, return_weights=True,
            **projections,
        )  # fmt: skip
        maps.append(A)
        return H

    def feed(x: Array) -> Array:
        W_1, W_2 = weights["W_1"], weights["W_2"]
        b_1, b_2 = weights.get("b_1"), weights.get("b_2")
        return feed_forward(x, W_1, b_1, W_2, b_2, activation)

    def norm_1(x: Array) -> Array:
        return layer_norm(x, weights.get("gain_1"), weights.get("bias_1"), eps)

    def norm_2(x: Array) -> Array:
        return layer_norm(x, weights.get("gain_2"), weights.get("bias_2"), eps)

    Y = add_and_norm(X, norm_first, attend, feed, norm_1, norm_2)
    return rounded(dtype, (Y, *maps) if return_weights else Y)


def fit_layer(
    where: str, weights: Any, X: Any, n_heads: int
) -> tuple[DType, Array, dict[str, Array]]:
    """Return the dtype, the tokens and the weights of a layer, which fit them.

    A layer adds what it computes to its input, so that both have the same width.
    """
    axes = """W_Q (d_model, n_heads * d_k), W_K (d_model, n_heads * d_k),
        W_V (d_model, n_heads * d_v), W_O (n_heads * d_v, d_model),
        W_1 (d_model, d_ff), W_2 (d_ff, d_model), b_Q (n_heads * d_k,),
        b_K (n_heads * d_k,), b_V (n_heads * d_v,), b_O (d_model,), b_1 (d_ff,),
        b_2 (d_model,), gain_1 (d_model,), bias_1 (d_model,), gain_2 (d_model,),
        bias_2 (d_model,)"""
    return fit_dict(where, axes, weights, X, n_heads)


def fit_stack(
    layers: list[Any], final_norm: tuple[Any, Any], X: Any, n_heads: int
) -> tuple[DType, Array, Array, Array]:
    """Return the dtype, the tokens, and the gain and the bias of the last norm.

    No layer is computed before all are known to fit.
    """
    named = [(f"layers[{i}]", weights) for i, weights in enumerate(layers)]
    dtypes = [fit_layer(where, weights, X, n_heads)[0] for where, weights in named]
    axes = """X (..., n, d_model), the gain of final_norm (d_model,),
        the bias of final_norm (d_model,)"""
    dtype, [X, gain, bias] = fit(axes, X, *final_norm)
    dtype, work = common_dtypes([dtype, *dtypes])
    return dtype, cast(work, X), gain, bias


def add_and_norm(
    X: Any, norm_first: bool, attend: Part, feed: Part, norm_1: Part, norm_2: Part
) -> Any:
    """Return what the two parts of a layer make of the tokens, with their norms."""
    if norm_first:
        Z = X + attend(norm_1(X))
        return Z + feed(norm_2(Z))
    Z = norm_1(X + attend(X))
    return norm_2(Z + feed(Z))


@overload
def encoder(
    X: ArrayLike, layers: Sequence[Weights], n_heads: int, mask: Maybe = None, *,
    activation: Activation = "relu", norm_first: bool = False, eps: float = 1e-5,
    final_norm: tuple[Maybe, Maybe] | None = None, is_causal: bool = False,
    return_weights: Literal[False] = False,
) -> Array: ...  # fmt: skip
@overload
def encoder(
    X: ArrayLike, layers: Sequence[Weights], n_heads: int, mask: Maybe = None, *,
    activation: Activation = "relu", norm_first: bool = False, eps: float = 1e-5,
    final_norm: tuple[Maybe, Maybe] | None = None, is_causal: bool = False,
    return_weights: Literal[True],
) -> tuple[Array, list[Array]]: ...  # fmt: skip
@overload
def encoder(
    X: ArrayLike, layers: Sequence[Weights], n_heads: int, mask: Maybe = None, *,
    activation: Activation = "relu", norm_first: bool = False, eps: float = 1e-5,
    final_norm: tuple[Maybe, Maybe] | None = None, is_causal: bool = False,
    return_weights: bool,
) -> Array | tuple[Array, list[Array]]: ...  # fmt: skip
def encoder(
    X: ArrayLike, layers: Sequence[Weights], n_heads: int, mask: Maybe = None, *,
    activation: Activation = "relu", norm_first: bool = False, eps: float = 1e-5,
    final_norm: tuple[Maybe, Maybe] | None = None, is_causal: bool = False,
    return_weights: bool = False,
) -> Array | tuple[Array, list[Array]]:  # fmt: skip
    """Send the tokens through one layer after the other.

    Equation: X_{l+1} = EncoderLayer_l(X_l), Y = X_L or LN(X_L)

    Parameters
    ----------
    X : ndarray of shape (..., n, d_model)
        The tokens. The encoder adds no positions to them.
    layers : sequence of dict
        The weights of each layer, as `encoder_layer` takes them; without layers `X` is
        returned.
    n_heads, mask, activation, norm_first, eps, is_causal : optional but `n_heads`
        As in `encoder_layer`, the same for each layer.
    final_norm : (gain, bias), optional
        Normalise once more at the end, as pre-norm stacks do. Either may be None.
    return_weights : bool, default False
        Return the weights too.

    Returns
    -------
    Y : ndarray of shape (..., n, d_model)
        The tokens after the last layer.
    A : list of ndarray, each of shape (..., n_heads, n, n)
        Only with `return_weights`: the weights of each layer, the first layer first.

    Examples
    --------
    Two layers of zeros: the first norm leaves nothing to the second.

    >>> weights = dict.fromkeys("W_Q W_K W_V W_O W_1 W_2".split(), np.zeros((2, 2)))
    >>> encoder([[1.0, 9.0], [40.0, 20.0]], [weights, weights], n_heads=1, eps=0)
    array([[-1.,  1.],
           [ 1., -1.]])
    """
    n_heads = as_integer("n_heads", n_heads, least=1)
    eps, activation = as_float("eps", eps, least=0), as_activation(activation)
    layers, norm = as_layers(layers), as_pair("final_norm", final_norm)
    dtype, X, gain, bias = fit_stack(layers, norm, X, n_heads)
    n = X.shape[-2]
    mask = fit_mask(mask, (*X.shape[:-2], n_heads, n, n), of_heads=True)

    X, maps = np.copy(X), []  # so that no layers at all give a copy
    for weights in layers:
        X, A = encoder_layer(
            X, weights, n_heads, mask, activation=activation, norm_first=norm_first,
            eps=eps, is_causal=is_causal, return_weights=True,
        )  # fmt: skip
        maps += [A] if return_weights else []  # else each is forgotten at once
    if final_norm is not None:
        X = layer_norm(X, gain, bias, eps)
    return rounded(dtype, (X, maps) if return_weights else X)
