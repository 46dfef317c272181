"""Exercises on similarity: dot products and cosines."""

import numpy as np

from exercises import section
from mha.check import Exercise, Mistake
from mha.similarity import cosine_similarity, dot_product_scores

_BY_HAND, _EQUATION = (
    section("dot_product", "By hand"),
    section("dot_product", "The equation"),
)

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
    mistakes=(
        Mistake(
            "no transpose",
            "the keys are still rows: a product takes rows times columns",
            lambda Q, K: Q @ K,
        ),
        Mistake(
            "reshape for a transpose",
            "reshape lays the numbers down anew, so a column no longer holds one key",
            lambda Q, K: Q @ K.reshape(K.shape[1], K.shape[0]),
        ),
        Mistake(
            "queries and keys swapped",
            "row i should belong to query i; yours belongs to key i",
            lambda Q, K: K @ Q.T,
        ),
        Mistake(
            "only pairs with equal index",
            "query 0 should meet every key, not only key 0",
            lambda Q, K: (Q * K).sum(-1),
        ),
        Mistake(
            "mean for sum",
            "the products of the places are added up, not averaged",
            lambda Q, K: Q @ K.T / Q.shape[-1],
        ),
        Mistake(
            "cosine for dot product",
            "the lengths are divided out; the score keeps them",
            lambda Q, K: cosine_similarity(Q, K),
        ),
        Mistake(
            "only the last place",
            "only the last place votes: is `=` standing where `+=` is meant?",
            lambda Q, K: np.outer(Q[:, -1], K[:, -1]),
        ),
        Mistake(
            "queries for keys",
            "the keys do not occur: the queries score each other",
            lambda Q, K: Q @ Q.T,
        ),
        Mistake(
            "divided by a root",
            "you divide by the root of the width; that is a later chapter",
            lambda Q, K: Q @ K.T / Q.shape[-1] ** 0.5,
        ),
        Mistake(
            "whole numbers only",
            "your scores are rounded: does the array hold integers?",
            lambda Q, K: (Q @ K.T).astype(int),
        ),
        Mistake(
            "products not added up",
            "one axis too many: the places of a pair still have to be added up",
            lambda Q, K: Q[:, None] * K[None],
        ),
    ),
    reread=_BY_HAND,
    praise="your scores are those of mha.dot_product_scores, for every shape tried.",
)

spread_of_thirds = Exercise(
    task="the standard deviation of a score, width 300 and variance 1/3",
    right=300**0.5 / 3,
    cases=((),),
    observe=lambda answer: round(float(answer), 2),
    mistakes=(
        Mistake(
            "the variance",
            "that is the variance of the score; the question asks for its square root",
            300 / 9,
        ),
        Mistake("the mean", "0 is the mean of the scores, not their spread", 0),
        Mistake(
            "variance 1",
            "√300 would be right for entries of variance 1; these have 1/3",
            300**0.5,
        ),
        Mistake(
            "one third counted once",
            "a product has two factors, and each of them brings a variance of 1/3",
            10,
        ),
        Mistake(
            "one third for its root",
            "1/3 is already a variance; you have squared it once too often",
            300**0.5 / 9,
        ),
        Mistake(
            "one product",
            "1/3 is the spread of one product; three hundred are added up",
            1 / 3,
        ),
    ),
    reread=section("dot_product", "Experiment: how large is a dot product of noise?"),
    praise="three hundred products of variance 1/9 each, and a root.",
)


def _unit(x, axis=-1):
    length = np.sqrt((x * x).sum(axis, keepdims=True))
    return x / np.where(length == 0, 1, length)


def _naive_cosine(Q, K):
    lengths = [np.sqrt((x * x).sum(-1)) for x in (Q, K)]
    return Q @ K.T / np.outer(*lengths)


cosine = Exercise(
    task="cosines of all pairs, 0 where a vector is zero",
    right=lambda Q, K: cosine_similarity(Q, K),
    forbidden=(cosine_similarity,),
    cases=(
        (np.array([[3.0, 4.0]]), np.array([[5.0, 0.0], [-6.0, -8.0]])),
        (np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([[0.0, 2.0], [1.0, 1.0]])),
        (np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[2.0, 0.0], [0.0, 0.0]])),
        (np.arange(6.0).reshape(2, 3) - 2, np.arange(15.0).reshape(5, 3) - 7),
    ),
    mistakes=(
        Mistake(
            "NaN for zero vectors",
            "a zero vector has length 0, and 0/0 is NaN",
            _naive_cosine,
        ),
        Mistake(
            "lengths kept",
            "that is the dot product: divide by both lengths",
            lambda Q, K: Q @ K.T,
        ),
        Mistake(
            "one length only",
            "only the queries are brought to length 1; the keys need it too",
            lambda Q, K: _unit(Q) @ K.T,
        ),
        Mistake(
            "the other length only",
            "only the keys are brought to length 1; the queries need it too",
            lambda Q, K: Q @ _unit(K).T,
        ),
        Mistake(
            "one length for all",
            "you divide by the length of the whole matrix; each row has its own",
            lambda Q, K: Q @ K.T / np.sqrt((Q * Q).sum() * (K * K).sum()),
        ),
        Mistake(
            "the angle",
            "that is the angle; the question asks for its cosine",
            lambda Q, K: np.arccos(cosine_similarity(Q, K)),
        ),
        Mistake(
            "squared lengths",
            "you divide by the squared lengths: is a square root missing?",
            lambda Q, K: (
                _unit(Q)
                @ _unit(K).T
                / np.maximum(
                    np.sqrt(np.outer((Q * Q).sum(-1), (K * K).sum(-1))), 1e-300
                )
            ),
        ),
        Mistake(
            "columns for rows",
            "you bring the columns to length 1; a vector is a row",
            lambda Q, K: _unit(Q, 0) @ _unit(K, 0).T,
        ),
        Mistake(
            "sign lost",
            "opposite directions have cosine −1; your result is never negative",
            lambda Q, K: np.abs(_unit(Q) @ _unit(K).T),
        ),
    ),
    reread=_EQUATION,
    praise="from −1 to 1, and a vector of zeros is like nothing.",
)

best_unit_key = Exercise(
    task="the key of length 1 that scores highest with q",
    right=lambda q: q / np.sqrt(q @ q),
    cases=(
        (np.array([3.0, 4.0]),),
        (np.array([0.0, -2.0, 0.0]),),
        (np.array([1.0, -2.0, 3.0, 0.0, 1.0]),),
    ),
    mistakes=(
        Mistake(
            "length not 1",
            "the direction is right, but this key is not of length 1",
            lambda q: q.copy(),
        ),
        Mistake(
            "largest place only",
            "this key listens to one place only; the others vote too",
            lambda q: (
                np.eye(len(q))[np.abs(q).argmax()] * np.sign(q[np.abs(q).argmax()])
            ),
        ),
        Mistake(
            "signs only",
            "every place gets the same weight; places with more should get more",
            lambda q: np.sign(q) / np.sqrt((q != 0).sum()),
        ),
        Mistake(
            "opposite direction",
            "this key scores lowest of all: the angle is 180 degrees",
            lambda q: -q / np.sqrt(q @ q),
        ),
        Mistake(
            "sum for length",
            "you divide by the sum of the absolute places; the length is the root of "
            "the sum of squares",
            lambda q: q / np.abs(q).sum(),
        ),
        Mistake(
            "plain sum for length",
            "you divide by the sum of the places, which can even be negative or zero",
            lambda q: q / q.sum(),
        ),
        Mistake(
            "squared length",
            "you divide by q · q, the squared length: is a square root missing?",
            lambda q: q / (q @ q),
        ),
        Mistake(
            "a number for a vector",
            "that is the best score; the question asks for the key that reaches it",
            lambda q: np.sqrt(q @ q),
        ),
    ),
    reread=_EQUATION,
    praise="the cosine is largest, 1, in the direction of q itself.",
)
