"""Ask the laws from a shell: ``python -m mha.laws package.module:name``."""

import argparse
import dataclasses
import importlib
import importlib.util
import io
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mha import laws
from mha.laws.trial import asked_of
from mha.laws.words import RULES, Conventions

LAWFUL, BROKEN, COULD_NOT_RUN = 0, 1, 2
TYPES = {"n_heads": int, "n_kv_heads": int, "scale": float, "tolerance": float}
EPILOG = """\
examples:
  python -m mha.laws my_package.layers:attention
  python -m mha.laws path/to/layers.py:attention --mask-true hide
  python -m mha.laws my_package.layers:MyLayer --factory "it(d_model=8, n_heads=2)"
  python -m mha.laws torch.nn:TransformerEncoderLayer --factory "it(8, 2)" --json
  python -m mha.laws my_package.layers --factory "laws.Adapter(run, mask_true='hide')"
  python -m mha.laws layers.py:rotary --positional \\
      --breaks equals_reference --because "rotary positions"

exit status:
  0  no law is broken
  1  a law is broken, and the smallest failing example is shown; or an argument that
     looks like a mask was never handed one, and the report names it
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
    add("target", metavar="TARGET", nargs="?", help="what to check: "
        "package.module:name or path/to/file.py:name")  # fmt: skip
    add("--list", action="store_true", help="print all laws, and check nothing")
    add(
        "--factory", metavar="EXPRESSION", help="make what is to be checked; may use "
        "the names of the module, `it` for what was named, and `laws`",
    )  # fmt: skip
    add("--json", action="store_true", help="print JSON, not text")
    seed = "fixes the inputs that are tried (%(default)s)"
    add("--seed", type=int, default=0, help=seed)
    add("--only", type=_slugs, metavar="LAW,LAW", help="ask these laws alone")
    add("--except", type=_slugs, metavar="LAW,LAW", help="leave these out")
    add("--breaks", type=_slugs, default=(), metavar="LAW,LAW",
        help="laws that the design breaks on purpose")  # fmt: skip
    add("--because", default="", metavar="DESIGN", help="the design, in words")
    words = parser.add_argument_group("conventions", "as in laws.Adapter")
    for field in dataclasses.fields(Conventions):
        option = f"--{field.name.replace('_', '-')}"
        if field.name in ("positional", "final_norm"):
            words.add_argument(option, action="store_true", default=None)
        else:
            kind, rule = TYPES.get(field.name, str), RULES.get(field.name, [None])[0]
            words.add_argument(option, type=kind, metavar="WORD", help=rule)
    return parser


def _slugs(text):
    return [slug.strip() for slug in text.split(",") if slug.strip()]


def listed() -> str:
    """Return every law: its name and the sentence."""
    lines = ["asked of everything that attends:"]
    for law in (*laws.ALL, *laws.ENCODER):
        if law is laws.ENCODER[0]:
            lines += ["", "asked of encoders only:"]
        sentence = textwrap.wrap(law.name, 80, initial_indent=" " * 6)
        lines += [f"  {law.slug}", *sentence]
    return "\n".join(lines)


def find(target: str, factory: str | None = None) -> Any:
    """Return what `target` names, or what `factory` makes of it."""
    home, colon, name = target, "", ""
    # C:\\layers.py has a colon too.
    if ":" in target and not target.endswith(".py"):
        home, colon, name = target.rpartition(":")
    if not (name or factory):
        raise CouldNotRun(f"say what to check in it: {target.rstrip(':')}:name")
    load = _load if home.endswith(".py") else importlib.import_module
    module = _attempt(f"import {home}", load, home)
    found = module
    for part in name.split(".") if colon else ():
        found = _attempt(f"find {name!r} in {home}", getattr, found, part)
    if factory:
        names = vars(module) | {"it": found, "laws": laws}
        return _attempt(f"run --factory {factory!r}", eval, factory, names)
    if isinstance(found, type):
        raise CouldNotRun(
            f"{name} is a class; say how to make one, such as "
            '--factory "it(d_model=8, n_heads=2)"'
        )
    return found


def _load(path):
    """Import a file; it may import what lies beside it."""
    file = Path(path).resolve(strict=True)
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    # A dataclass in it looks its own module up.
    sys.modules.setdefault(file.stem, module)
    spec.loader.exec_module(module)
    return module


def _attempt(what, function, *args):
    try:
        return function(*args)
    except Exception as error:
        raise CouldNotRun(f"cannot {what}: {type(error).__name__}: {error}") from error


def judge(options: argparse.Namespace) -> laws.Report:
    """Return the report on what was asked for."""
    subject = find(options.target, options.factory)
    fields = [field.name for field in dataclasses.fields(Conventions)]
    given = {name: getattr(options, name) for name in fields}
    design = {"breaks": options.breaks, "because": options.because}
    try:
        said = Conventions(**{name: x for name, x in given.items() if x is not None})
        subject = laws.as_subject(subject, said)
        asked = asked_of(subject, options.only, getattr(options, "except") or ())
        report = laws.check(subject, asked, options.seed, **design)
    except Exception as error:
        raise CouldNotRun(str(error)) from error
    if not any(f.holds is not None for f in report.findings):
        raise CouldNotRun(f"no law could be asked of {report.subject}")
    return report


def main(argv: Sequence[str] | None = None) -> int:
    """Print what the laws say; return the exit status."""
    parser = arguments()
    options = parser.parse_args(argv)
    if options.list:
        print(listed())
        return LAWFUL
    if options.target is None:
        parser.error("say what to check, or --list; --help shows examples")
    try:
        report = judge(options)
    except CouldNotRun as error:
        print(f"python -m mha.laws: {error}", file=sys.stderr)
        return COULD_NOT_RUN
    print(report.to_json() if options.json else report)
    return BROKEN if report.complaint else LAWFUL


if __name__ == "__main__":
    # A pipe may know no ✓: better a question mark than an error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    sys.exit(main())
