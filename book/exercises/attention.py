"""Exercises on attention: queries, keys, values, and the order of the keys."""

import numpy as np

from exercises import (
    Exercise,
    Law,
    each,
    learning,
    named,
    partly,
    random_arrays,
    section,
    slips_of_the_zoo,
)
from exercises.engine import Unfit, same
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
        (
            np.array([[1500.0], [0.5]]),
            np.array([[2.0], [-2.0], [1.8]]),
            np.array([[0.0], [1.0], [2.0]]),
        ),
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
    picture=learning.reversing_picture,
)


def _learning(answer):
    """Return what an attention is and does in the training, in words."""
    if not callable(answer):
        raise Unfit("a function is asked for: hand it over by its name")
    pairs = [(np.asarray(answer(*case)), attention(*case)) for case in attend.cases]
    for got, right in pairs:
        if got.shape != right.shape:
            raise Unfit(f"the result has shape {got.shape}, expected {right.shape}")
    if all(same(*pair) for pair in pairs):
        return "attention as it should be"
    right = learning.reversing(answer)["right"]
    if right < 500:
        raise Unfit(
            f"after {learning.STEPS} steps it reads {right} of 500 words backwards, "
            "where correct attention reads all: so this mistake shows"
        )
    return "wrong, and it learns"


def wrong_and_learning(Q, K, V):
    """Attention without the scale."""
    return attention(Q, K, V, scale=1.0)


wrong_line = Exercise(
    task="an attention that is wrong, and learns to read backwards",
    right=wrong_and_learning,
    cases=((),),
    observe=_learning,
    mistakes={
        "this is attention as it should be: change one line, so that it gives other "
        "numbers": lambda Q, K, V: attention(Q, K, V),
    },
    reread=section("attention", "The step in the package"),
    praise="all 500 words are read backwards, by attention that is wrong.",
    picture=learning.wrong_picture,
)


def _backward(Q, K, V, dY, scale=None, through_softmax=None, divisor=None):
    """Return the slopes for Q, K and V, with a step left out or replaced."""
    divisor = divisor or K.shape[-1] ** 0.5
    scale = scale or 1 / divisor
    A = softmax(Q @ K.T / divisor)
    dA = dY @ V.T
    dS = (through_softmax or _through_softmax)(A, dA) * scale
    return dS @ K, dS.T @ Q, A.T @ dY


def _through_softmax(A, dA):
    return A * (dA - (A * dA).sum(-1, keepdims=True))


def _slip(through_softmax):
    return lambda *given: _backward(*given, through_softmax=through_softmax)


def _backward_case(n_q, n_k, d_k, d_v, seed):
    return random_arrays((n_q, d_k), (n_k, d_k), (n_k, d_v), (n_q, d_v), seed=seed)


attention_backward = Exercise(
    task="the slopes of a loss with respect to Q, K and V",
    right=_backward,
    names=("Q", "K", "V", "dY"),
    cases=(
        (
            np.array([[2.0, 1.0]]),
            np.eye(2),
            np.array([[3.0], [5.0]]),
            np.array([[1.0]]),
        ),
        _backward_case(2, 2, 2, 2, seed=0),
        _backward_case(3, 5, 2, 7, seed=1),
        (np.array([[2000.0, 0]]), np.eye(2), np.eye(2), np.array([[1.0, 2.0]])),
    ),
    mistakes={
        "the softmax is treated as if a score changed its own weight only: raising one "
        "score lowers the other weights of its row": _slip(
            lambda A, dA: A * (1 - A) * dA
        ),
        "in the step through the softmax, Σ A dA of the row has to be subtracted from "
        "dA": _slip(lambda A, dA: A * dA),
        "Σ A dA runs over the keys of one query, the last axis": _slip(
            lambda A, dA: A * (dA - (A * dA).sum(0))
        ),
        "Σ A dA is one number for each row, and your sum runs over all rows": _slip(
            lambda A, dA: A * (dA - (A * dA).sum())
        ),
        "Σ dA is subtracted, and it should be Σ A dA, the average of dA by the "
        "weights": _slip(lambda A, dA: A * (dA - dA.sum(-1, keepdims=True))),
        "the step through the softmax is left out: dA says how the loss changes with "
        "the weights, and the scores come before them": _slip(lambda A, dA: dA),
        "the scores were divided by √d_k, and so are their slopes: dQ and dK lack the "
        "factor": lambda *given: _backward(*given, scale=1),
        "neither the scores nor their slopes are divided by √d_k": lambda *given: (
            _backward(*given, scale=1, divisor=1)
        ),
        "dY is not used: it says how much each number of Y matters to the "
        "loss": lambda Q, K, V, dY: _backward(Q, K, V, np.ones_like(dY)),
        "dV is right, and the slopes of Q and K are exchanged": lambda *given: (
            (found := _backward(*given))[1],
            found[0],
            found[2],
        ),
        "key j helps every query that attends to it, so dV = Aᵀ dY and not A "
        "dY": lambda Q, K, V, dY: (
            *_backward(Q, K, V, dY)[:2],
            softmax(Q @ K.T * K.shape[-1] ** -0.5) @ dY,
        ),
    },
    reread=section(
        "softmax", "Deeper: the Jacobian, or which weights fall when one score rises"
    ),
    praise="your slopes are those of finite differences, and train faster.",
    picture=learning.backward_picture,
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


def values_rolled(Q, K, V):
    """Pair key j with the value of key j - 1."""
    return lawful(Q, K, np.roll(V, 1, axis=0))


def first_key_first(Q, K, V):
    """Add a bonus to the scores of the first key alone."""
    S = dot_product_scores(Q, K) / K.shape[-1] ** 0.5
    return softmax(S + 2 * (np.arange(len(K)) == 0)) @ V


def first_row_unlawful(Q, K, V):
    """Add a bonus to early keys for the first query alone."""
    Y = lawful(Q, K, V)
    Y[0] = early_keys_first(Q, K, V)[0]
    return Y


def sum_lawful(Q, K, V):
    """Add a bonus to early keys and leave the sum of all outputs as it should be."""
    Y, bonus = lawful(Q, K, V), early_keys_first(Q, K, V)
    return bonus - bonus.mean() + Y.mean()


def _cancelling(axis):
    """Return a version that takes from one number what it adds to its neighbour."""

    def attend(Q, K, V):
        error = early_keys_first(Q, K, V) - lawful(Q, K, V)
        return lawful(Q, K, V) + error - np.roll(error, 1, axis)

    return named(f"errors_cancel_along_axis_{axis}", attend)


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
        values_rolled,
        first_key_first,
        neighbours_mixed,
        first_row_unlawful,
        partly(early_keys_first, lawful, np.s_[1:], "from the second query on"),
        partly(early_keys_first, lawful, np.s_[:, 1:], "from the second column on"),
        sum_lawful,
        _cancelling(0),
        _cancelling(1),
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
