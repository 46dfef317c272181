"""Attention in PyTorch, step by step and through the fused kernel."""

import math
import numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mha._doors import Array, as_count, as_scale, broadcast_leading, same_last_axis

Mask = Tensor | Array | None
Device = torch.device | str | int | None


@overload
def scaled_dot_product_attention(
    Q: Tensor, K: Tensor, V: Tensor, mask: Mask = ..., *, is_causal: bool = ...,
    scale: float | None = ..., dropout_p: float = ...,
    return_weights: Literal[False] = ...,
) -> Tensor: ...  # fmt: skip
@overload
def scaled_dot_product_attention(
    Q: Tensor, K: Tensor, V: Tensor, mask: Mask = ..., *, is_causal: bool = ...,
    scale: float | None = ..., dropout_p: float = ..., return_weights: Literal[True],
) -> tuple[Tensor, Tensor]: ...  # fmt: skip
@overload
def scaled_dot_product_attention(
    Q: Tensor, K: Tensor, V: Tensor, mask: Mask = ..., *, is_causal: bool = ...,
    scale: float | None = ..., dropout_p: float = ..., return_weights: bool,
) -> Tensor | tuple[Tensor, Tensor]: ...  # fmt: skip
def scaled_dot_product_attention(
    Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None, *, is_causal: bool = False,
    scale: float | None = None, dropout_p: float = 0.0, return_weights: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """Return, for every query, the weighted mean of the values.

    Equation: Y = A V with A = softmax(Q Kᵀ / √d_k)  (chapter attention)

    The work is done by PyTorch's fused kernel, which never holds the n_q × n_k weights.
    Only when you ask for the weights are they built.

    Parameters
    ----------
    Q, K, V : Tensor of shapes (..., n_q, d_k), (..., n_k, d_k) and (..., n_k, d_v)
        As in `mha.scaled_dot_product_attention`. Keys too must be finite where masked.
    mask : Tensor or ndarray, optional
        Broadcasts to (..., n_q, n_k). bool: True = may attend. float: added to the
        scores.
    is_causal, scale, return_weights : optional
        As in `mha.scaled_dot_product_attention`.
    dropout_p : float, default 0.0
        Each weight becomes 0 with this probability, and the others are divided by
        ``1 - dropout_p``. A function has no eval mode: pass 0 to switch it off.

    Returns
    -------
    Y : Tensor of shape (..., n_q, d_v)
        Without dropout each row lies in the convex hull of the value rows; a query
        whose keys are all masked gets zeros, and gradients of zero. Same dtype as the
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
    Q, K, V = _aligned(Q, K, V)
    mask, empty = _whole_mask(mask, is_causal, Q, K)
    is_causal = mask is None and bool(is_causal)
    scale = as_scale(scale, Q.shape[-1])
    dropout_p = as_probability("dropout_p", dropout_p)
    if not return_weights:
        Y = _fused(Q, K, V, mask, is_causal, scale, dropout_p)
        return Y if empty is None else Y.masked_fill(empty, 0)
    dtype = Q.dtype
    if dtype in (torch.float16, torch.bfloat16):
        # A float16 score ends at 65504, and half precision sums lose small shares.
        Q, K, V = Q.float(), K.float(), V.float()
    S = (Q * scale) @ K.mT
    if is_causal:
        mask = _causal_mask(Q, K)
    if mask is not None:
        S = S.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else S + mask
    A = S.softmax(-1)
    if empty is not None:
        A = A.masked_fill(empty, 0)
    Y = F.dropout(A, dropout_p) @ V
    return Y.to(dtype), A.to(dtype)


def _aligned(Q: Tensor, K: Tensor, V: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the three with the same leading axes, in the dtype NumPy would use."""
    named = {"Q": Q, "K": K, "V": V}
    for name, x in named.items():
        check_tensor(name, x)
    dtype = torch.promote_types(torch.promote_types(Q.dtype, K.dtype), V.dtype)
    same_last_axis("Q", Q, "K", K, "d_k")
    leading = _checked_leading(named)
    Q, K, V = (x.to(dtype).expand(*leading, *x.shape[-2:]) for x in (Q, K, V))
    return Q, K, V


def _fused(
    Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None,
    is_causal: bool, scale: float, dropout_p: float,
) -> Tensor:  # fmt: skip
    """Return Y by the fused kernel, which is made for (batch, heads, n, d) only."""
    if scale <= 0:
        # The kernel hides the future before it scales, and 0 · -inf is NaN.
        Q, scale = Q * scale, 1.0
    if mask is not None:
        if Q.ndim > 4 and mask.ndim > 3:
            # Axes that are about to be folded into one batch axis must be there.
            mask = mask.expand(*Q.shape[:-3], *mask.shape[-3:])
        # Any other axis stays 1 wide: a bool mask is written out as numbers first.
        mask = _four_axes(mask)
    Y = F.scaled_dot_product_attention(
        _four_axes(Q), _four_axes(K), _four_axes(V), mask, dropout_p, is_causal,
        scale=scale,
    )  # fmt: skip
    return Y.reshape(*Q.shape[:-1], V.shape[-1])


def _four_axes(x: Tensor) -> Tensor:
    return x[(None,) * (4 - x.ndim)] if x.ndim < 4 else x.flatten(0, -4)


def _causal_mask(Q: Tensor, K: Tensor) -> Tensor:
    allowed = torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool, device=Q.device)
    return allowed.tril()


def _whole_mask(
    mask: Mask, is_causal: bool, Q: Tensor, K: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    """Return `mask` and the causal mask as one, its empty rows open, and those rows.

    softmax has no answer for a row of -inf, and a NaN it gives there would stay in the
    gradients even if the output were overwritten. So the row goes in open, and zeros
    are put in its place afterwards. Alone, `is_causal` stays a flag, because the fused
    kernel then skips the future.
    """
    if mask is None:
        return None, None
    mask = _as_mask(mask, (*Q.shape[:-1], K.shape[-2]), Q)
    if mask.dtype == torch.bool:
        mask = mask & _causal_mask(Q, K) if is_causal else mask
        empty = ~mask.any(-1, keepdim=True)
        return mask | empty, empty
    if is_causal:
        mask = mask.masked_fill(~_causal_mask(Q, K), -torch.inf)
    empty = mask.isneginf().all(-1, keepdim=True)
    return mask.masked_fill(empty, 0), empty


def _as_mask(mask: Tensor | Array, shape: tuple[int, ...], Q: Tensor) -> Tensor:
    """Return `mask` as a tensor that broadcasts to `shape`."""
    if not isinstance(mask, torch.Tensor):
        mask = torch.as_tensor(mask, device=Q.device)  # mha.causal_mask is NumPy
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise TypeError(
            "mask must be bool (True = may attend) or float (added to the scores), "
            f"got dtype {mask.dtype}; write mask.bool() if 1 means may attend"
        )
    try:
        fits = torch.broadcast_shapes(mask.shape, shape) == shape
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} does not broadcast to the shape of the "
            f"scores (..., n_q, n_k) = {shape}"
        )
    if mask.dtype == torch.bool:
        return mask
    if not _holds_no_nan(mask):
        raise ValueError(
            "a float mask must hold finite numbers or -inf, got +inf or NaN"
        )
    return mask.to(Q.dtype)


def _holds_no_nan(mask: Tensor) -> bool:
    """Return False if a float mask holds NaN or +inf, as far as one can look."""
    try:  # what is being compiled or exported has a shape, and no numbers
        return torch.compiler.is_compiling() or bool((mask < torch.inf).all())
    except RuntimeError:  # torch.func.vmap and the device "meta" show none either
        return True


def check_tensor(name: str, x: Tensor, d_model: int | None = None) -> None:
    """Refuse what is no floating-point tensor of shape (..., n, d_model)."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(
            f"{name} must be a torch.Tensor, got {type(x).__name__}; "
            "the functions of the same names in mha take NumPy arrays"
        )
    if not x.is_floating_point():
        raise TypeError(f"{name} must hold floating-point numbers, got {x.dtype}")
    if x.ndim < 2:
        raise ValueError(f"{name} must have shape (..., n, d), got {tuple(x.shape)}")
    if d_model is not None and x.shape[-1] != d_model:
        raise ValueError(
            f"{name} has {x.shape[-1]} columns and d_model is {d_model}; "
            "they must be equal"
        )


def _checked_leading(named: Mapping[str, Tensor]) -> tuple[int, ...]:
    """Return the common leading shape; `named` holds queries, keys and values."""
    _, (name_K, K), (name_V, V) = named.items()
    # PyTorch 2.13's kernel for the CPU would read memory behind the last key.
    if K.shape[-2] != V.shape[-2]:
        raise ValueError(
            f"{name_K} and {name_V} must have the same length n_k, "
            f"got {K.shape[-2]} and {V.shape[-2]}"
        )
    # NumPy would turn an axis that torch.export leaves open into a number.
    return broadcast_leading(named, torch.broadcast_shapes)


def as_probability(name: str, p: float) -> float:
    """Return `p` as a float from 0 up to, and without, 1."""
    if isinstance(p, bool) or not isinstance(p, numbers.Real):
        raise TypeError(f"{name} must be a number, got {p!r}")
    if not 0 <= p < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {p}")
    return float(p)


def _refuse_three_axes(mask: Mask, shape: tuple[int, ...]) -> None:
    """Refuse a mask for each sequence that would be read as one for each head."""
    given = () if mask is None else tuple(torch.as_tensor(mask).shape)
    if len(given) == 3 < len(shape) and given[0] > 1:
        raise ValueError(
            f"mask of shape {given} has 3 axes, and the scores have {len(shape)}: "
            f"{shape} = (..., n_heads, n_q, n_k); write mask[:, None] for one mask per "
            "sequence, mask[None] for one per head"
        )


def as_ndarray(parameter: Tensor) -> Array:
    """Return a copy of a parameter as it stands on the right of X."""
    if parameter.dtype == torch.bfloat16:
        parameter = parameter.float()
    return parameter.detach().cpu().numpy().T.copy()


class MultiHeadAttention(nn.Module):
    """Let every token look at the others through several heads, with weights to train.

    Equation: Y = Concat(head_1, …, head_h) W_O with
    head_r = Attention(X W_Q[r], X_k W_K[r], X_v W_V[r])  (chapter multi_head)

    The weights start as those of `torch.nn.MultiheadAttention`, see `reset_parameters`.

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
    W_Q, W_K, W_V : torch.nn.Linear
        The projections to queries, keys and values. PyTorch stores a matrix as (out,
        in) and multiplies by its transpose, so head ``r`` owns *row* block ``r`` of
        ``W_Q.weight``.
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
        self, d_model: int, n_heads: int, *, bias: bool = True, dropout: float = 0.0,
        device: Device = None, dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.d_model = d_model = as_count("d_model", d_model)
        self.n_heads = n_heads = as_count("n_heads", n_heads)
        if d_model % n_heads:
            raise ValueError(
                f"d_model ({d_model}) must be divisible by n_heads ({n_heads})"
            )
        self.dropout = as_probability("dropout", dropout)
        device = torch.get_default_device() if device is None else device
        # skip_init draws no random numbers: reset_parameters is the one that draws.
        self.W_Q, self.W_K, self.W_V, self.W_O = (
            nn.utils.skip_init(
                nn.Linear, d_model, d_model, bias=bias, device=device, dtype=dtype
            )
            for _ in range(4)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights, as `torch.nn.MultiheadAttention` draws its own.

        Equation: W_Q, W_K, W_V uniform within ±√(6 / (d_model + 3 d_model)),
        W_O within ±1/√d_model, biases 0  (chapter multi_head)

        PyTorch keeps the three projections in one matrix with 3 d_model rows, and
        Xavier's rule counts all of them: a projection on its own would start √2 times
        as large. W_O has the default of `torch.nn.Linear`. On a CPU, after the same
        `torch.manual_seed`, both layers start with the same numbers.

        Examples
        --------
        >>> layer = MultiHeadAttention(6, 2)
        >>> layer.reset_parameters()
        >>> bool(layer.W_Q.weight.abs().max() <= 0.5), layer.W_O.bias.any().item()
        (True, False)
        """
        self.W_O.reset_parameters()
        bound = math.sqrt(6 / (self.d_model + 3 * self.d_model))
        for W in (self.W_Q, self.W_K, self.W_V):
            nn.init.uniform_(W.weight, -bound, bound)
        for W in (self.W_Q, self.W_K, self.W_V, self.W_O):
            if W.bias is not None:
                nn.init.zeros_(W.bias)

    @overload
    def forward(
        self, query: Tensor, key: Tensor | None = ..., value: Tensor | None = ...,
        mask: Mask = ..., *, is_causal: bool = ...,
        return_weights: Literal[False] = ...,
    ) -> Tensor: ...  # fmt: skip
    @overload
    def forward(
        self, query: Tensor, key: Tensor | None = ..., value: Tensor | None = ...,
        mask: Mask = ..., *, is_causal: bool = ..., return_weights: Literal[True],
    ) -> tuple[Tensor, Tensor]: ...  # fmt: skip
    @overload
    def forward(
        self, query: Tensor, key: Tensor | None = ..., value: Tensor | None = ...,
        mask: Mask = ..., *, is_causal: bool = ..., return_weights: bool,
    ) -> Tensor | tuple[Tensor, Tensor]: ...  # fmt: skip
    def forward(
        self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None,
        mask: Mask = None, *, is_causal: bool = False, return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
        """Return the mixed answer for every token of `query`.

        Parameters
        ----------
        query : Tensor of shape (..., n_q, d_model)
            The tokens that ask.
        key, value : Tensor of shape (..., n_k, d_model), optional
            The tokens that are asked and the tokens that answer; `key` is `query` by
            default (self-attention) and `value` is `key`.
        mask : Tensor or ndarray, optional
            Broadcasts to (..., n_heads, n_q, n_k). bool: True = may attend. float:
            added to the scores. For a batch write ``mask[:, None]`` to give each
            sequence its own and ``mask[None]`` to give each head its own.
        is_causal : bool, default False
            Token ``i`` sees the tokens ``j <= i`` only; `mask` still applies.
        return_weights : bool, default False
            Return the weights of every head too, never averaged.

        Returns
        -------
        Y : Tensor of shape (..., n_q, d_model)
            For a token whose keys are all masked, the heads give zeros and `Y` is the
            bias of W_O.
        A : Tensor of shape (..., n_heads, n_q, n_k)
            Only with `return_weights`, as in `scaled_dot_product_attention`.

        Raises
        ------
        ValueError, TypeError
            For the reasons of `scaled_dot_product_attention`, and if `mask` has three
            axes and the tokens are a batch.

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
        named = {"query": query, "key": key, "value": value}
        for name, x in named.items():
            check_tensor(name, x, self.d_model)
        leading = _checked_leading(named)
        Q = self._split_heads(self.W_Q(query))
        K = self._split_heads(self.W_K(key))
        V = self._split_heads(self.W_V(value))
        _refuse_three_axes(mask, (*leading, *Q.shape[-3:-1], K.shape[-2]))
        answer: Any = scaled_dot_product_attention(
            Q, K, V, mask, is_causal=is_causal, return_weights=return_weights,
            dropout_p=self.dropout if self.training else 0.0,
        )  # fmt: skip
        heads = answer[0] if return_weights else answer
        Y = self.W_O(heads.transpose(-3, -2).flatten(-2))
        return (Y, answer[1]) if return_weights else Y

    if TYPE_CHECKING:
        __call__ = forward

    def numpy_weights(self) -> dict[str, Array]:
        """Return the parameters as arrays for `mha.multi_head_attention`.

        Equation: W_Q = ``W_Q.weight.T``, and so on  (chapter multi_head)

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

    def extra_repr(self) -> str:
        """Return the line that ``print(layer)`` shows above the four projections."""
        return f"d_model={self.d_model}, n_heads={self.n_heads}, dropout={self.dropout}"

    def _split_heads(self, x: Tensor) -> Tensor:
        # -1 is n_heads, or this machine's share of them where machines share the heads.
        d_head = self.d_model // self.n_heads
        return x.unflatten(-1, (-1, d_head)).transpose(-3, -2)
