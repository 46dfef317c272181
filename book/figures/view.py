"""Figures to move: drawn once in Python, brought to life by a script beside the module.

All of them share `view.js` and `view.css`.
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mha.plot import Picture
from mha.view import View

FOLDER = Path(__file__).parent
IMPORT = re.compile(r'^import .* from "\./(.*)";$', re.MULTILINE)
MODULES = re.compile(rf"{IMPORT.pattern}|^export ", re.MULTILINE)


def live(
    module: str, alt: str, data: dict[str, Any], draw: Callable[[], Picture]
) -> View:
    """Return a figure of the book that moves.

    Parameters
    ----------
    module : str
        Path of the module that makes the figure, ``__file__``. Its script, and its
        style sheet, are beside it and have the same name.
    alt : str
        One sentence with the finding.
    data : dict
        What the script shows: numbers, arrays, text.
    draw : function
        Returns the Picture of the first state.
    """
    path = Path(module)
    return View(alt, data, draw, kind=path.stem, code=code(path))


def as_numbers(values: Any) -> Any:
    """Return `values` as finite floats of NumPy."""
    values = np.array(values, dtype=float)
    if not np.isfinite(values).all():
        raise ValueError(f"a figure to move needs finite numbers, got {values}")
    return values


def as_words(words: Iterable[object]) -> list[str]:
    """Return tokens as text."""
    return [str(word) for word in words]


@cache
def text(file: Path) -> str:
    """Return a script or a style sheet without comments, indentation and modules."""
    lines = MODULES.sub("", file.read_text(encoding="utf-8")).splitlines()
    bare = (re.sub(r"(^|\s+)// .*$", "", line).strip() for line in lines)
    return "\n".join(line for line in bare if line)


@cache
def code(module: Path) -> str:
    """Return the script of one kind of figure, with looks and parts that all share.

    What a script imports from beside it comes before it, once.
    """
    sheets = FOLDER / "view.css", module.with_suffix(".css")
    css = json.dumps("".join(map(text, sheets)).replace("\n", ""), ensure_ascii=False)
    script = module.with_suffix(".js")
    imported = IMPORT.findall(script.read_text(encoding="utf-8"))
    names = [*imported, script.name]
    own = "\n".join(["(() => {", *(text(module.with_name(n)) for n in names), "})()"])
    return "\n".join([f"const css = {css};", text(FOLDER / "view.js"), own])
