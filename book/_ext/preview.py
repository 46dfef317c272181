"""Sphinx extension: the picture that stands beside a link to a published page.

It is drawn from the logo while the book is built, and only for a book with an address:
without one nobody can ask for the picture.
"""

import textwrap
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

LOGO = Path(__file__).parent.parent / "_static" / "logo.svg"
PICTURE = "_static/preview.png"
WIDTH, HEIGHT = 1200, 630
SUBTITLE = (
    "Multi-head attention, built from a dot product upwards and taught by its laws"
)
TAGS = (
    f'<meta property="og:image:width" content="{WIDTH}" />',
    f'<meta property="og:image:height" content="{HEIGHT}" />',
    '<meta name="twitter:card" content="summary_large_image" />',
)


def squares(svg):
    """Yield x, y, side, radius and colour of the squares of the logo."""
    group = next(node for node in ElementTree.fromstring(svg) if node.get("fill"))
    for square in group:
        numbers = (float(square.get(key)) for key in ("x", "y", "width", "rx"))
        yield *numbers, square.get("fill", group.get("fill"))


def draw(title, path):
    """Draw the logo with the title beside it."""
    figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    axes.set_axis_off()
    for x, y, side, radius, colour in squares(LOGO.read_text("utf-8")):
        corner = (75 + 24 * (x + radius), 123 + 24 * (y + radius))
        inner, style = 24 * (side - 2 * radius), f"round,pad={24 * radius}"
        axes.add_patch(FancyBboxPatch(corner, inner, inner, style, fc=colour, lw=0))
    axes.text(530, 270, title, fontsize=53, weight="bold", va="bottom")
    text = textwrap.fill(SUBTITLE, 32)
    axes.text(533, 315, text, fontsize=24, va="top", linespacing=1.4, color="#444")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def announce(app, config):
    """Name the picture in every page of a book that has an address."""
    if config.html_baseurl:
        config.ogp_image = PICTURE
        config.ogp_image_alt = f"The logo of {config.project}: {SUBTITLE}"
        config.ogp_custom_meta_tags = [*config.ogp_custom_meta_tags, *TAGS]


def paint(app, exception):
    """Draw the picture of a book that has an address."""
    if not exception and app.config.ogp_image == PICTURE:
        draw(app.config.project, Path(app.outdir) / PICTURE)


def setup(app):
    """Register with Sphinx."""
    app.connect("config-inited", announce, priority=200)  # publish.py comes at 100
    app.connect("build-finished", paint)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
