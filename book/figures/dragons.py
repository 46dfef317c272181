"""Set the attention weights of one head or two: what is known? (chapter why_heads)"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from figures.charts import moves
from figures.view import as_numbers, live
from mha.view import View

NAMES = "left dragon", "right dragon"


def dragons(nights: ArrayLike, left: Sequence[float], *, alt: str) -> View:
    """Show what the outputs of one head or two tell about two contents.

    Equation: R² ≤ min(h, u) / u, with u = 2  (chapter why_heads)

    Parameters
    ----------
    nights : array_like of shape (n, 2)
        The contents of two tokens. The nights are turned and stretched a little, so
        that on them both numbers have variance 1 and are not correlated, as in premise
        4 of the theorem.
    left : sequence of two floats
        The weight of the first token in two heads; the second gets the rest.
    alt : str
        One sentence with what there is to find out.

    Examples
    --------
    >>> nights = np.random.default_rng(0).normal(size=(50, 2))
    >>> dragons(nights, [0.5, 0.2], alt="One head tells one half.")
    View: One head tells one half.
    """
    nights, weights = evened(as_numbers(nights)), as_numbers(left)
    data = {"nights": nights, "left": weights, "names": NAMES}
    panels = {}
    for name, w in (("one head", weights[:1]), ("two heads", weights)):
        A = np.stack([w, 1 - w], axis=1)
        panels[name] = nights, nights @ np.linalg.pinv(A) @ A
    labels: dict[str, Any] = {"names": ("the night", "the best guess"), "alt": alt}
    labels |= {"xlabel": f"{NAMES[0]} glow", "ylabel": f"{NAMES[1]} glow"}
    return live(__file__, alt, data, lambda: moves(panels, **labels))


def evened(nights: NDArray[Any]) -> NDArray[Any]:
    """Return nights whose second moments are exactly 1 and 0."""
    size, axes = np.linalg.eigh(nights.T @ nights / len(nights))
    return nights @ (axes / np.sqrt(size)) @ axes.T
