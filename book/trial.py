#!/usr/bin/env python3
"""Try the laws of students on wrong versions of attention that they have not seen.

book/trial.py laws/ --hidden no_scale:batch:20 mask_ignored:width:40

Each Python file in the folder `laws` holds a list `my_laws`, as in exercise 15.4. The
first hidden version above computes correct attention up to a batch of 20, which is the
number of sequences times that of heads, and beyond it what the member `no_scale` of the
zoo computes. The other sizes are `width` and `length`, the number of keys. A file with
names by which it could compute attention itself, or look behind it, is refused.
"""

import argparse
import ast
import json
import math
import os
import random
import re
import runpy
import subprocess
import sys
from pathlib import Path

from exercises.laws import Subject, broken_by, subjects
from grading.worker import in_words, limit_memory, silence

POINTS = 35
# Ways to an exponential, and ways to look behind `attend`.
REFUSED = set(
    "exp exp2 expm1 softmax power float_power pow logaddexp logaddexp2 sinh cosh tanh "
    "logspace geomspace eval exec compile open getattr vars globals locals "
    "f_back sys os".split()
)
HARMLESS = {"__name__", "__main__"}
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
    if found := set(re.findall(r"__\w+", source)) - HARMLESS:
        return f"contains {min(found)}"
    for node in ast.walk(ast.parse(source)):
        names = [getattr(node, "id", ""), getattr(node, "attr", "")]
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [each.name for each in node.names]
            modules = [getattr(node, "module", None) or name for name in modules]
            if strangers := {name.partition(".")[0] for name in modules} - {"numpy"}:
                return f"imports {min(strangers)}"
            names = [each.name for each in node.names]
        if found := REFUSED.intersection(names):
            return f"uses {min(found)}"
        if isinstance(getattr(node, "op", None), ast.Pow):
            power = node.right if isinstance(node, ast.BinOp) else node.value
            if any(isinstance(part, ast.Name) for part in ast.walk(power)):
                return "has a variable in an exponent"
    return ""


def laws_in(path):
    """Return the laws in a file, which is run anew."""
    return list(runpy.run_path(str(path))["my_laws"])


def breaks(path, version):
    """Return whether a version breaks a law of a file.

    The laws get a plain function, which has no attributes that tell what it is. They
    are fresh for each version, so they cannot compare it with those before.
    """

    def attend(Q, K, V, mask=None, is_causal=False):
        return version(Q, K, V, mask, is_causal)

    return any(broken_by(law, attend) for law in laws_in(path))


def tried(path, versions):
    """Return how many versions the laws of a file detect, and their false alarms."""
    if why := not_allowed(path.read_text(encoding="utf-8")):
        return {"refused": why}
    laws = len(laws_in(path))
    right = [subject for subject in subjects() if subject.right]
    order = [*versions, *right]
    random.SystemRandom().shuffle(order)  # so that counting the calls tells nothing
    broken = {id(version) for version in order if breaks(path, version)}
    detected, alarms = (
        sum(id(version) in broken for version in group) for group in (versions, right)
    )
    share = detected / len(versions) * (1 - alarms / len(right))
    return {
        "laws": laws,
        "detected": f"{detected} of {len(versions)}",
        "alarms": f"{alarms} of {len(right)}",
        "points": round(POINTS * share, 1),
    }


def try_here(path, versions):
    """Try one file, and print what is known of it. The file itself cannot print."""
    limit_memory(4)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    silence()
    try:
        facts = tried(path, versions)
    except BaseException as error:
        facts = {"refused": in_words(error)}
    print(json.dumps(facts), file=out, flush=True)


def in_a_process(path, names, seconds):
    """Return what is known of one file. Its laws run in a process of their own."""
    command = [sys.executable, __file__, path, "--hidden", *names, "--here"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        return json.loads(ended.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"refused": f"did not end within {seconds:g} seconds"}
    except (IndexError, ValueError):
        return {"refused": "its process ended"}


def main(arguments=None):
    """Try all files, and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("laws", type=Path, help="a folder of Python files")
    parser.add_argument("--hidden", nargs="+", required=True, metavar="NAME:SIZE:LIMIT")
    parser.add_argument("--seconds", type=float, default=60, help="for one file")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    try:
        versions = [hidden(text) for text in options.hidden]
    except argparse.ArgumentTypeError as why:
        parser.error(str(why))
    if options.here:
        return try_here(options.laws, versions)
    for path in sorted(options.laws.glob("*.py")):
        facts = in_a_process(path, options.hidden, options.seconds)
        print(path.stem, *(f"{name} {fact}" for name, fact in facts.items()), sep="  ")


if __name__ == "__main__":
    main()
