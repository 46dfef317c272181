"""What reports and the kill matrix say, in the short words of the tests."""

from mha import laws, zoo


def broken(report):
    return [finding.law.slug for finding in report.broken]


def unasked(report):
    return [f.law.slug for f in report.findings if f.holds is None]


def killed_by(member):
    """Return the slugs of the laws that kill the member, be it an encoder or not."""
    group = zoo.ENCODERS if member in zoo.ENCODERS else zoo.ALL
    return laws.kill_matrix(members=group).killed_by(member.name)
