"""The exercises of chapter 5 tell right answers from known mistakes."""

import numpy as np
import torch

import mha
from exercises import attention as check
from tests.exercises.proof import prove


def by_loops(Q, K, V):
    rows = []
    for q in Q:
        scores = [sum(a * b for a, b in zip(q, k, strict=True)) for k in K]
        raised = [np.exp((s - max(scores)) / len(q) ** 0.5) for s in scores]
        rows.append(sum(r * v for r, v in zip(raised, V, strict=True)) / sum(raised))
    return rows


def by_torch(Q, K, V):
    return torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(np.ascontiguousarray(x))[None] for x in (Q, K, V))
    )[0]


def by_loops_of_bare_scores(Q, K, V):
    rows = []
    for q in Q:
        raised = [np.exp(q @ k) for k in K]
        rows.append(sum(r * v for r, v in zip(raised, V, strict=True)) / sum(raised))
    return rows


def without_keepdims(Q, K, V):
    raised = np.exp(Q @ K.T / np.sqrt(K.shape[1]))
    return (raised / raised.sum(axis=1)) @ V


def test_attend_accepts_loops_einsum_and_torch_and_names_each_mistake():
    def by_einsum(Q, K, V):
        A = mha.softmax(np.einsum("ic,jc->ij", Q, K) / np.sqrt(Q.shape[-1]))
        return np.einsum("ij,jb->ib", A, V)

    prove(
        check.attend,
        by_loops,
        by_einsum,
        by_torch,
        wrong_ways={
            "no scale": [lambda Q, K, V: mha.softmax(mha.dot_product_scores(Q, K)) @ V],
            "softmax over the queries": [
                lambda Q, K, V: mha.softmax(Q @ K.T / len(K.T) ** 0.5, axis=0) @ V
            ],
            "no transpose": [lambda Q, K, V: by_loops(Q, K.T, V)],
            "root of the number of queries": [
                lambda Q, K, V: mha.softmax(Q @ K.T / np.sqrt(len(Q))) @ V
            ],
            "no scale, no largest score subtracted": [by_loops_of_bare_scores],
            "sums do not line up, overflowing": [without_keepdims],
        },
    )


def test_weight_of_the_middle_accepts_the_geometric_mean_and_names_each_guess():
    prove(check.weight_of_the_middle, np.sqrt(0.36 * 0.16), 0.6 * 0.4, "0.24", 0.2401)
    text = check.weight_of_the_middle("a quarter").text
    assert "the result is a text, expected a number" in text
    text = check.weight_of_the_middle((0, 24)).text  # 0,24 with a decimal comma
    assert "the result" in text and "TypeError" not in text


def test_self_attention_accepts_numpy_and_torch_and_names_each_mistake():
    prove(
        check.self_attention,
        lambda X, W_Q, W_K, W_V: by_torch(X @ W_Q, X @ W_K, X @ W_V),
        lambda X, W_Q, W_K, W_V: mha.multi_head_attention(
            X, W_Q, W_K, W_V, np.eye(W_V.shape[1]), 1
        ),
        wrong_ways={
            "one matrix for two roles": [
                lambda X, W_Q, W_K, W_V: by_loops(X @ W_Q, X @ W_Q, X @ W_V)
            ],
            "values not projected": [
                lambda X, W_Q, W_K, W_V: by_torch(X @ W_Q, X @ W_K, X)
            ],
            "only the weights": [
                lambda X, W_Q, W_K, W_V: mha.scaled_dot_product_attention(
                    X @ W_Q, X @ W_K, X @ W_V, return_weights=True
                )[1]
            ],
            "matrices on the left": [
                lambda X, W_Q, W_K, W_V: by_loops(W_Q @ X, W_K @ X, W_V @ X)
            ],
        },
    )


def test_key_order_law_accepts_every_honest_shuffle_and_names_each_mistake():
    def by_torch_permutation(attend):
        torch.manual_seed(1)
        Q, K, V = (torch.randn(s, 3).numpy() for s in (2, 7, 7))
        order = torch.randperm(7).numpy()
        return bool(
            np.abs(attend(Q, K[order], V[order]) - attend(Q, K, V)).max() < 1e-5
        )

    def swapping_two(attend):
        rng = np.random.default_rng(3)
        Q, K, V = (
            rng.normal(size=(1, 2)),
            rng.normal(size=(3, 2)),
            rng.normal(size=(3, 2)),
        )
        swap = [1, 0, 2]
        return np.allclose(attend(Q, K[swap], V[swap]), attend(Q, K, V))

    def of_two_keys(attend):
        Q, K, V = (np.random.default_rng(5).normal(size=(2, 2)) for _ in range(3))
        Q = Q + 1
        return np.allclose(attend(Q, K[::-1], V[::-1]), attend(Q, K, V))

    def moving_queries_too(attend):
        Q, K, V = np.random.default_rng(6).normal(size=(3, 7, 2))
        order = [1, 2, 4, 0, 3, 6, 5]
        return np.allclose(attend(Q[order], K[order], V[order]), attend(Q, K, V)[order])

    def moving_queries_and_not_the_outputs(attend):
        Q, K, V = np.random.default_rng(6).normal(size=(3, 7, 2))
        order = [1, 2, 4, 0, 3, 6, 5]
        return np.allclose(attend(Q[order], K[order], V[order]), attend(Q, K, V))

    prove(
        check.key_order_law,
        by_torch_permutation,
        swapping_two,
        wrong_ways={
            "passes everything": [lambda attend: True],
            "True and False exchanged": [lambda attend: not swapping_two(attend)],
            "only the mirror image": [of_two_keys],
            "queries shuffled too": [moving_queries_too],
            "values left behind": [moving_queries_and_not_the_outputs],
        },
    )
