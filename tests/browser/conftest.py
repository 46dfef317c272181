"""The built book, served under a sub-path, and a Chromium to open it."""

import http.server
import threading
from functools import partial

import pytest

from tests.browser import chromium as found
from tests.browser.built import ROOT as ROOT
from tests.browser.built import current_pages
from tests.browser.skips import *  # noqa: F403, its two hooks

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
def open_page(chromium, site):
    """Return a function that opens a page of the book in a fresh window."""
    contexts = []

    def open_one(name, *, theme="light", width=1200, **options):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.goto(f"{site}{name}.html", wait_until="load")
        return page

    yield open_one
    for context in contexts:
        context.close()
