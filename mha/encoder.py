"""Step 7: what surrounds attention, and what does the stack do? Chapters 11 and 12."""

import math
import numbers
from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from mha._arrays import as_floats, never_zero, working_dtype
from mha._normal import share_below
from mha.heads import _common_dtype, _project, multi_head_attention

MATRICES = ("W_Q", "W_K", "W_V", "W_O", "W_1", "W_2")
BIASES = ("b_Q", "b_K", "b_V", "b_O", "b_1", "b_2")
NORMS = ("gain_1", "bias_1", "gain_2", "bias_2")


def layer_norm(x, gain=None, bias=None, eps=1e-5):
    """Give every token mean 0 and variance 1 over its own features.

    Equation: LN(x) = (x - μ) / √(σ² + ε) ⊙ g + b  (chapter 11)

    Parameters
    ----------
    x : ndarray of shape (..., d_model)
        One token per row. No row has a say in the norm of another.
    gain, bias : ndarray of shape (d_model,), optional
        Stretch and shift each feature afterwards; 1 and 0 by default.
    eps : float, default 1e-5
        Is added to the variance and keeps the root away from 0.

    Returns
    -------
    y : ndarray of the shape of `x`
        Without gain and bias each row has mean 0 and variance σ² / (σ² + ε), a little
        below 1. A row of equal numbers has nothing to stretch and gives `bias`. The
        dtype is the one that NumPy gives all arguments together; float16 is summed in
        float32.

    Raises
    ------
    ValueError
        If `gain` or `bias` has not one number for each feature, there is no feature,
        or `eps` is negative.
    TypeError
        If an argument does not hold real numbers.

    References
    ----------
    Ba, Kiros and Hinton 2016, *Layer normalization*.

    Examples
    --------
    The first row has mean 5 and variance 16, the second mean 30 and variance 100.

    >>> layer_norm(np.array([[1.0, 9.0], [40.0, 20.0]]), eps=0)
    array([[-1.,  1.],
           [ 1., -1.]])
    """
    x, eps = as_floats("x", x, "d_model"), as_eps(eps)
    if x.shape[-1] == 0:
        raise ValueError(f"x must have at least one feature, got shape {x.shape}")
    gain, bias = _as_features("gain", gain, x), _as_features("bias", bias, x)
    dtype = _common_dtype(x, gain, bias)
    x = x.astype(working_dtype(dtype), copy=False)
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    y = centred / never_zero(np.sqrt(variance + eps))
    y = y if gain is None else y * gain
    y = y if bias is None else y + bias
    return y.astype(dtype, copy=False)


def feed_forward(x, W_1, b_1, W_2, b_2, activation="relu"):
    """Send every token, alone, through a wide layer and back.

    Equation: FFN(x) = φ(x W_1 + b_1) W_2 + b_2 with φ(z) = max(0, z) or
    φ(z) = z Φ(z)  (chapter 11)

    Parameters
    ----------
    x : ndarray of shape (..., n, d_model)
        One token per row.
    W_1 : ndarray of shape (d_model, d_ff)
        The way out, with `b_1` of shape (d_ff,) or None.
    b_1, b_2 : ndarray or None
        One bias for each column of the matrix of the same number.
    W_2 : ndarray of shape (d_ff, d_model)
        The way back, with `b_2` of shape (d_model,) or None.
    activation : {"relu", "gelu"}, default "relu"
        "gelu" is the exact one: z times the share Φ(z) of a normal distribution that
        lies below z, and not its approximation by tanh.

    Returns
    -------
    y : ndarray of shape (..., n, d_model)
        Row ``i`` depends on row ``i`` of `x` only. The dtype is the one that NumPy
        gives all arguments together; float16 is summed in float32.

    Raises
    ------
    ValueError
        If shapes do not fit, with both numbers, or `activation` is not known.
    TypeError
        If an argument does not hold real numbers.

    References
    ----------
    Vaswani et al. 2017, *Attention is all you need*, section 3.3. Hendrycks and Gimpel
    2016, *Gaussian error linear units*.

    Examples
    --------
    Two hidden features, max(0, x) and max(0, -x), and their sum: the absolute value.

    >>> feed_forward([[3.0], [-5.0]], [[1.0, -1.0]], None, [[1.0], [1.0]], None)
    array([[3.],
           [5.]])
    """
    bend = ACTIVATIONS[as_activation(activation)]
    hidden = bend(_project("x", x, "1", W_1, b_1))
    y = _project(f"{activation}(x W_1 + b_1)", hidden, "2", W_2, b_2)
    return y.astype(_common_dtype(x, W_1, b_1, W_2, b_2), copy=False)


def encoder_layer(
    X, weights, n_heads, mask=None, *, activation="relu", norm_first=False, eps=1e-5,
    is_causal=False, return_weights=False,
):  # fmt: skip
    """Let the tokens look at each other, then let each think alone.

    Equation: Z = LN(X + MultiHead(X)), Y = LN(Z + FFN(Z)); with `norm_first`
    Z = X + MultiHead(LN(X)), Y = Z + FFN(LN(Z))  (chapter 11)

    Parameters
    ----------
    X : ndarray of shape (..., n, d_model)
        The tokens.
    weights : dict of ndarray
        The six matrices must be there. A bias or gain that is missing changes nothing.

        ==================  ===========================  ============================
        key                 shape                        used by
        ==================  ===========================  ============================
        W_Q, W_K            (d_model, n_heads * d_k)     attention
        W_V                 (d_model, n_heads * d_v)     attention
        W_O                 (n_heads * d_v, d_model)     attention
        b_Q, b_K, b_V, b_O  one number a column          attention
        gain_1, bias_1      (d_model,)                   the norm of attention
        W_1                 (d_model, d_ff)              feed-forward
        W_2                 (d_ff, d_model)              feed-forward
        b_1, b_2            one number a column          feed-forward
        gain_2, bias_2      (d_model,)                   the norm of feed-forward
        ==================  ===========================  ============================
    n_heads : int
        Number of heads.
    mask : ndarray, optional
        Broadcasts to (..., n_heads, n, n). bool: True = may look. float: added.
    activation : {"relu", "gelu"}, default "relu"
        The bend in the feed-forward part, see `feed_forward`.
    norm_first : bool, default False
        Normalise what goes *into* each part (pre-norm) instead of the sum behind it
        (post-norm, as in the paper).
    eps : float, default 1e-5
        See `layer_norm`.
    is_causal : bool, default False
        Token ``i`` sees the tokens ``j <= i`` only; `mask` still applies.
    return_weights : bool, default False
        Return the weights of every head too, never averaged.

    Returns
    -------
    Y : ndarray of shape (..., n, d_model)
        The tokens after one layer. A token that may look at nothing still has its own
        row and stays finite. The dtype is the one that NumPy gives all arguments
        together; a float16 layer is computed in float32.
    A : ndarray of shape (..., n_heads, n, n)
        Only with `return_weights`. Rows sum to 1; exactly 0 where masked.

    Raises
    ------
    ValueError
        If `weights` lacks a matrix or holds a name that is not in the table, if shapes
        do not fit, or `n_heads` does not divide a width.
    TypeError
        If `weights` is no dict, an argument does not hold real numbers, `n_heads` is
        not an integer, or `mask` holds integers.

    References
    ----------
    Vaswani et al. 2017, *Attention is all you need*, section 3.1. Xiong et al. 2020,
    *On layer normalization in the transformer architecture*, for `norm_first`.

    Examples
    --------
    Matrices of zeros add nothing, so only the two norms are left.

    >>> weights = dict.fromkeys("W_Q W_K W_V W_O W_1 W_2".split(), np.zeros((2, 2)))
    >>> encoder_layer([[1.0, 9.0], [40.0, 20.0]], weights, n_heads=1, eps=0)
    array([[-1.,  1.],
           [ 1., -1.]])
    """
    X = as_floats("X", X, "n, d_model")
    weights = _as_weights("weights", weights, X.shape[-1])
    dtype = np.result_type(X, *weights.values())
    parts = {
        "attend": partial(_attend, weights, n_heads, mask, is_causal, return_weights),
        "feed": partial(_feed, weights, activation),
        "norm_1": partial(_norm, weights, 1, eps),
        "norm_2": partial(_norm, weights, 2, eps),
    }
    # Between the parts float16 tokens stay in float32.
    Y, A = _pass_through(X.astype(working_dtype(dtype)), norm_first, **parts)
    Y = Y.astype(dtype, copy=False)
    return (Y, A.astype(dtype, copy=False)) if return_weights else Y


def _pass_through(X, norm_first, attend, feed, norm_1, norm_2):
    """Return the tokens after both parts, and the weights by which they looked."""
    if norm_first:
        Y, A = attend(norm_1(X))
        X = X + Y
        return X + feed(norm_2(X)), A
    Y, A = attend(X)
    X = norm_1(X + Y)
    return norm_2(X + feed(X)), A


def encoder(
    X, layers, n_heads, mask=None, *, activation="relu", norm_first=False, eps=1e-5,
    final_norm=None, is_causal=False, return_weights=False,
):  # fmt: skip
    """Send the tokens through one layer after the other.

    Equation: X_{l+1} = EncoderLayer_l(X_l), Y = X_L or LN(X_L)  (chapter 12)

    Parameters
    ----------
    X : ndarray of shape (..., n, d_model)
        The tokens. The encoder adds no positions to them, see
        `sinusoidal_positional_encoding`.
    layers : sequence of dict
        The weights of each layer, as `encoder_layer` takes them. Without layers `X`
        comes out as it went in.
    n_heads : int
        Number of heads, the same in each layer.
    mask : ndarray, optional
        Broadcasts to (..., n_heads, n, n) and holds in every layer. bool: True = may
        look. float: added.
    activation, norm_first, eps, is_causal : optional
        The same for each layer, see `encoder_layer`.
    final_norm : (gain, bias), optional
        Normalise once more at the end, as pre-norm stacks do. Either may be None, see
        `layer_norm`.
    return_weights : bool, default False
        Return the weights of every head of every layer too.

    Returns
    -------
    Y : ndarray of shape (..., n, d_model)
        The tokens after the last layer, finite even where a token may look at
        nothing. Without positions, permuting the tokens permutes the rows. The dtype
        is the one that NumPy gives all arguments together.
    A : list of ndarray, each of shape (..., n_heads, n, n)
        Only with `return_weights`. One entry for each layer, the first layer first.

    Raises
    ------
    ValueError
        If the weights of a layer lack a matrix or hold an unknown name, or shapes do
        not fit.
    TypeError
        If `layers` is no sequence of dicts, `final_norm` no pair, an argument does not
        hold real numbers, `n_heads` is not an integer, or `mask` holds integers.

    References
    ----------
    Vaswani et al. 2017, *Attention is all you need*, section 3.1.

    Examples
    --------
    Two layers of zeros: after the first norm nothing is left to do.

    >>> weights = dict.fromkeys("W_Q W_K W_V W_O W_1 W_2".split(), np.zeros((2, 2)))
    >>> encoder([[1.0, 9.0], [40.0, 20.0]], [weights, weights], n_heads=1, eps=0)
    array([[-1.,  1.],
           [ 1., -1.]])
    """
    X = as_floats("X", X, "n, d_model")
    layers, final_norm = _as_layers(layers, X.shape[-1]), _as_norm(final_norm, X)
    arrays = [W for weights in layers for W in weights.values()]
    dtype = _common_dtype(X, *arrays, *(final_norm or ()))
    X, maps = X.astype(working_dtype(dtype)), []
    options = {"activation": activation, "norm_first": norm_first, "eps": eps}
    look = {"is_causal": is_causal, "return_weights": return_weights}
    for weights in layers:
        answer = encoder_layer(X, weights, n_heads, mask, **options, **look)
        X, A = answer if return_weights else (answer, None)
        maps.append(A)
    Y = X if final_norm is None else layer_norm(X, *final_norm, eps)
    Y = Y.astype(dtype, copy=False)
    return (Y, [A.astype(dtype, copy=False) for A in maps]) if return_weights else Y


def _attend(weights, n_heads, mask, is_causal, return_weights, x):
    """Return what the heads bring home and their weights, or None for the latter."""
    attention = {name: W for name, W in weights.items() if name[-1] in "QKVO"}
    answer = multi_head_attention(
        x, n_heads=n_heads, mask=mask, is_causal=is_causal,
        return_weights=return_weights, **attention,
    )  # fmt: skip
    return answer if return_weights else (answer, None)


def _feed(weights, activation, x):
    W_1, b_1, W_2, b_2 = (weights.get(name) for name in ("W_1", "b_1", "W_2", "b_2"))
    return feed_forward(x, W_1, b_1, W_2, b_2, activation)


def _norm(weights, which, eps, x):
    return layer_norm(
        x, weights.get(f"gain_{which}"), weights.get(f"bias_{which}"), eps
    )


def _relu(z):
    return np.maximum(z, 0)


def _gelu(z):
    return z * share_below(z)


ACTIVATIONS = {"relu": _relu, "gelu": _gelu}


def as_activation(activation):
    """Return `activation`, or say which names there are."""
    if activation not in ACTIVATIONS:
        known = " or ".join(repr(name) for name in ACTIVATIONS)
        raise ValueError(f"activation must be {known}, got {activation!r}")
    return activation


def as_eps(eps):
    """Return `eps` as a Python float, which leaves float32 what it is."""
    if isinstance(eps, bool) or not isinstance(eps, numbers.Real):
        raise TypeError(f"eps must be a number, got {eps!r}")
    if not 0 <= eps < math.inf:
        raise ValueError(f"eps must be at least 0 and finite, got {eps}")
    return float(eps)


def _as_features(name, g, x):
    """Return `g` as an array with one number for each feature of `x`; None stays."""
    if g is None:
        return None
    g = as_floats(name, g)
    if g.shape != x.shape[-1:]:
        raise ValueError(f"{name} must have shape {x.shape[-1:]}, got {g.shape}")
    return g


def _as_layers(layers, d_model):
    if isinstance(layers, Mapping) or not isinstance(layers, Iterable):
        raise TypeError(
            f"layers must be a sequence of dicts, got {type(layers).__name__}"
        )
    return [_as_weights(f"layers[{i}]", w, d_model) for i, w in enumerate(layers)]


def _as_weights(where, weights, d_model):
    """Return the weights that are there as arrays, or say by name what is wrong."""
    if not isinstance(weights, Mapping):
        raise TypeError(f"{where} must be a dict, got {type(weights).__name__}")
    _check_names(where, weights)
    weights = {
        name: as_floats(f"{where}[{name!r}]", W)
        for name, W in weights.items()
        if W is not None
    }
    for name in ("W_O", "W_2", *NORMS):
        # Anything else could not be added to the tokens, or would by broadcasting.
        if name in weights and weights[name].shape[-1:] != (d_model,):
            raise ValueError(
                f"the last axis of {where}[{name!r}] must be d_model = {d_model}, the "
                f"columns of X, got shape {weights[name].shape}"
            )
    return weights


def _check_names(where, weights):
    known = (*MATRICES, *BIASES, *NORMS)
    if unknown := [name for name in weights if name not in known]:
        raise ValueError(
            f"{where} holds {_listed(unknown)}; the names are {_listed(known)}"
        )
    if missing := [name for name in MATRICES if weights.get(name) is None]:
        raise ValueError(f"{where} lacks {_listed(missing)}")


def _as_norm(norm, X):
    if norm is None:
        return None
    if not isinstance(norm, tuple | list) or len(norm) != 2:
        raise TypeError(f"final_norm must be a pair (gain, bias) or None, got {norm!r}")
    names = "the gain of final_norm", "the bias of final_norm"
    return [_as_features(*pair, X) for pair in zip(names, norm, strict=True)]


def _listed(names):
    return ", ".join(map(str, names))
