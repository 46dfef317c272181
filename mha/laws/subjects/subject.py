"""Make anything that attends answer the same two questions, in NumPy.

A law asks a subject to `attend(Q, K, V, mask)`, and a layer also for the output of a
`layer(X, weights, n_heads, mask, X_k, X_v)`. What the subject is, a NumPy function, a
torch function or an nn.Module, is known in this folder only.
"""

import copy
import functools
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mha._arrays import Array

Weights = dict[str, Array]
Options = dict[str, Any]

MASK_NAMES = ("mask", "attn_mask", "attention_mask")
WEIGHTS_NAMES = ("return_weights", "need_weights")
OTHER_NAMES = (("X_k", "X_v"), ("key", "value"), ("K", "V"), ("k", "v"))


class NotApplicable(Exception):
    """The law asks for something this subject cannot be asked."""


class Broke(Exception):
    """The subject raised, or returned something that is no array."""


class WrongShape(Broke):
    """It returned an array of a shape that no law can use."""


@dataclass(frozen=True)
class Mode:
    """A way of running the same subject: what PyTorch lets one switch."""

    training: bool | None = None
    gradients: bool = False
    weights: bool | None = None
    weights_name: str | None = None
    settings: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        parts = {True: ["train mode"], False: ["eval mode"], None: []}[self.training]
        if self.training is not None and not self.gradients:
            parts.append("no_grad")
        if self.weights is not None:
            parts.append(f"{self.weights_name}={self.weights}")
        parts += [f"{name}={value}" for name, value in self.settings]
        return ", ".join(parts)


class Subject:
    """What is checked, behind one pair of methods."""

    kind = "attention"
    tried = "Q, K, V of shape (2, 2)"
    always_causal = False
    # A function of torch: tensors go in, and an array comes out.
    tensors = False

    # What a law asks it; layers answer `layer` with numbers, and encoders `encode`.
    attend: Callable[..., Array]

    def __init__(
        self, target: Any, name: str, accepts: Collection[str] = (),
        needs_mask: bool = False, lead: int = 0,
    ) -> None:  # fmt: skip
        self.target, self.name, self.accepts = target, name, frozenset(accepts)
        # Some functions want a mask in every call, or axes in front of the tokens.
        self.needs_mask, self.lead = needs_mask, lead
        self.mode, self.borrows = Mode(), False
        # What one call gave, and what a module has besides its arguments.
        self.gradients: list[Array] = []
        self.parameters: list[Any] = []
        self.log: dict[str, str] = {}

    @property
    def mask_name(self) -> str | None:
        return next((name for name in MASK_NAMES if name in self.accepts), None)

    @property
    def weights_name(self) -> str | None:
        return next((name for name in WEIGHTS_NAMES if name in self.accepts), None)

    @property
    def takes_causal(self) -> bool:
        return self.always_causal or "is_causal" in self.accepts

    @property
    def takes_bias(self) -> bool:
        return "b_Q" in self.accepts

    @functools.cached_property
    def takes_batch(self) -> bool:
        """Whether it reads (batch, n, d); many by-hand versions read (n, d) only."""
        X = np.linspace(-1, 1, 24).reshape(2, 3, 4)
        try:
            return self.attend(X, X, X, heads=2).shape[:2] == (2, 3)
        except (Broke, NotApplicable):
            return False

    def borrowing(self) -> Self:
        """Return a twin that hands its arguments on without copying them."""
        return self.but(borrows=True)

    def but(self, **facts: Any) -> Self:
        """Return a twin that differs in these attributes."""
        twin = copy.copy(self)
        vars(twin).update(facts)
        return twin

    def variants(self) -> list[Self]:
        """Return the subject in each mode in which every law must hold."""
        return [self]

    def all_modes(self) -> list[Self]:
        """Return the subject in every mode there is."""
        weights = (None, True) if self.weights_name else (None,)
        return [
            self.but(mode=Mode(None, gradients, w, self.weights_name))
            for w in weights
            for gradients in (False, True)[: 1 + self.tensors]
        ]

    def trained_and_not(self) -> list[Self]:
        """Return the subject in train mode and in eval mode."""
        raise NotApplicable("it has no train mode and no eval mode")

    def options(self, mask: Any, is_causal: bool, shape: tuple[int, int]) -> Options:
        """Return the keyword arguments of one call on scores of this shape."""
        options: Options = {}
        if mask is not None and self.always_causal and _hides_all(mask, shape):
            raise NotApplicable("it is always causal, and then a token sees nothing")
        if mask is None and self.needs_mask:
            mask = np.ones(shape, bool)
        if mask is not None:
            if self.mask_name is None:
                raise NotApplicable("it takes no mask")
            options[self.mask_name] = mask
        if is_causal:
            if not self.takes_causal:
                raise NotApplicable("it has no is_causal")
            if "is_causal" in self.accepts:
                options["is_causal"] = True
        if self.mode.weights is not None:
            options[str(self.weights_name)] = self.mode.weights
        return options

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Array:
        """Call `function`, and return its first result as an array."""
        if not self.borrows:
            args, options = each_array([[*args], options], _copied, {})
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = self.run(function, args, options)
        except NotApplicable:
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            text = re.sub(r"\S*<locals>\.", "", text)
            raise Broke(textwrap.shorten(text, 70, placeholder=" …")) from error
        result = result[0] if isinstance(result, tuple | list) and result else result
        if not isinstance(result, np.ndarray) or result.dtype.kind not in "fiub":
            raise Broke(f"it returned {type(result).__name__}, not an array")
        return result

    def run(self, function: Callable[..., Any], args: Any, options: Options) -> Any:
        """Call `function`, as it is called underneath."""
        if not self.tensors:
            return function(*args, **options)
        torch = sys.modules["torch"]
        seen: dict[int, Any] = {}
        args, options = each_array([[*args], options], self._as_tensor, seen)
        with torch.set_grad_enabled(self.mode.gradients):
            result = function(*args, **options)
            Y = result[0] if isinstance(result, tuple | list) else result
            if not isinstance(Y, torch.Tensor):
                raise TypeError(f"it returned {type(Y).__name__}, not a tensor")
            self.gradients = []
            if self.mode.gradients and Y.requires_grad:
                Y.sum().backward()
                leaves = [x for x in seen.values() if x.requires_grad]
                grads = [x.grad for x in leaves + self.parameters]
                self.gradients = [g.detach().numpy() for g in grads if g is not None]
        return Y.detach().numpy()

    def _as_tensor(self, x):
        needs_grad = self.mode.gradients and x.dtype.kind == "f"
        return sys.modules["torch"].from_numpy(x).requires_grad_(needs_grad)


def _hides_all(mask, shape):
    """Whether the causal mask closes a row that the mask has left open."""
    mask = np.broadcast_to(mask, (*mask.shape[:-2], *shape))
    left = (mask & np.tri(*shape, dtype=bool)).any(-1)
    return bool((mask.any(-1) & ~left).any())


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


def _copied(x):
    return np.array(x, order="C")


class Attention(Subject):
    """A function of Q, K and V."""

    def attend(
        self, Q: Array, K: Array, V: Array, mask: Array | None = None, *,
        is_causal: bool = False, heads: int = 1,
    ) -> Array:  # fmt: skip
        """Attend; `heads` is for layers, which have more than one."""
        options = self.options(mask, is_causal, (len(Q), len(K)))
        more = (None,) * self.lead
        if more:
            options |= {k: x[more] for k, x in options.items() if k == self.mask_name}
            Q, K, V = Q[more], K[more], V[more]
        Y = self.call(self.target, Q, K, V, **options)
        expect_shape(Y, (*Q.shape[:-1], V.shape[-1]))
        return Y[(0,) * len(more)] if more else Y

    def layer(self, *args: Any, **options: Any) -> Array:
        """Refuse."""
        raise NotApplicable("it has no weight matrices")


class Layer(Subject):
    """A function of tokens and weight matrices."""

    kind = "layer"

    def attend(
        self, Q: Array, K: Array, V: Array, mask: Array | None = None, *,
        is_causal: bool = False, heads: int = 1,
    ) -> Array:  # fmt: skip
        """Let every head attend to the same Q, K, V; return the heads side by side.

        With identity matrices a layer is its attention. Values wider than the keys go
        through in several calls, because a head of a module is as wide as its keys.
        """
        d, d_v = Q.shape[-1], V.shape[-1]
        self.log["attend"] = f"{heads} head{'s' * (heads > 1)}, all matrices I"
        if heads == 1 and d == d_v:
            return self._attend_once(Q, K, V, mask, is_causal, 1)
        parts = []
        for start in range(0, d_v, d):
            part = V[..., start : start + d]
            missing = [(0, 0)] * (V.ndim - 1) + [(0, d - part.shape[-1])]
            q, k, v = (np.tile(x, heads) for x in (Q, K, np.pad(part, missing)))
            k, v = (q, q) if Q is K is V else (k, v)
            Y = self._attend_once(q, k, v, mask, is_causal, heads)
            Y = Y.reshape(*Y.shape[:-1], heads, d)
            parts.append(Y[..., : part.shape[-1]])
        Y = np.concatenate(parts, -1)
        return Y.reshape(*Y.shape[:-2], heads * d_v)

    def _attend_once(self, Q, K, V, mask, is_causal, heads):
        eye = np.eye(Q.shape[-1], dtype=Q.dtype)
        weights = dict.fromkeys(("W_Q", "W_K", "W_V", "W_O"), eye)
        others = {} if Q is K is V else {"X_k": K, "X_v": V}
        return self.layer(Q, weights, heads, mask, is_causal=is_causal, **others)

    @property
    def other_names(self) -> tuple[str, str] | None:
        """What it calls the tokens that are asked and those that answer, or None."""
        return next((pair for pair in OTHER_NAMES if self.accepts >= set(pair)), None)

    run_layer: Callable[..., Array]

    def layer(
        self, X: Array, weights: Weights, n_heads: int, mask: Array | None = None, *,
        X_k: Array | None = None, X_v: Array | None = None, is_causal: bool = False,
    ) -> Array:  # fmt: skip
        """Return the output for tokens `X` and these matrices."""
        others: list[Array] = []
        if X_k is not None or X_v is not None:
            X_k = X if X_k is None else X_k
            others = [X_k, X_k if X_v is None else X_v]
        if others and self.other_names is None:
            given = weights, n_heads, mask, is_causal
            return self._as_self_attention(X, others, *given)
        shape = X.shape[-2], (others or [X])[0].shape[-2]
        options = self.options(mask, is_causal, shape)
        more = (None,) * self.lead if X.ndim == 2 else ()
        if more:
            X, others = X[more], [x[more] for x in others]
        options |= zip(self.other_names or (), others, strict=False)
        Y = self.run_layer(X, weights, n_heads, options)
        expect_shape(Y, (*X.shape[:-1], weights["W_O"].shape[1]))
        return Y[(0,) * len(more)] if more else Y

    def _as_self_attention(self, X, others, weights, n_heads, mask, is_causal):
        """Ask a layer that knows self-attention only about other keys and values.

        Three times as wide a token carries what asks, what is asked and what answers,
        one beside the other, and each matrix reads its own third.
        """
        n_q, n_k, d = X.shape[-2], others[0].shape[-2], X.shape[-1]
        if n_q > n_k or any(name.startswith("b_") for name in weights):
            raise NotApplicable("it knows self-attention only")
        rows = [(0, 0)] * (X.ndim - 2) + [(0, n_k - n_q), (0, 0)]
        wide = np.concatenate([np.pad(X, rows), *others], -1)
        if mask is not None and mask.shape[-2] == n_q != 1:
            mask = np.pad(mask, rows, constant_values=True)
        three = {name: np.zeros((3 * d, 3 * d), W.dtype) for name, W in weights.items()}
        for third, name in enumerate(("W_Q", "W_K", "W_V")):
            block = slice(third * d, (third + 1) * d)
            three[name][block] = np.tile(weights[name], 3)
            three["W_O"][block, block] = weights["W_O"]
        Y = self.layer(wide, three, 3 * n_heads, mask, is_causal=is_causal)
        return Y[..., :n_q, :d]


def expect_shape(Y: Array, shape: tuple[int, ...]) -> None:
    """Raise `WrongShape` where the output has another shape."""
    if Y.shape != shape:
        raise WrongShape(f"an output of shape {Y.shape}, where {shape} is due")


class LayerFunction(Layer):
    """A function with the signature of `mha.multi_head_attention`."""

    def run_layer(self, X: Array, weights: Weights, n_heads: int, options: Any) -> Any:
        """Call the function with the four matrices in order, biases by name."""
        four = [weights[name] for name in ("W_Q", "W_K", "W_V", "W_O")]
        options |= {name: b for name, b in weights.items() if name.startswith("b_")}
        return self.call(self.target, X, *four, n_heads, **options)


class AdaptedLayer(Layer):
    """A function of tokens and a dict of weight matrices."""

    takes_bias = False

    def run_layer(self, X: Array, weights: Weights, n_heads: int, options: Any) -> Any:
        """Call the function with the dict."""
        return self.call(self.target, X, weights, n_heads, **options)
