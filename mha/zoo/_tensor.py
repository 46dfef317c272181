"""Torch tensors that NumPy's functions take, by NumPy's own protocol.

``np.exp(x)`` first asks `x` whether it computes that itself (NEP 13 for what is done
entry by entry, NEP 18 for the rest), and a `Tensor` hands the question on to torch. So
a step that is written for arrays runs on tensors as it is, and gradients flow.
"""

from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import torch

NAMES = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128"
DTYPES = {getattr(torch, name): np.dtype(name) for name in NAMES.split()}
TORCH_DTYPES = {dtype: torch_dtype for torch_dtype, dtype in DTYPES.items()}
HALF = torch.float16, torch.bfloat16


def largest(x, axis=None, keepdims=False, initial=None):
    axis = () if axis is None else axis
    if initial is not None and 0 in x.shape:  # torch knows no largest of nothing
        return x.sum(axis, keepdim=keepdims) + initial
    top = x.amax(axis, keepdim=keepdims)
    return top if initial in (None, -np.inf) else top.clamp(min=initial)


def matmul(x, y):
    if x.dtype != y.dtype:  # torch asks for one dtype
        dtype = torch.promote_types(x.dtype, y.dtype)
        x, y = x.to(dtype), y.to(dtype)
    return torch.matmul(x, y)


def ravel(x, order="C"):
    if order == "K":  # as the numbers lie in memory
        x = x.permute(sorted(range(x.ndim), key=x.stride, reverse=True))
    return x.reshape(-1)


def transpose(x, axes=None):
    return x.permute(*axes or reversed(range(x.ndim)))


def var(x, axis=None, *, ddof=0, keepdims=False):
    return torch.var(x, axis, correction=ddof, keepdim=keepdims)


def std(x, axis=None, *, ddof=0, keepdims=False):
    return torch.std(x, axis, correction=ddof, keepdim=keepdims)


ALIKE = """
    abs absolute add all any argmax argmin atleast_2d bitwise_and bitwise_or bitwise_xor
    broadcast_to ceil clip concatenate cos cumsum divide einsum exp exp2 expm1
    floor floor_divide full_like greater greater_equal isfinite isinf isnan isneginf
    less less_equal log log10 log1p log2 logaddexp logical_and logical_not logical_or
    maximum mean minimum moveaxis multiply nan_to_num negative not_equal ones_like
    positive prod reciprocal remainder round sign sin sqrt square squeeze stack subtract
    sum swapaxes tan tanh tril triu where zeros_like
"""
# What computes in torch what NumPy calls so. What both spell alike they mean alike, and
# torch too takes `axis` and `keepdims`; a name that is not here is refused.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(torch, name) for name in ALIKE.split()},
    "array_equal": torch.equal, "copy": torch.clone, "equal": torch.eq,
    "erfc (vectorized)": torch.erfc,  # np.frompyfunc's
    "expand_dims": torch.unsqueeze, "invert": torch.bitwise_not, "matmul": matmul,
    "max": largest, "amax": largest, "min": torch.amin, "amin": torch.amin,
    "ndim": attrgetter("ndim"), "power": torch.pow, "ravel": ravel,
    "repeat": torch.repeat_interleave, "reshape": torch.Tensor.reshape,
    "shape": attrgetter("shape"), "size": torch.numel, "std": std,
    "transpose": transpose, "var": var,
}  # fmt: skip
REDUCE = {"add": torch.sum, "logaddexp": torch.logsumexp, "maximum": torch.amax}
TABLES = {"__call__": FUNCTIONS, "reduce": REDUCE}  # np.add(x, y) and np.add.reduce(x)


class Tensor(np.lib.mixins.NDArrayOperatorsMixin):
    """A torch tensor that behaves like an array wherever NumPy meets it.

    Examples
    --------
    >>> x = Tensor(torch.tensor([1.0, 2.0], requires_grad=True))
    >>> np.sum(np.where([True, False], 3 * x, 0)).tensor.backward()
    >>> x.tensor.grad
    tensor([3., 0.])
    """

    __slots__ = ("tensor",)

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    shape = property(lambda self: tuple(self.tensor.shape))
    ndim = property(lambda self: self.tensor.ndim)
    size = property(lambda self: self.tensor.numel())
    dtype = property(lambda self: DTYPES[self.tensor.dtype])
    T = property(lambda self: self.transpose())

    # How NumPy asks

    def __array_ufunc__(self, ufunc, method, *args, out=(None,), **options):
        function = TABLES.get(method, {}).get(ufunc.__name__)
        if function is None or not isinstance(out[0], Tensor | None):
            return NotImplemented
        if method == "reduce":
            options.setdefault("axis", 0)
        result = function(*[self.tensor_of(x) for x in args], **options)
        if out[0] is None:
            return Tensor(result)
        out[0].tensor.copy_(result)
        return out[0]

    def __array_function__(self, function, types, args, options):
        own = FUNCTIONS.get(function.__name__)
        if own is None:
            return NotImplemented
        if function is np.where:  # torch would take two numbers for float32
            args = [self.tensor_of(x) for x in args]
        args = [mapped(self.in_torch, x) for x in args]
        result = own(*args, **{name: self.in_torch(x) for name, x in options.items()})
        return mapped(in_numpy, result)

    def __array__(self, dtype=None, copy=None):
        # Torch refuses where a gradient would be lost.
        return np.asarray(self.tensor.cpu().numpy(), dtype)

    def tensor_of(self, x):
        """Return a number, an array or a Tensor as a tensor."""
        if isinstance(x, Tensor):
            return x.tensor
        # A copy, since torch warns of an array that must not be written. A number may
        # be on any device, other tensors must be on one.
        own = torch.from_numpy(np.array(x))
        return own.to(self.tensor.device) if own.ndim else own

    def in_torch(self, x):
        """Return arrays and dtypes as torch has them; the rest means the same."""
        if isinstance(x, Tensor | np.ndarray | np.generic):
            return self.tensor_of(x)
        if isinstance(x, np.dtype | type):
            return TORCH_DTYPES[np.dtype(x)]
        return x

    # How a step asks

    def __getattr__(self, name: str) -> Any:
        # What arrays do as methods, x.sum(), NumPy does as functions, np.sum(x).
        if hasattr(np.ndarray, name) and hasattr(np, name):
            return partial(getattr(np, name), self)
        raise AttributeError(f"a tensor in a step has no {name}, which arrays have not")

    def __getitem__(self, key):
        return Tensor(self.tensor[mapped(self.in_torch, key)])

    def __setitem__(self, key, value):
        self.tensor[mapped(self.in_torch, key)] = self.tensor_of(value)

    def reshape(self, *shape):
        return Tensor(self.tensor.reshape(*shape))

    def transpose(self, *axes):
        return Tensor(transpose(self.tensor, axes))

    def astype(self, dtype, copy=True):
        return Tensor(self.tensor.to(self.in_torch(np.dtype(dtype)), copy=copy))

    def detach(self):
        return Tensor(self.tensor.detach())

    def __len__(self):
        return len(self.tensor)

    def __bool__(self):
        return bool(self.tensor)

    def __float__(self):
        return float(self.tensor)

    def __int__(self):
        return int(self.tensor)

    def __repr__(self):
        return f"Tensor({self.tensor!r})"


def in_numpy(x: Any) -> Any:
    return Tensor(x) if isinstance(x, torch.Tensor) else x


def mapped(change: Callable[[Any], Any], x: Any) -> Any:
    """Return `x` with everything in its lists, tuples and dicts changed."""
    if not isinstance(x, list | tuple | dict):
        return change(x)
    if isinstance(x, list | tuple):
        parts = [mapped(change, part) for part in x]
        return parts if isinstance(x, list) else tuple(parts)
    return {name: mapped(change, part) for name, part in x.items()}


def tensors_in(x: Any) -> Iterator[torch.Tensor]:
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, dict):
        yield from tensors_in(list(x.values()))
    elif isinstance(x, list | tuple):
        for part in x:
            yield from tensors_in(part)


def on_tensors(step: Callable[..., Any], args: tuple, options: dict[str, Any]) -> Any:
    """Call a step that is written for arrays; for tensors it returns tensors.

    As in the steps, 16 bits are computed in float32 and rounded once, at the end.
    """
    first = next(tensors_in((args, options)), None)
    if first is None:
        return step(*args, **options)

    def wide(x):
        if not isinstance(x, torch.Tensor):
            return x
        return Tensor(x.float() if x.dtype in HALF else x)

    def narrow(x):
        if not isinstance(x, Tensor | np.ndarray):
            return x
        x = Tensor(first).tensor_of(x)
        half = first.dtype in HALF and x.dtype == torch.float32
        return x.to(first.dtype) if half else x

    args, options = mapped(wide, (args, options))
    return mapped(narrow, step(*args, **options))
