"""Exercises on trained heads: silence one, measure one, drop one, count the spare."""

import numpy as np

from exercises import Exercise, section

_BREAK_IT = section("what_heads_learn", "Four ways to silence a head")
_MAPS = section(
    "what_heads_learn", "Deeper: do the heads compare rows with each other?"
)
_CAN_GO = section("what_heads_learn", "How many heads can be removed?")
_TWINS = section("what_heads_learn", "Deeper: does training separate two equal heads?")


def _matrix(rows, columns, seed):
    """Return W_O for heads that together need not be as wide as the tokens."""
    rng = np.random.default_rng(seed)
    return rng.integers(1, 10, size=(rows, columns)).astype(float)


def _zero(W_O, rows, columns=slice(None)):
    answer = np.array(W_O, dtype=float)
    answer[rows, columns] = 0
    return answer


def _block(size, n_heads, head):
    """Return the places of a head among `size` rows or columns."""
    return slice(head * (size // n_heads), (head + 1) * (size // n_heads))


silence_head = Exercise(
    task="W_O for a layer in which one head is silent",
    right=lambda W_O, n_heads, head: _zero(W_O, _block(len(W_O), n_heads, head)),
    cases=(
        (_matrix(2, 2, 0), 2, 1),
        (_matrix(6, 6, 1), 3, 0),
        (_matrix(6, 5, 2), 2, 1),
        (_matrix(8, 8, 3), 4, 2),
    ),
    mistakes={
        "you set columns of W_O to 0; a head owns rows, and all heads add to every "
        "column of the output": lambda W_O, n, head: _zero(
            W_O, slice(None), _block(W_O.shape[1], n, head)
        ),
        "you set one row to 0; a head owns as many rows of W_O as it is "
        "wide": lambda W_O, n, head: _zero(W_O, head),
        "you took W_O.shape[1] // n_heads as the width of a head, but here the heads "
        "together are not as wide as the output": lambda W_O, n, head: _zero(
            W_O, _block(W_O.shape[1], n, head)
        ),
        "you took every n_heads-th row; the rows of a head are next to each other in "
        "W_O": lambda W_O, n, head: _zero(W_O, slice(head, None, n)),
        "a head adds to all columns of the output, so its rows of W_O must be 0 over "
        "their whole length": lambda W_O, n, head: _zero(
            W_O, _block(len(W_O), n, head), _block(W_O.shape[1], n, head)
        ),
    },
    reread=_BREAK_IT,
    praise="the term of this head is 0, and the other terms are what they were.",
)


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
    axes=1,
    right=lambda A: np.exp(_entropy(A)),
    cases=(
        (np.array([[0.5, 0.5], [0.75, 0.25]]),),
        (np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]]),),
        (np.array([[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]),),
        (_weights((2, 3, 5, 5), 0),),
    ),
    mistakes={
        "that is the entropy in bits; "
        "equal weights on two keys should give 2": lambda A: _entropy(A) / np.log(2),
        "a weight of 0 should add nothing to the entropy, "
        "but 0 · log 0 is NaN in NumPy": lambda A: np.exp(-(A * np.log(A)).sum(-1)),
        "that is 1 divided by the sum of squares, which counts keys in another way; "
        "use the exponential of the entropy": lambda A: 1 / (A**2).sum(-1),
    },
    reread=_MAPS,
    praise="one number per query, between 1 and the number of keys.",
)


def _merged(into=lambda a, b: (a + b, 0)):
    """Return an answer that puts ``into(a, b)`` in the place of both blocks."""

    def drop_twin(W_O, n_heads, keep, drop):
        d = len(W_O) // n_heads
        kept, dropped = (slice(r * d, (r + 1) * d) for r in (keep, drop))
        answer = np.array(W_O, dtype=float)
        answer[kept], answer[dropped] = into(W_O[kept], W_O[dropped])
        return answer

    return drop_twin


def _square(n_heads, width, seed):
    size = (n_heads * width, n_heads * width)
    return np.random.default_rng(seed).integers(-9, 10, size=size).astype(float)


drop_twin = Exercise(
    task="W_O for a layer without one of two equal heads",
    right=_merged(),
    cases=(
        (_square(2, 1, 0), 2, 0, 1),
        (_square(3, 2, 1), 3, 2, 0),
        (_square(4, 2, 2), 4, 1, 2),
    ),
    mistakes={
        "the block of head `drop` is 0, but what it used to add is now missing from "
        "the output": _merged(lambda a, b: (a, 0)),
        "you doubled the block of head `keep`; that "
        "is correct only if both blocks were equal": _merged(lambda a, b: (2 * a, 0)),
        "you took the mean of the two blocks; the output needs their sum": _merged(
            lambda a, b: ((a + b) / 2, 0)
        ),
        "you changed columns of W_O; a head owns rows, and all heads share the "
        "columns": lambda W_O, *numbers: _merged()(W_O.T, *numbers).T,
        "you added the block of head `drop` to the other one, "
        "but head `drop` must then be silent": _merged(lambda a, b: (a + b, b)),
    },
    reread=_TWINS,
    praise="the outputs of the layer are what they were, with one head fewer.",
)


def _before(is_too_much):
    """Return how many heads can go before ``is_too_much(curve, tolerance)``."""
    return lambda curve, tolerance: (
        int(np.append(is_too_much(curve, tolerance), True).argmax()) - 1
    )


def _enough(curve, tolerance):
    return curve[0] - curve <= tolerance + 1e-6


_right_number = _before(lambda curve, tolerance: ~_enough(curve, tolerance))
_DIPS = np.array([0.95, 0.94, 0.9, 0.93, 0.92, 0.4])  # up again with three heads off
_RISES = np.array([0.9, 0.92, 0.89, 0.85, 0.6])  # better with one head off

heads_to_spare = Exercise(
    task="how many heads can go within a tolerance",
    right=_right_number,
    cases=(
        (np.array([0.9, 0.8]), 0.05),
        (np.array([0.97, 0.96, 0.91, 0.9, 0.79]), 0.05),
        (_DIPS, 0.035),
        (_RISES, 0.015),
        (np.array([0.5, 0.45, 0.4]), 0.12),
        (np.array([0.6, 0.58, 0.3, 0.05]), 0.1),
        (np.array([0.75, 0.5, 0.25]), 0.25),
        (np.array([0.8, 0.7, 0.6]), 0.1),
    ),
    mistakes={
        "the accuracy recovers later, but before that it fell too far; stop at the "
        "first one that is too low": lambda curve, tolerance: np.flatnonzero(
            _enough(curve, tolerance)
        ).max(),
        "you also counted accuracies after the first one that is too low; stop "
        "there": lambda curve, tolerance: _enough(curve, tolerance).sum() - 1,
        "np.argmax returns 0 if no accuracy is too low; then all heads can be "
        "removed": lambda curve, tolerance: (
            int((~_enough(curve, tolerance)).argmax()) - 1
        ),
        "you compared with the best accuracy of the curve; compare with the whole "
        "model, curve[0]": _before(lambda curve, t: curve.max() - curve > t + 1e-9),
        "you compared each accuracy with the one before; small losses add up, so "
        "compare with curve[0]": _before(
            lambda curve, t: -np.diff(curve, prepend=curve[0]) > t + 1e-9
        ),
        "a loss of exactly the tolerance is still within it": _before(
            lambda curve, t: curve[0] - curve >= t - 1e-9
        ),
        "a loss of exactly the tolerance is within it, also where a computer rounds: "
        "0.8 - 0.7 is a little more than 0.1": _before(lambda c, t: c[0] - c > t),
    },
    reread=_CAN_GO,
    praise="remember to choose the tolerance before you see the curve.",
)
