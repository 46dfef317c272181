"""What, if it is said, explains all that is broken. Each hint has been tried."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from mha.laws import layers
from mha.laws.adapter import as_subject
from mha.laws.designs import alibi, qk_norm, rotary, sink
from mha.laws.judge import differs
from mha.laws.subject import Broke, Subject
from mha.laws.words import Conventions, NotApplicable, in_code

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
    with contextlib.suppress(Broke, NotApplicable):
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
    target, said, make = subject.source
    try:
        twin = as_subject(target, said.joined(Conventions(**words)), make)
    except (TypeError, ValueError):
        return False
    reference = layers.equals_reference
    return all(
        f.holds or (law is not reference and (f.declared or "always causal" in f.why))
        for law in (reference, *(x for x in asked if x is not reference))
        for f in [law.check(twin, seed)]
    )
