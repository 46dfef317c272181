"""Move the attention weights of one head or two: what is known? (chapter why_heads)"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array

from figures.moves import moves
from mha.view.base import View, as_numbers, as_words

FEWEST, MOST = 10, 400


def dragons(
    nights: ArrayLike, looks: ArrayLike,
    names: Sequence[object] = ("left dragon", "right dragon", "sheep"), *, alt: str,
) -> View:  # fmt: skip
    """Show what the outputs of one head or two tell about two contents.

    Equation: R² ≤ min(h, u) / u, with u = 2  (chapter why_heads)

    Parameters
    ----------
    nights : array_like of shape (n, 3)
        The contents of three tokens; the first two are unknown. The nights are turned
        and stretched a little, so that on them each number has variance 1 and no two
        are correlated, as in premise 4 of the theorem.
    looks : array_like of shape (2, 2)
        Weights of the first two tokens in two heads; the third gets the rest.
    names : three of str
        What the tokens are called.
    alt : str
        One sentence with what there is to find out.

    Returns
    -------
    view : View
        Shows itself as the last line of a cell; it starts with one head.

    Raises
    ------
    ValueError
        If shapes do not fit, weights are no shares, or the nights are too few, too many
        or too much alike.

    Examples
    --------
    >>> nights = np.random.default_rng(0).normal(size=(50, 3))
    >>> dragons(nights, [[0.5, 0.5], [0.2, 0.8]], alt="One head tells one half.")
    View: One head tells one half.
    """
    looks, words = as_numbers("looks", looks), as_words(names)
    if looks.shape != (2, 2) or looks.min() < 0 or looks.sum(1).max() > 1 + 1e-9:
        raise ValueError(
            "looks must be two pairs of weights, not negative and with sum at most 1, "
            f"got {looks.tolist()}"
        )
    if len(words) != 3:
        raise ValueError(f"names must be three, got {len(words)}")
    nights = evened(as_numbers("nights", nights))
    data = {"nights": nights, "looks": looks, "names": words}
    A = np.append(looks[0], 1 - looks[0].sum())[None]
    guess = nights @ np.linalg.pinv(A) @ A  # from the output of one head
    first = "one head, {:.1f} / {:.1f} / {:.1f}".format(*A[0])
    panels = {first: (nights[:, :2], guess[:, :2])}
    labels: dict[str, Any] = {"names": ("the night", "the best guess"), "alt": alt}
    labels |= {"xlabel": f"{words[0]} glow", "ylabel": f"{words[1]} glow"}
    return View(__file__, data, alt, lambda _: moves(panels, **labels))


def evened(nights: Array) -> Array:
    """Return nights whose second moments are exactly 1 and 0."""
    if nights.ndim != 2 or nights.shape[1] != 3 or not FEWEST <= len(nights) <= MOST:
        raise ValueError(
            f"nights must have shape (n, 3) with n from {FEWEST} to {MOST}, "
            f"got {nights.shape}"
        )
    size, axes = np.linalg.eigh(nights.T @ nights / len(nights))
    if size[0] < 1e-9 * size[-1]:
        raise ValueError("nights must not make one content a combination of the others")
    return nights @ (axes / np.sqrt(size)) @ axes.T
