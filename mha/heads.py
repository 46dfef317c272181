"""Step 5: many looks at once. Chapters 6 to 9."""

import numpy as np

from mha._arrays import as_count, as_floats, as_numbers, working_dtype
from mha.attention import scaled_dot_product_attention


def split_heads(x, n_heads):
    """Cut the last axis into heads and move the heads in front of the tokens.

    Equation: head r is columns r·d_head … (r+1)·d_head − 1  (chapter 7)

    Parameters
    ----------
    x : ndarray of shape (..., n, d_model)
        One token per row.
    n_heads : int
        Must divide d_model.

    Returns
    -------
    heads : ndarray of shape (..., n_heads, n, d_head)
        A view of `x`, with d_head = d_model / n_heads.

    Raises
    ------
    ValueError
        If `n_heads` does not divide d_model, or `x` has fewer than two axes.
    TypeError
        If `n_heads` is not an integer, or `x` does not hold real numbers.

    Examples
    --------
    >>> split_heads(np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), 2)
    array([[[1, 2],
            [5, 6]],
    <BLANKLINE>
           [[3, 4],
            [7, 8]]])
    """
    x = as_numbers("x", x, "n, d_model")
    n_heads, d_model = as_count("n_heads", n_heads), x.shape[-1]
    if d_model % n_heads:
        raise ValueError(
            f"d_model ({d_model}) must be divisible by n_heads ({n_heads})"
        )
    heads = x.reshape(*x.shape[:-1], n_heads, d_model // n_heads)
    return heads.swapaxes(-3, -2)


def merge_heads(heads):
    """Lay the heads side by side again; the inverse of `split_heads`.

    Equation: Concat(head_1, …, head_h)  (chapter 7)

    Parameters
    ----------
    heads : ndarray of shape (..., n_heads, n, d_head)
        One matrix per head.

    Returns
    -------
    x : ndarray of shape (..., n, n_heads * d_head)
        Row ``i`` is token ``i``; head ``r`` fills column block ``r``.

    Raises
    ------
    ValueError
        If there are fewer than three axes.
    TypeError
        If `heads` does not hold real numbers.

    Examples
    --------
    >>> x = np.arange(12.0).reshape(3, 4)
    >>> np.array_equal(merge_heads(split_heads(x, 2)), x)
    True
    """
    heads = as_numbers("heads", heads, "n_heads, n, d_head")
    *leading, n_heads, n, d_head = heads.shape
    return heads.swapaxes(-3, -2).reshape(*leading, n, n_heads * d_head)


def multi_head_attention(
    X, W_Q, W_K, W_V, W_O, n_heads, mask=None, *, X_k=None, X_v=None,
    b_Q=None, b_K=None, b_V=None, b_O=None, is_causal=False, return_weights=False,
):  # fmt: skip
    """Let several heads look, each in its own columns, and mix what they bring home.

    Equation: Concat(head_1, …, head_h) W_O with
    head_r = attention(X W_Q[r], X_k W_K[r], X_v W_V[r])  (chapters 7 to 9)

    Parameters
    ----------
    X : ndarray of shape (..., n_q, d_model)
        The tokens that ask.
    W_Q, W_K : ndarray of shape (d_model, n_heads * d_k)
        Projections to queries and keys; head ``r`` owns column block ``r``.
    W_V : ndarray of shape (d_model, n_heads * d_v)
        Projection to values.
    W_O : ndarray of shape (n_heads * d_v, d_out)
        Mixes the heads.
    n_heads : int
        Number of heads.
    mask : ndarray, optional
        Broadcasts to (..., n_heads, n_q, n_k). bool: True = may look. float: added.
    X_k, X_v : ndarray of shape (..., n_k, d_model), optional
        The tokens that are asked and the tokens that answer; `X_k` is `X` by default
        (self-attention) and `X_v` is `X_k`.
    b_Q, b_K, b_V, b_O : ndarray, optional
        One bias for each column of the matrix of the same letter.
    is_causal : bool, default False
        Token ``i`` sees the tokens ``j <= i`` only.
    return_weights : bool, default False
        Return the weights of every head too, never averaged.

    Returns
    -------
    Y : ndarray of shape (..., n_q, d_out)
        The mixed answer for every token. The dtype is the one that NumPy gives all
        arguments together; float16 is summed in float32.
    A : ndarray of shape (..., n_heads, n_q, n_k)
        Only with `return_weights`. Rows sum to 1; exactly 0 where masked.

    Raises
    ------
    ValueError
        If shapes do not fit or `n_heads` does not divide a width, with both numbers.
    TypeError
        If an argument does not hold real numbers, `n_heads` is not an integer, or
        `mask` holds integers.

    References
    ----------
    Vaswani et al. 2017, *Attention is all you need*, section 3.2.2.

    Examples
    --------
    Two heads with identity projections; the second sees equal keys and takes the mean.

    >>> X = np.array([[9.0, 2.0], [-9.0, 2.0]])
    >>> eye = np.eye(2)
    >>> multi_head_attention(X, eye, eye, eye, eye, n_heads=2).round(3)
    array([[ 9.,  2.],
           [-9.,  2.]])
    """
    n_heads = as_count("n_heads", n_heads)
    name_k, X_k = ("X", X) if X_k is None else ("X_k", X_k)
    name_v, X_v = (name_k, X_k) if X_v is None else ("X_v", X_v)
    Q = _project_to_heads("X", X, "Q", W_Q, b_Q, n_heads)
    K = _project_to_heads(name_k, X_k, "K", W_K, b_K, n_heads)
    V = _project_to_heads(name_v, X_v, "V", W_V, b_V, n_heads)
    answer = scaled_dot_product_attention(
        Q, K, V, mask, is_causal=is_causal, return_weights=return_weights
    )
    heads, A = answer if return_weights else (answer, None)
    Y = _project("Concat(heads)", merge_heads(heads), "O", W_O, b_O)
    dtype = _common_dtype(X, X_k, X_v, W_Q, W_K, W_V, W_O, b_Q, b_K, b_V, b_O)
    Y = Y.astype(dtype, copy=False)
    return (Y, A.astype(dtype, copy=False)) if return_weights else Y


def _common_dtype(*arrays):
    """Return the dtype that NumPy gives the arrays together; None has no say."""
    return np.result_type(*(as_floats("", x) for x in arrays if x is not None))


def _project_to_heads(name, X, letter, W, b, n_heads):
    """Return X W + b, cut into heads."""
    Y = _project(name, X, letter, W, b)
    if Y.shape[-1] % n_heads:
        raise ValueError(
            f"the columns of W_{letter} ({Y.shape[-1]}) must be divisible by n_heads "
            f"({n_heads})"
        )
    return split_heads(Y, n_heads)


def _project(name, X, letter, W, b):
    """Return X W + b in the working precision, or say which of the three misfits."""
    X, W = as_floats(name, X, "n, d_model"), as_floats(f"W_{letter}", W)
    if W.ndim != 2:
        raise ValueError(f"W_{letter} must have shape (d_in, d_out), got {W.shape}")
    if X.shape[-1] != W.shape[0]:
        raise ValueError(
            f"{name} has {X.shape[-1]} columns and W_{letter} {W.shape[0]} rows; "
            "they must be equal"
        )
    work = working_dtype(X, W)
    Y = X.astype(work, copy=False) @ W.astype(work, copy=False)
    if b is None:
        return Y
    b = as_floats(f"b_{letter}", b)
    if b.shape != W.shape[1:]:
        raise ValueError(f"b_{letter} must have shape {W.shape[1:]}, got {b.shape}")
    return Y + b
