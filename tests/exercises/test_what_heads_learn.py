"""The exercises of chapter 13 tell right answers from known mistakes."""

import numpy as np
import torch

import mha
from exercises import what_heads_learn as check
from tests.exercises.proof import prove


def test_silence_head_takes_one_term_from_the_sum_and_names_each_mistake():
    def by_loops(W_O, n_heads, head):
        width = len(W_O) // n_heads
        answer = [list(row) for row in W_O]
        for i in range(head * width, (head + 1) * width):
            answer[i] = [0.0] * W_O.shape[1]
        return answer

    def by_a_factor(W_O, n_heads, head):
        keeps = np.arange(n_heads) != head
        return W_O * np.repeat(keeps, len(W_O) // n_heads)[:, None]

    def by_axes(W_O, n_heads, head):
        blocks = W_O.reshape(n_heads, -1, W_O.shape[1]).copy()
        blocks[head] = 0
        return blocks.reshape(W_O.shape)

    def with_torch(W_O, n_heads, head):
        blocks = list(torch.from_numpy(W_O).clone().chunk(n_heads))
        blocks[head] = torch.zeros_like(blocks[head])
        return torch.cat(blocks)

    def interleaved(W_O, n_heads, head):
        blocks = W_O.reshape(-1, n_heads, W_O.shape[1]).copy()
        blocks[:, head] = 0
        return blocks.reshape(W_O.shape)

    def without(W_O, n_heads, head):
        rows = [k for k in range(len(W_O)) if k // (len(W_O) // n_heads) != head]
        return W_O[rows]

    def with_d_model(W_O, n_heads, head):
        width = W_O.shape[1] // n_heads
        answer = W_O.copy()
        answer[head * width :][:width] = 0
        return answer

    prove(
        check.silence_head,
        by_loops,
        by_a_factor,
        by_axes,
        with_torch,
        wrong_ways={
            "every n_heads-th row": [interleaved],
            "the others": [lambda W_O, *which: W_O - by_axes(W_O, *which)],
            "rows deleted": [without],
            "width from the columns": [with_d_model],
        },
    )


def test_the_silent_head_of_the_exercise_is_the_one_that_is_missing_in_the_layer():
    rng = np.random.default_rng(0)
    X, W_Q, W_K, W_V, W_O = (rng.normal(size=(6, 6)) for _ in range(5))
    keep = np.arange(6) // 2 != 1
    narrow = (W[:, keep] for W in (W_Q, W_K, W_V))
    silent = check.silence_head.right(W_O, 3, 1)
    np.testing.assert_allclose(
        mha.multi_head_attention(X, W_Q, W_K, W_V, silent, n_heads=3),
        mha.multi_head_attention(X, *narrow, W_O[keep], n_heads=2),
        rtol=0,
        atol=1e-12,
    )


def test_effective_keys_counts_keys_by_entropy_for_any_leading_axes():
    def by_loops(A):
        if A.ndim > 1:
            return np.array([by_loops(row) for row in A])
        return np.exp(-sum(p * np.log(p) for p in A if p > 0))

    def as_a_product(A):
        """Each weight to its own power; 0 to the power 0 is 1."""
        return 1 / np.prod(A**A, axis=-1)

    def with_torch(A):
        A = torch.from_numpy(A)
        return torch.special.entr(A).sum(-1).exp()

    def with_bits(A):
        logs = np.log2(np.where(A > 0, A, 1))
        return 2 ** -(A * logs).sum(-1)

    prove(
        check.effective_keys,
        by_loops,
        as_a_product,
        with_torch,
        with_bits,
        wrong_ways={
            "the entropy": [lambda A: np.log(by_loops(A))],
            "in bits": [lambda A: np.log2(with_bits(A))],
            "zero times infinity": [lambda A: 2 ** -(A * np.log2(A)).sum(-1)],
            "down the columns": [lambda A: by_loops(A.swapaxes(-1, -2))],
            "the mean": [lambda A: float(np.mean(by_loops(A)))],
        },
    )


def test_drop_twin_keeps_the_sum_of_both_and_names_each_mistake():
    def by_loops(W_O, n_heads, keep, drop):
        width = W_O.shape[0] // n_heads
        answer = [list(row) for row in W_O]
        for i in range(width):
            for j in range(W_O.shape[1]):
                answer[keep * width + i][j] += answer[drop * width + i][j]
                answer[drop * width + i][j] = 0.0
        return answer

    def by_a_matrix(W_O, n_heads, keep, drop):
        move = np.eye(n_heads)
        move[keep, drop], move[drop, drop] = 1, 0
        return np.kron(move, np.eye(len(W_O) // n_heads)) @ W_O

    def by_axes(W_O, n_heads, keep, drop):
        blocks = W_O.reshape(n_heads, -1, W_O.shape[1]).copy()
        blocks[keep] += blocks[drop]
        blocks[drop] = 0
        return blocks.reshape(W_O.shape)

    def silenced(W_O, n_heads, keep, drop):
        blocks = W_O.reshape(n_heads, -1, W_O.shape[1]).copy()
        blocks[drop] = 0
        return blocks.reshape(W_O.shape)

    prove(
        check.drop_twin,
        by_loops,
        by_a_matrix,
        by_axes,
        wrong_ways={
            "only silenced": [silenced],
            "columns": [lambda W_O, *which: by_axes(W_O.T.copy(), *which).T],
            "not silenced": [
                lambda W_O, *which: by_axes(W_O, *which) + W_O - silenced(W_O, *which)
            ],
        },
    )


def test_heads_to_spare_stops_at_the_first_fall_below_the_tolerance():
    def by_a_loop(curve, tolerance):
        spare = 0
        for k in range(1, len(curve)):
            if round(curve[0] - curve[k], 6) > tolerance:
                break
            spare = k
        return spare

    def by_running_minimum(curve, tolerance):
        worst = np.minimum.accumulate(curve)
        return int((worst >= curve[0] - tolerance - 1e-9).sum()) - 1

    def without_care_for_rounding(curve, tolerance):
        fell = [k for k, score in enumerate(curve) if score < curve[0] - tolerance]
        return min(fell, default=len(curve)) - 1

    prove(
        check.heads_to_spare,
        by_a_loop,
        by_running_minimum,
        without_care_for_rounding,
        wrong_ways={
            "the first that is too many": [lambda c, t: by_a_loop(c, t) + 1],
            "argmax where nothing is too low": [
                lambda c, t: (c < c[0] - t - 1e-9).argmax() - 1
            ],
            "the last that is good enough": [
                lambda c, t: max(k for k in range(len(c)) if c[k] >= c[0] - t - 1e-9)
            ],
        },
    )
