"""Which laws each member of the zoo breaks.

python -m tests.laws.zoo_laws           ask every law of every member, and store it
python -m tests.laws.zoo_laws NAME …    ask these laws, or these members, alone
"""

import json
import sys
from functools import cache
from pathlib import Path

import torch  # noqa: F401 - some mistakes show on tensors alone

from mha import laws, zoo

STORE = Path(__file__).with_suffix(".json")
GROUPS = zoo.ALL, zoo.ENCODERS


@cache
def computed():
    """Return the laws that each member breaks, by its name."""
    matrices = [laws.kill_matrix(members=group) for group in GROUPS]
    return {name: sorted(m.killed_by(name)) for m in matrices for name in m.rows}


def updated(table, names):
    """Return the table with what has these names asked again."""
    known = [law.name for law in laws.ALL]
    asked = [name for name in names if name in known]
    found = {}
    for group in GROUPS:
        # Of what is random no other law is asked, so it is told first.
        some = laws.kill_matrix(["calls_agree", *asked], group) if asked else None
        for member in group:
            stored = {*table.get(member.name, ())} - {*asked}
            if member.name in names:
                stored = laws.kill_matrix(members=[member]).killed_by(member.name)
            elif some:
                stored |= {*some.killed_by(member.name)} & {*asked}
            found[member.name] = sorted({*stored} & {*known})
    return found


def text_of(table):
    """Return the table as it is stored, one member a line."""
    rows = (f"  {json.dumps(name)}: {json.dumps(table[name])}" for name in table)
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    stored = json.loads(STORE.read_text(encoding="utf-8"))
    table = updated(stored, sys.argv[1:]) if sys.argv[1:] else computed()
    STORE.write_text(text_of(table), encoding="utf-8")
