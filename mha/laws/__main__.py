"""Ask the laws from a shell: ``python -m mha.laws package.module:name``."""

import argparse
import dataclasses
import importlib
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mha import laws
from mha.laws.words import RULES, Conventions

LAWFUL, BROKEN, COULD_NOT_RUN = 0, 1, 2
NUMBERS = {"n_heads": int, "n_kv_heads": int, "scale": float, "tolerance": float}
EPILOG = """\
examples:
  python -m mha.laws path/to/layers.py:attention --mask-true hide
  python -m mha.laws my_package.layers:MyLayer --factory "it(d_model=8, n_heads=2)"
  python -m mha.laws my_package.layers:llama --design "rotary(500000), grouped(2)"

exit status: 0 if no law is broken; 1 if one is, or if an argument that looks like a
mask was never handed one; 2 if it could not be checked, and the last line says why
"""


class CouldNotRun(Exception):
    """What was named cannot be checked."""


def slugs(text: str) -> list[str]:
    return [slug.strip() for slug in text.split(",")]


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m mha.laws", description="Ask the laws of what attends.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    some: dict[str, Any] = {"metavar": "LAW,LAW", "type": slugs}
    add("target", nargs="?", help="package.module:name or path/to/file.py:name")
    made = "makes what is checked, out of `it`, which was named, and of `laws`"
    add("--factory", metavar="EXPRESSION", help=made)
    add("--list", action="store_true", help="print all laws, and check nothing")
    add("--seed", type=int, default=0, help="fixes the inputs that are tried")
    add("--only", help="ask these laws alone", **some)
    add("--except", dest="except_", help="leave these out", **some)
    add("--breaks", help="laws that the design breaks on purpose", **some)
    add("--because", metavar="DESIGN", help="the design, in words")
    for name in (field.name for field in dataclasses.fields(Conventions)):
        option, rule = f"--{name.replace('_', '-')}", RULES.get(name, [None])[0]
        if rule == "True or False":
            add(option, action="store_true", default=None)
        else:
            add(option, type=NUMBERS.get(name, str), metavar="WORD", help=rule)
    return parser


def find(target: str, factory: str | None = None) -> Any:
    home, _, name = target.rpartition(":")  # C:\\layers.py has a colon too
    if not home or name.endswith(".py"):
        home, name = target, ""
    if not (name or factory):
        raise CouldNotRun(f"say what to check in it: {home}:name")
    names = _attempt(f"import {home}", _names_in, home)
    if name not in {"", *names}:
        raise CouldNotRun(f"cannot find {name!r} in {home}")
    found = names.get(name)
    if factory:
        names = names | {"it": found, "laws": laws}
        return _attempt(f"run --factory {factory!r}", eval, factory, names)
    if isinstance(found, type):
        example = '--factory "it(d_model=8, n_heads=2)"'
        raise CouldNotRun(f"{name} is a class; say how to make one, such as {example}")
    return found


def _names_in(home):
    if not home.endswith(".py"):
        return vars(importlib.import_module(home))
    sys.path.insert(0, str(Path(home).resolve(strict=True).parent))  # for its imports
    return runpy.run_path(home)


def _attempt(what, function, *args):
    try:
        return function(*args)
    except Exception as error:
        raise CouldNotRun(f"cannot {what}: {type(error).__name__}: {error}") from error


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments()
    given = {x: y for x, y in vars(parser.parse_args(argv)).items() if y is not None}
    if given.pop("list"):
        for law in (*laws.ALL, *laws.ENCODER, *laws.DESIGN):
            print(f"  {law.slug}\n      {law.name}", flush=True)
        return LAWFUL
    if "target" not in given:
        parser.error("say what to check, or --list; --help shows examples")
    try:
        target = find(given.pop("target"), given.pop("factory", None))
        report = laws.check(target, **given)
        if not any(f.holds is not None for f in report.findings):
            raise CouldNotRun(f"no law could be asked of {report.subject}")
    except Exception as error:
        print(f"python -m mha.laws: {error}", file=sys.stderr)
        return COULD_NOT_RUN
    print(report, flush=True)
    return BROKEN if report.complaint else LAWFUL


if __name__ == "__main__":
    # A pipe may know no ✓, or close early, as before head: no reason for a traceback.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        sys.exit(main())
    except BrokenPipeError:
        os._exit(COULD_NOT_RUN)
