"""Subjects of torch: functions of tensors and modules. Torch is never imported here.

It is looked up among the modules that are loaded: who has a tensor has torch.
"""

import functools
import sys

import numpy as np

from mha.laws._subjects import Attention, Layer, LayerFunction, Mode


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


class Module(_OnTensors, Layer):
    """A layer of `mha.nn`, or any module whose W_Q, W_K, W_V, W_O are linear layers."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.twins = {}

    def variants(self):
        return [
            self.in_mode(Mode(training=True)),
            self.in_mode(Mode(training=False)),
        ]

    def all_modes(self):
        weights = (False, True) if self.weights_name else (None,)
        return [
            self.in_mode(Mode(training, gradients, w, self.weights_name))
            for training, gradients in ((True, True), (False, True), (False, False))
            for w in weights
        ]

    @property
    def takes_bias(self):
        return self.target.W_Q.bias is not None

    def build(self, d_model, n_heads):
        options = {} if self.takes_bias else {"bias": False}
        return type(self.target)(d_model, n_heads, **options)

    def twin(self, d_model, n_heads, dtype):
        """Return a fresh module of another size: the given one is never touched."""
        key = d_model, n_heads, dtype
        if key not in self.twins:
            try:
                twin = self.build(d_model, n_heads)
            except Exception as error:
                raise TypeError(
                    f"a law needs {type(self.target).__name__} in other sizes, and "
                    f"{type(self.target).__name__}(d_model, n_heads) failed "
                    f"({error}); give laws.check a function f(X, W_Q, W_K, W_V, W_O, "
                    "n_heads, mask=None) that builds and runs the layer"
                ) from error
            for part in twin.modules():
                if hasattr(part, "dropout") and not callable(part.dropout):
                    part.dropout = 0.0
                if type(part).__name__.startswith("Dropout"):
                    part.p = 0.0
            torch = sys.modules["torch"]
            self.twins[key] = twin.to(getattr(torch, str(dtype)))
        return self.twins[key].train(bool(self.mode.training))

    def run_layer(self, X, weights, n_heads, options):
        twin = self.twin(X.shape[-1], n_heads, X.dtype)
        torch = sys.modules["torch"]
        with torch.no_grad():
            self.load(twin, {k: torch.from_numpy(W) for k, W in weights.items()})
        twin.zero_grad()
        return self.call(functools.partial(self.forward, twin), X, **options)

    def load(self, twin, weights):
        for name in "QKVO":
            linear = getattr(twin, f"W_{name}")
            linear.weight.copy_(weights[f"W_{name}"].T)
            if linear.bias is not None:
                linear.bias.copy_(weights.get(f"b_{name}", linear.bias.new_zeros(())))

    def forward(self, twin, X, **options):
        self.parameters = list(twin.parameters())
        return twin(X, **options)

    def _backward(self, Y, leaves):
        super()._backward(Y, leaves + self.parameters)


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
        three = [weights[f"W_{name}"].T for name in "QKV"]
        twin.in_proj_weight.copy_(sys.modules["torch"].cat(three))
        twin.out_proj.weight.copy_(weights["W_O"].T)
        if twin.in_proj_bias is not None:
            d = twin.embed_dim
            for i, name in enumerate("QKV"):
                b = weights.get(f"b_{name}", twin.in_proj_bias.new_zeros(()))
                twin.in_proj_bias[i * d : (i + 1) * d] = b
            zero = twin.out_proj.bias.new_zeros(())
            twin.out_proj.bias.copy_(weights.get("b_O", zero))

    def forward(self, twin, X, key=None, value=None, attn_mask=None, **options):
        self.parameters = list(twin.parameters())
        X_k, X_v = X if key is None else key, X if value is None else value
        single, (n_q, n_k) = X.ndim == 2, (X.shape[-2], X_k.shape[-2])
        tokens = _laid_out((X, X_k, X_v), single, twin.batch_first)
        if attn_mask is not None:
            shape = n_q, n_k
            if attn_mask.ndim > 2:
                shape = X.shape[0], twin.num_heads, n_q, n_k
            attn_mask = ~attn_mask.broadcast_to(shape).reshape(-1, n_q, n_k)
            attn_mask = attn_mask[0] if len(attn_mask) == 1 else attn_mask
        Y = twin(*tokens, attn_mask=attn_mask, **options)[0]
        Y = Y if twin.batch_first else Y.transpose(0, 1)
        return Y[0] if single else Y


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
