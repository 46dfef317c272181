"""Exercises on the encoder: the stream of a stack, decoder masks, a hop by hand."""

import functools

import numpy as np

from exercises import Exercise, in_use, section
from exercises.engine import Unfit, is_stub
from mha import encoder_layer, layer_norm, multi_head_attention
from mha.masks import causal_mask, padding_mask

_KINDS = "Deeper: encoder-only, decoder-only and encoder–decoder models"
_LOOP = section("encoder", "A stack is a loop")
_HUNT = section("encoder", "A hunt through five notes")


class _Named:
    """A layer whose name says what it does."""

    def __init__(self, name, layer):
        self.name, self.layer = name, layer

    def __call__(self, X):
        return self.layer(X)

    def __repr__(self):
        return self.name


_LAYERS = (
    _Named("add 1", lambda X: X + 1),
    _Named("double", lambda X: 2 * X),
    _Named("turn round", lambda X: X[::-1]),
)


def _states(X, layers):
    """Return the tokens before the first layer and after each."""
    found = [X]
    for layer in layers:
        found.append(layer(found[-1]))
    return found


def _together(answer, X, layers):
    """Return the states as one array, or None."""
    found = answer(X, layers)
    return None if found is None else np.array([np.asarray(each) for each in found])


after_each_layer = Exercise(
    task="the tokens before the first layer and after each",
    right=_states,
    cases=(
        (np.array([[1.0, 2.0]]), _LAYERS[:1]),
        (np.array([[1.0, 0.0], [3.0, 5.0]]), _LAYERS),
    ),
    names=("X", "layers"),
    observe=_together,
    mistakes={
        "the list begins with X itself, before any layer": (
            lambda X, layers: _states(X, layers)[1:]
        ),
        "the tokens after the last layer are missing": (
            lambda X, layers: _states(X, layers)[:-1]
        ),
        "each layer reads the output of the layer before it, and not X": (
            lambda X, layers: [X, *(layer(X) for layer in layers)]
        ),
        "only the last output is here; keep each on the way": (
            lambda X, layers: _states(X, layers)[-1:]
        ),
    },
    reread=_LOOP,
    praise="now you can look into a stack, layer by layer.",
)


def watch(states_of, *words):
    """Print how a trained stack reads each word after no layer, one and two."""
    if is_stub(states_of):
        print("not attempted yet: first let your function pass its check")
        return
    model = in_use.stress_finder()
    layers = [functools.partial(_layer, weights, model) for weights in model["layers"]]
    print(f"{'before':<15} {'after layer 1':<15} after layer 2")
    for word in in_use.letters_only(words):
        letters = np.array([ord(c) - 96 for c in word])
        X = model["embed"][letters] + model["positions"][: len(word)]
        best = [int(np.argmax(_scores(Y, model))) for Y in states_of(X, layers)]
        print(*(f"{word[:i] + word[i:].capitalize():<15}" for i in best))


def _layer(weights, model, X):
    return encoder_layer(X, weights, model["n_heads"], norm_first=True)


def _scores(X, model):
    w, b = model["score"]
    return layer_norm(X, *model["final_norm"]) @ w + b


def _matrices(n, block, read=None, written=None, sharp=20, value=None):
    """Return the matrices of a head that reads a block and writes the next."""
    blocks = block + 2

    def at(k):
        column = np.zeros((blocks * n, n))
        column[k * n : (k + 1) * n] = np.eye(n)
        return column

    W_Q = sharp * np.sqrt(n) * at(block if read is None else read)
    W_O = at(block + 1 if written is None else written).T
    return W_Q, at(0), at(block if value is None else value), W_O


def _hunts(n, block):
    """Return the tokens of two hunts, as they are before layer `block`."""
    rng = np.random.default_rng(n)
    for _ in range(2):
        ends = rng.permutation(n)
        places = [np.arange(n), ends]
        places += [places[-1][places[-1]] for _ in range(block - 1)]
        blocks = [np.eye(n)[place] for place in places[: block + 1]]
        yield np.hstack([*blocks, np.zeros((n, n))])


def _written(answer, n, block):
    """Return where the head writes a 1, for both hunts."""
    matrices = answer(n, block)
    if matrices is None:
        return None
    if not isinstance(matrices, tuple | list) or len(matrices) != 4:
        raise Unfit("return four matrices: W_Q, W_K, W_V, W_O")
    outputs = [multi_head_attention(X, *matrices, 1) for X in _hunts(n, block)]
    return np.array(outputs).round(1)


hop_matrices = Exercise(
    task="the four matrices of a head that looks twice as far",
    right=_matrices,
    cases=((2, 1), (3, 1), (5, 2), (64, 1)),
    names=("n", "block"),
    observe=_written,
    mistakes={
        "each note finds what it knew before: the query is the block that says where "
        "to look, and the value what the note there says": (
            lambda n, block: _matrices(n, block, read=0)
        ),
        "the value is what the note found says; here it is what a note says at "
        "first": lambda n, block: _matrices(n, block, value=1),
        "the head writes over the block that it reads; write into the next": (
            lambda n, block: _matrices(n, block, written=block)
        ),
        "the scores are so close together that every note gets some weight: multiply "
        "W_Q by a large number": lambda n, block: _matrices(n, block, sharp=1),
    },
    reread=_HUNT,
    praise="a head of ordinary attention follows the notes.",
)


def _as_two_masks(answer, n_target, lengths):
    """Return a tuple of two bool arrays, and say what else came in their place."""
    found = answer(n_target, lengths)
    if found is None:
        return None
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise Unfit("return two masks: to the target and to the source")
    found = tuple(np.asarray(mask) for mask in found)
    if any(mask.dtype != bool for mask in found):
        raise Unfit("a bool mask holds True and False, not 0 and 1 or -inf")
    return found


def _before(lengths, n):
    """Return which of n source tokens stand before these lengths."""
    return np.arange(n) < lengths[:, None, None, None]


def _with_target(mask_of):
    """Return an answer whose mask of the target is ``mask_of(n)``."""
    return lambda n, lengths: (mask_of(n), padding_mask(lengths))


def _with_source(mask_of):
    """Return an answer whose mask of the source is ``mask_of(n, lengths)``."""
    return lambda n, lengths: (causal_mask(n), mask_of(n, lengths))


decoder_masks = Exercise(
    task="the two masks of a decoder that reads a padded source",
    right=_with_target(causal_mask),
    cases=(
        (2, np.array([1])),
        (3, np.array([2, 4])),
        (4, np.array([3, 1, 2])),
        (2, np.array([4, 2])),
    ),
    names=("n_target", "lengths"),
    observe=_as_two_masks,
    mistakes={
        "a target token may attend to itself; else the first attends to "
        "nothing": _with_target(lambda n: np.tri(n, k=-1, dtype=bool)),
        "a source of length 2 has the positions 0 and 1; you show position 2 "
        "too": _with_source(lambda n, lengths: _before(lengths + 1, max(lengths))),
        "a target token must not attend to the one after it: your diagonal is one "
        "place too far": _with_target(lambda n: np.tri(n, k=1, dtype=bool)),
    },
    reread=section("encoder", _KINDS),
    praise="a causal mask for the target and a padding mask for the source.",
)
