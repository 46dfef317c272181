"""Make anything that attends answer the same two questions, in NumPy.

A law asks a subject to `attend(Q, K, V, mask)`, and a layer also for the output of a
`layer(X, weights, n_heads, mask, X_k, X_v)`. What the subject is, a NumPy function, a
torch function or an nn.Module, is known in this folder only.
"""

import copy
import functools
import math
import re
import sys
import sysconfig
import textwrap
import traceback
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from mha._arrays import Array
from mha.laws.subjects.conventions import MASK_LIKE, Conventions, NotApplicable

Weights = dict[str, Array]
Options = dict[str, Any]

PADDING = "key_padding_mask"
WEIGHTS_NAMES = ("return_weights", "need_weights", "return_attention")
OTHER_NAMES = (("X_k", "X_v"), ("key", "value"), ("K", "V"), ("k", "v"))

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


@dataclass
class Trace:
    """What was tried: how many tokens and sequences, which dtypes and arguments."""

    lengths: set[int] = field(default_factory=set)
    longer: dict[str, list[int]] = field(default_factory=dict)
    batches: set[int] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    handed: set[str] = field(default_factory=set)


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
    # What was said about it.
    said = Conventions()
    # A function of torch: tensors go in, and an array comes out.
    tensors = False

    # What a law asks it; layers answer `layer` with numbers, and encoders `encode`.
    attend: Callable[..., Array]

    def __init__(
        self, target: Any, name: str, accepts: Collection[str] = (),
        needs_mask: bool = False, lead: int = 0,
    ) -> None:  # fmt: skip
        self.target, self.name, self.accepts = target, name, frozenset(accepts)
        self.order = tuple(accepts)
        # What was handed in.
        self.source: Any = target
        # Some functions want a mask in every call, or axes in front of the tokens.
        self.needs_mask, self.lead = needs_mask, lead
        self.mode, self.borrows = Mode(), False
        # Floats are handed over in this dtype.
        self.cast: str | None = None
        # A mask of one row stays so, unless it goes through an adapter.
        self.spreads = False
        # Whether keys that nobody may attend to go through an argument of their own.
        self.splits = False
        # What one call gave, and what a module has besides its arguments.
        self.gradients: list[Array] = []
        self.weights: Array | None = None
        # Backwards goes the sum of Y, or of Y times this; then the slopes, by argument.
        self.direction: Array | None = None
        self.slope_at: dict[Any, Array] = {}
        self.parameters: list[Any] = []
        self.log: dict[str, str] = {}
        # All twins share it.
        self.trace = Trace()

    @property
    def mask_name(self) -> str | None:
        return self.said.mask_name(self.accepts)

    @property
    def unread_masks(self) -> list[str]:
        """Arguments that look like a mask, and are never handed anything."""
        known = {self.mask_name, self.padding_name}
        return sorted(filter(MASK_LIKE.search, self.accepts - known))

    @property
    def padding_name(self) -> str | None:
        """What takes padding beside the mask, where it is known what True means."""
        beside = PADDING in self.accepts and self.mask_name not in (None, PADDING)
        clear = beside and self.said.mask_true in ("attend", "hide")
        return PADDING if clear and self.takes_batches else None

    @property
    def takes_batches(self) -> bool:
        """Whether (b, h, n, d), or for a layer (b, n, d), is what it is made for."""
        return self.takes_heads or self.takes_sequences

    @property
    def never_handed(self) -> list[str]:
        """Arguments that were never handed anything."""
        return [x for x in self.order if x not in self.trace.handed]

    @property
    def why_no_mask(self) -> str:
        """Why masks are not asked, where `mask_name` is None."""
        if not self.unread_masks:
            return "it takes no mask"
        say = "say mask_true and mask_shape, for example mask_true='hide'"
        return f"what its {self.unread_masks[0]} means is not known: {say}"

    @property
    def always_causal(self) -> bool:
        return self.said.causal == "built in"

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
        return self._gives_as_many(2, 3, 4)

    @functools.cached_property
    def takes_heads(self) -> bool:
        """Whether it reads (b, h, n, d), and answers in that shape, right or wrong."""
        return self.kind == "attention" and self._gives_as_many(2, 3, 5, 7)

    @property
    def takes_sequences(self) -> bool:
        """Whether (batch, n, d) is what it is made for; by chance more answer to it."""
        return self.takes_batch and (self.kind != "attention" or self.lead == 1)

    def _gives_as_many(self, *shape):
        X = np.linspace(-1, 1, math.prod(shape)).reshape(shape)
        try:
            Y = self.but(trace=Trace()).attend(X, X, X, heads=2)
        except (Broke, NotApplicable):
            return False
        return Y.shape[:-1] == shape[:-1]

    def attend_with_weights(
        self, Q: Array, K: Array, V: Array, mask: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the output of one head and the weights that came with it."""
        name = self.weights_name
        mode = replace(self.mode, weights=True if name else None, weights_name=name)
        twin = self.but(mode=mode, weights=None)
        # Copies: of one and the same array an encoder would answer as a whole.
        Y, A = twin.attend(Q.copy(), K.copy(), V, mask), twin.weights
        due = (*Q.shape[:-1], K.shape[-2])
        if A is not None:
            A = A[(0,) * (A.ndim - len(due))][..., : Q.shape[-2], :]
        if A is None or A.shape != due:
            raise NotApplicable(f"it returns no weights of shape {due}")
        return Y, A

    def slopes(
        self, Q: Array, K: Array, V: Array, mask: Array | None, direction: Array
    ) -> list[Array]:
        """Return the gradients of sum(Y * direction) for Q, K and V, one head."""
        given = Q.copy(), K.copy(), V.copy(), mask
        slope_at = self.backwards(lambda twin: twin.attend(*given), direction)
        slopes, start = [], 0
        for key, x in zip(self.slope_keys, (Q, K, V), strict=True):
            # What the laws gave stands first in what was handed over.
            slope = slope_at[key]
            slope = slope[(0,) * (slope.ndim - x.ndim)]
            slopes.append(slope[..., : x.shape[-2], start : start + x.shape[-1]])
            if key == 0 and self.kind == "attention":
                slopes[0] = slopes[0] * self.said.factor(Q.shape[-1])
            # A wide token carries all three, one beside the other.
            start += x.shape[-1] if self.slope_keys == (0, 0, 0) else 0
        return slopes

    def backwards(
        self, ask: Callable[[Self], Array], direction: Array
    ) -> dict[Any, Array]:
        """Return what arrives at each argument when sum(Y * direction) goes back."""
        if not self.tensors:
            raise NotApplicable("its gradients are out of reach")
        if self.cast not in (None, "float64"):
            raise NotApplicable("gradients are compared in float64")
        mode = replace(self.mode, gradients=True)
        twin = self.but(mode=mode, direction=direction, slope_at={})
        ask(twin)
        return twin.slope_at

    @property
    def slope_keys(self) -> tuple[Any, Any, Any]:
        """Where Q, K and V stand among the arguments of a call."""
        return 0, 1, 2

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
        hides = mask is not None and mask.dtype == bool and self.always_causal
        if hides and _hides_all(mask, shape):
            raise NotApplicable("it is always causal, and then a token sees nothing")
        if mask is None and self.needs_mask:
            mask = np.ones(shape, bool)
        if mask is not None:
            if self.mask_name is None:
                raise NotApplicable(self.why_no_mask)
            options[self.mask_name] = mask
        if is_causal:
            if not self.takes_causal:
                raise NotApplicable("it has no is_causal")
            if "is_causal" in self.accepts and not self.always_causal:
                options["is_causal"] = True
        if self.mode.weights is not None:
            options[str(self.weights_name)] = self.mode.weights
        return options

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Array:
        """Call `function`, and return its first result as an array."""
        name = self.mask_name or ""
        if self.splits:
            options = self._split(options)
        if options.get(name) is not None:
            options = options | {name: self._mask_for(args, options)}
        if not self.borrows:
            args, options = each_array([[*args], options], _copied, {})
        self._note(args, options)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = self.run(function, args, options)
        except (NotApplicable, Broke):
            raise
        except Exception as error:
            text = re.sub(r"\S*<locals>\.", "", f"{type(error).__name__}: {error}")
            raise Broke(text, line_of(error)) from error
        Y, *rest = result if holds_several(result) else [result]
        self.weights = as_numbers(rest[0]) if rest else None
        answer = as_numbers(Y)
        if answer is None:
            raise Broke(f"it returned {type(Y).__name__}, not an array")
        if self.cast == str(getattr(Y, "dtype", "")).removeprefix("torch."):
            # It kept the dtype; a law sees the one in which it asked.
            answer = answer.astype(args[0].dtype)
        return answer

    def _split(self, options):
        """Hand keys that a whole sequence may not attend to over as its padding."""
        name, mask = self.mask_name, options[self.mask_name]
        shown = mask.any((1, 2))
        rest = mask | ~shown[:, None, None]
        options = {x: y for x, y in options.items() if x != name}
        options |= {} if rest.all() and not self.needs_mask else {name: rest}
        return options | {PADDING: ~shown if self.said.mask_true == "hide" else shown}

    def _keys(self, args, options):
        """Return what the keys of a call are made from."""
        if self.kind == "attention":
            return args[1]
        return next((options[k] for pair in OTHER_NAMES for k in pair if k in options),
                    args[0])  # fmt: skip

    def _mask_for(self, args, options):
        """Return the mask of one call as it is handed over."""
        X, mask = args[0], options[self.mask_name]
        # The one integer among the arguments is the number of heads.
        heads = next((x for x in args if isinstance(x, int)), 1)
        if self.kind == "attention":
            heads = X.shape[1] if X.ndim == 4 else 1
        batch = len(X) if X.ndim > 2 else 1
        mask = mask[:, None] if mask.ndim == 3 else mask
        # A module does not tell how many, and a mask of its own for each does.
        heads = max((heads, *mask.shape[1:-2]))
        sizes = batch, heads, X.shape[-2], self._keys(args, options).shape[-2]
        letters = {2: "qk", 3: "bqk" if self.kind == "attention" else "b1qk"}
        default = letters.get(X.ndim, "b1qk")
        if mask.ndim == 4 and mask.shape[1] > 1:
            default = "bhqk"
        if not self.spreads and mask.shape[-2] == 1:
            default = default.replace("q", "1")
        return self.said.mask_of(mask, sizes, default, X.dtype)

    def _note(self, args, options):
        X, trace = args[0], self.trace
        trace.lengths |= {X.shape[-2], self._keys(args, options).shape[-2]}
        trace.batches.add(len(X) if X.ndim > 2 else 1)
        trace.dtypes.add(self.cast or str(X.dtype))
        # An adapter tells the arguments with a meaning only, and all by name.
        trace.handed |= {*self.order[: len(args) * (not self.spreads)], *options}

    def run(self, function: Callable[..., Any], args: Any, options: Options) -> Any:
        """Call `function`, as it is called underneath."""
        if not self.tensors:
            args, options = each_array([[*args], options], self._as_cast, {})
            return function(*args, **options)
        torch = sys.modules["torch"]
        seen: dict[int, Any] = {}
        args, options = each_array([[*args], options], self._as_tensor, seen)
        with torch.set_grad_enabled(self.mode.gradients):
            result = function(*args, **options)
            Y = result[0] if holds_several(result) else result
            if not isinstance(Y, torch.Tensor):
                raise Broke(f"it returned {type(Y).__name__}, not a tensor")
            self.gradients = []
            if self.mode.gradients and Y.requires_grad:
                self._backward(Y)
                leaves = [x for x in seen.values() if x.requires_grad]
                grads = [x.grad for x in leaves + self.parameters]
                self.gradients = [from_torch(g) for g in grads if g is not None]
        if self.direction is not None:
            given = (*enumerate(args), *options.items())
            self.slope_at = {
                key: from_torch(torch.zeros_like(x) if x.grad is None else x.grad)
                for key, x in given
                if isinstance(x, torch.Tensor) and x.is_floating_point()
            }
        return result

    def _backward(self, Y):
        if self.direction is None:
            return Y.sum().backward()
        place = tuple(map(slice, self.direction.shape))
        direction = Y.detach() * 0
        direction[(0,) * (Y.ndim - len(place)) + place] = direction.new_tensor(
            self.direction
        )
        return Y.backward(direction)

    def _as_tensor(self, x):
        torch, is_float = sys.modules["torch"], x.dtype.kind == "f"
        tensor = torch.from_numpy(x).to(self.said.device)
        if self._is_cast(x):
            tensor = tensor.to(getattr(torch, self.cast))
        return tensor.requires_grad_(self.mode.gradients and is_float)

    def _as_cast(self, x):
        if self.cast == "bfloat16":
            raise NotApplicable("NumPy has no bfloat16")
        return x.astype(self.cast) if self._is_cast(x) else x

    def _is_cast(self, x):
        floats = x.dtype.kind == "f" and self.cast is not None
        if floats and self.cast == "float16" and (abs(x[np.isfinite(x)]) > 65504).any():
            raise NotApplicable("float16 does not reach so far")
        return floats


def line_of(error: BaseException) -> str:
    """Return the deepest line of somebody's own code that led to the error."""
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(NOT_OWN)
        and not LIBRARIES.intersection(Path(frame.filename).parts)
    ]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


def holds_several(result: Any) -> bool:
    """Whether the output is the first of several things, and no nested list."""
    several = isinstance(result, tuple | list) and bool(result)
    return several and not isinstance(result[0], list)


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
        try:
            return self._attend_once(Q, K, V, mask, is_causal)
        except WrongShape:
            raise
        except Broke:
            d, d_v = Q.shape[-1], V.shape[-1]
            if d == d_v or self.direction is not None:
                raise
            # Some, such as that of JAX, want values as wide as the keys.
            parts = parts_of(V, d)
            parts = [self._attend_once(Q, K, v, mask, is_causal) for v in parts]
        return np.concatenate(parts, -1)[..., :d_v]

    def _attend_once(self, Q, K, V, mask, is_causal):
        options = self.options(mask, is_causal, (Q.shape[-2], K.shape[-2]))
        given, more = (*Q.shape[:-1], V.shape[-1]), self.lead + 2 - Q.ndim
        if (factor := self.said.factor(Q.shape[-1])) != 1:
            self.log["scale"] = f"Q is handed over times {factor:.3g}, for the scale"
            Q = Q * factor
        if more > 0:
            # Behind the axes that are there already: (b, n, d) is (b, 1, n, d).
            front = (slice(None),) * (Q.ndim - 2) + (None,) * more
            Q, K, V = Q[front], K[front], V[front]
        groups = self.said.n_kv_heads if more > 0 else None
        if groups:
            # All heads alike: two queries share the keys of each group.
            Q, K, V = Q.repeat(2 * groups, 1), K.repeat(groups, 1), V.repeat(groups, 1)
        Y = self.call(self.target, Q, K, V, **options)
        expect_shape(Y, (*Q.shape[:-1], V.shape[-1]))
        return (Y[:, :1] if groups else Y).reshape(given)

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
        if d != d_v and self.direction is not None:
            raise NotApplicable("its gradients are asked with d_v = d_k")
        if heads == 1 and d == d_v:
            return self._attend_once(Q, K, V, mask, is_causal, 1)
        parts = []
        for part in parts_of(V, d):
            q, k, v = (np.tile(x, heads) for x in (Q, K, part))
            k, v = (q, q) if Q is K is V else (k, v)
            Y = self._attend_once(q, k, v, mask, is_causal, heads)
            parts.append(Y.reshape(*Y.shape[:-1], heads, d))
        Y = np.concatenate(parts, -1)[..., :d_v]
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

    @property
    def slope_keys(self) -> tuple[Any, Any, Any]:
        return (0, *self.other_names) if self.other_names else (0, 0, 0)

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
        if self.said.n_kv_heads and weights["W_K"].shape == weights["W_Q"].shape:
            return self._in_groups(X, others, weights, n_heads, mask, is_causal)
        weights = self.with_scale(weights, n_heads)
        shape = X.shape[-2], (others or [X])[0].shape[-2]
        options = self.options(mask, is_causal, shape)
        more = (None,) * self.lead if X.ndim == 2 else ()
        if more:
            X, others = X[more], [x[more] for x in others]
        options |= zip(self.other_names or (), others, strict=False)
        Y = self.run_layer(X, weights, n_heads, options)
        expect_shape(Y, (*X.shape[:-1], weights["W_O"].shape[1]))
        return Y[(0,) * len(more)] if more else Y

    def with_scale(self, weights: Weights, n_heads: int) -> Weights:
        """Return weights with which its scale, if one was said, comes to 1/√d_k."""
        if (factor := self.said.factor(weights["W_Q"].shape[1] // n_heads)) == 1:
            return weights
        asking = {"W_Q", "b_Q"} & weights.keys()
        self.log["scale"] = f"W_Q is handed over times {factor:.3g}, for the scale"
        return weights | {name: weights[name] * factor for name in asking}

    def _in_groups(self, X, others, weights, n_heads, mask, is_causal):
        """Let every head have the keys of a group to itself, so that nothing is shared.

        The queries of a group are the same, and each brings home its part of the sum.
        """
        groups, d_k = self.said.n_kv_heads, weights["W_Q"].shape[1] // n_heads
        each = 2
        while each * groups * d_k < X.shape[-1]:
            each *= 2
        width, total = each * groups * d_k, 0
        tokens = [_widened(x, width) for x in (X, *others)]
        self.log["call"] = (
            f"called with {each * groups} heads, {groups} of keys, X filled with 0 to "
            f"width {width}: each head\nhas the keys of a group to itself"
        )
        for start in range(0, n_heads, groups):
            # Where heads are fewer than groups, some stand there twice.
            heads = np.resize(range(start, min(start + groups, n_heads)), groups)
            share = 1 / each / np.bincount(heads)[np.repeat(heads, each)]
            part = {}
            for name, W in weights.items():
                chosen = heads if name[-1] in "KV" else np.repeat(heads, each)
                block = (chosen[:, None] * d_k + np.arange(d_k)).ravel()
                if name == "W_O":
                    W = W[block] * np.repeat(share, d_k)[:, None].astype(W.dtype)
                elif name != "b_O":
                    W = W[..., block]
                else:
                    W = W * (start == 0)
                if W.ndim == 2 and name != "W_O":
                    W = _widened(W.T, width).T
                part[name] = _widened(W, width) if name[-1] == "O" else W
            names = dict(zip(("X_k", "X_v"), tokens[1:], strict=False))
            own = _for_heads(mask, np.repeat(heads, each))
            given = tokens[0], part, each * groups, own
            Y = self.layer(*given, is_causal=is_causal, **names)
            total = total + Y[..., : weights["W_O"].shape[1]]
        return total

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
            before = [(0, 0)] * (mask.ndim - X.ndim)
            mask = np.pad(mask, before + rows[-mask.ndim :], constant_values=True)
        three = {name: np.zeros((3 * d, 3 * d), W.dtype) for name, W in weights.items()}
        for third, name in enumerate(("W_Q", "W_K", "W_V")):
            block = slice(third * d, (third + 1) * d)
            three[name][block] = np.tile(weights[name], 3)
            three["W_O"][block, block] = weights["W_O"]
        padded = ", mask filled with True" * (mask is not None and n_q < n_k)
        self.log["call"] = (
            f"called with {3 * n_heads} heads on tokens [Q, K, V] of width {3 * d}, of "
            f"which\neach matrix reads its part{padded}"
        )
        mask = _for_heads(mask, np.arange(3 * n_heads) % n_heads)
        Y = self.layer(wide, three, 3 * n_heads, mask, is_causal=is_causal)
        return Y[..., :n_q, :d]


def _for_heads(mask, heads):
    """Return the masks of these heads, if each has its own."""
    several = mask is not None and mask.ndim == 4 and mask.shape[1] > 1
    return mask[:, heads] if several else mask


def _widened(x, width):
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, width - x.shape[-1])])


def parts_of(V: Array, width: int) -> list[Array]:
    """Return the values cut into parts of this width; the last is filled with 0."""
    missing = [(0, 0)] * (V.ndim - 1) + [(0, -V.shape[-1] % width)]
    return np.split(np.pad(V, missing), -(-V.shape[-1] // width), -1)


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
