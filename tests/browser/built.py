"""The built book: found where the build left it, or built here."""

import subprocess
import sys

from filelock import FileLock

from tests.book.load import ROOT, extension

BUILD = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
STRICT = ["-W", "-n", "--keep-going"]  # as in the README


def build(root, output):
    """Build the book of a tree, or raise with the end of what the build printed."""
    command = [*BUILD, "build", str(root), *STRICT, "--path-output", str(output)]
    run = subprocess.run(
        command, cwd=root, capture_output=True, encoding="utf-8", errors="replace"
    )
    if run.returncode:
        log = (run.stdout + run.stderr)[-4000:]
        raise RuntimeError(f"the book cannot be built:\n{log}")


def current_pages(root=ROOT, build=build):
    """Return the folder of pages that show the tree as it is now.

    These are the pages that the README's first command has built, if nothing has
    changed since. Otherwise they are built beside, once for all processes that ask,
    and found there the next time.
    """
    stamp = extension("stamp")
    beside = root / "_build" / "tests"
    beside.mkdir(parents=True, exist_ok=True)
    with FileLock(beside / "lock"):
        for output in (root, beside):
            if stamp.is_current(output / "_build" / "html", root):
                break
        else:
            build(root, beside)
    return output / "_build" / "html"
