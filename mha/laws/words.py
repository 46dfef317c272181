"""What one says in a word: how masks, axes, the scale and the like are meant."""

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mha.laws.designs import as_designs

__all__ = ["Conventions", "NotApplicable"]

Array = np.ndarray
# Names under which a mask is handed over, and what others say by themselves.
MASK_NAMES = ("mask", "attn_mask", "attention_mask")
TELLING_NAMES = {
    "attn_bias": {"mask_true": "added"}, "valid_lens": {"mask_shape": "lengths"},
    "valid_lengths": {"mask_shape": "lengths"}, "lengths": {"mask_shape": "lengths"},
}  # fmt: skip
MASK_LIKE = re.compile(r"mask|_lens$|lengths|padding|(attn|attention|scores?)_bias")
# The distance from 1 to the next number.
EPS = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23}


def _one_of(*known):
    return "one of " + ", ".join(map(repr, known)), known.__contains__


def _above(given):
    return type(given) in (int, float) and given > 0


COUNT = ("an integer from 1 on", lambda x: type(x) is int and x > 0)
TRUTH = ("True or False", lambda x: type(x) is bool)
AXES = (
    '"lengths", or b, h, q, k in this order with k last and 1 between, such as "b1qk"'
)
SCALE = "a number above 0, or a function of d_k", lambda x: callable(x) or _above(x)
SHAPE = re.compile("lengths|(?=.{1,4}$)1*b?1*h?1*q?1*k")
RULES: dict[str, tuple[str, Callable[[Any], Any]]] = {  # what each word may be
    "design": ('designs, such as "rotary(500000), window(4096)"', lambda x: True),
    "mask_true": _one_of("attend", "hide", "added"),
    "mask_shape": (AXES, lambda x: SHAPE.fullmatch(str(x))),
    "layout": _one_of("bhnd", "bnhd"),
    **dict.fromkeys(("n_heads", "n_kv_heads"), COUNT),
    "positional": TRUTH,
    "scale": SCALE,
    "causal": _one_of("top-left", "bottom-right", "built in"),
    "final_norm": TRUTH,
    "tolerance": ("a number from 0 on", lambda x: x == 0 or _above(x)),
    "dtype": _one_of("float64", "float32", "float16", "bfloat16"),
}


class NotApplicable(Exception):
    """The law asks for something this subject cannot be asked."""


def skip_if(unfit: Any, why: str) -> None:
    if unfit:
        raise NotApplicable(why)


@dataclass(frozen=True, kw_only=True)
class Conventions:
    """Say in one word what different implementations do in different ways.

    `check`, `assert_lawful` and `Adapter` take these words, and translate what they
    hand over.

    Parameters
    ----------
    design : Design, str, or list of both
        What it changes on purpose, such as ``[rotary(500000), window(4096)]`` or
        "rotary(500000), window(4096)". The laws compare with correct attention of it.
    mask_true : {"attend", "hide", "added"}
        What True means in a mask; "added": 0 and -inf are added to the scores. If it is
        said, `key_padding_mask` (batch, n_k) beside a mask gets padding, too.
    mask_shape, layout : str
        The axes of a mask, out of b, h, q, k and 1, such as "b1qk", or "lengths" where
        visible keys are counted; those of an attention function, "bhnd" or "bnhd".
    n_heads, n_kv_heads : int
        How many heads a module has, if no attribute tells; how many keys and values
        have, which groups of queries share.
    positional, final_norm : bool
        Whether the order of tokens counts; whether an encoder ends with one more norm.
    scale, tolerance : float
        By what scores are multiplied, or a function of d_k, by default 1/√d_k; how far
        numbers may be off, relative to the largest if that is above 1.
    causal : {"top-left", "bottom-right", "built in"}
        Where a causal mask begins when n_q ≠ n_k; "built in": always.
    dtype, device : str
        What inputs are cast to, and where tensors are put, such as "cuda".

    Raises
    ------
    ValueError
        If a word is none of those above, or a number is out of range.
    """

    design: Any = ()
    mask_true: str | None = None
    mask_shape: str | None = None
    layout: str | None = None
    n_heads: int | None = None
    n_kv_heads: int | None = None
    positional: bool = False
    scale: float | Callable[[int], float] | None = None
    causal: str | None = None
    final_norm: bool | None = None
    tolerance: float | None = None
    dtype: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "design", as_designs(self.design))
        for design in self.design:
            for name, value in design.implies.items():
                if getattr(self, name) not in (None, value):
                    raise ValueError(f"{name} must be that of {design!r}")
                object.__setattr__(self, name, value)
        for name, (rule, holds) in RULES.items():
            if (given := getattr(self, name)) is not None and not holds(given):
                raise ValueError(f"{name} must be {rule}, got {given!r}")

    @property
    def bends(self) -> tuple[Any, ...]:
        """The designs that change how a head attends."""
        return tuple(design for design in self.design if not design.implies)

    def said(self) -> dict[str, Any]:
        """Return what differs from the defaults."""
        pairs = ((f, getattr(self, f.name)) for f in dataclasses.fields(Conventions))
        return {f.name: x for f, x in pairs if x is not f.default and x != ()}

    def joined(self, more: "Conventions") -> "Conventions":
        """Return conventions with what `more` says in place of what these say."""
        return Conventions(**self.said() | more.said())

    def mask_name(self, names: Any) -> str | None:
        """Return the argument by which a mask is handed over, if that is clear."""
        known = [name for name in (*MASK_NAMES, *TELLING_NAMES) if name in names]
        if not known and (self.mask_true or self.mask_shape):
            known = sorted(filter(MASK_LIKE.search, names))
        return known[0] if known else None

    def factor(self, d_k: int) -> float:
        """Return by what queries are multiplied, so that the scale is 1/√d_k."""
        if self.scale is None:
            return 1.0
        scale = self.scale(d_k) if callable(self.scale) else self.scale
        return 1 / (d_k**0.5 * scale)

    def mask_of(self, mask, sizes, axes, dtype):
        """Return a mask as it is handed over; `sizes` are b, h, n_q, n_k."""
        if axes == "lengths":
            return _lengths(np.broadcast_to(mask, sizes))
        shape = tuple((*sizes, 1)["bhqk1".index(letter)] for letter in axes)
        # Who writes into a mask writes into the one of the law, if it may stay one.
        if mask.shape != shape:
            whole = np.broadcast_to(mask, sizes)
            for axis, letter in enumerate("bhqk"):
                first = whole.take([0], axis) if letter not in axes else whole
                skip_if((whole != first).any(), f"its masks have no axis {letter}")
                whole = first
            mask = (mask if mask.size == whole.size else whole.copy()).reshape(shape)
        if mask.dtype != bool:
            return mask
        if self.mask_true == "added":
            return np.where(mask, 0.0, -np.inf).astype(dtype)
        return ~mask if self.mask_true == "hide" else mask

    def forgives(self, expected: Any, got: Any) -> bool:
        if isinstance(expected, str) or np.shape(expected) != np.shape(got):
            return False
        slack = max(self.tolerance or 0.0, 2 * EPS.get(str(self.dtype), 0.0))
        return slack > 0 and near(np.asarray(expected), got, slack)


def near(expected: Array, got: Any, within: float, *, equal_nan: bool = False) -> bool:
    """Whether two arrays of one shape differ by no more, relative to a size above 1."""
    # Most are nearer than that, and then no size is asked for.
    if (abs(got - expected) <= within).all():
        return True
    finite = np.abs(expected[np.isfinite(expected)])
    atol = within * max(1.0, finite.max(initial=0.0))
    return np.allclose(got, expected, rtol=0, atol=atol, equal_nan=equal_nan)


def _lengths(whole):
    counts = whole.sum(-1)
    padding = np.arange(whole.shape[-1]) < counts[:, :1, :1, None]
    if (whole != padding).any():
        raise NotApplicable("it is told lengths, and this mask is more than padding")
    return counts[:, 0, 0]


def in_code(words: dict[str, Any]) -> list[str]:
    if "design" in words:
        texts = [*map(repr, words["design"])]
        text = ", ".join(texts)
        # A line of code holds so much.
        words = words | {"design": text if len(text) < 70 else texts}
    return [f"{name}={x!r}" for name, x in words.items()]
