"""Follow one number through the cut into heads, right and wrong (chapter split)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from figures.maps import heatmaps
from figures.view import as_words, live
from mha import split_heads
from mha.view import View


def heads(
    cells: ArrayLike, words: Sequence[object], n_heads: int = 2, *, alt: str
) -> View:
    """Show where each number of a small table goes when it is cut into heads.

    Equation: head_r[i, c] = (X W)[i, r·d_k + c]  (chapter split)

    The cells are numbers or short names, in at most 6 rows and 8 columns. The reader
    may choose any number of heads that divides d_model.

    >>> heads([["a", "b"], ["c", "d"]], ["it", "is"], alt="A head has every word.")
    View: A head has every word.
    """
    cells, words = np.asarray(cells), as_words(words)
    d_model = cells.shape[1]
    places = np.arange(cells.size).reshape(cells.shape)
    right = split_heads(places, n_heads)
    data = {
        "cells": [as_words(row) for row in cells.tolist()], "words": words,
        "counts": [h for h in range(1, d_model + 1) if d_model % h == 0],
        "first": n_heads,
    }  # fmt: skip
    panels = [(head, f"head {r}") for r, head in enumerate(right, 1)]
    wrong = places.reshape(right.shape)
    panels += [(head, f"head {r}, no swap") for r, head in enumerate(wrong, 1)]
    labels: dict[str, Any] = {"xlabel": "column", "ylabel": "taken for", "alt": alt}
    look = panels, words, [""] * right.shape[-1]
    return live(__file__, alt, data, lambda: heatmaps(*look, kind="scores", **labels))
