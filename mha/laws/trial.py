"""Ask the laws: all of them, or some by name; and which law kills which bug."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import compress
from typing import Any

import numpy as np

import mha
from mha import zoo
from mha.laws import calls, encoders, heads, masks
from mha.laws.judge import Failure, Law, paired
from mha.laws.report import Finding, Report
from mha.laws.subject import Broke, Sizes, Subject
from mha.laws.tensors import torch

__all__ = [
    "ALL", "ATTENTION", "CALLS", "ENCODER", "KillMatrix", "Unlawful", "assert_lawful",
    "check", "kill_matrix", "parametrize",
]  # fmt: skip

Laws = Iterable[Law | str]
Reasons = dict[Any, str]  # by law, or its name


def _laws_in(*modules: Any) -> tuple[Law, ...]:
    found = (x for module in modules for x in vars(module).values())
    return tuple(x for x in found if isinstance(x, Law))


# What must be true of attention, in the order of the book, and then what else a call
# may ask: batches, other masks, gradients, dtypes. A new law is found in its module.
ATTENTION, CALLS = _laws_in(masks, heads), _laws_in(calls)
ENCODER = _laws_in(encoders)  # of all that surrounds attention
ALL = ATTENTION + CALLS + ENCODER
# Without these no other law says anything.
FIRST = {
    calls.calls_do_not_remember: "a call remembers the calls before it",
    calls.calls_agree: "two calls on the same input differ",
}
WHOLE = calls.equals_reference
# What right layers may do otherwise says little beside other broken laws.
CONVENTIONS = "empty_rows_give_zero", "dtype_is_kept"
ASKED = {  # the questions that have an answer, by signature
    "attend": ("attend", "tokens"), "layer": ("attend", "tokens", "layer"),
    "encode": ("tokens", "encode"), "encoder_layer": ("tokens", "encode"),
}  # fmt: skip


def check(
    subject: Any, only: Laws | None = None, *, reference: Any = None, skip: Laws = (),
    expected: Reasons | None = None, sizes: Sizes | None = None,
    tolerance: float | None = None, seed: int = 0,
) -> Report:  # fmt: skip
    """Ask a function all laws of attention.

    Parameters
    ----------
    subject : function
        ``attend(Q, K, V, mask=None)``, ``layer(X, W_Q, W_K, W_V, W_O, n_heads,
        mask=None)`` or ``encode(X, layers, n_heads, mask=None)``, which takes and
        returns NumPy arrays; True in a mask = may attend. What else it takes, such as
        is_causal, X_k, return_weights or biases, is asked, too. See `torch`, `module`,
        `encoder` and `steps` for what is no such function; PyTorch's own attention and
        `mha.nn.MultiHeadAttention` need none of them.
    only, skip : iterable of Law or str, optional
        Ask these laws alone; leave those out.
    reference : function, optional
        What is correct, with the same signature; `mha.scaled_dot_product_attention` and
        the functions built on it by default. A law is asked on an input where the
        reference keeps it, and there the subject must give the reference's numbers. An
        ``attend`` as reference of a layer is what each head does. An encoder is asked
        in the one order of its norms that the reference has. It raises
        NotImplementedError where it has no answer.
    expected : dict of Law or str to str, optional
        Laws that it breaks, each with the reason. They count as no failure, but one
        that holds after all, or was not asked, does.
    sizes : Sizes, optional
        Widths and heads that are asked of a layer.
    tolerance : float, default 1e-5
        How far from the reference a number may be.
    seed : int, default 0
        Fixes the inputs that are drawn.

    Returns
    -------
    report : Report
        True when no law is broken, but for expected ones. Prints the smallest failing
        example of each broken law, what was not asked and why, and the member of
        `mha.zoo` that gives the same wrong numbers, if there is one.

    Raises
    ------
    TypeError
        If the subject is called in another way.
    WrongReference
        If the reference raises another error than NotImplementedError, or gives NaN
        where the subject gives numbers.

    Examples
    --------
    >>> def unscaled(Q, K, V, mask=None):
    ...     return mha.scaled_dot_product_attention(Q, K, V, mask, scale=1.0)
    >>> report = check(unscaled)
    >>> report.holds, report.alike
    (False, 'no_scale')
    >>> check(unscaled, reference=unscaled).holds
    True
    """
    asked, correct = paired(subject, reference, sizes=sizes, tolerance=tolerance)
    laws = _asked(asked, only, skip)
    reasons = _reasons(expected or {}, laws if only is None else ALL)
    known: dict[Law, Finding] = {}
    for law in sorted(laws, key=lambda law: law not in FIRST):
        known[law] = found = law.found(asked, correct, seed)
        if found.verdict == "broken" and (why := FIRST.get(law)):
            none = {x: _not_asked(x, why) for x in laws}
            known = none | known
            break
    findings = _with_all_numbers([known[law] for law in laws])
    findings = [_as_expected(x, reasons.get(x.law)) for x in findings]
    notes = _unused(asked, correct)
    alike, wrong = "", ""
    if not correct.declared:
        alike, wrong = _alike(asked, correct, findings)
        whole = any(x.law == WHOLE.name and x.verdict == "broken" for x in findings)
        notes += [ON_PURPOSE] * (whole and not alike)
    told = tuple(notes), alike, wrong, _tried(asked)
    return Report(asked.name, tuple(findings), *told)


def _not_asked(law: Law, why: str) -> Finding:
    return Finding(law.name, law.sentence, "not asked", law.reason, why)


def _asked(subject: Subject, only: Laws | None, skip: Laws) -> list[Law]:
    """Return the laws that a check asks, by default all of its signature."""
    fitting = [law for law in ALL if law.asks in ASKED[subject.kind]]
    left_out = _chosen(skip)
    laws = fitting if only is None else _chosen(only)
    return [law for law in laws if law not in left_out]


def _reasons(expected: Reasons, laws: Iterable[Law]) -> dict[str, str]:
    """Return why laws are expected to be broken, by their names."""
    if not isinstance(expected, dict) or not all(expected.values()):
        raise ValueError("expected= says why: {law: reason}")
    reasons = dict(zip(_chosen(expected), expected.values(), strict=True))
    if never := [law.name for law in reasons if law not in laws]:
        raise ValueError(
            f"{', '.join(never)} cannot be in expected=: it is in skip=, or a function "
            "of this signature is not asked"
        )
    return {law.name: why for law, why in reasons.items()}


def _as_expected(x: Finding, reason: str | None) -> Finding:
    """Say why it is expected to be broken, or that it is not."""
    if reason is None:
        return x
    if x.broken:
        return replace(x, verdict="expected", why=reason)
    but = "it holds" if x.holds else f"it was not asked ({x.why})"
    why = f"{x.law} was expected to be broken ({reason}), but {but}"
    return replace(x, verdict="not as expected", why=why)


def _chosen(laws: Laws) -> list[Law]:
    named = {law.name: law for law in ALL}
    laws = [laws] if isinstance(laws, str | Law) else list(laws)
    for name in laws:
        if not isinstance(name, Law) and name not in named:
            raise ValueError(f"no law is called {name!r}; there are {', '.join(named)}")
    return [law if isinstance(law, Law) else named[law] for law in laws]


def _with_all_numbers(findings: list[Finding]) -> list[Finding]:
    """Let equals_reference be broken by other numbers on the inputs of any law."""
    elsewhere = [x for x in findings if x.other and not x.broken]
    if not elsewhere:
        return findings
    given, expected, got = min(
        (x.other for x in elsewhere), key=lambda x: np.size(x[1])
    )
    names = ", ".join(x.law for x in elsewhere[:3])
    more = f" and {len(elsewhere) - 3} more" * (len(elsewhere) > 3)
    facts: Any = {"verdict": "broken", "why": "", "where": f"inputs of {names}{more}"}
    facts |= {"example": given, "expected": expected, "got": got}
    return [
        replace(x, **facts) if x.law == WHOLE.name and not x.broken else x
        for x in findings
    ]


def _tried(subject: Subject) -> str:
    if not subject.tried["tokens"]:
        return ""
    tokens, batches = (_span(subject.tried[x]) for x in ("tokens", "batches"))
    return f"{tokens} tokens; batches of {batches}"


def _span(counts: set[int]) -> str:
    least, most = min(counts), max(counts)
    return f"{least} to {most}" if least < most else f"{least}"


# What no law says -------------------------------------------------------------------

USED = {
    *"Q K V X X_k X_v mask is_causal return_weights n_heads layers weights".split(),
    *"W_Q W_K W_V W_O b_Q b_K b_V b_O parts training".split(),
    *"scale activation norm_first eps final_norm block_size self".split(),
}  # fmt: skip


ON_PURPOSE = (
    "it was compared with plain attention. If it differs on purpose, write what it "
    "should compute as a function, and hand it over as reference=; mha.designs has the "
    "pieces"
)


def _unused(subject: Subject, reference: Subject) -> list[str]:
    """Say which arguments no law used: silence about a cache proves nothing."""
    left = subject.accepts - USED - {"args", "kwargs", "options"}
    biases = {x for x in subject.accepts - reference.accepts if x.startswith("b_")}
    why = {
        "which no law knows; for a cache see laws.steps": left,
        "which the reference does not take": biases,
    }
    return [f"never used: {', '.join(sorted(x))}, {y}" for y, x in why.items() if x]


def _alike(
    subject: Subject, reference: Subject, findings: list[Finding]
) -> tuple[str, str]:
    """Return the one member of the zoo that gives the same wrong numbers, and why."""
    wrong = [x for x in findings if x.verdict == "broken" and x.breach is not None]
    wrong = [x for x in wrong if not isinstance(x.got, str)]
    wrong = [x for x in wrong if x.law not in CONVENTIONS] or wrong
    named = {law.name: law for law in ALL}
    asked = [(named[x.law], x) for x in wrong if x.law in named]
    members = zoo.ENCODERS[1:] if subject.kind.startswith("enc") else zoo.WRONG
    alike = []
    for member in members if asked else ():
        if not member.on_tensors:
            twin = _asked_like(subject, member, reference)
            if all(_answers_alike(law, x, subject, twin) for law, x in asked):
                alike.append(member)
    return (alike[0].name, alike[0].wrong) if len(alike) == 1 else ("", "")


def _asked_like(subject: Subject, member: Any, reference: Subject) -> Subject:
    """Return a member of the zoo, called by the signature of the subject."""
    part = {"attend": "attention", "encoder_layer": "layer"}.get(subject.kind)
    twin = Subject(getattr(member, part) if part else member, subject.sizes)
    twin.accepts, twin.reference = twin.accepts & subject.accepts, reference
    return twin


def _answers_alike(law: Law, found: Finding, subject: Subject, twin: Subject) -> bool:
    case = dict(found.breach or {})
    subject.head = twin.head = case.pop("head")
    pair = [law.ask(x, case) for x in (subject, twin)]
    if not all(isinstance(x, Failure) for x in pair):
        return False
    ours, theirs = (x.got for x in pair)
    if isinstance(theirs, str | Broke) or np.shape(ours) != np.shape(theirs):
        return False
    return np.allclose(ours, theirs, atol=1e-6, rtol=1e-6, equal_nan=True)


# In a test, and over many subjects --------------------------------------------------


class Unlawful(AssertionError):
    """Raised with the report of what is broken, which is its `report`, too."""

    def __init__(self, report: Report) -> None:
        super().__init__(f"\n{report}")
        self.report = report


def assert_lawful(subject: Any, only: Laws | None = None, **options: Any) -> None:
    """Raise `Unlawful` if a law is broken, or if none could be asked.

    The arguments are those of `check`.

    Examples
    --------
    >>> assert_lawful(mha.multi_head_attention)
    """
    __tracebackhide__ = True
    report = check(subject, only, **options)
    if not report:
        raise Unlawful(report)


def parametrize(subject: Any, only: Laws | None = None, **options: Any) -> Any:
    """Make a test of pytest one item for each law; the arguments are those of `check`.

    The test gets `ask` and calls it. A law that cannot be asked is skipped, and one
    that is broken as expected is an expected failure (xfail), both with the reason::

        @laws.parametrize(my_layer, reference=my_reference)
        def test_my_layer_is_lawful(ask):
            ask()
    """
    import pytest  # not where no test is run

    @cache
    def whole() -> Report:  # laws of a check know of each other
        return check(subject, only, **options)

    def ask(law: Law) -> None:
        __tracebackhide__ = True
        (found,) = (x for x in whole().findings if x.law == law.name)
        if found.verdict == "not asked":
            pytest.skip(found.why)
        if found.verdict == "expected":
            pytest.xfail(found.why)
        if found.broken:
            raise Unlawful(replace(whole(), findings=(found,)))

    asked, _ = paired(subject, options.get("reference"), sizes=options.get("sizes"))
    laws = _asked(asked, only, options.get("skip", ()))
    items = [pytest.param(partial(ask, law), id=law.name) for law in laws]
    return pytest.mark.parametrize("ask", items)


@dataclass(frozen=True)
class KillMatrix:
    """Which law (a column, by its name) kills which member (a row, by its name)."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    killed: np.ndarray

    def killed_by(self, name: str) -> tuple[str, ...]:
        """Return the names of the laws that the member called `name` breaks."""
        return tuple(compress(self.columns, self.killed[self.rows.index(name)]))

    def kills(self, law: str) -> tuple[str, ...]:
        """Return the names of the members that the law called `law` kills."""
        return tuple(compress(self.rows, self.killed[:, self.columns.index(law)]))


def kill_matrix(
    laws: Laws | None = None, members: Iterable[Any] | None = None
) -> KillMatrix:
    """Put every member of `mha.zoo.ALL`, or these functions, to all laws, or to some.

    Encoders are asked in both orders of their norms; `check` asks them in one, that of
    the reference.

    Examples
    --------
    >>> matrix = kill_matrix(members=[zoo.right, zoo.scale_sqrt_n])
    >>> "doubling_changes_nothing" in matrix.killed_by("scale_sqrt_n")
    True
    """
    members = tuple(zoo.ALL if members is None else members)
    asked = _chosen(ALL if laws is None else laws)
    correct: dict[Any, Subject] = {}
    rows = [_broken_by(member, asked, correct) for member in members]
    names = tuple(Subject(x).name for x in members)
    killed = np.array([[law in row for law in asked] for row in rows])
    return KillMatrix(names, tuple(law.name for law in asked), killed)


def _broken_by(member: Any, laws: list[Law], correct: Any) -> set[Law]:
    """Return the laws that it breaks; `correct` keeps what references answered."""
    pairs = []
    for f, right in _in_both_orders(member):
        subject, theirs = paired(f, right)
        key = subject.kind, subject.sizes, str(right), frozenset(theirs.accepts)
        subject.reference = correct.setdefault(key, theirs)
        pairs.append((subject, subject.reference))
    broken = set()
    # What differs from call to call says nothing where two calls are compared.
    for law in sorted(laws, key=lambda law: law is not calls.calls_agree):
        for pair in pairs:
            if law.asks in ASKED[pair[0].kind]:
                tried = [*law.tried(*pair)]
                if any(isinstance(x.verdict, Failure) for x in tried):
                    broken.add(law)
                if WHOLE in laws and any(x.other for x in tried):
                    broken.add(WHOLE)
        if broken == {calls.calls_agree}:
            break
    return broken


def _in_both_orders(member: Any) -> list[tuple[Any, Any]]:
    """Return it with its reference, an encoder with one for each order of its norms."""
    f: Callable[..., Any] = (
        torch(member) if getattr(member, "on_tensors", False) else member
    )
    if Subject(f).kind != "encode":
        return [(f, None)]
    first = partial(mha.encoder, norm_first=True)
    return [(f, None), (partial(f, norm_first=True), first)]
