"""Train the three layers of the front page: python book/_data/hook.py

The models of chapter 12, for as many steps as its figures show; about five seconds on
one core.
"""

import json
import sys
from pathlib import Path

import torch

from mha import zoo

sys.path.append(str(Path(__file__).parent))
from wrong_attention import LETTERS, N, accuracy, train

STORE = Path(__file__).with_suffix(".json")
SEED, STEPS = 0, 300
LAYERS = {  # the page calls them A, B and "this one"
    "right": zoo.right,
    "merge_without_transpose": zoo.merge_without_transpose,
    "softmax_over_queries": zoo.softmax_over_queries,
}


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


def text_of(table):
    """Return the table as it is stored, a fact a line."""
    blocks = []
    for name, facts in table.items():
        lines = [f"    {json.dumps(key)}: {json.dumps(x)}" for key, x in facts.items()]
        blocks.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def main():
    """Train the layers and write what they do."""
    torch.set_num_threads(1)  # the order of sums, and so the last digit, is fixed
    table = {name: run(member) for name, member in LAYERS.items()}
    STORE.write_text(text_of(table), encoding="utf-8")


if __name__ == "__main__":
    main()
