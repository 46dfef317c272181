"""What the pictures refuse, and the words they share."""

import numpy as np


def as_matrix(name, A, shape):
    """Return `A` as an array with two axes, neither of them empty."""
    A = np.asarray(A)
    if A.ndim != 2 or 0 in A.shape:
        raise ValueError(f"{name} must have shape {shape}, got {A.shape}")
    return A


def as_names(argument, names, count, what):
    """Return `count` names as text; None numbers them from 0."""
    names = list(range(count)) if names is None else list(names)
    if len(names) != count:
        raise ValueError(f"{argument} has {len(names)} names for {count} {what}")
    return [str(name) for name in names]


def as_series(name, values, length=None):
    """Return `values` as a vector of floats, of the right length."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"{name} must be a vector of numbers, got {values.shape}")
    if length is not None and len(values) != length:
        raise ValueError(f"{name} has {len(values)} values, expected {length}")
    return values


def all_known(argument, names, allowed):
    """Refuse a name that is not among the `allowed` ones."""
    for name in names:
        if name not in allowed:
            raise ValueError(f"{argument}: {name!r} is not one of {list(allowed)}")
