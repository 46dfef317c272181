#!/usr/bin/env python3
"""Try laws of students on wrong attention; this guards against accidents only.

book/trial.py laws/ --hidden no_scale:batch:20 mask_ignored:width:40

Each Python file in the folder `laws` holds a list `my_laws`, as in exercise 16.3. The
first hidden version above computes correct attention up to a batch of 20, which is the
number of sequences times that of heads, and beyond it what the member `no_scale` of the
zoo computes. The other sizes are `width` and `length`, the number of keys. A file that
imports more than NumPy, or computes attention itself, is refused by its words. A
determined student finds a way around this, so read the files.
"""

import argparse
import math
import re
import subprocess
import sys
from pathlib import Path

from exercises.laws import Subject, broken_by, subjects

POINTS = 35
# Other modules, and ways to an exponential.
REFUSED = re.compile(
    r"\b(?:(?:import|from) (?!numpy\b)\w+|exp2?|expm1|softmax|pow(?:er)?|logaddexp2?"
    r"|sinh|cosh|tanh|eval|exec|open|getattr)\b|__\w+"
)
SIZES = {
    "width": lambda Q, K: K.shape[-1],
    "length": lambda Q, K: K.shape[-2],
    "batch": lambda Q, K: math.prod(Q.shape[:-2]),
}


def hidden(text):
    """Return the version that ``no_scale:width:40`` names."""
    known = {subject.name: subject for subject in subjects() if not subject.right}
    try:
        name, size, limit = text.split(":")
        wrong, size_of, limit = known[name], SIZES[size], int(limit)
    except (KeyError, ValueError):
        why = f"{text!r} is not NAME:SIZE:LIMIT, with a size of {', '.join(SIZES)}"
        raise argparse.ArgumentTypeError(why) from None
    right = subjects()[0]

    def run(Q, K, V, mask, is_causal):
        chosen = wrong if size_of(Q, K) > limit else right
        return chosen.run(Q, K, V, mask, is_causal)

    return Subject(text, run, False, "")


def tried(source, versions):
    """Return a line on the laws of a file: what they detect, and their false alarms."""
    if found := REFUSED.search(source):
        return f"refused: uses {found[0]}"
    space = {}
    exec(compile(source, "<laws>", "exec"), space)
    right = [subject for subject in subjects() if subject.right]

    def accused(some):
        return sum(any(broken_by(law, x) for law in space["my_laws"]) for x in some)

    detected, alarms = accused(versions), accused(right)
    points = POINTS * detected / len(versions) * (1 - alarms / len(right))
    return (
        f"laws {len(space['my_laws'])}  detected {detected} of {len(versions)}  "
        f"alarms {alarms} of {len(right)}  points {points:.1f}"
    )


def in_a_process(path, names, seconds):
    """Return the line on a file, whose laws run in a process of their own."""
    command = [sys.executable, __file__, str(path), "--hidden", *names]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"did not end within {seconds} seconds"
    return run.stdout.strip() or run.stderr.strip().rpartition("\n")[2]


def main(arguments=None):
    """Try one file here, or each file of a folder in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("laws", type=Path, help="a folder of Python files")
    version = {"type": hidden, "nargs": "+", "required": True}
    parser.add_argument("--hidden", **version, metavar="NAME:SIZE:LIMIT")
    parser.add_argument("--seconds", type=int, default=60, help="for one file, or 60")
    options = parser.parse_args(arguments)
    if options.laws.is_file():
        print(tried(options.laws.read_text(encoding="utf-8"), options.hidden))
        return
    names = [each.name for each in options.hidden]
    for path in sorted(options.laws.glob("*.py")):
        print(f"{path.stem}  {in_a_process(path, names, options.seconds)}")


if __name__ == "__main__":
    main()
