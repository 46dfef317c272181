"""What is right, however it is written: functions and layers, and their references."""

import math

import numpy as np
import torch
import torch.nn.functional as F

import mha
import mha.nn
from mha import designs, laws


def loop(Q, K, V, mask=None):
    """One query at a time, with a mask of booleans of one sequence."""
    Y = np.zeros((len(Q), V.shape[1]), np.result_type(Q, np.float16))
    for i in range(len(Q)):
        seen = [j for j in range(len(K)) if mask is None or mask[i % len(mask)][j]]
        if seen:
            Y[i] = mha.softmax(Q[i] @ K[seen].T / Q.shape[1] ** 0.5) @ V[seen]
    return Y


def einsum(Q, K, V, mask=None, return_weights=False):
    S = np.einsum("...qd,...kd->...qk", Q, K) / math.sqrt(K.shape[-1])
    S = S if mask is None else np.where(mask, S, -np.inf).astype(S.dtype)
    top = S.max(-1, keepdims=True)
    E = np.exp(S - np.where(np.isinf(top), 0, top).astype(S.dtype))
    total = E.sum(-1, keepdims=True)
    A = E / np.where(total == 0, 1, total).astype(S.dtype)
    Y = np.einsum("...qk,...kd->...qd", A, V)
    return (Y, A) if return_weights else Y


def filled_and_zeroed(Q, K, V, mask=None):
    """PyTorch with a large number for infinity, and `mask == 0`."""
    S = Q @ K.mT / math.sqrt(K.shape[-1])
    if mask is None:
        return S.softmax(-1) @ V
    return S.masked_fill(mask == 0, -1e38).softmax(-1).masked_fill(mask == 0, 0) @ V


def tokens_before_heads(q, k, v, mask=None):
    """(b, n, h, d), as in JAX."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2)


def turned_twice(Q, K, V, mask=None):
    Y = tokens_before_heads(*(x.transpose(1, 2) for x in (Q, K, V)), mask)
    return Y.transpose(1, 2)


def padded_from_lengths(Q, K, V, mask=None):
    """It is told lengths, and nothing else."""
    if mask is None:
        return einsum(Q, K, V)
    n = mask.sum(-1, keepdims=True)
    if mask.dtype != bool or (mask != (np.arange(mask.shape[-1]) < n)).any():
        raise laws.NotAsked("lengths say where padding begins, and nothing else")
    return einsum(Q, K, V, np.arange(K.shape[-2]) < n)


def causal(Q, K, V, mask=None):
    mask = designs.both(mask, designs.causal(Q, K))
    return mha.scaled_dot_product_attention(Q, K, V, mask)


def always_causal(X, W_Q, W_K, W_V, W_O, n_heads):
    """One matrix for queries, keys and values, as in GPT."""
    W = torch.cat([W_Q, W_K, W_V], 1)
    three = (x.unflatten(-1, (n_heads, -1)).transpose(-2, -3)
             for x in (X @ W).chunk(3, -1))  # fmt: skip
    Y = F.scaled_dot_product_attention(*three, is_causal=True)
    return Y.transpose(-2, -3).flatten(-2) @ W_O


def grouped(X, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    d = W_Q.shape[1] // n_heads
    Q, K, V = ((X @ W).unflatten(-1, (-1, d)).transpose(-2, -3)
               for W in (W_Q, W_K, W_V))  # fmt: skip
    Y = F.scaled_dot_product_attention(Q, K, V, mask, enable_gqa=True)
    return Y.transpose(-2, -3).flatten(-2) @ W_O


def in_blocks(Q, K, V, mask=None):
    return mha.chunked_attention(Q, K, V, mask, block_size=3)


RIGHT = {
    "NumPy attention": (mha.scaled_dot_product_attention, {}),
    "NumPy layer": (mha.multi_head_attention, {}),
    "loop": (laws.each(loop), {}),
    "einsum": (einsum, {}),
    "blocks of 3": (in_blocks, {}),
    "filled and zeroed": (laws.torch(filled_and_zeroed), {}),
    "tokens before heads": (laws.torch(turned_twice, axes=4), {}),
    "lengths": (padded_from_lengths, {}),
    "always causal": (laws.torch(always_causal), {"reference": causal}),
    "grouped": (laws.torch(grouped), {"sizes": laws.Sizes(8, 4, 2)}),
    "torch function": (laws.torch(mha.nn.scaled_dot_product_attention), {}),
    "three heads": (mha.multi_head_attention, {"sizes": laws.Sizes(6, 3, 3)}),
}
