"""Modules of torch as subjects. Torch is never imported here.

It is looked up among the modules that are loaded: a tensor has loaded it.
"""

import contextlib
import copy
import functools
import inspect
import itertools
import re
import sys
from types import MappingProxyType
from typing import Any

import numpy as np

from mha.laws.subjects import twins
from mha.laws.subjects.conventions import NotApplicable
from mha.laws.subjects.encoder import Stack
from mha.laws.subjects.layer import Layer
from mha.laws.subjects.results import Broke, each_array
from mha.laws.subjects.subject import Mode, Trace


def _fill(part, weight, bias):
    """Write into a linear layer or a norm; it may have been built without a bias."""
    for parameter, value in ((part.weight, weight), (part.bias, bias)):
        if parameter is not None:
            parameter[...] = value


def _load_attention(module, weights):
    for name in "QKVO":
        bias = weights.get(f"b_{name}", 0.0)
        _fill(getattr(module, f"W_{name}"), weights[f"W_{name}"].T, bias)


def _load_torch_attention(module, weights):
    three = [weights[f"W_{name}"].T for name in "QKV"]
    module.in_proj_weight.copy_(sys.modules["torch"].cat(three))
    if module.in_proj_bias is not None:
        for part, name in zip(module.in_proj_bias.chunk(3), "QKV", strict=True):
            part[:] = weights.get(f"b_{name}", 0.0)
    _fill(module.out_proj, weights["W_O"].T, weights.get("b_O", 0.0))


class _Built:
    """Mix in for modules: the class is built anew, in train mode and in eval mode."""

    tensors = True
    # Writes weights into a module, or into the layers of one.
    load: Any
    # The parameters that `build` fills without asking the module for them.
    built_with: tuple[str, ...] = ()
    loaded = twins.LOADED_BY_ENCODERS

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        torch = sys.modules["torch"]
        self.twins, self.modes = {}, (True, False)
        # Random numbers of its own: those of the user are left alone.
        self.numbers = [torch.Generator().manual_seed(0).get_state()]
        with self._own_numbers():
            self._settle()

    @contextlib.contextmanager
    def _own_numbers(self):
        torch = sys.modules["torch"]
        before = torch.get_rng_state()
        torch.set_rng_state(self.numbers[0])
        try:
            yield
        finally:
            self.numbers[0] = torch.get_rng_state()
            torch.set_rng_state(before)

    def trained_and_not(self):
        if self.modes == (False,):
            raise NotApplicable("in train mode no two calls agree")
        return self.variants()

    def variants(self):
        return [self.but(mode=Mode(training=training)) for training in self.modes]

    def all_modes(self):
        name = self.weights_name
        ways = [((name, asked),) for asked in (False, True)] if name else [()]
        return [
            self.but(mode=Mode(training, gradients, settings))
            for training, gradients in ((True, True), (False, True), (False, False))
            if training in self.modes
            for settings in ways
        ]

    def _settle(self):
        """Find out how twins are built: one of its own size must give its numbers."""
        for sizes in self.own_sizes():
            try:
                return self.settle_with(sizes)
            except TypeError as error:
                found = error
        raise self._refusal(found) from found

    def _refusal(self, found):
        needed = f"a law needs {type(self.target).__name__} in other sizes, and"
        return TypeError(f"{needed} {found}; give laws.check {self.instead}")

    def settle_with(self, sizes):
        """Take these for its own sizes, or raise TypeError."""
        parameters = twins.parameters_of(type(self.target))
        asked = {x: p for x, p in parameters.items() if x not in self.built_with}
        self.further = {}
        try:
            built = self.build(**sizes)
        except Exception:
            # It may have parameters without a default.
            built = None
        self.further = twins.told(self.target, asked, built)
        fresh = self._build(sizes) if self.further or built is None else built
        self.later = twins.Later(self.target, fresh, self.loaded)
        given, twin = self._copied(), self.later.put_on(fresh, weights=True)
        for module in (given, twin):
            module.to("cpu", sys.modules["torch"].float64)
        for (where, ours), (_, theirs) in zip(
            self._answers(given), self._answers(twin), strict=True
        ):
            if why := twins.difference(ours, theirs):
                options = (f"{x}={y!r}" for x, y in (sizes | self.further).items())
                called = f"{type(self.target).__name__}({', '.join(options)})"
                blamed = self.later.blamed(x for x in asked if x not in vars(given))
                raise TypeError(f"{called} gives other numbers: {where}, {why}{blamed}")
        if self.later.lost:
            raise TypeError(
                f"its {self.later.lost[0]} holds numbers that fit no other size"
            )
        # Without its dropout two calls in train mode must agree; else it is not asked.
        silent = twins.silence(twin)
        for x in self._tokens():
            if twins.difference(*(self._answer(silent, x, True) for _ in range(2))):
                self.modes = (False,)

    def _copied(self):
        """Return a copy, with what a call has left in it cut off from its gradients."""
        torch = sys.modules["torch"]
        kept = [x for part in self.target.modules() for x in vars(part).values()]
        kept = [x for x in kept if isinstance(x, torch.Tensor) and not x.is_leaf]
        try:
            return copy.deepcopy(self.target, {id(x): x.detach().clone() for x in kept})
        except Exception as error:
            what = str(error).partition(".")[0]
            raise TypeError(f"it keeps what cannot be copied ({what})") from error

    def _answers(self, module):
        """Yield what it gives to the same tokens, in all modes, with a mask or none."""
        mask = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1]], bool)
        calls = ((None, False), (mask, False), (None, True))
        for training, x in itertools.product((False, True), self._tokens()):
            for m, causal in calls:
                sys.modules["torch"].default_generator.manual_seed(0)
                where = f"{Mode(training)}{', with a mask' * (m is not None)}"
                yield where, self._answer(module, x, training, m, causal)

    def _tokens(self):
        X = np.random.default_rng(0).standard_normal((1, 3, self.width))
        return (X, X[0]) if self.kind == "layer" else (X,)

    def _answer(self, module, x, training, mask=None, is_causal=False):
        """Return what it gives, or what it raises."""
        variant = self.but(mode=Mode(training), trace=Trace())
        run = functools.partial(variant.forward, module.train(training))
        try:
            return variant.call(run, x, **variant.options(mask, is_causal, (3, 3)))
        except (Broke, NotApplicable) as why:
            return str(why)

    def twin(self, dtype, **sizes):
        """Return a fresh module of another size: the given one is never touched."""
        training = bool(self.mode.training)
        key = training, dtype, *sizes.values()
        if key not in self.twins:
            try:
                with self._own_numbers():
                    twin = self.later.put_on(self._build(sizes)).train(training)
            except TypeError as error:
                raise self._refusal(error) from error
            # What is dropped in eval mode too is a mistake, and is to be seen.
            twin = twins.silence(twin) if training else twin
            self.twins[key] = twin.to(
                self.said.device or "cpu", getattr(sys.modules["torch"], str(dtype))
            )
        return self.twins[key]

    def _build(self, sizes):
        try:
            return self.build(**sizes)
        except Exception as error:
            kind = type(self.target).__name__
            raise TypeError(f"{kind}({', '.join(sizes)}) failed ({error})") from error

    def run_loaded(self, twin, parts, weights, X, options):
        """Run the twin once its parts are filled with the weights."""
        torch = sys.modules["torch"]
        with torch.no_grad():
            self.load(parts, each_array(weights, torch.from_numpy, {}))
        self.parameters = list(twin.parameters()) if self.mode.gradients else []
        for parameter in self.parameters:
            parameter.grad = None
        with self._own_numbers():
            return self.call(functools.partial(self.forward, twin), X, **options)

    def forward(self, twin, X, **options):
        return twin(X, **options)


class Module(_Built, Layer):
    """A layer of `mha.nn`, or any module whose W_Q, W_K, W_V, W_O are linear layers."""

    instead = (
        "a function f(X, W_Q, W_K, W_V, W_O, n_heads, mask=None) that builds and runs "
        "the layer"
    )
    load = staticmethod(_load_attention)
    loaded = re.compile(r"(W_[QKVO]|out_proj)\.(weight|bias)$|in_proj_|bias_[kv]$")
    built_with: tuple[str, ...] = twins.SIZES
    # How many heads keys and values have, where queries share them.
    groups: int | None = None

    @functools.cached_property
    def must_have(self):
        """Return the names of other tokens without which it cannot be called."""
        parameters = inspect.signature(self.target.forward).parameters
        others = self.other_names or ()
        return [x for x in others if parameters[x].default is parameters[x].empty]

    def forward(self, twin, X, **options):
        return twin(X, **dict.fromkeys(self.must_have, X) | options)

    @property
    def takes_bias(self):
        return all(getattr(self.target, f"W_{x}").bias is not None for x in "QKVO")

    @property
    def width(self):
        return self.target.W_O.out_features

    def own_sizes(self):
        """Return the sizes that it may have; some do not say how many heads."""
        target, d = self.target, self.width
        fitting = [h for h in range(1, d + 1) if d % h == 0]
        said = [getattr(target, x, None) for x in twins.COUNTS]
        said = [h for h in said if type(h) is int and h in fitting][:1]
        return [{"d_model": d, "n_heads": h} for h in said or fitting]

    def settle_with(self, sizes):
        d, d_k = self.width, self.width // sizes["n_heads"]
        rows = self.target.W_K.weight.shape[0]
        self.groups = rows // d_k if rows < d and rows % d_k == 0 else None
        for x in "QKVO":
            due = rows if self.groups and x in "KV" else d, d
            if (shape := getattr(self.target, f"W_{x}").weight.shape) != due:
                raise TypeError(f"its W_{x}.weight is {(*shape,)}, where {due} is due")
        super().settle_with(sizes)

    def build(self, d_model, n_heads):
        """Call the constructor, by names where they are known."""
        kind = type(self.target)
        sizes: dict[str, Any] = dict.fromkeys(twins.HEAD_WIDTHS, d_model // n_heads)
        sizes |= dict.fromkeys(twins.WIDTHS, d_model)
        sizes |= dict.fromkeys(twins.COUNTS, n_heads)
        sizes |= dict.fromkeys(twins.KEY_COUNTS, min(n_heads, self.groups or n_heads))
        sizes |= dict.fromkeys(twins.BIASES, self.target.W_Q.bias is not None)
        names = twins.parameters_of(kind)
        named = {x: sizes[x] for x in names if x in sizes}
        if named.keys() & {*twins.WIDTHS} and named.keys() & {*twins.COUNTS}:
            return kind(**named | self.further)
        options = {x: y for x, y in self.further.items() if x not in [*names][:2]}
        return kind(d_model, n_heads, **options)

    def run_layer(self, X, weights, n_heads, options):
        twin = self.twin(self.cast or X.dtype, d_model=X.shape[-1], n_heads=n_heads)
        return self.run_loaded(twin, twin, weights, X, options)


class TorchModule(Module):
    """torch.nn.MultiheadAttention: True means hidden, and the batch may be second."""

    load = staticmethod(_load_torch_attention)
    built_with = (*twins.SIZES, "batch_first", "add_bias_kv", "add_zero_attn")

    @property
    def takes_bias(self):
        return self.target.in_proj_bias is not None

    @property
    def width(self):
        return self.target.embed_dim

    def own_sizes(self):
        return [{"d_model": self.width, "n_heads": self.target.num_heads}]

    def settle_with(self, sizes):
        x, d = self.target, self.width
        if not x._qkv_same_embed_dim:
            raise TypeError(f"it has kdim={x.kdim} and vdim={x.vdim}, where {d} is due")
        _Built.settle_with(self, sizes)

    def build(self, d_model, n_heads):
        target = self.target
        return type(target)(
            d_model, n_heads, bias=self.takes_bias, batch_first=target.batch_first,
            add_bias_kv=target.bias_k is not None, add_zero_attn=target.add_zero_attn,
            **self.further,
        )  # fmt: skip

    @property
    def padding_name(self):
        return "key_padding_mask"

    def forward(self, twin, X, key=None, value=None, attn_mask=None, **options):
        if (padding := options.pop("key_padding_mask", None)) is not None:
            options["key_padding_mask"] = ~padding

        def attend(Q, K, V, mask):
            return twin(Q, K, V, attn_mask=mask, **options)

        tokens = X, X if key is None else key, X if value is None else value
        return _as_torch_reads(twin, attend, tokens, attn_mask)


class EncoderModule(_Built, Stack):
    """An EncoderLayer or Encoder of `mha.nn`."""

    # Every module has these, where a function must be tried.
    norm_first, takes_bias = False, True
    instead = "a laws.Adapter that builds and runs it"
    load_heads = staticmethod(_load_attention)
    # Ours, and what PyTorch calls the same parts.
    names = MappingProxyType(
        {x: x for x in ("attention", "W_1", "W_2", "norm_1", "norm_2", "final_norm")}
    )

    built_with = (
        *twins.SIZES, "n_layers", "d_ff", "activation", "norm_first", "eps",
        "final_norm", "dim_feedforward", "layer_norm_eps", "batch_first", "dropout",
        "encoder_layer", "num_layers", "norm",
    )  # fmt: skip

    def __init__(self, target, *args, **options):
        self.layers = getattr(target, "layers", None)
        self.first = target if self.layers is None else self.layers[0]
        self.depth = 1 if self.layers is None else 2
        self.linear = getattr(self.first, self.names["W_1"])
        self.width = self.linear.in_features
        self.takes_bias = self.linear.bias is not None
        self.norm_first = self.first.norm_first
        self.final_norm = getattr(target, self.names["final_norm"], None) is not None
        super().__init__(target, *args, **options)

    @property
    def eps(self):
        return getattr(self.first, self.names["norm_1"]).eps

    def own_sizes(self):
        heads = getattr(self.first, self.names["attention"])
        n_heads = getattr(heads, "n_heads", getattr(heads, "num_heads", 1))
        counts = {"n_layers": 1 if self.layers is None else len(self.layers)}
        sizes = {"d_model": self.width, "n_heads": n_heads}
        return [counts | sizes | {"d_ff": self.linear.out_features}]

    def build(self, n_layers, d_model, n_heads, d_ff):
        first, counts = self.first, () if self.layers is None else (n_layers,)
        options = {"activation": first.activation, "norm_first": first.norm_first}
        options |= {"eps": first.eps, "bias": self.takes_bias}
        if self.final_norm:
            options["final_norm"] = True
        dropout = {"dropout": first.dropout} if first.dropout else {}
        options |= dropout | self.further
        return type(self.target)(*counts, d_model, n_heads, d_ff, **options)

    def run_encoder(self, X, layers, n_heads, options):
        sizes = {"n_layers": len(layers), "d_model": X.shape[-1], "n_heads": n_heads}
        twin = self.twin(self.cast or X.dtype, **sizes, d_ff=layers[0]["W_1"].shape[1])
        parts = [twin] if self.layers is None else twin.layers
        return self.run_loaded(twin, parts, layers, X, options)

    def load(self, parts, layers):
        for part, weights in zip(parts, layers, strict=True):
            self.load_heads(getattr(part, self.names["attention"]), weights)
            for i in (1, 2):
                linear = getattr(part, self.names[f"W_{i}"])
                _fill(linear, weights[f"W_{i}"].T, weights.get(f"b_{i}", 0.0))
                norm = getattr(part, self.names[f"norm_{i}"])
                _fill(norm, weights.get(f"gain_{i}", 1), weights.get(f"bias_{i}", 0))


class TorchEncoderModule(EncoderModule):
    """torch.nn.TransformerEncoderLayer or TransformerEncoder."""

    load_heads = staticmethod(_load_torch_attention)
    names = MappingProxyType(
        {"attention": "self_attn", "W_1": "linear1", "W_2": "linear2",
         "norm_1": "norm1", "norm_2": "norm2", "final_norm": "norm"}
    )  # fmt: skip

    def build(self, n_layers, d_model, n_heads, d_ff):
        first, nn = self.first, sys.modules["torch"].nn
        layer = type(first)(
            d_model, n_heads, d_ff, first.dropout.p, first.activation, first.norm1.eps,
            batch_first=first.self_attn.batch_first, norm_first=first.norm_first,
            bias=self.takes_bias, **(self.further if self.layers is None else {}),
        )  # fmt: skip
        if self.layers is None:
            return layer
        norm = None
        if self.final_norm:
            norm = nn.LayerNorm(d_model, self.target.norm.eps, bias=self.takes_bias)
        return type(self.target)(layer, n_layers, norm, enable_nested_tensor=False)

    def forward(self, twin, X, mask=None):
        first = twin if self.layers is None else twin.layers[0]
        return _as_torch_reads(first.self_attn, twin, [X], mask)


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
