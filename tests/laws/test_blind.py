"""Bugs that somebody wrote who had read the README alone, in small."""

import math

import numpy as np
import pytest
import torch

import mha
from mha import laws
from tests.laws.reports import broken


def weights(Q, K, mask=None):
    mask = mask == 1 if mask is not None and mask.dtype.kind == "i" else mask
    return mha.scaled_dot_product_attention(Q, K, K, mask, return_weights=True)[1]


def found(function, *only, **said):
    return set(broken(laws.check(function, only or None, **said)))


# Laws


def test_a_function_of_sequences_is_asked_about_a_batch():
    def values_of_all(Q, K, V, mask=None):
        _b, _n, _d = Q.shape
        return np.einsum("bqk,ckd->bqd", weights(Q, K, mask), V)

    def mask_of_the_first(Q, K, V, mask=None):
        _b, _n, _d = Q.shape
        return weights(Q, K, None if mask is None else mask[:1]) @ V

    assert "batches_and_heads_stay_apart" in found(values_of_all)
    assert found(mask_of_the_first) == {"batch_masks_reach_their_own"}


def test_an_integer_mask_is_held_against_the_bool_mask_of_the_same_function():
    def scale_of_v(Q, K, V, mask=None):
        Q = Q * (K.shape[-1] / V.shape[-1]) ** 0.5
        return weights(Q, K, mask) @ V

    def loop(Q, K, V, mask=None):
        masks = [None] * len(Q) if mask is None else mask
        return np.stack(
            [weights(q, k, m) @ v for q, k, v, m in zip(Q, K, V, masks, strict=True)]
        )

    both = "integer_masks_hide", "float_masks_are_added"
    for function, said in ((scale_of_v, {}), (loop, {}), (loop, {"mask_shape": "bqk"})):
        report = laws.check(function, both, **said)
        assert [f.verdict for f in report.findings] == ["holds", "holds"]


def test_masks_are_asked_where_blocks_end():
    def mask_of_the_first_keys(Q, K, V, mask=None):
        if mask is not None and K.shape[-2] > 128:
            mask = mask | (np.arange(K.shape[-2]) >= 128)
        return weights(Q, K, mask) @ V

    def causal_in_chunks(Q, K, V, mask=None, is_causal=False):
        chunks = np.split(np.arange(len(Q)), range(32, len(Q), 32))
        past = np.tri(32, len(K), dtype=bool)

        def seen(i):
            m = None if mask is None else np.broadcast_to(mask, (len(Q), len(K)))[i]
            causal = past[: len(i)] if is_causal else None
            return causal if m is None else m if causal is None else m & causal

        return np.concatenate([weights(Q[i], K, seen(i)) @ V for i in chunks])

    for function in mask_of_the_first_keys, causal_in_chunks:
        assert found(function) == {"every_length_alike"}


def test_nothing_is_named_for_a_dtype_or_a_written_input_alone():
    def in_float64(Q, K, V, mask=None):
        K, V = K.astype(float), V[: len(K) // 129 * 129 or len(K)]
        return weights(Q, K[: len(V)], mask) @ V

    def writes(Q, K, V, mask=None):
        K /= 1 + 1e-9
        return weights(Q, K, mask) @ V

    for function in in_float64, writes:
        report = laws.check(function)
        assert report.broken
        assert report.likeness is None


def test_a_mask_with_an_empty_row_stays_as_it_is():
    def opens_empty_rows(Q, K, V, mask=None):
        if mask is None:
            return weights(Q, K) @ V
        empty = ~mask.any(-1)
        mask[empty] = True
        return np.where(empty[..., None], 0, weights(Q, K, mask) @ V)

    assert found(opens_empty_rows) == {"inputs_stay_untouched"}


def test_integers_are_refused_or_give_the_numbers():
    def in_the_dtype_of_q(Q, K, V, mask=None):
        return (weights(Q, K, mask) @ V).astype(Q.dtype)

    def refuses(Q, K, V, mask=None):
        assert Q.dtype.kind == "f"
        return in_the_dtype_of_q(Q, K, V, mask)

    assert found(in_the_dtype_of_q) == {"every_dtype_gives_the_numbers"}
    assert found(refuses) == set()


def test_a_mask_that_is_kept_by_its_shape_is_memory_and_nothing_else():
    kept = {}

    def cached(Q, K, V, mask=None):
        mask = mask if mask is None else kept.setdefault(mask.shape, mask.copy())
        return weights(Q, K, mask) @ V

    for seed in range(3):
        report = laws.check(cached, seed=seed)
        assert broken(report) == ["calls_do_not_remember"]
        assert "a call remembers the calls before it" in report.unasked
        assert "after one of the same shape" in report.broken[0].why


def test_padding_is_handed_over_beside_the_mask():
    def one_of_them(query, key, value, attn_mask=None, key_padding_mask=None):
        S = query @ key.mT / math.sqrt(key.shape[-1])
        if attn_mask is not None:
            S = S.masked_fill(attn_mask, -math.inf)
        elif key_padding_mask is not None:
            S = S.masked_fill(key_padding_mask[:, None, None], -math.inf)
        return torch.nan_to_num(S.softmax(-1)) @ value

    def both(query, key, value, attn_mask=None, key_padding_mask=None):
        if key_padding_mask is not None:
            padding = key_padding_mask[:, None, None]
            attn_mask = padding if attn_mask is None else attn_mask | padding
        return one_of_them(query, key, value, attn_mask)

    assert found(one_of_them, mask_true="hide") == {"batch_masks_reach_their_own"}
    laws.assert_lawful(both, mask_true="hide")
    with pytest.raises(AssertionError, match="key_padding_mask looks like a mask"):
        laws.assert_lawful(both, ["self_only_mask"])
    assert not laws.check(torch.nn.MultiheadAttention(6, 3)).unread


def test_what_was_never_handed_over_is_told():
    def with_dropout(query, key, value, attn_mask=None, dropout_p=0.0, scale=None):
        return torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask
        )

    said = " ".join(repr(laws.check(with_dropout)).split())
    assert "left at default: dropout_p, scale;" in said


def test_a_causal_buffer_that_ends_is_found_wherever_it_ends():
    def buffered(X, weights, n_heads):
        i, j = np.ogrid[: len(X), : len(X)]
        past = (j <= i) | ((i >= 2048) & (j >= 2048))
        return mha.multi_head_attention(X, **weights, n_heads=n_heads, mask=past)

    adapter = laws.Adapter(buffered, causal="built in")
    assert found(adapter) == {"silent_query_takes_the_mean"}
