#!/usr/bin/env python3
"""Try laws of students on wrong attention; this guards against accidents only.

book/trial.py laws/ --hidden no_scale:batch:20 mask_ignored:width:40

Each Python file in the folder `laws` holds a list `my_laws`, as in exercise 15.4. The
first hidden version above computes correct attention up to a batch of 20, which is the
number of sequences times that of heads, and beyond it what the member `no_scale` of the
zoo computes. The other sizes are `width` and `length`, the number of keys. A file with
words by which it could compute attention itself is refused, and so is a law that opens
a file or starts a program. A determined student finds a way around this, so read the
files, and run those of strangers as grade.py says.
"""

import argparse
import functools
import math
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.testing  # which a law may use, and NumPy loads late

from answer import in_a_process
from exercises.laws import Subject, broken_by, subjects

POINTS = 35
# Other modules, ways to an exponential, and ways to look behind `attend`.
REFUSED = re.compile(
    r"\b(?:(?:import|from) (?!numpy\b)\w+|exp2?|expm1|softmax|power|float_power|pow"
    r"|logaddexp2?|sinh|cosh|tanh|eval|exec|compile|open|getattr|vars|globals|locals)\b"
    r"|__\w+"
)
OUTSIDE = "open", "os.", "shutil.", "socket.", "subprocess.", "ctypes."
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


def not_allowed(source):
    """Return what a file of laws should not contain, or an empty text."""
    found = REFUSED.search(source)
    return f"uses {found[0]}" if found else ""


RUNNING = []  # the file whose laws run


def guard(event, given):
    """Refuse, while a law runs, what reaches out of its process."""
    inside = event == "open" and str(given[0]).startswith(np.__path__[0])
    if RUNNING and event.startswith(OUTSIDE) and not inside:
        raise PermissionError(f"a law may not use {event}")


def tried(orders):
    """Return how many versions the laws of a file detect, and their false alarms."""
    path, versions = orders["path"], [hidden(text) for text in orders["hidden"]]
    source = Path(path).read_text(encoding="utf-8")
    if why := not_allowed(source):
        return {"refused": why}
    right = [subject for subject in subjects() if subject.right]
    for subject in (*versions, *right):
        subject(*np.ones((3, 1, 1)))  # it imports what it needs
    space = {}
    sys.addaudithook(guard)
    RUNNING.append(path)
    try:
        exec(compile(source, path, "exec"), space)
        laws = list(space["my_laws"])

        def is_broken(version):
            attend = functools.partial(Subject.__call__, version)  # it tells no name
            return any(broken_by(law, attend) for law in laws)

        detected, alarms = (sum(map(is_broken, some)) for some in (versions, right))
    finally:
        RUNNING.clear()
    share = detected / len(versions) * (1 - alarms / len(right))
    return {
        "laws": len(laws),
        "detected": f"{detected} of {len(versions)}",
        "alarms": f"{alarms} of {len(right)}",
        "points": round(POINTS * share, 1),
    }


def line_of(path, names, seconds):
    """Return what is known of one file, whose laws run in a process of their own."""
    orders = {"path": str(path.resolve()), "hidden": names}
    found = in_a_process("trial", orders, seconds)
    if "late" in found:
        found = {"refused": f"did not end within {seconds:g} seconds"}
    elif "points" not in found:
        why = found.get("refused") or found.get("error", "its process ended")
        found = {"refused": why}
    return "  ".join([path.stem, *(f"{name} {fact}" for name, fact in found.items())])


def main(arguments=None):
    """Try all files, and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("laws", type=Path, help="a folder of Python files")
    version = {"type": hidden, "nargs": "+", "required": True}
    parser.add_argument("--hidden", **version, metavar="NAME:SIZE:LIMIT")
    parser.add_argument("--seconds", type=float, default=60, help="for one file")
    options = parser.parse_args(arguments)
    names = [each.name for each in options.hidden]
    with ThreadPoolExecutor(4) as pool:
        files = sorted(options.laws.glob("*.py"))
        lines = [pool.submit(line_of, path, names, options.seconds) for path in files]
        for line in lines:
            print(line.result())


if __name__ == "__main__":
    main()
