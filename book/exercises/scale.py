"""Exercises on scaling: why scores are divided by √d_k."""

import math

import numpy as np

from exercises import Exercise, Law, each, judged, partly, random_arrays, section
from exercises.engine import Unfit, same
from mha import softmax
from mha.attention import scaled_dot_product_attention
from mha.similarity import dot_product_scores


def _scores(Q, K):
    return Q @ K.swapaxes(-1, -2)


def _right_scaled(Q, K):
    return _scores(Q, K) / math.sqrt(Q.shape[-1])


def _with_dtype(answer, Q, K):
    """Return what `answer` gives, and say so if only its dtype is another."""
    S = answer(Q, K)
    dtype = np.asarray(S).dtype
    if dtype != Q.dtype and S is not None and same(np.asarray(S), _right_scaled(Q, K)):
        raise Unfit(f"the numbers are correct, but {Q.dtype} became {dtype}")
    return S


def _ramp(*shape, dtype=np.float64):
    """Return small numbers without a pattern, the same on every machine."""
    count = math.prod(shape)
    return ((np.arange(count) * 37 % 23 - 11) / 7).reshape(shape).astype(dtype)


# Small inputs come first, because a learner sees the first that goes wrong.
_SMALL = np.array([[1.0, 1.0, 1.0, 1.0]]), np.array([[3.0, 3.0, 1.0, 1.0], [0.0] * 4])
_BATCH = np.ones((1, 1, 2)), np.array([[[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])

scaled_scores = Exercise(
    task="scores divided by √d_k, for any leading axes, in the dtype of Q and K",
    axes=2,
    exact=True,
    right=_right_scaled,
    forbidden=(dot_product_scores,),
    cases=(
        _SMALL,
        _BATCH,
        tuple(x.astype(np.float32) for x in _SMALL),
        (_ramp(2, 3), _ramp(5, 3)),
        (_ramp(2, 3, 5), _ramp(2, 7, 5)),
        (_ramp(2, 2, 3, 5), _ramp(2, 2, 7, 5)),
        (_ramp(2, 3, dtype=np.float32), _ramp(5, 3, dtype=np.float32)),
    ),
    mistakes={
        "these are the scores before the division: divide them by √d_k": _scores,
        "the divisor is the root of d_k; you divide by d_k itself": lambda Q, K: (
            _scores(Q, K) / Q.shape[-1]
        ),
        "correct for two axes only: swap the last two axes of K and leave the others, "
        "which K.T does not": lambda Q, K: Q @ K.T / math.sqrt(Q.shape[-1]),
        "d ** 1/2 means (d ** 1) / 2: write d ** 0.5": lambda Q, K: (
            _scores(Q, K) / (Q.shape[-1] / 2)
        ),
        "the numbers are correct, but float32 became float64: np.sqrt does this, and "
        "math.sqrt does not": lambda Q, K: _right_scaled(Q, K).astype(float),
    },
    reread=section(
        "scale",
        "The cure",
        "Deeper: the scale in other code, and models without it",
    ),
    praise="it works for any leading axes, and float32 stays float32.",
    observe=_with_dtype,
)


def mystery_weights(Q, K):
    """Return attention weights; find out by what the scores are divided.

    The source below shows it. Two calls are enough to find it without the source: Q of
    shape (n_q, d_k) and K of shape (n_k, d_k) give weights of shape (n_q, n_k).

    Examples
    --------
    >>> mystery_weights(np.zeros((1, 3)), np.ones((2, 3)))
    array([[0.5, 0.5]])
    """
    return softmax(_scores(Q, K) / Q.shape[-1])


_DIVISORS = "nothing", "sqrt d_k", "d_k", "sqrt n_k", "n_k", "after the softmax"


def _divisor(answer):
    """Return one of the six texts, and tell them to any other answer."""
    text = answer.strip().lower() if isinstance(answer, str) else None
    if text not in _DIVISORS:
        raise Unfit(f"answer with one of these texts: {', '.join(_DIVISORS)}")
    return text


mystery_divisor = Exercise(
    task="what mystery_weights divides by",
    observe=_divisor,
    right="d_k",
    cases=((),),
    mistakes={
        "compare ln(a/b) of two weights with the difference of their scores": "nothing",
        "try the widths 4 and 16: "
        "does the divisor become 2 or 4 times as large?": "sqrt d_k",
        "double the number of keys at the same width: does ln(a/b) change?": "sqrt n_k",
        "choose a number of keys that differs from the width, "
        "for example 4 and 16": "n_k",
        "add up a row: "
        "after such a division the sum would not be 1": "after the softmax",
    },
    reread=section("scale", "Break it"),
    praise="ln(a/b) is the difference of the scores over the divisor.",
)


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


def correct_attention(Q, K, V):
    return scaled_dot_product_attention(Q, K, V)


_SUBJECTS = (
    correct_attention,
    _subject("divides_by_root_n_k", lambda Q, K: math.sqrt(K.shape[-2])),
    _subject("divides_by_n_k", lambda Q, K: K.shape[-2]),
    _subject("divides_by_nothing", lambda Q, K: 1),
    _subject("divides_by_root_n_q", lambda Q, K: math.sqrt(Q.shape[-2])),
    _subject("divides_after_the_softmax", _root_d_k, after=True),
    _subject("softmax_over_the_queries", _root_d_k, axis=-2),
)
_SUBJECTS += (
    partly(_SUBJECTS[1], correct_attention, np.s_[1:], "from the second query on"),
)


_SAMPLE = random_arrays((3, 5), (7, 5), (7, 2), seed=0)


def _doubled(attend):
    Q, K, V = _SAMPLE
    twice = (np.tile(x, (2, 1)) for x in (K, V))
    return np.allclose(attend(Q, K, V), attend(Q, *twice))


doubling_law = Law(
    task="a law that doubles every key with its value",
    right=_doubled,
    observe=judged,
    cases=each(*_SUBJECTS),
    changes={
        "Q*": "you double the queries: double the keys and the values instead",
        "K V": "you change the numbers of K and V: let each key come twice, as it "
        "is, and each value with it",
    },
    mistakes={
        "do not compare with correct attention: divides_by_nothing differs from it and "
        "satisfies this law": lambda attend: np.allclose(
            attend(*_SAMPLE), correct_attention(*_SAMPLE)
        ),
    },
    reread=section("scale", "Two laws in code"),
    praise="it detects √n without knowing the correct outputs.",
)
