"""Exercises on softmax: how scores become weights."""

import numpy as np

from exercises import section
from mha.attention import scaled_dot_product_attention
from mha.check import Exercise, Mistake
from mha.softmax import softmax

# Predict the score that takes half

score_for_half = Exercise(
    task="the score of food at which food gets half",
    right=3 + np.log(3),
    cases=((),),
    observe=lambda answer: np.round(float(answer), 2),
    mistakes=(
        Mistake("equal scores", "with four equal scores each word gets a quarter", 3.0),
        Mistake(
            "half of the sum of the scores",
            "9 is the sum of the other three scores, but the softmax adds up "
            "exponentials, not scores",
            9.0,
        ),
        Mistake(
            "one rival instead of three",
            "this makes the exponential of food twice that of one other word, but "
            "there are three other words",
            3 + np.log(2),
        ),
        Mistake(
            "counted from the old score",
            "the distance ln 3 is right, but add it to the score of the other words, "
            "which is 3",
            2 + np.log(3),
        ),
        Mistake(
            "the distance alone",
            "this is only the distance to the other scores: the task asks for the "
            "score itself",
            np.log(3),
        ),
        Mistake(
            "one more than the rivals",
            "a lead of 1 makes the weight of food e = 2.718 times that of each other "
            "word, and it should be 3 times",
            4.0,
        ),
        Mistake(
            "the power for the score",
            "this is the exponential e^s that food needs: the task asks for s",
            3 * np.exp(3),
        ),
        Mistake(
            "twice the score of the rivals",
            "only differences of scores count: a score twice as large does not give "
            "twice the weight",
            6.0,
        ),
        Mistake(
            "the weight itself",
            "one half is the weight that food should get: the task asks for its score",
            0.5,
        ),
        Mistake(
            "food among its own rivals",
            "this makes the exponential of food 4 times that of one other word: half "
            "against the three others needs only 3 times",
            3 + np.log(4),
        ),
        Mistake(
            "the old score of food in the sum",
            "the sum of the other exponentials must not include food, whose score is "
            "what you look for",
            np.log(3 * np.exp(3) + np.exp(2)),
        ),
        Mistake(
            "another base of the logarithm",
            "the softmax uses e, so use the natural logarithm, np.log or math.log",
            3 + np.log10(3),
        ),
        Mistake(
            "cut off instead of rounded",
            "the third decimal is an 8, so round up",
            4.09,
        ),
    ),
    reread=section("softmax", "The equation"),
    praise="food needs e^s = 3 e^3, so s = 3 + ln 3 = 4.099.",
)


# Write a softmax along any axis, for scores of any size


def _normalised(x, axis, top):
    e = np.exp(x - top)
    return e / e.sum(axis, keepdims=True)


def _right_softmax(x, axis):
    return _normalised(x, axis, x.max(axis, keepdims=True))


def _without_max(x, axis):
    return _normalised(x, axis, 0)


def _one_max_for_all(x, axis):
    return _normalised(x, axis, x.max())


def _always_last_axis(x, axis):
    return _right_softmax(x, -1)


def _always_first_axis(x, axis):
    return _right_softmax(x, 0)


def _one_unit_for_all(x, axis):
    e = np.exp(x - x.max())
    return e / e.sum()


def _axis_dropped(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis)


def _both_axes_dropped(x, axis):
    e = np.exp(x - x.max(axis))
    return e / e.sum(axis)


def _one_total_for_all(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum()


def _max_only_above(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / np.exp(x).sum(axis, keepdims=True)


def _divided_by_max(x, axis):
    return _normalised(x / x.max(axis, keepdims=True), axis, 0)


def _divided_by_largest_of_all(x, axis):
    return _normalised(x / x.max(), axis, 0)


def _nan_to_zero(x, axis):
    return np.nan_to_num(_without_max(x, axis))


def _infinity_to_largest(x, axis):
    e = np.nan_to_num(np.exp(x))
    return np.nan_to_num(e / e.sum(axis, keepdims=True))


def _rounded(digits):
    return lambda x, axis: np.round(_right_softmax(x, axis), digits)


def _largest_without_sign_subtracted(x, axis):
    return _normalised(x, axis, np.abs(x).max(axis, keepdims=True))


def _clipped(x, axis):
    return _normalised(np.clip(x, -700, 700), axis, 0)


def _built_in_max_and_sum(x, axis):
    e = np.exp(x - max(x))
    return e / sum(e)


def _always_axis_one(x, axis):
    return _right_softmax(x, 1)


def _smallest_subtracted(x, axis):
    return _normalised(x, axis, x.min(axis, keepdims=True))


def _not_divided(x, axis):
    return np.exp(x - x.max(axis, keepdims=True))


def _plain_fractions(x, axis):
    return x / x.sum(axis, keepdims=True)


def _logarithm(x, axis):
    return np.log(_right_softmax(x, axis))


def _winner_takes_all(x, axis):
    won = x == x.max(axis, keepdims=True)
    return won / won.sum(axis, keepdims=True)


_SQUARE = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 2.0], [0.0, 5.0, 1.0]])

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
        (_SQUARE, 1),
        (np.sin(np.arange(30.0)).reshape(2, 3, 5), 1),
        (np.array([-1000.0, -1001.0]), -1),
    ),
    mistakes=(
        Mistake(
            "no maximum subtracted",
            "a large score overflows: which shift of the scores changes no weight?",
            _without_max,
        ),
        Mistake(
            "one maximum for the whole array",
            "one maximum is subtracted from all rows, so a row with much smaller "
            "scores becomes 0/0: subtract from each row its own maximum",
            _one_max_for_all,
        ),
        Mistake(
            "the last axis, whatever was asked",
            "your weights always sum to 1 along the last axis: where do you use axis?",
            _always_last_axis,
        ),
        Mistake(
            "the first axis, whatever was asked",
            "your weights always sum to 1 along the first axis: where do you use axis?",
            _always_first_axis,
        ),
        Mistake(
            "axis 1, whatever was asked",
            "you always use axis 1, which a single row of scores does not have: where "
            "do you use axis?",
            _always_axis_one,
        ),
        Mistake(
            "max and sum of Python",
            "right for one row of scores, but Python's own max and sum go along the "
            "first axis: the array's x.max and x.sum take an axis",
            _built_in_max_and_sum,
        ),
        Mistake(
            "the largest absolute value subtracted",
            "you subtract the largest absolute value, so a row with only negative "
            "scores becomes 0/0: subtract its largest score",
            _largest_without_sign_subtracted,
        ),
        Mistake(
            "the scores clipped",
            "clipping makes different large scores equal: which shift keeps their "
            "differences?",
            _clipped,
        ),
        Mistake(
            "one unit for the whole array",
            "the weights of the whole array sum to 1, but those of each row should: "
            "give max and sum the axis",
            _one_unit_for_all,
        ),
        Mistake(
            "one total for the whole array",
            "each row has its own maximum, but all rows are divided by one total: "
            "give sum the axis too",
            _one_total_for_all,
        ),
        Mistake(
            "maximum subtracted in the numerator only",
            "the largest score is subtracted in the numerator but not in the "
            "denominator: both need the same shift",
            _max_only_above,
        ),
        Mistake(
            "divided by the maximum",
            "the scores are divided by the largest one, which changes their "
            "differences: which operation keeps them?",
            _divided_by_max,
        ),
        Mistake(
            "divided by the maximum of the array",
            "dividing by the largest score of the array changes the differences of the "
            "scores: subtract the largest score of each row instead",
            _divided_by_largest_of_all,
        ),
        Mistake(
            "NaN replaced by 0",
            "replacing NaN by 0 hides the overflow, and the weights no longer sum to "
            "1: prevent the overflow before the exponential",
            _nan_to_zero,
        ),
        Mistake(
            "infinity replaced by the largest number",
            "np.nan_to_num makes infinity a very large number, and the sum overflows "
            "again: make the scores smaller before the exponential",
            _infinity_to_largest,
        ),
        *(
            Mistake(
                f"rounded to {digits} decimals",
                f"the weights are right but rounded to {digits} decimals, and small "
                "weights need more: return them without rounding",
                _rounded(digits),
            )
            for digits in (2, 3, 4, 5)
        ),
        Mistake(
            "the summed axis is gone",
            "sum removes the axis, so the division pairs the wrong numbers: "
            "keepdims=True keeps the axis with length 1",
            _axis_dropped,
        ),
        Mistake(
            "the axis of maximum and sum is gone",
            "max and sum remove the axis, so each maximum is subtracted from the "
            "wrong numbers: keepdims=True keeps the axis",
            _both_axes_dropped,
        ),
        Mistake(
            "another number than the largest subtracted",
            "an exponential can still overflow, because after your shift some scores "
            "are large and positive",
            _smallest_subtracted,
        ),
        Mistake(
            "not divided",
            "these exponentials do not sum to 1 yet: divide them by their sum",
            _not_divided,
        ),
        Mistake(
            "no exponential",
            "these are the scores divided by their sum, which can be negative: first "
            "take the exponential",
            _plain_fractions,
        ),
        Mistake(
            "logarithms of the weights",
            "these are the logarithms of the weights: return the weights",
            _logarithm,
        ),
        Mistake(
            "winner takes all",
            "this gives all the weight to the largest score: smaller scores should "
            "get some weight too",
            _winner_takes_all,
        ),
    ),
    reread=section("softmax", "Break it"),
    praise="your weights sum to 1 along any axis, and no score overflows.",
)


# Derive the temperature that gives the leader a given weight


def _right_temperature(gap, n, weight):
    return gap / np.log(weight * (n - 1) / (1 - weight))


temperature_for = Exercise(
    task="the temperature at which the leader gets a given weight",
    right=_right_temperature,
    cases=(
        (1.0, 2, 0.75),
        (2.0, 4, 0.6),
        (2.0, 4, 0.9),
        (0.5, 11, 0.3),
    ),
    mistakes=(
        Mistake(
            "one rival only",
            "right for two words: with n words, n - 1 words share the rest",
            lambda gap, n, weight: gap / np.log(weight / (1 - weight)),
        ),
        Mistake(
            "the leader counted as a rival",
            "the others are n - 1 words, because the leader is not one of them",
            lambda gap, n, weight: gap / np.log(weight * n / (1 - weight)),
        ),
        Mistake(
            "the rivals on the wrong side",
            "each of the other words gets (1 - weight) / (n - 1): check on which side "
            "of your fraction n - 1 is",
            lambda gap, n, weight: gap / np.log(weight / ((1 - weight) * (n - 1))),
        ),
        Mistake(
            "odds upside down",
            "your temperature is negative: the larger of the two weights belongs in "
            "the numerator",
            lambda gap, n, weight: gap / np.log((1 - weight) / (weight * (n - 1))),
        ),
        Mistake(
            "one over the temperature",
            "this is 1 / T: a temperature divides the scores",
            lambda gap, n, weight: np.log(weight * (n - 1) / (1 - weight)) / gap,
        ),
        Mistake(
            "multiplied by the gap",
            "you multiply gap and logarithm: solve gap / T = ln(...) for T again",
            lambda gap, n, weight: gap * np.log(weight * (n - 1) / (1 - weight)),
        ),
        Mistake(
            "the weight without the others",
            "this is the logarithm of the leader's weight alone: it should be that of "
            "the ratio to the weight of another word",
            lambda gap, n, weight: -gap / np.log(weight),
        ),
        Mistake(
            "another base of the logarithm",
            "the softmax uses e, so use the natural logarithm, np.log or math.log",
            lambda gap, n, weight: gap / np.log10(weight * (n - 1) / (1 - weight)),
        ),
        Mistake(
            "base 2",
            "this is the logarithm with base 2, but the softmax uses e: use np.log",
            lambda gap, n, weight: gap / np.log2(weight * (n - 1) / (1 - weight)),
        ),
        Mistake(
            "no logarithm",
            "the ratio of the two weights is e^(gap / T): the logarithm is missing",
            lambda gap, n, weight: gap / (weight * (n - 1) / (1 - weight)),
        ),
        Mistake(
            "the gap is missing",
            "right for a gap of 1: where do you use gap?",
            lambda gap, n, weight: 1 / np.log(weight * (n - 1) / (1 - weight)),
        ),
        Mistake(
            "the logarithm of the leader's weight, negative",
            "you take the logarithm of one weight, which is negative: take that of the "
            "ratio of the two weights",
            lambda gap, n, weight: gap / np.log(weight),
        ),
        Mistake(
            "upside down, one rival only",
            "two things: the weight of the leader belongs in the numerator, and the "
            "n - 1 others share the rest",
            lambda gap, n, weight: gap / np.log((1 - weight) / weight),
        ),
        Mistake(
            "upside down, the rivals on the wrong side",
            "two things: the weight of the leader belongs in the numerator, and each "
            "of the others gets (1 - weight) divided by n - 1",
            lambda gap, n, weight: gap / np.log((1 - weight) * (n - 1) / weight),
        ),
        Mistake(
            "compared with equal weights",
            "you compare the weight of the leader with 1 / n: compare it with the "
            "weight that each other word gets",
            lambda gap, n, weight: gap / np.log(weight * n),
        ),
        Mistake(
            "rounded to 2 decimals",
            "the temperature is right but rounded: return it with all its decimals",
            lambda gap, n, weight: np.round(_right_temperature(gap, n, weight), 2),
        ),
    ),
    reread=section("softmax", "The equation"),
    praise="your formula leads from a weight back to the temperature.",
)


# Write the law that a softmax over the queries breaks


def _weights(attend, n_q=5, n_k=7):
    """Return the weights that `attend` gives to a fixed random input."""
    rng = np.random.default_rng(2)
    Q, K, V = (rng.normal(size=(n, 3)) for n in (n_q, n_k, n_k))
    return attend(Q, K, V, return_weights=True)[1]


def _right_rows_law(attend):
    return np.allclose(_weights(attend).sum(-1), 1)


def _shape_law(attend):
    return _weights(attend).shape == (5, 7)


def _columns_law(attend):
    return np.allclose(_weights(attend).sum(-2), 1)


def _total_law(attend):
    return np.isclose(_weights(attend, 7, 7).sum(), 7)


def _own_favourite_law(attend):
    rows = _weights(attend)
    return np.allclose(rows, _weights(scaled_dot_product_attention), atol=1e-5)


def _exact_law(attend):
    return (_weights(attend).sum(-1) == 1).all()


def _narrow_law(attend):
    return np.allclose(_weights(attend).sum(-1), 1, rtol=0, atol=1e-12)


def _hull_law(attend):
    rng = np.random.default_rng(2)
    Q, K = rng.normal(size=(2, 3)), rng.normal(size=(11, 3))
    Y = attend(Q, K, np.linspace(-1, 2, 11)[:, None])
    return ((Y > -1) & (Y < 2)).all()


def _reversed_law(attend):
    return not _right_rows_law(attend)


def _law_of_each_row(attend):
    return np.isclose(_weights(attend).sum(-1), 1)


def _verdict_on(law, attend):
    """Return what `law` says of a member of the zoo, given by its name."""
    from mha import zoo  # only this law needs it

    name, _, float32 = attend.partition(" in ")
    member = getattr(zoo, name).attention
    kind = np.float32 if float32 else np.float64

    def rounded(Q, K, V, *args, **options):
        """Attend with other last digits, so that `==` fails on every processor."""
        Q, K, V = (np.asarray(x, dtype=kind) for x in (Q, K, V))
        out = member(Q, K, V, *args, **options)
        factor = 1 - 4 * np.finfo(kind).eps
        if isinstance(out, tuple):
            return tuple((x * factor).astype(kind) for x in out)
        return (out * factor).astype(kind)

    verdict = law(rounded)
    return "one result per row" if np.ndim(verdict) else verdict


rows_law = Exercise(
    task="a law that a softmax over the queries breaks",
    right=_right_rows_law,
    cases=(
        ("right",),
        ("softmax_over_queries",),
        ("right in float32",),
        ("no_scale",),
        ("scale_after_softmax",),
    ),
    observe=_verdict_on,
    mistakes=(
        Mistake(
            "true of everything",
            "your law is also true of the wrong version: what do the weights of one "
            "query sum to there?",
            _shape_law,
        ),
        Mistake(
            "columns instead of rows",
            "you sum over the queries, but the weights of each query should sum to 1 "
            "over the keys",
            _columns_law,
        ),
        Mistake(
            "only the grand total",
            "with as many queries as keys the total of all weights is the same in both "
            "versions: let the numbers of queries and keys differ",
            _total_law,
        ),
        Mistake(
            "equal to one particular attention",
            "a false alarm: without a scale the weights of a query sum to 1 as well, "
            "so your law should be true of it",
            _own_favourite_law,
        ),
        Mistake(
            "false of correct attention",
            "a false alarm on correct attention: sum the weights of each query (not "
            "its output) over the keys, and compare with np.allclose, because rounded "
            "numbers rarely sum to exactly 1",
            _exact_law,
        ),
        Mistake(
            "no room for float32",
            "a false alarm in float32: there the weights of a query sum to 1 only up "
            "to about 1e-6",
            _narrow_law,
        ),
        Mistake(
            "sums below 1 pass",
            "your law is also true of a version that divides the weights by the root "
            "of the width, so that they sum to less than 1: its outputs can still lie "
            "between your values, so choose values that are all equal, and keys wider "
            "than 1",
            _hull_law,
        ),
        Mistake(
            "True and False exchanged",
            "True should mean that the law holds",
            _reversed_law,
        ),
        Mistake(
            "one result per row",
            "your law returns one result per row: return a single True or False",
            _law_of_each_row,
        ),
    ),
    reread=section("softmax", "The law"),
    praise="your law detects the wrong axis and raises no false alarm.",
)


# Write the Jacobian of softmax


def _jacobian_of(p):
    return p[..., None] * np.eye(p.shape[-1]) - p[..., None] * p[..., None, :]


def _right_jacobian(s):
    return _jacobian_of(softmax(s))


def _diagonal_only(s):
    return _right_jacobian(s) * np.eye(s.shape[-1])


def _vector_of_slopes(s):
    return softmax(s) * (1 - softmax(s))


def _ones_for_delta(s):
    p = softmax(s)
    return p[..., None] * (1 - p[..., None, :])


def _without_diagonal_term(s):
    p = softmax(s)
    return -p[..., None] * p[..., None, :]


def _minus_jacobian(s):
    return -_right_jacobian(s)


def _plus_outer(s):
    p = softmax(s)
    return p[..., None] * np.eye(p.shape[-1]) + p[..., None] * p[..., None, :]


def _without_softmax(s):
    return _jacobian_of(s)


def _one_row_only(s):
    p = softmax(s)
    return np.diag(p) - np.outer(p, p)


def _one_unit_for_the_batch(s):
    return _jacobian_of(softmax(s.reshape(-1)).reshape(s.shape))


def _outer_only(s):
    p = softmax(s)
    return p[..., None] * p[..., None, :]


def _dot_for_outer(s):
    p = softmax(s)
    return np.diag(p) - p @ p.T


def _column_twice(s):
    p = softmax(s)
    return p[..., None] * (np.eye(p.shape[-1]) - p[..., None])


def _row_twice(s):
    return np.swapaxes(_column_twice(s), -1, -2)


def _ones_on_the_diagonal(s):
    p = softmax(s)
    return np.eye(p.shape[-1]) - p[..., None] * p[..., None, :]


def _slopes_of_the_logarithms(s):
    return np.eye(s.shape[-1]) - softmax(s)[..., None, :]


def _slopes_of_the_logarithms_on_their_side(s):
    return np.eye(s.shape[-1]) - softmax(s)[..., None]


def _unstable(s):
    return _jacobian_of(np.exp(s) / np.exp(s).sum(-1, keepdims=True))


softmax_jacobian = Exercise(
    task="the slope of every weight with respect to every score",
    right=_right_jacobian,
    cases=(
        (np.array([0.0, 2.0]),),
        (np.array([3.0, 2.0, 3.0, 3.0]),),
        (np.array([1000.0, 1001.0]),),
        (np.array([[0.0, 2.0, 1.0], [4.0, 1.0, 1.0]]),),
        (np.cos(np.arange(30.0)).reshape(2, 5, 3),),
    ),
    mistakes=(
        Mistake(
            "only the diagonal",
            "raising one score lowers the other weights: the numbers beside the "
            "diagonal are not 0",
            _diagonal_only,
        ),
        Mistake(
            "a vector of slopes",
            "every weight depends on every score, so n scores give n by n slopes",
            _vector_of_slopes,
        ),
        Mistake(
            "a 1 in every cell",
            "here the other weights rise too: δ is 1 on the diagonal and 0 beside it",
            _ones_for_delta,
        ),
        Mistake(
            "the diagonal term is missing",
            "here a weight falls when its own score rises: diag(p) is missing",
            _without_diagonal_term,
        ),
        Mistake(
            "only the products",
            "these are the products p_j p_m: subtract them from diag(p)",
            _outer_only,
        ),
        Mistake(
            "a dot product for the outer product",
            "for one row p @ p.T is a single number, the dot product: multiply a "
            "column of weights by a row of weights",
            _dot_for_outer,
        ),
        Mistake(
            "the column twice",
            "here p_j is used twice, which gives p_j (δ - p_j): one of the two must be "
            "a row, p_m",
            _column_twice,
        ),
        Mistake(
            "the row twice",
            "here p_m is used twice, which gives p_m (δ - p_m): one of the two must be "
            "a column, p_j",
            _row_twice,
        ),
        Mistake(
            "ones on the diagonal",
            "you subtract the products from np.eye(n): multiply that by the weights "
            "first",
            _ones_on_the_diagonal,
        ),
        Mistake(
            "slopes of the logarithms",
            "these are the slopes of ln p_j: multiply each row by its weight p_j",
            _slopes_of_the_logarithms,
        ),
        Mistake(
            "slopes of the logarithms, transposed",
            "this is δ - p with the weights as a column: subtract them as a row, and "
            "then multiply each row by its own weight",
            _slopes_of_the_logarithms_on_their_side,
        ),
        Mistake(
            "sign reversed",
            "every sign is reversed: a weight should rise with its own score",
            _minus_jacobian,
        ),
        Mistake(
            "plus instead of minus",
            "the weights sum to 1, so the slopes of each column must sum to 0",
            _plus_outer,
        ),
        Mistake(
            "scores taken for weights",
            "the formula needs the weights, but you put the scores in",
            _without_softmax,
        ),
        Mistake(
            "one row only",
            "right for one row of scores, but not for axes in front, which np.diag and "
            "np.outer do not take, for example",
            _one_row_only,
        ),
        Mistake(
            "one unit for the whole batch",
            "the weights of all rows together sum to 1, but those of each row should",
            _one_unit_for_the_batch,
        ),
        Mistake(
            "no maximum subtracted",
            "the formula is right, but the exponentials overflow: subtract the largest "
            "score, or use mha.softmax",
            _unstable,
        ),
    ),
    reread=section(
        "softmax", "Deeper: the Jacobian, or which weights fall when one score rises"
    ),
    praise="each column sums to 0: a weight can grow only if others fall.",
)
