"""What PyTorch answers to our questions: the one place that knows its conventions.

`torch.nn.MultiheadAttention` stores each matrix transposed, W_Q, W_K and W_V one above
the other, and calls a key *hidden* where our masks call it *open*. Everything here is
written from PyTorch's documentation and uses nothing of `mha`. Keep rows that may look
at nothing out of the comparison: PyTorch gives NaN or 0, depending on version and mode.
"""

import numpy as np
import torch
import torch.nn.functional as F


def scaled_dot_product_attention(Q, K, V, mask=None, *, is_causal=False, scale=None):
    """Return PyTorch's output for NumPy arrays, without building the weights."""
    Q, K, V = (torch.as_tensor(x) for x in (Q, K, V))
    mask = None if mask is None else torch.as_tensor(mask)
    return F.scaled_dot_product_attention(
        Q, K, V, attn_mask=mask, is_causal=is_causal, scale=scale
    ).numpy()


def multi_head_attention(
    X, W_Q, W_K, W_V, W_O, n_heads, mask=None, *, X_k=None, X_v=None, **biases
):
    """Return PyTorch's output and weights for NumPy arrays in our convention."""
    X_k = X if X_k is None else X_k
    X_v = X_k if X_v is None else X_v
    module = module_with(W_Q, W_K, W_V, W_O, n_heads, **biases)
    with torch.no_grad():
        Y, A = ask(module, *map(torch.as_tensor, (X, X_k, X_v)), mask)
    return Y.numpy(), A.numpy()


def module_with(
    W_Q, W_K, W_V, W_O, n_heads, *, b_Q=None, b_K=None, b_V=None, b_O=None, **options
):
    """Return nn.MultiheadAttention with these matrices, made to stand right of X."""
    W_Q, W_K, W_V, W_O = (torch.as_tensor(np.array(W)) for W in (W_Q, W_K, W_V, W_O))
    module = torch.nn.MultiheadAttention(
        len(W_O), n_heads, bias=b_Q is not None, dtype=W_O.dtype, **options
    )
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([W_Q.T, W_K.T, W_V.T]))
        module.out_proj.weight.copy_(W_O.T)
        if b_Q is not None:
            biases = [torch.as_tensor(np.array(b)) for b in (b_Q, b_K, b_V)]
            module.in_proj_bias.copy_(torch.cat(biases))
            module.out_proj.bias.copy_(torch.as_tensor(np.array(b_O)))
    return module


def ask(module, query, key, value, mask=None, *, need_weights=True):
    """Return the output and the weights per head of PyTorch's layer.

    Leading axes and masks are ours: any number of the former, and the latter
    broadcast to (..., n_heads, n_q, n_k) and are True where a token may look.
    """
    leading = query.shape[:-2]
    query, key, value = (
        x.reshape(-1, *x.shape[-2:]).transpose(0, 0 if module.batch_first else 1)
        for x in (query, key, value)
    )
    axis = -2 if module.batch_first else 0
    shape = (*leading, module.num_heads, query.shape[axis], key.shape[axis])
    Y, A = module(
        query,
        key,
        value,
        attn_mask=hidden(mask, shape),
        need_weights=need_weights,
        average_attn_weights=False,
    )
    Y = Y if module.batch_first else Y.transpose(0, 1)
    return Y.reshape(*leading, *Y.shape[-2:]), None if A is None else A.reshape(shape)


def hidden(mask, shape):
    """Return our mask as PyTorch's `attn_mask` of shape (batch · heads, n_q, n_k)."""
    if mask is None:
        return None
    mask = torch.as_tensor(mask).expand(shape).reshape(-1, *shape[-2:])
    return ~mask if mask.dtype == torch.bool else mask


def encoder_with(
    layers, n_heads, *, final_norm=None, eps=1e-5, batch_first=True, **options
):
    """Return nn.TransformerEncoder with weights in our convention, in train mode.

    Without dropout train mode gives the same numbers, by the readable way.
    """
    norm = None if final_norm is None else _norm_with(*final_norm, eps)
    module = torch.nn.TransformerEncoder(
        _layer_with(layers[0], n_heads, eps, batch_first, **options), 1, norm, False
    )
    module.layers = torch.nn.ModuleList(
        _layer_with(weights, n_heads, eps, batch_first, **options) for weights in layers
    )
    return module.train()


def _layer_with(weights, n_heads, eps, batch_first, **options):
    bias, (d_model, d_ff) = "b_1" in weights, weights["W_1"].shape
    module = torch.nn.TransformerEncoderLayer(
        d_model, n_heads, d_ff, 0.0, layer_norm_eps=eps, batch_first=batch_first,
        bias=bias, dtype=torch.as_tensor(weights["W_1"]).dtype, **options,
    )  # fmt: skip
    of_attention = {name: W for name, W in weights.items() if name[-1] in "QKVO"}
    module.self_attn = module_with(
        **of_attention, n_heads=n_heads, batch_first=batch_first
    )
    with torch.no_grad():
        for i, linear in (("1", module.linear1), ("2", module.linear2)):
            linear.weight.copy_(torch.as_tensor(weights[f"W_{i}"].T))
            if bias:
                linear.bias.copy_(torch.as_tensor(weights[f"b_{i}"]))
    module.norm1, module.norm2 = (
        _norm_with(weights[f"gain_{i}"], weights.get(f"bias_{i}"), eps) for i in "12"
    )
    return module


def _norm_with(gain, bias, eps):
    gain = torch.as_tensor(np.array(gain))
    norm = torch.nn.LayerNorm(len(gain), eps, bias=bias is not None, dtype=gain.dtype)
    with torch.no_grad():
        norm.weight.copy_(gain)
        if bias is not None:
            norm.bias.copy_(torch.as_tensor(np.array(bias)))
    return norm


def encode(module, X, mask=None):
    """Return the output of PyTorch's encoder; leading axes and masks are ours."""
    leading, n = X.shape[:-2], X.shape[-2]
    attention = module.layers[0].self_attn
    X = X.reshape(-1, *X.shape[-2:])
    axis = 0 if attention.batch_first else 1
    mask = hidden(mask, (*leading, attention.num_heads, n, n))
    Y = module(X.transpose(0, axis), mask=mask).transpose(0, axis)
    return Y.reshape(*leading, *Y.shape[-2:])
