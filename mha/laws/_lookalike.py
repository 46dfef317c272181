"""Which wrong version of the zoo behaves like the one at hand?"""

import numpy as np

from mha.laws._recognise import as_subject
from mha.laws._subjects import Broke, NotApplicable


def lookalike(subject, findings):
    """Return the member that breaks the same laws, or None.

    Where several do, or where a second mistake breaks more laws, the numbers decide;
    where they do not, nobody is accused.
    """
    broken = {f.law.slug for f in findings if f.holds is False}
    if not broken:
        return None
    from mha import zoo  # zoo stands on laws, so it cannot be imported at the top

    asked = {f.law.slug for f in findings if f.holds is not None}
    matrix = zoo.kill_matrix()
    kills = {m: set(matrix.killed_by(m.name)) & asked for m in zoo.WRONG}
    alike = [member for member, killers in kills.items() if killers == broken]
    if len(alike) == 1:
        return alike[0]
    part = [member for member, killers in kills.items() if set() < killers < broken]
    return next((m for m in alike or part if _same_numbers(subject, m)), None)


def _same_numbers(subject, member):
    member = as_subject(member if subject.kind == "layer" else member.attention)
    pairs = zip(_answers(subject), _answers(member), strict=True)
    return all(
        a.shape == b.shape and np.allclose(a, b, atol=1e-6, equal_nan=True)
        for a, b in pairs
        if a is not None
    )


def _answers(subject):
    """Return what it gives on a few inputs, a mask with an empty row among them."""
    rng = np.random.default_rng(7)
    X, X_k, X_v = rng.standard_normal((3, 5, 4))
    mask = rng.random((5, 5)) < 0.6
    mask[3] = False
    names = ("W_Q", "W_K", "W_V", "W_O")
    weights = dict(zip(names, rng.standard_normal((4, 4, 4)), strict=True))
    calls = [
        lambda: subject.attend(X, X_k, X_v, heads=2),
        lambda: subject.attend(X, X, X, mask),
        lambda: subject.attend(X, X, X, mask[:1]),
        lambda: subject.attend(X, X, X, is_causal=True),
    ]
    if subject.kind == "layer":
        calls.append(lambda: subject.layer(X, weights, 2))
    return [_answer(call) for call in calls]


def _answer(call):
    try:
        return call()
    except NotApplicable:
        return None
    except Broke:
        return np.array(np.nan)
