"""A test of the pages may skip for want of Chromium, and for no other reason.

Where Chromium is found, every skip is a failure, so that a missing package, or a
mistake in what the tests share, cannot silence all of them.
"""

import pytest

from tests.browser import chromium


def refuse(report):
    """Turn a skip into a failure if Chromium is here."""
    if report.skipped and not hasattr(report, "wasxfail") and chromium.find():
        reason = report.longrepr[-1] if report.longrepr else "no reason given"
        report.outcome = "failed"
        report.longrepr = f"Chromium is here, yet this was skipped: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Refuse to skip a whole module."""
    return refuse((yield))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Refuse to skip one test."""
    return refuse((yield))
