"""Exercises on attention: queries, keys, values, and the order of the keys."""

import numpy as np

from exercises import section
from mha.attention import scaled_dot_product_attention
from mha.check import Exercise, Mistake
from mha.chunked import chunked_attention
from mha.similarity import dot_product_scores
from mha.softmax import softmax

_BY_HAND, _EQUATION = (
    section("attention", "By hand"),
    section("attention", "The equation"),
)


def _random(*shapes, seed):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).round(1) for shape in shapes)


def _with(factor, axis=-1):
    """Return attention whose scores are multiplied by ``factor(Q, K, V)``."""

    def attend(Q, K, V):
        return softmax(dot_product_scores(Q, K) * factor(Q, K, V), axis) @ V

    return attend


attend = Exercise(
    task="scaled dot-product attention",
    right=lambda Q, K, V: scaled_dot_product_attention(Q, K, V),
    forbidden=(scaled_dot_product_attention, chunked_attention),
    cases=(
        (np.array([[2.0, 1.0]]), np.eye(2), np.array([[3.0], [5.0]])),
        (np.array([[2.0, 1.0], [0.0, 3.0]]), np.eye(2), np.array([[3.0], [5.0]])),
        (np.array([[2000.0, 0.0], [1.0, 0.0]]), np.eye(2), np.eye(2)),
        _random((5, 3), (7, 3), (7, 2), seed=0),
        _random((3, 5), (2, 5), (2, 7), seed=1),
    ),
    mistakes=(
        Mistake(
            "no scale",
            "the scores go into the softmax as they are: they are not divided by √d_k",
            _with(lambda Q, K, V: 1),
        ),
        Mistake(
            "root of the wrong width",
            "the root is that of the width of a key, not of a value",
            _with(lambda Q, K, V: V.shape[-1] ** -0.5),
        ),
        Mistake(
            "root of the number of keys",
            "you divide by the root of the number of keys; use the width of the keys",
            _with(lambda Q, K, V: len(K) ** -0.5),
        ),
        Mistake(
            "width without root",
            "you divide by d_k; its square root is enough",
            _with(lambda Q, K, V: 1 / K.shape[-1]),
        ),
        Mistake(
            "softmax over the queries",
            "your shares add up to one along the queries; each query shares among keys",
            _with(lambda Q, K, V: K.shape[-1] ** -0.5, axis=-2),
        ),
        Mistake(
            "scale after the softmax",
            "the root acts before the softmax, or the weights no longer sum to one",
            lambda Q, K, V: softmax(Q @ K.T) / K.shape[-1] ** 0.5 @ V,
        ),
        Mistake(
            "multiplied by the root",
            "you multiply by the root of d_k; dividing is what keeps the scores small",
            _with(lambda Q, K, V: K.shape[-1] ** 0.5),
        ),
        Mistake(
            "no softmax",
            "the scores themselves are used as weights; they are not shared out yet",
            lambda Q, K, V: Q @ K.T / K.shape[-1] ** 0.5 @ V,
        ),
        Mistake(
            "not divided by the sum",
            "the exponentials are not divided by their sum: they are no shares yet",
            lambda Q, K, V: _raised(Q, K) @ V,
        ),
        Mistake(
            "one sum for all",
            "each query has a sum of its own: along which axis do you add up?",
            lambda Q, K, V: _raised(Q, K) / _raised(Q, K).sum() @ V,
        ),
        Mistake(
            "one maximum for all",
            "the largest score of the whole table is subtracted; a row of small scores "
            "then has nothing left, so take each row's own",
            lambda Q, K, V: (
                _overflowing((Q @ K.T - (Q @ K.T).max()) / K.shape[-1] ** 0.5) @ V
            ),
        ),
        Mistake(
            "keys for values",
            "the weights are right, and what they mix are the keys",
            lambda Q, K, V: scaled_dot_product_attention(Q, K, K),
        ),
        Mistake(
            "queries and keys swapped",
            "your scores have one row for each key; a row belongs to a query",
            lambda Q, K, V: softmax(K @ Q.T / K.shape[-1] ** 0.5) @ V,
        ),
        Mistake(
            "no values",
            "those are the weights; nothing has been taken home yet",
            lambda Q, K, V: softmax(Q @ K.T / K.shape[-1] ** 0.5),
        ),
        Mistake(
            "no largest score subtracted",
            "with large scores exp overflows: subtract the largest of each row first",
            lambda Q, K, V: _overflowing(Q @ K.T / K.shape[-1] ** 0.5) @ V,
        ),
    ),
    reread=_EQUATION,
    praise="it agrees with the package, large scores and all.",
)


def _raised(Q, K):
    S = Q @ K.T / K.shape[-1] ** 0.5
    return np.exp(S - S.max(-1, keepdims=True))


def _overflowing(S):
    return np.exp(S) / np.exp(S).sum(-1, keepdims=True)


weight_of_the_middle = Exercise(
    task="the weight of a key half way between two others",
    right=0.24,
    cases=((),),
    mistakes=(
        Mistake(
            "mean of the weights",
            "the scores are averaged, not the weights; exp stands between the two",
            0.26,
        ),
        Mistake(
            "sum of the weights", "a key in the middle does not collect both", 0.52
        ),
        Mistake(
            "product without root",
            "the product is on the way; half of a sum of scores asks for more",
            0.36 * 0.16,
        ),
        Mistake(
            "the middle is skipped",
            "a score is linear in the key: who likes both ends likes the middle",
            0,
        ),
        Mistake(
            "what is left over",
            "the other keys may have any weight; the middle is fixed by a and b alone",
            0.48,
        ),
        Mistake(
            "the larger of the two", "its score is not the largest of the three", 0.36
        ),
        Mistake(
            "in per cent",
            "the size is right, but weights are shares of 1, not of 100",
            24,
        ),
        Mistake(
            "the smaller of the two", "its score lies between, not at the end", 0.16
        ),
    ),
    reread=section("attention", "Experiment: what can a query of width 2 pick out?"),
    praise="the geometric mean: averaging scores multiplies weights under a root.",
)

self_attention = Exercise(
    task="self-attention with its three matrices",
    right=lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(
        X @ W_Q, X @ W_K, X @ W_V
    ),
    cases=(
        (
            np.array([[1.0, 0.0], [0.0, 2.0]]),
            np.array([[1.0, 2.0], [0.0, 1.0]]),
            np.array([[0.0, 2.0], [1.0, 0.5]]),
            np.array([[3.0, 1.0], [0.0, 5.0]]),
        ),
        _random((5, 3), (3, 3), (3, 3), (3, 3), seed=2),
        _random((5, 7), (7, 2), (7, 2), (7, 3), seed=3),
    ),
    mistakes=(
        Mistake(
            "one matrix for two roles",
            "your keys are made with W_Q; the sign of a stall is not its owner's wish",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(
                X @ W_Q, X @ W_Q, X @ W_V
            ),
        ),
        Mistake(
            "the other matrix for two roles",
            "your queries are made with W_K; a wish is not the sign of a stall",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(
                X @ W_K, X @ W_K, X @ W_V
            ),
        ),
        Mistake(
            "values made with W_K",
            "your values are made with W_K: the sign of a stall is not its goods",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(
                X @ W_Q, X @ W_K, X @ W_K
            ),
        ),
        Mistake(
            "no scale",
            "the projections are right; the scores are not divided by the root of d_k",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(
                X @ W_Q, X @ W_K, X @ W_V, scale=1
            ),
        ),
        Mistake(
            "values not projected",
            "you take home the tokens themselves; W_V has not been used",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(X @ W_Q, X @ W_K, X),
        ),
        Mistake(
            "queries and keys exchanged",
            "W_Q makes the queries and W_K the keys; yours are the other way round",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(
                X @ W_K, X @ W_Q, X @ W_V
            ),
        ),
        Mistake(
            "transposed matrices",
            "tokens are rows, so a token is multiplied from the right by W, not by its "
            "transpose (PyTorch stores the transpose)",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(
                X @ W_Q.T, X @ W_K.T, X @ W_V.T
            ),
        ),
        Mistake(
            "scores by the tokens",
            "you score the tokens as they are; wishes and signs come from W_Q and W_K",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(X, X, X @ W_V),
        ),
        Mistake(
            "scale of the tokens",
            "the root is that of d_k, the width after the projection, not of d_model",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(
                X @ W_Q, X @ W_K, X @ W_V, scale=X.shape[-1] ** -0.5
            ),
        ),
    ),
    reread=_BY_HAND,
    praise="three roles, three matrices, one attention.",
)


# What a law is held against: two lawful versions and three with one fault each.


def lawful(Q, K, V):
    """Attention as it is."""
    return scaled_dot_product_attention(Q, K, V)


def lawful_without_scale(Q, K, V):
    """Attention without the scale: wrong elsewhere, lawful here."""
    return scaled_dot_product_attention(Q, K, V, scale=1.0)


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


def _shuffles(order_of_K, order_of_V, order_of_Q=(0, 1, 2), wanted=True):
    """Return a law that reorders its random Q, K, V (3, 5 and 5 rows) as given."""

    def key_order_law(attend):
        Q, K, V = _random((3, 11), (5, 11), (5, 7), seed=4)
        Y, order_of_Y = attend(Q, K, V), list(order_of_Q)
        moved = attend(Q[order_of_Y], K[list(order_of_K)], V[list(order_of_V)])
        return np.allclose(moved, Y[order_of_Y]) is wanted

    return key_order_law


def _compares(equal):
    """Return a law that shuffles rightly and compares by `equal`."""

    def key_order_law(attend):
        Q, K, V = _random((3, 11), (5, 11), (5, 7), seed=4)
        return bool(equal(attend(Q, K[list(_ORDER)], V[list(_ORDER)]), attend(Q, K, V)))

    return key_order_law


def _shuffles_tokens(attend):
    """Shuffle tokens that are queries and keys at once, and reorder the outputs."""
    X, V = _random((5, 11), (5, 7), seed=5)
    order = list(_ORDER)
    return np.allclose(attend(X[order], X[order], V[order]), attend(X, X, V)[order])


_ORDER, _AS_IT_IS, _MIRROR = (1, 2, 4, 0, 3), (0, 1, 2, 3, 4), (4, 3, 2, 1, 0)

key_order_law = Exercise(
    task="a law: keys may be shuffled with their values",
    right=_shuffles(_ORDER, _ORDER),
    cases=(
        (lawful,),
        (lawful_without_scale,),
        (early_keys_first,),
        (values_mirrored,),
        (neighbours_mixed,),
        (first_row_unlawful,),
        (sum_lawful,),
    ),
    mistakes=(
        Mistake(
            "passes everything",
            "every version passes: does your law move keys and compare numbers?",
            _shuffles(_AS_IT_IS, _AS_IT_IS),
        ),
        Mistake(
            "values left behind",
            "right attention breaks your law: does each key keep its value, and is "
            "rounding forgiven?",
            _shuffles(_ORDER, _AS_IT_IS),
        ),
        Mistake(
            "queries shuffled",
            "this is a law about the queries; here the keys should move",
            _shuffles(_AS_IT_IS, _AS_IT_IS, order_of_Q=(1, 0, 2)),
        ),
        Mistake(
            "only the mirror image",
            "one faulty version is its own mirror image: try a less regular order",
            _shuffles(_MIRROR, _MIRROR),
        ),
        Mistake(
            "tokens shuffled",
            "your law moves the queries along; leave them where they are",
            _shuffles_tokens,
        ),
        Mistake(
            "one row is enough",
            "one version is unlawful for one query only: compare all rows",
            _compares(lambda a, b: np.isclose(a, b).any()),
        ),
        Mistake(
            "only a sum compared",
            "one version keeps the sum of its outputs: compare every number",
            _compares(lambda a, b: np.isclose(a.sum(), b.sum())),
        ),
        Mistake(
            "True and False exchanged",
            "your law says False of what is lawful and True of what is not",
            _shuffles(_ORDER, _ORDER, wanted=False),
        ),
    ),
    reread=section("attention", "The law"),
    praise="the lawful versions pass, the unlawful ones are caught, no false alarm.",
)
