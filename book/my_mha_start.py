"""My own multi-head attention, from the softmax to a model that writes.

Copy this file, fill in one function after the other, and run your copy:

    cp book/my_mha_start.py book/my_mha.py
    .venv/bin/python book/my_mha.py

Each function may call those above it, and NumPy, but nothing of `mha`. The same checks
are tests, for an editor that shows them, or for `python -m pytest -n0 book/my_mha.py`.
"""

import numpy as np  # noqa: F401

from exercises.my_mha import report, test_laws, test_step  # noqa: F401


def softmax(x, axis):
    """Chapter 2: x has any shape; return weights that sum to 1 along axis."""


def masked_softmax(S, mask):
    """Chapter 4: S (..., n_q, n_k), mask booleans that fit it, True = may attend.

    Return weights over the last axis, 0 where hidden; an empty row is all zeros.
    """


def attention(Q, K, V, mask=None):
    """Chapter 5: Q (..., n_q, d_k), K (..., n_k, d_k), V (..., n_k, d_v).

    Return (..., n_q, d_v). Without a mask every query may attend to every key.
    """


def split_heads(x, n_heads):
    """Chapter 7: cut x (..., n, d_model) into (..., n_heads, n, d_model / n_heads)."""


def merge_heads(heads):
    """Chapter 7: lay heads (..., n_heads, n, d) side by side, (..., n, n_heads * d)."""


def multi_head(
    X, W_Q, W_K, W_V, W_O, n_heads, mask=None, b_Q=0, b_K=0, b_V=0, b_O=0
):  # fmt: skip
    """Chapter 9: X (..., n, d_model); return the same shape.

    W_Q and W_K are (d_model, n_heads * d_k), W_V is (d_model, n_heads * d_v), and W_O
    is (n_heads * d_v, d_model). A bias is added to each product, and may be 0. The mask
    has the shape (n, n), or more axes in front for batch and heads.
    """


def layer_norm(x, gain, bias, eps=1e-5):
    """Chapter 11: x (..., d_model), gain and bias (d_model,); return the shape of x."""


def feed_forward(x, W_1, b_1, W_2, b_2):
    """Chapter 11: x (..., d_model), W_1 (d_model, d_ff), W_2 (d_ff, d_model); ReLU."""


def encoder_layer(X, weights, n_heads, mask=None):
    """Chapter 11: one post-norm layer, X (..., n, d_model) to the same shape.

    The dict `weights` holds W_Q, W_K, W_V, W_O, b_Q, b_K, b_V, b_O, gain_1, bias_1,
    W_1, b_1, W_2, b_2, gain_2 and bias_2.
    """


def encoder(X, layers, n_heads, mask=None):
    """Chapter 12: one layer after the other; `layers` is a list of such dicts."""


def stress_scores(letters, model, n_heads):
    """Chapter 13: letters (n,) from 1 to 26; return a score for each, shape (n,).

    The dict `model` holds embed (27, d), positions (longest, d), layers, a list of such
    dicts, for pre-norm layers, final_norm, a gain and a bias, and score, w (d,) and b.
    """


def chunked_attention(Q, K, V, block_size=512):
    """Chapter 17: attention without a mask, with the keys in blocks of this size.

    Never hold more than block_size scores for a query; the numbers stay the same, and
    their dtype.
    """


def causal_model(X, layers, n_heads):
    """Chapter 18: the layers as a model that writes has them.

    They are pre-norm, and a token attends to itself and to earlier tokens only.
    """


if __name__ == "__main__":
    report(globals())
