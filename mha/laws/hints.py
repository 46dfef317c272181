"""What explains what is broken: what was not said, or a wrong version of the zoo."""

import contextlib
import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

import numpy as np

from mha import zoo
from mha.laws.adapter import as_subject
from mha.laws.designs import alibi, qk_norm, rotary, sink
from mha.laws.judge import Failure, in_place_of
from mha.laws.layers import equals_reference as REFERENCE
from mha.laws.masks import future_leaves_past_alone as FUTURE
from mha.laws.masks import padding_changes_nothing as PADDING
from mha.laws.report import Finding
from mha.laws.subject import Broke, Subject, quiet
from mha.laws.words import Conventions, NotApplicable, in_code, near

# What a layer may be without its author's saying so.
GUESSES = (
    rotary(), rotary(pairs="neighbours"), rotary(500000.0), rotary(1e6), qk_norm(),
    alibi(), sink(),
)  # fmt: skip
SHAPES = [{}, *({"mask_shape": x} for x in "qk bqk b1qk bhqk bk b11k".split())]
# Why a law may be left unasked where such words are said; "" is what a design breaks.
FOLLOWS = re.compile("$|.*(always causal|other scores|n_q = n_k|no axis|no attention)")
FLOATS = (
    "about dtype_is_kept: a NumPy float64, such as np.sqrt(d_k), makes float64 of "
    "float32; math.sqrt(d_k) does not"
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
        read = _read(subject, raised, seed) if asked else [{}]
        for words in _candidates(subject, read, seed) if asked else ():
            if any(some.items() <= words.items() for some in said):
                continue  # one of these words is enough
            if len(said) < 2 and _explains(words, subject, [REFERENCE, *asked], seed):
                said.append(words)
        if raised and read[0] and not said:
            text = ", ".join(in_code(read[0]))
            found.append(f"say {text}: then {PADDING.slug} holds, but not all of this")
    texts = (", ".join(in_code(words)) for words in said)
    return found + [f"say {text}: then nothing of this is broken" for text in texts]


def _read(subject: Subject, raised: bool, seed: int) -> list[dict[str, Any]]:
    """Return words about masks under which hidden padding changes nothing."""
    shapes = SHAPES if raised and not subject.said.mask_shape else SHAPES[:1]
    hides = [{}, {"mask_true": "hide"}][: 2 - bool(subject.said.mask_true)]
    words = (shape | more for shape in shapes for more in hides)
    return [x for x in words if _explains(x, subject, [PADDING], seed)] or [{}]


def _candidates(subject: Any, read: Any, seed: int) -> Iterator[dict[str, Any]]:
    said, causal = subject.said, {"causal": "built in"}
    words = read[0] | causal
    if subject.always_causal or not _explains(words, subject, [FUTURE], seed):
        causal = {}
    yield from (words | causal for words in read)
    for i, design in enumerate(said.design):
        for other in design.confused_with():
            yield {"design": [*said.design[:i], other, *said.design[i + 1 :]]}
    known = {type(design) for design in said.design}
    for guess in GUESSES if subject.kind != "encoder" else ():
        for words in read[:2] if type(guess) not in known else ():
            yield words | causal | {"design": [*said.design, guess]}


def _explains(words, subject, laws, seed):
    target, said = subject.source
    try:
        twin = as_subject(target, said.joined(Conventions(**words)))
    except (TypeError, ValueError):
        return False
    with twin.borrowed():
        return all(_passes(law, twin, seed) for law in laws)


def _passes(law, twin, seed):
    try:
        return law.search(twin, seed) is None
    except NotApplicable as why:
        return law not in (REFERENCE, PADDING) and FOLLOWS.match(str(why))


def lookalike(subject: Subject, findings: Iterable[Finding]) -> Any:
    """Return the member that is wrong alike, in how many laws, on how many inputs.

    A name is an accusation: it must fail in the same way on all inputs of the broken
    laws, and break no law that holds.
    """
    said, found = subject.said, []
    broken = [f for f in findings if f.verdict in ("broken", "raised")]
    # One call of this law tells most members apart.
    broken.sort(key=lambda f: f.law is not REFERENCE)
    held = [f.law for f in findings if f.verdict == "holds"]
    # Nothing in the zoo has such a design, or its numbers are too coarse.
    other = said.positional or said.n_kv_heads or said.tolerance or said.bends
    if other or "16" in f"{said.dtype}" or not all(f.breach for f in broken):
        return None
    with subject.borrowed():
        for member in zoo.ENCODERS[1:] if subject.kind == "encoder" else zoo.WRONG:
            counts = [*takewhile(bool, (_fails_alike(f, member) for f in broken))]
            twin = in_place_of(broken[0].breach[0], member)
            if len(counts) == len(broken) and not any(x.breaks(twin) for x in held):
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
