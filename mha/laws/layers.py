"""The laws of attention as a whole, and of many heads. Some need weight matrices."""

import numpy as np

from mha.attention import scaled_dot_product_attention
from mha.heads import multi_head_attention
from mha.laws.draw import SIZES, open_mask, qkv, rows
from mha.laws.judge import Failure, differs, law
from mha.laws.stack import Drawn, encoder_weights, reference
from mha.laws.subject import FOUR, OTHER_SIZES
from mha.laws.words import NotApplicable

__all__ = [
    "concat_is_a_sum", "dtype_is_kept", "equals_reference", "head_moves_its_own_slice",
    "head_owns_its_columns", "inputs_stay_untouched", "key_order_is_free",
    "outputs_follow_tokens", "parameters_ignore_heads", "scores_are_not_symmetric",
    "shifting_keys_changes_nothing",
]  # fmt: skip


def follow_cases(rng):
    for batch in ((), (2,)):
        for size in SIZES[len(batch) :]:
            X = rows(rng, size.n_k, size, *batch)
            order = np.roll(np.arange(size.n_k), int(rng.integers(1, size.n_k)))
            yield {"X": X, "order": order}


@law(
    "permuting the tokens permutes the outputs",
    "attention(P X) = P attention(X)",
    "every token is treated alike, and no step knows a position",
    cases=follow_cases,
    sees_all=True,
    orderless=True,
)
def outputs_follow_tokens(subject, X, order):
    heads = min(2, subject.sizes.heads)
    if X.ndim == 2:
        Y, P = subject.attend(X, X, X, heads=heads), X[order]
        return differs(Y[order], subject.attend(P, P, P, heads=heads))
    if subject.kind == "attention" or not subject.takes_batch:
        raise NotApplicable("it reads one sequence at a time")
    # One sequence of two is permuted; the other must not notice.
    Y = subject.attend(X, X, X, heads=heads)
    P, expected = (np.stack([x[0, order], x[1]]) for x in (X, Y))
    got = subject.attend(P, P, P, heads=heads)
    return differs(expected, got, "only sequence 0 is permuted")


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
    for _ in range(2):
        X, W_Q, W_K = (rng.standard_normal((3, 3)).round(1) for _ in range(3))
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
    eye, plain = np.eye(len(X)), not (subject.own or subject.said.n_kv_heads)
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


def untouched_cases(rng):
    for size in SIZES:
        n = size.n_q
        case = {name: x[:n] for name, x in qkv(rng, size).items()}
        yield case
        for empty in (n, -1):
            mask = np.tri(n, dtype=bool)
            mask[empty:] = False
            yield case | {"mask": mask}


@law(
    "the arguments are not modified",
    "Q, K, V and M are the same before and after",
    "a function returns its result and leaves the caller's arrays as they are",
    cases=untouched_cases,
)
def inputs_stay_untouched(subject, Q, K, V, mask=None):
    given = {"Q": Q.copy(), "K": K.copy(), "V": V.copy()}
    given |= {} if mask is None else {"mask": mask.copy()}
    ask, arrays = subject.borrowing().attend, given
    if subject.kind == "encoder" or subject.own:
        given, arrays, ask = _whole_call(subject.borrowing(), **given)
    before = {name: x.copy() for name, x in arrays.items()}
    for _ in range(2):
        ask(**given)
        for name, x in arrays.items():
            if not np.array_equal(x, before[name]):
                return Failure(before[name], x, f"{name} after the call")
    return None


def _whole_call(subject, Q, K, V, mask=None):
    """Return what an encoder or a module is given, all arrays in it, and the call."""
    sizes = subject.sizes
    X = np.resize(Q, (len(Q), sizes.width))
    arrays = {"X": X} | ({} if mask is None else {"mask": mask})
    if subject.kind == "layer":
        weights = subject.some_weights()
        ask = lambda X, mask=None: subject.layer(X, weights, sizes.heads, mask)  # noqa: E731
        return arrays, arrays, ask
    layers = encoder_weights(0, sizes.depth, sizes.width, sizes.hidden)
    named = {
        f"{name} of layer {i}": W for i, w in enumerate(layers) for name, W in w.items()
    }
    return arrays | {"layers": layers}, arrays | named, subject.encode


@law(
    "float32 in gives float32 out, and float64 gives float64",
    "dtype(Y) = dtype(Q)",
    "float64 takes twice the memory of float32",
    dtype=("float32", "float64"),
)
def dtype_is_kept(subject, Q, K, V, dtype, mask=None):
    three = [x.astype(dtype) for x in (Q, K, V)]
    if subject.kind == "encoder":
        three, mask = three[:1] * 3, None
    Y = subject.attend(*three, mask)
    return None if str(Y.dtype) == dtype else Failure(dtype, str(Y.dtype))


def _layer_input(rng, sizes, *leading):
    """Return tokens and four matrices of a layer of these sizes."""
    d, d_kv = sizes.width, sizes.groups * sizes.d_k
    widths = dict(zip(FOUR, (d, d_kv, d_kv, d), strict=True))
    # Wide matrices give numbers of the same size as narrow ones.
    size = 2 * np.sqrt(d / 6)
    case = {"X": rng.integers(-2, 3, (*leading, d)).astype(float)}
    return case | {n: rng.integers(-2, 3, (d, w)) / size for n, w in widths.items()}


def _blocks(sizes):
    d = sizes.d_k
    return [slice(r * d, (r + 1) * d) for r in range(sizes.heads)]


def layer_cases(rng, subject):
    for n in (2, 3):
        yield _layer_input(rng, subject.sizes, n)


def concat_cases(rng, subject):
    for case in layer_cases(rng, subject):
        del case["W_O"]
        yield case


def _concat(subject, X, **weights):
    """Return the heads side by side: with W_O = I nothing mixes them."""
    width, heads = subject.sizes[:2]
    return subject.layer(X, weights | {"W_O": np.eye(width)}, heads)


@law(
    "head r is the attention of column block r",
    "Concat[:, r] = attention(X W_Q[r], X W_K[r], X W_V[r])",
    "cutting the large projection gives the small ones, up to rounding",
    cases=concat_cases,
    level="layer",
)
def head_owns_its_columns(subject, X, W_Q, W_K, W_V):
    sizes = subject.sizes
    heads = _concat(subject, X, W_Q=W_Q, W_K=W_K, W_V=W_V)
    blocks = _blocks(sizes)
    for r, block in enumerate(blocks):
        group = blocks[r * sizes.groups // sizes.heads]
        three = X @ W_Q[:, block], X @ W_K[:, group], X @ W_V[:, group]
        if failure := differs(subject.attend(*three), heads[:, block], f"head {r + 1}"):
            compared = f"compared with 1 head on Q, K, V of head {r + 1}"
            subject.log["attend"] = f"{sizes.heads} heads, {compared}"
            return failure
    return None


def moves_cases(rng, subject):
    # No integers here: they cancel now and then, and then nothing can move.
    sizes = subject.sizes
    d, d_kv = sizes.width, sizes.groups * sizes.d_k
    size = 2 * np.sqrt(d / 6)
    for n in (2, 3):
        case = {"X": rng.standard_normal((n, d)).round(1)}
        for name, width in zip(FOUR[:3], (d, d_kv, d_kv), strict=True):
            case[name] = (rng.standard_normal((d, width)) / size).round(2)
        yield case | {"change": (rng.standard_normal((d, sizes.d_k)) / size).round(2)}


@law(
    "the matrices of head r move slice r, and no other",
    "∂Concat[:, s]/∂W[r] = 0 for s ≠ r",
    "before W_O no head depends on another",
    cases=moves_cases,
    level="layer",
)
def head_moves_its_own_slice(subject, change, X, **weights):
    sizes = subject.sizes
    before, d_k = _concat(subject, X, **weights), sizes.d_k
    for name in FOUR[:3]:
        n_blocks = sizes.heads if name == "W_Q" else sizes.groups
        for r, block in enumerate(_blocks(sizes)[:n_blocks], 1):
            W = weights[name].copy()
            W[:, block] += change
            after = _concat(subject, X, **(weights | {name: W}))
            where = f"{name} of head {r} changed"
            width = d_k * sizes.heads // n_blocks
            moved = slice((r - 1) * width, r * width)
            if failure := _only_block_moved(before, after, moved, where):
                return failure
    return None


def _only_block_moved(before, after, block, where):
    expected = before.copy()
    expected[:, block] = after[:, block]
    if (failure := differs(expected, after, where)) or differs(before, after):
        return failure
    moved = f"other numbers in columns {block.start} to {block.stop - 1}"
    return Failure(moved, "no change", where)


@law(
    "the output is the sum of head times its block of W_O",
    "Concat(head_1, …, head_h) W_O = Σ_r head_r W_O[r]",
    "a product with blocks side by side is the sum of the blocks' products",
    cases=layer_cases,
    level="layer",
)
def concat_is_a_sum(subject, X, W_Q, W_K, W_V, W_O):
    sizes, weights = subject.sizes, {"W_Q": W_Q, "W_K": W_K, "W_V": W_V}
    Y = subject.layer(X, weights | {"W_O": W_O}, sizes.heads)
    blocks = _blocks(sizes)
    for muted in (False, True):
        parts = []
        for r, block in enumerate(blocks):
            rows, columns = np.zeros_like(W_O), np.zeros_like(W_V)
            group = blocks[r * sizes.groups // sizes.heads]
            rows[block], columns[:, group] = W_O[block], W_V[:, group]
            only = weights | {"W_O": rows, "W_V": columns if muted else W_V}
            parts.append(subject.layer(X, only, sizes.heads))
        where = "each term with one block of W_O" + " and one head" * muted
        if failure := differs(sum(parts), Y, where):
            return failure
    return None


@law(
    "4 d² weights matter, whatever the number of heads",
    "#{w : ∂Y/∂w ≠ 0} = 4 d_model² for every h",
    "more heads cut the same four matrices into narrower blocks",
    level="layer",
    d_model=(6,),
    n=(3,),
)
def parameters_ignore_heads(subject, d_model, n, seed):
    if subject.own and subject.make is None:
        raise NotApplicable(OTHER_SIZES)
    if subject.said.n_kv_heads:
        raise NotApplicable("heads that share keys have fewer weights")
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d_model))
    # Small numbers: where one key has the whole weight, no query can move it.
    weights = {name: rng.standard_normal((d_model, d_model)) / 3 for name in FOUR}
    wanted = {h: 4 * d_model**2 for h in (1, 2)}
    used = {h: _used(subject, X, weights, h) for h in wanted}
    return None if used == wanted else Failure(_counted(wanted), _counted(used))


def _counted(counts):
    parts = [f"{n} with {h} head{'s' * (h > 1)}" for h, n in counts.items()]
    return "weights that matter: " + ", ".join(parts)


def _used(subject, X, weights, n_heads):
    """Count the entries of the four matrices that the output depends on."""
    Y, used = subject.layer(X, weights, n_heads), 0
    for name, W in weights.items():
        for index in np.ndindex(W.shape):
            changed = W.copy()
            changed[index] += 1
            Y_changed = subject.layer(X, weights | {name: changed}, n_heads)
            used += differs(Y, Y_changed) is not None
    return used


def reference_cases(rng, subject):
    if subject.kind == "layer":
        yield from whole_layer_cases(rng, subject.sizes)
    elif subject.kind == "encoder":
        yield from whole_encoder_cases(rng, subject.sizes)
    for size in () if subject.kind != "attention" else SIZES:
        case = qkv(rng, size)
        yield case
        # Square: where a causal mask of another shape begins is a convention.
        square = {name: x[: size.n_q] for name, x in case.items()}
        yield square | {"is_causal": True}
        yield qkv(rng, size) | {"mask": open_mask(rng, size.n_q, size.n_k)}


def whole_layer_cases(rng, sizes):
    for leading in ((5,), (2, 5)):
        case = _layer_input(rng, sizes, *leading)
        yield case
        yield case | {"is_causal": True}
        yield case | {"mask": np.tri(5, dtype=bool)}
        yield case | {"mask": np.array([[True, True, False, True, False]])}
        others = rng.integers(-2, 3, (*leading[:-1], 7, sizes.width))
        yield case | {"X_k": others.astype(float)}
        widths = {
            f"b_{name[-1]}": W.shape[1] for name, W in case.items() if name != "X"
        }
        yield case | {b: rng.integers(-2, 3, w) / 2 for b, w in widths.items()}
    padding = np.arange(5) < np.array([5, 1])[:, None, None, None]
    yield _layer_input(rng, sizes, 2, 5) | {"mask": padding}


def whole_encoder_cases(rng, sizes):
    for depth in range(sizes.depth if sizes.depth > 2 else 1, sizes.depth + 1):
        for shape in ((5, sizes.width), (2, 5, sizes.width)):
            X = rng.integers(-2, 3, shape).astype(float)
            drawn = Drawn(rng.integers(1000), sizes._replace(depth=depth))
            case = {"X": X, "layers": drawn}
            yield case
            yield case | {"mask": np.array([[True, True, False, True, False]])}
            yield case | {"is_causal": True}


@law(
    "the numbers equal those of mha with the same weights",
    "Y = Concat(head_1, …, head_h) W_O",
    "inputs and matrices determine the output",
    cases=reference_cases,
)
def equals_reference(subject, mask=None, is_causal=False, **inputs):
    options = {"mask": mask, "is_causal": is_causal}
    if subject.always_causal and not is_causal:
        raise NotApplicable("it is always causal")
    if "Q" in inputs:
        expected = scaled_dot_product_attention(**inputs, **options)
        return differs(expected, subject.attend(**inputs, **options))
    X, X_k = inputs.pop("X"), inputs.pop("X_k", None)
    if X.ndim == 3 and not subject.takes_batch:
        raise NotApplicable("it reads one sequence at a time")
    if subject.kind == "encoder":
        layers = inputs["layers"].draw()
        layers = [subject.with_places(weights, X.dtype) for weights in layers]
        expected = reference(X, layers, subject, **options)
        return differs(expected, subject.encode(X, layers, **options))
    if "b_Q" in inputs and not subject.takes_bias:
        raise NotApplicable("it has no biases")
    sizes = subject.sizes
    Y = subject.layer(X, inputs, sizes.heads, X_k=X_k, **options)
    whole = {name: _for_all_heads(W, sizes, name) for name, W in inputs.items()}
    expected = multi_head_attention(X, n_heads=sizes.heads, X_k=X_k, **whole, **options)
    return differs(expected, Y, f"{sizes.heads} heads")


def _for_all_heads(W, sizes, name):
    """Repeat the columns of keys and values that several heads share."""
    if name[-1] not in "KV" or sizes.groups == sizes.heads:
        return W
    cut = W.reshape(*W.shape[:-1], sizes.groups, sizes.d_k)
    return cut.repeat(sizes.heads // sizes.groups, -2).reshape(*W.shape[:-1], -1)
