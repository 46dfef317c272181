"""Where Chromium is on this machine, if it is here."""

import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",  # a container has no user namespaces
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MISSING = "no Chromium on this machine (on Debian: apt-get install chromium)"


def find(names=NAMES):
    """Return the path of the first Chromium that is found, or None."""
    return next(filter(None, map(shutil.which, names)), None)
