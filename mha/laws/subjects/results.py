"""What comes back from a call: numbers, errors, and lists that hold arrays."""

import sysconfig
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mha._doors import Array

NOT_OWN = (str(Path(__file__).parents[1]), sysconfig.get_path("stdlib"), "<frozen")
LIBRARIES = {"site-packages", "dist-packages"}


class Broke(Exception):
    """The subject raised, or returned something that is no array.

    It prints shortened; `text` holds all of it, and `where` the file and line.
    """

    def __init__(self, text: str, where: str = "") -> None:
        super().__init__(textwrap.shorten(text, 160, placeholder=" …"))
        self.text, self.where = text, where


class WrongShape(Broke):
    """It returned an array of a shape that no law can use."""


def line_of(error: BaseException) -> str:
    """Return the deepest line of somebody's own code that led to the error."""
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(NOT_OWN)
        and not LIBRARIES.intersection(Path(frame.filename).parts)
    ]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


def results_in(result: Any) -> list[Any]:
    """Return the output, and what came with it; a nested list is one output."""
    several = isinstance(result, tuple | list) and bool(result)
    return [*result] if several and not isinstance(result[0], list) else [result]


def from_torch(x: Any) -> Array:
    """Return a tensor as an array; NumPy has no bfloat16."""
    x = x.detach().cpu()
    return (x.float() if str(x.dtype) == "torch.bfloat16" else x).numpy()


def as_numbers(x: Any) -> Array | None:
    """Return arrays, tensors and nested lists as an array, and None for all else."""
    if hasattr(x, "detach"):
        x = from_torch(x)
    if not hasattr(x, "__array__") and hasattr(x, "numpy"):
        x = x.numpy()
    if not isinstance(x, list) and not hasattr(x, "__array__"):
        return None
    try:
        x = np.asarray(x)
    except (ValueError, RuntimeError, TypeError):
        return None
    # What JAX has and NumPy has not, such as bfloat16, is of kind V.
    x = x.astype(np.float32) if x.dtype.kind == "V" else x
    return x if x.dtype.kind in "fiub" else None


def near(expected: Any, got: Any, within: float, *, equal_nan: bool = False) -> bool:
    """Whether two arrays of one shape differ by no more, relative to a size above 1."""
    finite = np.abs(expected[np.isfinite(expected)])
    atol = within * max(1.0, finite.max(initial=0.0))
    return np.allclose(got, expected, rtol=0, atol=atol, equal_nan=equal_nan)


def expect_shape(Y: Array, shape: tuple[int, ...]) -> None:
    """Raise `WrongShape` where the output has another shape."""
    if Y.shape != shape:
        raise WrongShape(f"an output of shape {Y.shape}, where {shape} is due")


def each_array(x: Any, change: Callable[[Array], Any], seen: dict[int, Any]) -> Any:
    """Return `x` with every array in it changed, and the same array only once."""
    if isinstance(x, dict):
        return {name: each_array(part, change, seen) for name, part in x.items()}
    if isinstance(x, list):
        return [each_array(part, change, seen) for part in x]
    if not isinstance(x, np.ndarray):
        return x
    if id(x) not in seen:
        seen[id(x)] = change(x)
    return seen[id(x)]
