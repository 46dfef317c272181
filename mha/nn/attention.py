"""Attention in PyTorch, step by step and through the fused kernel. Chapter 9."""

import numbers

import torch
import torch.nn.functional as F
from torch import nn

from mha._arrays import as_count, as_scale, broadcast_leading, same_last_axis


def scaled_dot_product_attention(
    Q,
    K,
    V,
    mask=None,
    *,
    is_causal=False,
    scale=None,
    dropout_p=0.0,
    return_weights=False,
):
    """Return, for every query, the weighted mean of the values.

    Equation: Y = A V with A = softmax(Q Kᵀ / √d_k)  (chapter 5)

    The work is done by PyTorch's fused kernel, which never holds the n_q × n_k weights.
    Only when you ask for the weights are they built.

    Parameters
    ----------
    Q : Tensor of shape (..., n_q, d_k)
        Queries.
    K : Tensor of shape (..., n_k, d_k)
        Keys. Keys and values must be finite even where masked.
    V : Tensor of shape (..., n_k, d_v)
        Values, one for each key.
    mask : Tensor or ndarray, optional
        Broadcasts to (..., n_q, n_k). bool: True = may look. float: added to the
        scores.
    is_causal : bool, default False
        Query ``i`` sees the keys ``j <= i`` only; `mask` still applies.
    scale : float, optional
        Factor on the scores, 1/√d_k by default.
    dropout_p : float, default 0.0
        Each weight becomes 0 with this probability, and the others are divided by
        ``1 - dropout_p``. A function has no eval mode: pass 0 to switch it off.
    return_weights : bool, default False
        Return the weights too.

    Returns
    -------
    Y : Tensor of shape (..., n_q, d_v)
        Without dropout each row lies in the convex hull of the value rows; a query
        that may look at nothing gets zeros, and gradients of zero. Same dtype as the
        inputs; float16 and bfloat16 are summed in float32.
    A : Tensor of shape (..., n_q, n_k)
        Only with `return_weights`. Rows sum to 1; exactly 0 where masked. These are
        the weights before dropout, while `Y` was made with the dropped ones.

    Raises
    ------
    ValueError
        If shapes do not fit, with both numbers; if a float mask holds NaN or +inf
        (inside torch.compile, export and vmap there are no numbers to look at).
    TypeError
        If an argument is no floating-point tensor, or `mask` holds integers.

    References
    ----------
    Vaswani et al. 2017, *Attention is all you need*, section 3.2.1.

    Examples
    --------
    The query scores ln 3 with the first key and 0 with the second, so it takes three
    quarters of the first value and one quarter of the second.

    >>> Q, K = torch.tensor([[3.0]]).log(), torch.tensor([[1.0], [0.0]])
    >>> V = torch.tensor([[8.0, 0.0], [0.0, 4.0]])
    >>> scaled_dot_product_attention(Q, K, V)
    tensor([[6.0000, 1.0000]])
    """
    Q, K, V = _same_dtype(Q, K, V)
    same_last_axis("Q", Q, "K", K, "d_k")
    leading = _checked_leading({"Q": Q, "K": K, "V": V})
    Q, K, V = (x.expand(*leading, *x.shape[-2:]) for x in (Q, K, V))
    shape = (*leading, Q.shape[-2], K.shape[-2])
    mask, empty = _open_empty_rows(_whole_mask(mask, is_causal, shape, Q))
    options = {
        "is_causal": mask is None and bool(is_causal),
        "scale": as_scale(scale, Q.shape[-1]),
        "dropout_p": as_probability("dropout_p", dropout_p),
    }
    if return_weights:
        return _attend_with_weights(Q, K, V, mask, empty, **options)
    Y = _attend(Q, K, V, mask, **options)
    return Y if empty is None else Y.masked_fill(empty, 0)


def _attend(Q, K, V, mask, *, is_causal, scale, dropout_p):
    """Return Y by the fused kernel, which is made for (batch, heads, n, d) only."""
    if scale <= 0:
        # The kernel hides the future before it scales, and 0 · -inf is NaN.
        Q, scale = Q * scale, 1.0
    if mask is not None and Q.ndim > 4 and mask.ndim > 3:
        # Axes that are about to be folded into one batch axis must be there.
        mask = mask.expand(*Q.shape[:-3], *mask.shape[-3:])
    Y = F.scaled_dot_product_attention(
        *map(_four_axes, (Q, K, V)),
        # Any other axis stays 1 wide: a bool mask is written out as numbers first.
        attn_mask=None if mask is None else _four_axes(mask),
        dropout_p=dropout_p,
        is_causal=is_causal,
        scale=scale,
    )
    return Y.reshape(*Q.shape[:-1], V.shape[-1])


def _four_axes(x):
    return x[(None,) * (4 - x.ndim)] if x.ndim < 4 else x.flatten(0, -4)


def _attend_with_weights(Q, K, V, mask, empty, *, is_causal, scale, dropout_p):
    """Return Y and the weights, step by step; chapter 5 in PyTorch."""
    dtype = Q.dtype
    if dtype in (torch.float16, torch.bfloat16):
        # A float16 score ends at 65504, and half precision sums lose small shares.
        Q, K, V = Q.float(), K.float(), V.float()
    S = (Q * scale) @ K.mT
    if is_causal:
        mask = _causal_mask(*S.shape[-2:], S.device)
    if mask is not None:
        S = S.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else S + mask
    A = S.softmax(-1)
    if empty is not None:
        A = A.masked_fill(empty, 0)
    Y = F.dropout(A, dropout_p) @ V
    return Y.to(dtype), A.to(dtype)


def _whole_mask(mask, is_causal, shape, Q):
    """Return `mask` and the causal mask as one tensor; None where none must be built.

    Alone, `is_causal` stays a flag, because the fused kernel then skips the future.
    """
    if mask is None:
        return None
    mask = _as_mask(mask, shape, Q)
    if not is_causal:
        return mask
    causal = _causal_mask(*shape[-2:], mask.device)
    if mask.dtype == torch.bool:
        return mask & causal
    return mask.masked_fill(~causal, -torch.inf)


def _causal_mask(n_q, n_k, device):
    return torch.ones(n_q, n_k, dtype=torch.bool, device=device).tril()


def _open_empty_rows(mask):
    """Return `mask` with its empty rows open, and where those rows are.

    softmax has no answer for a row of -inf, and a NaN it gives there would stay in the
    gradients even if the output were overwritten. So the row goes in open, and zeros
    are put in its place afterwards.
    """
    if mask is None:
        return None, None
    if mask.dtype == torch.bool:
        empty = ~mask.any(-1, keepdim=True)
        return mask | empty, empty
    empty = mask.isneginf().all(-1, keepdim=True)
    return mask.masked_fill(empty, 0), empty


def _as_mask(mask, shape, Q):
    """Return `mask` as a tensor that broadcasts to `shape`."""
    if not isinstance(mask, torch.Tensor):
        mask = torch.as_tensor(mask, device=Q.device)  # mha.causal_mask is NumPy
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise TypeError(
            "mask must be bool (True = may look) or float (added to the scores), "
            f"got dtype {mask.dtype}; write mask.bool() if 1 means may look"
        )
    if not _broadcasts(mask.shape, shape):
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} does not broadcast to the shape of the "
            f"scores (..., n_q, n_k) = {shape}"
        )
    if mask.is_floating_point():
        if not _holds_no_nan(mask):
            raise ValueError(
                "a float mask must hold finite numbers or -inf, got +inf or NaN"
            )
        mask = mask.to(Q.dtype)
    return mask


def _holds_no_nan(mask):
    """Return False if a float mask holds NaN or +inf, as far as one can look."""
    if torch.compiler.is_compiling():
        return True  # what is being compiled or exported has a shape, and no numbers
    try:
        return bool((mask < torch.inf).all())
    except RuntimeError:  # torch.func.vmap and the device "meta" show none either
        return True


def _broadcasts(shape, target):
    try:
        return torch.broadcast_shapes(shape, target) == target
    except RuntimeError:
        return False


def _same_dtype(Q, K, V):
    """Return the three in the dtype that NumPy would compute in."""
    for name, x in {"Q": Q, "K": K, "V": V}.items():
        check_tensor(name, x)
    dtype = torch.promote_types(torch.promote_types(Q.dtype, K.dtype), V.dtype)
    return Q.to(dtype), K.to(dtype), V.to(dtype)


def check_tensor(name, x):
    """Refuse what is no floating-point tensor of shape (..., n, d)."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(
            f"{name} must be a torch.Tensor, got {type(x).__name__}; "
            "the functions of the same names in mha take NumPy arrays"
        )
    if not x.is_floating_point():
        raise TypeError(f"{name} must hold floating-point numbers, got {x.dtype}")
    if x.ndim < 2:
        raise ValueError(f"{name} must have shape (..., n, d), got {tuple(x.shape)}")


def _checked_leading(named):
    """Return the common leading shape; `named` holds queries, keys and values.

    PyTorch 2.13's kernel for the CPU does not look: with fewer keys than values it
    reads memory behind the last key.
    """
    _, (name_K, K), (name_V, V) = named.items()
    if K.shape[-2] != V.shape[-2]:
        raise ValueError(
            f"{name_K} and {name_V} must have the same length n_k, "
            f"got {K.shape[-2]} and {V.shape[-2]}"
        )
    # NumPy would turn an axis that torch.export leaves open into a number.
    return broadcast_leading(named, torch.broadcast_shapes)


def as_probability(name, p):
    """Return `p` as a float from 0 up to, and without, 1."""
    if isinstance(p, bool) or not isinstance(p, numbers.Real):
        raise TypeError(f"{name} must be a number, got {p!r}")
    if not 0 <= p < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {p}")
    return float(p)


def check_tokens(name, x, d_model):
    """Refuse what is no tensor of rows of this width."""
    check_tensor(name, x)
    if x.shape[-1] != d_model:
        raise ValueError(
            f"{name} has {x.shape[-1]} columns and d_model is {d_model}; "
            "they must be equal"
        )


def as_ndarray(parameter):
    """Return a copy of a parameter as it stands on the right of X."""
    if parameter.dtype == torch.bfloat16:
        parameter = parameter.float()
    return parameter.detach().cpu().numpy().T.copy()


class MultiHeadAttention(nn.Module):
    """Let every token look at the others through several heads, with weights to train.

    Equation: Y = Concat(head_1, …, head_h) W_O with
    head_r = Attention(X W_Q[r], X_k W_K[r], X_v W_V[r])  (chapter 9)

    Parameters
    ----------
    d_model : int
        Width of the tokens.
    n_heads : int
        Must divide d_model; every head is ``d_model / n_heads`` wide.
    bias : bool, default True
        Give the four projections a bias.
    dropout : float, default 0.0
        Probability with which a weight is dropped in train mode, see
        `scaled_dot_product_attention`.
    device, dtype : optional
        Where and how the parameters are stored, as for every layer of PyTorch.

    Attributes
    ----------
    W_Q : torch.nn.Linear
        The projection to queries. PyTorch stores a matrix as (out, in) and multiplies
        by its transpose, so head ``r`` owns *row* block ``r`` of ``W_Q.weight``.
    W_K : torch.nn.Linear
        The projection to keys.
    W_V : torch.nn.Linear
        The projection to values.
    W_O : torch.nn.Linear
        The mix of the heads.

    Raises
    ------
    ValueError
        If `n_heads` does not divide `d_model`, or `dropout` lies outside [0, 1).
    TypeError
        If a count is not an integer or `dropout` not a number.

    Examples
    --------
    The number of heads changes what is computed and leaves the parameters as many:

    >>> [sum(p.numel() for p in MultiHeadAttention(8, h).parameters()) for h in (1, 4)]
    [288, 288]
    """

    def __init__(
        self, d_model, n_heads, *, bias=True, dropout=0.0, device=None, dtype=None
    ):
        super().__init__()
        self.d_model = d_model = as_count("d_model", d_model)
        self.n_heads = n_heads = as_count("n_heads", n_heads)
        if d_model % n_heads:
            raise ValueError(
                f"d_model ({d_model}) must be divisible by n_heads ({n_heads})"
            )
        self.dropout = as_probability("dropout", dropout)
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.W_Q = nn.Linear(d_model, d_model, **options)
        self.W_K = nn.Linear(d_model, d_model, **options)
        self.W_V = nn.Linear(d_model, d_model, **options)
        self.W_O = nn.Linear(d_model, d_model, **options)

    def forward(
        self,
        query,
        key=None,
        value=None,
        mask=None,
        *,
        is_causal=False,
        return_weights=False,
    ):
        """Return the mixed answer for every token of `query`.

        Parameters
        ----------
        query : Tensor of shape (..., n_q, d_model)
            The tokens that ask.
        key, value : Tensor of shape (..., n_k, d_model), optional
            The tokens that are asked and the tokens that answer; `key` is `query` by
            default (self-attention) and `value` is `key`.
        mask : Tensor or ndarray, optional
            Broadcasts to (..., n_heads, n_q, n_k). bool: True = may look. float: added
            to the scores.
        is_causal : bool, default False
            Token ``i`` sees the tokens ``j <= i`` only; `mask` still applies.
        return_weights : bool, default False
            Return the weights of every head too, never averaged.

        Returns
        -------
        Y : Tensor of shape (..., n_q, d_model)
            For a token that may look at nothing, the heads give zeros and `Y` is the
            bias of W_O.
        A : Tensor of shape (..., n_heads, n_q, n_k)
            Only with `return_weights`. Rows sum to 1; exactly 0 where masked. In train
            mode these are the weights before dropout.

        Raises
        ------
        ValueError
            If shapes do not fit; if a float mask holds NaN or +inf.
        TypeError
            If an argument is no floating-point tensor, or `mask` holds integers.

        Examples
        --------
        Two heads with identity projections; the second sees equal keys and takes the
        mean.

        >>> layer = MultiHeadAttention(2, 2, bias=False)
        >>> _ = layer.load_state_dict(dict.fromkeys(layer.state_dict(), torch.eye(2)))
        >>> layer(torch.tensor([[9.0, 2.0], [-9.0, 2.0]])).detach()
        tensor([[ 9.,  2.],
                [-9.,  2.]])
        """
        key = query if key is None else key
        value = key if value is None else value
        self._check({"query": query, "key": key, "value": value})
        attended = scaled_dot_product_attention(
            self._split_heads(self.W_Q(query)),
            self._split_heads(self.W_K(key)),
            self._split_heads(self.W_V(value)),
            mask,
            is_causal=is_causal,
            dropout_p=self.dropout if self.training else 0.0,
            return_weights=return_weights,
        )
        heads, *A = attended if return_weights else (attended,)
        Y = self.W_O(heads.transpose(-3, -2).flatten(-2))
        return (Y, *A) if return_weights else Y

    def numpy_weights(self):
        """Return the parameters as arrays for `mha.multi_head_attention`.

        Equation: W_Q = ``W_Q.weight.T``, and so on  (chapter 9)

        Returns
        -------
        weights : dict of ndarray
            ``W_Q``, ``W_K``, ``W_V`` and ``W_O`` of shape (d_model, d_model), turned to
            stand on the right of X; with biases also ``b_Q``, ``b_K``, ``b_V`` and
            ``b_O``. Copies: training on does not change them. bfloat16, which NumPy
            does not know, comes as float32.

        Examples
        --------
        >>> from mha import multi_head_attention
        >>> layer, X = MultiHeadAttention(6, 2), torch.ones(3, 6)
        >>> Y = multi_head_attention(X.numpy(), n_heads=2, **layer.numpy_weights())
        >>> torch.allclose(layer(X), torch.from_numpy(Y), atol=1e-6)
        True
        """
        weights = {}
        for name, parameter in self.named_parameters():
            letter, kind = name.removeprefix("W_").split(".")
            key = f"W_{letter}" if kind == "weight" else f"b_{letter}"
            weights[key] = as_ndarray(parameter)
        return weights

    def extra_repr(self):
        """Return the line that ``print(layer)`` shows above the four projections."""
        return f"d_model={self.d_model}, n_heads={self.n_heads}, dropout={self.dropout}"

    def _split_heads(self, x):
        # -1 is n_heads, or this machine's share of them where machines share the heads.
        d_head = self.d_model // self.n_heads
        return x.unflatten(-1, (-1, d_head)).transpose(-3, -2)

    def _check(self, named):
        for name, x in named.items():
            check_tokens(name, x, self.d_model)
        _checked_leading(named)
