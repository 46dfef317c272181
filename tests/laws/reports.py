"""What reports and the stored table say, in the short words of the tests."""

import json

from mha import laws
from tests.laws import zoo_laws

# test_zoo.py asks for it again.
STORED = json.loads(zoo_laws.STORE.read_text(encoding="utf-8"))


def broken(report):
    return [finding.law.slug for finding in report.broken]


def breaks(subject, slugs, **words):
    """Return which laws are broken, without smallest examples, which take longest."""
    subject = laws.as_subject(subject, laws.Conventions(**words))
    with subject.borrowed():
        return [slug for slug in slugs if getattr(laws, slug).breaks(subject)]


def unasked(report):
    return [f.law.slug for f in report.findings if f.holds is None]
