"""What every subject has: what was said about it, its modes, and one way to call it.

A law asks a subject to `attend(Q, K, V, mask)`, and a layer also for the output of a
`layer(X, weights, n_heads, mask, X_k, X_v)`, in NumPy. What it is, a NumPy function, a
torch function or an nn.Module, is known in this folder only.
"""

import copy
import functools
import math
import re
import sys
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

import numpy as np

from mha._doors import Array
from mha.laws.subjects import results
from mha.laws.subjects.conventions import MASK_LIKE, Conventions, NotApplicable
from mha.laws.subjects.results import Broke, each_array

Weights = dict[str, Array]
Options = dict[str, Any]

PADDING = "key_padding_mask"
WEIGHTS_NAMES = ("return_weights", "need_weights", "return_attention")
OTHER_NAMES = (("X_k", "X_v"), ("key", "value"), ("K", "V"), ("k", "v"))


@dataclass
class Trace:
    """What was tried: tokens, sequences, axes of masks, dtypes and arguments."""

    lengths: set[int] = field(default_factory=set)
    longer: dict[str, list[int]] = field(default_factory=dict)
    batches: set[int] = field(default_factory=set)
    masks: set[str] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    handed: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Mode:
    """A way of running the same subject: what PyTorch lets one switch."""

    training: bool | None = None
    gradients: bool = False
    settings: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        parts = {True: ["train mode"], False: ["eval mode"], None: []}[self.training]
        if self.training is not None and not self.gradients:
            parts.append("no_grad")
        parts += [f"{name}={value}" for name, value in self.settings]
        return ", ".join(parts)


class Subject:
    """What is checked, behind one pair of methods."""

    kind = "attention"
    tried = "Q, K, V of shape (2, 2)"
    said = Conventions()
    # A function of torch: tensors go in, and an array comes out.
    tensors = False

    # What a law asks it; layers answer `layer` with numbers, and encoders `encode`.
    # attend(Q, K, V, mask=None, *, is_causal=False, heads=1)
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
        """Arguments that no law has set."""
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
            Y = self.but(trace=Trace(), log={}).attend(X, X, X, heads=2)
        except (Broke, NotApplicable):
            return False
        return Y.shape[:-1] == shape[:-1]

    def attend_with_weights(
        self, Q: Array, K: Array, V: Array, mask: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the output of one head and the weights that came with it."""
        asking = {self.weights_name: True} if self.weights_name else {}
        twin = self.with_settings(**asking).but(weights=None)
        # Copies: of one and the same array an encoder would answer as a whole.
        Y, A = twin.attend(Q.copy(), K.copy(), V, mask), twin.weights
        due = (*Q.shape[:-1], K.shape[-2])
        if A is not None:
            A = A[(0,) * (A.ndim - len(due))][..., : Q.shape[-2], :]
        if A is None or A.shape != due:
            of = "" if A is None else f" of shape {due}"
            raise NotApplicable(f"it returns no attention weights{of}")
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
        twin = self.with_settings(gradients=True).but(direction=direction, slope_at={})
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

    def with_settings(self, *, gradients: bool = False, **settings: Any) -> Self:
        """Return a twin that gets these arguments too, in every call."""
        merged = tuple((dict(self.mode.settings) | settings).items())
        gradients = gradients or self.mode.gradients
        return self.but(mode=replace(self.mode, gradients=gradients, settings=merged))

    def variants(self) -> list[Self]:
        """Return the subject in each mode in which every law must hold."""
        return [self]

    def all_modes(self) -> list[Self]:
        """Return the subject in every mode there is."""
        settings: list[Options] = [{}]
        if self.weights_name and self.kind != "encoder":
            settings.append({self.weights_name: True})
        return [
            variant.with_settings(gradients=gradients, **more)
            for variant in self.variants()
            for more in settings
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
        return options | dict(self.mode.settings)

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Array:
        """Call `function`, and return its first result as an array."""
        name = self.mask_name or ""
        if self.splits:
            options = self._split(options)
        if options.get(name) is not None:
            options = options | {name: self._mask_for(args, options)}
        if not self.borrows:
            args, options = each_array([[*args], options], np.ndarray.copy, {})
        self._note(args, options)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = self.run(function, args, options)
        except (NotApplicable, Broke):
            raise
        except Exception as error:
            text = re.sub(r"\S*<locals>\.", "", f"{type(error).__name__}: {error}")
            raise Broke(text, results.line_of(error)) from error
        Y, *rest = results.results_in(result)
        self.weights = results.as_numbers(rest[0]) if rest else None
        answer = results.as_numbers(Y)
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

    def _sizes(self, args, options):
        """Return how many sequences, queries and keys there are in one call."""
        X = args[0]
        if self.kind == "attention":
            keys = args[1]
        else:
            others = (options[x] for x in chain(*OTHER_NAMES) if x in options)
            keys = next(others, X)
        return len(X) if X.ndim > 2 else 1, X.shape[-2], keys.shape[-2]

    def _mask_for(self, args, options):
        """Return the mask of one call as it is handed over."""
        X, mask = args[0], options[self.mask_name]
        # The one integer among the arguments is the number of heads.
        heads = next((x for x in args if isinstance(x, int)), 1)
        if self.kind == "attention":
            heads = X.shape[1] if X.ndim == 4 else 1
        mask = mask[:, None] if mask.ndim == 3 else mask
        batch, *lengths = self._sizes(args, options)
        # A module does not tell how many, and a mask of its own for each does.
        heads = max((heads, *mask.shape[1:-2]))
        letters = {2: "qk", 3: "bqk" if self.kind == "attention" else "b1qk"}
        default = letters.get(X.ndim, "b1qk")
        if mask.ndim == 4 and mask.shape[1] > 1:
            default = "bhqk"
        if not self.spreads and mask.shape[-2] == 1:
            default = default.replace("q", "1")
        self.trace.masks.add(self.said.mask_shape or default)
        return self.said.mask_of(mask, (batch, heads, *lengths), default, X.dtype)

    def _note(self, args, options):
        batch, *lengths = self._sizes(args, options)
        trace = self.trace
        trace.batches.add(batch)
        trace.lengths.update(lengths)
        trace.dtypes.add(self.cast or str(args[0].dtype))
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
            Y = results.results_in(result)[0]
            if not isinstance(Y, torch.Tensor):
                raise Broke(f"it returned {type(Y).__name__}, not a tensor")
            self.gradients = []
            if self.mode.gradients and Y.requires_grad:
                self._backward(Y)
                leaves = [x for x in seen.values() if x.requires_grad]
                grads = [x.grad for x in leaves + self.parameters]
                self.gradients = [results.from_torch(g) for g in grads if g is not None]
        if self.direction is not None:
            given = (*enumerate(args), *options.items())
            self.slope_at = {
                key: results.from_torch(
                    x.new_zeros(x.shape) if x.grad is None else x.grad
                )
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


def _hides_all(mask, shape):
    """Whether the causal mask closes a row that the mask has left open."""
    mask = np.broadcast_to(mask, (*mask.shape[:-2], *shape))
    left = (mask & np.tri(*shape, dtype=bool)).any(-1)
    return bool((mask.any(-1) & ~left).any())
