"""Which wrong version of the zoo gives the same wrong numbers?

A name is an accusation, so it needs evidence: the same output on every input that is
tried here, and, on several of them, of more than one size, an output that is wrong.
"""

import functools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mha import zoo
from mha._doors import Array
from mha.laws._law import Law
from mha.laws._matrix import breaks, kill_matrix
from mha.laws.subjects.conventions import NotApplicable
from mha.laws.subjects.encoder import shapes_of
from mha.laws.subjects.layer import FOUR
from mha.laws.subjects.recognise import as_subject
from mha.laws.subjects.results import Broke, near
from mha.laws.subjects.subject import Subject

# Tokens, width of a head, heads: √d, d, √d_model, d_model, √n and n all differ. For an
# odd number of heads PyTorch's encoder takes another path than for an even one.
SIZES = ((5, 3, 2), (7, 2, 4), (4, 5, 2))
METHODS = {"attention": "attend", "layer": "layer", "encoder": "encode"}
# Equal is what differs by no more; wrong is what differs by much more.
EQUAL, WRONG = 1e-5, 1e-3
# So many wrong answers, on inputs of so many sizes, must be the same.
ENOUGH, OF_SIZES = 3, 2


class Likeness(NamedTuple):
    """A member of the zoo that gives the same answers, and how many are wrong."""

    member: Any
    inputs: int
    wrong: int
    # The laws that are broken, though the member does not break them.
    others: tuple[str, ...] = ()


class Probe(NamedTuple):
    """One input; `beside` asks not for the output but for what happens beside it."""

    size: int
    ask: Callable[[Subject], Array]
    beside: bool = False


def lookalike(subject: Subject, broken: Iterable[Law]) -> Likeness | None:
    """Return the member that is wrong as the subject is, or None.

    It breaks one of the laws that are broken, too. Of several members none is named,
    unless they are one and the same in the place of the subject.
    """
    said = subject.said
    if said.positional or said.n_kv_heads or said.tolerance or "16" in f"{said.dtype}":
        # Nothing in the zoo has such a design, or its numbers are too coarse.
        return None
    found: list[tuple[Likeness, Any]] = []
    for variant in subject.variants():
        try:
            setting = _setting(variant)
        except Broke:
            continue
        found += [(like, setting) for like in _alike(variant, setting)]
    found = [x for x in found if kill_matrix(broken, [x[0].member]).killed.any()]
    if not found or not all(_are_one(*found[0], other.member) for other, _ in found):
        return None
    like, setting = found[0]
    twin = _as_set(like.member, setting)
    left = [law for law in broken if not kill_matrix([law], [like.member]).killed.any()]
    others = tuple(law.slug for law in left if not breaks(law, twin))
    return like._replace(others=others)


def _are_one(like, setting, other):
    """Whether two members agree on what the subject could not be asked, too."""
    several = range(len(_probes(*setting[:4])))
    both = ([_theirs(x, setting, i) for i in several] for x in (like.member, other))
    return not any(_differ(a, b, EQUAL) for a, b in zip(*both, strict=True))


def _alike(subject, setting):
    """Yield the members that agree with the subject wherever both can be asked."""
    wrong_encoders = zoo.ENCODERS[1:] if setting[0] == "encoder" else ()
    right = zoo.right_encoder if wrong_encoders else zoo.right
    probes = _probes(*setting[:4])
    answers = [(i, p, _answer(subject, p)) for i, p in enumerate(probes)]
    known = [(*x, _theirs(right, setting, x[0])) for x in answers if x[2] is not None]
    # Where the subject is wrong most members differ from it: one look is enough.
    known.sort(key=lambda x: not _differ(*x[2:], WRONG))
    if not known or not _differ(*known[0][2:], WRONG):
        return
    for member in (*wrong_encoders, *zoo.WRONG):
        # What happens beside the output counts where all outputs are right.
        for beside in (False, True):
            some = [x for x in known if x[1].beside == beside]
            if (compared := _compared(some, member, setting, beside)) is None:
                break
            if sizes := [size for size, wrong in compared if wrong]:
                if len(sizes) >= ENOUGH and len(set(sizes)) >= OF_SIZES:
                    yield Likeness(member, len(compared), len(sizes))
                break


def _compared(known, member, setting, beside):
    """Return sizes, and whether the member is wrong there; None if they disagree."""
    pairs = []
    for i, probe, mine, due in known:
        theirs = _theirs(member, setting, i)
        if theirs is None or due is None:
            continue
        wrong = _differ(theirs, due, WRONG)
        if (wrong or not beside) and _differ(mine, theirs, EQUAL):
            return None
        pairs += [(probe.size, wrong)] * (wrong or not beside)
    return pairs


def _differ(ours, theirs, tolerance):
    if ours is None or theirs is None or ours.shape != theirs.shape:
        return ours is not theirs
    return not near(theirs, ours, tolerance, equal_nan=True)


def _setting(subject):
    """Return how a member must be set and asked to be compared with the subject."""
    kind, settings = subject.kind, {}
    if kind != "encoder":
        return kind, subject.always_causal, 1, False, subject.tensors, ()
    settings = {"norm_first": subject.norm_first, "eps": subject.eps}
    settings |= {"activation": subject.activation}
    if subject.final_norm:
        settings["final_norm"] = None, None
    shape = subject.always_causal, subject.depth, subject.takes_bias
    return kind, *shape, subject.tensors, tuple(settings.items())


@functools.cache
def _theirs(member, setting, i):
    try:
        return _answer(_as_set(member, setting), _probes(*setting[:4])[i])
    except TypeError:
        return None  # It runs on tensors alone, and nobody has loaded torch.


@functools.cache
def _as_set(member, setting):
    """Return the member as a subject of the same kind."""
    kind, *_, tensors, settings = setting
    if kind == "encoder" and not isinstance(member, zoo.EncoderMember):
        # The correct encoder, with another attention in it.
        member = zoo.EncoderMember(member.name, member.steps)
    subject = as_subject(member.attention if kind == "attention" else member)
    subject = subject.but(tensors=tensors)
    return subject.with_settings(**dict(settings)) if settings else subject


def _answer(subject, probe):
    """Return what comes, and None where nothing does: that compares with nothing."""
    try:
        return np.asarray(probe.ask(subject), float)
    except (NotApplicable, Broke):
        return None


@functools.cache
def _probes(*given):
    """Return the inputs on which subject and members are compared."""
    return [probe for i in range(len(SIZES)) for probe in _probes_of(i, *given)]


def _probes_of(size, kind, causal, depth, takes_bias):
    rng, (n, d, heads) = np.random.default_rng(size), SIZES[size]
    drawn = [_drawn(rng, heads * d, takes_bias) for _ in range(depth)]
    four = {name: drawn[0][name] for name in FOUR}
    rest: Any = {"attention": (), "layer": (four, heads), "encoder": (drawn, heads)}

    def tokens(*leading):
        """Return queries, keys and values, or the tokens that they are made of."""
        if kind == "attention":
            return [*rng.standard_normal((3, *leading, n, d))]
        return [rng.standard_normal((*leading[:1], n, heads * d))]

    def output(subject, given, mask=None, is_causal=causal, rest=rest[kind], **others):
        method = getattr(subject, METHODS[kind])
        return method(*given, *rest, mask, is_causal=is_causal, **others)

    def across(subject, **options):
        """Let fewer queries ask; a layer gets tokens of their own for that."""
        if kind == "encoder" or (kind == "layer" and not subject.other_names):
            raise NotApplicable("it knows self-attention only")
        others = {"X_k": some[0]} if kind == "layer" else {}
        return output(subject, [some[0][:2] + 1, *some[1:]], **others, **options)

    def many(subject, mask=None):
        if not (subject.takes_heads if kind == "attention" else subject.takes_batch):
            raise NotApplicable("it reads one sequence at a time")
        return output(subject, batch, mask)

    some, batch, three = tokens(), tokens(2, heads), rng.standard_normal((3, n, d))
    square, padding = rng.random((n, n)) < 0.6, np.arange(n)[None] < n - 1
    square[-2] = False
    masks = square, square | np.eye(n, dtype=bool), padding
    options: list[Any] = [{}] if causal else [{}, {"is_causal": True}]
    ask = [
        partial(output, given=some, mask=m, **o)
        for m in (None, *masks)
        for o in options
    ]
    ask += [across] * (not causal)
    ask += [lambda s: output(s.borrowing(), [*map(np.asfortranarray, some)]), many]
    ask += [partial(many, mask=rng.random((2, 1, m, n)) < 0.6) for m in (1, n)]
    # One query asks the first key loudly, in either direction, and sees it alone.
    alone = np.ones((n, n), bool)
    alone[1, 1:] = False
    for by in (1e5, -1e5):
        loud = [some[0].copy(), *some[1:]]
        loud[0][1] = by * some[:2][-1][0]
        ask += [partial(output, given=loud, mask=m) for m in (None, alone)]
    beside: list[Any] = [partial(across, is_causal=True)] * (not causal)
    for m in masks * (kind != "encoder"):
        for added in (np.where(m, rng.random(m.shape), -np.inf), m.astype(int)):
            beside.append(lambda s, m=added: s.attend(*three, m))
        beside.append(lambda s, m=m: s.attend_with_weights(*three, m)[1])
        beside.append(lambda s, m=m: np.stack(s.slopes(*three, m, three[0])))
    yield from (Probe(size, f, f in beside) for f in (*ask, *beside))


def _drawn(rng, width, takes_bias):
    weights = {name: rng.standard_normal(x) for name, x in shapes_of(width).items()}
    return {x: W for x, W in weights.items() if takes_bias or not x.startswith("b")}
