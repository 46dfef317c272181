"""Figures to move: drawn once in Python, brought to life by a script beside the module.

All of them share `view.js` and `view.css`.
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from figures.picture import Picture
from mha import view

FOLDER = Path(__file__).parent
IMPORT = re.compile(r'^import .* from "\./(.*)";$', re.MULTILINE)
MODULES = re.compile(rf"{IMPORT.pattern}|^export ", re.MULTILINE)
DIGITS = 4  # of the numbers handed to a script; the pages print two or three


class View(view.View):
    """Hold one interactive figure, and a picture of its first state.

    Parameters
    ----------
    module : str
        Path of the module that makes the figure, ``__file__``. Its script, and its
        style sheet, are beside it and have the same name.
    data : dict
        What the script shows: numbers, arrays, text.
    draw : function
        Returns the Picture of the first state, whose alt text is that of the figure.
    """

    def __init__(
        self, module: str, data: dict[str, Any], draw: Callable[[], Picture]
    ) -> None:
        self.path, self.data, self._draw = Path(module), as_json(data), draw
        self.kind = self.path.stem

    @property
    def alt(self) -> str:
        """The alt text of the picture."""
        return self.still.alt

    @cached_property
    def still(self) -> Picture:
        """The figure in its first state."""
        return self._draw()

    @property
    def code(self) -> str:
        """The script, with looks and parts that all figures share."""
        return code(self.path)


def as_json(data: dict[str, Any]) -> str:
    """Return `data` as JSON that can stand inside a script element."""

    def plain(x: Any) -> Any:
        if isinstance(x, np.ndarray | np.generic):
            return plain(x.tolist())
        if isinstance(x, dict):
            return {key: plain(value) for key, value in x.items()}
        if isinstance(x, list | tuple):
            return [plain(value) for value in x]
        if isinstance(x, float):
            return round(x, DIGITS) + 0.0 if np.isfinite(x) else None
        return x

    packed = json.dumps(plain(data), ensure_ascii=False, separators=(",", ":"))
    # "</script>" or "<!--" in a token would end the element
    return packed.replace("<", "\\u003c")


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
