"""Designs: correct attention with a step of it changed on purpose.

A declared design is what the laws compare with. Which laws it breaks is written down
nowhere: what correct attention of the design fails is no mistake.
"""

import ast
import functools
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, dataclass_transform

import numpy as np

import mha
from mha import zoo

__all__ = [
    "Design", "alibi", "final_norm", "grouped", "qk_norm", "rotary", "sigmoid_gate",
    "sink", "soft_cap", "top_k", "window",
]  # fmt: skip

Array = np.ndarray


@dataclass_transform(frozen_default=True, eq_default=False)
class Design:
    """A step of attention that a layer changes on purpose.

    A number that the layer learns is given as the name of its parameter, for example
    ``sink("sinks")``; the laws then write numbers of their own into it.
    """

    ordered = False  # whether positions count; then n_q = n_k
    moves = False  # whether a score is another than that of query and key
    implies: ClassVar[Any] = MappingProxyType({})  # words that it says by itself

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False, repr=False)(cls)

    def __repr__(self) -> str:
        given = ((x, ... if np.ndim(y) else y) for x, y in vars(self).items())
        named = ", ".join(f"{x}={'…' if y is ... else repr(y)}" for x, y in given)
        return f"{type(self).__name__}({named})"

    @property
    def learned(self) -> dict[str, str]:
        """Names of parameters, by the argument that they stand for."""
        given: dict[str, Any] = vars(self)
        return {x: y for x, y in given.items() if isinstance(y, str) and x != "pairs"}

    def confused_with(self) -> list["Design"]:
        """Return what it is easily confused with, for a hint."""
        return []

    # The steps that a design may change, in the order in which they are run: queries or
    # keys, (..., n, d); scores, (..., n_q, n_k), hidden ones at -inf; a score without a
    # value, (..., n_q, 1); and what the heads give, (..., h, n, d).

    def read(self, x: Array, role: str) -> Array:
        return x

    def scores(self, S: Array) -> Array:
        return S

    def beside(self, S: Array) -> Array | None:
        return None

    def after(self, heads: Array, X: Array) -> Array:
        return heads


class rotary(Design):
    """Queries and keys are turned by their positions, which count from 0.

    `pairs` are the columns that turn together, "halves" (c and c + d/2) or "neighbours"
    (2c and 2c + 1); of `dims` columns, if only the first ones turn.
    """

    base: float = 10000.0
    pairs: str = "halves"
    dims: int | None = None
    ordered = moves = True

    def __post_init__(self) -> None:
        if self.pairs not in ("halves", "neighbours"):
            got = f"got {self.pairs!r}"
            raise ValueError(f"pairs must be 'halves' or 'neighbours', {got}")

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

    def confused_with(self):
        pairs = "halves" if self.pairs == "neighbours" else "neighbours"
        bases = sorted({1e4, 5e5, 1e6} - {self.base})
        return [replace(self, pairs=pairs), *(replace(self, base=x) for x in bases)]


class grouped(Design):
    """Groups of neighbouring query heads share `n_kv` heads of keys and values."""

    n_kv: int

    @property
    def implies(self):
        return {"n_kv_heads": self.n_kv}


class window(Design):
    """A token sees itself, the `w` - 1 tokens before it, and as many after it."""

    w: int
    ordered = True

    def scores(self, S):
        i, j = np.ogrid[: S.shape[-2], : S.shape[-1]]
        return np.where(abs(i - j) < self.w, S, -np.inf)

    def confused_with(self):
        return [window(self.w + 1), window(max(1, self.w - 1))]


class sink(Design):
    """One more score, `s`, whose key has no value: one number, or one for each head."""

    s: Any = 0.0

    def beside(self, S):
        s = np.asarray(self.s, float)
        s = s.reshape(-1, 1, 1) if s.size > 1 else s.ravel()[0]
        return np.broadcast_to(s, (*S.shape[:-1], 1))


class qk_norm(Design):
    """Each query and key is divided by its root mean square, times a gain."""

    gain_q: Any = 1.0
    gain_k: Any = 1.0
    eps: float = 1e-6
    moves = True

    def read(self, x, role):
        gain = self.gain_q if role == "Q" else self.gain_k
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * gain


class soft_cap(Design):
    """Scores are bent, c tanh(s / c), so that none leaves the range from -c to c."""

    c: float = 50.0

    def scores(self, S):
        return np.where(np.isneginf(S), S, self.c * np.tanh(S / self.c))


class alibi(Design):
    """Scores fall with the distance, by one slope for each head.

    By default head r of h, counted from 1, has the slope 2^(-8 r / h).
    """

    slopes: Any = None
    ordered = moves = True

    def scores(self, S):
        h = S.shape[-3] if S.ndim > 2 else 1
        slopes = 2.0 ** (-8 * np.arange(1, h + 1) / h)
        slopes = slopes if self.slopes is None else np.asarray(self.slopes)[:h]
        i, j = np.ogrid[: S.shape[-2], : S.shape[-1]]
        penalty = slopes[:, None, None] * abs(i - j)
        return S - (penalty if S.ndim > 2 else penalty[0])


class final_norm(Design):
    """An encoder ends with one more norm."""

    implies = MappingProxyType({"final_norm": True})


class sigmoid_gate(Design):
    """The heads are multiplied by σ(X Wᵀ + b), a number per column or per head."""

    W: Any
    b: Any = 0.0

    def after(self, heads, X):
        gate = 1 / (1 + np.exp(-(X @ np.swapaxes(self.W, -1, -2) + self.b)))
        return heads * mha.split_heads(gate, heads.shape[-3])


class top_k(Design):
    """Each query attends to the `k` visible keys of its largest scores only."""

    k: int

    def scores(self, S):
        if S.shape[-1] <= self.k:
            return S
        ordered = np.sort(S, -1)
        last, out = ordered[..., -self.k, None], ordered[..., -self.k - 1, None]
        if (np.isfinite(out) & (last < out + 1e-9)).any():
            raise ValueError("two scores are equal, and one of them is to be dropped")
        return np.where(S >= last, S, -np.inf)

    def confused_with(self):
        return [top_k(self.k + 1), top_k(max(1, self.k - 1))]


def as_like(x: Array, y: Array) -> Array:
    return y.astype(np.result_type(x, 1.0), copy=False)


@functools.cache
def attends(designs: tuple[Design, ...]) -> zoo.Member:
    """Return correct attention with these designs, as a member of the zoo."""
    # What bends scores comes before the mask, and what chooses among them behind it.
    choosing = [design for design in designs if isinstance(design, top_k)]
    bending = [design for design in designs if design not in choosing]

    def dot_product_scores(Q, K):
        for design in designs:
            # Tables of angles and slopes are float64, and the dtype is that of Q.
            Q, K = (as_like(x, design.read(x, y)) for x, y in ((Q, "Q"), (K, "K")))
        return Q @ K.swapaxes(-1, -2)

    def masked_softmax(S, mask=None, axis=-1):
        for design in bending:
            S = as_like(S, design.scores(S))
        if mask is not None:
            added = np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask
            S = as_like(S, S + added)
        for design in choosing:
            S = design.scores(S)
        found = (design.beside(S) for design in designs)
        beside = [as_like(S, x) for x in found if x is not None]
        return mha.masked_softmax(np.concatenate([S, *beside], -1))[..., : S.shape[-1]]

    steps: Any = {f.__name__: f for f in (dot_product_scores, masked_softmax)}
    inner = zoo.with_steps(mha.multi_head_attention, **steps)

    def multi_head_attention(
        X, W_Q, *, W_O, n_heads, b_O=None, return_weights=False, **options
    ):
        options |= {"W_O": np.eye(len(W_O)), "n_heads": n_heads}
        Y, A = inner(X, W_Q, return_weights=True, **options)
        heads = mha.split_heads(Y, n_heads)
        for design in designs:
            heads = as_like(heads, design.after(heads, X))
        Y = mha.linear(mha.merge_heads(heads), W_O, b_O)
        return (Y, A) if return_weights else Y

    if any(type(design).after is not Design.after for design in designs):
        steps["multi_head_attention"] = multi_head_attention
    return zoo.Member("right", steps)


KNOWN = {x.__name__: x for x in map(globals().get, __all__[1:]) if x}


def as_designs(given: Any) -> tuple[Design, ...]:
    """Return designs, one or many; a text such as "rotary(500), window(8)" is read.

    >>> as_designs("window(8), grouped(2)")
    (window(w=8), grouped(n_kv=2))
    """
    found: list[Any] = []
    for x in given if isinstance(given, list | tuple) else [given]:
        found += _parsed(x) if isinstance(x, str) else [x]
    for x in found:
        if x in KNOWN.values():
            raise ValueError(
                f"a design must be called, as in {x.__name__}(…), got {x!r}"
            )
        if not isinstance(x, Design):
            raise ValueError(f"a design must be one of {', '.join(KNOWN)}, got {x!r}")
    return tuple(found)


def _parsed(text):
    try:
        found, read = [], ast.literal_eval
        for call in ast.parse(f"[{text}]", mode="eval").body.elts:
            if not isinstance(call, ast.Call):
                raise SyntaxError(f"write {ast.unparse(call)}(), with its arguments")
            named = {x.arg: read(x.value) for x in call.keywords}
            found.append(KNOWN[call.func.id](*map(read, call.args), **named))
        return found
    except (SyntaxError, KeyError, AttributeError, TypeError, ValueError) as error:
        example = '"rotary(base=10000), grouped(2)"'
        why = f"no design is called {error}" if type(error) is KeyError else error
        got = f"got {text!r}: {why}".replace(".__init__()", "")
        raise ValueError(f"a design must be like {example}, {got}") from error
