"""Ask the laws from a shell: ``python -m mha.laws package.module:name``."""

import argparse
import dataclasses
import importlib
import io
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mha import laws
from mha.laws.trial import asked_of
from mha.laws.words import RULES, Conventions

LAWFUL, BROKEN, COULD_NOT_RUN = 0, 1, 2
NUMBERS = {"n_heads": int, "n_kv_heads": int, "scale": float, "tolerance": float}
WORDS = [field.name for field in dataclasses.fields(Conventions)]
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


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m mha.laws", description="Ask the laws of what attends.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("target", nargs="?", help="package.module:name or path/to/file.py:name")
    made = "makes what is checked, out of `it`, which was named, and of `laws`"
    add("--factory", metavar="EXPRESSION", help=made)
    add("--list", action="store_true", help="print all laws, and check nothing")
    add("--seed", type=int, default=0, help="fixes the inputs that are tried")
    add("--only", metavar="LAW,LAW", help="ask these laws alone")
    add("--except", metavar="LAW,LAW", help="leave these out")
    add("--breaks", metavar="LAW,LAW", help="laws that the design breaks on purpose")
    add("--design", help='what is changed on purpose: "rotary(500000), window(4096)"')
    add("--because", default="", metavar="DESIGN", help="the design, in words")
    for name in (x for x in WORDS if x != "design"):
        option, rule = f"--{name.replace('_', '-')}", RULES.get(name, [None])[0]
        if rule == "True or False":
            add(option, action="store_true", default=None)
        else:
            add(option, type=NUMBERS.get(name, str), metavar="WORD", help=rule)
    return parser


def find(target: str, factory: str | None = None) -> Any:
    home, _, name = target.rpartition(":")
    # C:\\layers.py has a colon too.
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
    # A file may import what lies beside it.
    sys.path.insert(0, str(Path(home).resolve(strict=True).parent))
    return runpy.run_path(home)


def _attempt(what, function, *args, **options):
    try:
        return function(*args, **options)
    except Exception as error:
        raise CouldNotRun(f"cannot {what}: {type(error).__name__}: {error}") from error


def judge(options: dict[str, Any]) -> laws.Report:
    target = find(options["target"], options["factory"])
    said = {name: options[name] for name in WORDS if options[name] is not None}
    only, without, breaks = (
        x and [slug.strip() for slug in x.split(",")]
        for x in (options["only"], options["except"], options["breaks"])
    )
    given = {"seed": options["seed"], "because": options["because"]}
    try:
        subject = laws.as_subject(target, Conventions(**said))
        asked = asked_of(subject, only, without or ())
        report = laws.check(subject, asked, breaks=breaks or (), **given)
    except Exception as error:
        raise CouldNotRun(str(error)) from error
    if not any(f.holds is not None for f in report.findings):
        raise CouldNotRun(f"no law could be asked of {report.subject}")
    return report


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments()
    options = vars(parser.parse_args(argv))
    if options["list"]:
        for law in (*laws.ALL, *laws.ENCODER, *laws.DESIGN):
            print(f"  {law.slug}\n      {law.name}")
        return LAWFUL
    if options["target"] is None:
        parser.error("say what to check, or --list; --help shows examples")
    try:
        report = judge(options)
    except CouldNotRun as error:
        print(f"python -m mha.laws: {error}", file=sys.stderr)
        return COULD_NOT_RUN
    print(report)
    return BROKEN if report.complaint else LAWFUL


if __name__ == "__main__":
    # A pipe may know no ✓: better a question mark than an error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    sys.exit(main())
