"""What the first lines of a step ask of its arguments, and what they say if not.

A step says the axes of its arrays in one text:

    dtype, [x, W, b] = fit("x (..., d_in), W (d_in, d_out), b (d_out,)", x, W, b)

Axes of the same name have the same size, "..." stands for any number of leading axes,
which broadcast, and a vector, whose text ends with a comma, may be None. Where
"X_k or X" is None, X stands in its place.

All is computed in the one dtype that NumPy gives these arrays together, and float16 in
float32, so that a step ends with ``return rounded(dtype, y)``. A step calls others by
their public names, and each checks again: that shapes agree is a pure question of the
shapes, and its answer is remembered.

An object that computes by NumPy's own protocol (its class has ``__array_function__``,
see NEP 18) passes as it is, and is asked for its shape, ndim and dtype only. Where a
dtype is none of NumPy's, such as torch.bfloat16, nothing is cast and nothing rounded.
"""

import functools
import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Maybe = ArrayLike | None
DType = np.dtype[Any] | None
Shape = tuple[int, ...]
Form = tuple[Shape, Any]  # the shape and the dtype of an array
T = TypeVar("T")
INF = math.inf

NOT_FINITE = "a float mask must hold finite numbers or -inf, got +inf or NaN"


# Arrays


def fit(
    axes: str, *given: Any, n_heads: int = 1, keep_dtypes: bool = False
) -> tuple[DType, list[Array]]:
    """Return the dtype of the result, and the arrays in the dtype of the computation.

    Axes called "n_heads * …" must be divisible by `n_heads`. With `keep_dtypes` nothing
    is cast, for a step that computes nothing.
    """
    arrays, forms = [*given], []
    for i, x in enumerate(given):
        if x is not None and type(x) is not np.ndarray:
            x = arrays[i] = as_array(parse(axes)[i].name, x)
        forms.append(None if x is None else (x.shape, x.dtype))
    plan = agree(axes, tuple(forms), n_heads)
    for i, j in plan.instead:
        arrays[i] = arrays[j]
    for i in plan.stacked:
        x = arrays[i]
        arrays[i] = np.broadcast_to(x, (*plan.leading, *x.shape[-2:]))
    if plan.work is not None and not keep_dtypes:
        arrays = [x if x is None else cast(plan.work, x) for x in arrays]
    return plan.dtype, arrays


def rounded(dtype: DType, result: T) -> T:
    """Return results in float16 that were computed in float32 for its sake.

    What a replaced step has made wider stays so: it is not for this one to hide that.
    """
    x: Any = result
    if dtype != np.float16:
        return result
    if isinstance(x, tuple | list):
        kind: Any = type(x)
        return kind([rounded(dtype, part) for part in x])
    return cast(dtype, x) if x.dtype == np.float32 else x


def cast(dtype: DType, x: Any) -> Any:
    """Return an array in a dtype, or as it is if one of the two is none of NumPy's."""
    if dtype is None or x.dtype == dtype or not isinstance(x.dtype, np.dtype):
        return x
    # A score or a mask beyond the range of the dtype becomes ±inf, as it should.
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def kind_of(dtype: Any) -> str:
    """Return NumPy's letter for the kind of a dtype, "?" if it is none of NumPy's."""
    return dtype.kind if isinstance(dtype, np.dtype) else "?"


def as_array(name: str, x: Any) -> Any:
    """Return `x` as an array, or say by name why it cannot be one."""
    if type(x).__module__.partition(".")[0] == "torch":
        raise TypeError(
            f"{name} is a torch.{type(x).__name__}; the functions of mha take NumPy "
            "arrays, mha.nn holds their twins for tensors"
        )
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a numpy.ma array, and its own mask would be lost; write the "
            f"two apart: {name}.data, and mask=~{name}.mask where True = may attend"
        )
    if hasattr(type(x), "__array_function__") and not isinstance(x, np.ndarray):
        return x
    try:
        return np.asarray(x)
    except ValueError:
        raise ValueError(f"{name} must be rectangular: rows differ in length") from None


class Part(NamedTuple):
    """What the text of a step says of one array."""

    name: str
    other: str  # what stands in its place if it is None
    axes: str  # as an error quotes them
    symbols: list[str]  # without the dots
    stacked: bool  # whether any number of axes may lead


class Plan(NamedTuple):
    """What makes arrays that agree with each other ready for the computation."""

    dtype: DType  # of the result
    work: DType  # of the computation, None if all have it
    instead: tuple[tuple[int, int], ...]  # array i is None, and j stands in its place
    leading: Shape
    stacked: tuple[int, ...]  # what must be broadcast to these leading axes


@functools.cache
def parse(axes: str) -> list[Part]:
    """Return what a text such as "x (..., d_in), b (d_out,)" says of each array."""
    parts = []
    for names, inside in re.findall(r"(\S[^()]*) \((.+?)\)(?:,|$)", axes):
        name, _, other = names.partition(" or ")
        symbols = inside.removeprefix("..., ").rstrip(",").split(", ")
        parts.append(Part(name, other, inside, symbols, inside.startswith("...")))
    return parts


@functools.lru_cache(maxsize=4096)  # errors are not remembered
def agree(axes: str, forms: tuple[Form | None, ...], n_heads: int) -> Plan:
    """Compare the shapes and dtypes of arrays, which may be None, with their text.

    It raises if they do not agree with it or with each other.
    """
    parts = parse(axes)
    places = {part.name: i for i, part in enumerate(parts)}
    names, filled, instead = [*places], [*forms], []
    for i, part in enumerate(parts):
        if forms[i] is None and part.other:
            j = places[part.other]
            names[i], filled[i] = names[j], filled[j]
            instead.append((i, j))
    compare(parts, names, filled, n_heads)
    dtypes = [form[1] for form in filled if form is not None]
    dtype, work = common_dtypes(dtypes)
    cast_to = None if all(dtype == work for dtype in dtypes) else work
    shapes = [() if form is None else form[0] for form in filled]
    several = [i for i, part in enumerate(parts) if part.stacked]
    if len(several) < 2:
        return Plan(dtype, cast_to, (), (), ())
    leading = broadcast_leading({parts[i].name: shapes[i] for i in several})
    stacked = tuple([i for i in several if shapes[i][:-2] != leading])
    return Plan(dtype, cast_to, tuple(instead), leading, stacked)


def compare(
    parts: list[Part], names: list[str], forms: list[Form | None], n_heads: int
) -> None:
    """Refuse arrays that have not their axes, or not those of the arrays before."""
    sizes: dict[str, tuple[int, str]] = {}
    for part, name, form in zip(parts, names, forms, strict=True):
        vector = part.axes.endswith(",")
        if form is None and vector:
            continue
        shape, dtype = form or ((), np.dtype(object))  # as NumPy makes of None
        if kind_of(dtype) not in "fbiu?":
            raise TypeError(f"{name} must hold real numbers, got dtype {dtype}")
        more = len(shape) - len(part.symbols)
        if more < 0 or (more and not part.stacked):
            raise ValueError(f"{name} must have shape ({part.axes}), got {shape}")
        for symbol, n in zip(part.symbols, shape[more:], strict=True):
            side = "columns" if symbol == part.symbols[-1] else "rows"
            here = f"{name} has {n} {side}"
            size, there = sizes.setdefault(symbol, (n, here))
            if size != n and vector:
                raise ValueError(f"{name} must have shape ({size},), got ({n},)")
            if size != n:
                raise ValueError(f"{there} and {here}; they must be equal")
            if n % n_heads and symbol.startswith("n_heads * "):
                raise ValueError(
                    f"the columns of {name} ({n}) must be divisible by n_heads "
                    f"({n_heads})"
                )


def broadcast_leading(
    shapes: Mapping[str, Shape], broadcast_shapes: Callable = np.broadcast_shapes
) -> Shape:
    """Return the common leading shape of arrays whose shapes are given by name."""
    leading = [shape[:-2] for shape in shapes.values()]
    if all(shape == leading[0] for shape in leading):
        return leading[0]
    try:
        return broadcast_shapes(*leading)
    except (ValueError, RuntimeError):  # NumPy's answer and PyTorch's
        named = ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
        raise ValueError(f"leading axes do not broadcast: {named}") from None


def common_dtypes(dtypes: Iterable[Any]) -> tuple[DType, DType]:
    """Return the dtype of a result, and that in which it is computed."""
    given = {*dtypes}
    if any(not isinstance(dtype, np.dtype) for dtype in given):
        return None, None
    dtype = np.result_type(*(x if x.kind == "f" else np.float64 for x in given))
    return dtype, np.dtype(np.float32) if dtype == np.float16 else dtype


def fit_dict(
    where: str, axes: str, weights: Any, X: Any, n_heads: int
) -> tuple[DType, Array, dict[str, Array]]:
    """Do what `fit` does for the arrays of a dict that are there, and for the tokens.

    The width of the tokens `X` is that of the weights.
    """
    if not isinstance(weights, Mapping):
        raise TypeError(f"{where} must be a dict, got {type(weights).__name__}")
    given = {name: x for name, x in weights.items() if x is not None}
    names, text = text_of(where, axes, tuple(weights), tuple(given))
    dtype, [X, *arrays] = fit(text, X, *[given[x] for x in names], n_heads=n_heads)
    return dtype, X, dict(zip(names, arrays, strict=True))


@functools.lru_cache(maxsize=1024)
def text_of(where: str, axes: str, names: Any, given: Any) -> tuple[list[str], str]:
    """Return the names of weights in their own order, and the text for `fit`."""
    known = {part.name: part.axes for part in parse(axes)}
    if unknown := [str(name) for name in names if name not in known]:
        raise ValueError(
            f"{where} holds {', '.join(unknown)}; the names are {', '.join(known)}"
        )
    needed = (name for name, inside in known.items() if not inside.endswith(","))
    if missing := [name for name in needed if name not in given]:
        raise ValueError(f"{where} lacks {', '.join(missing)}")
    names = [name for name in known if name in given]
    texts = (f"{where}[{name!r}] ({known[name]})" for name in names)
    return names, ", ".join(["X (..., n, d_model)", *texts])


# Masks


def fit_mask(mask: Any, shape: Shape, of_heads: bool = False) -> Array | None:
    """Return a mask as an array that broadcasts to scores of this shape."""
    if mask is None:
        return None
    mask = mask if type(mask) is np.ndarray else as_array("mask", mask)
    if kind_of(mask.dtype) not in "bf?":
        raise TypeError(
            "mask must be bool (True = may attend) or float (added to the scores), "
            f"got dtype {mask.dtype}; write mask.astype(bool) if 1 means may attend"
        )
    # The largest entry is NaN where any is; a comparison would write a second mask.
    counted = isinstance(mask, np.ndarray) and mask.dtype.kind == "f"
    if counted and not mask.max(initial=-np.inf) < np.inf:
        raise ValueError(NOT_FINITE)
    fit_mask_shape(mask.shape, shape, of_heads)
    return mask


def fit_mask_shape(given: Shape, shape: Shape, of_heads: bool = False) -> None:
    """Refuse the shape of a mask that does not broadcast to scores of this shape.

    Where a layer has made the axis of heads itself, a mask with three axes could mean
    one for each sequence or one for each head, so it is refused on a batch.
    """
    given = tuple(given)
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


def as_integer(name: str, x: Any, least: int | None = None) -> int:
    """Return `x` as an int, or say by name that it must be one, or at least `least`."""
    if type(x) is not int:
        if isinstance(x, bool) or not isinstance(x, numbers.Integral):
            raise TypeError(f"{name} must be an integer, got {x!r}")
        x = int(x)
    if least is not None and x < least:
        raise ValueError(f"{name} must be at least {least}, got {x}")
    return x


def as_float(name: str, x: Any, least: float = -INF, below: float = INF) -> float:
    """Return `x` as a float, which leaves float32 arrays what they are."""
    if type(x) is not float:
        if isinstance(x, bool) or not isinstance(x, numbers.Real):
            raise TypeError(f"{name} must be a number, got {x!r}")
        x = float(x)
    if not least <= x < below or x == -INF:  # never true of NaN
        low = "" if least == -INF else f"at least {least} and "
        rule = "finite" if below == INF else f"below {below}"
        raise ValueError(f"{name} must be {low}{rule}, got {x}")
    return x


def as_axis(axis: Any, name: str, x: Array) -> int:
    """Return `axis` as an axis that `x`, an array of this name, has."""
    axis = as_integer("axis", axis)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(
            f"axis must be an axis of {name}, got {axis} for shape {x.shape}"
        )
    return axis


def as_activation(activation: Any) -> Any:
    """Return the name of an activation, or say which names there are."""
    if activation not in ("relu", "gelu"):
        raise ValueError(f"activation must be 'relu' or 'gelu', got {activation!r}")
    return activation


def as_lengths(lengths: Any, max_length: Any) -> tuple[Array, int]:
    """Return the lengths of the sequences of a batch, and the longest there may be."""
    lengths = as_array("lengths", lengths)
    if lengths.ndim != 1 or len(lengths) == 0:
        raise ValueError(
            f"lengths must have shape (batch,) and batch >= 1, got {lengths.shape}"
        )
    if lengths.dtype.kind not in "iu":
        raise TypeError(f"lengths must be integers, got dtype {lengths.dtype}")
    if max_length is None:
        max_length = max(0, int(lengths.max()))
    n = as_integer("max_length", max_length, 0)
    if (wrong := lengths[(lengths < 0) | (lengths > n)]).size:
        raise ValueError(f"lengths must lie in 0 … max_length = {n}, got {wrong[0]}")
    return lengths, n


def as_layers(layers: Any) -> list[Any]:
    """Return the dicts of the layers of a stack as a list."""
    if isinstance(layers, Mapping) or not isinstance(layers, Iterable):
        kind = type(layers).__name__
        raise TypeError(f"layers must be a sequence of dicts, got {kind}")
    return [*layers]


def as_pair(name: str, norm: Any) -> tuple[Any, Any]:
    """Return the gain and the bias of a norm, which may be None, as it may itself."""
    if norm is None:
        return None, None
    if not isinstance(norm, tuple | list) or len(norm) != 2:
        raise TypeError(f"{name} must be a pair (gain, bias) or None, got {norm!r}")
    return norm[0], norm[1]
