"""Train the three layers of the front page: see __main__.py.

The models of chapter 12, for as many steps as its figures show; about five seconds on
one core.
"""

import torch

from _data.wrong_attention import LETTERS, N, accuracy, train
from mha import zoo

SEED, STEPS = 0, 300
# The page calls them A, B and "this one".
LAYERS = zoo.right, zoo.merge_without_transpose, zoo.softmax_over_queries


def letters(count, seed):
    """Return sequences that no model was trained on."""
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(LETTERS, (count, N), generator=rng)


@torch.no_grad()
def maps(model):
    """Return the mean weights of the four heads on 500 sequences."""
    embedded = model.embed(letters(500, seed=1)) + model.places
    _, A = model.encoder(embedded, return_weights=True)
    return [[[round(w, 2) for w in row] for row in M] for M in A[0].mean(0).tolist()]


@torch.no_grad()
def answer(model, tokens):
    """Return what a model writes for one sequence."""
    return model(tokens[None]).argmax(-1)[0].tolist()


def run(member, steps=STEPS):
    """Return what one layer learns, and what is left of it once its code is right."""
    losses = []
    model = train(member, "reverse", SEED, steps, losses)
    found = {"accuracy": round(accuracy(model, "reverse"), 5)}
    found |= {"loss": [round(x, 4) for x in losses], "maps": maps(model)}
    example = letters(1, seed=7)[0]
    found |= {"example": example.tolist(), "answer": answer(model, example)}
    model.encoder.layers[0].attention.member = zoo.right
    found["repaired"] = round(accuracy(model, "reverse"), 5)
    return found | {"answer_repaired": answer(model, example)}


def results():
    """Yield what each layer does."""
    for member in LAYERS:
        yield member.name, run(member)
