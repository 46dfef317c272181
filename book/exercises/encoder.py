"""Exercises on the encoder: a stack that reverses, decoder masks, ten bugs."""

import functools

import numpy as np

from exercises import chapter, section
from mha.check import Exercise, Mistake
from mha.masks import causal_mask, padding_mask
from mha.softmax import softmax

_BREAK_IT = section("encoder", "Break it")


# ------------------------------------------------------- reversal, sharp as you like


def _mirrored(n, factor):
    return factor * np.eye(n)[::-1]


def _needed(n, share):
    """Return the score that lifts one key to `share` where all others score 0."""
    return np.log(share * (n - 1) / (1 - share))


def _shares(n, share):
    """Return the weights that are asked for."""
    return np.where(np.eye(n)[::-1] > 0, share, (1 - share) / (n - 1))


def _weights(answer, n, share):
    """Return what token i gives token j; W_Q itself is not the only one that does."""
    W_Q = answer(n, share)
    if W_Q is None:
        return None
    S = np.asarray(W_Q, dtype=float) / np.sqrt(n)
    return softmax(S) if S.shape == (n, n) else S


mirror_queries = Exercise(
    task="W_Q with which every place looks at its mirror",
    right=lambda n, share: _mirrored(n, np.sqrt(n) * _needed(n, share)),
    cases=((2, 0.75), (3, 0.5), (5, 0.9)),
    names=("n", "share"),
    observe=_weights,
    mistakes=(
        Mistake(
            "copy",
            "every place looks at itself: that is copy, and the mirror of the first "
            "is the last",
            lambda n, share: np.sqrt(n) * _needed(n, share) * np.eye(n),
        ),
        Mistake(
            "no root",
            "the scores are divided by √d_k on their way, and here d_k is n",
            lambda n, share: _mirrored(n, _needed(n, share)),
        ),
        Mistake(
            "n others",
            "a row has n keys, so only n - 1 share what is left",
            lambda n, share: _mirrored(n, np.sqrt(n) * np.log(share * n / (1 - share))),
        ),
        Mistake(
            "one other",
            "the rest is shared by all other keys; your formula knows a single one",
            lambda n, share: _mirrored(n, np.sqrt(n) * np.log(share / (1 - share))),
        ),
        Mistake(
            "the share as a score",
            "a softmax makes shares from scores; put in is the score, not the share",
            lambda n, share: _mirrored(n, np.sqrt(n) * share),
        ),
        Mistake(
            "the log of the share",
            "the log of the share alone says nothing of what the others score",
            lambda n, share: _mirrored(n, np.sqrt(n) * np.log(share)),
        ),
        Mistake(
            "shifted",
            "the mirror of i is n - 1 - i, counted from 0: you are off by one",
            lambda n, share: np.roll(
                _mirrored(n, np.sqrt(n) * _needed(n, share)), 1, axis=1
            ),
        ),
        Mistake(
            "shifted to the left",
            "the mirror of i is n - 1 - i, counted from 0: you stop one short",
            lambda n, share: np.roll(
                _mirrored(n, np.sqrt(n) * _needed(n, share)), -1, axis=1
            ),
        ),
        Mistake(
            "divided by the root",
            "the scores are divided by √n anyway; multiply, to have it undone",
            lambda n, share: _mirrored(n, _needed(n, share) / np.sqrt(n)),
        ),
        Mistake(
            "times n",
            "the scores are divided by the root of d_k, and not by d_k",
            lambda n, share: _mirrored(n, n * _needed(n, share)),
        ),
        Mistake(
            "no logarithm",
            "that is how much larger e^s must be than e^0; expected s itself",
            lambda n, share: _mirrored(n, np.sqrt(n) * np.exp(_needed(n, share))),
        ),
        Mistake(
            "upside down",
            "here the mirror gets less than the others: turn the fraction round",
            lambda n, share: _mirrored(n, -np.sqrt(n) * _needed(n, share)),
        ),
        Mistake(
            "another logarithm",
            "a softmax takes powers of e, so it needs the natural logarithm",
            lambda n, share: _mirrored(n, np.sqrt(n) * _needed(n, share) / np.log(2)),
        ),
        Mistake(
            "the weights",
            "those are the weights that shall come out; a softmax is still to come",
            lambda n, share: _shares(n, share),
        ),
        Mistake(
            "the weights and the root",
            "the root is right, but a softmax of the weights is not the weights",
            lambda n, share: np.sqrt(n) * _shares(n, share),
        ),
        Mistake(
            "the score of the chapter",
            "a score of 4 was one example; here `share` says how high it must be",
            lambda n, share: _mirrored(n, 4 * np.sqrt(n)),
        ),
    ),
    reread=section("encoder", "By hand"),
    praise="a layer that reverses any sentence, and nothing was trained.",
)


# ------------------------------------------------------- how a bug is worked around


def _slots(n, n_heads):
    """Number the rows of all heads as they lie in memory, head by head."""
    return np.arange(n_heads * n).reshape(n_heads, n)


detour = Exercise(
    task="where each query looks, if the merge lacks its transpose",
    right=lambda n, n_heads: n - 1 - _slots(n, n_heads) // n_heads,
    cases=((2, 2), (6, 3), (12, 4), (5, 2)),
    mistakes=(
        Mistake(
            "no bug",
            "so would a right layer look; here row i of a head does not end in token i",
            lambda n, n_heads: np.tile(np.arange(n)[::-1], (n_heads, 1)),
        ),
        Mistake(
            "copy",
            "you say in which token each row ends; that token wants its mirror",
            lambda n, n_heads: _slots(n, n_heads) // n_heads,
        ),
        Mistake(
            "the place within the token",
            "the remainder says which piece of its token a row is, not which token",
            lambda n, n_heads: n - 1 - _slots(n, n_heads) % n_heads,
        ),
        Mistake(
            "cut by the number of tokens",
            "a token is made of n_heads rows, not of n",
            lambda n, n_heads: n - 1 - _slots(n, n_heads) // n,
        ),
        Mistake(
            "the same for all heads",
            "the second head begins where the first ends: count its rows on",
            lambda n, n_heads: np.tile(n - 1 - np.arange(n) // n_heads, (n_heads, 1)),
        ),
        Mistake(
            "n must divide",
            "a token may get its last rows from one head and its first from the one "
            "before",
            lambda n, n_heads: (
                n
                - 1
                - np.arange(n) // n_heads
                - (n // n_heads) * np.arange(n_heads)[:, None]
            ),
        ),
        Mistake(
            "off by one",
            "the mirror of token t is n - 1 - t: tokens are counted from 0",
            lambda n, n_heads: n - _slots(n, n_heads) // n_heads,
        ),
        Mistake(
            "a fraction",
            "a place is a whole number: rows of one token share it",
            lambda n, n_heads: n - 1 - _slots(n, n_heads) / n_heads,
        ),
        Mistake(
            "the sizes of the figure",
            "12 tokens and 4 heads were the example; here both are given",
            lambda n, n_heads: 11 - _slots(n, n_heads) // 4,
        ),
        Mistake(
            "each head turned round",
            "row 0 of a head comes before its row 1, and its token comes first too",
            lambda n, n_heads: (n - 1 - _slots(n, n_heads) // n_heads)[:, ::-1],
        ),
        Mistake(
            "heads turned round",
            "the first head lies first in memory, so it serves the first tokens",
            lambda n, n_heads: (n - 1 - _slots(n, n_heads) // n_heads)[::-1],
        ),
    ),
    reread=_BREAK_IT,
    praise="so a bug is learned: where to look instead.",
)


# ------------------------------------------------------- three laws for ten mistakes

_TEN = (
    "no_scale",
    "scale_sqrt_n",
    "scale_sqrt_d_model",
    "scale_after_softmax",
    "softmax_over_queries",
    "merge_without_transpose",
    "split_without_transpose",
    "input_split_before_projection",
    "tied_query_key",
    "no_output_projection",
)


@functools.cache
def _spares(slug, name):
    from mha import laws, zoo

    law = next(law for law in laws.ALL if law.slug == slug)
    return law.check(getattr(zoo, name)).holds


def _called(answer):
    """Return the slugs of the laws that were named, in text or as objects."""
    if isinstance(answer, str):
        answer = answer.replace(",", " ").split()
    if hasattr(answer, "slug"):
        answer = [answer]
    names = [str(getattr(law, "slug", law)).strip().lower() for law in answer]
    return [name.removeprefix("laws.") for name in names]


def _trial(answer):
    """Return who gets away, as text, or how many laws it takes to convict all."""
    from mha import laws

    called = _called(answer)
    if unknown := set(called) - {law.slug for law in laws.ALL}:
        raise ValueError(f"no law is called {min(unknown)!r}")
    free = [name for name in _TEN if all(_spares(slug, name) for slug in called)]
    if "equals_reference" in called:
        verdict = "equals_reference is among them"
    elif free:
        verdict = f"still free: {', '.join(free)}"
    else:
        verdict = (
            f"{'three' if len(called) <= 3 else 'more than three'} laws are enough"
        )
    return np.array(verdict)


convict_ten = Exercise(
    task="three laws that convict all ten",
    right=(
        "scores_keep_unit_variance",
        "parameters_ignore_heads",
        "future_leaves_past_alone",
    ),
    cases=((),),
    observe=_trial,
    mistakes=(
        Mistake(
            "the comparison",
            "equals_reference convicts them all, but it needs the right answer beside "
            "it: do without",
            ("equals_reference",),
        ),
        Mistake(
            "too many",
            "they are all convicted; three laws are enough for that",
            (
                "scores_keep_unit_variance",
                "parameters_ignore_heads",
                "future_leaves_past_alone",
                "rows_sum_to_one",
            ),
        ),
        Mistake(
            "rows for variance",
            "three wrong scales get away: their rows still sum to one",
            ("rows_sum_to_one", "parameters_ignore_heads", "future_leaves_past_alone"),
        ),
        Mistake(
            "causality alone",
            "a causal mask is kept by all who err within one row or one matrix",
            ("future_leaves_past_alone",),
        ),
        Mistake(
            "rows alone",
            f"the law of {chapter('softmax')} convicts two of the ten: read the row "
            "of each name",
            ("rows_sum_to_one",),
        ),
        Mistake(
            "variance alone",
            "the four with the wrong scale are caught; six are still free",
            ("scores_keep_unit_variance",),
        ),
        Mistake(
            "no law against the matrices",
            "three of them err in neither scale nor order: look at their matrices",
            (
                "scores_keep_unit_variance",
                "rows_sum_to_one",
                "future_leaves_past_alone",
            ),
        ),
    ),
    reread=section("encoder", "The law"),
    praise="ten convictions by three laws, and no reference implementation was asked.",
)


# ------------------------------------------------------- what a decoder may see


def _masks(lookers, sources):
    """Return a function of the lengths from what target and source may be seen."""
    return lambda n_target, lengths: (lookers(n_target), sources(n_target, lengths))


def _source(n_target, lengths):
    return padding_mask(lengths)


def _as_two_masks(answer, n_target, lengths):
    """Return a tuple of two bool arrays, or in words what came in their place."""
    found = answer(n_target, lengths)
    if found is None:
        return None
    if not isinstance(found, tuple | list) or len(found) != 2:
        return "not a pair"
    found = tuple(np.asarray(mask) for mask in found)
    if any(mask.dtype != bool for mask in found):
        return "a mask of numbers"
    return found


decoder_masks = Exercise(
    task="the two masks of a decoder that reads a padded source",
    right=_masks(causal_mask, _source),
    cases=((2, np.array([1])), (3, np.array([2, 4])), (4, np.array([3, 1, 2]))),
    names=("n_target", "lengths"),
    observe=_as_two_masks,
    mistakes=(
        Mistake(
            "numbers",
            "a mask of this book holds True and False: no 0 and 1, no -inf",
            lambda n, lengths: (causal_mask(n).astype(int), padding_mask(lengths)),
        ),
        Mistake(
            "one mask",
            "return two masks: targets and sources are asked by two attentions",
            lambda n, lengths: causal_mask(n),
        ),
        Mistake(
            "the masks exchanged",
            "first what targets see of each other, then what they see of the sources",
            lambda n, lengths: (padding_mask(lengths), causal_mask(n)),
        ),
        Mistake(
            "True hides",
            "True means may attend; both of your masks say where *not* to look",
            lambda n, lengths: (~causal_mask(n), ~padding_mask(lengths)),
        ),
        Mistake(
            "the future alone",
            "your targets see what comes after them, and nothing else",
            _masks(lambda n: ~causal_mask(n), _source),
        ),
        Mistake(
            "itself only",
            "a target token may see those before it as well",
            _masks(lambda n: np.eye(n, dtype=bool), _source),
        ),
        Mistake(
            "one token too many",
            "a source of length 2 has the places 0 and 1; you show place 2 as well",
            _masks(
                causal_mask,
                lambda n, lengths: (
                    np.arange(max(lengths)) <= lengths[:, None, None, None]
                ),
            ),
        ),
        Mistake(
            "one token too few",
            "you hide the last real token of each source",
            _masks(
                causal_mask,
                lambda n, lengths: padding_mask(lengths - 1, max(lengths)),
            ),
        ),
        Mistake(
            "as long as the target",
            "sources are padded to the longest source; the target has its own length",
            _masks(
                causal_mask,
                lambda n, lengths: np.arange(n) < lengths[:, None, None, None],
            ),
        ),
        Mistake(
            "no causal mask",
            "a target token must not see the targets behind it: it has to guess them",
            _masks(lambda n: np.ones((n, n), dtype=bool), _source),
        ),
        Mistake(
            "without the diagonal",
            "a target token may see itself, or the first one sees nothing",
            _masks(lambda n: np.tri(n, k=-1, dtype=bool), _source),
        ),
        Mistake(
            "the future only",
            "rows are queries: below the diagonal lies the past",
            _masks(lambda n: np.triu(np.ones((n, n), dtype=bool)), _source),
        ),
        Mistake(
            "causal source",
            "the whole source is known before the first word is written: hide its "
            "padding, and nothing else",
            _masks(
                causal_mask,
                lambda n, lengths: padding_mask(lengths) & causal_mask(n, max(lengths)),
            ),
        ),
        Mistake(
            "padding seen",
            "some sources are shorter than others, and no query may attend to padding",
            _masks(
                causal_mask,
                lambda n, lengths: np.ones_like(padding_mask(lengths)),
            ),
        ),
        Mistake(
            "padding turned round",
            "True means may attend; you have opened the padding and closed the words",
            _masks(causal_mask, lambda n, lengths: ~padding_mask(lengths)),
        ),
        Mistake(
            "rows hidden",
            "padding hides keys, that is columns; which queries look is another matter",
            _masks(
                causal_mask,
                lambda n, lengths: padding_mask(lengths).swapaxes(-1, -2),
            ),
        ),
    ),
    reread=section("encoder", "In practice"),
    praise="a causal mask at home and a padding mask abroad: that makes a decoder.",
)
