"""Step 0 too: every argument of a step is checked once, at the public door.

A step is written as its equation, on arrays that fit. `validated` puts a door before
it: the door checks what the caller gave, in the function of this module that the step
names, and converts it to one floating-point type. Steps called by a step come in
without another check, as scikit-learn's `validate_params` skips nested validation.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import numpy as np

from mha._arrays import (
    Array,
    as_activation,
    as_array,
    as_axis,
    as_count,
    as_eps,
    as_features,
    as_floats,
    as_mask,
    as_numbers,
    as_scale,
    broadcast_leading,
    same_last_axis,
    working_dtype,
)

MATRICES = ("W_Q", "W_K", "W_V", "W_O", "W_1", "W_2")
BIASES = ("b_Q", "b_K", "b_V", "b_O", "b_1", "b_2")
NORMS = ("gain_1", "bias_1", "gain_2", "bias_2")

P = ParamSpec("P")
R = TypeVar("R")
Arguments = dict[str, Any]
_inside: ContextVar[bool] = ContextVar("mha_inside_a_step", default=False)


def validated(
    check: Callable[..., Arguments], one_dtype: bool = True
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Put the door `check` before a step.

    `check` takes the arguments of the step by name, returns them as arrays that fit, or
    raises. With `one_dtype` the step computes in the dtype that NumPy gives its float
    arrays together, float16 in float32, and its results are rounded to it once.
    """

    def put_door(step: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(step)

        @functools.wraps(step)
        def door(*args: P.args, **kwargs: P.kwargs) -> R:
            if _inside.get():
                return step(*args, **kwargs)
            try:
                given = signature.bind(*args, **kwargs)
            except TypeError as misfit:
                raise TypeError(f"{step.__name__}(): {misfit}") from None
            given.apply_defaults()
            arguments = given.arguments | check(**given.arguments)
            dtype = _common_dtype(arguments) if one_dtype else None
            if dtype is not None:
                arguments = _in_dtype(working_dtype(dtype), arguments)
            token = _inside.set(True)
            try:
                result = step(**arguments)  # type: ignore[call-arg]
            finally:
                _inside.reset(token)
            return result if dtype is None else _in_dtype(dtype, result)

        return door

    return put_door


def _common_dtype(arguments: Arguments) -> np.dtype | None:
    """Return the dtype of all float arrays together; a mask cannot influence it."""
    dtypes: list[np.dtype] = []
    rest = {name: x for name, x in arguments.items() if name != "mask"}
    _on_floats(lambda x: dtypes.append(x.dtype), rest)
    return np.result_type(*dtypes) if dtypes else None


def _in_dtype(dtype: np.dtype, x: Any) -> Any:
    # A score or a mask beyond the range of the dtype becomes ±inf, as it should.
    with np.errstate(over="ignore"):
        return _on_floats(lambda a: a.astype(dtype, copy=False), x)


def _on_floats(f: Callable[[Array], Any], x: Any) -> Any:
    """Apply `f` to every float array in nested dicts, lists and tuples."""
    if isinstance(x, np.ndarray):
        return f(x) if x.dtype.kind == "f" else x
    if isinstance(x, dict):
        return {name: _on_floats(f, part) for name, part in x.items()}
    if isinstance(x, list | tuple):
        return type(x)(_on_floats(f, part) for part in x)
    return x


# One door for each step


def scores(Q: Any, K: Any) -> Arguments:
    Q, K = as_floats("Q", Q, "n_q, d_k"), as_floats("K", K, "n_k, d_k")
    same_last_axis("Q", Q, "K", K, "d_k")
    broadcast_leading({"Q": Q, "K": K})
    return {"Q": Q, "K": K}


def softmax(x: Any, axis: Any) -> Arguments:
    x = as_floats("x", x, "n")
    return {"x": x, "axis": as_axis(axis, "x", x)}


def causal_mask(n_q: Any, n_k: Any) -> Arguments:
    n_q = as_count("n_q", n_q, at_least=0)
    return {"n_q": n_q, "n_k": n_k if n_k is None else as_count("n_k", n_k, at_least=0)}


def padding_mask(lengths: Any, max_length: Any) -> Arguments:
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
    return {"lengths": lengths, "max_length": n}


def masked_softmax(S: Any, mask: Any, axis: Any) -> Arguments:
    S = as_floats("S", S, "n_k")
    return {"S": S, "axis": as_axis(axis, "S", S), "mask": as_mask(mask, S.shape)}


def attention(
    Q: Any, K: Any, V: Any, mask: Any, scale: Any, **options: Any
) -> Arguments:
    Q, K = as_floats("Q", Q, "n_q, d_k"), as_floats("K", K, "n_k, d_k")
    V = as_floats("V", V, "n_k, d_v")
    _same_length(K, V)
    leading = broadcast_leading({"Q": Q, "K": K, "V": V})
    same_last_axis("Q", Q, "K", K, "d_k")
    mask = as_mask(mask, (*leading, Q.shape[-2], K.shape[-2]))
    Q, K, V = (np.broadcast_to(x, leading + x.shape[-2:]) for x in (Q, K, V))
    scale = None if scale is None else as_scale(scale, Q.shape[-1])
    return {"Q": Q, "K": K, "V": V, "mask": mask, "scale": scale}


def chunked(block_size: Any, **arguments: Any) -> Arguments:
    size = as_count("block_size", block_size)
    return attention(**arguments) | {"block_size": size}


def linear(x: Any, W: Any, b: Any) -> Arguments:
    x, weights = as_floats("x", x, "d_in"), _as_given({"W": W, "b": b})
    _check_projection("x", x.shape[-1], weights, "")
    return {"x": x} | weights


def split_heads(x: Any, n_heads: Any) -> Arguments:
    x, n_heads = as_numbers("x", x, "n, d_model"), as_count("n_heads", n_heads)
    if x.shape[-1] % n_heads:
        raise ValueError(
            f"d_model ({x.shape[-1]}) must be divisible by n_heads ({n_heads})"
        )
    return {"x": x, "n_heads": n_heads}


def merge_heads(heads: Any) -> Arguments:
    return {"heads": as_numbers("heads", heads, "n_heads, n, d_head")}


def multi_head_attention(
    X: Any, n_heads: Any, mask: Any, X_k: Any, X_v: Any, is_causal: Any,
    return_weights: Any, **weights: Any,
) -> Arguments:  # fmt: skip
    n_heads, tokens = as_count("n_heads", n_heads), {"X": X, "X_k": X_k, "X_v": X_v}
    tokens = {
        name: as_floats(name, x, "n, d_model")
        for name, x in tokens.items()
        if x is not None
    }
    weights = _as_given(weights)
    shape = _check_heads(tokens, weights, n_heads)
    mask = as_mask(mask, shape, n_heads)
    tokens = {
        name: np.broadcast_to(x, shape[:-3] + x.shape[-2:])
        for name, x in tokens.items()
    }
    return tokens | weights | {"n_heads": n_heads, "mask": mask}


def positions(n: Any, d_model: Any) -> Arguments:
    return {"n": as_count("n", n, at_least=0), "d_model": as_count("d_model", d_model)}


def layer_norm(x: Any, gain: Any, bias: Any, eps: Any) -> Arguments:
    x = _with_features("x", as_floats("x", x, "d_model"))
    gain = as_features("gain", gain, x.shape[-1])
    bias = as_features("bias", bias, x.shape[-1])
    return {"x": x, "gain": gain, "bias": bias, "eps": as_eps(eps)}


def feed_forward(x: Any, activation: Any, **weights: Any) -> Arguments:
    x, weights = as_floats("x", x, "n, d_model"), _as_given(weights)
    _check_feed_forward("x", x.shape[-1], weights, as_activation(activation))
    return {"x": x} | weights


def encoder_layer(X: Any, weights: Any, **options: Any) -> Arguments:
    X = _with_features("X", as_floats("X", X, "n, d_model"))
    options = _layer_options(X, **options)
    weights = _layer_weights("weights", weights, X, options)
    return options | {"X": X, "weights": weights}


def encoder(X: Any, layers: Any, final_norm: Any, **options: Any) -> Arguments:
    X = _with_features("X", as_floats("X", X, "n, d_model"))
    if isinstance(layers, Mapping) or not isinstance(layers, Iterable):
        raise TypeError(
            f"layers must be a sequence of dicts, got {type(layers).__name__}"
        )
    options = _layer_options(X, **options)
    layers = [
        _layer_weights(f"layers[{i}]", weights, X, options)
        for i, weights in enumerate(layers)
    ]
    norm = _as_final_norm(final_norm, X.shape[-1])
    return options | {"X": X, "layers": layers, "final_norm": norm}


# What several doors ask


def _as_given(weights: Mapping[str, Any]) -> Arguments:
    """Return what is not None as float arrays."""
    return {name: as_floats(name, W) for name, W in weights.items() if W is not None}


def _with_features(name: str, x: Array) -> Array:
    if x.shape[-1] == 0:
        raise ValueError(f"{name} must have at least one feature, got shape {x.shape}")
    return x


def _same_length(K: Array, V: Array) -> None:
    if K.shape[-2] != V.shape[-2]:
        raise ValueError(
            "K and V must have the same length n_k, "
            f"got {K.shape[-2]} and {V.shape[-2]}"
        )


def _check_projection(name: str, width: int, weights: Arguments, end: str) -> int:
    """Refuse a matrix W or bias b that does not fit; return the number of columns."""
    W, b = weights[f"W{end}"], weights.get(f"b{end}")
    if W.ndim != 2:
        raise ValueError(f"W{end} must have shape (d_in, d_out), got {W.shape}")
    if W.shape[0] != width:
        raise ValueError(
            f"{name} has {width} columns and W{end} {W.shape[0]} rows; "
            "they must be equal"
        )
    if b is not None and b.shape != W.shape[1:]:
        raise ValueError(f"b{end} must have shape {W.shape[1:]}, got {b.shape}")
    return W.shape[1]


def _check_heads(
    tokens: Mapping[str, Array], weights: Arguments, n_heads: int
) -> tuple[int, ...]:
    """Refuse tokens and matrices that make no heads; return the shape of the scores."""
    name_k = "X_k" if "X_k" in tokens else "X"
    name_v = "X_v" if "X_v" in tokens else name_k
    columns = {}
    for end, name in (("_Q", "X"), ("_K", name_k), ("_V", name_v)):
        width = tokens[name].shape[-1]
        columns[end] = _check_projection(name, width, weights, end)
        if columns[end] % n_heads:
            raise ValueError(
                f"the columns of W{end} ({columns[end]}) must be divisible by n_heads "
                f"({n_heads})"
            )
    if columns["_Q"] != columns["_K"]:
        d_q, d_k = columns["_Q"] // n_heads, columns["_K"] // n_heads
        raise ValueError(
            f"Q and K must have the same last axis d_k, got {d_q} and {d_k}"
        )
    _same_length(tokens[name_k], tokens[name_v])
    leading = broadcast_leading(tokens)
    _check_projection("Concat(heads)", columns["_V"], weights, "_O")
    return *leading, n_heads, tokens["X"].shape[-2], tokens[name_k].shape[-2]


def _check_feed_forward(
    name: str, width: int, weights: Arguments, activation: str
) -> None:
    hidden = _check_projection(name, width, weights, "_1")
    _check_projection(f"{activation}({name} W_1 + b_1)", hidden, weights, "_2")


def _layer_options(
    X: Array, n_heads: Any, mask: Any, activation: Any, eps: Any, **switches: Any
) -> Arguments:
    n_heads, n = as_count("n_heads", n_heads), X.shape[-2]
    mask = as_mask(mask, (*X.shape[:-2], n_heads, n, n), n_heads)
    checked = {"n_heads": n_heads, "mask": mask, "eps": as_eps(eps)}
    return checked | {"activation": as_activation(activation)}


def _layer_weights(where: str, weights: Any, X: Array, options: Arguments) -> Arguments:
    """Return the weights that are there as arrays, or say by name what is wrong."""
    if not isinstance(weights, Mapping):
        raise TypeError(f"{where} must be a dict, got {type(weights).__name__}")
    known = (*MATRICES, *BIASES, *NORMS)
    if unknown := [str(name) for name in weights if name not in known]:
        raise ValueError(
            f"{where} holds {', '.join(unknown)}; the names are {', '.join(known)}"
        )
    if missing := [name for name in MATRICES if weights.get(name) is None]:
        raise ValueError(f"{where} lacks {', '.join(missing)}")
    weights = {
        name: as_floats(f"{where}[{name!r}]", W)
        for name, W in weights.items()
        if W is not None
    }
    for name in ("W_O", "W_2", *NORMS):
        # Anything else could not be added to the tokens, or would by broadcasting.
        if name in weights and weights[name].shape[-1:] != X.shape[-1:]:
            raise ValueError(
                f"the last axis of {where}[{name!r}] must be d_model = {X.shape[-1]}, "
                f"the columns of X, got shape {weights[name].shape}"
            )
    _check_heads({"X": X}, weights, options["n_heads"])
    _check_feed_forward("x", X.shape[-1], weights, options["activation"])
    return weights


def _as_final_norm(norm: Any, d_model: int) -> list | None:
    if norm is None:
        return None
    if not isinstance(norm, tuple | list) or len(norm) != 2:
        raise TypeError(f"final_norm must be a pair (gain, bias) or None, got {norm!r}")
    names = "the gain of final_norm", "the bias of final_norm"
    return [as_features(name, g, d_model) for name, g in zip(names, norm, strict=True)]
