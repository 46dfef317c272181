"""Exercises on the encoder: reversing by hand, decoder masks, ten bugs."""

import functools

import numpy as np

from exercises import chapter, section
from mha.check import Exercise, Mistake, Verdict
from mha.masks import causal_mask, padding_mask
from mha.softmax import softmax

_BREAK_IT = section("encoder", "Break it")
_KINDS = "Deeper: encoder-only, decoder-only and encoder–decoder models"


# ------------------------------------------------------- reversal, as sharp as you like


def _mirrored(n, factor):
    return factor * np.eye(n)[::-1]


def _needed(n, weight):
    """Return the score that gives one key `weight` when all others score 0."""
    return np.log(weight * (n - 1) / (1 - weight))


def _asked_for(n, weight):
    """Return the weights that are asked for."""
    return np.where(np.eye(n)[::-1] > 0, weight, (1 - weight) / (n - 1))


def _weights(answer, n, weight):
    """Return what token i gives token j; W_Q itself is not the only one that does."""
    W_Q = answer(n, weight)
    if W_Q is None:
        return None
    S = np.asarray(W_Q, dtype=float) / np.sqrt(n)
    return softmax(S) if S.shape == (n, n) else S


mirror_queries = Exercise(
    task="W_Q with which every position attends to its mirror",
    right=lambda n, weight: _mirrored(n, np.sqrt(n) * _needed(n, weight)),
    cases=((2, 0.75), (3, 0.5), (5, 0.9)),
    names=("n", "weight"),
    observe=_weights,
    mistakes=(
        Mistake(
            "copy",
            "every position attends to itself, which copies; the mirror of the first "
            "position is the last",
            lambda n, weight: np.sqrt(n) * _needed(n, weight) * np.eye(n),
        ),
        Mistake(
            "no root",
            "the scores are divided by √d_k before the softmax, and here d_k is n",
            lambda n, weight: _mirrored(n, _needed(n, weight)),
        ),
        Mistake(
            "n others",
            "the rest is divided among the n - 1 other keys, not among n",
            lambda n, weight: _mirrored(
                n, np.sqrt(n) * np.log(weight * n / (1 - weight))
            ),
        ),
        Mistake(
            "one other",
            "the rest is divided among all other keys; your formula has one other key",
            lambda n, weight: _mirrored(n, np.sqrt(n) * np.log(weight / (1 - weight))),
        ),
        Mistake(
            "the weight as a score",
            "this puts the weight where its score belongs; the softmax comes later",
            lambda n, weight: _mirrored(n, np.sqrt(n) * weight),
        ),
        Mistake(
            "the weight alone",
            "W_Q holds scores, not weights: which score becomes this weight, and what "
            "undoes the division by √n?",
            lambda n, weight: _mirrored(n, weight),
        ),
        Mistake(
            "the log of the weight",
            "log(weight) would be right if the other scores were log(rest / (n - 1)); "
            "yours are 0",
            lambda n, weight: _mirrored(n, np.sqrt(n) * np.log(weight)),
        ),
        Mistake(
            "shifted",
            "the mirror of i is n - 1 - i, counted from 0; yours is one more",
            lambda n, weight: np.roll(
                _mirrored(n, np.sqrt(n) * _needed(n, weight)), 1, axis=1
            ),
        ),
        Mistake(
            "shifted to the left",
            "the mirror of i is n - 1 - i, counted from 0; yours is one less",
            lambda n, weight: np.roll(
                _mirrored(n, np.sqrt(n) * _needed(n, weight)), -1, axis=1
            ),
        ),
        Mistake(
            "divided by the root",
            "the scores are divided by √n anyway, so multiply by √n to undo it",
            lambda n, weight: _mirrored(n, _needed(n, weight) / np.sqrt(n)),
        ),
        Mistake(
            "times n",
            "the scores are divided by √n, so multiply by √n and not by n",
            lambda n, weight: _mirrored(n, n * _needed(n, weight)),
        ),
        Mistake(
            "no logarithm",
            "this is e^s, the exponential of the score; W_Q needs the score s itself",
            lambda n, weight: _mirrored(n, np.sqrt(n) * np.exp(_needed(n, weight))),
        ),
        Mistake(
            "upside down",
            "with this sign the mirror gets less than the others: invert the fraction",
            lambda n, weight: _mirrored(n, -np.sqrt(n) * _needed(n, weight)),
        ),
        Mistake(
            "another logarithm",
            "a softmax takes powers of e, so use the natural logarithm",
            lambda n, weight: _mirrored(n, np.sqrt(n) * _needed(n, weight) / np.log(2)),
        ),
        Mistake(
            "the weights",
            "these are the weights themselves, but a softmax is still to come",
            lambda n, weight: _asked_for(n, weight),
        ),
        Mistake(
            "the weights and the root",
            "the root is right, but the softmax of the weights is not the weights",
            lambda n, weight: np.sqrt(n) * _asked_for(n, weight),
        ),
        Mistake(
            "the score of the chapter",
            "the score 4 was the example of the chapter; here it follows from `weight`",
            lambda n, weight: _mirrored(n, 4 * np.sqrt(n)),
        ),
    ),
    reread=section("encoder", "By hand"),
    praise="this reverses any sentence of n tokens, and nothing was trained.",
)


# ------------------------------------------------------- how a bug is worked around


def _slots(n, n_heads):
    """Number the rows of all heads as they lie in memory, head by head."""
    return np.arange(n_heads * n).reshape(n_heads, n)


detour = Exercise(
    task="where each query attends, if the merge lacks its transpose",
    right=lambda n, n_heads: n - 1 - _slots(n, n_heads) // n_heads,
    cases=((2, 2), (6, 3), (12, 4), (5, 2)),
    mistakes=(
        Mistake(
            "no bug",
            "correct attention would do this, but here row i of a head does not end in "
            "token i",
            lambda n, n_heads: np.tile(np.arange(n)[::-1], (n_heads, 1)),
        ),
        Mistake(
            "copy",
            "this is the token in which each row ends; that token needs its mirror",
            lambda n, n_heads: _slots(n, n_heads) // n_heads,
        ),
        Mistake(
            "the place within the token",
            "the remainder says which part of its token a row becomes, not which token",
            lambda n, n_heads: n - 1 - _slots(n, n_heads) % n_heads,
        ),
        Mistake(
            "cut by the number of tokens",
            "a token is made of n_heads rows, not of n",
            lambda n, n_heads: n - 1 - _slots(n, n_heads) // n,
        ),
        Mistake(
            "the same for all heads",
            "number the rows of head 2 on from those of head 1",
            lambda n, n_heads: np.tile(n - 1 - np.arange(n) // n_heads, (n_heads, 1)),
        ),
        Mistake(
            "n must divide",
            "a token may get its first rows from one head and its last from the next, "
            "when n is not a multiple of n_heads",
            lambda n, n_heads: (
                n
                - 1
                - np.arange(n) // n_heads
                - (n // n_heads) * np.arange(n_heads)[:, None]
            ),
        ),
        Mistake(
            "off by one",
            "the mirror of token t is n - 1 - t, because tokens count from 0",
            lambda n, n_heads: n - _slots(n, n_heads) // n_heads,
        ),
        Mistake(
            "a fraction",
            "a position is a whole number: divide with //",
            lambda n, n_heads: n - 1 - _slots(n, n_heads) / n_heads,
        ),
        Mistake(
            "the sizes of the figure",
            "12 tokens and 4 heads were the example; use n and n_heads",
            lambda n, n_heads: 11 - _slots(n, n_heads) // 4,
        ),
        Mistake(
            "each head turned round",
            "within a head, earlier rows end in earlier tokens; yours are reversed",
            lambda n, n_heads: (n - 1 - _slots(n, n_heads) // n_heads)[:, ::-1],
        ),
        Mistake(
            "heads turned round",
            "head 1 comes first in memory, so it makes the first tokens; yours is last",
            lambda n, n_heads: (n - 1 - _slots(n, n_heads) // n_heads)[::-1],
        ),
    ),
    reread=_BREAK_IT,
    praise="this is the staircase that training found.",
)


# ------------------------------------------------------- three laws for ten bugs

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


_MISSED = "missed: "


@functools.cache
def _satisfied(slug, name):
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
    """Return which versions satisfy all these laws, or how many laws find all ten."""
    from mha import laws

    called = _called(answer)
    if unknown := set(called) - {law.slug for law in laws.ALL}:
        raise ValueError(f"no law is called {min(unknown)!r}")
    missed = [n for n in _TEN if all(_satisfied(slug, n) for slug in called)]
    if "equals_reference" in called:
        verdict = "equals_reference is among them"
    elif missed:
        verdict = f"{_MISSED}{', '.join(missed)}"
    else:
        verdict = (
            f"{'three' if len(called) <= 3 else 'more than three'} laws find all ten"
        )
    return np.array(verdict)


class _Laws(Exercise):
    """Say in the first line which of the ten are missed."""

    def judge(self, answer):
        verdict = super().judge(answer)
        if verdict.passed or verdict.mistake:
            return verdict
        try:
            found = str(_trial(answer))
        except Exception:  # not names of laws: the verdict says so
            return verdict
        if not found.startswith(_MISSED):
            return verdict
        names = found.removeprefix(_MISSED)
        headline = f"each of these satisfies all laws that you named: {names}"
        return Verdict(verdict.status, f"{headline}\n  reread    {self.reread}")


catch_ten = _Laws(
    task="three laws that find all ten",
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
            "equals_reference finds all ten, but it needs a correct layer to compare "
            "with: do without it",
            ("equals_reference",),
        ),
        Mistake(
            "too many",
            "these find all ten, but three laws are enough",
            (
                "scores_keep_unit_variance",
                "parameters_ignore_heads",
                "future_leaves_past_alone",
                "rows_sum_to_one",
            ),
        ),
        Mistake(
            "rows for variance",
            "three wrong scales are missed, because their rows still sum to one",
            ("rows_sum_to_one", "parameters_ignore_heads", "future_leaves_past_alone"),
        ),
        Mistake(
            "causality alone",
            "this finds only the three versions that mix tokens; seven are missed",
            ("future_leaves_past_alone",),
        ),
        Mistake(
            "rows alone",
            f"the law of {chapter('softmax')} finds two of the ten: print the list of "
            "each name",
            ("rows_sum_to_one",),
        ),
        Mistake(
            "variance alone",
            "this finds the four with a wrong scale; six are missed",
            ("scores_keep_unit_variance",),
        ),
        Mistake(
            "no law against the matrices",
            "three have neither a wrong scale nor mixed tokens: look for a law about "
            "their matrices",
            (
                "scores_keep_unit_variance",
                "rows_sum_to_one",
                "future_leaves_past_alone",
            ),
        ),
    ),
    reread=section("encoder", "The law"),
    praise="three laws find all ten, without a correct layer to compare with.",
)


# ------------------------------------------------------- what a decoder may see


def _masks(targets, sources):
    """Return a function that makes the mask of the target and that of the source."""
    return lambda n_target, lengths: (targets(n_target), sources(n_target, lengths))


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
            "a bool mask holds True and False, not 0 and 1 or -inf",
            lambda n, lengths: (causal_mask(n).astype(int), padding_mask(lengths)),
        ),
        Mistake(
            "one mask",
            "return two masks, because there are two attentions: to the target and to "
            "the source",
            lambda n, lengths: causal_mask(n),
        ),
        Mistake(
            "the masks exchanged",
            "the mask between target tokens comes first, the mask to the source second",
            lambda n, lengths: (padding_mask(lengths), causal_mask(n)),
        ),
        Mistake(
            "True hides",
            "True means may attend; in both of your masks it means hidden",
            lambda n, lengths: (~causal_mask(n), ~padding_mask(lengths)),
        ),
        Mistake(
            "the future alone",
            "your target tokens attend to later tokens only",
            _masks(lambda n: ~causal_mask(n), _source),
        ),
        Mistake(
            "itself only",
            "a target token may attend to earlier target tokens as well",
            _masks(lambda n: np.eye(n, dtype=bool), _source),
        ),
        Mistake(
            "one token too many",
            "a source of length 2 has the positions 0 and 1; you show position 2 too",
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
            "the second mask has one column for each source token, up to the longest",
            _masks(
                causal_mask,
                lambda n, lengths: np.arange(n) < lengths[:, None, None, None],
            ),
        ),
        Mistake(
            "no causal mask",
            "a target token must not attend to later ones, which it has to guess",
            _masks(lambda n: np.ones((n, n), dtype=bool), _source),
        ),
        Mistake(
            "without the diagonal",
            "a target token may attend to itself; else the first attends to nothing",
            _masks(lambda n: np.tri(n, k=-1, dtype=bool), _source),
        ),
        Mistake(
            "the future only",
            "rows are queries, so the past is below the diagonal",
            _masks(lambda n: np.triu(np.ones((n, n), dtype=bool)), _source),
        ),
        Mistake(
            "causal source",
            "the whole source is known before the first target word is written, so "
            "hide its padding only",
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
            "in the mask of the source True means may attend; yours hides the words",
            _masks(causal_mask, lambda n, lengths: ~padding_mask(lengths)),
        ),
        Mistake(
            "rows hidden",
            "padding is hidden as keys, so the lengths belong along the last axis",
            _masks(
                causal_mask,
                lambda n, lengths: padding_mask(lengths).swapaxes(-1, -2),
            ),
        ),
    ),
    reread=section("encoder", _KINDS),
    praise="a causal mask for the target and a padding mask for the source.",
)
