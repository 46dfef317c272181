"""Weights of PyTorch's own layers in and out (chapters multi_head and encoder)."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mha._doors import as_count
from mha.nn.attention import MultiHeadAttention
from mha.nn.encoder import Encoder, EncoderLayer

T = TypeVar("T")
Ways = Mapping[type, Callable[..., Any]]

# Ours and theirs, part for part.
LAYER_PARTS = {"W_1": "linear1", "W_2": "linear2", "norm_1": "norm1", "norm_2": "norm2"}


@overload
def from_torch(module: nn.MultiheadAttention) -> MultiHeadAttention: ...
@overload
def from_torch(module: nn.TransformerEncoderLayer) -> EncoderLayer: ...
@overload
def from_torch(module: nn.TransformerEncoder) -> Encoder: ...
@overload
def from_torch(module: nn.Module) -> Any: ...
def from_torch(module: nn.Module) -> Any:
    """Return our layer with the weights of one of PyTorch's.

    Equation: ``in_proj_weight`` holds W_Qᵀ, W_Kᵀ and W_Vᵀ, one above the other
    (chapters multi_head, encoder_layer and encoder)

    Parameters
    ----------
    module : torch.nn module
        A MultiheadAttention, TransformerEncoderLayer or TransformerEncoder, with or
        without bias, ``batch_first`` or not; ours always reads (batch, n, d). Its bool
        masks say the opposite of ours: True means *hidden* there.

    Returns
    -------
    layer : MultiHeadAttention, EncoderLayer or Encoder
        Same outputs, dtype, device, dropout and train/eval mode. The weights are
        copies.

    Raises
    ------
    ValueError
        If `module` has what our layer has not: ``kdim`` or ``vdim`` other than
        ``embed_dim``, ``add_bias_kv``, ``add_zero_attn``, an activation other than
        relu and exact gelu, or parts that differ in ``eps`` or ``dropout``.
    TypeError
        If `module` is none of the three, or one of its norms is no LayerNorm.

    Examples
    --------
    >>> theirs, X = nn.MultiheadAttention(6, 2, batch_first=True), torch.ones(1, 3, 6)
    >>> torch.allclose(from_torch(theirs)(X), theirs(X, X, X)[0], atol=1e-6)
    True
    """
    ours: Ways = {
        nn.MultiheadAttention: _our_attention,
        nn.TransformerEncoderLayer: _our_layer,
        nn.TransformerEncoder: _our_encoder,
    }
    return _convert("module", module, "torch.nn", ours).train(module.training)


@overload
def to_torch(
    layer: MultiHeadAttention, batch_first: bool = True
) -> nn.MultiheadAttention: ...
@overload
def to_torch(
    layer: EncoderLayer, batch_first: bool = True
) -> nn.TransformerEncoderLayer: ...
@overload
def to_torch(layer: Encoder, batch_first: bool = True) -> nn.TransformerEncoder: ...
@overload
def to_torch(layer: nn.Module, batch_first: bool = True) -> Any: ...
def to_torch(layer: nn.Module, batch_first: bool = True) -> Any:
    """Return PyTorch's layer with the weights of one of ours; undoes `from_torch`.

    Equation: ``in_proj_weight`` holds W_Qᵀ, W_Kᵀ and W_Vᵀ, one above the other
    (chapters multi_head, encoder_layer and encoder)

    Parameters
    ----------
    layer : MultiHeadAttention, EncoderLayer or Encoder
        Ours.
    batch_first : bool, default True
        Whether the new layer reads (batch, n, d_model), as ours does, or
        (n, batch, d_model).

    Returns
    -------
    module : torch.nn.MultiheadAttention, TransformerEncoderLayer or TransformerEncoder
        Same dtype, device, dropout and train/eval mode. The weights are copies. It
        differs in three ways: True in a bool mask means *hidden*, attention returns
        weights averaged over the heads by default and an encoder none, and a row in
        which everything is masked can give NaN.

    Raises
    ------
    TypeError
        If `layer` is none of the three.

    Examples
    --------
    >>> to_torch(MultiHeadAttention(6, 2)).in_proj_weight.shape
    torch.Size([18, 6])
    """
    theirs: Ways = {
        MultiHeadAttention: _their_attention,
        EncoderLayer: _their_layer,
        Encoder: _their_encoder,
    }
    return _convert("layer", layer, "mha.nn", theirs, batch_first).train(layer.training)


def _convert(name: str, x: nn.Module, home: str, ways: Ways, *options: bool) -> Any:
    """Return what the way of the type of `x` makes of it."""
    for kind, convert in ways.items():
        if isinstance(x, kind):
            return convert(x, *options)
    kinds = ", ".join(kind.__name__ for kind in ways)
    raise TypeError(f"{name} must be one of {kinds} of {home}, got {type(x).__name__}")


def _our_attention(module: nn.MultiheadAttention) -> MultiHeadAttention:
    d_model = module.embed_dim
    if (module.kdim, module.vdim) != (d_model, d_model):
        raise ValueError(
            f"kdim ({module.kdim}) and vdim ({module.vdim}) must equal "
            f"embed_dim ({d_model})"
        )
    if module.bias_k is not None:
        raise ValueError("add_bias_kv must be False: our layer adds no learned token")
    if module.add_zero_attn:
        raise ValueError("add_zero_attn must be False: our layer adds no zero token")
    bias = module.in_proj_bias is not None
    layer = MultiHeadAttention(
        d_model, module.num_heads, bias=bias, dropout=module.dropout, **_storage(module)
    )
    state: dict[str, Tensor] = {}
    for kind in ("weight", "bias") if bias else ("weight",):
        W_Q, W_K, W_V = getattr(module, f"in_proj_{kind}").detach().chunk(3)
        W_O = getattr(module.out_proj, kind).detach()
        parts = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_O": W_O}
        state |= {f"{name}.{kind}": part for name, part in parts.items()}
    layer.load_state_dict(state)
    return layer


def _their_attention(
    layer: MultiHeadAttention, batch_first: bool
) -> nn.MultiheadAttention:
    bias = layer.W_Q.bias is not None
    module = nn.MultiheadAttention(
        layer.d_model, layer.n_heads, bias=bias, dropout=layer.dropout,
        batch_first=batch_first, **_storage(layer),
    )  # fmt: skip
    state = {}
    for kind in ("weight", "bias") if bias else ("weight",):
        parts = [getattr(W, kind) for W in (layer.W_Q, layer.W_K, layer.W_V)]
        state[f"in_proj_{kind}"] = torch.cat(parts).detach()
        state[f"out_proj.{kind}"] = getattr(layer.W_O, kind).detach()
    module.load_state_dict(state)
    return module


def _our_layer(module: nn.TransformerEncoderLayer) -> EncoderLayer:
    attention = from_torch(module.self_attn)
    drops = [part.p for part in (module.dropout, module.dropout1, module.dropout2)]
    layer = EncoderLayer(
        attention.d_model, attention.n_heads, module.linear1.out_features,
        activation=_name_of(module.activation), norm_first=module.norm_first,
        dropout=_only_one("dropout", [module.self_attn.dropout, *drops]),
        eps=_only_one("eps", [_norm(module.norm1).eps, _norm(module.norm2).eps]),
        bias=module.linear1.bias is not None, **_storage(module),
    )  # fmt: skip
    layer.attention = attention
    for ours, theirs in LAYER_PARTS.items():
        getattr(layer, ours).load_state_dict(getattr(module, theirs).state_dict())
    return layer


def _their_layer(layer: EncoderLayer, batch_first: bool) -> nn.TransformerEncoderLayer:
    module = nn.TransformerEncoderLayer(
        layer.d_model, layer.attention.n_heads, layer.d_ff, layer.dropout,
        activation=layer.activation, layer_norm_eps=layer.eps, batch_first=batch_first,
        norm_first=layer.norm_first, bias=layer.W_1.bias is not None, **_storage(layer),
    )  # fmt: skip
    attention = _their_attention(layer.attention, batch_first)
    module.self_attn.load_state_dict(attention.state_dict())
    for ours, theirs in LAYER_PARTS.items():
        getattr(module, theirs).load_state_dict(getattr(layer, ours).state_dict())
    return module


def _our_encoder(module: nn.TransformerEncoder) -> Encoder:
    n_layers = as_count("num_layers", len(module.layers))
    layers = [from_torch(layer) for layer in module.layers]
    first = layers[0]
    _only_one("norm_first", [layer.norm_first for layer in layers])
    _only_one("activation", [layer.activation for layer in layers])
    norm = None if module.norm is None else _norm(module.norm)
    norms = [] if norm is None else [norm]
    encoder = Encoder(
        n_layers, first.d_model, first.attention.n_heads, first.d_ff,
        eps=_only_one("eps", [part.eps for part in (*layers, *norms)]), device="meta",
    )  # fmt: skip
    encoder.layers = nn.ModuleList(layers)
    encoder.final_norm = copy.deepcopy(norm)
    return encoder


def _their_encoder(encoder: Encoder, batch_first: bool) -> nn.TransformerEncoder:
    layers = [to_torch(layer, batch_first) for layer in encoder.layers]
    # Nested tensors cut the padding off, and the output is then shorter than the input.
    module = nn.TransformerEncoder(layers[0], 1, enable_nested_tensor=False)
    module.layers, module.num_layers = nn.ModuleList(layers), len(layers)
    module.norm = copy.deepcopy(encoder.final_norm)
    return module


def _storage(module: nn.Module) -> dict[str, Any]:
    W = next(module.parameters())
    return {"device": W.device, "dtype": W.dtype}


def _norm(norm: nn.Module) -> nn.LayerNorm:
    if not isinstance(norm, nn.LayerNorm):
        kind = type(norm).__name__
        raise TypeError(f"a norm must be a torch.nn.LayerNorm, got {kind}")
    return norm


def _only_one(name: str, values: Sequence[T]) -> T:
    """Return the value that all parts share; our layers know one only."""
    if len(set(values)) != 1:
        raise ValueError(f"{name} must be the same in all parts, got {values}")
    return values[0]


def _name_of(activation: Any) -> Literal["relu", "gelu"]:
    """Return our name of an activation, which PyTorch keeps as a function or module."""
    if activation is F.relu or isinstance(activation, nn.ReLU):
        return "relu"
    exact = isinstance(activation, nn.GELU) and activation.approximate == "none"
    if activation is F.gelu or exact:
        return "gelu"
    raise ValueError(f"activation must be relu or exact gelu, got {activation}")
