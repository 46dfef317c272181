"""The built book, served under a sub-path, and a Chromium to open it."""

import http.server
import threading
from functools import partial

import pytest

from tests.browser import chromium as found
from tests.browser.built import ROOT as ROOT
from tests.browser.built import current_pages
from tests.browser.windows import Windows

SUBPATH = "/some/where/"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serve the book below SUBPATH, as a project's Pages do."""

    def log_message(self, *args):
        pass

    def translate_path(self, path):
        inside = path.removeprefix(SUBPATH) if path.startswith(SUBPATH) else "missing"
        return super().translate_path("/" + inside)


@pytest.fixture(scope="session")
def html():
    """Return the folder of the built pages."""
    pytest.importorskip("jupyter_book")
    return current_pages()


@pytest.fixture(scope="session")
def site(html):
    """Return the address of the pages on this machine."""
    handler = partial(Quiet, directory=str(html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{SUBPATH}"
        server.shutdown()


@pytest.fixture(scope="session")
def chromium():
    """Return a running browser."""
    playwright = pytest.importorskip("playwright.sync_api")
    if (path := found.find()) is None:
        pytest.skip(found.MISSING)
    with playwright.sync_playwright() as manager:
        browser = manager.chromium.launch(executable_path=path, args=found.FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def windows(chromium):
    """Return the windows of the browser, which tests share one after another."""
    return Windows(chromium)


@pytest.fixture
def window(windows):
    """Return a function that gives the test an empty window of its own."""
    taken = []

    def take(**options):
        taken.append(windows.take(**options))
        return taken[-1]

    yield take
    for page in taken:
        windows.give_back(page)


@pytest.fixture
def open_page(window, site):
    """Return a function that opens a page of the book in a window of its own."""

    def open_one(name, *, width=1200, **options):
        page = window(width=width, **options)
        page.goto(f"{site}{name}.html", wait_until="load")
        return page

    return open_one


# A test of the pages may skip for want of Chromium. Where it is found, every skip is a
# failure, so that a missing package, or a mistake in what the tests share, cannot
# silence all of them.


def refuse(report):
    """Turn a skip into a failure if Chromium is here."""
    if report.skipped and not hasattr(report, "wasxfail") and found.find():
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
