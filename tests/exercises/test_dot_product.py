"""The exercises of chapter 1 tell right answers from known mistakes."""

import numpy as np
import torch

from exercises import dot_product as check
from tests.exercises.proof import prove


def by_loops(Q, K):
    return [[sum(a * b for a, b in zip(q, k, strict=True)) for k in K] for q in Q]


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
        },
    )


def test_spread_of_thirds_accepts_two_decimals_and_names_each_guess():
    prove(check.spread_of_thirds, 5.77, np.sqrt(300 / 9))


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

    prove(
        check.cosine,
        with_nan_to_num,
        with_torch,
        wrong_ways={
            "NaN for zero vectors": [plain],
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
        },
    )
