"""Clocks whose hands are turned by the position of a word."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from figures.charts import INK, house_style
from figures.picture import COLOURS, Picture, finished
from mha import sinusoidal_positional_encoding

Array = NDArray[Any]
HANDS = (("hand 0", "amber", "-"), ("hand 1", "olive", "--"))
MOST = 4.9  # inches; on a phone type of 11 points then has 11 pixels


def clocks(words: Mapping[int, str], *, alt: str) -> Picture:
    """Show each word above a clock with two hands, and the four numbers of its tips.

    Both hands start at twelve and turn clockwise from word to word.

    Equation: P[t] = (sin t, cos t, sin t/100, cos t/100)  (chapter positions)

    Parameters
    ----------
    words : dict {position: token}
        What stands at the positions that are shown.

    >>> clocks({0: "dog", 1: "food"}, alt="Hand 0 turns by 57 degrees.")
    Picture: Hand 0 turns by 57 degrees.
    """
    P = sinusoidal_positional_encoding(max(words) + 1, 4)
    with house_style():
        figure = Figure((min(1.22 * len(words), MOST), 2.35))
        row = figure.subplots(1, len(words), squeeze=False)[0]
        for ax, (t, name) in zip(row, words.items(), strict=True):
            _dial(ax, P[t].reshape(2, 2))
            ax.set_title(f"{name}\nposition {t}", fontsize=11)
            for k, tip in enumerate(P[t].reshape(2, 2)):
                says = ", ".join(f"{x:.2f}".replace("-", "−") for x in tip)
                look = {"color": COLOURS[HANDS[k][1]], "fontsize": 11, "ha": "center"}
                ax.text(0, -1.5 - 0.55 * k, says, va="center", **look)
        lines = row[0].get_lines()[-2:]
        figure.legend(lines, [h[0] for h in HANDS], loc="outside lower center", ncols=2)
        return finished(figure, alt)


def _bare(ax: Any, **limits: Any) -> None:
    """Leave only what is drawn, with equal units."""
    ax.set(aspect="equal", xticks=[], yticks=[], **limits)
    ax.grid(False)
    ax.spines[:].set_visible(False)


def _dial(ax: Any, tips: Any) -> None:
    """Draw one clock: right is the sine, up is the cosine."""
    _bare(ax, xlim=(-1.2, 1.2), ylim=(-2.3, 1.2))
    angle = np.linspace(0, 2 * np.pi, 121)
    ax.fill(np.sin(angle), np.cos(angle), fill=False, edgecolor=INK, lw=1, alpha=0.5)
    for hour in np.arange(12) * np.pi / 6:
        ends = np.outer((0.9, 1), (np.sin(hour), np.cos(hour)))
        ax.plot(*ends.T, color=INK, lw=0.8, alpha=0.5)
    for (x, y), (_, role, dash), width in zip(tips, HANDS, (3.4, 1.8), strict=True):
        ax.plot((0, x), (0, y), dash, color=COLOURS[role], lw=width)
