"""Step 2: how do scores become weights? Chapter softmax."""

import numpy as np
from numpy.typing import ArrayLike

from mha import arguments
from mha._arrays import Array, never_zero
from mha.arguments import validated


@validated(arguments.softmax)
def softmax(x: ArrayLike, axis: int = -1) -> Array:
    """Turn scores into positive weights that sum to one.

    Equation: softmax(x)_j = exp(x_j) / Σ_l exp(x_l)  (chapter softmax)

    Parameters
    ----------
    x : ndarray of any shape
        Scores. ``-inf`` gives the weight 0; ``+inf`` and NaN give NaN.
    axis : int, default -1
        The axis along which the weights sum to one.

    Returns
    -------
    p : ndarray of the shape of `x`
        Between 0 and 1, with sum 1 along `axis`. Where every score is ``-inf``, all
        weights are 0. Scores of any finite size are safe, because the largest is
        subtracted first.

    Raises
    ------
    ValueError
        If `x` has no axis, or `axis` is not one of them.
    TypeError
        If `x` does not hold real numbers, or `axis` is not an integer.

    Examples
    --------
    >>> softmax(np.log([1.0, 2.0, 5.0]))
    array([0.125, 0.25 , 0.625])
    """
    # Without the largest score exp could overflow; subtracting it changes no weight.
    top = np.max(x, axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isneginf(top), 0, top)  # -inf - -inf would be NaN
    with np.errstate(
        over="ignore"
    ):  # a difference too large for a number is -inf: exp gives 0
        e = np.exp(x - top)
    return e / never_zero(e.sum(axis, keepdims=True))
