"""Exercises on softmax: how scores become weights."""

import numpy as np

from exercises import Exercise, Law, each, member, named, number, section
from mha import softmax
from mha.attention import scaled_dot_product_attention

score_for_half = Exercise(
    task="the score of food at which food gets half",
    right=3 + np.log(3),
    cases=((),),
    observe=number,
    mistakes={
        "three other words share the rest, and this counts four": 3 + np.log(4),
        "this is by how much the score has to rise; the task asks to which number": 1
        + np.log(3),
        "the distance ln 3 is right, but add it to the score of the other words, "
        "which is 3": 2 + np.log(3),
        "this is only the distance to the other scores: "
        "the task asks for the score itself": np.log(3),
        "a lead of 1 makes the weight of food e = 2.718 times that of each other word, "
        "and it should be 3 times": 4.0,
        "9 is the sum of the other scores: food should get half of the weight, and "
        "weights go by e^s": 9,
        "three words share the other half, and this counts two": 3 + np.log(2),
        "food scored 2, and the other words 3: here food is one of those with "
        "3": np.log(2 * np.exp(3) + np.exp(2)),
        "food scored 2 before, and here its old weight still counts": np.log(
            3 * np.exp(3) + np.exp(2)
        ),
        "the distance is the natural logarithm of 3, and this is the one to base 10": 3
        + np.log10(3),
        "this is the exponential e^s that food needs: the task asks for s": 3
        * np.exp(3),
    },
    reread=section("softmax", "One point ahead"),
    praise="food needs e^s = 3 e^3, so s = 3 + ln 3 = 4.099.",
)


def _shares(e, axis):
    return e / e.sum(axis, keepdims=True)


def _powers(x, axis):
    return np.exp(x - x.max(axis, keepdims=True))


def _right_softmax(x, axis):
    return _shares(_powers(x, axis), axis)


stable_softmax = Exercise(
    task="a softmax along any axis, for scores of any size",
    right=_right_softmax,
    forbidden=(softmax,),
    cases=(
        (np.array([0.0, 1.0]), -1),
        (np.array([1000.0, 1001.0]), -1),
        (np.array([-1000.0, 1000.0]), -1),
        (np.array([[0.0, 1.0], [-2000.0, -2001.0]]), -1),
        (np.array([[3.0, 2.0, 0.0], [1.0, 4.0, 1.0]]), -1),
        (np.array([[3.0, 2.0, 0.0], [1.0, 4.0, 1.0]]), 0),
        (np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 2.0], [0.0, 5.0, 1.0]]), 1),
        (np.sin(np.arange(30.0)).reshape(2, 3, 5), 1),
        (np.array([-1000.0, -1001.0]), -1),
    ),
    mistakes={
        "a large score overflows: which shift "
        "of the scores changes no weight?": lambda x, axis: _shares(np.exp(x), axis),
        "two slips: a large score overflows, and one sum is taken over all rows: "
        "subtract from each row its maximum, and sum along the "
        "axis": lambda x, axis: np.exp(x) / np.exp(x).sum(),
        "one maximum is subtracted from all rows, so a row with much smaller scores "
        "becomes 0/0: subtract from each row its own "
        "maximum": lambda x, axis: _shares(np.exp(x - x.max()), axis),
        "right for one row of scores, but Python's own max and sum go along the first "
        "axis: the array's x.max and x.sum take an "
        "axis": lambda x, axis: np.exp(x - max(x)) / sum(np.exp(x - max(x))),
        "the largest number without its sign is subtracted, so all exponentials can be "
        "rounded to 0: subtract the largest score": lambda x, axis: _shares(
            np.exp(x - np.abs(x).max(axis, keepdims=True)), axis
        ),
        "clipping makes different large scores equal: which shift keeps their "
        "differences?": lambda x, axis: _shares(np.exp(np.clip(x, -700, 700)), axis),
        "the largest score is subtracted in the numerator but not in the denominator: "
        "both need the same shift": lambda x, axis: (
            _powers(x, axis) / np.exp(x).sum(axis, keepdims=True)
        ),
        "sum removes the axis, so the division pairs the wrong numbers: keepdims=True "
        "keeps the axis with length "
        "1": lambda x, axis: _powers(x, axis) / _powers(x, axis).sum(axis),
        "these exponentials do not sum to 1 yet: divide them by their sum": _powers,
        "these are the scores divided by their sum, which can be negative: "
        "first take the exponential": _shares,
    },
    reread=section("softmax", "Break it"),
    praise="your weights sum to 1 along any axis, and no score overflows.",
)


def _weights(attend, n_q=5, n_k=7):
    """Return the weights that `attend` gives to a fixed random input."""
    rng = np.random.default_rng(2)
    Q, K, V = (rng.normal(size=(n, 3)) for n in (n_q, n_k, n_k))
    return attend(Q, K, V, return_weights=True)[1]


def _spoilt(name, factors):
    """Return attention that multiplies the weights of each row by a factor."""

    def attend(Q, K, V, return_weights=False):
        Y, A = scaled_dot_product_attention(Q, K, V, return_weights=True)
        by = factors(np.arange(len(A)), len(A) - 1)[:, None]
        return (by * Y, by * A) if return_weights else by * Y

    return named(name, attend)


rows_law = Law(
    task="a law that a softmax over the queries breaks",
    right=lambda attend: np.allclose(_weights(attend).sum(-1), 1),
    cases=each(
        member("right"),
        member("softmax_over_queries"),
        member("right in float32"),
        member("no_scale"),
        member("scale_after_softmax"),
        _spoilt("halves_the_first_row", lambda i, last: 1 - 0.5 * (i == 0)),
        _spoilt("halves_all_rows_but_the_first", lambda i, last: 1 - 0.5 * (i > 0)),
        _spoilt("halves_the_last_row", lambda i, last: 1 - 0.5 * (i == last)),
        _spoilt("halves_a_middle_row", lambda i, last: 1 - 0.5 * (i == last // 2)),
        _spoilt(
            "takes_from_the_last_row_what_it_adds_to_the_first",
            lambda i, last: 1 + 0.5 * (i == 0) - 0.5 * (i == last),
        ),
    ),
    mistakes={
        "you sum over the queries, but the weights of each query should sum to 1 over "
        "the keys": lambda attend: np.allclose(_weights(attend).sum(-2), 1),
        "with as many queries as keys the total of all weights is the same in both "
        "versions: let the numbers of queries and keys "
        "differ": lambda attend: np.isclose(_weights(attend, 7, 7).sum(), 7),
    },
    vary=(),
    reread=section("softmax", "A test that needs no right answer"),
    praise="your law detects the wrong axis and raises no false alarm.",
)


def _diagonal(p):
    return p[..., None] * np.eye(p.shape[-1])


def _products(p, q):
    return p[..., :, None] * q[..., None, :]


def _jacobian_of(p):
    return _diagonal(p) - _products(p, p)


softmax_jacobian = Exercise(
    task="the slope of every weight with respect to every score",
    axes=1,
    right=lambda s: _jacobian_of(softmax(s)),
    cases=(
        (np.array([0.0, 2.0]),),
        (np.array([3.0, 2.0, 3.0, 3.0]),),
        (np.array([1000.0, 1001.0]),),
        (np.array([[0.0, 2.0, 1.0], [4.0, 1.0, 1.0]]),),
        (np.cos(np.arange(30.0)).reshape(2, 5, 3),),
    ),
    mistakes={
        "raising one score lowers the other weights: the numbers beside the diagonal "
        "are not 0": lambda s: _diagonal(softmax(s) * (1 - softmax(s))),
        "you subtract the products from np.eye(n): multiply that by the weights "
        "first": lambda s: np.eye(s.shape[-1]) - _products(softmax(s), softmax(s)),
    },
    reread=section(
        "softmax", "Deeper: the Jacobian, or which weights fall when one score rises"
    ),
    praise="each column sums to 0: a weight can grow only if others fall.",
)
