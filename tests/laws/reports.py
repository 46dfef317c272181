"""What reports and the stored table say, in the short words of the tests."""

import json

from tests.laws import zoo_laws

# test_zoo.py computes it again.
STORED = json.loads(zoo_laws.STORE.read_text(encoding="utf-8"))


def broken(report):
    return [finding.law.slug for finding in report.broken]


def unasked(report):
    return [f.law.slug for f in report.findings if f.holds is None]
