"""Right answers to the exercises of one chapter, written in other ways."""

import numpy as np

import mha
from exercises.long import draw_text


def by_arrays(n, n_layers, n_heads, n_kv_heads, d_head, n_bytes):
    K = np.broadcast_to(np.zeros(1), (n_layers, n_kv_heads, n, d_head))
    return 2 * K.size * n_bytes


def by_softmax(Y_a, lse_a, Y_b, lse_b):
    a, b = mha.softmax(np.stack([lse_a, lse_b]), axis=0)[..., None]
    return a * Y_a + b * Y_b, np.logaddexp(lse_a, lse_b)


def by_concatenation(x, K, V, W_Q, W_K, W_V):
    K = np.concatenate([K, (x @ W_K)[None]])
    V = np.concatenate([V, (x @ W_V)[None]])
    A = mha.softmax(K @ (x @ W_Q) / np.sqrt(len(x)))
    return A @ V, K, V


def with_a_reference(attend):
    Q, K, V = draw_text(2000, seed=5)
    order = np.argsort(K @ Q[0])
    expected = mha.scaled_dot_product_attention(Q, K[order], V[order])
    return np.allclose(attend(Q, K[order], V[order]), expected)


WAYS = {
    "scores_memory": (65536**2 * 4 / 2**30, np.float32(16)),
    "cache_bytes": (by_arrays,),
    "merge_outputs": (by_softmax,),
    "decode_step": (by_concatenation,),
    "long_text_law": (with_a_reference,),
}
