"""Sizes and arrays that the tests share."""

import tracemalloc
from contextlib import contextmanager
from types import MappingProxyType

import numpy as np

# Distinct primes, so that no axis can pose as another.
SIZES = MappingProxyType(dict(b=2, n_heads=3, n_q=5, n_k=7, d_k=11, d_v=13))

LEADING = [(), (2,), (2, 3)]

MIB = 2**20


def examples(number=50):
    """Yield generators, with scores of 5 queries and 7 keys, and a mask for these.

    Every other time the scores are whole, so that some are equal. A mask may hide all.
    """
    for seed in range(number):
        rng = np.random.default_rng(seed)
        scores = rng.uniform(-30, 30, (5, 7))
        mask = rng.random((5, 7)) < rng.random()
        yield rng, scores.round() if seed % 2 else scores, mask


def draw_qkv(rng, leading=(), dtype=np.float64):
    """Return random queries, keys and values of the sizes above."""
    n_q, n_k, d_k, d_v = (SIZES[name] for name in ("n_q", "n_k", "d_k", "d_v"))
    shapes = (n_q, d_k), (n_k, d_k), (n_k, d_v)
    return tuple(rng.normal(size=leading + shape).astype(dtype) for shape in shapes)


def draw_mask(rng, shape):
    """Return a random bool mask that leaves the first key open to every query."""
    first = np.arange(shape[-1]) == 0 if shape else True
    return (rng.random(shape) < 0.6) | first


def peak_memory(f):
    """Return the largest number of bytes that arrays made by `f` hold at once."""
    tracemalloc.start()
    try:
        f()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@contextmanager
def nothing_modified(*arrays):
    """Check that the arrays still hold, after the block, what they held before it."""
    before = [x.copy() for x in arrays]
    yield
    for x, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(x, old)
