"""Load a script, which no package holds, or a Sphinx extension of the book."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"


def load(path, name=None):
    """Return the module that a file holds, whatever its suffix."""
    loader = SourceFileLoader(name or path.stem, str(path))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader)
    )
    loader.exec_module(module)
    return module


def extension(name):
    """Return a Sphinx extension of the book."""
    return importlib.import_module(f"_ext.{name}")


def text_of(path):
    """Return the text of a notebook, without its code."""
    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
