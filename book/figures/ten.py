"""Ten wrong attentions of chapter 12 and the laws that each of them breaks."""

import json
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from chapters import chapter_number, chapter_of, laws_until
from figures.picture import Picture
from figures.scene import Scene, corners, picture
from mha import laws, zoo

BOOK = Path(__file__).parents[1]
STORE = BOOK / "_data" / "wrong_attention.json"
RIGHT = "right"
LAWS = laws_until("multi_head")
NAMES = {  # for a column of text, and for a phone
    RIGHT: ("correct attention", "correct"),
    "no_scale": ("no scale", "no scale"),
    "scale_sqrt_n": ("divides by √n", "√n"),
    "scale_sqrt_d_model": ("divides by √d_model", "√d_model"),
    "scale_after_softmax": ("scale after softmax", "scale late"),
    "softmax_over_queries": ("softmax over queries", "wrong axis"),
    "merge_without_transpose": ("merge, no transpose", "bad merge"),
    "split_without_transpose": ("split, no transpose", "bad split"),
    "input_split_before_projection": ("split before *W*", "early split"),
    "tied_query_key": ("same *W* for *Q* and *K*", "*W*_Q = *W*_K"),
    "no_output_projection": ("no *W*_O", "no *W*_O"),
}


class Row(NamedTuple):
    """One attention: its worst accuracy of five trainings, and the laws it breaks."""

    name: str
    accuracy: float
    broken: tuple[str, ...]


@cache
def rows() -> tuple[Row, ...]:
    """Return the rows as chapter 12 stored them and as the laws find them now.

    >>> [len(row.broken) for row in rows()]
    [0, 2, 4, 3, 5, 8, 10, 11, 9, 7, 3]
    """
    stored = json.loads(STORE.read_text(encoding="utf-8"))["reverse"]
    members = [getattr(zoo, name) for name in NAMES]
    found = laws.kill_matrix(LAWS, members)
    return tuple(Row(n, min(stored[n]), found.killed_by(n)) for n in NAMES)


def alt() -> str:
    """Return what the picture shows, in words."""
    counts = [str(len(row.broken)) for row in rows()[1:]]
    return (
        f"{len(rows())} attention layers in {len(rows())} rows. The accuracy of all of "
        f"them on reversing letters is {worst()} when rounded to three decimals. "
        f"Correct attention breaks none of {len(LAWS)} laws. The ten bugs break "
        f"{', '.join(counts[:-1])} and {counts[-1]}, each a different set."
    )


def worst() -> str:
    """Return the worst accuracy of all, as the picture prints it."""
    return f"{min(row.accuracy for row in rows()):.3f}"


class Layout(NamedTuple):
    """Where things are, in points."""

    width: float
    bars: float  # where the bars begin
    bar: float  # how long the longest one is
    laws: float  # where the laws begin
    side: float  # of the square of a law
    gap: float  # between the laws of two chapters
    high: float  # from row to row
    small: float  # size of what is written above the columns


LAYOUTS = {  # for the front page, for the column of a chapter, for a phone
    "wide": Layout(800, 184, 140, 380, 13.4, 7, 25, 12.5),
    "chapter": Layout(668, 172, 94, 320, 11.6, 5, 27, 12.5),
    "narrow": Layout(358, 74, 42, 158, 7.4, 2.6, 23, 11),
}


def ten(layout: str = "wide") -> Scene:
    """Draw it for a page ("wide"), a column of text ("chapter") or a phone."""
    plan, wide, top = LAYOUTS[layout], layout != "narrow", 48
    width, x_bar, bar, x_law, side, gap, high, small = plan
    scene = Scene(width, top + len(rows()) * high + 12)
    _columns(scene, x_bar, x_law, top, small, wide)
    places = {}
    for chapter, x, names in _groups(x_law, side, gap):
        middle = x + side * len(names) / 2
        scene.text(middle, top - 10, chapter, size=small, role="muted")
        places |= {name: x + side * k for k, name in enumerate(names)}
    for k, row in enumerate(rows()):
        y, middle = top + k * high, top + (k + 0.5) * high
        if row.name == RIGHT:
            scene.box(2, y + 1, width - 4, high - 2, radius=6, fill="ink", alpha=0.06)
        name, size = NAMES[row.name][not wide], 13.5 if wide else 11.2
        x = x_bar - (12 if wide else 6)
        look = {"anchor": "end", "size": size, "bold": row.name == RIGHT, "math": True}
        scene.text(x, middle + 4.5, name, **look)
        size = 12.5 if wide else 11.2
        place = x_bar, middle - 6.5, bar * row.accuracy, 13
        scene.box(*place, radius=2.6, fill="weight")
        place = x_bar + bar + 6, middle + 0.34 * size, f"{row.accuracy:.3f}"
        scene.text(*place, size=size, anchor="start")
        _tiles(scene, row, places, middle, side)
        if wide:
            count = str(len(row.broken) or "none")
            role = "wrong" if row.broken else "ink"
            place = width - 14, middle + 4.5, count
            scene.text(*place, anchor="end", size=13, bold=True, role=role)
    return scene


def bugs() -> Picture:
    """Show the accuracy of the ten, and the laws that each of them breaks.

    For a column of text; the page adds one for phones.

    >>> bugs().alt[:34]
    '11 attention layers in 11 rows. Th'
    """
    scene = ten("chapter")
    scene.key = "ten chapter"
    return picture(scene, alt())


def _columns(
    scene: Scene, x_bar: float, x_law: float, top: float, size: float, wide: bool
) -> None:
    """Write what the columns are."""
    look = {"size": size, "anchor": "start", "role": "muted"}
    if wide:
        scene.text(x_bar, top - 27, "accuracy on", **look)
        scene.text(x_bar, top - 10, "reversing letters", **look)
    else:
        scene.text(x_bar, top - 27, "accuracy", **look)
    scene.text(x_law, top - 27, "laws broken, by chapter", **look)


def _groups(x: float, side: float, gap: float) -> Iterator[tuple[str, float, list]]:
    """Yield each chapter that has laws, where its columns begin, and its laws."""
    for chapter, group in groupby(LAWS, key=lambda law: chapter_of(law.name)):
        names = [law.name for law in group]
        yield str(chapter_number(chapter)), x, names
        x += side * len(names) + gap


def _tiles(
    scene: Scene, row: Row, places: dict[str, float], middle: float, side: float
) -> None:
    """Draw a square for each law, red for a broken one."""
    for broken, role, alpha, d in ((False, "ink", 0.09, 1), (True, "wrong", 1, 0.5)):
        squares = [
            corners(x + d, middle - side / 2 + d, *[side - 2 * d] * 2)
            for name, x in places.items()
            if (name in row.broken) == broken
        ]
        scene.shape(*squares, fill=role, alpha=alpha, closed=True)
