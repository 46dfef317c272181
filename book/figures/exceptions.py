"""Designs and laws: what each design breaks on purpose, and what it still satisfies."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from figures.picture import INK, WIDTH, Picture
from mha.plot.palette import LIGHT
from mha.plot.picture import house_style

LETTER, ROW = 0.078, 0.2  # inches
LOOKS: dict[str, dict[str, Any]] = {
    "broken on purpose": {"marker": "s", "color": LIGHT["wrong"], "s": 62},
    "satisfied": {"marker": "o", "color": INK, "s": 4, "alpha": 0.5},
    "not asked": {"marker": "_", "color": INK, "s": 26, "alpha": 0.5},
}


def exceptions(table: Mapping[str, Mapping[str, str]], *, alt: str) -> Picture:
    """Show which laws each design breaks, one column per design.

    Laws that every design satisfies are left out.

    Parameters
    ----------
    table : dict {design: {law: "broken on purpose", "satisfied" or "not asked"}}
        The laws of the first design, in their order, are those of all.
    alt : str
        One sentence with the finding, for readers who do not see the picture.

    Returns
    -------
    picture : Picture
        The laws that are broken most often come first.

    Raises
    ------
    ValueError
        If no design breaks a law, a word is unknown, or `alt` is empty.

    Examples
    --------
    >>> found = {"rotary": {"order": "broken on purpose", "rows": "satisfied"}}
    >>> exceptions(found, alt="Rotary positions break one law.")
    Picture: Rotary positions break one law.
    """
    laws = broken(table)
    if unknown := {w for row in table.values() for w in row.values()} - set(LOOKS):
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    if not laws:
        raise ValueError("no design breaks a law")
    left, top = (LETTER * max(map(len, names)) for names in (laws, table))
    cell = min(0.3, (WIDTH - left - 0.4) / len(table))
    shown = {row[law] for row in table.values() for law in laws}
    words = [word for word in LOOKS if word in shown]
    size = left + cell * len(table) + 0.4, ROW * len(laws) + top + 0.75
    with house_style():
        figure = Figure(size)
        ax: Any = figure.subplots()
        handles = [_marks(ax, table, laws, word) for word in words]
        ax.set(xlim=(-0.6, len(table) - 0.4), ylim=(len(laws) - 0.4, -0.6))
        ax.grid(False)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0, labelsize=9)
        ax.xaxis.tick_top()
        ax.set_xticks(range(len(table)), table, rotation=90)
        ax.set_yticks(range(len(laws)), [law.replace("_", " ") for law in laws])
        figure.legend(handles, words, loc="outside lower center", ncols=len(words))
        return Picture(figure, alt)


def broken(table: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the laws that some design breaks, those broken most often first.

    Examples
    --------
    >>> broken({"a": {"x": "satisfied", "y": "broken on purpose"}})
    ['y']
    """
    laws = list(next(iter(table.values()), ()))
    counts = {
        law: sum(row[law] == "broken on purpose" for row in table.values())
        for law in laws
    }
    return sorted(filter(counts.get, laws), key=lambda law: -counts[law])


def _marks(
    ax: Any, table: Mapping[str, Mapping[str, str]], laws: Sequence[str], word: str
) -> Any:
    """Draw all marks of one kind."""
    places = [
        (x, y)
        for x, row in enumerate(table.values())
        for y, law in enumerate(laws)
        if row[law] == word
    ]
    xs, ys = zip(*places, strict=True) if places else ((), ())
    return ax.scatter(
        xs, ys, linewidths=1.2 if word == "not asked" else 0, **LOOKS[word]
    )
