"""Step 0 too: how much of a normal distribution lies below a number?"""

import functools
import math

import numpy as np

STEP = 2.0**-12  # a power of two, so that its multiples are exact
REACH = 9  # beyond, the share is 0 or 1 to the last digit of float64


def share_below(z):
    """Return Φ(z) to 16 digits: the nearest entry of a table and Taylor from there.

    NumPy has no error function and Python's, called entry by entry, takes 50 ns for
    each. This takes 12 in float32 and 25 in float64, and the layer half the time.
    """
    held = np.clip(z, -REACH, REACH)
    near = np.rint(held / STEP)
    # NaN has no nearest entry; it gets any, and stays NaN through the distance d.
    with np.errstate(invalid="ignore"):
        i = (near + REACH / STEP).astype(np.int64)
    x = near * STEP
    d = held - x
    share, slope = (column.take(i, mode="clip") for column in _table())
    share = share + slope * d * (1 - x * d / 2 + (x * x - 1) * d * d / 6)
    return share.astype(z.dtype, copy=False)


@functools.cache
def _table():
    """Return Φ and its slope, the density, at all multiples of STEP within REACH."""
    x = np.arange(-REACH, REACH + STEP, STEP)
    share = np.array([math.erfc(-t / math.sqrt(2)) / 2 for t in x.tolist()])
    slope = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    # Whatever lies below is sent here, and times -1e20 even 1e-19 would be a lot.
    share[0] = slope[0] = 0
    return share, slope
