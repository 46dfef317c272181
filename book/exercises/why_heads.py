"""Exercises on why there is more than one head."""

import numpy as np

from exercises import section
from mha.check import Exercise, Mistake
from mha.softmax import softmax

_BY_HAND, _EQUATION = (
    section("why_heads", "By hand"),
    section("why_heads", "The equation"),
)


two_of_three = Exercise(
    task="the best R² for three dragons and two heads",
    right=2 / 3,
    cases=((),),
    mistakes=(
        Mistake(
            "one head",
            "that is what one head brings home; here are two, and their worth adds up",
            1 / 3,
        ),
        Mistake(
            "always one half",
            "one half is the limit for two dragons and one head: count both anew",
            1 / 2,
        ),
        Mistake(
            "two heads know all",
            "two mixtures are two equations, and he wants three unknowns",
            1,
        ),
        Mistake(
            "upside down",
            "an R² above 1 cannot be: which number goes below the line?",
            3 / 2,
        ),
        Mistake(
            "half of the third",
            "the third dragon costs what it brings: half a worth for it is taken from "
            "the other two",
            5 / 6,
        ),
        Mistake(
            "not shared out",
            "that is what comes home in dragons' worths; R² is a share of all that is "
            "wanted",
            2,
        ),
        Mistake(
            "shared among ten",
            "the heads may leave out whom he does not want: only three are expected",
            2 / 10,
        ),
        Mistake(
            "squared",
            "R² is a share of the variance already; nothing needs to be squared",
            4 / 9,
        ),
    ),
    reread=_EQUATION,
    praise="two dragons' worth shared among three.",
    observe=lambda answer: np.round(np.asarray(answer, dtype=float), 2),
)


def _nights(weights, seed, count=7):
    """Return what heads with these weights bring home, the contents, and new homes."""
    weights, rng = np.array(weights), np.random.default_rng(seed)
    contents, new = rng.integers(-3, 4, (2, count, weights.shape[1])).astype(float)
    return contents @ weights.T, contents, new @ weights.T


def _fit(x, y):
    return np.linalg.lstsq(x, y, rcond=None)[0]


def _with_constant(home, contents, new_home):
    home, new_home = (np.column_stack([x, np.ones(len(x))]) for x in (home, new_home))
    return new_home @ _fit(home, contents)


def _nearest(home, contents, new_home):
    gaps = ((new_home[:, None] - home) ** 2).sum(-1)
    return contents[gaps.argmin(1)]


def _alone(home, contents):
    """Return the slope of each content on each mixture, as if there were no other."""
    return home.T @ contents / (home**2).sum(0)[:, None]


rebuild = Exercise(
    task="the best linear guess of the contents",
    right=lambda home, contents, new_home: new_home @ _fit(home, contents),
    cases=(
        _nights([[0.5, 0.5]], seed=0, count=3),
        _nights([[0.8, 0.2], [0.2, 0.8]], seed=1),
        _nights([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], seed=2),
    ),
    mistakes=(
        Mistake(
            "nothing rebuilt",
            "that is what the heads brought home; turn it into guesses of contents",
            lambda home, contents, new_home: new_home,
        ),
        Mistake(
            "the matrix alone",
            "this is the fitted matrix; multiply the new homes by it",
            lambda home, contents, new_home: _fit(home, contents),
        ),
        Mistake(
            "the old nights",
            "you guess the nights that you have fitted; expected the new ones",
            lambda home, contents, new_home: home @ _fit(home, contents),
        ),
        Mistake(
            "fitted the other way",
            "you fit what comes home to the contents and turn that round; the least "
            "error in the contents needs the fit from home to contents",
            lambda home, contents, new_home: (
                new_home @ np.linalg.pinv(_fit(contents, home))
            ),
        ),
        Mistake(
            "each head alone",
            "the heads overlap: fit all columns together, not one slope at a time",
            lambda home, contents, new_home: new_home @ _alone(home, contents),
        ),
        Mistake(
            "not divided",
            "homeᵀ contents is half of the formula; it is still to be divided by the "
            "products of the homes among themselves",
            lambda home, contents, new_home: new_home @ (home.T @ contents),
        ),
        Mistake(
            "divided by the number of nights",
            "homeᵀ contents / nights is not the fit yet: homes have a size, and they "
            "overlap",
            lambda home, contents, new_home: new_home @ (home.T @ contents) / len(home),
        ),
        Mistake(
            "a constant as well",
            "you fit a constant too, and the task is without one",
            _with_constant,
        ),
        Mistake(
            "mean taken off",
            "taking off the means is the same as fitting a constant, and the task is "
            "without one",
            lambda home, contents, new_home: (
                new_home @ _fit(home - home.mean(0), contents - contents.mean(0))
            ),
        ),
        Mistake(
            "the nearest night",
            "you repeat the contents of one old night; a linear guess learns from all",
            _nearest,
        ),
        Mistake(
            "contents of the old nights",
            "these are the contents that were given; guess those of the new nights",
            lambda home, contents, new_home: contents,
        ),
        Mistake(
            "always zero",
            "to guess 0 is to know nothing; what came home is not used",
            lambda home, contents, new_home: np.zeros(
                (len(new_home), contents.shape[1])
            ),
        ),
        Mistake(
            "always the mean",
            "you guess the same every night; what came home is not used",
            lambda home, contents, new_home: np.tile(
                contents.mean(0), (len(new_home), 1)
            ),
        ),
    ),
    reread=section("why_heads", "Break it: average the heads"),
    praise="the least-squares guess, on nights it has not seen.",
)

unmix = Exercise(
    task="the matrix W_O that takes the mixtures apart",
    right=lambda A: np.linalg.inv(A).T,
    cases=(
        (np.array([[0.8, 0.2], [0.2, 0.8]]),),
        (np.array([[0.7, 0.3], [0.1, 0.9]]),),
        (np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.0, 0.25, 0.75]]),),
    ),
    mistakes=(
        Mistake(
            "not transposed",
            "for heads that mirror each other it fits; for others rows and columns "
            "change places, since home is a row",
            np.linalg.inv,
        ),
        Mistake(
            "mixed once more",
            "you apply the weights a second time; the mixture has to be undone",
            lambda A: A,
        ),
        Mistake(
            "transposed only",
            "the transpose undoes a rotation, and these weights are none",
            lambda A: A.T,
        ),
        Mistake(
            "one over each weight",
            "the inverse of a matrix is not made entry by entry",
            lambda A: 1 / A.T,
        ),
        Mistake(
            "one over each weight, not transposed",
            "to undo a matrix is more than to undo its entries one by one",
            lambda A: 1 / A,
        ),
        Mistake(
            "only the sign turned",
            "minus the weights is not what undoes them; the product with Aᵀ must be I",
            lambda A: -A.T,
        ),
        Mistake(
            "rows and columns undone",
            "you invert a product of A with its transpose; one mixing is to be undone",
            lambda A: np.linalg.inv(A.T @ A),
        ),
        Mistake(
            "determinant forgotten",
            "the right directions, the wrong size: divide by the determinant",
            lambda A: np.linalg.det(A) * np.linalg.inv(A).T,
        ),
        Mistake(
            "nothing undone",
            "W_O = I leaves the mixtures as they are",
            lambda A: np.eye(len(A)),
        ),
    ),
    reread=_BY_HAND,
    praise="sloppy heads lose nothing, as long as their rows are independent.",
)

heads_needed = Exercise(
    task="the least number of heads for what is wanted",
    right=lambda wanted: np.linalg.matrix_rank(wanted),
    cases=tuple(
        (np.array(wanted, dtype=float),)
        for wanted in (
            [[1, 1, 1]],
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
    mistakes=(
        Mistake(
            "one for each wish",
            "a wish that can be made from the others comes without a head of its own",
            lambda wanted: len(wanted),
        ),
        Mistake(
            "one for each creature",
            "creatures that nobody wants, or that are wanted as a sum, need no head "
            "of their own",
            lambda wanted: wanted.shape[1],
        ),
        Mistake(
            "one for each creature that is wanted",
            "a sum of many creatures is one mixture, and one head brings it home",
            lambda wanted: int(wanted.any(0).sum()),
        ),
        Mistake(
            "one for each different wish",
            "twice a sum is no new wish, though its row looks different",
            lambda wanted: len(np.unique(wanted, axis=0)),
        ),
        Mistake(
            "one for each direction",
            "a wish that is a multiple of another is free, and so is one that is a sum "
            "of others",
            lambda wanted: len(np.unique(wanted / wanted.max(1)[:, None], axis=0)),
        ),
        Mistake(
            "one for each different column",
            "creatures with different shares in a sum still come home in one mixture",
            lambda wanted: len({tuple(x) for x in wanted.T if x.any()}),
        ),
        Mistake(
            "only who is wanted counts",
            "you look at where the zeros are; the sizes of the entries count too",
            lambda wanted: np.linalg.matrix_rank(wanted > 0),
        ),
        Mistake(
            "one head for each entry",
            "a row is one thing to know, however many creatures it holds",
            np.count_nonzero,
        ),
        Mistake(
            "one head always",
            "one head brings home one mixture: two named creatures are two",
            lambda wanted: 1,
        ),
        Mistake(
            "the smaller side",
            "that is the largest rank a matrix of this shape could have; look at its "
            "rows",
            lambda wanted: min(wanted.shape),
        ),
    ),
    reread=_EQUATION,
    praise="as many heads as there are independent mixtures.",
)


# What breaking the theorem is judged by: the reader of the chapter, who sees the
# mixture and, through the names in the values, the two weights.


def _above_the_bound(weights, contents):
    seen = np.column_stack(
        [(weights * contents).sum(1), weights, np.ones(len(weights))]
    )
    error = contents - seen @ _fit(seen, contents)
    return 1 - (error**2).sum() / (contents**2).sum() > 0.6


def _taken_apart(answer, contents):
    """Return weights and premise, or say what an answer has to look like."""
    given = answer(contents)
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError("return two things: the weights and the number of a premise")
    weights, premise = np.asarray(given[0], dtype=float), given[1]
    if weights.shape != contents.shape:
        raise ValueError(f"weights of shape {contents.shape} are due: {weights.shape}")
    if str(premise) not in ("1", "2", "3"):
        raise ValueError(f"the premise is 1, 2 or 3, and not {premise!r}")
    return weights, int(premise)


def _judged(answer, contents):
    """Return in words what became of the theorem."""
    weights, premise = _taken_apart(answer, contents)
    if not np.allclose(weights.sum(1), 1, atol=1e-5):
        return "no weights: some rows do not sum to one"
    if (weights < 0).any():
        return "no weights: some are negative"
    if np.allclose(weights, weights[0]):
        found = "the same weights every night"
    elif _above_the_bound(weights, contents):
        found = "r² above 0.6"
    else:
        found = "r² not above 0.6"
    fell = "the premise you name fell" if premise == 1 else f"premise {premise} holds"
    return f"{found}, and {fell}"


def _logistic(x):
    return softmax(np.stack([x, np.zeros_like(x)], axis=-1))


def _whisper(premise, follow=lambda contents: contents[:, 0] - contents[:, 1]):
    """Return an answer whose weights follow the contents a little."""
    return lambda contents: (_logistic(follow(contents) / 10), premise)


break_the_theorem = Exercise(
    task="telling weights, and the premise that fell",
    right=_whisper(1),
    cases=tuple(
        (np.random.default_rng(seed).normal(size=(1000, 2)),) for seed in (0, 1)
    ),
    names=("contents",),
    mistakes=(
        Mistake(
            "weights that ignore the contents",
            "weights that are the same every night keep the theorem, whatever they are",
            lambda contents: (np.tile([0.8, 0.2], (len(contents), 1)), 1),
        ),
        Mistake(
            "weights that do not help",
            "the weights move, and this linear reader is not helped: he has the sum of "
            "the glows already, so what should the weights tell him?",
            _whisper(1, lambda contents: contents.sum(1)),
        ),
        Mistake(
            "blamed on the Gaussians",
            "your weights break the theorem; the contents are as Gaussian as before",
            _whisper(3),
        ),
        Mistake(
            "blamed on the creatures",
            "your weights break the theorem; the contents are as independent as before",
            _whisper(2),
        ),
        Mistake(
            "rows that do not sum to one",
            "a head shares out one unit: a softmax would see to that",
            lambda contents: (np.abs(contents), 1),
        ),
        Mistake(
            "negative weights",
            "a softmax gives no negative weight, and so must you",
            lambda contents: (np.column_stack([contents[:, 0], 1 - contents[:, 0]]), 1),
        ),
    ),
    reread=section("why_heads", "Experiment: can the weights whisper?"),
    praise="the weights carry what the mixture lost, because they read the contents.",
    observe=_judged,
)
