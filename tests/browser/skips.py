"""A test of the pages may skip for want of Chromium, and for hardly another reason.

Where Chromium is found, every skip is a failure, so that a missing package, or a
mistake in what the tests share, cannot silence all of them. Only JupyterLab may be
missing: a reader of the pages does not need it.
"""

import pytest

from tests.browser import chromium

JUPYTERLAB = "no JupyterLab in this environment (.ci/run installs it)"


def refuse(report):
    """Turn a skip into a failure if Chromium is here."""
    if report.skipped and not hasattr(report, "wasxfail") and chromium.find():
        reason = report.longrepr[-1] if report.longrepr else "no reason given"
        if JUPYTERLAB in reason:
            return report
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
