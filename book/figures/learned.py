"""What the ten wrong attentions have learned, and their repair (chapter encoder)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray as Array

from figures.ten import NAMES, RIGHT
from mha import zoo
from mha.view.base import View


def learned(
    table: Mapping[str, Mapping[str, Any]], broken: Mapping[str, Sequence[str]], *,
    alt: str,
) -> View:  # fmt: skip
    """Show the maps that a member learned, and its accuracy before and after repair.

    Parameters
    ----------
    table : dict {name of a member: dict}
        ``accuracy``, ``repaired``, and ``maps``: for each head a text with one letter
        from 0 to f for each weight, row after row.
    broken : dict {name of a member: names of laws}
        What the code of each member breaks.
    alt : str
        One sentence with what there is to find out.

    Returns
    -------
    view : View
        Shows itself as the last line of a cell; the still shows head 1 of each.

    Raises
    ------
    ValueError
        If a member of the table has no entry in `broken`.
    """
    if missing := [name for name in table if name not in broken]:
        raise ValueError(f"broken must have an entry for each member, not {missing}")
    layers = [
        {
            "label": label(name),
            "wrong": "" if name == RIGHT else getattr(zoo, name).wrong,
            "laws": [law.replace("_", " ") for law in broken[name]],
            "maps": facts["maps"],
            # three decimals, as the chapter prints them
            **{kind: round(facts[kind], 3) for kind in ("accuracy", "repaired")},
        }
        for name, facts in table.items()
    ]
    panels = [(weights(layer["maps"][0]), layer["label"]) for layer in layers]
    look = {"alt": alt}
    return View(
        __file__, {"layers": layers}, alt, lambda plot: plot.heatmaps(panels, **look)
    )


def label(name: str) -> str:
    """Return the name of a member in plain letters.

    Examples
    --------
    >>> label("tied_query_key"), label("scale_sqrt_d_model")
    ('same W for Q and K', 'divides by √d_model')
    """
    return NAMES[name][0].replace("*", "")


def weights(letters: str) -> Array:
    """Return the weights that a text of letters stands for, as a square.

    Examples
    --------
    >>> weights("0f30")
    array([[0. , 1. ],
           [0.2, 0. ]])
    """
    side = round(len(letters) ** 0.5)
    return np.array([int(letter, 16) / 15 for letter in letters]).reshape(side, side)
