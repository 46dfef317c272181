"""Sphinx extension: a page loads what it uses, and nothing else.

The theme loads all 2000 icons of Font Awesome, the index of the search and the scripts
of tabs and buttons on every page. Here the few icons become drawings within the page,
and a script goes where nothing on the page needs it.
"""

import re
import shutil
from pathlib import Path

# A file, and the text by which a page shows that it needs it.
NEEDED_BY = {
    "scripts/fontawesome.js": None,
    "searchtools.js": 'id="search-results"',
    "language_data.js": 'id="search-results"',
    "searchindex.js": 'id="search-results"',
    "design-tabs.js": "sd-tab-set",
    "togglebutton.js": "admonition dropdown",
    "clipboard.min.js": '<div class="highlight">',
    "copybutton.js": '<div class="highlight">',
}
# What the theme writes and a screen reader stumbles over, or a browser waits for.
MENDED = {
    '<summary aria-label="Toggle hidden content">': "<summary>",  # it has a text
    '<div id="pst-primary-sidebar" ': (
        '<div id="pst-primary-sidebar" role="region" aria-label="Sidebar" '
    ),
    '<summary><span class="toctree-toggle"': (
        '<summary aria-label="Pages of this part"><span class="toctree-toggle"'
    ),
    ' role="doc-biblioentry"': "",  # a role that is no longer one
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    "styles/theme.css?": "basic.css?",  # which it does nothing but import
    # without a script a page has the colours of the day, with one those of the reader,
    # and it need not wait for the theme's own script to learn which
    ' data-theme="auto"': ' data-theme="light"',
    'dataset.theme = localStorage.getItem("theme") || "auto";': (
        """dataset.theme = /light|dark/.exec(document.documentElement.dataset.mode)
        ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    addEventListener("beforeprint", () => {
      const { dataset } = document.documentElement, screen = dataset.theme;
      dataset.theme = "light"; // paper is white
      addEventListener("afterprint", () => { dataset.theme = screen; }, { once: true });
    });"""
    ),
}
ICONS = "scripts/fontawesome.js"
UNUSED = (ICONS, f"{ICONS}.map", "vendor", "sphinx-thebe.js", "sphinx-thebe.css")
UNUSED += ("webpack-macros.html", "sbt-webpack-macros.html")
SCRIPT = re.compile(r'\s*<script\b[^>]*\bsrc="([^"?]*)[^>]*></script>')
ICON = re.compile(r'<(i|span) class="([^"]*\bfa-[^"]*)"([^>]*)></\1>')

# Which boxes scroll, the theme asks and writes box by box, so that the browser lays the
# page out anew for each, and for each closed fold. Here all are asked before the first
# is written to, and those in a fold when it opens.
THEME = "scripts/pydata-sphinx-theme.js"
STOPS = (
    (
        re.compile(r"forEach\((\w)=>\{\1\.tabIndex=([^{}]*)\}\)"),
        r"forEach((\1,i,all)=>{i||(all.stops=Array.from(all,\1=>"
        r'\1.closest("details:not([open])")?-1:\2));\1.tabIndex=all.stops[i]})',
    ),
    (
        re.compile(r'(?<=addEventListener\("resize",)(\w)\)(?=,new MutationObserver)'),
        r'\1),document.addEventListener("toggle",\1,!0)',
    ),
)


def ask_at_once(script):
    """Return the script of the theme, which then asks all boxes at once."""
    for pattern, better in STOPS:
        script = pattern.sub(better, script)
    return script


# What HTML does not allow: a paragraph in a summary, and a list in a paragraph.
INVALID = (
    (
        r'<p( class="(?:collapsed|expanded) admonition-title")>(.*?)</p>',
        r"<span\1>\2</span>",
    ),
    (r"<p>(<ul\b)", r"\1"),
    (r"(</ul>\s*)</p>", r"\1"),
)


# What folds code says what is below it, in two versions for two states. The sign beside
# it shows the state, so one text is enough, and it may say more.
FOLD = re.compile(
    r'<span class="collapsed admonition-title">Show code cell (source|content|output)'
    r'</span>\s*<span class="expanded admonition-title">.*?</span>',
    re.DOTALL,
)
CELL = re.compile(r'<div class="cell ')
DESCRIPTION = re.compile(
    r'(<meta (?:property="og:|name=")description" content=")([^"]*)(" />)'
)
VIEWPORT = re.compile(r'<meta name="viewport"[^>]*>')
NUMBER = re.compile(r'<span class="caption-number">Figure ([\d.]+\d)')


class Icons:
    """Draw the icons of Font Awesome (CC BY 4.0, fontawesome.com) from its script."""

    def __init__(self, script):
        # name: [width, height, [other names], code, outline]
        self.all = re.findall(
            r'["{,]([a-z0-9-]+)"?:\[(\d+),(\d+),\[([^\]]*)\],"\w+","([^"]+)"\]', script
        )

    def shape(self, name):
        """Return width, height and outline; the solid form stands last in the file."""
        shapes = [
            (width, height, outline)
            for key, width, height, others, outline in self.all
            if name == key or f'"{name}"' in others
        ]
        return shapes[-1]

    def draw(self, found):
        """Return an icon as SVG instead of the tag that a script would replace."""
        classes = " ".join(found[2].split())
        rest = re.sub(r'\s+title="[^"]*"', "", found[3]).rstrip()
        for name in re.findall(r"fa-([a-z-]+)", classes):
            if name not in ("solid", "lg"):
                width, height, outline = self.shape(name)
                return (
                    f'<svg class="svg-inline--fa {classes}"{rest} aria-hidden="true" '
                    f'viewBox="0 0 {width} {height}">'
                    f'<path fill="currentColor" d="{outline}"/></svg>'
                )
        return found[0]


def keep_script(page, found):
    """Return the script, deferred, if the page needs it."""
    for name, sign in NEEDED_BY.items():
        if found[1].endswith(name) and (sign is None or sign not in page):
            return ""
    if "defer" in found[0] or found[1].endswith("documentation_options.js"):
        return found[0]
    return found[0].replace("<script", "<script defer", 1)


def label(kind, cell):
    """Return what is said on the bar that folds a part of a cell."""
    if kind == "output":
        return "Output"
    numbers = NUMBER.findall(cell)
    if numbers:
        figures = "Figure" if len(numbers) == 1 else "Figures"
        return f"Code of {figures} {' and '.join(numbers)}"
    _, _, output = cell.partition('<div class="cell_output')
    what = " of the table" if "<table" in output else " of the output" if output else ""
    return f"Code{what}"


def name_folds(page):
    """Let each bar that folds code say which code it is."""
    start, *cells = CELL.split(page)
    named = [
        FOLD.sub(
            lambda found, cell=cell: (
                f'<span class="admonition-title">{label(found[1], cell)}</span>'
            ),
            cell,
        )
        for cell in cells
    ]
    return '<div class="cell '.join([start, *named])


def whole_sentences(found):
    """Return the description of a page, cut after a sentence and not within one."""
    start, text, end = found.groups()
    whole = re.match(r"(.*[.?!”])\s", text.removesuffix("..."))
    return start + (whole[1] if text.endswith("...") and whole else text) + end


def one_viewport(page):
    """Return the page with the first of its three settings for phones."""
    start, first, rest = page.partition('<meta name="viewport"')
    return start + first + VIEWPORT.sub("", rest)


def slim(page, icons):
    """Return the page without what it does not use."""
    page = one_viewport(page)
    page = ICON.sub(icons.draw, page)
    for pattern, valid in INVALID:
        page = re.sub(pattern, valid, page)
    for old, new in MENDED.items():
        page = page.replace(old, new)
    page = DESCRIPTION.sub(whole_sentences, name_folds(page))
    page = re.sub(
        r'<script type="text/x-thebe-config">.*?</script>', "", page, flags=re.S
    )
    return SCRIPT.sub(lambda found: keep_script(page, found), page)


def slim_all(app, exception):
    """Rewrite every page, then drop the files that no page names."""
    static = Path(app.outdir) / "_static"
    if exception or app.builder.name != "html" or not (static / ICONS).exists():
        return
    icons = Icons((static / ICONS).read_text(encoding="utf-8"))
    for path in Path(app.outdir).rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        path.write_text(slim(page, icons), encoding="utf-8")
    theme = static / THEME
    theme.write_text(ask_at_once(theme.read_text("utf-8")), encoding="utf-8")
    for name in UNUSED:
        path = static / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def setup(app):
    """Register with Sphinx."""
    app.connect("build-finished", slim_all, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
