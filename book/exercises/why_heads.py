"""Exercises on why there is more than one head."""

import numpy as np

from exercises import Exercise, learning, section
from exercises.engine import Unfit
from mha import softmax

_TWO_HEADS = section("why_heads", "Two heads, two equations")


def _outputs(weights, seed, count=7):
    """Return outputs of heads with these weights, the contents, and new outputs."""
    weights, rng = np.array(weights), np.random.default_rng(seed)
    contents, new = rng.integers(-3, 4, (2, count, weights.shape[1])).astype(float)
    return contents @ weights.T, contents, new @ weights.T


def _fit(x, y):
    return np.linalg.lstsq(x, y, rcond=None)[0]


def _ones(x):
    return np.column_stack([x, np.ones(len(x))])


def _alone(x, y):
    """Return the slope of each content on each output, as if there were no other."""
    return x.T @ y / (x**2).sum(0)[:, None]


def _guessed(answer, *case):
    """Return the guesses; say so if all four results of lstsq are taken for one."""
    try:
        guesses = answer(*case)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        guesses = ()
    return "all that lstsq returns" if isinstance(guesses, tuple) else guesses


rebuild = Exercise(
    task="the best linear guess of the contents",
    right=lambda outputs, contents, new_outputs: new_outputs @ _fit(outputs, contents),
    cases=(
        _outputs([[0.5, 0.5]], seed=0, count=3),
        _outputs([[0.8, 0.2], [0.2, 0.8]], seed=1),
        _outputs([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], seed=2),
    ),
    mistakes={
        "you fit how contents make outputs, and transpose that; fit how outputs make "
        "contents": lambda x, y, new: new @ _fit(y, x).T,
        "this is the matrix of the readout; "
        "now multiply the new outputs by it": lambda x, y, new: _fit(x, y),
        "np.linalg.lstsq returns four things, and the matrix is the first: take [0] of "
        "the result": lambda x, y, new: new @ np.linalg.lstsq(x, y, rcond=None),
        "you fit a matrix that turns contents into outputs; exchange the two arguments "
        "of the fit, because the guess goes from outputs to "
        "contents": lambda x, y, new: new @ _fit(y, x),
        "the heads share tokens, so fit all columns together instead of one slope per "
        "head": lambda x, y, new: new @ _alone(x, y),
        "outputsᵀ contents is half of the formula: the inverse of outputsᵀ outputs is "
        "still missing in front of it": lambda x, y, new: new @ (x.T @ y),
        "you fit a constant too, and the task is without one": lambda x, y, new: (
            _ones(new) @ _fit(_ones(x), y)
        ),
    },
    reread=_TWO_HEADS,
    praise="the least-squares guess, for outputs that it was not fitted to.",
    observe=_guessed,
    picture=learning.readout_picture,
)


heads_needed = Exercise(
    task="the least number of heads for what is wanted",
    right=lambda wanted: np.linalg.matrix_rank(wanted),
    cases=tuple(
        (np.array(wanted, dtype=float),)
        for wanted in (
            [[1, 1, 1]],
            [[0.5, 0.5, 0]],
            [[1, 0, 0], [0, 1, 0]],
            [[1, 1, 0], [1, 1, 0]],
            [[1, 1, 0], [2, 2, 0]],
            [[1, 0, 0], [0, 1, 0], [1, 1, 0]],
            [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 2, 2]],
            [[1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [1, 1, 1, 1, 1]],
            [[1, 1], [2, 2], [3, 3]],
            [[1, 2, 3]],
            [[1, 1], [1, 2]],
            [[2, 1, 0], [0, 1, 2], [1, 1, 1]],
        )
    ),
    mistakes={
        "a row that is a combination of other rows needs no head of its "
        "own": lambda wanted: len(wanted),
        "a column of zeros needs no head, and a sum of several contents needs only one "
        "head": lambda wanted: wanted.shape[1],
        "a sum of several contents is one weighted average, up to a factor, "
        "so one head returns it": lambda wanted: int(wanted.any(0).sum()),
        "twice another row is a different row, and yet it needs no head of its "
        "own": lambda wanted: len(np.unique(wanted, axis=0)),
        "you leave out multiples of other rows; a sum of other rows needs no head "
        "either": (
            lambda wanted: len(np.unique(wanted / wanted.max(1)[:, None], axis=0))
        ),
    },
    reread=section("why_heads", "No more than h glows from h heads"),
    praise="as many heads as there are linearly independent rows: the rank.",
)


# The judge is a linear readout that sees the average and the weights. However
# little the weights move, it can read them, so they are stretched to a size of 1.


def _explained(weights, contents):
    """Return R² of both contents together."""
    average, moved = (weights * contents).sum(1), weights[:, 0] - weights[0, 0]
    moved = moved / (np.abs(moved).max() or 1)
    seen = np.column_stack([average, moved, np.ones(len(moved))])
    error = contents - seen @ _fit(seen, contents)
    return 1 - (error**2).sum() / ((contents - contents.mean(0)) ** 2).sum()


def _taken_apart(given, contents):
    """Return weights and premise, or say what an answer has to look like."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise Unfit("return two things: the weights and the number of a premise")
    weights, premise = np.asarray(given[0], dtype=float), given[1]
    if weights.shape != contents.shape:
        raise Unfit(
            f"the weights should have shape {contents.shape}, got {weights.shape}"
        )
    if premise not in (1, 2, 3, 4):
        raise Unfit(f"the premise should be 1, 2, 3 or 4, got {premise!r}")
    return weights, int(premise)


# What is said to weights that tell enough and another premise than the first.
_STILL = {
    2: "there is still one query in one layer",
    3: "the values are the contents themselves, by the same map for both tokens",
    4: "the contents are Gaussian and independent as before, and the readout is linear",
}


def _broken(answer, contents):
    """Return so, or say why the theorem is not broken, or not by this premise."""
    again = contents.copy()
    weights, premise = _taken_apart(answer(contents), again)
    if not np.isfinite(weights).all():
        raise Unfit(
            "some of your weights are NaN or infinite: a division by 0 or a logarithm "
            "of a negative number, perhaps"
        )
    if (weights < 0).any():
        raise Unfit(
            "some of your weights are negative, and a softmax gives no negative ones"
        )
    totals = weights.sum(1, keepdims=True)
    if not np.allclose(totals, 1, atol=1e-5):
        raise Unfit("the two weights of a row should sum to 1, as those of a softmax")
    if _explained(weights / totals, again) > 0.6:
        if premise in _STILL:
            raise Unfit(f"your weights break the theorem; but {_STILL[premise]}")
        return "weights that tell something, and the premise that they break"
    if (weights == weights[0]).all():
        raise Unfit(
            "the same weights in every row tell nothing about the contents of a row, "
            "so R² stays near 1/2, whatever the weights are"
        )
    if not np.array_equal(weights, _weights(answer, again)):
        raise Unfit(
            "your weights are drawn at random: for the same contents they differ from "
            "call to call, and chance tells nothing about the contents"
        )
    if np.array_equal(weights, _weights(answer, again[::-1])):
        raise Unfit(
            "your weights differ from row to row but do not depend on the contents, so "
            "all premises hold"
        )
    raise Unfit(
        "your weights depend on the contents, but a linear readout learns hardly more "
        "from them; which sum or difference does the average not tell?"
    )


def _weights(answer, contents):
    return np.asarray(answer(contents.copy())[0], dtype=float)


def _telling(contents):
    """Return weights that follow the contents a little, and the premise."""
    return softmax(contents / 10), 1


break_the_theorem = Exercise(
    task="weights that tell something, and the premise that falls",
    right=_telling,
    cases=tuple(
        (np.random.default_rng(seed).normal(size=(1000, 2)),) for seed in (61, 62)
    ),
    mistakes={},
    reread=section("why_heads", "Break it"),
    praise="the weights depend on the contents, so they tell a part of what the "
    "average lost.",
    observe=_broken,
)
