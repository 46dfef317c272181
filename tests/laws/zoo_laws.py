"""Which laws each member of the zoo breaks: python -m tests.laws.zoo_laws stores it."""

import json
from functools import cache
from pathlib import Path

import torch  # noqa: F401 - some mistakes show on tensors alone

from mha import laws, zoo

STORE = Path(__file__).with_suffix(".json")


@cache
def computed():
    """Return the laws that each member breaks, by its name."""
    matrices = laws.kill_matrix(), laws.kill_matrix(members=zoo.ENCODERS)
    return {name: sorted(m.killed_by(name)) for m in matrices for name in m.rows}


def text_of(table):
    """Return the table as it is stored, one member a line."""
    rows = (f"  {json.dumps(name)}: {json.dumps(table[name])}" for name in table)
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    STORE.write_text(text_of(computed()), encoding="utf-8")
