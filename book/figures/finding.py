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
TOP, HIGH, BAR, SHORT_BAR = 58, 30, 150, 84
FAR = 1.5  # points: a mean that is further below that of correct attention is red
TESTS = {  # of models that were trained in batches of similar lengths
    "sorted": ("tested in batches", "of similar lengths"),
    "alone": ("the same words,", "one at a time"),
    "fixed": ("the same words,", "padded to 14 letters"),
}


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


def headed(drawn: Scene, columns: dict[float, tuple[str, str]], anchor: str) -> None:
    """Write a heading of two lines above each column."""
    for x, lines in columns.items():
        for y, line in zip((TOP - 39, TOP - 16), lines, strict=True):
            drawn.text(x, y, line, size=12.5, anchor=anchor, role="muted")


def named(drawn: Scene, y: float, name: str, x: float) -> None:
    """Write the name of a row; that of correct attention is marked."""
    if name == RIGHT:
        wide = drawn.width - 4
        drawn.box(2, y - 3, wide, HIGH - 3, radius=6, fill="ink", alpha=0.06)
    look = {"size": 13.5, "bold": name == RIGHT}
    drawn.text(x, y + 15, NAMES[name], anchor="end", **look)


def bar(
    drawn: Scene, x: float, y: float, shown: str, share: float, role: str, wide: float
) -> None:
    """Draw an accuracy in per cent, with its number; 100 % would be so wide."""
    drawn.box(x, y + 3, wide * share / 100, 15, radius=2.6, fill=role)
    drawn.text(x + wide * 0.87, y + 15, f"{shown} %", size=13, anchor="start")


def scene() -> Scene:
    """Draw two bars in each row, and the number of broken laws."""
    x_padded, x_alone, width = 184, 392, 690
    drawn = Scene(width, TOP + len(NAMES) * HIGH + 10)
    padded = "tested in batches", "padded to one length"
    alone = "the same words,", "one at a time"
    headed(drawn, {x_padded: padded, x_alone: alone}, "start")
    headed(drawn, {width - 14: ("laws broken,", f"of {len(LAWS)}")}, "end")
    for k, row in enumerate(rows()):
        y = TOP + k * HIGH
        named(drawn, y, row.name, x_padded - 14)
        bar(drawn, x_padded, y, f"{row.padded:.0f}", row.padded, "weight", BAR)
        fallen = "weight" if rows()[0].alone - row.alone < FAR else "wrong"
        bar(drawn, x_alone, y, f"{row.alone:.0f}", row.alone, fallen, BAR)
        count, role = str(row.broken or "none"), "wrong" if row.broken else "ink"
        place = width - 14, y + 15, count
        drawn.text(*place, anchor="end", size=13.5, bold=True, role=role)
    return drawn


def finding() -> Picture:
    """Show both accuracies and the broken laws, for a column of text."""
    return picture(scene(), alt())


def by_length() -> Picture:
    """Show the six, trained in batches of similar lengths, in three tests."""
    runs, starts, wide = stress_runs.stored(), (158, 292, 426), SHORT_BAR
    columns = dict(zip(starts, TESTS.values(), strict=True))
    drawn, said = Scene(556, TOP + len(NAMES) * HIGH + 10), []
    headed(drawn, columns, "start")
    correct = stress_runs.select(runs, RIGHT, "sorted")
    for k, name in enumerate(NAMES):
        y, chosen = TOP + k * HIGH, stress_runs.select(runs, name, "sorted")
        named(drawn, y, name, starts[0] - 12)
        numbers = []
        for x, test in zip(starts, TESTS, strict=True):
            shares = [100 * run[test] for run in chosen]
            lost = 100 * mean(run[test] for run in correct) - mean(shares)
            number, role = f"{mean(shares):.1f}", "weight" if lost < FAR else "wrong"
            bar(drawn, x, y, number, mean(shares), role, wide)
            # The line below the bar goes from the lowest seed to the highest.
            low, high = (x + wide * share / 100 for share in (min(shares), max(shares)))
            drawn.box(low, y + 20, high - low, 2.5, fill="muted")
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
