"""What the eleven attentions of chapter 12 learn: python book/_data/learned.py

The maps of weights after 300 steps on reversal, and what is left of the accuracy once
the code is repaired; about twenty seconds on one core.
"""

import json
import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parent))
import hook
import wrong_attention

STORE = Path(__file__).with_suffix(".json")
MEMBERS = wrong_attention.MEMBERS[1:]
SHADES = "0123456789abcdef"  # a weight of 0 to a weight of 1, one letter each


def letters(weights):
    """Return a map as text, row after row, one letter for each weight."""
    cells = [w for row in weights for w in row]
    return "".join(SHADES[min(15, max(0, round(15 * w)))] for w in cells)


def run(member):
    """Return the accuracies before and after the repair, and the maps of the heads."""
    found = hook.run(member)
    table = {name: found[name] for name in ("accuracy", "repaired")}
    return table | {"maps": [letters(weights) for weights in found["maps"]]}


def text_of(table):
    """Return the table as it is stored."""
    return json.dumps(table, indent=1) + "\n"


def main():
    """Train the eleven and write what they learn."""
    torch.set_num_threads(1)  # the order of sums, and so the last digit, is fixed
    table = {member.name: run(member) for member in MEMBERS}
    STORE.write_text(text_of(table), encoding="utf-8")


if __name__ == "__main__":
    main()
