"""What is right, too: functions and layers that are asked once a week."""

import functools
import math

import numpy as np
import torch
import torch.nn.functional as F

from mha import laws
from tests.laws.right import as_function, cut_into_heads, hidden_by_where


def sequences(Q, K, V, mask=None):
    """NumPy for (batch, n, d) and nothing else."""
    _b, _n, _d = Q.shape
    return hidden_by_where(Q, K, V, mask)


def one_by_one(Q, K, V, mask=None):
    """A loop over the batch, with a mask for each sequence."""
    masks = [None] * len(Q) if mask is None else mask
    return np.stack(
        [hidden_by_where(*given) for given in zip(Q, K, V, masks, strict=True)]
    )


def online(Q, K, V, mask=None, block=4):
    """Blocks of keys, with a running maximum and a running sum."""
    n_q, n_k, Q = len(Q), len(K), Q.astype(np.result_type(Q, np.float16))
    top, total = np.full(n_q, -np.inf, Q.dtype), np.zeros(n_q, Q.dtype)
    Y = np.zeros((n_q, V.shape[-1]), Q.dtype)
    for start in range(0, n_k, block):
        at = slice(start, start + block)
        S = Q @ K[at].T / math.sqrt(Q.shape[-1])
        if mask is not None:
            S = np.where(np.broadcast_to(mask, (n_q, n_k))[:, at], S, -np.inf)
        new = np.maximum(top, S.max(-1)).astype(Q.dtype)
        safe = np.where(np.isfinite(new), new, 0)
        E, shrink = np.exp(S - safe[:, None]), np.exp(top - safe)
        total, top = total * shrink + E.sum(-1), new
        Y = Y * shrink[:, None] + E @ V[at]
    return Y / np.where(total > 0, total, 1)[:, None]


def with_every_option(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
    need_weights=False,
):  # fmt: skip
    """PyTorch's signature; the mask is of booleans."""
    scale = query.size(-1) ** -0.5 if scale is None else scale
    S = torch.einsum("bhqd,bhkd->bhqk", query * scale, key)
    if is_causal:
        S = S.masked_fill(~torch.ones(S.shape[-2:], dtype=torch.bool).tril(), -math.inf)
    if attn_mask is not None:
        S = S.masked_fill(~attn_mask, -math.inf)
    A = torch.nan_to_num(S.softmax(-1))
    Y = F.dropout(A, dropout_p) @ value
    return (Y, A) if need_weights else Y


def on_three_axes(Q, K, V):
    """(batch, n, d) and nothing else."""
    S = torch.bmm(Q, K.transpose(1, 2)) / K.shape[-1] ** 0.5
    return torch.bmm(S.softmax(2), V)


grouped_function = functools.partial(F.scaled_dot_product_attention, enable_gqa=True)


def refuses_strides(X, weights, n_heads, mask=None):
    """A layer with `view`, which raises where an array is not contiguous."""
    X = X.view(-1).view(X.shape)
    Y = F.scaled_dot_product_attention(*cut_into_heads(X, weights, n_heads), mask)
    return Y.transpose(1, 2).flatten(2) @ weights["W_O"]


MORE = {
    "on three axes": on_three_axes,
    "sequences": sequences,
    "one by one": one_by_one,
    "one by one, as said": as_function(one_by_one, mask_shape="bqk", batch_first=True),
    "online": online,
    "with every option": with_every_option,
    "refuses strides": laws.Adapter(refuses_strides, batch_first=True),
    "grouped function": as_function(
        lambda Q, K, V, mask=None: grouped_function(Q, K, V, mask), n_kv_heads=3
    ),
}
