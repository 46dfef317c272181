"""Bugs that somebody wrote who had read the README alone, in small."""

import numpy as np

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
