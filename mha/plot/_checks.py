"""What the pictures refuse, and the words they share."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from mha._arrays import Array


def as_matrix(name: str, A: ArrayLike, shape: str) -> Array:
    """Return `A` as an array with two axes, neither of them empty."""
    A = np.asarray(A)
    if A.ndim != 2 or 0 in A.shape:
        raise ValueError(f"{name} must have shape {shape}, got {A.shape}")
    return A


def as_names(
    argument: str, names: Iterable[object] | None, count: int, what: str
) -> list[str]:
    """Return `count` names as text; None numbers them from 0."""
    names = [*(range(count) if names is None else names)]
    if len(names) != count:
        raise ValueError(f"{argument} has {len(names)} names for {count} {what}")
    return [str(name) for name in names]


def as_series(name: str, values: ArrayLike, length: int | None = None) -> Array:
    """Return `values` as a vector of floats, of the right length."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"{name} must be a vector of numbers, got {values.shape}")
    if length is not None and len(values) != length:
        raise ValueError(f"{name} has {len(values)} values, expected {length}")
    return values
