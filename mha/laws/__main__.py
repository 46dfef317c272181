"""Ask the laws from a shell: ``python -m mha.laws my_file.py:my_attention``."""

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mha.laws.trial import ALL, check

LAWFUL, BROKEN, COULD_NOT_RUN = 0, 1, 2
EPILOG = """\
examples:
  python -m mha.laws path/to/layers.py:attention
  python -m mha.laws layers.py:my_layer --reference layers.py:my_reference

exit status: 0 if no law is broken; 1 if one is; 2 if none could be asked, and the
report or the last line says why
"""


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m mha.laws", description="Ask a function the laws of attention.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("subject", nargs="?", help="package.module:name or path/to/file.py:name")
    add("--reference", help="a correct function of the same signature, named likewise")
    add("--list", action="store_true", help="print all laws, and check nothing")
    add("--only", nargs="+", metavar="LAW", help="ask these laws alone")
    add("--skip", nargs="+", metavar="LAW", default=(), help="leave these out")
    add("--tolerance", type=float, help="how far a number may be off, 1e-5 by default")
    add("--seed", type=int, default=0, help="fixes the inputs that are drawn")
    return parser


def find(target: str) -> Any:
    """Return what is named, such as ``file.py:name``."""
    home, _, name = target.rpartition(":")  # C:\\layers.py has a colon, too
    if not home or name.endswith(".py"):
        raise ValueError(f"say what to check in it: {target}:name")
    module = _imported(home)
    if not hasattr(module, name):
        raise ValueError(f"cannot find {name!r} in {home}")
    return getattr(module, name)


def _imported(home: str) -> Any:
    if not home.endswith(".py"):
        return importlib.import_module(home)
    path = Path(home).resolve(strict=True)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # for what it imports
    return importlib.import_module(path.stem)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the report, and return the exit status."""
    parser = arguments()
    given = parser.parse_args(argv)
    if given.list:
        for law in ALL:
            print(f"  {law.name}\n      {law.sentence}", flush=True)
        return LAWFUL
    if given.subject is None:
        parser.error("say what to check, or --list; --help shows examples")
    options = {x: getattr(given, x) for x in ("skip", "tolerance", "seed")}
    try:
        if given.reference:
            options["reference"] = find(given.reference)
        report = check(find(given.subject), given.only, **options)
    except Exception as error:
        print(f"python -m mha.laws: {type(error).__name__}: {error}", file=sys.stderr)
        return COULD_NOT_RUN
    print(report, flush=True)
    return LAWFUL if report else BROKEN if report.broken else COULD_NOT_RUN


if __name__ == "__main__":
    # A pipe may know no ✓, or close early, as before head: no reason for a traceback.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        sys.exit(main())
    except BrokenPipeError:
        os._exit(COULD_NOT_RUN)
