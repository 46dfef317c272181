"""Sphinx extension: a page for addresses that lead nowhere.

Whoever serves the book shows it at any depth, so its links are not relative. It knows
the address of the book if one is given, and else finds it by what it was asked for.
"""

from html import escape
from pathlib import Path

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<title>No such page &#8212; {project}</title>
{base}
<link rel="icon" href="_static/logo.svg" type="image/svg+xml">
<style>
body {{ font: 1.05rem/1.6 system-ui, sans-serif; max-width: 34rem;
       margin: 18vh auto; padding: 0 1.2rem; }}
h1 {{ font: 600 2.4rem/1.15 "Iowan Old Style", Palatino, P052, "Noto Serif", Georgia,
     serif; }}
a {{ color: inherit; text-underline-offset: .18em; }}
input, button {{ font: inherit; padding: .4rem .8rem; }}
</style>
</head>
<body><main>
<h1>No such page</h1>
<p>There is no page at this address. The <a href="index.html">front page</a> shows what
the book contains, and the search finds any word of it.</p>
<form action="search.html" role="search">
<input type="search" name="q" aria-label="Search the book" required>
<button>Search</button>
</form>
</main></body>
</html>
"""
# Everything below these folders is part of the book.
FIND = """<script>
document.write('<base href="' + location.pathname
  .replace(/(book|solutions|_modules|_static|_sources|_images|_downloads)\\/.*/, "")
  .replace(/[^\\/]*$/, "").replace(/["<>&]/g, "") + '">');
</script>"""


def page(project, address=""):
    """Return the page; `address` is that of the book, if it has one."""
    base = f'<base href="{escape(address)}">' if address else FIND
    return PAGE.format(project=escape(project), base=base)


def write(app, exception):
    """Write the page where hosts look for it."""
    if not exception and app.builder.name == "html":
        text = page(app.config.project, app.config.html_baseurl)
        (Path(app.outdir) / "404.html").write_text(text, encoding="utf-8")


def setup(app):
    """Register with Sphinx."""
    app.connect("build-finished", write, priority=950)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
