"""What every subject has: what was said about it, its modes, and one way to call it.

A law asks a subject to `attend(Q, K, V, mask)`, and a layer also for the output of a
`layer(X, weights, n_heads, mask, X_k, X_v)`, in NumPy. Whether a function or a module
of NumPy or of torch is underneath is known in this module and the next two only.
"""

import contextlib
import copy
import functools
import math
import re
import sys
import sysconfig
import textwrap
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from mha.laws.words import MASK_LIKE, Conventions, NotApplicable, skip_if

Array = np.ndarray
Weights = dict[str, Array]
Options = dict[str, Any]

FOUR = ("W_Q", "W_K", "W_V", "W_O")
PADDING = "key_padding_mask"
WEIGHT_NAMES = "return_weights", "need_weights", "return_attention", "output_attentions"
SWITCHES = frozenset(("is_causal", "training", "norm_first", *WEIGHT_NAMES))
OTHER_NAMES = (("X_k", "X_v"), ("key", "value"), ("K", "V"), ("k", "v"))
NOT_OWN = (str(Path(__file__).parents[1]), sysconfig.get_path("stdlib"), "<frozen")
ROUNDING = 1e-13
SEES_NOTHING = "it is always causal, and then a token sees nothing"
LIBRARIES = {"site-packages", "dist-packages"}


class Broke(Exception):
    """The subject raised, or returned no array; `where` is the file and line."""

    def __init__(self, text: str, where: str = "") -> None:
        super().__init__(textwrap.shorten(text, 160, placeholder=" …"))
        self.text, self.where = text, where


class WrongShape(Broke):
    """It returned an array of a shape that no law can use."""


def line_of(error: BaseException) -> str:
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if not frame.filename.startswith(NOT_OWN) and not LIBRARIES & {*path.parts}:
            return f"{path.name}:{frame.lineno}"
    return ""


def results_in(result: Any) -> list[Any]:
    several = isinstance(result, tuple | list) and bool(result)
    return [*result] if several and not isinstance(result[0], list) else [result]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def as_numbers(x: Any) -> Array | None:
    """Return arrays, tensors and nested lists as an array, and None for all else."""
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        x = x.float() if str(x.dtype) == "torch.bfloat16" else x
    try:
        x = np.asarray(x)
    except (ValueError, RuntimeError, TypeError):
        return None
    # What JAX has and NumPy has not, such as bfloat16, is of kind V.
    x = x.astype(np.float32) if x.dtype.kind == "V" else x
    return x if x.dtype.kind in "fiub" else None


def expect_shape(Y: Array, shape: tuple[int, ...]) -> None:
    if Y.shape != shape:
        raise WrongShape(f"an output of shape {Y.shape}, where {shape} is due")


def each_array(x: Any, change: Callable[[Array], Any], seen: dict[int, Any]) -> Any:
    """Return `x` with every array in it changed, and the same array only once."""
    if isinstance(x, np.ndarray):
        if id(x) not in seen:
            seen[id(x)] = change(x)
        return seen[id(x)]
    if isinstance(x, dict):
        return {name: each_array(part, change, seen) for name, part in x.items()}
    if isinstance(x, list):
        return [each_array(part, change, seen) for part in x]
    return x


class Called(NamedTuple):
    target: Any
    name: str
    accepts: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()  # what has no default value


class Sizes(NamedTuple):
    """How large a layer is; `hidden` and `depth` are those of an encoder."""

    width: int = 6
    heads: int = 2
    groups: int = 2
    hidden: int = 7
    depth: int = 1

    @property
    def d_k(self) -> int:
        return self.width // self.heads


class Subject:
    """What is checked, behind one pair of methods."""

    kind = "attention"
    tried = "Q, K, V of shape (2, 2)"
    said = Conventions()
    tensors = False  # a function of torch: tensors go in, and an array comes out
    takes_bias: bool | set[str] = False  # of a module, the names
    other_names: Any = None  # what a layer calls the other tokens it may attend to
    own: Sizes | None = None  # the sizes that a module has; a function takes any
    # What every law must hold with: the name of a switch, and its positions.
    switch: tuple[str, tuple[bool, ...]] | None = None
    direction: Any = None  # backwards goes the sum of Y times this, if anything
    borrows = False  # whether arguments are handed on without being copied
    cast: str | None = None  # the dtype in which floats are handed over
    spreads = False  # an adapter: masks of one row are spread over all queries
    source: Any = None  # the target, what was said, and a factory
    step: Any = None  # the same, asked one token at a time through its cache
    splits = False  # whether padding goes through an argument of its own
    # attend(Q, K, V, mask=None, *, is_causal=False, heads=1); layers answer `layer`
    # with numbers too, and encoders `encode`.
    attend: Callable[..., Array]

    def __init__(self, called: Called, lead: int = 0) -> None:
        self.target, self.name, self.accepts, self.needs = called
        self.lead = lead  # how many axes it wants in front of the tokens
        self.settings: Options = {}  # what is handed over in every call
        # What one call gave: weights, and slopes, those of its arguments first.
        self.weights: Array | None = None
        self.slopes: list[Any] = []
        # How it was asked, and what was tried; all twins share both.
        self.log: dict[str, Any] = {}
        self.trace: dict[str, set[Any]] = defaultdict(set)

    @property
    def sizes(self) -> Sizes:
        """The sizes in which a law about weight matrices draws them."""
        groups = self.said.n_kv_heads or 1
        # Rotary positions turn pairs of columns.
        plain = Sizes(2 * groups * (4 if self.designs else 3), 2 * groups, groups)
        return self.own or (plain if self.said.n_kv_heads else plain._replace(groups=2))

    @functools.cached_property
    def designs(self) -> tuple[Any, ...]:
        bound = []
        for x in self.said.bends:
            if x.learned and not hasattr(self.target, "read"):
                raise ValueError(f"{x!r} names a parameter, and it has none")
            numbers = {key: self.target.read(name) for key, name in x.learned.items()}
            bound.append(replace(x, **numbers) if numbers else x)
        return tuple(bound)

    @property
    def ordered(self) -> bool:
        return any(design.ordered for design in self.designs)

    @property
    def reads_others(self) -> bool:
        """Whether there may be more keys than queries, or fewer."""
        other = self.kind == "attention" or self.other_names is not None
        return other and not self.ordered

    def borrowed(self) -> contextlib.AbstractContextManager[None]:
        return getattr(self.target, "borrowed", contextlib.nullcontext)()

    @functools.cached_property
    def needs_mask(self):
        return any(map(MASK_LIKE.search, self.needs))

    @functools.cached_property
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
    def why_no_mask(self) -> str:
        if not self.unread_masks:
            return "it takes no mask"
        say = "say mask_true and mask_shape, for example mask_true='hide'"
        return f"what its {self.unread_masks[0]} means is not known: {say}"

    @property
    def always_causal(self) -> bool:
        return self.said.causal == "built in"

    @property
    def weights_name(self) -> str | None:
        return next((name for name in WEIGHT_NAMES if name in self.accepts), None)

    @property
    def takes_causal(self) -> bool:
        return self.always_causal or "is_causal" in self.accepts

    @functools.cached_property
    def takes_batches(self) -> bool:
        """Whether (b, h, n, d), or for a layer (b, n, d), is what it is made for."""
        made_for_three = self.kind != "attention" or self.lead == 1
        return self.takes_heads or (self.takes_batch and made_for_three)

    @functools.cached_property
    def takes_batch(self) -> bool:
        """Whether it reads (batch, n, d); many by-hand versions read (n, d) only."""
        return self._gives_as_many(2, 3, self.own.d_k if self.own else 4)

    @functools.cached_property
    def takes_heads(self) -> bool:
        """Whether it reads (b, h, n, d), and answers in that shape, right or wrong."""
        return self.kind == "attention" and self._gives_as_many(2, 3, 5, 7)

    def _gives_as_many(self, *shape):
        X = np.linspace(-1, 1, math.prod(shape)).reshape(shape)
        twin = self.but(trace=defaultdict(set), log={})
        try:
            return twin.attend(X, X, X, heads=2).shape[:-1] == shape[:-1]
        except (Broke, NotApplicable):
            return False

    def attend_with_weights(self, Q, K, V, mask=None):
        asking = {self.weights_name: True} if self.weights_name else {}
        twin = self.with_settings(**asking).but(weights=None)
        Y, A = twin.attend(Q.copy(), K.copy(), V, mask), twin.weights
        due = (*Q.shape[:-1], K.shape[-2])
        if A is not None:
            A = A[(0,) * (A.ndim - len(due))][..., : Q.shape[-2], :]
        if A is None or A.shape != due:
            of = f" of shape {due}" * (A is not None)
            raise NotApplicable(f"it returns no attention weights{of}")
        return Y, A

    def backwards(self, ask: Callable[[Self], Array], direction: Array) -> list[Any]:
        skip_if(not self.tensors, "its gradients are out of reach")
        skip_if(self.cast not in (None, "float64"), "gradients are compared in float64")
        twin = self.but(direction=direction)
        ask(twin)
        return twin.slopes

    def but(self, **facts: Any) -> Self:
        twin = copy.copy(self)
        vars(twin).update(facts)
        return twin

    def with_settings(self, **settings: Any) -> Self:
        return self.but(settings=self.settings | settings)

    @property
    def mode(self) -> str:
        rest = dict(self.settings)
        training, parts = rest.pop("training", None), []
        if training is not None:
            parts = ["train mode" if training else "eval mode"]
            parts += ["no_grad"] if self.direction is None else []
        return ", ".join(parts + [f"{name}={x}" for name, x in rest.items()])

    def variants(self, few: bool = False) -> list[Self]:
        """Return it in each mode in which every law must hold, or in eval mode only."""
        if self.switch is None:
            return [self]
        name, positions = self.switch
        positions = positions[-1:] if few and name == "training" else positions
        return [self.with_settings(**{name: x}) for x in positions]

    def all_modes(self) -> list[Self]:
        name = self.weights_name if self.kind != "encoder" else None
        return [
            variant.with_settings(**more).but(direction=direction)
            for variant in self.variants()
            for more in ([{name: False}, {name: True}] if name else [{}])
            # Training without gradients is no way to train.
            for direction in (1.0, None)[: 1 + (not variant.settings.get("training"))]
            if self.tensors or direction is None
        ]

    def scaled(self, weights: Weights, d_k: int) -> Weights:
        if (factor := self.said.factor(d_k)) == 1:
            return weights
        self.log["scale"] = f"W_Q is handed over times {factor:.3g}, for the scale"
        asking = {"W_Q", "b_Q"} & weights.keys()
        return weights | {name: weights[name] * factor for name in asking}

    def options(self, X, n_k, mask, is_causal, heads=1):
        options = {}
        batch, n_q = len(X) if X.ndim > 2 else 1, X.shape[-2]
        if mask is None and self.needs_mask:
            mask = np.ones((n_q, n_k), bool)
        if mask is not None:
            if self.mask_name is None:
                raise NotApplicable(self.why_no_mask)
            if mask.dtype == bool and self.always_causal:
                shown = np.broadcast_to(mask, (*mask.shape[:-2], n_q, n_k))
                left = shown & np.tri(n_q, n_k, dtype=bool)
                skip_if((shown.any(-1) & ~left.any(-1)).any(), SEES_NOTHING)
            options = self._masks(mask, X, (batch, heads, n_q, n_k))
        skip_if(is_causal and not self.takes_causal, "it has no is_causal")
        options |= {"is_causal": True} if is_causal and not self.always_causal else {}
        self.trace["batches"].add(batch)
        self.trace["lengths"].update((n_q, n_k))
        return dict.fromkeys(self.needs & SWITCHES, False) | options | self.settings

    def _masks(self, mask, X, sizes):
        mask, axes = mask[:, None] if mask.ndim == 3 else mask, "b1qk"
        if X.ndim < 4:
            axes = {2: "qk", 3: "bqk" if self.kind == "attention" else axes}[X.ndim]
        if mask.ndim == 4 and mask.shape[1] > 1:
            axes = "bhqk"
        if not self.spreads and mask.shape[-2] == 1:
            axes = axes.replace("q", "1")
        axes = self.said.mask_shape or axes
        self.trace["masks"].add(axes)
        lay_out = functools.partial(self.said.mask_of, axes=axes, dtype=X.dtype)
        if not self.splits:
            return {self.mask_name: lay_out(mask, sizes)}
        # Keys that a whole sequence may not attend to are its padding.
        shown = mask.any((1, 2))
        rest = mask | ~shown[:, None, None]
        padding = {PADDING: ~shown if self.said.mask_true == "hide" else shown}
        if rest.all() and not self.needs_mask:
            return padding
        return padding | {self.mask_name: lay_out(rest, sizes)}

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Array:
        try:
            result = self.run(function, args, options)
        except (NotApplicable, Broke):
            raise
        except Exception as error:
            text = re.sub(r"\S*<locals>\.", "", f"{type(error).__name__}: {error}")
            raise Broke(text, line_of(error)) from error
        Y, *rest = results_in(result)
        self.weights = as_numbers(rest[0]) if rest else None
        if (answer := as_numbers(Y)) is None:
            raise Broke(f"it returned {type(Y).__name__}, not an array")
        if self.cast and self.cast == str(getattr(Y, "dtype", "")).removeprefix(
            "torch."
        ):
            # It kept the dtype; a law sees the one in which it asked.
            answer = answer.astype(args[0].dtype)
        return answer

    def run(self, function: Callable[..., Any], args: Any, options: Options) -> Any:
        seen: dict[int, Any] = {}
        args, options = each_array([[*args], options], self._handed_over, seen)
        if not self.tensors:
            return function(*args, **options)
        torch = sys.modules["torch"]
        with torch.set_grad_enabled(self.direction is not None):
            result = function(*args, **options)
            Y = results_in(result)[0]
            if not isinstance(Y, torch.Tensor):
                raise Broke(f"it returned {type(Y).__name__}, not a tensor")
            if self.direction is not None:
                if Y.requires_grad:
                    # What the law sees stands first, and a sum needs no sympy.
                    size = np.shape(self.direction)
                    first = (0,) * (Y.ndim - len(size)) if size else ()
                    part = Y[(*first, *map(slice, size))]
                    (part * Y.new_tensor(self.direction)).sum().backward()
                parameters = getattr(function, "parameters", ())
                leaves = *args, *options.values(), *seen.values(), *parameters
                asking = [x for x in leaves if getattr(x, "requires_grad", False)]
                zeros = torch.zeros_like
                grads = (zeros(x) if x.grad is None else x.grad for x in asking)
                self.slopes = [*map(as_numbers, grads)]
        return result

    def _handed_over(self, x):
        x, is_float = x if self.borrows else x.copy(), x.dtype.kind == "f"
        cast = self.cast if is_float else None
        if cast == "float16" and (abs(x[np.isfinite(x)]) > 65504).any():
            raise NotApplicable("float16 does not reach so far")
        skip_if(cast == "bfloat16" and not self.tensors, "NumPy has no bfloat16")
        self.trace["dtypes"].update([cast or x.dtype] * is_float)
        if not self.tensors:
            return x.astype(cast) if cast else x
        torch = sys.modules["torch"]
        dtype = getattr(torch, cast) if cast else None
        tensor = torch.from_numpy(x).to(self.said.device, dtype)
        return tensor.requires_grad_(is_float and self.direction is not None)


class Attention(Subject):
    def attend(self, Q, K, V, mask=None, *, is_causal=False, heads=1):
        """Attend; `heads` is for layers, which have more than one."""
        try:
            return self._attend_once(Q, K, V, mask, is_causal)
        except Broke as error:
            if isinstance(error, WrongShape) or Q.shape[-1] == V.shape[-1]:
                raise
        # Some, such as that of JAX, want values as wide as the keys.
        parts = [self._attend_once(Q, K, v, mask, is_causal) for v in parts_of(V, Q)]
        return np.concatenate(parts, -1)[..., : V.shape[-1]]

    def _attend_once(self, Q, K, V, mask, is_causal):
        given, more = (*Q.shape[:-1], V.shape[-1]), self.lead + 2 - Q.ndim
        if (factor := self.said.factor(Q.shape[-1])) != 1:
            self.log["scale"] = f"Q is handed over times {factor:.3g}, for the scale"
            Q = Q * factor
        # Behind the axes that are there already: (b, n, d) is (b, 1, n, d).
        front = (slice(None),) * (Q.ndim - 2) + (None,) * more
        Q, K, V = (x[front] if more > 0 else x for x in (Q, K, V))
        if groups := self.said.n_kv_heads if more > 0 else None:
            # All heads alike: two queries share the keys of each group.
            Q, K, V = Q.repeat(2 * groups, 1), K.repeat(groups, 1), V.repeat(groups, 1)
        heads = Q.shape[1] if Q.ndim == 4 else 1
        options = self.options(Q, K.shape[-2], mask, is_causal, heads)
        self.log["given"] = {"Q": Q, "K": K, "V": V} | options
        Y = self.call(self.target, Q, K, V, **options)
        expect_shape(Y, (*Q.shape[:-1], V.shape[-1]))
        return (Y[:, :1] if groups else Y).reshape(given)


class Layer(Subject):
    kind = "layer"

    def attend(self, Q, K, V, mask=None, *, is_causal=False, heads=1):
        """Let every head attend to the same Q, K, V; return the heads side by side."""
        # With identity matrices a function is its attention. A module has sizes of its
        # own, and others know self-attention only: then the matrices hold Q, K and V.
        same, d, d_v = Q is K is V, Q.shape[-1], V.shape[-1]
        plain = self.own is None and not self.said.n_kv_heads
        plain = plain and (same or self.other_names is not None)
        ask = self._with_identities if plain else self._in_tables
        parts = [ask(Q, K, x, mask, is_causal, heads, same) for x in parts_of(V, Q)]
        if d == d_v:
            return parts[0]
        parts = [Y.reshape(*Y.shape[:-1], heads, d) for Y in parts]
        Y = np.concatenate(parts, -1)[..., :d_v]
        return Y.reshape(*Y.shape[:-2], heads * d_v)

    def _with_identities(self, Q, K, V, mask, is_causal, heads, same):
        self.log["attend"] = f"{heads} head{'s' * (heads > 1)}, all matrices I"
        if heads > 1:
            Q, K, V = (np.concatenate([x] * heads, -1) for x in (Q, K, V))
        weights = dict.fromkeys(FOUR, np.eye(Q.shape[-1], dtype=Q.dtype))
        others = {} if same else {"X_k": K, "X_v": V}
        return self.layer(Q, weights, heads, mask, is_causal=is_causal, **others)

    def _in_tables(self, Q, K, V, mask, is_causal, heads, same):
        """Write Q, K and V into the matrices of all heads, and read some of them."""
        (n_q, d), n_k, sizes = Q.shape[-2:], K.shape[-2], self._sizes_for(Q, heads)
        skip_if(d > sizes.d_k, f"its heads have {sizes.d_k} columns")
        skip_if(heads > sizes.heads, f"it has {sizes.heads} heads")
        # The scale is that of a whole head.
        times = f"{np.sqrt(sizes.d_k / d):.3g} " if d < sizes.d_k else ""
        fits = max(Q.size, K.size) <= sizes.width * d
        hold = "matrices hold" if fits else "tokens times its matrices are"
        self.log["attend"] = (
            f"its {hold} {times}Q, K and V, the same for {sizes.heads} heads of "
            f"{sizes.d_k} columns" + ",\nand its tokens are the rows of I" * fits
        )
        Q = Q * np.sqrt(sizes.d_k / d).astype(Q.dtype)
        others = {}
        if same or self.other_names is None:
            Q, mask = filled_up(Q, n_k, mask)
            X, (W_Q, W_K, W_V) = factors(sizes.width, Q, K, V)
        else:
            X, (W_Q,) = factors(sizes.width, Q)
            X_k, (W_K, W_V) = factors(sizes.width, K, V)
            # Keys and values come from different tokens.
            others = {"X_k": X_k, "X_v": X_k[..., ::-1].copy()}
            W_V = W_V[::-1]
        if mask is not None and mask.ndim == 4 and mask.shape[1] > 1:
            mask = mask[:, np.arange(sizes.heads) % mask.shape[1]]
        counts = sizes.heads, sizes.groups, sizes.groups
        weights = {
            name: np.concatenate([widened(W, sizes.d_k)] * count, 1)
            for name, W, count in zip(FOUR, (W_Q, W_K, W_V), counts, strict=False)
        }
        shown = np.zeros((sizes.heads, sizes.d_k, sizes.width), Q.dtype)
        for r in range(heads):
            shown[r, :d, r * d : (r + 1) * d] = np.eye(d)
        weights["W_O"] = shown.reshape(-1, sizes.width)
        Y = self.layer(X, weights, sizes.heads, mask, is_causal=is_causal, **others)
        if np.prod(X.shape[:-1]) > sizes.width:
            # More tokens than unit vectors: what is smaller than rounding was 0.
            Y = np.where(abs(Y) < ROUNDING, 0, Y).astype(Y.dtype)
        return Y[..., :n_q, : heads * d]

    def _sizes_for(self, Q, heads):
        d, groups = Q.shape[-1], self.said.n_kv_heads or 3 * heads
        count = 2 * groups if self.said.n_kv_heads else groups
        while count < max(heads, 3):
            count *= 2
        return self.own or Sizes(count * d, count, groups)

    @functools.cached_property
    def other_names(self) -> Any:
        return next((x for x in OTHER_NAMES if self.accepts >= {*x}), None)

    def layer(
        self, X, weights, n_heads, mask=None, *, X_k=None, X_v=None, is_causal=False
    ):
        others = [] if X_k is None else [X_k, X_k if X_v is None else X_v]
        skip_if(others and self.other_names is None, "it knows self-attention only")
        weights = self.scaled(weights, weights["W_Q"].shape[1] // n_heads)
        more = (None,) * self.lead if X.ndim == 2 else ()
        X, *others = (x[more] for x in (X, *others))
        n_k = [X, *others][-1].shape[-2]
        options = self.options(X, n_k, mask, is_causal, n_heads)
        names = self.other_names or ()
        others = others or [X, X] * bool(self.needs & {*names})
        options |= zip(names, others, strict=False)
        self.log["given"] = {"X": X, "W_Q": weights["W_Q"]} | options
        Y = self.call(self.target, X, weights, n_heads, **options)
        expect_shape(Y, (*X.shape[:-1], weights["W_O"].shape[1]))
        return Y[(0,) * len(more)]


def widened(x: Array, n: int) -> Array:
    """Return it with n columns, of which the last ones are 0."""
    wide = np.zeros((*x.shape[:-1], n), x.dtype)
    wide[..., : x.shape[-1]] = x
    return wide


def parts_of(V: Array, Q: Array) -> list[Array]:
    if (width := Q.shape[-1]) == (n := V.shape[-1]):
        return [V]
    wide = widened(V, n + -n % width)
    return [wide[..., i : i + width] for i in range(0, n, width)]


def filled_up(Q: Array, n: int, mask: Any) -> tuple[Array, Any]:
    """Return as many queries as keys; what the last ones get is thrown away."""
    if (more := n - Q.shape[-2]) == 0:
        return Q, mask
    skip_if(more < 0, "it knows self-attention only")
    rows = [(0, 0)] * (Q.ndim - 2) + [(0, more), (0, 0)]
    if mask is not None and mask.shape[-2] != 1:
        below = [(0, 0)] * (mask.ndim - 2) + rows[-2:]
        mask = np.pad(mask, below, constant_values=mask.dtype == bool)
    return np.pad(Q, rows), mask


def factors(width: int, *tables: Array) -> tuple[Array, list[Array]]:
    """Return tokens X and matrices W with X W = table: unit vectors, or by an SVD."""
    front, widths = tables[0].shape[:-1], [t.shape[-1] for t in tables]
    flat = np.concatenate([t.reshape(-1, t.shape[-1]) for t in tables], 1)
    n, dtype = len(flat), flat.dtype
    if n <= width:
        X, W = np.eye(n, width, dtype=dtype), widened(flat.T, width).T
    else:
        U, s, Vt = np.linalg.svd(flat, full_matrices=False)
        rank = int((s > 1e-10 * max(s[0], 1)).sum())
        skip_if(rank > width, f"{n} different tokens do not fit into {width} columns")
        X, W = np.zeros((n, width), dtype), np.zeros((width, flat.shape[1]), dtype)
        X[:, :rank] = U[:, :rank] * np.sqrt(s[:rank])
        W[:rank] = np.sqrt(s[:rank])[:, None] * Vt[:rank]
    return X.reshape(*front, width), np.split(W, np.cumsum(widths)[:-1], 1)
