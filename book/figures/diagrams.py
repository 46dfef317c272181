"""Diagrams: the parts of a layer, and which numbers of a block belong together."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray as Array

from figures.house import draw_plate, draw_sum
from figures.scene import Scene
from mha.plot.picture import Picture

COLUMN, STEP = 160, 38  # points
BOX, AROUND = (104, 24), 70  # width and height of a box; how far a path goes around
RISE = {"(": 0.5}  # steps upwards; a fork needs less room than the 1 of all others
DEPTH = np.array([0.55, -0.42])  # where one step into the picture leads on paper
ACROSS, DOWN = np.array([1.0, 0]), np.array([0.0, 1.0])
WIDEST, LARGEST, BESIDE = 366, 22, 46  # of all blocks, of a cell, beside a block


def paths(
    columns: Mapping[str, Sequence[str]], *, alt: str,
    names: tuple[str, str] = ("X", "Y"),
) -> Picture:  # fmt: skip
    """Show what happens on the way through a layer, from the bottom to the top.

    Parameters
    ----------
    columns : dict {label: sequence of str}
        One way for each label, its steps in order. ``"("`` is where a path around the
        next steps begins, ``"+"`` where it joins again and is added. Any other word
        is a box.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    names : pair of str
        What goes in and what comes out.

    Returns
    -------
    picture : Picture
        Attention has the colour of its output, and everything else the ink.

    Raises
    ------
    ValueError
        If there is no column, a path joins that did not begin or begins and does not
        join, or `alt` is empty.

    Examples
    --------
    >>> paths({"residual": ["(", "attention", "+"]}, alt="The input goes around, too.")
    Picture: The input goes around, too.
    """
    ways = {label: _checked(label, steps) for label, steps in columns.items()}
    if not columns:
        raise ValueError("columns must hold at least one way through a layer")
    high = STEP * max(map(_steps_up, ways.values()))
    scene = Scene(COLUMN * len(ways) + 10, high + 100)
    for k, (label, steps) in enumerate(ways.items()):
        x, bottom = COLUMN * (k + 0.5) + 20, high + 60
        top = bottom - STEP * _steps_up(steps)
        scene.arrow([(x, bottom), (x, top - 18)], width=1.8)
        _draw_path(scene, x, bottom, steps)
        for name, y in zip(names, (bottom + 14, top - 26), strict=True):
            scene.text(x, y, f"*{name}*", math=True)
        scene.text(x, bottom + 34, label)
    return Picture(scene, alt)


def blocks(
    panels: Mapping[str, ArrayLike], *, alt: str,
    axes: tuple[str, str, str] = ("batch", "token", "feature"),
) -> Picture:  # fmt: skip
    """Show which numbers of a block belong together.

    Parameters
    ----------
    panels : dict {label: bool ndarray of shape (a, b, c)}
        True for a number that belongs to the group. The first axis leads into the
        picture, the second downwards, the third to the right. Only the front, the top
        and the right side are seen, so choose a group that shows there.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    axes : three str
        What the three axes stand for.

    Returns
    -------
    picture : Picture
        The group is filled, the other numbers are empty.

    Raises
    ------
    ValueError
        If there is no panel, one is not a boolean block, or `alt` is empty.

    Examples
    --------
    >>> row = np.zeros((2, 3, 4), dtype=bool)
    >>> row[0, 1] = True
    >>> blocks({"layer norm": row}, alt="One token of one sentence.")
    Picture: One token of one sentence.
    """
    named = {label: np.asarray(block) for label, block in panels.items()}
    for label, block in named.items():
        if block.ndim != 3 or block.dtype != bool or 0 in block.shape:
            raise ValueError(
                f"{label} must be a boolean block with three axes, got {block.dtype} "
                f"of shape {block.shape}"
            )
    if not named:
        raise ValueError("panels must hold at least one block")
    across = max(_size(block.shape)[0] for block in named.values())
    cell = min(LARGEST, (WIDEST / len(named) - BESIDE) / across)
    sizes = [np.multiply(cell, _size(block.shape)) for block in named.values()]
    step = cell * across + BESIDE
    high = max(height for _, height in sizes)
    scene = Scene(step * len(named), high + 46)
    for k, ((label, block), (width, height)) in enumerate(
        zip(named.items(), sizes, strict=True)
    ):
        x = step * (k + 0.5) - width / 2 + 8
        _draw_block(scene, block, (x, 14 + high - height, cell), axes)
        scene.text(step * (k + 0.5), high + 40, label)
    return Picture(scene, alt)


def _checked(label: str, steps: Iterable[str]) -> list[str]:
    """Return `steps` as a list in which each path that begins also joins."""
    steps, around = list(steps), 0
    for step in steps:
        around += (step == "(") - (step == "+")
        if around not in (0, 1):
            raise ValueError(f'{label}: "(" and "+" must take turns, got {steps}')
    if around:
        raise ValueError(f'{label}: a path begins with "(" and never joins, {steps}')
    return steps


def _steps_up(steps: Iterable[str]) -> float:
    return sum(RISE.get(step, 1) for step in steps)


def _draw_path(scene: Scene, x: float, bottom: float, steps: Iterable[str]) -> None:
    """Draw the boxes on the way upwards, and each path around them."""
    y, fork, (width, height) = bottom, bottom, BOX
    for step in steps:
        rise = STEP * RISE.get(step, 1)
        middle, y = y - rise / 2, y - rise
        if step == "(":
            fork = middle
        elif step == "+":
            side = x - AROUND
            around = [(x, fork), (side, fork), (side, middle), (x - 10, middle)]
            scene.arrow(around, width=1.8)
            draw_sum(scene, x, middle)
        else:
            role = "output" if "attention" in step else "ink"
            place = x - width / 2, middle - height / 2, width, height
            draw_plate(scene, *place, 11, role)
            scene.text(x, middle + 4, step, role=role, bold=True)


def _size(shape: tuple[int, ...]) -> tuple[float, float]:
    """Return width and height of a block on paper, in cells."""
    a, b, c = shape
    return c + a * DEPTH[0], b - a * DEPTH[1]


def _faces(block: Array) -> Iterator[tuple[bool, Array, Array, Array]]:
    """Yield each cell that is seen: is it True, its corner, and its two edges."""
    a, b, c = block.shape
    for j, k in np.ndindex(b, c):
        yield block[0, j, k], k * ACROSS + j * DOWN, ACROSS, DOWN
    for i, k in np.ndindex(a, c):
        yield block[i, 0, k], k * ACROSS + i * DEPTH, ACROSS, DEPTH
    for i, j in np.ndindex(a, b):
        yield block[i, j, -1], c * ACROSS + j * DOWN + i * DEPTH, DOWN, DEPTH


def _draw_block(
    scene: Scene, block: Array, place: tuple[float, float, float], axes: Sequence[str]
) -> None:
    (a, b, c), (left, top, cell) = block.shape, place
    front = np.array([left, top - a * DEPTH[1] * cell])  # its upper left corner
    for together, start, u, v in _faces(block):
        face = [start, start + u, start + u + v, start + v]
        points = [tuple((front + cell * p).tolist()) for p in face]
        look = {"fill": "ink", "alpha": 0.45} if together else {}
        scene.shape(points, closed=True, stroke="ink", width=0.9, **look)
    batch, token, feature = axes
    x, y = (front + cell * (a / 2 * DEPTH)).tolist()
    slope = math.degrees(math.atan2(DEPTH[1], DEPTH[0]))
    (left, top), size = front.tolist(), 9.5
    scene.text(left + cell * c / 2, top + cell * b + 12, feature, size=size)
    scene.text(left - 5, top + cell * b / 2, token, size=size, turn=-90)
    scene.text(x - 3, y - 3, batch, size=size, turn=slope)
