"""Exercises on positions: how does attention know the order?"""

import numpy as np

from exercises import Exercise, Law, each, in_use, partly, section
from mha.attention import scaled_dot_product_attention
from mha.positions import sinusoidal_positional_encoding

_EQUATION = section("positions", "One rotation for every step")


def _turn(exponent=lambda i, d: 2 * i / d, halves=False):
    """Return a function that makes R_k, or something like it."""

    def turn_by(k, d_model):
        R = np.zeros((d_model, d_model))
        for i in range(d_model // 2):
            pair = [i, i + d_model // 2] if halves else [2 * i, 2 * i + 1]
            angle = k / 10000.0 ** exponent(i, d_model)
            cos, sin = np.cos(angle), np.sin(angle)
            R[np.ix_(pair, pair)] = [[cos, -sin], [sin, cos]]
        return R

    return turn_by


turn_by = Exercise(
    task="a matrix that moves every position k steps on",
    right=_turn(),
    cases=((0, 2), (1, 2), (2, 4), (-1, 4), (3, 6), (7, 8)),
    mistakes={
        "right for k of 0 or more; a loop over range(k) does nothing for a negative "
        "k": lambda k, d: _turn()(max(k, 0), d),
        "a pair is columns 2i and 2i + 1, side by side": _turn(halves=True),
        "all your hands turn at the speed of the first; each is slower than the one "
        "before": _turn(exponent=lambda i, d: 0),
        "the frequency of pair i is 10000 to the power -2i / d_model": _turn(
            exponent=lambda i, d: i / d
        ),
    },
    reread=_EQUATION,
    praise="one matrix for every position, and k = -1 is 'one back'.",
    picture=in_use.looking_back,
)


def _count(mask, axis=-1):
    """Return a position for each column, whether its token is real or filler."""
    return np.cumsum(mask, axis=axis).reshape(mask.shape) - 1


def _after_the_first(mask):
    """Count from the first real token, the filler behind it included."""
    return np.arange(mask.shape[-1]) - mask.argmax(-1)[:, None]


_MASKS = tuple(
    (np.array(rows, dtype=bool),)
    for rows in (
        [[1, 1]],
        [[0, 1, 1]],
        [[1, 1, 1], [0, 0, 1]],
        [[1, 1, 0, 0], [0, 0, 1, 1]],
        [[0, 1, 0, 1, 1], [1, 0, 0, 1, 0]],
    )
)

position_ids = Exercise(
    task="the position of every real token, not counting padding",
    right=lambda mask: np.where(mask, _count(mask), 0),
    cases=_MASKS,
    mistakes={
        "you count from sentence to sentence: which axis holds the "
        "words?": lambda mask: np.where(mask, _count(mask, axis=0), 0),
        "your first real word is not always at position 0: padding in front of it was "
        "counted too": lambda mask: np.where(mask, np.arange(mask.shape[-1]), 0),
        "cumsum counts from 1 and goes on counting at padding: subtract 1, "
        "and give padding a 0": lambda mask: _count(mask) + 1,
        "the real tokens are right; padding should have position 0": _count,
        "padding may also be between words, and is not counted there "
        "either": lambda mask: np.where(mask, _after_the_first(mask), 0),
        "right if padding is in front only; behind the words you count it": (
            lambda mask: np.maximum(_after_the_first(mask), 0)
        ),
        "the real tokens are right; for padding the task asks for 0, not -1": (
            lambda mask: np.where(mask, _count(mask), -1)
        ),
        "padding in front is right; padding after a word still has that word's "
        "number": lambda mask: np.maximum(_count(mask), 0),
    },
    reread=section("masks", "The step in the package"),
    praise="a sentence gets the same positions wherever its filler stands.",
)


def plain(X):
    """Attend with matrices of its own, with no position anywhere."""
    return scaled_dot_product_attention(X, X, X)


def with_positions(X):
    """Add sinusoids before attending."""
    return plain(X + sinusoidal_positional_encoding(*X.shape))


def same_for_all(X):
    """Add the row of position 0 to every token."""
    return plain(X + sinusoidal_positional_encoding(1, X.shape[-1]))


def causal(X):
    """Attend to the past, with no position added."""
    return scaled_dot_product_attention(X, X, X, is_causal=True)


def there_and_back(X):
    """Turn the sentence round, attend, and turn it back: the order is lost."""
    return plain(X[::-1])[::-1]


def stamped(X):
    """Stamp the outputs with positions whose mean is zero."""
    P = sinusoidal_positional_encoding(*X.shape)
    return plain(X) + P - P.mean(0)


def handed_on(X):
    """Give every token the output of the token before it."""
    return np.roll(plain(X), 1, axis=0)


def last_marked(X):
    """Mark the last token and no other."""
    Y = plain(X)
    Y[-1] += 1.0
    return Y


def with_neighbour(X):
    """Add to every token the one before it; the first has the last before it."""
    return plain(X + np.roll(X, 1, axis=0))


def with_both_neighbours(X):
    """Add to every token those beside it, on a ring; a shift does not show it."""
    return plain(X + np.roll(X, 1, axis=0) + np.roll(X, -1, axis=0))


def first_marked(X):
    """Mark the first token and no other."""
    Y = plain(X)
    Y[0] += 1.0
    return Y


def from_both_ends(X):
    """Add positions that count from the nearer end."""
    t = np.arange(len(X))
    P = sinusoidal_positional_encoding(*X.shape)
    return plain(X + P[np.minimum(t, t[::-1])])


def _tells(order=(1, 2, 4, 0, 3), put_in_order=True):
    """Return a law that shuffles by `order`."""

    def tells_order(model):
        X = np.random.default_rng(6).normal(size=(len(order), 6))
        before, after = model(X), model(X[list(order)])
        before = before[list(order)] if put_in_order else before
        return not np.allclose(after, before)

    return tells_order


tells_order = Law(
    task="a law: does the order of the tokens matter to this model?",
    right=_tells(),
    cases=each(
        *(plain, same_for_all, with_positions, there_and_back, causal, stamped),
        *(handed_on, with_neighbour, first_marked, last_marked, from_both_ends),
        with_both_neighbours,
        partly(with_positions, plain, np.s_[:, 1:], "from the second feature on"),
    ),
    mistakes={
        "you return True for plain attention: shuffle the outputs like the tokens "
        "before you compare": _tells(put_in_order=False),
        "two models pass something on to the next token, and from the last to the "
        "first; a shift does not detect them, "
        "so try a less regular order": _tells([4, 0, 1, 2, 3]),
        "one model counts from both ends: try a less regular order": _tells(
            [4, 3, 2, 1, 0]
        ),
    },
    vary=("X",),
    reread=section("positions", "A law that we want to break"),
    praise=(
        "your law finds every model that knows the order, and raises no false alarm."
    ),
)
