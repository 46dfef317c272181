"""Sphinx extension: one stylesheet for all pages, with the rules that they use.

A browser shows nothing before it has read all stylesheets of a page. The theme and its
extensions come with ten of them, mostly rules for what no page holds. What only some
pages load stays a file of its own.
"""

import hashlib
import posixpath
import re
from pathlib import Path

BUNDLE = "_static/pages.css"
LINK = re.compile(r'\s*<link\b[^>]*\brel="stylesheet"[^>]*>')
HREF = re.compile(r'\bhref="([^"?]+)')
NAMES = re.compile(r'\b(?:class|id)="([^"]*)"')
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# Text up to the next brace or the end of a statement; braces in quotes are text.
STEP = re.compile(
    r"""((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\([^(){}]*\)|[^{};"'])*)(.)"""
)
URL = re.compile(r"""url\((["']?)(?!data:|#)([^"')]+)\1\)""")
GROUPS = ("@media", "@supports", "@container", "@layer")


def rules(css):
    """Return nested lists ``[(before the brace, what it holds), ...]``."""
    stack = [[]]
    for found in STEP.finditer(css):
        text, end = found[1].strip(), found[2]
        if end == "{":
            stack[-1].append((text, []))
            stack.append(stack[-1][-1][1])
        elif text:
            stack[-1].append((text, None))
        if end == "}":
            stack.pop()
    return stack[0]


def written(found):
    """Return the text of rules."""
    parts = []
    for head, inside in found:
        body = ";" if inside is None else f"{{{written(inside)}}}"
        parts.append(f"{head}{body}")
    return "".join(parts).replace(";}", "}")


def outside_brackets(selector):
    """Return a selector without what it says in brackets, such as ``:is(a, .b)``."""
    while (shorter := re.sub(r"\([^()]*\)|\[[^]]*\]", "", selector)) != selector:
        selector = shorter
    return selector


def is_used(selector, names):
    """Return whether pages hold every class and every id that a selector requires."""
    plain = outside_brackets(selector)
    return names.issuperset(re.findall(r"[.#]([a-zA-Z_][\w-]*)", plain))


def choices(selectors):
    """Return the selectors of a rule, one by one."""
    found, depth = [""], 0
    for part in re.split(r"([(),])", selectors):
        depth += (part == "(") - (part == ")")
        if part == "," and not depth:
            found.append("")
        else:
            found[-1] += part
    return found


def used(found, names):
    """Return the rules that concern a page."""
    kept = []
    for head, inside in found:
        if head.startswith("@font-face") and "vendor/" in written(inside):
            continue  # a font of icons; slim.py draws them
        if inside is None or head.startswith("@"):
            group = head.startswith(GROUPS)
            inside = used(inside, names) if group else inside
            kept += [(head, inside)] if inside or not group else []
        else:
            needed = [each for each in choices(head) if is_used(each, names)]
            kept += [(",".join(needed), inside)] if needed else []
    return kept


def moved(css, folder):
    """Return a stylesheet of `folder` as one that lies in the folder of the bundle."""

    def address(found):
        path = posixpath.join(folder, found[2])
        return f'url("{posixpath.relpath(path, posixpath.dirname(BUNDLE))}")'

    return URL.sub(address, css)


def sheets(page, folder):
    """Return the tags that load the stylesheets of a page, by their files."""
    tags = [tag[0] for tag in LINK.finditer(page)]
    path = posixpath.join
    return {posixpath.normpath(path(folder, HREF.search(tag)[1])): tag for tag in tags}


def names_of(html):
    """Return every class and id of the pages, and every word of their scripts."""
    found = set()
    for path in html.rglob("*.html"):
        for names in NAMES.findall(path.read_text(encoding="utf-8")):
            found.update(names.split())
    for path in (html / "_static").rglob("*.js"):
        found.update(re.findall(r"[a-zA-Z_][\w-]*", path.read_text(encoding="utf-8")))
    return found


def bundle(files, html, names):
    """Return the text of the stylesheets, without what no page needs."""
    parts = []
    for name in files:
        css = COMMENT.sub("", (html / name).read_text(encoding="utf-8"))
        kept = used(rules(moved(css, posixpath.dirname(name))), names)
        parts.append(written([rule for rule in kept if rule[0][:8] != "@charset"]))
    return "\n".join(parts)


def relink(page, folder, files, version):
    """Return a page that loads the bundle instead of the files in it."""
    tags = sheets(page, folder)
    address = posixpath.relpath(BUNDLE, folder or ".")
    link = f'\n    <link rel="stylesheet" href="{address}?v={version}" />'
    for name, tag in tags.items():
        if name in files or name == BUNDLE:
            page, link = page.replace(tag, link, 1), ""
    return page


def bundle_all(app, exception):
    """Write the bundle, and load it where its files were loaded."""
    html = Path(app.outdir)
    if exception or app.builder.name != "html" or not (html / "search.html").exists():
        return
    # every build writes the search anew, and it loads what all pages share
    common = sheets((html / "search.html").read_text(encoding="utf-8"), "")
    files = [name for name in common if name != BUNDLE and (html / name).exists()]
    if not files:  # nothing was out of date, and the search is as it was
        return
    css = bundle(files, html, names_of(html))
    (html / BUNDLE).write_text(css, encoding="utf-8")
    version = hashlib.sha256(css.encode()).hexdigest()[:8]
    for path in html.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        folder = path.parent.relative_to(html).as_posix().removeprefix(".")
        path.write_text(relink(page, folder, files, version), encoding="utf-8")


def setup(app):
    """Register with Sphinx."""
    # slim.py takes away what no page needs at 900
    app.connect("build-finished", bundle_all, priority=910)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
