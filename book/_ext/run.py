"""Sphinx extension: a reader can run the cells of a chapter, if Python is there.

``.ci/runner`` gets a Python with NumPy that runs in a browser. If it was called, the
pages get the script of ``book/runner``; without it they are as they are. Each cell of
code gets its number as a class, such as ``tag_run-3``, and what a page lacks for it.
"""

import gzip
import json
import shutil
from hashlib import sha256
from html import escape

from _ext.portable import BOOK, CHAPTER, source
from runner.cells import needs

ROOT = BOOK.parent
RUNNER = BOOK / "runner"
BUILT = ROOT / "_build" / "runner"
SHIPPED = (  # what cells import or read
    "mha/**/*.py", "mha/view.*", "book/exercises/*.py", "book/chapters.py",
    "book/runner/*.py", "book/_data/*.json", "book/_data/*.py",
    "book/_static/live_encoder/right.js",  # a trained model for functions of readers
)  # fmt: skip
BOXES = {"book/own_attention"}  # pages with a box for code, which run.js fills


def number(app, page, content):
    """Give the cells of a chapter their numbers."""
    if not app.runs or not CHAPTER.fullmatch(page):
        return
    notebook = json.loads(content[0])
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    slow = [k for k, x in enumerate(cells) if "slow" in x["metadata"].get("tags", ())]
    for k, what in enumerate(needs([source(cell) for cell in cells], slow)):
        tags = cells[k]["metadata"].setdefault("tags", [])
        tags += [f"run-{k}"] + [f"needs-{what.replace(' ', '-')}"] * bool(what)
    content[0] = json.dumps(notebook)


def book():
    """Return the files of the package and of the book that Python in a page has."""
    found = {}
    for pattern in SHIPPED:
        for path in sorted(ROOT.glob(pattern)):
            if "__pycache__" not in path.parts:
                name = path.relative_to(ROOT).as_posix()
                found[name.removeprefix("book/")] = path.read_text(encoding="utf-8")
    return gzip.compress(json.dumps(found).encode(), 9, mtime=0)


def named(name, content):
    """Return a name that changes with what a file holds."""
    return f"{name}-{sha256(content).hexdigest()[:8]}.gz"


def files():
    """Return what Python needs, by name: of each file the content, or where it is."""
    found = {path.name: path for path in sorted(BUILT.glob("*.gz"))}
    if len(found) != 2:
        return {}
    content = book()
    return found | {named("book.json", content): content}


def show(app, page, template, context, doctree):
    """Put the script on the pages that have cells or a box."""
    if not app.runs or not (CHAPTER.fullmatch(page) or page in BOXES):
        return
    sizes = [size(content) for content in app.runs.values()]
    version = sha256(b"".join(p.read_bytes() for p in sorted(RUNNER.glob("*.*s"))))
    version = version.hexdigest()[:8]
    folder = context["pathto"]("_static/runner/", 1)
    data = {
        "files": " ".join(sorted(app.runs, key=lambda n: "plb".index(n[0]))),
        "size": sum(sizes), "version": version,
    }  # fmt: skip
    said = " ".join(f'data-{key}="{escape(str(data[key]))}"' for key in data)
    context["metatags"] = context.get("metatags", "") + (
        f'<link rel="stylesheet" href="{folder}run.css?v={version}">'
        f'<script defer src="{folder}run.js?v={version}" {said}></script>'
    )


def size(content):
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def copy(app, exception):
    """Put the files beside the pages."""
    if exception:
        return
    target = app.outdir / "_static" / "runner"
    shutil.rmtree(target, ignore_errors=True)
    if not app.runs:
        return
    target.mkdir(parents=True)
    for name, content in app.runs.items():
        if isinstance(content, bytes):
            (target / name).write_bytes(content)
        else:
            shutil.copy(content, target)
    for folder in ("wasi", "licences"):
        shutil.copytree(BUILT / folder, target / folder)
    for path in RUNNER.glob("*.*s"):
        shutil.copy(path, target)


def begin(app):
    """Look whether Python is there."""
    app.runs = files() if app.builder.format == "html" else {}


def setup(app):
    """Register with Sphinx."""
    app.connect("builder-inited", begin)
    app.connect("source-read", number)
    app.connect("html-page-context", show)
    app.connect("build-finished", copy)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
