"""What NumPy and torch spell differently, spelled once; a tensor has loaded torch."""

import math
import sys

import numpy as np

from mha.encoder import gelu


def _is_tensor(x):
    return type(x).__module__.partition(".")[0] == "torch"


def _like(x, mask):
    """Return `mask` in the library of `x`."""
    if not _is_tensor(x) or _is_tensor(mask):
        return mask
    return sys.modules["torch"].as_tensor(mask, device=x.device)


def _where(mask, x, y):
    tensors = any(_is_tensor(a) for a in (mask, x, y))
    return (sys.modules["torch"] if tensors else np).where(mask, x, y)


def _exp(x):
    return x.exp() if _is_tensor(x) else np.exp(x)


def _max(x, axis):
    return x.amax(axis, keepdim=True) if _is_tensor(x) else x.max(axis, keepdims=True)


def _softmax(x, axis):
    """Return the shares along `axis`; where every score is -inf, all shares are 0."""
    top = _max(x, axis)
    E = _exp(x - _where(top == -math.inf, 0.0, top))
    total = E.sum(axis, keepdims=True)
    return E / (total + (total == 0))


def _plus(x, b):
    return x if b is None else x + b


def _mean(x, axes):
    return x.mean(axes, keepdim=True) if _is_tensor(x) else x.mean(axes, keepdims=True)


def _normalised(x, axes, eps):
    """Return `x` with mean 0 and variance 1 over the axes."""
    centred = x - _mean(x, axes)
    return centred / (_mean(centred * centred, axes) + eps) ** 0.5


def _relu(x):
    return x * (x > 0)


def _gelu(x):
    return sys.modules["torch"].nn.functional.gelu(x) if _is_tensor(x) else gelu(x)


def _cast(x, dtype):
    """Return `x` in the dtype of this name, or in that of an array."""
    dtype = str(getattr(dtype, "dtype", dtype)).removeprefix("torch.")
    return (
        x.to(getattr(sys.modules["torch"], dtype)) if _is_tensor(x) else x.astype(dtype)
    )


def _clip(x, limit):
    return x.clip(-limit, limit)


def _as_it_lies(x):
    """Return the numbers in the order in which they lie in memory."""
    if _is_tensor(x):
        return (x.mT if x.mT.is_contiguous() else x).reshape(x.shape)
    return x.ravel("K").reshape(x.shape)


def _detached(x):
    return x.detach() if _is_tensor(x) else x
