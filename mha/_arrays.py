"""Step 0: the questions that are asked of one argument, and their answers in words."""

import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def as_array(name: str, x: Any) -> Array:
    """Return `x` as an array, or say by name why it cannot be one."""
    if type(x).__module__.partition(".")[0] == "torch":
        raise TypeError(
            f"{name} is a torch.{type(x).__name__}; the functions of mha take NumPy "
            "arrays, mha.nn holds their twins for tensors"
        )
    try:
        return np.asarray(x)
    except ValueError:
        raise ValueError(f"{name} must be rectangular: rows differ in length") from None


def as_numbers(name: str, x: Any, axes: str | None = None) -> Array:
    """Return `x` as an array of real numbers.

    `axes` names the trailing axes that must be there, such as ``"n_q, d_k"``.
    """
    x = as_array(name, x)
    if x.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {x.dtype}")
    if axes is not None and x.ndim < axes.count(",") + 1:
        raise ValueError(f"{name} must have shape (..., {axes}), got {x.shape}")
    return x


def as_floats(name: str, x: Any, axes: str | None = None) -> Array:
    """Return `x` as `as_numbers` does, in floating point.

    Lists and integers become float64; a floating-point array is not copied.
    """
    x = as_numbers(name, x, axes)
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def as_features(name: str, g: Any, n_features: int) -> Array | None:
    """Return `g` as an array with one number per feature; None stays None."""
    if g is None:
        return None
    g = as_floats(name, g)
    if g.shape != (n_features,):
        raise ValueError(f"{name} must have shape ({n_features},), got {g.shape}")
    return g


def as_mask(mask: Any, shape: tuple[int, ...], n_heads: int | None = None) -> Any:
    """Return `mask` as an array that broadcasts to the scores; None stays None.

    Where a layer has made the axis of heads itself, a mask with three axes could mean
    one for each sequence or one for each head, so `n_heads` refuses it on a batch.
    """
    if mask is None:
        return None
    mask = as_array("mask", mask)
    if mask.dtype.kind not in "bf":
        raise TypeError(
            "mask must be bool (True = may attend) or float (added to the scores), "
            f"got dtype {mask.dtype}; write mask.astype(bool) if 1 means may attend"
        )
    if n_heads and mask.ndim == 3 < len(shape) and mask.shape[0] > 1:
        raise ValueError(
            f"mask of shape {mask.shape} has 3 axes, and the scores have {len(shape)}: "
            f"{shape} = (..., n_heads, n_q, n_k); write mask[:, None] for one mask per "
            "sequence, mask[None] for one per head"
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


def as_count(name: str, n: Any, at_least: int = 1) -> int:
    """Return `n` as an int that is at least `at_least`."""
    if isinstance(n, bool) or not isinstance(n, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {n!r}")
    if int(n) < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {n}")
    return int(n)


def as_axis(axis: Any, name: str, x: Array) -> int:
    """Return `axis` as an int that counts an axis of `x`, from the end if negative."""
    if isinstance(axis, bool) or not isinstance(axis, numbers.Integral):
        raise TypeError(f"axis must be an integer, got {axis!r}")
    if not -x.ndim <= int(axis) < x.ndim:
        raise ValueError(
            f"axis must be an axis of {name}, got {axis} for shape {x.shape}"
        )
    return int(axis)


def as_scale(scale: Any, d_k: int) -> float:
    """Return `scale`, or 1/√d_k for None, as a Python float.

    A NumPy float64 scalar would turn float32 scores into float64 ones.
    """
    if scale is None:
        return 1 / math.sqrt(d_k) if d_k else 1.0
    if isinstance(scale, bool) or not isinstance(scale, numbers.Real):
        raise TypeError(f"scale must be a number or None, got {scale!r}")
    if not math.isfinite(scale):
        raise ValueError(f"scale must be finite, got {scale}")
    return float(scale)


def as_eps(eps: Any) -> float:
    """Return `eps` as a Python float, which leaves float32 what it is."""
    if isinstance(eps, bool) or not isinstance(eps, numbers.Real):
        raise TypeError(f"eps must be a number, got {eps!r}")
    if not 0 <= float(eps) < math.inf:
        raise ValueError(f"eps must be at least 0 and finite, got {eps}")
    return float(eps)


def as_activation(activation: Any) -> str:
    """Return `activation`, or say which names there are."""
    if activation not in ("relu", "gelu"):
        raise ValueError(f"activation must be 'relu' or 'gelu', got {activation!r}")
    return activation


def same_last_axis(name_a: str, a: Any, name_b: str, b: Any, symbol: str) -> None:
    """Refuse two arrays whose rows have different widths."""
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(
            f"{name_a} and {name_b} must have the same last axis {symbol}, "
            f"got {a.shape[-1]} and {b.shape[-1]}"
        )


def broadcast_leading(
    named: Mapping[str, Any], broadcast_shapes: Callable = np.broadcast_shapes
) -> tuple[int, ...]:
    """Return the common leading shape of arrays given as ``{name: array}``."""
    try:
        return broadcast_shapes(*(x.shape[:-2] for x in named.values()))
    except (ValueError, RuntimeError):  # NumPy's answer and PyTorch's
        shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in named.items())
        raise ValueError(f"leading axes do not broadcast: {shapes}") from None


def working_dtype(*arrays: Any) -> np.dtype:
    """Return the dtype to compute in: float16 is summed in float32, others stay."""
    dtype = np.result_type(*arrays)
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def never_zero(total: Array) -> Array:
    """Return `total` with 1 in place of every 0, so that it can divide zeros."""
    return np.where(total == 0, 1, total)
