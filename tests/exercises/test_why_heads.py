"""The exercises of chapter 6 tell right answers from known mistakes."""

import numpy as np
import torch

from exercises import why_heads as check
from tests.exercises.proof import prove


def test_two_of_three_accepts_two_thirds_rounded_or_not():
    prove(check.two_of_three, 0.667, 0.67, np.float64(2) / 3)


def by_normal_equations(home, contents, new_home):
    return new_home @ np.linalg.solve(home.T @ home, home.T @ contents)


def by_torch(home, contents, new_home):
    home, contents, new_home = map(torch.from_numpy, (home, contents, new_home))
    return new_home @ torch.linalg.lstsq(home, contents).solution


def by_weights_of_the_nights(home, contents, new_home):
    return (new_home @ np.linalg.pinv(home)) @ contents


def test_rebuild_accepts_every_way_to_least_squares_and_names_each_mistake():
    prove(
        check.rebuild,
        by_normal_equations,
        by_torch,
        by_weights_of_the_nights,
        wrong_ways={
            "not divided": [
                lambda home, contents, new_home: np.einsum(
                    "bm,am,ac->bc", new_home, home, contents
                )
            ],
            "always the mean": [
                lambda home, contents, new_home: (
                    0 * by_normal_equations(home, contents, new_home)
                    + contents.sum(0) / len(contents)
                )
            ],
            "a constant as well": [
                lambda home, contents, new_home: (
                    contents.mean(0)
                    + by_normal_equations(
                        home - home.mean(0), contents, new_home - home.mean(0)
                    )
                )
            ],
            "the old nights": [
                lambda home, contents, _: by_normal_equations(home, contents, home)
            ],
        },
    )


def test_unmix_accepts_inverse_and_solver_and_names_each_mistake():
    def by_fitting_nights(A):
        contents = np.random.default_rng(0).normal(size=(20, len(A)))
        return np.linalg.lstsq(contents @ A.T, contents, rcond=None)[0]

    prove(
        check.unmix,
        lambda A: np.linalg.solve(A.T, np.eye(len(A))),
        lambda A: torch.linalg.inv(torch.from_numpy(A.T.copy())),
        by_fitting_nights,
        wrong_ways={
            "not transposed": [lambda A: np.linalg.solve(A, np.eye(len(A)))],
            "rows and columns undone": [
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
            "one for each wish": [lambda wanted: sum(1 for _ in wanted)],
            "one head always": [lambda wanted: np.int64(1)],
            "one for each different column": [
                lambda wanted: len(np.unique(wanted[:, wanted.any(0)], axis=1).T)
            ],
            "only who is wanted counts": [
                lambda wanted: np.linalg.matrix_rank(np.sign(wanted))
            ],
        },
    )


def test_break_the_theorem_accepts_every_telling_weight_and_names_each_mistake():
    def winner_takes_all(contents):
        return np.eye(2)[contents.argmax(1)], 1

    def one_glow_alone(contents):
        left = torch.from_numpy(contents[:, 0] / 20).sigmoid()
        return torch.stack([left, 1 - left], dim=1), 1

    def by_softmax(contents):
        raised = np.exp(contents)
        return raised / raised.sum(1, keepdims=True), 1

    prove(
        check.break_the_theorem,
        winner_takes_all,
        one_glow_alone,
        by_softmax,
        wrong_ways={
            "weights that ignore the contents": [
                lambda contents: (np.full(contents.shape, 0.5), 1)
            ],
            "rows that do not sum to one": [lambda contents: (contents, 1)],
            "weights that do not help": [
                lambda contents: (
                    np.abs(contents) / np.abs(contents).sum(1, keepdims=True),
                    1,
                )
            ],
            "blamed on the Gaussians": [
                lambda contents: (winner_takes_all(contents)[0], 3)
            ],
        },
    )


def test_break_the_theorem_says_what_an_answer_has_to_look_like():
    def by_softmax(contents):
        raised = np.exp(contents)
        return raised / raised.sum(1, keepdims=True)

    for answer, message in (
        (by_softmax, "return two things"),
        (lambda contents: (by_softmax(contents)[:, 0], 1), "weights of shape"),
        (lambda contents: (by_softmax(contents), 1.5), "1, 2 or 3, and not 1.5"),
        (lambda contents: (by_softmax(contents), None), "1, 2 or 3, and not None"),
    ):
        verdict = check.break_the_theorem(answer)
        assert verdict.status == "not yet"
        assert message in verdict.text


def test_break_the_theorem_does_not_tell_the_premise():
    verdict = check.break_the_theorem(lambda contents: (np.full((1000, 2), 0.5), 2))
    assert verdict.status == "not yet"
    assert "premise 1" not in verdict.text
