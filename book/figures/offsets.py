"""Move two positions apart and see what their dot product sees (chapter positions)."""

import operator

import numpy as np

from figures.charts import lines
from mha.positions import sinusoidal_positional_encoding
from mha.view.base import View

WIDEST = 32


def offsets(width: int = 16, *, alt: str) -> View:
    """Show the hands of two positions, the cosine of each pair, and their sum.

    Equation: P_t · P_s = Σ_i cos((t − s) ω_i)  (chapter positions)

    Parameters
    ----------
    width : int, default 16
        Columns of the table, even, at most 32: twice the number of hands.
    alt : str
        One sentence with what there is to find out.

    Returns
    -------
    view : View
        Shows itself as the last line of a cell; it starts at positions 3 and 7.

    Raises
    ------
    TypeError
        If `width` is not an integer.
    ValueError
        If `width` is odd, or not between 2 and 32.

    Examples
    --------
    >>> offsets(4, alt="Two hands, and only the offset counts.")
    View: Two hands, and only the offset counts.
    """
    width = operator.index(width)
    if width % 2 or not 2 <= width <= WIDEST:
        raise ValueError(f"width must be even, from 2 to {WIDEST}, got {width}")
    data = {"width": width, "first": [3, 4], "most": [100, 40]}
    P = sinusoidal_positional_encoding(41, width)
    series = {f"width {width}": P @ P[0]}
    labels = {"xlabel": "offset", "ylabel": "dot product", "alt": alt}
    return View(__file__, data, alt, lambda _: lines(np.arange(41), series, **labels))
