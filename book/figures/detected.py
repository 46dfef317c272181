"""Which law detects which wrong version: thin columns, so that it fits a phone."""

from typing import Any

from figures.scene import Scene
from mha import laws, zoo
from mha.plot.picture import Picture

# In points: the names, one version, one law, what is above a group, between two.
LEFT, CELL, HIGH, HEAD, GAP, COUNT = 178, 3.4, 13, 24, 6, 20
VERSIONS = "wrong steps", "wrong calls"
LAWS = "Laws of attention", "Laws of the call"


def detected(matrix: Any, *, alt: str) -> Picture:
    """Show a row per law and a column per wrong version, both in two groups.

    Parameters
    ----------
    matrix : mha.laws.KillMatrix
        Of all laws and all members, as `mha.laws.kill_matrix` returns it.
    alt : str
        One sentence with the finding, for readers who do not see the picture.

    Returns
    -------
    picture : Picture
        In each group the laws that detect most come first, and versions that break
        similar laws are neighbours. The number behind a row counts its marks.

    Raises
    ------
    ValueError
        If `alt` is empty.
    """
    rows = [
        sorted(some, key=lambda x: -len(matrix.kills(x.slug)))
        for some in (laws.ATTENTION, laws.CALLS)
    ]
    order = [law.slug for some in rows for law in some]
    names = sorted(matrix.rows[1:], key=lambda name: _pattern(matrix, name, order))
    steps = {member.name for member in zoo.STEPS}
    calls = [name for name in names if name not in steps]
    columns = [name for name in names if name not in calls], calls
    wide = sum(map(len, columns)) * CELL + GAP + COUNT
    scene = Scene(LEFT + wide, HEAD + HIGH * len(order) + 2 * HEAD + 4)
    x = LEFT
    for title, names in zip(VERSIONS, columns, strict=True):
        scene.text(x, 15, title, anchor="start", size=10, role="muted")
        x += CELL * len(names) + GAP
    y = HEAD
    for title, some in zip(LAWS, rows, strict=True):
        scene.text(4, y + 15, title, anchor="start", size=11, bold=True)
        y += HEAD
        for law in some:
            _row(scene, law.slug, set(matrix.kills(law.slug)), columns, y)
            y += HIGH
    return Picture(scene, alt)


def _row(scene, law, dead, columns, y):
    x = LEFT
    words = law.replace("_", " ")
    scene.text(x - 6, y + 9.6, words, anchor="end", size=9.6)
    for names in columns:
        place = x, y + 1, CELL * len(names), HIGH - 2
        scene.box(*place, radius=1, fill="ink", alpha=0.07)
        for k, name in enumerate(names):
            if name in dead:
                place = x + CELL * k + 0.3, y + 1, CELL - 0.6, HIGH - 2
                scene.box(*place, radius=0.5, fill="wrong", alpha=1)
        x += CELL * len(names) + GAP
    scene.text(x - GAP + 4, y + 9.6, len(dead), anchor="start", size=9.6, role="muted")


def _pattern(matrix, name, order):
    """Return a key that sorts versions that break the same laws side by side."""
    broken = set(matrix.killed_by(name))
    return tuple(law not in broken for law in order)
