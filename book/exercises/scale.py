"""Exercises on scaling: why scores are divided by √d_k."""

import math

import numpy as np

from exercises import chapter, section
from mha.attention import scaled_dot_product_attention
from mha.check import Exercise, Mistake
from mha.softmax import softmax

# Predict what √d_model leaves of the variance

variance_left = Exercise(
    task="the variance that √d_model leaves",
    right=1 / 8,
    cases=((),),
    observe=lambda answer: np.round(float(answer), 3),
    mistakes=(
        Mistake(
            "kept at one",
            "√d_k would leave 1; here the divisor is larger than √d_k",
            1,
        ),
        Mistake(
            "not divided",
            "64 is the variance of the raw scores; they are divided by something",
            64,
        ),
        Mistake(
            "divided once",
            "a variance is an average of squares, so the divisor counts twice",
            64 / math.sqrt(512),
        ),
        Mistake(
            "standard deviation",
            "that is the standard deviation; the question asks for the variance",
            math.sqrt(1 / 8),
        ),
        Mistake(
            "upside down",
            "a larger divisor makes scores smaller; your variance has grown",
            8,
        ),
        Mistake(
            "divided by d_model squared",
            "the divisor is the root of d_model, and its square is d_model",
            64 / 512**2,
        ),
        Mistake(
            "the heads forgotten",
            "each head adds up its own 64 products; 512 of them is a head too many",
            1 / 512,
        ),
    ),
    reread=section("scale", "The equation"),
    praise="64 products, divided by 512: one over the number of heads.",
)


# Write the scaled scores


def _scores(Q, K):
    return Q @ K.swapaxes(-1, -2)


def _right_scaled(Q, K):
    return _scores(Q, K) / math.sqrt(Q.shape[-1])


def _promoted(Q, K):
    return _right_scaled(Q.astype(np.float64), K.astype(np.float64))


def _reshaped(Q, K):
    columns = K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])
    return Q @ columns / math.sqrt(Q.shape[-1])


def _with_dtype(answer, Q, K):
    """Return what `answer` gives, with its dtype beside it if that is a new one."""
    S = answer(Q, K)
    if S is None:
        return S
    S = np.asarray(S)
    return S if S.dtype in (Q.dtype, object) else (S, S.dtype.name)


def _ramp(*shape, dtype=np.float64):
    """Return small numbers without a pattern, the same on every machine."""
    count = math.prod(shape)
    return ((np.arange(count) * 37 % 23 - 11) / 7).reshape(shape).astype(dtype)


_SMALL = np.array([[1.0, 1.0, 1.0, 1.0]]), np.array([[3.0, 3.0, 1.0, 1.0], [0.0] * 4])

scaled_scores = Exercise(
    task="scaled scores, any leading axes, dtype kept",
    right=_right_scaled,
    cases=(
        _SMALL,
        (_ramp(2, 3), _ramp(5, 3)),
        (_ramp(2, 3, 5), _ramp(2, 7, 5)),
        (_ramp(2, 1, 3, 5), _ramp(2, 7, 5)),
        (_ramp(2, 3, dtype=np.float32), _ramp(5, 3, dtype=np.float32)),
    ),
    mistakes=(
        Mistake(
            "no scale",
            "these are the raw scores: is the division missing?",
            _scores,
        ),
        Mistake(
            "d_k without its root",
            "the divisor is the root of d_k; you divide by d_k itself",
            lambda Q, K: _scores(Q, K) / Q.shape[-1],
        ),
        Mistake(
            "√n_k for √d_k",
            "shape[-2] of K counts the keys; the width of a key is its last axis",
            lambda Q, K: _scores(Q, K) / math.sqrt(K.shape[-2]),
        ),
        Mistake(
            "√n_q for √d_k",
            "shape[-2] of Q counts the queries; the width of a query is its last axis",
            lambda Q, K: _scores(Q, K) / math.sqrt(Q.shape[-2]),
        ),
        Mistake(
            "multiplied",
            "√d_k makes the scores larger here: divide by it",
            lambda Q, K: _scores(Q, K) * math.sqrt(Q.shape[-1]),
        ),
        Mistake(
            "all axes turned round",
            ".T reverses every axis; swap the last two of K and leave the leading ones",
            lambda Q, K: Q @ K.T / math.sqrt(Q.shape[-1]),
        ),
        Mistake(
            "all axes turned round, in float64",
            "the dtype has changed, and .T reverses every axis: begin with the axes",
            lambda Q, K: Q @ K.T / np.sqrt(Q.shape[-1]),
        ),
        Mistake(
            "reshaped, not transposed",
            "reshape lays the numbers down in the old order, so a column holds pieces "
            f"of several keys: {chapter('dot_product')} transposes",
            _reshaped,
        ),
        Mistake(
            "an axis counted from the front",
            "shape[1] is the width of a matrix only: with axes in front, count from "
            "the end",
            lambda Q, K: _scores(Q, K) / math.sqrt(Q.shape[1]),
        ),
        Mistake(
            "float32 became float64",
            "the numbers are right, but in float64: which of your factors is not a "
            "plain Python number?",
            _promoted,
        ),
        Mistake(
            "softmax included",
            "these are weights already; the exercise asks for the scores before them",
            lambda Q, K: softmax(_right_scaled(Q, K)),
        ),
    ),
    reread=section("scale", "By hand", "In practice"),
    praise="any leading axes, and float32 stays float32.",
    observe=_with_dtype,
)


# Find the divisor from the outputs alone


def mystery_weights(Q, K):
    """Return attention weights made with a divisor that you are to find.

    Reading on gives it away. Finding it takes two calls.

    Parameters
    ----------
    Q : ndarray of shape (n_q, d_k)
        Queries.
    K : ndarray of shape (n_k, d_k)
        Keys.

    Returns
    -------
    A : ndarray of shape (n_q, n_k)
        Weights.

    Examples
    --------
    >>> mystery_weights(np.zeros((1, 3)), np.ones((2, 3)))
    array([[0.5, 0.5]])
    """
    return softmax(_scores(Q, K) / Q.shape[-1])


mystery_divisor = Exercise(
    task="what mystery_weights divides by",
    right="d_k",
    cases=((),),
    mistakes=(
        Mistake(
            "nothing",
            "compare ln(a/b) of two weights in a row with the gap of their raw scores",
            "nothing",
        ),
        Mistake(
            "sqrt d_k",
            "try widths 4 and 16: does the divisor double?",
            "sqrt d_k",
        ),
        Mistake(
            "sqrt n_k",
            "double the keys at the same width: does ln(a/b) move?",
            "sqrt n_k",
        ),
        Mistake(
            "n_k",
            "probe with a number of keys that differs from the width: in our table "
            "both are 4",
            "n_k",
        ),
        Mistake(
            "after the softmax",
            "add up a row: a division after the softmax would show there",
            "after the softmax",
        ),
    ),
    reread=section("scale", "Break it"),
    praise="the weights tell: ln(a/b) is the score gap over the divisor.",
)


# The scale for entries of another variance

scale_for_variance = Exercise(
    task="the factor that brings the scores to variance 1",
    right=lambda variance, d_k: 1 / (variance * math.sqrt(d_k)),
    cases=((1.0, 4), (4.0, 4), (1 / 3, 64), (0.25, 9)),
    mistakes=(
        Mistake(
            "variance ignored",
            "right for variance 1 alone: a larger variance makes larger scores",
            lambda variance, d_k: 1 / math.sqrt(d_k),
        ),
        Mistake(
            "one vector only",
            "you make up for one of the two vectors; both have this variance",
            lambda variance, d_k: 1 / math.sqrt(variance * d_k),
        ),
        Mistake(
            "variance squared",
            "variance² is what the variance of a product grows by; the factor acts on "
            "the scores, whose size is the root of that",
            lambda variance, d_k: 1 / (variance**2 * math.sqrt(d_k)),
        ),
        Mistake(
            "variance upside down",
            "larger entries call for a smaller factor; yours grows with them",
            lambda variance, d_k: variance / math.sqrt(d_k),
        ),
        Mistake(
            "divisor for factor",
            "that is the divisor: `scale` is multiplied",
            lambda variance, d_k: variance * math.sqrt(d_k),
        ),
        Mistake(
            "d_k without its root",
            "the size of a score grows with the root of d_k",
            lambda variance, d_k: 1 / (variance * d_k),
        ),
        Mistake(
            "no root at all",
            "you divide by the variance of the raw scores; a factor acts on a variance "
            "by its square",
            lambda variance, d_k: 1 / (variance**2 * d_k),
        ),
    ),
    reread=section("scale", "The equation"),
    praise="for the 1/3 of torch.nn.Linear this gives 3/√d_k.",
)


# The law that no √n survives


def _subject(name, divisor, axis=-1, after=False):
    """Return an attention function that divides by ``divisor(Q, K)``."""

    def attend(Q, K, V):
        by = divisor(Q, K)
        A = softmax(_scores(Q, K) / (1 if after else by), axis)
        return (A / by if after else A) @ V

    attend.__name__ = name
    return attend


def _root_d_k(Q, K):
    return math.sqrt(Q.shape[-1])


def _right_attention(Q, K, V):
    return scaled_dot_product_attention(Q, K, V)


_SUBJECTS = (
    _right_attention,
    _subject("divides_by_root_n_k", lambda Q, K: math.sqrt(K.shape[-2])),
    _subject("divides_by_n_k", lambda Q, K: K.shape[-2]),
    _subject("divides_by_nothing", lambda Q, K: 1),
    _subject("divides_by_root_n_q", lambda Q, K: math.sqrt(Q.shape[-2])),
    _subject("divides_after_the_softmax", _root_d_k, after=True),
    _subject("softmax_over_the_queries", _root_d_k, axis=-2),
)


def _tokens(n, width, seed):
    return np.random.default_rng(seed).normal(size=(n, width))


def _sample():
    return _tokens(3, 5, 0), _tokens(7, 5, 1), _tokens(7, 2, 2)


def _right_law(attend):
    Q, K, V = _sample()
    twice = attend(Q, np.concatenate([K, K]), np.concatenate([V, V]))
    return bool(np.allclose(attend(Q, K, V), twice))


def _shapes_only(attend):
    Q, K, V = _sample()
    return attend(Q, K, V).shape == (3, 2)


def _exactly_equal(attend):
    Q, K, V = _sample()
    twice = attend(Q, np.concatenate([K, K]), np.concatenate([V, V]))
    return bool((attend(Q, K, V) == twice).all())


def _equals_the_right_one(attend):
    return bool(np.allclose(attend(*_sample()), _right_attention(*_sample())))


def _constant_values(attend):
    Q, K, V = _sample()
    V = np.ones_like(V)
    twice = attend(Q, np.concatenate([K, K]), np.concatenate([V, V]))
    return bool(np.allclose(attend(Q, K, V), twice))


def _queries_doubled(attend):
    Q, K, V = _sample()
    twice = attend(np.concatenate([Q, Q]), K, V)
    return bool(np.allclose(attend(Q, K, V), twice[: len(Q)]))


def _all_doubled(attend):
    Q, K, V = _sample()
    twice = attend(*(np.concatenate([x, x]) for x in (Q, K, V)))
    return bool(np.allclose(attend(Q, K, V), twice[: len(Q)]))


def _values_forgotten(attend):
    Q, K, V = _sample()
    return bool(np.allclose(attend(Q, K, V), attend(Q, np.concatenate([K, K]), V)))


def _copies_without_value(attend):
    Q, K, V = _sample()
    twice = attend(Q, np.concatenate([K, K]), np.concatenate([V, 0 * V]))
    return bool(np.allclose(attend(Q, K, V), twice))


doubling_law = Exercise(
    task="a law that doubles every key with its value",
    right=_right_law,
    cases=tuple((subject,) for subject in _SUBJECTS),
    mistakes=(
        Mistake(
            "passes everything",
            "your law is content with √n_k: compare numbers before and after doubling",
            _shapes_only,
        ),
        Mistake(
            "false alarm by rounding",
            "right attention fails your law: add rows and leave the numbers in them "
            "alone, and leave room for rounding",
            _exactly_equal,
        ),
        Mistake(
            "upside down",
            "True should mean that the law holds",
            lambda attend: not _right_law(attend),
        ),
        Mistake(
            "compared with the right one",
            "a law needs no right answer beside it: divides_by_nothing differs from "
            "the right one and keeps this law",
            _equals_the_right_one,
        ),
        Mistake(
            "constant values",
            "equal values or equal scores hide the difference: draw Q, K and V at "
            "random",
            _constant_values,
        ),
        Mistake(
            "queries doubled",
            "you double those who ask; double those who are asked",
            _queries_doubled,
        ),
        Mistake(
            "queries doubled too",
            "a false alarm on divides_by_root_n_q: the queries should stay as they are",
            _all_doubled,
        ),
        Mistake(
            "values forgotten",
            "the shapes do not fit: each row of K needs its row of V, and Q stays as "
            "it is",
            _values_forgotten,
        ),
        Mistake(
            "copies without a value",
            "the copy of a key should carry the same value as the key",
            _copies_without_value,
        ),
    ),
    reread=section("scale", "The law"),
    praise="no √n survives it, and no right answer is needed.",
)
