"""A JupyterLab of its own on a copy of the notebooks: nothing trusted, nothing kept."""

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from tests.book.load import ROOT

SCRIPT = Path(__file__).with_name("jupyterlab.js")
OPTIONS = [
    "--allow-root",
    "--no-browser",
    "--expose-app-in-browser",
    "--ip=127.0.0.1",
    "--IdentityProvider.token=",
    "--LabApp.extension_manager=readonly",
]
SETTINGS = {
    # every cell is drawn, not only those on the screen
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    },
}
READY = "window.jupyterapp?.commands.hasCommand('docmanager:open')"


def notebooks(root=ROOT):
    """Return the name of each chapter and each solution, as it is below book/."""
    paths = [*root.glob("book/[0-9]*.ipynb"), *root.glob("book/solutions/*.ipynb")]
    return sorted(
        path.relative_to(root / "book").with_suffix("").as_posix() for path in paths
    )


@contextmanager
def serve(folder, root=ROOT, settings=SETTINGS):
    """Run JupyterLab on a copy of what the notebooks need; yield its address."""
    folders = {kind: folder / kind.lower() for kind in ("CONFIG", "DATA", "RUNTIME")}
    for path in folders.values():
        path.mkdir()
    overrides = folders["CONFIG"] / "labconfig" / "default_setting_overrides.json"
    overrides.parent.mkdir()
    overrides.write_text(json.dumps(settings))
    environment = {f"JUPYTER_{kind}_DIR": str(path) for kind, path in folders.items()}
    command = [sys.executable, "-m", "jupyterlab", *OPTIONS]
    with open(folder / "log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(
            [*command, f"--ServerApp.root_dir={copied(root, folder / 'tree')}"],
            env={**os.environ, **environment, "IPYTHONDIR": str(folder / "ipython")},
            cwd=folder / "tree",
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield address(server, folders["RUNTIME"], folder / "log")
    finally:
        server.terminate()  # and it ends its kernels
        server.wait(timeout=60)


def copied(root, tree):
    """Copy the notebooks and what they import and link to."""
    unwanted = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "_build")
    for name in ("book", "mha"):
        shutil.copytree(root / name, tree / name, ignore=unwanted)
    return tree


def address(server, runtime, log, seconds=120):
    """Wait for the file in which a running server says where it is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            if text := file.read_text(encoding="utf-8"):
                return json.loads(text)["url"]
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-4000:]}")


def enter(page, url):
    """Open JupyterLab in a page, with `book` to read it by, see jupyterlab.js."""
    page.goto(f"{url}lab")
    page.wait_for_function(READY)
    page.evaluate("window.jupyterapp.restored")
    page.evaluate(SCRIPT.read_text(encoding="utf-8"))
