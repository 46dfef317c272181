"""Modules of torch, judged in their own sizes. Torch is never imported here."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mha.laws.stack import Stack
from mha.laws.subject import FOUR, Broke, Called, Layer, Sizes, Subject, results_in
from mha.laws.words import Conventions, NotApplicable, skip_if

# What the parts are called: by us, by others, and by PyTorch.
NAMES = {
    "W_Q": ("W_Q", "q_proj", "to_q", "query", "wq", "q"),
    "W_K": ("W_K", "k_proj", "to_k", "key", "wk", "k"),
    "W_V": ("W_V", "v_proj", "to_v", "value", "wv", "v"),
    "W_O": ("W_O", "o_proj", "out_proj", "to_out", "c_proj", "proj", "wo", "out"),
    "attention": ("attention", "self_attn"), "final_norm": ("final_norm", "norm"),
    "W_1": ("W_1", "linear1"), "W_2": ("W_2", "linear2"),
    "norm_1": ("norm_1", "norm1"), "norm_2": ("norm_2", "norm2"),
}  # fmt: skip
COUNTS = "n_heads num_heads num_attention_heads n_head nhead heads h".split()
FUSED = ("qkv_proj", "qkv", "to_qkv", "Wqkv", "c_attn")  # Q, K and V in one matrix
GIVE = "give laws.check a laws.Adapter that builds and runs it"
# Where numbers stand: which layer and what, a parameter, and which of its rows.
Slots = dict[tuple[int, str], tuple[Any, slice]]


class Lent:
    """A module that lends its numbers, called as ``run(X, weights, n_heads)``."""

    def __init__(self, module, slots, sizes, run) -> None:
        self.module, self.slots, self.sizes, self.run = module, slots, sizes, run
        self.parameters, self.parts = [*module.parameters()], [*module.modules()]
        self.is_open = False
        self.learned: list[str] = []  # parameters that a design reads

    def __call__(self, X, weights, n_heads, training=False, **options):
        """Write the weights, set the mode, and call."""
        skip_if((X.shape[-1], n_heads) != self.sizes[:2], "it has other sizes")
        layers = weights if isinstance(weights, list) else [weights]
        skip_if(len(layers) != self.sizes.depth, f"it has {self.sizes.depth} layers")
        with self.borrowed():
            self._become(X.dtype)
            for (i, key), (parameter, rows) in self.slots.items():
                given = layers[i].get(key) if i < len(layers) else None
                empty = float(key.startswith("gain"))
                parameter.data[rows] = empty if given is None else given.detach().t()
            if any(part.training != training for part in self.parts):
                self.module.train(training)
            for part, name, p in self.dropouts:
                # What is dropped in eval mode too is a mistake, and is to be seen.
                setattr(part, name, 0.0 if training else p)
            for parameter in self.parameters:
                parameter.grad = None
            return self.run(X, **options)

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[None]:
        """Lend the module; it gets all back, also the random numbers of everybody."""
        if self.is_open:
            yield
            return
        torch, owned = sys.modules["torch"], [*self.parameters, *self.module.buffers()]
        self.numbers, self.dtype = [(t, t.data, t.grad) for t in owned], None
        kept = [
            {n: x.copy() if isinstance(x, dict) else x for n, x in vars(part).items()}
            for part in self.parts
        ]
        self.dropouts = [(p, *at) for p in self.parts for at in _dropouts(vars(p))]
        self.is_open = True
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                yield
        finally:
            self.is_open = False
            for t, data, slope in self.numbers:
                t.data, t.grad = data, slope
            for part, attributes in zip(self.parts, kept, strict=True):
                vars(part).clear()
                vars(part).update(attributes)

    def _become(self, dtype):
        if self.dtype != dtype:
            for t, data, _ in self.numbers:
                is_float = data.is_floating_point()
                t.data = data.to(dtype, copy=True) if is_float else data.clone()
            self.dtype = dtype
            for name in self.learned:
                given = sys.modules["torch"].from_numpy(self.read(name))
                self.module.get_parameter(name).data.copy_(given)

    def read(self, name: str) -> Any:
        """Return the numbers that the laws write into a parameter of a design."""
        try:
            shape = tuple(self.module.get_parameter(name).shape)
        except AttributeError as error:
            known = ", ".join(x for x, _ in self.module.named_parameters())
            raise ValueError(f"no parameter is called {name!r}, but {known}") from error
        rng = np.random.default_rng([*name.encode()])
        if len(shape) == 1:
            return rng.uniform(0.3, 1.5, shape)
        return rng.standard_normal(shape) / np.sqrt(shape[-1])


def _dropouts(attributes):
    for name, x in attributes.items():
        if ("drop" in name or name == "p") and type(x) is float and 0 < x <= 1:
            yield name, x


def part_of(module: Any, key: str) -> Any:
    found = (getattr(module, name, None) for name in NAMES[key])
    part: Any = next((x for x in found if x is not None), None)
    if type(part).__name__ == "Sequential":
        # A linear layer that comes with its dropout.
        part = next((x for x in part if hasattr(x, "weight")), part)
    return part


def places(module: Any, key: str, i: int, weight: str, bias: str) -> Slots:
    """Return where a linear layer or a norm holds its numbers, under these names."""
    part = part_of(module, key)
    if part is None or any(x not in part._parameters for x in ("weight", "bias")):
        raise TypeError(
            f"its {key} has no weight and bias of its own (it may compute them from "
            f"other numbers, as where it is parametrized); {GIVE}"
        )
    found = {(i, weight): part.weight, (i, bias): part.bias}
    return {name: (x, slice(None)) for name, x in found.items() if x is not None}


def attention_places(module: Any, i: int = 0) -> Slots:
    # A method may have such a name too.
    parts = (getattr(module, name, None) for name in FUSED)
    if part := next((x for x in parts if hasattr(x, "weight")), None):
        slots = places(module, "W_O", i, "W_O", "b_O")
        return slots | _in_three(i, part.weight, part.bias)
    if not hasattr(module, "in_proj_weight"):
        four = (places(module, key, i, key, f"b_{key[-1]}") for key in FOUR)
        return {name: x for found in four for name, x in found.items()}
    if module.in_proj_weight is None:
        got, due = f"kdim={module.kdim} and vdim={module.vdim}", module.embed_dim
        raise TypeError(f"it has {got}, where {due} is due")
    slots = places(module, "W_O", i, "W_O", "b_O")
    return slots | _in_three(i, module.in_proj_weight, module.in_proj_bias)


def _in_three(i, weight, bias):
    d, both = weight.shape[0] // 3, {"W": weight, "b": bias}
    return {
        (i, f"{x}_{letter}"): (parameter, slice(j * d, (j + 1) * d))
        for j, letter in enumerate("QKV")
        for x, parameter in both.items()
        if parameter is not None
    }


def count_heads(module: Any) -> int:
    told = (getattr(module, name, None) for name in COUNTS)
    return next((x for x in told if type(x) is int and x > 0), 0)


def lent_layer(module: Any, said: Conventions, run: Any) -> Lent:
    slots, heads = attention_places(module), said.n_heads or count_heads(module)
    if not heads:
        name = type(module).__name__
        raise TypeError(f"{name} does not tell how many heads it has: say n_heads=")
    shapes = [tuple(x.data[rows].shape) for x, rows in (slots[0, key] for key in FOUR)]
    width, d_k = shapes[0][1], shapes[0][0] // heads
    groups = shapes[1][0] // max(d_k, 1)
    wide, narrow = (width, width), (groups * d_k, width)
    for key, shape, due in zip(FOUR, shapes, (wide, narrow, narrow, wide), strict=True):
        if shape != due or width % heads or heads % max(groups, 1):
            raise TypeError(
                f"its {key} is {shape}, where {due} is due for {heads} "
                f"heads and d_model = {width}; {GIVE}"
            )
    return Lent(module, slots, Sizes(width, heads, groups), run)


def lent_encoder(module: Any, run: Any) -> Lent:
    layers = list(getattr(module, "layers", [module]))
    slots: Slots = {}
    for i, layer in enumerate(layers):
        slots |= attention_places(part_of(layer, "attention"), i)
        for j in (1, 2):
            slots |= places(layer, f"W_{j}", i, f"W_{j}", f"b_{j}")
            slots |= places(layer, f"norm_{j}", i, f"gain_{j}", f"bias_{j}")
    if part_of(module, "final_norm") is not None:
        slots |= places(module, "final_norm", len(layers), "gain", "bias")
    heads = count_heads(part_of(layers[0], "attention"))
    hidden, width = slots[0, "W_1"][0].shape
    sizes = Sizes(width, heads, heads, hidden, len(layers))
    return Lent(module, slots, sizes, run)


def settled(subject: Subject, lent: Lent, said: Conventions) -> Subject:
    """Return a subject whose target is lent; find out if train mode can be asked."""
    subject.said, subject.own, subject.tensors = said, lent.sizes, True
    lent.learned = [x for design in said.bends for x in design.learned.values()]
    for name in lent.learned:
        lent.read(name)
    subject.takes_bias = {key for _, key in lent.slots if key.startswith("b_")}
    subject.switch = "training", (True, False)
    X, probe = np.random.default_rng(0).standard_normal((3, 1)), subject.variants()[0]
    with contextlib.suppress(Broke, NotApplicable), lent.borrowed():
        # Without its dropout two calls in train mode must agree.
        first, again = (probe.attend(X, X, X) for _ in range(2))
        if not np.array_equal(first, again, equal_nan=True):
            subject.switch = "training", (False,)
    return subject


def as_torch_reads(attention: Any, run: Any) -> Callable[..., Any]:
    """Return how a layer of torch.nn is called: a batch, and a mask for each head."""

    def call(X, key=None, value=None, attn_mask=None, mask=None, **options):
        tokens = X, X if key is None else key, X if value is None else value
        mask = attn_mask if mask is None else mask
        if mask is not None:
            alike = mask.shape[:2] == (1, 1)
            front = (1, 1) if alike else (len(X), attention.num_heads)
            mask = mask.broadcast_to(*front, X.shape[1], tokens[1].shape[1])
            mask = mask[0, 0] if alike else mask.flatten(0, 1)
        # PyTorch takes its fast path only when query, key and value are one object.
        given = {id(x): x for x in tokens}
        if not attention.batch_first:
            given = {key: x.transpose(0, 1) for key, x in given.items()}
        Y, *weights = results_in(run(*(given[id(x)] for x in tokens), mask, **options))
        return Y if attention.batch_first else Y.transpose(0, 1), *weights

    return call


def as_module(called: Called, said: Conventions) -> list[Subject]:
    torch, target, name = sys.modules["torch"], called.target, called.name
    for inner, wrapped in target._modules.items():
        if inner in ("_orig_mod", "module") and len(target._modules) == 1:
            around = f"{name} is a wrapper around {type(wrapped).__name__}"
            raise TypeError(f"{around}; give laws.check what it wraps, layer.{inner}")
    if any(torch.nn.parameter.is_lazy(x) or x.is_meta for x in target.parameters()):
        raise TypeError(f"{name} has no numbers yet; call it once before laws.check")
    nn, ours = torch.nn, sys.modules.get("mha.nn")
    called = called._replace(accepts=called.accepts | {"training"})
    first = next(iter(getattr(target, "layers", ())), target)
    theirs = isinstance(first, nn.TransformerEncoderLayer)
    if theirs or (ours and isinstance(first, ours.EncoderLayer)):
        run = target
        if theirs:
            run = as_torch_reads(first.self_attn, lambda X, K, V, mask: target(X, mask))
            called = called._replace(accepts=frozenset({"src", "mask", "training"}))
            said = replace(said, mask_true="hide")
        lent, many = lent_encoder(target, run), hasattr(target, "layers")
        stack = Stack(called._replace(target=lent), int(theirs), many)
        parts = [called._replace(target=x) for x in getattr(target, "layers", ())]
        stack.parts = lambda: [as_module(part, said)[0] for part in parts]
        return [settled(stack, lent, said)]
    if isinstance(target, nn.MultiheadAttention):

        def attend(Q, K, V, mask, **options):
            return target(Q, K, V, attn_mask=mask, **options)

        lent = lent_layer(target, said, as_torch_reads(target, attend))
        called = called._replace(target=lent, accepts=called.accepts - {"is_causal"})
        return [settled(Layer(called, 1), lent, replace(said, mask_true="hide"))]
    four = FOUR[3:] if any(hasattr(target, x) for x in FUSED) else FOUR
    missing = [x for x in four if not isinstance(part_of(target, x), nn.Linear)]
    if missing:
        raise TypeError(
            "a module must be an attention layer or encoder of torch.nn or mha.nn, or "
            "have four torch.nn.Linear named W_Q, W_K, W_V, W_O (or q_proj …, to_q …, "
            f"or one qkv); {name} has no {', '.join(missing)}; {GIVE}"
        )
    lent = lent_layer(target, said, target)
    if lent.sizes.groups != lent.sizes.heads:
        said = Conventions(n_kv_heads=lent.sizes.groups).joined(said)
    # A batch in front comes first: without it some answer, and mean something else.
    subject = settled(Layer(called._replace(target=lent), 1), lent, said)
    return [subject, subject.but(lead=0)]
