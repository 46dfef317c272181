"""Sphinx extension: pages that ask no other host for anything.

Links into the documentation of NumPy, Python and PyTorch come from a list in this
repository, and Thebe, which would load code from outside, is left out.
"""

import zlib
from pathlib import Path

OBJECTS = Path(__file__).parent.parent / "_inv" / "objects.txt"


def read_objects(text):
    """Return ``{project: (address, lines)}`` from the list of documented objects."""
    projects = {}
    for line in text.splitlines():
        if line.startswith("["):
            name, address = line.strip("[]").split()
            projects[name] = (address, [])
        elif line.strip():
            kind, page, *names = line.split()
            projects[name][1].extend(f"{obj} {kind} 1 {page} -" for obj in names)
    return projects


def inventory(project, lines):
    """Return the bytes of a Sphinx inventory, version 2."""
    head = (
        f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
        "# The remainder of this file is compressed using zlib.\n"
    )
    return head.encode() + zlib.compress("\n".join([*lines, ""]).encode())


def write_inventories(app, config):
    """Write the inventories and tell intersphinx where they lie."""
    folder = Path(app.doctreedir)
    folder.mkdir(parents=True, exist_ok=True)
    for project, (address, lines) in read_objects(OBJECTS.read_text()).items():
        path = folder / f"{project}.inv"
        path.write_bytes(inventory(project, lines))
        config.intersphinx_mapping[project] = (address, str(path))


def drop_thebe(app, pagename, templatename, context, doctree):
    """Take Thebe off the page: two copies of its settings would clash there."""

    def is_thebe(asset):
        body = (getattr(asset, "attributes", None) or {}).get("body") or ""
        return "THEBE_JS_URL" in body or "sphinx-thebe" in str(asset.filename)

    for key in ("script_files", "css_files"):
        context[key] = [asset for asset in context[key] if not is_thebe(asset)]


def setup(app):
    """Register with Sphinx."""
    # intersphinx reads its mapping at priority 800, so this must come first.
    app.connect("config-inited", write_inventories, priority=700)
    # The theme adds its scripts at the default priority, so this must come last.
    app.connect("html-page-context", drop_thebe, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
