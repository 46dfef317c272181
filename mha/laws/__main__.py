"""Ask the laws from a shell: ``python -m mha.laws package.module:name``."""

import argparse
import dataclasses
import importlib
import io
import runpy
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mha import laws
from mha.laws.words import RULES, Conventions

LAWFUL, BROKEN, COULD_NOT_RUN = 0, 1, 2
TYPES = {"n_heads": int, "n_kv_heads": int, "scale": float, "tolerance": float}
WORDS = [field.name for field in dataclasses.fields(Conventions)]
EPILOG = """\
examples:
  python -m mha.laws path/to/layers.py:attention --mask-true hide
  python -m mha.laws my_package.layers:MyLayer --factory "it(d_model=8, n_heads=2)"

exit status: 0 if no law is broken; 1 if one is, or if an argument that looks like a
mask was never handed one; 2 if it could not be checked, and the last line says why
"""


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m mha.laws", description=laws.check.__doc__.partition("\n")[0],
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add, slugs = parser.add_argument, {"metavar": "LAW,LAW", "type": _slugs}
    add("target", nargs="?", help="package.module:name or path/to/file.py:name")
    made = "makes what is checked, out of `it`, which was named, and of `laws`"
    add("--factory", metavar="EXPRESSION", help=made)
    add("--list", action="store_true", help="print all laws, and check nothing")
    add("--json", action="store_true", help="print JSON, not text")
    add("--seed", type=int, default=0, help="fixes the inputs that are tried")
    add("--only", **slugs, help="ask these laws alone")
    add("--breaks", **slugs, default=(), help="laws that the design breaks on purpose")
    add("--because", default="", metavar="DESIGN", help="the design, in words")
    for name in WORDS:
        option, rule = f"--{name.replace('_', '-')}", RULES.get(name, [None])[0]
        if rule == "True or False":
            add(option, action="store_true", default=None)
        else:
            add(option, type=TYPES.get(name, str), metavar="WORD", help=rule)
    return parser


def _slugs(text):
    return [slug.strip() for slug in text.split(",") if slug.strip()]


def find(target: str, factory: str | None = None) -> Any:
    """Return what `target` names, or what `factory` makes of it."""
    home, _, name = target.rpartition(":")
    # C:\\layers.py has a colon too.
    if not home or name.endswith(".py"):
        home, name = target, ""
    if not (name or factory):
        raise ValueError(f"say what to check in it: {home}:name")
    if home.endswith(".py"):
        # A file may import what lies beside it.
        sys.path.insert(0, str(Path(home).resolve(strict=True).parent))
        names = runpy.run_path(home)
    else:
        names = vars(importlib.import_module(home))
    found = SimpleNamespace(**names)
    for part in name.split(".") if name else ():
        found = getattr(found, part)
    if factory:
        return eval(factory, names | {"it": found, "laws": laws})
    if isinstance(found, type):
        example = '--factory "it(d_model=8, n_heads=2)"'
        raise TypeError(f"{name} is a class; say how to make one, such as {example}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print what the laws say; return the exit status."""
    parser = arguments()
    options = vars(parser.parse_args(argv))
    if options["list"]:
        for law in (*laws.ALL, *laws.ENCODER):
            print(law.slug, textwrap.indent(law.name, " " * 4), sep="\n")
        return LAWFUL
    if options["target"] is None:
        parser.error("say what to check, or --list; --help shows examples")
    asked = [*WORDS, "only", "seed", "breaks", "because"]
    given = {name: options[name] for name in asked if options[name] is not None}
    try:
        report = laws.check(find(options["target"], options["factory"]), **given)
        if not any(f.holds is not None for f in report.findings):
            raise ValueError(f"no law could be asked of {report.subject}")
    except Exception as error:
        kind = "" if isinstance(error, TypeError | ValueError) else type(error).__name__
        why = ": ".join(filter(None, [kind, str(error)]))
        print(f"python -m mha.laws: {why}", file=sys.stderr)
        return COULD_NOT_RUN
    print(report.to_json() if options["json"] else report)
    return BROKEN if report.complaint else LAWFUL


if __name__ == "__main__":
    # A pipe may know no ✓: better a question mark than an error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    sys.exit(main())
