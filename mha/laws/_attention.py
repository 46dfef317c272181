"""The laws of attention as a whole."""

import numpy as np

from mha.laws._draw import SIZES, new_order, qkv_cases, rows, token_cases
from mha.laws._law import Failure, differs, law
from mha.laws.subjects.conventions import NotApplicable
from mha.laws.subjects.encoder import WIDTH, encoder_weights

__all__ = [
    "dtype_is_kept", "inputs_stay_untouched", "key_order_is_free",
    "outputs_follow_tokens", "scores_are_not_symmetric",
    "shifting_keys_changes_nothing",
]  # fmt: skip


def follow_cases(rng):
    for case in token_cases(rng):
        yield case | {"order": new_order(rng, len(case["X"]))}
    for size in SIZES[1:]:
        X = rows(rng, size.n_k, size, 2)
        yield {"X": X, "order": new_order(rng, size.n_k)}


@law(
    "permuting the tokens permutes the outputs",
    cases=follow_cases,
    equation="attention(P X) = P attention(X)",
    chapter="attention",
    reason="every token is treated alike, and no step knows a position",
    sees_all=True,
    orderless=True,
)
def outputs_follow_tokens(subject, X, order):
    if X.ndim == 3:
        return _follow_in_batch(subject, X, order)
    Y, P = subject.attend(X, X, X, heads=2), X[order]
    return differs(Y[order], subject.attend(P, P, P, heads=2))


def _follow_in_batch(subject, X, order):
    """Permute one sequence of two; the other must not notice."""
    if subject.kind == "attention" or not subject.takes_batch:
        raise NotApplicable("it reads one sequence at a time")
    Y = subject.attend(X, X, X, heads=2)
    P, expected = (np.stack([x[0, order], x[1]]) for x in (X, Y))
    got = subject.attend(P, P, P, heads=2)
    return differs(expected, got, "only sequence 0 is permuted")


def key_order_cases(rng):
    for case in qkv_cases(rng):
        yield case | {"order": new_order(rng, len(case["K"]))}


@law(
    "permuting keys with their values changes nothing",
    cases=key_order_cases,
    equation="attention(Q, P K, P V) = attention(Q, K, V)",
    chapter="attention",
    reason="a sum does not depend on the order of its terms",
    sees_all=True,
    orderless=True,
)
def key_order_is_free(subject, Q, K, V, order, mask=None):
    moved = None if mask is None else mask[:, order]
    Y = subject.attend(Q, K[order], V[order], moved)
    return differs(subject.attend(Q, K, V, mask), Y)


def shift_cases(rng):
    for case in qkv_cases(rng, masked=False):
        yield case | {"shift": rng.integers(1, 4, case["K"].shape[1]).astype(float)}


@law(
    "adding one vector to every key changes nothing",
    cases=shift_cases,
    equation="attention(Q, K + 1 cᵀ, V) = attention(Q, K, V)",
    chapter="attention",
    reason="all scores of query i rise by q_i · c, and softmax ignores a common rise",
)
def shifting_keys_changes_nothing(subject, Q, K, V, shift):
    return differs(subject.attend(Q, K, V), subject.attend(Q, K + shift, V))


def asymmetry_cases(rng):
    for _ in range(2):
        X, W_Q, W_K = (rng.standard_normal((3, 3)).round(1) for _ in range(3))
        yield {"X": X, "W_Q": W_Q, "W_K": W_K}


@law(
    "the score of i with j can differ from that of j with i",
    cases=asymmetry_cases,
    equation="S ≠ Sᵀ, even up to one number per row, when W_Q ≠ W_K",
    chapter="attention",
    reason="queries and keys are read by two different matrices",
    sees_all=True,
)
def scores_are_not_symmetric(subject, X, W_Q, W_K):
    """Sum log A around a triangle, both ways: only what is symmetric cancels."""
    S = np.log(_weights_with(subject, X, W_Q, W_K))
    around = S[0, 1] + S[1, 2] + S[2, 0] - S[1, 0] - S[2, 1] - S[0, 2]
    if not abs(around) < 1e-6:
        return None
    wanted = "L[0,1] + L[1,2] + L[2,0] other than L[1,0] + L[2,1] + L[0,2]"
    return Failure(wanted, "equal sums", "L = log A, the logarithms of the weights")


def _weights_with(subject, X, W_Q, W_K):
    eye = np.eye(len(X))
    if subject.kind == "attention":
        return subject.attend(X @ W_Q, X @ W_K, eye)
    weights = {"W_Q": W_Q, "W_K": W_K, "W_V": eye, "W_O": eye}
    return subject.layer(X, weights, 1, X_k=X, X_v=eye)


def untouched_cases(rng):
    for case in qkv_cases(rng):
        n = len(case["Q"])
        given = {name: case[name][:n] for name in "QKV"}
        if "mask" not in case:
            yield given
            continue
        for empty in (n, -1):
            mask = np.tri(n, dtype=bool)
            mask[empty:] = False
            yield given | {"mask": mask}


@law(
    "the arguments are not modified",
    cases=untouched_cases,
    equation="Q, K, V and M are the same before and after",
    chapter="attention",
    reason="a function returns its result and leaves the caller's arrays as they are",
)
def inputs_stay_untouched(subject, Q, K, V, mask=None):
    given = {"Q": Q.copy(), "K": K.copy(), "V": V.copy()}
    if mask is not None:
        given["mask"] = mask.copy()
    if subject.kind == "encoder":
        return _encoder_untouched(subject.borrowing(), given)
    before = {name: x.copy() for name, x in given.items()}
    for _ in range(2):
        subject.borrowing().attend(**given)
        if failure := _changed(given, before):
            return failure
    return None


def _encoder_untouched(subject, given):
    """Ask an encoder, which reads tokens and weights."""
    layers = encoder_weights(0, subject.depth)
    X = np.resize(given["Q"], (len(given["Q"]), WIDTH))
    arrays = {"X": X} | {name: x for name, x in given.items() if name == "mask"}
    for i, weights in enumerate(layers):
        arrays |= {f"{name} of layer {i}": W for name, W in weights.items()}
    before = {name: x.copy() for name, x in arrays.items()}
    subject.encode(X, layers, mask=arrays.get("mask"))
    return _changed(arrays, before)


def _changed(given, before):
    for name, x in given.items():
        if not np.array_equal(x, before[name]):
            return Failure(before[name], x, f"{name} after the call")
    return None


def dtype_cases(rng):
    for case in qkv_cases(rng):
        for dtype in ("float32", "float64"):
            yield case | {"dtype": dtype}


@law(
    "float32 in gives float32 out, and float64 gives float64",
    cases=dtype_cases,
    equation="dtype(Y) = dtype(Q)",
    chapter="attention",
    reason="float64 takes twice the memory of float32",
)
def dtype_is_kept(subject, Q, K, V, dtype, mask=None):
    Y = subject.attend(*(x.astype(dtype) for x in (Q, K, V)), mask)
    return None if str(Y.dtype) == dtype else Failure(dtype, str(Y.dtype))
