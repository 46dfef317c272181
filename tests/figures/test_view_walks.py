"""Figures that walk: the nine steps, the blocks, and the laws one by one."""

import json
import math

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")

import mha
from mha import laws

SAYS = "One sentence with the finding."
WORDS = ["All", "is", "well"]
rng = np.random.default_rng(0)
X = rng.normal(size=(3, 5))
MATRICES = [rng.normal(size=(5, width)) for width in (4, 4, 6)]
MATRICES.append(rng.normal(size=(6, 5)))
ROUNDED = {"rtol": 0, "atol": 0.51e-4}


def walk(**options):
    figure = figures.steps(X, *MATRICES, 2, tokens=WORDS, alt=SAYS, **options)
    return json.loads(figure.data)


def small_matrix():
    rows, columns = ("right", "a", "b"), ("one", "two")
    killed = np.array([[False, False], [True, False], [True, True]])
    return laws.KillMatrix(rows, columns, killed)


# The nine steps


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_last_step_is_the_output_of_the_package(is_causal):
    data = walk(is_causal=is_causal)
    Y, A = mha.multi_head_attention(
        X, *MATRICES, 2, is_causal=is_causal, return_weights=True
    )
    np.testing.assert_allclose(data["Y"], Y, **ROUNDED)
    np.testing.assert_allclose(data["A"], A, **ROUNDED)


def test_each_step_follows_from_the_one_before():
    data = walk(is_causal=True)
    Q, K, V, A = (np.array(data[name]) for name in "QKVA")
    loose = {"rtol": 0, "atol": 1e-3}  # of numbers rounded to four decimals
    np.testing.assert_allclose(data["P"]["Q"], X @ MATRICES[0], **ROUNDED)
    np.testing.assert_allclose(np.concatenate(Q, -1), data["P"]["Q"], **loose)
    S = Q @ K.swapaxes(1, 2) / math.sqrt(2)
    np.testing.assert_allclose(data["S"], S, **loose)
    np.testing.assert_allclose(data["H"], A @ V, **loose)
    np.testing.assert_allclose(data["C"] @ MATRICES[3], data["Y"], **loose)


def test_what_lies_in_the_future_is_closed():
    data = walk(is_causal=True)
    closed = [[cell is None for cell in row] for row in data["scaled"][1]]
    assert closed == (~np.tri(3, dtype=bool)).tolist()
    assert not any(cell is None for row in walk()["scaled"][0] for cell in row)


def test_every_token_needs_a_word():
    with pytest.raises(ValueError, match=r"got shape \(3, 5\) and 2 words"):
        figures.steps(X, *MATRICES, 2, tokens=WORDS[:2], alt=SAYS)


# The blocks


def test_online_hands_over_what_it_is_given():
    figure = figures.online([1, 3, 2, 5], [1, 2, 3, 4], list("abcd"), alt=SAYS, block=3)
    data = json.loads(figure.data)
    assert data["scores"] == [1, 3, 2, 5] and data["block"] == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": [1, 2, 3]}, r"shapes \(4,\) and \(3,\) and 4 labels"),
        ({"labels": ["a"]}, "1 labels"),
        ({"scores": [1], "values": [1], "labels": ["a"]}, "at least 4, got 1"),
        ({"scores": [1, 2, np.inf, 4]}, "scores must be finite"),
        ({"block": 5}, r"one of \(1, 2, 3\), got 5"),
    ],
)
def test_online_says_what_does_not_fit(changes, message):
    fits = {"scores": [1, 3, 2, 5], "values": [1, 2, 3, 4], "labels": list("abcd")}
    with pytest.raises(ValueError, match=message):
        figures.online(**{**fits, "alt": SAYS, **changes})


# The laws


def test_kills_leaves_out_whoever_breaks_no_law():
    data = json.loads(figures.kills(small_matrix(), alt=SAYS).data)
    assert data["members"] == ["a", "b"]
    assert data["killed"] == [[1, 0], [1, 1]]
