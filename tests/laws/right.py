"""What is right, however it is written: functions, layers and adapters."""

import math

import numpy as np
import torch
import torch.nn.functional as F

import mha
import mha.nn
from mha import laws

NAMES = ("W_Q", "W_K", "W_V")


def double_loop(Q, K, V):
    """One query and one key at a time: no batch, no mask, no weights, no gradients."""
    Y = np.zeros((len(Q), V.shape[1]), np.result_type(Q, np.float16))
    for i, query in enumerate(Q):
        scores = []
        for key in K:
            products = [float(q) * float(k) for q, k in zip(query, key, strict=True)]
            scores.append(sum(products) / math.sqrt(len(query)))
        top = max(scores)
        weights = [math.exp(s - top) for s in scores]
        for weight, value in zip(weights, V, strict=True):
            Y[i] += weight / sum(weights) * value
    return Y


def loop_with_a_mask(Q, K, V, mask=None):
    """The same with a mask of bool, read entry by entry."""
    Y = np.zeros((len(Q), V.shape[1]), np.result_type(Q, np.float16))
    for i in range(len(Q)):
        seen = [j for j in range(len(K)) if mask is None or mask[i % len(mask)][j]]
        if seen:
            Y[i] = double_loop(Q[i : i + 1], K[seen], V[seen])[0]
    return Y


def _softmax(S):
    top = S.max(-1, keepdims=True)
    E = np.exp(S - np.where(np.isinf(top), 0, top).astype(S.dtype))
    total = E.sum(-1, keepdims=True)
    return E / np.where(total == 0, 1, total).astype(S.dtype)


def hidden_by_index(Q, K, V, mask=None):
    """NumPy's `S[~mask] = -inf`, for bool and for one sequence only."""
    S = Q @ K.T / math.sqrt(K.shape[1])
    if mask is not None:
        S[~np.broadcast_to(mask, S.shape)] = -np.inf
    return _softmax(S) @ V


def hidden_by_where(Q, K, V, mask=None):
    """NumPy's `where`, which reads every number but 0 as True."""
    S = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])
    S = S if mask is None else np.where(mask, S, -np.inf).astype(S.dtype)
    return _softmax(S) @ V


def hidden_where_true(Q, K, V, mask=None):
    """NumPy's `where` the other way round."""
    return hidden_by_where(Q, K, V, None if mask is None else ~(mask != 0))


def filled_and_zeroed(query, key, value, attn_mask=None):
    """PyTorch with a large number for infinity, and `mask == 0`."""
    S = query @ key.mT / math.sqrt(key.shape[-1])
    if attn_mask is None:
        return S.softmax(-1) @ value
    hidden = attn_mask == 0
    return S.masked_fill(hidden, -1e9).softmax(-1).masked_fill(hidden, 0) @ value


@torch.no_grad()
def without_gradients(Q, K, V):
    return F.scaled_dot_product_attention(Q, K, V)


def lengths(q, k, v, valid_lens=None):
    """NumPy, (b, n, h, d), padding by lengths."""
    q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    keep = None
    if valid_lens is not None:
        keep = (np.arange(k.shape[2]) < valid_lens[:, None])[:, None, None]
    return hidden_by_where(q, k, v, keep).swapaxes(1, 2)


def always_causal(Q, K, V):
    return F.scaled_dot_product_attention(Q, K, V, is_causal=True)


def cut_into_heads(X, weights, n_heads):
    """Return Q, K, V with heads as wide as those of Q; K and V may have fewer."""
    d = weights["W_Q"].shape[1] // n_heads
    three = (X @ weights[name] for name in NAMES)
    return (x.reshape(*x.shape[:-1], -1, d).swapaxes(-3, -2) for x in three)


def grouped_in_numpy(X, weights, n_heads, mask=None, is_causal=False):
    Q, K, V = cut_into_heads(X, weights, n_heads)
    K, V = (np.repeat(x, n_heads // K.shape[-3], axis=-3) for x in (K, V))
    Y = mha.scaled_dot_product_attention(Q, K, V, mask, is_causal=is_causal)
    return mha.merge_heads(Y) @ weights["W_O"]


def grouped_in_torch(X, weights, n_heads, mask=None):
    Q, K, V = cut_into_heads(X, weights, n_heads)
    Y = F.scaled_dot_product_attention(Q, K, V, mask, enable_gqa=True)
    return Y.transpose(1, 2).flatten(2) @ weights["W_O"]


def causal_layer(X, weights, n_heads):
    Q, K, V = cut_into_heads(X, weights, n_heads)
    Y = F.scaled_dot_product_attention(Q, K, V, is_causal=True)
    return Y.transpose(1, 2).flatten(2) @ weights["W_O"]


def as_function(run, **said):
    return laws.Adapter(run, kind="attention", **said)


RIGHT = {
    "NumPy attention": mha.scaled_dot_product_attention,
    "NumPy layer": mha.multi_head_attention,
    "chunked": mha.chunked_attention,
    "module": mha.nn.MultiHeadAttention(6, 3),
    "torch function": mha.nn.scaled_dot_product_attention,
    "torch's function": F.scaled_dot_product_attention,
    "double loop": double_loop,
    "loop with a mask": loop_with_a_mask,
    "hidden by index": hidden_by_index,
    "hidden by where": hidden_by_where,
    "hidden where True": as_function(hidden_where_true, mask_true="hide"),
    "filled and zeroed": filled_and_zeroed,
    "without gradients": without_gradients,
    "lengths": as_function(lengths, layout="bnhd"),
    "always causal": as_function(always_causal, causal="built in"),
    "causal layer": laws.Adapter(causal_layer, batch_first=True, causal="built in"),
    "grouped, NumPy": laws.Adapter(grouped_in_numpy, n_kv_heads=2),
    "grouped, torch": laws.Adapter(grouped_in_torch, batch_first=True, n_kv_heads=2),
}
