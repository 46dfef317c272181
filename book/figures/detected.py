"""Which law detects which wrong version: thin columns, so that it fits a phone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from figures.scene import Scene
from mha.plot.picture import Picture

# In points: the names, one version, one law, and what is above a group.
LEFT, CELL, HIGH, HEAD, GAP, COUNT = 178, 3.4, 13, 24, 6, 20

Groups = Mapping[str, Sequence[str]]


def detected(matrix: Any, versions: Groups, laws: Groups, *, alt: str) -> Picture:
    """Show a row per law and a column per wrong version, both in groups.

    Parameters
    ----------
    matrix : mha.laws.KillMatrix
        What `mha.laws.kill_matrix` returns.
    versions, laws : dict {heading: names}
        The groups of columns and of rows. In a group the laws that detect most come
        first, and versions that break similar laws are neighbours.
    alt : str
        One sentence with the finding, for readers who do not see the picture.

    Returns
    -------
    picture : Picture
        The number behind a row counts its marks.

    Raises
    ------
    ValueError
        If a name is not in the matrix, or `alt` is empty.
    """
    table = np.asarray(matrix.killed)
    order = {head: _busiest(matrix, names) for head, names in laws.items()}
    columns = [matrix.columns.index(name) for some in order.values() for name in some]
    order = {
        head: sorted(names, key=lambda n: _pattern(matrix, n, columns))
        for head, names in versions.items()
    } | order
    n_versions, n_laws = (sum(map(len, x.values())) for x in (versions, laws))
    width = LEFT + CELL * n_versions + GAP * (len(versions) - 1) + COUNT
    scene = Scene(width, HEAD + HIGH * n_laws + HEAD * len(laws) + 4)
    y = HEAD
    for title, names in laws.items():
        scene.text(4, y + 15, title, anchor="start", size=11, bold=True)
        y += HEAD
        for law in order[title]:
            _row(scene, matrix, table, law, {v: order[v] for v in versions}, y)
            y += HIGH
    x = LEFT
    for title, names in versions.items():
        scene.text(x, 15, title, anchor="start", size=10, role="muted")
        x += CELL * len(names) + GAP
    return Picture(scene, alt)


def _row(scene, matrix, table, law, versions, y):
    column, x = matrix.columns.index(law), LEFT
    look = {"anchor": "end", "size": 9.6}
    scene.text(LEFT - 6, y + 9.6, law.replace("_", " "), **look)
    marks = 0
    for names in versions.values():
        dead = [bool(table[matrix.rows.index(name), column]) for name in names]
        wide = CELL * len(names)
        scene.box(x, y + 1, wide, HIGH - 2, radius=1, fill="ink", alpha=0.07)
        for k in np.flatnonzero(dead):
            place = x + CELL * k + 0.3, y + 1, CELL - 0.6, HIGH - 2
            scene.box(*place, radius=0.5, fill="wrong", alpha=1)
        marks, x = marks + sum(dead), x + wide + GAP
    scene.text(x - GAP + 4, y + 9.6, marks, anchor="start", size=9.6, role="muted")


def _busiest(matrix, names):
    return sorted(names, key=lambda name: -len(matrix.kills(name)))


def _pattern(matrix, name, columns):
    killed = matrix.killed[matrix.rows.index(name)]
    return tuple(not killed[column] for column in columns)
