"""The exercises of chapter 8 tell right answers from known mistakes."""

import numpy as np
import torch

import mha
from exercises import output as check
from mha.nn import MultiHeadAttention
from tests.exercises.proof import prove


def test_sum_of_heads_accepts_loops_einsum_and_torch_and_names_each_mistake():
    def by_loop(heads, W_O):
        d_v, Y = heads.shape[-1], 0
        for r in range(heads.shape[-3]):
            Y = Y + heads[..., r, :, :] @ W_O[r * d_v : (r + 1) * d_v]
        return Y

    def by_einsum(heads, W_O):
        blocks = W_O.reshape(heads.shape[-3], heads.shape[-1], -1)
        return np.einsum("...hnv,hvd->...nd", heads, blocks)

    def by_torch(heads, W_O):
        heads, W_O = torch.from_numpy(heads), torch.from_numpy(W_O)
        return (heads @ W_O.unflatten(0, (heads.shape[-3], -1))).sum(-3)

    prove(
        check.sum_of_heads,
        by_loop,
        by_einsum,
        by_torch,
        wrong_ways={
            "sum divided by the number of heads": [
                lambda heads, W_O: by_einsum(heads, W_O) / heads.shape[-3]
            ],
            "W_O transposed": [lambda heads, W_O: by_loop(heads, W_O.T)],
            "interleaved rows": [
                lambda heads, W_O: sum(
                    heads[..., r, :, :]
                    @ W_O.reshape(heads.shape[-1], -1, W_O.shape[1])[:, r]
                    for r in range(heads.shape[-3])
                )
            ],
            "blocks in the opposite order": [
                lambda heads, W_O: by_einsum(np.flip(heads, -3), W_O)
            ],
            "not added": [
                lambda heads, W_O: (
                    heads @ W_O.reshape(heads.shape[-3], heads.shape[-1], -1)
                )
            ],
            "heads mixed with tokens": [
                lambda heads, W_O: (
                    heads.reshape(*heads.shape[:-3], heads.shape[-2], len(W_O)) @ W_O
                )
            ],
        },
    )


def test_sum_of_heads_refuses_the_concatenation_that_the_task_forbids():
    verdict = check.sum_of_heads(lambda heads, W_O: mha.merge_heads(heads) @ W_O)
    assert verdict.text.startswith("this calls mha.merge_heads; the task is to do")


def test_a_product_that_does_not_fit_is_told_with_its_sizes():
    verdict = check.sum_of_heads(lambda heads, W_O: heads @ W_O)
    assert "a product A @ B does not fit: A is 1 wide and B 2 high" in verdict.text


def test_count_parameters_accepts_formulas_and_names_each_mistake():
    def matrix_by_matrix(d_model, n_heads, d_k, d_v, bias):
        shapes = [(d_model, d_k), (d_model, d_k), (d_model, d_v)] * n_heads
        shapes += [(n_heads * d_v, d_model)]
        return sum((rows + bias) * columns for rows, columns in shapes)

    def with_floats(d_model, n_heads, d_k, d_v, bias):
        return float(matrix_by_matrix(d_model, n_heads, d_k, d_v, bias))

    prove(
        check.count_parameters,
        matrix_by_matrix,
        with_floats,
        wrong_ways={
            "biases forgotten": [
                lambda d, h, d_k, d_v, bias: matrix_by_matrix(d, h, d_k, d_v, 0)
            ],
            "always four squares": [
                lambda d, h, d_k, d_v, bias: 4 * d * (d + 1) if bias else 4 * d**2
            ],
        },
    )


def test_count_parameters_counts_what_pytorch_stores():
    for n_heads in (1, 2, 8):
        layer = MultiHeadAttention(16, n_heads)
        stored = sum(p.numel() for p in layer.parameters())
        width = 16 // n_heads
        assert check.count_parameters.right(16, n_heads, width, width, True) == stored


def test_fold_value_bias_accepts_every_product_and_names_each_mistake():
    def as_a_zero_token(b_V, W_O, b_O):
        return (np.zeros((1, len(b_V))) + b_V) @ W_O + b_O

    prove(
        check.fold_value_bias,
        lambda b_V, W_O, b_O: W_O.T @ b_V + b_O,
        lambda b_V, W_O, b_O: torch.from_numpy(b_V @ W_O) + torch.from_numpy(b_O),
        lambda b_V, W_O, b_O: as_a_zero_token(b_V, W_O, b_O)[0],
        wrong_ways={
            "wrong side of W_O": [lambda b_V, W_O, b_O: b_V @ W_O.T + b_O],
            "number times number": [lambda b_V, W_O, b_O: W_O * b_V + b_O],
            "b_V dropped": [lambda b_V, W_O, b_O: b_O + 0 * b_V.sum()],
            "old bias lost": [lambda b_V, W_O, b_O: np.einsum("a,ab->b", b_V, W_O)],
        },
    )


def test_head_that_wrote_accepts_several_methods_and_names_each_mistake():
    def by_inverse(before, after, W_O, n_heads):
        concat = (after - before) @ np.linalg.inv(W_O)
        return np.abs(concat).reshape(len(before), n_heads, -1).sum((0, 2)).argmax()

    def by_rank(before, after, W_O, n_heads):
        change = after - before
        ranks = [
            np.linalg.matrix_rank(np.vstack([block, change]), tol=1e-8) - len(block)
            for block in np.split(W_O, n_heads)
        ]
        return ranks.index(0)

    def solved_from_the_left(before, after, W_O, n_heads):
        x = np.linalg.solve(W_O, (after - before).T)
        return np.abs(x).reshape(n_heads, -1).sum(1).argmax()

    def lstsq_of_the_wrong_one(before, after, W_O, n_heads):
        change, left = (after - before).T, []
        for block in np.split(W_O, n_heads):
            x = np.linalg.lstsq(change, block.T, rcond=None)[0]
            left.append(np.linalg.norm(change @ x - block.T))
        return np.argmin(left)

    def largest_number_of_each_slot(before, after, W_O, n_heads):
        concat = (after - before) @ np.linalg.inv(W_O)
        return concat.reshape(len(before), n_heads, -1).max((0, 2)).argmax()

    def columns_that_move_most(before, after, W_O, n_heads):
        change = ((after - before) ** 2).sum(0).reshape(n_heads, -1)
        return int(change.sum(1).argmax())

    prove(
        check.head_that_wrote,
        by_inverse,
        by_rank,
        wrong_ways={
            "largest change of columns": [columns_that_move_most],
            "counted from one": [lambda *given: by_rank(*given) + 1],
            "inverse on the wrong side": [solved_from_the_left],
            "shapes that do not fit": [
                lambda before, after, W_O, n_heads: np.linalg.solve(
                    W_O, after - before
                ),
                lambda before, after, W_O, n_heads: (
                    np.linalg.inv(W_O) @ (after - before)
                ).argmax(),
                lambda before, after, W_O, n_heads: np.linalg.lstsq(
                    W_O, after - before, rcond=None
                )[0].argmax(),
            ],
            "arguments of lstsq exchanged": [lstsq_of_the_wrong_one],
            "largest number upwards": [largest_number_of_each_slot],
            "W_O once more": [
                lambda before, after, W_O, n_heads: columns_that_move_most(
                    0, (after - before) @ W_O, W_O, n_heads
                )
            ],
        },
    )


def test_own_block_law_accepts_other_cuts_and_names_each_mistake():
    def by_moving_the_first_head_with_its_block_closed(layer):
        rng = np.random.default_rng(7)
        X, W_Q, W_K, W_V, W_O = (rng.normal(size=(6, 6)) for _ in range(5))
        W_O[:2] = 0
        before = layer(X, W_Q, W_K, W_V, W_O, 3)
        for W in (W_Q, W_K, W_V):
            W[:, :2] = rng.normal(size=(6, 2))
        return np.abs(layer(X, W_Q, W_K, W_V, W_O, 3) - before).max() < 1e-9

    def by_closing_everything(layer):
        rng = np.random.default_rng(8)
        X, W_Q, W_K, W_V, W_O = (rng.normal(size=(4, 4)) for _ in range(5))
        one_head = np.zeros((4, 4))
        one_head[2:] = W_O[2:]
        silent = W_V.copy()
        silent[:, 2:] = 0
        return np.allclose(layer(X, W_Q, W_K, silent, one_head, 2), 0)

    def parts_of_W_O_add_up(layer):
        rng = np.random.default_rng(9)
        X, W_Q, W_K, W_V, W_O = (rng.normal(size=(4, 4)) for _ in range(5))
        upper = np.diag([1, 1, 0, 0]) @ W_O
        parts = (layer(X, W_Q, W_K, W_V, W, 2) for W in (upper, W_O - upper))
        return np.allclose(sum(parts), layer(X, W_Q, W_K, W_V, W_O, 2))

    prove(
        check.own_block_law,
        by_moving_the_first_head_with_its_block_closed,
        by_closing_everything,
        wrong_ways={
            "passes everything": [lambda layer: True],
            "nothing closed": [lambda layer: False],
            "blind to averaged heads": [parts_of_W_O_add_up],
        },
    )
