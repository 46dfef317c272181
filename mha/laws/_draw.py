"""Inputs to try a law on, the smallest first."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mha._doors import Array

Generator = np.random.Generator
Case = dict[str, Array]


class Size(NamedTuple):
    """How large one trial is. Distinct primes keep axes from being confused."""

    n_q: int
    n_k: int
    d: int
    integers: bool = True


SIZES = (Size(1, 2, 2), Size(2, 3, 2), Size(3, 5, 2), Size(5, 7, 3, False))


def numbers(rng: Generator, *shape: int, integers: bool = True) -> Array:
    drawn = rng.integers(-2, 3, shape) if integers else rng.standard_normal(shape)
    return drawn.astype(float)


def rows(rng: Generator, n: int, size: Size, *leading: int) -> Array:
    return numbers(rng, *leading, n, size.d, integers=size.integers)


def qkv(rng: Generator, size: Size, *leading: int) -> Case:
    n_tokens = {"Q": size.n_q, "K": size.n_k, "V": size.n_k}
    return {name: rows(rng, n, size, *leading) for name, n in n_tokens.items()}


def open_mask(rng: Generator, n_q: int, n_k: int) -> Array:
    """Return a mask that leaves every query something visible and something hidden."""
    mask = rng.random((n_q, n_k)) < 0.5
    mask[np.arange(n_q), np.arange(n_q) % n_k] = True
    mask[np.arange(n_q), (np.arange(n_q) + 1) % n_k] = False
    return mask


def qkv_cases(rng: Generator, masked: bool = True) -> Iterator[Case]:
    """Yield queries, keys and values, each size without and then with a mask."""
    for size in SIZES:
        yield qkv(rng, size)
        if masked:
            yield qkv(rng, size) | {"mask": open_mask(rng, size.n_q, size.n_k)}


def token_cases(rng: Generator) -> Iterator[Case]:
    for size in SIZES:
        yield {"X": rows(rng, size.n_k, size)}


def new_order(rng: Generator, n: int) -> Array:
    """Return a permutation that moves every token."""
    return np.roll(np.arange(n), int(rng.integers(1, n)))
