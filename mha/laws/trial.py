"""Ask the laws: all of them, or some by name; and which law kills which bug."""

import functools
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from string import ascii_letters as LETTERS
from typing import Any

import numpy as np
import numpy.typing as npt

from mha import zoo
from mha.laws.adapter import as_subject
from mha.laws.alike import lookalike
from mha.laws.all import ALL, ENCODER, WHOLE
from mha.laws.calls import calls_agree
from mha.laws.judge import Law
from mha.laws.report import Finding, Report
from mha.laws.subject import Subject
from mha.laws.words import Conventions

__all__ = ["KillMatrix", "assert_lawful", "check", "kill_matrix"]

Laws = Iterable[Law | str]
# The laws without which no other says anything; nothing is called before the first.
FIRST = {
    "calls_do_not_remember": "a call remembers the calls before it",
    "calls_agree": "two calls on the same input differ",
}


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
        `mha.nn`; a MultiheadAttention, TransformerEncoderLayer or TransformerEncoder of
        `torch.nn`; any module with four linear layers W_Q, W_K, W_V and W_O; a member
        of `mha.zoo`; an `Adapter` around anything else. A module is judged in its own
        sizes: its numbers are borrowed, and put back.
    only : iterable of Law or str, optional
        Ask these laws alone. By default it is asked `ALL`, and an encoder `ENCODER`
        too; of an encoder those laws are asked that see it as a whole.
    seed : int, default 0
        Fixes the inputs that are tried.
    breaks : iterable of Law or str
        Laws that the design breaks on purpose. One that holds all the same is an
        expectation that is not met, and counts as broken.
    because : str
        The design that `breaks` follows from, such as "rotary positions".
    make : callable, optional
        ``make(d_model, n_heads)`` returns such a module in other sizes, which some laws
        need. Without `subject`, ``make(d_model=8, n_heads=2)`` is judged.
    **conventions : str, int, float or bool
        What `subject` cannot be asked, in the words of `Conventions`:
        ``mask_true="hide"``, ``causal="bottom-right"``, ``positional=True`` and others.

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
    >>> check(zoo.no_scale, only=["doubling_changes_nothing"]).holds
    True

    A design may break a law and be right; then it is said beforehand:

    >>> unscaled = lambda Q, K, V, mask=None: zoo.no_scale.attention(Q, K, V, mask)
    >>> design = {"because": "no scale: it is part of W_Q"}
    >>> design["breaks"] = ["scores_keep_unit_variance", "equals_reference"]
    >>> check(unscaled).holds, check(unscaled, **design).holds
    (False, True)
    """
    subject = as_subject(subject, Conventions(**conventions), make)
    declared = chosen(breaks)
    if because and not declared:
        raise ValueError(f"because={because!r} needs breaks=, the laws it is about")
    with subject.borrowed():
        findings = tuple(
            replace(f, declared=f.law in declared)
            for f in _ask(subject, asked_of(subject, only), seed)
        )
    broken = [f for f in findings if f.holds is False and not f.declared]
    tried = {name: sorted(x) for name, x in subject.trace.items()}
    tried["said"] = [f"{name}={x!r}" for name, x in subject.said.said().items()]
    return Report(
        subject.name, findings, partial(lookalike, subject, broken), seed, because,
        tried, tuple(subject.unread_masks),
    )  # fmt: skip


def _ask(subject, laws, seed):
    """Return the findings; what is said first may leave the others unasked."""
    known = {}
    for law in sorted(laws, key=lambda law: law.slug not in FIRST):
        known[law] = law.check(subject, seed)
        wrong = known[law].verdict == "broken"
        if law.slug in FIRST and wrong and not isinstance(known[law].expected, str):
            silent = Finding(law, None, why=FIRST[law.slug], subject=subject.name)
            return [known.get(x, replace(silent, law=x, seed=seed)) for x in laws]
    return [known[x] for x in laws]


def assert_lawful(
    subject: Any = None, except_: Laws = (), seed: int = 0, *, breaks: Laws = (),
    because: str = "", make: Callable[..., Any] | None = None, **conventions: Any,
) -> None:  # fmt: skip
    """Raise AssertionError, with the smallest example, if a law is broken.

    It fails, too, where an argument that looks like a mask was never handed one, and
    where no law could be asked: nothing is proved by silence.

    Parameters
    ----------
    subject, seed, breaks, because, make, **conventions
        See `check`.
    except_ : iterable of Law or str
        Laws that are not asked.

    Raises
    ------
    AssertionError
        If a law is broken.

    Examples
    --------
    >>> from mha import multi_head_attention
    >>> assert_lawful(multi_head_attention)
    """
    __tracebackhide__ = True
    subject = as_subject(subject, Conventions(**conventions), make)
    asked = asked_of(subject, except_=except_)
    report = check(subject, asked, seed, breaks=breaks, because=because)
    if complaint := report.complaint:
        raise AssertionError(complaint)


def asked_of(
    subject: Subject, only: Laws | None = None, except_: Laws = ()
) -> list[Law]:
    """Return the laws in `only`, by default all for its kind, without `except_`."""
    everything = (*ALL, *ENCODER) if subject.kind == "encoder" else ALL
    spared = chosen(except_)
    asked = chosen(everything if only is None else only)
    return [law for law in asked if law not in spared]


def chosen(laws: Laws) -> list[Law]:
    """Return the laws that `laws` names."""
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

    `rows` are names of members, the correct one first, `columns` slugs of laws, and
    `killed` is True where the law of the column does not hold for that member.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    killed: npt.NDArray[np.bool_]

    def killed_by(self, name: str) -> tuple[str, ...]:
        """Return the slugs of the laws that the member called `name` breaks."""
        row = self.killed[_index("member", name, self.rows)]
        return tuple(law for law, dead in zip(self.columns, row, strict=True) if dead)

    def kills(self, slug: str) -> tuple[str, ...]:
        """Return the names of the members that the law called `slug` kills."""
        column = self.killed[:, _index("law", slug, self.columns)]
        return tuple(name for name, dead in zip(self.rows, column, strict=True) if dead)

    def __repr__(self) -> str:
        letters, width = LETTERS[: len(self.columns)], max(map(len, self.rows))
        # A page is 80 columns wide.
        gap = " " * (width + 2 * len(letters) < 80)
        lines = [" " * width + "  " + gap.join(letters)]
        for name, row in zip(self.rows, self.killed, strict=True):
            marks = gap.join("✗" if dead else "·" for dead in row)
            lines.append(f"{name.ljust(width)}  {marks}")
        return "\n".join([*lines, "", *map("{} {}".format, letters, self.columns)])


def _index(kind, name, names):
    if name not in names:
        raise ValueError(f"no {kind} is called {name!r}; there are {', '.join(names)}")
    return names.index(name)


def kill_matrix(
    laws: Iterable[Law] | None = None, members: Iterable[Any] | None = None
) -> KillMatrix:
    """Put every member of the zoo to every law.

    By default the laws are those of `ALL`, and for encoders those of `WHOLE`, and the
    members all of the zoo. A good law of your own kills somebody and spares the correct
    one. A mistake that only tensors show is seen where torch is loaded.

    Examples
    --------
    >>> kill_matrix().killed_by("right")
    ()
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
    subject = _subject_of(member, torch)
    # What differs from call to call says nothing where two calls are compared.
    if law is not calls_agree and calls_agree.breaks(subject):
        return False
    return law.breaks(subject)


@functools.cache
def _subject_of(member, torch):
    # What only tensors show is seen where torch is loaded.
    return as_subject(member)
