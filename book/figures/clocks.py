"""Clock hands under words: what a sinusoidal encoding adds to each of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from figures.picture import INK, WIDTH, Picture
from mha.plot.matrices import as_names
from mha.plot.palette import LIGHT
from mha.plot.picture import house_style
from mha.positions import sinusoidal_positional_encoding

HANDS = (("first hand", "query", "-"), ("second hand", "key", "--"))


def clocks(words: Sequence[object], *, alt: str) -> Picture:
    """Show each word above a clock with two hands, and the four numbers of its tips.

    Equation: P[t] = (sin t, cos t, sin t/100, cos t/100)  (chapter positions)

    Parameters
    ----------
    words : sequence of str
        The tokens at positions 0, 1, 2 and so on.
    alt : str
        One sentence with the finding, for readers who do not see the picture.

    Returns
    -------
    picture : Picture
        Both hands start at twelve and turn clockwise from word to word.

    Raises
    ------
    ValueError
        If there is no word, or `alt` is empty.

    Examples
    --------
    >>> clocks(["dog", "food"], alt="The first hand turns by 57 degrees.")
    Picture: The first hand turns by 57 degrees.
    """
    names = as_names("words", words, len(words), "words")
    if not names:
        raise ValueError("words must hold at least one word")
    P = sinusoidal_positional_encoding(len(names), 4)
    with house_style():
        figure = Figure((min(1.35 * len(names), WIDTH), 2.35))
        row = figure.subplots(1, len(names), squeeze=False)[0]
        for t, (ax, name) in enumerate(zip(row, names, strict=True)):
            _dial(ax, P[t].reshape(2, 2))
            ax.set_title(f"{name}\nposition {t}", fontsize=10)
            for k, tip in enumerate(P[t].reshape(2, 2)):
                says = ", ".join(f"{x:.2f}".replace("-", "−") for x in tip)
                ax.text(0, -1.42 - 0.36 * k, says, color=LIGHT[HANDS[k][1]],
                        ha="center", va="center", fontsize=9)  # fmt: skip
        lines = row[0].get_lines()[-2:]
        figure.legend(lines, [h[0] for h in HANDS], loc="outside lower center", ncols=2)
        return Picture(figure, alt)


def _dial(ax: Any, tips: Any) -> None:
    """Draw one clock: right is the sine, up is the cosine."""
    ax.set(aspect="equal", xticks=[], yticks=[], xlim=(-1.2, 1.2), ylim=(-1.95, 1.2))
    ax.grid(False)
    ax.spines[:].set_visible(False)
    angle = np.linspace(0, 2 * np.pi, 121)
    ax.fill(np.sin(angle), np.cos(angle), fill=False, edgecolor=INK, lw=1, alpha=0.5)
    for hour in np.arange(12) * np.pi / 6:
        ends = np.outer((0.9, 1), (np.sin(hour), np.cos(hour)))
        ax.plot(*ends.T, color=INK, lw=0.8, alpha=0.5)
    for (x, y), (_, role, dash), width in zip(tips, HANDS, (3.4, 1.8), strict=True):
        ax.plot((0, x), (0, y), dash, color=LIGHT[role], lw=width)
