"""Step 2: how do scores become weights?"""

import numpy as np
from numpy.typing import ArrayLike

from mha._checks import Array, as_axis, fit, rounded


def softmax(x: ArrayLike, axis: int = -1) -> Array:
    """Turn scores into positive weights that sum to one.

    Equation: softmax(x)_j = exp(x_j) / Σ_l exp(x_l)

    Parameters
    ----------
    x : ndarray of any shape
        Scores. ``-inf`` gives the weight 0; ``+inf`` and NaN give NaN.
    axis : int, default -1
        The axis along which the weights sum to one.

    Returns
    -------
    p : ndarray of the shape of `x`
        Between 0 and 1, with sum 1 along `axis`, whatever the size of the scores. Where
        every score is ``-inf``, all weights are 0.

    Examples
    --------
    >>> softmax(np.log([1.0, 2.0, 5.0]))
    array([0.125, 0.25 , 0.625])
    """
    dtype, [x] = fit("x (..., n)", x)
    axis = as_axis(axis, "x", x)

    # Without the largest score exp could overflow; subtracting it changes no weight.
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(top == -np.inf, 0, top)  # -inf - -inf would be NaN
    with np.errstate(over="ignore"):  # too large a difference is -inf, and exp gives 0
        e = np.exp(x - top)
    total = np.sum(e, axis=axis, keepdims=True)
    return rounded(dtype, e / np.where(total == 0, 1, total))
