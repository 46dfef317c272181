"""Exercises on softmax: how scores become weights."""

import numpy as np

from exercises import section
from mha.attention import scaled_dot_product_attention
from mha.check import Exercise, Mistake
from mha.softmax import softmax

# Write a softmax along any axis, for scores of any size


def _shares(x, axis, top):
    e = np.exp(x - top)
    return e / e.sum(axis, keepdims=True)


def _right_softmax(x, axis):
    return _shares(x, axis, x.max(axis, keepdims=True))


def _without_max(x, axis):
    return _shares(x, axis, 0)


def _one_max_for_all(x, axis):
    return _shares(x, axis, x.max())


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


def _smallest_subtracted(x, axis):
    return _shares(x, axis, x.min(axis, keepdims=True))


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
    ),
    mistakes=(
        Mistake(
            "no maximum subtracted",
            "a large score overflows: which shift of the scores changes no share?",
            _without_max,
        ),
        Mistake(
            "one maximum for the whole array",
            "a row far below the largest score of another row is left with 0/0: "
            "each row needs its own shift",
            _one_max_for_all,
        ),
        Mistake(
            "the last axis, whatever was asked",
            "your shares always sum to 1 along the last axis: where does axis go?",
            _always_last_axis,
        ),
        Mistake(
            "the first axis, whatever was asked",
            "your shares always sum to 1 along the first axis: where does axis go?",
            _always_first_axis,
        ),
        Mistake(
            "one unit for the whole array",
            "the whole array shares a single unit here, and each row should have one",
            _one_unit_for_all,
        ),
        Mistake(
            "the summed axis is gone",
            "after the sum an axis is missing, so the division pairs the wrong "
            "entries: keep the axis with length 1",
            _axis_dropped,
        ),
        Mistake(
            "the axis of maximum and sum is gone",
            "the maximum of a row is subtracted from other rows here: after max and "
            "sum an axis is missing",
            _both_axes_dropped,
        ),
        Mistake(
            "another number than the largest subtracted",
            "a score can still overflow: after your shift some scores are large",
            _smallest_subtracted,
        ),
        Mistake(
            "not divided",
            "these powers do not sum to 1 yet: what makes shares of them?",
            _not_divided,
        ),
        Mistake(
            "no exponential",
            "scores divided by their sum are not yet shares: a score may be negative, "
            "a share may not",
            _plain_fractions,
        ),
        Mistake(
            "logarithms of the shares",
            "these are logarithms of shares: a share is positive",
            _logarithm,
        ),
        Mistake(
            "winner takes all",
            "this is the hard choice: the scores below the largest get nothing",
            _winner_takes_all,
        ),
    ),
    reread=section("softmax", "Break it"),
    praise="your softmax shares one unit along any axis and survives any score.",
)


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
            "9 is as much as the other three scores together, and it is not the "
            "scores that are added up, but what?",
            9.0,
        ),
        Mistake(
            "one rival instead of three",
            "twice the exponential of one rival is not enough: there are three",
            3 + np.log(2),
        ),
        Mistake(
            "counted from the old score",
            "the distance is right, but it counts from the score of the rivals",
            2 + np.log(3),
        ),
        Mistake(
            "the distance alone",
            "this is the distance to the rivals, expected the score itself",
            np.log(3),
        ),
        Mistake(
            "one more than the rivals",
            "a lead of 1 gives food e times the share of one rival, a bit less than "
            "all three together",
            4.0,
        ),
        Mistake(
            "the power for the score",
            "this is the power e^s that food needs, expected s itself",
            3 * np.exp(3),
        ),
        Mistake(
            "twice the score of the rivals",
            "shares follow the differences of the scores; twice a score means "
            "something else after every shift",
            6.0,
        ),
    ),
    reread=section("softmax", "The equation"),
    praise="food needs e^s = 3 e^3, so s = 3 + ln 3 = 4.099.",
)


# Derive the temperature that gives the largest share a stated size


def _right_temperature(gap, n, share):
    return gap / np.log(share * (n - 1) / (1 - share))


temperature_for = Exercise(
    task="the temperature at which the leader gets a stated share",
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
            "right for two words: with n words the leader has n - 1 rivals",
            lambda gap, n, share: gap / np.log(share / (1 - share)),
        ),
        Mistake(
            "the leader counted as a rival",
            "the leader is not its own rival",
            lambda gap, n, share: gap / np.log(share * n / (1 - share)),
        ),
        Mistake(
            "the rivals on the wrong side",
            "the more rivals, the less is left for each: on which side of the "
            "fraction do they stand?",
            lambda gap, n, share: gap / np.log(share / ((1 - share) * (n - 1))),
        ),
        Mistake(
            "odds upside down",
            "a negative temperature would favour the lowest score: which of the two "
            "shares belongs on top?",
            lambda gap, n, share: gap / np.log((1 - share) / (share * (n - 1))),
        ),
        Mistake(
            "one over the temperature",
            "this number multiplies the scores, and a temperature divides them",
            lambda gap, n, share: np.log(share * (n - 1) / (1 - share)) / gap,
        ),
        Mistake(
            "multiplied by the gap",
            "solve gap / T = ln(...) for T once more",
            lambda gap, n, share: gap * np.log(share * (n - 1) / (1 - share)),
        ),
        Mistake(
            "the share without the rest",
            "the logarithm needs the leader's share against a rival's share, not the "
            "share alone",
            lambda gap, n, share: -gap / np.log(share),
        ),
        Mistake(
            "another base of the logarithm",
            "softmax is built on e, so its inverse is the natural logarithm",
            lambda gap, n, share: gap / np.log10(share * (n - 1) / (1 - share)),
        ),
    ),
    reread=section("softmax", "The equation"),
    praise="you turned softmax round: from a share back to a temperature.",
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
    return (_weights(attend, 47, 43).sum(-1) == 1).all()


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

    name, _, rounded = attend.partition(" in ")
    member = getattr(zoo, name).attention

    def in_float32(Q, K, V, *args, **options):
        Q, K, V = (np.asarray(x, dtype=np.float32) for x in (Q, K, V))
        return member(Q, K, V, *args, **options)

    verdict = law(in_float32 if rounded else member)
    return "one verdict a row" if np.ndim(verdict) else verdict


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
            "your law is true of the wrong version too: what does the axis of the "
            "softmax decide?",
            _shape_law,
        ),
        Mistake(
            "columns instead of rows",
            "these sums belong to the keys, and it is each query that has one unit to "
            "share out",
            _columns_law,
        ),
        Mistake(
            "only the grand total",
            "with as many queries as keys the total is the same in both versions, and "
            "with symmetric scores each row is: let n_q and n_k differ",
            _total_law,
        ),
        Mistake(
            "equal to one particular attention",
            "a false alarm: attention without a scale shares out one unit a row as "
            "well, and this law must let it pass",
            _own_favourite_law,
        ),
        Mistake(
            "false of right attention",
            "a false alarm on right attention: look at what attend returns, and leave "
            "room for rounding",
            _exact_law,
        ),
        Mistake(
            "no room for float32",
            "a false alarm: float32 rounds, so a sum of shares is 1 only up to about "
            "1e-6",
            _narrow_law,
        ),
        Mistake(
            "too much room in the hull",
            "rows that sum to less than 1 pass your law, because their outputs may "
            "still lie between the values: which values leave them no room?",
            _hull_law,
        ),
        Mistake(
            "verdict reversed",
            "True should mean that the law holds",
            _reversed_law,
        ),
        Mistake(
            "one verdict a row",
            "a law gives one verdict, and here is one for each row",
            _law_of_each_row,
        ),
    ),
    reread=section("softmax", "The law"),
    praise="your law catches the wrong axis and raises no false alarm.",
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


def _unstable(s):
    return _jacobian_of(np.exp(s) / np.exp(s).sum(-1, keepdims=True))


softmax_jacobian = Exercise(
    task="the slope of every share with respect to every score",
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
            "raising one score lowers the other shares: the cells beside the diagonal "
            "are not 0",
            _diagonal_only,
        ),
        Mistake(
            "a vector of slopes",
            "every share depends on every score, so n scores give n by n slopes",
            _vector_of_slopes,
        ),
        Mistake(
            "a 1 in every cell",
            "here the other shares rise too: δ is 1 on the diagonal, and beside it?",
            _ones_for_delta,
        ),
        Mistake(
            "the diagonal term is missing",
            "here a share falls when its own score rises: what does the own score add?",
            _without_diagonal_term,
        ),
        Mistake(
            "sign reversed",
            "every sign is turned round: a share rises with its own score",
            _minus_jacobian,
        ),
        Mistake(
            "plus instead of minus",
            "the shares sum to 1, so the slopes of each row must sum to 0",
            _plus_outer,
        ),
        Mistake(
            "scores taken for shares",
            "the formula speaks of shares, and it was fed the scores",
            _without_softmax,
        ),
        Mistake(
            "one row only",
            "right for one row: np.diag and np.outer know no leading axes",
            _one_row_only,
        ),
        Mistake(
            "one unit for the whole batch",
            "each row of scores has its own unit, and here all rows share one",
            _one_unit_for_the_batch,
        ),
        Mistake(
            "no maximum subtracted",
            "the formula is right, but these shares overflow: let the package make "
            "them",
            _unstable,
        ),
    ),
    reread=section("softmax", "Experiment: who pays when a score rises?"),
    praise="each row of your table sums to 0: a share grows only at others' expense.",
)
