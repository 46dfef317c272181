"""Exercises on similarity: dot products and cosines."""

import numpy as np

from exercises import Exercise, section
from mha.similarity import cosine_similarity, dot_product_scores

_BY_HAND = section("dot_product", "Multiply and add")
_EQUATION = section("dot_product", "The score measures the shadow")

_PAIRS = (
    (np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]])),
    (np.array([[1.0, 0.0]]), np.array([[2.0, 5.0], [3.0, 7.0]])),
    (np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([[3.0, 5.0], [-2.0, 4.0]])),
    (np.array([[0.5, 0.25]]), np.array([[1.0, 1.0]])),
    (np.arange(6.0).reshape(2, 3), np.arange(9.0, -6.0, -1.0).reshape(5, 3) ** 2),
)


scores = Exercise(
    task="the scores of every query with every key",
    right=lambda Q, K: dot_product_scores(Q, K),
    forbidden=(dot_product_scores, cosine_similarity),
    cases=_PAIRS,
    mistakes={
        "after a reshape a column no longer holds one key: "
        "use the transpose": lambda Q, K: Q @ K.reshape(K.shape[1], K.shape[0]),
        "each score contains all the scores before it: let the sum start at 0 again "
        "for every pair": lambda Q, K: np.cumsum(Q @ K.T).reshape(len(Q), -1),
        "each score contains those to its left: let the sum start at 0 again for "
        "every key": lambda Q, K: np.cumsum(Q @ K.T, axis=1),
        "the digits behind the point are cut off, as in an array of whole numbers: "
        "np.zeros(shape) makes floats": lambda Q, K: np.trunc(Q @ K.T),
        "only the last position counts: "
        "did you write `=` instead of `+=`?": lambda Q, K: np.outer(Q[:, -1], K[:, -1]),
    },
    reread=_BY_HAND,
    praise="your scores are correct for every shape that was tried.",
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
        (np.array([[0.03, 0.0]]), np.array([[0.02, 0.0], [0.03, 0.04]])),
        (np.arange(6.0).reshape(2, 3) - 2, np.arange(15.0).reshape(5, 3) - 7),
    ),
    mistakes={
        "a key of zeros still has length 0; the queries are right": lambda Q, K: (
            _unit(Q) @ _whole(K).T
        ),
        "the queries keep their length; divide them by it too": lambda Q, K: (
            Q @ _unit(K).T
        ),
        "the keys keep their length; divide them by it too": lambda Q, K: (
            _unit(Q) @ K.T
        ),
        "you divide no vector by a length below 1, but only a length of 0 has to be "
        "replaced": lambda Q, K: (
            Q @ K.T / np.fmax(_lengths(Q), 1)[:, None] / np.fmax(_lengths(K), 1)
        ),
        "a number that is added to each length changes every cosine": lambda Q, K: (
            Q @ K.T / ((_lengths(Q) + 1)[:, None] * (_lengths(K) + 1))
        ),
        "a vector of zeros has length 0, and 0/0 is NaN: "
        "divide it by 1 instead": lambda Q, K: _whole(Q) @ _whole(K).T,
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
        (np.array([-3.0, 4.0]),),
        (np.array([1.0, -2.0, 3.0, 0.0, 1.0]),),
    ),
    mistakes={
        "your key lies along one axis; the best one has the direction of q": lambda q: (
            np.sign(q) * np.eye(len(q))[np.abs(q).argmax()]
        ),
        "your key looks at one number of q only, but the others add to the score "
        "too": lambda q: np.eye(len(q))[np.argmax(q)],
        "the direction is right: now give the key length 1": lambda q: q.copy(),
        "the sum of absolute values is not the length": lambda q: q / np.abs(q).sum(),
    },
    reread=_EQUATION,
    praise="the cosine is largest in the direction of q itself, where it is 1.",
)
