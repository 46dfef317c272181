"""Modules of torch as subjects. Torch is never imported here.

It is looked up among the modules that are loaded: a tensor has loaded it.
"""

import functools
import re
import sys
from types import MappingProxyType
from typing import Any

from mha.laws.subjects.encoder import Stack
from mha.laws.subjects.subject import Layer, Mode, each_array


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

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.twins = {}

    def trained_and_not(self):
        return self.variants()

    def variants(self):
        return [self.but(mode=Mode(training=training)) for training in (True, False)]

    def all_modes(self):
        weights = (False, True) if self.weights_name else (None,)
        return [
            self.but(mode=Mode(training, gradients, w, self.weights_name))
            for training, gradients in ((True, True), (False, True), (False, False))
            for w in weights
        ]

    def twin(self, dtype, **sizes):
        """Return a fresh module of another size: the given one is never touched."""
        key = dtype, *sizes.values()
        if key not in self.twins:
            twin = self._build(sizes)
            for part in twin.modules():
                if hasattr(part, "dropout") and not callable(part.dropout):
                    part.dropout = 0.0
                if type(part).__name__.startswith("Dropout"):
                    part.p = 0.0
            self.twins[key] = twin.to(getattr(sys.modules["torch"], str(dtype)))
        return self.twins[key].train(bool(self.mode.training))

    def _build(self, sizes):
        kind = type(self.target).__name__
        needed, instead = f"a law needs {kind} in other sizes, and", self.instead
        try:
            twin = self.build(**sizes)
        except Exception as error:
            raise TypeError(
                f"{needed} {kind}({', '.join(sizes)}) failed ({error}); give "
                f"laws.check {instead}"
            ) from error
        # Somebody may have exchanged a part since.
        given, built = _parts(self.target), _parts(twin)
        for name in given | built:
            if given.get(name) != built.get(name):
                raise TypeError(
                    f"{needed} there its part {name} is {built.get(name)}, here "
                    f"{given.get(name)}; give laws.check {instead}"
                )
        return twin

    def run_loaded(self, twin, parts, weights, X, options):
        """Run the twin once its parts are filled with the weights."""
        torch = sys.modules["torch"]
        with torch.no_grad():
            self.load(parts, each_array(weights, torch.from_numpy, {}))
        self.parameters = list(twin.parameters()) if self.mode.gradients else []
        for parameter in self.parameters:
            parameter.grad = None
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

    @property
    def takes_bias(self):
        return self.target.W_Q.bias is not None

    def build(self, d_model, n_heads):
        options = {} if self.takes_bias else {"bias": False}
        return type(self.target)(d_model, n_heads, **options)

    def run_layer(self, X, weights, n_heads, options):
        twin = self.twin(self.cast or X.dtype, d_model=X.shape[-1], n_heads=n_heads)
        return self.run_loaded(twin, twin, weights, X, options)


class TorchModule(Module):
    """torch.nn.MultiheadAttention: True means hidden, and the batch may be second."""

    load = staticmethod(_load_torch_attention)

    @property
    def takes_bias(self):
        return self.target.in_proj_bias is not None

    def build(self, d_model, n_heads):
        target = self.target
        return type(target)(
            d_model, n_heads, bias=self.takes_bias, batch_first=target.batch_first,
            add_bias_kv=target.bias_k is not None, add_zero_attn=target.add_zero_attn,
        )  # fmt: skip

    def forward(self, twin, X, key=None, value=None, attn_mask=None, **options):
        def attend(Q, K, V, mask):
            return twin(Q, K, V, attn_mask=mask, **options)[0]

        tokens = X, X if key is None else key, X if value is None else value
        return _as_torch_reads(twin, attend, tokens, attn_mask)


class EncoderModule(_Built, Stack):
    """An EncoderLayer or Encoder of `mha.nn`."""

    instead = "a laws.Adapter that builds and runs it"
    load_heads = staticmethod(_load_attention)
    # Ours, and what PyTorch calls the same parts.
    names = MappingProxyType(
        {x: x for x in ("attention", "W_1", "W_2", "norm_1", "norm_2", "final_norm")}
    )

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.layers = getattr(self.target, "layers", None)
        self.first = self.target if self.layers is None else self.layers[0]
        self.depth = 1 if self.layers is None else 2
        final_norm = getattr(self.target, self.names["final_norm"], None)
        self.final_norm = final_norm is not None

    @property
    def takes_bias(self):
        return getattr(self.first, self.names["W_1"]).bias is not None

    @property
    def norm_first(self):
        return self.first.norm_first

    @property
    def eps(self):
        return getattr(self.first, self.names["norm_1"]).eps

    def build(self, n_layers, d_model, n_heads, d_ff):
        first, counts = self.first, () if self.layers is None else (n_layers,)
        options = {"activation": first.activation, "norm_first": first.norm_first}
        options |= {"eps": first.eps, "bias": self.takes_bias}
        if self.final_norm:
            options["final_norm"] = True
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
            d_model, n_heads, d_ff, 0.0, first.activation, first.norm1.eps,
            batch_first=first.self_attn.batch_first, norm_first=first.norm_first,
            bias=self.takes_bias,
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


def _parts(module):
    """Return {name: type} of all parts; the first layer stands for all."""
    return {
        name: type(part).__name__
        for name, part in module.named_modules()
        if name and not re.search(r"\.[1-9]\d*(\.|$)", name)
    }


def _as_torch_reads(attention, run, tokens, mask):
    """Run a layer of torch.nn: it gets a batch, and a mask that is True where hidden.

    PyTorch takes its fast path only when query, key and value are one object.
    """
    X, single = tokens[0], tokens[0].ndim == 2
    if mask is not None:
        shape: tuple[int, ...] = X.shape[-2], tokens[-1].shape[-2]
        if mask.ndim > 2:
            shape = X.shape[0], attention.num_heads, *shape
        mask = ~mask.broadcast_to(shape).reshape(-1, *shape[-2:])
        mask = mask[0] if len(mask) == 1 else mask
    laid_out = {id(x): x.unsqueeze(0) if single else x for x in tokens}
    if not attention.batch_first:
        laid_out = {key: x.transpose(0, 1) for key, x in laid_out.items()}
    Y = run(*(laid_out[id(x)] for x in tokens), mask)
    Y = Y if attention.batch_first else Y.transpose(0, 1)
    return Y[0] if single else Y
