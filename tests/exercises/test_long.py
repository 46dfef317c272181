"""The exercises of chapter 16 tell right answers from known mistakes."""

import numpy as np
import torch

import mha
from exercises import long as check
from exercises.long import draw_text, forgetful
from mha import laws
from tests.exercises.proof import prove


def test_scores_memory_accepts_every_way_to_write_16():
    prove(
        check.scores_memory,
        65536**2 * 4 / 2**30,
        np.float32(16),
        wrong_ways={
            "billions of bytes": [17.2, 17.18],
            "linear": [2**29 / 2**30],
        },
    )


def test_cache_bytes_accepts_the_shapes_of_arrays_and_names_each_slip():
    def by_arrays(n, n_layers, n_heads, n_kv_heads, d_head, n_bytes):
        K = np.broadcast_to(np.zeros(1), (n_layers, n_kv_heads, n, d_head))
        return 2 * K.size * n_bytes

    def by_loops(n, n_layers, n_heads, n_kv_heads, d_head, n_bytes):
        total = 0
        for _ in range(n_layers):
            for _what in ("keys", "values"):
                total += n_kv_heads * n * d_head * n_bytes
        return float(total)

    def by_width(n, n_layers, n_heads, n_kv_heads, d_head, n_bytes):
        d_model = n_heads * d_head
        return n_layers * 2 * n * d_model * n_bytes

    prove(
        check.cache_bytes,
        by_arrays,
        by_loops,
        wrong_ways={
            "a pair for each query head": [by_width],
            "keys only": [lambda *args: by_loops(*args) / 2],
            "quadratic": [lambda n, *sizes: n * by_arrays(n, *sizes)],
        },
    )


def test_merge_outputs_accepts_other_ways_and_names_each_mistake():
    def by_softmax(Y_a, lse_a, Y_b, lse_b):
        a, b = mha.softmax(np.stack([lse_a, lse_b]), axis=0)[..., None]
        return a * Y_a + b * Y_b, np.logaddexp(lse_a, lse_b)

    def by_rows(Y_a, lse_a, Y_b, lse_b):
        rows, logs = [], []
        for y_a, a, y_b, b in zip(Y_a, lse_a, Y_b, lse_b, strict=True):
            top = max(a, b)
            if top == -np.inf:
                rows.append(0 * y_a)
                logs.append(top)
                continue
            w_a, w_b = np.exp(a - top), np.exp(b - top)
            rows.append((w_a * y_a + w_b * y_b) / (w_a + w_b))
            logs.append(top + np.log(w_a + w_b))
        return np.array(rows), np.array(logs)

    def by_torch(*args):
        Y_a, lse_a, Y_b, lse_b = map(torch.from_numpy, args)
        lse = torch.logaddexp(lse_a, lse_b)
        parts = (lse_a, Y_a), (lse_b, Y_b)
        Y = sum((part - lse).exp()[:, None] * Y for part, Y in parts)
        return Y.nan_to_num(), lse

    def in_a_list(*args):
        return list(by_rows(*args))

    def one_top(Y_a, lse_a, Y_b, lse_b):
        top = np.max([lse_a, lse_b])
        a, b = np.exp(lse_a - top)[:, None], np.exp(lse_b - top)[:, None]
        return (a * Y_a + b * Y_b) / (a + b), top + np.log(a + b)[:, 0]

    def overflows(Y_a, lse_a, Y_b, lse_b):
        total = np.exp(lse_a) + np.exp(lse_b)
        a, b = np.exp(lse_a) / total, np.exp(lse_b) / total
        return Y_a * a[:, None] + Y_b * b[:, None], np.log(total)

    def by_ratio(Y_a, lse_a, Y_b, lse_b):
        """The share of the first half is a logistic function of the difference."""
        a = 1 / (1 + np.exp(lse_b - lse_a))[:, None]
        return a * Y_a + (1 - a) * Y_b, np.logaddexp(lse_a, lse_b)

    def by_stack(Y_a, lse_a, Y_b, lse_b):
        both = np.stack([lse_a, lse_b])
        E = np.exp(both - both.max(0))
        Y = np.einsum("kq,kqd->qd", E / E.sum(0), np.stack([Y_a, Y_b]))
        return Y, both.max(0) + np.log(E.sum(0))

    def overflows_only(Y_a, lse_a, Y_b, lse_b):
        total = np.exp(lse_a) + np.exp(lse_b)
        a, b = np.exp(lse_a)[:, None], np.exp(lse_b)[:, None]
        never_zero = np.where(total == 0, 1, total)[:, None]
        return (Y_a * a + Y_b * b) / never_zero, np.log(total)

    prove(
        check.merge_outputs,
        by_softmax,
        by_rows,
        by_torch,
        in_a_list,
        wrong_ways={
            "one shift for all queries": [one_top],
            "no shift": [overflows, overflows_only],
            "plain mean": [
                lambda a, m, b, n: (np.mean([a, b], axis=0), by_torch(a, m, b, n)[1])
            ],
            "NaN for two empty halves": [by_ratio],
            "two NaN for two empty halves": [by_stack],
        },
    )


def test_two_empty_halves_give_what_attention_gives_a_query_without_keys():
    """Zeros, as in chapter 4, and the logarithm of a sum without terms."""
    Q, K, V = draw_text(10)
    nothing = np.zeros((7, 10), bool)
    Y = mha.scaled_dot_product_attention(Q, K, V, nothing)
    empty = Y, np.full(7, -np.inf)
    merged, lse = check.merge_outputs.right(*empty, *empty)
    np.testing.assert_array_equal(merged, Y)
    np.testing.assert_array_equal(lse, -np.inf)
    np.testing.assert_array_equal(mha.chunked_attention(Q, K, V, nothing), Y)


def test_merging_is_what_attention_to_two_halves_needs():
    Q, K, V = draw_text(10)
    S = Q @ K.T / np.sqrt(8)
    halves = []
    for keys in (slice(0, 3), slice(3, 10)):
        Y = mha.scaled_dot_product_attention(Q, K[keys], V[keys])
        halves += [Y, np.log(np.exp(S[:, keys]).sum(1))]
    Y, lse = check.merge_outputs.right(*halves)
    np.testing.assert_allclose(Y, mha.scaled_dot_product_attention(Q, K, V))
    np.testing.assert_allclose(lse, np.log(np.exp(S).sum(1)))


def test_decode_step_accepts_every_way_to_grow_a_cache_and_names_each_mistake():
    def by_concatenation(x, K, V, W_Q, W_K, W_V):
        K = np.concatenate([K, (x @ W_K)[None]])
        V = np.concatenate([V, (x @ W_V)[None]])
        A = mha.softmax(K @ (x @ W_Q) / np.sqrt(len(x)))
        return A @ V, K, V

    def by_torch(*args):
        x, K, V, W_Q, W_K, W_V = map(torch.from_numpy, args)
        K, V = torch.vstack([K, x @ W_K]), torch.vstack([V, x @ W_V])
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend((x @ W_Q)[None], K, V)[0], K, V

    def first_value(x, K, V, W_Q, W_K, W_V):
        _, K, V = by_concatenation(x, K, V, W_Q, W_K, W_V)
        return V[0], K, V

    def unscaled(x, K, V, W_Q, W_K, W_V):
        _, K, V = by_concatenation(x, K, V, W_Q, W_K, W_V)
        return mha.softmax(x @ W_Q @ K.T) @ V, K, V

    def averages_keys(x, K, V, W_Q, W_K, W_V):
        _, K, V = by_concatenation(x, K, V, W_Q, W_K, W_V)
        return mha.softmax(x @ W_Q @ K.T / np.sqrt(len(x))) @ K, K, V

    def exchanges_roles(x, K, V, W_Q, W_K, W_V):
        _, K, V = by_concatenation(x, K, V, W_Q, W_K, W_V)
        return mha.softmax(x @ W_Q @ V.T / np.sqrt(len(x))) @ K, K, V

    prove(
        check.decode_step,
        by_concatenation,
        by_torch,
        lambda *args: list(by_torch(*args)),
        wrong_ways={
            "is_causal": [first_value],
            "no scale": [unscaled],
            "keys averaged": [averages_keys],
            "roles exchanged": [exchanges_roles],
        },
    )


def test_decoding_token_by_token_gives_the_rows_of_causal_attention():
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(7, 5)), rng.normal(size=(3, 5, 5))
    rows, K, V = [], np.zeros((0, 5)), np.zeros((0, 5))
    for x in X:
        y, K, V = check.decode_step.right(x, K, V, *W)
        rows.append(y)
    expected = mha.scaled_dot_product_attention(*(X @ W), is_causal=True)
    np.testing.assert_allclose(rows, expected)


def test_long_text_law_accepts_every_law_with_teeth_and_names_each_mistake():
    def with_a_reference(attend):
        Q, K, V = draw_text(2000, seed=5)
        order = np.argsort(K @ Q[0])
        expected = mha.scaled_dot_product_attention(Q, K[order], V[order])
        return np.allclose(attend(Q, K[order], V[order]), expected)

    def shuffled(attend):
        Q, K, V = draw_text(1500, d=4, seed=6)
        order = np.random.default_rng(0).permutation(1500)
        Y = attend(Q, K, V)
        return bool(np.abs(Y - attend(Q, K[order], V[order])).max() < 1e-8)

    def doubled_with_another_behind(attend):
        """A late key that scores far more takes nearly everything."""
        Q, K, V = np.ones((1, 2)), np.zeros((900, 2)), np.zeros((900, 2))
        K[-1], V[-1] = 40, 1
        return bool(attend(Q, K, V)[0, 0] > 0.999)

    def as_a_test(attend):
        Q, K, V = draw_text(1500)
        expected = mha.scaled_dot_product_attention(Q, K, V)
        np.testing.assert_allclose(attend(Q, K, V), expected, atol=1e-9)
        return True

    def short_reference(attend):
        Q, K, V = draw_text(400)
        expected = mha.scaled_dot_product_attention(Q, K, V)
        return np.allclose(attend(Q, K, V), expected)

    prove(
        check.long_text_law,
        with_a_reference,
        shuffled,
        doubled_with_another_behind,
        as_a_test,
        wrong_ways={
            "too short": [short_reference],
            "passes everything": [lambda attend: attend(*draw_text(5)).shape == (7, 8)],
        },
    )


def test_a_law_that_knows_the_names_of_the_right_ones_does_not_pass():
    friends = mha.scaled_dot_product_attention, mha.chunked_attention
    assert not check.long_text_law(lambda attend: attend in friends).passed


def test_the_laws_of_the_book_pass_a_large_block_and_detect_a_small_one():
    assert laws.key_order_is_free.check(forgetful(512))
    assert not laws.key_order_is_free.check(forgetful(1))
