"""The laws of scores and weights, from dot products to the scale, and of masks."""

from functools import partial

import numpy as np

from mha.laws.judge import SIZES, Failure, Size, differs, law, numbers, rows, weights_of
from mha.laws.words import skip_if


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
    return differs(np.ones(len(Q)), weights_of(subject, Q, K, mask).sum(-1))


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
    for d_k, n in ((own, 8), (own, 32)) if own else ((16, 8), (64, 128), (64, 8)):
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
    # Of 500 scores, the standard deviation is right within 4 %.
    for _ in range(512 // (n * n) + 1):
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


def among_tokens(subject, X, mask=None, **options):
    """Let tokens attend to each other, with 2 heads where there are as many."""
    heads = min(2, subject.sizes.heads)
    return subject.attend(X, X, X, mask, heads=heads, **options)


def tokens_under(*masks):
    """Return cases: tokens X under each mask, which is a function of their number."""

    def cases(rng):
        for size in SIZES:
            X = rows(rng, size.n_k, size)
            yield from ({"X": X} | mask(len(X)) for mask in masks)

    return cases


def changed_under(name, *masks):
    """Return cases as above, with other tokens that take the places of some."""

    def cases(rng):
        for case in tokens_under(*masks)(rng):
            yield case | {name: numbers(rng, *case["X"].shape) + 3}

    return cases


def only_these_matter(ask, X, others, kept, where=""):
    """Change all tokens but those of each row of `kept`: their outputs must stay."""
    Y = ask(X)
    for stays in kept:
        got = ask(np.where(stays[:, None], X, others))
        if failure := differs(Y[stays], got[stays]):
            changed = f"tokens {np.flatnonzero(stays)} stay, the others change{where}"
            return failure._replace(where=changed)


def past(n):
    return {"mask": np.tri(n, dtype=bool)}


def last_sees_nothing(n):
    return {"mask": np.tri(n, dtype=bool) & (np.arange(n) < n - 1)[:, None]}


@law(
    "no weight is negative, and a masked one is exactly 0",
    "A[i, j] ≥ 0, and A[i, j] = 0 where M[i, j] is False",
    "exp(-∞) is 0",
    # Scores of ±18,000: a large number in the place of -∞ must be larger than both.
    also={
        "Q": np.full((1, 2), 113.0),
        "K": np.array([[-113.0, -113.0], [113.0, 113.0]]),
        "mask": np.array([[True, False]]),
    },
    correct=True,
)
def masked_weights_are_zero(subject, Q, K, mask):
    A = weights_of(subject, Q, K, mask)
    # Exactly 0: a mask that leaves a trace is a leak, however small.
    return differs(np.where(mask, A.clip(0), 0), A, within=0)


@law(
    "a token that may attend to nothing gets zeros",
    "M[i, j] = False for all j ⇒ Y[i] = 0, and all gradients are finite",
    "an average of no values is taken as 0, while 0/0 would be NaN and spread",
    # Where all queries share one row of a mask, they see nothing together.
    cases=tokens_under(last_sees_nothing, lambda n: {"mask": np.zeros((n, n), bool)}),
)
def empty_rows_give_zero(subject, X, mask):
    modes = subject.all_modes()
    found = [(x.mode, _empty_in_one_mode(x, X, mask)) for x in modes]
    found = [(name or "plain call", failure) for name, failure in found if failure]
    if not found:
        return None
    where = "\n".join(name for name, _ in found) * (len(found) < len(modes))
    return found[0][1]._replace(where=where)


def _empty_in_one_mode(subject, X, mask):
    Y = among_tokens(subject, X, mask)
    nothing = np.zeros_like(Y)
    if subject.kind == "encoder":
        # It keeps its own row, as one that sees itself alone, and reads a value of 0.
        deaf = subject.but(reads_values=False)
        nothing = among_tokens(deaf, X, mask | np.eye(len(X), dtype=bool))
    lawful = np.nan_to_num(np.where(mask.any(-1, keepdims=True), Y, nothing))
    if failure := differs(lawful, Y):
        return failure
    if not all(np.isfinite(slope).all() for slope in subject.slopes):
        return Failure("finite gradients", "NaN")


@law(
    "changing the future leaves the past alone",
    "∂Y[i]/∂X[j] = 0 for j > i under a causal mask",
    "query i attends to the keys 0 … i only, itself included",
    cases=changed_under("later", past, lambda n: {"is_causal": True}),
)
def future_leaves_past_alone(subject, X, later, mask=None, is_causal=False):
    ask = partial(among_tokens, subject, mask=mask, is_causal=is_causal)
    # What each token sees stays, and all that comes later is changed.
    pasts = np.tri(len(X), dtype=bool)[:-1]
    if failure := only_these_matter(ask, X, later, pasts):
        return failure
    alone = among_tokens(subject, X[:1])
    return differs(alone, ask(X)[:1], "row 0: the first token sees itself")


def padding_cases(rng):
    for junk in (9.0, 1e6):
        for size in SIZES[1:]:
            X, padding = rows(rng, size.n_k, size), np.full((2, size.d), junk)
            mask = np.arange(size.n_k + 2)[None] < size.n_k
            yield {"X": X, "padding": padding, "mask": mask}
    for lengths in ((3, 2), (3, 2, 1, 3, 2)):
        X, padding = numbers(rng, len(lengths), 3, 2), np.full((2, 2), 9.0)
        mask = np.arange(5) < np.array(lengths)[:, None, None, None]
        yield {"X": X, "padding": padding, "mask": mask}


@law(
    "hidden padding changes nothing",
    "attention([X; anything]) = attention(X) on the rows of X",
    "a key of weight 0 adds nothing, whatever finite numbers it has",
    cases=padding_cases,
    correct=True,
)
def padding_changes_nothing(subject, X, padding, mask):
    alone = X.ndim == 3 and (subject.kind == "attention" or not subject.takes_batch)
    skip_if(alone, "it reads one sequence at a time")
    padding = np.broadcast_to(padding, (*X.shape[:-2], *padding.shape))
    Y = among_tokens(subject, np.concatenate([X, padding], -2), mask)
    alone, padded = (x.reshape(-1, *x.shape[-2:]) for x in (X, Y))
    for b, n in enumerate(mask.sum(-1).ravel()):
        where = f"sequence {b} of the batch" if X.ndim == 3 else ""
        expected = among_tokens(subject, alone[b, :n])
        if failure := differs(expected, padded[b, :n], where):
            return failure


@law(
    "a token that may attend only to itself depends on itself only",
    "M = I ⇒ ∂Y[i]/∂X[j] = 0 for j ≠ i",
    "no other key gets any weight",
    cases=changed_under("others", lambda n: {"mask": np.eye(n, dtype=bool)}),
)
def self_only_mask(subject, X, others, mask):
    ask = partial(among_tokens, subject, mask=mask)
    return only_these_matter(ask, X, others, mask)
