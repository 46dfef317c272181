"""What the scripts of this folder share: start, descent, and layout of results."""

import json
from pathlib import Path

from torch import nn

import mha.nn

FOLDER = Path(__file__).parent


class Encoder(mha.nn.Encoder):
    """Start each part as PyTorch starts it alone, W_Q, W_K and W_V included.

    The stored runs began so, before mha.nn took over the start of PyTorch's attention.
    """

    def __init__(self, *sizes, **kind):
        super().__init__(*sizes, **kind, device="meta")
        for part in self.to_empty(device="cpu").modules():
            if isinstance(part, nn.Linear | nn.LayerNorm):
                part.reset_parameters()


class MultiHeadAttention(mha.nn.MultiHeadAttention):
    """The layer of mha.nn with the start that it had when the runs were stored."""

    def reset_parameters(self):
        """Start each matrix as PyTorch starts it alone."""
        for W in (self.W_Q, self.W_K, self.W_V, self.W_O):
            W.reset_parameters()


def descend(optimizer, losses, rate=None):
    """Take a step down each loss, computed only when its turn comes; yield its value.

    `rate` is a scheduler of the learning rate.
    """
    for loss in losses:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rate:
            rate.step()
        yield loss.item()


def trained(model, optimizer, losses, rate=None):
    """Return the model after all steps."""
    for _ in descend(optimizer, losses, rate):
        pass
    return model


def stored(name):
    """Return the results that a script has stored."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def store(name, table):
    """Store the results of a script."""
    text = text_of(table) + "\n"
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8", newline="\n")


def text_of(table, margin=""):
    """Return a table as it is stored, each entry on a line of its own."""
    if not isinstance(table, dict):
        return json.dumps(table, ensure_ascii=False)
    deeper = margin + "  "
    lines = [
        f"{deeper}{json.dumps(name, ensure_ascii=False)}: {text_of(entry, deeper)}"
        for name, entry in table.items()
    ]
    return "{\n" + ",\n".join(lines) + f"\n{margin}}}"
