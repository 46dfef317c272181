"""What the heads of the stored stress finder do, for chapter 13.

cd book && python -m _data stress_heads      # two minutes on one core
"""

import math
from collections import Counter, defaultdict

import torch

from _data import stress
from _data.stress_baselines import syllables

LIKES = {"vowel": "aeiou", "consonant": "bcdfghklmnprstvwz"}
MUCH = 0.8  # a share of the weight that looks like an explanation


@torch.no_grad()
def read(model, words):
    """Return the scores, and the weights of each layer."""
    letters, mask, _ = stress.as_batch([(word, 0) for word in words])
    X = model.embed(letters) + model.positions[: letters.shape[-1]]
    Y, A = model.encoder(X, mask, return_weights=True)
    scores = model.score(Y).squeeze(-1)
    return scores.masked_fill(~mask[:, 0, 0], -math.inf), A


def replaced(word, i):
    """Return the word with each other letter of the same kind at one place."""
    kind = "vowel" if word[i] in "aeiouy" else "consonant"
    return [word[:i] + c + word[i + 1 :] for c in LIKES[kind] if c != word[i]]


def moves(model, word, i, answer):
    """Return for each replacement of a letter whether it moves the stress."""
    scores, _ = read(model, replaced(word, i))
    return (scores.argmax(-1) != answer).tolist()


def favourites(model, word):
    """Yield for each head the letter with most weight, and what replacing it does."""
    scores, A = read(model, [word])
    answer = scores[0].argmax().item()
    for layer, maps in enumerate(A, 1):
        for head, weights in enumerate(maps[0, :, answer], 1):
            i = weights.argmax().item()
            moved = moves(model, word, i, answer) if i != answer else []
            weight = weights[i].item()
            yield layer, head, weight, word[i], i + 1, sum(moved), len(moved)


@torch.no_grad()
def without(model, heads, pairs):
    """Return the accuracy with zeros in the rows of W_O that belong to some heads.

    A layer of PyTorch stores W_O transposed, so the code has columns.
    """
    state = {name: x.clone() for name, x in model.state_dict().items()}
    for layer, head in heads:
        W_O = model.encoder.layers[layer - 1].attention.W_O.weight
        W_O[:, 16 * (head - 1) : 16 * head] = 0
    found = stress.accuracy(model, stress.sorted_batches(pairs, 512))
    model.load_state_dict(state)
    return round(found, 4)


def results():
    """Yield what the heads of the stored model do on the test words."""
    model, pairs = stress.load("right"), stress.split(stress.read_words())["test"]
    yield "all", without(model, [], pairs)
    every = [(layer, head) for layer in (1, 2) for head in (1, 2, 3, 4)]
    costs = {f"{i}.{j}": without(model, [(i, j)], pairs) for i, j in every}
    for layer in (1, 2):
        one = [head for head in every if head[0] == layer]
        costs[f"layer {layer}"] = without(model, one, pairs)
    yield "without", costs | {"all": without(model, every, pairs)}
    words, idle = Counter(), Counter()
    for word, _ in pairs:
        for layer, head, weight, _, _, moved, tried in favourites(model, word):
            if tried and weight >= MUCH:
                words[f"{layer}.{head}"] += 1
                idle[f"{layer}.{head}"] += not moved
    yield "favourites", {head: [words[head], idle[head]] for head in sorted(words)}
    by_distance = defaultdict(list)
    for word in [word for word, _ in pairs if syllables(word) >= 3][::2]:
        scores, _ = read(model, [word])
        answer = scores[0].argmax().item()
        for i in range(len(word)):
            if i != answer:
                by_distance[len(word) - 1 - i] += moves(model, word, i, answer)
    means = [sum(by_distance[d]) / len(by_distance[d]) for d in range(8)]
    yield "moved by distance from the end", [round(x, 4) for x in means]
