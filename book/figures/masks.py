"""Paint a mask and watch the weights under it (chapter masks)."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from figures.maps import heatmap
from figures.view import View, as_numbers, as_words
from mha import masked_softmax


def masks(
    scores: ArrayLike, tokens: Sequence[object], *, starts: Mapping[str, ArrayLike],
    alt: str,
) -> View:  # fmt: skip
    """Show the weights under a mask that the reader paints, cell by cell.

    Equation: A_ij = M_ij exp(S_ij) / Σ_l M_il exp(S_il)  (chapter masks)

    The scores are finite, and scaled if they are to be. `starts` are masks to begin
    with, True = may attend; the first one is shown first.

    >>> starts = {"b alone": [[False, True]]}
    >>> masks([[1, 2], [2, 1]], ["a", "b"], starts=starts, alt="All look at b.")
    View: All look at b.
    """
    S, words = as_numbers(scores), as_words(tokens)
    masks = {name: np.broadcast_to(np.array(M), S.shape) for name, M in starts.items()}
    data = {"scores": S, "queries": words, "keys": words}
    data["starts"] = [[name, M.astype(int)] for name, M in masks.items()]
    M = next(iter(masks.values()))
    A = masked_softmax(S, M)
    return View(__file__, data, lambda: heatmap(A, words, words, mask=M, alt=alt))
