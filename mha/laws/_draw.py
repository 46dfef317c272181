"""Inputs to try a law on, the smallest first."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Size(NamedTuple):
    """How large one trial is. Distinct primes keep axes from being confused."""

    n_q: int
    n_k: int
    d: int
    integers: bool = True


SIZES = (Size(1, 2, 2), Size(2, 3, 2), Size(3, 5, 2), Size(5, 7, 3, False))


def numbers(rng: np.random.Generator, *shape: int, integers: bool = True) -> Array:
    if integers:
        return rng.integers(-2, 3, shape).astype(float)
    return rng.standard_normal(shape)


def qkv(rng: np.random.Generator, size: Size) -> dict[str, Array]:
    shapes = {"Q": size.n_q, "K": size.n_k, "V": size.n_k}
    return {
        name: numbers(rng, n, size.d, integers=size.integers)
        for name, n in shapes.items()
    }


def open_mask(rng: np.random.Generator, n_q: int, n_k: int) -> Array:
    """Return a mask that leaves every query something visible and something hidden."""
    mask = rng.random((n_q, n_k)) < 0.5
    mask[np.arange(n_q), np.arange(n_q) % n_k] = True
    mask[np.arange(n_q), (np.arange(n_q) + 1) % n_k] = False
    return mask


def qkv_cases(
    rng: np.random.Generator, masked: bool = True
) -> Iterator[dict[str, Array]]:
    """Yield queries, keys and values, each size without and then with a mask."""
    for size in SIZES:
        yield qkv(rng, size)
        if masked:
            yield qkv(rng, size) | {"mask": open_mask(rng, size.n_q, size.n_k)}


def token_cases(rng: np.random.Generator) -> Iterator[dict[str, Array]]:
    for size in SIZES:
        yield {"X": numbers(rng, size.n_k, size.d, integers=size.integers)}


def new_order(rng: np.random.Generator, n: int) -> Array:
    """Return a permutation that moves every token."""
    return np.roll(np.arange(n), int(rng.integers(1, n)))
