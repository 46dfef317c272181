"""Exercises on a real encoder; none of them needs its weights."""

import numpy as np

from exercises import section
from mha.check import Exercise, Mistake

_BY_HAND, _THE_STEP = (
    section("real_encoder", "By hand"),
    section("real_encoder", "The step in the package"),
)
_LOOKS = section("real_encoder", "Experiment: what do seventy-two heads look at?")
_CARRIES = section("real_encoder", "Experiment: what does the weight on [CLS] carry?")
_HUNGRY = section("real_encoder", "How good is the best of seventy-two?")


# ------------------------------------------------------- what one sentence uses

_ALL, _LAYERS, _WORDS, _PLACES = 22_713_216, 10_646_784, 30_522, 512
_ROWS, _FRONT = 2 * 12 * 384, 3 * 384  # rows of twelve tokens; type vector and norm


def _two_digits(answer):
    share = np.asarray(answer, float)
    if share.shape == () and abs(share - 47) < 0.6:  # per cent, with any digits
        share = np.asarray(47.0)
    return np.round(share, 2)


share_used = Exercise(
    task="the share of the numbers that one sentence uses",
    right=(_LAYERS + _ROWS + _FRONT) / _ALL,
    cases=((),),
    observe=_two_digits,
    mistakes=(
        Mistake(
            "all of them",
            "a sentence of twelve tokens does not read the rows of other words",
            1.0,
        ),
        Mistake(
            "the tables counted whole",
            "you counted whole tables; a sentence picks one row a token from them",
            (_LAYERS + (_WORDS + _PLACES) * 384 + _FRONT) / _ALL,
        ),
        Mistake(
            "the dictionary",
            "that is the share of all word rows; look for what every sentence uses",
            _WORDS * 384 / _ALL,
        ),
        Mistake(
            "the rows alone",
            "those are the rows of twelve tokens; they go through the layers then",
            _ROWS / _ALL,
        ),
        Mistake(
            "attention alone",
            "that is attention; each layer also has a feed-forward part",
            6 * 592_128 / _ALL,
        ),
        Mistake(
            "one layer",
            "that is one layer of six, and a sentence goes through all of them",
            _LAYERS / 6 / _ALL,
        ),
        Mistake(
            "a percentage",
            "that is in per cent; the answer is a number between 0 and 1",
            47.0,
        ),
        Mistake(
            "a count",
            "that is how many numbers; divide by how many there are in the file",
            _LAYERS + _ROWS + _FRONT,
        ),
        Mistake(
            "cut off",
            "round to two digits, do not cut the others off",
            0.46,
        ),
        Mistake(
            "a little too much",
            "no table is read as a whole, and the pooler is not read at all",
            0.48,
        ),
        Mistake(
            "about a half",
            "about a half, yes; count to two digits after the point",
            0.5,
        ),
        Mistake(
            "once for each token",
            "all tokens share the matrices of a layer; count each matrix once",
            12 * _LAYERS / _ALL,
        ),
    ),
    reread=_THE_STEP,
    praise="every sentence uses the same half, and next to nothing of the other.",
)


# ------------------------------------------------------- one vector a sentence


def _to_length_1(e):
    return e / np.linalg.norm(e, axis=-1, keepdims=True)


def _total(Y, mask):
    return np.where(mask[..., None], Y, 0).sum(1)


def _sentence_cases():
    rng = np.random.default_rng(13)
    Y = np.array([[[1.0, 5.0], [5.0, 3.0], [9.0, -5.0]]])
    yield Y, np.array([[True, True, False]])
    Y = np.array([[[1.0, 5.0], [5.0, 3.0]], [[4.0, -3.0], [2.0, 7.0]]])
    yield Y, np.array([[True, True], [True, False]])
    mask = np.arange(5) < np.array([[5], [3], [2]])
    yield rng.normal(size=(3, 5, 7)).round(1), mask
    # What a program without a mask in its softmax leaves in the rows of padding.
    Y = rng.normal(size=(2, 3, 5)).round(1)
    Y[1, 2] = np.nan
    yield Y, np.array([[True, True, True], [True, True, False]])


sentence_vectors = Exercise(
    task="one vector of length 1 for each sentence",
    right=lambda Y, mask: _to_length_1(_total(Y, mask)),
    cases=tuple(_sentence_cases()),
    names=("Y", "mask"),
    mistakes=(
        Mistake(
            "padding in the mean",
            "rows of padding took part: only rows where the mask is True are real",
            lambda Y, mask: _to_length_1(Y.mean(1)),
        ),
        Mistake(
            "padding times zero",
            "you multiplied by the mask, and 0 times NaN is NaN: padding may hold it",
            lambda Y, mask: _to_length_1((Y * mask[..., None]).sum(1)),
        ),
        Mistake(
            "not stretched to length 1",
            "that is the mean; divide each vector by its length",
            lambda Y, mask: _total(Y, mask) / mask.sum(1)[:, None],
        ),
        Mistake(
            "the sum alone",
            "that is the sum; it still has to be stretched to length 1",
            _total,
        ),
        Mistake(
            "the length squared",
            "you divided by the square of the length: take its root",
            lambda Y, mask: (
                _total(Y, mask) / (_total(Y, mask) ** 2).sum(1, keepdims=True)
            ),
        ),
        Mistake(
            "the sum of sizes",
            "you divided by a sum of absolute values; a length is a root of squares",
            lambda Y, mask: (
                _total(Y, mask) / np.abs(_total(Y, mask)).sum(1, keepdims=True)
            ),
        ),
        Mistake(
            "lengths along the batch",
            "you measured columns; a length belongs to one sentence, along its row",
            lambda Y, mask: (
                _total(Y, mask) / np.linalg.norm(_total(Y, mask), axis=0, keepdims=True)
            ),
        ),
        Mistake(
            "the last token",
            "that is the row of [SEP]; this model takes the mean of all real tokens",
            lambda Y, mask: _to_length_1(Y[np.arange(len(Y)), mask.sum(1) - 1]),
        ),
        Mistake(
            "the mean of stretched tokens",
            "you stretched every token and then took the mean: the other way round",
            lambda Y, mask: _total(_to_length_1(Y), mask) / mask.sum(1)[:, None],
        ),
        Mistake(
            "the first token",
            "that is the row of [CLS]; this model takes the mean of all real tokens",
            lambda Y, mask: _to_length_1(Y[:, 0]),
        ),
        Mistake(
            "length of the whole batch",
            "you divided all sentences by one length; each has its own",
            lambda Y, mask: _total(Y, mask) / np.linalg.norm(_total(Y, mask)),
        ),
        Mistake(
            "the sum of the entries",
            "you divided by the sum of the entries; the length is a root of squares",
            lambda Y, mask: _total(Y, mask) / _total(Y, mask).sum(1)[:, None],
        ),
        Mistake(
            "each token stretched first",
            "you stretched every token; only the mean is stretched, once",
            lambda Y, mask: _to_length_1(_total(_to_length_1(Y), mask)),
        ),
        Mistake(
            "the largest entry",
            "you took the largest entry of each feature; this model takes the mean",
            lambda Y, mask: _to_length_1(
                np.where(mask[..., None], Y, -np.inf).max(1, initial=-np.inf)
            ),
        ),
        Mistake(
            "mask turned round",
            "you took the rows of padding and left the real ones out",
            lambda Y, mask: _to_length_1(_total(Y, ~mask)),
        ),
    ),
    reread=_BY_HAND,
    praise="the last step of the model, and padding has no say in it.",
)


# ------------------------------------------------------- the score of a head


def _given(A, lengths, rows=lambda n: range(1, n - 1), to=-1):
    """Return the weights that are averaged: (how many, heads)."""
    return np.array(
        [A[b, :, i, i + to] for b, n in enumerate(lengths) for i in rows(n)]
    )


def _score_cases():
    rng = np.random.default_rng(7)
    for lengths in ((4,), (3, 5), (7, 4, 5)):
        n = max(lengths)
        A = rng.random((len(lengths), 3, n, n)).round(1) + 0.1
        real = np.arange(n) < np.array(lengths)[:, None]
        A = np.where(real[:, None, None], A, 0)
        yield A / A.sum(-1, keepdims=True), np.array(lengths)


def _mean_of_means(A, lengths):
    each = [_given(A[[b]], [n]).mean(0) for b, n in enumerate(lengths)]
    return np.mean(each, 0)


previous_score = Exercise(
    task="the mean weight of a word on the token before it",
    right=lambda A, lengths: _given(A, lengths).mean(0),
    cases=tuple(_score_cases()),
    names=("A", "lengths"),
    mistakes=(
        Mistake(
            "the next token",
            "that is the weight on the token after; rows are queries, columns keys",
            lambda A, lengths: _given(A, lengths, to=1).mean(0),
        ),
        Mistake(
            "the token itself",
            "that is the diagonal, the weight of a word on itself",
            lambda A, lengths: _given(A, lengths, to=0).mean(0),
        ),
        Mistake(
            "[SEP] counted as a word",
            "the last real token is [SEP], and it has no vote",
            lambda A, lengths: _given(A, lengths, lambda n: range(1, n)).mean(0),
        ),
        Mistake(
            "[CLS] looks at the end",
            "row 0 has no token before it, and column -1 is the last one",
            lambda A, lengths: _given(A, lengths, lambda n: range(n - 1)).mean(0),
        ),
        Mistake(
            "padding counted",
            "rows of padding took part: row b ends at lengths[b], not at n",
            lambda A, lengths: _given(
                A, [A.shape[-1]] * len(lengths), lambda n: range(1, n - 1)
            ).mean(0),
        ),
        Mistake(
            "each sentence the same",
            "you averaged the means of the sentences; each word counts the same here",
            _mean_of_means,
        ),
        Mistake(
            "a sum",
            "you added the weights up; the score is their mean",
            lambda A, lengths: _given(A, lengths).sum(0),
        ),
        Mistake(
            "divided by all tokens",
            "[CLS] and [SEP] are no words: divide by the number of words",
            lambda A, lengths: _given(A, lengths).sum(0) / np.sum(lengths),
        ),
        Mistake(
            "divided by the sentences",
            "you divided by the number of sentences; the mean is over words",
            lambda A, lengths: _given(A, lengths).sum(0) / len(lengths),
        ),
        Mistake(
            "every row",
            "all real rows took part; [CLS] and [SEP] have no vote",
            lambda A, lengths: _given(A, lengths, range).mean(0),
        ),
        Mistake(
            "the first word left out",
            "the first word has a token before it too, [CLS], and it counts",
            lambda A, lengths: _given(A, lengths, lambda n: range(2, n - 1)).mean(0),
        ),
        Mistake(
            "the last word left out",
            "the last word stands in row n - 2, and it counts: range omits its end",
            lambda A, lengths: _given(A, lengths, lambda n: range(1, n - 2)).mean(0),
        ),
        Mistake(
            "rows and columns exchanged",
            "that is what the token before gives to the word: rows are queries",
            lambda A, lengths: _given(A.swapaxes(-1, -2), lengths).mean(0),
        ),
        Mistake(
            "heads averaged",
            "that is one number for the layer; each head has its own score",
            lambda A, lengths: _given(A, lengths).mean(),
        ),
        Mistake(
            "all rows with a token before",
            "you averaged the whole diagonal below the main one, padding included",
            lambda A, lengths: np.diagonal(A, -1, -2, -1).mean((0, -1)),
        ),
    ),
    reread=_LOOKS,
    praise="with this score L1H3 of the real model gets 1.00.",
)


# ------------------------------------------------------- what comes home


def _rows_to_one(x):
    return x / x.sum(-1, keepdims=True)


def _lengths(x):
    return np.linalg.norm(x, axis=-1)


def _brought_cases():
    A = np.array([[0.9, 0.1], [0.5, 0.5]])
    yield A, np.array([[0.0, 0.0], [3.0, 4.0]]), np.eye(2)
    rng = np.random.default_rng(3)
    for n_q, n_k, d_v, d_model in ((2, 3, 2, 4), (3, 5, 2, 7)):
        A = _rows_to_one(rng.random((n_q, n_k)).round(1) + 0.1)
        V, W_O = (rng.normal(size=s).round(1) for s in ((n_k, d_v), (d_v, d_model)))
        yield A, V, W_O


shares_brought = Exercise(
    task="the share of each key in what a head brings home",
    right=lambda A, V, W_O: _rows_to_one(A * _lengths(V @ W_O)),
    cases=tuple(_brought_cases()),
    names=("A", "V", "W_O"),
    mistakes=(
        Mistake(
            "the weights alone",
            "those are the weights; a heavy weight on a value of 0 brings nothing",
            lambda A, V, W_O: A,
        ),
        Mistake(
            "lengths before W_O",
            "you measured the values; what is added to the token is value times W_O",
            lambda A, V, W_O: _rows_to_one(A * _lengths(V)),
        ),
        Mistake(
            "rows not divided",
            "those are the lengths; divide each row by its sum",
            lambda A, V, W_O: A * _lengths(V @ W_O),
        ),
        Mistake(
            "columns divided",
            "your columns sum to 1; a query shares out what *it* gets, along a row",
            lambda A, V, W_O: (A * _lengths(V @ W_O)) / (A * _lengths(V @ W_O)).sum(0),
        ),
        Mistake(
            "squares",
            "you left out the root: the length is the root of the sum of squares",
            lambda A, V, W_O: _rows_to_one(A * _lengths(V @ W_O) ** 2),
        ),
        Mistake(
            "entries summed",
            "you added the entries, and signs cancel; a length is a root of squares",
            lambda A, V, W_O: _rows_to_one(A * (V @ W_O).sum(-1)),
        ),
        Mistake(
            "sizes of entries summed",
            "you added the sizes of the entries; a length is a root of squares",
            lambda A, V, W_O: _rows_to_one(A * np.abs(V @ W_O).sum(-1)),
        ),
        Mistake(
            "the weight counted twice",
            "each weight counts once; yours is in there twice",
            lambda A, V, W_O: _rows_to_one(A**2 * _lengths(V @ W_O)),
        ),
        Mistake(
            "divided before the weights",
            "divide at the end: lengths times weights do not sum to 1 any more",
            lambda A, V, W_O: A * _rows_to_one(_lengths(V @ W_O)[None]),
        ),
        Mistake(
            "a softmax at the end",
            "divide each row by its sum; a softmax would take powers of e",
            lambda A, V, W_O: _rows_to_one(np.exp(A * _lengths(V @ W_O))),
        ),
        Mistake(
            "values without weights",
            "those are shares of the values alone; each counts times its weight",
            lambda A, V, W_O: _rows_to_one(np.ones_like(A) * _lengths(V @ W_O)),
        ),
        Mistake(
            "one length for all",
            "you divided by the sum of the whole table; each row sums to 1 by itself",
            lambda A, V, W_O: A * _lengths(V @ W_O) / (A * _lengths(V @ W_O)).sum(),
        ),
    ),
    reread=_CARRIES,
    praise="weight times value: that is what arrives.",
)


# ------------------------------------------------------- the chosen head


def _chosen_cases():
    yield (np.array([[1, 0], [0, 1], [1, 0], [0, 1]], bool),)
    yield (np.array([[1, 1], [1, 0], [0, 0], [1, 0]], bool),)  # two are best
    rng = np.random.default_rng(11)
    for n_pairs, n_heads in ((7, 5), (12, 9), (11, 13)):
        yield (rng.random((n_pairs, n_heads)) < 0.5,)


def _best(right):
    return right.sum(0).argmax()


honest_score = Exercise(
    task="the score of the best head on unseen rows",
    right=lambda right: right[1::2, _best(right[::2])].mean(),
    cases=tuple(_chosen_cases()),
    mistakes=(
        Mistake(
            "the same rows twice",
            "you chose on the even rows and scored on them too",
            lambda right: right[::2, _best(right[::2])].mean(),
        ),
        Mistake(
            "chosen on all rows",
            "the odd rows had a part in the choice: they must stay unseen",
            lambda right: right[1::2, _best(right)].mean(),
        ),
        Mistake(
            "the best of the odd rows",
            "you chose the head that is best on the test itself",
            lambda right: right[1::2].mean(0).max(),
        ),
        Mistake(
            "the colleague's number",
            "that is the best head on all rows, scored on all rows",
            lambda right: right.mean(0).max(),
        ),
        Mistake(
            "halves exchanged",
            "choose on the even rows and score on the odd ones, not the other way",
            lambda right: right[::2, _best(right[1::2])].mean(),
        ),
        Mistake(
            "a mean over all heads",
            "that is the mean over all heads; only the chosen one counts",
            lambda right: right[1::2].mean(),
        ),
        Mistake(
            "the head itself",
            "that is the number of the chosen head; expected its share of right",
            lambda right: _best(right[::2]),
        ),
        Mistake(
            "scored on all rows",
            "half of the rows you score on had a part in the choice",
            lambda right: right[:, _best(right[::2])].mean(),
        ),
        Mistake(
            "the last of the best",
            "several heads are best on the even rows: take the first of them",
            lambda right: right[
                1::2, right.shape[1] - 1 - _best(right[::2, ::-1])
            ].mean(),
        ),
        Mistake(
            "all of the best",
            "you averaged over all heads that are best; take the first of them",
            lambda right: right[
                1::2, right[::2].sum(0) == right[::2].sum(0).max()
            ].mean(),
        ),
        Mistake(
            "first half and second half",
            "you cut the rows in the middle; choose on the rows 0, 2, 4, …",
            lambda right: right[
                len(right) // 2 :, _best(right[: len(right) // 2])
            ].mean(),
        ),
        Mistake(
            "counted from 1",
            "rows count from 0: the even ones are right[::2], and you chose on others",
            lambda right: right[2::2, _best(right[1::2])].mean(),
        ),
        Mistake(
            "divided by all rows",
            "only the odd rows are scored, so divide by how many those are",
            lambda right: right[1::2, _best(right[::2])].sum() / len(right),
        ),
        Mistake(
            "a count",
            "that is how many are right; expected the share",
            lambda right: right[1::2, _best(right[::2])].sum(),
        ),
    ),
    reread=_HUNGRY,
    praise="a score that a lucky head cannot have.",
)
