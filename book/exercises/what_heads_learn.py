"""Exercises on trained heads: silence one, measure one, drop one, count the spare."""

import numpy as np

from exercises import section
from mha.check import Exercise, Mistake

_BREAK_IT = section("what_heads_learn", "Four ways to silence a head")
_MAPS = section(
    "what_heads_learn", "Deeper: do the heads compare rows with each other?"
)
_CAN_GO = section("what_heads_learn", "How many heads can be removed?")
_TWINS = section("what_heads_learn", "Deeper: does training separate two equal heads?")


def _matrix(n_heads, width, d_model, seed):
    """Return W_O for heads that together need not be as wide as the tokens."""
    rng = np.random.default_rng(seed)
    return rng.integers(1, 10, size=(n_heads * width, d_model)).astype(float)


# ------------------------------------------------------- a head less


def _zero(W_O, block):
    answer = np.array(W_O, dtype=float)
    answer[block] = 0
    return answer


def _rows(W_O, n_heads, head):
    width = len(W_O) // n_heads
    return slice(head * width, (head + 1) * width)


def _others(W_O, n_heads, head):
    return np.arange(len(W_O)) // (len(W_O) // n_heads) != head


def _columns(W_O, n_heads, head):
    width = W_O.shape[1] // n_heads
    return slice(None), slice(head * width, (head + 1) * width)


def _silence_in_place(W_O, n_heads, head):
    W_O[_rows(W_O, n_heads, head)] = 0
    return W_O


silence_head = Exercise(
    task="W_O for a layer in which one head is silent",
    right=lambda W_O, n_heads, head: _zero(W_O, _rows(W_O, n_heads, head)),
    cases=(
        (_matrix(2, 1, 2, 0), 2, 1),
        (_matrix(3, 2, 6, 1), 3, 0),
        (_matrix(2, 3, 5, 2), 2, 1),
        (_matrix(4, 2, 8, 3), 4, 2),
    ),
    names=("W_O", "n_heads", "head"),
    mistakes=(
        Mistake(
            "columns",
            "you set columns of W_O to 0; a head owns rows, and all heads add to "
            "every column of the output",
            lambda W_O, n_heads, head: _zero(W_O, _columns(W_O, n_heads, head)),
        ),
        Mistake(
            "one row",
            "you set one row to 0; a head owns len(W_O) // n_heads rows of W_O, as "
            "many as it is wide",
            lambda W_O, n_heads, head: _zero(W_O, head),
        ),
        Mistake(
            "width from the columns",
            "you took W_O.shape[1] // n_heads as the width of a head; here the heads "
            "together are not as wide as the output, so use len(W_O) // n_heads",
            lambda W_O, n_heads, head: _zero(
                W_O,
                slice(
                    head * (W_O.shape[1] // n_heads),
                    (head + 1) * (W_O.shape[1] // n_heads),
                ),
            ),
        ),
        Mistake(
            "every n_heads-th row",
            "you took every n_heads-th row; the rows of a head are next to each other "
            "in W_O",
            lambda W_O, n_heads, head: _zero(W_O, slice(head, None, n_heads)),
        ),
        Mistake(
            "counted from 1",
            "`head` is an index, so the first head is 0; you silenced the head before "
            "it",
            lambda W_O, n_heads, head: _zero(
                W_O, _rows(W_O, n_heads, (head - 1) % n_heads)
            ),
        ),
        Mistake(
            "the others",
            "you silenced all the other heads, and the one that should be silent "
            "still adds its term",
            lambda W_O, n_heads, head: _zero(W_O, _others(W_O, n_heads, head)),
        ),
        Mistake(
            "from the head on",
            "the heads after it are silent too; the block of a head ends where the "
            "block of the next head begins",
            lambda W_O, n_heads, head: _zero(
                W_O, slice(head * (len(W_O) // n_heads), None)
            ),
        ),
        Mistake(
            "width and heads exchanged",
            "you cut W_O into blocks of n_heads rows; expected n_heads blocks of "
            "len(W_O) // n_heads rows each",
            lambda W_O, n_heads, head: _zero(
                W_O, slice(head * n_heads, (head + 1) * n_heads)
            ),
        ),
        Mistake(
            "the square block",
            "a head adds to all columns of the output, so its rows of W_O must be 0 "
            "over their whole length",
            lambda W_O, n_heads, head: _zero(
                W_O,
                (_rows(W_O, n_heads, head), _columns(W_O, n_heads, head)[1]),
            ),
        ),
        Mistake(
            "rows deleted",
            "you deleted the rows of the head; set them to 0, so that W_O keeps its "
            "shape",
            lambda W_O, n_heads, head: W_O[_others(W_O, n_heads, head)],
        ),
        Mistake(
            "scaled up",
            "you scaled the other blocks up, as dropout does; they should stay as "
            "they are",
            lambda W_O, n_heads, head: (
                _zero(W_O, _rows(W_O, n_heads, head)) * n_heads / (n_heads - 1)
            ),
        ),
        Mistake(
            "in place",
            "you changed the W_O that was passed in; change and return a copy",
            _silence_in_place,
        ),
    ),
    reread=_BREAK_IT,
    praise="the term of this head is 0, and the other terms are what they were.",
)


# ------------------------------------------------------- how many keys a query sees


def _entropy(A, axis=-1):
    logs = np.log(A, out=np.zeros_like(A), where=A > 0)
    return -(A * logs).sum(axis)


def _weights(shape, seed):
    """Return rows that sum to one, some of their weights exactly 0."""
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 4, size=shape) + np.eye(*shape[-2:])
    return A / A.sum(-1, keepdims=True)


effective_keys = Exercise(
    task="how many keys each query attends to",
    right=lambda A: np.exp(_entropy(A)),
    cases=(
        (np.array([[0.5, 0.5], [0.75, 0.25]]),),
        (np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]]),),
        (np.array([[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]),),
        (_weights((2, 3, 5, 5), 0),),
    ),
    names=("A",),
    mistakes=(
        Mistake(
            "the entropy",
            "that is the entropy; equal weights on two keys should give 2",
            _entropy,
        ),
        Mistake(
            "in bits",
            "that is the entropy in bits; equal weights on two keys should give 2",
            lambda A: _entropy(A) / np.log(2),
        ),
        Mistake(
            "two logarithms",
            "you took the logarithm to base 2 and raised e to it; use the same base "
            "for both",
            lambda A: np.exp(_entropy(A) / np.log(2)),
        ),
        Mistake(
            "two powers",
            "you took the natural logarithm and raised 2 to it; use the same base for "
            "both",
            lambda A: 2 ** _entropy(A),
        ),
        Mistake(
            "the sign",
            "a minus is missing, because the logarithm of a weight is negative; you "
            "have 1 divided by the number of keys",
            lambda A: np.exp(-_entropy(A)),
        ),
        Mistake(
            "zero times infinity",
            "a weight of 0 should add nothing to the entropy, but 0 · log 0 is NaN in "
            "NumPy",
            lambda A: np.exp(-(A * np.log(A)).sum(-1)),
        ),
        Mistake(
            "down the columns",
            "you summed along the queries; a row has the weights of one query, so sum "
            "along the last axis",
            lambda A: np.exp(_entropy(A, -2)),
        ),
        Mistake(
            "one number for all",
            "you have one number for the whole array; expected one number per query",
            lambda A: np.exp(_entropy(A).sum()),
        ),
        Mistake(
            "the mean",
            "that is the mean over all queries; expected one number per query",
            lambda A: np.exp(_entropy(A)).mean(),
        ),
        Mistake(
            "a mean in the entropy",
            "the entropy is a sum over the keys, not a mean",
            lambda A: np.exp(_entropy(A) / A.shape[-1]),
        ),
        Mistake(
            "the keys with weight",
            "you counted every key with a weight above 0, however small; a key with "
            "little weight should count little",
            lambda A: (A > 0).sum(-1).astype(float),
        ),
        Mistake(
            "one over the squares",
            "that is 1 divided by the sum of squares, which counts keys in another "
            "way; use the exponential of the entropy",
            lambda A: 1 / (A**2).sum(-1),
        ),
        Mistake(
            "one over the largest",
            "that depends on the largest weight only; the entropy uses all weights",
            lambda A: 1 / A.max(-1),
        ),
        Mistake(
            "all keys",
            "that is how many keys there are, whatever their weights",
            lambda A: np.full(A.shape[:-1], float(A.shape[-1])),
        ),
        Mistake(
            "an axis too many",
            "expected one number per query; the axis of the keys should not be left",
            lambda A: np.exp(_entropy(A))[..., None],
        ),
    ),
    reread=_MAPS,
    praise="one number per query, between 1 and the number of keys.",
)


# ------------------------------------------------------- a head too many


def _blocks(W_O, n_heads, *heads):
    width = len(W_O) // n_heads
    return [slice(r * width, (r + 1) * width) for r in heads]


def _change(W_O, n_heads, keep, drop, change):
    """Put the two blocks that `change` makes of them in the place of both."""
    kept, dropped = _blocks(W_O, n_heads, keep, drop)
    answer = np.array(W_O, dtype=float)
    answer[kept], answer[dropped] = change(answer[kept].copy(), answer[dropped].copy())
    return answer


def _drop(W_O, n_heads, keep, drop, change):
    return _change(W_O, n_heads, keep, drop, lambda a, b: (change(a, b), 0))


def _interleaved(W_O, n_heads, keep, drop):
    blocks = W_O.reshape(-1, n_heads, W_O.shape[1]).copy()
    blocks[:, keep] += blocks[:, drop]
    blocks[:, drop] = 0
    return blocks.reshape(W_O.shape)


def _drop_columns(W_O, n_heads, keep, drop):
    return _drop(W_O.T, n_heads, keep, drop, lambda a, b: a + b).T


def _drop_in_place(W_O, n_heads, keep, drop):
    kept, dropped = _blocks(W_O, n_heads, keep, drop)
    W_O[kept] += W_O[dropped]
    W_O[dropped] = 0
    return W_O


def _drop_rows(W_O, n_heads, keep, drop):
    kept, dropped = _blocks(W_O, n_heads, keep, drop)
    answer = np.array(W_O, dtype=float)
    answer[kept] += answer[dropped]
    return np.delete(answer, dropped, axis=0)


def _square(n_heads, width, seed):
    rng = np.random.default_rng(seed)
    d_model = n_heads * width
    return rng.integers(-9, 10, size=(d_model, d_model)).astype(float)


drop_twin = Exercise(
    task="W_O for a layer without one of two equal heads",
    right=lambda W_O, n_heads, keep, drop: _drop(
        W_O, n_heads, keep, drop, lambda a, b: a + b
    ),
    cases=(
        (_square(2, 1, 0), 2, 0, 1),
        (_square(3, 2, 1), 3, 2, 0),
        (_square(4, 2, 2), 4, 1, 2),
    ),
    mistakes=(
        Mistake(
            "only silenced",
            "the block of head `drop` is 0, but what it used to add is now missing "
            "from the output",
            lambda W_O, n_heads, keep, drop: _drop(
                W_O, n_heads, keep, drop, lambda a, b: a
            ),
        ),
        Mistake(
            "doubled",
            "you doubled the block of head `keep`; that is correct only if both "
            "blocks were equal",
            lambda W_O, n_heads, keep, drop: _drop(
                W_O, n_heads, keep, drop, lambda a, b: 2 * a
            ),
        ),
        Mistake(
            "mean",
            "you took the mean of the two blocks; the output needs their sum",
            lambda W_O, n_heads, keep, drop: _drop(
                W_O, n_heads, keep, drop, lambda a, b: (a + b) / 2
            ),
        ),
        Mistake(
            "columns",
            "you changed columns of W_O; a head owns rows, and all heads share the "
            "columns",
            _drop_columns,
        ),
        Mistake(
            "the wrong one went",
            "you silenced head `keep`; head `drop` should be silent",
            lambda W_O, n_heads, keep, drop: _drop(
                W_O, n_heads, drop, keep, lambda a, b: a + b
            ),
        ),
        Mistake(
            "not silenced",
            "you added the block of head `drop` to the other one, but head `drop` "
            "must then be silent",
            lambda W_O, n_heads, keep, drop: _change(
                W_O, n_heads, keep, drop, lambda a, b: (a + b, b)
            ),
        ),
        Mistake(
            "both share",
            "the output is correct, but head `drop` is not silent; its block must be 0",
            lambda W_O, n_heads, keep, drop: _change(
                W_O, n_heads, keep, drop, lambda a, b: ((a + b) / 2, (a + b) / 2)
            ),
        ),
        Mistake(
            "replaced",
            "you replaced the block of head `keep`; the output needs the sum of both "
            "blocks",
            lambda W_O, n_heads, keep, drop: _drop(
                W_O, n_heads, keep, drop, lambda a, b: b
            ),
        ),
        Mistake(
            "subtracted",
            "two equal heads write the sum of their blocks, not the difference",
            lambda W_O, n_heads, keep, drop: _drop(
                W_O, n_heads, keep, drop, lambda a, b: a - b
            ),
        ),
        Mistake(
            "exchanged",
            "you exchanged the two blocks, and both heads still add something",
            lambda W_O, n_heads, keep, drop: _change(
                W_O, n_heads, keep, drop, lambda a, b: (b, a)
            ),
        ),
        Mistake(
            "one row each",
            "you changed one row per head; a head owns len(W_O) // n_heads rows",
            lambda W_O, n_heads, keep, drop: _drop(
                W_O, len(W_O), keep, drop, lambda a, b: a + b
            ),
        ),
        Mistake(
            "every n_heads-th row",
            "you took every n_heads-th row; the rows of a head are next to each other "
            "in W_O",
            lambda W_O, n_heads, keep, drop: _interleaved(W_O, n_heads, keep, drop),
        ),
        Mistake(
            "counted from 1",
            "`keep` and `drop` are indices, so the first head is 0",
            lambda W_O, n_heads, keep, drop: _drop(
                W_O,
                n_heads,
                (keep - 1) % n_heads,
                (drop - 1) % n_heads,
                lambda a, b: a + b,
            ),
        ),
        Mistake(
            "rows deleted",
            "you deleted the rows of the silent head; set them to 0, so that W_O "
            "keeps its shape",
            _drop_rows,
        ),
        Mistake(
            "in place",
            "you changed the W_O that was passed in; change and return a copy",
            _drop_in_place,
        ),
    ),
    reread=_TWINS,
    praise="the outputs of the layer are what they were, with one head fewer.",
)


# ------------------------------------------------------- how many heads can go


def _first_loss(curve, tolerance):
    """Return the first number of heads whose removal costs more than allowed."""
    lost = np.flatnonzero(_costs(curve) > tolerance + 1e-9)
    return lost[0] if len(lost) else len(curve)


def _costs(curve):
    return curve[0] - np.asarray(curve)


_DIPS = np.array([0.95, 0.94, 0.9, 0.93, 0.92, 0.4])  # up again with three heads off
_RISES = np.array([0.9, 0.92, 0.89, 0.85, 0.6])  # better with one head off

heads_to_spare = Exercise(
    task="how many heads can go within a tolerance",
    right=lambda curve, tolerance: _first_loss(curve, tolerance) - 1,
    cases=(
        (np.array([0.9, 0.8]), 0.05),
        (np.array([0.97, 0.96, 0.91, 0.9, 0.79]), 0.05),
        (_DIPS, 0.035),
        (_RISES, 0.015),
        (np.array([0.5, 0.45, 0.4]), 0.12),
        (np.array([0.6, 0.58, 0.3, 0.05]), 0.1),
        (np.array([0.75, 0.5, 0.25]), 0.25),
    ),
    names=("curve", "tolerance"),
    mistakes=(
        Mistake(
            "the first that is too many",
            "that is the first number of heads that costs too much; one head fewer "
            "can be removed",
            _first_loss,
        ),
        Mistake(
            "the last that is good enough",
            "the accuracy recovers later, but before that it fell too far; stop at "
            "the first one that is too low",
            lambda curve, tolerance: np.flatnonzero(
                _costs(curve) <= tolerance + 1e-9
            ).max(),
        ),
        Mistake(
            "how many are good enough",
            "you counted every accuracy that is good enough, also curve[0] and those "
            "after the first one that is too low",
            lambda curve, tolerance: (_costs(curve) <= tolerance + 1e-9).sum(),
        ),
        Mistake(
            "good enough behind the fall",
            "you also counted accuracies after the first one that is too low; stop "
            "there",
            lambda curve, tolerance: (_costs(curve) <= tolerance + 1e-9).sum() - 1,
        ),
        Mistake(
            "argmax where nothing is too low",
            "np.argmax returns 0 if no accuracy is too low; then all heads can be "
            "removed",
            lambda curve, tolerance: (
                int(np.argmax(_costs(curve) > tolerance + 1e-9)) - 1
            ),
        ),
        Mistake(
            "compared with the best",
            "you compared with the best accuracy of the curve; compare with the whole "
            "model, curve[0]",
            lambda curve, tolerance: (
                np.flatnonzero(np.append(curve.max() - curve, 2) > tolerance + 1e-9)[0]
                - 1
            ),
        ),
        Mistake(
            "step by step",
            "you compared each accuracy with the one before; small losses add up, so "
            "compare with curve[0]",
            lambda curve, tolerance: np.flatnonzero(
                np.append(-np.diff(curve), 2) > tolerance + 1e-9
            )[0],
        ),
        Mistake(
            "an accuracy",
            "you compared the accuracy itself with the tolerance; compare the loss of "
            "accuracy, curve[0] - curve[k]",
            lambda curve, tolerance: (
                np.flatnonzero(np.append(curve, -1) < tolerance)[0] - 1
            ),
        ),
        Mistake(
            "a share of the accuracy",
            "the tolerance is a difference of accuracies, not a share of curve[0]",
            lambda curve, tolerance: _first_loss(curve, tolerance * curve[0]) - 1,
        ),
        Mistake(
            "exactly the tolerance",
            "a loss of exactly the tolerance is still within it",
            lambda curve, tolerance: (
                np.flatnonzero(np.append(_costs(curve), 2) >= tolerance - 1e-9)[0] - 1
            ),
        ),
        Mistake(
            "a gain is no loss",
            "you took the size of the change: an accuracy that rises costs nothing",
            lambda curve, tolerance: (
                np.flatnonzero(np.append(abs(_costs(curve)), 2) > tolerance + 1e-9)[0]
                - 1
            ),
        ),
        Mistake(
            "a share of the heads",
            "that is the share of the heads; expected their number",
            lambda curve, tolerance: (
                (_first_loss(curve, tolerance) - 1) / (len(curve) - 1)
            ),
        ),
        Mistake(
            "the accuracy that is left",
            "that is the accuracy that is left; expected the number of heads that are "
            "removed",
            lambda curve, tolerance: curve[_first_loss(curve, tolerance) - 1],
        ),
        Mistake(
            "every head",
            "you allowed all heads to be removed; the last accuracy of the curve, "
            "without any head, is too low",
            lambda curve, tolerance: len(curve) - 1,
        ),
    ),
    reread=_CAN_GO,
    praise="remember to choose the tolerance before you see the curve.",
)
