"""The code of the package as the book shows it: without the docstring."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any


def source(function: Callable[..., Any]) -> str:
    """Return the code of `function` without its docstring and marks for formatters.

    Parameters
    ----------
    function : function or class
        Anything with Python source.

    Returns
    -------
    code : str
        The lines as they are in the file, comments included.

    Examples
    --------
    >>> from mha import linear
    >>> print(source(linear))
    def linear(x: ArrayLike, W: ArrayLike, b: ArrayLike | None = None) -> Array:
        dtype, [x, W, b] = fit("x (..., d_in), W (d_in, d_out), b (d_out,)", x, W, b)
        return rounded(dtype, x @ W if b is None else x @ W + b)
    """
    code = textwrap.dedent(inspect.getsource(function)).replace("  # fmt: skip", "")
    body: Any = ast.parse(code).body[0]
    if ast.get_docstring(body) is None:
        return code.rstrip()
    text, lines = body.body[0], code.splitlines()
    return "\n".join(lines[: text.lineno - 1] + lines[text.end_lineno :])
