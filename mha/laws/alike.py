"""Which wrong version of the zoo gives the same wrong numbers?

A name in a report is an accusation, so it needs evidence: on all inputs of the broken
laws the member fails in the same way, and it breaks no law that holds.
"""

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

import numpy as np

from mha import zoo
from mha.laws.judge import Failure, in_place_of
from mha.laws.report import Finding
from mha.laws.subject import Subject
from mha.laws.words import NotApplicable, near


def lookalike(subject: Subject, findings: Iterable[Finding]) -> Any:
    """Return the member that is wrong alike, in how many laws, on how many inputs."""
    said, found = subject.said, []
    broken = [f for f in findings if f.verdict in ("broken", "raised")]
    held = [f.law for f in findings if f.verdict == "holds"]
    # Nothing in the zoo has such a design, or its numbers are too coarse.
    other = said.positional or said.n_kv_heads or said.tolerance or said.bends
    if other or "16" in f"{said.dtype}" or not all(f.breach for f in broken):
        return None
    with subject.borrowed():
        for member in zoo.ENCODERS[1:] if subject.kind == "encoder" else zoo.WRONG:
            counts = [*takewhile(bool, (_fails_alike(f, member) for f in broken))]
            twin = in_place_of(broken[0].breach[0], member).but(own=None)
            alike = len(counts) == len(broken)
            if alike and not any(law.breaks(twin) for law in held):
                found.append((member, len(counts), sum(counts)))
    return found[0] if len(found) == 1 else None


def _fails_alike(finding, member):
    """Return on how many inputs of a law both fail alike, and 0 if one differs."""
    law, (variant, first, failure) = finding.law, finding.breach
    twin, count = in_place_of(variant, member), 0
    if not _same(failure, law.ask(twin, first)):
        return 0
    for case in law.drawn(variant, finding.seed):
        ours = law.ask(variant, case)
        if not _same(ours, law.ask(twin, case)):
            return 0
        count += isinstance(ours, Failure)
    return count


def _same(ours, theirs):
    failures = [isinstance(x, Failure) for x in (ours, theirs)]
    if isinstance(ours, NotApplicable) or not all(failures):
        return isinstance(ours, NotApplicable) or not any(failures)
    return all(map(_equal, ours[:2], theirs[:2]))


def _equal(x, y):
    if isinstance(x, str) or isinstance(y, str):
        return type(x) is type(y) and str(x) == str(y)
    x, y = np.asarray(x), np.asarray(y)
    return x.shape == y.shape and near(y, x, 1e-5, equal_nan=True)
