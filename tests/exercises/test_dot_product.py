"""The exercises of chapter 1 tell right answers from known mistakes."""

import numpy as np
import torch

from exercises import dot_product as check
from tests.exercises.proof import prove


def by_loops(Q, K):
    return [[sum(a * b for a, b in zip(q, k, strict=True)) for k in K] for q in Q]


def looped(Q, K, reset="pair", leave="end", rows=None):
    """Loop as a beginner does, with a total and a return in any place."""
    S = np.zeros((len(Q), len(K))) if rows is None else rows(Q, K)
    total = 0.0
    for i in range(len(Q)):
        total = 0.0 if reset == "query" else total
        for j in range(len(K)):
            total = 0.0 if reset == "pair" else total
            for a in range(Q.shape[1]):
                total += Q[i][a] * K[j][a]
            S[i][j] = total
            if leave == "pair":
                return S
        if leave == "query":
            return S
    return S


def over_wrong_range(Q, K, n_q=None, n_k=None, width=None):
    n_q, n_k, width = (
        len(right) if wrong is None else len(wrong)
        for right, wrong in ((Q, n_q), (K, n_k), (Q.T, width))
    )
    S = np.zeros((len(Q), len(K)))
    for i in range(n_q):
        for j in range(n_k):
            S[i, j] = sum(Q[i, a] * K[j, a] for a in range(width))
    return S


SLIPS_OF_LOOPS = {
    "one list for all rows": lambda Q, K: looped(
        Q, K, rows=lambda Q, K: [[0.0] * len(K)] * len(Q)
    ),
    "total never reset": lambda Q, K: looped(Q, K, reset="never"),
    "total reset for each query only": lambda Q, K: looped(Q, K, reset="query"),
    "return after the first pair": lambda Q, K: looped(Q, K, leave="pair"),
    "return after the first query": lambda Q, K: looped(Q, K, leave="query"),
    "only the first row returned": lambda Q, K: by_loops(Q[:1], K),
    "only the first score returned": lambda Q, K: Q[0] @ K[0],
    "a list of the first row": lambda Q, K: by_loops(Q, K)[0],
    "one long list": lambda Q, K: [q @ k for q in Q for k in K],
    "a square for every size": lambda Q, K: over_wrong_range(Q, K, n_q=K),
    "keys counted by the queries": lambda Q, K: over_wrong_range(Q, K, n_k=Q),
    "positions counted by the keys": lambda Q, K: over_wrong_range(Q, K, width=K),
    "positions counted by the queries": lambda Q, K: over_wrong_range(Q, K, width=Q),
}


def test_scores_recognises_each_slip_of_loops():
    assert check.scores(looped).passed and check.scores(over_wrong_range).passed
    slips = {name: [answer] for name, answer in SLIPS_OF_LOOPS.items()}
    prove(check.scores, looped, over_wrong_range, wrong_ways=slips)


def test_scores_accepts_loops_einsum_and_torch_and_names_each_mistake():
    prove(
        check.scores,
        by_loops,
        lambda Q, K: np.einsum("ic,jc->ij", Q, K),
        lambda Q, K: torch.from_numpy(Q) @ torch.from_numpy(K).T,
        wrong_ways={
            "no transpose": [lambda Q, K: np.einsum("ic,cj->ij", Q, K)],
            "only pairs with equal index": [lambda Q, K: np.einsum("ic,ic->i", Q, K)],
            "queries and keys swapped": [lambda Q, K: np.array(by_loops(K, Q))],
            "key of the query's index": [
                lambda Q, K: [[sum(q * K[i]) for _ in K] for i, q in enumerate(Q)]
            ],
            "first position left out": [
                lambda Q, K: [[sum(q[1:] * k[1:]) for k in K] for q in Q]
            ],
        },
    )


def test_spread_of_thirds_accepts_two_decimals_and_names_each_guess():
    prove(check.spread_of_thirds, 5.77, np.sqrt(300 / 9))
    assert check.spread_of_thirds(5.8).mistake == "one decimal"
    assert check.spread_of_thirds(300 * (1 / 3)).mistake == (
        "one third counted once, no root"
    )
    assert not check.spread_of_thirds("5.77").passed


def test_cosine_accepts_any_way_past_zero_and_names_each_mistake():
    def with_nan_to_num(Q, K):
        lengths = np.linalg.norm(Q, axis=1)[:, None] * np.linalg.norm(K, axis=1)
        return np.nan_to_num(Q @ K.T / lengths)

    def with_torch(Q, K):
        return torch.nn.functional.cosine_similarity(
            torch.from_numpy(Q)[:, None], torch.from_numpy(K)[None], dim=-1
        )

    def plain(Q, K):
        return np.array([[q @ k / np.sqrt(q @ q * (k @ k)) for k in K] for q in Q])

    def over(x, axis, **options):
        length = np.linalg.norm(x, axis=axis, **options)
        return x / np.where(length == 0, 1, length)

    def naive(x, axis):
        return x / np.linalg.norm(x, axis=axis)

    def at_least_1(x):
        return x / np.linalg.norm(x, axis=1, keepdims=True).clip(1)

    def plus_1(x):
        return x / (1 + np.linalg.norm(x, axis=1)[:, None])

    prove(
        check.cosine,
        with_nan_to_num,
        with_torch,
        wrong_ways={
            "missing keepdims": [lambda Q, K: over(Q, 1) @ over(K, 1).T],
            "missing keepdims, with NaN": [lambda Q, K: naive(Q, 1) @ naive(K, 1).T],
            "columns for rows": [lambda Q, K: over(Q, 0) @ over(K, 0).T],
            "columns for rows, with NaN": [lambda Q, K: naive(Q, 0) @ naive(K, 0).T],
            "rounded to 2 decimals": [lambda Q, K: with_nan_to_num(Q, K).round(2)],
            "NaN for zero vectors": [plain],
            "short vectors kept": [lambda Q, K: at_least_1(Q) @ at_least_1(K).T],
            "1 added to every length": [lambda Q, K: plus_1(Q) @ plus_1(K).T],
            "lengths kept": [lambda Q, K: np.array(by_loops(Q, K))],
        },
    )


def test_best_unit_key_accepts_the_direction_of_q_and_names_each_mistake():
    prove(
        check.best_unit_key,
        lambda q: q / np.linalg.norm(q),
        lambda q: torch.nn.functional.normalize(torch.from_numpy(q), dim=0),
        wrong_ways={
            "length not 1": [lambda q: q / 1],
            "opposite direction": [lambda q: -q / np.linalg.norm(q)],
            "count for length": [lambda q: q / q.size],
            "each number by its own size": [lambda q: q / np.sqrt(q * q)],
            "signs lost": [lambda q: np.sqrt(q**2 / sum(q**2))],
        },
    )
