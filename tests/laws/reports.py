"""What reports and the stored table say, in the short words of the tests."""

import json

from mha import laws
from mha.laws.judge import paired
from tests.laws import zoo_laws

# test_zoo.py asks for it again.
STORED = json.loads(zoo_laws.STORE.read_text(encoding="utf-8"))


def broken(report):
    """Return the names of the broken laws, those that say most first."""
    return [finding.law for finding in report.broken]


def breaks(subject, names, reference=None):
    """Return which of these laws are broken, or what numbers differ on their inputs.

    It looks for no small example and no likeness, which take longest.
    """
    pair = paired(subject, reference)
    tried = {name: [*getattr(laws, name).tried(*pair)] for name in names}
    return [
        name
        for name in names
        if any(isinstance(x.verdict, laws.Failure) or x.other for x in tried[name])
    ]
