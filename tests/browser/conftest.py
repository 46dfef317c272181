"""The built book, served under a sub-path, and a Chromium to open it."""

import http.server
import threading
from functools import partial

import pytest

from tests.browser import chromium as found
from tests.browser.built import ROOT as ROOT
from tests.browser.built import current_pages

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


@pytest.fixture
def window(chromium):
    """Return a function that gives the test an empty window of its own."""
    contexts = []

    def take(*, theme="light", width=1280, **options):
        size = {"width": width, "height": 900}
        made = chromium.new_context(viewport=size, color_scheme=theme, **options)
        contexts.append(made)
        return made.new_page()

    yield take
    for each in contexts:
        each.close()


@pytest.fixture
def open_page(window, site):
    """Return a function that opens a page of the book in a window of its own."""

    def open_one(name, *, width=1200, **options):
        page = window(width=width, **options)
        page.goto(f"{site}{name}.html", wait_until="load")
        return page

    return open_one
