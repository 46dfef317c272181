"""Step 0: every argument is looked at once, here, before any arithmetic."""

import math
import numbers

import numpy as np


def as_array(name, x):
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


def as_numbers(name, x, axes=None):
    """Return `x` as an array of real numbers.

    `axes` names the trailing axes that must be there, such as ``"n_q, d_k"``.
    """
    x = as_array(name, x)
    if x.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {x.dtype}")
    if axes is not None and x.ndim < axes.count(",") + 1:
        raise ValueError(f"{name} must have shape (..., {axes}), got {x.shape}")
    return x


def as_floats(name, x, axes=None):
    """Return `x` as `as_numbers` does, in floating point.

    Lists and integers become float64; a floating-point array is not copied.
    """
    x = as_numbers(name, x, axes)
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def working_dtype(*arrays):
    """Return the dtype to compute in: float16 is summed in float32, others stay."""
    dtype = np.result_type(*arrays)
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def as_count(name, n, at_least=1):
    """Return `n` as an int that is at least `at_least`."""
    if isinstance(n, bool) or not isinstance(n, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {n!r}")
    if n < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {n}")
    return int(n)


def as_axis(axis, name, x):
    """Return `axis` as an int that counts an axis of `x`, from the end if negative."""
    if isinstance(axis, bool) or not isinstance(axis, numbers.Integral):
        raise TypeError(f"axis must be an integer, got {axis!r}")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(
            f"axis must be an axis of {name}, got {axis} for shape {x.shape}"
        )
    return int(axis)


def as_scale(scale, d_k):
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


def same_last_axis(name_a, a, name_b, b, symbol):
    """Refuse two arrays whose rows have different widths."""
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(
            f"{name_a} and {name_b} must have the same last axis {symbol}, "
            f"got {a.shape[-1]} and {b.shape[-1]}"
        )


def broadcast_leading(named, broadcast_shapes=np.broadcast_shapes):
    """Return the common leading shape of arrays given as ``{name: array}``."""
    try:
        return broadcast_shapes(*(x.shape[:-2] for x in named.values()))
    except (ValueError, RuntimeError):  # NumPy's answer and PyTorch's
        shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in named.items())
        raise ValueError(f"leading axes do not broadcast: {shapes}") from None


def never_zero(total):
    """Return `total` with 1 in place of every 0, so that it can divide zeros."""
    return np.where(total == 0, 1, total)
