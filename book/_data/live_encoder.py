"""The models of chapter 13 as files for the page "The live encoder".

    cd book && python -m _data.live_encoder [FOLDER]

A file holds what `stress.exported` returns, with one byte for each number of a matrix,
which is a sixth of its size. The command trains the models of the page, five minutes,
or takes them from a folder that holds their weights by name, such as ``right.pt``. It
writes the files beside the script of the page, and what the models can do, with their
numbers as they are in the files, into live_encoder.json.
"""

import base64
import json
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch

from _data import stress, stress_runs
from _data.training import store
from mha import laws, zoo

FOLDER = Path(__file__).parents[1] / "_static" / "live_encoder"
SEED = 0
LAWS = {  # the models, and one law that each breaks before any training
    "right": None,
    "softmax_over_queries": laws.rows_sum_to_one,
    "mask_ignored": laws.padding_changes_nothing,
    "mask_zero_score": laws.masked_weights_are_zero,
    "split_without_transpose": laws.outputs_follow_tokens,
    "merge_without_transpose": laws.outputs_follow_tokens,
}
WORDS = "photograph photography photographic democrat democracy animal potato".split()


def packed(x, name=""):
    """Return what `stress.exported` returns, with text in the place of numbers."""
    if isinstance(x, dict):
        return {name: packed(part, name) for name, part in x.items()}
    if isinstance(x, int):
        return x
    if isinstance(x[0], float):
        return {"exact": as_text(np.array(x, "<f4"))}
    if name != "embed" and not name.startswith("W_"):
        return [packed(part) for part in x]
    integers, scales = rounded(np.array(x, "<f4"))
    return {"whole": as_text(integers), "scales": as_text(scales)}


def rounded(x):
    """Return a matrix as whole numbers from -127 to 127, and the scale of each row."""
    scales = np.maximum(np.abs(x).max(1), 1e-12) / np.float32(127)
    return np.rint(x / scales[:, None]).astype(np.int8), scales


def as_text(x):
    """Return the bytes of an array as text."""
    return base64.b64encode(x.tobytes()).decode()


def as_on_the_page(model):
    """Return a copy of a model whose matrices are rounded as in its file."""
    copy = deepcopy(model)
    for name, x in copy.named_parameters():
        if x.ndim == 2 and name != "score.weight":
            x = x.data if name == "embed.weight" else x.data.T  # a row for each input
            integers, scales = rounded(x.numpy())
            x.copy_(torch.tensor(integers * scales[:, None]))
    return copy


def examples(pairs):
    """Return the example words, each with what the dictionary says of it."""
    parts = {"train": "training", "validation": "validation", "test": "test"}
    known = {
        word: f"{word[:i]}{word[i].upper()}{word[i + 1 :]} (a {parts[name]} word)"
        for name, some in stress.split(pairs).items()
        for word, i in some
    }
    return [
        [word, known.get(word, "not among the words of the data")] for word in WORDS
    ]


def results(folder=None):
    """Write the files of the page, and yield what the page says of their models."""
    pairs = stress.read_words()
    test = stress.split(pairs)["test"]
    yield "words", examples(pairs)
    yield "tested", len(test)
    models = {}
    for name, law in LAWS.items():
        if folder:
            model = stress_runs.untrained(name)
            model.load_state_dict(torch.load(Path(folder) / f"{name}.pt"))
        else:
            model, _ = stress_runs.run(name, SEED)
        file = json.dumps(packed(stress.exported(model)), separators=(",", ":"))
        # A page on a disk may load a script from beside it, and no other file.
        text = f"(window.stressModels ??= {{}}).{name} = {file};\n"
        (FOLDER / f"{name}.js").write_text(text, encoding="utf-8", newline="\n")
        right = stress_runs.judged(as_on_the_page(model), test)
        models[name] = {key: right[key] for key in ("fixed", "alone", "same")}
        if law:
            member = getattr(zoo, name)
            if law.check(member).holds:
                raise ValueError(f"{name} does not break {law.name}")
            models[name] |= {"wrong": member.wrong, "law": law.sentence}
    yield "models", models


if __name__ == "__main__":
    torch.set_num_threads(1)
    store("live_encoder", dict(results(*sys.argv[1:])))
