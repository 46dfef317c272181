"""A look at attention, by mouse, finger or keyboard."""

import base64
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["View", "attention"]

DIGITS = 4  # of the numbers handed to a script; it prints two or three
ROUNDING = 1e-6  # by which a weight in float32 may leave 0..1
# VS Code runs the script elsewhere; then it is the first copy that is not alive yet.
FIND = (
    'document.currentScript?.closest(".mha-view") ?? '
    "[...document.querySelectorAll('[data-view=\"%s\"]')]"
    '.find((node) => !node.querySelector(".live"))'
)
PAGE = (
    '<div class="mha-view mha-{kind}" data-view="{name}" role="group" '
    'aria-label="{alt}"><div class="still">{still}</div>'
    '<script type="application/json">{data}</script>'
    "<script>(() => {{ const root = {find}; {code} }})()</script></div>"
)
STILL = (  # an <img> is what JupyterLab leaves of an output that it does not trust
    '<img alt="{}" src="data:image/png;base64,{}" '
    'style="background: #fff; max-width: 100%" />'
)


def attention(
    weights: Any, tokens: Sequence[object], keys: Sequence[object] | None = None, *,
    alt: str, first: int = 0, layer: int = 1, head: int = 1,
) -> "View":  # fmt: skip
    """Show which word attends to which, for one head or many.

    All heads are small maps to choose from. Below them, lines lead from one word to all
    it attends to in the chosen head.

    Parameters
    ----------
    weights : ndarray or Tensor of shape ([layers,] [heads,] n_q, n_k)
        Weights of attention, 0 to 1; also a list with one array for each layer. Of a
        batch, show one sentence.
    tokens : sequence of str
        The n_q words that attend. They may hold any text; it is escaped.
    keys : sequence of str, optional
        The n_k words attended to, if they are not the same.
    alt : str
        One sentence with what there is to find.
    first : int, default 0
        The index of the word that attends at first.
    layer, head : int, default 1
        The head that is shown at first, counted from 1 as in the figure.

    Returns
    -------
    view : View
        Shows itself as the last line of a cell.

    Examples
    --------
    >>> attention([[1.0, 0.0], [0.5, 0.5]], ["a", "b"], alt="b looks at both")
    View: b looks at both
    """
    A, queries = _as_array(weights), [*map(_visible, tokens)]
    words = queries if keys is None else [*map(_visible, keys)]
    expected = (len(queries), len(words))
    if not 2 <= A.ndim <= 4 or A.shape[-2:] != expected or A.size == 0:
        raise ValueError(
            f"weights must have shape ([layers,] [heads,] n_q, n_k), with {expected} "
            f"words, got {A.shape}; of a batch show one sentence"
        )
    if not np.all((A >= -ROUNDING) & (A <= 1 + ROUNDING)):
        raise ValueError(f"weights must lie in 0..1, got {A.min():.3} to {A.max():.9}")
    A = np.clip(A, 0, 1).reshape((1,) * (4 - A.ndim) + A.shape)
    places = ("layer", layer, 1), ("head", head, 1), ("first", first, 0)
    for (name, place, low), n in zip(places, A.shape, strict=False):
        if not low <= place < low + n:
            raise ValueError(f"{name} must lie in {low}..{low + n - 1}, got {place}")
    shown = {"layer": layer - 1, "head": head - 1, "query": int(first)}
    data = {"weights": A, "queries": queries, "keys": words, **shown}

    def still() -> Any:
        from mha.plot import heatmap  # which needs matplotlib

        names = ([word[:12] for word in some] for some in (queries, words))
        return heatmap(A[layer - 1][head - 1], *names, alt=alt)

    return View(alt, data, still, kind="attention", code=_code())


class View:
    """Hold something to explore, and the picture that stands for it on paper.

    It shows itself in JupyterLab, VS Code, Colab and on web pages. Where no script
    runs, as in a PDF or in a notebook that JupyterLab does not trust yet, it is a
    picture of its first state; where matplotlib is missing, the alt text.

    Attributes
    ----------
    alt : str
        One sentence with what there is to find.
    data : str
        What the script shows, as JSON.
    still : Picture
        The first state, drawn when it is first asked for.
    kind : str
        What a style sheet calls it.
    code : str
        The script. It finds its element as `root`, and `data` in it.
    """

    def __init__(
        self, alt: str, data: dict[str, Any], draw: Callable[[], Any], *,
        kind: str, code: str,
    ) -> None:  # fmt: skip
        if not alt.strip():
            raise ValueError("alt must say in one sentence what the view shows")
        self.alt, self.data, self._draw = alt.strip(), _as_json(data), draw
        self.kind, self.code = kind, code

    @cached_property
    def still(self) -> Any:
        """The picture of the first state."""
        return self._draw()

    def __repr__(self) -> str:
        return f"View: {self.alt}"

    def _repr_html_(self) -> str:
        """Return the view as one piece of HTML that needs nothing from outside."""
        alt, kind, data = escape(self.alt), self.kind, self.data
        name = sha256((kind + data).encode()).hexdigest()[:8]
        try:
            png = base64.b64encode(self.still.png).decode("ascii")
            still = STILL.format(alt, png)
        except ModuleNotFoundError as error:
            if error.name != "matplotlib":
                raise
            still = f"<p>{alt}</p>"
        live = {"kind": kind, "data": data, "find": FIND % name, "code": self.code}
        return PAGE.format(name=name, alt=alt, still=still, **live)


def _code() -> str:
    """Return the script that shows attention, and its looks."""
    css, code = (Path(__file__).with_suffix(end) for end in (".css", ".js"))
    looks = json.dumps(css.read_text(encoding="utf-8").replace("\n", ""))
    return f"const css = {looks}; {code.read_text(encoding='utf-8')}"


def _as_json(data: dict[str, Any]) -> str:
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


def _as_array(values: Any) -> Any:
    """Return a copy of an array, a tensor, or a list of them, as floats."""
    if isinstance(values, list | tuple):
        values = [_as_array(value) for value in values]
    if hasattr(values, "detach"):  # maybe with gradients, elsewhere, in bfloat16
        values = values.detach().cpu().double().numpy()
    return np.array(values, dtype=float)


def _visible(token: object) -> str:
    """Return a token as text in which space, line break and nothing are signs."""
    word = str(token)
    word = word if word.isprintable() else repr(word)[1:-1]
    return word if word.strip() else "␣" * len(word) or "∅"
