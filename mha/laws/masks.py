"""The laws of masks."""

import numpy as np

from mha.attention import scaled_dot_product_attention
from mha.laws.draw import SIZES, numbers, rows
from mha.laws.judge import Failure, differs, law, weights_of
from mha.laws.words import NotApplicable

__all__ = [
    "empty_rows_give_zero", "future_leaves_past_alone", "masked_weights_are_zero",
    "padding_changes_nothing", "self_only_mask",
]  # fmt: skip


@law(
    "no weight is negative, and a masked one is exactly 0",
    "A[i, j] ≥ 0, and A[i, j] = 0 where M[i, j] is False",
    "exp(-∞) is 0",
)
def masked_weights_are_zero(subject, Q, K, mask):
    A = weights_of(subject, Q, K, mask)
    # Exactly 0: a mask that leaves a trace is a leak, however small.
    if not (A < 0).any() and not A[~mask].any():
        return None
    options = {"mask": mask, "is_causal": subject.always_causal}
    correct = scaled_dot_product_attention(Q, K, np.eye(len(K)), **options)
    leak = f"{abs(A[~mask]).max():.1e}"
    return differs(correct, A) or Failure("exactly 0", leak)


def empty_cases(rng):
    for size in SIZES:
        mask = np.tri(size.n_k, dtype=bool)
        mask[-1] = False
        case = {"X": rows(rng, size.n_k, size), "mask": mask}
        yield case
        # Where all queries share one row of a mask, they see nothing together.
        yield case | {"mask": np.zeros_like(mask)}


@law(
    "a token that may attend to nothing gets zeros",
    "M[i, j] = False for all j ⇒ Y[i] = 0, and all gradients are finite",
    "an average of no values is taken as 0, while 0/0 would be NaN and spread",
    cases=empty_cases,
)
def empty_rows_give_zero(subject, X, mask):
    modes = subject.all_modes()
    failures = [(mode, _empty_in_one_mode(mode, X, mask)) for mode in modes]
    failures = [(str(mode.mode), f) for mode, f in failures if f is not None]
    if not failures:
        return None
    where = "\n".join((name or "plain call") + f.where for name, f in failures)
    return failures[0][1]._replace(where=where * (len(failures) < len(modes)))


def _empty_in_one_mode(subject, X, mask):
    Y = subject.attend(X, X, X, mask, heads=two_heads(subject))
    empty = ~mask.any(-1)
    lawful = np.where(empty[:, None], _without_news(subject, X, mask), Y)
    if np.isnan(Y).any() or differs(lawful, Y):
        return Failure(np.nan_to_num(lawful), Y)
    if not all(np.isfinite(g).all() for g in subject.gradients):
        return Failure("finite gradients", "NaN", " (gradients)")
    return None


def two_heads(subject):
    """Return 2 heads, where a layer has as many."""
    return min(2, subject.sizes.heads)


def _without_news(subject, X, mask):
    """Return what a token gets that sees nothing: in an encoder it keeps its own row.

    One that sees itself alone, and reads a value of 0, gets no news either.
    """
    if subject.kind != "encoder":
        return 0
    deaf = subject.but(reads_values=False)
    return deaf.attend(X, X, X, mask | np.eye(len(X), dtype=bool))


def future_cases(rng):
    for size in SIZES:
        X = rows(rng, size.n_k, size)
        n, d = X.shape
        later = numbers(rng, n - 1, d) + 3
        yield {"X": X, "later": later, "mask": np.tri(n, dtype=bool)}
        yield {"X": X, "later": later, "is_causal": True}


@law(
    "changing the future leaves the past alone",
    "∂Y[i]/∂X[j] = 0 for j > i under a causal mask",
    "query i attends to the keys 0 … i only, itself included",
    cases=future_cases,
)
def future_leaves_past_alone(subject, X, later, mask=None, is_causal=False):
    """Change every token but the first; then ask what the first alone would get."""
    options = {"is_causal": is_causal, "heads": two_heads(subject)}
    Y = subject.attend(X, X, X, mask, **options)
    for t in range(1, len(X)):
        changed = X.copy()
        changed[t:] = later[t - 1 :]
        Y_later = subject.attend(changed, changed, changed, mask, **options)
        where = f"rows before {t}, when the tokens from {t} on change"
        if failure := differs(Y[:t], Y_later[:t], where):
            return failure
    first = X[:1]
    alone = subject.attend(first, first, first, heads=two_heads(subject))
    return differs(alone, Y[:1], "row 0: the first token sees itself")


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
    "a key of weight 0 adds nothing, whatever numbers it has",
    cases=padding_cases,
)
def padding_changes_nothing(subject, X, padding, mask):
    if X.ndim == 3:
        return _padding_in_batch(subject, X, padding, mask)
    padded = np.concatenate([X, padding])
    Y = subject.attend(padded, padded, padded, mask)
    return differs(subject.attend(X, X, X), Y[: len(X)])


def _padding_in_batch(subject, X, padding, mask):
    """Give the sequences different lengths."""
    if subject.kind == "attention" or not subject.takes_batch:
        raise NotApplicable("it reads one sequence at a time")
    padded = np.concatenate([X, np.broadcast_to(padding, (len(X), *padding.shape))], 1)
    Y = subject.attend(padded, padded, padded, mask, heads=two_heads(subject))
    for b, n in enumerate(mask.sum(-1).ravel()):
        x = X[b, :n]
        alone = subject.attend(x, x, x, heads=two_heads(subject))
        if failure := differs(alone, Y[b, :n], f"sequence {b} of the batch"):
            return failure
    return None


def self_only_cases(rng):
    for size in SIZES:
        X = rows(rng, size.n_k, size)
        others = numbers(rng, *X.shape) + 3
        yield {"X": X, "others": others, "mask": np.eye(len(X), dtype=bool)}


@law(
    "a token that may attend only to itself depends on itself only",
    "M = I ⇒ ∂Y[i]/∂X[j] = 0 for j ≠ i",
    "a single visible key gets the weight 1",
    cases=self_only_cases,
)
def self_only_mask(subject, X, others, mask):
    heads = two_heads(subject)
    Y = subject.attend(X, X, X, mask, heads=heads)
    for i in range(len(X)):
        changed = others.copy()
        changed[i] = X[i]
        Y_changed = subject.attend(changed, changed, changed, mask, heads=heads)
        if failure := differs(Y[i], Y_changed[i], f"token {i}, all others changed"):
            return failure
    return None
