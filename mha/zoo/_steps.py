"""The staircase with some of its steps replaced, on NumPy arrays and on tensors."""

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

import numpy as np

import mha

Step = Callable[..., Any]
# What is around the steps, in the zoo and in a layer.
BESIDE = "read_mask", "join_masks", "share_heads", "add_and_norm"


def with_steps(f: Step, **wrong: Step) -> Step:
    """Return `f` with these steps in the place of its own, however deep they are.

    Equation: see `mha.multi_head_attention`, with one step replaced

    Parameters
    ----------
    f : function
        A step of `mha`, such as `mha.multi_head_attention` or `mha.encoder`.
    **wrong : function
        By the name of the step that it replaces, a function that is called like it.
        Inside of it ``mha.softmax`` and the others are the correct steps.

    Returns
    -------
    step : function
        Called like `f`. It takes NumPy arrays and torch tensors, through which
        gradients flow: for tensors, ``np`` stands for torch inside of each step.
        Arguments are not checked.

    Raises
    ------
    ValueError
        If a name is not that of a step.

    Examples
    --------
    Attention that gives every visible token the same weight, whatever its score:

    >>> def softmax(x, axis=-1):
    ...     return mha.softmax(0 * x, axis)
    >>> attend = with_steps(mha.scaled_dot_product_attention, softmax=softmax)
    >>> attend(np.ones((1, 1)), np.array([[0.0], [9.0]]), np.array([[2.0], [4.0]]))
    array([[3.]])
    """
    if unknown := wrong.keys() - {*mha.__all__, *BESIDE}:
        raise ValueError(f"no step of mha is called {', '.join(sorted(unknown))}")

    @functools.cache
    def on(device):
        library = np if device is None else InTorch(device)
        right = Steps(library, {})
        return Steps(library, {name: right.copy(g) for name, g in wrong.items()}).of(f)

    def step(*args, **options):
        tensor = getattr(sys.modules.get("torch"), "Tensor", ())
        found = (x for x in (*args, *options.values()) if isinstance(x, tensor))
        return on(getattr(next(found, None), "device", None))(*args, **options)

    step.__name__ = f"{f.__name__} with {', '.join(wrong) or 'no step'} replaced"
    step.__signature__ = inspect.signature(f)  # type: ignore[attr-defined]
    return step


class Steps:
    """Copies of the steps for one library, some of them replaced; `mha` to them."""

    def __init__(self, library: Any, wrong: Mapping[str, Step]) -> None:
        self.library, self.wrong = library, wrong
        self.copies: dict[Step, Step] = {}

    def __getattr__(self, name: str) -> Any:
        return self.of(getattr(mha, name))

    def of(self, x: Any) -> Any:
        """Return what stands here for `x`, something that a step knows by name."""
        if x is np:
            return self.library
        if x is mha:
            return self
        if isinstance(x, dict):
            return {name: self.of(value) for name, value in x.items()}
        if not isinstance(x, FunctionType) or not x.__module__.startswith("mha."):
            return x
        if x.__name__ == "gelu" and self.library is not np:
            return self.library.nn.functional.gelu
        return self.wrong.get(x.__name__) or self.copy(x)

    def copy(self, f: Any) -> Any:
        """Return `f` without its door, with all that it knows by name replaced."""
        f = inspect.unwrap(f)
        if isinstance(f, FunctionType) and f not in self.copies:
            known = dict(f.__globals__)
            # A default that remembers must not remember for others.
            defaults = copy.deepcopy(f.__defaults__)
            twin = FunctionType(f.__code__, known, f.__name__, defaults, f.__closure__)
            twin.__kwdefaults__ = f.__kwdefaults__
            self.copies[f] = twin
            for name in known.keys() & names_in(f.__code__):
                known[name] = self.of(known[name])
            if self.library is not np:
                known["bool"] = self.library.bool
        return self.copies.get(f, f)


def names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that the code uses, and those of the functions in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


class InTorch:
    """What steps ask of NumPy, in torch; what both spell alike is torch's own."""

    errstate, random = np.errstate, np.random

    def __init__(self, device: Any) -> None:
        self.torch, self.device = sys.modules["torch"], device

    def __getattr__(self, name):
        own = getattr(self.torch, name)
        if name in ("arange", "eye", "ones"):
            return functools.partial(own, device=self.device)
        return own

    def asarray(self, x, dtype=None):
        return self.torch.as_tensor(x, dtype=dtype, device=self.device)

    def where(self, mask, x, y):
        return self.torch.where(self.asarray(mask), x, y)

    def max(self, x, axis, keepdims=False, initial=None):
        return x.amax(axis, keepdim=keepdims)

    def maximum(self, x, least):
        return x.clamp(min=least)

    def copy(self, x):
        return x.clone()

    def repeat(self, x, n, axis):
        return x.repeat_interleave(n, axis)

    def ravel(self, x, order):
        return (x.mT if x.mT.is_contiguous() else x).reshape(-1)

    def tri(self, n, m=None, k=0, dtype=None):
        return self.ones((n, n if m is None else m), dtype=dtype).tril(k)
