"""Exercises on scaling: why scores are divided by √d_k."""

import math
from fractions import Fraction

import numpy as np

from exercises import chapter, section
from mha.attention import scaled_dot_product_attention
from mha.check import Exercise, Mistake, Verdict
from mha.similarity import dot_product_scores
from mha.softmax import softmax

# Predict the variance after a wrong division


def _number(answer):
    """Return an answer as a number; a rounded one counts as what it stands for."""
    given = float(Fraction(answer) if isinstance(answer, str) else answer)
    near = (1 / 8, 0.004), (64 / math.sqrt(512), 0.011), (math.sqrt(1 / 8), 0.011)
    for known, off in near:
        if abs(given - known) < off * known:
            return known
    return given


variance_left = Exercise(
    task="the variance of the scores after dividing by √512",
    right=1 / 8,
    cases=((),),
    observe=_number,
    mistakes=(
        Mistake(
            "kept at one",
            "dividing by √64 would give variance 1, and √512 is a larger divisor",
            1,
        ),
        Mistake(
            "not divided",
            "64 is the variance before the division: what does the division change?",
            64,
        ),
        Mistake(
            "divided once",
            "a variance is a mean of squares: divide it by the square of the divisor",
            64 / math.sqrt(512),
        ),
        Mistake(
            "standard deviation",
            "this is the standard deviation of the scores; its square is the variance",
            math.sqrt(1 / 8),
        ),
        Mistake(
            "upside down",
            "a division makes the scores smaller, and your variance has grown",
            8,
        ),
        Mistake(
            "divided by 512 twice",
            "you divide by the square of 512, but the divisor is the root of 512",
            64 / 512**2,
        ),
        Mistake(
            "one product instead of 64",
            "this is the variance of one divided product; a score has 64 of them",
            1 / 512,
        ),
        Mistake(
            "typical size for variance",
            "8 is the typical size of a score, so what is its variance?",
            8 / 512,
        ),
    ),
    reread=section("scale", "The equation"),
    praise="64 products, each of variance 1, and 64 / 512 = 1/8.",
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


def _no_transpose(Q, K):
    return Q @ K / math.sqrt(Q.shape[-1])


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

# Small inputs come first, because a learner sees the first that goes wrong.
_SMALL_BATCH = (
    np.array([[[1.0, 1.0]]]),
    np.array([[[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]]]),
)
_SMALL_FLOAT32 = tuple(x.astype(np.float32) for x in _SMALL)

scaled_scores = Exercise(
    task="scores divided by √d_k, for any leading axes, in the dtype of Q and K",
    right=_right_scaled,
    forbidden=(dot_product_scores,),
    cases=(
        _SMALL,
        _SMALL_BATCH,
        _SMALL_FLOAT32,
        (_ramp(2, 3), _ramp(5, 3)),
        (_ramp(2, 3, 5), _ramp(2, 7, 5)),
        (_ramp(2, 1, 3, 5), _ramp(2, 7, 5)),
        (_ramp(2, 3, dtype=np.float32), _ramp(5, 3, dtype=np.float32)),
    ),
    mistakes=(
        Mistake(
            "no scale",
            "these are the scores before the division: divide them by √d_k",
            _scores,
        ),
        Mistake(
            "d_k without its root",
            "the divisor is the root of d_k; you divide by d_k itself",
            lambda Q, K: _scores(Q, K) / Q.shape[-1],
        ),
        Mistake(
            "√n_k for √d_k",
            "K.shape[-2] is the number of keys; the width of a key is K.shape[-1]",
            lambda Q, K: _scores(Q, K) / math.sqrt(K.shape[-2]),
        ),
        Mistake(
            "√n_q for √d_k",
            "Q.shape[-2] is the number of queries; the width of a query is Q.shape[-1]",
            lambda Q, K: _scores(Q, K) / math.sqrt(Q.shape[-2]),
        ),
        Mistake(
            "len(Q) for d_k",
            "len(Q) is the length of the first axis; the width of a query is the last",
            lambda Q, K: _scores(Q, K) / math.sqrt(len(Q)),
        ),
        Mistake(
            "len(K) for d_k",
            "len(K) is the length of the first axis; the width of a key is the last",
            lambda Q, K: _scores(Q, K) / math.sqrt(len(K)),
        ),
        Mistake(
            "always 2",
            "2 is the root of d_k only at width 4: read d_k from the shape of Q",
            lambda Q, K: _scores(Q, K) / 2,
        ),
        Mistake(
            "no transpose",
            "the shapes do not fit: swap the last two axes of K before you multiply",
            _no_transpose,
        ),
        Mistake(
            "entry by entry",
            "* multiplies entry by entry: a score is a dot product, as @ computes it",
            lambda Q, K: Q * K / math.sqrt(Q.shape[-1]),
        ),
        Mistake(
            "keys times queries",
            "each row of the result belongs to a query and each column to a key: here "
            "it is the other way round",
            lambda Q, K: _right_scaled(K, Q),
        ),
        Mistake(
            "every batch with every batch",
            "np.dot and np.inner combine all leading axes of Q with all of K: @ pairs "
            "them",
            lambda Q, K: np.inner(Q, K) / math.sqrt(Q.shape[-1]),
        ),
        Mistake(
            "multiplied",
            "you multiply by √d_k, which makes the scores larger: divide by it",
            lambda Q, K: _scores(Q, K) * math.sqrt(Q.shape[-1]),
        ),
        Mistake(
            "all axes turned round",
            "correct for two axes only: swap the last two axes of K and leave the "
            "others, which K.T does not",
            lambda Q, K: Q @ K.T / math.sqrt(Q.shape[-1]),
        ),
        Mistake(
            "all axes turned round, in float64",
            "K.T reverses all axes and np.sqrt changes float32: correct the axes first",
            lambda Q, K: Q @ K.T / np.sqrt(Q.shape[-1]),
        ),
        Mistake(
            "reshaped, not transposed",
            "reshape keeps the old order of the numbers, so a column mixes numbers of "
            f"several keys: transpose, as in {chapter('dot_product')}",
            _reshaped,
        ),
        Mistake(
            "an axis counted from the front",
            "Q.shape[1] is the width only if Q has two axes: write Q.shape[-1]",
            lambda Q, K: _scores(Q, K) / math.sqrt(Q.shape[1]),
        ),
        Mistake(
            "power without brackets",
            "d ** 1/2 means (d ** 1) / 2: write d ** 0.5",
            lambda Q, K: _scores(Q, K) / (Q.shape[-1] / 2),
        ),
        Mistake(
            "power without any brackets",
            "S / d ** 1/2 means (S / d) / 2: write S / d ** 0.5",
            lambda Q, K: _scores(Q, K) / Q.shape[-1] / 2,
        ),
        Mistake(
            "rounded down",
            "// rounds down to whole numbers: divide with /",
            lambda Q, K: _scores(Q, K) // math.sqrt(Q.shape[-1]),
        ),
        Mistake(
            "root rounded down",
            "your root is a whole number: use math.sqrt and no //",
            lambda Q, K: _scores(Q, K) / math.isqrt(Q.shape[-1]),
        ),
        Mistake(
            "float32 became float64",
            "the numbers are correct, but float32 became float64: np.sqrt does this, "
            "and math.sqrt does not",
            _promoted,
        ),
        Mistake(
            "always float32",
            "float64 became float32: keep the dtype that Q and K have",
            lambda Q, K: _right_scaled(Q, K).astype(np.float32),
        ),
        Mistake(
            "softmax included",
            "these are attention weights: return the scores, without the softmax",
            lambda Q, K: softmax(_right_scaled(Q, K)),
        ),
    ),
    reread=section(
        "scale",
        "The equation",
        "Deeper: the scale in other code, and models without it",
    ),
    praise="it works for any leading axes, and float32 stays float32.",
    observe=_with_dtype,
)


# Find the divisor from the outputs alone


def mystery_weights(Q, K):
    """Return attention weights; find out by what the scores are divided.

    The source below shows it. Two calls are enough to find it without the source.

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


_DIVISORS = "nothing", "sqrt d_k", "d_k", "sqrt n_k", "n_k", "after the softmax"


class _OneOf(Exercise):
    """An exercise whose answer is one of a few texts; any other is told them."""

    def judge(self, answer):
        """Return the verdict on an answer that is not a stub."""
        text = answer.strip().lower() if isinstance(answer, str) else None
        if text not in _DIVISORS:
            words = ", ".join(f'"{word}"' for word in _DIVISORS)
            return Verdict("not yet", f"answer with one of these texts: {words}")
        return super().judge(text)


mystery_divisor = _OneOf(
    task="what mystery_weights divides by",
    right="d_k",
    cases=((),),
    mistakes=(
        Mistake(
            "nothing",
            "compare ln(a/b) of two weights with the difference of their scores",
            "nothing",
        ),
        Mistake(
            "sqrt d_k",
            "try the widths 4 and 16: does the divisor become 2 or 4 times as large?",
            "sqrt d_k",
        ),
        Mistake(
            "sqrt n_k",
            "double the number of keys at the same width: does ln(a/b) change?",
            "sqrt n_k",
        ),
        Mistake(
            "n_k",
            "choose a number of keys that differs from the width, for example 4 and 16",
            "n_k",
        ),
        Mistake(
            "after the softmax",
            "add up a row: after such a division the sum would not be 1",
            "after the softmax",
        ),
    ),
    reread=section("scale", "Break it"),
    praise="ln(a/b) is the difference of the scores over the divisor.",
)


# The scale for entries of another variance

scale_for_variance = Exercise(
    task="the factor that brings the scores to variance 1",
    right=lambda variance, d_k: 1 / (variance * math.sqrt(d_k)),
    cases=((1.0, 4), (4.0, 4), (1 / 3, 64), (0.25, 9)),
    mistakes=(
        Mistake(
            "variance ignored",
            "correct only for variance 1: a larger variance makes larger scores",
            lambda variance, d_k: 1 / math.sqrt(d_k),
        ),
        Mistake(
            "one vector only",
            "you count one of the two vectors, but q and k both have this variance",
            lambda variance, d_k: 1 / math.sqrt(variance * d_k),
        ),
        Mistake(
            "variance squared",
            "a product has the variance σ⁴, but the factor multiplies the scores, "
            "whose typical size is the root of their variance",
            lambda variance, d_k: 1 / (variance**2 * math.sqrt(d_k)),
        ),
        Mistake(
            "variance upside down",
            "a larger variance needs a smaller factor, and yours becomes larger",
            lambda variance, d_k: variance / math.sqrt(d_k),
        ),
        Mistake(
            "divisor for factor",
            "this is the divisor: return the factor by which scores are multiplied",
            lambda variance, d_k: variance * math.sqrt(d_k),
        ),
        Mistake(
            "d_k without its root",
            "the typical size of a score grows with the root of d_k, not with d_k",
            lambda variance, d_k: 1 / (variance * d_k),
        ),
        Mistake(
            "no root at all",
            "you divide by the variance of the scores, but a factor f changes a "
            "variance by the factor f²",
            lambda variance, d_k: 1 / (variance**2 * d_k),
        ),
        Mistake(
            "no brackets around the divisor",
            "1 / a * b means (1 / a) * b: put the whole divisor in brackets",
            lambda variance, d_k: 1 / variance * math.sqrt(d_k),
        ),
        Mistake(
            "the variance itself",
            "this is the variance of the scores: which factor brings it to 1?",
            lambda variance, d_k: variance**2 * d_k,
        ),
        Mistake(
            "always 0.5",
            "0.5 is correct for variance 1 and d_k = 4, but not for other numbers",
            lambda variance, d_k: 0.5,
        ),
    ),
    reread=section("scale", "The equation"),
    praise="for example, the variance 1/3 of torch.nn.Linear gives 3/√d_k.",
)


# The law that detects √n


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
    return bool(np.allclose(attend(*_sample()), correct_attention(*_sample())))


def _constant_values(attend):
    Q, K, V = _sample()
    V = np.ones_like(V)
    twice = attend(Q, np.concatenate([K, K]), np.concatenate([V, V]))
    return bool(np.allclose(attend(Q, K, V), twice))


def _wrong_brackets(attend):
    Q, K, V = _sample()
    twice = attend(Q, np.concatenate(K, K), np.concatenate(V, V))
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


class _Law(Exercise):
    """An exercise whose answer returns one truth value; a table is told so."""

    def judge(self, answer):
        """Return the verdict on an answer that is not a stub."""
        try:
            result = answer(correct_attention)
        except Exception:  # the check itself quotes it
            result = None
        if np.size(result) > 1:
            return Verdict(
                "not yet",
                "return one True or False; this is a table of shape "
                f"{np.shape(result)}, and np.allclose compares two tables as a whole",
            )
        return super().judge(answer)


doubling_law = _Law(
    task="a law that doubles every key with its value",
    right=_right_law,
    cases=tuple((subject,) for subject in _SUBJECTS),
    mistakes=(
        Mistake(
            "passes everything",
            "your law is True for √n_k too: compare outputs before and after doubling",
            _shapes_only,
        ),
        Mistake(
            "false alarm by rounding",
            "your law is False for correct attention: double the rows of K and V "
            "without changing their numbers, and compare with np.allclose",
            _exactly_equal,
        ),
        Mistake(
            "upside down",
            "return True if the law is satisfied, and False if it is broken",
            lambda attend: not _right_law(attend),
        ),
        Mistake(
            "compared with the right one",
            "do not compare with correct attention: divides_by_nothing differs from it "
            "and satisfies this law",
            _equals_the_right_one,
        ),
        Mistake(
            "constant values",
            "equal values or equal scores hide the mistake: draw Q, K and V at random",
            _constant_values,
        ),
        Mistake(
            "queries doubled",
            "you double the queries: double the keys and the values instead",
            _queries_doubled,
        ),
        Mistake(
            "queries doubled too",
            "your law is False for divides_by_root_n_q: do not double the queries",
            _all_doubled,
        ),
        Mistake(
            "values forgotten",
            "the shapes do not fit: put a second K below the first, which is axis 0, "
            "do the same with V, and leave Q as it is",
            _values_forgotten,
        ),
        Mistake(
            "copies without a value",
            "your law is False even for correct attention: give the copy of a key the "
            "same value, and compare the two outputs as they are",
            _copies_without_value,
        ),
        Mistake(
            "no list for np.concatenate",
            "look at two calls: np.concatenate takes one list, [K, K], and attend "
            "takes Q, K and V",
            _wrong_brackets,
        ),
    ),
    reread=section("scale", "The law"),
    praise="it detects √n without knowing the correct outputs.",
)
