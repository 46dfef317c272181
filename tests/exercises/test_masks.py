"""The exercises of chapter 4 tell right answers from known mistakes."""

import numpy as np
import torch

import mha
from exercises import masks as check
from tests.exercises.proof import prove


def test_the_row_of_a_word_is_told_from_other_answers():
    prove(
        check.causal_row,
        [0.22, 0.67, 0.11, 0],
        np.array([2, 6, 1, 0]) / 9,
        torch.tensor([np.log(2), np.log(6), 0, -np.inf]).softmax(-1),
        wrong_ways={
            "no mask": ([0.12, 0.35, 0.06, 0.47],),
            "mask after the softmax": ([0.12, 0.35, 0.06, 0],),
            "logarithms as weights": ([0.69, 1.79, 0, 2.08],),
            "logarithms as weights, the last one hidden": ([0.69, 1.79, 0, 0],),
            "the word itself is hidden": ([2 / 8, 6 / 8, 0, 0],),
            "rounded percentages": ([22, 67, 11, 0],),
            "cut instead of rounded": ([0.22, 0.66, 0.11, 0],),
            "rounded to one decimal": ([0.2, 0.7, 0.1, 0],),
        },
    )


def by_loops(S, mask):
    mask = np.broadcast_to(mask, S.shape)
    A = np.zeros(S.shape)
    for row in np.ndindex(S.shape[:-1]):
        seen = [s for s, look in zip(S[row], mask[row], strict=True) if look]
        exps = [np.exp(s - max(seen)) for s in seen]
        A[row][mask[row]] = [e / sum(exps) for e in exps]
    return A


def by_torch(S, mask):
    S, mask = torch.from_numpy(S), torch.from_numpy(mask)
    return S.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0.0)


def by_added_infinity(S, mask):
    S = S + np.where(mask, 0, -np.inf)
    E = np.exp(S - np.nan_to_num(S.max(-1, keepdims=True), neginf=0))
    return E / np.maximum(E.sum(-1, keepdims=True), np.finfo(float).tiny)


def test_a_masked_softmax_is_told_from_those_that_fail():
    def added_number(S, mask):
        return torch.from_numpy(S + np.where(mask, 0, -1e9)).softmax(-1)

    def softmax_of_the_book(S, mask):
        return mha.softmax(np.where(mask, S, -np.inf))

    def without_a_guard(S, mask):
        filled = torch.from_numpy(np.where(mask, S, -np.inf))
        return torch.softmax(filled, -1)

    def crossed_out(S, mask):
        return torch.from_numpy(S).softmax(-1) * torch.from_numpy(mask)

    prove(
        check.safe_masked_softmax,
        by_loops,
        by_torch,
        by_added_infinity,
        wrong_ways={
            "NaN in an empty row": (without_a_guard,),
            "a large negative number added": (added_number,),
            "mask after the softmax": (crossed_out,),
            "mask upside down": (lambda S, mask: by_loops(S, np.logical_not(mask)),),
            "rounded weights": (lambda S, mask: by_loops(S, mask).round(2),),
        },
    )
    verdict = check.safe_masked_softmax(softmax_of_the_book)
    assert "this calls mha.softmax" in verdict.text


def mask_by_loops(lengths):
    n = max(lengths)
    mask = np.zeros((len(lengths), 1, n, n), dtype=bool)
    for b, length in enumerate(lengths):
        for i in range(n):
            for j in range(n):
                mask[b, 0, i, j] = n - length <= j <= i
    return mask


def column(lengths):
    return np.reshape(lengths, (-1, 1, 1, 1))


def borrowed(lengths):
    n = max(lengths)
    future = np.triu(np.ones((n, n), dtype=bool), k=1)
    filler = np.arange(n) < n - np.reshape(lengths, (-1, 1, 1, 1))
    return future | filler


def test_a_mask_for_a_batch_is_told_from_others():
    def each_part_turned_round(lengths):
        n = max(lengths)
        real = np.arange(n) >= n - np.reshape(lengths, (-1, 1, 1, 1))
        return np.tri(n, dtype=bool) | real

    def closed_rows(lengths):
        n = max(lengths)
        real = np.arange(n)[:, None] >= n - np.reshape(lengths, (-1, 1, 1, 1))
        return np.tri(n, dtype=bool) & real

    def triangle(keep, **shift):
        def mask(lengths):
            n = max(lengths)
            real = np.arange(n) >= n - np.reshape(lengths, (-1, 1, 1, 1))
            return keep(np.ones((n, n)), **shift).astype(bool) & real

        return mask

    prove(
        check.batch_mask,
        mask_by_loops,
        lambda lengths: ~borrowed(lengths),
        triangle(np.tril),
        lambda lengths: torch.from_numpy(mask_by_loops(lengths)),
        wrong_ways={
            "True means hidden": (borrowed,),
            "or instead of and": (each_part_turned_round,),
            "rows instead of columns": (closed_rows,),
            "np.triu for np.tril": (triangle(np.triu),),
            "np.triu with k=1": (triangle(np.triu, k=1),),
            "padding upside down": (
                lambda lengths: (
                    np.tri(max(lengths), dtype=bool)
                    & (np.arange(max(lengths)) < max(lengths) - column(lengths))
                ),
            ),
            "numbers instead of booleans": (lambda n: mask_by_loops(n).astype(int),),
        },
    )


def test_the_mask_of_the_last_rows_is_told_from_others():
    def cut_from_the_square(n_q, n_k):
        whole = np.tri(max(n_q, n_k), dtype=bool)
        if n_q > n_k:
            return np.vstack([np.zeros((n_q - n_k, n_k), bool), np.tri(n_k) > 0])
        return whole[n_k - n_q :]

    def by_steps(n_q, n_k):
        return [[j - n_k <= i - n_q for j in range(n_k)] for i in range(n_q)]

    def with_torch(n_q, n_k):
        return torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)

    prove(
        check.last_rows_mask,
        cut_from_the_square,
        by_steps,
        with_torch,
        wrong_ways={
            "counted from the first token": (
                lambda n_q, n_k: [[j <= i for j in range(n_k)] for i in range(n_q)],
            ),
            "upper triangle": (
                lambda n_q, n_k: np.triu(np.ones((n_q, n_k)), n_k - n_q) > 0,
            ),
            "np.triu for np.tril, not shifted": (
                lambda n_q, n_k: [[j >= i for j in range(n_k)] for i in range(n_q)],
            ),
            "np.triu with k=1, not shifted": (
                lambda n_q, n_k: [[j > i for j in range(n_k)] for i in range(n_q)],
            ),
            "numbers instead of booleans": (
                lambda n_q, n_k: np.tril(np.ones((n_q, n_k)), n_k - n_q),
                lambda n_q, n_k: np.where(by_steps(n_q, n_k), 0, -np.inf),
            ),
            "fewer rows than queries": (lambda n_q, n_k: np.tri(n_k)[-n_q:] > 0,),
        },
    )


def inputs(n=5):
    rng = np.random.default_rng(11)
    return rng.normal(size=(3, n, 2))


def future_leaves_the_past_alone(attend):
    Q, K, V = inputs()
    M = np.tri(5, dtype=bool)
    before = attend(Q, K, V, mask=M)[:3]
    K[4], V[4] = K[4] + 9, 7
    return np.abs(attend(Q, K, V, mask=M)[:3] - before).max() < 1e-5


def the_rest_gets_the_whole_unit(attend):
    Q, K, V = inputs()
    M = np.array([True, True, False, True, False])
    _, A = attend(Q, K, V, mask=M, return_weights=True)
    return bool(np.isclose(A[:, M].sum(-1), 1, atol=1e-5).all())


def covering_is_leaving_out(attend):
    Q, K, V = inputs()
    M = np.arange(5) < 2
    return np.allclose(
        attend(Q, K, V, mask=M), attend(Q, K[:2], V[:2]), rtol=0, atol=1e-5
    )


def test_a_law_about_the_denominator_is_told_from_those_that_fail():
    def only_zeros(attend):
        M = np.array([True, False, False, True, True])
        A = attend(*inputs(), mask=M, return_weights=True)[1]
        return bool((A[:, ~M] == 0).all())

    def last_row_alone(attend):
        Q, K, V = inputs()
        Y = attend(Q, K, np.ones_like(V), mask=np.tri(5, dtype=bool))
        return bool(np.isclose(Y[-1], 1, atol=1e-5).all())

    def open_attention(attend):
        A = attend(*inputs(), return_weights=True)[1]
        return bool(np.isclose(A.sum(-1), 1, atol=1e-5).all())

    prove(
        check.denominator_law,
        future_leaves_the_past_alone,
        the_rest_gets_the_whole_unit,
        covering_is_leaving_out,
        wrong_ways={
            "only the hidden weights": (only_zeros,),
            "true of everything": (last_row_alone, lambda attend: True),
            "no mask given": (open_attention,),
            "false of correct attention": (lambda attend: False,),
            "verdict reversed": (lambda attend: not covering_is_leaving_out(attend),),
        },
    )


def test_a_law_that_gives_a_mask_of_integers_hears_of_the_mask():
    def with_integers(attend):
        Q, K, V = inputs()
        return np.allclose(attend(Q, K, V**0, mask=np.tri(5, dtype=int)), 1)

    assert "mask must be bool" in check.denominator_law(with_integers).text


def test_a_law_without_a_return_hears_of_the_return():
    def silent(attend):
        attend(*inputs(), mask=np.tri(5, dtype=bool))

    assert "is a return missing?" in check.denominator_law(silent).text
