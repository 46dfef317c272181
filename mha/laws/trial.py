"""Ask the laws: all of them, or some by name; and which law kills which bug."""

import contextlib
import functools
import importlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from mha import zoo
from mha.laws import calls, designed, encoders, layers, masks
from mha.laws.adapter import Adapter, as_subject
from mha.laws.hints import hints, lookalike
from mha.laws.judge import Law
from mha.laws.report import Finding, Report
from mha.laws.words import Conventions, in_code

__all__ = [
    "ALL", "ATTENTION", "CALLS", "DESIGN", "ENCODER", "WHOLE", "KillMatrix",
    "assert_lawful", "check", "kill_matrix", "parametrize",
]  # fmt: skip

Laws = Iterable[Law | str]


def _laws_in(*modules):
    found = (x for module in modules for x in vars(module).values())
    return tuple(x for x in found if isinstance(x, Law))


# What must be true of attention, in the order of the book; a new law is found in its
# module. Then what else a call may ask: batches, other masks, gradients, dtypes.
ATTENTION, CALLS = _laws_in(masks, layers), _laws_in(calls)
ALL = ATTENTION + CALLS
ENCODER = _laws_in(encoders)  # of all that surrounds attention
DESIGN = _laws_in(designed)  # of one design each, where it is declared
WHOLE = (  # of an encoder as a whole, and not of its attention alone
    masks.empty_rows_give_zero, masks.future_leaves_past_alone,
    masks.padding_changes_nothing, masks.self_only_mask, layers.equals_reference,
    *ENCODER,
)  # fmt: skip
# The laws without which no other says anything; nothing is called before the first.
FIRST = {
    calls.calls_do_not_remember: "a call remembers the calls before it",
    calls.calls_agree: "two calls on the same input differ",
}


def check(
    subject: Any, only: Laws | None = None, seed: int = 0, *, except_: Laws = (),
    breaks: Laws = (), because: str = "", **conventions: Any,
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
    only, except_ : iterable of Law or str, optional
        Ask these laws alone, by default `ALL`, and an encoder `ENCODER`; and leave
        those out.
    seed : int, default 0
        Fixes the inputs that are tried.
    breaks, because : iterable of Law or str, str
        Laws that the design breaks on purpose, and the design, such as "rotary
        positions". One of them that holds all the same counts as broken.
    **conventions : str, int, float or bool
        Its design, and what else it cannot be asked, in the words of `Conventions`.

    Returns
    -------
    report : Report
        True when no law is broken. Prints the smallest failing example of each broken
        law, what was not asked and why, and what was tried. It names the wrong version
        of `mha.zoo` that gives the same wrong numbers, if there is one.

    Raises
    ------
    TypeError, ValueError
        If `subject` is nothing that attends; if a law or a word is not known.

    Examples
    --------
    >>> from mha import zoo
    >>> unscaled = lambda Q, K, V, mask=None: zoo.no_scale.attention(Q, K, V, mask)
    >>> design = {"because": "no scale: it is part of W_Q"}
    >>> design["breaks"] = ["scores_keep_unit_variance", "equals_reference"]
    >>> check(unscaled).holds, check(unscaled, **design).holds
    (False, True)
    """
    subject = as_subject(subject, Conventions(**conventions))
    asked, declared = asked_of(subject, only, except_), _chosen(breaks)
    if because and not declared:
        raise ValueError(f"because={because!r} needs breaks=, the laws it is about")
    known: dict[Law, Finding] = {}
    with subject.borrowed():
        for law in sorted(asked, key=lambda law: law not in FIRST):
            f = law.check(subject, seed)
            known[law] = f = replace(f, declared=f.declared or law in declared)
            wrong = f.holds is False and not isinstance(f.expected, str)
            if wrong and (why := FIRST.get(law)):
                known = {x: Finding(x, None, why=why, seed=seed) for x in asked} | known
                break
    findings = tuple(known[law] for law in asked)
    tried: Any = {name: sorted({*map(str, x)}) for name, x in subject.trace.items()}
    tried["lengths"] = sorted(subject.trace["lengths"])
    tried["said"] = in_code(subject.said.said())
    if any(f.declared and f.law not in declared for f in findings):
        because = because or ", ".join(map(repr, subject.said.design))
    return Report(
        subject.name, findings, partial(lookalike, subject, findings),
        partial(hints, subject, findings, seed), seed, because, tried,
        subject.unread_masks, (code_of(subject), tried["said"]),
    )  # fmt: skip


def code_of(subject: Any) -> str:
    if isinstance((subject.source or [None])[0], Adapter):
        return "adapter"
    named = subject.own is None and subject.name.replace(".", "").isidentifier()
    return subject.name if named else "layer"


def parametrize(
    subject: Any, seed: int = 0, *, breaks: Laws = (), because: str = "",
    **conventions: Any,
) -> Any:  # fmt: skip
    """Make a test of pytest one item for each law; the arguments are those of `check`.

    The test gets `ask` and calls it. A law that cannot be asked is skipped, with the
    reason::

        @laws.parametrize(my_layer, design="rotary(), window(4096)")
        def test_my_layer_is_lawful(ask):
            ask()
    """
    import pytest  # not where no test is run

    subject, declared = as_subject(subject, Conventions(**conventions)), _chosen(breaks)

    def ask(law: Law) -> None:
        __tracebackhide__ = True
        told: Any = {"breaks": [law], "because": because} if law in declared else {}
        report = check(subject, [law], seed, **told)
        if report.unasked:
            pytest.skip(next(iter(report.unasked)))
        if report.complaint:
            raise AssertionError(report.complaint)

    asked = asked_of(subject)
    items = [pytest.param(partial(ask, law), id=law.slug) for law in asked]
    return pytest.mark.parametrize("ask", items)


def assert_lawful(
    subject: Any, except_: Laws = (), seed: int = 0, **conventions: Any
) -> None:
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
    report = check(subject, None, seed, except_=except_, **conventions)
    if report.complaint:
        raise AssertionError(report.complaint)


def asked_of(subject: Any, only: Laws | None = None, without: Laws = ()) -> list[Law]:
    declared = {type(design).__name__ for design in subject.said.design}
    declared |= {"step"} if subject.step else set()
    everything = (*ALL, *(law for law in DESIGN if law.of in declared))
    everything += ENCODER if subject.kind == "encoder" else ()
    asked, left_out = _chosen(everything if only is None else only), _chosen(without)
    return [law for law in asked if law not in left_out]


def _chosen(laws):
    by_slug = {law.slug: law for law in (*ALL, *ENCODER, *DESIGN)}
    laws = [laws] if isinstance(laws, str | Law) else list(laws)
    for name in laws:
        if not isinstance(name, Law) and name not in by_slug:
            known = ", ".join(by_slug)
            raise ValueError(f"no law is called {name!r}; there are {known}")
    return [law if isinstance(law, Law) else by_slug[law] for law in laws]


@dataclass(frozen=True)
class KillMatrix:
    """Which law (a column, by its slug) kills which member (a row, by its name)."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    killed: np.ndarray

    def killed_by(self, name: str) -> tuple[str, ...]:
        """Return the slugs of the laws that the member called `name` breaks."""
        return tuple(compress(self.columns, self.killed[self.rows.index(name)]))

    def kills(self, slug: str) -> tuple[str, ...]:
        """Return the names of the members that the law called `slug` kills."""
        return tuple(compress(self.rows, self.killed[:, self.columns.index(slug)]))


def kill_matrix(
    laws: Iterable[Law] | None = None, members: Iterable[Any] | None = None
) -> KillMatrix:
    """Put every member of `mha.zoo.ALL`, or these, to all laws, or to some of your own.

    Encoders, such as `mha.zoo.ENCODERS`, are put to those of `WHOLE`. A mistake that
    only tensors show is seen where torch is installed.

    Examples
    --------
    >>> matrix = kill_matrix(members=[zoo.right, zoo.scale_sqrt_n])
    >>> "doubling_changes_nothing" in matrix.killed_by("scale_sqrt_n")
    True
    """
    members = zoo.ALL if members is None else tuple(members)
    with contextlib.suppress(ImportError):
        importlib.import_module("torch")
    if laws is None:
        laws = WHOLE if _subject_of(members[0]).kind == "encoder" else ALL
    laws = tuple(laws)
    killed = [[_is_killed(member, law) for law in laws] for member in members]
    names = tuple(member.name for member in members)
    return KillMatrix(names, tuple(law.slug for law in laws), np.array(killed))


# Each verdict is found once; nobody asks for the example, so nothing is shrunk.
@functools.cache
def _is_killed(member, law):
    # What differs from call to call says nothing where two calls are compared.
    first = calls.calls_agree
    random = law is not first and _is_killed(member, first)
    return not random and law.breaks(_subject_of(member))


_subject_of = functools.cache(as_subject)
