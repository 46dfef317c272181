"""Designs: correct attention with a step of it changed on purpose.

A declared design is what the laws compare with. Which laws it breaks is written down
nowhere: what correct attention of the design fails is no mistake.
"""

import ast
import copy
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

import mha
from mha import zoo

__all__ = [
    "Design", "alibi", "final_norm", "grouped", "qk_norm", "rotary", "sigmoid_gate",
    "sink", "soft_cap", "top_k", "window",
]  # fmt: skip

Array = np.ndarray


class Design:
    """A step of attention that a layer changes on purpose.

    A number that the layer learns is given as the name of its parameter, for example
    ``sink("sinks")``; the laws then write numbers of their own into it.
    """

    # Words that it says by itself, and arguments that may name a parameter.
    implies: Mapping[str, Any] = {}
    learned: tuple[str, ...] = ()
    # Whether positions count; then there are as many queries as keys.
    ordered = False

    def __init__(self, **given: Any) -> None:
        self.given = given
        vars(self).update(given)

    def __repr__(self) -> str:
        inner = (f"{name}={x!r}" for name, x in self.given.items() if x is not None)
        return f"{type(self).__name__}({', '.join(inner)})"

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters that it reads."""
        return [x for name in self.learned if isinstance(x := self.given[name], str)]

    def bound(self, read: Callable[[str], Array]) -> "Design":
        """Return the same with numbers in the place of names."""
        twin = copy.copy(self)
        for name in self.learned:
            if isinstance(x := self.given[name], str):
                setattr(twin, name, read(x))
        return twin

    @property
    def others(self) -> list["Design"]:
        """What is easily confused with it, for a hint."""
        return []

    # The steps that a design may change, in the order in which they are run.

    def read(self, x: Array, role: str) -> Array:
        """Return the queries or the keys, (..., n, d)."""
        return x

    def scores(self, S: Array) -> Array:
        """Return the scores, (..., n_q, n_k), hidden ones at -inf."""
        return S

    def beside(self, S: Array) -> Array | None:
        """Return a score without a value, (..., n_q, 1)."""
        return None

    def after(self, heads: Array, X: Array) -> Array:
        """Return what the heads give, (..., h, n, d), before they are merged."""
        return heads


class rotary(Design):
    """Queries and keys are turned by their positions, which count from 0.

    `pairs` are the columns that turn together, "halves" (c and c + d/2) or "neighbours"
    (2c and 2c + 1); of `dims` columns, if only the first ones turn.
    """

    ordered = True

    def __init__(
        self, base: float = 10000.0, pairs: str = "halves", dims: int | None = None
    ) -> None:
        if pairs not in ("halves", "neighbours"):
            raise ValueError(f"pairs must be 'halves' or 'neighbours', got {pairs!r}")
        super().__init__(base=base, pairs=pairs, dims=dims)

    def read(self, x, role):
        d = self.dims or x.shape[-1]
        speeds = self.base ** -(np.arange(0, d, 2) / d)
        angles = np.arange(x.shape[-2])[:, None] * speeds
        one, two = slice(0, d // 2), slice(d // 2, d)
        if self.pairs == "neighbours":
            one, two = slice(0, d, 2), slice(1, d, 2)
        a, b, turned = x[..., one], x[..., two], x.astype(float)
        turned[..., one] = a * np.cos(angles) - b * np.sin(angles)
        turned[..., two] = a * np.sin(angles) + b * np.cos(angles)
        return turned

    @property
    def others(self):
        pairs = "halves" if self.pairs == "neighbours" else "neighbours"
        bases = {1e4, 5e5, 1e6} - {self.base}
        more = [rotary(base, self.pairs, self.dims) for base in sorted(bases)]
        return [rotary(self.base, pairs, self.dims), *more]


class grouped(Design):
    """Groups of neighbouring query heads share `n_kv` heads of keys and values."""

    def __init__(self, n_kv: int) -> None:
        super().__init__(n_kv=n_kv)
        self.implies = {"n_kv_heads": n_kv}


class window(Design):
    """A token sees itself, the `w` - 1 tokens before it, and as many after it."""

    ordered = True

    def __init__(self, w: int) -> None:
        super().__init__(w=w)

    def scores(self, S):
        i, j = np.ogrid[: S.shape[-2], : S.shape[-1]]
        return np.where(abs(i - j) < self.w, S, -np.inf)

    @property
    def others(self):
        return [window(self.w + 1), window(max(1, self.w - 1))]


class sink(Design):
    """One more score, `s`, whose key has no value: one number, or one for each head."""

    learned = ("s",)

    def __init__(self, s: Any = 0.0) -> None:
        super().__init__(s=s)

    def beside(self, S):
        s = np.asarray(self.s, float)
        s = s.reshape(-1, 1, 1) if s.size > 1 else s.ravel()[0]
        return np.broadcast_to(s, (*S.shape[:-1], 1))


class qk_norm(Design):
    """Each query and key is divided by its root mean square, times a gain."""

    learned = ("gain_q", "gain_k")

    def __init__(self, gain_q: Any = 1.0, gain_k: Any = 1.0, eps: float = 1e-6) -> None:
        super().__init__(gain_q=gain_q, gain_k=gain_k, eps=eps)

    def read(self, x, role):
        gain = self.gain_q if role == "Q" else self.gain_k
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * gain


class soft_cap(Design):
    """Scores are bent, c tanh(s / c), so that none leaves the range from -c to c."""

    def __init__(self, c: float = 50.0) -> None:
        super().__init__(c=c)

    def scores(self, S):
        return np.where(np.isneginf(S), S, self.c * np.tanh(S / self.c))

    @property
    def others(self):
        return [soft_cap(c) for c in (20.0, 30.0, 50.0) if c != self.c]


class alibi(Design):
    """Scores fall with the distance, by one slope for each head.

    By default head r of h, counted from 1, has the slope 2^(-8 r / h).
    """

    ordered, learned = True, ("slopes",)

    def __init__(self, slopes: Any = None) -> None:
        super().__init__(slopes=slopes)

    def scores(self, S):
        h = S.shape[-3] if S.ndim > 2 else 1
        slopes = 2.0 ** (-8 * np.arange(1, h + 1) / h)
        slopes = slopes if self.slopes is None else np.asarray(self.slopes)[:h]
        i, j = np.ogrid[: S.shape[-2], : S.shape[-1]]
        penalty = slopes[:, None, None] * abs(i - j)
        return S - (penalty if S.ndim > 2 else penalty[0])


class final_norm(Design):
    """An encoder ends with one more norm."""

    def __init__(self) -> None:
        super().__init__()
        self.implies = {"final_norm": True}


class sigmoid_gate(Design):
    """The heads are multiplied by σ(X Wᵀ + b), a number per column or per head."""

    learned = ("W", "b")

    def __init__(self, W: Any, b: Any = 0.0) -> None:
        super().__init__(W=W, b=b)

    def after(self, heads, X):
        gate = 1 / (1 + np.exp(-(X @ np.swapaxes(self.W, -1, -2) + self.b)))
        return heads * mha.split_heads(gate, heads.shape[-3])


class top_k(Design):
    """Each query attends to the `k` visible keys of its largest scores only."""

    def __init__(self, k: int) -> None:
        super().__init__(k=k)

    def scores(self, S):
        if S.shape[-1] <= self.k:
            return S
        ordered = np.sort(S, -1)
        last, out = ordered[..., -self.k, None], ordered[..., -self.k - 1, None]
        if (np.isfinite(out) & (last < out + 1e-9)).any():
            raise ValueError("two scores are equal, and one of them is to be dropped")
        return np.where(S >= last, S, -np.inf)

    @property
    def others(self):
        return [top_k(self.k + 1), top_k(max(1, self.k - 1))]


@functools.cache
def attends(designs: tuple[Design, ...]) -> zoo.Member:
    """Return correct attention with these designs, as a member of the zoo."""
    # What bends scores comes first, and what chooses among them last.
    designs = tuple(sorted(designs, key=lambda design: isinstance(design, top_k)))

    def scaled_dot_product_attention(
        Q, K, V, mask=None, *, is_causal=False, scale=None, return_weights=False
    ):
        scale = 1 / math.sqrt(Q.shape[-1]) if scale is None else scale
        for design in designs:
            Q, K = design.read(Q, "Q"), design.read(K, "K")
        S = Q @ K.swapaxes(-1, -2) * scale
        seen = np.tri(*S.shape[-2:], dtype=bool) if is_causal else np.True_
        if mask is not None and mask.dtype != bool:
            S, mask = S + np.where(np.isneginf(mask), 0, mask), ~np.isneginf(mask)
        seen = seen if mask is None else seen & mask
        S = np.where(seen, S, -np.inf)
        for design in designs:
            S = design.scores(S)
        beside = [x for x in (design.beside(S) for design in designs) if x is not None]
        A = mha.masked_softmax(np.concatenate([S, *beside], -1))[..., : S.shape[-1]]
        return (A @ V, A) if return_weights else A @ V

    def multi_head_attention(
        X, W_Q, W_K, W_V, W_O, n_heads, mask=None, *, X_k=None, X_v=None,
        return_weights=False, is_causal=False, **biases,
    ):  # fmt: skip
        X_k = X if X_k is None else X_k
        tokens = {"Q": X, "K": X_k, "V": X_k if X_v is None else X_v}
        matrices = {"Q": W_Q, "K": W_K, "V": W_V}
        heads, A = scaled_dot_product_attention(
            *(mha.split_heads(mha.linear(x, matrices[r], biases.get(f"b_{r}")), n_heads)
              for r, x in tokens.items()),
            mask, is_causal=is_causal, return_weights=True,
        )  # fmt: skip
        for design in designs:
            heads = design.after(heads, X)
        Y = mha.linear(mha.merge_heads(heads), W_O, biases.get("b_O"))
        return (Y, A) if return_weights else Y

    steps = (scaled_dot_product_attention, multi_head_attention)
    return zoo.Member("right", {f.__name__: f for f in steps})


KNOWN = {x.__name__: x for x in map(globals().get, __all__[1:]) if x}


def as_designs(given: Any) -> tuple[Design, ...]:
    """Return designs, one or many; a text such as "rotary(500), window(8)" is read.

    Raises
    ------
    ValueError
        If something is no design.

    Examples
    --------
    >>> as_designs("rotary(base=500.0), grouped(2)")
    (rotary(base=500.0, pairs='halves'), grouped(n_kv=2))
    """
    some: Iterable[Any] = given if isinstance(given, list | tuple) else [given]
    found: list[Design] = []
    for x in some:
        found += _parsed(x) if isinstance(x, str) else [x]
    for x in found:
        if not isinstance(x, Design):
            known = ", ".join(KNOWN)
            raise ValueError(f"a design must be one of {known}, got {x!r}")
    return tuple(found)


def _parsed(text):
    """Return the designs that are called in a text, with plain values only."""
    try:
        calls = ast.parse(f"[{text}]", mode="eval").body.elts
        return [
            KNOWN[getattr(call, "func", call).id](
                *map(ast.literal_eval, getattr(call, "args", ())),
                **{x.arg: ast.literal_eval(x.value)
                   for x in getattr(call, "keywords", ())},
            )
            for call in calls
        ]  # fmt: skip
    except (SyntaxError, KeyError, AttributeError, TypeError, ValueError) as error:
        example = '"rotary(base=10000), grouped(2)"'
        raise ValueError(f"design must be like {example}, got {text!r}") from error
