"""Which wrong version of the zoo gives the same wrong numbers?

A name is an accusation, so it needs evidence: the same output on every input that is
tried here, and, on several of them, of more than one size, an output that is wrong.
"""

import functools
import itertools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mha import zoo
from mha._arrays import Array
from mha.laws._law import Law
from mha.laws._matrix import kill_matrix
from mha.laws.subjects.encoder import with_places
from mha.laws.subjects.recognise import as_subject
from mha.laws.subjects.subject import Broke, NotApplicable, Subject, each_array

# Tokens, width of a head, heads: √d, d, √d_model, d_model, √n and n all differ. For an
# odd number of heads PyTorch's encoder takes another path than for an even one.
SIZES = ((5, 3, 2), (7, 2, 4), (4, 5, 2))
FOUR = ("W_Q", "W_K", "W_V", "W_O")
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
    return found[0][0]


def _are_one(like, setting, other):
    """Whether two members agree on what the subject could not be asked, too."""
    if like.member is other:
        return True
    several = range(len(_probes(*setting[:4])))
    pairs = [
        (_theirs(like.member, setting, i), _theirs(other, setting, i)) for i in several
    ]
    return all(
        (a is None) == (b is None) and (a is None or not _differ(a, b, EQUAL))
        for a, b in pairs
    )


def _alike(subject, setting):
    """Yield the members that agree with the subject wherever both can be asked."""
    ours = [_answer(subject, probe) for probe in _probes(*setting[:4])]
    members = (
        zoo.ALL[1:] if subject.kind != "encoder" else (*zoo.ENCODERS[1:], *zoo.WRONG)
    )
    for member in members:
        # What happens beside the output counts where all outputs are right.
        for beside in (False, True):
            if (compared := _compared(ours, member, setting, beside)) is None:
                break
            if sizes := [size for size, wrong in compared if wrong]:
                if len(sizes) >= ENOUGH and len(set(sizes)) >= OF_SIZES:
                    yield Likeness(member, len(compared), len(sizes))
                break


def _compared(ours, member, setting, beside):
    """Return sizes, and whether the member is wrong there; None if they disagree."""
    right = zoo.right_encoder if setting[0] == "encoder" else zoo.right
    pairs = []
    for i, (probe, mine) in enumerate(zip(_probes(*setting[:4]), ours, strict=True)):
        if mine is None or probe.beside != beside:
            continue
        theirs, due = _theirs(member, setting, i), _theirs(right, setting, i)
        if theirs is None or due is None:
            continue
        wrong = _differ(theirs, due, WRONG)
        if (wrong or not beside) and _differ(mine, theirs, EQUAL):
            return None
        pairs += [(probe.size, wrong)] * (wrong or not beside)
    return pairs


def _differ(ours, theirs, tolerance):
    if ours.shape != theirs.shape:
        return True
    size = max(1.0, np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0))
    near = {"rtol": 0, "atol": tolerance * size, "equal_nan": True}
    return not np.allclose(ours, theirs, **near)


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
        subject = _as_set(member, setting)
    except TypeError:
        # It runs on tensors alone, and nobody has loaded torch.
        return None
    return _answer(subject, _probes(*setting[:4])[i])


@functools.cache
def _as_set(member, setting):
    """Return the member as a subject of the same kind."""
    kind, *_, tensors, settings = setting
    if kind == "encoder" and not isinstance(member, zoo.EncoderMember):
        # The correct encoder, with another attention in it.
        encoder = zoo.EncoderMember()
        encoder.name, encoder.multi_head_attention = member.name, member
        member = encoder
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
def _probes(kind, causal, depth, takes_bias):
    """Return the inputs on which subject and members are compared."""
    given = kind, causal, depth, takes_bias
    return [probe for size in range(len(SIZES)) for probe in _probes_of(size, *given)]


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

    def dtype(subject, given, mask):
        small = each_array([given, [*rest[kind]]], lambda x: x.astype("f"), {})
        return output(subject, small[0], mask, rest=small[1]).itemsize

    def written(subject, given, mask):
        copies = [x.copy() for x in (*given, mask)]
        output(subject.borrowing(), copies[:-1], copies[-1])
        changes = zip(copies, (*given, mask), strict=True)
        return [np.abs(new.astype(float) - old).sum() for new, old in changes]

    def across(subject):
        """Let fewer queries ask; a layer gets tokens of their own for that."""
        if kind == "attention":
            return output(subject, [some[0][:2], *some[1:]])
        if kind == "encoder" or subject.other_names is None:
            raise NotApplicable("it knows self-attention only")
        return output(subject, [some[0][:2]], X_k=tokens_k)

    def many(subject, mask):
        if not (
            getattr(subject, "takes_heads", False)
            if kind == "attention"
            else subject.takes_batch
        ):
            raise NotApplicable("it reads one sequence at a time")
        return output(subject, batch, mask)

    (some, batch), tokens_k = (tokens(), tokens(2, heads)), tokens()[0]
    # One query asks the first key loudly, in either direction, and sees it alone.
    loud = [[some[0].copy(), *some[1:]] for _ in range(2)]
    for given, by in zip(loud, (1e5, -1e5), strict=True):
        given[0][1] = by * some[:2][-1][0]
    alone = np.ones((n, n), bool)
    alone[1, 1:] = False
    square, padding = rng.random((n, n)) < 0.6, np.arange(n)[None] < n - 1
    square[-2] = False
    options: list[Any] = [{}] if causal else [{}, {"is_causal": True}]
    masks = None, square, square | np.eye(n, dtype=bool), padding
    asked = [partial(output, given=some, mask=m, **o) for m in masks for o in options]
    asked += [partial(output, given=x, mask=m) for x in loud for m in (None, alone)]
    asked += [across] * (not causal)
    asked.append(lambda s: output(s.borrowing(), [*map(np.asfortranarray, some)]))
    for shape in (None, (2, 1, n, n), (2, 1, 1, n)):
        mask = None if shape is None else rng.random(shape) < 0.6
        asked.append(partial(many, mask=mask))
    yield from (Probe(size, ask) for ask in asked)
    for what, mask in itertools.product((dtype, written), masks[1:]):
        yield Probe(size, partial(what, given=some, mask=mask), beside=True)
    three = rng.standard_normal((4, n, d))
    for mask in masks[1:] * (kind != "encoder"):
        yield Probe(
            size, lambda s, m=mask: s.attend_with_weights(*three[:3], m)[1], True
        )
        yield Probe(
            size, lambda s, m=mask: np.stack(s.slopes(*three[:3], m, three[3])), True
        )
        for m in (np.where(mask, three[0, :1, :1], -np.inf), mask.astype(int)):
            yield Probe(size, lambda s, m=m: s.raw(*three[:3], m), True)


def _drawn(rng, width, takes_bias):
    """Return random weights of a layer, and of all that an encoder has around it."""
    shapes: dict[str, Any] = dict.fromkeys(FOUR, (width, width))
    shapes |= {"W_1": (width, 7), "W_2": (7, width), "b_1": 7}
    vectors = "b_2 b_Q b_K b_V b_O gain_1 bias_1 gain_2 bias_2"
    shapes |= dict.fromkeys(vectors.split(), width)
    weights = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    return with_places(weights, float, takes_bias)
