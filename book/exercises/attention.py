"""Exercises on attention: queries, keys, values, and the order of the keys."""

import numpy as np

from exercises import (
    Exercise,
    Law,
    each,
    number,
    random_arrays,
    section,
    slips_of_the_zoo,
)
from mha import softmax
from mha.attention import scaled_dot_product_attention as attention
from mha.chunked import chunked_attention
from mha.similarity import dot_product_scores


def _scaled(Q, K):
    return dot_product_scores(Q, K) / K.shape[-1] ** 0.5


def _powers(Q, K, axis=-1):
    S = _scaled(Q, K)
    return np.exp(S - S.max(axis, keepdims=True))


attend = Exercise(
    task="scaled dot-product attention",
    right=lambda Q, K, V: attention(Q, K, V),
    forbidden=(attention, chunked_attention),
    cases=(
        (np.array([[2.0, 1.0]]), np.eye(2), np.array([[3.0], [5.0]])),
        (np.array([[2.0, 1.0], [0.0, 3.0]]), np.eye(2), np.array([[3.0], [5.0]])),
        (np.array([[2.0, 1.0]]), np.array([[0.0, 1], [2, 0]]), np.array([[3.0], [5]])),
        (np.array([[2.0, 1.0]]), np.array([[1.0, 0], [0, 1], [1, 1]]), np.eye(3)),
        (np.array([[2000.0, 0.0], [1.0, 0.0]]), np.eye(2), np.eye(2)),
        random_arrays((5, 3), (7, 3), (7, 2), seed=0),
        random_arrays((3, 5), (2, 5), (2, 7), seed=1),
    ),
    mistakes=slips_of_the_zoo(
        *("no_scale", "scale_sqrt_n", "scale_by_d_k", "scale_after_softmax"),
        *("softmax_over_queries", "no_max_subtraction"),
    )
    | {
        "you divide by √2 in every case; d_k is the width of the keys, K.shape[-1]": (
            lambda Q, K, V: softmax(Q @ K.T / 2**0.5) @ V
        ),
        "two slips: you divide by √2 in every case, where d_k is K.shape[-1], and a "
        "large score overflows": lambda Q, K, V: (
            (e := np.exp(Q @ K.T / 2**0.5)) / e.sum(-1, keepdims=True) @ V
        ),
        "you use the scores as weights: "
        "which step turns scores into weights?": lambda Q, K, V: _scaled(Q, K) @ V,
        "the exponentials do not sum to 1 yet: "
        "divide each row by its sum": lambda Q, K, V: _powers(Q, K) @ V,
        "the sums of the rows do not line up with the rows: keep the axis of the sum "
        "with keepdims=True": lambda Q, K, V: _powers(Q, K) / _powers(Q, K).sum(-1) @ V,
    },
    reread=section("attention", "Self-attention in two lines"),
    praise="it agrees with the package, for large scores too.",
)


weight_of_the_middle = Exercise(
    task="the weight of a key half way between two others",
    right=0.24,
    cases=((),),
    observe=number,
    mistakes={
        "this is the average of the weights, but the scores are averaged, "
        "and the exponential comes after that": 0.26,
        "this is the sum of both weights; "
        "the middle key has one score of its own": 0.52,
        "this is the product of both weights, and one step is missing: "
        "the score of c is half of the sum of the scores": 0.36 * 0.16,
    },
    reread=section("attention", "Deeper: what can a query of width 2 pick out?"),
    praise="√(0.36 · 0.16), the geometric mean: to average scores is to multiply "
    "weights and take the root.",
)


self_attention = Exercise(
    task="self-attention with its three matrices",
    right=lambda X, W_Q, W_K, W_V: attention(X @ W_Q, X @ W_K, X @ W_V),
    cases=(
        (
            np.array([[1.0, 0.0], [0.0, 2.0]]),
            np.array([[1.0, 2.0], [0.0, 1.0]]),
            np.array([[0.0, 2.0], [1.0, 0.5]]),
            np.array([[3.0, 1.0], [0.0, 5.0]]),
        ),
        (
            np.array([[1.0, 0.0], [0.0, 2.0]]),
            np.array([[1.0], [2.0]]),
            np.array([[2.0], [-1.0]]),
            np.array([[3.0], [5.0]]),
        ),
        random_arrays((5, 3), (3, 3), (3, 3), (3, 3), seed=2),
        random_arrays((5, 7), (7, 2), (7, 2), (7, 3), seed=3),
    ),
    mistakes={
        "the projections are right, but the scores are not divided by "
        "√d_k": lambda X, q, k, v: attention(X @ q, X @ k, X @ v, scale=1),
        "you multiply by the transposes; W_Q is (d_model, d_k) here, so X @ W_Q fits "
        "(PyTorch stores the "
        "transposes)": lambda X, q, k, v: attention(X @ q.T, X @ k.T, X @ v.T),
        "you multiply by the matrices from the left, which mixes the tokens; a token "
        "is a row of X, so the matrix belongs on the right of "
        "X": lambda X, q, k, v: attention(q @ X, k @ X, v @ X),
        "you score the tokens as they are: "
        "W_Q and W_K have not been used": lambda X, q, k, v: attention(X, X, X @ v),
    },
    reread=section("attention", "One list becomes three"),
    praise="three jobs, three matrices, one attention.",
)


# What a law is run on: correct versions, and versions with one fault each.


def lawful(Q, K, V):
    """Attention as it is."""
    return attention(Q, K, V)


def lawful_without_scale(Q, K, V):
    """Attention without the scale: wrong elsewhere, lawful here."""
    return attention(Q, K, V, scale=1.0)


def lawful_key_by_key(Q, K, V):
    """Attention that adds one key after the other, which rounds in another way."""
    return chunked_attention(Q, K, V, block_size=1)


def early_keys_first(Q, K, V):
    """Add a bonus to the scores of early keys."""
    S = dot_product_scores(Q, K) / K.shape[-1] ** 0.5
    return softmax(S - np.arange(len(K))) @ V


def neighbours_mixed(Q, K, V):
    """Mix the output of each query with that of the next; lawful for the keys."""
    Y = lawful(Q, K, V)
    return (Y + np.roll(Y, 1, axis=0)) / 2


def values_mirrored(Q, K, V):
    """Pair key j with the value of key n - 1 - j."""
    return lawful(Q, K, V[::-1])


def first_row_unlawful(Q, K, V):
    """Add a bonus to early keys for the first query alone."""
    Y = lawful(Q, K, V)
    Y[0] = early_keys_first(Q, K, V)[0]
    return Y


def sum_lawful(Q, K, V):
    """Add a bonus to early keys and leave the sum of all outputs as it should be."""
    Y, bonus = lawful(Q, K, V), early_keys_first(Q, K, V)
    return bonus - bonus.mean() + Y.mean()


def _moved(attend):
    Q, K, V = random_arrays((3, 11), (5, 11), (5, 7), seed=4)
    order = [1, 2, 4, 0, 3]
    return np.allclose(attend(Q, K[order], V[order]), attend(Q, K, V))


key_order_law = Law(
    task="a law: keys may be shuffled with their values",
    right=_moved,
    cases=each(
        lawful,
        lawful_without_scale,
        lawful_key_by_key,
        early_keys_first,
        values_mirrored,
        neighbours_mixed,
        first_row_unlawful,
        sum_lawful,
    ),
    mistakes={},
    changes={
        "K": "K changes and V does not: each key should keep its value",
        "V": "V changes and K does not: each value should keep its key",
        "Q K V": "Q changes too, and each query has an output of its own: leave Q as "
        "it is",
    },
    reread=section("attention", "Six laws in code"),
    praise="correct versions pass, faulty ones are detected, and no false alarm.",
)
