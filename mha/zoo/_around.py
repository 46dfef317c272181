"""What stands around the steps in the zoo; a member may replace it like a step.

A member computes `multi_head` as a whole, and a part of it is `attention`; an encoder
computes `stack` and `layer`.
"""

import numpy as np

from mha.attention import scaled_dot_product_attention
from mha.heads import merge_heads, multi_head_attention, split_heads
from mha.layers import encoder, encoder_layer
from mha.masks import causal_mask
from mha.zoo._mode import in_mode


def read_mask(mask):
    """Return a mask of 0 and 1 as False and True; others stay what they are."""
    return mask != 0 if mask.dtype.kind in "iu" else mask


def join_masks(mask, causal):
    """Return what hides what either of them hides."""
    return np.where(causal, mask, False if mask.dtype == bool else -np.inf)


def share_heads(x, n_heads):
    """Return a copy of its keys for every query head; neighbours share theirs."""
    return x[..., np.arange(n_heads) * x.shape[-3] // n_heads, :, :]


def mask_of(mask, is_causal, Q, K):
    """Return one mask for both that a call may ask for."""
    if mask is not None:
        mask = read_mask(mask if hasattr(mask, "dtype") else np.asarray(mask))
    if not is_causal:
        return mask
    causal = causal_mask(Q.shape[-2], K.shape[-2])
    return causal if mask is None else join_masks(mask, causal)


def attention(Q, K, V, mask=None, *, is_causal=False, **options):
    if min(Q.ndim, K.ndim) > 2 and Q.shape[-3] != K.shape[-3]:
        K, V = share_heads(K, Q.shape[-3]), share_heads(V, Q.shape[-3])
    mask = mask_of(mask, is_causal, Q, K)
    return scaled_dot_product_attention(Q, K, V, mask, **options)


def multi_head(
    X, W_Q, W_K, W_V, W_O, n_heads, mask=None, *, X_k=None, is_causal=False, **options
):
    # Narrower keys are those of fewer heads, which groups of queries share.
    n_groups = n_heads * W_K.shape[-1] // W_Q.shape[-1]
    given = {"X_k": X if X_k is None else X_k, "W_K": W_K, "W_V": W_V} | options
    for name in ("W_K", "W_V", "b_K", "b_V"):
        if n_groups != n_heads and given.get(name) is not None:
            heads = split_heads(np.atleast_2d(given[name]), n_groups)
            wide = merge_heads(share_heads(heads, n_heads))
            given[name] = wide if name[0] == "W" else wide[0]
    mask = mask_of(mask, is_causal, X, given["X_k"])
    return multi_head_attention(X, W_Q, W_O=W_O, n_heads=n_heads, mask=mask, **given)


def layer(X, weights, n_heads, mask=None, *, is_causal=False, training=True, **options):
    mask = mask_of(mask, is_causal, X, X)
    with in_mode(training):
        return encoder_layer(X, weights, n_heads, mask, **options)


def stack(X, layers, n_heads, mask=None, *, is_causal=False, training=True, **options):
    mask = mask_of(mask, is_causal, X, X)
    with in_mode(training):
        return encoder(X, layers, n_heads, mask, **options)
