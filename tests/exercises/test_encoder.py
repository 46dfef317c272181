"""The exercises of chapter 12 tell right answers from known mistakes."""

import itertools

import numpy as np
import torch

from exercises import encoder as check
from mha import laws, zoo
from tests.exercises.proof import prove


def test_detour_is_what_the_wrong_merge_makes_of_its_rows():
    def through_the_zoo(n, n_heads):
        """Send the number of each row through the merge and see where it ends."""
        rows = np.arange(n_heads * n).reshape(n_heads, n, 1)
        ends = zoo.merge_without_transpose.steps["merge_heads"](rows)
        token, _ = np.nonzero(ends >= 0)
        where = np.empty(n_heads * n, dtype=int)
        where[ends.ravel()] = token
        return (n - 1 - where).reshape(n_heads, n)

    def by_loops(n, n_heads):
        mirrors = [n - 1 - i for i in range(n) for _ in range(n_heads)]
        return [mirrors[r * n : (r + 1) * n] for r in range(n_heads)]

    def right_layer(n, n_heads):
        return [[n - 1 - i for i in range(n)]] * n_heads

    def not_mirrored(n, n_heads):
        return np.repeat(np.arange(n), n_heads).reshape(n_heads, n)

    prove(
        check.detour,
        through_the_zoo,
        by_loops,
        wrong_ways={
            "no bug": [right_layer],
            "copy": [not_mirrored],
            "each head turned round": [lambda n, h: np.array(by_loops(n, h))[:, ::-1]],
        },
    )


def test_mirror_queries_accepts_every_matrix_with_the_same_weights():
    def flipped(n, weight):
        score = np.log((n - 1) * weight / (1 - weight))
        return np.fliplr(np.eye(n)) * score * n**0.5

    def others_below_zero(n, weight):
        """Lower all the others in place of lifting the mirror."""
        W_Q = np.full((n, n), -np.log((n - 1) * weight / (1 - weight)) * n**0.5)
        for i in range(n):
            W_Q[i, n - 1 - i] = 0
        return W_Q

    def logs_of_both(n, weight):
        W_Q = np.full((n, n), np.log((1 - weight) / (n - 1)))
        W_Q[np.arange(n), np.arange(n)[::-1]] = np.log(weight)
        return W_Q * np.sqrt(n)

    prove(
        check.mirror_queries,
        flipped,
        others_below_zero,
        logs_of_both,
        wrong_ways={
            "copy": [lambda n, weight: np.fliplr(flipped(n, weight))],
            "no root": [lambda n, weight: flipped(n, weight) / n**0.5],
            "divided by the root": [lambda n, weight: flipped(n, weight) / n],
            "upside down": [lambda n, weight: -others_below_zero(n, weight)],
            "the weights": [
                lambda n, weight: [
                    [
                        weight if i + j == n - 1 else (1 - weight) / (n - 1)
                        for j in range(n)
                    ]
                    for i in range(n)
                ]
            ],
        },
    )
    assert "return missing" in check.mirror_queries(lambda n, weight: print()).text


def test_catch_ten_accepts_every_three_laws_that_are_enough():
    prove(
        check.catch_ten,
        [
            laws.scores_keep_unit_variance,
            laws.parameters_ignore_heads,
            laws.padding_changes_nothing,
        ],
        [
            "future_leaves_past_alone",
            "scores_keep_unit_variance",
            "parameters_ignore_heads",
        ],
        wrong_ways={
            "the comparison": [[laws.equals_reference]],
            "rows alone": [[laws.rows_sum_to_one], "laws.rows_sum_to_one"],
            "too many": [
                [law.slug for law in laws.ALL if law is not laws.equals_reference]
            ],
        },
    )


def test_catch_ten_names_those_that_are_missed():
    two = "laws.scores_keep_unit_variance, laws.parameters_ignore_heads"
    verdict = check.catch_ten(two)
    assert verdict.status == "not yet"
    first, *_ = verdict.text.splitlines()
    assert "named: softmax_over_queries, merge_without_transpose" in first
    assert check.catch_ten(f"{two}, laws.future_leaves_past_alone").passed


def test_no_two_laws_but_the_comparison_find_all_ten():
    from exercises.encoder import _TEN

    matrix = laws.kill_matrix()
    victims = {
        slug: set(_TEN) & set(matrix.kills(slug))
        for slug in matrix.columns
        if slug != "equals_reference"
    }
    pairs = itertools.combinations(victims.values(), 2)
    assert all(len(one | other) < len(_TEN) for one, other in pairs)


def test_a_law_that_does_not_exist_is_named():
    assert "no law is called 'be_nice'" in check.catch_ten(["be_nice"]).text


def test_decoder_masks_names_the_mask_whose_shape_is_wrong():
    verdict = check.decoder_masks(lambda n, lengths: (np.tri(n) > 0, lengths > 0))
    assert "result 2 of 2: the result has shape (1,)" in verdict.text


def test_decoder_masks_may_be_written_with_numpy_or_torch():
    def with_numpy(n_target, lengths):
        source = np.arange(lengths.max()) < lengths[:, None, None, None]
        return np.tril(np.ones((n_target, n_target), dtype=bool)), source

    def with_torch(n_target, lengths):
        places = torch.arange(int(lengths.max()))
        source = places[None] < torch.from_numpy(lengths)[:, None]
        mine = torch.ones(n_target, n_target, dtype=torch.bool).tril()
        return mine, source[:, None, None, :]

    def everything(n_target, lengths):
        return np.ones((n_target, n_target)) > 0, with_numpy(n_target, lengths)[1]

    def as_a_list(n_target, lengths):
        return list(with_numpy(n_target, lengths))

    def for_torch(n_target, lengths):
        return tuple(~mask for mask in with_numpy(n_target, lengths))

    def added(n_target, lengths):
        masks = with_numpy(n_target, lengths)
        return tuple(np.where(mask, 0, -np.inf) for mask in masks)

    prove(
        check.decoder_masks,
        with_numpy,
        with_torch,
        as_a_list,
        wrong_ways={
            "True hides": [for_torch],
            "numbers": [added],
            "the masks exchanged": [lambda n, lengths: with_numpy(n, lengths)[::-1]],
            "no causal mask": [everything],
            "padding turned round": [
                lambda n, lengths: (
                    with_numpy(n, lengths)[0],
                    np.arange(lengths.max()) >= lengths[:, None, None, None],
                )
            ],
        },
    )
