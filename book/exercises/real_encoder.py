"""Exercises on a real encoder; none of them needs its weights."""

import numpy as np

from exercises import Exercise, random_arrays, section

_HEADS = section("real_encoder", "In practice: what do the 72 heads attend to?")
_LUCK = section(
    "real_encoder", 'Deeper: does "it" attend to the right noun in other sentences?'
)


_ALL, _LAYERS, _WORDS, _PLACES = 22_713_216, 10_646_784, 30_522, 512
_ROWS = 2 * 12 * 384  # a row of each table for each of twelve tokens
_TYPE, _NORM, _POOLER = 384, 2 * 384, 147_840
_USED = _LAYERS + _ROWS + _TYPE + _NORM

share_used = Exercise(
    task="how many parameters one sentence uses",
    right=_USED,
    cases=((),),
    mistakes={
        "that is the whole file; "
        "a sentence does not read the rows of other tokens": _ALL,
        "only one of the two rows for first text and second text is read": _USED + 384,
        "you counted whole tables; a sentence reads one row of each for each of its "
        "tokens": _USED - _ROWS + (_WORDS + _PLACES) * 384,
        "twelve tokens read twelve of the 512 rows of positions, not all": _USED
        + (_PLACES - 12) * 384,
        "twelve tokens read twelve of the 30,522 rows of tokens, not all": _USED
        + (_WORDS - 12) * 384,
        "those are the six layers; add what turns the tokens into vectors": _LAYERS,
        "[CLS] and [SEP] are tokens too, so there are twelve": _USED - 2 * 2 * 384,
        "the pooler is in the file, but this model does not use it": _USED + _POOLER,
    },
    reread=section("real_encoder", "Deeper: what is in the file of weights?"),
    praise="47 % of the file: all six layers, and only a few rows of the tables.",
)


def _to_length_1(e):
    return e / np.linalg.norm(e, axis=-1, keepdims=True)


def _total(Y, mask):
    return np.where(mask[..., None], Y, 0).sum(1)


def _sentence_cases():
    yield np.array([[[1.0, 5], [5, 3], [9, -5]]]), np.array([[True, True, False]])
    Y = np.array([[[1.0, 5.0], [5.0, 3.0]], [[4.0, -3.0], [2.0, 7.0]]])
    yield Y, np.array([[True, True], [True, False]])
    Y, padded = random_arrays((3, 5, 7), (2, 3, 5), seed=13)
    yield Y, np.arange(5) < np.array([[5], [3], [2]])
    # What a program without a mask in its softmax leaves in the rows of padding.
    padded[1, 2] = np.nan
    yield padded, np.array([[True, True, True], [True, True, False]])


sentence_vectors = Exercise(
    task="one vector of length 1 per sentence",
    right=lambda Y, mask: _to_length_1(_total(Y, mask)),
    cases=tuple(_sentence_cases()),
    mistakes={
        "the mean of vectors of length 1 is shorter than 1: divide it by its length, "
        "and leave the tokens as they are": lambda Y, mask: (
            _total(_to_length_1(Y), mask) / mask.sum(1)[:, None]
        ),
        "you take the largest number of each column; take the mean": lambda Y, mask: (
            _to_length_1(np.where(mask[..., None], Y, -np.inf).max(1))
        ),
        "rows of padding took part: only rows where the mask is True are "
        "real": lambda Y, mask: _to_length_1(Y.mean(1)),
        "you multiplied by the mask, and 0 times NaN is NaN: padding may hold "
        "it": lambda Y, mask: _to_length_1((Y * mask[..., None]).sum(1)),
        "that is the mean; divide each vector by its length": lambda Y, mask: (
            _total(Y, mask) / mask.sum(1)[:, None]
        ),
        "that is the row of [CLS]; this model takes the mean of all real "
        "tokens": lambda Y, mask: _to_length_1(Y[:, 0]),
        "you divided every token by its length too; divide only the "
        "mean": lambda Y, mask: _to_length_1(_total(_to_length_1(Y), mask)),
    },
    reread=section("real_encoder", "One step before the encoder, and one after it"),
    praise="this is the last step of the model, and padding does not change it.",
)


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
    mistakes={
        "that is the diagonal, the weight of a word on itself": lambda A, lengths: (
            _given(A, lengths, to=0).mean(0)
        ),
        "row 0 has no token before it, and column -1 is the last "
        "column": lambda A, lengths: _given(A, lengths, lambda n: range(n - 1)).mean(0),
        "you averaged the means of the sentences; "
        "here every word counts the same": _mean_of_means,
        "you counted the rows of [CLS] and [SEP], "
        "which are not words": lambda A, lengths: _given(A, lengths, range).mean(0),
    },
    reread=_HEADS,
    praise="by this score, L1H3 of the real model gets 1.00.",
)


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
    task="the share that arrives from each key",
    right=lambda A, V, W_O: _rows_to_one(A * _lengths(V @ W_O)),
    cases=tuple(_brought_cases()),
    mistakes={
        "you used squared lengths; the length is the root of the sum of "
        "squares": lambda A, V, W_O: _rows_to_one(A * _lengths(V @ W_O) ** 2),
        "you added the entries; the length is the root of the sum of their "
        "squares": lambda A, V, W_O: _rows_to_one(A * (V @ W_O).sum(-1)),
    },
    reread=_HEADS,
    praise="what arrives from a key is its weight times its value times W_O.",
)


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
    mistakes={
        "you measured on all rows; leave out the even rows, "
        "on which you chose": lambda right: right[:, _best(right[::2])].mean(),
        "you chose and measured on the even rows; "
        "measure on the odd rows": lambda right: right[::2, _best(right[::2])].mean(),
        "you used the odd rows for the choice too; "
        "choose on the even rows only": lambda right: right[1::2, _best(right)].mean(),
        "you chose the head that is best on the odd rows; "
        "choose on the even rows": lambda right: right[1::2].mean(0).max(),
        "that is the number of the colleague: "
        "chosen and measured on all rows": lambda right: right.mean(0).max(),
        "you exchanged the halves: choose on even rows, "
        "measure on odd rows": lambda right: right[::2, _best(right[1::2])].mean(),
    },
    reread=_LUCK,
    praise="luck in the choice does not raise this score.",
)
