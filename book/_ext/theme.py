"""Sphinx extension: what the theme and other extensions need to be told.

A page loads the scripts that it uses, which it shows by a text in it, and one file with
all stylesheets, so that a slow line asks once for all of them. A build without a
warning leaves a mark, by which the tests of the pages know that they may open them.
"""

import functools
import gc
import re
from pathlib import Path

from pybtex import plugin
from pygments.formatters import HtmlFormatter
from pygments.token import Token
from sphinx.highlighting import PygmentsBridge

MARK = ".complete"
SHEETS = "_static/sheets.css"
# A file, and the text of a page that needs it; a stylesheet is everywhere or nowhere.
NEEDED_BY = {
    "sphinx-thebe": None,  # it asks other hosts
    "togglebutton": None,  # nothing here is folded by it
    "furo.js": None,  # it lays out the whole page to mark a section; see folds.js
    "sphinx-book-theme": None,  # Jupyter Book's usual theme, which this is not
    "design-tabs": None,
    "sphinx-design": None,  # no page has its cards or tabs
    "mystnb": None,  # 500 rules for coloured terminals; what cells need is in book.css
    "clipboard": '<div class="highlight">',
    "copybutton": '<div class="highlight">',
    "words.js": "std-term",
}
# A fold of code is a fold like others, and its name stands there once.
CODE_FOLD = re.compile(
    r'<details class="admonition hide(.*?<summary).*?<p [^>]*>(.*?)</p>.*?</summary>',
    re.DOTALL,
)
CORNER = (  # of a table, empty and so no header
    '<th class="head"><p></p></th>',
    '<td style="background: var(--color-table-header-background)"></td>',
)
ENTRY = ' role="doc-biblioentry"', ""  # which is for the items of lists
NAME_IN_CODE = re.compile(r'<span class="pre">[^<]*')


class Lean(HtmlFormatter):
    """Write code in which what has the colour of the text is text.

    This takes away every third element of a long page.
    """

    PLAIN = Token.Name, Token.Punctuation, Token.Text.Whitespace

    def format_unencoded(self, tokens, outfile):
        """Write the tokens of some code."""
        tokens = ((Token if t in self.PLAIN else t, text) for t, text in tokens)
        super().format_unencoded(tokens, outfile)


def is_needed(asset, body):
    """Return whether a page with this text uses a script, and any page a stylesheet."""
    inline = (getattr(asset, "attributes", None) or {}).get("body") or ""
    if "THEBE_JS_URL" in inline:
        return False
    for name, sign in NEEDED_BY.items():
        if name in str(asset.filename):
            is_sheet = str(asset.filename).endswith(".css")
            return sign is not None and (is_sheet or sign in body)
    return True


def join(app):
    """Write the one stylesheet that holds all others."""
    folder = Path(app.outdir)
    texts = [(folder / name).read_text(encoding="utf-8") for name in app.sheets]
    (folder / SHEETS).write_text("\n".join(texts), encoding="utf-8")


def choose(app, pagename, templatename, context, doctree):
    """Take off a page what it does not use, and what a screen reader stumbles over."""
    for key in ("body", "furo_navigation_tree"):
        text = context.get(key, "")
        context[key] = text.replace(' role="heading"', ' role="heading" aria-level="2"')
    code_fold = r'<details class="hide\1>\2</summary>'
    body = CODE_FOLD.sub(code_fold, context["body"]).replace(*CORNER).replace(*ENTRY)
    # where a line is too short for a long name, it breaks between two of its words
    body = NAME_IN_CODE.sub(lambda found: found[0].replace("_", "_<wbr>"), body)
    context["body"] = body
    for key in ("script_files", "css_files"):
        context[key] = [each for each in context[key] if is_needed(each, body)]
    if not hasattr(app, "sheets"):
        found = sorted(context["css_files"], key=lambda each: each.priority)
        app.sheets = [each.filename for each in found]
        join(app)  # so that pages can name its version
    context["css_files"] = [type(context["css_files"][0])(SHEETS)]


def name_style(app, config):
    """Choose the colours of code by night: the setting is the theme's own."""
    config.pygments_dark_style = "github-dark"


def begin(app):
    """Void the mark of an earlier build, and save the time of needless work."""
    (Path(app.outdir) / MARK).unlink(missing_ok=True)
    gc.set_threshold(200_000)  # trees that are all still needed hold no garbage
    if not hasattr(plugin.entry_points, "cache_info"):
        plugin.entry_points = functools.cache(plugin.entry_points)


def end(app, exception):
    """Mark the pages of a build that went through without a warning."""
    if not exception and hasattr(app, "sheets"):
        join(app)  # again, because the theme has added the colours of the night
    if not exception and not app._warncount and app.builder.name == "html":
        (Path(app.outdir) / MARK).touch()


def setup(app):
    """Register with Sphinx."""
    PygmentsBridge.html_formatter = Lean
    app.connect("config-inited", name_style)
    app.connect("builder-inited", begin)
    # the theme adds its scripts at the default priority, so this must come last
    app.connect("html-page-context", choose, priority=900)
    app.connect("build-finished", end, priority=1000)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
