"""What several figures refuse."""

from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array


def all_known(argument: str, names: Iterable[str], allowed: Collection[str]) -> None:
    """Refuse a name that is not among the `allowed` ones."""
    for name in names:
        if name not in allowed:
            raise ValueError(f"{argument}: {name!r} is not one of {list(allowed)}")


def as_series(name: str, values: ArrayLike, length: int | None = None) -> Array:
    """Return `values` as a vector of floats, of the right length."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"{name} must be a vector of numbers, got {values.shape}")
    if length is not None and len(values) != length:
        raise ValueError(f"{name} has {len(values)} values, expected {length}")
    return values
