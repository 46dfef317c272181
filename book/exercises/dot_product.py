"""Exercises on similarity: dot products and cosines."""

import numpy as np

from exercises import Exercise, number, section
from mha.similarity import cosine_similarity, dot_product_scores

_BY_HAND = section("dot_product", "By hand")
_EQUATION = section("dot_product", "The equation")
_RANDOM = section(
    "dot_product", "Deeper: how large is the dot product of random vectors?"
)

_PAIRS = (
    (np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]])),
    (np.array([[1.0, 0.0]]), np.array([[2.0, 5.0], [3.0, 7.0]])),
    (np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([[3.0, 5.0], [-2.0, 4.0]])),
    (np.array([[0.5, 0.25]]), np.array([[1.0, 1.0]])),
    (np.arange(6.0).reshape(2, 3), np.arange(9.0, -6.0, -1.0).reshape(5, 3) ** 2),
)


def _stop_early(Q, K, rows, columns):
    """Return scores with zeros where loops that return too early never came."""
    S = np.zeros((len(Q), len(K)))
    S[:rows, :columns] = (Q @ K.T)[:rows, :columns]
    return S


def _over(Q, K, positions):
    """Return loops that add up these positions, or run out of them."""
    return np.sum([np.outer(Q[:, a], K[:, a]) for a in positions], axis=0)


scores = Exercise(
    task="the scores of every query with every key",
    right=lambda Q, K: dot_product_scores(Q, K),
    forbidden=(dot_product_scores, cosine_similarity),
    cases=_PAIRS,
    mistakes={
        "after a reshape a column no longer holds one key: "
        "use the transpose": lambda Q, K: Q @ K.reshape(K.shape[1], K.shape[0]),
        "your rows belong to the keys: "
        "give each query a row and each key a column": lambda Q, K: K @ Q.T,
        "you average the products of the positions: add them up instead": lambda Q, K: (
            Q @ K.T / Q.shape[-1]
        ),
        "this is the cosine: do not divide the score by the lengths": lambda Q, K: (
            cosine_similarity(Q, K)
        ),
        "only the last position counts: "
        "did you write `=` instead of `+=`?": lambda Q, K: np.outer(Q[:, -1], K[:, -1]),
        "all rows are equal: `[[0] * n] * m` holds one list m times, so make a new "
        "list for each row": lambda Q, K: np.tile((Q @ K.T)[-1], (len(Q), 1)),
        "you add up `len(K)` products: the number of positions is the width, "
        "`Q.shape[1]`": lambda Q, K: _over(Q, K, range(len(K))),
        "the first position is missing: Python counts from 0, so use "
        "`range(Q.shape[1])`": lambda Q, K: _over(Q, K, range(1, Q.shape[1])),
        "only the first pair has a score: "
        "move `return` out of both loops": lambda Q, K: _stop_early(Q, K, 1, 1),
    },
    reread=_BY_HAND,
    praise="your scores are correct for every shape that was tried.",
)


spread_of_thirds = Exercise(
    task="the standard deviation of a score, width 300 and variance 1/3",
    right=300**0.5 / 3,
    cases=((),),
    observe=number,
    mistakes={
        "this is the variance of the score: take its square root": 300 / 9,
        "0 is the mean of a score, not its standard deviation": 0,
        "this would be right for numbers of variance 1, and these have 1/3": 300**0.5,
        "each product has two factors, and both have the variance 1/3": 10,
        "1/3 is the standard deviation of one product: a score adds up 300": 1 / 3,
    },
    reread=_RANDOM,
    praise="300 products of variance 1/9 each have the variance 300/9 together.",
)


def _lengths(x, axis=-1, keepdims=False):
    return np.sqrt((x * x).sum(axis, keepdims=keepdims))


def _whole(x, axis=-1):
    """Return x over its lengths, NaN where a length is 0."""
    return x / _lengths(x, axis, keepdims=True)


def _not_zero(length):
    return np.where(length == 0, 1, length)


def _unit(x, axis=-1):
    return x / _not_zero(_lengths(x, axis, keepdims=True))


cosine = Exercise(
    task="cosines of all pairs, 0 where a vector is zero",
    right=lambda Q, K: cosine_similarity(Q, K),
    forbidden=(cosine_similarity,),
    cases=(
        (np.array([[3.0, 4.0]]), np.array([[5.0, 0.0], [-6.0, -8.0]])),
        (np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([[0.0, 2.0], [1.0, 1.0]])),
        (np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[2.0, 0.0], [0.0, 0.0]])),
        (np.array([[0.3, 0.4]]), np.array([[0.5, 0.0], [0.0, 0.25]])),
        (np.arange(6.0).reshape(2, 3) - 2, np.arange(15.0).reshape(5, 3) - 7),
    ),
    mistakes={
        "a vector of zeros has length 0, and 0/0 is NaN: "
        "divide it by 1 instead": lambda Q, K: _whole(Q) @ _whole(K).T,
        "this is the dot product: divide it by both lengths": lambda Q, K: Q @ K.T,
        "you divide by the lengths of the queries only: "
        "divide by those of the keys too": lambda Q, K: _unit(Q) @ K.T,
        "you divide by the lengths of the keys only: "
        "divide by those of the queries too": lambda Q, K: Q @ _unit(K).T,
        "np.linalg.norm without an axis measures the whole matrix: give each row its "
        "own length": lambda Q, K: Q @ K.T / (np.linalg.norm(Q) * np.linalg.norm(K)),
        "you divide by the lengths of the columns: the vectors are the rows, "
        "so use the last axis, not axis 0": lambda Q, K: _unit(Q, 0) @ _unit(K, 0).T,
        "the lengths of the rows do not line up with the rows: keep the axis with "
        "`keepdims=True`": (
            lambda Q, K: Q / _not_zero(_lengths(Q)) @ (K / _not_zero(_lengths(K))).T
        ),
    },
    reread=_EQUATION,
    praise="your cosines are correct, and a vector of zeros gives 0.",
)

best_unit_key = Exercise(
    task="the key of length 1 that scores highest with q",
    right=lambda q: q / np.sqrt(q @ q),
    cases=(
        (np.array([3.0, 4.0]),),
        (np.array([0.0, -2.0, 0.0]),),
        (np.array([1.0, -2.0, 3.0, 0.0, 1.0]),),
    ),
    mistakes={
        "your key looks at one number of q only, but the others add to the score "
        "too": lambda q: np.eye(len(q))[np.argmax(np.abs(q))],
        "the direction is right: now give the key length 1": lambda q: q.copy(),
        "all numbers of your key are of equal size: larger numbers of q need larger "
        "numbers in the key": lambda q: np.sign(q) / np.sqrt((q != 0).sum()),
        "you divide by `len(q)`, which counts the numbers of q: "
        "the length is the root of the sum of their squares": lambda q: q / len(q),
        "the sum of absolute values is not the length": lambda q: q / np.abs(q).sum(),
        "you divide by q · q, the squared length: take its square root": lambda q: (
            q / (q @ q)
        ),
    },
    reread=_EQUATION,
    praise="the cosine is largest in the direction of q itself, where it is 1.",
)
