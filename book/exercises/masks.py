"""Exercises on masks: which word may attend to which."""

import numpy as np

from exercises import chapter, section
from mha._arrays import as_mask
from mha.attention import scaled_dot_product_attention
from mha.check import Exercise, Mistake
from mha.masks import causal_mask, masked_softmax, padding_mask
from mha.softmax import softmax

# Predict the weights of one row


causal_row = Exercise(
    task="the four weights of the third word",
    right=np.array([2, 6, 1, 0]) / 9,
    cases=((),),
    observe=lambda answer: np.round(np.asarray(answer, dtype=float), 2),
    mistakes=(
        Mistake(
            "no mask",
            "these four shares include the fourth word, which the third may not see",
            np.array([2, 6, 1, 8]) / 17,
        ),
        Mistake(
            "mask after the softmax",
            "the zero is in its place, and the rest adds up to 9/17: over which words "
            "should the total run?",
            np.array([2, 6, 1, 0]) / 17,
        ),
        Mistake(
            "score 0 for the covered word",
            "a score of 0 is not a share of 0, because exp(0) = 1",
            np.array([2, 6, 1, 1]) / 10,
        ),
        Mistake(
            "the word itself is covered",
            "the causal mask keeps the diagonal: a word may attend to itself",
            np.array([2, 6, 0, 0]) / 8,
        ),
        Mistake(
            "not divided",
            "these are the powers; a weight is a share of their total",
            np.array([2.0, 6.0, 1.0, 0.0]),
        ),
        Mistake(
            "mask upside down",
            "here the third word looks at the one word that it may not see",
            np.array([0.0, 0.0, 0.0, 1.0]),
        ),
        Mistake(
            "scores divided by their sum",
            "shares are made of exp(score), not of the scores themselves",
            np.append(np.log([2, 6, 1]), 0) / np.log(12),
        ),
    ),
    reread=section("masks", "By hand"),
    praise="2, 6 and 1 out of 9: the total runs over what the word may see.",
)


# Write a masked softmax that survives an empty row


def _filled(S, mask, value):
    """Softmax after `value` has taken the place of every covered score."""
    S = np.where(mask, S, value)
    e = np.exp(S - S.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _shares_of_seen(S, mask, top):
    e = np.exp(S - top) * mask
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def _along_keys_axis_wrong(S, mask):
    return masked_softmax(S, np.broadcast_to(mask, S.shape), axis=-2)


def _renormalised(S, mask):
    A = softmax(S) * mask
    return A / A.sum(-1, keepdims=True)


def _uniform_when_empty(S, mask):
    A = masked_softmax(S, mask)
    seen = np.broadcast_to(mask, S.shape).any(-1, keepdims=True)
    return np.where(seen, A, 1 / S.shape[-1])


def _without_max(S, mask):
    return _shares_of_seen(S, mask, 0)


def _without_max_where(S, mask):
    e = np.where(mask, np.exp(S), 0)
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def _one_max_for_all(S, mask):
    S = np.where(mask, S, -np.inf)
    top = S.max() if np.isfinite(S.max()) else 0
    return _shares_of_seen(S, mask, top)


_TWO = np.array([[0.0, 1.0, 2.0], [3.0, 1.0, 1.0]])
_FAR = np.array([[0.0, 1.0, 2.0], [-2000.0, -2001.0, -2000.0]])
_CAUSAL = np.tri(2, 3, dtype=bool)

safe_masked_softmax = Exercise(
    task="a masked softmax that survives empty rows",
    right=lambda S, mask: masked_softmax(S, mask),
    forbidden=(masked_softmax,),
    cases=(
        (np.array([[1.0, 2.0]]), np.array([[True, False]])),
        (_TWO, _CAUSAL),
        (np.array([[1.0, 2.0]]), np.array([[False, False]])),
        (_TWO, np.array([[True, True, False]])),
        (np.array([[1000.0, 1001.0, 1.0]]), np.array([[True, True, False]])),
        (np.array([[-3e9, -3e9, 5.0]]), np.array([[True, True, False]])),
        (np.array([[0.0, 1.0, 2000.0]]), np.array([[True, True, False]])),
        (_FAR, np.array([[True, False, True], [True, True, False]])),
        (np.sin(np.arange(30.0)).reshape(2, 3, 5), np.tri(3, 5, k=-1, dtype=bool)),
    ),
    mistakes=(
        Mistake(
            "NaN in an empty row",
            "a row that may attend to nothing is divided by a total of 0",
            lambda S, mask: _filled(S, mask, -np.inf),
        ),
        Mistake(
            "a large negative number for −∞",
            "where nothing is open all covered scores are equally large, so a finite "
            "number spreads the weight over what should be hidden",
            lambda S, mask: _filled(S, mask, -1e9),
        ),
        Mistake(
            "a finite number, crossed out afterwards",
            "where the open scores lie below your number, the covered key takes the "
            "whole unit and is then crossed out",
            lambda S, mask: _filled(S, mask, -1e9) * mask,
        ),
        Mistake(
            "score 0 for what is covered",
            "a covered score of 0 still counts: exp(0) = 1",
            lambda S, mask: _filled(S, mask, 0),
        ),
        Mistake(
            "mask after the softmax",
            "the covered weights are 0, and the others no longer add up to 1",
            lambda S, mask: softmax(S) * mask,
        ),
        Mistake(
            "softmax first, then renormalised",
            "a covered score can be so large that nothing is left of the others to "
            "divide again: cover first",
            _renormalised,
        ),
        Mistake(
            "the maximum of covered scores too",
            "the score that you subtract may itself be covered, and the others "
            "underflow",
            lambda S, mask: _shares_of_seen(S, mask, S.max(-1, keepdims=True)),
        ),
        Mistake(
            "no maximum subtracted",
            f"large scores overflow: {chapter('softmax')} subtracts the largest one "
            "first",
            _without_max,
        ),
        Mistake(
            "no maximum subtracted, covered powers set to 0",
            "a large open score overflows, and infinity through infinity is NaN: "
            f"{chapter('softmax')} has the remedy",
            _without_max_where,
        ),
        Mistake(
            "one maximum for the whole array",
            "a row far below the others loses all its powers: each row needs its own "
            "largest score",
            _one_max_for_all,
        ),
        Mistake(
            "mask upside down",
            "True means may attend; yours looks where the mask is False",
            lambda S, mask: masked_softmax(S, ~mask),
        ),
        Mistake(
            "mask ignored",
            "the weights are those without a mask",
            lambda S, mask: softmax(S),
        ),
        Mistake(
            "uniform weights in an empty row",
            "a row that may attend to nothing gets equal weights here, and "
            "zeros are expected",
            _uniform_when_empty,
        ),
        Mistake(
            "softmax over the queries",
            "your columns add up to 1; each query, a row, has one unit to share out",
            _along_keys_axis_wrong,
        ),
    ),
    reread=section("masks", "Break it"),
    praise="exact zeros, empty rows included, and no score is too large.",
)


# Mend a mask for a batch: future and padding, where True = may attend


def _real_keys(lengths):
    return padding_mask(lengths)[..., ::-1]


def _right_batch_mask(lengths):
    return causal_mask(int(max(lengths))) & _real_keys(lengths)


def _rows_for_columns(lengths):
    return causal_mask(int(max(lengths))) & _real_keys(lengths).swapaxes(-1, -2)


def _either_mask(lengths):
    return causal_mask(int(max(lengths))) | _real_keys(lengths)


def _without_diagonal(lengths):
    n = int(max(lengths))
    return np.tri(n, k=-1, dtype=bool) & _real_keys(lengths)


def _padding_alone(lengths):
    n = int(max(lengths))
    return np.broadcast_to(_real_keys(lengths), (len(lengths), 1, n, n))


def _future_alone(lengths):
    n = int(max(lengths))
    return np.broadcast_to(causal_mask(n), (len(lengths), 1, n, n))


def _mask_or_numbers(answer, *case):
    """Return the mask, and say so if it is made of numbers: 1.0 is not True."""
    mask = np.asarray(answer(*case))
    return ("a mask of numbers", mask) if mask.dtype.kind in "iuf" else mask


batch_mask = Exercise(
    task="one mask for the future and the padding",
    right=_right_batch_mask,
    cases=(
        (np.array([1, 2]),),
        (np.array([3]),),
        (np.array([2, 4, 1]),),
    ),
    observe=_mask_or_numbers,
    mistakes=(
        Mistake(
            "True means hidden",
            "every entry is the opposite of what is expected: True means may attend",
            lambda lengths: ~_right_batch_mask(lengths),
        ),
        Mistake(
            "or instead of and",
            "a pair is open if both masks allow it, and here one is enough",
            _either_mask,
        ),
        Mistake(
            "rows instead of columns",
            "you close the rows of the filler; its columns are what the others must "
            "not see",
            _rows_for_columns,
        ),
        Mistake(
            "filler behind instead of in front",
            "the filler stands in front: the last places of a row are the real ones",
            lambda lengths: causal_mask(int(max(lengths))) & padding_mask(lengths),
        ),
        Mistake(
            "no axis for the heads",
            "the shape should be (batch, 1, n, n): the 1 keeps a place for the heads",
            lambda lengths: _right_batch_mask(lengths)[:, 0],
        ),
        Mistake(
            "no diagonal",
            "a word may attend to itself; here it may not",
            _without_diagonal,
        ),
        Mistake(
            "padding alone",
            "the filler is hidden, and the future is still open",
            _padding_alone,
        ),
        Mistake(
            "future alone",
            "the future is hidden, and the filler is still open",
            _future_alone,
        ),
        Mistake(
            "numbers instead of booleans",
            "a mask of numbers is added to the scores, and a 0 leaves a score open",
            lambda lengths: _right_batch_mask(lengths).astype(float),
        ),
        Mistake(
            "numbers to be added",
            "0 and −∞ would do as a mask that is added to the scores; expected "
            "booleans",
            lambda lengths: np.where(_right_batch_mask(lengths), 0, -np.inf),
        ),
    ),
    reread=section("masks", "Two masks at once"),
    praise="four axes, and a pair is open only if both masks agree.",
)


# Write the causal mask of the last rows, which a model that writes needs


def _right_last_rows(n_q, n_k):
    return np.tri(n_q, n_k, k=n_k - n_q, dtype=bool)


def _first_rows(n_q, n_k):
    return causal_mask(n_k)[:n_q]


last_rows_mask = Exercise(
    task="the causal mask of the last n_q of n_k tokens",
    right=_right_last_rows,
    cases=((1, 3), (2, 2), (2, 5), (3, 2), (5, 7)),
    observe=_mask_or_numbers,
    mistakes=(
        Mistake(
            "counted from the first token",
            "query 0 is not the first token here: n_k - n_q tokens came before it",
            lambda n_q, n_k: causal_mask(n_q, n_k),
        ),
        Mistake(
            "the first rows for the last",
            "these are the first rows of the square mask, expected the last",
            _first_rows,
        ),
        Mistake(
            "no diagonal",
            "the last query is the last token and may attend to itself",
            lambda n_q, n_k: np.tri(n_q, n_k, k=n_k - n_q - 1, dtype=bool),
        ),
        Mistake(
            "one too many",
            "the row before the last may not look at the last token",
            lambda n_q, n_k: np.tri(n_q, n_k, k=n_k - n_q + 1, dtype=bool),
        ),
        Mistake(
            "shifted the wrong way",
            "there are more keys than queries, so each query sees more, not less",
            lambda n_q, n_k: np.tri(n_q, n_k, k=n_q - n_k, dtype=bool),
        ),
        Mistake(
            "upper triangle",
            "these are the tokens that come later, and the earlier ones are expected",
            lambda n_q, n_k: ~np.tri(n_q, n_k, k=n_k - n_q - 1, dtype=bool),
        ),
        Mistake(
            "True means hidden",
            "every entry is the opposite of what is expected: True means may attend",
            lambda n_q, n_k: ~_right_last_rows(n_q, n_k),
        ),
        Mistake(
            "everything open",
            "with one query all is open, but the first of several queries has a future",
            lambda n_q, n_k: np.ones((n_q, n_k), dtype=bool),
        ),
        Mistake(
            "rows and columns swapped",
            "queries are rows: the shape is (n_q, n_k)",
            lambda n_q, n_k: _right_last_rows(n_q, n_k).T,
        ),
        Mistake(
            "numbers instead of booleans",
            "a mask of numbers is added to the scores, and a 0 leaves a score open",
            lambda n_q, n_k: np.tri(n_q, n_k, k=n_k - n_q),
        ),
    ),
    reread=section("masks", "In practice"),
    praise="the last query lines up with the last key, whatever came before.",
)


# Write the law that a mask after the softmax breaks


def _inputs(n=7):
    rng = np.random.default_rng(4)
    return rng.normal(size=(3, n, 3))


def _right_law(attend):
    Q, K, V = _inputs()
    Y = attend(Q, K, np.ones_like(V), mask=causal_mask(len(Q)))
    return np.allclose(Y, 1, atol=1e-5)


def _shape_law(attend):
    Q, K, V = _inputs()
    return attend(Q, K, V, mask=causal_mask(len(Q))).shape == V.shape


def _law_without_mask(attend):
    Q, K, V = _inputs()
    return np.allclose(attend(Q, K, np.ones_like(V)), 1, atol=1e-5)


def _covered_law(attend):
    Q, K, V = _inputs()
    M = causal_mask(len(Q))
    _, A = attend(Q, K, V, mask=M, return_weights=True)
    return (A[~M] == 0).all()


def _exact_law(attend):
    Q, K, _ = _inputs(47)
    Y = attend(Q, K, np.full_like(Q, 0.1), mask=causal_mask(len(Q)))
    return (Y == 0.1).all()


def _narrow_law(attend):
    Q, K, _ = _inputs(47)
    Y = attend(Q, K, np.full_like(Q, 0.1), mask=causal_mask(len(Q)))
    return np.allclose(Y, 0.1, rtol=0, atol=1e-12)


def _favourite_law(attend):
    Q, K, V = _inputs()
    M = causal_mask(len(Q))
    wanted = scaled_dot_product_attention(Q, K, V, mask=M)
    return np.allclose(attend(Q, K, V, mask=M), wanted, atol=1e-5)


def _empty_row_law(attend):
    Q, K, V = _inputs()
    M = np.tri(len(Q), k=-1, dtype=bool)
    return np.allclose(attend(Q, K, np.ones_like(V), mask=M), 1, atol=1e-5)


def _law_of_each_row(attend):
    Q, K, V = _inputs()
    Y = attend(Q, K, np.ones_like(V), mask=causal_mask(len(Q)))
    return np.isclose(Y, 1, atol=1e-5).all(-1)


def _member(name):
    from mha import zoo  # only this law needs it

    name, _, rounded = name.partition(" in ")
    attend = getattr(zoo, name).attention

    def in_float32(Q, K, V, *args, **options):
        Q, K, V = (np.asarray(x, dtype=np.float32) for x in (Q, K, V))
        return attend(Q, K, V, *args, **options)

    return in_float32 if rounded else attend


def _verdict_on(law, name):
    """Return the verdict of `law`; where it errs, with the reason that can be seen."""
    masks = []

    def watched(Q, K, V, mask=None, **options):
        as_mask(mask, (*np.shape(Q)[:-1], np.shape(K)[-2]))  # all refuse what it does
        masks.append(mask)
        return _member(name)(Q, K, V, mask, **options)

    verdict = law(watched)
    if np.ndim(verdict) or verdict is None:
        return verdict if verdict is None else "one verdict a row"
    if name == "mask_after_softmax":
        return _missed(law, masks) if verdict else False
    if not verdict and any(_has_empty_row(mask) for mask in masks):
        return "False, for a row that may attend to nothing"
    return bool(verdict)


def _missed(law, masks):
    """Say what a law that lets the bug pass has looked at."""
    if masks and all(mask is None for mask in masks):
        return "True, and no mask was ever given"
    if not law(_member("right")):
        return "True, and False of right attention"
    if not law(_member("mask_ignored")):
        return "True, having looked at the covered weights"
    return True


def _has_empty_row(mask):
    return mask is not None and not np.any(mask, -1).all()


denominator_law = Exercise(
    task="a law that a mask after the softmax breaks",
    right=_right_law,
    cases=(
        ("right",),
        ("mask_after_softmax",),
        ("right in float32",),
        ("no_scale",),
    ),
    observe=_verdict_on,
    mistakes=(
        Mistake(
            "true of everything",
            "your law is true of the wrong version too: what becomes of a row when a "
            "part of its weights is crossed out?",
            _shape_law,
        ),
        Mistake(
            "no mask given",
            "without a mask there is no difference between the two: give attend one",
            _law_without_mask,
        ),
        Mistake(
            "only the covered weights",
            "the covered weights are 0 in both: look at those that remain",
            _covered_law,
        ),
        Mistake(
            "false of right attention",
            "a false alarm on right attention: compare only what may not notice the "
            "change, and leave room for rounding",
            _exact_law,
        ),
        Mistake(
            "no room for float32",
            "a false alarm: in float32 sums of shares are exact only up to about 1e-6",
            _narrow_law,
        ),
        Mistake(
            "equal to one particular attention",
            "a false alarm: attention without a scale masks as it should, and this law "
            "must let it pass",
            _favourite_law,
        ),
        Mistake(
            "one unit in an empty row",
            "a false alarm: a row that may attend to nothing has nothing to share out",
            _empty_row_law,
        ),
        Mistake(
            "verdict reversed",
            "True should mean that the law holds",
            lambda attend: not _right_law(attend),
        ),
        Mistake(
            "one verdict a row",
            "a law gives one verdict, and here is one for each row",
            _law_of_each_row,
        ),
    ),
    reread=section("masks", "Break it"),
    praise="your law hears the denominator and raises no false alarm.",
)
