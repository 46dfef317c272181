"""Which wrong version of the zoo behaves like the one at hand?"""

import functools
from collections.abc import Iterable

import numpy as np

from mha import zoo
from mha.laws._matrix import kill_matrix
from mha.laws._report import Finding
from mha.laws.subjects.encoder import HEADS, WIDTH, encoder_weights, with_places
from mha.laws.subjects.recognise import as_subject
from mha.laws.subjects.subject import Broke, NotApplicable, Subject


def lookalike(
    subject: Subject, findings: Iterable[Finding]
) -> zoo.Member | zoo.EncoderMember | None:
    """Return the member that breaks the same laws, or None.

    Where several do, or where a second mistake breaks more laws, the numbers decide;
    where they do not, none is named. Of an encoder they decide first.
    """
    broken = {f.law.slug for f in findings if f.holds is False}
    if not broken:
        return None
    if subject.kind == "encoder":
        member = _encoder_like(subject)
        if member or "equals_reference" in broken:
            return member
    asked = {f.law.slug for f in findings if f.holds is not None}
    matrix = kill_matrix()
    kills = {m: set(matrix.killed_by(m.name)) & asked for m in zoo.WRONG}
    alike = [member for member, killers in kills.items() if killers == broken]
    if len(alike) == 1:
        return alike[0]
    part = [member for member, killers in kills.items() if set() < killers < broken]
    causal, whole = subject.always_causal, subject.kind != "attention"
    ours = _answers(subject, causal)
    answers = ((m, _answers_of(m, causal, whole)) for m in alike or part)
    return next((m for m, theirs in answers if _same_numbers(ours, theirs)), None)


def _same_numbers(ours, theirs):
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None]
    return bool(pairs) and all(
        a.shape == b.shape and np.allclose(a, b, atol=1e-6, equal_nan=True)
        for a, b in pairs
    )


@functools.cache
def _answers_of(member, causal, whole):
    return _answers(as_subject(member if whole else member.attention), causal)


def _answers(subject, causal):
    """Return what it gives on a few inputs, a mask with an empty row among them."""
    rng = np.random.default_rng(7)
    X, X_k, X_v = rng.standard_normal((3, 5, 4))
    mask = rng.random((5, 5)) < 0.6
    mask[3] = False
    names = ("W_Q", "W_K", "W_V", "W_O")
    weights = dict(zip(names, rng.standard_normal((4, 4, 4)), strict=True))
    # An encoder would answer as a whole if all three were one.
    same = (X, X.copy(), X.copy()) if subject.kind == "encoder" else (X, X, X)
    calls = [
        lambda: subject.attend(X, X_k, X_v, heads=2, is_causal=causal),
        lambda: subject.attend(*same, mask, is_causal=causal),
        lambda: subject.attend(*same, mask[:1], is_causal=causal),
        lambda: subject.attend(*same, is_causal=True),
    ]
    if subject.kind != "attention":
        calls.append(lambda: subject.layer(X, weights, 2, is_causal=causal))
    return [_answer(call) for call in calls]


def _encoder_like(subject):
    """Return the member that, as an encoder or in one, gives the same wrong numbers.

    Some mistakes are none in a post-norm layer, or in one layer alone.
    """
    for variant in subject.variants():
        try:
            settings = {"norm_first": variant.norm_first, "eps": variant.eps}
            settings |= {"activation": variant.activation}
        except Broke:
            continue
        if variant.final_norm:
            settings["final_norm"] = None, None
        inputs = variant.depth, variant.takes_bias, variant.always_causal
        ours = _whole_answers(variant, *inputs)
        for member in (*zoo.ENCODERS, *zoo.WRONG):
            theirs = _whole_answers_of(member, tuple(settings.items()), *inputs)
            if _same_numbers(ours, theirs):
                # The first encoder is the right one: nothing is wrong in this variant.
                if member is zoo.right_encoder:
                    break
                return member
    return None


@functools.cache
def _whole_answers_of(member, settings, *inputs):
    encoder = member
    if not isinstance(member, zoo.EncoderMember):
        # The correct encoder, with another attention in it.
        encoder = zoo.EncoderMember()
        encoder.name, encoder.multi_head_attention = member.name, member
    return _whole_answers(as_subject(encoder).with_settings(**dict(settings)), *inputs)


def _whole_answers(encoder, depth, takes_bias, causal):
    """Return what the encoder gives on inputs that the subject can be asked."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((2, 5, WIDTH))
    mask, layers = rng.random((2, 1, 5, 5)) < 0.6, encoder_weights(7, depth)
    mask[0, 0, 2] = False
    layers = [with_places(weights, X.dtype, takes_bias) for weights in layers]
    some = ((X[0], None), (X[0], mask[0, 0]), (X[0], mask[1, 0, :1]), (X, mask))
    calls = [
        lambda x=x, m=m: encoder.encode(x, layers, HEADS, m, is_causal=causal)
        for x, m in some
    ]
    calls.append(lambda: encoder.encode(X[0], layers, HEADS, is_causal=True))
    return [_answer(call) for call in calls]


def _answer(call):
    try:
        return call()
    except NotApplicable:
        return None
    except Broke:
        return np.array(np.nan)
