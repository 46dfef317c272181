"""The exercises of chapter 2: right answers pass, each mistake is called by name."""

import math

import numpy as np
import torch

from exercises import softmax as check
from tests.exercises.proof import prove


def softmax_by_loops(x, axis):
    rows = np.moveaxis(x, axis, -1)
    shares = np.empty(rows.shape)
    for place in np.ndindex(rows.shape[:-1]):
        row = [np.exp(score - max(rows[place])) for score in rows[place]]
        shares[place] = [e / sum(row) for e in row]
    return np.moveaxis(shares, -1, axis)


def softmax_by_logarithms(x, axis):
    return np.exp(x - np.logaddexp.reduce(x, axis, keepdims=True))


def softmax_by_torch(x, axis):
    return torch.softmax(torch.from_numpy(x), axis)


def test_a_stable_softmax_is_told_from_others_that_are_not():
    prove(
        check.stable_softmax,
        softmax_by_loops,
        softmax_by_logarithms,
        softmax_by_torch,
        wrong_ways={
            "no maximum subtracted": (
                lambda x, axis: np.exp(x) / np.exp(x).sum(axis, keepdims=True),
            ),
            "the summed axis is gone": (
                lambda x, axis: (
                    np.exp(x - x.max(axis, keepdims=True))
                    / np.sum(np.exp(x - x.max(axis, keepdims=True)), axis)
                ),
            ),
            "another number than the largest subtracted": (
                lambda x, axis: (
                    np.exp(x - x.mean(axis, keepdims=True))
                    / np.exp(x - x.mean(axis, keepdims=True)).sum(axis, keepdims=True)
                ),
            ),
            "the last axis, whatever was asked": (
                lambda x, axis: torch.softmax(torch.from_numpy(x), -1),
            ),
            "one total for the whole array": (
                lambda x, axis: (
                    np.exp(x - x.max(axis, keepdims=True))
                    / np.sum(np.exp(x - np.max(x, axis, keepdims=True)))
                ),
            ),
            "max and sum of Python": (
                lambda x, axis: [
                    math.exp(s - max(x)) / sum(math.exp(r - max(x)) for r in x)
                    for s in x
                ],
            ),
            "the scores clipped": (
                lambda x, axis: softmax_by_loops(np.clip(x, -300, 300), axis),
            ),
            "NaN replaced by 0": (
                lambda x, axis: np.nan_to_num(
                    np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)
                ),
            ),
            "rounded to 3 decimals": (
                lambda x, axis: softmax_by_loops(x, axis).round(3),
            ),
        },
    )


def test_rounded_weights_are_called_rounded():
    verdict = check.stable_softmax(lambda x, axis: softmax_by_loops(x, axis).round(2))
    assert "right but rounded to 2 decimals" in verdict.text


def test_a_softmax_that_subtracts_in_place_is_told_so():
    def greedy(x, axis):
        x -= x.max(axis, keepdims=True)
        return np.exp(x) / np.exp(x).sum(axis, keepdims=True)

    assert "the input x must stay as it is" in check.stable_softmax(greedy).text


def test_the_score_for_half_is_told_from_other_guesses():
    prove(
        check.score_for_half,
        4.1,
        4.099,
        "4.10",
        np.log(3 * np.exp(3)),
        wrong_ways={
            "one rival instead of three": (3.69, 3.693),
            "counted from the old score": (3.1,),
            "equal scores": (3,),
            "the power for the score": (60.26,),
            "food among its own rivals": (4.39,),
            "the weight itself": ("0.5",),
        },
    )


def temperature_by_bisection(gap, n, share):
    low, high = 1e-3, 1e3
    for _ in range(200):
        middle = (low * high) ** 0.5
        largest = 1 / (1 + (n - 1) * np.exp(-gap / middle))
        low, high = (middle, high) if largest > share else (low, middle)
    return low


def temperature_by_logarithms(gap, n, share):
    rival = (1 - share) / (n - 1)
    return gap / (np.log(share) - np.log(rival))


def test_the_temperature_of_a_share_is_told_from_others():
    prove(
        check.temperature_for,
        temperature_by_bisection,
        temperature_by_logarithms,
        wrong_ways={
            "one rival only": (lambda gap, n, share: -gap / np.log(1 / share - 1),),
            "another base of the logarithm": (
                lambda gap, n, share: (
                    gap / (np.log10(share) - np.log10((1 - share) / (n - 1)))
                ),
            ),
        },
    )


def inputs(n_q=3, n_k=5):
    rng = np.random.default_rng(7)
    return rng.normal(size=(n_q, 2)), rng.normal(size=(n_k, 2)), rng.normal(size=n_k)


def rows_sum_to_one(attend):
    Q, K, v = inputs()
    A = attend(Q, K, v[:, None], return_weights=True)[1]
    return all(abs(sum(row) - 1) < 1e-5 for row in A)


def constants_come_out(attend):
    Q, K, _ = inputs()
    return np.allclose(attend(Q, K, np.full((5, 11), 4.0)), 4.0, rtol=1e-5)


def outputs_stay_between(attend):
    Q, K, _ = inputs(13, 2)
    Y = attend(Q, K, np.array([[-1.0, 1.0], [1.0, -1.0]]))
    return np.allclose(Y.sum(-1), 0, atol=1e-5) and np.allclose(
        attend(Q, K, np.ones((2, 1))), 1
    )


def values_far_from_0_keep_their_hull(attend):
    Q, K, _ = inputs()
    V = np.linspace(4, 5, 5)[:, None]
    Y = attend(Q, K, V)
    return bool(((Y >= 4 - 1e-5) & (Y <= 5 + 1e-5)).all())


def test_a_law_about_rows_is_told_from_nine_that_fail():
    def all_between_zero_and_one(attend):
        Q, K, v = inputs()
        A = attend(Q, K, v[:, None], return_weights=True)[1]
        return bool(((A >= 0) & (A <= 1)).all())

    def keys_share(attend):
        Q, K, v = inputs()
        A = attend(Q, K, v[:, None], return_weights=True)[1]
        return all(abs(A[:, j].sum() - 1) < 1e-5 for j in range(5))

    def exactly_one(attend):
        Q, K, v = inputs(2, 2)
        return bool(
            np.all(attend(Q, K, v[:, None], return_weights=True)[1].sum(1) == 1)
        )

    def sums_of_outputs(attend):
        return np.allclose(attend(*inputs()).sum(-1), 1)

    def exact_constants(attend):
        Q, K, _ = inputs(1, 3)
        return bool((attend(Q, K, np.ones((3, 1))) == 1).all())

    def keys_of_width_one(attend):
        Q, K, _ = inputs()
        return np.allclose(attend(Q[:, :1], K[:, :1], np.ones((5, 1))), 1)

    def each_row(attend):
        Q, K, _ = inputs(11, 3)
        return np.abs(attend(Q, K, np.ones((3, 1))) - 1) < 1e-5

    def square_and_symmetric(attend):
        return np.allclose(attend(np.eye(3), np.eye(3), np.ones((3, 1))), 1)

    def outputs_in_the_hull(attend):
        Q, K, _ = inputs(2, 11)
        Y = attend(Q, K, np.linspace(-1, 2, 11)[:, None])
        return bool(((Y >= -1) & (Y <= 2)).all())

    prove(
        check.rows_law,
        rows_sum_to_one,
        constants_come_out,
        outputs_stay_between,
        values_far_from_0_keep_their_hull,
        wrong_ways={
            "true of everything": (all_between_zero_and_one, lambda attend: True),
            "columns instead of rows": (keys_share,),
            "only the grand total": (square_and_symmetric,),
            "sums below 1 pass": (outputs_in_the_hull, keys_of_width_one),
            "false of correct attention": (
                lambda attend: False,
                sums_of_outputs,
                exactly_one,
                exact_constants,
            ),
            "one result per row": (each_row,),
        },
    )


def jacobian_by_loops(s):
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    J = np.zeros((*s.shape, s.shape[-1]))
    for i in range(s.shape[-1]):
        for j in range(s.shape[-1]):
            J[..., i, j] = p[..., i] * ((i == j) - p[..., j])
    return J


def jacobian_by_einsum(s):
    p = torch.softmax(torch.from_numpy(s), -1)
    return torch.diag_embed(p) - torch.einsum("...i,...j->...ij", p, p)


def jacobian_by_autograd(s):
    rows = torch.from_numpy(s).reshape(-1, s.shape[-1])
    slopes = [
        torch.autograd.functional.jacobian(lambda x: torch.softmax(x, -1), row)
        for row in rows
    ]
    return torch.stack(slopes).reshape(*s.shape, s.shape[-1])


def test_the_jacobian_is_told_from_others_that_are_not():
    prove(
        check.softmax_jacobian,
        jacobian_by_loops,
        jacobian_by_einsum,
        jacobian_by_autograd,
        wrong_ways={
            "plus instead of minus": (
                lambda s: (
                    torch.diag_embed(torch.softmax(torch.from_numpy(s), -1))
                    + torch.einsum(
                        "...i,...j->...ij",
                        *(2 * [torch.softmax(torch.from_numpy(s), -1)]),
                    )
                ),
            ),
            "the column twice": (
                lambda s: np.stack(
                    [
                        softmax_by_loops(s, -1) * (one - softmax_by_loops(s, -1))
                        for one in np.eye(s.shape[-1])
                    ],
                    -1,
                ),
            ),
            "a vector of slopes": (
                lambda s: softmax_by_loops(s, -1) - softmax_by_loops(s, -1) ** 2,
            ),
        },
    )
