"""Right answers to the exercises, written differently from those in the book."""

import math

import numpy as np
import torch

import mha
from exercises import random_arrays


def with_nan_to_num(Q, K):
    lengths = np.linalg.norm(Q, axis=1)[:, None] * np.linalg.norm(K, axis=1)
    return np.nan_to_num(Q @ K.T / lengths)


def softmax_by_logarithms(x, axis):
    return np.exp(x - np.logaddexp.reduce(x, axis, keepdims=True))


def jacobian_by_einsum(s):
    p = torch.softmax(torch.from_numpy(s), -1)
    return torch.diag_embed(p) - torch.einsum("...i,...j->...ij", p, p)


def masks_by_torch(S, mask):
    S, mask = torch.from_numpy(S), torch.from_numpy(mask)
    return S.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0.0)


def borrowed(lengths):
    n = max(lengths)
    future = np.triu(np.ones((n, n), dtype=bool), k=1)
    filler = np.arange(n) < n - np.reshape(lengths, (-1, 1, 1, 1))
    return future | filler


def by_steps(n_q, n_k):
    return [[j - n_k <= i - n_q for j in range(n_k)] for i in range(n_q)]


def attention_by_einsum(Q, K, V):
    A = mha.softmax(np.einsum("ic,jc->ij", Q, K) / np.sqrt(Q.shape[-1]))
    return np.einsum("ij,jb->ib", A, V)


def over_the_queries(Q, K, V):
    return mha.softmax(Q @ K.T / 2, axis=0) @ V


def divided_by_the_width(Q, K, V):
    return mha.scaled_dot_product_attention(Q / len(Q[0]) ** 0.5, K, V)


def backward_by_torch(Q, K, V, dY):
    inputs = [torch.tensor(x, requires_grad=True) for x in (Q, K, V)]
    Y = torch.nn.functional.scaled_dot_product_attention(*inputs)
    return torch.autograd.grad(Y, inputs, torch.from_numpy(dY))


def backward_by_differences(Q, K, V, dY):
    inputs, slopes = [Q, K, V], [np.zeros_like(x) for x in (Q, K, V)]
    for x, slope in zip(inputs, slopes, strict=True):
        for place in np.ndindex(x.shape):
            kept, losses = x[place], []
            for nudge in (1e-4, -1e-4):
                x[place] = kept + nudge
                losses.append((dY * attention_by_einsum(*inputs)).sum())
            x[place], slope[place] = kept, (losses[0] - losses[1]) / 2e-4
    return slopes


def by_normal_equations(outputs, contents, new_outputs):
    return new_outputs @ np.linalg.solve(outputs.T @ outputs, outputs.T @ contents)


def multi_head_by_einsum(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    Q, K, V = ((X @ W).reshape(len(X), n_heads, -1) for W in (W_Q, W_K, W_V))
    S = np.einsum("ihc,jhc->hij", Q, K) / np.sqrt(Q.shape[-1])
    A = mha.masked_softmax(S, mask)
    return np.einsum("hij,jhc->ihc", A, V).reshape(len(X), -1) @ W_O


def loop(X, attend, feed, norm_1, norm_2, norm_first):
    for part, norm in ((attend, norm_1), (feed, norm_2)):
        X = X + part(norm(X)) if norm_first else norm(X + part(X))
    return X


def induction_by_loops(A, letters):
    found = [[] for _ in A[0]]
    for a, text in zip(A, letters, strict=True):
        for i, letter in enumerate(text):
            keys = [j + 1 for j in range(i) if text[j] == letter]
            for head, rows in enumerate(a if keys else ()):
                found[head].append(rows[i, keys].sum())
    return [np.mean(one) for one in found]


def blocks_by_logarithms(Q, K, V, block_size):
    lse, Y = np.full((*Q.shape[:-1], 1), -np.inf), 0
    for j in range(0, K.shape[-2], block_size):
        keys = K[..., j : j + block_size, :]
        S = np.einsum("...ic,...jc->...ij", Q, keys) / math.sqrt(Q.shape[-1])
        both = np.logaddexp(lse, np.logaddexp.reduce(S, -1, keepdims=True))
        values = V[..., j : j + block_size, :]
        Y = np.exp(lse - both) * Y + np.exp(S - both) @ values
        lse = both
    return Y


def with_a_reference(attend):
    Q, K, V = random_arrays((7, 8), (2000, 8), (2000, 8), seed=5)
    order = np.argsort(K @ Q[0])
    expected = mha.scaled_dot_product_attention(Q, K[order], V[order])
    return np.allclose(attend(Q, K[order], V[order]), expected)


def since_2017_by_complex_numbers(x, positions):
    d = x.shape[-1]
    speeds = 10000.0 ** (-np.arange(0, d, 2) / d)
    turned = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * np.outer(positions, speeds))
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


def as_a_test(attend):
    A = attend(np.ones((8, 2)), np.ones((8, 2)), np.eye(8))
    i, j = np.nonzero(A)
    assert (abs(i - j) < 3).all()
    return True


WAYS = {
    "dot_product.scores": (
        lambda Q, K: np.einsum("ic,jc->ij", Q, K),
        lambda Q, K: torch.from_numpy(Q) @ torch.from_numpy(K).T,
    ),
    "dot_product.cosine": (with_nan_to_num,),
    "softmax.stable_softmax": (softmax_by_logarithms,),
    "softmax.softmax_jacobian": (jacobian_by_einsum,),
    "masks.safe_masked_softmax": (masks_by_torch,),
    "masks.batch_mask": (lambda lengths: ~borrowed(lengths),),
    "masks.last_rows_mask": (by_steps,),
    "attention.attend": (attention_by_einsum,),
    "attention.wrong_line": (over_the_queries, divided_by_the_width),
    "attention.attention_backward": (backward_by_torch, backward_by_differences),
    "why_heads.rebuild": (by_normal_equations,),
    "multi_head.many_heads": (multi_head_by_einsum,),
    "positions.position_ids": (
        lambda mask: (np.cumsum(mask, axis=1) - 1) * mask,
        lambda mask: (torch.from_numpy(mask).cumsum(-1) - 1) * torch.from_numpy(mask),
    ),
    "encoder_layer.wire_layer": (loop,),
    "what_heads_learn.induction_score": (induction_by_loops,),
    "long.attend_in_blocks": (blocks_by_logarithms,),
    "long.long_text_law": (with_a_reference,),
    "since_2017.rotate": (since_2017_by_complex_numbers,),
    "since_2017.far_keys_law": (as_a_test,),
}
