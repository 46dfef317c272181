"""The laws of attention as a whole, and of many heads. Some need weight matrices."""

from functools import partial

import numpy as np

from mha.attention import scaled_dot_product_attention
from mha.heads import multi_head_attention
from mha.laws.draw import SIZES, Size, numbers, open_mask, qkv
from mha.laws.judge import Failure, differs, law
from mha.laws.masks import among_tokens, last_sees_nothing, past, tokens_under
from mha.laws.stack import Drawn, reference
from mha.laws.subject import FOUR, OTHER_SIZES
from mha.laws.words import NotApplicable

__all__ = [
    "concat_is_a_sum", "dtype_is_kept", "equals_reference", "head_moves_its_own_slice",
    "head_owns_its_columns", "inputs_stay_untouched", "key_order_is_free",
    "outputs_follow_tokens", "parameters_ignore_heads", "scores_are_not_symmetric",
    "shifting_keys_changes_nothing",
]  # fmt: skip


def matrices(rng, sizes, names=FOUR, integers=True):
    """Draw matrices of a layer; wide ones give numbers of the same size as narrow."""
    d, d_kv = sizes.width, sizes.groups * sizes.d_k
    widths, size = dict(zip(FOUR, (d, d_kv, d_kv, d), strict=True)), 2 * np.sqrt(d / 6)
    drawn = {x: numbers(rng, d, widths[x], integers=integers) for x in names}
    return {x: (W / size).round(2) for x, W in drawn.items()}


def weights_for(subject, seed=0):
    """Return weights of all layers that it has, in its sizes."""
    if subject.kind == "encoder":
        return Drawn(seed, subject.sizes).draw()
    return [matrices(np.random.default_rng(seed), subject.sizes)]


def tokens_for(subject, X):
    """Return by name what is asked about: Q, K and V, or tokens of its width."""
    if subject.kind == "attention":
        return {name: X.copy() for name in "QKV"}
    return {"X": np.resize(X.T, (subject.sizes.width, len(X))).T.copy()}


def run(subject, given, weights, mask=None):
    """Return the output for what `tokens_for` and `weights_for` give."""
    if subject.kind == "attention":
        return subject.attend(**given, mask=mask)
    if subject.kind == "encoder":
        return subject.encode(**given, layers=weights, mask=mask)
    return subject.layer(given["X"], weights[0], subject.sizes.heads, mask)


def correct_layer(X, weights, sizes, **options):
    """Return what mha gives; it has keys and values for every head."""
    read = np.concatenate([np.r_[group] for _, group in blocks(sizes)])
    whole = {x: W[..., read] if x[-1] in "KV" else W for x, W in weights.items()}
    return multi_head_attention(X, n_heads=sizes.heads, **whole, **options)


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
    "S ≠ Sᵀ, even up to one number per row, when W_Q ≠ W_K",
    "queries and keys are read by two different matrices",
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
    run(subject.borrowing(), given, weights, mask)
    for name, x in arrays.items():
        if not np.array_equal(x, before[name]):
            return Failure(before[name], x, f"{name} after the call")
    return None


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
    """Return cases: tokens, and these matrices of a layer."""

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
    return None


@law(
    "the matrices of head r move slice r, and no other",
    "∂Concat[:, s]/∂W[r] = 0 for s ≠ r",
    "before W_O no head depends on another",
    # Integers cancel now and then, and then nothing can move.
    cases=layers_of(*FOUR[:3], integers=False),
    level="layer",
)
def head_moves_its_own_slice(subject, X, **weights):
    before, heads = concat(subject, X, weights), blocks(subject.sizes)
    for name, W in weights.items():
        for r, pair in enumerate(heads, 1):
            own = pair[name != "W_Q"]
            changed, expected = W.copy(), before.copy()
            changed[:, own] *= -1
            after = concat(subject, X, weights | {name: changed})
            for block, group in heads:
                if own == (block if name == "W_Q" else group):
                    expected[:, block] = after[:, block]
            where = f"{name} of head {r} changed"
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
    return None


@law(
    "4 d² weights matter, whatever the number of heads",
    "#{w : ∂Y/∂w ≠ 0} = 4 d_model² for every h",
    "more heads cut the same four matrices into narrower blocks",
    level="layer",
    n_heads=(1, 2),
)
def parameters_ignore_heads(subject, n_heads, seed):
    if subject.own and subject.make is None:
        raise NotApplicable(OTHER_SIZES)
    if subject.said.n_kv_heads:
        raise NotApplicable("heads that share keys have fewer weights")
    rng = np.random.default_rng(seed)
    X, used = rng.standard_normal((3, 6)), 0
    # Small numbers: where one key has the whole weight, no query can move it.
    weights = {name: rng.standard_normal((6, 6)) / 3 for name in FOUR}
    Y = subject.layer(X, weights, n_heads)
    for name in FOUR:
        for index in np.ndindex(6, 6):
            changed = weights[name].copy()
            changed[index] += 1
            after = subject.layer(X, weights | {name: changed}, n_heads)
            used += differs(Y, after) is not None
    where = f"weights with {n_heads} head{'s' * (n_heads > 1)}, d_model = 6"
    return None if used == 4 * 6**2 else Failure(f"{4 * 6**2}", f"{used}", where)


def reference_cases(rng, subject):
    if subject.kind == "attention":
        for size in SIZES:
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
            case["layers"] = Drawn(rng.integers(1000), sizes)
        else:
            case |= matrices(rng, sizes)
            others = numbers(rng, *front, 7, sizes.width)
            biases = {f"b_{x[-1]}": case[x][0] for x in FOUR}
            padding = np.arange(5) < np.array([5, 1])[:, None, None, None]
            more += [{"X_k": others}, biases] + [{"mask": padding}] * len(front)
        yield from (case | options for options in more)


@law(
    "the numbers equal those of mha with the same weights",
    "Y = Concat(head_1, …, head_h) W_O",
    "inputs and matrices determine the output",
    cases=reference_cases,
)
def equals_reference(subject, mask=None, is_causal=False, **given):
    options = {"mask": mask, "is_causal": is_causal}
    if subject.always_causal and not is_causal:
        raise NotApplicable("it is always causal")
    if "Q" in given:
        expected = scaled_dot_product_attention(**given, **options)
        return differs(expected, subject.attend(**given, **options))
    X = given.pop("X")
    if X.ndim == 3 and not subject.takes_batch:
        raise NotApplicable("it reads one sequence at a time")
    if "layers" in given:
        layers = given["layers"].draw()
        layers = [subject.with_places(weights, X.dtype) for weights in layers]
        expected = reference(X, layers, subject, **options)
        return differs(expected, subject.encode(X, layers, **options))
    if "b_Q" in given and not subject.takes_bias:
        raise NotApplicable("it has no biases")
    options["X_k"] = given.pop("X_k", None)
    sizes = subject.sizes
    # First, since what it refuses is no case.
    got = subject.layer(X, given, sizes.heads, **options)
    expected = correct_layer(X, given, sizes, **options)
    return differs(expected, got, f"{sizes.heads} heads")
