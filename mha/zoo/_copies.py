"""Copies of the modules of the steps, in which some of the steps are replaced."""

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

import mha
from mha.zoo import _around

Step = Callable[..., Any]
STEPS = tuple(name for name in mha.__all__ if name != "source")
# What is around the steps, in the zoo and in a layer.
BESIDE = "read_mask", "join_masks", "share_heads", "add_and_norm"
HOMES = {getattr(mha, name).__module__ for name in STEPS} | {_around.__name__}


def with_steps(f: Step, **wrong: Step) -> Step:
    """Return `f` with these steps in the place of its own, however deep they are.

    Parameters
    ----------
    f : function
        A step of `mha`, such as `mha.multi_head_attention` or `mha.encoder`.
    **wrong : function
        By the name of the step that it replaces, a function that is called like it. It
        is used as it is: its helpers, imports and counters are its own, and inside of
        it ``mha.softmax`` and the others are the correct steps.

    Returns
    -------
    step : function
        Called like `f`, with NumPy arrays or torch tensors, through which gradients
        flow. A wrong step is written with NumPy's functions, which take both, and
        ``FUNCTIONS`` in `mha.zoo._tensor` lists them; torch's own functions take none.
        It is a copy: what is patched in `mha` later, it does not see.

    Examples
    --------
    Attention that gives every visible token the same weight, whatever its score:

    >>> def softmax(x, axis=-1):
    ...     return mha.softmax(0 * x, axis)
    >>> attend = with_steps(mha.scaled_dot_product_attention, softmax=softmax)
    >>> attend([[1.0]], [[0.0], [9.0]], [[2.0], [4.0]])
    array([[3.]])
    """
    if f.__module__ not in HOMES:
        raise ValueError(f"{f.__name__} is no step of mha")
    for name, g in wrong.items():
        if not callable(g):
            raise TypeError(f"{name} must be a function, got {g!r}")
    copies = Copies(wrong)

    def step(*args: Any, **options: Any) -> Any:
        return copies.call(f, *args, **options)

    step.__name__ = f"{f.__name__} with {', '.join(wrong) or 'no step'} replaced"
    step.__signature__ = inspect.signature(f)  # type: ignore[attr-defined]
    return step


class Copies:
    """The modules of the steps, imported once more, with some functions replaced.

    It is what a reader gets who assigns to ``mha.masks.softmax``, but in private: the
    copies call each other and the wrong steps, and nobody else finds them.
    """

    def __init__(self, wrong: Mapping[str, Step]) -> None:
        if unknown := wrong.keys() - {*STEPS, *BESIDE}:
            raise ValueError(f"no step of mha is called {', '.join(sorted(unknown))}")
        self.wrong = dict(wrong)
        self.modules: dict[str, ModuleType] = {}

    def call(self, f: Step, *args: Any, **options: Any) -> Any:
        """Call the copy of a function, on arrays or tensors."""
        step = getattr(self.module(f.__module__), f.__name__)
        if "torch" not in sys.modules:  # then there are no tensors
            return step(*args, **options)
        from mha.zoo._tensor import on_tensors

        return on_tensors(step, args, options)

    def module(self, name: str) -> ModuleType:
        """Return the copy of a module, which is made when it is first needed."""
        if name not in self.modules:
            module = imported_again(name)
            for known, x in list(vars(module).items()):
                if known in self.wrong:
                    setattr(module, known, self.wrong[known])
                elif inspect.isfunction(x) and x.__module__ in HOMES - {name}:
                    setattr(module, known, getattr(self.module(x.__module__), known))
            # Only now may another thread find it. Two of them may make one each at
            # the same time, and both are right.
            self.modules[name] = module
        return self.modules[name]


def imported_again(name: str) -> ModuleType:
    """Return a second copy of a module, which `sys.modules` knows nothing of."""
    spec = find_spec(name)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
