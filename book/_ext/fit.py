"""Sphinx extension: code, outputs, pictures and tables fit their column.

The width of a block of text and the indent of each of its lines become numbers for the
stylesheet, page.css, which then sets a block a little smaller, or breaks a line and
sets the rest of it in. Small text in a picture gets the size that it needs on a phone.
There a row of a wide table becomes a card, each cell below the head of its column. A
table of short numbers stays a table, because it is a matrix.
"""

import re

from bs4 import BeautifulSoup
from docutils import nodes
from pygments.formatters import HtmlFormatter
from pygments.token import Name, Punctuation, Text, Whitespace

NARROW = 40  # characters that fit everywhere
COLUMN, LEAST = 358, 9.2  # px: a picture on a phone, and text that can be read on it
DRAWING = re.compile(
    r'(<svg class="mha-picture"[^>]*?viewBox="0 0 ([\d.]+) [^>]*style=")(.*?</svg>)',
    re.DOTALL,
)
TABLE = re.compile(r'<table class="table">.*?</table>', re.DOTALL)
MANY = 4  # columns that a phone cannot show side by side, except for short numbers
LETTERS = 32  # that fit side by side there, beside the spaces between the columns
# An element keeps its meaning for a screen reader when the stylesheet makes it a block.
ROLES = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tr": "row",
         "th": "columnheader", "td": "cell"}  # fmt: skip
CODE = re.compile(r"(<code\b[^>]*>)(.*?)(</code>)", re.DOTALL)
# Kinds of code that have the colour of the text around them, so that a tag around each
# (half of all tags on some pages) would only make a browser slow.
PLAIN = (Name, Name.Namespace, Punctuation, Whitespace)
SIZE = re.compile(r"font-size: ([\d.]+)px")


class Lines(HtmlFormatter):
    """Write each line of a block as an element that says how far it is indented.

    Only code of another colour than the text becomes an element within the line.
    """

    def wrap(self, source):
        """Return the block; its lines are read before its first tag is written."""
        return super().wrap(iter(list(source)))

    def _format_lines(self, tokensource):
        tokens = [(Text if kind in PLAIN else kind, text) for kind, text in tokensource]
        lines = "".join(value for _, value in tokens).split("\n")
        widest = max(map(len, lines))
        if widest > NARROW:
            self.cssstyles = f"--columns: {widest}"
        for kind, html in super()._format_lines(tokens):
            yield kind, line(html) if kind and widest > NARROW else html


def line(html):
    """Return one line within an element of its own, the line break behind it."""
    text = html.removesuffix("\n")
    plain = re.sub("<[^>]*>", "", text)
    indent = len(plain) - len(plain.lstrip(" "))
    style = f' style="--indent: {indent}"' if indent else ""
    return f'<span class="line"{style}>{text}</span>\n' if plain else html


def legible(found):
    """Return a drawing whose small text grows where the drawing is small."""
    head, width, rest = found.groups()
    least = LEAST * float(width) / COLUMN

    def grow(size):
        small = float(size[1]) < least
        return f"font-size: max({size[1]}px, var(--least, 0px))" if small else size[0]

    return f"{head}--on-a-phone: {least:.2f}px; {SIZE.sub(grow, rest)}"


def enlarge(app, tree, docname):
    """Let the pictures of a page grow their text."""
    if app.builder.format != "html":
        return
    for node in list(tree.findall(nodes.raw)):
        if "mha-picture" in node.astext():
            text = DRAWING.sub(legible, node.astext())
            node.replace_self(nodes.raw("", text, format=node["format"]))


def breakable(found):
    """Return code in which a name may break behind its underlines and commas."""
    inside = re.sub(r"(?<=[_,.(])(?=[\w*])(?![^<]*>)", "<wbr>", found[2])
    return found[1] + inside + found[3]


def is_matrix(heads, soup):
    """Return whether a table has only short numbers beside the names of its rows."""
    rows = [[cell.get_text().strip() for cell in row.find_all("td")]
            for row in soup.select("tbody tr")]  # fmt: skip
    words = [max(map(len, head.split()), default=0) for head in heads]
    widths = [max(map(len, column)) for column in zip(*rows, strict=False)]
    letters = sum(max(pair) for pair in zip(words, widths, strict=False))
    numbers = "".join(cell for row in rows for cell in row[1:])
    return letters <= LETTERS and not re.search(r"[^\W\d_]", numbers)


def table(found):
    """Return a table that a phone can show."""
    html = CODE.sub(breakable, found[0])
    soup = BeautifulSoup(html, "html.parser")
    heads = [" ".join(head.get_text().split()) for head in soup.select("thead th")]
    if len(heads) < MANY or is_matrix(heads, soup):
        return html
    soup.table["class"] = "table cards"
    for tag, role in ROLES.items():
        for node in soup.find_all(tag):
            node["role"] = role
    for row in soup.select("tbody tr"):
        for head, cell in zip(heads, row.find_all("td"), strict=False):
            cell["data-head"] = head
    return str(soup)


def show_tables(app, pagename, templatename, context, doctree):
    """Let the tables of a page fit a phone."""
    if doctree and '<table class="table">' in context["body"]:
        context["body"] = TABLE.sub(table, context["body"])


def write_lines(app):
    """Let the highlighter write lines."""
    if app.builder.format == "html":
        app.builder.highlighter.formatter = Lines


def setup(app):
    """Register with Sphinx."""
    app.connect("builder-inited", write_lines)
    app.connect("doctree-resolved", enlarge)
    app.connect("html-page-context", show_tables)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
