"""Exercises on similarity: dot products and cosines."""

import numpy as np

from exercises import section
from mha.check import Exercise, Mistake
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


def _keep_the_sum(Q, K):
    """Return the running sums of loops that never set the total back to 0."""
    return np.cumsum(Q @ K.T).reshape(len(Q), len(K))


def _stop_early(Q, K, rows, columns):
    """Return scores with zeros where loops that return too early never came."""
    S = np.zeros((len(Q), len(K)))
    S[:rows, :columns] = (Q @ K.T)[:rows, :columns]
    return S


def _sum_over(Q, K, n):
    """Return loops that add up n positions, or run out of them."""
    return np.sum([np.outer(Q[:, a], K[:, a]) for a in range(n)], axis=0)


scores = Exercise(
    task="the scores of every query with every key",
    right=lambda Q, K: dot_product_scores(Q, K),
    forbidden=(dot_product_scores, cosine_similarity),
    cases=_PAIRS,
    mistakes=(
        Mistake(
            "no transpose",
            "the keys are still rows: a matrix product takes rows times columns",
            lambda Q, K: Q @ K,
        ),
        Mistake(
            "reshape for a transpose",
            "after a reshape a column no longer holds one key: use the transpose",
            lambda Q, K: Q @ K.reshape(K.shape[1], K.shape[0]),
        ),
        Mistake(
            "queries and keys swapped",
            "your rows belong to the keys: give each query a row and each key a column",
            lambda Q, K: K @ Q.T,
        ),
        Mistake(
            "only pairs with equal index",
            "you compare each query with one key only: compare it with every key",
            lambda Q, K: (Q * K).sum(-1),
        ),
        Mistake(
            "mean for sum",
            "you average the products of the positions: add them up instead",
            lambda Q, K: Q @ K.T / Q.shape[-1],
        ),
        Mistake(
            "cosine for dot product",
            "this is the cosine: do not divide the score by the lengths",
            lambda Q, K: cosine_similarity(Q, K),
        ),
        Mistake(
            "only the last position",
            "only the last position counts: did you write `=` instead of `+=`?",
            lambda Q, K: np.outer(Q[:, -1], K[:, -1]),
        ),
        Mistake(
            "queries for keys",
            "you compare the queries with each other: use the keys too",
            lambda Q, K: Q @ Q.T,
        ),
        Mistake(
            "divided by a root",
            "you divide by the root of the width: do not divide yet",
            lambda Q, K: Q @ K.T / Q.shape[-1] ** 0.5,
        ),
        Mistake(
            "whole numbers only",
            "your scores are whole numbers: use an array of floats",
            lambda Q, K: (Q @ K.T).astype(int),
        ),
        Mistake(
            "products not added up",
            "one axis too many: add up the products of each pair",
            lambda Q, K: Q[:, None] * K[None],
        ),
        Mistake(
            "one list for all rows",
            "all rows are equal: `[[0] * n] * m` holds one list m times, so make a "
            "new list for each row",
            lambda Q, K: np.tile((Q @ K.T)[-1], (len(Q), 1)),
        ),
        Mistake(
            "total never reset",
            "the sum of one pair goes on in the next: set it to 0 for every pair",
            _keep_the_sum,
        ),
        Mistake(
            "total reset for each query only",
            "the sums of one query go on from key to key: set the sum to 0 inside the "
            "loop over the keys",
            lambda Q, K: np.cumsum(Q @ K.T, axis=1),
        ),
        Mistake(
            "return after the first pair",
            "only the first pair has a score: move `return` out of both loops",
            lambda Q, K: _stop_early(Q, K, 1, 1),
        ),
        Mistake(
            "return after the first query",
            "only the first query has scores: move `return` out of the loop over the "
            "queries",
            lambda Q, K: _stop_early(Q, K, 1, len(K)),
        ),
        Mistake(
            "only the first row returned",
            "you return the scores of the first query only: collect the rows of all "
            "queries before you return",
            lambda Q, K: (Q @ K.T)[:1],
        ),
        Mistake(
            "only the first score returned",
            "you return after the first pair: fill in all pairs before you return",
            lambda Q, K: (Q @ K.T)[0, 0],
        ),
        Mistake(
            "return after the first product",
            "only one product of one pair is there: move `return` out of all loops",
            lambda Q, K: _stop_early(Q[:, :1], K[:, :1], 1, 1),
        ),
        Mistake(
            "a list of the first row",
            "you return a list for the first query: return one list for each query",
            lambda Q, K: (Q @ K.T)[0],
        ),
        Mistake(
            "one long list",
            "your scores are in one long list: make one row for each query",
            lambda Q, K: (Q @ K.T).ravel(),
        ),
        Mistake(
            "keys counted by the queries",
            "your loop over the keys runs over `range(len(Q))`: use `range(len(K))`",
            lambda Q, K: _stop_early(Q, K, len(Q), len(Q)),
        ),
        Mistake(
            "positions counted by the keys",
            "you add up `len(K)` products: the number of positions is the width, "
            "`Q.shape[1]`",
            lambda Q, K: _sum_over(Q, K, len(K)),
        ),
        Mistake(
            "positions counted by the queries",
            "you add up `len(Q)` products: the number of positions is the width, "
            "`Q.shape[1]`",
            lambda Q, K: _sum_over(Q, K, len(Q)),
        ),
        Mistake(
            "a square for every size",
            "your loop over the queries runs over `range(len(K))`: there are `len(Q)` "
            "queries",
            lambda Q, K: np.array([[q @ k for k in K] for q in Q[np.arange(len(K))]]),
        ),
        Mistake(
            "key of the query's index",
            "you take key i for query i in every column: column j needs key j",
            lambda Q, K: np.array([[Q[i] @ K[i]] * len(K) for i in range(len(Q))]),
        ),
        Mistake(
            "first position left out",
            "the first position is missing: Python counts from 0, so use "
            "`range(Q.shape[1])`",
            lambda Q, K: Q[:, 1:] @ K[:, 1:].T,
        ),
    ),
    reread=_BY_HAND,
    praise="your scores are correct for every shape that was tried.",
)


def _two_decimals(answer):
    """Return a number to two decimals; a text stays a text."""
    return answer if isinstance(answer, str) else round(float(answer), 2)


spread_of_thirds = Exercise(
    task="the standard deviation of a score, width 300 and variance 1/3",
    right=300**0.5 / 3,
    cases=((),),
    observe=_two_decimals,
    mistakes=(
        Mistake(
            "the variance",
            "this is the variance of the score: take its square root",
            300 / 9,
        ),
        Mistake("the mean", "0 is the mean of a score, not its standard deviation", 0),
        Mistake(
            "variance 1",
            "this would be right for numbers of variance 1, and these have 1/3",
            300**0.5,
        ),
        Mistake(
            "one third counted once",
            "each product has two factors, and both have the variance 1/3",
            10,
        ),
        Mistake(
            "one third counted once, no root",
            "both factors of a product have the variance 1/3: multiply, then take the "
            "root of the sum",
            100,
        ),
        Mistake(
            "one third for its root",
            "1/3 is already a variance: do not square it again",
            300**0.5 / 9,
        ),
        Mistake(
            "one product",
            "1/3 is the standard deviation of one product: a score adds up 300",
            1 / 3,
        ),
        Mistake(
            "variance of one product",
            "1/9 is the variance of one product: add up 300 and take the square root",
            1 / 9,
        ),
        Mistake(
            "one decimal",
            "this is right to one decimal: give two",
            5.8,
        ),
    ),
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


def _at_least_1(x):
    return x / np.maximum(_lengths(x, keepdims=True), 1)


def _plus_1(x):
    return x / (_lengths(x, keepdims=True) + 1)


def _without_keepdims(Q, K):
    return Q / _not_zero(_lengths(Q)) @ (K / _not_zero(_lengths(K))).T


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
    mistakes=(
        Mistake(
            "NaN for zero vectors",
            "a vector of zeros has length 0, and 0/0 is NaN: divide it by 1 instead",
            lambda Q, K: _whole(Q) @ _whole(K).T,
        ),
        Mistake(
            "lengths kept",
            "this is the dot product: divide it by both lengths",
            lambda Q, K: Q @ K.T,
        ),
        Mistake(
            "one length only",
            "you divide by the lengths of the queries only: divide by those of the "
            "keys too",
            lambda Q, K: _unit(Q) @ K.T,
        ),
        Mistake(
            "the other length only",
            "you divide by the lengths of the keys only: divide by those of the "
            "queries too",
            lambda Q, K: Q @ _unit(K).T,
        ),
        Mistake(
            "one length for all",
            "you divide by one length for the whole matrix: each row has its own "
            "length",
            lambda Q, K: Q @ K.T / np.sqrt((Q * Q).sum() * (K * K).sum()),
        ),
        Mistake(
            "the angle",
            "this is the angle: return its cosine",
            lambda Q, K: np.arccos(cosine_similarity(Q, K)),
        ),
        Mistake(
            "squared lengths",
            "you divide by the squared lengths: take their square roots",
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
            "you divide by the lengths of the columns: the vectors are the rows, so "
            "use the last axis, not axis 0",
            lambda Q, K: _unit(Q, 0) @ _unit(K, 0).T,
        ),
        Mistake(
            "missing keepdims",
            "the lengths of the rows do not line up with the rows: keep the axis with "
            "`keepdims=True`",
            _without_keepdims,
        ),
        Mistake(
            "lengths not in an outer product",
            "entry (i, j) needs the length of query i times that of key j: multiply a "
            "column of lengths with a row of lengths",
            lambda Q, K: Q @ K.T / (_lengths(Q) * _lengths(K)),
        ),
        *(
            Mistake(
                f"rounded to {n} decimals",
                f"your cosines are rounded to {n} decimals: return them as they are",
                lambda Q, K, n=n: cosine_similarity(Q, K).round(n),
            )
            for n in (2, 3)
        ),
        Mistake(
            "columns for rows, with NaN",
            "you sum down the columns, over axis 0: a vector is a row",
            lambda Q, K: _whole(Q, 0) @ _whole(K, 0).T,
        ),
        Mistake(
            "missing keepdims, with NaN",
            "the lengths do not line up with the rows: write `keepdims=True`, and mind "
            "vectors of zeros",
            lambda Q, K: Q / _lengths(Q) @ (K / _lengths(K)).T,
        ),
        Mistake(
            "short vectors kept",
            "you divide by 1 where a length is below 1: only a length of 0 becomes 1",
            lambda Q, K: _at_least_1(Q) @ _at_least_1(K).T,
        ),
        Mistake(
            "1 added to every length",
            "you add 1 to every length: only a length of 0 becomes 1",
            lambda Q, K: _plus_1(Q) @ _plus_1(K).T,
        ),
        Mistake(
            "1 added to every product of lengths",
            "you add 1 to the products of the lengths: change only those that are 0",
            lambda Q, K: Q @ K.T / (np.outer(_lengths(Q), _lengths(K)) + 1),
        ),
        Mistake(
            "1 for zero vectors",
            "your cosine with a vector of zeros is 1: it should be 0",
            lambda Q, K: np.where(
                np.outer(_lengths(Q), _lengths(K)) == 0, 1, _unit(Q) @ _unit(K).T
            ),
        ),
        Mistake(
            "lengths of queries along the columns",
            "a list of lengths divides the columns, and a query is a row: write "
            "`lengths[:, None]` for the queries",
            lambda Q, K: Q @ K.T / _not_zero(_lengths(Q)) / _not_zero(_lengths(K)),
        ),
        Mistake(
            "sign lost",
            "your cosines are never negative: opposite directions have cosine −1",
            lambda Q, K: np.abs(_unit(Q) @ _unit(K).T),
        ),
    ),
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
    mistakes=(
        Mistake(
            "length not 1",
            "the direction is right: now give the key length 1",
            lambda q: q.copy(),
        ),
        Mistake(
            "largest position only",
            "you use the largest number of q only: the other positions count too",
            lambda q: (
                np.eye(len(q))[np.abs(q).argmax()] * np.sign(q[np.abs(q).argmax()])
            ),
        ),
        Mistake(
            "signs only",
            "all numbers of your key are of equal size: larger numbers of q need "
            "larger numbers in the key",
            lambda q: np.sign(q) / np.sqrt((q != 0).sum()),
        ),
        Mistake(
            "each number by its own size",
            "you divide each number by its own size: divide all by one number, the "
            "length of q",
            lambda q: q / np.abs(q),
        ),
        Mistake(
            "all numbers equal",
            "your key is the same for every q: it should have the direction of q",
            lambda q: np.ones(len(q)) / np.sqrt(len(q)),
        ),
        Mistake(
            "signs lost",
            "your key has no negative numbers: negative numbers of q need "
            "negative numbers in the key",
            lambda q: np.abs(q) / np.sqrt(q @ q),
        ),
        Mistake(
            "count for length",
            "you divide by `len(q)`, which counts the numbers of q: the length is the "
            "root of the sum of their squares",
            lambda q: q / len(q),
        ),
        Mistake(
            "root of the count for length",
            "you divide by the root of the width: the length is the root of the sum of "
            "squares of q",
            lambda q: q / np.sqrt(len(q)),
        ),
        Mistake(
            "multiplied by the length",
            "you multiply by the length of q: divide by it",
            lambda q: q * np.sqrt(q @ q),
        ),
        Mistake(
            "squares forgotten under the root",
            "you take the root of the sum of the numbers: square them before you add "
            "them up",
            lambda q: q / np.sqrt(q.sum()),
        ),
        Mistake(
            "largest number, sign ignored",
            "you use the largest number of q only: all positions count, and negative "
            "numbers too",
            lambda q: np.eye(len(q))[q.argmax()],
        ),
        Mistake(
            "opposite direction",
            "this key scores lowest of all: its angle to q is 180 degrees",
            lambda q: -q / np.sqrt(q @ q),
        ),
        Mistake(
            "sum for length",
            "you divide by the sum of absolute values: the length is the root of the "
            "sum of squares",
            lambda q: q / np.abs(q).sum(),
        ),
        Mistake(
            "plain sum for length",
            "you divide by the sum of the numbers: the length is the root of the sum "
            "of their squares",
            lambda q: q / q.sum(),
        ),
        Mistake(
            "squared length",
            "you divide by q · q, the squared length: take its square root",
            lambda q: q / (q @ q),
        ),
        Mistake(
            "a number for a vector",
            "this is the best score: return the key that reaches it",
            lambda q: np.sqrt(q @ q),
        ),
        *(
            Mistake(
                f"rounded to {n} decimals",
                f"your numbers are rounded to {n} decimals: return them as they are",
                lambda q, n=n: (q / np.sqrt(q @ q)).round(n),
            )
            for n in (2, 3)
        ),
        Mistake(
            "largest number for length",
            "you divide by the largest number: the length is the root of the sum of "
            "squares",
            lambda q: q / q.max(),
        ),
    ),
    reread=_EQUATION,
    praise="the cosine is largest in the direction of q itself, where it is 1.",
)
