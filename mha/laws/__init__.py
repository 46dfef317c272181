"""What must be true of any attention: laws that a wrong version breaks.

Wrong attention trains to 100 %, so a loss curve proves nothing. A law is a short
executable statement, true of correct attention and false of some wrong one.

>>> from mha import laws, scaled_dot_product_attention
>>> bool(laws.check(scaled_dot_product_attention))
True

What is asked is a plain function, and one rule says what it must keep: it is compared
with a *reference*, a correct function of the same signature, plain attention if nothing
is said. A law is asked on an input where the reference keeps it, and there the subject
must give the reference's numbers. So a layer that attends in another way on purpose is
checked against a reference that does the same, written with `mha.designs`:

>>> from mha import designs
>>> def causal(Q, K, V, mask=None):
...     mask = designs.both(mask, designs.causal(Q, K))
...     return scaled_dot_product_attention(Q, K, V, mask)
>>> laws.check(designs.in_heads(causal), reference=causal).holds
True

A report shows the smallest failing example of each broken law, and says which laws were
not asked and why. In a test of your own `assert_lawful` does it in one line, and from a
shell ``python -m mha.laws my_file.py:my_attention``.
"""

from mha.laws.judge import Failure, Law, differs, law, skip_if
from mha.laws.report import Finding, Report
from mha.laws.subject import NotAsked, Sizes, WrongReference
from mha.laws.tensors import each, encoder, module, padding, steps, torch
from mha.laws.trial import (
    ALL,
    ATTENTION,
    CALLS,
    ENCODER,
    KillMatrix,
    Unlawful,
    assert_lawful,
    check,
    kill_matrix,
    parametrize,
)  # fmt: skip

__all__ = [
    "ALL", "ATTENTION", "CALLS", "ENCODER", "Failure", "Finding", "KillMatrix", "Law",
    "NotAsked", "Report", "Sizes", "Unlawful", "WrongReference", "assert_lawful",
    "check", "differs", "each", "encoder", "kill_matrix", "law", "module", "padding",
    "parametrize", "skip_if", "steps", "torch",
]  # fmt: skip

_BY_NAME = {law.name: law for law in ALL}


def __getattr__(name: str) -> Law:
    """Return the law of this name."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    raise AttributeError(f"no law is called {name!r}; mha.laws.ALL lists them")


def __dir__() -> list[str]:
    return [*__all__, *_BY_NAME]
