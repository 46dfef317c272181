"""Arrows in the plane: vectors, shadows, and hands that positions turn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from figures.charts import INK, house_style
from figures.picture import COLOURS, Picture, finished
from mha import sinusoidal_positional_encoding

Array = NDArray[Any]
HANDS = (("hand 0", "amber", "-"), ("hand 1", "olive", "--"))
MOST = 4.9  # inches; on a phone type of 11 points then has 11 pixels


def shadows(
    pairs: Sequence[tuple[tuple[str, ArrayLike], tuple[str, ArrayLike]]], *, alt: str
) -> Picture:
    """Show dot products of a key and a query of the plane as shadow times length.

    Above each panel stand the length of the shadow, that of q, and their product.
    The shadow is negative where it falls on the other side of the origin.

    Parameters
    ----------
    pairs : sequence of ((name, k), (name, q))
        Each pair is a panel, in which k throws its shadow on the line of q.

    >>> shadows([(("k", (1, 1)), ("q", (2, 0)))], alt="Its shadow has length 1.")
    Picture: Its shadow has length 1.
    """
    read = [[(name, np.array(x, dtype=float)) for name, x in pair] for pair in pairs]
    corners = np.array([(0, 0), *(x for pair in read for _, x in pair)])
    low, high = corners.min(0), corners.max(0)
    pad = 0.28 * (high - low).max()
    across, up = high - low + 2 * pad
    limits = {
        "xlim": (low[0] - pad, high[0] + pad),
        "ylim": (low[1] - pad, high[1] + pad),
    }
    with house_style():
        width = min(2.3 * len(read), 4.6) / len(read)
        figure = Figure((width * len(read), width * up / across + 0.5))
        row = figure.subplots(1, len(read), squeeze=False)[0]
        for ax, (k, q) in zip(row, read, strict=True):
            _bare(ax, **limits)
            _shadow(ax, k, q, pad)
        return finished(figure, alt)


def clocks(words: Sequence[str], *, alt: str) -> Picture:
    """Show each word above a clock with two hands, and the four numbers of its tips.

    Both hands start at twelve and turn clockwise from word to word.

    Equation: P[t] = (sin t, cos t, sin t/100, cos t/100)  (chapter positions)

    Parameters
    ----------
    words : sequence of str
        The tokens at positions 0, 1, 2 and so on.

    >>> clocks(["dog", "food"], alt="Hand 0 turns by 57 degrees.")
    Picture: Hand 0 turns by 57 degrees.
    """
    P = sinusoidal_positional_encoding(len(words), 4)
    with house_style():
        figure = Figure((min(1.22 * len(words), MOST), 2.35))
        row = figure.subplots(1, len(words), squeeze=False)[0]
        for t, (ax, name) in enumerate(zip(row, words, strict=True)):
            _dial(ax, P[t].reshape(2, 2))
            ax.set_title(f"{name}\nposition {t}", fontsize=11)
            for k, tip in enumerate(P[t].reshape(2, 2)):
                says = ", ".join(f"{x:.2f}".replace("-", "−") for x in tip)
                look = {"color": COLOURS[HANDS[k][1]], "fontsize": 11, "ha": "center"}
                ax.text(0, -1.45 - 0.42 * k, says, va="center", **look)
        lines = row[0].get_lines()[-2:]
        figure.legend(lines, [h[0] for h in HANDS], loc="outside lower center", ncols=2)
        return finished(figure, alt)


def _bare(ax: Any, **limits: Any) -> None:
    """Leave only what is drawn, with equal units."""
    ax.set(aspect="equal", xticks=[], yticks=[], **limits)
    ax.grid(False)
    ax.spines[:].set_visible(False)


def _shadow(ax: Any, k: tuple[str, Array], q: tuple[str, Array], unit: float) -> None:
    """Draw k, q, and the shadow of k on the line of q."""
    (k_name, k_tip), (q_name, q_tip) = k, q
    length = np.linalg.norm(q_tip)
    along = q_tip / length
    shadow = k_tip @ along
    foot = shadow * along
    ax.axline((0, 0), along, color=INK, lw=0.8, alpha=0.5)
    wide = {"lw": 9, "color": COLOURS["key"], "alpha": 0.3}
    ax.plot(*zip((0, 0), foot, strict=True), solid_capstyle="butt", **wide)
    ax.plot(*zip(k_tip, foot, strict=True), lw=1.2, ls=":", color=INK)
    for tip, role in ((q_tip, "query"), (k_tip, "key")):
        look = {"arrowstyle": "-|>", "color": COLOURS[role], "lw": 2}
        ax.annotate("", tip, (0, 0), arrowprops=look | {"shrinkA": 0, "shrinkB": 0})
    across = np.array([along[1], -along[0]])
    away = across if across @ k_tip <= 0 else -across  # the side where k is not
    ahead = k_tip / (np.linalg.norm(k_tip) or 1)
    for name, at, role in (
        (f"{shadow:.3g}", foot / 2 + 0.55 * unit * away, "ink"),
        (q_name, q_tip + 0.45 * unit * away, "query"),
        (k_name, k_tip + 0.45 * unit * ahead, "key"),
    ):
        ax.text(*at, name, color=COLOURS[role], ha="center", va="center")
    ax.set_title(
        f"shadow of {k_name} on {q_name}:\n"
        f"{shadow:.3g} × {length:.3g} = {q_tip @ k_tip:.3g}",
        fontsize=11,
    )


def _dial(ax: Any, tips: Any) -> None:
    """Draw one clock: right is the sine, up is the cosine."""
    _bare(ax, xlim=(-1.2, 1.2), ylim=(-2.1, 1.2))
    angle = np.linspace(0, 2 * np.pi, 121)
    ax.fill(np.sin(angle), np.cos(angle), fill=False, edgecolor=INK, lw=1, alpha=0.5)
    for hour in np.arange(12) * np.pi / 6:
        ends = np.outer((0.9, 1), (np.sin(hour), np.cos(hour)))
        ax.plot(*ends.T, color=INK, lw=0.8, alpha=0.5)
    for (x, y), (_, role, dash), width in zip(tips, HANDS, (3.4, 1.8), strict=True):
        ax.plot((0, x), (0, y), dash, color=COLOURS[role], lw=width)
