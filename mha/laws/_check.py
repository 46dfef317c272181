"""Ask the laws: all of them, or some by name."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from mha.laws._all import ALL, ENCODER
from mha.laws._law import Law
from mha.laws._lookalike import lookalike
from mha.laws._report import Report
from mha.laws.subjects.recognise import as_subject
from mha.laws.subjects.subject import Subject

__all__ = ["assert_lawful", "check"]

Laws = Iterable[Law | str]


def check(subject: Any, only: Laws | None = None, seed: int = 0) -> Report:
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

    Returns
    -------
    report : Report
        True when no law is broken. Prints as a table with the smallest failing example
        of each broken law, and names the wrong version of `mha.zoo` that behaves alike.

    Raises
    ------
    TypeError
        If `subject` is nothing that attends, with what is accepted.
    ValueError
        If `only` names no law.

    Examples
    --------
    >>> from mha import zoo
    >>> check(zoo.no_scale, only=["doubling_changes_nothing"]).holds
    True
    """
    subject = as_subject(subject)
    findings = tuple(law.check(subject, seed) for law in asked_of(subject, only))
    return Report(subject.name, findings, partial(lookalike, subject, findings), seed)


def assert_lawful(subject: Any, except_: Laws = (), seed: int = 0) -> None:
    """Raise AssertionError, with the report, if a law is broken.

    Equation: see `check`  (chapter laws)

    Parameters
    ----------
    subject : callable or torch.nn.Module
        See `check`.
    except_ : iterable of Law or str
        Laws that need not hold.
    seed : int, default 0
        Fixes the inputs that are tried.

    Raises
    ------
    AssertionError
        If a law is broken.

    Examples
    --------
    >>> from mha import multi_head_attention
    >>> assert_lawful(multi_head_attention)
    """
    subject = as_subject(subject)
    report = check(subject, asked_of(subject, except_=except_), seed)
    if not report:
        raise AssertionError(f"{report!r}")


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
