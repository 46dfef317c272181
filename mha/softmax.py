"""Step 2: how do scores become shares? Chapter 2."""

import numpy as np

from mha._arrays import as_floats, working_dtype


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
        If `axis` is not an axis of `x`.
    TypeError
        If `x` does not hold real numbers.

    Examples
    --------
    >>> softmax(np.log([1.0, 2.0, 5.0]))
    array([0.125, 0.25 , 0.625])
    """
    x = as_floats("x", x, "n")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis must be an axis of x, got {axis} for shape {x.shape}")
    p = x.astype(working_dtype(x))
    exponentiate_in_place(p, axis)
    p /= never_zero(p.sum(axis, keepdims=True))
    return p.astype(x.dtype, copy=False)


def exponentiate_in_place(x, axis=-1):
    """Replace `x` by exp(x - max) in its own buffer; attention has no larger one."""
    # initial makes an empty axis legal, and NumPy's reduction several times faster.
    top = x.max(axis, keepdims=True, initial=-np.inf)
    # A row of -inf has no largest score; subtracting 0 leaves exp(-inf) = 0.
    x -= np.where(np.isneginf(top), 0, top)
    np.exp(x, out=x)


def never_zero(total):
    """Replace sums of 0, left by rows that may look at nothing, by 1."""
    return np.where(total == 0, 1, total)
