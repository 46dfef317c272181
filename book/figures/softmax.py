"""Move scores and temperature, watch the weights (chapter softmax)."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from figures.charts import bars
from mha.softmax import softmax as weights
from mha.view.base import View, as_numbers, as_words, short

LARGEST, MOST = 5, 12


def softmax(scores: ArrayLike, labels: Sequence[object], *, alt: str) -> View:
    """Show a row of scores and its softmax, both to be moved.

    Equation: p_j = exp(s_j / T) / Σ_l exp(s_l / T)  (chapter softmax)

    Parameters
    ----------
    scores : array_like of shape (n,)
        Where the sliders stand at first, from -5 to 5.
    labels : sequence of str
        One word for each score, at most 12.
    alt : str
        One sentence with what there is to find out.

    Returns
    -------
    view : View
        Shows itself as the last line of a cell.

    Raises
    ------
    ValueError
        If there is not one label for each score, or a score lies outside -5..5.

    Examples
    --------
    >>> softmax([3, 2], ["dog", "food"], alt="Dog leads; heat makes both equal.")
    View: Dog leads; heat makes both equal.
    """
    scores, labels = as_numbers("scores", scores), as_words(labels)
    if scores.ndim != 1 or len(scores) != len(labels):
        raise ValueError(
            f"scores must be one row with a label each, got shape {scores.shape} "
            f"and {len(labels)} labels"
        )
    if not 1 <= len(labels) <= MOST:
        raise ValueError(f"scores must be 1 to {MOST}, got {len(labels)}")
    if abs(scores).max() > LARGEST:
        raise ValueError(f"scores must lie in -{LARGEST}..{LARGEST}, got {scores}")
    data, look = {"scores": scores, "labels": labels}, (weights(scores), short(labels))
    return View(__file__, data, alt, lambda _: bars(*look, alt=alt))
