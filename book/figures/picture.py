"""What matplotlib has drawn, as a picture that follows the theme of a page."""

import io
import re
from html import escape
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from PIL import Image

from mha.plot import Picture

COLOURS = {  # of the roles; a page has its own, as --mha-query and so on
    "query": "#0B63C5", "key": "#B04E00", "value": "#007C66", "weight": "#25215F",
    "output": "#A0288A", "wrong": "#8A0F2E", "amber": "#8F6400", "olive": "#55701A",
    "muted": "#667180", "rest": "#C3C9D1", "ink": "#010203",
}  # fmt: skip
# Pixels of a column, because a notebook draws a picture as wide as the picture says.
WIDEST = 736
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
LOOK = (  # in a notebook the picture is an image of its own, which needs a ground
    f"display: block; height: auto; margin: 0 auto; font-family: {SANS}; "
    "stroke-linejoin: round; stroke-linecap: butt; background: var(--mha-ground, "
    "white); max-width: 100%"
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
TIGHT: Any = {"savefig.bbox": "tight", "savefig.pad_inches": 0.02}


def finished(figure: Figure, alt: str, svg: str = "") -> Picture:
    """Return one finished figure: SVG for the screen, PNG for paper, words for the ear.

    Where a figure of matplotlib has one of the `COLOURS`, it follows the theme of the
    page. `svg` is the same drawing where something else has drawn it; then the figure
    is shown whole, and otherwise without the margins around it. Both are made at once,
    while the style of the book is set.
    """
    settings = {} if svg else TIGHT
    # The SVG comes first, because saving a figure can move its layout a little.
    svg = svg or _inline_svg(figure, alt.strip())
    return Picture(figure, alt, svg=svg, png=_small_png(figure, settings))


def _small_png(figure: Figure, settings: dict[str, Any]) -> bytes:
    """Return the figure for paper, small: 256 colours are enough for it."""
    drawn, buffer = io.BytesIO(), io.BytesIO()
    with rc_context(settings):
        ground = {"facecolor": "white", "metadata": {"Software": None}}
        figure.savefig(drawn, format="png", dpi=110, **ground)
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(256).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def _inline_svg(figure: Figure, alt: str) -> str:
    """Return the figure as an SVG element that can share a page with others."""
    buffer = io.BytesIO()
    with rc_context({**TIGHT, "svg.hashsalt": alt, "svg.fonttype": "none"}):
        ground = {"facecolor": "none", "metadata": {"Date": None}}
        figure.savefig(buffer, format="svg", **ground)
    drawn = buffer.getvalue().decode("utf-8")
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn)[0]
    inside = drawn.partition("<svg")[2].partition(">")[2]
    for pattern, replacement in TIDY:
        inside = re.sub(pattern, replacement, inside, flags=re.DOTALL)
    pixels = min(float(width) * 4 / 3, WIDEST)  # from points
    return (
        '<svg class="mha-picture" xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width} {height}" width="{pixels:.0f}" '
        f'style="{LOOK}" role="img" aria-label="{escape(alt)}">{inside.strip()}'
    )
