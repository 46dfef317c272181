"""Exercises on positions: how does attention know the order?"""

import numpy as np

from exercises import section
from mha.attention import scaled_dot_product_attention
from mha.check import Exercise, Mistake
from mha.positions import sinusoidal_positional_encoding

_EQUATION, _LAW = section("positions", "The equation"), section("positions", "The law")


# ------------------------------------------------------- the waves


def _waves(even=np.sin, odd=np.cos, start=0, rate=None):
    """Return a table of positions with something wrong about it.

    `rate` maps a column and the width to the divisor of the position.
    """
    rate = rate or (lambda j, d: 10000 ** (2 * (j // 2) / d))

    def encode_positions(n, d_model):
        angle = (np.arange(n) + start)[:, None] / rate(np.arange(d_model), d_model)
        P = even(angle)
        P[:, 1::2] = odd(angle[:, 1::2])
        return P

    return encode_positions


def _in_halves(n, d_model):
    P = sinusoidal_positional_encoding(n, d_model)
    return np.concatenate([P[:, 0::2], P[:, 1::2]], axis=1)


def _in_whole_numbers(n, d_model):
    return sinusoidal_positional_encoding(n, d_model).astype(int)


encode_positions = Exercise(
    task="a table of sines and cosines, one row for each position",
    right=lambda n, d_model: sinusoidal_positional_encoding(n, d_model),
    forbidden=(sinusoidal_positional_encoding,),
    cases=((2, 2), (3, 4), (5, 6), (7, 12), (1, 8)),
    mistakes=(
        Mistake(
            "in halves",
            "all sines come first and all cosines after them: some libraries do so, "
            "but in our table they alternate",
            _in_halves,
        ),
        Mistake(
            "counted from one",
            "the first position is 0, where all hands point straight up",
            _waves(start=1),
        ),
        Mistake(
            "a frequency for each column",
            "sine and cosine of a pair belong to one hand and share its frequency",
            _waves(rate=lambda j, d: 10000 ** (j / d)),
        ),
        Mistake(
            "exponent not doubled",
            "your slow hands are too fast: the exponent grows by 2 / d_model from pair "
            "to pair",
            _waves(rate=lambda j, d: 10000 ** ((j // 2) / d)),
        ),
        Mistake(
            "sine and cosine exchanged",
            "the even columns, from 0 on, hold the sines",
            _waves(np.cos, np.sin),
        ),
        Mistake(
            "axes exchanged",
            "a row is a position and a column is a wave; yours are the other way round",
            lambda n, d_model: sinusoidal_positional_encoding(n, d_model).T.copy(),
        ),
        Mistake(
            "hands speed up",
            "the frequency falls from pair to pair: divide by the power of 10000",
            _waves(rate=lambda j, d: 10000 ** (-2 * (j // 2) / d)),
        ),
        Mistake(
            "degrees",
            "the angles are radians: the fast hand comes round every 6.28 positions",
            _waves(
                lambda a: np.sin(np.deg2rad(a)),
                lambda a: np.cos(np.deg2rad(a)),
            ),
        ),
        Mistake(
            "sines only",
            "the odd columns hold cosines; with sines alone a hand has no direction",
            _waves(np.sin, np.sin),
        ),
        Mistake(
            "exponent doubled twice",
            "your slow hands are too slow: a counter that goes 0, 2, 4 is 2i already",
            _waves(rate=lambda j, d: 10000.0 ** (4 * (j // 2) / d)),
        ),
        Mistake(
            "exponent doubled for each column",
            "the i of the exponent counts the pairs, and you have counted the columns",
            _waves(rate=lambda j, d: 10000.0 ** (2 * j / d)),
        ),
        Mistake(
            "d_model outside the exponent",
            "mind the brackets: the whole of 2i / d_model is the exponent",
            _waves(rate=lambda j, d: 10000.0 ** (2 * (j // 2)) / d),
        ),
        Mistake(
            "no first hand",
            "the first hand turns by 1 radian a position: count the pairs from 0",
            _waves(rate=lambda j, d: 10000.0 ** (2 * (j // 2 + 1) / d)),
        ),
        Mistake(
            "the last hand too slow",
            "your last hand has exactly the speed 1/10000, as in some libraries; here "
            "it is a little faster, because the exponent grows by 2 / d_model",
            _waves(rate=lambda j, d: 10000.0 ** ((j // 2) / max(d // 2 - 1, 1))),
        ),
        Mistake(
            "from slow to fast",
            "the first pair of columns is the fastest hand, and the last the slowest",
            _waves(rate=lambda j, d: 10000.0 ** (2 * (d // 2 - 1 - j // 2) / d)),
        ),
        Mistake(
            "whole numbers",
            "your table holds whole numbers: it was made with an integer dtype",
            _in_whole_numbers,
        ),
    ),
    names=("n", "d_model"),
    reread=_EQUATION,
    praise="each row is a set of clock hands, from fast to slow.",
)


# ------------------------------------------------------- a likeness


_LIKENESS = np.cos(100) + np.cos(1)


def _in_two_decimals(answer):
    """Return the number, or the right one if it differs in the third decimal only."""
    number = np.asarray(answer, dtype=float).reshape(()).item()
    return round(_LIKENESS if abs(number - _LIKENESS) < 0.006 else number, 2)


likeness_of_positions = Exercise(
    task="the dot product of positions 103 and 203 at width 4",
    right=_LIKENESS,
    cases=((),),
    observe=_in_two_decimals,
    mistakes=(
        Mistake(
            "the sum of the positions",
            "the angles are subtracted, not added: sin·sin + cos·cos is the cosine of "
            "their difference",
            np.cos(306) + np.cos(3.06),
        ),
        Mistake(
            "only the fast hand",
            "width 4 has two hands, and the slow one adds its cosine too",
            np.cos(100),
        ),
        Mistake(
            "only the slow hand",
            "width 4 has two hands, and the fast one turns by 100 radians",
            np.cos(1),
        ),
        Mistake(
            "both hands fast",
            "at width 4 the second hand is 100 times slower than the first",
            2 * np.cos(100),
        ),
        Mistake(
            "the slow hand too slow",
            "at width 4 the second hand turns by 1/100 of a radian a word, and not by "
            "1/10000",
            np.cos(100) + np.cos(0.01),
        ),
        Mistake(
            "the slow hand too fast",
            "the exponent is 2i / d_model, so the second hand is 100 times slower",
            np.cos(100) + np.cos(10),
        ),
        Mistake(
            "divided by the lengths",
            "that is the cosine of the angle between the rows; expected the dot "
            "product, and each hand adds up to 1",
            _LIKENESS / 2,
        ),
        Mistake(
            "sines",
            "sin·sin + cos·cos is the cosine of the difference, not its sine",
            np.sin(100) + np.sin(1),
        ),
        Mistake(
            "a position with itself",
            "2 is the dot product of a position with itself; these two are 100 apart",
            2.0,
        ),
        Mistake(
            "degrees",
            "the angles are radians: is your calculator set to degrees?",
            np.cos(np.deg2rad(100)) + np.cos(np.deg2rad(1)),
        ),
        Mistake(
            "the hands subtracted",
            "the cosines of the hands are added",
            np.cos(100) - np.cos(1),
        ),
    ),
    reread=_EQUATION,
    praise="the same as for positions 3 and 103, since only the distance counts.",
)


# ------------------------------------------------------- a rotation


def _turn(sign=1, back=-1, steps=lambda k: k, rate=lambda i, d: 10000 ** (-2 * i / d)):
    """Return a function that makes R_k, or something like it."""

    def turn_by(k, d_model):
        R = np.zeros((d_model, d_model))
        for i in range(d_model // 2):
            angle = steps(k) * rate(i, d_model)
            cos, sin = np.cos(angle), np.sin(angle)
            block = [[cos, back * sin], [sign * sin, cos]]
            R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
        return R

    return turn_by


_right_turn = _turn()


def _turn_of_halves(k, d_model):
    order = np.r_[0:d_model:2, 1:d_model:2]
    return _right_turn(k, d_model)[np.ix_(order, order)]


def _sines_on_the_diagonal(k, d_model):
    """Return what a quarter less a turn gives, with the sines on the diagonal."""
    order = np.arange(d_model) ^ 1
    return _right_turn(k, d_model)[:, order]


_CORNER = np.zeros((8, 8))
_CORNER[:2, :2] = 1

turn_by = Exercise(
    task="a matrix that moves every position k steps on",
    right=_right_turn,
    cases=((0, 2), (1, 2), (2, 4), (-1, 4), (3, 6), (7, 8)),
    mistakes=(
        Mistake(
            "turned back",
            "yours goes k steps back: in P[t] @ R, P[t] is on the left, so the minus "
            "belongs at the top right of each block",
            _turn(sign=-1, back=1),
        ),
        Mistake(
            "no minus",
            "a rotation has one minus: check cos(a + b) = cos a cos b - sin a sin b",
            _turn(back=1),
        ),
        Mistake(
            "one frequency for all",
            "every pair of columns turns at its own frequency",
            _turn(rate=lambda i, d: 1.0),
        ),
        Mistake(
            "always one step",
            "your matrix does not depend on k as it should",
            _turn(steps=lambda k: 1),
        ),
        Mistake(
            "the pairs in halves",
            "a pair is columns 2i and 2i + 1, side by side",
            _turn_of_halves,
        ),
        Mistake(
            "cosines only",
            "the sine of a pair needs its cosine too: the blocks are not diagonal",
            _turn(sign=0, back=0),
        ),
        Mistake(
            "exponent not doubled",
            "the frequency of pair i is 10000 to the power -2i / d_model",
            _turn(rate=lambda i, d: 10000 ** (-i / d)),
        ),
        Mistake(
            "exponent doubled twice",
            "your slow hands are too slow: a counter that goes 0, 2, 4 is 2i already",
            _turn(rate=lambda i, d: 10000 ** (-4 * i / d)),
        ),
        Mistake(
            "hands speed up",
            "later pairs turn more slowly: the exponent has a minus",
            _turn(rate=lambda i, d: 10000 ** (2 * i / d)),
        ),
        Mistake(
            "only the first pair",
            "the first hand turns as it should, but the others do not turn",
            lambda k, d_model: (
                _right_turn(k, d_model) * _CORNER[:d_model, :d_model]
                + np.diag(np.arange(d_model) >= 2)
            ),
        ),
        Mistake(
            "never back",
            "for a negative k the hands should turn back",
            _turn(steps=abs),
        ),
        Mistake(
            "sine and cosine exchanged",
            "at k = 0 the matrix should be the identity, so the cosines are on the "
            "diagonal",
            _sines_on_the_diagonal,
        ),
    ),
    names=("k", "d_model"),
    reread=_EQUATION,
    praise="one matrix for every position, and k = -1 is 'one back'.",
)


# ------------------------------------------------------- positions under padding


def _count_real(mask):
    return np.where(mask, np.cumsum(mask, axis=-1) - 1, 0)


def _filler_at(number):
    """Return positions that are right but for filler, which gets `number`."""
    return lambda mask: np.where(mask, np.cumsum(mask, axis=-1) - 1, number)


def _clipped(mask):
    return np.clip(np.cumsum(mask, axis=-1) - 1, 0, None)


def _filler_in_front(mask):
    """Take away the number of filler, as if all of it stood in front."""
    filler = (~mask).sum(-1, keepdims=True)
    return np.maximum(np.arange(mask.shape[-1]) - filler, 0)


def _after_the_first(mask):
    """Count from the first real token, the filler behind it included."""
    first = mask.argmax(-1)[:, None]
    return np.where(mask, np.arange(mask.shape[-1]) - first, 0)


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
    right=_count_real,
    cases=_MASKS,
    mistakes=(
        Mistake(
            "filler counted",
            "your first real word is not always at position 0: padding in front of it "
            "was counted too",
            lambda mask: np.where(mask, np.arange(mask.shape[-1]), 0),
        ),
        Mistake(
            "counted from one",
            "the first real token of a row has position 0",
            lambda mask: np.where(mask, np.cumsum(mask, axis=-1), 0),
        ),
        Mistake(
            "a plain cumsum",
            "cumsum counts from 1 and goes on counting at padding: subtract 1, and "
            "give padding a 0",
            lambda mask: np.cumsum(mask, axis=-1),
        ),
        Mistake(
            "filler keeps a number",
            "the real tokens are right; padding should have position 0",
            lambda mask: np.cumsum(mask, axis=-1) - 1,
        ),
        Mistake(
            "counted down the batch",
            "you count from sentence to sentence: which axis holds the words?",
            lambda mask: np.where(mask, np.cumsum(mask, axis=0) - 1, 0),
        ),
        Mistake(
            "counted on in the next sentence",
            "every sentence starts at 0 again, but a cumsum without an axis goes on",
            lambda mask: np.where(mask, np.cumsum(mask).reshape(mask.shape) - 1, 0),
        ),
        Mistake(
            "counted from the end",
            "the words are numbered from the last one backwards",
            lambda mask: np.where(
                mask, np.cumsum(mask[:, ::-1], axis=-1)[:, ::-1] - 1, 0
            ),
        ),
        Mistake(
            "only the first filler left out",
            "padding may also be between words, and is not counted there either",
            _after_the_first,
        ),
        Mistake(
            "mask inverted",
            "you number the padding; True means a real token",
            lambda mask: _count_real(~mask),
        ),
        Mistake(
            "mask not used",
            "you number all columns, and the mask changes nothing",
            lambda mask: np.broadcast_to(np.arange(mask.shape[-1]), mask.shape),
        ),
        Mistake(
            "only the negative ones set to 0",
            "padding in front is right; padding after a word still has that word's "
            "number",
            _clipped,
        ),
        Mistake(
            "filler at -1",
            "the real tokens are right, and padding got -1 where 0 is expected",
            _filler_at(-1),
        ),
        Mistake(
            "filler at 1",
            "the real tokens are right; some libraries give padding a 1, here it is 0",
            _filler_at(1),
        ),
        Mistake(
            "filler taken to stand in front",
            "you subtract the amount of padding; padding may also come after the words",
            _filler_in_front,
        ),
        Mistake(
            "filler taken to stand in front, and masked",
            "padding is 0, but you count as if all padding were in front",
            lambda mask: _filler_in_front(mask) * mask,
        ),
        Mistake(
            "the filler in front counted instead",
            "you count the padding in front of each token; count the real tokens "
            "instead",
            lambda mask: np.where(mask, np.cumsum(~mask, axis=-1), 0),
        ),
    ),
    names=("mask",),
    reread=section("masks", "The step in the package"),
    praise="a sentence gets the same positions wherever its filler stands.",
)


# ------------------------------------------------------- a law


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


_ORDER = [1, 2, 4, 0, 3]


def _tells(
    order=_ORDER, agree=np.allclose, wanted=False, put_in_order=True, equal=False
):
    """Return a law that shuffles by `order` and compares by `agree`."""

    def tells_order(model):
        X = np.random.default_rng(6).normal(size=(len(order), 6))
        X = 0 * X if equal else X
        before, after = model(X), model(X[order])
        before = before[order] if put_in_order else before
        return bool(agree(after, before)) is wanted

    return tells_order


def _same_set(a, b):
    """Compare the rows, in whatever order they come."""
    return np.allclose(np.sort(a, axis=0), np.sort(b, axis=0))


tells_order = Exercise(
    task="a law: does the order of the tokens matter to this model?",
    right=_tells(),
    cases=(
        (plain,),
        (same_for_all,),
        (with_positions,),
        (there_and_back,),
        (causal,),
        (stamped,),
        (handed_on,),
        (with_neighbour,),
        (first_marked,),
        (last_marked,),
        (from_both_ends,),
    ),
    mistakes=(
        Mistake(
            "false alarm",
            "you return True for plain attention: shuffle the outputs like the tokens "
            "before you compare, and allow for rounding",
            _tells(put_in_order=False),
        ),
        Mistake(
            "never True",
            "you return False for every model: do the tokens really change places?",
            _tells(order=[0, 1, 2, 3, 4]),
        ),
        Mistake(
            "only a mean compared",
            "two models keep the mean of their outputs: compare every number",
            _tells(agree=lambda a, b: np.allclose(a.mean(0), b.mean(0))),
        ),
        Mistake(
            "rows compared in any order",
            "one model gives each output to another token, so compare row by row",
            _tells(agree=_same_set),
        ),
        Mistake(
            "only the first two exchanged",
            "one model marks the last token alone, so the last token has to move too",
            _tells(order=[1, 0, 2, 3, 4]),
        ),
        Mistake(
            "only the last two exchanged",
            "one model marks the first token alone, so the first token has to move too",
            _tells(order=[0, 1, 2, 4, 3]),
        ),
        Mistake(
            "all shifted in a circle",
            "two models pass something on to the next token, and from the last to the "
            "first; a shift does not detect them, so try a less regular order",
            _tells(order=[4, 0, 1, 2, 3]),
        ),
        Mistake(
            "equal tokens",
            "your tokens are all equal, for example zeros, so models that pass one "
            "token's vector to another go undetected: draw them at random",
            _tells(equal=True),
        ),
        Mistake(
            "two equal tokens",
            "two tokens that are equal, for example zeros, hide most models that know "
            "the order: take more of them, and draw them at random",
            _tells(order=[1, 0], equal=True),
        ),
        Mistake(
            "only two in the middle exchanged",
            "two models mark the first or the last token alone, so these have to move",
            _tells(order=[0, 2, 1, 3, 4]),
        ),
        Mistake(
            "only the middle two of four exchanged",
            "the first and the last token have to move too, and two tokens that are "
            "equally far from the ends hide a model that counts from both ends",
            _tells(order=[0, 2, 1, 3]),
        ),
        Mistake(
            "two tokens",
            "two tokens have one other order, and with it you miss some models: take "
            "more",
            _tells(order=[1, 0]),
        ),
        Mistake(
            "only the mirror image",
            "one model counts from both ends: try a less regular order",
            _tells(order=[4, 3, 2, 1, 0]),
        ),
        Mistake(
            "True and False exchanged",
            "True should mean that the order matters to the model",
            _tells(wanted=True),
        ),
    ),
    names=("model",),
    reread=_LAW,
    praise=(
        "your law finds every model that knows the order, and raises no false alarm."
    ),
)
