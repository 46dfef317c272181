"""Maps of weights for a notebook: each follows the theme of a page and has alt text."""

import base64
import io
import math
import re
import textwrap
from collections.abc import Sequence
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path
    from PIL import Image  # comes with matplotlib
except ModuleNotFoundError as error:
    text = f'mha.plot needs matplotlib ({error}): pip install "matplotlib>=3.9"'
    raise ModuleNotFoundError(text, name=error.name) from error

__all__ = ["COLOURS", "Picture", "heatmap", "heatmaps"]

Array = NDArray[Any]
Kind = Literal["weights", "scores", "mask"]
COLOURS = {  # of the roles; a page may name its own, as --mha-query and so on
    "query": "#0B63C5", "key": "#B04E00", "value": "#007C66", "weight": "#25215F",
    "output": "#A0288A", "wrong": "#8A0F2E", "amber": "#8F6400", "olive": "#55701A",
    "muted": "#667180", "rest": "#C3C9D1", "ink": "#010203",
    "on1": "#000001", "on2": "#FEFFFF",  # numbers on middling and on dark weights
}  # fmt: skip
SHADES = 20
NUMBERS_UP_TO = 6  # a larger map has no room for numbers in its cells
# Points: a picture on a phone, a typical letter, and the room between two panels.
WIDEST, LETTER, GAP = 366, 5.9, 16
WIDEST_ON_PAGE = 736  # pixels of a column
STYLE: Any = {"font.family": "DejaVu Sans", "font.size": 9.5, "text.parse_math": False}
TIGHT: Any = {"savefig.bbox": "tight", "savefig.pad_inches": 0.02}
LOOK = (  # in a notebook the picture is an image of its own, which needs a ground
    "display: block; height: auto; margin: 0 auto; font-family: system-ui, "
    "-apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; stroke-linejoin: round; "
    "stroke-linecap: butt; background: var(--mha-ground, white); max-width: 100%"
)
TIDY = (  # what matplotlib writes and a page cannot use
    (r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", ""),
    (r' id="[\w.]*[a-zA-Z]_\d+"', ""),  # the others are hashes, and referred to
    (r"\s+", " "),
    (r"> <", "><"),
    (r"<defs></defs>|<g/>", ""),
    (r"font: ([\d.]+px) 'DejaVu Sans'", r"font-size: \1"),
    (r" font-family: 'DejaVu Sans'(, [^;\"]*)?;", ""),
    (r"(\d\.\d\d)\d+(?=[^<>]*>)", r"\1"),  # of points, and not what is written
    (f"(?i){COLOURS['ink']}", "currentColor"),
    *((f"(?i){x}", f"var(--mha-{role}, {x})") for role, x in COLOURS.items()),
)


class Picture:
    """Hold one finished figure of matplotlib: SVG for the screen, PNG for paper.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What to show; it is rendered at once and not kept. Where it has one of the
        `COLOURS`, the picture follows the theme of the page.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    svg : str, optional
        The same drawing as an SVG element, where something else has drawn it. Then
        the figure is shown whole, and otherwise without the margins around it.

    Raises
    ------
    ValueError
        If `alt` is empty.
    """

    def __init__(self, figure: Figure, alt: str, svg: str = "") -> None:
        if not isinstance(alt, str) or not alt.strip():
            raise ValueError("alt must say in one sentence what the picture shows")
        self.alt = alt.strip()
        self.svg = svg or _inline_svg(figure, self.alt)
        self.png = _small_png(figure, {} if svg else TIGHT)

    def __repr__(self) -> str:
        return f"Picture: {self.alt}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {
            "text/plain": repr(self),
            "image/svg+xml": self.svg,
            "image/png": base64.b64encode(self.png).decode("ascii"),
        }


def heatmap(
    A: ArrayLike, rows: Sequence[object] | None = None,
    cols: Sequence[object] | None = None, **look: Any,
) -> Picture:  # fmt: skip
    """Show one matrix as a heat map: queries are rows, keys are columns.

    Parameters
    ----------
    A : ndarray of shape (n_q, n_k)
        Weights, scores, or a boolean mask.
    rows, cols, look
        As in `heatmaps`; `alt` must be there.

    Returns
    -------
    picture : Picture
        Up to 6 by 6 each cell holds its number, to two decimals unless all scores are
        whole, and a masked cell only if its weight is not 0. A larger map has a legend.

    Examples
    --------
    >>> heatmap(np.eye(2), ["a", "b"], ["a", "b"], alt="Each token looks at itself.")
    Picture: Each token looks at itself.
    """
    return heatmaps([(A, "")], rows, cols, **look)


def heatmaps(
    panels: Sequence[tuple[ArrayLike, str]], rows: Sequence[object] | None = None,
    cols: Sequence[object] | None = None, *, alt: str, kind: Kind = "weights",
    mask: Any = None, xlabel: str = "key", ylabel: str = "query", unit: str = "",
) -> Picture:  # fmt: skip
    """Show matrices of one shape side by side, with the same tints.

    Parameters
    ----------
    panels : sequence of (ndarray of shape (n_q, n_k), str)
        Each matrix with the words that stand below it.
    rows, cols : sequence of n_q and of n_k names, optional
        Usually the tokens. None numbers the rows or columns from 0.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    kind : {"weights", "scores", "mask"}
        Weights run from the background (0) to one hue (1). Scores are tinted by their
        size; a score of ``-inf`` counts as masked. In a mask True means *may attend*.
    mask : bool ndarray that broadcasts to (n_q, n_k), optional
        Where it is False the cell is hatched.
    xlabel, ylabel, unit : str
        What a column, a row and a number stand for.

    Returns
    -------
    picture : Picture
        Up to four panels in a row, then a new row begins.

    Raises
    ------
    ValueError
        If names or masks do not fit, shapes differ, weights leave 0 to 1, or `alt` is
        empty.

    Examples
    --------
    >>> heatmaps([(np.eye(2), "right"), (1 - np.eye(2), "wrong")], alt="They differ.")
    Picture: They differ.
    """
    matrices = [np.asarray(A) for A, _ in panels]
    n_q_n_k = _checked(matrices, kind)
    down, across = (
        _names(name, names, n)
        for name, names, n in zip(("rows", "cols"), (rows, cols), n_q_n_k, strict=True)
    )
    low, most, digits = _range(matrices, kind)
    numbered = kind != "mask" and max(n_q_n_k) <= NUMBERS_UP_TO
    smallest: float = 10 if cols is not None else 0
    if numbered:
        longest = max(len(_written(x, digits)) for x in (low, most))
        smallest = 20 if kind == "weights" else max(20, 4 + 5.3 * longest)
    colour = "weight" if kind == "weights" else "ink"
    with rc_context(STYLE):
        figure = Figure((1, 1))  # inches; what is drawn around them is shown too
        below, labels = [words for _, words in panels], (xlabel, ylabel)
        frames, cell = _frames(figure, below, down, across, labels, smallest)
        for ax, A in zip(frames, matrices, strict=True):
            ax.spines[:].set(color=COLOURS[colour], linewidth=1.1)
            hidden = ~A if kind == "mask" else _hidden(A, mask)
            tints = np.where(np.isfinite(A), A, 0) / most
            _hatch(ax, hidden, A if numbered else None, cell)
            if numbered:
                # Of a score the sign is written; its tint leaves the number readable.
                tints = tints if colour == "weight" else 0.3 * np.abs(tints)
                _shades(ax, tints, colour, 100)
                _numbers(ax, A, hidden, tints, digits, cell)
            elif kind != "mask":
                _shades(ax, np.where(hidden, 0, tints), colour, SHADES)
            elif cell > 10:
                thin = {"colors": COLOURS["rest"], "lw": 0.8, "zorder": 0}
                ax.vlines(range(1, len(across)), 0, len(down), **thin)
                ax.hlines(range(1, len(down)), 0, len(across), **thin)
        if kind == "mask":
            hatched = {"fc": "none", "hatch": "////"}
            _legend(frames, {"may attend": {"fc": "none"}, "masked": hatched}, "")
        elif not numbered:
            shares = np.linspace(-1 if low < 0 else 0, 1, 5)
            marks = {_written(x * most, 2): {"fc": _tint(colour, x)} for x in shares}
            _legend(frames, marks, unit or kind.removesuffix("s"))
        return Picture(figure, alt)


def _checked(matrices: Sequence[Array], kind: Kind) -> tuple[int, ...]:
    """Return the shape that all matrices share."""
    if kind not in ("weights", "scores", "mask"):
        raise ValueError(f"kind must be weights, scores or mask, got {kind!r}")
    shape = matrices[0].shape
    for A in matrices:
        if A.ndim != 2 or 0 in A.shape:
            raise ValueError(f"A must have shape (n_q, n_k), got {A.shape}")
        if A.shape != shape:
            raise ValueError(f"panels must share a shape, got {shape} and {A.shape}")
        if kind == "mask" and A.dtype != bool:
            raise ValueError(f"a mask must be boolean, got {A.dtype}")
    return shape


def _hidden(A: Array, mask: Any) -> Array:
    """Return the cells to hatch."""
    mask = np.asarray(True if mask is None else mask)
    if mask.dtype != bool:
        raise ValueError(f"mask must be boolean, got {mask.dtype}")
    try:
        return ~np.broadcast_to(mask, A.shape) | np.isneginf(A)
    except ValueError:
        raise ValueError(f"mask of shape {mask.shape} does not fit {A.shape}") from None


def _names(argument: str, names: Sequence[object] | None, count: int) -> list[str]:
    names = [*(range(count) if names is None else names)]
    if len(names) != count:
        raise ValueError(f"{argument} has {len(names)} names for {count} of them")
    return [str(name) for name in names]


def _range(matrices: Sequence[Array], kind: Kind) -> tuple[float, float, int]:
    """Return the least number, what has the darkest tint, and digits to write."""
    values = np.concatenate([A[np.isfinite(A)] for A in matrices]).astype(float)
    low, high = values.min(initial=0), values.max(initial=0)
    if kind != "weights":
        return low, max(-low, high) or 1, 2 if np.any(values % 1) else 0
    if low < -1e-6 or high > 1 + 1e-6:
        raise ValueError(
            f"weights lie between 0 and 1, got {low:.3g} to {high:.3g}; "
            'use kind="scores" for signed numbers'
        )
    return 0, 1, 2


def _frames(
    figure: Figure, below: Sequence[str], rows: list[str], cols: list[str],
    labels: tuple[str, str], smallest: float,
) -> tuple[list[Any], float]:  # fmt: skip
    """Return an empty frame for each panel, and how wide a cell is, in points."""
    left, longest = (LETTER * max(map(len, names)) for names in (rows, cols))

    def largest(beside: int) -> float:
        room = (WIDEST - left - 23) / beside - GAP
        return min(room / len(cols), 40, 260 / len(rows))

    beside = max((m for m in (2, 3, 4) if largest(m) > smallest), default=1)
    beside = math.ceil(len(below) / math.ceil(len(below) / beside))
    cell, frames = largest(beside), []
    step = 1 if cell > 10 else math.ceil(20 / cell)  # names that share one place
    turned = longest > cell * step - 2
    wide, high = cell * len(cols), cell * len(rows)
    down = high + 60 + turned * longest  # what stands above and below a panel too
    quiet = {"color": COLOURS["muted"]}
    for k, words in enumerate(below):
        line, column = divmod(k, beside)
        x, y = column * (wide + GAP) / 72, -line * down / 72
        ax: Any = figure.add_axes((x, y, wide / 72, high / 72), fc="none")
        ax.set(xlim=(0, len(cols)), ylim=(len(rows), 0))
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        ax.set_xlabel(labels[0], **quiet)
        ax.set_ylabel("" if column else labels[1], **quiet)
        ax.set_xticks(np.arange(0, len(cols), step) + 0.5, cols[::step])
        ticks = np.arange(0, len(rows), step) + 0.5
        ax.set_yticks(ticks, [""] * len(ticks) if column else rows[::step])
        ax.tick_params(length=0, pad=3, labelcolor=COLOURS["ink"])
        ax.tick_params(axis="x", rotation=90 * turned)
        lines = textwrap.wrap(words, max(8, int((wide + GAP) / 5.2)))
        title = {"ha": "center", "va": "top", "color": COLOURS["ink"]}
        ax.text(len(cols) / 2, len(rows) + 5 / cell, "\n".join(lines), **title)
        frames.append(ax)
    return frames, cell


def _tint(colour: str, share: float) -> tuple[str, float]:
    """Return a role's colour, as dense as this; amber for what is negative."""
    return COLOURS["amber" if share < 0 else colour], abs(share)


def _shades(ax: Any, tints: Array, colour: str, shades: int) -> None:
    """Fill the cells, with one path for each shade."""
    levels = np.rint(tints * shades).astype(int)
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)])
    for level in np.unique(levels[levels != 0]).tolist():
        places = np.argwhere(levels == level)[:, ::-1]
        squares = (Path(place + square, closed=True) for place in places)
        fill = {"fc": _tint(colour, level / shades), "lw": 0, "aa": False}
        path = Path.make_compound_path(*squares)
        ax.add_patch(PathPatch(path, clip_on=False, **fill))


def _numbers(
    ax: Any, A: Array, hidden: Array, tints: Array, digits: int, cell: float
) -> None:
    """Write the number of each cell; a masked one has a number if a weight."""
    for (i, j), value in np.ndenumerate(A):
        if hidden[i, j] and value in (0, -np.inf):
            continue
        words, tint = _written(value, digits), tints[i, j]
        if cell < 26:
            words = words.removesuffix(".00").replace("0.", ".", 1)
        ink = "ink" if tint < 0.475 else "on1" if tint < 0.635 else "on2"
        size = min(10, (cell - 3) / (0.62 * len(words)))
        style = {"color": COLOURS[ink], "fontsize": size, "ha": "center"}
        ax.text(j + 0.5, i + 0.5, words, va="center_baseline", **style)


def _hatch(ax: Any, hidden: Array, A: Array | None, cell: float) -> None:
    """Hatch masked cells; without the middle stroke there is room for a number."""
    strokes = []
    for i, j in np.argwhere(hidden):
        written = A is not None and A[i, j] not in (0, -np.inf)
        whole = [(0, 1)] if cell <= 10 else [(0, 1), (0, 0.5), (0.5, 1)]
        for a, b in [(0, 0.3), (0.7, 1)] if written else whole:
            strokes.append(Path([(j + a, i + b), (j + b, i + a)]))
    if strokes:
        look = {"ec": COLOURS["muted"], "lw": 1 if cell > 10 else 0.6, "fill": False}
        path = Path.make_compound_path(*strokes)
        ax.add_patch(PathPatch(path, clip_on=False, **look))


def _legend(frames: Sequence[Any], marks: dict[str, Any], title: str) -> None:
    """Say below the panels what the tints mean, where no number does."""
    edge = {"ec": COLOURS["muted"], "lw": 0.6}
    boxes = [Rectangle((0, 0), 1, 1, **edge, **fill) for fill in marks.values()]
    last = frames[-1]
    lines = max(ax.texts[0].get_text().count("\n") + 1 for ax in frames)
    legend = last.figure.legend(
        boxes, marks, loc="upper left", ncols=len(boxes), title=title, frameon=False,
        bbox_to_anchor=(0, last.get_position().y0 - 0.17 * lines), borderpad=0,
        handlelength=1, handleheight=1, columnspacing=1, handletextpad=0.4,
        labelcolor=COLOURS["ink"], alignment="left",
    )  # fmt: skip
    legend.get_title().set_color(COLOURS["muted"])


def _written(value: float, digits: int) -> str:
    """Return a number as it stands in a cell, without a minus before zero."""
    if np.isneginf(value):
        return "−∞"
    text = f"{value:.{digits}f}".replace("-", "−")
    return text if text.strip("−0.") else text.removeprefix("−")


def _small_png(figure: Figure, settings: dict[str, Any]) -> bytes:
    """Return the figure for paper, small: 256 colours are enough for it."""
    drawn, buffer = io.BytesIO(), io.BytesIO()
    with rc_context(settings):
        figure.savefig(drawn, format="png", dpi=110, metadata={"Software": None})
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(256).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def _inline_svg(figure: Figure, alt: str) -> str:
    """Return the figure as an SVG element that can share a page with others."""
    buffer = io.BytesIO()
    with rc_context({**TIGHT, "svg.hashsalt": alt, "svg.fonttype": "none"}):
        ground: Any = {"facecolor": "none", "metadata": {"Date": None}}
        figure.savefig(buffer, format="svg", **ground)
    drawn = buffer.getvalue().decode("utf-8")
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn)[0]
    inside = drawn.partition("<svg")[2].partition(">")[2]
    for pattern, replacement in TIDY:
        inside = re.sub(pattern, replacement, inside, flags=re.DOTALL)
    pixels = min(float(width) * 4 / 3, WIDEST_ON_PAGE)  # from points
    return (
        '<svg class="mha-picture" xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width} {height}" width="{pixels:.0f}" '
        f'style="{LOOK}" role="img" aria-label="{escape(alt)}">{inside.strip()}'
    )
