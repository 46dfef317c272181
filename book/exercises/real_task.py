"""Exercises on the real task: a masked loss, one word alone, your own encoder."""

import numpy as np

import mha
from exercises import Exercise, random_arrays, section


def _log_share(scores, i):
    """Return the logarithm of the softmax weight of one score."""
    return np.log(mha.softmax(np.asarray(scores, dtype=float))[i])


def _loss(share, join=np.mean):
    """Return a loss: `share` gives what one word adds."""
    return lambda scores, lengths, targets: join(
        [-share(s, n, t) for s, n, t in zip(scores, lengths, targets, strict=True)]
    )


def _hidden_by_zero(scores, n, t):
    return _log_share(np.where(np.arange(len(scores)) < n, scores, 0), t)


_SCORES = np.log([[1.0, 2, 1, 4], [3, 1, 2, 2]])
_RANDOM = random_arrays((3, 7), seed=3)[0]

masked_loss = Exercise(
    task="the mean loss of a batch, without padding",
    right=_loss(lambda s, n, t: _log_share(s[:n], t)),
    cases=(
        (_SCORES[:1], np.array([2]), np.array([1])),
        (_SCORES, np.array([3, 4]), np.array([0, 2])),
        (_RANDOM, np.array([7, 2, 4]), np.array([6, 0, 3])),
    ),
    names=("scores", "lengths", "targets"),
    mistakes={
        "padding takes part in the softmax: only the first lengths[i] numbers of row i "
        "are letters": _loss(lambda s, n, t: _log_share(s, t)),
        "padding has the score 0, and exp(0) is 1: hide it with -inf": _loss(
            _hidden_by_zero
        ),
        "this is the sum over the words; the mean is asked for": _loss(
            lambda s, n, t: _log_share(s[:n], t), np.sum
        ),
        "these are probabilities; the loss is minus their logarithm": _loss(
            lambda s, n, t: -np.exp(_log_share(s[:n], t))
        ),
        "the sign: a probability below 1 has a negative logarithm, and a loss is "
        "positive": _loss(lambda s, n, t: -_log_share(s[:n], t)),
        "lengths - 1 letters are left: a word of length n has the letters 0 to "
        "n - 1": _loss(lambda s, n, t: _log_share(s[: max(n - 1, t + 1)], t)),
    },
    reread=section("real_task", "The model and its loss"),
    praise="this is what F.cross_entropy computes from scores of −∞.",
)


class Model:
    """Scores the letters of words, and its padding may take part."""

    def __init__(self, name, score):
        self.name, self.score = name, score

    def __call__(self, words):
        longest = max(map(len, words))
        return [np.array(self.score(word, longest)) for word in words]

    def __repr__(self):
        return self.name


def _codes(word):
    return np.array([ord(c) - 96.0 for c in word])


_WORDS = ["it", "photograph", "stress"]
_MODELS = (
    Model("a correct model", lambda word, n: _codes(word) / len(word)),
    Model("a model whose padding is visible", lambda word, n: _codes(word) / n),
    Model(
        "a model with rounding errors",
        lambda word, n: _codes(word) / len(word) * (1 + 1e-12 * n),
    ),
    Model(
        "a model whose answers stay and whose scores change",
        lambda word, n: 30 * _codes(word) + n - len(word),
    ),
    Model(
        "a model that is wrong about one word",
        lambda word, n: _codes(word)[:: -1 if n > len(word) == 6 else 1],
    ),
)


def _alone(scores_of, words, same, some=slice(None)):
    pairs = [*zip(words, scores_of(words), strict=True)][some]
    return all(same(scores_of([word])[0], scores) for word, scores in pairs)


def _winner(x, y):
    return bool(x.argmax() == y.argmax())


padding_changes_nothing = Exercise(
    task="whether a model gives each word the same scores alone and in a batch",
    right=lambda scores_of, words: _alone(scores_of, words, np.allclose),
    cases=tuple((model, _WORDS) for model in _MODELS),
    names=("scores_of", "words"),
    observe=lambda answer, scores_of, words: (
        None if (found := answer(scores_of, words)) is None else bool(found)
    ),
    mistakes={
        "you ask for equal scores to the last bit, and rounding differs between "
        "batches: use np.allclose": lambda scores_of, words: _alone(
            scores_of, words, np.array_equal
        ),
        "you compare the letters that win, and scores may change without another "
        "winner": lambda scores_of, words: _alone(scores_of, words, _winner),
        "you look at the first word only": lambda scores_of, words: _alone(
            scores_of, words, np.allclose, slice(1)
        ),
        "both times the words were in the batch: ask for one word in a list of "
        "one": lambda scores_of, words: True,
    },
    reread=section("real_task", "One word alone and in a batch"),
    praise="this test needs no training and no right answers.",
)


_SIZES = {"W_Q": "df", "W_K": "df", "W_V": "df", "W_O": "fd", "W_1": "dh", "W_2": "hd"}
_ROWS = {"b_Q": "f", "b_K": "f", "b_V": "f", "b_O": "d", "b_1": "h", "b_2": "d"}
_ROWS |= {"gain_1": "d", "bias_1": "d", "gain_2": "d", "bias_2": "d"}


class _Weights(dict):
    def __repr__(self):
        return "random weights of a layer"


def weights_of_a_layer(seed, d=4, f=6, h=5):
    """Return the weights of a layer whose widths all differ."""
    sizes, shapes = {"d": d, "f": f, "h": h}, {**_SIZES, **_ROWS}
    arrays = random_arrays(*([sizes[a] for a in s] for s in shapes.values()), seed=seed)
    return _Weights(zip(shapes, arrays, strict=True))


def random_model(seed, d=4):
    """Return a model with the names of `stress.exported`, and random numbers."""
    embed, positions, w, b, gain, bias = random_arrays(
        (27, d), (9, d), (d,), (1,), (d,), (d,), seed=seed
    )
    layers = [weights_of_a_layer(seed + k, d) for k in (1, 2)]
    return _Named(
        embed=embed,
        positions=positions,
        layers=layers,
        final_norm=(gain, bias),
        score=(w, b),
    )


class _Named(dict):
    def __repr__(self):
        return "random weights of a small model"


def _scores(letters, model, n_heads, **changes):
    model = model | changes.pop("model", {})
    X = model["embed"][letters]
    if changes.pop("positions", True):
        X = X + model["positions"][: len(letters)]
    options = {"norm_first": True, "final_norm": model["final_norm"]} | changes
    w, b = model["score"]
    return mha.encoder(X, model["layers"], n_heads, **options) @ w + b


def _with(**changes):
    return lambda letters, model, n_heads: _scores(letters, model, n_heads, **changes)


_LETTERS = np.array([3, 1, 20]), np.array([8, 15, 20, 5, 12, 19])

stress_scores = Exercise(
    task="the scores of the letters of a word, by a trained encoder",
    right=_scores,
    cases=((_LETTERS[0], random_model(1), 2), (_LETTERS[1], random_model(5), 3)),
    names=("letters", "model", "n_heads"),
    mistakes={
        "the positions are missing": _with(positions=False),
        "the final norm is missing": _with(final_norm=None),
        "these layers are post-norm: a pre-norm layer normalises what goes into "
        "attention and into feed-forward, and not the sum": _with(norm_first=False),
        "the bias of the score is missing": lambda letters, model, n_heads: (
            _scores(letters, model, n_heads) - model["score"][1]
        ),
        "a is the letter 1 and has row 1 of the embeddings": (
            lambda letters, model, n_heads: _scores(letters - 1, model, n_heads)
        ),
        "the first layer is run and not the second": lambda letters, model, n_heads: (
            _scores(letters, {**model, "layers": model["layers"][:1]}, n_heads)
        ),
        "these are weights that sum to 1; the scores are asked for": (
            lambda letters, model, n_heads: mha.softmax(
                _scores(letters, model, n_heads)
            )
        ),
    },
    reread=section("real_task", "The model and its loss"),
    praise="your own encoder can run a trained model.",
)
