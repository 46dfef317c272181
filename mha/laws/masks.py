"""The laws of scores, weights and masks, in the order of the book."""

import itertools
from dataclasses import replace

import numpy as np

from mha.laws.judge import (
    SIZES,
    Failure,
    Size,
    differs,
    law,
    numbers,
    skip_if,
    weights_of,
)  # fmt: skip
from mha.laws.subject import NotAsked, Sizes, draw_matrices

# Scores and weights -----------------------------------------------------------------


@law(
    "rotating queries and keys together changes nothing",
    "attention(Q R, K R, V) = attention(Q, K, V) where R Rᵀ = I",
    "a dot product depends on lengths and angles, which a rotation keeps",
    # Four columns or more: a turn of two alone commutes with rotary positions.
    sizes=(Size(1, 2, 4), Size(2, 3, 4), Size(3, 3, 6)),
)
def rotation_changes_nothing(attend, Q, K, V, seed):
    d = Q.shape[-1]
    R = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    R[0] *= np.linalg.det(R)
    where = "\n".join(["R is, rounded,", *map(str, R.round(2).tolist())])
    return differs(attend(Q, K, V), attend(Q @ R, K @ R, V), where)


@law(
    "every row of weights sums to one",
    "Σ_j A[i, j] = 1",
    "each exponential is divided by the sum of its row, whatever the scores",
    # exp(710) is the first that a float64 cannot hold.
    also=({"Q": np.array([[30.0, 0.0]]), "K": np.array([[40.0, 0.0], [39.0, 0.0]])},),
    rank=-1,
)
def rows_sum_to_one(attend, Q, K, mask=None):
    return differs(np.ones(len(Q)), weights_of(attend, Q, K, mask).sum(-1))


@law(
    "the output stays within the values",
    "min_j V[j, c] ≤ Y[i, c] ≤ max_j V[j, c]",
    "a weighted average cannot leave the convex hull of what it averages",
)
def output_in_hull(attend, Q, K, V):
    # All on one side of 0, so that a sum of weights below one falls out.
    V = abs(V) + 1
    Y = attend(Q, K, V)
    return differs(np.clip(Y, V.min(0), V.max(0)), Y)


@law(
    "values that are all equal come out unchanged",
    "V[j] = v for all j ⇒ Y[i] = v",
    "the weighted average of equal vectors is that vector",
)
def constant_values_stay(attend, Q, K, v, mask=None):
    Y = attend(Q, K, np.tile(v, (len(K), 1)), mask)
    return differs(np.tile(v, (len(Q), 1)), Y)


def variance_cases(rng, subject):
    sizes = ((16, 8), (64, 128), (64, 8))
    if subject.kind == "layer":
        # A token of a layer holds a query, a key and a value side by side.
        own = subject.sizes.d_model // 3 if subject.sizes.fixed else 64
        sizes = ((min(own, subject.sizes.d_k), 8), (min(own, subject.sizes.d_k), 32))
        sizes = sizes if subject.sizes.fixed else ((16, 8), (64, 128), (64, 8))
    for d_k, n in sizes:
        yield {"d_k": max(d_k, 1), "n": n, "seed": int(rng.integers(1000))}


@law(
    "scores keep unit variance at every width and length",
    "Var(q · k / √d_k) = 1 for independent entries of mean 0, variance 1",
    "q · k adds d_k terms of variance 1, and dividing by √d_k makes that 1",
    cases=variance_cases,
    rank=-1,
)
def scores_keep_unit_variance(attend, d_k, n, seed):
    rng, squares, free = np.random.default_rng(seed), 0.0, 0
    # Of 500 scores, the standard deviation is right within 4 %.
    for _ in range(512 // (n * n) + 1):
        Q, K = rng.standard_normal((2, n, d_k))
        A = weights_of(attend, Q, K)
        # What a causal mask or a window hides has no score.
        S = np.where(A > 0, np.log(np.where(A > 0, A, 1)), np.nan)
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
)
def doubling_changes_nothing(attend, Q, K, V, mask=None):
    twice = None if mask is None else np.tile(mask, 2)
    Y = attend(Q, np.tile(K, (2, 1)), np.tile(V, (2, 1)), twice)
    return differs(attend(Q, K, V, mask), Y)


# Masks ------------------------------------------------------------------------------


def past(n):
    return {"mask": np.tri(n, dtype=bool)}


def last_sees_nothing(n):
    return {"mask": np.tri(n, dtype=bool) & (np.arange(n) < n - 1)[:, None]}


def tokens_under(*masks, others=""):
    """Return cases: tokens X under each mask, and other tokens for some of them."""

    def cases(rng, subject):
        for size, mask in itertools.product(SIZES, masks):
            X = numbers(rng, size.n_k, subject.width(size.d), integers=size.integers)
            case = {"X": X} | mask(len(X))
            yield case | ({others: numbers(rng, *X.shape) + 3} if others else {})

    return cases


def only_these_matter(tokens, X, others, kept, **mask):
    """Change all tokens but those of each row of `kept`: their outputs must stay."""
    Y = tokens(X, **mask)
    for stays in kept:
        got = tokens(np.where(stays[:, None], X, others), **mask)
        where = f"tokens {np.flatnonzero(stays)} stay, the others change"
        if failure := differs(Y[stays], got[stays], where):
            return failure
    return None


@law(
    "no weight is negative, and a masked one is exactly 0",
    "A[i, j] ≥ 0, and A[i, j] = 0 where M[i, j] is False",
    "exp(-∞) is 0",
    # Scores of ±18,000: a large number in the place of -∞ must be larger than both.
    also=(
        {"Q": np.full((1, 2), 113.0), "K": np.array([[-113.0, -113.0], [113.0, 113.0]]),
         "mask": np.array([[True, False]])},
    ),
    exact=True,
    rank=-1,
)  # fmt: skip
def masked_weights_are_zero(attend, Q, K, mask):
    A = weights_of(attend, Q, K, mask)
    # Exactly 0: a mask that leaves a trace is a leak, however small.
    return differs(np.where(mask, A.clip(0), 0), A, within=0)


@law(
    "a token that may attend to nothing gets zeros",
    "M[i, j] = False for all j ⇒ Y[i] = 0, and all gradients are finite",
    "an average of no values is taken as 0, while 0/0 would be NaN and spread",
    # Padding alone is all that some can be asked about.
    cases=tokens_under(last_sees_nothing, lambda n: {"mask": np.zeros((1, n), bool)}),
    compares=False,
    rank=2,
)
def empty_rows_give_zero(tokens, X, mask):
    Y = tokens(X, mask)
    lawful = np.nan_to_num(np.where(mask.any(-1, keepdims=True), Y, 0))
    if tokens.kind in ("encode", "encoder_layer"):
        lawful = np.nan_to_num(Y)  # the token itself is left, as some number
    if failure := differs(lawful, Y):
        return failure
    try:
        slopes = tokens.gradients(np.ones(Y.shape), X, mask)
    except NotAsked:
        return None
    finite = all(np.isfinite(slope).all() for slope in slopes)
    return None if finite else Failure("finite gradients", "NaN")


@law(
    "changing the future leaves the past alone",
    "∂Y[i]/∂X[j] = 0 for j > i under a causal mask",
    "query i attends to the keys 0 … i only, itself included",
    cases=tokens_under(past, lambda n: {"is_causal": True}, others="later"),
    rank=-1,
)
def future_leaves_past_alone(tokens, X, later, mask=None, is_causal=False):
    hidden = {"mask": mask, "is_causal": is_causal}
    # What each token sees stays, and all that comes later is changed.
    pasts = np.tri(len(X), dtype=bool)[:-1]
    if failure := only_these_matter(tokens, X, later, pasts, **hidden):
        return failure
    got = tokens(X, **hidden)[:1]
    return differs(tokens(X[:1]), got, "row 0: the first token sees itself")


def padding_cases(rng, subject):
    behind_or_in_front = (9.0, 0), (9.0, 2), (1e6, 0)
    for (junk, front), size in itertools.product(behind_or_in_front, SIZES[1:]):
        X = numbers(rng, size.n_k, subject.width(size.d))
        at = np.arange(size.n_k + 2)[None] - front
        mask = (at >= 0) & (at < size.n_k)
        yield {"X": X, "padding": np.full((2, X.shape[1]), junk), "mask": mask}


@law(
    "hidden padding changes nothing",
    "attention([X; anything]) = attention([anything; X]) = attention(X) on rows of X",
    "a key of weight 0 adds nothing, whatever finite numbers it has",
    cases=padding_cases,
    compares=False,  # what a row of padding gives is nobody's concern
    rank=-1,
)
def padding_changes_nothing(tokens, X, padding, mask):
    real, whole = mask[0], np.empty((len(X) + len(padding), X.shape[1]))
    whole[real], whole[~real] = X, padding
    return differs(tokens(X), tokens(whole, mask)[real])


@law(
    "a token that may attend only to itself depends on itself only",
    "M = I ⇒ ∂Y[i]/∂X[j] = 0 for j ≠ i",
    "no other key gets any weight",
    cases=tokens_under(lambda n: {"mask": np.eye(n, dtype=bool)}, others="others"),
    rank=-1,
)
def self_only_mask(tokens, X, others, mask):
    return only_these_matter(tokens, X, others, mask, mask=mask)


# The order of tokens, and keys beside queries ---------------------------------------


@law(
    "permuting the tokens permutes the outputs",
    "attention(P X) = P attention(X)",
    "every token is treated alike, and no step knows a position",
)
def outputs_follow_tokens(tokens, X, order):
    if failure := differs(tokens(X)[order], tokens(X[order])):
        return failure
    # One sequence of two is permuted; the other must not notice.
    (first, second), got = tokens(np.stack([X, X])), tokens(np.stack([X[order], X]))
    return differs([first[order], second], got, "X twice, only the first is permuted")


@law(
    "permuting keys with their values changes nothing",
    "attention(Q, P K, P V) = attention(Q, K, V)",
    "a sum does not depend on the order of its terms",
)
def key_order_is_free(attend, Q, K, V, order, mask=None):
    moved = None if mask is None else mask[:, order]
    return differs(attend(Q, K, V, mask), attend(Q, K[order], V[order], moved))


@law(
    "adding one vector to every key changes nothing",
    "attention(Q, K + 1 cᵀ, V) = attention(Q, K, V)",
    "all scores of query i rise by q_i · c, and softmax ignores a common rise",
)
def shifting_keys_changes_nothing(attend, Q, K, V, shift):
    return differs(attend(Q, K, V), attend(Q, K + shift, V))


def asymmetry_cases(rng, subject):
    z = subject.sizes
    if not z.fixed:  # one head of three columns is the easiest to read
        one = z.n_heads == z.n_kv_heads
        z = Sizes(3, 1, 1) if one else replace(z, d_model=3 * z.n_heads)
    drawn = draw_matrices(rng, z, False)
    X = rng.standard_normal((3, z.d_model)).round(1)
    yield {"X": X, "W_Q": drawn["W_Q"], "W_K": drawn["W_K"], "n_heads": z.n_heads}


@law(
    "the score of i with j can differ from that of j with i",
    "S ≠ Sᵀ, even up to one number per row, for W_Q and W_K drawn at random",
    "queries and keys are read by two matrices; were W_K = 2 W_Q, S would be symmetric",
    cases=asymmetry_cases,
)
def scores_are_not_symmetric(layer, X, W_Q, W_K, n_heads):
    """Sum log A around a triangle, both ways: only what is symmetric cancels."""
    d_model, shared = W_K.shape
    skip_if(d_model // n_heads < 3, "its heads are too narrow to show three weights")
    # The values are unit vectors, so that head 1 shows its weights.
    W_V = np.pad(np.linalg.pinv(X), ((0, 0), (0, shared - 3)))
    A = layer(X, W_Q, W_K, W_V, np.eye(d_model), n_heads)[:, :3]
    L = np.log(np.maximum(A, 1e-300))
    around = L[0, 1] + L[1, 2] + L[2, 0] - L[1, 0] - L[2, 1] - L[0, 2]
    wanted = "L[0,1] + L[1,2] + L[2,0] other than L[1,0] + L[2,1] + L[0,2]"
    if abs(around) > 1e-6:
        return None
    return Failure(wanted, "equal sums", "L = log A, the weights of head 1")


@law(
    "only the offset of two tokens counts, also far from the start",
    "A[i, j] / A[i, k] is the same behind t other tokens, t = 3 and 400",
    "two rotations leave the difference of their angles",
    t=(3, 400),
    sizes=(Size(3, 3, 4, False),),
)
def only_distance_counts(attend, Q, K, t):
    ratios = []
    for before in (0, t):
        q, k, V = (np.pad(x, ((before, 0), (0, 0))) for x in (Q, K, np.eye(3)))
        A = attend(q, k, V)[-1:]
        ratios.append(A / A.sum())
    # At position 400 an angle in float32 has four decimals.
    return differs(*ratios, f"the last token, alone and behind {t} others", 2e-3)
