"""What reports and the stored table say, in the short words of the tests."""

import json

from mha import laws
from tests.laws import zoo_laws

# test_zoo.py asks for it again.
STORED = json.loads(zoo_laws.STORE.read_text(encoding="utf-8"))


def broken(report):
    """Return the names of the broken laws, those that say most first."""
    return [finding.law for finding in report.broken]


def breaks(subject, names, reference=None):
    """Return which of these laws are broken, without looking for small examples."""
    return [x for x in names if getattr(laws, x).breaks(subject, reference)]
