"""The emblem of the book: what a padded test says of wrong attention, and one word.

python -m figures.finding       in book: draws book/_static/finding.png, for the README
"""

from functools import cache
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from _data import stress_runs
from chapters import laws_until
from figures.live_encoder import NAMES, RIGHT
from figures.picture import Picture
from figures.scene import Scene, picture
from mha import laws, zoo

PICTURE = Path(__file__).parents[1] / "_static" / "finding.png"
LAWS = laws_until("multi_head")
TOP, HIGH, BAR = 58, 30, 150


class Row(NamedTuple):
    """One attention: mean accuracies in per cent, and how many laws it breaks."""

    name: str
    padded: float
    alone: float
    broken: int


@cache
def rows() -> tuple[Row, ...]:
    """Return the rows as chapter 13 stored them and as the laws find them now."""
    runs = stress_runs.stored()
    matrix = laws.kill_matrix(LAWS, [getattr(zoo, name) for name in NAMES])
    found = []
    for name in NAMES:
        chosen = stress_runs.select(runs, name)
        padded, alone = (
            100 * mean(run[column] for run in chosen) for column in ("fixed", "alone")
        )
        found.append(Row(name, padded, alone, len(matrix.killed_by(name))))
    return tuple(found)


def alt() -> str:
    """Return what the emblem shows, in words."""
    said = [
        f"{NAMES[row.name]} {row.padded:.0f} % padded and {row.alone:.0f} % one at a "
        f"time, {row.broken or 'no'} laws broken"
        for row in rows()
    ]
    return (
        "Accuracy on words that were not trained on, in batches padded to one length "
        f"and one word at a time: {'; '.join(said)}."
    )


def scene() -> Scene:
    """Draw two bars in each row, and the number of broken laws."""
    x_padded, x_alone, width = 184, 392, 690
    drawn = Scene(width, TOP + len(NAMES) * HIGH + 10)
    heads = {
        x_padded: ("tested in batches", "padded to one length"),
        x_alone: ("the same words,", "one at a time"),
    }
    for x, lines in heads.items():
        for y, line in zip((TOP - 34, TOP - 17), lines, strict=True):
            drawn.text(x, y, line, size=12.5, anchor="start", role="muted")
    for y, line in ((TOP - 34, "laws broken,"), (TOP - 17, f"of {len(LAWS)}")):
        drawn.text(width - 14, y, line, size=12.5, anchor="end", role="muted")
    for k, row in enumerate(rows()):
        y = TOP + k * HIGH
        if row.name == RIGHT:
            drawn.box(2, y - 3, width - 4, HIGH - 3, radius=6, fill="ink", alpha=0.06)
        look = {"size": 13.5, "bold": row.name == RIGHT}
        drawn.text(x_padded - 14, y + 15, NAMES[row.name], anchor="end", **look)
        fallen = "weight" if rows()[0].alone - row.alone < 1 else "wrong"
        bars = ((x_padded, row.padded, "weight"), (x_alone, row.alone, fallen))
        for x, share, role in bars:
            drawn.box(x, y + 3, BAR * share / 100, 15, radius=2.6, fill=role)
            place = x + BAR * 0.87, y + 15, f"{share:.0f} %"
            drawn.text(*place, size=13, anchor="start")
        count, role = str(row.broken or "none"), "wrong" if row.broken else "ink"
        place = width - 14, y + 15, count
        drawn.text(*place, anchor="end", size=13.5, bold=True, role=role)
    return drawn


def finding() -> Picture:
    """Show both accuracies and the broken laws, for a column of text."""
    return picture(scene(), alt())


def main() -> None:
    """Draw the picture of the README."""
    PICTURE.write_bytes(finding().png)


if __name__ == "__main__":
    main()
