"""Sphinx extension: figures and outputs that can be read on a phone.

Printed sentences wrap there, while a printed table scrolls. Small text in a picture
gets the size that it needs. The live house has a narrow layout: a notebook shows the
wide one, the page gets both, and its stylesheet shows the one that fits. A notebook has
the script of a live figure inside; all pages share one file, and none waits for it.
"""

import json
import re
from hashlib import sha256
from pathlib import Path

from docutils import nodes

from figures.ten import alt as ten_alt
from figures.ten import ten

COLUMN, LEAST = 358, 9.2  # px: a picture on a phone, and text that can be read on it
PICTURE = re.compile(r'<svg class="mha-picture".*?</svg>', re.DOTALL)
SIZE = re.compile(r"font-size: ([\d.]+)px")
SIZE_OF_TEXT = re.compile(r'font-size="([\d.]+)"')  # of an element without a style
WIDTH = re.compile(r'viewBox="0 0 ([\d.]+) ')
KEY = re.compile(r'data-key="ten ([^"]+)"')
# An image for notebooks, beside the data of a live figure that has drawings too.
STILL = re.compile(
    r'(<div class="still">)<img [^>]*>(</div><script [^>]*>)(.*?)(</script>)'
)
LIVE = re.compile(
    r'(mha-view mha-(\w+)" .*?<script)>(\(\(\) => \{ const root = .*?)</script>',
    re.DOTALL,
)


def legible(svg):
    """Return a drawing whose small text grows where the drawing is small."""
    least = LEAST * float(WIDTH.search(svg)[1]) / COLUMN

    def grow(size):
        small = float(size[1]) < least
        return f"font-size: max({size[1]}px, var(--least, 0px))" if small else size[0]

    style = f'style="--on-a-phone: {least:.2f}px; '
    svg = SIZE_OF_TEXT.sub(r'style="font-size: \1px"', svg)
    return SIZE.sub(grow, svg).replace('style="', style, 1)


def both(found):
    """Return a drawing for a page, and beside it the narrow layout if it has one."""
    wide = legible(found[0])
    if not KEY.search(wide):
        return wide
    scene = ten("narrow")
    scene.key = ""
    return beside(wide, legible(scene.svg(ten_alt())))


def beside(wide, narrow):
    """Return two layouts, of which a page shows the one that fits."""
    return (
        f'<div class="mha-wide">{wide}</div>'
        f'<div class="mha-narrow" style="display: none">{narrow}</div>'
    )


def drawn(found):
    """Return a live figure whose still is what it draws, instead of an image."""
    before, between, data, after = found.groups()
    data = json.loads(data)
    if not (stills := data.pop("stills", None)):
        return found[0]
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return before + beside(**stills) + between + text.replace("<", "\\u003c") + after


def shared(app, docname, text):
    """Return a live figure whose script is a file beside the pages."""

    def move(found):
        figure, kind, code = found.groups()
        code = re.sub(r'\[data-view="\w+"\]', "[data-view]", code)
        path = Path(app.outdir, "_static", "live", f"{kind}.js")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
        up = app.builder.get_relative_uri(docname, "index").removesuffix("index.html")
        version = sha256(code.encode()).hexdigest()[:8]
        source = f"{up}_static/live/{kind}.js?v={version}"
        return f'{figure} defer src="{source}"></script>'

    return LIVE.sub(move, text)


def fit(app, tree, docname):
    """Let the pictures and the outputs of a page fit a phone."""
    if app.builder.format != "html":
        return
    for node in tree.findall(nodes.literal_block):
        text = node.astext().strip()
        if "\n" not in text or not re.search(r"\S  ", text):  # nothing is aligned
            node["classes"].append("sentences")
    for node in list(tree.findall(nodes.raw)):
        text = shared(app, docname, STILL.sub(drawn, PICTURE.sub(both, node.astext())))
        node.replace_self(nodes.raw("", text, format=node["format"]))


def setup(app):
    """Register with Sphinx."""
    app.connect("doctree-resolved", fit)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
