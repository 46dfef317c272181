"""The exercises of chapter 7 tell right answers from known mistakes."""

import numpy as np
import torch

import mha
from exercises import split as check
from tests.exercises.proof import prove


def test_head_and_column_accepts_any_pair_of_numbers_and_names_each_guess():
    prove(check.head_and_column, divmod(389, 768 // 12), [6, 5], np.array([6.0, 5.0]))


def test_head_and_column_does_not_round_for_the_learner():
    assert not check.head_and_column((6.4, 5)).passed
    assert not check.head_and_column((6, 5, 0)).passed


def test_to_heads_accepts_loops_einsum_and_torch_and_names_each_mistake():
    def by_slices(x, n_heads):
        return np.stack(np.split(x, n_heads, axis=-1), axis=-3)

    def by_einsum(x, n_heads):
        cut = x.reshape(*x.shape[:-1], n_heads, -1)
        return np.einsum("...nrc->...rnc", cut)

    def by_torch(x, n_heads):
        return torch.from_numpy(x).unflatten(-1, (n_heads, -1)).transpose(-3, -2)

    prove(
        check.to_heads,
        by_slices,
        by_einsum,
        by_torch,
        wrong_ways={
            "no swap": [
                lambda x, n_heads: np.stack(
                    [
                        part.reshape(*x.shape[:-1], -1)
                        for part in np.split(
                            x.reshape(*x.shape[:-2], -1), n_heads, axis=-1
                        )
                    ],
                    axis=-3,
                )
            ],
            "interleaved": [
                lambda x, n_heads: np.stack(
                    [x[..., r::n_heads] for r in range(n_heads)], axis=-3
                )
            ],
        },
    )


def test_strides_of_heads_accepts_what_numpy_says_and_names_each_guess():
    heads = mha.split_heads(np.zeros((2, 5, 12)), 3)
    prove(
        check.strides_of_heads,
        np.array(heads.strides) // heads.itemsize,
        torch.zeros(2, 5, 12).unflatten(-1, (3, 4)).transpose(1, 2).stride(),
    )


def test_wrong_step_accepts_the_diagnosis_in_any_case_and_names_each_other_one():
    prove(
        check.wrong_step,
        "Split without swap",
        " split without swap ",
        "'split without swap'.",
    )


def test_fuse_accepts_loops_einsum_and_torch_and_names_each_mistake():
    def by_swap(small):
        return small.swapaxes(0, 1).reshape(small.shape[1], -1)

    def by_loop(small):
        n_heads, d_model, d_k = small.shape
        W = np.zeros((d_model, n_heads * d_k))
        for r, a, c in np.ndindex(small.shape):
            W[a, r * d_k + c] = small[r, a, c]
        return W

    prove(
        check.fuse,
        by_swap,
        by_loop,
        mha.merge_heads,
        lambda small: torch.cat(tuple(torch.from_numpy(small)), dim=1),
        wrong_ways={
            "on top of each other": [lambda small: small.reshape(-1, small.shape[-1])],
            "interleaved": [
                lambda small: np.dstack(list(small)).reshape(len(small[0]), -1)
            ],
        },
    )
