"""Sphinx extension: the emblem and the logo as pictures, drawn in the build.

The emblem stands beside a link to a published page, only for a book with an address:
without one nobody can ask for it. The logo becomes two icons
for what reads no SVG.
"""

import struct
import sys
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.colors import to_rgb

from mha.plot.picture import house_style

sys.path.append(str(Path(__file__).parents[1]))  # the book's own figures
from figures.ten import card, card_alt

LOGO = Path(__file__).parent.parent / "_static" / "logo.svg"
PICTURE = "_static/preview.png"
ICON, TILE = "favicon.ico", "_static/apple-touch-icon.png"
LINKS = (
    '<link rel="icon" href="{root}favicon.ico" sizes="32x32" />'
    '<link rel="apple-touch-icon" href="{root}_static/apple-touch-icon.png" />'
)
WIDTH, HEIGHT = 1200, 630
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


def draw(path):
    """Draw the emblem of the book, with its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with house_style(), rc_context({"savefig.bbox": "standard"}):
        card().figure().savefig(path, dpi=72)


def raster(svg, side, *, margin=0.0, fine=4):
    """Return the logo as (side, side, 4) bytes: red, green, blue, opacity."""
    box = float(ElementTree.fromstring(svg).get("viewBox").split()[2])
    centres = (np.arange(side * fine) + 0.5) / (side * fine)
    at = box * ((centres - 0.5) * (1 + 2 * margin) + 0.5)
    image = np.zeros((side * fine, side * fine, 4))
    for x, y, width, radius, colour in squares(svg):
        half = width / 2 - radius
        across = np.maximum(abs(at - x - width / 2) - half, 0)
        down = np.maximum(abs(at - y - width / 2) - half, 0)
        inside = np.hypot(across[None, :], down[:, None]) <= radius
        image[inside] = (*to_rgb(colour), 1)
    blocks = image.reshape(side, fine, side, fine, 4)
    shares = blocks[..., 3:].mean(axis=(1, 3))
    colours = (blocks[..., :3] * blocks[..., 3:]).mean(axis=(1, 3))
    colours = colours / np.where(shares > 0, shares, 1)
    return np.rint(255 * np.concatenate([colours, shares], axis=-1)).astype(np.uint8)


def png(image):
    """Return the bytes of a PNG with opacity."""

    def chunk(kind, data):
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    height, width, _ = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


def ico(image):
    """Return the bytes of an icon file that holds one PNG."""
    data, side = png(image), len(image)
    entry = struct.pack("<BBBBHHII", side, side, 0, 0, 1, 32, len(data), 22)
    return struct.pack("<HHH", 0, 1, 1) + entry + data


def on_white(image):
    """Return a picture whose background is white instead of nothing."""
    share = image[..., 3:] / 255
    colours = share * image[..., :3] + (1 - share) * 255
    solid = np.full_like(image[..., 3:], 255)
    return np.concatenate([np.rint(colours).astype(np.uint8), solid], axis=-1)


def draw_icons(app, exception):
    """Draw the icons for browsers and for the start screens of phones."""
    if not exception and app.builder.name == "html":
        svg, out = LOGO.read_text("utf-8"), Path(app.outdir)
        (out / ICON).write_bytes(ico(raster(svg, 32)))
        (out / TILE).write_bytes(png(on_white(raster(svg, 180, margin=0.15))))


def link_icons(app, pagename, templatename, context, doctree):
    """Name the icons in a page."""
    root = "../" * pagename.count("/")
    context["metatags"] = context.get("metatags", "") + LINKS.format(root=root)


def announce(app, config):
    """Name the picture in every page of a book that has an address."""
    if config.html_baseurl:
        config.ogp_image = PICTURE
        config.ogp_image_alt = card_alt()
        config.ogp_custom_meta_tags = [*config.ogp_custom_meta_tags, *TAGS]


def paint(app, exception):
    """Draw the picture of a book that has an address."""
    if not exception and app.config.ogp_image == PICTURE:
        draw(Path(app.outdir) / PICTURE)


def setup(app):
    """Register with Sphinx."""
    app.connect("config-inited", announce, priority=200)  # publish.py comes at 100
    app.connect("build-finished", paint)
    app.connect("build-finished", draw_icons)
    app.connect("html-page-context", link_icons)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
