"""The laws of scores and weights: chapters 1 to 3."""

import numpy as np

from mha.laws._draw import SIZES, open_mask, qkv, qkv_cases
from mha.laws._law import Failure, Law, differs, weights_of

# Three-four-five: a rotation whose entries are exact to read.
COS, SIN = 0.6, 0.8


def _rotation_cases(rng):
    return qkv_cases(rng, masked=False)


def _rotation(subject, Q, K, V):
    R = np.eye(Q.shape[-1])
    R[:2, :2] = [[COS, SIN], [-SIN, COS]]
    return differs(subject.attend(Q, K, V), subject.attend(Q @ R, K @ R, V))


rotation_changes_nothing = Law(
    "rotation_changes_nothing",
    "turning queries and keys together changes nothing",
    cases=_rotation_cases,
    judge=_rotation,
    equation="attention(Q R, K R, V) = attention(Q, K, V) where R Rᵀ = I",
    chapter=1,
    reason="a dot product depends on lengths and the angle between, which a turn keeps",
)


def _rows_cases(rng):
    for case in qkv_cases(rng):
        case.pop("V")
        yield case
    # exp(710) is the first that a float64 cannot hold.
    yield {"Q": np.array([[30.0, 0.0]]), "K": np.array([[40.0, 0.0], [39.0, 0.0]])}


def _rows(subject, Q, K, mask=None):
    total = weights_of(subject, Q, K, mask).sum(-1)
    return differs(np.ones(len(Q)), total)


rows_sum_to_one = Law(
    "rows_sum_to_one",
    "every row of weights sums to one",
    cases=_rows_cases,
    judge=_rows,
    equation="Σ_j A[i, j] = 1",
    chapter=2,
    reason="softmax shares out one unit among the keys, however large the scores",
)


def _hull_cases(rng):
    for case in qkv_cases(rng, masked=False):
        # All on one side of 0, so that a sum of weights below one falls out.
        yield case | {"V": np.abs(case["V"]) + 1}


def _hull(subject, Q, K, V):
    Y = subject.attend(Q, K, V)
    return differs(np.clip(Y, V.min(0), V.max(0)), Y)


output_in_hull = Law(
    "output_in_hull",
    "the output stays within the values",
    cases=_hull_cases,
    judge=_hull,
    equation="min_j V[j, c] ≤ Y[i, c] ≤ max_j V[j, c]",
    chapter=2,
    reason="a weighted mean with shares that sum to one cannot leave the hull",
)


def _constant_cases(rng):
    for size in SIZES:
        for mask in (None, open_mask(rng, size.n_q, size.n_k)):
            case = qkv(rng, size)
            case["v"] = 1.0 + rng.integers(1, 5, size.d)
            del case["V"]
            yield case if mask is None else case | {"mask": mask}


def _constant(subject, Q, K, v, mask=None):
    Y = subject.attend(Q, K, np.tile(v, (len(K), 1)), mask)
    return differs(np.tile(v, (len(Q), 1)), Y)


constant_values_stay = Law(
    "constant_values_stay",
    "values that are all equal come out unchanged",
    cases=_constant_cases,
    judge=_constant,
    equation="V[j] = v for all j ⇒ Y[i] = v",
    chapter=2,
    reason="the mean of equal things is that thing",
)


def _variance_cases(rng):
    for d_k, n in ((16, 8), (16, 128), (64, 8)):
        yield {"d_k": d_k, "n": n, "seed": int(rng.integers(1000))}


def _variance(subject, d_k, n, seed):
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
    return Failure("scores of standard deviation 0.8 to 1.2", f"{std:.3f}")


def _first_head(subject, Q, K):
    """Return the weights of head 0 of two: a layer is wider than its heads."""
    n = len(K)
    return subject.attend(Q, K, np.eye(n), heads=2)[:, :n]


scores_keep_unit_variance = Law(
    "scores_keep_unit_variance",
    "scores keep unit variance at every width and length",
    cases=_variance_cases,
    judge=_variance,
    equation="Var(q · k / √d_k) = 1 for independent entries of variance 1",
    chapter=3,
    reason="q · k adds d_k terms of variance 1, and √d_k takes exactly that away",
)


def _doubling(subject, Q, K, V, mask=None):
    twice = None if mask is None else np.tile(mask, 2)
    Y = subject.attend(Q, np.tile(K, (2, 1)), np.tile(V, (2, 1)), twice)
    return differs(subject.attend(Q, K, V, mask), Y)


doubling_changes_nothing = Law(
    "doubling_changes_nothing",
    "doubling every key with its value changes nothing",
    cases=qkv_cases,
    judge=_doubling,
    equation="attention(Q, [K; K], [V; V]) = attention(Q, K, V)",
    chapter=3,
    reason="each key shares its weight with its twin, and no score knows the length",
    sees_all=True,
)
