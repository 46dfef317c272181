"""Exercises on designs since 2017: rotary positions, shared heads, a law."""

import numpy as np

from exercises import (
    Exercise,
    Law,
    each,
    in_use,
    judged,
    named,
    partly,
    random_arrays,
    section,
)
from mha.attention import scaled_dot_product_attention
from mha.masks import masked_softmax
from mha.similarity import dot_product_scores
from mha.weighting import softmax

_BREAK = section("since_2017", "Break it: grouped heads, normalised scores, near keys")


def _angles(positions, d, exponent=lambda p, d: 2 * p / d):
    return np.asarray(positions)[:, None] / 10000.0 ** exponent(np.arange(d // 2), d)


def _rotating(exponent=lambda p, d: 2 * p / d, halves=False, overwrite=False):
    """Return a function that rotates pairs of columns, right or in a wrong way."""

    def rotate(x, positions):
        d = x.shape[-1]
        angles = _angles(positions, d, exponent)
        c, s = np.cos(angles), np.sin(angles)
        one, other = np.s_[:, 0::2], np.s_[:, 1::2]
        if halves:
            one, other = np.s_[:, : d // 2], np.s_[:, d // 2 :]
        y = x.astype(float)
        y[one] = c * x[one] - s * x[other]
        y[other] = s * (y if overwrite else x)[one] + c * x[other]
        return y

    return rotate


def _kinds_apart(x, positions):
    """Return the first columns of all pairs, and then the second ones."""
    y = _rotating()(x, positions)
    return np.concatenate([y[:, 0::2], y[:, 1::2]], axis=1)


def _table_added(x, positions):
    y, angles = x.astype(float), _angles(positions, x.shape[-1])
    y[:, 0::2] += np.sin(angles)
    y[:, 1::2] += np.cos(angles)
    return y


def _cases():
    (one, two, three) = random_arrays((1, 2), (3, 4), (5, 8), seed=1)
    return (
        (np.array([[1.0, 0.0]]), np.array([1])),
        (one, np.array([2])),
        (two, np.array([0, 1, 2])),
        (three, np.array([7, 3, 100, 0, 8])),
    )


rotate = Exercise(
    task="rotary positions, in pairs of neighbouring columns",
    right=_rotating(),
    cases=_cases(),
    mistakes={
        "you pair column 1 with the first column of the second half; "
        "here the pairs are neighbours": _rotating(halves=True),
        "you use the number of the row; the positions are given, and they may begin "
        "anywhere, in any order": lambda x, t: _rotating()(x, np.arange(len(t))),
        "your slow pairs are too fast: the exponent of pair p, counted from 0, "
        "is −2p/d_k": _rotating(lambda p, d: p / d),
        "your slow pairs are too slow: a counter that goes 0, 2, 4 in steps of 2 "
        "is 2p already": _rotating(lambda p, d: 4 * p / d),
        "the first pair is p = 0, with the speed 1; yours are all one pair further": (
            _rotating(lambda p, d: 2 * (p + 1) / d)
        ),
        "the second column of a pair is computed from the new first column; "
        "keep the old one until both are done": _rotating(overwrite=True),
        "the new columns are right and stand in another order: the two of a pair stand "
        "side by side": _kinds_apart,
        "you add a table of sines and cosines; "
        "here the pairs are rotated": _table_added,
    },
    reread=section("since_2017", "Only the offset is left"),
    praise="every pair at its own speed, wherever the row stands.",
    picture=in_use.offsets,
)


def _groups(K, n_heads):
    return n_heads // K.shape[-3]


share_heads = Exercise(
    task="keys of a few heads, repeated for groups of query heads",
    axes=3,
    right=lambda K, n_heads: np.repeat(K, _groups(K, n_heads), axis=-3),
    cases=(
        (np.array([[[1.0]], [[2.0]]]), 4),
        (*random_arrays((1, 3, 2), seed=2), 3),
        (*random_arrays((2, 3, 5), seed=3), 6),
        (np.array([[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]), 4),
        (*random_arrays((2, 3, 2, 7), seed=4), 9),
    ),
    mistakes={
        "you take the heads in turn: 1, 2, 1, 2; the heads of a group are neighbours: "
        "1, 1, 2, "
        "2": lambda K, n_heads: np.concatenate([K] * _groups(K, n_heads), axis=-3),
    },
    reread=_BREAK,
    praise="the heads of a group stand side by side, so each key head is repeated.",
)


def _with(visible):
    def attend(Q, K, V):
        offset = np.arange(len(Q))[:, None] - np.arange(len(K))
        S = dot_product_scores(Q, K) / np.sqrt(K.shape[-1])
        return masked_softmax(S, visible(offset)) @ V

    return attend


window_of_3 = named("window_of_3", _with(lambda offset: abs(offset) < 3))
causal_window_of_3 = named(
    "causal_window_of_3", _with(lambda offset: (offset >= 0) & (offset < 3))
)
window_of_4 = named("window_of_4", _with(lambda offset: abs(offset) < 4))
window_of_4.__doc__ = "See keys three positions away too."
only_backwards = named("only_the_past_has_a_window", _with(lambda offset: offset < 3))
only_forwards = named("only_the_future_has_a_window", _with(lambda o: o > -3))


five_away = named(
    "window_of_3_and_keys_five_away",
    _with(lambda o: (abs(o) < 3) | (abs(o) == 5)),
)
nearer_end = named(
    "window_of_3_and_all_to_the_nearer_end",
    _with(
        lambda o: (abs(o) < 3) | ((o > 0) == (np.arange(len(o)) < len(o) // 2)[:, None])
    ),
)


middle_key = named(
    "window_of_3_and_the_middle_key",
    _with(lambda o: (abs(o) < 3) | (np.arange(len(o)) == len(o) // 2)),
)


def first_row_alone(Q, K, V):
    """Give a window to the first query alone."""
    Y = scaled_dot_product_attention(Q, K, V)
    Y[0] = window_of_3(Q, K, V)[0]
    return Y


def all_but_the_first_row(Q, K, V):
    """Give a window to every query but the first."""
    Y = window_of_3(Q, K, V)
    Y[0] = scaled_dot_product_attention(Q, K, V)[0]
    return Y


def fading(Q, K, V):
    """Lower the scores of far keys, without hiding them."""
    distance = abs(np.arange(len(Q))[:, None] - np.arange(len(K)))
    S = dot_product_scores(Q, K) / np.sqrt(K.shape[-1]) - 5 * distance
    return masked_softmax(S, None) @ V


def mean_added(Q, K, V):
    """Add the mean of all values to the output of a window."""
    return window_of_3(Q, K, V) + V.mean(axis=0)


def hidden_after_softmax(Q, K, V):
    """Hide far keys after the softmax, so that their scores count, not their values."""
    A = softmax(dot_product_scores(Q, K) / np.sqrt(K.shape[-1]))
    return np.where(_far(len(A)), 0, A) @ V


def _weights(attend, n=9, seed=5):
    Q, K = random_arrays((n, 4), (n, 4), seed=seed)
    return attend(Q, K, np.eye(n))


def _far(n):
    return abs(np.arange(n)[:, None] - np.arange(n)) >= 3


def _says(test):
    return lambda attend: bool(test(_weights(attend)))


far_keys_law = Law(
    task="a law: keys three or more positions away are not seen",
    right=_says(lambda A: not A[_far(9)].any()),
    cases=each(
        window_of_3,
        causal_window_of_3,
        hidden_after_softmax,
        mean_added,
        scaled_dot_product_attention,
        window_of_4,
        fading,
        first_row_alone,
        all_but_the_first_row,
        only_backwards,
        only_forwards,
        five_away,
        nearer_end,
        middle_key,
        partly(
            scaled_dot_product_attention,
            window_of_3,
            np.s_[:, 1:],
            "from the second column on",
        ),
    ),
    observe=judged,
    mistakes={
        "fading passes: its far weights are small and not 0, so change a far value by "
        "a lot, or compare with exactly 0": _says(lambda A: A[_far(9)].max() < 1e-3),
        "causal_window_of_3 fails: your law also asks for weights on near keys, which "
        "a causal mask may "
        "hide": _says(lambda A: not A[_far(9)].any() and A[~_far(9)].all()),
    },
    changes={
        "K": "change the values of far keys, by a lot: their keys may not show it"
    },
    vary=("V",),
    reread=section("since_2017", "Compare a design with a correct version of itself"),
    praise="a law that a design satisfies and the attention of 2017 breaks.",
)
