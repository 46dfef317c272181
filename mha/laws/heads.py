"""The laws of many heads: how a layer cuts its projections and mixes the outputs."""

import itertools

import numpy as np

from mha.laws.judge import Failure, differs, law, numbers, skip_if
from mha.laws.subject import FOUR, draw_matrices

WIDE = 16  # the weights of wider layers are too many to try one by one


def layers_of(*names, integers=True):
    def cases(rng, subject):
        for n in (2, 3):
            X = numbers(rng, n, subject.width(4), integers=integers).round(1)
            drawn = draw_matrices(rng, subject.sizes, integers)
            yield {"X": X} | {x: drawn[x] for x in names}

    return cases


def concat(layer, X, weights):
    """Return the heads side by side: with W_O = I nothing mixes them."""
    eye = np.eye(layer.sizes.d_model)
    return layer(X, **weights, W_O=eye, n_heads=layer.sizes.n_heads)


def blocks(sizes):
    """Return the columns of each head, and of the keys and values that it reads."""
    d, each = sizes.d_k, sizes.n_heads // sizes.n_kv_heads
    at = [slice(r * d, (r + 1) * d) for r in range(sizes.n_heads)]
    return [(block, at[r // each]) for r, block in enumerate(at)]


@law(
    "head r is the attention of column block r",
    "Concat[:, r] = attention(X W_Q[r], X W_K[r], X W_V[r])",
    "cutting the large projection gives the small ones, up to rounding",
    cases=layers_of(*FOUR[:3]),
)
def head_owns_its_columns(layer, X, **weights):
    heads = concat(layer, X, weights)
    for r, (block, group) in enumerate(blocks(layer.sizes)):
        columns = zip(weights.values(), (block, group, group), strict=True)
        alone = layer.head(r)(*(X @ W[:, own] for W, own in columns))
        if failure := differs(alone, heads[:, block], f"head {r + 1}, alone at first"):
            return failure
    return None


@law(
    "the matrices of a head move the slices that read them, and no other",
    "∂Concat[:, s]/∂W[r] = 0 where head s does not read W[r]",
    "before W_O a head depends on its own matrices only",
    # Integers cancel now and then, and then nothing can move.
    cases=layers_of(*FOUR[:3], integers=False),
    rank=-2,
)
def head_moves_its_own_slice(layer, X, **weights):
    before, heads = concat(layer, X, weights), blocks(layer.sizes)
    for name, W in weights.items():
        read = [pair[name != "W_Q"] for pair in heads]
        for own in read:
            changed, expected = W.copy(), before.copy()
            changed[:, own] *= -1
            after = concat(layer, X, weights | {name: changed})
            moved = [r for r, columns in enumerate(read, 1) if columns == own]
            for block in (heads[r - 1][0] for r in moved):
                expected[:, block] = after[:, block]
            r = own.start // layer.sizes.d_k + 1
            where = f"{name} of head {r} times −1: only slices {moved} may move"
            if failure := differs(expected, after, where):
                return failure
            if not differs(before, after):
                return Failure("other numbers in its columns", "no change", where)
    return None


@law(
    "the output is the sum of head times its block of W_O",
    "Concat(head_1, …, head_h) W_O = Σ_r head_r W_O[r]",
    "a product with blocks side by side is the sum of the blocks' products",
    cases=layers_of(*FOUR),
)
def concat_is_a_sum(layer, X, W_O, **weights):
    z, W_V = layer.sizes, weights["W_V"]
    Y = layer(X, **weights, W_O=W_O, n_heads=z.n_heads)
    for muted in ("", " and one head"):
        parts = []
        for block, group in blocks(z):
            rows, columns = np.zeros_like(W_O), np.zeros_like(W_V)
            rows[block], columns[:, group] = W_O[block], W_V[:, group]
            only = weights | {"W_O": rows, "W_V": columns if muted else W_V}
            parts.append(layer(X, **only, n_heads=z.n_heads))
        if failure := differs(sum(parts), Y, f"one block of W_O{muted} each"):
            return failure
    return None


def head_counts(rng, subject):
    for n_heads in (subject.sizes.n_heads,) if subject.sizes.fixed else (1, 2):
        yield {"n_heads": n_heads, "seed": int(rng.integers(1000))}


@law(
    "4 d² weights matter, whatever the number of heads",
    "#{w : ∂Y/∂w ≠ 0} = 4 d_model² for every h",
    "more heads cut the same four matrices into narrower blocks",
    cases=head_counts,
    compares=False,
)
def parameters_ignore_heads(layer, n_heads, seed):
    z = layer.sizes
    rng, d = np.random.default_rng(seed), z.d_model if z.fixed else 6
    skip_if(z.n_kv_heads != z.n_heads, "heads that share keys have fewer weights")
    skip_if(d > WIDE, f"{4 * d * d} weights are too many to try")
    # Sequence i has numbers in column i only, so it shows row i of W_Q, W_K and W_V.
    X = np.eye(d)[:, None] * rng.uniform(0.5, 1.5, (d, 3, 1))
    # Small numbers: where one key has the whole weight, no query can move it.
    signs = rng.choice([-1, 1], (4, d, d))
    weights = dict(zip(FOUR, signs * rng.uniform(0.25, 0.75, (4, d, d)), strict=True))
    Y, used = layer(X, **weights, n_heads=n_heads), 0
    for name, i in itertools.product(FOUR, range(d)):
        changed = weights[name].copy()
        changed[(i,) if name == "W_O" else (slice(None), i)] += 1
        moved = abs(layer(X, **weights | {name: changed}, n_heads=n_heads) - Y) > 1e-5
        used += moved.any((0, 1) if name == "W_O" else (1, 2)).sum()
    where = f"weights with {n_heads} head{'s' * (n_heads > 1)}, d_model = {d}"
    return None if used == 4 * d * d else Failure(f"{4 * d * d}", f"{used}", where)
