"""Exercises on masks: which word may attend to which."""

import numpy as np

from exercises import chapter, section
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
            "these are the weights without a mask; the third word may not attend to "
            "the fourth",
            np.array([2, 6, 1, 8]) / 17,
        ),
        Mistake(
            "mask after the softmax",
            "the zero is in its place, and the rest adds up to 9/17: over which words "
            "should the total run?",
            np.array([2, 6, 1, 0]) / 17,
        ),
        Mistake(
            "score 0 for the hidden word",
            "a score of 0 does not give a weight of 0, because exp(0) = 1",
            np.array([2, 6, 1, 1]) / 10,
        ),
        Mistake(
            "the word itself is hidden",
            "the third word may attend to itself too: its score with itself is 0, and "
            "exp(0) = 1",
            np.array([2, 6, 0, 0]) / 8,
        ),
        Mistake(
            "not divided",
            "these are the values of exp(score); divide each of them by their total",
            np.array([2.0, 6.0, 1.0, 0.0]),
        ),
        Mistake(
            "percentages",
            "these are percentages; weights of a row add up to 1, not to 100",
            np.array([22.22, 66.67, 11.11, 0]),
        ),
        Mistake(
            "rounded percentages",
            "these are percentages; a weight lies between 0 and 1",
            np.array([22.0, 67.0, 11.0, 0]),
        ),
        Mistake(
            "mask upside down",
            "here the third word attends to the one word that is hidden from it",
            np.array([0.0, 0.0, 0.0, 1.0]),
        ),
        Mistake(
            "scores divided by their sum",
            "weights are computed from exp(score), not from the scores themselves",
            np.append(np.log([2, 6, 1]), 0) / np.log(12),
        ),
        Mistake(
            "logarithms as weights",
            "these are the scores; the weights are exp(score), divided by their total",
            np.log([2, 6, 1, 8]),
        ),
        Mistake(
            "logarithms as weights, the last one hidden",
            "these are the scores of the words that are not hidden; the weights are "
            "exp(score), divided by their total",
            np.append(np.log([2, 6, 1]), 0),
        ),
        Mistake(
            "cut instead of rounded",
            "nearly: 6/9 is 0.667, which rounds to 0.67",
            np.array([0.22, 0.66, 0.11, 0]),
        ),
        Mistake(
            "rounded to one decimal",
            "nearly: give two decimals, or fractions such as 2/9",
            np.array([0.2, 0.7, 0.1, 0]),
        ),
    ),
    reread=section("masks", "By hand"),
    praise="2/9, 6/9 and 1/9: the total contains only what the word may attend to.",
)


# Write a masked softmax that survives an empty row


def _filled(S, mask, value):
    """Softmax after `value` has replaced every hidden score."""
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


def _plain(S, mask):
    e = np.exp(np.where(mask, S, -np.inf))
    return e / e.sum(-1, keepdims=True)


def _one_total_for_all(S, mask):
    S = np.where(mask, S, -np.inf)
    e = np.exp(S - S.max())
    return e / e.sum()


def _added_number(S, mask):
    return softmax(S + np.where(mask, 0, -1e9))


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
    forbidden=(masked_softmax, softmax),
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
            "in an empty row the total is 0, and 0 divided by 0 is NaN",
            lambda S, mask: _filled(S, mask, -np.inf),
        ),
        Mistake(
            "a large negative number for −∞",
            "in an empty row all scores are replaced by the same finite number, so the "
            "hidden keys get equal weights; they should get 0",
            lambda S, mask: _filled(S, mask, -1e9),
        ),
        Mistake(
            "a large negative number added",
            "in an empty row the same number is added to all scores, which changes no "
            "weight; the hidden keys should get 0",
            _added_number,
        ),
        Mistake(
            "no maximum, and NaN in an empty row",
            "in an empty row your total is 0, and 0 divided by 0 is NaN; and exp of a "
            "large score overflows, so subtract the largest score as in "
            f"{chapter('softmax')}",
            _plain,
        ),
        Mistake(
            "one total for the whole array",
            "each row needs a largest score and a total of its own: give max and sum "
            "axis=-1 and keepdims=True",
            _one_total_for_all,
        ),
        Mistake(
            "a finite number, and zeros afterwards",
            "if all open scores are below your finite number, a hidden key gets all "
            "the weight, and setting it to 0 leaves a row of zeros",
            lambda S, mask: _filled(S, mask, -1e9) * mask,
        ),
        Mistake(
            "score 0 for hidden pairs",
            "a hidden pair with score 0 still gets a weight, because exp(0) = 1",
            lambda S, mask: _filled(S, mask, 0),
        ),
        Mistake(
            "mask after the softmax",
            "the hidden weights are 0, but the others no longer add up to 1",
            lambda S, mask: softmax(S) * mask,
        ),
        Mistake(
            "softmax first, then renormalised",
            "your total can be 0: in an empty row, and where a hidden score is so "
            "large that all other terms are rounded to 0; hide before the softmax",
            _renormalised,
        ),
        Mistake(
            "the maximum of hidden scores too",
            "the largest score, which you subtract, may belong to a hidden key, and "
            "then exp of the others is rounded to 0",
            lambda S, mask: _shares_of_seen(S, mask, S.max(-1, keepdims=True)),
        ),
        Mistake(
            "no maximum subtracted",
            f"exp of a large score overflows: {chapter('softmax')} subtracts the "
            "largest score first",
            _without_max,
        ),
        Mistake(
            "no maximum subtracted, hidden terms set to 0",
            "exp of a large score is infinite, and infinity divided by infinity is "
            f"NaN: subtract the largest score first, as in {chapter('softmax')}",
            _without_max_where,
        ),
        Mistake(
            "one maximum for the whole array",
            "in a row with much lower scores than the others, every exp is rounded to "
            "0: subtract the largest score of each row",
            _one_max_for_all,
        ),
        Mistake(
            "mask upside down",
            "True means may attend; yours gives weight where the mask is False",
            lambda S, mask: masked_softmax(S, ~mask),
        ),
        Mistake(
            "mask ignored",
            "these are the weights without a mask",
            lambda S, mask: softmax(S),
        ),
        Mistake(
            "uniform weights in an empty row",
            "in an empty row you give equal weights to hidden keys; they should get 0",
            _uniform_when_empty,
        ),
        Mistake(
            "softmax over the queries",
            "your columns add up to 1; each row, which belongs to one query, should",
            _along_keys_axis_wrong,
        ),
        Mistake(
            "rounded weights",
            "these weights are rounded; return them with all their digits",
            lambda S, mask: np.round(masked_softmax(S, mask), 2),
        ),
    ),
    reread=section("masks", "Break it"),
    praise="exact zeros, also in empty rows, and no score is too large or too low.",
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


def _upper_triangle(lengths):
    n = int(max(lengths))
    return np.triu(np.ones((n, n), dtype=bool)) & _real_keys(lengths)


def _above_the_diagonal(lengths):
    n = int(max(lengths))
    return np.triu(np.ones((n, n), dtype=bool), k=1) & _real_keys(lengths)


def _padding_alone(lengths):
    n = int(max(lengths))
    return np.broadcast_to(_real_keys(lengths), (len(lengths), 1, n, n))


def _future_alone(lengths):
    n = int(max(lengths))
    return np.broadcast_to(causal_mask(n), (len(lengths), 1, n, n))


def _padding_upside_down(lengths):
    return causal_mask(int(max(lengths))) & ~_real_keys(lengths)


def _both_reversed(lengths):
    return (causal_mask(int(max(lengths))) & padding_mask(lengths))[..., ::-1]


def _batch_reversed(lengths):
    return causal_mask(int(max(lengths))) & padding_mask(lengths)[::-1]


def _open_diagonal(lengths):
    return _right_batch_mask(lengths) | np.eye(int(max(lengths)), dtype=bool)


def _always_four(lengths):
    first = 4 - np.reshape(lengths, (-1, 1, 1, 1))
    return causal_mask(4) & (np.arange(4) >= first)


def _mask_or_numbers(answer, *case):
    """Return the mask, and say so if it is made of numbers: 1.0 is not True."""
    mask = answer(*case)
    return "a mask of numbers" if np.asarray(mask).dtype.kind in "iuf" else mask


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
            "a query may attend to a key if both masks allow it; in yours one is "
            "enough",
            _either_mask,
        ),
        Mistake(
            "rows instead of columns",
            "you hide the rows of the padding; hide its columns, so that no query "
            "attends to it",
            _rows_for_columns,
        ),
        Mistake(
            "padding behind instead of in front",
            "the padding stands in front, so the last tokens of a row are words",
            lambda lengths: causal_mask(int(max(lengths))) & padding_mask(lengths),
        ),
        Mistake(
            "no axis for the heads",
            "the shape should be (batch, 1, n, n); the axis of length 1 is for the "
            "heads",
            lambda lengths: _right_batch_mask(lengths)[:, 0],
        ),
        Mistake(
            "no diagonal",
            "a word may attend to itself, so the diagonal should be True for words",
            _without_diagonal,
        ),
        Mistake(
            "padding alone",
            "the padding is hidden, but later tokens are not",
            _padding_alone,
        ),
        Mistake(
            "padding alone, for one row",
            "this hides the padding; combine it with a mask that hides later tokens",
            _real_keys,
        ),
        Mistake(
            "padding upside down",
            "later tokens are hidden correctly, but the padding is open and the words "
            "are hidden",
            _padding_upside_down,
        ),
        Mistake(
            "the causal mask reversed too",
            "you reversed the combined mask: reverse the padding mask alone, and then "
            "combine it with the causal mask",
            _both_reversed,
        ),
        Mistake(
            "the batch reversed",
            "[::-1] reverses the sentences of the batch; reverse the last axis",
            _batch_reversed,
        ),
        Mistake(
            "padding attends to itself",
            "here each padding token attends to itself, but padding should be hidden "
            "from every token",
            _open_diagonal,
        ),
        Mistake(
            "always four tokens",
            "your mask always has 4 tokens: n is the longest of the given lengths",
            _always_four,
        ),
        Mistake(
            "future alone",
            "later tokens are hidden, but the padding is not",
            _future_alone,
        ),
        Mistake(
            "numbers instead of booleans",
            "return booleans: a mask of numbers is added to the scores, and adding 0 "
            "hides nothing",
            lambda lengths: _right_batch_mask(lengths).astype(float),
        ),
        Mistake(
            "np.triu for np.tril",
            "these are the later tokens: np.triu keeps the upper triangle, and np.tril "
            "keeps the lower one",
            _upper_triangle,
        ),
        Mistake(
            "np.triu with k=1",
            "these are the tokens that should be hidden: np.triu(…, k=1) is True above "
            "the diagonal",
            _above_the_diagonal,
        ),
    ),
    reread=section("masks", "Two masks at once"),
    praise="four axes, and True only where both masks allow it.",
)


# Write the causal mask of the last rows, which a model that writes needs


def _right_last_rows(n_q, n_k):
    return np.tri(n_q, n_k, k=n_k - n_q, dtype=bool)


def _first_rows(n_q, n_k):
    return causal_mask(n_k)[:n_q]


def _not_below_zero(n_q, n_k):
    return np.tri(n_q, n_k, k=max(n_k - n_q, 0), dtype=bool)


def _distance(n_q, n_k):
    return np.tri(n_q, n_k, k=abs(n_k - n_q), dtype=bool)


def _cut_from_the_square(n_q, n_k):
    return causal_mask(n_k)[-n_q:]


def _cut_from_the_front(n_q, n_k):
    return causal_mask(n_k)[n_k - n_q :]


last_rows_mask = Exercise(
    task="the causal mask of the last n_q of n_k tokens",
    right=_right_last_rows,
    cases=((1, 3), (2, 2), (2, 5), (3, 2), (5, 7)),
    observe=_mask_or_numbers,
    mistakes=(
        Mistake(
            "counted from the first token",
            "query 0 is not the first token: n_k - n_q tokens come before it",
            lambda n_q, n_k: causal_mask(n_q, n_k),
        ),
        Mistake(
            "the first rows instead of the last",
            "these are the first rows of the square mask; return the last ones",
            _first_rows,
        ),
        Mistake(
            "no diagonal",
            "the last query is the last token and may attend to itself",
            lambda n_q, n_k: np.tri(n_q, n_k, k=n_k - n_q - 1, dtype=bool),
        ),
        Mistake(
            "one too many",
            "the last query but one may not attend to the last token",
            lambda n_q, n_k: np.tri(n_q, n_k, k=n_k - n_q + 1, dtype=bool),
        ),
        Mistake(
            "shifted the wrong way",
            "the diagonal is shifted the wrong way: with more keys than queries, each "
            "query may attend to more keys, not fewer",
            lambda n_q, n_k: np.tri(n_q, n_k, k=n_q - n_k, dtype=bool),
        ),
        Mistake(
            "upper triangle",
            "these are the token itself and later ones; it should be itself and "
            "earlier ones (np.tril, not np.triu)",
            lambda n_q, n_k: ~np.tri(n_q, n_k, k=n_k - n_q - 1, dtype=bool),
        ),
        Mistake(
            "True means hidden",
            "every entry is the opposite of what is expected: True means may attend",
            lambda n_q, n_k: ~_right_last_rows(n_q, n_k),
        ),
        Mistake(
            "everything open",
            "with one query all is True, but of several queries only the last may "
            "attend to all keys",
            lambda n_q, n_k: np.ones((n_q, n_k), dtype=bool),
        ),
        Mistake(
            "rows and columns swapped",
            "queries are rows: the shape is (n_q, n_k)",
            lambda n_q, n_k: _right_last_rows(n_q, n_k).T,
        ),
        Mistake(
            "numbers instead of booleans",
            "return booleans: a mask of numbers is added to the scores, and adding 0 "
            "hides nothing",
            lambda n_q, n_k: np.tri(n_q, n_k, k=n_k - n_q),
        ),
        Mistake(
            "more queries than keys, not shifted",
            "if there are more queries than keys, n_k - n_q is negative, and the first "
            "queries may attend to nothing",
            _not_below_zero,
        ),
        Mistake(
            "more queries than keys, shifted the wrong way",
            "n_k - n_q may be negative, and its sign matters: then the first queries "
            "may attend to nothing",
            _distance,
        ),
        Mistake(
            "fewer rows than queries",
            "a square of n_k rows has too few rows if there are more queries than "
            "keys: the first queries then need rows of False",
            _cut_from_the_square,
        ),
        Mistake(
            "the square cut at a negative row",
            "if n_k - n_q is negative, a slice counts from the end, so rows are "
            "missing: the first queries then need rows of False",
            _cut_from_the_front,
        ),
        Mistake(
            "np.triu for np.tril, not shifted",
            "np.triu keeps the upper triangle: use np.tril, and shift its diagonal so "
            "that the last query meets the last key",
            lambda n_q, n_k: np.triu(np.ones((n_q, n_k), dtype=bool)),
        ),
        Mistake(
            "np.triu with k=1, not shifted",
            "np.triu(…, k=1) is True for later tokens: use np.tril, and shift its "
            "diagonal so that the last query meets the last key",
            lambda n_q, n_k: np.triu(np.ones((n_q, n_k), dtype=bool), k=1),
        ),
    ),
    reread=section(
        "masks", "Deeper: causal masks that are not square, and NaN in padding"
    ),
    praise="the last query meets the last key, however many keys came before.",
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


def _hidden_law(attend):
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
        shape = *np.shape(Q)[:-1], np.shape(K)[-2]
        masked_softmax(np.zeros(shape), mask)  # all refuse what it does
        masks.append(mask)
        return _member(name)(Q, K, V, mask, **options)

    verdict = law(watched)
    if np.ndim(verdict) or verdict is None:
        return verdict if verdict is None else "one verdict per row"
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
        return "True, and False of correct attention"
    if not law(_member("mask_ignored")):
        return "True, having looked at the hidden weights only"
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
            "your law is also true of the mask after the softmax: what do the weights "
            "of a row add up to when some of them have been set to 0?",
            _shape_law,
        ),
        Mistake(
            "no mask given",
            "without a mask the two versions agree: call attend with a mask",
            _law_without_mask,
        ),
        Mistake(
            "only the hidden weights",
            "the hidden weights are 0 in both versions: look at the others",
            _hidden_law,
        ),
        Mistake(
            "false of correct attention",
            "a false alarm on correct attention: compare only outputs that must not "
            "change, allow for rounding, and remember that attend returns outputs, not "
            "weights",
            _exact_law,
        ),
        Mistake(
            "no room for float32",
            "a false alarm: in float32 results are exact only to about 1e-6, so allow "
            "for rounding",
            _narrow_law,
        ),
        Mistake(
            "equal to one particular attention",
            "a false alarm: attention without a scale treats its mask correctly, so "
            "this law should be True of it",
            _favourite_law,
        ),
        Mistake(
            "a sum of 1 in an empty row",
            "a false alarm: your mask has an empty row, whose weights add up to 0",
            _empty_row_law,
        ),
        Mistake(
            "verdict reversed",
            "True should mean that the law holds",
            lambda attend: not _right_law(attend),
        ),
        Mistake(
            "one verdict per row",
            "a law returns one verdict; yours returns one for each row",
            _law_of_each_row,
        ),
    ),
    reread=section("masks", "Break it"),
    praise="your law detects the leak and raises no false alarm.",
)
