"""Step 5: how do many heads attend at once?"""

from typing import Literal, overload

from numpy.typing import ArrayLike

from mha._checks import Array, Maybe, as_integer, fit, fit_mask, rounded
from mha.attention import scaled_dot_product_attention


def linear(x: ArrayLike, W: ArrayLike, b: ArrayLike | None = None) -> Array:
    """Multiply every row by one matrix and add one bias.

    Equation: y = x W + b

    Parameters
    ----------
    x : ndarray of shape (..., d_in)
        One vector per row.
    W : ndarray of shape (d_in, d_out)
        The transpose of the weight that `torch.nn.Linear` stores.
    b : ndarray of shape (d_out,), optional
        One number per column of `W`; 0 by default.

    Returns
    -------
    y : ndarray of shape (..., d_out)
        One vector per row.

    Examples
    --------
    >>> linear([[1.0, 2.0]], [[3.0, 0.0], [0.0, 5.0]], [100.0, 200.0])
    array([[103., 210.]])
    """
    dtype, [x, W, b] = fit("x (..., d_in), W (d_in, d_out), b (d_out,)", x, W, b)
    return rounded(dtype, x @ W if b is None else x @ W + b)


def split_heads(x: ArrayLike, n_heads: int) -> Array:
    """Cut the last axis into heads and move the heads in front of the tokens.

    Equation: head r is columns r·d_head … (r+1)·d_head − 1

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

    Examples
    --------
    >>> split_heads([[1, 2, 3, 4], [5, 6, 7, 8]], 2)
    array([[[1, 2],
            [5, 6]],
    <BLANKLINE>
           [[3, 4],
            [7, 8]]])
    """
    n_heads = as_integer("n_heads", n_heads, least=1)
    axes = "x (..., n, n_heads * d_head)"
    _, [x] = fit(axes, x, n_heads=n_heads, keep_dtypes=True)
    *leading, n, d_model = x.shape
    return x.reshape(*leading, n, n_heads, d_model // n_heads).swapaxes(-3, -2)


def merge_heads(heads: ArrayLike) -> Array:
    """Concatenate the heads again; the inverse of `split_heads`.

    Equation: Concat(head_1, …, head_h)

    Parameters
    ----------
    heads : ndarray of shape (..., n_heads, n, d_head)
        One matrix per head.

    Returns
    -------
    x : ndarray of shape (..., n, n_heads * d_head)
        Row ``i`` is token ``i``; head ``r`` fills column block ``r``.

    Examples
    --------
    >>> merge_heads(split_heads([[1, 2, 3, 4], [5, 6, 7, 8]], 2))
    array([[1, 2, 3, 4],
           [5, 6, 7, 8]])
    """
    _, [heads] = fit("heads (..., n_heads, n, d_head)", heads, keep_dtypes=True)
    *leading, n_heads, n, d_head = heads.shape
    return heads.swapaxes(-3, -2).reshape(*leading, n, n_heads * d_head)


@overload
def multi_head_attention(
    X: ArrayLike, W_Q: ArrayLike, W_K: ArrayLike, W_V: ArrayLike, W_O: ArrayLike,
    n_heads: int, mask: Maybe = None, *, X_k: Maybe = None, X_v: Maybe = None,
    b_Q: Maybe = None, b_K: Maybe = None, b_V: Maybe = None, b_O: Maybe = None,
    is_causal: bool = False, return_weights: Literal[False] = False,
) -> Array: ...  # fmt: skip
@overload
def multi_head_attention(
    X: ArrayLike, W_Q: ArrayLike, W_K: ArrayLike, W_V: ArrayLike, W_O: ArrayLike,
    n_heads: int, mask: Maybe = None, *, X_k: Maybe = None, X_v: Maybe = None,
    b_Q: Maybe = None, b_K: Maybe = None, b_V: Maybe = None, b_O: Maybe = None,
    is_causal: bool = False, return_weights: Literal[True],
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def multi_head_attention(
    X: ArrayLike, W_Q: ArrayLike, W_K: ArrayLike, W_V: ArrayLike, W_O: ArrayLike,
    n_heads: int, mask: Maybe = None, *, X_k: Maybe = None, X_v: Maybe = None,
    b_Q: Maybe = None, b_K: Maybe = None, b_V: Maybe = None, b_O: Maybe = None,
    is_causal: bool = False, return_weights: bool,
) -> Array | tuple[Array, Array]: ...  # fmt: skip
def multi_head_attention(
    X: ArrayLike, W_Q: ArrayLike, W_K: ArrayLike, W_V: ArrayLike, W_O: ArrayLike,
    n_heads: int, mask: Maybe = None, *, X_k: Maybe = None, X_v: Maybe = None,
    b_Q: Maybe = None, b_K: Maybe = None, b_V: Maybe = None, b_O: Maybe = None,
    is_causal: bool = False, return_weights: bool = False,
) -> Array | tuple[Array, Array]:  # fmt: skip
    """Let several heads attend, each in its own columns, and mix their outputs.

    Equation: Concat(head_1, …, head_h) W_O with
    head_r = attention(X W_Q[r], X_k W_K[r], X_v W_V[r])

    Parameters
    ----------
    X : ndarray of shape (..., n_q, d_model)
        The tokens that attend: they make the queries.
    W_Q, W_K, W_V : ndarray of shape (d_model, n_heads * d_k), of values n_heads * d_v
        Projections to queries, keys and values; head ``r`` owns column block ``r``.
    W_O : ndarray of shape (n_heads * d_v, d_out)
        Mixes the heads.
    n_heads : int
        Number of heads; must divide the columns of `W_Q`, `W_K` and `W_V`.
    mask : ndarray, optional
        Broadcasts to (..., n_heads, n_q, n_k). bool: True = may attend. float: added
        to the scores. On a batch, write ``mask[:, None]`` for one mask per sequence and
        ``mask[None]`` for one per head.
    X_k, X_v : ndarray of shape (..., n_k, d_model), optional
        The tokens that make the keys and those that make the values; `X_k` is `X` by
        default (self-attention) and `X_v` is `X_k`.
    b_Q, b_K, b_V, b_O : ndarray, optional
        One number per column of the matrix of the same letter.
    is_causal, return_weights : bool, default False
        Let token ``i`` attend to the tokens ``j <= i`` only. Return the weights of
        every head too, never averaged.

    Returns
    -------
    Y : ndarray of shape (..., n_q, d_out)
        The mixed output for every token.
    A : ndarray of shape (..., n_heads, n_q, n_k)
        Only with `return_weights`. Rows sum to 1, with exactly 0 where masked.

    Examples
    --------
    Two heads with identity projections. The keys of the second are equal, so its output
    is the mean of its values.

    >>> X, eye = [[9.0, 2.0], [-9.0, 2.0]], [[1, 0], [0, 1]]
    >>> multi_head_attention(X, eye, eye, eye, eye, n_heads=2).round(3)
    array([[ 9.,  2.],
           [-9.,  2.]])
    """
    n_heads = as_integer("n_heads", n_heads, least=1)
    axes = """X (..., n_q, d_model), X_k or X (..., n_k, d_model of X_k),
        X_v or X_k (..., n_k, d_model of X_v), W_Q (d_model, n_heads * d_k),
        W_K (d_model of X_k, n_heads * d_k), W_V (d_model of X_v, n_heads * d_v),
        W_O (n_heads * d_v, d_out), b_Q (n_heads * d_k,), b_K (n_heads * d_k,),
        b_V (n_heads * d_v,), b_O (d_out,)"""
    dtype, [X, X_k, X_v, W_Q, W_K, W_V, W_O, b_Q, b_K, b_V, b_O] = fit(
        axes, X, X_k, X_v, W_Q, W_K, W_V, W_O, b_Q, b_K, b_V, b_O, n_heads=n_heads
    )
    shape = (*X.shape[:-2], n_heads, X.shape[-2], X_k.shape[-2])
    mask = fit_mask(mask, shape, of_heads=True)

    Q = split_heads(linear(X, W_Q, b_Q), n_heads)
    K = split_heads(linear(X_k, W_K, b_K), n_heads)
    V = split_heads(linear(X_v, W_V, b_V), n_heads)
    heads, A = scaled_dot_product_attention(
        Q, K, V, mask, is_causal=is_causal, return_weights=True
    )
    Y = linear(merge_heads(heads), W_O, b_O)
    return rounded(dtype, (Y, A) if return_weights else Y)
