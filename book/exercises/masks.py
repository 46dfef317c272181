"""Exercises on masks: which word may attend to which."""

import numpy as np

from exercises import (
    Exercise,
    Law,
    chapter,
    each,
    learning,
    member,
    section,
    slips_of_the_zoo,
)
from exercises.engine import Unfit
from mha import softmax
from mha.masks import causal_mask, masked_softmax, padding_mask


def _filled(S, mask, value):
    """Softmax after `value` has replaced every hidden score."""
    S = np.where(mask, S, value)
    return _shares(np.exp(S - S.max(-1, keepdims=True)))


def _shares(e):
    return e / e.sum(-1, keepdims=True)


def _shares_of_seen(S, mask, top):
    e = np.exp(S - top) * mask
    return e / np.maximum(e.sum(-1, keepdims=True), 1e-300)


_TWO = np.array([[0.0, 1.0, 2.0], [3.0, 1.0, 1.0]])
_FAR = np.array([[0.0, 1.0, 2.0], [-2000.0, -2001.0, -2000.0]])
_CAUSAL = np.tri(2, 3, dtype=bool)

safe_masked_softmax = Exercise(
    task="a masked softmax that survives empty rows",
    axes=2,
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
    mistakes=slips_of_the_zoo(
        *("minus_1e9_mask", "mask_zero_score", "mask_after_softmax", "mask_inverted"),
        run=lambda member: member.steps["masked_softmax"],
    )
    | {
        "an empty row gets the softmax of all its scores; it should be "
        "zeros": lambda S, mask: _filled(
            S, mask | ~mask.any(-1, keepdims=True), -np.inf
        ),
        "in an empty row the total is 0, and 0 divided by 0 is NaN": lambda S, mask: (
            _filled(S, mask, -np.inf)
        ),
        "in an empty row the same number is added to all scores, which changes no "
        "weight; the hidden keys should get "
        "0": lambda S, mask: softmax(S + np.where(mask, 0, -1e9)),
        "in an empty row all scores are the same number, so its weights are equal, "
        "and not 0": lambda S, mask: _filled(S, mask, -1e300),
        "if all open scores are below your finite number, a hidden key gets all the "
        "weight": lambda S, mask: _filled(S, mask, -1e9) * mask.any(-1, keepdims=True),
        "your total can be 0, for example in an empty row; hide before the "
        "softmax": lambda S, mask: _shares(softmax(S) * mask),
        "two slips: in an empty row the total is 0, and 0 / 0 is NaN; and exp of a "
        "large score overflows": lambda S, mask: _shares(np.exp(S) * mask),
        "the largest score, which you subtract, may belong to a hidden key, and then "
        "exp of the others is rounded to "
        "0": lambda S, mask: _shares_of_seen(S, mask, S.max(-1, keepdims=True)),
        f"exp of a large score overflows: {chapter('softmax')} subtracts the "
        "largest score first": lambda S, mask: _shares_of_seen(S, mask, 0),  # F
    },
    reread=section("masks", "Break it"),
    praise="exact zeros, also in empty rows, and no score is too large or too low.",
)


def _past(lengths):
    return causal_mask(int(max(lengths)))


def _words(lengths):
    return padding_mask(lengths)[..., ::-1]


def _booleans(answer, *case):
    """Return the mask, and refuse one of numbers: 1.0 is not True."""
    mask = answer(*case)
    if np.asarray(mask).dtype.kind in "iuf":
        raise Unfit(
            "a mask of numbers is added to the scores, and adding 0 hides nothing: "
            "return booleans"
        )
    return mask


batch_mask = Exercise(
    task="one mask for the future and the padding",
    right=lambda lengths: _past(lengths) & _words(lengths),
    cases=((np.array([1, 2]),), (np.array([3]),), (np.array([2, 4, 1]),)),
    observe=_booleans,
    mistakes={
        "you hide the rows of the padding; hide its columns, so that no query attends "
        "to it": lambda lengths: _past(lengths) & _words(lengths).swapaxes(-1, -2),
        "the padding stands in front, so the last tokens of a row are "
        "words": lambda lengths: _past(lengths) & padding_mask(lengths),
        "a word may attend to itself, so the diagonal should be True for words": (
            lambda lengths: np.tri(max(lengths), k=-1, dtype=bool) & _words(lengths)
        ),
        "you turn one of two masks round, and ~ belongs in front of both": (
            lambda lengths: _past(lengths) | ~_words(lengths)
        ),
        "the padding is hidden, but later tokens are not": lambda lengths: (
            _words(lengths) & (_past(lengths) | True)
        ),
        "these are the later tokens: np.triu keeps the upper triangle, and np.tril "
        "keeps the lower one": lambda lengths: _past(lengths).T & _words(lengths),
        "these are the tokens that should be hidden, because np.triu(…, k=1) is True "
        "above the diagonal": lambda lengths: ~_past(lengths) & _words(lengths),
    },
    reread=section("masks", "Two masks at once"),
    praise="four axes, and True only where both masks allow it.",
    picture=learning.guessing_picture,
)


def _tri(n_q, n_k, k):
    return np.tri(n_q, n_k, k=k, dtype=bool)


last_rows_mask = Exercise(
    task="the causal mask of the last n_q of n_k tokens",
    right=lambda n_q, n_k: _tri(n_q, n_k, n_k - n_q),
    cases=((1, 3), (2, 2), (2, 5), (3, 2), (5, 7)),
    observe=_booleans,
    mistakes={
        "query 0 is not the first token: "
        "n_k - n_q tokens come before it": lambda n_q, n_k: _tri(n_q, n_k, 0),
        "these are the first rows of the square mask; "
        "return the last ones": lambda n_q, n_k: causal_mask(n_k)[:n_q],
        "right unless there are more queries than keys: the square mask has n_k rows "
        "only": lambda n_q, n_k: causal_mask(n_k)[-n_q:],
        "the diagonal is shifted the wrong way: with more keys than queries, each "
        "query may attend to more keys, "
        "not fewer": lambda n_q, n_k: _tri(n_q, n_k, n_q - n_k),
        "if there are more queries than keys, n_k - n_q is negative, and the first "
        "queries may attend to "
        "nothing": lambda n_q, n_k: _tri(n_q, n_k, max(n_k - n_q, 0)),
    },
    reread=section(
        "masks", "Deeper: causal masks that are not square, and NaN in padding"
    ),
    praise="the last query meets the last key, however many keys came before.",
)


def _of_ones(attend):
    """Return what `attend` makes of values that are all 1, under a causal mask."""
    Q, K, V = np.random.default_rng(4).normal(size=(3, 7, 3))
    return attend(Q, K, 0 * V + 1, mask=causal_mask(7))


denominator_law = Law(
    task="a law that a mask after the softmax breaks",
    right=lambda attend: np.allclose(_of_ones(attend), 1, atol=1e-5),
    cases=each(
        member("right"),
        member("mask_after_softmax"),
        member("right in float32"),
        member("no_scale"),
    ),
    mistakes={},
    blind={
        "V": "a hidden value has the weight 0 in the leak too: change a hidden key, or "
        "take it away",
        "": "your law is True of the leak: pass a mask, and ask what the weights of a "
        "query with a hidden key add up to",
    },
    vary=(),
    reread=section("masks", "Break it"),
    praise="your law detects the leak and raises no false alarm.",
)
