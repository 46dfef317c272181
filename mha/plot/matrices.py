"""Heat maps: queries are rows, keys are columns."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mha._doors import Array
from mha.plot.picture import Picture
from mha.plot.scene import Scene, corners

KINDS = ("weights", "scores", "mask")
Kind = Literal["weights", "scores", "mask"]
NUMBERS_UP_TO = 6  # a larger map has no room for numbers in its cells
LETTER = 5.9  # points; a typical letter of a token
TIGHT = 26  # in a smaller cell 0.57 becomes .57
LINE = 10  # a smaller cell has no room for the name of its row
NUMBER = 20  # a smaller cell has no room for a number
WIDEST = 366  # points; on a phone, letters still have nine pixels
NARROWEST = 190  # a sheet on which there is room for what the tints mean
SHADES = 20  # of a map without numbers
SIZE = 9.5  # of names
THIN: dict[str, Any] = {"radius": 0, "stroke": "rest", "width": 0.8}


def heatmap(
    A: ArrayLike, rows: Sequence[object] | None = None,
    cols: Sequence[object] | None = None, *, alt: str, kind: Kind = "weights",
    mask: ArrayLike | None = None, xlabel: str = "key", ylabel: str = "query",
    unit: str | None = None,
) -> Picture:  # fmt: skip
    """Show one matrix as a heat map.

    Parameters
    ----------
    A : ndarray of shape (n_q, n_k)
        Weights, scores, or a boolean mask.
    rows, cols : sequence of n_q and of n_k names, optional
        Usually the tokens. None numbers the rows or columns from 0.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    kind : {"weights", "scores", "mask"}
        Weights run from the background (0) to one hue (1). Scores are tinted by their
        size; a score of ``-inf`` counts as masked. In a mask True means *may attend*.
    mask : bool ndarray that broadcasts to (n_q, n_k), optional
        Where it is False the cell is hatched.
    xlabel, ylabel : str
        What a column and a row stand for.
    unit : str, optional
        What a number is, for the legend; "weight" or "score" by default.

    Returns
    -------
    picture : Picture
        Up to 6 by 6 each cell holds its number, to two decimals unless all scores are
        whole, and a masked cell only if its weight is not 0. A larger map has a legend.

    Raises
    ------
    ValueError
        If the names do not fit the matrix, if weights leave 0 to 1, or if `alt` is
        empty.

    Examples
    --------
    >>> heatmap(np.eye(2), ["a", "b"], ["a", "b"], alt="Each token looks at itself.")
    Picture: Each token looks at itself.
    """
    return heatmaps(
        [(A, "")], rows, cols, alt=alt, kind=kind, mask=[mask], xlabel=xlabel,
        ylabel=ylabel, unit=unit,
    )  # fmt: skip


def heatmaps(
    panels: Sequence[tuple[ArrayLike, str]], rows: Sequence[object] | None = None,
    cols: Sequence[object] | None = None, *, alt: str, kind: Kind = "weights",
    mask: Any = None, xlabel: str = "key", ylabel: str = "query",
    unit: str | None = None,
) -> Picture:  # fmt: skip
    """Show matrices of one shape side by side, with the same tints.

    Parameters
    ----------
    panels : sequence of (ndarray of shape (n_q, n_k), str)
        Each matrix with the words that stand below it.
    rows, cols, alt, kind, mask, xlabel, ylabel, unit
        As in `heatmap`. `mask` may also be a list with one mask (or None) a panel.

    Returns
    -------
    picture : Picture
        Up to four panels in a row, then a new row begins.

    Raises
    ------
    ValueError
        As in `heatmap`, or if the shapes of the panels differ.

    Examples
    --------
    >>> heatmaps([(np.eye(2), "right"), (1 - np.eye(2), "wrong")], alt="They differ.")
    Picture: They differ.
    """
    matrices, blocked = _read(panels, mask, kind)
    n_q, n_k = matrices[0].shape
    down = as_names("rows", rows, n_q, "rows")
    across = as_names("cols", cols, n_k, "columns")
    values = np.concatenate([A[np.isfinite(A)] for A in matrices]).astype(float)
    tint = _tint(values, kind)
    numbered = kind != "mask" and max(n_q, n_k) <= NUMBERS_UP_TO
    room = NUMBER if kind == "weights" else max(NUMBER, 4 + 5.3 * tint.longest)
    smallest = room if numbered else 0 if cols is None else LINE
    plan = _plan(len(matrices), down, across, smallest, (xlabel, ylabel))
    under = [textwrap.wrap(words, max(8, int(plan.step / 5.2))) for _, words in panels]
    block = plan.top + plan.cell * n_q + 13 * max(map(len, under)) + 9
    scene = Scene(plan.width, plan.lines * block + 38 * (not numbered))
    for k, (A, hidden) in enumerate(zip(matrices, blocked, strict=True)):
        line, column = divmod(k, plan.across)
        x, y = plan.left + column * plan.step, line * block + plan.top
        draw = _numbered if numbered else _shaded
        draw(scene, A, hidden, (x, y, plan.cell), tint)
        frame = x, y, plan.cell * n_k, plan.cell * n_q
        scene.box(*frame, stroke=tint.role, width=1.1)
        names = ([], "") if column else (down, ylabel)
        _names(scene, plan, frame, names, (across, xlabel))
        for m, words in enumerate(under[k]):
            low = y + frame[3] + 15 + 13 * m
            scene.text(x + frame[2] / 2, low, words, size=10)
    if kind == "mask":
        _mask_legend(scene)
    elif not numbered:
        name = unit or ("weight" if kind == "weights" else "score")
        _legend(scene, tint, name, signed=bool(np.any(values < 0)))
    return Picture(scene, alt)


class Tint(NamedTuple):
    """How numbers become tints."""

    kind: Kind
    role: str
    top: float  # what has the darkest tint
    digits: int
    longest: int  # number, in characters

    def of(self, value: float) -> float:
        """Return how densely a cell with a number is filled."""
        share = abs(float(value)) / self.top if np.isfinite(value) else 0.0
        return min(share, 1.0) if self.kind == "weights" else 0.05 + 0.27 * share


class Plan(NamedTuple):
    """Where the panels are; lengths are in points."""

    across: int  # panels side by side
    lines: int  # of panels
    cell: float
    step: float  # from one panel to the next
    margin: float  # left of everything
    left: float  # of the first panel
    top: float
    width: float
    turn: float  # of the names of columns, in degrees


def _read(
    panels: Sequence[tuple[ArrayLike, str]], mask: Any, kind: Kind
) -> tuple[list[Array], list[Array]]:
    """Return the matrices, and for each the cells to draw as blocked."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {sorted(KINDS)}, got {kind!r}")
    matrices = [as_matrix("A", A, "(n_q, n_k)") for A, _ in panels]
    masks = mask if isinstance(mask, list) else [mask] * len(matrices)
    if len(masks) != len(matrices):
        raise ValueError(f"mask holds {len(masks)} masks for {len(matrices)} panels")
    first = matrices[0].shape
    for A in matrices:
        if A.shape != first:
            raise ValueError(f"panels must share a shape, got {first} and {A.shape}")
        if kind == "mask" and A.dtype != bool:
            raise ValueError(f"a mask must be boolean, got {A.dtype}")
    pairs = zip(matrices, masks, strict=True)
    return matrices, [_blocked(A, M, kind) for A, M in pairs]


def as_matrix(name: str, A: ArrayLike, shape: str) -> Array:
    """Return `A` as an array with two axes, neither of them empty."""
    A = np.asarray(A)
    if A.ndim != 2 or 0 in A.shape:
        raise ValueError(f"{name} must have shape {shape}, got {A.shape}")
    return A


def as_names(
    argument: str, names: Iterable[object] | None, count: int, what: str
) -> list[str]:
    """Return `count` names as text; None numbers them from 0."""
    names = [*(range(count) if names is None else names)]
    if len(names) != count:
        raise ValueError(f"{argument} has {len(names)} names for {count} {what}")
    return [str(name) for name in names]


def _blocked(A: Array, mask: Any, kind: Kind) -> Array:
    if kind == "mask":
        return ~A
    if mask is None:
        return np.isneginf(A)
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError(f"mask must be boolean, got {mask.dtype}")
    try:
        return ~np.broadcast_to(mask, A.shape) | np.isneginf(A)
    except ValueError:
        raise ValueError(f"mask of shape {mask.shape} does not fit {A.shape}") from None


def _tint(values: Array, kind: Kind) -> Tint:
    if kind != "weights":
        top = float(np.abs(values).max(initial=0)) or 1.0
        # 3 says as much as 3.00
        digits = 0 if np.array_equal(values, np.round(values)) else 2
        longest = max((len(number(x, digits)) for x in values), default=1)
        return Tint(kind, "ink", top, digits, longest)
    if np.any(values < -1e-6) or np.any(values > 1 + 1e-6):
        raise ValueError(
            f"weights lie between 0 and 1, got {values.min():.3g} to "
            f'{values.max():.3g}; use kind="scores" for signed numbers'
        )
    return Tint(kind, "weight", 1.0, 2, len("0.57"))


def _plan(
    count: int, rows: list[str], cols: list[str], smallest: float,
    labels: tuple[str, str],
) -> Plan:  # fmt: skip
    """Return the largest cells that fit, and what stands around them."""
    left = LETTER * max(map(len, rows)) + 8 + 15 * bool(labels[1])
    longest, gap = LETTER * max(map(len, cols)), 16.0

    def largest(across: int) -> float:
        return ((WIDEST - left) / across - gap) / len(cols)

    most = max((m for m in (2, 3, 4) if largest(m) > smallest), default=1)
    lines = -(-count // most)
    across = -(-count // lines)
    cell = min(largest(across), 40, 260 / len(rows))
    turn = 0 if longest <= cell - 2 else -90 if cell < 16 else -55
    angle = math.radians(turn)
    over = math.cos(angle) * longest - cell / 2 + 6 if turn else 6.0
    if over > gap:  # the last name needs more room than there is between panels
        gap = over
        cell = min(cell, largest(across))
    top = 10 + (math.sin(-angle) * longest if turn else 8) + 14 * bool(labels[0])
    step = cell * len(cols) + gap
    width = left + across * step - gap + max(over, 6)
    margin = max(0, NARROWEST - width) / 2
    place = margin, margin + left, top, 2 * margin + width
    return Plan(across, lines, cell, step, *place, turn)


def _numbered(
    scene: Scene, A: Array, blocked: Array, place: tuple[float, float, float],
    tint: Tint,
) -> None:  # fmt: skip
    """Draw cells with their numbers; a masked one has a number if it has a weight."""
    x, y, cell = place
    gap = min(1.25, cell / 16)
    side, letters = cell - 2 * gap, max(1, tint.longest - (cell < TIGHT))
    size = min(11, max(SIZE, 0.36 * cell), (cell - 3) / (0.58 * letters))
    for (i, j), value in np.ndenumerate(A):
        box = x + j * cell + gap, y + i * cell + gap, side, side
        shown = value != 0 or not blocked[i, j]
        if shown:
            words = number(value, tint.digits)
            if cell < TIGHT:
                words = words.removesuffix(".00").replace("0.", ".", 1)
            scene.cell(*box, words, tint.role, tint.of(value), size=size)
        if blocked[i, j]:
            scene.hatched(*box, middle=not shown)


def _shaded(
    scene: Scene, A: Array, blocked: Array, place: tuple[float, float, float],
    tint: Tint,
) -> None:  # fmt: skip
    """Draw cells without numbers: one mark for each shade, one for what is masked."""
    x, y, cell = place
    seen = np.where(blocked | ~np.isfinite(A) | (tint.kind == "mask"), 0, A)
    levels = np.rint(seen * (SHADES / tint.top)).astype(int)
    for level in np.unique(levels[levels != 0]).tolist():
        role, alpha = tint.role if level > 0 else "amber", abs(level) / SHADES
        runs = [corners(*run, 1) for run in _runs(levels == level)]
        scene.shape(*runs, fill=role, alpha=alpha, closed=True, grid=place)
    if cell > LINE:
        for i, j in np.argwhere(blocked):
            scene.hatched(x + j * cell, y + i * cell, cell, cell)
        for i, j in np.ndindex(A.shape if tint.kind == "mask" else (0, 0)):
            scene.box(x + j * cell, y + i * cell, cell, cell, **THIN)
        return
    strokes = [
        [(x + j * cell, y + i * cell), (x + (j - k) * cell, y + (i + k) * cell)]
        for j, i, k in _diagonals(blocked)
    ]
    scene.shape(*strokes, stroke="muted", width=max(0.5, cell / 9))


def _runs(where: Array) -> Iterator[tuple[int, int, int]]:
    """Yield (first column, row, length) of each unbroken run of such cells."""
    for i, row in enumerate(np.pad(where, ((0, 0), (1, 1))).astype(int)):
        edges = np.diff(row)
        starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        yield from ((int(s), i, int(e - s)) for s, e in zip(starts, ends, strict=True))


def _diagonals(where: Array) -> Iterator[tuple[int, int, int]]:
    """Yield (right edge, upper row, length) of runs of cells that go down leftwards."""
    n_q, n_k = where.shape
    for k in range(1 - n_q, n_k):
        for s, _, length in _runs(where[:, ::-1].diagonal(k)[None]):
            yield n_k - s - max(k, 0), s + max(-k, 0), length


def number(value: float, digits: int) -> str:
    """Return a number as it stands in a cell, without a minus before zero."""
    if np.isneginf(value):
        return "−∞"
    text = f"{value:.{digits}f}".replace("-", "−")
    return text if text.strip("−0.") else text.removeprefix("−")


def _names(
    scene: Scene, plan: Plan, frame: tuple[float, float, float, float],
    rows: tuple[list[str], str], cols: tuple[list[str], str],
) -> None:  # fmt: skip
    """Name the rows of a panel and, above it, its columns."""
    x, y, width, height = frame
    step = 1 if plan.cell > LINE else math.ceil(NUMBER / plan.cell)
    low = 0.35 * SIZE  # from the middle of a letter to its baseline
    for i in range(0, len(rows[0]), step):
        place = x - 5, y + (i + 0.5) * plan.cell + low
        scene.text(*place, rows[0][i], size=SIZE, anchor="end")
    anchor, aside = ("start", low) if plan.turn else ("middle", 0)
    for j in range(0, len(cols[0]), step):
        place = x + (j + 0.5) * plan.cell + aside, y - 5
        scene.text(*place, cols[0][j], size=SIZE, turn=plan.turn, anchor=anchor)
    above = x + width / 2, y - plan.top + 12
    scene.text(*above, cols[1], size=SIZE, role="muted")
    beside = x - plan.left + plan.margin + 11, y + height / 2
    scene.text(*beside, rows[1], size=SIZE, role="muted", turn=-90)


def _mask_legend(scene: Scene) -> None:
    x, y = scene.width / 2, scene.height - 24
    for left, words in ((x - 85, "may attend"), (x + 15, "masked")):
        scene.box(left, y, 11, 11, **THIN)
        scene.text(left + 16, y + 9, words, size=SIZE, anchor="start")
    scene.hatched(x + 15, y, 11, 11)


def _legend(scene: Scene, tint: Tint, name: str, signed: bool) -> None:
    """Say what the tints mean, where no number does."""
    size = 90 / SHADES
    x, y = scene.width / 2 - 45 * (not signed), scene.height - 32
    for k in range(-SHADES * signed, SHADES):
        alpha, role = (k + 1, tint.role) if k >= 0 else (-k, "amber")
        look: dict[str, Any] = {"alpha": alpha / SHADES, "grid": (x, y, size)}
        scene.shape(corners(k, 0, 1, 2), fill=role, closed=True, **look)
    left, first = (-94, number(-tint.top, 2)) if signed else (-4, "0")
    scene.text(x + left, y + 8.5, first, size=SIZE, anchor="end")
    scene.text(x + 94, y + 8.5, number(tint.top, 2), size=SIZE, anchor="start")
    scene.text(scene.width / 2, y + 24, name, size=SIZE, role="muted")
