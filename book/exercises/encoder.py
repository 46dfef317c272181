"""Exercises on the encoder: reversing by hand, decoder masks, ten bugs."""

import functools

import numpy as np

from exercises import Exercise, section
from exercises.engine import Unfit, Verdict
from mha import softmax
from mha.masks import causal_mask, padding_mask

_BREAK_IT = section("encoder", "Break it")
_KINDS = "Deeper: encoder-only, decoder-only and encoder–decoder models"


def _mirrored(n, score):
    """Return the W_Q with which the mirror of each position gets this score."""
    return np.sqrt(n) * score * np.eye(n)[::-1]


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
    right=lambda n, weight: _mirrored(n, _needed(n, weight)),
    cases=((2, 0.75), (3, 0.5), (5, 0.9)),
    observe=_weights,
    mistakes={
        "every position attends to itself, which copies; the mirror of the first "
        "position is the last": lambda n, w: _mirrored(n, _needed(n, w))[::-1],
        "right for two positions: with more of them, several share the rest": (
            lambda n, w: _mirrored(n, _needed(2, w))
        ),
        "this puts the weight where its score belongs; "
        "the softmax comes later": _mirrored,
        "these are the weights themselves, but a softmax is still to come": _asked_for,
    },
    reread=section("encoder", "How a broken layer could still write backwards"),
    praise="this reverses any sentence of n tokens, and nothing was trained.",
)


def _slots(n, h):
    """Number the rows of all heads as they lie in memory, head by head."""
    return np.arange(h * n).reshape(h, n)


detour = Exercise(
    task="where each query attends, if the merge lacks its transpose",
    right=lambda n, n_heads: n - 1 - _slots(n, n_heads) // n_heads,
    cases=((2, 2), (6, 3), (12, 4), (5, 2)),
    mistakes={
        "this is the token in which each row ends; "
        "that token needs its mirror": lambda n, h: _slots(n, h) // h,
        "correct attention would do this, but here row i of a head does not end in "
        "token i": lambda n, h: np.tile(np.arange(n)[::-1], (h, 1)),
        "a token may get its first rows from one head and its last from the next, when "
        "n is not a multiple of "
        "n_heads": lambda n, h: n - 1 - np.arange(n) // h - n // h * np.c_[:h],
    },
    reread=_BREAK_IT,
    praise="this is the staircase that training found.",
)


_TEN = (
    "no_scale scale_sqrt_n scale_sqrt_d_model scale_after_softmax softmax_over_queries "
    "merge_without_transpose split_without_transpose input_split_before_projection "
    "tied_query_key no_output_projection"
).split()
_THREE = (
    "scores_keep_unit_variance",
    "parameters_ignore_heads",
    "future_leaves_past_alone",
)


@functools.cache
def _satisfied(law, name):
    from mha import laws, zoo

    return not getattr(laws, law).breaks(getattr(zoo, name))


def _called(answer):
    """Return the names of the laws that were given, as text or as objects."""
    if isinstance(answer, str):
        answer = answer.replace(",", " ").split()
    if hasattr(answer, "name"):
        answer = [answer]
    names = [str(getattr(law, "name", law)).strip().lower() for law in answer]
    return [name.removeprefix("laws.") for name in names]


def _missed(called):
    """Return which of the ten satisfy all these laws."""
    from mha import laws

    if unknown := set(called) - {law.name for law in laws.ALL}:
        raise ValueError(f"no law is called {min(unknown)!r}")
    return [n for n in _TEN if all(_satisfied(law, n) for law in called)]


def _trial(answer):
    """Return how many of the ten are missed, and by how many laws."""
    called = _called(answer)
    if "equals_reference" in called:
        return "equals_reference is among them"
    return (len(_missed(called)), "at most three" if len(called) <= 3 else "more")


class _Laws(Exercise):
    """Say in the first line which of the ten are missed."""

    def judge(self, answer):
        verdict = super().judge(answer)
        try:
            missed = _missed(_called(answer))
        except Exception:  # not names of laws: the verdict says so
            return verdict
        if verdict.passed or verdict.mistake or not missed:
            return verdict
        headline = "each of these satisfies all laws that you named: "
        text = f"{headline}{', '.join(missed)}\n  reread    {self.reread}"
        return Verdict(verdict.status, text)


catch_ten = _Laws(
    task="three laws that find all ten",
    right=_THREE,
    cases=((),),
    observe=_trial,
    mistakes={
        "equals_reference finds all ten, but it needs a correct layer to compare with: "
        "do without it": ("equals_reference",),
        "these find all ten, but three laws are enough": (*_THREE, "rows_sum_to_one"),
    },
    reread=section("encoder", "What a law sees before any training"),
    praise="three laws find all ten, without a correct layer to compare with.",
)


def _as_two_masks(answer, n_target, lengths):
    """Return a tuple of two bool arrays, and say what else came in their place."""
    found = answer(n_target, lengths)
    if found is None:
        return None
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise Unfit("return two masks: to the target and to the source")
    found = tuple(np.asarray(mask) for mask in found)
    if any(mask.dtype != bool for mask in found):
        raise Unfit("a bool mask holds True and False, not 0 and 1 or -inf")
    return found


def _before(lengths, n):
    """Return which of n source tokens stand before these lengths."""
    return np.arange(n) < lengths[:, None, None, None]


def _with_target(mask_of):
    """Return an answer whose mask of the target is ``mask_of(n)``."""
    return lambda n, lengths: (mask_of(n), padding_mask(lengths))


def _with_source(mask_of):
    """Return an answer whose mask of the source is ``mask_of(n, lengths)``."""
    return lambda n, lengths: (causal_mask(n), mask_of(n, lengths))


decoder_masks = Exercise(
    task="the two masks of a decoder that reads a padded source",
    right=_with_target(causal_mask),
    cases=((2, np.array([1])), (3, np.array([2, 4])), (4, np.array([3, 1, 2]))),
    names=("n_target", "lengths"),
    observe=_as_two_masks,
    mistakes={
        "a target token may attend to itself; else the first attends to "
        "nothing": _with_target(lambda n: np.tri(n, k=-1, dtype=bool)),
        "a source of length 2 has the positions 0 and 1; you show position 2 "
        "too": _with_source(lambda n, lengths: _before(lengths + 1, max(lengths))),
        "a target token must not attend to the one after it: your diagonal is one "
        "place too far": _with_target(lambda n: np.tri(n, k=1, dtype=bool)),
    },
    reread=section("encoder", _KINDS),
    praise="a causal mask for the target and a padding mask for the source.",
)
