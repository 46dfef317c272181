"""The exercises of chapter 6 tell right answers from known mistakes."""

import numpy as np
import pytest
import torch

from exercises import why_heads as check
from tests.exercises.proof import prove


def test_two_of_three_accepts_two_thirds_rounded_or_not():
    prove(
        check.two_of_three,
        0.667,
        0.67,
        np.float64(2) / 3,
        "2 / 3",
        wrong_ways={"in percent": [67, 66.7], "one head": ["1/3"], "not divided": [2]},
    )


def by_normal_equations(outputs, contents, new_outputs):
    return new_outputs @ np.linalg.solve(outputs.T @ outputs, outputs.T @ contents)


def by_torch(outputs, contents, new_outputs):
    outputs, contents, new_outputs = map(
        torch.from_numpy, (outputs, contents, new_outputs)
    )
    return new_outputs @ torch.linalg.lstsq(outputs, contents).solution


def by_weights_of_the_rows(outputs, contents, new_outputs):
    return (new_outputs @ np.linalg.pinv(outputs)) @ contents


def test_rebuild_accepts_every_way_to_least_squares_and_names_each_mistake():
    prove(
        check.rebuild,
        by_normal_equations,
        by_torch,
        by_weights_of_the_rows,
        wrong_ways={
            "arguments exchanged": [
                lambda outputs, contents, new_outputs: (
                    new_outputs @ (np.linalg.pinv(contents) @ outputs)
                )
            ],
            "solved instead of fitted": [
                lambda outputs, contents, new_outputs: (
                    new_outputs @ (np.linalg.inv(outputs) @ contents)
                )
            ],
            "not divided": [
                lambda outputs, contents, new_outputs: np.einsum(
                    "bm,am,ac->bc", new_outputs, outputs, contents
                )
            ],
            "always the mean": [
                lambda outputs, contents, new_outputs: (
                    0 * by_normal_equations(outputs, contents, new_outputs)
                    + contents.sum(0) / len(contents)
                )
            ],
            "a constant as well": [
                lambda outputs, contents, new_outputs: (
                    contents.mean(0)
                    + by_normal_equations(
                        outputs - outputs.mean(0),
                        contents,
                        new_outputs - outputs.mean(0),
                    )
                )
            ],
            "the old outputs": [
                lambda outputs, contents, _: by_normal_equations(
                    outputs, contents, outputs
                )
            ],
        },
    )


def test_unmix_accepts_inverse_and_solver_and_names_each_mistake():
    def by_fitting_rows(A):
        contents = np.random.default_rng(0).normal(size=(20, len(A)))
        return np.linalg.lstsq(contents @ A.T, contents, rcond=None)[0]

    prove(
        check.unmix,
        lambda A: np.linalg.solve(A.T, np.eye(len(A))),
        lambda A: torch.linalg.inv(torch.from_numpy(A.T.copy())),
        by_fitting_rows,
        wrong_ways={
            "not transposed": [lambda A: np.linalg.solve(A, np.eye(len(A)))],
            "A and its transpose undone": [
                lambda A: np.linalg.solve(A, np.linalg.inv(A.T))
            ],
            "nothing undone": [lambda A: np.diag(np.ones(len(A)))],
        },
    )


def test_heads_needed_accepts_every_rank_and_names_each_mistake():
    def by_elimination(wanted):
        rows, rank = wanted.copy(), 0
        for column in range(rows.shape[1]):
            places = np.flatnonzero(rows[rank:, column]) + rank
            if len(places):
                rows[[rank, places[0]]] = rows[[places[0], rank]]
                factors = rows[rank + 1 :, column] / rows[rank, column]
                rows[rank + 1 :] -= np.outer(factors, rows[rank])
                rank += 1
        return rank

    prove(
        check.heads_needed,
        by_elimination,
        lambda wanted: int((np.linalg.svd(wanted)[1] > 1e-9).sum()),
        lambda wanted: torch.linalg.matrix_rank(torch.from_numpy(wanted)),
        wrong_ways={
            "one for each row": [lambda wanted: sum(1 for _ in wanted)],
            "one head always": [lambda wanted: np.int64(1)],
            "one for each different column": [
                lambda wanted: len(np.unique(wanted[:, wanted.any(0)], axis=1).T)
            ],
            "only zeros looked at": [
                lambda wanted: np.linalg.matrix_rank(np.sign(wanted))
            ],
        },
    )


def by_softmax(contents):
    raised = np.exp(contents)
    return raised / raised.sum(1, keepdims=True)


def test_break_the_theorem_accepts_every_telling_weight_and_names_each_mistake():
    def winner_takes_all(contents):
        return np.eye(2)[contents.argmax(1)], 1

    def one_content_alone(contents):
        left = torch.from_numpy(contents[:, 0] / 20).sigmoid()
        return torch.stack([left, 1 - left], dim=1), 1

    def by_single_precision(contents):
        return by_softmax(contents.astype(np.float32) / 10), "1"

    def by_chance_and_contents(contents):
        return by_softmax(contents + np.random.default_rng().normal(0, 0.1)), 1

    prove(
        check.break_the_theorem,
        winner_takes_all,
        one_content_alone,
        by_single_precision,
        by_chance_and_contents,
        lambda contents: [by_softmax(contents), 1.0],
        wrong_ways={
            "the same weights in every row": [
                lambda contents: (np.full(contents.shape, 0.5), 1),
                lambda contents: (np.tile([0.7, 0.3], (len(contents), 1)), 3),
                lambda contents: (np.full(contents.shape, 0.5), 4),
                lambda contents: (np.tile([0.8, 0.2], (len(contents), 1)), 2),
                lambda contents: (by_softmax(0 * contents), 2),
                lambda contents: (by_softmax(contents[:1] + 0 * contents), 1),
            ],
            "weights by chance": [
                lambda contents: (
                    by_softmax(np.random.default_rng().normal(size=(1000, 2))),
                    3,
                )
            ],
            "weights that ignore the contents": [
                lambda contents: (
                    by_softmax(np.random.default_rng(0).normal(size=(1000, 2))),
                    3,
                )
            ],
            "rows that do not sum to 1": [lambda contents: (np.exp(contents), 4)],
            "negative weights": [lambda contents: (contents, 1)],
            "weights that are not finite": [lambda contents: (contents / 0, 1)],
            "weights that do not help": [
                lambda contents: (by_softmax(contents.sum(1, keepdims=True) * LEAN), 4)
            ],
            "premise 4 named": [lambda contents: (winner_takes_all(contents)[0], 4)],
        },
    )


LEAN = np.array([0.01, 0.0])


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6, 1e-7, 1e-9, 1e-12])
def test_break_the_theorem_accepts_weights_however_little_they_tell(epsilon):
    def answer(contents):
        return by_softmax(epsilon * contents), 1

    assert check.break_the_theorem(answer).passed


@pytest.mark.parametrize("seed", range(20))
def test_no_fixed_weights_break_the_theorem(seed):
    """Of all fixed weights, R² is 1/2 up to the luck of a thousand rows."""
    left = np.random.default_rng(seed).random()
    verdict = check.break_the_theorem(
        lambda x: (np.tile([left, 1 - left], (1000, 1)), 1)
    )
    assert verdict.mistake == "the same weights in every row"


def test_break_the_theorem_says_what_an_answer_has_to_look_like():
    for answer, message in (
        (by_softmax, "return two things"),
        (lambda contents: (by_softmax(contents)[:, 0], 1), "shape (1000, 2), got"),
        (lambda contents: (by_softmax(contents), 1.5), "1, 2, 3 or 4, got 1.5"),
        (lambda contents: (by_softmax(contents), 0), "1, 2, 3 or 4, got 0"),
        (lambda contents: (by_softmax(contents), None), "1, 2, 3 or 4, got None"),
        (lambda contents: (by_softmax(contents), "the first"), "got 'the first'"),
    ):
        verdict = check.break_the_theorem(answer)
        assert verdict.status == "not yet"
        assert message in verdict.text


def test_break_the_theorem_does_not_tell_the_premise():
    for premise in (1, 2, 3, 4):
        same, telling = np.full((1000, 2), 0.5), by_softmax
        for weights in (lambda contents, same=same: same, telling):
            verdict = check.break_the_theorem(lambda x, w=weights, k=premise: (w(x), k))
            assert "premise 1" not in verdict.text
