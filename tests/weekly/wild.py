"""Bugs that strangers reported, each a function that is right, or has the slip.

They were written from the sentence of a report alone: what a layer of today does, and
what was wrong in it. A pair stands in `PAIRS` with the law that tells the two apart,
and with a reference where it is right to differ from plain attention.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import mha
from mha import designs, laws
from mha.designs import both, causal, in_heads, scores, soft_cap, weights


@dataclass
class Pair:
    """``make(slip)`` returns what is right, or wrong; `law` tells them apart."""

    make: Any
    law: str
    reference: Any = None


PAIRS: dict[str, Pair] = {}


def pair(law, reference=None):
    def kept(make):
        PAIRS[make.__name__] = Pair(make, law, reference)
        return make

    return kept


def attention(Q, K, V, mask=None):
    return mha.scaled_dot_product_attention(Q, K, V, mask)


# Masks and scores -------------------------------------------------------------------


@pair("float_masks_are_added")
def bias_before_the_scale(slip):
    def attend(Q, K, V, mask=None):
        d = Q.shape[-1] ** 0.5
        S, M = Q @ K.mT, torch.zeros(()) if mask is None else mask
        if not M.is_floating_point():
            M = torch.where(M == 0, -torch.inf, 0.0)
        return ((S + M) / d if slip else S / d + M).softmax(-1) @ V

    return laws.torch(attend)


def capped(Q, K, V, mask=None):
    return weights(soft_cap(scores(Q, K), 5.0), mask) @ V


@pair("masked_weights_are_zero", reference=capped)
def soft_cap_after_the_mask(slip):
    def attend(Q, K, V, mask=None):
        S = scores(Q, K)
        M = 0.0 if mask is None else np.where(mask, 0.0, -np.inf)
        return (
            mha.softmax(5 * np.tanh((S + M) / 5) if slip else soft_cap(S, 5.0) + M) @ V
        )

    return attend


def of_padding(Q, K, V, mask=None):
    if mask is not None and mask.shape[-2] > 1:
        raise NotImplementedError("padding only")
    return attention(Q, K, V, mask)


@pair("mask_and_causal_both_hide")
def padding_or_causal(slip):
    """What padding hides, the causal mask shows again."""

    def attend(Q, K, V, mask=None, is_causal=False):
        if mask is not None and (mask.shape[-2] > 1 or mask.dtype != bool):
            raise NotImplementedError("padding only")
        past = np.tri(Q.shape[-2], K.shape[-2], dtype=bool)
        if not is_causal or mask is None:
            return attention(Q, K, V, past if is_causal else mask)
        return attention(Q, K, V, past | mask if slip else past & mask)

    return attend


@pair("returned_weights_make_the_output")
def causal_mask_is_lost_where_weights_are_asked_for(slip):
    def attend(Q, K, V, mask=None, is_causal=False, return_weights=False):
        options = {"return_weights": return_weights}
        options["is_causal"] = is_causal and not (slip and return_weights)
        return mha.scaled_dot_product_attention(Q, K, V, mask, **options)

    return attend


@pair("batch_masks_reach_their_own")
def masks_of_the_first_two(slip):
    """A batch is cut into pairs, and each pair gets the masks of the first."""

    def attend(Q, K, V, mask=None):
        if not slip or mask is None or mask.ndim < 4:
            return attention(Q, K, V, mask)
        parts = [slice(i, i + 2) for i in range(0, len(Q), 2)]
        return np.concatenate(
            [attention(Q[i], K[i], V[i], mask[: len(Q[i])]) for i in parts]
        )

    return attend


@pair("padding_changes_nothing")
def last_head_without_mask(slip):
    def attend(Q, K, V, mask=None):
        Y = attention(Q, K, V, mask)
        if slip:
            Y[..., -1:, :, :] = attention(Q, K, V)[..., -1:, :, :]
        return Y

    return in_heads(attend)


def near(Q, K, V, mask=None):
    return weights(scores(Q, K), both(mask, causal(Q, K), designs.window(Q, K, 4))) @ V


# Positions, norms and sinks ---------------------------------------------------------


def alibi(Q, K, V, mask=None):
    return weights(scores(Q, K) + designs.alibi(Q, K), mask) @ V


@pair("equals_reference", reference=alibi)
def slopes_begin_too_early(slip):
    def attend(Q, K, V, mask=None):
        h = Q.shape[-3] if Q.ndim > 2 else 1
        slopes = 2.0 ** (-8 * (np.arange(h) + (0 if slip else 1)) / h)
        distance = abs(
            np.subtract.outer(np.arange(Q.shape[-2]), np.arange(K.shape[-2]))
        )
        bias = -(
            slopes[:, None, None] * distance if Q.ndim > 2 else slopes[0] * distance
        )
        return weights(scores(Q, K) + bias.astype(Q.dtype), mask) @ V

    return in_heads(attend)


@pair("padding_changes_nothing", reference=designs.linear)
def linear_attention_counts_the_padding(slip):
    def attend(Q, K, V, mask=None):
        q, k = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (Q, K))
        S = q @ k.swapaxes(-1, -2)
        seen = S if mask is None else S * mask
        total = (S if slip else seen).sum(-1, keepdims=True)
        return seen / np.where(total == 0, 1, total) @ V

    return attend


def mean_of_tokens(slip):
    def attend(Q, K, V, mask=None):
        Y = of_padding(Q, K, V, mask)
        if mask is None or Q.shape[-2] != K.shape[-2]:
            return 0 * Y + Y.mean(-2, keepdims=True)
        real = (mask != 0).swapaxes(-1, -2)
        real = np.ones_like(real) if slip else real
        mean = (Y * real).sum(-2, keepdims=True) / real.sum(-2, keepdims=True).clip(1)
        return 0 * Y + mean

    return attend


@pair("padding_changes_nothing", reference=mean_of_tokens(False))
def pooling_over_padding(slip):
    """The mean of all real tokens, for every token."""
    return mean_of_tokens(slip)


# Kernels and dtypes -----------------------------------------------------------------


def in_blocks(Q, K, V, mask, size, first, rescaled):
    top = np.full((*Q.shape[:-1], 1), first)
    total, Y = 0.0, 0.0
    for at in range(0, K.shape[-2], size):
        S = scores(Q, K[..., at : at + size, :])
        if mask is not None:
            S = np.where(mask[..., at : at + size], S, -np.inf)
        new = np.maximum(top, S.max(-1, keepdims=True))
        shift = np.where(np.isfinite(new), new, 0)
        E, old = (
            np.exp(S - shift),
            np.exp(np.where(np.isfinite(top), top, -1e300) - shift),
        )
        total = total * (old if rescaled else 1) + E.sum(-1, keepdims=True)
        Y, top = Y * old + E @ V[..., at : at + size, :], new
    return Y / np.where(total == 0, 1, total)


@pair("rising_scores")
def sum_is_not_rescaled(slip):
    def attend(Q, K, V, mask=None):
        mask = mask if mask is None else mask != 0
        return in_blocks(Q, K, V, mask, 32, -np.inf, not slip)

    return attend


@pair("rising_scores")
def first_maximum_is_a_number(slip):
    def attend(Q, K, V):
        return in_blocks(Q, K, V, None, 32, -5e4 if slip else -np.inf, True)

    return attend


@pair("rows_sum_to_one")
def softmax_in_sixteen_bits(slip):
    def attend(Q, K, V, mask=None):
        S = Q @ K.mT / Q.shape[-1] ** 0.5
        S = S if mask is None else S.masked_fill(~mask, -torch.inf)
        A = S.to(torch.bfloat16 if slip else torch.float64).softmax(-1)
        return A.to(S.dtype).nan_to_num(0) @ V

    return laws.torch(attend)


@pair("every_dtype_gives_the_numbers")
def mask_of_sixteen_bits(slip):
    """(1 - mask) * -1e9 is 0 · -∞ in float16, which is NaN."""

    def attend(Q, K, V, mask=None):
        S = Q @ K.mT / Q.shape[-1] ** 0.5
        if mask is None:
            return S.softmax(-1) @ V
        if mask.dtype != torch.bool:
            raise NotImplementedError("booleans only")
        least = torch.tensor(-1e9, dtype=S.dtype)
        least = least if slip else least.clamp(min=torch.finfo(S.dtype).min)
        S = S + (1 - mask.to(S.dtype)) * least
        return S.softmax(-1) * mask.any(-1, keepdim=True) @ V

    return laws.torch(attend)


@pair("calls_do_not_remember")
def mask_is_kept_by_its_shape(slip):
    kept = {}

    def attend(Q, K, V, mask=None):
        if slip and mask is not None:
            mask = kept.setdefault(mask.shape, mask.copy())
        return attention(Q, K, V, mask)

    return attend


# Layers -----------------------------------------------------------------------------


@pair("batches_and_heads_stay_apart")
def heads_and_batch_are_exchanged(slip):
    """Tokens first, as (n, batch, d_model)."""

    def layer(X, W_Q, W_K, W_V, W_O, n_heads):
        x = X.reshape(-1, *X.shape[-2:]).transpose(0, 1)
        n, b, D = x.shape
        Q, K, V = ((x @ W).reshape(n, b * n_heads, -1).transpose(0, 1)
                   for W in (W_Q, W_K, W_V))  # fmt: skip
        Y = F.scaled_dot_product_attention(Q, K, V).transpose(0, 1)
        if slip:
            Y = Y.reshape(n, n_heads, b, -1).transpose(1, 2)
        return (Y.reshape(n, b, D) @ W_O).transpose(0, 1).reshape(X.shape)

    return laws.torch(layer)


@pair("masked_weights_are_zero")
def mask_of_the_context_is_dropped(slip):
    def layer(X, W_Q, W_K, W_V, W_O, n_heads, mask=None, X_k=None):
        mask = None if slip and X_k is not None else mask
        return mha.multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, mask, X_k=X_k)

    return layer


@pair("equals_reference")
def keys_are_used_as_values(slip):
    def layer(X, W_Q, W_K, W_V, W_O, n_heads, mask=None, X_k=None, X_v=None):
        X_v = X_k if slip else X_v
        return mha.multi_head_attention(
            X, W_Q, W_K, W_V, W_O, n_heads, mask, X_k=X_k, X_v=X_v
        )

    return layer


# Caches -----------------------------------------------------------------------------


@pair("one_at_a_time_is_all_at_once", reference=near)
def ring_of_four_keys(slip):
    """A window of 4: what a prompt overwrites is still needed by its first tokens."""

    def step(Q, K, V, mask=None, state=None):
        n, before = Q.shape[-2], 0
        if mask is not None:
            raise NotImplementedError("no masks beside the window")
        if state is not None:
            before = state[0].shape[-2]
            K, V = (np.concatenate(x, -2) for x in zip(state, (K, V), strict=True))
        seen = np.tri(n, before + n, before, dtype=bool)
        seen &= ~np.tri(n, before + n, before - 4, dtype=bool)
        if slip and before:  # the last four keys have taken the place of all others
            seen[:, :-4] = False
        return attention(Q, K, V, seen), (K[..., -4:, :], V[..., -4:, :])

    return laws.steps(step)


# Encoders ---------------------------------------------------------------------------


def positions(n, d):
    return np.sin(np.arange(n)[:, None] / 10.0 ** (np.arange(d) / d))


def placed(X, weights, n_heads):
    X = X + positions(*X.shape[-2:])
    return mha.encoder_layer(X, weights, n_heads)


@pair("batches_and_heads_stay_apart", reference=placed)
def positions_of_the_batch(slip):
    """A position is added to each row of the batch, where each token needs its own."""

    def encoder_layer(X, weights, n_heads):
        at = positions(*X.shape[-2:])
        if slip and X.ndim > 2:
            at = positions(len(X), X.shape[-1])[:, None]
        return mha.encoder_layer(X + at, weights, n_heads)

    return encoder_layer


def counted(X, weights, n_heads, mask=None, slip=False):
    """Count positions from the first token that is not padding, or from the padding."""
    if mask is not None and (mask.dtype != bool or mask.shape[-2] > 1):
        raise NotImplementedError("padding only")
    n, at = X.shape[-2], np.arange(X.shape[-2])
    if mask is not None and not slip:
        at = np.maximum(np.broadcast_to(mask, (*mask.shape[:-1], n)).cumsum(-1) - 1, 0)
        at = at[..., 0, :] if at.ndim < 4 else at[:, 0, 0]
    P = positions(n, X.shape[-1])[at]
    return mha.encoder_layer(X + P, weights, n_heads, mask)


@pair("padding_changes_nothing", reference=counted)
def padding_in_front_is_counted(slip):
    def encoder_layer(X, weights, n_heads, mask=None):
        return counted(X, weights, n_heads, mask, slip)

    return encoder_layer


@pair("inputs_stay_untouched")
def writes_into_its_gains(slip):
    def encode(X, layers, n_heads, mask=None):
        Y = mha.encoder(X, layers, n_heads, mask)
        layers[0]["gain_1"] += slip
        return Y

    return encode
