"""Step 6: how does attention know the order?"""

import numpy as np

from mha._checks import Array, as_integer


def sinusoidal_positional_encoding(n: int, d_model: int) -> Array:
    """Return one row of sines and cosines per position, to be added to the tokens.

    Equation: P[t, 2i] = sin(t ω_i), P[t, 2i + 1] = cos(t ω_i) with
    ω_i = 10000^(-2i / d_model)

    Parameters
    ----------
    n : int
        Number of positions; the first is 0.
    d_model : int
        Width of the tokens. An odd one ends with a sine that has no cosine.

    Returns
    -------
    P : ndarray of float64, shape (n, d_model)
        Between -1 and 1. Row ``t`` is added to the token at position ``t`` of every
        sequence. Write ``X + P.astype(X.dtype)`` to keep float32 tokens in float32.

    Examples
    --------
    The first pair of columns turns by 1 radian per step, the second by 1/100.

    >>> sinusoidal_positional_encoding(3, 4).round(3)
    array([[ 0.   ,  1.   ,  0.   ,  1.   ],
           [ 0.841,  0.54 ,  0.01 ,  1.   ],
           [ 0.909, -0.416,  0.02 ,  1.   ]])
    """
    n = as_integer("n", n, least=0)
    d_model = as_integer("d_model", d_model, least=1)
    angles = np.arange(n)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
    P = np.empty((n, d_model))
    P[:, 0::2] = np.sin(angles)
    P[:, 1::2] = np.cos(angles)[:, : d_model // 2]
    return P
