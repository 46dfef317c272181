"""Load a script or a Sphinx extension of the book, which no package holds."""

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "book" / "_ext"))  # they import each other


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
    return load(ROOT / "book" / "_ext" / f"{name}.py")
