"""The same steps as PyTorch layers, ready to train.

Names, arguments, refusals and the meaning of a mask are those of the NumPy functions:
True means *may attend*.
"""

import math
import re
from copy import deepcopy
from functools import partial
from typing import Any, Literal, overload

from mha import _checks as checks
from mha.layers import add_and_norm

try:
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn
except ModuleNotFoundError as error:
    text = f'mha.nn needs torch ({error}): pip install "torch>=2.6"'
    raise ModuleNotFoundError(text, name=error.name) from error

__all__ = [
    "Encoder", "EncoderLayer", "MultiHeadAttention", "from_torch",
    "scaled_dot_product_attention", "to_torch",
]  # fmt: skip

Mask = Tensor | checks.Array | None
ACTIVATIONS = {"relu": torch.relu, "gelu": F.gelu}


@overload
def scaled_dot_product_attention(
    Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None, *, is_causal: bool = False,
    scale: float | None = None, dropout_p: float = 0.0,
    return_weights: Literal[False] = False,
) -> Tensor: ...  # fmt: skip
@overload
def scaled_dot_product_attention(
    Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None, *, is_causal: bool = False,
    scale: float | None = None, dropout_p: float = 0.0,
    return_weights: Literal[True],
) -> tuple[Tensor, Tensor]: ...  # fmt: skip
@overload
def scaled_dot_product_attention(
    Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None, *, is_causal: bool = False,
    scale: float | None = None, dropout_p: float = 0.0,
    return_weights: bool,
) -> Tensor | tuple[Tensor, Tensor]: ...  # fmt: skip
def scaled_dot_product_attention(
    Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None, *, is_causal: bool = False,
    scale: float | None = None, dropout_p: float = 0.0, return_weights: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """Return, for every query, the weighted mean of the values.

    Equation: Y = A V with A = softmax(Q Kᵀ / √d_k)

    PyTorch's fused kernel does the work; the weights are built only when asked for.

    Parameters
    ----------
    Q, K, V : Tensor of shapes (..., n_q, d_k), (..., n_k, d_k) and (..., n_k, d_v)
        Queries, keys and values. Keys too must be finite where masked.
    mask, is_causal, scale, return_weights : optional
        As in `mha.scaled_dot_product_attention`; `mask` is a tensor or an array. Inside
        torch.compile, export and vmap its numbers cannot be checked.
    dropout_p : float, default 0.0
        Each weight becomes 0 with this probability, and the others are divided by
        ``1 - dropout_p``. A function has no eval mode: pass 0 to switch it off.

    Returns
    -------
    Y : Tensor of shape (..., n_q, d_v)
        Zeros, and gradients of zero, for a query whose keys are all masked. Half
        precision is summed in float32.
    A : Tensor of shape (..., n_q, n_k)
        Only with `return_weights`: the weights before dropout, 0 where masked.

    Examples
    --------
    >>> Q, K = torch.tensor([[3.0]]).log(), torch.tensor([[1.0], [0.0]])
    >>> scaled_dot_product_attention(Q, K, torch.tensor([[8.0, 0.0], [0.0, 4.0]]))
    tensor([[6.0000, 1.0000]])
    """
    leading = _leading({"Q": Q, "K": K, "V": V})
    if (d_q := Q.shape[-1]) != (d_k := K.shape[-1]):
        raise ValueError(
            f"Q and K must have the same last axis d_k, got {d_q} and {d_k}"
        )
    dtype = torch.promote_types(torch.promote_types(Q.dtype, K.dtype), V.dtype)
    Q, K, V = (x.to(dtype).expand(*leading, *x.shape[-2:]) for x in (Q, K, V))
    default = 1 / math.sqrt(max(Q.shape[-1], 1))
    scale = default if scale is None else checks.as_float("scale", scale)
    dropout_p = checks.as_float("dropout_p", dropout_p, least=0, below=1)
    bias = empty = None
    if mask is not None or (is_causal and return_weights):
        bias, empty = _whole_mask(mask, is_causal, Q, K)
    if not return_weights:
        Y = _fused(Q, K, V, bias, is_causal and bias is None, scale, dropout_p)
        return Y if empty is None else Y.masked_fill(empty, 0)
    if dtype in (torch.float16, torch.bfloat16):
        # A float16 score ends at 65504, and half precision sums lose small shares.
        Q, K, V = Q.float(), K.float(), V.float()
    S = (Q * scale) @ K.mT
    A = (S if bias is None else S + bias).softmax(-1)
    A = A if empty is None else A.masked_fill(empty, 0)
    return (F.dropout(A, dropout_p) @ V).to(dtype), A.to(dtype)


def _fused(
    Q: Tensor, K: Tensor, V: Tensor, bias: Tensor | None,
    is_causal: bool, scale: float, dropout_p: float,
) -> Tensor:  # fmt: skip
    """Return Y by the fused kernel, which is made for (batch, heads, n, d)."""
    if scale <= 0:
        # The kernel hides the future before it scales, and 0 · -inf is NaN.
        Q, scale = Q * scale, 1.0
    bias = bias if bias is None else torch.atleast_2d(bias)
    new = (None,) * (4 - Q.ndim)  # none if there are more axes
    Y = F.scaled_dot_product_attention(
        Q[new], K[new], V[new], bias, dropout_p, bool(is_causal), scale=scale
    )
    return Y.reshape(*Q.shape[:-1], V.shape[-1])


def _whole_mask(
    mask: Mask, is_causal: bool, Q: Tensor, K: Tensor
) -> tuple[Tensor, Tensor]:
    """Return what is added to the scores, with its empty rows open, and those rows.

    softmax has no answer for a row of -inf, and a NaN it gives there would stay in the
    gradients even if the output were overwritten. So the row goes in open, and zeros
    are put in its place afterwards.
    """
    shape = (*Q.shape[:-1], K.shape[-2])
    bias = Q.new_zeros(1, 1) if mask is None else _as_bias(mask, shape, Q)
    if is_causal:
        allowed = torch.ones(shape[-2:], dtype=torch.bool, device=Q.device).tril()
        bias = bias.masked_fill(~allowed, -torch.inf)
    empty = bias.isneginf().all(-1, keepdim=True)
    return bias.masked_fill(empty, 0), empty


def _as_bias(mask: Tensor | checks.Array, shape: tuple[int, ...], Q: Tensor) -> Tensor:
    """Return `mask`, which must broadcast to `shape`, as numbers to add to scores."""
    mask = torch.as_tensor(mask, device=Q.device)  # mha.causal_mask is NumPy
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise TypeError(
            "mask must be bool (True = may attend) or float (added to the scores), "
            f"got dtype {mask.dtype}; write mask.bool() if 1 means may attend"
        )
    checks.fit_mask_shape(mask.shape, shape)
    if mask.dtype == torch.bool:
        return Q.new_zeros(mask.shape).masked_fill(~mask, -torch.inf)
    try:  # what is being compiled or exported has a shape, and no numbers
        finite = torch.compiler.is_compiling() or bool((mask < torch.inf).all())
    except RuntimeError:  # torch.func.vmap and the device "meta" show none either
        finite = True
    if not finite:
        raise ValueError(checks.NOT_FINITE)
    return mask.to(Q.dtype)


def _check(name: str, x: Tensor, d_model: int | None = None) -> None:
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


def _leading(named: dict[str, Tensor], d_model: int | None = None) -> tuple[int, ...]:
    """Return the common leading shape; `named` holds queries, keys and values."""
    for name, x in named.items():
        _check(name, x, d_model)
    _, (name_K, K), (name_V, V) = named.items()
    # PyTorch 2.13's kernel for the CPU would read memory behind the last key.
    if K.shape[-2] != V.shape[-2]:
        raise ValueError(
            f"{name_K} and {name_V} must have the same length n_k, "
            f"got {K.shape[-2]} and {V.shape[-2]}"
        )
    # NumPy would turn an axis that torch.export leaves open into a number.
    shapes = {name: x.shape for name, x in named.items()}
    return checks.broadcast_leading(shapes, torch.broadcast_shapes)


def _as_ndarray(parameter: Tensor) -> checks.Array:
    """Return a copy of a parameter as it stands on the right of X."""
    if parameter.dtype == torch.bfloat16:  # which NumPy does not know
        parameter = parameter.float()
    return parameter.detach().cpu().numpy().T.copy()


class _Layer(nn.Module):
    def numpy_weights(self) -> dict[str, checks.Array]:
        """Return copies of the parameters by the names of the NumPy step."""
        steps = {"W.weight": "W", "W.bias": "b", "norm.weight": "gain"}
        weights = {}
        for name, parameter in self.named_parameters():
            *_, part, kind = name.split(".")  # such as attention.W_Q.bias
            of, end = part.split("_")
            ours = steps.get(f"{of}.{kind}", "bias")
            weights[f"{ours}_{end}"] = _as_ndarray(parameter)
        return weights


class MultiHeadAttention(_Layer):
    """Let every token look at the others through several heads, with weights to train.

    Equation: that of `mha.multi_head_attention`

    Its parts `W_Q`, `W_K`, `W_V` and `W_O` are `torch.nn.Linear`, which stores a matrix
    as (out, in), so head ``r`` owns *row* block ``r`` of ``W_Q.weight``.

    Parameters
    ----------
    d_model, n_heads : int
        Width of the tokens, and the number of heads, which must divide it.
    bias : bool, default True
        Give the four projections a bias.
    dropout : float, default 0.0
        Probability with which a weight is dropped in train mode.
    device, dtype : optional
        Where and how the parameters are stored, as for every layer of PyTorch.

    Examples
    --------
    The number of heads changes what is computed and leaves the parameters as many:

    >>> [sum(p.numel() for p in MultiHeadAttention(8, h).parameters()) for h in (1, 4)]
    [288, 288]
    """

    def __init__(
        self, d_model: int, n_heads: int, *, bias: bool = True, dropout: float = 0.0,
        device: Any = None, dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.d_model = d_model = checks.as_integer("d_model", d_model, least=1)
        self.n_heads = n_heads = checks.as_integer("n_heads", n_heads, least=1)
        if d_model % n_heads:
            raise ValueError(
                f"d_model ({d_model}) must be divisible by n_heads ({n_heads})"
            )
        self.dropout = checks.as_float("dropout", dropout, least=0, below=1)
        device = torch.get_default_device() if device is None else device
        # skip_init draws no random numbers: reset_parameters is the one that draws.
        linear = partial(nn.utils.skip_init, nn.Linear, device=device, dtype=dtype)
        self.W_Q, self.W_K, self.W_V, self.W_O = (
            linear(d_model, d_model, bias=bias) for _ in range(4)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights, as `torch.nn.MultiheadAttention` draws its own."""
        W, bias = self.W_O.weight, self.W_O.bias is not None
        kind: dict[str, Any] = {"bias": bias, "device": W.device, "dtype": W.dtype}
        theirs = nn.MultiheadAttention(self.d_model, self.n_heads, **kind)
        self.load_state_dict(_in_ours(theirs.state_dict()))

    def forward(
        self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None,
        mask: Mask = None, *, is_causal: bool = False, return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
        """Return the mixed answer for every token of `query`, of the same shape.

        `key` is `query` by default, and `value` is `key`. The other arguments, the
        weights that are returned and the errors are those of `mha.multi_head_attention`
        with tensors of shapes (..., n_q, d_model) and (..., n_k, d_model). A token
        whose keys are all masked gets the bias of W_O.
        """
        key = query if key is None else key
        value = key if value is None else value
        named = {"query": query, "key": key, "value": value}
        leading = _leading(named, self.d_model)
        Q = self._split_heads(self.W_Q(query))
        K = self._split_heads(self.W_K(key))
        V = self._split_heads(self.W_V(value))
        if mask is not None:
            mask = torch.as_tensor(mask)
            shape = (*leading, *Q.shape[-3:-1], K.shape[-2])
            checks.fit_mask_shape(mask.shape, shape, of_heads=True)
        answer = scaled_dot_product_attention(
            Q, K, V, mask, is_causal=is_causal, return_weights=return_weights,
            dropout_p=self.dropout if self.training else 0.0,
        )  # fmt: skip
        heads, *A = answer if isinstance(answer, tuple) else (answer,)
        Y = self.W_O(heads.transpose(-3, -2).flatten(-2))
        return (Y, *A) if return_weights else Y

    def extra_repr(self) -> str:
        """Return what ``print(layer)`` shows above the projections."""
        return f"d_model={self.d_model}, n_heads={self.n_heads}, dropout={self.dropout}"

    def _split_heads(self, x: Tensor) -> Tensor:
        # -1 is n_heads, or this machine's share of them where machines share the heads.
        d_head = self.d_model // self.n_heads
        return x.unflatten(-1, (-1, d_head)).transpose(-3, -2)


class EncoderLayer(_Layer):
    """Let the tokens look at each other, then let each think alone, and train both.

    Equation: that of `mha.encoder_layer`

    Its parts are `attention`, a MultiHeadAttention, `W_1` and `W_2`, linear layers out
    to d_ff and back, and `norm_1` and `norm_2`, the norms of the two parts.

    Parameters
    ----------
    d_model, n_heads, d_ff : int
        Width of the tokens, number of heads, width of the hidden layer.
    dropout : float, default 0.0
        Probability with which a number becomes 0 in train mode: a weight of attention,
        an output of either part, or a hidden feature of feed-forward.
    activation, norm_first, eps : optional
        As in `mha.encoder_layer`.
    bias, device, dtype : optional
        As in `MultiHeadAttention`, for all projections and both norms.

    Examples
    --------
    >>> layer = EncoderLayer(8, n_heads=2, d_ff=32, bias=False)
    >>> sum(p.numel() for p in layer.parameters()) == 4 * 8 * 8 + 2 * 8 * 32 + 2 * 8
    True
    """

    def __init__(
        self, d_model: int, n_heads: int, d_ff: int, *, dropout: float = 0.0,
        activation: Literal["relu", "gelu"] = "relu", norm_first: bool = False,
        eps: float = 1e-5, bias: bool = True, device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        kind: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.attention = MultiHeadAttention(d_model, n_heads, dropout=dropout, **kind)
        self.d_model, self.dropout = self.attention.d_model, self.attention.dropout
        self.d_ff, self.eps = (
            checks.as_integer("d_ff", d_ff, least=1),
            checks.as_float("eps", eps, least=0),
        )
        self.activation = checks.as_activation(activation)
        self.norm_first = bool(norm_first)
        self.W_1 = nn.Linear(d_model, d_ff, **kind)
        self.W_2 = nn.Linear(d_ff, d_model, **kind)
        self.norm_1 = nn.LayerNorm(d_model, eps=self.eps, **kind)
        self.norm_2 = nn.LayerNorm(d_model, eps=self.eps, **kind)

    def forward(
        self, X: Tensor, mask: Mask = None, *, is_causal: bool = False,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
        """Return the tokens after one layer, of shape (..., n, d_model) like `X`.

        The options and the errors are those of `MultiHeadAttention.forward`. A token
        whose keys are all masked stays finite, and so do its gradients.
        """
        _check("X", X, self.d_model)
        maps: list[Tensor] = []

        def drop(x: Tensor) -> Tensor:
            return F.dropout(x, self.dropout, self.training)

        def attend(x: Tensor) -> Tensor:
            options = {"is_causal": is_causal, "return_weights": return_weights}
            answer = self.attention(x, mask=mask, **options)
            Y, *A = answer if return_weights else (answer,)
            maps.extend(A)
            return drop(Y)

        def feed(x: Tensor) -> Tensor:
            return drop(self.W_2(drop(ACTIVATIONS[self.activation](self.W_1(x)))))

        norms = self.norm_1, self.norm_2
        Y = add_and_norm(X, self.norm_first, attend, feed, *norms)
        return (Y, *maps) if return_weights else Y


class Encoder(nn.Module):
    """Send the tokens through one encoder layer after the other.

    Equation: X_{l+1} = EncoderLayer_l(X_l), Y = X_L or LN(X_L)

    Its parts are `layers`, a ModuleList, and `final_norm`, a LayerNorm or None.

    Parameters
    ----------
    n_layers : int
        Number of layers. Each starts with its own random weights, while
        `torch.nn.TransformerEncoder` starts with copies of one layer.
    d_model, n_heads, d_ff, **options
        As in `EncoderLayer`, the same for each layer.
    final_norm : bool, default False
        Normalise once more at the end, as pre-norm stacks do.

    Examples
    --------
    >>> model = Encoder(5, d_model=6, n_heads=2, d_ff=12, final_norm=True)
    >>> Y, A = model(torch.rand(3, 6), return_weights=True)
    >>> Y.shape, len(A), A[0].shape
    (torch.Size([3, 6]), 5, torch.Size([2, 3, 3]))
    """

    final_norm: nn.LayerNorm | None

    def __init__(
        self, n_layers: int, d_model: int, n_heads: int, d_ff: int, *,
        final_norm: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        layers = [
            EncoderLayer(d_model, n_heads, d_ff, **options)
            for _ in range(checks.as_integer("n_layers", n_layers, least=1))
        ]
        self.layers = nn.ModuleList(layers)
        self.final_norm = deepcopy(layers[0].norm_2) if final_norm else None

    def forward(
        self, X: Tensor, mask: Mask = None, *, is_causal: bool = False,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, list[Tensor]]:  # fmt: skip
        """Return the tokens after the last layer, as `EncoderLayer.forward` does.

        With `return_weights` also a list with the weights of each layer, the first
        layer first. The encoder adds no positions to the tokens `X`.
        """
        maps = []
        for layer in self.layers:
            X = layer(X, mask=mask, is_causal=is_causal, return_weights=return_weights)
            if return_weights:
                X, A = X
                maps.append(A)
        Y = X if self.final_norm is None else self.final_norm(X)
        return (Y, maps) if return_weights else Y

    def numpy_weights(self) -> dict[str, Any]:
        """Return copies of the parameters as keyword arguments of `mha.encoder`.

        They are ``layers``, a list of dicts, and ``final_norm``, (gain, bias) or None.
        """
        layers: Any = self.layers
        pair = None
        if (norm := self.final_norm) is not None:
            bias = None if norm.bias is None else _as_ndarray(norm.bias)
            pair = _as_ndarray(norm.weight), bias
        return {"layers": [x.numpy_weights() for x in layers], "final_norm": pair}


# Weights from and to PyTorch's own layers: their names in ours, and ours in theirs

NAMES = {
    "attention.": "self_attn.", "W_O": "out_proj", "W_1": "linear1", "W_2": "linear2",
    "norm_1": "norm1", "norm_2": "norm2",
}  # fmt: skip


def _in_ours(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    ours = {}
    for name, x in theirs.items():
        for our_part, their_part in NAMES.items():
            name = name.replace(their_part, our_part)
        parts = zip("QKV", x.chunk(3), strict=True) if "in_proj" in name else [("", x)]
        for letter, part in parts:
            ours[name.replace("in_proj_", f"W_{letter}.")] = part.clone()
    return ours


def _in_theirs(ours: dict[str, Tensor]) -> dict[str, Tensor]:
    theirs: dict[str, Tensor] = {}
    for name, x in ours.items():
        for our_part, their_part in NAMES.items():
            name = name.replace(our_part, their_part)
        name = re.sub(r"W_[QKV]\.", "in_proj_", name)
        theirs[name] = torch.cat([theirs[name], x]) if name in theirs else x.clone()
    return theirs


@overload
def from_torch(module: nn.MultiheadAttention) -> MultiHeadAttention: ...
@overload
def from_torch(module: nn.TransformerEncoderLayer) -> EncoderLayer: ...
@overload
def from_torch(module: nn.TransformerEncoder) -> Encoder: ...
def from_torch(module: nn.Module) -> nn.Module:
    """Return our layer with the weights of one of PyTorch's.

    Equation: ``in_proj_weight`` holds W_Qᵀ, W_Kᵀ and W_Vᵀ, one above the other

    Parameters
    ----------
    module : torch.nn.MultiheadAttention, TransformerEncoderLayer or TransformerEncoder
        With or without bias, ``batch_first`` or not; ours always reads (batch, n, d).
        Its bool masks say the opposite of ours: True means *hidden* there. What ours
        has not is refused: ``add_bias_kv``, gelu by tanh, parts that differ in ``eps``.

    Returns
    -------
    layer : MultiHeadAttention, EncoderLayer or Encoder
        Same outputs, dtype, device, dropout and train/eval mode; copies of the weights.

    Examples
    --------
    >>> theirs, X = nn.MultiheadAttention(6, 2, batch_first=True), torch.ones(1, 3, 6)
    >>> torch.allclose(from_torch(theirs)(X), theirs(X, X, X)[0], atol=1e-6)
    True
    """
    layer: Any
    match module:
        case nn.MultiheadAttention():
            layer = _our_attention(module)
        case nn.TransformerEncoderLayer():
            layer = _our_layer(module)
        case nn.TransformerEncoder():
            layer = Encoder(len(module.layers), 1, 1, 1, device="meta")
            layer.layers = nn.ModuleList(map(from_torch, module.layers))
            layer.final_norm = module.norm and deepcopy(_checked(module.norm))
            return layer.train(module.training)
        case _:
            kind = type(module).__name__
            raise TypeError(f"module must be torch's attention or encoder, got {kind}")
    layer.load_state_dict(_in_ours(module.state_dict()), assign=True)
    return layer.train(module.training)


def _our_attention(module: nn.MultiheadAttention) -> MultiHeadAttention:
    d_model, bias = module.embed_dim, module.in_proj_bias is not None
    if (module.kdim, module.vdim) != (d_model, d_model):
        raise ValueError(
            f"kdim ({module.kdim}) and vdim ({module.vdim}) must equal "
            f"embed_dim ({d_model})"
        )
    if module.bias_k is not None or module.add_zero_attn:
        raise ValueError("add_bias_kv and add_zero_attn must be False: no added tokens")
    options: dict[str, Any] = {"bias": bias, "dropout": module.dropout}
    return MultiHeadAttention(d_model, module.num_heads, **options, device="meta")


def _our_layer(module: nn.TransformerEncoderLayer) -> EncoderLayer:
    attention, wide = _our_attention(module.self_attn), module.linear1
    eps = {_checked(norm).eps for norm in (module.norm1, module.norm2)}
    drops = {part.p for part in (module.dropout, module.dropout1, module.dropout2)}
    drops.add(attention.dropout)
    if len(eps) > 1 or len(drops) > 1:
        raise ValueError(
            "eps and dropout must be the same in all parts, "
            f"got {sorted(eps)} and {sorted(drops)}"
        )
    bend = module.activation
    relu = bend is F.relu or isinstance(bend, nn.ReLU)
    if not (relu or bend is F.gelu or getattr(bend, "approximate", "") == "none"):
        raise ValueError(f"activation must be relu or exact gelu, got {bend}")
    return EncoderLayer(
        attention.d_model, attention.n_heads, wide.out_features, eps=eps.pop(),
        activation="relu" if relu else "gelu", norm_first=module.norm_first,
        dropout=attention.dropout, bias=wide.bias is not None, device="meta",
    )  # fmt: skip


def _checked(norm: nn.Module) -> nn.LayerNorm:
    if not isinstance(norm, nn.LayerNorm):
        raise TypeError(f"a norm must be a LayerNorm, got {type(norm).__name__}")
    return norm


@overload
def to_torch(layer: MultiHeadAttention) -> nn.MultiheadAttention: ...
@overload
def to_torch(layer: EncoderLayer) -> nn.TransformerEncoderLayer: ...
@overload
def to_torch(layer: Encoder) -> nn.TransformerEncoder: ...
def to_torch(layer: nn.Module) -> nn.Module:
    """Return PyTorch's layer with the weights of one of ours; undoes `from_torch`.

    Parameters
    ----------
    layer : MultiHeadAttention, EncoderLayer or Encoder
        Ours; anything else raises a TypeError.

    Returns
    -------
    module : torch.nn.MultiheadAttention, TransformerEncoderLayer or TransformerEncoder
        Batch first, otherwise as `layer`; copies of the weights. True in a bool mask
        means *hidden* there, attention returns weights averaged over the heads, an
        encoder none, and a row in which everything is masked can give NaN.

    Examples
    --------
    >>> to_torch(MultiHeadAttention(6, 2)).in_proj_weight.shape
    torch.Size([18, 6])
    """
    module: Any
    kind: dict[str, Any] = {"batch_first": True, "device": "meta"}
    match layer:
        case MultiHeadAttention():
            module = nn.MultiheadAttention(
                layer.d_model, layer.n_heads, layer.dropout,
                layer.W_O.bias is not None, **kind,
            )  # fmt: skip
        case EncoderLayer():
            module = nn.TransformerEncoderLayer(
                layer.d_model, layer.attention.n_heads, layer.d_ff, layer.dropout,
                layer.activation, layer.eps, norm_first=layer.norm_first,
                bias=layer.W_1.bias is not None, **kind,
            )  # fmt: skip
        case Encoder():
            ours: Any = layer.layers
            layers = [to_torch(part) for part in ours]
            # Nested tensors would cut the padding off, and with it the output.
            module = nn.TransformerEncoder(layers[0], 1, enable_nested_tensor=False)
            module.layers, module.num_layers = nn.ModuleList(layers), len(layers)
            module.norm = deepcopy(layer.final_norm)
            return module.train(layer.training)
        case _:
            name = type(layer).__name__
            raise TypeError(f"layer must be one of mha.nn, got {name}")
    module.load_state_dict(_in_theirs(layer.state_dict()), assign=True)
    return module.train(layer.training)
