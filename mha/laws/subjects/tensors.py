"""Subjects of torch: functions of tensors and modules. Torch is never imported here.

It is looked up among the modules that are loaded: a tensor has loaded it.
"""

import dataclasses
import functools
import re
import sys
from types import MappingProxyType

import numpy as np

from mha.laws.subjects.encoder import Stack, StackFunction
from mha.laws.subjects.subject import (
    AdaptedLayer,
    Attention,
    Layer,
    LayerFunction,
    Mode,
)


class _OnTensors:
    """Mix in for functions of torch: tensors go in, and an array comes out."""

    def all_modes(self):
        weights = (None, True) if self.weights_name else (None,)
        return [
            self.in_mode(Mode(None, gradients, w, self.weights_name))
            for w in weights
            for gradients in (False, True)
        ]

    def run(self, function, args, options):
        torch = sys.modules["torch"]
        seen = {}
        args = [self._tensor(x, seen) for x in args]
        options = {name: self._tensor(x, seen) for name, x in options.items()}
        with torch.set_grad_enabled(self.mode.gradients):
            result = function(*args, **options)
            Y = result[0] if isinstance(result, tuple | list) else result
            if not isinstance(Y, torch.Tensor):
                raise TypeError(f"it returned {type(Y).__name__}, not a tensor")
            self._backward(Y, [t for t in seen.values() if t.requires_grad])
        return Y.detach().numpy()

    def _tensor(self, x, seen):
        """Return the tensor of an array; the same array gives the same tensor."""
        if isinstance(x, dict):
            return {name: self._tensor(part, seen) for name, part in x.items()}
        if isinstance(x, list):
            return [self._tensor(part, seen) for part in x]
        if not isinstance(x, np.ndarray):
            return x
        if id(x) not in seen:
            tensor = sys.modules["torch"].from_numpy(x)
            seen[id(x)] = tensor.requires_grad_(
                self.mode.gradients and x.dtype.kind == "f"
            )
        return seen[id(x)]

    def _backward(self, Y, leaves):
        self.gradients = []
        if self.mode.gradients and Y.requires_grad:
            Y.sum().backward()
            grads = [x.grad for x in leaves if x.grad is not None]
            self.gradients = [g.detach().numpy() for g in grads]


class TorchAttention(_OnTensors, Attention):
    """A torch function of Q, K and V."""


class TorchLayerFunction(_OnTensors, LayerFunction):
    """A torch function of tokens and weight matrices."""


class TorchAdaptedLayer(_OnTensors, AdaptedLayer):
    """A torch function of tokens and a dict of weight matrices."""


class TorchStackFunction(_OnTensors, StackFunction):
    """A torch function with the signature of `mha.encoder` or `mha.encoder_layer`."""

    def all_modes(self):
        return [
            mode.in_mode(dataclasses.replace(mode.mode, gradients=gradients))
            for mode in self.variants()
            for gradients in (False, True)
        ]


class _Built(_OnTensors):
    """Mix in for modules: the class is built anew, in train mode and in eval mode."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.twins = {}

    def trained_and_not(self):
        return self.variants()

    def variants(self):
        return [self.in_mode(Mode(training=training)) for training in (True, False)]

    def all_modes(self):
        weights = (False, True) if self.weights_name else (None,)
        return [
            self.in_mode(Mode(training, gradients, w, self.weights_name))
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
            torch = sys.modules["torch"]
            self.twins[key] = twin.to(getattr(torch, str(dtype)))
        return self.twins[key].train(bool(self.mode.training))

    def _build(self, sizes):
        kind = type(self.target).__name__
        try:
            twin = self.build(**sizes)
        except Exception as error:
            raise TypeError(
                f"a law needs {kind} in other sizes, and {kind}({', '.join(sizes)}) "
                f"failed ({error}); give laws.check {self.instead}"
            ) from error
        for name, (given, built) in _changed_parts(self.target, twin).items():
            raise TypeError(
                f"a law needs {kind} in other sizes, and there its part {name} is "
                f"{built}, here {given}; give laws.check {self.instead}"
            )
        return twin

    def run_loaded(self, twin, load, X, options):
        """Run the twin once `load` has filled it with the weights."""
        with sys.modules["torch"].no_grad():
            load()
        self.parameters = list(twin.parameters()) if self.mode.gradients else []
        for parameter in self.parameters:
            parameter.grad = None
        return self.call(functools.partial(self.forward, twin), X, **options)

    def forward(self, twin, X, **options):
        return twin(X, **options)

    def _backward(self, Y, leaves):
        super()._backward(Y, leaves + self.parameters)


class Module(_Built, Layer):
    """A layer of `mha.nn`, or any module whose W_Q, W_K, W_V, W_O are linear layers."""

    instead = (
        "a function f(X, W_Q, W_K, W_V, W_O, n_heads, mask=None) that builds and runs "
        "the layer"
    )

    @property
    def takes_bias(self):
        return self.target.W_Q.bias is not None

    def build(self, d_model, n_heads):
        options = {} if self.takes_bias else {"bias": False}
        return type(self.target)(d_model, n_heads, **options)

    def run_layer(self, X, weights, n_heads, options):
        twin = self.twin(X.dtype, d_model=X.shape[-1], n_heads=n_heads)
        load = functools.partial(self.load, twin, _tensors(weights))
        return self.run_loaded(twin, load, X, options)

    def load(self, twin, weights):
        load_attention(twin, weights)


class TorchModule(Module):
    """torch.nn.MultiheadAttention: True means hidden, and the batch may be second."""

    @property
    def takes_bias(self):
        return self.target.in_proj_bias is not None

    def build(self, d_model, n_heads):
        target = self.target
        return type(target)(
            d_model,
            n_heads,
            bias=self.takes_bias,
            add_bias_kv=target.bias_k is not None,
            add_zero_attn=target.add_zero_attn,
            batch_first=target.batch_first,
        )

    def load(self, twin, weights):
        load_torch_attention(twin, weights)

    def forward(self, twin, X, key=None, value=None, attn_mask=None, **options):
        X_k, X_v = X if key is None else key, X if value is None else value
        single, (n_q, n_k) = X.ndim == 2, (X.shape[-2], X_k.shape[-2])
        tokens = _laid_out((X, X_k, X_v), single, twin.batch_first)
        attn_mask = _hidden(attn_mask, X, (n_q, n_k), twin.num_heads)
        Y = twin(*tokens, attn_mask=attn_mask, **options)[0]
        Y = Y if twin.batch_first else Y.transpose(0, 1)
        return Y[0] if single else Y


class EncoderModule(_Built, Stack):
    """An EncoderLayer or Encoder of `mha.nn`."""

    instead = "a laws.Adapter that builds and runs it"

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.layers = getattr(self.target, "layers", None)
        self.first = self.target if self.layers is None else self.layers[0]
        self.depth = 1 if self.layers is None else 2
        self.final_norm = (
            getattr(self.target, self.names["final_norm"], None) is not None
        )

    # Ours, and what PyTorch calls the same parts.
    names = MappingProxyType(
        {x: x for x in ("attention", "W_1", "W_2", "norm_1", "norm_2", "final_norm")}
    )

    @property
    def takes_bias(self):
        return self.first.W_1.bias is not None

    @property
    def norm_first(self):
        return self.first.norm_first

    @property
    def eps(self):
        return self.first.eps

    def build(self, n_layers, d_model, n_heads, d_ff):
        first, counts = self.first, () if self.layers is None else (n_layers,)
        options = {"activation": first.activation, "norm_first": first.norm_first}
        options |= {"eps": first.eps, "bias": self.takes_bias}
        if self.final_norm:
            options["final_norm"] = True
        return type(self.target)(*counts, d_model, n_heads, d_ff, **options)

    def run_encoder(self, X, layers, n_heads, options):
        sizes = {"n_layers": len(layers), "d_model": X.shape[-1], "n_heads": n_heads}
        twin = self.twin(X.dtype, **sizes, d_ff=layers[0]["W_1"].shape[1])
        parts = [twin] if self.layers is None else twin.layers
        load = functools.partial(self.load, parts, [_tensors(w) for w in layers])
        return self.run_loaded(twin, load, X, options)

    def load(self, parts, layers):
        for part, weights in zip(parts, layers, strict=True):
            self.load_heads(getattr(part, self.names["attention"]), weights)
            for i in (1, 2):
                linear = getattr(part, self.names[f"W_{i}"])
                _fill(linear, weights[f"W_{i}"].T, weights.get(f"b_{i}", 0.0))
                norm = getattr(part, self.names[f"norm_{i}"])
                _fill(norm, weights.get(f"gain_{i}", 1), weights.get(f"bias_{i}", 0))

    def load_heads(self, attention, weights):
        load_attention(attention, weights)


class TorchEncoderModule(EncoderModule):
    """torch.nn.TransformerEncoderLayer or TransformerEncoder."""

    names = MappingProxyType(
        {"attention": "self_attn", "W_1": "linear1", "W_2": "linear2",
         "norm_1": "norm1", "norm_2": "norm2", "final_norm": "norm"}
    )  # fmt: skip

    @property
    def takes_bias(self):
        return self.first.linear1.bias is not None

    @property
    def eps(self):
        return self.first.norm1.eps

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

    def load_heads(self, attention, weights):
        load_torch_attention(attention, weights)

    def forward(self, twin, X, mask=None):
        attention = (twin if self.layers is None else twin.layers[0]).self_attn
        single, n = X.ndim == 2, X.shape[-2]
        mask = _hidden(mask, X, (n, n), attention.num_heads)
        (tokens,) = _laid_out([X], single, attention.batch_first)
        Y = twin(tokens, mask)
        Y = Y if attention.batch_first else Y.transpose(0, 1)
        return Y[0] if single else Y


def _changed_parts(module, twin):
    """Return {name: both types} of parts that somebody has exchanged since."""
    given, built = _parts(module), _parts(twin)
    names = [name for name in given | built if given.get(name) != built.get(name)]
    return {name: (given.get(name), built.get(name)) for name in names}


def _parts(module):
    """Return {name: type} of all parts; the first layer stands for all."""
    return {
        name: type(part).__name__
        for name, part in module.named_modules()
        if name and not re.search(r"\.[1-9]\d*(\.|$)", name)
    }


def _tensors(weights):
    torch = sys.modules["torch"]
    return {name: torch.from_numpy(W) for name, W in weights.items()}


def _fill(part, weight, bias):
    """Write into a linear layer or a norm; it may have been built without a bias."""
    for parameter, value in ((part.weight, weight), (part.bias, bias)):
        if parameter is not None:
            parameter[...] = value


def load_attention(module, weights):
    for name in "QKVO":
        bias = weights.get(f"b_{name}", 0.0)
        _fill(getattr(module, f"W_{name}"), weights[f"W_{name}"].T, bias)


def load_torch_attention(module, weights):
    three = [weights[f"W_{name}"].T for name in "QKV"]
    module.in_proj_weight.copy_(sys.modules["torch"].cat(three))
    if module.in_proj_bias is not None:
        for part, name in zip(module.in_proj_bias.chunk(3), "QKV", strict=True):
            part[:] = weights.get(f"b_{name}", 0.0)
    _fill(module.out_proj, weights["W_O"].T, weights.get("b_O", 0.0))


def _hidden(mask, X, shape, n_heads):
    """Return our mask as PyTorch's layers take it: True hides, batch and heads fold."""
    if mask is None:
        return None
    if mask.ndim > 2:
        shape = X.shape[0], n_heads, *shape
    mask = ~mask.broadcast_to(shape).reshape(-1, *shape[-2:])
    return mask[0] if len(mask) == 1 else mask


def _laid_out(tokens, single, batch_first):
    """Return the tokens as a batch, one tensor for each tensor that went in.

    PyTorch takes its fast path only when query, key and value are one object.
    """
    done = {}
    for x in tokens:
        if id(x) not in done:
            y = x.unsqueeze(0) if single else x
            done[id(x)] = y if batch_first else y.transpose(0, 1)
    return [done[id(x)] for x in tokens]
