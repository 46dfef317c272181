"""Sentences of chapter 15, and its one long sweep: python -m _data.minilm, in book

Every head and every layer of the model is silenced in turn, and sixty sentences are
embedded without it. About a minute on one core; `minilm.json` holds what came out.
`minilm_reference.json` is an excerpt of what the tests compare with, and
`minilm_it.json` is the row of weights that chapters 0 and 5 show.
"""

import json
import runpy
from pathlib import Path

import numpy as np

import pretrained

STORE = Path(__file__).with_suffix(".json")
EXCERPT = Path(__file__).with_name("minilm_reference.json")
IT = Path(__file__).with_name("minilm_it.json")
REFERENCE = Path(__file__).parents[2] / "tests" / "fixtures" / "minilm.py"
EVERY = 32  # of 384 numbers the page compares twelve

TOLD = json.loads(Path(__file__).with_name("minilm_sentences.json").read_text("utf-8"))
SENTENCES = TOLD["sentences"]  # ordinary ones, for asking what heads look at
TRIPLES = TOLD["triples"]  # a sentence, a paraphrase, other things in the same words
# (what happened, first noun, second noun, an ending for each); "it" is one of the two.
PAIRS = TOLD["pairs"]
SIXTY = [sentence for column in zip(*TRIPLES, strict=True) for sentence in column]


def found(E):
    """Return the share of paraphrases found among twenty, and of those that win.

    `E` holds the vectors of SIXTY. A paraphrase is found if it is the nearest of all
    paraphrases. It wins if it is nearer than the sentence made of the same words.
    """
    sentence, same, other = np.split(E, 3)
    nearest = (sentence @ same.T).argmax(1)
    wins = (sentence * same).sum(1) > (sentence * other).sum(1)
    return np.mean(nearest == np.arange(len(same))), np.mean(wins)


def likeness(E, E_full):
    """Return the mean cosine between two lists of vectors of length 1."""
    return float((E * E_full).sum(-1).mean())


def cells(model):
    """Return {name: heads to silence}: each head, and each layer with all its heads."""
    layers, heads = range(model.n_layers), range(model.n_heads)
    single = {f"L{i + 1}H{r + 1}": [(i, r)] for i in layers for r in heads}
    whole = {f"L{i + 1}": [(i, r) for r in heads] for i in layers}
    return single | whole


def silence(model, heads, E_full):
    """Return how like the vectors of SIXTY stay without `heads`, and how many win."""
    E = model.without_heads(heads).embed(SIXTY)
    return [round(likeness(E, E_full), 4), round(float(found(E)[1]), 2)]


def excerpt():
    """Return sentences and every 32nd number of their vectors by another program."""
    sentences = runpy.run_path(str(REFERENCE))["SENTENCES"]
    vectors = np.load(REFERENCE.with_suffix(".npz"))["embeddings"][:, ::EVERY]
    columns = {"columns": list(range(0, 384, EVERY))}
    return columns | dict(zip(sentences, vectors.tolist(), strict=True))


def shared(model, end, layer=4, head=2):
    """Return how "it" shares its attention in one head, as [token, weight] pairs."""
    text = f"A dog ate the food because it was {end}."
    words = model.tokenize(text).words
    _, A = model.run(text, return_weights=True)
    row = A[layer - 1][head - 1, words.index("it")]
    return [[t, round(float(w), 4)] for t, w in zip(words, row, strict=True)]


def text_of(table):
    """Return the table as JSON with one row a line."""
    rows = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in table.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def main():
    EXCERPT.write_text(text_of(excerpt()), encoding="utf-8", newline="\n")
    model = pretrained.load()
    rows = {end: shared(model, end) for end in ("hungry", "rotten")}
    IT.write_text(text_of(rows), encoding="utf-8", newline="\n")
    E_full = model.embed(SIXTY)
    table = {name: silence(model, h, E_full) for name, h in cells(model).items()}
    STORE.write_text(text_of(table), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
