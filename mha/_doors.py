"""Every argument of a step is checked once, at the public door.

A step is written as its equation, on arrays that fit. `validated` puts a door before
it: each argument is checked by its name, and the step is called with one floating-point
type. Inside, the steps below are called past their doors.
"""

import functools
import inspect
import math
import numbers
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Maybe = ArrayLike | None
Arguments = dict[str, Any]
P = ParamSpec("P")
R = TypeVar("R")
INF = math.inf

# The axes of arrays: those of the same name have the same size in one call, and "..."
# stands for any number of axes. A vector, which ends with a comma, may be missing.
MATRICES = {
    "W_Q": "d_model, n_heads * d_k",
    "W_K": "d_model of X_k, n_heads * d_k",
    "W_V": "d_model of X_v, n_heads * d_v",
    "W_O": "n_heads * d_v, d_out",
    "W_1": "d_model, d_ff",
    "W_2": "d_ff, d_out",
}
BIASES = {f"b{name[1:]}": axes.split(", ")[1] + "," for name, axes in MATRICES.items()}
NORMS = dict.fromkeys(("gain_1", "bias_1", "gain_2", "bias_2"), "d_model,")
# A layer adds what it computes to its input, so that both have the same width.
LAYER = {
    name: axes.replace(" of X_k", "").replace(" of X_v", "").replace("d_out", "d_model")
    for name, axes in (MATRICES | BIASES | NORMS).items()
}
AXES = {
    "Q": "..., n_q, d_k",
    "K": "..., n_k, d_k",
    "V": "..., n_k, d_v",
    "S": "..., n_k",
    "X": "..., n, d_model",
    "X_k": "..., n_k, d_model of X_k",
    "X_v": "..., n_k, d_model of X_v",
    "heads": "..., n_heads, n, d_head",
    "W": "d_in, d_out",
    "b": "d_out,",
    "gain": "d_model,",
    "bias": "d_model,",
} | MATRICES | BIASES  # fmt: skip
AXES_OF_x = {
    "softmax": "..., n",
    "linear": "..., d_in",
    "split_heads": "..., n, n_heads * d_head",
    "layer_norm": "..., d_model",
    "feed_forward": "..., n, d_model",
}
KEEP_DTYPE = "split_heads", "merge_heads"  # they compute nothing
NOT_FINITE = "a float mask must hold finite numbers or -inf, got +inf or NaN"
BARE: dict[str, Any] = {}  # each step by its name, without its door


def validated(step: Callable[P, R]) -> Callable[P, R]:
    """Put a door before a step.

    The step computes in the dtype that NumPy gives its float arrays together, float16
    in float32, and its results are rounded to it once.
    """
    signature = inspect.signature(step)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    words = str(inspect.Signature(plain)).removeprefix("(").removesuffix(")")
    named = eval(f"lambda {words}: locals()")  # Python itself says what does not fit
    named.__qualname__ = step.__qualname__
    known = AXES | {"x": AXES_OF_x.get(step.__name__, "")}
    tokens_first = sorted(signature.parameters, key=lambda name: name[0] != "X")
    axes = {name: known[name] for name in tokens_first if name in known}
    checks = {name: CHECKS[name] for name in signature.parameters if name in CHECKS}
    keeps_dtype = step.__name__ in KEEP_DTYPE
    names: dict[str, Any] = {}  # the globals of the step: what it calls has no door
    bare: Any = FunctionType(step.__code__, names)
    bare.__kwdefaults__, bare.__defaults__ = step.__kwdefaults__, step.__defaults__
    BARE[step.__name__], bare.__wrapped__ = bare, step

    @functools.wraps(step)
    def door(*args: P.args, **kwargs: P.kwargs) -> R:
        if not names:  # at the first call, when all steps are there
            for body in BARE.values():
                body.__globals__.update(body.__wrapped__.__globals__ | BARE)
        x = named(*args, **kwargs)
        arrays = _checked(x, axes, checks, not keeps_dtype)
        if keeps_dtype or not arrays:
            return bare(**x)
        dtype = np.result_type(*arrays)
        work = np.dtype(np.float32) if dtype == np.float16 else dtype
        mask = x.get("mask")  # it has no say
        if mask is not None and mask.dtype.kind == "f":
            arrays += [mask]
        if any(array.dtype != work for array in arrays):
            return _as_dtype(dtype, bare(**_as_dtype(work, x)))
        return bare(**x)

    return door


def _as_dtype(dtype: Any, x: Any) -> Any:
    """Return nested dicts, lists and tuples with their float arrays in one dtype."""
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        # A score or a mask beyond the range of the dtype becomes ±inf, as it should.
        with np.errstate(over="ignore"):
            return x.astype(dtype, copy=False)
    if isinstance(x, dict):
        return {name: _as_dtype(dtype, part) for name, part in x.items()}
    if isinstance(x, list | tuple):
        return type(x)(_as_dtype(dtype, part) for part in x)
    return x


def _checked(
    x: Arguments, axes: dict[str, str], checks: dict[str, Callable], as_floats: bool
) -> list[Array]:
    """Make the arguments of a step arrays and numbers that fit, and return the arrays.

    It raises if they do not fit.
    """
    if "X_k" in x:
        x["X_k"] = x["X"] if x["X_k"] is None else x["X_k"]
        x["X_v"] = x["X_k"] if x["X_v"] is None else x["X_v"]
    for name, check in checks.items():
        if x[name] is not None or name not in OPTIONAL:
            x[name] = check(name, x[name])
    n_heads = x.get("n_heads", 1)
    arrays, sizes = fit(x, axes, n_heads, as_floats)
    x |= arrays
    if "lengths" in x:
        x["max_length"] = _fit_lengths(x["lengths"], x["max_length"])
    if not arrays:
        return []
    every = [*arrays.values()]
    name, X = next(iter(arrays.items()))
    if "axis" in x and not -X.ndim <= x["axis"] < X.ndim:
        raise ValueError(
            f"axis must be an axis of {name}, got {x['axis']} for shape {X.shape}"
        )
    if "weights" in x:
        x["weights"] = _as_weights("weights", x["weights"], X, n_heads, every)
    if "layers" in x:
        named = ((f"layers[{i}]", weights) for i, weights in enumerate(x["layers"]))
        x["layers"] = [_as_weights(name, w, X, n_heads, every) for name, w in named]
    if x.get("final_norm") is not None:
        names = "the gain of final_norm", "the bias of final_norm"
        given = {"X": X} | dict(zip(names, x["final_norm"], strict=True))
        norm, _ = fit(given, {"X": AXES["X"]} | dict.fromkeys(names, "d_model,"))
        x["final_norm"] = [norm.get(name) for name in names]
        every += norm.values()
    if x.get("mask") is not None:
        of_heads = (n_heads,) if "n_heads" in x else ()
        n_q_n_k = X.shape[-2], sizes.get("n_k", X.shape[-2])
        shape = X.shape if "S" in x else (*X.shape[:-2], *of_heads, *n_q_n_k)
        fit_mask(x["mask"], shape, of_heads != ())
    return every


# Arrays


def as_array(name: str, x: Any) -> Array:
    """Return `x` as an array, or say by name why it cannot be one."""
    if type(x) is np.ndarray:
        return x
    if type(x).__module__.partition(".")[0] == "torch":
        raise TypeError(
            f"{name} is a torch.{type(x).__name__}; the functions of mha take NumPy "
            "arrays, mha.nn holds their twins for tensors"
        )
    try:
        return np.asarray(x)
    except ValueError:
        raise ValueError(f"{name} must be rectangular: rows differ in length") from None


@functools.cache
def _symbols(axes: str) -> tuple[str, ...]:
    return tuple(axes.removeprefix("..., ").rstrip(",").split(", "))


def fit(
    given: Arguments, all_axes: dict[str, str], n_heads: int = 1, as_floats: bool = True
) -> tuple[Arguments, dict[str, int]]:
    """Return the arrays that have axes, by name, and the size of each axis.

    Lists and integers become float64, unless `as_floats` is False. Axes of the same
    name must have the same size, and leading axes are broadcast.
    """
    arrays: Arguments = {}
    sizes: dict[str, int] = {}
    stacked: Arguments = {}
    for name, axes in all_axes.items():
        if given[name] is None and axes[-1] == ",":
            continue
        x, symbols = as_array(name, given[name]), _symbols(axes)
        if x.dtype.kind != "f":
            if x.dtype.kind not in "biu":
                raise TypeError(f"{name} must hold real numbers, got dtype {x.dtype}")
            x = x.astype(np.float64) if as_floats else x
        shape, more = x.shape, x.ndim - len(symbols)
        if more < 0 or (more and not axes.startswith(".")):
            raise ValueError(f"{name} must have shape ({axes}), got {shape}")
        for symbol, n in zip(symbols, shape[more:], strict=True):
            if sizes.setdefault(symbol, n) != n:
                words = _misfit(given, all_axes, symbol, sizes[symbol], name, n)
                raise ValueError(words)
            if n % n_heads and symbol.startswith("n_heads * "):
                raise ValueError(
                    f"the columns of {name} ({n}) must be divisible by n_heads "
                    f"({n_heads})"
                )
        arrays[name] = x
        if axes.startswith("."):
            stacked[name] = x
    if len(stacked) > 1:
        leading = broadcast_leading(stacked)
        for name, x in stacked.items():
            if x.shape[:-2] != leading:
                arrays[name] = np.broadcast_to(x, leading + x.shape[-2:])
    return arrays, sizes


def _misfit(
    given: Arguments, axes: dict[str, str], symbol: str, size: int, name: str, n: int
) -> str:
    """Say that an axis of `name` has another size than the first axis of that name."""
    if axes[name][-1] == ",":
        return f"{name} must have shape ({size},), got ({n},)"
    other = next(a for a in axes if symbol in _symbols(axes[a]))
    parts = []
    for array, size_here in ((other, size), (name, n)):
        side = "columns" if axes[array].endswith(symbol) else "rows"
        if array[:2] == "X_":  # it may be X, under the name of what was not given
            array = next(a for a in axes if given[a] is given[array])
        parts.append(f"{array} has {size_here} {side}")
    return f"{' and '.join(parts)}; they must be equal"


def broadcast_leading(
    named: Mapping[str, Any], broadcast_shapes: Callable = np.broadcast_shapes
) -> tuple[int, ...]:
    """Return the common leading shape of arrays given as ``{name: array}``."""
    leading = [x.shape[:-2] for x in named.values()]
    if all(shape == leading[0] for shape in leading):
        return leading[0]
    try:
        return broadcast_shapes(*leading)
    except (ValueError, RuntimeError):  # NumPy's answer and PyTorch's
        shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in named.items())
        raise ValueError(f"leading axes do not broadcast: {shapes}") from None


def fit_mask(mask: Any, shape: tuple[int, ...], of_heads: bool = False) -> None:
    """Refuse a mask that does not broadcast to scores of this shape.

    Where a layer has made the axis of heads itself, a mask with three axes could mean
    one for each sequence or one for each head, so it is refused on a batch.
    """
    given = tuple(mask.shape)
    if of_heads and len(given) == 3 < len(shape) and given[0] > 1:
        raise ValueError(
            f"mask of shape {given} has 3 axes, and the scores have {len(shape)}: "
            f"{shape} = (..., n_heads, n_q, n_k); write mask[:, None] for one mask per "
            "sequence, mask[None] for one per head"
        )
    pairs = zip(given[::-1], shape[::-1], strict=False)
    if len(given) > len(shape) or any(m != 1 and m != n for m, n in pairs):
        raise ValueError(
            f"mask of shape {given} does not broadcast to the shape of the scores "
            f"(..., n_q, n_k) = {shape}"
        )


# What a value must be by itself


def as_number(name: str, x: Any) -> Any:
    """Return `x` as an int or a float, which leaves float32 arrays what they are."""
    kind, low, high, rule = NUMBERS[name]
    family, words = (
        (numbers.Integral, "an integer") if kind is int else (numbers.Real, "a number")
    )
    if type(x) is not kind and (type(x) is bool or not isinstance(x, family)):
        raise TypeError(f"{name} must be {words}, got {x!r}")
    if not low <= kind(x) < high:  # never true of NaN
        raise ValueError(f"{name} must be {rule}, got {x}")
    return kind(x)


def as_activation(name: str, activation: Any) -> str:
    """Return `activation`, or say which names there are."""
    if activation not in ("relu", "gelu"):
        raise ValueError(f"{name} must be 'relu' or 'gelu', got {activation!r}")
    return activation


def _as_mask(name: str, mask: Any) -> Array:
    mask = as_array(name, mask)
    if mask.dtype.kind not in "bf":
        raise TypeError(
            "mask must be bool (True = may attend) or float (added to the scores), "
            f"got dtype {mask.dtype}; write mask.astype(bool) if 1 means may attend"
        )
    # The largest entry is NaN where any is; a comparison would write a second mask.
    if mask.dtype.kind == "f" and not mask.max(initial=-np.inf) < np.inf:
        raise ValueError(NOT_FINITE)
    return mask


def _as_lengths(name: str, lengths: Any) -> Array:
    lengths = as_array(name, lengths)
    if lengths.ndim != 1 or len(lengths) == 0:
        raise ValueError(
            f"{name} must have shape (batch,) and batch >= 1, got {lengths.shape}"
        )
    if lengths.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got dtype {lengths.dtype}")
    return lengths


def _as_layers(name: str, layers: Any) -> list[Any]:
    if isinstance(layers, Mapping) or not isinstance(layers, Iterable):
        kind = type(layers).__name__
        raise TypeError(f"{name} must be a sequence of dicts, got {kind}")
    return [*layers]


def _as_pair(name: str, norm: Any) -> Any:
    if not isinstance(norm, tuple | list) or len(norm) != 2:
        raise TypeError(f"{name} must be a pair (gain, bias) or None, got {norm!r}")
    return norm


SIZES = "n_heads", "d_model", "d_ff", "n_layers", "block_size"
NUMBERS: dict[str, tuple[type, float, float, str]] = {
    **dict.fromkeys(("n_q", "n_k", "n", "max_length"), (int, 0, INF, "at least 0")),
    **dict.fromkeys(SIZES, (int, 1, INF, "at least 1")),
    "axis": (int, -INF, INF, "an integer"),
    "scale": (float, -sys.float_info.max, INF, "finite"),
    "eps": (float, 0, INF, "at least 0 and finite"),
    **dict.fromkeys(("dropout", "dropout_p"), (float, 0, 1, "at least 0 and below 1")),
}
CHECKS: dict[str, Callable[[str, Any], Any]] = dict.fromkeys(NUMBERS, as_number) | {
    "activation": as_activation, "mask": _as_mask, "lengths": _as_lengths,
    "layers": _as_layers, "final_norm": _as_pair,
}  # fmt: skip
OPTIONAL = "n_k", "max_length", "scale", "mask", "final_norm"  # None has a meaning


def _fit_lengths(lengths: Array, max_length: int | None) -> int:
    n = max(0, int(lengths.max())) if max_length is None else max_length
    if (wrong := lengths[(lengths < 0) | (lengths > n)]).size:
        raise ValueError(f"lengths must lie in 0 … max_length = {n}, got {wrong[0]}")
    return n


def _as_weights(
    where: str, weights: Any, X: Array, n_heads: int, every: list[Array]
) -> Arguments:
    """Return the weights that are there as arrays, or say by name what is wrong.

    They are added to `every`.
    """
    if not isinstance(weights, Mapping):
        raise TypeError(f"{where} must be a dict, got {type(weights).__name__}")
    if unknown := [str(name) for name in weights if name not in LAYER]:
        raise ValueError(
            f"{where} holds {', '.join(unknown)}; the names are {', '.join(LAYER)}"
        )
    if missing := [name for name in MATRICES if weights.get(name) is None]:
        raise ValueError(f"{where} lacks {', '.join(missing)}")
    places = {name: f"{where}[{name!r}]" for name in LAYER if name in weights}
    given = {place: weights[name] for name, place in places.items()} | {"X": X}
    axes = {"X": AXES["X"]} | {place: LAYER[name] for name, place in places.items()}
    arrays, _ = fit(given, axes, n_heads)
    every += arrays.values()
    return {name: arrays.get(place) for name, place in places.items()}
