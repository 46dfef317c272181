"""Sizes and arrays that the tests share."""

import tracemalloc
from contextlib import contextmanager
from types import MappingProxyType

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

# Distinct primes, so that no axis can pose as another.
SIZES = MappingProxyType(dict(b=2, n_heads=3, n_q=5, n_k=7, d_k=11, d_v=13))

LEADING = [(), (2,), (2, 3)]

MIB = 2**20

# What hypothesis may try: five queries, seven keys.
floats = st.floats(-5, 5)
queries = arrays(np.float64, (5, 2), elements=floats)
keys = arrays(np.float64, (7, 2), elements=floats)
values = arrays(np.float64, (7, 3), elements=floats)
masks = arrays(np.bool_, (5, 7))


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
