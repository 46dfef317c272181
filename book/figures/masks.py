"""Paint a mask and watch the weights under it (chapter masks)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array

from mha.masks import masked_softmax
from mha.view.base import View, as_numbers, as_words, short


def masks(
    scores: ArrayLike, tokens: Sequence[object], keys: Sequence[object] | None = None,
    *, starts: Mapping[str, ArrayLike], alt: str,
) -> View:  # fmt: skip
    """Show the weights under a mask that the reader paints, cell by cell.

    Equation: A_ij = M_ij exp(S_ij) / Σ_l M_il exp(S_il)  (chapter masks)

    Parameters
    ----------
    scores : array_like of shape (n_q, n_k)
        Finite scores, scaled if they are to be.
    tokens : sequence of str
        The n_q words that attend.
    keys : sequence of str, optional
        The n_k words attended to, if they are not the same.
    starts : dict {name: bool ndarray that broadcasts to (n_q, n_k)}
        Masks to begin with, True = may attend; the first one is shown first.
    alt : str
        One sentence with what there is to find out.

    Returns
    -------
    view : View
        Shows itself as the last line of a cell. A row in which nothing is open has
        weights 0.

    Raises
    ------
    TypeError
        If a mask is not boolean.
    ValueError
        If shapes do not fit, a score is not finite, or there is no mask.

    Examples
    --------
    >>> starts = {"b alone": [[True, False]]}
    >>> masks([[1, 2]], ["a"], ["b", "c"], starts=starts, alt="a looks at b")
    View: a looks at b
    """
    S, queries = as_numbers("scores", scores), as_words(tokens)
    words = queries if keys is None else as_words(keys)
    expected = (len(queries), len(words))
    if S.shape != expected or S.size == 0:
        raise ValueError(
            f"scores must have shape (n_q, n_k) = {expected}, got {S.shape}"
        )
    if not starts:
        raise ValueError("starts must hold at least one mask, got none")
    masks = {str(name): as_mask(name, M, S.shape) for name, M in starts.items()}
    data: dict[str, Any] = {"scores": S, "queries": queries, "keys": words}
    data["starts"] = [[name, M.astype(int)] for name, M in masks.items()]
    M = next(iter(masks.values()))
    look = masked_softmax(S, M), short(queries), short(words)
    return View(__file__, data, alt, lambda plot: plot.heatmap(*look, mask=M, alt=alt))


def as_mask(name: str, mask: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return one mask to begin with, stretched to the scores."""
    mask = np.array(mask)
    if mask.dtype != bool:
        raise TypeError(f"starts[{name!r}] must be boolean, got dtype {mask.dtype}")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(
            f"starts[{name!r}] of shape {mask.shape} does not broadcast to the scores, "
            f"{shape}"
        ) from None
