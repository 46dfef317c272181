"""What the eleven attentions of chapter 12 learn: see __main__.py.

The maps of weights after 300 steps on reversal, and what is left of the accuracy once
the code is repaired; about twenty seconds on one core.
"""

from _data import hook
from _data.wrong_attention import MEMBERS

SHADES = "0123456789abcdef"  # a weight of 0 to a weight of 1, one letter each


def letters(weights):
    """Return a map as text, row after row, one letter for each weight."""
    cells = [w for row in weights for w in row]
    return "".join(SHADES[min(15, max(0, round(15 * w)))] for w in cells)


def results():
    """Yield the accuracies before and after the repair, and the maps of the heads."""
    for member in MEMBERS[1:]:
        found = hook.run(member)
        table = {name: found[name] for name in ("accuracy", "repaired")}
        yield member.name, table | {"maps": [letters(M) for M in found["maps"]]}
