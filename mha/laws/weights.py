"""The laws of scores and weights: from dot products to the scale."""

import numpy as np

from mha.laws.draw import Size, rows
from mha.laws.judge import Failure, differs, law, weights_of


@law(
    "rotating queries and keys together changes nothing",
    "attention(Q R, K R, V) = attention(Q, K, V) where R Rᵀ = I",
    "a dot product depends on lengths and angles, which a rotation keeps",
    # Four columns or more: a turn of two alone commutes with rotary positions.
    sizes=(Size(1, 2, 4), Size(2, 3, 4), Size(3, 5, 6)),
)
def rotation_changes_nothing(subject, Q, K, V, turn):
    d = Q.shape[-1]
    R = np.linalg.qr(np.random.default_rng(turn).standard_normal((d, d)))[0]
    R[0] *= np.linalg.det(R)
    got, lines = subject.attend(Q @ R, K @ R, V), map(str, R.round(2).tolist())
    where = "\n".join(["R is, rounded,", *lines])
    return differs(subject.attend(Q, K, V), got, where)


@law(
    "every row of weights sums to one",
    "Σ_j A[i, j] = 1",
    "each exponential is divided by the sum of its row, whatever the scores",
    # exp(710) is the first that a float64 cannot hold.
    also={"Q": np.array([[30.0, 0.0]]), "K": np.array([[40.0, 0.0], [39.0, 0.0]])},
)
def rows_sum_to_one(subject, Q, K, mask=None):
    total = weights_of(subject, Q, K, mask).sum(-1)
    return differs(np.ones(len(Q)), total)


@law(
    "the output stays within the values",
    "min_j V[j, c] ≤ Y[i, c] ≤ max_j V[j, c]",
    "a weighted average cannot leave the convex hull of what it averages",
    # All on one side of 0, so that a sum of weights below one falls out.
    V=lambda rng, size: abs(rows(rng, size.n_k, size)) + 1,
)
def output_in_hull(subject, Q, K, V):
    Y = subject.attend(Q, K, V)
    return differs(np.clip(Y, V.min(0), V.max(0)), Y)


@law(
    "values that are all equal come out unchanged",
    "V[j] = v for all j ⇒ Y[i] = v",
    "the weighted average of equal vectors is that vector",
)
def constant_values_stay(subject, Q, K, v, mask=None):
    Y = subject.attend(Q, K, np.tile(v, (len(K), 1)), mask)
    return differs(np.tile(v, (len(Q), 1)), Y)


def variance_cases(rng, subject):
    # A module has heads of one width.
    own = subject.own and subject.own.d_k
    for d_k, n in ((own, 8), (own, 32)) if own else ((16, 8), (16, 128), (64, 8)):
        yield {"d_k": d_k, "n": n, "seed": int(rng.integers(1000))}


@law(
    "scores keep unit variance at every width and length",
    "Var(q · k / √d_k) = 1 for independent entries of mean 0, variance 1",
    "q · k adds d_k terms of variance 1, and dividing by √d_k makes that 1",
    cases=variance_cases,
)
def scores_keep_unit_variance(subject, d_k, n, seed):
    rng, squares, free = np.random.default_rng(seed), 0.0, 0
    # The first head of two: a layer is wider than its heads.
    heads = min(2, subject.sizes.heads)
    for _ in range(1024 // (n * n) + 1):
        Q, K = rng.standard_normal((2, n, d_k))
        A = subject.attend(Q, K, np.eye(n), heads=heads)[:, :n]
        # What a causal mask or a window hides has no score.
        S = np.where(A > 0, np.log(A), np.nan)
        squares += np.nansum((S - np.nanmean(S, -1, keepdims=True)) ** 2)
        # A row's own mean takes one of its scores away.
        free += (A > 0).sum() - (A > 0).any(-1).sum()
    std = np.sqrt(squares / max(free, 1))
    if 0.8 <= std <= 1.2:
        return None
    return Failure("log weights of standard deviation 0.8 to 1.2", f"{std:.3f}")


@law(
    "doubling every key with its value changes nothing",
    "attention(Q, [K; K], [V; V]) = attention(Q, K, V)",
    "a key and its copy get half the weight each, and no score depends on n",
    sees_all=True,
    orderless=True,
)
def doubling_changes_nothing(subject, Q, K, V, mask=None):
    twice = None if mask is None else np.tile(mask, 2)
    Y = subject.attend(Q, np.tile(K, (2, 1)), np.tile(V, (2, 1)), twice)
    return differs(subject.attend(Q, K, V, mask), Y)
