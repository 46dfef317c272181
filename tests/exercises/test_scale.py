"""The exercises of chapter 3: right answers pass, each mistake is called by name."""

import math

import numpy as np
import pytest
import torch

from exercises import scale as check
from exercises.scale import _SUBJECTS, mystery_weights
from mha import dot_product_scores, softmax
from tests.exercises.proof import prove


def scaled_by_loops(Q, K):
    leading = np.broadcast_shapes(Q.shape[:-2], K.shape[:-2])
    Q, K = (np.broadcast_to(x, leading + x.shape[-2:]) for x in (Q, K))
    S = np.empty((*leading, Q.shape[-2], K.shape[-2]), Q.dtype)
    for place in np.ndindex(S.shape):
        *front, i, j = place
        q, k = Q[(*front, i)], K[(*front, j)]
        S[place] = sum(a * b for a, b in zip(q, k, strict=True)) / len(q) ** 0.5
    return S


def scaled_queries(Q, K):
    return np.einsum("...ic,...jc->...ij", Q * float(Q.shape[-1] ** -0.5), K)


def scaled_by_torch(Q, K):
    Q, K = torch.from_numpy(Q), torch.from_numpy(K)
    return Q @ K.mT / Q.shape[-1] ** 0.5


def doubling_by_repeat(attend):
    rng = np.random.default_rng(3)
    Q, K, V = (rng.normal(size=(n, 3)) for n in (2, 5, 5))
    gap = attend(Q, K.repeat(2, 0), V.repeat(2, 0)) - attend(Q, K, V)
    return abs(gap).max() < 1e-9


def doubling_by_hand(attend):
    Q, K, V = np.eye(3)[:2], np.array([[0.0, 1, 2], [4, 2, 0]]), np.array([[1.0], [5]])
    before = attend(Q, K, V)
    after = attend(Q, np.vstack([K, K]), np.vstack([V, V]))
    return bool(np.isclose(before, after).all())


# By hand


def test_the_variance_after_a_wrong_division_is_told_from_eight_guesses():
    prove(
        check.variance_left,
        0.125,
        np.float32(0.125),
        "0.125",
        "1/8",
        64 / 512,
        wrong_ways={
            "standard deviation": (0.354, "0.3536", 0.353, 0.35),
            "divided once": (2.83, 2.828, "2.8"),
            "kept at one": (1.0,),
        },
    )


@pytest.mark.parametrize("answer", [0.12, 0.13, "an eighth", 0.5])
def test_a_variance_that_is_only_near_does_not_pass(answer):
    verdict = check.variance_left(answer)
    assert (verdict.status, verdict.mistake) == ("not yet", None)


def test_scaled_scores_are_told_from_23_that_are_not():
    prove(
        check.scaled_scores,
        scaled_by_loops,
        scaled_queries,
        scaled_by_torch,
        wrong_ways={
            "no scale": (lambda Q, K: np.einsum("...ic,...jc->...ij", Q, K),),
            "d_k without its root": (
                lambda Q, K: scaled_queries(Q, K) / math.sqrt(K.shape[-1]),
            ),
            "all axes turned round": (
                lambda Q, K: np.matmul(Q, np.transpose(K)) * Q.shape[-1] ** -0.5,
            ),
            "float32 became float64": (
                lambda Q, K: scaled_by_torch(*map(np.float64, (Q, K))),
                lambda Q, K: Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1]),
            ),
            "power without brackets": (
                lambda Q, K: Q @ K.swapaxes(-1, -2) / (Q.shape[-1] ** 1 / 2),
            ),
            "power without any brackets": (
                lambda Q, K: Q @ K.swapaxes(-1, -2) / Q.shape[-1] ** 1 / 2,
            ),
            "rounded down": (
                lambda Q, K: Q @ K.swapaxes(-1, -2) // Q.shape[-1] ** 0.5,
            ),
            "root rounded down": (
                lambda Q, K: Q @ K.swapaxes(-1, -2) / int(Q.shape[-1] ** 0.5),
            ),
            "len(Q) for d_k": (
                lambda Q, K: Q @ K.swapaxes(-1, -2) / Q.shape[0] ** 0.5,
            ),
            "no transpose": (lambda Q, K: Q / math.sqrt(Q.shape[-1]) @ K,),
            "keys times queries": (
                lambda Q, K: K @ Q.swapaxes(-1, -2) / Q.shape[-1] ** 0.5,
            ),
            "every batch with every batch": (
                lambda Q, K: np.dot(Q, K.swapaxes(-1, -2)) / math.sqrt(Q.shape[-1]),
            ),
            "an axis counted from the front": (
                lambda Q, K: (
                    np.einsum("...ic,...jc->...ij", Q, K)
                    * float(np.shape(Q)[1]) ** -0.5
                ),
            ),
        },
    )


def test_the_mystery_divisor_is_told_from_five_guesses():
    prove(
        check.mystery_divisor,
        "D_K",
        " d_k ",
        wrong_ways={"sqrt d_k": ("Sqrt d_k",), "n_k": ("n_k ",)},
    )


@pytest.mark.parametrize(
    "answer", ["d_v", "the root of the width", 4, True, [], "√d_k"]
)
def test_an_answer_in_other_words_is_told_the_six_that_are_known(answer):
    verdict = check.mystery_divisor(answer)
    assert (verdict.status, verdict.mistake) == ("not yet", None)
    for word in ("nothing", "sqrt d_k", "d_k", "sqrt n_k", "n_k", "after the softmax"):
        assert f'"{word}"' in verdict.text


def test_the_scale_for_another_variance_is_told_from_ten_that_are_not():
    prove(
        check.scale_for_variance,
        lambda variance, d_k: 1 / math.sqrt(d_k * variance**2),
        lambda variance, d_k: torch.tensor(variance * d_k**0.5) ** -1,
        wrong_ways={
            "one vector only": (lambda variance, d_k: (variance * d_k) ** -0.5,),
            "no brackets around the divisor": (
                lambda variance, d_k: 1 / variance * d_k**0.5,
            ),
            "divisor for factor": (lambda variance, d_k: math.sqrt(variance**2 * d_k),),
        },
    )


def test_the_doubling_law_is_told_from_ten_that_are_not():
    prove(
        check.doubling_law,
        doubling_by_repeat,
        doubling_by_hand,
        wrong_ways={
            "passes everything": (
                lambda attend: True,
                lambda attend: bool(
                    np.isfinite(attend(np.eye(2), np.eye(2), np.eye(2))).all()
                ),
            ),
            "false alarm by rounding": (lambda attend: False,),
            "constant values": (
                lambda attend: bool(
                    np.isclose(
                        attend(np.eye(2), np.eye(2), np.full((2, 3), 7.0)),
                        attend(np.eye(2), np.eye(2).repeat(2, 0), np.full((4, 3), 7.0)),
                    ).all()
                ),
            ),
        },
    )


# Laws


def test_the_mystery_shows_its_divisor_in_the_logarithm_of_two_weights():
    """K = [e₁, 0] and q = e₁ score 1 and 0, so ln(a/b) is 1 over the divisor."""
    for d_k in (2, 3, 5, 11):
        for n_k in (2, 7):
            Q, K = np.eye(1, d_k), np.zeros((n_k, d_k))
            K[0, 0] = 1
            a, b = mystery_weights(Q, K)[0, :2]
            assert 1 / np.log(a / b) == pytest.approx(d_k)


def test_the_mystery_is_a_softmax_of_scores():
    rng = np.random.default_rng(0)
    Q, K = rng.normal(size=(3, 5)), rng.normal(size=(7, 5))
    np.testing.assert_allclose(mystery_weights(Q, K), softmax(Q @ K.T / 5), atol=1e-12)


@pytest.mark.parametrize("variance", [0.5, 1.0, 3.0])
def test_the_right_scale_brings_the_scores_to_variance_one(variance):
    rng = np.random.default_rng(7)
    q, k = math.sqrt(variance) * rng.normal(size=(2, 20_000, 17))
    scores = check.scale_for_variance.right(variance, 17) * (q * k).sum(-1)
    assert scores.var() == pytest.approx(1, abs=0.05)


def test_each_subject_of_the_law_keeps_or_breaks_it_as_its_name_says():
    kept = {subject.__name__: doubling_by_repeat(subject) for subject in _SUBJECTS}
    assert [name for name, holds in kept.items() if not holds] == [
        "divides_by_root_n_k",
        "divides_by_n_k",
        "softmax_over_the_queries",
    ]


# Refusals


def test_scores_written_over_an_input_are_refused():
    def greedy(Q, K):
        Q /= math.sqrt(Q.shape[-1])
        return Q @ K.swapaxes(-1, -2)

    assert "the input Q must stay as it is" in check.scaled_scores(greedy).text


def test_a_law_that_returns_a_difference_is_not_taken_for_a_yes():
    def difference(attend):
        Q, K = np.eye(2), np.eye(2)
        gap = attend(Q, K.repeat(2, 0), K.repeat(2, 0)) - attend(Q, K, K)
        return abs(gap).max()

    assert check.doubling_law(difference).status == "not yet"


@pytest.mark.parametrize(
    "slip", ["all axes turned round", "an axis counted from the front", "rounded down"]
)
def test_a_slip_with_axes_in_front_shows_on_a_small_input(slip):
    answers = {mistake.name: mistake.answer for mistake in check.scaled_scores.mistakes}
    text = check.scaled_scores(answers[slip]).text
    assert "Q =       [[[1. 1.]]]" in text
    assert len(text.split("\n")) <= 12


def test_scores_of_the_package_are_refused():
    verdict = check.scaled_scores(
        lambda Q, K: dot_product_scores(Q, K) / math.sqrt(Q.shape[-1])
    )
    assert verdict.status == "not yet"
    assert "this calls mha.dot_product_scores" in verdict.text


def test_a_law_that_returns_a_table_is_told_how_to_compare_tables():
    def table(attend):
        Q, K = np.eye(2), np.eye(2)
        return attend(Q, K, K) == attend(Q, K.repeat(2, 0), K.repeat(2, 0))

    assert (
        "this is a table of shape (2, 2), and np.allclose"
        in check.doubling_law(table).text
    )
