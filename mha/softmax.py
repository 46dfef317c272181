"""Step 2: how do scores become shares? Chapter 2."""

import numpy as np

from mha._arrays import as_axis, as_floats, never_zero, working_dtype


def softmax(x, axis=-1):
    """Turn scores into positive shares that sum to one.

    Equation: softmax(x)_j = exp(x_j) / Σ_l exp(x_l)  (chapter 2)

    Parameters
    ----------
    x : ndarray of any shape
        Scores. ``-inf`` means "no share"; ``+inf`` and NaN give NaN.
    axis : int, default -1
        The axis whose entries share one unit among them.

    Returns
    -------
    p : ndarray of the shape of `x`
        Between 0 and 1, sums to 1 along `axis`. Where every score is ``-inf`` nothing
        can be shared out and all shares are 0. Scores of any finite size are safe,
        because the largest is subtracted first.

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
    x = as_floats("x", x, "n")
    axis = as_axis(axis, "x", x)
    p = x.astype(working_dtype(x))
    exponentiate_in_place(p, axis)
    p /= never_zero(p.sum(axis, keepdims=True))
    return p.astype(x.dtype, copy=False)


def exponentiate_in_place(x, axis=-1):
    """Replace `x` by exp(x - max) in its own buffer; attention has no larger one."""
    # initial makes an empty axis legal, and the reduction much faster.
    top = x.max(axis, keepdims=True, initial=-np.inf)
    # A row of -inf has no largest score; subtracting 0 leaves exp(-inf) = 0.
    top = np.where(np.isneginf(top), 0, top)
    # The gap of two huge scores may overflow to -inf; exp(-inf) = 0 is right.
    with np.errstate(over="ignore"):
        x -= top
    np.exp(x, out=x)
