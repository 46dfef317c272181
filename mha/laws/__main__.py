"""Ask the laws from a shell: ``python -m mha.laws package.module:name``."""

import argparse
import importlib
import io
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from mha import laws
from mha.laws._check import asked_of
from mha.laws._report import Report, number_of
from mha.laws.subjects import as_subject

LAWFUL, BROKEN, COULD_NOT_RUN = 0, 1, 2
EPILOG = """\
examples:
  python -m mha.laws my_package.layers:attention
  python -m mha.laws my_package.layers:MyLayer --factory "it(d_model=8, n_heads=2)"
  python -m mha.laws torch.nn:TransformerEncoderLayer --factory "it(8, 2)" --json
  python -m mha.laws my_package.layers --factory "laws.Adapter(run, mask_true='hide')"

exit status:
  0  no law is broken
  1  a law is broken; the smallest failing example is shown
  2  it could not be checked, and the last line says why
"""


class CouldNotRun(Exception):
    """What was named cannot be checked."""


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m mha.laws",
        description="Ask an attention function, a layer or an encoder whether it "
        "satisfies the laws of attention.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("target", metavar="package.module:name", help="what to check")
    add(
        "--factory", metavar="EXPRESSION", help="make what is to be checked; may use "
        "the names of the module, `it` for what was named, and `laws`",
    )  # fmt: skip
    add("--json", action="store_true", help="print JSON, not a table")
    seed = "fixes the inputs that are tried (%(default)s)"
    add("--seed", type=int, default=0, help=seed)
    add("--only", type=_slugs, metavar="LAW,LAW", help="ask these laws alone")
    add("--except", type=_slugs, metavar="LAW,LAW", help="leave these out")
    return parser


def _slugs(text):
    return [slug.strip() for slug in text.split(",") if slug.strip()]


def find(target: str, factory: str | None = None) -> Any:
    """Return what `target` names, or what `factory` makes of it."""
    module_name, colon, name = target.partition(":")
    if not (name or factory):
        raise CouldNotRun(f"say what to check in it: {module_name}:name")
    module = _attempt(f"import {module_name}", importlib.import_module, module_name)
    found = module
    for part in name.split(".") if colon else ():
        found = _attempt(f"find {name!r} in {module_name}", getattr, found, part)
    if factory:
        names = vars(module) | {"it": found, "laws": laws}
        return _attempt(f"run --factory {factory!r}", eval, factory, names)
    if isinstance(found, type):
        raise CouldNotRun(
            f"{name} is a class; say how to make one, such as "
            '--factory "it(d_model=8, n_heads=2)"'
        )
    return found


def _attempt(what, function, *args):
    try:
        return function(*args)
    except Exception as error:
        raise CouldNotRun(f"cannot {what}: {type(error).__name__}: {error}") from error


def judge(options: argparse.Namespace) -> Report:
    """Return the report on what was asked for."""
    subject = find(options.target, options.factory)
    try:
        subject = as_subject(subject)
        asked = asked_of(subject, options.only, getattr(options, "except") or ())
        report = laws.check(subject, asked, options.seed)
    except Exception as error:
        raise CouldNotRun(str(error)) from error
    if not any(f.holds is not None for f in report.findings):
        raise CouldNotRun(f"no law could be asked of {report.subject}")
    return report


def as_json(report: Report) -> dict[str, Any]:
    """Return what the report says, in words of JSON."""
    said = {name: getattr(report, name) for name in ("subject", "holds", "seed")}
    said |= {"laws": [_finding(f) for f in report.findings], "looks_like": None}
    if member := report.looks_like:
        names = ("name", "wrong", "seen", "link")
        shown = {name: getattr(member, name) for name in names}
        said["looks_like"] = shown | _chapter(member)
    return said


def _finding(finding):
    law = finding.law
    shown = {"law": law.slug, "name": law.name} | _chapter(law)
    shown |= {"holds": finding.holds, "why": finding.why}
    if finding.holds is False:
        shown |= {"example": {k: _plain(x) for k, x in finding.example.items()}}
        shown |= {"expected": _plain(finding.expected), "got": _plain(finding.got)}
        shown |= {"layer": finding.setup, "because": law.reason}
    return shown


def _chapter(x):
    return {"chapter": x.chapter, "chapter_number": number_of(x.chapter)}


def _plain(x):
    """Return what JSON has a word for; it has none for NaN."""
    if isinstance(x, np.ndarray | list | tuple):
        return [_plain(part) for part in x]
    if isinstance(x, float | np.floating):
        return float(x) if np.isfinite(x) else str(x)
    if isinstance(x, np.bool_ | np.integer):
        return x.item()
    return x if isinstance(x, str | int | bool | None) else repr(x)


def main(argv: Sequence[str] | None = None) -> int:
    """Print what the laws say; return the exit status."""
    options = arguments().parse_args(argv)
    try:
        report = judge(options)
    except CouldNotRun as error:
        print(f"python -m mha.laws: {error}", file=sys.stderr)
        return COULD_NOT_RUN
    if options.json:
        print(json.dumps(as_json(report), ensure_ascii=False, indent=2))
    else:
        print(report, f"seed {report.seed}", sep="\n\n")
    return LAWFUL if report else BROKEN


if __name__ == "__main__":
    # A pipe may know no ✓: better a question mark than an error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    sys.exit(main())
