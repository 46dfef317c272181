"""Which wrong version of the zoo behaves like the one at hand?"""

import numpy as np

from mha.laws._recognise import as_subject
from mha.laws._stacks import HEADS, encoder_weights
from mha.laws._subjects import Broke, NotApplicable


def lookalike(subject, findings):
    """Return the member that breaks the same laws, or None.

    Where several do, or where a second mistake breaks more laws, the numbers decide;
    where they do not, nobody is accused. Of an encoder they decide first.
    """
    broken = {f.law.slug for f in findings if f.holds is False}
    if not broken:
        return None
    from mha import zoo  # zoo stands on laws, so it cannot be imported at the top

    if subject.kind == "encoder":
        member = _encoder_like(subject, zoo)
        if member or "equals_reference" in broken:
            return member
    asked = {f.law.slug for f in findings if f.holds is not None}
    matrix = zoo.kill_matrix()
    kills = {m: set(matrix.killed_by(m.name)) & asked for m in zoo.WRONG}
    alike = [member for member, killers in kills.items() if killers == broken]
    if len(alike) == 1:
        return alike[0]
    part = [member for member, killers in kills.items() if set() < killers < broken]
    answers = _answers(subject, subject.always_causal)
    same = (m for m in alike or part if _same_numbers(answers, _theirs(subject, m)))
    return next(same, None)


def _same_numbers(ours, theirs):
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None]
    return bool(pairs) and all(
        a.shape == b.shape and np.allclose(a, b, atol=1e-6, equal_nan=True)
        for a, b in pairs
    )


def _theirs(subject, member):
    member = as_subject(member.attention if subject.kind == "attention" else member)
    return _answers(member, subject.always_causal)


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


def _encoder_like(subject, zoo):
    """Return the member that, as an encoder or in one, gives the same wrong numbers.

    Some mistakes are none in a post-norm layer, or in one layer alone.
    """
    members = {m: m for m in zoo.ENCODERS} | {m: _around(m, zoo) for m in zoo.WRONG}
    for variant in subject.variants():
        try:
            settings = _settings(variant)
        except Broke:
            continue
        ours = _whole_answers(variant, variant)
        theirs = {
            name: _whole_answers(variant, as_subject(m).with_settings(**settings))
            for name, m in members.items()
        }
        alike = [m for m, answers in theirs.items() if _same_numbers(ours, answers)]
        if alike and zoo.right_encoder not in alike:
            return alike[0]
    return None


def _around(member, zoo):
    """Return the right encoder with another attention in it."""
    encoder = zoo.EncoderMember()
    encoder.name, encoder.multi_head_attention = member.name, member
    return encoder


def _whole_answers(subject, encoder):
    """Return what the encoder gives on inputs that the subject can be asked."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((2, 3, 4))
    mask, layers = rng.random((2, 1, 3, 3)) < 0.6, encoder_weights(7, subject.depth)
    mask[0, 0, 2] = False
    layers = [subject.with_places(weights, X.dtype) for weights in layers]
    some = ((X[0], None), (X[0], mask[0, 0]), (X[0], mask[1, 0, :1]), (X, mask))
    causal = {"is_causal": subject.always_causal}
    calls = [
        lambda x=x, m=m: encoder.encode(x, layers, HEADS, m, **causal) for x, m in some
    ]
    calls.append(lambda: encoder.encode(X[0], layers, HEADS, is_causal=True))
    return [_answer(call) for call in calls]


def _settings(subject):
    settings = {"norm_first": subject.norm_first, "eps": subject.eps}
    if subject.final_norm:
        settings["final_norm"] = None, None
    return settings | {"activation": subject.activation}


def _answer(call):
    try:
        return call()
    except NotApplicable:
        return None
    except Broke:
        return np.array(np.nan)
