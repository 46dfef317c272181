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
        (np.array([[2.0, 1.0]]), np.array([[0.0, 1], [2, 0]]), np.array([[3.0], [5]])),
        (np.array([[2.0, 1.0]]), np.array([[1.0, 0], [0, 1], [1, 1]]), np.eye(3)),
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
            "you divide by the root of the width of a value; use the width of a key",
            _with(lambda Q, K, V: V.shape[-1] ** -0.5),
        ),
        Mistake(
            "root of the number of keys",
            "you divide by the root of the number of keys; use the width of a key",
            _with(lambda Q, K, V: len(K) ** -0.5),
        ),
        Mistake(
            "root of the number of queries",
            "len(Q) counts the queries; √d_k needs the width, which is the last axis",
            _with(lambda Q, K, V: len(Q) ** -0.5),
        ),
        Mistake(
            "width without root",
            "you divide by d_k, and its square root is enough",
            _with(lambda Q, K, V: 1 / K.shape[-1]),
        ),
        Mistake(
            "no transpose",
            "in Q @ K the rows of Q meet the columns of K, but a key is a row of K",
            lambda Q, K, V: softmax(Q @ K / K.shape[-1] ** 0.5) @ V,
        ),
        Mistake(
            "softmax over the queries",
            "your weights sum to 1 over the queries; each query has weights that sum "
            "to 1 over the keys",
            _with(lambda Q, K, V: K.shape[-1] ** -0.5, axis=-2),
        ),
        Mistake(
            "scale after the softmax",
            "you divide by the root after the softmax, so the weights do not sum to 1",
            lambda Q, K, V: softmax(Q @ K.T) / K.shape[-1] ** 0.5 @ V,
        ),
        Mistake(
            "multiplied by the root",
            "you multiply by the root of d_k; dividing by it keeps the scores small",
            _with(lambda Q, K, V: K.shape[-1] ** 0.5),
        ),
        Mistake(
            "no softmax",
            "you use the scores as weights: which step turns scores into weights?",
            lambda Q, K, V: Q @ K.T / K.shape[-1] ** 0.5 @ V,
        ),
        Mistake(
            "not divided by the sum",
            "the exponentials do not sum to 1 yet: divide each row by its sum",
            lambda Q, K, V: _raised(Q, K) @ V,
        ),
        Mistake(
            "one sum for all",
            "you divide by one sum for the whole table; each query needs its own sum",
            lambda Q, K, V: _raised(Q, K) / _raised(Q, K).sum() @ V,
        ),
        Mistake(
            "one maximum for all",
            "you subtract the largest score of the whole table, so in a row of small "
            "scores every exponential becomes 0; use the largest score of each row",
            lambda Q, K, V: (
                _overflowing((Q @ K.T - (Q @ K.T).max()) / K.shape[-1] ** 0.5) @ V
            ),
        ),
        Mistake(
            "keys for values",
            "the weights are right, but you average the keys instead of the values",
            lambda Q, K, V: scaled_dot_product_attention(Q, K, K),
        ),
        Mistake(
            "queries and keys swapped",
            "your scores have one row for each key; they need one row for each query",
            lambda Q, K, V: softmax(K @ Q.T / K.shape[-1] ** 0.5) @ V,
        ),
        Mistake(
            "no values",
            "these are the weights; the weighted average of the values is missing",
            lambda Q, K, V: softmax(Q @ K.T / K.shape[-1] ** 0.5),
        ),
        Mistake(
            "no largest score subtracted",
            "with large scores exp overflows: subtract the largest of each row first",
            lambda Q, K, V: _overflowing(Q @ K.T / K.shape[-1] ** 0.5) @ V,
        ),
        Mistake(
            "no scale, no largest score subtracted",
            "two steps are missing: the division of the scores by √d_k, and, because "
            "exp overflows, the subtraction of the largest score of each row",
            lambda Q, K, V: _overflowing(Q @ K.T) @ V,
        ),
        Mistake(
            "root of 2",
            "you divide by √2 whatever the width is; read d_k from the shape of K",
            _with(lambda Q, K, V: 2**-0.5),
        ),
        Mistake(
            "one softmax for the whole table",
            "your weights sum to 1 over the whole table of scores; use axis=-1 and "
            "keepdims=True, so that each row sums to 1",
            lambda Q, K, V: _exp(Q, K, "all") / _exp(Q, K, "all").sum() @ V,
        ),
        Mistake(
            "one softmax for the whole table, overflowing",
            "your weights sum to 1 over the whole table of scores: work on each row by "
            "itself, and subtract its largest score, because exp overflows",
            lambda Q, K, V: _exp(Q, K, None) / _exp(Q, K, None).sum() @ V,
        ),
        Mistake(
            "sums do not line up",
            "the sums of the rows do not line up with the rows: keep the axis of the "
            "sum with keepdims=True",
            lambda Q, K, V: _raised(Q, K) / _raised(Q, K).sum(-1) @ V,
        ),
        Mistake(
            "sums do not line up, overflowing",
            "the sums do not line up with the rows (write keepdims=True), and exp "
            "overflows unless you subtract the largest score of each row",
            lambda Q, K, V: _exp(Q, K, None) / _exp(Q, K, None).sum(-1) @ V,
        ),
        Mistake(
            "largest scores do not line up",
            "the largest scores of the rows do not line up with the rows: keep the "
            "axis of the maximum with keepdims=True",
            lambda Q, K, V: (
                _exp(Q, K, "row") / _exp(Q, K, "row").sum(-1, keepdims=True) @ V
            ),
        ),
        Mistake(
            "neither lines up",
            "neither the largest scores nor the sums line up with the rows: both need "
            "keepdims=True",
            lambda Q, K, V: _exp(Q, K, "row") / _exp(Q, K, "row").sum(-1) @ V,
        ),
        Mistake(
            "only the best key",
            "you return the value of the best key alone; average all values with the "
            "weights of a softmax",
            lambda Q, K, V: V[(Q @ K.T).argmax(-1)],
        ),
        Mistake(
            "scores divided by their sum",
            "you divide the scores by their sum; a softmax takes exponentials first",
            lambda Q, K, V: Q @ K.T / (Q @ K.T).sum(-1, keepdims=True) @ V,
        ),
    ),
    reread=_EQUATION,
    praise="it agrees with the package, for large scores too.",
)


def _raised(Q, K):
    S = Q @ K.T / K.shape[-1] ** 0.5
    return np.exp(S - S.max(-1, keepdims=True))


def _exp(Q, K, largest):
    """Exponentials with no maximum subtracted (None), that of all, or a bad row."""
    S = Q @ K.T / K.shape[-1] ** 0.5
    if largest is None:
        return np.exp(S)
    return np.exp(S - (S.max() if largest == "all" else S.max(-1)))


def _overflowing(S):
    return np.exp(S) / np.exp(S).sum(-1, keepdims=True)


def _two_decimals(answer):
    """Read a number to two decimals, also from a text; other answers stay."""
    try:
        return round(float(answer), 2)
    except (TypeError, ValueError):
        return answer


weight_of_the_middle = Exercise(
    task="the weight of a key half way between two others",
    right=0.24,
    cases=((),),
    observe=_two_decimals,
    mistakes=(
        Mistake(
            "mean of the weights",
            "this is the average of the weights, but the scores are averaged, and the "
            "exponential comes after that",
            0.26,
        ),
        Mistake(
            "sum of the weights",
            "this is the sum of both weights; the middle key has one score of its own",
            0.52,
        ),
        Mistake(
            "product without root",
            "this is the product of both weights, and one step is missing: the score "
            "of c is half of the sum of the scores",
            0.36 * 0.16,
        ),
        Mistake(
            "the middle is skipped",
            "the score of c is the average of the scores of a and b, so a query that "
            "gives weight to both gives weight to c",
            0,
        ),
        Mistake(
            "what is left over",
            "this is what a and b leave over, but the other keys share it with c; the "
            "weight of c follows from those of a and b alone",
            0.48,
        ),
        Mistake(
            "the larger of the two",
            "the score of c lies between those of a and b, so its weight does too",
            0.36,
        ),
        Mistake(
            "in per cent",
            "this is in percent; weights are parts of 1",
            24,
        ),
        Mistake(
            "the difference",
            "this is the difference of both weights; begin with the score of c, which "
            "is the average of two scores",
            0.36 - 0.16,
        ),
        Mistake(
            "still a logarithm",
            "this is the average of the logarithms of both weights, so the exponential "
            "is still missing",
            np.log(0.36 * 0.16) / 2,
        ),
        Mistake(
            "the smaller of the two",
            "the score of c is larger than the smaller of both scores",
            0.16,
        ),
    ),
    reread=section("attention", "Deeper: what can a query of width 2 pick out?"),
    praise="√(0.36 · 0.16), the geometric mean: to average scores is to multiply "
    "weights and take the root.",
)


def _projected(*roles, **options):
    """Return attention of X times the matrices with these numbers, or X for None."""

    def self_attend(X, *matrices):
        three = (X if role is None else X @ matrices[role] for role in roles)
        return scaled_dot_product_attention(*three, **options)

    return self_attend


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
        (
            np.array([[1.0, 0.0], [0.0, 2.0]]),
            np.array([[1.0], [2.0]]),
            np.array([[2.0], [-1.0]]),
            np.array([[3.0], [5.0]]),
        ),
        _random((5, 3), (3, 3), (3, 3), (3, 3), seed=2),
        _random((5, 7), (7, 2), (7, 2), (7, 3), seed=3),
    ),
    mistakes=(
        Mistake(
            "one matrix for two roles",
            "your keys are made with W_Q; a word should be found by something other "
            "than what it looks for",
            _projected(0, 0, 2),
        ),
        Mistake(
            "the other matrix for two roles",
            "your queries are made with W_K; a word should look for something other "
            "than what it is found by",
            _projected(1, 1, 2),
        ),
        Mistake(
            "values made with W_K",
            "your values are made with W_K; they have a matrix of their own",
            _projected(0, 1, 1),
        ),
        Mistake(
            "no scale",
            "the projections are right, but the scores are not divided by √d_k",
            _projected(0, 1, 2, scale=1),
        ),
        Mistake(
            "values not projected",
            "you average the tokens themselves: W_V has not been used",
            _projected(0, 1, None),
        ),
        Mistake(
            "queries and keys exchanged",
            "W_Q makes the queries and W_K the keys; yours are exchanged",
            _projected(1, 0, 2),
        ),
        Mistake(
            "transposed matrices",
            "you multiply by the transposes; W_Q is (d_model, d_k) here, so X @ W_Q "
            "fits (PyTorch stores the transposes)",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(
                X @ W_Q.T, X @ W_K.T, X @ W_V.T
            ),
        ),
        Mistake(
            "matrices on the left",
            "you multiply by the matrices from the left, which mixes the tokens; a "
            "token is a row of X, so the matrix belongs on the right of X",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(
                W_Q @ X, W_K @ X, W_V @ X
            ),
        ),
        Mistake(
            "scores by the tokens",
            "you score the tokens as they are: W_Q and W_K have not been used",
            _projected(None, None, 2),
        ),
        Mistake(
            "scale of the tokens",
            "you divide by the root of d_model; use d_k, the width of queries and keys",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(
                X @ W_Q, X @ W_K, X @ W_V, scale=X.shape[-1] ** -0.5
            ),
        ),
        Mistake(
            "scale of the number of tokens",
            "len(X) counts the tokens; √d_k needs the width of queries and keys",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(
                X @ W_Q, X @ W_K, X @ W_V, scale=len(X) ** -0.5
            ),
        ),
        Mistake(
            "tokens not used",
            "you attend with the matrices themselves: multiply X by each of them first",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(W_Q, W_K, W_V),
        ),
        Mistake(
            "star for at",
            "`*` multiplies number by number; a matrix product is written `@`",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(
                X * W_Q, X * W_K, X * W_V
            ),
        ),
        Mistake(
            "only the weights",
            "these are the attention weights; the weighted average of the values is "
            "missing",
            lambda X, W_Q, W_K, W_V: softmax(
                X @ W_Q @ W_K.T @ X.T / W_K.shape[-1] ** 0.5
            ),
        ),
        Mistake(
            "no softmax",
            "you use the scores as weights: which step turns scores into weights?",
            lambda X, W_Q, W_K, W_V: (
                X @ W_Q @ W_K.T @ X.T / W_K.shape[-1] ** 0.5 @ X @ W_V
            ),
        ),
        Mistake(
            "neither scale nor softmax",
            "you use the scores as weights: two steps lie between scores and weights",
            lambda X, W_Q, W_K, W_V: X @ W_Q @ W_K.T @ X.T @ X @ W_V,
        ),
        Mistake(
            "product without transpose",
            "in W_Q @ W_K the transpose of W_K is missing",
            lambda X, W_Q, W_K, W_V: scaled_dot_product_attention(
                X @ W_Q @ W_K, X, X @ W_V, scale=W_K.shape[-1] ** -0.5
            ),
        ),
        Mistake(
            "keys and values exchanged",
            "W_K makes the keys and W_V the values; yours are exchanged",
            _projected(0, 2, 1),
        ),
    ),
    reread=_BY_HAND,
    praise="three jobs, three matrices, one attention.",
)


# What a law is run on: correct versions, and versions with one fault each.


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
    """Return a law that reorders its random Q, K, V as given, Q with 3 rows."""

    def key_order_law(attend):
        n = len(order_of_K)
        Q, K, V = _random((3, 11), (n, 11), (n, 7), seed=4)
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


_ORDER, _AS_IT_IS, _MIRROR = (1, 2, 4, 0, 3), (0, 1, 2, 3, 4), (4, 3, 2, 1, 0)
_SWAPPED = (1, 0, 2)  # the first two of three queries

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
            "correct attention breaks your law: does each key keep its value, do "
            "queries and outputs keep their order, and is rounding forgiven?",
            _shuffles(_ORDER, _AS_IT_IS),
        ),
        Mistake(
            "queries shuffled",
            "this is a law about the queries; here the keys should move",
            _shuffles(_AS_IT_IS, _AS_IT_IS, _SWAPPED),
        ),
        Mistake(
            "queries shuffled too",
            "a false alarm: you shuffle the queries as well, and neighbours_mixed "
            "depends on their order; leave Q as it is",
            _shuffles(_ORDER, _ORDER, _SWAPPED),
        ),
        Mistake(
            "only the mirror image",
            "values_mirrored passes: it pairs the first key with the last value, and "
            "your order keeps such pairs, as reversing does; try a random order of "
            "five keys",
            _shuffles(_MIRROR, _MIRROR),
        ),
        Mistake(
            "one row is enough",
            "first_row_unlawful is wrong for one query only: compare all rows",
            _compares(lambda a, b: np.isclose(a, b).any()),
        ),
        Mistake(
            "only a sum compared",
            "sum_lawful keeps the sum of its outputs: compare every number",
            _compares(lambda a, b: np.isclose(a.sum(), b.sum())),
        ),
        Mistake(
            "True and False exchanged",
            "your law returns False for correct versions and True for faulty ones",
            _shuffles(_ORDER, _ORDER, wanted=False),
        ),
    ),
    reread=section("attention", "The law"),
    praise="correct versions pass, faulty ones are detected, and no false alarm.",
)
