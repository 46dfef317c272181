"""Diagrams: the parts of a layer, and which numbers of a block belong together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Polygon
from numpy.typing import ArrayLike

from mha._arrays import Array
from mha.plot.picture import INK, WIDTH, Picture, house_style

COLUMN, STEP = 2.3, 0.52  # inches
BOX, BESIDE = (1.94, 0.56), 1.15  # in steps: width and height, and the path around
FILLS = ("#56B4E9", "#E69F00", "#7BC8A4", "#CC9BC1")  # light: the ink on them is dark
RISE = {"(": 0.4}  # steps upwards; a fork needs less room than the 1 of all others
PLUS, DARK = "#F0E442", "#111111"
DEPTH = np.array([0.55, 0.42])  # where one step into the picture leads on paper


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
        Boxes with the same word have the same colour.

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
    known = [word for steps in ways.values() for word in steps if word not in "(+"]
    words = enumerate(dict.fromkeys(known))
    colours = {word: FILLS[k % len(FILLS)] for k, word in words}
    tops = [2 + sum(RISE.get(step, 1) for step in steps) for steps in ways.values()]
    height = max(tops)
    with house_style():
        figure = Figure((COLUMN * len(ways), STEP * (height + 1.5)))
        axes = figure.subplots(1, len(ways), sharey=True, squeeze=False)[0]
        half = COLUMN / STEP / 2
        for ax, top, (label, steps) in zip(axes, tops, ways.items(), strict=True):
            ax.set(xlim=(-half, half), ylim=(-1.1, height + 0.4), aspect="equal")
            ax.axis("off")
            for name, y in zip(names, (0, top), strict=True):
                ax.text(0, y, name, ha="center", va="center", style="italic")
            _draw_path(ax, steps, colours, top)
            ax.text(0, -0.5, label, ha="center", va="top")
        return Picture(figure, alt)


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
    with house_style():
        width = min(WIDTH, 1.7 * len(named))
        figure = Figure((width, width / len(named) + 0.35))
        places = figure.subplots(1, len(named), squeeze=False)[0]
        for ax, (label, block) in zip(places, named.items(), strict=True):
            _draw_block(ax, block, axes)
            ax.text(0.5, -0.04, label, transform=ax.transAxes, ha="center", va="top")
        return Picture(figure, alt)


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


def _draw_path(
    ax: Any, steps: Iterable[str], colours: Mapping[str, str], top: float
) -> None:
    """Draw the way upwards with its boxes, and each path around them."""
    line: dict[str, Any] = {"color": INK, "lw": 1.2}
    arrow = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, **line}
    edge: dict[str, Any] = {"ec": INK, "lw": 1, "zorder": 2}
    word: dict[str, Any] = {"ha": "center", "color": DARK, "zorder": 3}
    ax.annotate("", (0, top - 0.35), (0, 0.25), arrowprops=arrow, zorder=1)
    below, fork, (width, height) = 0.8, 0.0, BOX
    for step in steps:
        y = below + RISE.get(step, 1) / 2
        below += RISE.get(step, 1)
        if step == "(":
            fork = y
        elif step == "+":
            around = [0, -BESIDE, -BESIDE], [fork, fork, y]
            ax.plot(*around, solid_capstyle="butt", zorder=1, **line)
            ax.annotate("", (-0.2, y), (-BESIDE, y), arrowprops=arrow, zorder=1)
            ax.add_patch(Circle((0, y), 0.24, fc=PLUS, **edge))
            ax.text(0, y, "+", va="center_baseline", **word)
        else:
            corner, look = (-width / 2, y - height / 2), {"fc": colours[step], **edge}
            style = "round,pad=0.06"
            ax.add_patch(FancyBboxPatch(corner, width, height, boxstyle=style, **look))
            ax.text(0, y, step, size=8.5, va="center", **word)


def _faces(block: Array) -> Iterator[tuple[bool, Any, Any, Any]]:
    """Yield each cell that is seen: is it True, its corner, and its two edges."""
    across, down = np.array([1.0, 0]), np.array([0, -1.0])
    a, b, c = block.shape
    for j, k in np.ndindex(b, c):
        yield block[0, j, k], k * across + j * down, across, down
    for i, k in np.ndindex(a, c):
        yield block[i, 0, k], k * across + i * DEPTH, across, DEPTH
    for i, j in np.ndindex(a, b):
        yield block[i, j, -1], c * across + j * down + i * DEPTH, down, DEPTH


def _draw_block(ax: Any, block: Array, axes: Sequence[str]) -> None:
    a, b, c = block.shape
    for together, corner, first, second in _faces(block):
        cell = [corner, corner + first, corner + first + second, corner + second]
        fill = FILLS[0] if together else "none"
        ax.add_patch(Polygon(cell, fc=fill, ec=INK, lw=0.8, zorder=1 + together))
    far = np.array([c, 0]) + a * DEPTH
    ax.set(xlim=(-1.1, far[0] + 0.3), ylim=(-b - 1.0, far[1] + 0.3), aspect="equal")
    ax.axis("off")
    batch, token, feature = axes
    x, y = a / 2 * DEPTH + (-0.1, 0.1)
    slope = np.degrees(np.arctan2(DEPTH[1], DEPTH[0]))
    style = {"size": 9, "rotation_mode": "anchor", "ha": "center"}
    ax.text(c / 2, -b - 0.2, feature, va="top", **style)
    ax.text(-0.2, -b / 2, token, va="bottom", rotation=90, **style)
    ax.text(x, y, batch, va="bottom", rotation=slope, **style)
