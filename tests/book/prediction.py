"""A small book with predictions, built by Sphinx, for the tests of predict.py."""

import json
import os
import subprocess
import sys

from filelock import FileLock

from tests.book.load import ROOT

SQUARE = '<svg width="40" height="40"><path d="M5 5h30v30h-30z"/></svg>'
CONFIG = f"""
import sys
sys.path.insert(0, {str(ROOT / "book" / "_ext")!r})
project = "A small book"
extensions = ["myst_nb", "sphinx_design", "portable", "predict"]
nb_execution_mode = "off"
numfig = True
html_theme = "sphinx_book_theme"
html_static_path = [{str(ROOT / "book" / "_static")!r}]
html_css_files = ["book.css", "figures.css", "comfort.css", "predict.css"]
"""


def text(name, *lines):
    """Return a cell of Markdown with an id."""
    source = [f"{line}\n" for line in lines]
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


def code(name, source, *outputs, tags=()):
    """Return a cell of code with an id, tags and outputs."""
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {"tags": list(tags)},
        "source": source,
        "execution_count": 1,
        "outputs": list(outputs),
    }


def printed(words):
    """Return what a cell has printed."""
    return {"output_type": "stream", "name": "stdout", "text": f"{words}\n"}


def drawn():
    """Return a drawing, as a cell shows it."""
    return {
        "output_type": "display_data",
        "data": {"text/html": SQUARE, "text/plain": "a square"},
        "metadata": {},
    }


def fold(title, *lines):
    """Return the lines of a fold, as a portable notebook writes it."""
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>"]


def caption(number, words):
    """Return the lines of a caption."""
    return [f'<a id="fig-{number}"></a>', "", f"**Figure {number}.** {words}"]


LOOK = ["predict", "hide-input"]
CELLS = [
    text("top", "# Predictions", "", "[Figure 2](#fig-2) and [Figure 1](#fig-1)."),
    text(
        "ask-sum", "## Sum", "", "**Before you run it:** what is 2 + 3?", "", "We add."
    ),
    code("set-up", "two = 2", printed("ready")),
    code("sum", "print(two + 3)", printed("five"), tags=["predict"]),
    code("square", "draw()", drawn(), tags=LOOK),
    text(
        "tell-sum",
        *fold("What happens", *caption(1, "A square."), "", "Five, as *all* know."),
    ),
    text("on", "Then we go on."),
    text("ask-twice", "## Twice", "", "**Before you look:** how many?"),
    code("again", "draw()", drawn(), tags=LOOK),
    text("again-caption", *caption(2, "Again.")),
    text("ask-why", "## Why", "", "**Before you go on:** why?"),
    text("tell-why", *fold("What happens", "Because.")),
    text("task", "## Exercise", "", *fold("Hint", "Think.")),
    code("plain", "print(1)", printed("one")),
]


def write(folder, cells=CELLS):
    """Write the book's sources into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (folder / "index.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    (folder / "conf.py").write_text(CONFIG, encoding="utf-8")


def build_once(tmp_path_factory):
    """Return the folder of the pages, which all processes of a test run share."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "predictions"
    with FileLock(shared / "predictions.lock"):
        if not (folder / "html" / "index.html").exists():
            build(folder)
    return folder / "html"


def build(folder, builder="html"):
    """Build the book strictly and return the text of its page."""
    write(folder / "source")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-E", "-b", builder]
    command += [str(folder / "source"), str(folder / builder)]
    run = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert not run.returncode, run.stderr[-3000:]
    suffix = {"html": ".html", "text": ".txt"}[builder]
    return (folder / builder / f"index{suffix}").read_text(encoding="utf-8")
