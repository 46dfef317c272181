"""Sphinx extension: a built book says which sources it was built from.

The tests of the pages open a built book only if it carries the stamp of the sources as
they are now, and build it anew otherwise. A change outside the pages, such as another
docstring or another extension, makes Sphinx read every page again.
"""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
STAMP = "sources.sha256"
PAGES = {".ipynb", ".md"}
SETTINGS = ("_config.yml", "_toc.yml", "requirements.txt")
ADDRESS = ("BOOK_ADDRESS", "BOOK_REPOSITORY", "BOOK_BRANCH")  # see publish.py


def is_source(path):
    """Return whether a file may decide what a page shows; caches do not."""
    parts = path.parts
    hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
    return not hidden and path.suffix != ".pyc"


def sources(root):
    """Return all files that decide what the pages show, in a fixed order."""
    found = [root / name for name in SETTINGS]
    for folder in ("book", "mha"):
        inside = (path for path in (root / folder).rglob("*") if path.is_file())
        found += [path for path in inside if is_source(path.relative_to(root))]
    return sorted(found)


def digest(root, environ, paths):
    """Return the digest of these files, their names, and the address of the book."""
    total = hashlib.sha256(repr([environ.get(name) for name in ADDRESS]).encode())
    for path in paths:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    return total.hexdigest()


def stamp(root=ROOT, environ=os.environ):
    """Return two lines: the digest of all sources, and of all but the pages."""
    everything = sources(root)
    shared = [path for path in everything if path.suffix not in PAGES]
    lines = (digest(root, environ, paths) for paths in (everything, shared))
    return "".join(f"{line}\n" for line in lines)


def is_current(html, root=ROOT, environ=os.environ):
    """Return whether a folder holds the pages of the sources as they are now."""
    path = Path(html) / STAMP
    return path.exists() and path.read_text("utf-8") == stamp(root, environ)


def take(app):
    """Remember the sources as the build finds them, and void an older stamp."""
    path = Path(app.outdir) / STAMP
    app.old_stamp = path.read_text("utf-8") if path.exists() else ""
    app.stamp = stamp()
    path.unlink(missing_ok=True)


def outdated(app, env, added, changed, removed):
    """Return all pages, if something that they share has changed."""
    same = app.old_stamp.splitlines()[1:] == app.stamp.splitlines()[1:]
    return [] if same else sorted(env.found_docs)


def leave(app, exception):
    """Stamp the pages of a build that went through without a warning."""
    if not exception and not app._warncount and app.builder.name == "html":
        (Path(app.outdir) / STAMP).write_text(app.stamp, encoding="utf-8")


def setup(app):
    """Register with Sphinx."""
    app.connect("builder-inited", take)
    app.connect("env-get-outdated", outdated)
    # slim.py rewrites the pages at 900, so this must come last
    app.connect("build-finished", leave, priority=1000)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
