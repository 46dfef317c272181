"""The laws of attention as a whole, and of many heads. Some need weight matrices."""

import itertools
from functools import partial

import numpy as np

from mha.laws.judge import (
    SIZES,
    TOLERANCE,
    Failure,
    Size,
    differs,
    fitted,
    law,
    numbers,
    open_mask,
    qkv,
    right,
)
from mha.laws.masks import among_tokens, last_sees_nothing, past, tokens_under
from mha.laws.stack import drawn_for
from mha.laws.subject import FOUR
from mha.laws.words import NotApplicable, skip_if

MOST = 8e7  # so many scores may be in memory at once
WIDE = 64  # wider layers have too many weights to try them


def matrices(rng, sizes, names=FOUR, integers=True):
    """Draw matrices of a layer; wide ones give numbers of the same size as narrow."""
    d, d_kv = sizes.width, sizes.groups * sizes.d_k
    widths, size = dict(zip(FOUR, (d, d_kv, d_kv, d), strict=True)), 2 * np.sqrt(d / 6)
    drawn = {x: numbers(rng, d, widths[x], integers=integers) for x in names}
    return {x: (W / size).round(2) for x, W in drawn.items()}


def weights_for(subject, seed=0):
    if subject.kind == "encoder":
        return drawn_for(subject.sizes, seed)
    return [matrices(np.random.default_rng(seed), subject.sizes)]


def tokens_for(subject, X):
    """Return by name what is asked about: Q, K and V, or tokens of its width."""
    if subject.kind == "attention":
        return {name: X.copy() for name in "QKV"}
    return {"X": np.resize(X.T, (subject.sizes.width, len(X))).T.copy()}


def run(subject, given, weights, **options):
    if subject.kind == "attention":
        return subject.attend(**given, **options)
    if subject.kind == "encoder":
        return subject.encode(**given, layers=weights, **options)
    return subject.layer(given["X"], weights[0], subject.sizes.heads, **options)


@law(
    "permuting the tokens permutes the outputs",
    "attention(P X) = P attention(X)",
    "every token is treated alike, and no step knows a position",
    sees_all=True,
    orderless=True,
)
def outputs_follow_tokens(subject, X, order):
    ask = partial(among_tokens, subject)
    failure = differs(ask(X)[order], ask(X[order]))
    if failure or subject.kind == "attention" or not subject.takes_batch:
        return failure
    # One sequence of two is permuted; the other must not notice.
    (first, second), got = ask(np.stack([X, X])), ask(np.stack([X[order], X]))
    return differs([first[order], second], got, "X twice, only the first is permuted")


@law(
    "permuting keys with their values changes nothing",
    "attention(Q, P K, P V) = attention(Q, K, V)",
    "a sum does not depend on the order of its terms",
    sees_all=True,
    orderless=True,
)
def key_order_is_free(subject, Q, K, V, order, mask=None):
    moved = None if mask is None else mask[:, order]
    Y = subject.attend(Q, K[order], V[order], moved)
    return differs(subject.attend(Q, K, V, mask), Y)


@law(
    "adding one vector to every key changes nothing",
    "attention(Q, K + 1 cᵀ, V) = attention(Q, K, V)",
    "all scores of query i rise by q_i · c, and softmax ignores a common rise",
)
def shifting_keys_changes_nothing(subject, Q, K, V, shift):
    return differs(subject.attend(Q, K, V), subject.attend(Q, K + shift, V))


def asymmetry_cases(rng):
    X, W_Q, W_K = rng.standard_normal((3, 3, 3)).round(1)
    yield {"X": X, "W_Q": W_Q, "W_K": W_K}


@law(
    "the score of i with j can differ from that of j with i",
    "S ≠ Sᵀ, even up to one number per row, for W_Q and W_K drawn at random",
    "queries and keys are read by two matrices; were W_K = 2 W_Q, S would be symmetric",
    cases=asymmetry_cases,
    sees_all=True,
)
def scores_are_not_symmetric(subject, X, W_Q, W_K):
    """Sum log A around a triangle, both ways: only what is symmetric cancels."""
    eye, plain = np.eye(3), not (subject.own or subject.said.n_kv_heads)
    if subject.kind == "attention" or not (plain and subject.other_names):
        A = subject.attend(X @ W_Q, X @ W_K, eye)
    else:
        weights = {"W_Q": W_Q, "W_K": W_K, "W_V": eye, "W_O": eye}
        A = subject.layer(X, weights, 1, X_k=X, X_v=eye)
    S = np.log(A)
    around = S[0, 1] + S[1, 2] + S[2, 0] - S[1, 0] - S[2, 1] - S[0, 2]
    if not abs(around) < 1e-6:
        return None
    wanted = "L[0,1] + L[1,2] + L[2,0] other than L[1,0] + L[2,1] + L[0,2]"
    return Failure(wanted, "equal sums", "L = log A, the logarithms of the weights")


@law(
    "the arguments are not modified",
    "Q, K, V and M are the same before and after",
    "a function returns its result and leaves the caller's arrays as they are",
    cases=tokens_under(lambda n: {}, past, last_sees_nothing),
)
def inputs_stay_untouched(subject, X, mask=None):
    given, weights = tokens_for(subject, X), weights_for(subject)
    mask = None if mask is None else mask.copy()
    arrays = given | ({} if mask is None else {"mask": mask})
    for i, layer in enumerate(weights, 1):
        arrays |= {f"{name} of layer {i}": W for name, W in layer.items()}
    before = {name: x.copy() for name, x in arrays.items()}
    run(subject.but(borrows=True), given, weights, mask=mask)
    for name, x in arrays.items():
        if not np.array_equal(x, before[name]):
            return Failure(before[name], x, f"{name} after the call")


@law(
    "float32 in gives float32 out, and float64 gives float64",
    "dtype(Y) = dtype(Q)",
    "float64 takes twice the memory of float32",
    sizes=(Size(2, 2, 2), Size(3, 3, 2)),
    dtype=("float32", "float64"),
)
def dtype_is_kept(subject, X, dtype, mask=None):
    Y = among_tokens(subject, X.astype(dtype), mask)
    return None if str(Y.dtype) == dtype else Failure(dtype, str(Y.dtype))


def layers_of(*names, integers=True):
    def cases(rng, subject):
        for n in (2, 3):
            X = numbers(rng, n, subject.sizes.width, integers=integers).round(1)
            yield {"X": X} | matrices(rng, subject.sizes, names, integers)

    return cases


def concat(subject, X, weights):
    """Return the heads side by side: with W_O = I nothing mixes them."""
    weights = weights | {"W_O": np.eye(subject.sizes.width)}
    return subject.layer(X, weights, subject.sizes.heads)


def blocks(sizes):
    """Return the columns of each head, and of the keys and values that it reads."""
    d, each = sizes.d_k, sizes.heads // sizes.groups
    at = [slice(r * d, (r + 1) * d) for r in range(sizes.heads)]
    return [(block, at[r // each]) for r, block in enumerate(at)]


@law(
    "head r is the attention of column block r",
    "Concat[:, r] = attention(X W_Q[r], X W_K[r], X W_V[r])",
    "cutting the large projection gives the small ones, up to rounding",
    cases=layers_of(*FOUR[:3]),
    level="layer",
)
def head_owns_its_columns(subject, X, **weights):
    heads = concat(subject, X, weights)
    for r, (block, group) in enumerate(blocks(subject.sizes), 1):
        columns = zip(weights.values(), (block, group, group), strict=True)
        alone = subject.attend(*(X @ W[:, own] for W, own in columns))
        if failure := differs(alone, heads[:, block], f"head {r}, alone at first"):
            return failure


@law(
    "the matrices of a head move the slices that read them, and no other",
    "∂Concat[:, s]/∂W[r] = 0 where head s does not read W[r]",
    "before W_O a head depends on its own matrices only",
    # Integers cancel now and then, and then nothing can move.
    cases=layers_of(*FOUR[:3], integers=False),
    level="layer",
)
def head_moves_its_own_slice(subject, X, **weights):
    before, heads = concat(subject, X, weights), blocks(subject.sizes)
    for name, W in weights.items():
        read = [pair[name != "W_Q"] for pair in heads]
        for own in read:
            changed, expected = W.copy(), before.copy()
            changed[:, own] *= -1
            after = concat(subject, X, weights | {name: changed})
            moved = [r for r, columns in enumerate(read, 1) if columns == own]
            for block in (heads[r - 1][0] for r in moved):
                expected[:, block] = after[:, block]
            r, kind = own.start // subject.sizes.d_k + 1, "key " * (len(moved) > 1)
            where = f"{name} of {kind}head {r} times −1: only slices {moved} may move"
            if failure := differs(expected, after, where):
                return failure
            if not differs(before, after):
                return Failure("other numbers in its columns", "no change", where)


@law(
    "the output is the sum of head times its block of W_O",
    "Concat(head_1, …, head_h) W_O = Σ_r head_r W_O[r]",
    "a product with blocks side by side is the sum of the blocks' products",
    cases=layers_of(*FOUR),
    level="layer",
)
def concat_is_a_sum(subject, X, W_O, **weights):
    sizes, W_V = subject.sizes, weights["W_V"]
    Y = subject.layer(X, weights | {"W_O": W_O}, sizes.heads)
    for muted in ("", " and one head"):
        parts = []
        for block, group in blocks(sizes):
            rows, columns = np.zeros_like(W_O), np.zeros_like(W_V)
            rows[block], columns[:, group] = W_O[block], W_V[:, group]
            only = weights | {"W_O": rows, "W_V": columns if muted else W_V}
            parts.append(subject.layer(X, only, sizes.heads))
        if failure := differs(sum(parts), Y, f"one block of W_O{muted} each"):
            return failure


def head_counts(rng, subject):
    for n_heads in (subject.own.heads,) if subject.own else (1, 2):
        yield {"n_heads": n_heads, "seed": int(rng.integers(1000))}


@law(
    "4 d² weights matter, whatever the number of heads",
    "#{w : ∂Y/∂w ≠ 0} = 4 d_model² for every h",
    "more heads cut the same four matrices into narrower blocks",
    level="layer",
    cases=head_counts,
)
def parameters_ignore_heads(subject, n_heads, seed):
    skip_if(subject.said.n_kv_heads, "heads that share keys have fewer weights")
    rng, d = np.random.default_rng(seed), subject.own.width if subject.own else 6
    skip_if(d > WIDE, f"{4 * d * d} weights are too many to try")
    # Sequence i has numbers in column i only, so it shows row i of W_Q, W_K and W_V.
    X = np.eye(d)[:, None] * rng.uniform(0.5, 1.5, (d, 3, 1))
    # Small numbers: where one key has the whole weight, no query can move it.
    signs = rng.choice([-1, 1], (4, d, d))
    weights = dict(zip(FOUR, signs * rng.uniform(0.25, 0.75, (4, d, d)), strict=True))

    def ask(weights):
        if subject.takes_batch:
            return subject.layer(X, weights, n_heads)
        return np.stack([subject.layer(x, weights, n_heads) for x in X])

    Y, used = ask(weights), 0
    for name, i in itertools.product(FOUR, range(d)):
        changed = weights[name].copy()
        changed[(i,) if name == "W_O" else (slice(None), i)] += 1
        moved = abs(ask(weights | {name: changed}) - Y) > TOLERANCE
        used += moved.any((0, 1) if name == "W_O" else (1, 2)).sum()
    where = f"weights with {n_heads} head{'s' * (n_heads > 1)}, d_model = {d}"
    return None if used == 4 * d * d else Failure(f"{4 * d * d}", f"{used}", where)


def expect_memory(subject, n, most=MOST):
    skip_if(n * n * subject.sizes.heads > most, f"{n} tokens take too much memory")


def reference_cases(rng, subject):
    # Few loud tokens and many, behind what a window or a table may end at.
    ends = [design.w + 3 for design in subject.designs if hasattr(design, "w")]
    counts = [(17, 1), (17, 40), (401, 1)] + [(n, 1) for n in ends if n != 401]
    for n, times in counts if subject.designs else ():
        yield {"n": n, "queries_times": times, "seed": int(rng.integers(1000))}
    if subject.kind == "attention":
        for size in (fitted(size, subject) for size in SIZES):
            case, square = qkv(rng, size), qkv(rng, size._replace(n_k=size.n_q))
            # Square: where a causal mask of another shape begins is a convention.
            mask = open_mask(rng, size.n_q, size.n_k)
            yield from (case, square | {"is_causal": True}, case | {"mask": mask})
        return
    sizes = subject.sizes
    for front in ((), (2,)):
        case = {"X": numbers(rng, *front, 5, sizes.width)}
        row = np.array([[True, True, False, True, False]])
        masks = [{"mask": mask} for mask in (open_mask(rng, 5, 5), row)]
        more = [{}, {"is_causal": True}, *masks]
        if subject.kind == "encoder":
            case["layers"] = drawn_for(sizes, rng.integers(1000))
        else:
            case |= matrices(rng, sizes)
            others = numbers(rng, *front, 7, sizes.width)
            biases = {f"b_{x[-1]}": case[x][0] for x in FOUR}
            padding = np.arange(5) < np.array([5, 1])[:, None, None, None]
            more += [{"X_k": others}, biases] + [{"mask": padding}] * len(front)
        yield from (case | options for options in more)


def equals_design(subject, n, queries_times, seed):
    sizes, rng = subject.sizes, np.random.default_rng(seed)
    expect_memory(subject, n, MOST / 8)
    if subject.kind == "layer":
        weights = [matrices(rng, sizes, integers=False)]
        weights[0]["W_Q"] *= queries_times / 2
        given = {"X": rng.standard_normal((n, sizes.width))}
    else:
        h = 2 * (subject.said.n_kv_heads or 2)
        heads = (h, subject.said.n_kv_heads or h) if subject.takes_heads else ()
        fronts = [(1, x) for x in (*heads, *heads[1:])] or [()] * 3
        three = [rng.standard_normal((*front, n, 4)) for front in fronts]
        given, weights = dict(zip("QKV", three, strict=True)), None
        given["Q"] = queries_times * given["Q"]
    ask = partial(run, given=given, weights=weights)
    due, got = (ask(x, is_causal=x.always_causal) for x in (right(subject), subject))
    # Angles of many turns, and loud scores, may be in float32.
    return differs(due, got, f"{n} tokens, queries times {queries_times}", 1e-3)


@law(
    "the numbers equal those of correct attention with the same weights",
    "Y = Concat(head_1, …, head_h) W_O",
    "inputs and matrices determine the output",
    cases=reference_cases,
)
def equals_reference(subject, mask=None, is_causal=False, **given):
    if "n" in given:
        return equals_design(subject, **given)
    skip_if(subject.always_causal and not is_causal, "it is always causal")
    if "b_Q" in given:
        skip_if(not (has := subject.takes_bias), "it has no biases")
        if has is not True:  # a module may have some of the four
            given = {x: W * (x[:2] != "b_" or x in has) for x, W in given.items()}
    if np.ndim(given.get("X")) == 3 and not subject.takes_batch:
        raise NotApplicable("it reads one sequence at a time")
    options, heads = {"mask": mask, "is_causal": is_causal}, ""
    weights = given.pop("layers", None)
    if subject.kind == "layer":
        options["X_k"], heads = given.pop("X_k", None), f"{subject.sizes.heads} heads"
        weights = [{name: given.pop(name) for name in [*given] if name != "X"}]
    # First, since what it refuses is no case.
    got = run(subject, given, weights, **options)
    return differs(run(right(subject), given, weights, **options), got, heads)
