"""What each head adds to the output: a table for every head, and their sum."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array

from figures.house import draw_plate, draw_sum
from figures.scene import Scene
from mha.plot.picture import Picture

ROW, CELL, LEFT, GAP = 20, 37, 47, 12  # points
OUTPUTS, TABLES, SUM, BOARD = 38, 206, 334, 382  # heights, from the top
MOST = 4  # columns of the output for which there is room


def board(
    heads: ArrayLike, W_O: ArrayLike, words: Sequence[str], columns: Sequence[str], *,
    names: Sequence[Sequence[str]], row: int, alt: str,
) -> Picture:  # fmt: skip
    """Show the output of two heads as the sum of what each of them adds.

    Equation: Concat(H_1, …, H_h) W_O = Σ_r H_r W_O[r]  (chapter output)

    Parameters
    ----------
    heads : array_like of shape (2, n, d_v)
        The outputs of the heads.
    W_O : array_like of shape (2 * d_v, d_model)
        The output projection, for at most 4 columns.
    words, columns : sequence of str
        One word for each row, and one for each column of the output.
    names : two sequences of str
        What the columns of each head mean.
    row : int
        The row to follow, counted from 0.
    alt : str
        One sentence with the finding, for readers who do not see the picture.

    Returns
    -------
    picture : Picture
        From the top to the bottom: outputs, blocks of `W_O`, contributions, their sum.

    Raises
    ------
    ValueError
        If there are not two heads, or the shapes do not fit.

    Examples
    --------
    >>> H, W_O, names = np.ones((2, 1, 1)), np.eye(2), [["big"], ["red"]]
    >>> board(H, W_O, ["it"], ["big", "red"], names=names, row=0, alt="Two heads.")
    Picture: Two heads.
    """
    H, W = np.asarray(heads, dtype=float), np.asarray(W_O, dtype=float)
    if H.ndim != 3 or len(H) != 2 or W.shape != (2 * H.shape[-1], len(columns)):
        raise ValueError(
            "heads must have the shape (2, n, d_v) and W_O (2 * d_v, columns), got "
            f"{H.shape} and {W.shape} for {len(columns)} columns"
        )
    if len(words) != H.shape[1] or len(columns) > MOST:
        raise ValueError(f"one word for each row, at most {MOST} columns")
    d_v, wide = H.shape[-1], CELL * len(columns)
    low = ROW * len(words)
    scene = Scene(LEFT + 2 * wide + GAP + 4, BOARD + 2 * low - 56)
    middles = [LEFT + wide / 2, LEFT + wide * 1.5 + GAP]
    added = [h @ block for h, block in zip(H, np.split(W, 2), strict=True)]
    top = float(np.abs([*added, sum(added)]).max())
    for r, x in enumerate(middles):
        scene.text(x, 14, f"head {r + 1}", role="output", bold=True)
        _draw(scene, H[r], x, OUTPUTS, names[r], top)
        below = OUTPUTS + low + 15
        scene.text(x, below, f"*H*_{r + 1}, n × d_v", role="muted", math=True)
        step = below + 30
        scene.arrow([(x, below + 6), (x, step + 28)], "output")
        draw_plate(scene, x - 70, step - 11, 140, 22, 5, "output")
        rows = f"times rows {r * d_v + 1}–{(r + 1) * d_v} of *W_O*"
        scene.text(x, step + 4, rows, size=10, role="output", bold=True, math=True)
        start = TABLES + low - 80
        _draw(scene, added[r], x, start, columns, top)
        scene.text(x, start + low + 15, f"head {r + 1} adds, n × d_model",
                   role="muted", math=True)  # fmt: skip
    middle, y = sum(middles) / 2, SUM + low - 80 - 10
    for x in middles:
        side = 9 if x > middle else -9
        scene.arrow([(x, y - 20), (x, y), (middle + side, y)], "output")
    draw_sum(scene, middle, y)
    scene.arrow([(middle, y + 9), (middle, y + 34)], "output")
    last = BOARD + low - 80
    _draw(scene, sum(added), middle, last, columns, top)
    words_below = "the board: *Y*, n × d_model"
    scene.text(middle, last + low + 16, words_below, role="output", bold=True,
               math=True)  # fmt: skip
    for y in (OUTPUTS, TABLES + low - 80, last):
        left = middle - wide / 2 if y == last else LEFT
        for i, word in enumerate(words):
            bold = {"bold": i == row}
            scene.text(left - 6, y + ROW * (i + 0.5) + 4, word, anchor="end", **bold)
    outlines = [(x, OUTPUTS, CELL * d_v) for x in middles]
    outlines += [(x, TABLES + low - 80, wide) for x in middles]
    for x, y, w in [*outlines, (middle, last, wide)]:
        place = x - w / 2 - 1, y + ROW * row - 1, w + 2, ROW + 2
        scene.box(*place, radius=4, stroke="ink", width=1.6)
    return Picture(scene, alt)


def _draw(
    scene: Scene, M: Array, middle: float, y: float, names: Sequence[str], top: float
) -> None:
    """Draw one table, with the names of its columns above it."""
    left = middle - CELL * M.shape[1] / 2
    for j, name in enumerate(names):
        scene.text(left + CELL * (j + 0.5), y - 5, name, size=9, role="muted")
    for (i, j), value in np.ndenumerate(M):
        place = left + CELL * j + 1, y + ROW * i + 1, CELL - 2, ROW - 2
        words = f"{value:.2f}".replace("-", "−") if abs(value) >= 0.005 else "0"
        alpha = 0.035 + 0.26 * abs(value) / top
        scene.cell(*place, words, "output", alpha, size=10.5)
    scene.box(left, y, CELL * M.shape[1], ROW * len(M), stroke="output")
