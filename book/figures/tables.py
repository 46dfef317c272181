"""Tables: which laws a version or a design breaks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from chapters import chapter_of
from figures.charts import INK, house_style
from figures.picture import COLOURS, Picture, finished
from figures.scene import Scene, corners, picture
from mha import laws

LETTER, ROW, MOST = 0.085, 0.2, 4.9  # inches
LOOKS: dict[str, dict[str, Any]] = {
    "broken on purpose": {"marker": "s", "color": COLOURS["wrong"], "s": 0.66},
    "the check does not apply": {"marker": "x", "color": INK, "s": 0.4},
    "satisfied": {"marker": "o", "color": INK, "s": 0.17, "alpha": 0.5},
    "not asked": {"marker": "_", "color": INK, "s": 0.45, "alpha": 0.5},
}
# In points: the names, one version, one law, what is above a group, between two.
LEFT, CELL, HIGH, HEAD, GAP, COUNT = 196, 2.7, 15, 24, 6, 20


def marks(
    table: ArrayLike, rows: Sequence[str], cols: Sequence[str], *, alt: str
) -> Picture:
    """Show a table of words as marks, so that its structure can be seen.

    Rows and columns come in the order they are given.

    Parameters
    ----------
    table : array_like of str, of shape (n_rows, n_cols)
        "broken on purpose" is a square, "satisfied" a faint dot, "not asked" a stroke
        and "the check does not apply" a cross.
    rows, cols : sequence of str
        Names; those of columns stand upright above the table.

    >>> marks([["not asked"]], ["one norm"], ["rows"], alt="Its law is not asked.")
    Picture: Its law is not asked.
    """
    words = np.array(table)
    margin = 0.5 + LETTER * max(map(len, rows))
    cell = min(ROW * 1.6, (MOST - margin) / len(cols))  # inches
    width = min(MOST, margin + cell * len(cols) + 0.2)
    height = ROW * len(rows) + LETTER * max(map(len, cols)) + 0.8
    kinds = [word for word in LOOKS if word in words]
    with house_style():
        figure = Figure((width, height))
        ax: Any = figure.subplots()
        handles = []
        for word in kinds:
            look = dict(LOOKS[word])
            look["s"] = (look["s"] * min(cell, ROW) * 72) ** 2
            look["linewidths"] = 1.2 if look["marker"] in "_x" else 0
            handles.append(ax.scatter(*np.argwhere(words == word).T[::-1], **look))
        ax.set(xlim=(-0.6, len(cols) - 0.4), ylim=(len(rows) - 0.4, -0.6))
        ax.grid(False)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        ax.xaxis.tick_top()
        ax.set_xticks(range(len(cols)), cols, rotation=90)
        ax.set_yticks(range(len(rows)), rows)
        look = {"loc": "outside lower center", "ncols": 2}
        figure.legend(handles, kinds, **look)
        return finished(figure, alt)


def exceptions(table: Mapping[str, Mapping[str, str]], *, alt: str) -> Picture:
    """Show which laws each design breaks, one column per design.

    The laws that are broken most often come first; those that every design
    satisfies, or is not asked, are left out.

    Parameters
    ----------
    table : dict {design: {law: a word that `marks` knows}}
        The laws of the first design, in their order, are those of all.

    >>> found = {"rotary": {"order": "broken on purpose", "rows": "satisfied"}}
    >>> exceptions(found, alt="Rotary positions break one law.")
    Picture: Rotary positions break one law.
    """
    first = next(iter(table.values()))
    marked = {"broken on purpose", "the check does not apply"}
    words = {law: [row[law] for row in table.values()] for law in first}
    shown = [law for law in first if marked & {*words[law]}]
    shown.sort(key=lambda law: -words[law].count("broken on purpose"))
    rows = [law.replace("_", " ") for law in shown]
    return marks([words[law] for law in shown], rows, [*table], alt=alt)


def detected(matrix: Any, *, alt: str) -> Picture:
    """Show a row per law and a column per wrong version, both in two groups.

    In each group the laws that detect most come first, and versions that break
    similar laws are neighbours. The number behind a row counts its marks.

    Parameters
    ----------
    matrix : mha.laws.KillMatrix
        Of all laws and all members, as `mha.laws.kill_matrix` returns it.

    """
    rows = [
        sorted(some, key=lambda x: -len(matrix.kills(x.name)))
        for some in (laws.ATTENTION, laws.CALLS)
    ]
    order = [law.name for some in rows for law in some]
    broken_by = {name: set(matrix.killed_by(name)) for name in matrix.rows[1:]}
    names = sorted(
        broken_by, key=lambda name: tuple(law not in broken_by[name] for law in order)
    )
    calls = [name for name in names if chapter_of(name) == "laws"]
    columns = [name for name in names if name not in calls], calls
    wide = sum(map(len, columns)) * CELL + GAP + COUNT
    scene = Scene(LEFT + wide, HEAD + HIGH * len(order) + 2 * HEAD + 4)
    quiet = {"anchor": "start", "role": "muted"}
    x = LEFT
    for title, some in zip(("wrong steps", "wrong calls"), columns, strict=True):
        scene.text(x, 15, title, **quiet)
        x += CELL * len(some) + GAP
    y = HEAD
    titles = "Laws of attention", "Laws of the call"
    for title, some in zip(titles, rows, strict=True):
        scene.text(4, y + 15, title, anchor="start", bold=True)
        y += HEAD
        for law in some:
            dead = set(matrix.kills(law.name))
            _law(scene, law.name, dead, columns, y)
            scene.text(LEFT + wide - COUNT + 4, y + 11, len(dead), **quiet)
            y += HIGH
    return picture(scene, alt)


def _law(
    scene: Scene, law: str, dead: set[str], columns: Sequence[list[str]], y: float
) -> None:
    """Draw the name of a law, and a mark for each version that it detects."""
    x, words, found = LEFT, law.replace("_", " "), []
    scene.text(x - 6, y + 11, words, anchor="end")
    for names in columns:
        place = x, y + 1, CELL * len(names), HIGH - 2
        scene.box(*place, radius=1, fill="ink", alpha=0.07)
        for k, name in enumerate(names):
            if name in dead:
                start = x + CELL * k + 0.3
                found.append(corners(start, y + 1, CELL - 0.6, HIGH - 2))
        x += CELL * len(names) + GAP
    scene.shape(*found, closed=True, fill="wrong")
