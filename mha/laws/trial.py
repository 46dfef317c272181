"""Ask the laws: all of them, or some by name; and which law kills which bug."""

import functools
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from string import ascii_letters as LETTERS
from typing import Any

import numpy as np

from mha import zoo
from mha.laws import calls, encoders, layers, masks, weights
from mha.laws.adapter import as_subject
from mha.laws.alike import lookalike
from mha.laws.judge import Law
from mha.laws.report import Finding, Report
from mha.laws.words import Conventions

__all__ = [
    "ALL", "ATTENTION", "CALLS", "ENCODER", "WHOLE", "KillMatrix", "assert_lawful",
    "check", "kill_matrix",
]  # fmt: skip

Laws = Iterable[Law | str]


def _laws_in(*modules):
    found = (x for module in modules for x in vars(module).values())
    return tuple(x for x in found if isinstance(x, Law))


# What must be true of attention, in the order of the book; a new law is found in its
# module. Then what else a call may ask: batches, other masks, gradients, dtypes.
ATTENTION, CALLS = _laws_in(weights, masks, layers), _laws_in(calls)
ALL = ATTENTION + CALLS
# What must be true of all that surrounds attention; asked of encoders only.
ENCODER = _laws_in(encoders)
# What an encoder is asked as a whole, and not about its attention alone.
WHOLE = (
    masks.empty_rows_give_zero,
    masks.future_leaves_past_alone,
    masks.padding_changes_nothing,
    masks.self_only_mask,
    layers.equals_reference,
    *ENCODER,
)
# The laws without which no other says anything; nothing is called before the first.
FIRST = calls.calls_do_not_remember, calls.calls_agree
SILENT = "a call remembers the calls before it", "two calls on the same input differ"


def check(
    subject: Any = None, only: Laws | None = None, seed: int = 0, *, breaks: Laws = (),
    because: str = "", make: Callable[..., Any] | None = None, **conventions: Any,
) -> Report:  # fmt: skip
    """Ask every law of something that attends.

    Parameters
    ----------
    subject : callable or torch.nn.Module
        An attention function ``f(Q, K, V, mask=None)``, a multi-head function
        ``f(X, W_Q, W_K, W_V, W_O, n_heads, mask=None)`` or an encoder called like
        `mha.encoder` or `mha.encoder_layer`, in NumPy or torch; a layer or encoder of
        `mha.nn` or `torch.nn`; any module with four linear layers W_Q, W_K, W_V and
        W_O; a member of `mha.zoo`; an `Adapter` around anything else. A module is
        judged in its own sizes: its numbers are borrowed, and put back.
    only : iterable of Law or str, optional
        Ask these laws alone. By default it is asked `ALL`, and an encoder `ENCODER`.
    seed : int, default 0
        Fixes the inputs that are tried.
    breaks, because : iterable of Law or str, str
        Laws that the design breaks on purpose, and the design, such as "rotary
        positions". One of them that holds all the same counts as broken.
    make : callable, optional
        ``make(d_model, n_heads)`` returns such a module in other sizes, which some laws
        need. Without `subject`, ``make(d_model=8, n_heads=2)`` is judged.
    **conventions : str, int, float or bool
        What `subject` cannot be asked, in the words of `Conventions`.

    Returns
    -------
    report : Report
        True when no law is broken. Prints the smallest failing example of each broken
        law, what was not asked and why, and what was tried. It names the wrong version
        of `mha.zoo` that gives the same wrong numbers, if there is one.

    Raises
    ------
    TypeError
        If `subject` is nothing that attends, with what is accepted.
    ValueError
        If `only` or `breaks` names no law, or `because` comes without `breaks`.

    Examples
    --------
    >>> from mha import zoo
    >>> unscaled = lambda Q, K, V, mask=None: zoo.no_scale.attention(Q, K, V, mask)
    >>> design = {"because": "no scale: it is part of W_Q"}
    >>> design["breaks"] = ["scores_keep_unit_variance", "equals_reference"]
    >>> check(unscaled).holds, check(unscaled, **design).holds
    (False, True)
    """
    subject = as_subject(subject, Conventions(**conventions), make)
    asked, declared = asked_of(subject, only), _chosen(breaks)
    if because and not declared:
        raise ValueError(f"because={because!r} needs breaks=, the laws it is about")
    known: dict[Law, Finding] = {}
    with subject.borrowed():
        for law in sorted(asked, key=lambda law: law not in FIRST):
            f = known[law] = replace(law.check(subject, seed), declared=law in declared)
            wrong = f.holds is False and not isinstance(f.expected, str)
            if law in FIRST and wrong:
                why = SILENT[FIRST.index(law)]
                known = {x: Finding(x, None, why=why, seed=seed) for x in asked} | known
                break
    findings = tuple(known[law] for law in asked)
    tried = {name: sorted(x) for name, x in subject.trace.items()}
    tried["said"] = [f"{name}={x!r}" for name, x in subject.said.said().items()]
    named, unread = partial(lookalike, subject, findings), subject.unread_masks
    return Report(subject.name, findings, named, seed, because, tried, unread)


def assert_lawful(
    subject: Any = None, except_: Laws = (), seed: int = 0, *, breaks: Laws = (),
    because: str = "", make: Callable[..., Any] | None = None, **conventions: Any,
) -> None:  # fmt: skip
    """Raise AssertionError, with the smallest example, if a law is broken.

    Laws in `except_` are not asked; all else is as in `check`. It fails, too, where an
    argument that looks like a mask was never handed one, and where no law could be
    asked: silence proves nothing.

    Examples
    --------
    >>> from mha import multi_head_attention
    >>> assert_lawful(multi_head_attention)
    """
    __tracebackhide__ = True
    subject = as_subject(subject, Conventions(**conventions), make)
    asked = asked_of(subject, None, except_)
    report = check(subject, asked, seed, breaks=breaks, because=because)
    if complaint := report.complaint:
        raise AssertionError(complaint)


def asked_of(subject: Any, only: Laws | None, without: Laws = ()) -> list[Law]:
    """Return the laws to ask of a subject: by default all, and of encoders more."""
    everything = (*ALL, *ENCODER) if subject.kind == "encoder" else ALL
    asked, left_out = _chosen(everything if only is None else only), _chosen(without)
    return [law for law in asked if law not in left_out]


def _chosen(laws):
    """Return the laws that are named, or are laws."""
    by_slug = {law.slug: law for law in (*ALL, *ENCODER)}
    laws = [laws] if isinstance(laws, str | Law) else list(laws)
    for name in laws:
        if not isinstance(name, Law) and name not in by_slug:
            known = ", ".join(by_slug)
            raise ValueError(f"no law is called {name!r}; there are {known}")
    return [law if isinstance(law, Law) else by_slug[law] for law in laws]


@dataclass(frozen=True, repr=False)
class KillMatrix:
    """Say which law kills which member; computed, never typed.

    Attributes
    ----------
    rows, columns : tuple of str
        Names of the members, the correct one first, and slugs of the laws.
    killed : ndarray of bool, shape (len(rows), len(columns))
        True where the law of the column does not hold for the member of the row.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    killed: np.ndarray

    def killed_by(self, name: str) -> tuple[str, ...]:
        """Return the slugs of the laws that the member called `name` breaks."""
        return _marked("member", name, self.rows, self.killed, self.columns)

    def kills(self, slug: str) -> tuple[str, ...]:
        """Return the names of the members that the law called `slug` kills."""
        return _marked("law", slug, self.columns, self.killed.T, self.rows)

    def __repr__(self) -> str:
        letters, width = LETTERS[: len(self.columns)], max(map(len, self.rows))
        # A page is 80 columns wide.
        gap = " " * (width + 2 * len(letters) < 80)
        lines = [" " * width + "  " + gap.join(letters)]
        for name, row in zip(self.rows, self.killed, strict=True):
            marks = gap.join("✗" if dead else "·" for dead in row)
            lines.append(f"{name:<{width}}  {marks}")
        return "\n".join([*lines, "", *map("{} {}".format, letters, self.columns)])


def _marked(kind, name, names, table, others):
    if name not in names:
        raise ValueError(f"no {kind} is called {name!r}; there are {', '.join(names)}")
    row = table[names.index(name)]
    return tuple(other for other, dead in zip(others, row, strict=True) if dead)


def kill_matrix(
    laws: Iterable[Law] | None = None, members: Iterable[Any] | None = None
) -> KillMatrix:
    """Put every member of the zoo to every law.

    Parameters
    ----------
    laws : iterable of Law, optional
        Laws of your own; by default those of `ALL`, and for encoders those of `WHOLE`.
    members : iterable of Member or EncoderMember, optional
        Whom to judge: those of `mha.zoo.ALL`, or `mha.zoo.ENCODERS`. A mistake that
        only tensors show is seen where torch is loaded.

    Examples
    --------
    >>> "doubling_changes_nothing" in kill_matrix().killed_by("scale_sqrt_n")
    True
    """
    members = zoo.ALL if members is None else tuple(members)
    torch = "torch" in sys.modules
    if laws is None:
        laws = WHOLE if _subject_of(members[0], torch).kind == "encoder" else ALL
    laws = tuple(laws)
    killed = [[_is_killed(member, law, torch) for law in laws] for member in members]
    names = tuple(member.name for member in members)
    return KillMatrix(names, tuple(law.slug for law in laws), np.array(killed))


# Each verdict is found once; nobody asks for the example, so nothing is shrunk.
@functools.cache
def _is_killed(member, law, torch):
    # What differs from call to call says nothing where two calls are compared.
    random = law is not FIRST[1] and _is_killed(member, FIRST[1], torch)
    return not random and law.breaks(_subject_of(member, torch))


# What only tensors show is seen where torch is loaded.
@functools.cache
def _subject_of(member, torch):
    return as_subject(member)
