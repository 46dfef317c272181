"""A picture that carries its own alt text and follows the theme of the page."""

import base64
import io
import re
from contextlib import AbstractContextManager
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from matplotlib import rc_context, style
from matplotlib.figure import Figure
from PIL import Image  # comes with matplotlib

from mha._figures import as_alt
from mha.plot.palette import LIGHT, ROLES, paint
from mha.plot.scene import SANS, Scene

INK = "#010203"  # drawn by matplotlib, replaced by currentColor in the SVG
COLOURS = {role: LIGHT[role] for role in (*ROLES, "amber", "olive", "muted", "rest")}
WIDTH = 6.0  # inches; the text column of the book
STYLE = Path(__file__).with_name("mha.mplstyle")
CSS = (
    "display: block; height: auto; margin: 0 auto; "
    f"font-family: {SANS}; stroke-linejoin: round; stroke-linecap: butt; "
    # in a notebook the picture is an image of its own, which needs a ground to lie on
    "background: var(--mha-ground, white)"
)
# What matplotlib writes and a page cannot use; its style element would even style
# the rest of the page.
TIDY = (
    (r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", ""),
    (r"\s+", " "),
    (r"> <", "><"),
    (r"<defs></defs>|<g/>", ""),
    (r"base64, ", "base64,"),
    (r' transform="rotate\(-?0 [^"]*"', ""),
    (r"font: ([\d.]+px) 'DejaVu Sans'", r"font-size: \1"),
    (r" font-family: 'DejaVu Sans'(, [^;\"]*)?;", ""),
    (INK, "currentColor"),
    *((f"(?i){colour}", paint(role)) for role, colour in COLOURS.items()),
)


class Picture:
    """Hold one finished figure as SVG for the screen and PNG for paper.

    Parameters
    ----------
    figure : matplotlib.figure.Figure or Scene
        What to show; it is rendered at once and not kept.
    alt : str
        One sentence with the finding, for readers who do not see the figure.

    Raises
    ------
    ValueError
        If `alt` is empty.
    """

    def __init__(self, figure: Figure | Scene, alt: str) -> None:
        self.alt = as_alt(alt)
        if isinstance(figure, Scene):  # its sheet is shown whole
            self.svg = figure.svg(self.alt)
            with house_style(), rc_context({"savefig.bbox": "standard"}):
                self.png = _small_png(figure.figure())
        else:
            self.svg = _inline_svg(figure, self.alt)
            self.png = _small_png(figure)

    def __repr__(self) -> str:
        return f"Picture: {self.alt}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {
            "text/plain": repr(self),
            "image/svg+xml": self.svg,
            "image/png": base64.b64encode(self.png).decode("ascii"),
        }


def house_style() -> AbstractContextManager[Any]:
    """Return a context: the style of the book, whatever the reader's own settings."""
    return style.context(["default", STYLE])


def _render(figure: Figure, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    figure.savefig(buffer, format=kind, metadata=metadata, **options)
    return buffer.getvalue()


def _small_png(figure: Figure) -> bytes:
    """Return the figure for paper, small: 256 colours are enough for it."""
    rough = {"compress_level": 0}  # it is packed below
    drawn = io.BytesIO(_render(figure, "png", facecolor="white", pil_kwargs=rough))
    buffer = io.BytesIO()
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(256).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def _inline_svg(figure: Figure, alt: str) -> str:
    """Return the figure as an SVG element that can share a page with others."""
    with rc_context({"svg.hashsalt": "mha"}):  # the same ids on every run
        drawn = _render(figure, "svg").decode("utf-8")
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn)[0]
    inside = drawn.partition("<svg")[2].partition(">")[2]
    for pattern, replacement in TIDY:
        inside = re.sub(pattern, replacement, inside, flags=re.DOTALL)
    pixels = float(width) * 4 / 3  # from points: the picture keeps its size, or shrinks
    return (
        '<svg class="mha-picture" xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width} {height}" width="{pixels:.0f}" '
        f'style="{CSS}; max-width: 100%" '
        f'role="img" aria-label="{escape(alt)}">{_own_ids(inside).strip()}'
    )


def _own_ids(svg: str) -> str:
    """Keep only the ids that are referred to, and make them unlike other pictures'."""
    prefix = "mha" + sha256(svg.encode()).hexdigest()[:8]
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', svg))

    def rename(match: re.Match[str]) -> str:
        return f' id="{prefix}-{match[1]}"' if match[1] in used else ""

    svg = re.sub(r'\s+id="([^"]+)"', rename, svg)
    return re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", svg)
