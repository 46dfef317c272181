"""How a row of scores becomes a row of weights: its exponentials, and their shares."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array

from figures.checks import as_series
from figures.scene import Scene
from mha.plot.matrices import as_names
from mha.plot.picture import Picture
from mha.softmax import softmax

ROW, BAR, TOP = 27, 15, 46  # points: from row to row, the height of a bar, the first
LENGTH = 42  # points: the longest bar of a column
COLUMNS = (56, 138, 238)  # points: where the bars of scores, powers and weights begin
MOST = 8


def to_weights(scores: ArrayLike, labels: Sequence[object]) -> Picture:
    """Show the two steps of a softmax as three columns of bars.

    Equation: p_j = exp(s_j) / Σ_l exp(s_l)  (chapter softmax)

    Parameters
    ----------
    scores : array_like of shape (n,)
        From 0 to 9, at most 8 of them.
    labels : sequence of str
        One word for each score.

    Returns
    -------
    picture : Picture
        Its alt text says the numbers. Each column has a scale of its own.

    Raises
    ------
    ValueError
        If there is not one label for each score, or a score lies outside 0..9.

    Examples
    --------
    >>> to_weights([1, 0], ["dog", "food"])
    Picture: Scores 1, 0; exponentials 2.7, 1.0, total 3.7; weights 0.731, 0.269.
    """
    s = as_series("scores", scores)
    words = as_names("labels", labels, len(s), "scores")
    if not 1 <= len(s) <= MOST or s.min() < 0 or s.max() > 9:
        raise ValueError(f"scores must be 1 to {MOST} numbers in 0..9, got {s}")
    powers, p = np.exp(s), softmax(s)
    total = f"{powers.sum():.1f}"
    columns: list[tuple[Array, str, str, float]] = [
        (s, "g", "ink", 0.38), (powers, ".1f", "ink", 0.38), (p, ".3f", "weight", 1),
    ]  # fmt: skip
    height = TOP + ROW * len(s) + 26
    scene = Scene(324, height)
    heads = (("score *s*", ""), ("*e* to the", "power of *s*"), ("weight", ""))
    said = []
    for x, (values, form, role, alpha), head in zip(
        COLUMNS, columns, heads, strict=True
    ):
        lines = [line for line in head if line]
        for k, line in enumerate(lines):
            y = TOP - 12 - 14 * (len(lines) - 1 - k)
            scene.text(x, y, line, anchor="start", bold=True, math=True)
        for j, value in enumerate(values):
            y, wide = TOP + j * ROW, LENGTH * value / max(values.max(), 1e-9)
            if wide >= 0.5:
                scene.box(x, y, wide, BAR, radius=2, fill=role, alpha=alpha)
            scene.text(x + wide + 5, y + 11.5, format(value, form), anchor="start")
        bottom = TOP + len(s) * ROW - 8
        scene.shape([(x, TOP - 4), (x, bottom)], stroke="muted", width=1)
        said.append(", ".join(format(value, form) for value in values))
    for j, word in enumerate(words):
        y = TOP + j * ROW + 11.5
        scene.text(COLUMNS[0] - 8, y, word, anchor="end")
    below = height - 10
    scene.text(COLUMNS[1], below, f"total {total}", anchor="start", role="muted")
    words_below = f"each ÷ {total}"
    scene.text(COLUMNS[2], below, words_below, anchor="start", role="muted")
    return Picture(
        scene,
        f"Scores {said[0]}; exponentials {said[1]}, total {total}; weights {said[2]}.",
    )
