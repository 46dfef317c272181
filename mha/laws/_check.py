"""Ask the laws: all of them, or some by name."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from mha.laws._all import ALL, ENCODER
from mha.laws._law import Law
from mha.laws._lookalike import lookalike
from mha.laws._report import Finding, Report
from mha.laws.subjects.conventions import Conventions
from mha.laws.subjects.recognise import as_subject
from mha.laws.subjects.subject import Subject

__all__ = ["assert_lawful", "check"]

Laws = Iterable[Law | str]


# The laws without which no other says anything; nothing is called before the first.
FIRST = {
    "calls_do_not_remember": "a call remembers the calls before it",
    "calls_agree": "two calls on the same input differ",
}

# Few laws try more tokens than this; the report says which.
LONGER = 32


def check(
    subject: Any, only: Laws | None = None, seed: int = 0, *, breaks: Laws = (),
    because: str = "", **conventions: Any,
) -> Report:  # fmt: skip
    """Ask every law of something that attends.

    Equation: lawful ⇔ no law is broken  (chapter laws)

    Parameters
    ----------
    subject : callable or torch.nn.Module
        An attention function ``f(Q, K, V, mask=None)``, a multi-head function
        ``f(X, W_Q, W_K, W_V, W_O, n_heads, mask=None)`` or an encoder called like
        `mha.encoder` or `mha.encoder_layer`, in NumPy or torch; a layer or encoder of
        `mha.nn`; a MultiheadAttention, TransformerEncoderLayer or TransformerEncoder of
        `torch.nn`; a member of `mha.zoo`; an `Adapter` around anything else. A module
        is never changed: its class is built anew in the sizes the laws need.
    only : iterable of Law or str, optional
        Ask these laws alone. By default it is asked `ALL`, and an encoder `ENCODER`
        too; the laws of attention are then asked of the attention in it, which is seen
        through norms and residuals.
    seed : int, default 0
        Fixes the inputs that are tried.
    breaks : iterable of Law or str
        Laws that the design breaks on purpose. One that holds all the same is an
        expectation that is not met, and counts as broken.
    because : str
        The design that `breaks` follows from, such as "rotary positions".
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
    subject, declared = as_subject(subject, Conventions(**conventions)), chosen(breaks)
    if because and not declared:
        raise ValueError(f"because={because!r} needs breaks=, the laws it is about")
    findings = tuple(
        replace(f, declared=f.law in declared)
        for f in _ask(subject, asked_of(subject, only), seed)
    )
    broken = tuple(f.law for f in findings if f.holds is False)
    tried = {name: sorted(x) for name, x in vars(subject.trace).items()}
    tried |= {"longer": subject.trace.longer, "others": subject.never_handed}
    tried["said"] = [f"{name}={x!r}" for name, x in subject.said.said().items()]
    return Report(
        subject.name, findings, partial(lookalike, subject, broken), seed, because,
        tried, tuple(subject.unread_masks),
    )  # fmt: skip


def _ask(subject, laws, seed):
    """Return the findings; what is said first may leave the others unasked."""
    known, trace = {}, subject.trace
    for law in sorted(laws, key=lambda law: law.slug not in FIRST):
        before, trace.lengths = trace.lengths, set()
        known[law] = law.check(subject, seed)
        if longer := sorted(n for n in trace.lengths if n > LONGER):
            trace.longer[law.slug] = longer
        trace.lengths |= before
        if law.slug in FIRST and known[law].verdict == "broken":
            silent = Finding(law, None, why=FIRST[law.slug], subject=subject.name)
            return [known.get(x, replace(silent, law=x, seed=seed)) for x in laws]
    return [known[x] for x in laws]


def assert_lawful(
    subject: Any, except_: Laws = (), seed: int = 0, *, breaks: Laws = (),
    because: str = "", **conventions: Any,
) -> None:  # fmt: skip
    """Raise AssertionError, with the smallest example, if a law is broken.

    Equation: see `check`  (chapter laws)

    It fails, too, where an argument that looks like a mask was never handed one, and
    where no law could be asked: nothing is proved by silence.

    Parameters
    ----------
    subject : callable or torch.nn.Module
        See `check`.
    except_ : iterable of Law or str
        Laws that are not asked.
    seed : int, default 0
        Fixes the inputs that are tried.
    breaks : iterable of Law or str
        Laws that the design breaks on purpose; see `check`.
    because : str
        That design, in words.
    **conventions : str, int, float or bool
        See `check`.

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
    subject = as_subject(subject, Conventions(**conventions))
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
