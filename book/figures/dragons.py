"""Move the attention weights of one head or two: what is known? (chapter why_heads)"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from figures.charts import moves
from figures.view import View, as_numbers

NAMES = "left dragon", "right dragon", "sheep"


def dragons(nights: ArrayLike, looks: Sequence[Sequence[float]], *, alt: str) -> View:
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

    >>> nights = np.random.default_rng(0).normal(size=(50, 3))
    >>> dragons(nights, [[0.5, 0.5], [0.2, 0.8]], alt="One head tells one half.")
    View: One head tells one half.
    """
    nights, weights = evened(as_numbers(nights)), as_numbers(looks)
    data = {"nights": nights, "looks": weights, "names": NAMES}
    A = np.append(weights[0], 1 - weights[0].sum())[None]
    guess = nights @ np.linalg.pinv(A) @ A  # from the output of one head
    first = "one head, {:.1f} / {:.1f} / {:.1f}".format(*A[0])
    panels = {first: (nights[:, :2], guess[:, :2])}
    labels: dict[str, Any] = {"names": ("the night", "the best guess"), "alt": alt}
    labels |= {"xlabel": f"{NAMES[0]} glow", "ylabel": f"{NAMES[1]} glow"}
    return View(__file__, data, lambda: moves(panels, **labels))


def evened(nights: NDArray[Any]) -> NDArray[Any]:
    """Return nights whose second moments are exactly 1 and 0."""
    size, axes = np.linalg.eigh(nights.T @ nights / len(nights))
    return nights @ (axes / np.sqrt(size)) @ axes.T
