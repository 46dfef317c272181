"""What the eleven attentions of chapter 12 learn: see __main__.py.

The maps of weights after 300 steps on reversal, what a layer writes for one sequence,
and what is left once its code is repaired; about twenty seconds on one core. The front
page shows two of them.
"""

import torch

from _data.wrong_attention import LETTERS, MEMBERS, N, accuracy, train
from mha import zoo

SEED, STEPS = 0, 300
SHADES = "0123456789abcdef"  # a weight of 0 to a weight of 1, one letter each


def sequences(count, seed):
    """Return sequences that no model was trained on."""
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(LETTERS, (count, N), generator=rng)


def letters(weights):
    """Return a map as text, row after row, one letter for each weight."""
    cells = [w for row in weights for w in row]
    return "".join(SHADES[min(15, max(0, round(15 * w)))] for w in cells)


@torch.no_grad()
def maps(model):
    """Return the mean weights of the four heads on 500 sequences."""
    embedded = model.embed(sequences(500, seed=1)) + model.places
    _, A = model.encoder(embedded, return_weights=True)
    return [letters(M) for M in A[0].mean(0).tolist()]


@torch.no_grad()
def answer(model, tokens):
    """Return what a model writes for one sequence."""
    return model(tokens[None]).argmax(-1)[0].tolist()


def run(member):
    """Return what one layer learns, and what is left of it once its code is right."""
    losses, example = [], sequences(1, seed=7)[0]
    model = train(member, "reverse", SEED, STEPS, losses)
    found = {"accuracy": round(accuracy(model, "reverse"), 5)}
    found |= {"loss": round(losses[-1], 4), "maps": maps(model)}
    found |= {"example": example.tolist(), "answer": answer(model, example)}
    model.encoder.layers[0].attention.member = zoo.right
    found["repaired"] = round(accuracy(model, "reverse"), 5)
    return found | {"answer_repaired": answer(model, example)}


def results():
    """Yield what each layer has learned."""
    for member in MEMBERS[1:]:
        yield member.name, run(member)
