"""Exercises on the real task: a masked loss, one word alone, your own encoder."""

import json
import time
from pathlib import Path

import numpy as np

import mha
from exercises import Exercise, engine, in_use, pictures, random_arrays, section
from exercises.engine import Unfit, is_stub


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
        "this is the logarithm of a mean; each word has a loss of its own, and the "
        "mean is taken of these": lambda *given: (
            -np.log(_loss(lambda s, n, t: -np.exp(_log_share(s[:n], t)))(*given))
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
    Model(
        "a model that is wrong about the shortest word",
        lambda word, n: _codes(word)[:: -1 if n > len(word) == 2 else 1],
    ),
    Model(
        "a model whose scores change a little",
        lambda word, n: _codes(word) + 0.001 * (n - len(word)),
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
        "this is True of a model that is wrong about one word: every word must keep "
        "every score": lambda scores_of, words: _alone(
            scores_of, words, np.allclose, slice(1)
        ),
        "this is True of all models here: every word, asked for in a list of one, must "
        "keep the scores of the same word in the batch": lambda scores_of, words: True,
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

_EXAMPLES = "photograph photography photographic democrat democracy".split()

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
    picture=lambda answer: pictures.said(
        "With the trained weights it says: " + in_use.stressed(answer, _EXAMPLES)
    ),
)


def stress(scores_of, *words):
    """Print words with a capital where a learner's `stress_scores` is highest."""
    if is_stub(scores_of):
        print("not attempted yet: first let your function pass its check")
    else:
        print(in_use.stressed(scores_of, in_use.letters_only(words)))


# The same in PyTorch, for batches, so that it can be trained


def _in_torch(x):
    """Return a model, or what else holds arrays, with tensors that have slopes."""
    import torch

    if isinstance(x, dict):
        return {name: _in_torch(part) for name, part in x.items()}
    if isinstance(x, list | tuple):
        return [_in_torch(part) for part in x]
    x = torch.tensor(x)
    return x.requires_grad_() if x.is_floating_point() else x


def _layer_norm(x, gain, bias, ddof=0):
    centred = x - x.mean(-1, keepdim=True)
    variance = x.var(-1, correction=ddof, keepdim=True)
    return centred / (variance + 1e-5).sqrt() * gain + bias


def _batch_scores(letters, mask, model, n_heads, slip=""):
    """Return scores (batch, n), rightly or with a slip that is named."""
    X = model["embed"][letters]
    if slip != "positions":
        X = X + model["positions"][: letters.shape[1]]

    def split(x):
        if slip == "split":
            return x.reshape(len(x), n_heads, x.shape[1], -1)
        return x.unflatten(-1, (1 if slip == "heads" else n_heads, -1)).transpose(1, 2)

    def attend(X, w):
        used = slip != "biases"
        Q, K, V = (split(X @ w[f"W_{x}"] + used * w[f"b_{x}"]) for x in "QKV")
        S = Q @ K.mT / (1 if slip == "scale" else Q.shape[-1] ** 0.5)
        hidden = mask if slip == "inverted" else ~mask
        S = S if slip == "mask" else S.masked_fill(hidden, -float("inf"))
        Y = (S.softmax(-1) @ V).transpose(1, 2).flatten(2)
        return Y @ w["W_O"] + used * w["b_O"]

    def feed(X, w):
        hidden = X @ w["W_1"] + w["b_1"]
        return (hidden if slip == "relu" else hidden.relu()) @ w["W_2"] + w["b_2"]

    for w in model["layers"]:
        for k, part in (("1", attend), ("2", feed)):
            k = "1" if slip == "one norm" else k
            norm = w[f"gain_{k}"], w[f"bias_{k}"], slip == "unbiased"
            if slip == "post-norm":
                X = _layer_norm(X + part(X, w), *norm)
            else:
                read = _layer_norm(X, *norm)
                kept = {"residual": 0, "normed": read}.get(slip, X)
                X = part(read, w) + kept
    if slip != "final norm":
        X = _layer_norm(X, *model["final_norm"], slip == "unbiased")
    w, b = model["score"]
    return X @ w + b


def _slip(name):
    return lambda *given: _batch_scores(*given, slip=name)


def _leaves(x, name="model"):
    """Yield the tensors of a model that have slopes, each with its name."""
    if isinstance(x, dict | list):
        for key, part in x.items() if isinstance(x, dict) else enumerate(x):
            yield from _leaves(part, f"{name}[{key!r}]")
    elif x.is_floating_point():
        yield name, x


def _slopes(scores, given):
    """Return the slope of the sum of real scores for each tensor, by its name."""
    _, mask, model = given
    scores[mask[:, 0, 0]].sum().backward()
    return {name: x.grad for name, x in _leaves(model)}


def _scores_and_slopes(answer, letters, mask, model, n_heads):
    """Return the scores of real letters, if all slopes come back to the model."""
    import torch

    given = _in_torch((letters, mask, dict(model)))
    # Below what the check puts around an answer, which makes arrays of tensors.
    scores = getattr(answer, "__wrapped__", answer)(*given, n_heads)
    if not hasattr(scores, "backward"):
        raise Unfit("the result is no tensor of PyTorch, so no slope can come back")
    if tuple(scores.shape) != letters.shape:
        return scores.detach().numpy()
    real = mask[:, 0, 0]
    found = np.where(real, scores.detach().numpy(), 0)
    try:
        slopes = _slopes(scores, given)
    except RuntimeError:
        raise Unfit("no slope comes back: is there a detach, or NumPy?") from None
    again = _in_torch((letters, mask, dict(model)))
    right = _batch_scores(*again, n_heads)
    if np.allclose(found, np.where(real, right.detach().numpy(), 0), atol=1e-4):
        for name, wanted in _slopes(right, again).items():
            slope = torch.zeros(()) if slopes[name] is None else slopes[name]
            if wanted is not None and not torch.allclose(slope, wanted, 1e-3, 1e-4):
                raise Unfit(
                    f"the scores are right, and the slope of {name} is not: is there "
                    "a detach, or NumPy, on its way?"
                )
    return found


def _batch(lengths, seed):
    rng, mask = np.random.default_rng(seed), mha.padding_mask(lengths)
    letters = rng.integers(1, 27, (len(lengths), max(lengths)))
    return np.where(mask[:, 0, 0], letters, 0), mask


score_letters = engine.Exercise(
    task="the scores of a batch of words, in PyTorch",
    right=_batch_scores,
    cases=(
        (*_batch([3], seed=1), random_model(1), 1),
        (*_batch([6], seed=2), random_model(5), 3),
        (*_batch([2, 7, 4], seed=3), random_model(9), 2),
    ),
    names=("letters", "mask", "model", "n_heads"),
    observe=_scores_and_slopes,
    mistakes={
        "the mask is not used: letters attend to padding": _slip("mask"),
        "True in the mask is read as hidden, and here it means a letter: "
        "letters attend to padding alone": _slip("inverted"),
        "there is one head: split the columns of Q, K and V": _slip("heads"),
        "the axes of heads and letters are not swapped: a head owns columns": _slip(
            "split"
        ),
        "the scores are not divided by √d_k": _slip("scale"),
        "the positions are missing": _slip("positions"),
        "the final norm is missing": _slip("final norm"),
        "these layers are post-norm: a pre-norm layer normalises what goes into "
        "attention and into feed-forward, and not the sum": _slip("post-norm"),
        "the residual connections are missing: add what went in": _slip("residual"),
        "what is added to is the normalised copy: add to the tokens themselves": _slip(
            "normed"
        ),
        "the biases of attention are not used": _slip("biases"),
        "gain_1 and bias_1 are used in both norms: the second has gain_2 and "
        "bias_2": _slip("one norm"),
        "the ReLU between the two products is missing": _slip("relu"),
        "var divides by one less in PyTorch: say correction=0": _slip("unbiased"),
    },
    reread=section("real_task", "The model and its loss"),
    praise="your own encoder can learn: the next cell trains it.",
)


def train(answer, *words, epochs=3, file="my_stress.json"):
    """Train a learner's `score_letters`, print what it says of words, and store it."""
    if is_stub(answer):
        print("not attempted yet: first let your function pass its check")
        return
    import torch
    import torch.nn.functional as F

    from _data import stress

    torch.set_num_threads(1)
    torch.manual_seed(0)
    fresh = stress.StressFinder()
    n_heads = fresh.encoder.layers[0].attention.n_heads
    parts = fresh.embed.weight, fresh.positions, *fresh.score.parameters()
    embed, positions, (w,), b = (x.detach().numpy() for x in parts)
    stack = fresh.encoder.numpy_weights()
    model = _in_torch(
        {"embed": embed, "positions": positions, **stack, "score": [w, b]}
    )
    model["positions"].requires_grad_(False)
    weights = [x for x in _tensors(model) if x.requires_grad]
    parts = stress.split(stress.read_words())

    def scores(letters, mask):
        return answer(letters, mask, model, n_heads).masked_fill(~mask[:, 0, 0], -1e9)

    def right(batches):
        with torch.no_grad():
            pairs = [(scores(x, m).argmax(-1), y) for x, m, y in batches]
        found, wanted = map(torch.cat, zip(*pairs, strict=True))
        return found, (found == wanted).float().mean().item()

    steps = epochs * -(-len(parts["train"]) // stress.BATCH)
    optimizer = torch.optim.AdamW(weights, lr=stress.RATE)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, stress.RATE, steps)
    held, began, step = parts["validation"][:500], time.time(), 0
    print("step   loss   right of 500 unseen words")
    for _ in range(epochs):
        for letters, mask, targets in stress.sorted_batches(
            parts["train"], stress.BATCH, shuffle=True
        ):
            loss = F.cross_entropy(scores(letters, mask), targets)
            if step % max(steps // 5, 1) == 0:
                share = right([stress.as_batch(held)])[1]
                print(f"{step:>4}   {loss:.2f}   {share:.0%}")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
            step += 1
    padded, share = right([stress.as_batch(held, stress.LONGEST)])
    alone, _ = right([stress.as_batch([pair]) for pair in held])
    print(f"{step:>4}   {loss:.2f}   {share:.0%}, after {time.time() - began:.0f} s")
    same = (alone == padded).sum().item()
    print(f"alone and padded, the same answer to {same} of {len(held)} words")
    for word in in_use.letters_only(words):
        (i,), _ = right([stress.as_batch([(word, 0)])])
        print(word[:i] + word[i].upper() + word[i + 1 :], end=" ")
    stored = {"n_heads": n_heads} | _rounded(model)
    Path(file).write_text(json.dumps(stored), encoding="utf-8")
    print(f"\nYour weights are in {file}: open it in the page of the live encoder.")


def _tensors(x):
    """Yield all tensors in a model."""
    parts = x.values() if isinstance(x, dict) else x if isinstance(x, list) else ()
    if not isinstance(x, dict | list):
        yield x
    for part in parts:
        yield from _tensors(part)


def _rounded(x):
    """Return a model as lists of numbers, as `_data.stress.exported` does."""
    if isinstance(x, dict):
        return {name: _rounded(part) for name, part in x.items()}
    if isinstance(x, list):
        return [_rounded(part) for part in x]
    return x.detach().double().numpy().round(5).tolist()
