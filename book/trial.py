#!/usr/bin/env python3
"""Try the laws of students on wrong versions of attention that they have not seen.

book/trial.py laws/ --hidden no_scale:batch:20 mask_ignored:width:40

Each Python file in the folder `laws` holds a list `my_laws`, as in exercise 15.4. The
first hidden version above computes correct attention up to a batch of 20, which is the
number of sequences times that of heads, and beyond it what the member `no_scale` of the
zoo computes. The other sizes are `width` and `length`, the number of keys. A file with
words by which it could compute attention itself is refused; a determined student finds
a way around this, so read the files.
"""

import argparse
import math
import random
import re
import runpy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from answer import in_a_process
from exercises.laws import Subject, broken_by, subjects

POINTS = 35
# Other modules, ways to an exponential, and ways to look behind `attend`.
REFUSED = re.compile(
    r"\b(?:(?:import|from) (?!numpy\b)\w+|exp2?|expm1|softmax|power|float_power|pow"
    r"|logaddexp2?|sinh|cosh|tanh|eval|exec|compile|open|getattr|vars|globals|locals)\b"
    r"|__\w+"
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


def not_allowed(source):
    """Return what a file of laws should not contain, or an empty text."""
    found = REFUSED.search(source)
    return f"uses {found[0]}" if found else ""


def breaks(path, version):
    """Return whether a version breaks a law of a file.

    The laws get a plain function, which has no attributes that tell what it is. They
    are fresh for each version, so they cannot compare it with those before.
    """

    def attend(Q, K, V, mask=None, is_causal=False):
        return version(Q, K, V, mask, is_causal)

    laws = runpy.run_path(str(path))["my_laws"]
    return any(broken_by(law, attend) for law in laws)


def tried(orders, ready):
    """Return how many versions the laws of a file detect, and their false alarms."""
    ready()
    path, versions = orders["path"], [hidden(text) for text in orders["hidden"]]
    if why := not_allowed(Path(path).read_text(encoding="utf-8")):
        return {"refused": why}
    laws = len(runpy.run_path(path)["my_laws"])
    right = [subject for subject in subjects() if subject.right]
    order = [*versions, *right]
    random.SystemRandom().shuffle(order)  # so that counting the calls tells nothing
    broken = {version.name for version in order if breaks(path, version)}
    detected = sum(version.name in broken for version in versions)
    alarms = sum(subject.name in broken for subject in right)
    share = detected / len(versions) * (1 - alarms / len(right))
    return {
        "laws": laws,
        "detected": f"{detected} of {len(versions)}",
        "alarms": f"{alarms} of {len(right)}",
        "points": round(POINTS * share, 1),
    }


def line_of(path, names, seconds):
    """Return what is known of one file, whose laws run in a process of their own."""
    orders = {"path": str(path.resolve()), "hidden": names, "gigabytes": 4}
    found = in_a_process("trial", orders, seconds)
    if "late" in found:
        found = {"refused": f"did not end within {seconds:g} seconds"}
    elif "points" not in found:
        found = {
            "refused": found.get("refused") or found.get("error", "its process ended")
        }
    return "  ".join([path.stem, *(f"{name} {fact}" for name, fact in found.items())])


def main(arguments=None):
    """Try all files, and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("laws", type=Path, help="a folder of Python files")
    parser.add_argument("--hidden", nargs="+", required=True, metavar="NAME:SIZE:LIMIT")
    parser.add_argument("--seconds", type=float, default=60, help="for one file")
    options = parser.parse_args(arguments)
    try:
        names = [hidden(text).name for text in options.hidden]
    except argparse.ArgumentTypeError as why:
        parser.error(str(why))
    with ThreadPoolExecutor(4) as pool:
        files = sorted(options.laws.glob("*.py"))
        lines = [pool.submit(line_of, path, names, options.seconds) for path in files]
        for line in lines:
            print(line.result())


if __name__ == "__main__":
    main()
