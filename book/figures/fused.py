"""Matrices side by side: one product does the work of several (chapter split)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array

from figures.scene import Scene
from mha.plot.picture import Picture

WIDE, HIGH, TOP, LEFT, SIGN = 22.5, 22, 46, 52, 24  # points
COLOURS, TINT = ("query", "amber"), 0.2  # of head 1 and of head 2


def fused(
    X: ArrayLike, blocks: Sequence[ArrayLike], words: Sequence[str], *,
    follow: tuple[int, int],
) -> Picture:  # fmt: skip
    """Show that X times two matrices side by side is two products side by side.

    Equation: X [W_Q^(1) | W_Q^(2)] = [Q^(1) | Q^(2)]  (chapter split)

    Parameters
    ----------
    X : array_like of shape (n, d_model)
        One row for each word.
    blocks : two array_like of shape (d_model, d_k)
        The query matrices of the two heads.
    words : sequence of str
        The n tokens.
    follow : pair of int
        Row and column of one number of the product. It gets a frame, and so do the
        row and the column that it is made from.

    Returns
    -------
    picture : Picture
        Each head has one colour, in its matrix and in its part of the product.

    Raises
    ------
    ValueError
        If there are not two matrices, or shapes do not fit.

    Examples
    --------
    >>> fused([[1, 2]], [[[1], [0]], [[0], [1]]], ["it"], follow=(0, 1)).alt[-57:]
    'The number 2 needs one row of X and one column of head 2.'
    """
    x, matrices = np.asarray(X), [np.asarray(block) for block in blocks]
    if len(matrices) != len(COLOURS):
        raise ValueError(f"blocks must be two matrices, got {len(matrices)}")
    if {m.shape for m in matrices} != {(x.shape[-1], matrices[0].shape[-1])}:
        shapes = [m.shape for m in matrices]
        raise ValueError(f"blocks must have d_model = {x.shape[-1]} rows, got {shapes}")
    (n, d_model), d_k, (row, column) = x.shape, matrices[0].shape[1], follow
    product = [x @ m for m in matrices]
    right = LEFT + WIDE * d_model + SIGN  # where W begins, and then the product
    last = right + WIDE * 2 * d_k + SIGN
    scene = Scene(last + WIDE * 2 * d_k + 8, TOP + HIGH * max(n, d_model) + 12)
    for k, word in enumerate(words):
        scene.text(LEFT - 6, TOP + HIGH * (k + 0.66), word, anchor="end")
    middle = TOP + HIGH * min(n, d_model) / 2 + 5
    scene.text(right - SIGN / 2, middle, "·", size=17, bold=True)
    scene.text(last - SIGN / 2, middle, "=", size=15, bold=True)
    scene.text(LEFT + WIDE * d_model / 2, TOP - 9, "*X*", math=True, bold=True)
    _draw(scene, LEFT, x, "ink", 0.04)
    for left, pair, name in ((right, matrices, "*W_Q*"), (last, product, "*Q*")):
        for r, (part, role) in enumerate(zip(pair, COLOURS, strict=True)):
            start = left + WIDE * d_k * r
            _draw(scene, start, part, role, TINT)
            look = {"size": 10.5, "role": role, "bold": True}
            scene.text(start + WIDE * d_k / 2, TOP - 25, f"head {r + 1}", **look)
            above = start + WIDE * d_k / 2, TOP - 9, name + "⁽¹⁾⁽²⁾"[3 * r : 3 * r + 3]
            scene.text(*above, role=role, math=True, bold=True)
        bar = left + WIDE * d_k
        ends = [(bar, TOP - 3), (bar, TOP + HIGH * len(pair[0]) + 3)]
        scene.shape(ends, stroke="ink", width=1.6)
    frame = {"stroke": "ink", "width": 2, "radius": 3}
    scene.box(LEFT, TOP + HIGH * row, WIDE * d_model, HIGH, **frame)
    scene.box(right + WIDE * column, TOP, WIDE, HIGH * d_model, **frame)
    scene.box(last + WIDE * column, TOP + HIGH * row, WIDE, HIGH, **frame)
    number = np.hstack(product)[row, column]
    return Picture(
        scene,
        "X times the matrices of two heads side by side gives the product of head 1 "
        f"and the product of head 2 side by side. The number {number:g} needs one row "
        f"of X and one column of head {column // d_k + 1}.",
    )


def _draw(scene: Scene, left: float, table: Array, role: str, alpha: float) -> None:
    """Draw the numbers of a table on the tint of a role."""
    for (i, j), number in np.ndenumerate(table):
        box = left + WIDE * j + 0.7, TOP + HIGH * i + 0.7, WIDE - 1.4, HIGH - 1.4
        scene.cell(*box, f"{number:g}", role, alpha)
