"""The built book: found where the build left it, or built here."""

import subprocess
import sys

from filelock import FileLock

from tests.book.load import ROOT

BUILD = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
STRICT = ["-W", "-n", "--keep-going"]  # as in the README
LAST = "_static/passages.js"  # what a build without an error writes last
HIDDEN = {"__pycache__", ".ipynb_checkpoints", ".pytest_cache"}
SETTINGS = ("_config.yml", "_toc.yml", "requirements.txt")


def build(root, output):
    """Build the book of a tree, or raise with the end of what the build printed."""
    command = [*BUILD, "build", str(root), "--all", *STRICT]
    run = subprocess.run(
        [*command, "--path-output", str(output)],
        cwd=root, capture_output=True, encoding="utf-8", errors="replace",
    )  # fmt: skip
    if run.returncode:
        log = (run.stdout + run.stderr)[-4000:]
        raise RuntimeError(f"the book cannot be built:\n{log}")


def is_current(html, root):
    """Return whether a build came after every change of the tree."""
    mark = html / LAST
    if not mark.exists():
        return False
    found = [root / name for name in SETTINGS]
    for folder in ("book", "mha"):
        found += [path for path in (root / folder).rglob("*") if path.is_file()]
    kept = (path for path in found if not HIDDEN & {*path.relative_to(root).parts})
    return max(path.stat().st_mtime for path in kept) <= mark.stat().st_mtime


def current_pages(root=ROOT, build=build):
    """Return the folder of pages that show the tree as it is now.

    These are the pages that the README's first command has built, if nothing has
    changed since. Otherwise they are built beside, once for all processes that ask,
    and found there the next time.
    """
    beside = root / "_build" / "tests"
    beside.mkdir(parents=True, exist_ok=True)
    with FileLock(beside / "lock"):
        for output in (root, beside):
            if is_current(output / "_build" / "html", root):
                break
        else:
            build(root, beside)
    return output / "_build" / "html"
