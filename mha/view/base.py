"""A figure to move: drawn once in Python, brought to life by a script beside it."""

import base64
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mha._doors import Array
from mha._figures import as_alt

if TYPE_CHECKING:
    from mha.plot import Picture

FOLDER = Path(__file__).parent
DIGITS = 4  # of the numbers handed to a script; the pages print two or three


class View:
    """Hold one interactive figure, and the picture that stands for it on paper.

    It shows itself in JupyterLab, VS Code, Colab and on the pages of the book. Where no
    script runs, as in a PDF or in a notebook that JupyterLab does not trust yet, it is
    a picture of its first state; where matplotlib is missing, it is the alt text.

    Parameters
    ----------
    module : str
        Path of the module that makes the figure, ``__file__``. Its script, and its
        style sheet if it has one, are beside it and have the same name.
    data : dict
        What the script shows: numbers, arrays, text.
    alt : str
        One sentence with the finding, which also names the figure.
    draw : function
        Takes the module `mha.plot` and returns the Picture of the first state.

    Raises
    ------
    ValueError
        If `alt` is empty.
    """

    def __init__(
        self, module: str, data: dict[str, Any], alt: str, draw: Callable[[Any], Any]
    ) -> None:
        self.path, self.alt, self._draw = Path(module), as_alt(alt), draw
        self.kind = self.path.stem
        self.data = as_json(data)

    @cached_property
    def still(self) -> "Picture":
        """The figure in its first state; the first look at it needs matplotlib."""
        from mha import plot

        with any_script():
            return self._draw(plot)

    def __repr__(self) -> str:
        return f"View: {self.alt}"

    def _repr_html_(self) -> str:
        """Return the figure as one piece of HTML that needs nothing from outside."""
        name = sha256((self.kind + self.data).encode()).hexdigest()[:8]
        alt, picture = escape(self.alt), self._still_if_drawable()
        # an <img> is what JupyterLab leaves of an output that it does not trust
        still = f"<p>{alt}</p>" if picture is None else STILL % (alt, packed(picture))
        script = f"(() => {{ const root = {FIND % name}; {code(self.path)} }})()"
        return (
            f'<div class="mha-view mha-{self.kind}" data-view="{name}" role="group" '
            f'aria-label="{alt}"><div class="still">{still}</div>'
            f'<script type="application/json">{self.data}</script>'
            f"<script>{script}</script></div>"
        )

    def _still_if_drawable(self) -> "Picture | None":
        try:
            return self.still
        except ModuleNotFoundError as error:
            if error.name != "matplotlib":
                raise
            return None


# VS Code runs the script elsewhere; then it is the first copy that is not alive yet.
FIND = (
    'document.currentScript?.closest(".mha-view") ?? '
    "[...document.querySelectorAll('[data-view=\"%s\"]')]"
    '.find((node) => !node.querySelector(".live"))'
)
STILL = (
    '<img alt="%s" src="data:image/png;base64,%s" '
    'style="background: #fff; max-width: 100%%" />'
)


def packed(picture: "Picture") -> str:
    """Return a picture as text that can stand in an address."""
    return base64.b64encode(picture.png).decode("ascii")


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


def as_numbers(name: str, values: Any) -> Array:
    """Return `values`, which may be tensors, as finite floats of NumPy."""
    values = as_array(values)
    if not np.isfinite(values).all():
        place = tuple(np.argwhere(~np.isfinite(values))[0].tolist())
        raise ValueError(f"{name} must be finite, got {values[place]} at index {place}")
    return values


def as_array(values: Any) -> Array:
    """Return a copy of an array, a tensor, or a list of them, as floats."""
    if isinstance(values, list | tuple):
        values = [as_array(value) for value in values]
    if hasattr(values, "detach"):  # maybe with gradients, elsewhere, in bfloat16
        values = values.detach().cpu().double().numpy()
    return np.array(values, dtype=float)


def as_words(words: Iterable[object]) -> list[str]:
    """Return tokens as text in which blank ones can be seen."""
    return [visible(str(word)) for word in words]


def visible(word: str) -> str:
    """Return the word; space, line break and nothing become signs."""
    word = word.encode("utf-8", "replace").decode()  # half a character of two
    word = "".join(SIGNS.get(c, c) for c in word)
    return word if word.strip() else "␣" * len(word) or "∅"


SIGNS = {"\n": "⏎", "\r": "⏎", "\t": "⇥"} | {chr(c): "�" for c in (0, *range(14, 32))}


def short(words: Sequence[str], length: int = 12) -> list[str]:
    """Return words that leave a picture on paper some room for itself."""
    return [w if len(w) <= length else w[: length - 1] + "…" for w in words]


@contextmanager
def any_script() -> Iterator[None]:
    """Let a still hold Chinese or Arabic, which browsers can draw and DejaVu cannot."""
    with warnings.catch_warnings():
        for message in ("Glyph .* missing from", "Matplotlib currently does not"):
            warnings.filterwarnings("ignore", message)
        yield


@cache
def text(file: Path) -> str:
    """Return a script or a style sheet without comments and indentation."""
    lines = file.read_text(encoding="utf-8").splitlines()
    bare = (re.sub(r"(^|\s+)// .*$", "", line).strip() for line in lines)
    return "\n".join(line for line in bare if line)


@cache
def code(module: Path) -> str:
    """Return the script of one kind of figure, with looks and parts that all share."""
    sheets = FOLDER / "view.css", module.with_suffix(".css")
    looks = [text(file) for file in sheets if file.exists()]
    css = json.dumps("".join(looks).replace("\n", ""), ensure_ascii=False)
    scripts = FOLDER / "base.js", module.with_suffix(".js")
    return "\n".join([f"const css = {css};", *map(text, scripts)])
