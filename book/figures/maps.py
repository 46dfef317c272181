"""Maps: matrices of weights, scores or masks side by side, with their numbers."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from figures.charts import as_share
from figures.picture import Picture
from figures.scene import Scene, corners, ink_on, picture

NUMBERS_UP_TO = 6  # a larger map has no room for numbers in its cells
SHADES = 20
# Points: a picture on a phone, a letter, the room between two panels, beside a name,
# and for a line of words.
WIDEST, LETTER, GAP, BESIDE, LINE = 358, 6.2, 12, 5, 15
SIZE = 11.3


def heatmap(A: ArrayLike, *names: Sequence[object], **look: Any) -> Picture:
    """Show one matrix, as `heatmaps` do.

    >>> heatmap(np.eye(2), ["a", "b"], ["a", "b"], alt="Each token looks at itself.")
    Picture: Each token looks at itself.
    """
    return heatmaps([(A, "")], *names, **look)


def heatmaps(
    panels: Sequence[tuple[ArrayLike, str]], rows: Sequence[object] | None = None,
    cols: Sequence[object] | None = None, *, alt: str, kind: str = "weights",
    mask: Any = True, xlabel: str = "key", ylabel: str = "query", unit: str = "",
) -> Picture:  # fmt: skip
    """Show matrices of one shape, each with the words below it, with the same tints.

    Weights run from the background (0) to one hue (1), and scores are tinted by their
    size. Cells are hatched where `mask` is False or a score is −∞, and of kind "mask"
    where the matrix is False. Up to 6 by 6 a cell has its number, a masked one only if
    it is not 0; a larger map has a legend, which says the `unit`.
    """
    matrices = [np.asarray(A) for A, _ in panels]
    n_q, n_k = matrices[0].shape
    down, across = ([*map(str, rows or range(n_q))], [*map(str, cols or range(n_k))])
    if (len(down), len(across)) != (n_q, n_k):
        raise ValueError(f"{len(down)} and {len(across)} names for {n_q} by {n_k}")
    finite = np.concatenate([A[np.isfinite(A)] for A in matrices]).astype(float)
    low, high = finite.min(initial=0), finite.max(initial=0)
    if kind == "weights" and not -1e-6 <= low <= high <= 1 + 1e-6:
        raise ValueError(f"weights lie between 0 and 1, got {low:.3g} to {high:.3g}")
    most = 1.0 if kind == "weights" else max(-low, high) or 1.0
    digits = 2 if np.any(finite % 1) else 0
    colour = "weight" if kind == "weights" else "ink"
    numbered = kind != "mask" and max(n_q, n_k) <= NUMBERS_UP_TO
    least: float = 10 * (cols is not None)
    if numbered:
        longest = max(len(written(x, digits)) for x in (low, most))
        least = 16 + 4 * (digits > 0)
        least = least if kind == "weights" else max(20, 4 + 5.3 * longest)
    left, name = (LETTER * max(map(len, names)) for names in (down, across))
    left += BESIDE + LINE * bool(ylabel)

    def largest(beside: int) -> float:
        room = (WIDEST - left) / beside - GAP
        return min(room / n_k, 40, 260 / n_q)

    beside = max((m for m in (2, 3, 4) if largest(m) > least), default=1)
    beside = math.ceil(len(panels) / math.ceil(len(panels) / beside))
    cell = largest(beside)
    step = 1 if cell > 10 else math.ceil(20 / cell)  # names that share one place
    turned = name > cell * step - 2
    wide, tall = cell * n_k, cell * n_q
    titles = [
        lines_of(words, max(8, int((wide + GAP / 2) / 5.6))) for _, words in panels
    ]
    top = (name if turned else LINE) + BESIDE + LINE * bool(xlabel)
    # the first line says what rows and columns are, and has the numbers that count them
    later = (name if turned else LINE) + BESIDE if cols is not None else 2 * BESIDE
    high_panel = tall + BESIDE + LINE * max(map(len, titles)) + 8
    n_lines = math.ceil(len(panels) / beside)
    legend = 0 if numbered else 2.5 * LINE
    scene = Scene(
        max(left + beside * (wide + GAP), 40 * 6 * (not numbered)),
        top + n_lines * high_panel + (n_lines - 1) * later + legend,
    )
    for k, (A, title) in enumerate(zip(matrices, titles, strict=True)):
        line, column = divmod(k, beside)
        x, y = left + column * (wide + GAP), top + line * (high_panel + later)
        hidden = (
            ~A if kind == "mask" else ~np.broadcast_to(mask, A.shape) | np.isneginf(A)
        )
        tints = np.where(np.isfinite(A), A, 0) / most
        if numbered and colour == "ink":
            tints = 0.3 * np.abs(tints)  # the sign is written, and can be read
        if kind == "mask" and cell > 10:
            down_it = [
                [(x + j * cell, y), (x + j * cell, y + tall)] for j in range(n_k)
            ]
            over_it = [
                [(x, y + i * cell), (x + wide, y + i * cell)] for i in range(n_q)
            ]
            scene.shape(*down_it, *over_it, stroke="rest", width=0.8)
        elif kind != "mask":
            shown = tints if numbered else np.where(hidden, 0, tints)
            shade(scene, x, y, cell, shown, colour, 100 if numbered else SHADES)
        bare = ~(numbered & (A != 0) & np.isfinite(A))
        hatch(scene, x, y, cell, hidden, bare)
        for (i, j), value in np.ndenumerate(A) if numbered else ():
            if not hidden[i, j] or value not in (0, -np.inf):
                middle = x + (j + 0.5) * cell, y + (i + 0.5) * cell
                words = written(value, digits, kind)
                number(scene, *middle, cell, words, tints[i, j], colour)
        scene.box(x, y, wide, tall, radius=0, stroke=colour, width=1.1)
        for j in range(0, n_k, step) if line == 0 or cols is not None else ():
            at = x + (j + 0.5) * cell, y - BESIDE
            turn = {"turn": -90, "anchor": "start"} if turned else {}
            scene.text(at[0] + 3.4 * turned, at[1], across[j], size=SIZE, **turn)
        told = column == 0 and (line == 0 or rows is not None)
        for i in range(0, n_q, step) if told else ():
            at = x - BESIDE, y + (i + 0.5) * cell + 3.4
            scene.text(*at, down[i], size=SIZE, anchor="end")
        if k == 0:
            quiet = {"size": SIZE, "role": "muted"}
            middle = x + (beside * (wide + GAP) - GAP) / 2
            scene.text(middle, LINE - 3, xlabel, **quiet)
            scene.text(LINE - 3, y + tall / 2, ylabel, turn=-90, **quiet)
        for below, words in enumerate(title):
            place = x + wide / 2, y + tall + BESIDE + (below + 0.8) * LINE
            scene.text(*place, words, size=SIZE)
    bottom = scene.height - legend + 4
    if kind == "mask":
        key(scene, left, bottom, "", {"may attend": 0, "masked": None}, colour)
    elif not numbered:
        shares = np.linspace(-1 if low < 0 else 0, 1, 5)
        marks = {written(x * most, 2): x for x in shares}
        key(scene, left, bottom, unit or kind.removesuffix("s"), marks, colour)
    return picture(scene, alt)


def lines_of(words: str, width: int) -> list[str]:
    """Break words into as few lines as fit, of nearly equal lengths.

    >>> lines_of("layer 1, head 1", 13)
    ['layer 1,', 'head 1']
    """
    lines = textwrap.wrap(words, width)
    while width > 1 and len(textwrap.wrap(words, width - 1)) == len(lines):
        width -= 1
    return textwrap.wrap(words, width)


def written(value: float, digits: int, kind: str = "scores") -> str:
    """Return a number as it stands in a cell, without a minus before zero.

    A weight that is not 0 is not called 0.

    >>> written(-0.001, 2), written(-1.5, 1), written(0.001, 2, "weights")
    ('0.00', '−1.5', '<.01')
    """
    if kind == "weights" and digits:
        return as_share(value)
    text = f"{value:.{digits}f}".replace("-", "−")
    return text if text.strip("−0.") else text.removeprefix("−")


def shade(
    scene: Scene, x: float, y: float, cell: float, tints: Any, colour: str, shades: int
) -> None:
    """Fill the cells, with one mark for each shade; amber is negative."""
    levels = np.rint(tints * shades).astype(int)
    for level in np.unique(levels[levels != 0]).tolist():
        at = np.argwhere(levels == level)
        squares = (corners(x + j * cell, y + i * cell, cell, cell) for i, j in at)
        fill = {"fill": "amber" if level < 0 else colour, "alpha": abs(level) / shades}
        scene.shape(*squares, closed=True, **fill)


def hatch(scene: Scene, x: float, y: float, cell: float, at: Any, bare: Any) -> None:
    """Hatch masked cells; without the middle stroke there is room for a number."""
    lines = []
    for i, j in np.argwhere(at):
        whole = [(0, 1)] if cell <= 10 else [(0, 1), (0, 0.5), (0.5, 1)]
        for a, b in whole if bare[i, j] else [(0, 0.3), (0.7, 1)]:
            ends = (j + a, i + b), (j + b, i + a)
            lines.append([(x + u * cell, y + v * cell) for u, v in ends])
    scene.shape(*lines, stroke="muted", width=1 if cell > 10 else 0.6)


def number(
    scene: Scene, x: float, y: float, cell: float, words: str, tint: float, colour: str
) -> None:
    """Write the number of a cell in the ink that can be read there."""
    if cell < 26:
        words = words.removesuffix(".00").replace("0.", ".", 1)
    wide = 0.5 * len(words) - 0.24 * words.count(".")  # for each point of size
    size = min(11.5, (cell - 1.5) / wide)
    role = ink_on(tint) if colour == "weight" else "ink"
    scene.text(x, y + 0.36 * size, words, size=size, role=role)


def key(
    scene: Scene, x: float, y: float, title: str, marks: dict[str, Any], colour: str
) -> None:
    """Say below the panels what the tints mean, where no number does."""
    scene.text(x, y + 9, title, size=SIZE, role="muted", anchor="start")
    y += LINE * bool(title)
    for words, share in marks.items():
        tint = {} if share is None else {"fill": "amber" if share < 0 else colour}
        alpha = abs(share or 0)
        scene.box(x, y, 10, 10, radius=0, alpha=alpha, stroke="rest", **tint)
        if share is None:
            hatch(scene, x, y, 10, [[True]], np.array([[True]]))
        scene.text(x + 14, y + 9, words, size=SIZE, anchor="start")
        x += 22 + LETTER * len(words)
