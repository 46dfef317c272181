"""The emblem of the book: what a padded test says of wrong attention, and one word.

python -m figures.finding       in book: draws book/_static/finding.png, for the README
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from _data import stress_runs
from chapters import laws_until
from figures.live_encoder import NAMES, RIGHT
from figures.meaning import WIDE
from figures.picture import Picture
from figures.scene import Scene, picture
from mha import laws, zoo

PICTURE = Path(__file__).parents[1] / "_static" / "finding.png"
LAWS = laws_until("multi_head")
TOP, HIGH, NAME = 56, 27, 127  # where rows begin, how high they are, where names end
HEADING, SIZE = 11.3, 11.7  # points: on a phone no text has less than 11 pixels
FAR = 1.5  # points: a mean that is further below that of correct attention is red
TESTS = {  # of models that were trained in batches of similar lengths
    "sorted": ("batches of", "similar", "lengths"),
    "alone": ("the same", "words, one", "at a time"),
    "fixed": ("the same,", "padded to", "14 letters"),
}
PADDED = "batches", "padded to", "one length"


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


def headed(drawn: Scene, x: float, lines: Sequence[str], anchor: str) -> None:
    """Write the heading of a column in three lines."""
    for k, line in enumerate(lines):
        y = TOP - 36 + 14 * k
        drawn.text(x, y, line, size=HEADING, anchor=anchor, role="muted")


def named(drawn: Scene, y: float, name: str) -> None:
    """Write the name of a row; that of correct attention is marked."""
    if name == RIGHT:
        drawn.box(0, y, WIDE, HIGH, radius=6, fill="ink", alpha=0.06)
    look = {"size": SIZE, "bold": name == RIGHT, "anchor": "end"}
    drawn.text(NAME, y + 17, NAMES[name], **look)


def bar(
    drawn: Scene, x: float, y: float, shown: str, share: float, lost: float, wide: float
) -> None:
    """Draw an accuracy in per cent, with its number; 100 % would be so wide."""
    role = "weight" if lost < FAR else "wrong"
    drawn.box(x, y + 4, wide * share / 100, 17, radius=2.6, fill=role)
    drawn.text(x + 4, y + 17, f"{shown} %", size=SIZE, role="on2", anchor="start")


def finding() -> Picture:
    """Show both accuracies and the broken laws, for a column of text."""
    starts, wide, right = (NAME + 6, NAME + 102), 92, WIDE - 6
    drawn = Scene(WIDE, TOP + len(NAMES) * HIGH + 4)
    for x, lines in zip(starts, (PADDED, TESTS["alone"]), strict=True):
        headed(drawn, x, lines, "start")
    headed(drawn, right, ("laws", "broken,", f"of {len(LAWS)}"), "end")
    for k, row in enumerate(rows()):
        y = TOP + k * HIGH
        named(drawn, y, row.name)
        for x, test in zip(starts, ("padded", "alone"), strict=True):
            share, correct = getattr(row, test), getattr(rows()[0], test)
            bar(drawn, x, y, f"{share:.1f}", share, correct - share, wide)
        count, role = row.broken or "none", "wrong" if row.broken else "ink"
        drawn.text(right, y + 17, count, anchor="end", bold=True, role=role)
    return picture(drawn, alt())


def by_length() -> Picture:
    """Show the six, trained in batches of similar lengths, in three tests."""
    runs, wide, said = stress_runs.stored(), 72, []
    starts = [NAME + 6 + 76 * k for k in range(3)]
    drawn = Scene(WIDE, TOP + len(NAMES) * HIGH + 4)
    for x, lines in zip(starts, TESTS.values(), strict=True):
        headed(drawn, x, lines, "start")
    correct = stress_runs.select(runs, RIGHT, "sorted")
    for k, name in enumerate(NAMES):
        y, chosen = TOP + k * HIGH, stress_runs.select(runs, name, "sorted")
        named(drawn, y, name)
        numbers = []
        for x, test in zip(starts, TESTS, strict=True):
            shares = [100 * run[test] for run in chosen]
            number = f"{mean(shares):.1f}"
            lost = 100 * mean(run[test] for run in correct) - mean(shares)
            bar(drawn, x, y, number, mean(shares), lost, wide)
            # The line below the bar goes from the lowest seed to the highest.
            low, high = (x + wide * share / 100 for share in (min(shares), max(shares)))
            drawn.box(low, y + 22, high - low, 2.5, fill="muted")
            numbers.append(f"{number} %")
        said.append(f"{NAMES[name]} {', '.join(numbers)}")
    words = (
        "Accuracy of models trained in batches of similar lengths, tested in such "
        "batches, one word at a time, and padded to 14 letters: "
    )
    return picture(drawn, f"{words}{'; '.join(said)}.")


def main() -> None:
    """Draw the picture of the README."""
    PICTURE.write_bytes(finding().png)


if __name__ == "__main__":
    main()
