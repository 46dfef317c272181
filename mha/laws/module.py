"""Modules of torch, judged in their own sizes. Torch is never imported here.

The numbers of a module are borrowed: laws write into copies, and at the end it holds
the tensors, the modes and the attributes that it came with.
"""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from mha.laws.stack import Stack
from mha.laws.subject import OTHER_SIZES, Broke, Layer, Mode, Sizes, Subject
from mha.laws.words import Conventions, NotApplicable

# What the four matrices are called, and the number of heads.
NAMES = {
    "W_Q": ("W_Q", "q_proj"), "W_K": ("W_K", "k_proj"), "W_V": ("W_V", "v_proj"),
    "W_O": ("W_O", "o_proj", "out_proj"),
}  # fmt: skip
COUNTS = ("n_heads", "num_heads", "n_head", "heads", "h")
GIVE = "give laws.check a laws.Adapter that builds and runs it"


class Borrowed(Subject):
    """Mix in for modules: they are lent, in train mode and in eval mode."""

    tensors = True

    def _settle(self, slots: dict[Any, Any], own: Sizes) -> None:
        """Know where each matrix is written; find out if train mode can be asked."""
        self.slots, self.own = slots, own
        # What all twins share: whether it is lent at the moment, and random numbers.
        self.state: dict[str, Any] = {"open": False, "made": {}}
        self.modes: tuple[bool, ...] = (True, False)
        probe = self.but(mode=Mode(training=True))
        with contextlib.suppress(Broke, NotApplicable):
            # Without its dropout two calls in train mode must agree.
            first, again = probe.some_answer(), probe.some_answer()
            if not np.array_equal(first, again, equal_nan=True):
                self.modes = (False,)

    some_answer: Callable[[], Any]

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
        torch, state = sys.modules["torch"], self.state
        owned = [*self.target.parameters(), *self.target.buffers()]
        numbers = [(t, t.data, t.grad) for t in owned]
        kept = [(vars(part), _copied(vars(part))) for part in self.target.modules()]
        everybodys = torch.get_rng_state()
        torch.manual_seed(0)
        if "random" in state:
            torch.set_rng_state(state["random"])
        state |= {"open": True, "numbers": numbers, "dtype": None}
        state["dropout"] = list(_dropouts(self.target))
        try:
            yield
        finally:
            state |= {"open": False, "random": torch.get_rng_state()}
            torch.set_rng_state(everybodys)
            for t, data, slope in numbers:
                t.data, t.grad = data, slope
            for now, before in kept:
                for name, x in before.items():
                    if isinstance(x, dict):
                        now[name].clear()
                        now[name].update(x)
                        before[name] = now[name]
                now.clear()
                now.update(before)

    def run_written(self, weights: Any, dtype: Any, forward: Any, X: Any, options: Any):
        """Write the weights, set the mode, and call."""
        torch, state = sys.modules["torch"], self.state
        with self.borrowed():
            if state["dtype"] != str(dtype):
                wanted = getattr(torch, str(dtype))
                for t, data, _ in state["numbers"]:
                    as_is = not data.is_floating_point()
                    t.data = data.clone() if as_is else data.to(wanted, copy=True)
                state["dtype"] = str(dtype)
            for key, (parameter, rows) in self.slots.items():
                with torch.no_grad():
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
            return self.call(forward, X, **options)

    def forward(self, X: Any, **options: Any) -> Any:
        """Call the module."""
        return self.target(X, **options)


def _copied(attributes):
    return {n: x.copy() if isinstance(x, dict) else x for n, x in attributes.items()}


def _dropouts(module):
    for part in module.modules():
        for name, x in vars(part).items():
            if ("drop" in name or name == "p") and type(x) is float and 0 < x <= 1:
                yield part, name, x


def _linear(part, name):
    """Return where a linear layer or a norm holds its numbers."""
    if part is None or any(x not in part._parameters for x in ("weight", "bias")):
        raise TypeError(
            f"its {name} has no weight and bias of its own (it may compute them from "
            f"other numbers, as where it is parametrized); {GIVE}"
        )
    return part.weight, part.bias


class Module(Borrowed, Layer):
    """Four linear layers, such as W_Q or q_proj, and a number of heads."""

    def __init__(self, target, name, accepts, needs_mask, said, make):
        super().__init__(target, name, accepts, needs_mask, 1)
        self.said, self.make = said, make
        slots, shapes = self.places()
        width = shapes["W_Q"][1]
        heads = said.n_heads or self.count_heads()
        d_k = shapes["W_Q"][0] // heads
        groups = shapes["W_K"][0] // max(d_k, 1)
        due = {"W_Q": (width, width), "W_K": (groups * d_k, width)}
        due |= {"W_V": due["W_K"], "W_O": (width, width)}
        for key, shape in due.items():
            if shapes[key] != shape or width % heads or heads % max(groups, 1):
                raise TypeError(
                    f"its {key} is {shapes[key]}, where {shape} is due for {heads} "
                    f"heads and d_model = {width}; {GIVE}"
                )
        if groups != heads:
            self.said = Conventions(n_kv_heads=groups).joined(said)
        self._settle(slots, Sizes(width, heads, groups))

    def places(self):
        """Return where each matrix and bias is written, and the shapes of matrices."""
        slots, shapes = {}, {}
        for key, names in NAMES.items():
            found = (getattr(self.target, x, None) for x in names)
            part = next((x for x in found if x is not None), None)
            weight, bias = _linear(part, key)
            shapes[key], slots[key] = tuple(weight.shape), (weight, slice(None))
            if bias is not None:
                slots[f"b_{key[-1]}"] = bias, slice(None)
        return slots, shapes

    def count_heads(self):
        told = (getattr(self.target, name, None) for name in COUNTS)
        for heads in told:
            if type(heads) is int and heads > 0:
                return heads
        raise TypeError(
            f"{self.name} does not tell how many heads it has: say n_heads="
        )

    @property
    def takes_bias(self):
        return "b_Q" in self.slots

    @functools.cached_property
    def must_have(self):
        """The names of other tokens without which it cannot be called."""
        return self.other_names or ()

    def some_answer(self):
        X = np.random.default_rng(0).standard_normal((3, self.own.width))
        return self.layer(X, self.some_weights(), self.own.heads)

    def some_weights(self) -> dict[str, Any]:
        """Return weights of its own sizes."""
        rng = np.random.default_rng(1)
        shapes = {key: p[rows].shape for key, (p, rows) in self.slots.items()}
        return {
            key: rng.standard_normal(shapes[key][::-1]) / shapes[key][1] ** 0.5
            for key in NAMES
        }

    def run_layer(self, X, weights, n_heads, options):
        shapes = [weights[name].shape[1] for name in ("W_Q", "W_K")]
        own, d_k = self.own, self.own.d_k
        if [n_heads, *shapes] != [own.heads, own.heads * d_k, own.groups * d_k]:
            return self.made(X.shape[-1], n_heads).run_layer(
                X, weights, n_heads, options
            )

        def written(key):
            return weights[key].T.copy() if key in weights else 0.0

        return self.run_written(written, self.cast or X.dtype, self.forward, X, options)

    def made(self, width, n_heads):
        """Return another one of these sizes, from the factory that was given."""
        key = width, n_heads
        if self.make is None or self.own.groups != self.own.heads:
            raise NotApplicable(OTHER_SIZES)
        if key not in self.state["made"]:
            try:
                other = self.make(d_model=width, n_heads=n_heads)
            except Exception as error:
                raise NotApplicable(
                    f"make(d_model={width}, n_heads={n_heads}): {error}"
                ) from error
            facts = other, self.name, self.accepts, self.needs_mask, self.said, None
            made = type(self)(*facts)
            if made.own[:2] != key:
                raise NotApplicable(f"make(d_model={width}, n_heads={n_heads}) returns "
                                    "another size")  # fmt: skip
            self.state["made"][key] = made
        return self.state["made"][key].but(mode=self.mode, cast=self.cast)

    def forward(self, X, **options):
        return self.target(X, **dict.fromkeys(self.must_have, X) | options)


class TorchModule(Module):
    """torch.nn.MultiheadAttention: True means hidden, and the batch may be second."""

    def places(self):
        x, d = self.target, self.target.embed_dim
        if not x._qkv_same_embed_dim:
            raise TypeError(f"it has kdim={x.kdim} and vdim={x.vdim}, where {d} is due")
        return _torch_places(x), dict.fromkeys(NAMES, (d, d))

    @property
    def padding_name(self):
        return "key_padding_mask"

    def forward(self, X, key=None, value=None, attn_mask=None, **options):
        if (padding := options.pop("key_padding_mask", None)) is not None:
            options["key_padding_mask"] = ~padding

        def attend(Q, K, V, mask):
            return self.target(Q, K, V, attn_mask=mask, **options)

        tokens = X, X if key is None else key, X if value is None else value
        return _as_torch_reads(self.target, attend, tokens, attn_mask)


def _torch_places(attention):
    d, slots = attention.embed_dim, {}
    for i, letter in enumerate("QKV"):
        rows = slice(i * d, (i + 1) * d)
        slots[f"W_{letter}"] = attention.in_proj_weight, rows
        if attention.in_proj_bias is not None:
            slots[f"b_{letter}"] = attention.in_proj_bias, rows
    weight, bias = _linear(attention.out_proj, "out_proj")
    slots["W_O"] = weight, slice(None)
    return slots | ({} if bias is None else {"b_O": (bias, slice(None))})


class EncoderModule(Borrowed, Stack):
    """An EncoderLayer or Encoder of `mha.nn`."""

    # Ours, and what PyTorch calls the same parts.
    names = MappingProxyType(
        {x: x for x in ("attention", "W_1", "W_2", "norm_1", "norm_2", "final_norm")}
    )

    def __init__(self, target, name, accepts, needs_mask, said, make):
        super().__init__(target, name, accepts, needs_mask)
        self.said, self.single = said, not hasattr(target, "layers")
        self.layers = [target] if self.single else list(target.layers)
        slots = {}
        for i, layer in enumerate(self.layers):
            slots |= {(i, key): x for key, x in self.places(layer).items()}
        first = self.layers[0]
        final = getattr(target, self.names["final_norm"], None)
        if final is not None:
            slots |= {("end", key): x for key, x in self._norm(final, "").items()}
        attention = getattr(first, self.names["attention"])
        heads = getattr(attention, "n_heads", getattr(attention, "num_heads", 1))
        linear = getattr(first, self.names["W_1"])
        self.takes_bias, self.depth = linear.bias is not None, len(self.layers)
        self.known = {}
        hidden, width = linear.weight.shape
        self._settle(slots, Sizes(width, heads, heads, hidden, self.depth))

    def _norm(self, part, i):
        weight, bias = _linear(part, f"norm {i}")
        found = {f"gain{i}": weight, f"bias{i}": bias}
        return {key: (x, slice(None)) for key, x in found.items() if x is not None}

    def places(self, layer):
        slots = self.attention_places(getattr(layer, self.names["attention"]))
        for i in (1, 2):
            weight, bias = _linear(getattr(layer, self.names[f"W_{i}"]), f"W_{i}")
            slots[f"W_{i}"] = weight, slice(None)
            slots |= {} if bias is None else {f"b_{i}": (bias, slice(None))}
            slots |= self._norm(getattr(layer, self.names[f"norm_{i}"]), f"_{i}")
        return slots

    def attention_places(self, attention):
        """Return where the attention inside is written."""
        parts = {key: _linear(getattr(attention, key), key) for key in NAMES}
        slots = {key: (weight, slice(None)) for key, (weight, _) in parts.items()}
        biases = {
            f"b_{key[-1]}": (bias, slice(None)) for key, (_, bias) in parts.items()
        }
        return slots | {key: x for key, x in biases.items() if x[0] is not None}

    def some_answer(self):
        X = np.random.default_rng(0).standard_normal((2, 3, self.own.width))
        return self.run_encoder(X, [{}] * self.depth, 0, {})

    def run_encoder(self, X, layers, n_heads, options):
        if len(layers) != self.depth:
            raise NotApplicable(f"it has {self.depth} layers")

        def written(place):
            i, key = place
            if i == "end" or key not in layers[i]:
                return float(key.startswith("gain"))
            return layers[i][key].T.copy()

        return self.run_written(written, self.cast or X.dtype, self.forward, X, options)

    def one_by_one(self, X, layers):
        if self.single:
            raise NotApplicable("it is one layer")
        for layer, weights in zip(self.layers, layers, strict=True):
            facts = layer, self.name, self.accepts, self.needs_mask, self.said, None
            X = type(self)(*facts).but(mode=self.mode).encode(X, [weights])
        return X


class TorchEncoderModule(EncoderModule):
    """torch.nn.TransformerEncoderLayer or TransformerEncoder."""

    attention_places = staticmethod(_torch_places)
    names = MappingProxyType(
        {"attention": "self_attn", "W_1": "linear1", "W_2": "linear2",
         "norm_1": "norm1", "norm_2": "norm2", "final_norm": "norm"}
    )  # fmt: skip

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
    if isinstance(target, torch.jit.ScriptModule):
        raise TypeError(f"{name} is a script; give laws.check the layer it is made of")
    # What True means in the masks of torch.nn is known.
    known = replace(said, mask_true=None)
    given = needs_mask, said, make
    if isinstance(target, torch.nn.MultiheadAttention):
        accepts = [x for x in accepts if x != "is_causal"]
        return [TorchModule(target, name, accepts, needs_mask, known, make)]
    if _is_stack(target, torch.nn, "TransformerEncoder", "TransformerEncoderLayer"):
        given = False, known, make
        return [TorchEncoderModule(target, name, ("src", "mask"), *given)]
    if _is_stack(target, sys.modules.get("mha.nn"), "Encoder", "EncoderLayer"):
        return [EncoderModule(target, name, accepts, *given)]
    missing = [key for key, some in NAMES.items()
               if not any(isinstance(getattr(target, x, None), torch.nn.Linear)
                          for x in some)]  # fmt: skip
    if missing:
        raise TypeError(
            "a module must be an attention layer or encoder of torch.nn or mha.nn, or "
            "have four torch.nn.Linear named W_Q, W_K, W_V, W_O (or q_proj, k_proj, "
            f"v_proj, o_proj); {name} has no {', '.join(missing)}; {GIVE}"
        )
    # A batch in front comes first: without it some answer, and mean something else.
    subject = Module(target, name, accepts, *given)
    return [subject, subject.but(lead=0)]


def _is_stack(target, home, many, one):
    """Whether it is one of the layers of `home`, or an encoder made of such layers."""
    if home is None:
        return False
    if isinstance(target, getattr(home, many)):
        target = next(iter(target.layers), None)
    return isinstance(target, getattr(home, one))
