"""From a dot product to an encoder, in one file. True in a mask = may attend."""

from math import erfc, sqrt

import numpy as np


def scores(Q, K):  # (..., n_q, d_k), (..., n_k, d_k) -> (..., n_q, n_k)
    return Q @ np.swapaxes(K, -1, -2)


def softmax(S):  # each row becomes positive and sums to 1
    powers = np.exp(S - S.max(axis=-1, keepdims=True))  # the largest is exp(0) = 1
    return powers / powers.sum(axis=-1, keepdims=True)


def masked_softmax(S, mask):  # hidden keys get 0, rows without a key too
    mask = np.broadcast_to(mask, S.shape)
    some = mask.any(axis=-1, keepdims=True)
    A = softmax(np.where(mask | ~some, S, -np.inf))
    return np.where(some, A, 0)


def causal_mask(n):  # (query, key): no key that comes later
    return np.tri(n, dtype=bool)


def padding_mask(lengths, n):  # (batch, 1, 1, key): no key behind the last word
    return (np.arange(n) < np.reshape(lengths, (-1, 1)))[:, None, None, :]


def attention(Q, K, V, mask=None):  # (..., n_q, d_v)
    S = scores(Q, K) / sqrt(Q.shape[-1])
    A = softmax(S) if mask is None else masked_softmax(S, mask)
    return A @ V


def split_heads(M, n_heads):  # (..., n, h * d) -> (..., h, n, d)
    return np.swapaxes(M.reshape(*M.shape[:-1], n_heads, -1), -2, -3)


def merge_heads(H):  # (..., h, n, d) -> (..., n, h * d)
    H = np.swapaxes(H, -2, -3)
    return H.reshape(*H.shape[:-2], -1)


def multi_head_attention(X, w, n_heads, mask=None):
    Q, K, V = (split_heads(X @ w["W_" + c] + w["b_" + c], n_heads) for c in "QKV")
    return merge_heads(attention(Q, K, V, mask)) @ w["W_O"] + w["b_O"]


def positions(n, d_model):  # sines and cosines to add, (n, d_model), d_model even
    angles = np.arange(n)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, d_model)


def rotary(x, base=10000):  # instead: rotate pairs of neighbouring columns of Q and K
    n, d = x.shape[-2:]
    angles = np.arange(n)[:, None] / base ** (np.arange(0, d, 2) / d)
    a, b, c, s = x[..., 0::2], x[..., 1::2], np.cos(angles), np.sin(angles)
    return np.stack([a * c - b * s, a * s + b * c], axis=-1).reshape(x.shape)


def layer_norm(x, gain, bias, eps=1e-5):  # each token by its own mean and variance
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * gain + bias


def relu(z):
    return np.maximum(z, 0)


def gelu(z):
    return z * np.vectorize(erfc)(-z / sqrt(2)) / 2


def feed_forward(x, w, activation=relu):
    return activation(x @ w["W_1"] + w["b_1"]) @ w["W_2"] + w["b_2"]


def encoder_layer(X, w, n_heads, mask=None, activation=relu, norm_first=False):
    def norm(x, i):
        return layer_norm(x, w[f"gain_{i}"], w[f"bias_{i}"])

    if norm_first:
        Z = X + multi_head_attention(norm(X, 1), w, n_heads, mask)
        return Z + feed_forward(norm(Z, 2), w, activation)
    Z = norm(X + multi_head_attention(X, w, n_heads, mask), 1)
    return norm(Z + feed_forward(Z, w, activation), 2)


def encoder(X, layers, n_heads, mask=None, **options):
    for w in layers:
        X = encoder_layer(X, w, n_heads, mask, **options)
    return X
