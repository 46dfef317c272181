"""The laws of many heads. All but the last need weight matrices."""

import numpy as np

from mha.attention import scaled_dot_product_attention
from mha.heads import multi_head_attention
from mha.laws._draw import qkv_cases
from mha.laws._law import Failure, differs, law
from mha.laws.subjects.conventions import NotApplicable
from mha.laws.subjects.encoder import HEADS, WIDTH, Drawn, expected_encoder
from mha.laws.subjects.layer import FOUR

__all__ = [
    "concat_is_a_sum", "equals_reference", "head_moves_its_own_slice",
    "head_owns_its_columns", "parameters_ignore_heads",
]  # fmt: skip


def layer_cases(rng):
    for n in (2, 3):
        case = {"X": rng.integers(-2, 3, (n, WIDTH)).astype(float)}
        yield case | {n: rng.integers(-2, 3, (WIDTH, WIDTH)) / 2 for n in FOUR}


def _blocks():
    d = WIDTH // HEADS
    return [slice(r * d, (r + 1) * d) for r in range(HEADS)]


def concat_cases(rng):
    for case in layer_cases(rng):
        del case["W_O"]
        yield case


def _concat(subject, X, **weights):
    """Return the heads side by side: with W_O = I nothing mixes them."""
    return subject.layer(X, weights | {"W_O": np.eye(WIDTH)}, HEADS)


@law(
    "head r is the attention of column block r",
    cases=concat_cases,
    equation="Concat[:, r] = attention(X W_Q[r], X W_K[r], X W_V[r])",
    chapter="split",
    reason="cutting the large projection gives the small ones, up to rounding",
    level="layer",
)
def head_owns_its_columns(subject, X, W_Q, W_K, W_V):
    heads = _concat(subject, X, W_Q=W_Q, W_K=W_K, W_V=W_V)
    for r, block in enumerate(_blocks(), 1):
        alone = subject.attend(*(X @ W[:, block] for W in (W_Q, W_K, W_V)))
        if failure := differs(alone, heads[:, block], f"head {r}"):
            if "attend" in subject.log:
                compared = f"compared with 1 head, matrices I, on Q, K, V of head {r}"
                subject.log["attend"] = f"{HEADS} heads, {compared}"
            return failure
    return None


def moves_cases(rng):
    # No integers here: they cancel now and then, and then nothing can move.
    for n in (2, 3):
        X = rng.standard_normal((n, WIDTH)).round(1)
        three = (rng.standard_normal((3, WIDTH, WIDTH)) / 2).round(1)
        change = rng.standard_normal((WIDTH, WIDTH // HEADS)).round(1)
        yield {"X": X, **dict(zip(FOUR[:3], three, strict=True)), "change": change}


@law(
    "the matrices of head r move slice r, and no other",
    cases=moves_cases,
    equation="∂Concat[:, s]/∂W[r] = 0 for s ≠ r",
    chapter="output",
    reason="before W_O no head depends on another",
    level="layer",
)
def head_moves_its_own_slice(subject, change, X, **weights):
    before = _concat(subject, X, **weights)
    for name in FOUR[:3]:
        for r, block in enumerate(_blocks(), 1):
            W = weights[name].copy()
            W[:, block] += change
            after = _concat(subject, X, **(weights | {name: W}))
            where = f"{name} of head {r} changed"
            if failure := _only_block_moved(before, after, block, where):
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
    cases=layer_cases,
    equation="Concat(head_1, …, head_h) W_O = Σ_r head_r W_O[r]",
    chapter="output",
    reason="a product with blocks side by side is the sum of the blocks' products",
    level="layer",
)
def concat_is_a_sum(subject, X, W_Q, W_K, W_V, W_O):
    weights = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V}
    Y = subject.layer(X, weights | {"W_O": W_O}, HEADS)
    for muted in ((), ("W_V",)):
        parts = [
            subject.layer(X, weights | _only(block, muted, W_V=W_V, W_O=W_O), HEADS)
            for block in _blocks()
        ]
        where = "each term with one block of W_O" + " and one head" * bool(muted)
        if failure := differs(sum(parts), Y, where):
            return failure
    return None


def _only(block, muted, W_V, W_O):
    """Return W_O with one row block left, and if `muted` W_V with one column block."""
    rows, columns = np.zeros_like(W_O), np.zeros_like(W_V)
    rows[block], columns[:, block] = W_O[block], W_V[:, block]
    return {"W_O": rows, "W_V": columns if muted else W_V}


def count_cases(rng):
    yield {"d_model": WIDTH, "n": 3, "seed": int(rng.integers(1000))}


@law(
    "4 d² weights matter, whatever the number of heads",
    cases=count_cases,
    equation="#{w : ∂Y/∂w ≠ 0} = 4 d_model² for every h",
    chapter="output",
    reason="more heads cut the same four matrices into narrower blocks",
    level="layer",
)
def parameters_ignore_heads(subject, d_model, n, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d_model))
    # Small numbers: where one key has the whole weight, no query can move it.
    weights = {name: rng.standard_normal((d_model, d_model)) / 3 for name in FOUR}
    wanted = {h: 4 * d_model**2 for h in (1, HEADS)}
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


def reference_cases(rng):
    for case in qkv_cases(rng):
        yield case
        if "mask" not in case:
            # Square: where a causal mask of another shape begins is a convention.
            square = {name: case[name][: len(case["Q"])] for name in "QKV"}
            yield square | {"is_causal": True}
    yield from whole_layer_cases(rng, (5, WIDTH))
    yield from whole_layer_cases(rng, (2, 5, WIDTH))
    padding = np.arange(5) < np.array([5, 1])[:, None, None, None]
    yield _whole_layer(rng, (2, 5, WIDTH)) | {"mask": padding}
    yield from whole_encoder_cases(rng)


def whole_encoder_cases(rng):
    for n_layers in (1, 2):
        for shape in ((5, WIDTH), (2, 5, WIDTH)):
            X = rng.integers(-2, 3, shape).astype(float)
            case = {"X": X, "layers": Drawn(rng.integers(1000), n_layers)}
            yield case
            yield case | {"mask": np.array([[True, True, False, True, False]])}
            yield case | {"is_causal": True}


def whole_layer_cases(rng, shape):
    case = _whole_layer(rng, shape)
    yield case
    yield case | {"is_causal": True}
    yield case | {"mask": np.tri(5, dtype=bool)}
    yield case | {"mask": np.array([[True, True, False, True, False]])}
    others = rng.integers(-2, 3, (*shape[:-2], 7, WIDTH))
    yield case | {"X_k": others.astype(float)}
    yield case | {f"b_{name}": rng.integers(-2, 3, WIDTH) / 2 for name in "QKVO"}


def _whole_layer(rng, shape):
    weights = {f"W_{name}": rng.integers(-2, 3, (WIDTH, WIDTH)) / 2 for name in "QKVO"}
    return {"X": rng.integers(-2, 3, shape).astype(float)} | weights


@law(
    "the numbers equal those of mha with the same weights",
    cases=reference_cases,
    equation="Y = Concat(head_1, …, head_h) W_O",
    chapter="multi_head",
    reason="inputs and matrices determine the output",
)
def equals_reference(subject, mask=None, is_causal=False, **inputs):
    options = {"mask": mask, "is_causal": is_causal}
    if _kind_of(inputs) != subject.kind:
        raise NotApplicable("another kind of case asks it")
    if subject.always_causal and not is_causal:
        raise NotApplicable("it is always causal")
    if subject.kind == "encoder":
        return _encoder_reference(subject, **inputs, **options)
    if "Q" in inputs:
        expected = scaled_dot_product_attention(**inputs, **options)
        return differs(expected, subject.attend(**inputs, **options))
    X, X_k = inputs.pop("X"), inputs.pop("X_k", None)
    if X.ndim == 3 and not subject.takes_batch:
        raise NotApplicable("it reads one sequence at a time")
    if "b_Q" in inputs and not subject.takes_bias:
        raise NotApplicable("it has no biases")
    Y = subject.layer(X, inputs, 2, X_k=X_k, **options)
    expected = multi_head_attention(X, n_heads=2, X_k=X_k, **inputs, **options)
    return differs(expected, Y, "2 heads")


def _kind_of(inputs):
    if "layers" in inputs:
        return "encoder"
    return "layer" if "X" in inputs else "attention"


def _encoder_reference(subject, X, layers, **options):
    if X.ndim == 3 and not subject.takes_batch:
        raise NotApplicable("it reads one sequence at a time")
    layers = [subject.with_places(weights, X.dtype) for weights in layers.draw()]
    Y = subject.encode(X, layers, **options)
    return differs(expected_encoder(subject, X, layers, **options), Y)
