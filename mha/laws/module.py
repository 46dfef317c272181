"""Modules of torch, judged in their own sizes. Torch is never imported here.

The numbers of a module are borrowed: laws write into copies, and at the end it holds
the tensors, the modes and the attributes that it came with.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mha.laws.stack import Stack
from mha.laws.subject import OTHER_SIZES, PADDING, Broke, Layer, Mode, Sizes, Subject
from mha.laws.words import Conventions, NotApplicable

# What the parts are called: by us, by others, and by PyTorch.
NAMES = {
    "W_Q": ("W_Q", "q_proj"), "W_K": ("W_K", "k_proj"), "W_V": ("W_V", "v_proj"),
    "W_O": ("W_O", "o_proj", "out_proj"),
    "attention": ("attention", "self_attn"), "final_norm": ("final_norm", "norm"),
    "W_1": ("W_1", "linear1"), "W_2": ("W_2", "linear2"),
    "norm_1": ("norm_1", "norm1"), "norm_2": ("norm_2", "norm2"),
}  # fmt: skip
FOUR = ("W_Q", "W_K", "W_V", "W_O")
COUNTS = ("n_heads", "num_heads", "n_head", "heads", "h")
GIVE = "give laws.check a laws.Adapter that builds and runs it"


def part_of(module: Any, key: str) -> Any:
    """Return the part of a module, by one of its names, or None."""
    return next(
        (x for n in NAMES[key] if (x := getattr(module, n, None)) is not None), None
    )


def places(module: Any, key: str, weight: str, bias: str) -> dict[str, Any]:
    """Return where a linear layer or a norm holds its numbers, under these names."""
    part = part_of(module, key)
    if part is None or any(x not in part._parameters for x in ("weight", "bias")):
        raise TypeError(
            f"its {key} has no weight and bias of its own (it may compute them from "
            f"other numbers, as where it is parametrized); {GIVE}"
        )
    found = {weight: part.weight, bias: part.bias}
    return {name: (x, slice(None)) for name, x in found.items() if x is not None}


def attention_places(module: Any) -> dict[str, Any]:
    """Return where the matrices and biases of attention are."""
    if not hasattr(module, "in_proj_weight"):
        four = (places(module, key, key, f"b_{key[-1]}") for key in FOUR)
        return {name: x for found in four for name, x in found.items()}
    d = module.embed_dim
    if module.in_proj_weight is None:
        raise TypeError(
            f"it has kdim={module.kdim} and vdim={module.vdim}, where {d} is due"
        )
    slots = places(module, "W_O", "W_O", "b_O")
    for i, letter in enumerate("QKV"):
        rows = slice(i * d, (i + 1) * d)
        slots[f"W_{letter}"] = module.in_proj_weight, rows
        if module.in_proj_bias is not None:
            slots[f"b_{letter}"] = module.in_proj_bias, rows
    return slots


def count_heads(module: Any) -> int:
    """Return how many heads a module says it has, or 0."""
    told = (getattr(module, name, None) for name in COUNTS)
    return next((x for x in told if type(x) is int and x > 0), 0)


class Borrowed(Subject):
    """Mix in for modules: they are lent, in train mode and in eval mode."""

    tensors = True
    modes: tuple[bool, ...] = (True, False)

    def _settle(self, slots: dict[Any, Any], own: Sizes) -> None:
        """Know where each matrix is written; find out if train mode can be asked."""
        self.slots, self.own = slots, own
        # What all twins share: whether it is lent at the moment.
        self.state: dict[str, Any] = {"open": False, "made": {}}
        X = np.random.default_rng(0).standard_normal((2, 3, own.width))
        probe = self.but(mode=Mode(training=True))
        with contextlib.suppress(Broke, NotApplicable), self.borrowed():
            # Without its dropout two calls in train mode must agree.
            first, again = (probe.some_answer(X) for _ in range(2))
            if not np.array_equal(first, again, equal_nan=True):
                self.modes = (False,)

    some_answer: Callable[[Any], Any]

    def variants(self):
        return [self.but(mode=Mode(training=training)) for training in self.modes]

    def trained_and_not(self):
        if self.modes == (False,):
            raise NotApplicable("in train mode no two calls agree")
        return self.variants()

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[None]:
        """Lend the module; it gets all back, also the random numbers of everybody."""
        if self.state["open"]:
            yield
            return
        torch, parts = sys.modules["torch"], [*self.target.modules()]
        owned = [*self.target.parameters(), *self.target.buffers()]
        numbers = [(t, t.data, t.grad) for t in owned]
        kept = [
            {n: x.copy() if isinstance(x, dict) else x for n, x in vars(part).items()}
            for part in parts
        ]
        self.state |= {"open": True, "numbers": numbers, "dtype": None}
        self.state["dropout"] = [(p, *at) for p in parts for at in _dropouts(vars(p))]
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                yield
        finally:
            self.state["open"] = False
            for t, data, slope in numbers:
                t.data, t.grad = data, slope
            for part, attributes in zip(parts, kept, strict=True):
                vars(part).clear()
                vars(part).update(attributes)

    def run_written(self, weights: Any, X: Any, options: Any) -> Any:
        """Write the weights, set the mode, and call."""
        torch, state = sys.modules["torch"], self.state
        dtype = self.cast or str(X.dtype)
        with self.borrowed():
            if state["dtype"] != dtype:
                wanted = getattr(torch, dtype)
                for t, data, _ in state["numbers"]:
                    is_float = data.is_floating_point()
                    t.data = data.to(wanted, copy=True) if is_float else data.clone()
                state["dtype"] = dtype
            for key, (parameter, rows) in self.slots.items():
                x = weights(key)
                parameter.data[rows] = torch.from_numpy(x) if np.ndim(x) else x
            training = bool(self.mode.training)
            self.target.train(training)
            for part, name, p in state["dropout"]:
                # What is dropped in eval mode too is a mistake, and is to be seen.
                setattr(part, name, 0.0 if training else p)
            self.parameters = list(self.target.parameters())
            for parameter in self.parameters:
                parameter.grad = None
            return self.call(self.forward, X, **options)

    def forward(self, X: Any, **options: Any) -> Any:
        """Call the module."""
        return self.target(X, **options)


def _dropouts(attributes):
    for name, x in attributes.items():
        if ("drop" in name or name == "p") and type(x) is float and 0 < x <= 1:
            yield name, x


class Module(Borrowed, Layer):
    """Four linear layers, such as W_Q or q_proj, and a number of heads."""

    def __init__(self, target, name, accepts, needs_mask, said, make):
        super().__init__(target, name, accepts, needs_mask, 1)
        self.said, self.make, slots = said, make, attention_places(target)
        shapes = {key: tuple(slots[key][0][slots[key][1]].shape) for key in FOUR}
        width, heads = shapes["W_Q"][1], said.n_heads or count_heads(target)
        if not heads:
            raise TypeError(
                f"{self.name} does not tell how many heads it has: say n_heads="
            )
        d_k = shapes["W_Q"][0] // heads
        groups = shapes["W_K"][0] // max(d_k, 1)
        wide, narrow = (width, width), (groups * d_k, width)
        for key, due in zip(FOUR, (wide, narrow, narrow, wide), strict=True):
            if shapes[key] != due or width % heads or heads % max(groups, 1):
                raise TypeError(
                    f"its {key} is {shapes[key]}, where {due} is due for {heads} "
                    f"heads and d_model = {width}; {GIVE}"
                )
        if groups != heads:
            self.said = Conventions(n_kv_heads=groups).joined(said)
        self._settle(slots, Sizes(width, heads, groups))

    @property
    def takes_bias(self):
        return "b_Q" in self.slots

    def some_answer(self, X):
        return self.layer(X, self.some_weights(), self.own.heads)

    def some_weights(self) -> dict[str, Any]:
        """Return weights of its own sizes."""
        rng = np.random.default_rng(1)
        shapes = {key: self.slots[key][0][self.slots[key][1]].shape for key in FOUR}
        return {
            key: rng.standard_normal((d, width)) / d**0.5
            for key, (width, d) in shapes.items()
        }

    def run_layer(self, X, weights, n_heads, options):
        own, widths = self.own, [weights[name].shape[1] for name in ("W_Q", "W_K")]
        if [n_heads, *widths] != [own.heads, own.width, own.groups * own.d_k]:
            other = self.made(X.shape[-1], n_heads)
            return other.run_layer(X, weights, n_heads, options)

        def written(key):
            return weights[key].T.copy() if key in weights else 0.0

        return self.run_written(written, X, options)

    def made(self, width, n_heads):
        """Return another one of these sizes, from the factory that was given."""
        key, made = (width, n_heads), self.state["made"]
        if self.make is None or self.own.groups != self.own.heads:
            raise NotApplicable(OTHER_SIZES)
        what = f"make(d_model={width}, n_heads={n_heads})"
        if key not in made:
            try:
                other = self.make(d_model=width, n_heads=n_heads)
            except Exception as error:
                raise NotApplicable(f"{what}: {error}") from error
            facts = other, self.name, self.accepts, self.needs_mask, self.said, None
            made[key] = type(self)(*facts)
        if made[key].own[:2] != key:
            raise NotApplicable(f"{what} returns another size")
        return made[key].but(mode=self.mode, cast=self.cast)

    def forward(self, X, **options):
        return self.target(X, **dict.fromkeys(self.other_names or (), X) | options)


class TorchModule(Module):
    """torch.nn.MultiheadAttention: True means hidden, and the batch may be second."""

    padding_name = PADDING

    def forward(self, X, key=None, value=None, attn_mask=None, **options):
        if (padding := options.pop(PADDING, None)) is not None:
            options[PADDING] = ~padding

        def attend(Q, K, V, mask):
            return self.target(Q, K, V, attn_mask=mask, **options)

        tokens = X, X if key is None else key, X if value is None else value
        return _as_torch_reads(self.target, attend, tokens, attn_mask)


class EncoderModule(Borrowed, Stack):
    """An EncoderLayer or Encoder of `mha.nn`."""

    def __init__(self, target, name, accepts, needs_mask, said, make):
        super().__init__(target, name, accepts, needs_mask)
        self.said, self.layers = said, list(getattr(target, "layers", [target]))
        self.depth, self.single, slots = len(self.layers), self.layers[0] is target, {}
        for i, layer in enumerate(self.layers):
            found = attention_places(part_of(layer, "attention"))
            for j in (1, 2):
                found |= places(layer, f"W_{j}", f"W_{j}", f"b_{j}")
                found |= places(layer, f"norm_{j}", f"gain_{j}", f"bias_{j}")
            slots |= {(i, key): x for key, x in found.items()}
        if part_of(target, "final_norm") is not None:
            found = places(target, "final_norm", "gain", "bias")
            slots |= {("end", key): x for key, x in found.items()}
        heads = count_heads(part_of(self.layers[0], "attention"))
        hidden, width = slots[0, "W_1"][0].shape
        self.takes_bias = (0, "b_1") in slots
        self._settle(slots, Sizes(width, heads, heads, hidden, self.depth))

    def some_answer(self, X):
        return self.run_encoder(X, [{}] * self.depth, 0, {})

    def run_encoder(self, X, layers, n_heads, options):
        if len(layers) != self.depth:
            raise NotApplicable(f"it has {self.depth} layers")

        def written(place):
            i, key = place
            if i == "end" or key not in layers[i]:
                return float(key.startswith("gain"))
            return layers[i][key].T.copy()

        return self.run_written(written, X, options)

    def one_by_one(self, X, layers):
        if self.single:
            raise NotApplicable("it is one layer")
        for layer, weights in zip(self.layers, layers, strict=True):
            facts = layer, self.name, self.accepts, self.needs_mask, self.said, None
            X = type(self)(*facts).but(mode=self.mode).encode(X, [weights])
        return X


class TorchEncoderModule(EncoderModule):
    """torch.nn.TransformerEncoderLayer or TransformerEncoder."""

    def forward(self, X, mask=None):
        attention = self.layers[0].self_attn
        return _as_torch_reads(attention, self.target, [X], mask)


def _as_torch_reads(attention, run, tokens, mask):
    """Run a layer of torch.nn: it gets a batch, and a mask that is True where hidden.

    PyTorch takes its fast path only when query, key and value are one object.
    """
    X, single = tokens[0], tokens[0].ndim == 2
    if mask is not None:
        shape: tuple[int, ...] = X.shape[-2], tokens[-1].shape[-2]
        if mask.ndim > 2:
            shape = X.shape[0], attention.num_heads, *shape
        mask = mask.broadcast_to(shape).reshape(-1, *shape[-2:])
        # Numbers are handed over as they are.
        mask = ~mask if "bool" in str(mask.dtype) else mask
        mask = mask[0] if len(mask) == 1 else mask
    laid_out = {id(x): x.unsqueeze(0) if single else x for x in tokens}
    if not attention.batch_first:
        laid_out = {key: x.transpose(0, 1) for key, x in laid_out.items()}
    result = run(*(laid_out[id(x)] for x in tokens), mask)
    Y, *weights = result if isinstance(result, tuple) else (result,)
    Y = Y if attention.batch_first else Y.transpose(0, 1)
    return Y[0] if single else Y, *weights


def as_module(target, name, accepts, needs_mask, said, make):
    """Return the readings of a module, or say why there is none."""
    torch = sys.modules["torch"]
    for inner in ("_orig_mod", "module"):
        if list(target._modules) == [inner]:
            raise TypeError(
                f"{name} is a wrapper around {type(target._modules[inner]).__name__}; "
                f"give laws.check what it wraps, layer.{inner}"
            )
    if any(torch.nn.parameter.is_lazy(x) or x.is_meta for x in target.parameters()):
        raise TypeError(f"{name} has no numbers yet; call it once before laws.check")
    # What True means in the masks of torch.nn is known.
    known, nn = replace(said, mask_true=None), torch.nn
    if isinstance(target, nn.MultiheadAttention):
        accepts = [x for x in accepts if x != "is_causal"]
        return [TorchModule(target, name, accepts, needs_mask, known, make)]
    first = next(iter(getattr(target, "layers", ())), target)
    if isinstance(first, nn.TransformerEncoderLayer):
        return [TorchEncoderModule(target, name, ("src", "mask"), False, known, make)]
    ours = sys.modules.get("mha.nn")
    if ours and isinstance(first, ours.EncoderLayer):
        return [EncoderModule(target, name, accepts, needs_mask, said, make)]
    missing = [x for x in FOUR if not isinstance(part_of(target, x), nn.Linear)]
    if missing:
        raise TypeError(
            "a module must be an attention layer or encoder of torch.nn or mha.nn, or "
            "have four torch.nn.Linear named W_Q, W_K, W_V, W_O (or q_proj, k_proj, "
            f"v_proj, o_proj); {name} has no {', '.join(missing)}; {GIVE}"
        )
    # A batch in front comes first: without it some answer, and mean something else.
    subject = Module(target, name, accepts, needs_mask, said, make)
    return [subject, subject.but(lead=0)]
