"""What matplotlib has drawn, as a picture that follows the theme of the page."""

import io
import re
from hashlib import sha256
from html import escape

from matplotlib import rc_context
from matplotlib.figure import Figure

from mha import plot
from mha._figures import as_alt
from mha.plot.palette import LIGHT, ROLES, paint
from mha.plot.picture import small_png
from mha.plot.scene import SANS, WIDEST

INK = "#010203"  # drawn by matplotlib, replaced by currentColor in the SVG
COLOURS = {role: LIGHT[role] for role in (*ROLES, "amber", "olive", "muted", "rest")}
WIDTH = 6.0  # inches; the text column of the book
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


class Picture(plot.Picture):
    """Hold one finished figure of matplotlib as SVG and PNG.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What to show; it is rendered at once and not kept.
    alt : str
        One sentence with the finding, for readers who do not see the figure.

    Raises
    ------
    ValueError
        If `alt` is empty.
    """

    def __init__(self, figure: Figure, alt: str) -> None:
        self.alt = as_alt(alt)
        self.svg = _inline_svg(figure, self.alt)
        self.png = small_png(figure)


def _inline_svg(figure: Figure, alt: str) -> str:
    """Return the figure as an SVG element that can share a page with others."""
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "mha"}):  # the same ids on every run
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    drawn = buffer.getvalue().decode("utf-8")
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn)[0]
    inside = drawn.partition("<svg")[2].partition(">")[2]
    for pattern, replacement in TIDY:
        inside = re.sub(pattern, replacement, inside, flags=re.DOTALL)
    pixels = min(float(width) * 4 / 3, WIDEST)  # from points; the page may shrink it
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
