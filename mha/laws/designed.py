"""The laws of one design each, and of a cache; asked where these are declared."""

from functools import partial
from typing import Any

import numpy as np

from mha.laws.calls import unless_refused
from mha.laws.judge import SIZES, Failure, differs, law, right
from mha.laws.layers import expect_memory, run, tokens_for, weights_for
from mha.laws.masks import past
from mha.laws.words import skip_if


def declared(subject, name) -> Any:
    return next(x for x in subject.designs if type(x).__name__ == name)


def width(subject):
    """Return how many columns a head has; where it may have any, four."""
    return subject.own.d_k if subject.own else 4


@law(
    "only the offset of two tokens counts, also far from the start",
    "A[i, j] / A[i, k] is the same behind t other tokens, t = 3 and 400",
    "two rotations leave the difference of their angles",
    of="rotary",
    t=(3, 400),
)
def only_distance_counts(subject, t, seed):
    Q, K = np.random.default_rng(seed).standard_normal((2, 3, width(subject)))
    ratios = []
    for before in (0, t):
        more = ((before, 0), (0, 0))
        q, k, V = (np.pad(x, more) for x in (Q, K, np.eye(3)))
        A = subject.attend(q, k, V)[-1:]
        ratios.append(A / A.sum())
    # At position 400 an angle in float32 has four decimals.
    return differs(*ratios, f"the last token, alone and behind {t} others", 2e-3)


@law(
    "a key at distance w − 1 counts, and one at distance w does not",
    "A[i, i − w + 1] > 0 and A[i, i − w] = 0",
    "the window is w tokens wide, the token itself included",
    of="window",
)
def window_ends_where_it_says(subject, seed):
    w = declared(subject, "window").w
    expect_memory(subject, w + 2)
    silent, V = np.zeros((w + 2, 2), "float32"), np.zeros((w + 2, 2), "float32")
    V[1, 0] = V[2, 1] = 1
    outside, inside = subject.attend(silent, silent, V)[-1, :2]
    if outside != 0:
        return Failure("exactly 0", f"{outside:.2g}", f"weight at distance {w}")
    return None if inside > 0 else Failure("above 0", "0", f"at distance {w - 1}")


@law(
    "what is missing from 1 is the share of the sink",
    "Σ_j A[i, j] = Σ_j exp(s_j) / (exp(sink) + Σ_j exp(s_j)), |s_j| up to 1000",
    "the sink is one more score, and the largest is subtracted from it as well",
    of="sink",
    score=(0.0, 3.0, -60.0, 1000.0, -1000.0),
    # exp(11.5) is too large for float16, where the sink does not share the maximum.
    also={"score": -11.5, "dtype": "float16"},
)
def sink_takes_its_share(subject, score, dtype=None):
    Q, K = np.zeros((2, 2, 2))
    Q[:, 0], K[:, 0], V, asked = np.sqrt(2), score, np.ones((2, 2)), subject
    where, near, heads = f"all scores are {score}", 1e-5, min(2, subject.sizes.heads)
    if dtype:
        skip_if(subject.said.dtype, f"it takes {subject.said.dtype}")
        K[:, 0] += np.min(declared(subject, "sink").s)
        V, asked, near = 3e4 * V, subject.but(cast=dtype), 0.05
        where = f"{dtype}, all scores are {-score} below the sink"
    due = right(subject).attend(Q, K, V, heads=heads)
    ask = partial(asked.attend, Q, K, V, heads=heads)
    return differs(due, unless_refused(dtype, ask) if dtype else ask(), where, near)


@law(
    "how long queries and keys are does not count",
    "attention(3 Q, K / 2, V) = attention(Q, K, V)",
    "each is divided by its own size",
    of="qk_norm",
)
def lengths_of_queries_do_not_count(subject, seed):
    Q, K, V = np.random.default_rng(seed).standard_normal((3, 5, width(subject)))
    # ε, which is added to the mean square, keeps a trace of the length.
    return differs(subject.attend(Q, K, V), subject.attend(3 * Q, K / 2, V), "", 1e-4)


@law(
    "no score leaves the range from −c to c",
    "scores of ±10 c give ln A[0] − ln A[1] = 2 c tanh(10)",
    "the hyperbolic tangent lies between −1 and 1",
    of="soft_cap",
)
def scores_stay_below_the_cap(subject):
    c = declared(subject, "soft_cap").c
    Q = np.full((2, 2), np.sqrt(10 * c / np.sqrt(2)))
    A = subject.attend(Q, Q * [[1], [-1]], np.eye(2))[-1:]
    due = np.array([[2 * c * np.tanh(10)]])
    return differs(due, np.log(A[:, :1]) - np.log(A[:, 1:2]), "", 1e-3)


@law(
    "each step away costs a score the slope of its head",
    "ln A[i, i] − ln A[i, j] = m_r |i − j| for a query of zeros",
    "the penalty is the distance times one slope for each head",
    of="alibi",
)
def distance_costs_the_slope(subject):
    zeros, heads = np.zeros((5, 2)), min(2, subject.sizes.heads)
    ask = zeros, zeros, np.eye(5)[:, 3:]
    due, got = (x.attend(*ask, heads=heads)[-1:] for x in (right(subject), subject))
    return differs(due, got, "weights of the last query for itself and one before")


@law(
    "where there are no more than k keys, all are kept",
    "n_k ≤ k ⇒ attention is that without the choice",
    "the k largest of k scores are all of them",
    of="top_k",
)
def few_keys_are_all_kept(subject, seed):
    k = min(declared(subject, "top_k").k, 17)
    Q, K, V = np.random.default_rng(seed).standard_normal((3, k, 2))
    others = [x for x in subject.designs if type(x).__name__ != "top_k"]
    correct = right(subject.but(designs=tuple(others)))
    return differs(correct.attend(Q, K, V), subject.attend(Q, K, V), f"{k} keys")


@law(
    "one token at a time with a cache gives what all at once gives",
    "step(x_1), …, step(x_n) = attention(X, causal)",
    "the keys and values of a past token do not change",
    of="step",
    sizes=SIZES[2:],
)
def one_at_a_time_is_all_at_once(subject, X, seed):
    skip_if(subject.step is None, "nobody said step=, which uses its cache")
    given, weights = tokens_for(subject, X), weights_for(subject, seed)
    causal = {"is_causal": True} if subject.takes_causal else past(len(X))
    due = run(subject, given, weights, **causal)
    got = run(subject.step, given, weights)
    return differs(due, got, "all at once, then one at a time")
