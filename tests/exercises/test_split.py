"""The exercises of chapter 7 tell right answers from known mistakes."""

import numpy as np
import pytest
import torch

import mha
from exercises import split as check
from mha import zoo
from tests.exercises.proof import prove


def test_head_and_column_accepts_any_pair_of_numbers_and_names_each_guess():
    prove(check.head_and_column, divmod(389, 768 // 12), [6, 5], np.array([6.0, 5.0]))


@pytest.mark.parametrize(
    "answer", ["split", "head 6", 6, (6,), (6, 5, 0), [[1], [2, 3]]]
)
def test_an_answer_of_another_kind_is_told_what_to_give(answer):
    text = check.head_and_column(answer).text
    assert "answer with" in text and "(0, 63)" in text
    text = check.strides_of_heads(answer).text
    assert text.startswith("answer with") and "four" in text


def test_head_and_column_does_not_round_for_the_learner():
    assert not check.head_and_column((6.4, 5)).passed
    assert not check.head_and_column((6, 5, 0)).passed


def test_to_heads_accepts_loops_einsum_and_torch_and_names_each_mistake():
    def by_slices(x, n_heads):
        return np.stack(np.split(x, n_heads, axis=-1), axis=-3)

    def by_einsum(x, n_heads):
        cut = x.reshape(*x.shape[:-1], n_heads, -1)
        return np.einsum("...nrc->...rnc", cut)

    def no_swap_without_a_batch(x, n_heads):
        n, d_model = x.shape
        return x.reshape(n_heads, n, d_model // n_heads)

    def by_torch(x, n_heads):
        return torch.from_numpy(x).unflatten(-1, (n_heads, -1)).transpose(-3, -2)

    prove(
        check.to_heads,
        by_slices,
        by_einsum,
        by_torch,
        wrong_ways={
            "no swap, one sequence only": [
                lambda x, n_heads: x.reshape(n_heads, x.shape[-2], -1)
            ],
            "no swap, no batch": [no_swap_without_a_batch],
            "heads behind the tokens, one sequence only": [
                lambda x, n_heads: x.reshape(x.shape[-2], n_heads, -1)
            ],
            "heads in reverse order": [
                lambda x, n_heads: by_slices(x, n_heads)[..., ::-1, :, :]
            ],
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
        "split_without_swap",
    )


def came_out(split, merge):
    """Return what the layer of the task gives when each token sees only itself."""
    given = 10 * np.arange(4)[:, None] + np.arange(6)
    return merge(split(given, 3))


def test_what_wrong_step_says_of_each_diagnosis_is_what_its_layer_does():
    right, unswapped = mha.split_heads, zoo.split_without_transpose.steps["split_heads"]
    out = came_out(unswapped, mha.merge_heads)
    assert out[0].tolist() == [0, 1, 12, 13, 24, 25]  # as the task prints it
    moved = (out // 10 != np.arange(4)[:, None]).sum(), (out % 10 != np.arange(6)).sum()
    praise = check.wrong_step("split without swap").text
    assert f"{moved[0]} of the 24 numbers left the row" in praise
    assert f"{moved[1]} left their column" in praise
    assert moved == (16, 12)

    hints = {mistake.name: mistake.hint for mistake in check.wrong_step.mistakes}
    merged = came_out(right, zoo.merge_without_transpose.steps["merge_heads"])
    assert " ".join(f"{x:02}" for x in merged[0]) in hints["merge"]
    reverse = came_out(lambda x, h: right(x, h)[::-1], mha.merge_heads)
    assert " ".join(f"{x:02}" for x in reverse[0]) in hints["order"]
    assert (reverse // 10 == np.arange(4)[:, None]).all()
    both = came_out(unswapped, zoo.merge_without_transpose.steps["merge_heads"])
    assert np.array_equal(both, came_out(right, mha.merge_heads))
    dealt = came_out(
        lambda x, h: np.stack([x[:, r::h] for r in range(h)]), mha.merge_heads
    )
    assert (dealt // 10 == np.arange(4)[:, None]).all()


@pytest.mark.parametrize("answer", ["split", "no swap", "", "SPLIT!"])
def test_a_diagnosis_that_is_none_of_the_six_is_shown_the_six(answer):
    verdict = check.wrong_step(answer)
    assert verdict.mistake == "none of the six"
    assert '"merge without swap"' in verdict.text


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
            "no swap": [lambda small: small.reshape(small.shape[1], -1)],
            "on top of each other": [lambda small: small.reshape(-1, small.shape[-1])],
            "interleaved": [
                lambda small: np.dstack(list(small)).reshape(len(small[0]), -1)
            ],
        },
    )
