"""The built book, served under a sub-path, and Debian's Chromium to open it."""

import http.server
import os
import shutil
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",  # a container has no user namespaces
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SUBPATH = "/some/where/"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serve the book below SUBPATH, as a project's Pages do."""

    def log_message(self, *args):
        pass

    def translate_path(self, path):
        inside = path.removeprefix(SUBPATH) if path.startswith(SUBPATH) else "missing"
        return super().translate_path("/" + inside)


@pytest.fixture(scope="session")
def html(tmp_path_factory):
    """Return the folder of the built pages; BOOK_HTML names one that is built."""
    pytest.importorskip("jupyter_book")
    if built := os.environ.get("BOOK_HTML"):
        return Path(built).resolve()
    out = tmp_path_factory.mktemp("book")
    command = ["jupyter_book.cli.main", "build", str(ROOT), "--path-output", str(out)]
    run = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    return out / "_build" / "html"


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
    if not Path(CHROMIUM).exists():
        pytest.skip("no Chromium here: apt-get install chromium")
    with playwright.sync_playwright() as manager:
        browser = manager.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
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
