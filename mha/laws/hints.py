"""What explains what is broken: what was not said, or a wrong version of the zoo."""

import contextlib
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

import numpy as np

from mha import zoo
from mha.laws import layers
from mha.laws.adapter import as_subject
from mha.laws.designs import alibi, qk_norm, rotary, sink
from mha.laws.judge import Failure, differs, in_place_of
from mha.laws.report import Finding
from mha.laws.subject import Broke, Subject, quiet
from mha.laws.words import Conventions, NotApplicable, in_code, near

# What a layer may be without its author's saying so.
GUESSES = (
    rotary(), rotary(pairs="neighbours"), rotary(500000.0), rotary(1e6), qk_norm(),
    alibi(), sink(),
)  # fmt: skip
SHAPES = "qk", "bqk", "b1qk", "bhqk", "bk", "b11k"
FLOATS = (
    "a NumPy float64, such as np.sqrt(d_k), makes float64 of float32; "
    "math.sqrt(d_k) does not"
)


def hints(subject: Subject, findings: Any, seed: int) -> list[str]:
    """Return up to two words or designs under which all that is broken holds."""
    broken = [f for f in findings if f.verdict in ("broken", "raised")]
    if not broken or subject.source is None:
        return []
    floats = [f for f in broken if f.law.slug == "dtype_is_kept" and f.got == "float64"]
    found = [FLOATS] * (bool(floats) and not subject.tensors)
    asked = [f.law for f in broken if f not in floats and not f.declared]
    said: list[dict[str, Any]] = []
    with quiet(), contextlib.suppress(Broke, NotApplicable):
        raised = any(f.verdict == "raised" for f in broken)
        for words in _candidates(subject, raised) if asked else ():
            if any(some.items() <= words.items() for some in said):
                continue  # one of these words is enough
            if len(said) < 2 and _explains(words, subject, asked, seed):
                said.append(words)
    texts = (", ".join(in_code(words)) for words in said)
    return found + [f"say {text}: then nothing of this is broken" for text in texts]


def _candidates(subject: Subject, raised: bool) -> Iterator[dict[str, Any]]:
    said, causal = subject.said, {}
    if not subject.always_causal and _never_looks_ahead(subject):
        causal = {"causal": "built in"}
        yield causal
    if subject.mask_name:
        hides = [] if said.mask_true else [{"mask_true": "hide"}]
        yield from hides
        for shape in SHAPES if raised and not said.mask_shape else ():
            for more in ({}, *hides):
                yield {"mask_shape": shape} | more | causal
    for i, design in enumerate(said.design):
        for other in design.confused_with():
            yield {"design": [*said.design[:i], other, *said.design[i + 1 :]]}
    known = {type(design) for design in said.design}
    for guess in GUESSES if subject.kind != "encoder" else ():
        if type(guess) not in known:
            yield causal | {"design": [*said.design, guess]}


def _never_looks_ahead(subject):
    """Whether no output depends on a later token, though no mask was handed over."""
    X = np.random.default_rng(0).standard_normal((4, 2))
    changed = np.concatenate([X[:3], 3 - X[3:]])
    first, second = (subject.attend(x, x, x)[:3] for x in (X, changed))
    return differs(first, second) is None


def _explains(words, subject, asked, seed):
    target, said = subject.source
    try:
        twin = as_subject(target, said.joined(Conventions(**words)))
    except (TypeError, ValueError):
        return False
    reference = layers.equals_reference
    return all(
        f.holds or (law is not reference and (f.declared or "always causal" in f.why))
        for law in (reference, *(x for x in asked if x is not reference))
        for f in [law.check(twin, seed)]
    )


def lookalike(subject: Subject, findings: Iterable[Finding]) -> Any:
    """Return the member that is wrong alike, in how many laws, on how many inputs.

    A name is an accusation: it must fail in the same way on all inputs of the broken
    laws, and break no law that holds.
    """
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
