"""Inputs to try a law on, the smallest first."""

import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray
Generator = np.random.Generator
Case = dict[str, Any]


class Size(NamedTuple):
    """How large one trial is. Distinct primes keep axes from being confused."""

    n_q: int
    n_k: int
    d: int
    integers: bool = True


SIZES = (Size(1, 2, 2), Size(2, 3, 2), Size(3, 5, 2), Size(5, 7, 3, False))


def fitted(size: Size, subject: Any) -> Size:
    return size._replace(n_q=size.n_k, d=4) if subject.ordered else size


def numbers(rng: Generator, *shape: int, integers: bool = True) -> Array:
    """Return small integers, which are easy to read, or normal numbers."""
    drawn = rng.integers(-2, 3, shape) if integers else rng.standard_normal(shape)
    return drawn.astype(float)


def rows(rng: Generator, n: int, size: Size, *leading: int) -> Array:
    return numbers(rng, *leading, n, size.d, integers=size.integers)


def qkv(rng: Generator, size: Size, *leading: int) -> Case:
    n_tokens = {"Q": size.n_q, "K": size.n_k, "V": size.n_k}
    return {name: rows(rng, n, size, *leading) for name, n in n_tokens.items()}


def open_mask(rng: Generator, n_q: int, n_k: int) -> Array:
    """Return a mask that leaves every query something visible and something hidden."""
    mask, i = rng.random((n_q, n_k)) < 0.5, np.arange(n_q)
    mask[i, i % n_k], mask[i, (i + 1) % n_k] = True, False
    return mask


# What an argument of a law means, by its name.
BY_NAME: dict[str, Callable[[Generator, Size], Any]] = {
    "Q": lambda rng, size: rows(rng, size.n_q, size),
    **dict.fromkeys("KVX", lambda rng, size: rows(rng, size.n_k, size)),
    "v": lambda rng, size: 1.0 + rng.integers(1, 5, size.d),
    "mask": lambda rng, size: open_mask(rng, size.n_q, size.n_k),
    "order": lambda rng, size: np.roll(np.arange(size.n_k), rng.integers(1, size.n_k)),
    "shift": lambda rng, size: rng.integers(1, 4, size.d).astype(float),
    "seed": lambda rng, size: int(rng.integers(1000)),
    "turn": lambda rng, size: int(rng.integers(1000)),
}


def by_name(judge: Callable[..., Any], sizes: Any, values: Case, also: Case) -> Any:
    """Return cases that draw the arguments of a law by their names, `also` at the end.

    A `mask` that may be left out is so first. Lists in `values` are tried one by one,
    functions there draw. What has no other argument than a seed is drawn once.
    """
    meant = BY_NAME | {x: draw for x, draw in values.items() if callable(draw)}
    listed = {x: some for x, some in values.items() if not callable(some)}
    names = inspect.signature(judge).parameters
    drawn = [x for x in names if x in meant and x not in {*listed, "mask"}]
    sizes = sizes if {*names} & {*meant} - {"seed"} else sizes[:1]
    masked = [False, True] if "mask" in names else [False]
    if masked[1:] and names["mask"].default is inspect.Parameter.empty:
        masked = [True]

    def cases(rng: Generator, subject: Any) -> Iterator[Case]:
        for size, *chosen, hides in itertools.product(sizes, *listed.values(), masked):
            size = fitted(size, subject)
            case = {x: meant[x](rng, size) for x in drawn}
            case |= dict(zip(listed, chosen, strict=True))
            yield case | ({"mask": meant["mask"](rng, size)} if hides else {})
        yield from [also] if also else []

    return cases
