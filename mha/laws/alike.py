"""Which wrong version of the zoo gives the same wrong numbers?

A name in a report is an accusation, so it needs evidence: on the inputs on which a law
is broken the member fails in the same way, and elsewhere it gives the same answers.
"""

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from mha import zoo
from mha.laws.adapter import as_subject
from mha.laws.judge import Failure
from mha.laws.report import Finding
from mha.laws.subject import Broke, Subject
from mha.laws.words import Conventions, NotApplicable, near

# Equal is what differs by no more.
EQUAL = 1e-5


class Likeness(NamedTuple):
    """A member of the zoo, how many laws it breaks alike, and on how many inputs."""

    member: Any
    laws: int
    inputs: int


def lookalike(subject: Subject, broken: Iterable[Finding]) -> Likeness | None:
    """Return the one member that is wrong as the subject is, or None."""
    said = subject.said
    if said.positional or said.n_kv_heads or said.tolerance or "16" in f"{said.dtype}":
        # Nothing in the zoo has such a design, or its numbers are too coarse.
        return None
    broken, found = [f for f in broken if f.breach], []
    # What is drawn from a seed takes longest.
    broken.sort(key=lambda f: "seed" in f.breach[1])
    with subject.borrowed():
        answers: dict[Any, list[Any]] = {}
        for member in zoo.ENCODERS[1:] if subject.kind == "encoder" else zoo.WRONG:
            if broken and all(_explains(member, f) for f in broken):
                inputs = _agreeing(member, broken[0].breach[0], answers)
                found += [Likeness(member, len(broken), inputs)] if inputs else []
    return found[0] if len(found) == 1 else None


def _explains(member, finding):
    """Whether the member fails a law on the same inputs with the same numbers.

    The input that failed first is tried first, and then all that the law has.
    """
    law, (variant, first, failure) = finding.law, finding.breach
    twin = in_place_of(variant, member)
    theirs = _asked(law, twin, first)
    if not isinstance(theirs, Failure) or not _same(failure, theirs):
        return False
    return all(
        _same(_asked(law, variant, case), _asked(law, twin, case))
        for case in law.drawn(variant, finding.seed)
    )


def _asked(law, subject, case):
    try:
        return law.ask(subject, case)
    except NotApplicable:
        return "not asked"


def _same(ours: Any, theirs: Any) -> bool:
    if not (isinstance(ours, Failure) and isinstance(theirs, Failure)):
        # What one of them cannot be asked says nothing.
        return ours is theirs or isinstance(ours, str) or isinstance(theirs, str)
    for x, y in zip(ours[:2], theirs[:2], strict=True):
        if isinstance(x, str) or isinstance(y, str):
            if type(x) is not type(y) or str(x) != str(y):
                return False
        elif np.shape(x) != np.shape(y) or not _near(np.asarray(y), np.asarray(x)):
            return False
    return True


def _near(expected, got):
    return near(expected, got, EQUAL, equal_nan=True)


@functools.cache
def _as_told(member, kind, tensors, words):
    target = member.attention if kind == "attention" else member
    if kind == "encoder_layer":
        target = member.layer
    found = as_subject(target, Conventions(**dict(words)))
    return found.but(tensors=tensors)


def in_place_of(variant: Any, member: Any) -> Subject:
    """Return the member as a subject that is asked as the variant is."""
    kind, causal = variant.kind, variant.always_causal
    if kind == "encoder" and variant.sizes.depth == 1:
        kind = "encoder_layer"
    words = (("causal", "built in"),) if causal else ()
    twin = _as_told(member, kind, variant.tensors, words)
    twin = twin.but(own=variant.own, hides_future=causal, cast=variant.cast)
    if kind.startswith("encoder"):
        eps, bend = variant.eps, variant.activation
        settings = {"norm_first": variant.norm_first, "eps": eps, "activation": bend}
        if variant.final_norm and kind == "encoder":
            settings["final_norm"] = None, None
        if variant.mode.training is not None:
            settings["training"] = variant.mode.training
        return twin.with_settings(**settings).but(takes_bias=variant.takes_bias)
    twin.crosses = getattr(variant, "other_names", None) is not None
    return twin.but(mode=variant.mode) if variant.mode.gradients else twin


def _agreeing(member, variant, answers):
    """Return on how many inputs the two agree, and 0 if they differ on one."""
    twin, count = in_place_of(variant, member), 0
    for i, (method, given) in enumerate(_probes(variant)):
        if i not in answers:
            answers[i] = _answer(variant, method, given)
        theirs = _answer(twin, method, given)
        if answers[i] is None or theirs is None:
            continue
        if answers[i].shape != theirs.shape or not _near(theirs, answers[i]):
            return 0
        count += 1
    return count


def _answer(subject, method, given):
    try:
        return np.asarray(getattr(subject, method)(**given), float)
    except (NotApplicable, Broke):
        return None


def _probes(subject):
    """Yield inputs: masks that hide two keys or more, and queries that ask loudly."""
    rng, (n, d) = np.random.default_rng(5), (5, min(3, subject.sizes.d_k))
    square, padding = rng.random((n, n)) < 0.6, np.arange(n)[None] < n - 2
    square[-2] = False
    masks = None, square, square | np.eye(n, dtype=bool), padding
    Q, K, V = rng.standard_normal((3, n, d))
    one = dict.fromkeys("QKV", Q)
    causal = [{}] if subject.always_causal else [{}, {"is_causal": True}]
    for mask in masks:
        for options in causal:
            given = one if subject.kind == "encoder" else {"Q": Q, "K": K, "V": V}
            yield "attend", given | {"mask": mask} | options
    if subject.kind == "encoder":
        return
    alone = np.ones((n, n), bool)
    alone[1, 1:] = False
    for loud in (1e5, -1e5):
        asks = Q.copy()
        asks[1] = loud * K[0]
        for mask in (None, alone):
            yield "attend", {"Q": asks, "K": K, "V": V, "mask": mask}
