"""The laws of scores and weights: from dot products to the scale."""

import numpy as np

from mha.laws._draw import SIZES, Size, open_mask, qkv, qkv_cases
from mha.laws._law import Failure, differs, law, weights_of

__all__ = [
    "constant_values_stay", "doubling_changes_nothing", "output_in_hull",
    "rotation_changes_nothing", "rows_sum_to_one", "scores_keep_unit_variance",
]  # fmt: skip


def rotation_cases(rng):
    # Four columns or more: a turn of two alone commutes with rotary positions.
    for n_q, n_k, d in ((1, 2, 4), (2, 3, 4), (3, 5, 6)):
        yield qkv(rng, Size(n_q, n_k, d)) | {"turn": int(rng.integers(1000))}


def _turn(seed, d):
    """Return a random rotation of all columns."""
    R = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    R[0] *= np.linalg.det(R)
    return R


@law(
    "rotating queries and keys together changes nothing",
    cases=rotation_cases,
    equation="attention(Q R, K R, V) = attention(Q, K, V) where R Rᵀ = I",
    chapter="dot_product",
    reason="a dot product depends on lengths and angles, which a rotation keeps",
)
def rotation_changes_nothing(subject, Q, K, V, turn):
    R = _turn(turn, Q.shape[-1])
    got, rows = subject.attend(Q @ R, K @ R, V), R.round(2).tolist()
    where = "\n".join(["R is, rounded,", *map(str, rows)])
    return differs(subject.attend(Q, K, V), got, where)


def rows_cases(rng):
    for case in qkv_cases(rng):
        case.pop("V")
        yield case
    # exp(710) is the first that a float64 cannot hold.
    yield {"Q": np.array([[30.0, 0.0]]), "K": np.array([[40.0, 0.0], [39.0, 0.0]])}


@law(
    "every row of weights sums to one",
    cases=rows_cases,
    equation="Σ_j A[i, j] = 1",
    chapter="softmax",
    reason="each exponential is divided by the sum of its row, whatever the scores",
)
def rows_sum_to_one(subject, Q, K, mask=None):
    total = weights_of(subject, Q, K, mask).sum(-1)
    return differs(np.ones(len(Q)), total)


def hull_cases(rng):
    for case in qkv_cases(rng, masked=False):
        # All on one side of 0, so that a sum of weights below one falls out.
        yield case | {"V": np.abs(case["V"]) + 1}


@law(
    "the output stays within the values",
    cases=hull_cases,
    equation="min_j V[j, c] ≤ Y[i, c] ≤ max_j V[j, c]",
    chapter="softmax",
    reason="a weighted average cannot leave the convex hull of what it averages",
)
def output_in_hull(subject, Q, K, V):
    Y = subject.attend(Q, K, V)
    return differs(np.clip(Y, V.min(0), V.max(0)), Y)


def constant_cases(rng):
    for size in SIZES:
        for masked in ({}, {"mask": open_mask(rng, size.n_q, size.n_k)}):
            case = qkv(rng, size)
            del case["V"]
            yield case | {"v": 1.0 + rng.integers(1, 5, size.d)} | masked


@law(
    "values that are all equal come out unchanged",
    cases=constant_cases,
    equation="V[j] = v for all j ⇒ Y[i] = v",
    chapter="softmax",
    reason="the weighted average of equal vectors is that vector",
)
def constant_values_stay(subject, Q, K, v, mask=None):
    Y = subject.attend(Q, K, np.tile(v, (len(K), 1)), mask)
    return differs(np.tile(v, (len(Q), 1)), Y)


def variance_cases(rng):
    for d_k, n in ((16, 8), (16, 128), (64, 8)):
        yield {"d_k": d_k, "n": n, "seed": int(rng.integers(1000))}


@law(
    "scores keep unit variance at every width and length",
    cases=variance_cases,
    equation="Var(q · k / √d_k) = 1 for independent entries of mean 0, variance 1",
    chapter="scale",
    reason="q · k adds d_k terms of variance 1, and dividing by √d_k makes that 1",
)
def scores_keep_unit_variance(subject, d_k, n, seed):
    rng, deviations = np.random.default_rng(seed), []
    # Of what is always causal, only the last row sees all keys.
    rows = slice(-1, None) if subject.always_causal else slice(None)
    for _ in range(1024 // (n * len(range(n)[rows])) + 1):
        Q, K = rng.standard_normal((2, n, d_k))
        A = _first_head(subject, Q, K)[rows]
        S = np.log(np.where(A > 0, A, np.nan))
        deviations.append(S - np.nanmean(S, -1, keepdims=True))
    # A row's own mean takes 1/n of the variance away.
    std = np.sqrt(np.nanmean(np.square(deviations)) * n / (n - 1))
    if 0.8 <= std <= 1.2:
        return None
    return Failure("log weights of standard deviation 0.8 to 1.2", f"{std:.3f}")


def _first_head(subject, Q, K):
    """Return the weights of the first head of two: a layer is wider than its heads."""
    n = len(K)
    return subject.attend(Q, K, np.eye(n), heads=2)[:, :n]


@law(
    "doubling every key with its value changes nothing",
    cases=qkv_cases,
    equation="attention(Q, [K; K], [V; V]) = attention(Q, K, V)",
    chapter="scale",
    reason="a key and its copy get half the weight each, and no score depends on n",
    sees_all=True,
    orderless=True,
)
def doubling_changes_nothing(subject, Q, K, V, mask=None):
    twice = None if mask is None else np.tile(mask, 2)
    Y = subject.attend(Q, np.tile(K, (2, 1)), np.tile(V, (2, 1)), twice)
    return differs(subject.attend(Q, K, V, mask), Y)
