"""Ask the laws of layers that are in use: python book/_data/public_layers.py

Each function below makes a layer of some library, says how it is called, and returns
it with its reference, or with None where plain attention is the reference; the page
"Test your own attention" shows some of them. What the laws said is stored beside this
file. It takes about six minutes and needs

    pip install torch transformers keras flax jax timm x-transformers
"""

import inspect
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import mha
from mha import designs, laws

os.environ.setdefault("KERAS_BACKEND", "torch")

STORE = Path(__file__).with_suffix(".json")
FOUR = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "o_proj"}


def shown(mask):
    """Return a mask of four axes, also for None, which would hide the future."""
    mask = torch.ones(1, 1, dtype=torch.bool) if mask is None else mask
    return mask[(None,) * (4 - mask.ndim)]


def added(mask):
    """Return what eager attention adds to the scores: 0, or -∞ where it hides."""
    if mask is None or mask.is_floating_point():
        return mask
    return torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)


def hidden(mask, X, n_heads):
    """Return the mask of torch.nn, where True hides, for each head of the batch."""
    if mask is None:
        return None
    mask = mask if mask.is_floating_point() else ~mask
    (b, n, _) = X.shape
    return mask.expand(b, n_heads, n, n).flatten(0, 1)


# PyTorch


def grouped_sdpa():
    def layer(X, W_Q, W_K, W_V, W_O, n_heads, mask=None, is_causal=False):
        width = W_Q.shape[1] // n_heads
        three = (X @ W for W in (W_Q, W_K, W_V))
        q, k, v = (y.unflatten(-1, (-1, width)).transpose(1, 2) for y in three)
        if mask is not None and is_causal:
            raise laws.NotAsked("it refuses a mask beside is_causal")
        y = F.scaled_dot_product_attention(
            q, k, v, mask, is_causal=is_causal, enable_gqa=True
        )
        return y.transpose(1, 2).flatten(2) @ W_O

    return laws.torch(layer, axes=3), None


def flex():
    from torch.nn.attention.flex_attention import flex_attention

    def attend(Q, K, V):
        return flex_attention(Q, K, V)

    return laws.torch(attend, axes=4), None


PLACES = {x: "self_attn.in_proj" for x in "QKV"} | {
    "O": "self_attn.out_proj", "1": "linear1", "2": "linear2", "norm_1": "norm1",
    "norm_2": "norm2",
}  # fmt: skip


def with_weights():
    def call(m, X, mask=None):
        return m(X, X, X, attn_mask=hidden(mask, X, 3))[0]

    layer = nn.MultiheadAttention(12, 3, batch_first=True)
    return laws.module(layer, n_heads=3, qkv="in_proj", o="out_proj", call=call), None


def encoder_layer(batch_first=True, norm_first=False):
    def call(m, X, mask=None):
        mask = hidden(mask, X, 2)
        if batch_first:
            return m(X, mask)
        return m(X.transpose(0, 1), mask).transpose(0, 1)

    order = {"batch_first": batch_first, "norm_first": norm_first}
    layer = nn.TransformerEncoderLayer(8, 2, 16, **order)
    reference = partial(mha.encoder_layer, norm_first=norm_first)
    return laws.encoder(layer, n_heads=2, places=PLACES, call=call), reference


def encoder(batch_first=True):
    def call(m, X, mask=None):
        mask = hidden(mask, X, 2)
        if batch_first:
            return m(X, mask)
        return m(X.transpose(0, 1), mask).transpose(0, 1)

    one = nn.TransformerEncoderLayer(8, 2, 16, batch_first=batch_first)
    stack = nn.TransformerEncoder(one, 2, enable_nested_tensor=False)
    own = {"n_heads": 2, "places": PLACES, "layers": "layers"}
    return laws.encoder(stack, **own, call=call), None


# Transformers


def bert(mode="sdpa"):
    from transformers.models.bert import modeling_bert as home

    class Bert(nn.Module):  # their layer ends before the output projection
        def __init__(self, config):
            super().__init__()
            self.own, self.o = home.BertSelfAttention(config), nn.Linear(12, 12)

        def forward(self, X, mask):
            return self.o(self.own(X, mask)[0])

    sizes = {"hidden_size": 12, "num_attention_heads": 3}
    layer = Bert(home.BertConfig(**sizes, attn_implementation=mode))
    said = added if mode == "eager" else shown
    return laws.module(
        layer, n_heads=3, q="own.query", k="own.key", v="own.value", o="o",
        call=lambda m, X, mask=None: m(X, said(mask)),
    ), None  # fmt: skip


def gpt2(mode="sdpa"):
    from transformers.models.gpt2 import modeling_gpt2 as home

    said = added if mode == "eager" else shown

    def layer(X, W_Q, W_K, W_V, W_O, n_heads, mask=None):
        sizes = {"n_embd": X.shape[-1], "n_head": n_heads}
        config = home.GPT2Config(**sizes, attn_implementation=mode)
        m = home.GPT2Attention(config, layer_idx=0).to(X.dtype).eval()
        # Conv1D of GPT-2 keeps its matrix as we do: x @ weight.
        m.c_attn.weight.data = torch.cat([W_Q, W_K, W_V], 1)
        m.c_proj.weight.data = W_O
        return m(X, attention_mask=said(mask))[0]

    return laws.torch(layer, axes=3), None


def llama(mode="sdpa"):
    from transformers.models.llama import modeling_llama as home

    sizes = {"hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = home.LlamaConfig(**sizes, attn_implementation=mode)
    angles = home.LlamaRotaryEmbedding(config)
    said = added if mode == "eager" else shown

    def call(m, X, mask=None):
        at = torch.arange(X.shape[1])[None]
        return m(X, angles(X, at), said(mask))[0]

    def reference(Q, K, V, mask=None):
        Q, K = designs.rotary(Q), designs.rotary(K)
        return designs.weights(designs.scores(Q, K), mask) @ V

    layer = home.LlamaAttention(config, layer_idx=0)
    return laws.module(layer, n_heads=4, **FOUR, call=call), reference


def qwen3():
    from transformers import DynamicCache
    from transformers.models.qwen3 import modeling_qwen3 as home

    sizes = {"hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = home.Qwen3Config(**sizes, head_dim=4, attn_implementation="sdpa")
    angles = home.Qwen3RotaryEmbedding(config)

    def call(m, X, mask=None, state=None):
        cache = DynamicCache() if state is None else state
        before, n = cache.get_seq_length(), X.shape[1]
        past = torch.ones(n, before + n, dtype=torch.bool).tril(before)
        at = torch.arange(before, before + n)[None]
        seen = past & shown(mask)
        return m(X, angles(X, at), seen, cache=cache)[0], cache

    layer = laws.module(
        home.Qwen3Attention(config, layer_idx=0), n_heads=4, **FOUR, call=call
    )

    def reference(Q, K, V, mask=None):
        Q = designs.rotary(designs.rms(Q, layer.parameters["q_norm.weight"]))
        K = designs.rotary(designs.rms(K, layer.parameters["k_norm.weight"]))
        mask = designs.both(mask, designs.causal(Q, K))
        return designs.weights(designs.scores(Q, K), mask) @ V

    return laws.steps(layer), reference


def gemma2():
    from transformers.models.gemma2 import modeling_gemma2 as home

    sizes = {"hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2}
    sizes |= {"query_pre_attn_scalar": 9, "attn_logit_softcapping": 3.0}
    config = home.Gemma2Config(**sizes, head_dim=4, attn_implementation="eager")
    angles = home.Gemma2RotaryEmbedding(config)

    def call(m, X, mask=None):
        at = torch.arange(X.shape[1])[None]
        return m(X, angles(X, at), added(mask))[0]

    def reference(Q, K, V, mask=None):
        S = designs.scores(designs.rotary(Q), designs.rotary(K), scale=1 / 3)
        return designs.weights(designs.soft_cap(S, 3.0), mask) @ V

    layer = home.Gemma2Attention(config, layer_idx=0)
    return laws.module(layer, n_heads=4, **FOUR, call=call), reference


def gpt_oss():
    from transformers.models.gpt_oss import modeling_gpt_oss as home

    sizes = {"hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2}
    turns = {"rope_type": "default", "rope_theta": 150000.0}
    config = home.GptOssConfig(
        **sizes, head_dim=4, rope_parameters=turns, attn_implementation="eager"
    )
    layer, angles = home.GptOssAttention(config, 0), home.GptOssRotaryEmbedding(config)
    layer.sinks.data = torch.zeros(4)  # their file leaves them unset

    def call(m, X, mask=None):
        at = torch.arange(X.shape[1])[None]
        return m(X, angles(X, at), added(mask))[0]

    layer = laws.module(layer, n_heads=4, **FOUR, call=call)

    def reference(Q, K, V, mask=None):
        Q, K = (designs.rotary(x, 150000.0) for x in (Q, K))
        sinks = layer.parameters["sinks"]
        return designs.weights(designs.scores(Q, K), mask, sink=sinks) @ V

    return layer, reference


def t5():
    from transformers.models.t5 import modeling_t5 as home

    config = home.T5Config(d_model=12, num_heads=3, d_kv=4, attn_implementation="sdpa")
    layer = laws.module(
        home.T5Attention(config, has_relative_attention_bias=True),
        n_heads=3, q="q", k="k", v="v", o="o",
        call=lambda m, X, mask=None: m(X, shown(mask))[0],
    )  # fmt: skip

    def reference(Q, K, V, mask=None):
        table = layer.parameters["relative_attention_bias.weight"]
        S = designs.scores(Q, K, scale=1.0) + designs.t5_bias(Q, K, table)
        return designs.weights(S, mask) @ V

    return layer, reference


# Keras, JAX and Flax


def keras_layer(dtype="float32"):
    import keras

    def layer(X, W_Q, W_K, W_V, W_O, n_heads, mask=None, is_causal=False):
        (b, n, d), four = X.shape, (W_Q, W_K, W_V, W_O)
        m = keras.layers.MultiHeadAttention(
            n_heads, d // n_heads, use_bias=False, dtype=dtype
        )
        m.build(X.shape, X.shape)
        cut = [W.reshape(d, n_heads, -1) for W in four[:3]]
        m.set_weights([*cut, W_O.reshape(n_heads, -1, d)])
        mask = None if mask is None else mask.expand(b, n_heads, n, n)
        Y = m(X, X, attention_mask=mask, use_causal_mask=is_causal)
        return Y.to(X.dtype)

    return laws.torch(layer, axes=3), None


def jax_function():
    import jax

    def attend(Q, K, V, mask=None, is_causal=False):
        d, d_v = Q.shape[-1], V.shape[-1]
        q, k, v = (in_four_axes(x, max(d, d_v)) for x in (Q, K, V))
        mask = None if mask is None else mask[(None,) * (4 - mask.ndim)]
        options = {"mask": mask, "is_causal": is_causal, "scale": d**-0.5}
        Y = np.asarray(jax.nn.dot_product_attention(q, k, v, **options))
        Y = Y.swapaxes(1, 2)[..., :d_v].reshape(*Q.shape[:-1], d_v)
        return Y.astype(np.result_type(Q, np.float16))

    def in_four_axes(x, width):  # heads behind tokens, and one width for all
        wide = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, width - x.shape[-1])])
        return wide[(None,) * (4 - x.ndim)].swapaxes(1, 2)

    return attend, None


def flax_nnx():
    from flax import nnx

    def layer(X, W_Q, W_K, W_V, W_O, n_heads, mask=None):
        d, own = X.shape[-1], {"use_bias": False, "decode": False}
        m = nnx.MultiHeadAttention(n_heads, d, rngs=nnx.Rngs(0), **own)
        three = zip((m.query, m.key, m.value), (W_Q, W_K, W_V), strict=True)
        for part, W in three:
            part.kernel.value = W.reshape(d, n_heads, -1)
        m.out.kernel.value = W_O.reshape(n_heads, -1, d)
        return np.asarray(m(X, mask=mask), X.dtype)

    return layer, None


# timm and x-transformers


def timm_layer(fused=True):
    from timm.layers import Attention

    layer = Attention(12, 3, qkv_bias=True)
    layer.fused_attn = fused

    def call(m, X, mask=None, is_causal=False):
        return m(X, mask, is_causal)

    return laws.module(layer, n_heads=3, qkv="qkv", o="proj", call=call), None


def x_transformers(flash=True, **own):
    from x_transformers.x_transformers import Attention

    sizes = {"heads": 3, "dim_head": 4, "project_out": True}
    return laws.module(
        Attention(12, **sizes, flash=flash, **own), n_heads=3,
        q="to_q", k="to_k", v="to_v", o="to_out",
        call=lambda m, X, mask=None: m(X, attn_mask=mask),
    ), None  # fmt: skip


def cross():
    from x_transformers.x_transformers import Attention

    layer = Attention(12, heads=3, dim_head=4, project_out=True, flash=True)

    def call(m, X, X_k=None, mask=None):
        return m(X, X if X_k is None else X_k, attn_mask=mask)

    names = {"q": "to_q", "k": "to_k", "v": "to_v", "o": "to_out"}
    return laws.module(layer, n_heads=3, **names, call=call), None


# Layers as courses and tutorials write them


class Fused(nn.Module):
    """Causal self-attention with one matrix for Q, K and V, in the style of nanoGPT."""

    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        cut = (b, n, self.n_head, d // self.n_head)
        q, k, v = (y.view(cut).transpose(1, 2) for y in self.c_attn(x).split(d, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(b, n, d))


def causal(Q, K, V, mask=None):
    mask = designs.both(mask, designs.causal(Q, K))
    return designs.weights(designs.scores(Q, K), mask) @ V


def nano_gpt():
    return laws.module(Fused(12, 3), n_heads=3, qkv="c_attn", o="c_proj"), causal


class MultiHeadedAttention(nn.Module):
    """Attention with four linear layers, in the style of The Annotated Transformer."""

    def __init__(self, h, d_model):
        super().__init__()
        self.h, self.d_k = h, d_model // h
        self.linears = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        b = query.size(0)
        q, k, v = (
            linear(x).view(b, -1, self.h, self.d_k).transpose(1, 2)
            for linear, x in zip(self.linears, (query, key, value), strict=False)
        )
        scores = q @ k.transpose(-2, -1) / self.d_k**0.5
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)
        x = scores.softmax(-1) @ v
        return self.linears[-1](x.transpose(1, 2).reshape(b, -1, self.h * self.d_k))


def four_linears():
    def call(m, X, X_k=None, mask=None):
        X_k = X if X_k is None else X_k
        if mask is not None:  # theirs is (batch, n_q or 1, n_k)
            if mask.ndim == 4 and mask.shape[1] > 1:
                raise laws.NotAsked("it takes one mask for all heads")
            mask = mask[:, 0] if mask.ndim == 4 else mask[None]
        return m(X, X_k, X_k, mask)

    names = {x: f"linears.{i}" for i, x in enumerate("qkvo")}
    layer = MultiHeadedAttention(3, 12)
    return laws.module(layer, n_heads=3, **names, call=call), None


def attention_of_lengths(queries, keys, values, valid_lens=None):
    """Attend to the first keys, in the style of Dive into Deep Learning."""
    scores = queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5
    if valid_lens is not None:
        hidden = torch.arange(keys.shape[1]) >= valid_lens[:, None, None]
        scores = scores.masked_fill(hidden, -1e6)
    return scores.softmax(-1) @ values


def lengths():
    def attend(Q, K, V, mask=None):
        if Q.ndim > 3:
            raise laws.NotAsked("it takes three axes")
        if mask is None:
            return attention_of_lengths(Q, K, V)
        seen = laws.padding(mask, Q)
        if (seen[:, 1:] > seen[:, :-1]).any():
            raise laws.NotAsked("it hides the last keys only")
        return attention_of_lengths(Q, K, V, seen.sum(-1))

    return laws.torch(attend, axes=3), None


# The table


@dataclass
class Tried:
    """One layer in one mode, and what `laws.check` is given beside it."""

    library: str  # its name on PyPI, "" for our own text
    layer: str
    mode: str
    make: Callable
    options: dict = field(default_factory=dict)
    fast: bool = True  # whether PyTorch may take the fast path of its own layers

    @property
    def key(self):
        return ", ".join(filter(None, (self.layer, self.mode)))


def as_it_is(layer):
    """Return a row's function for something that needs no adapter."""
    return lambda: (layer(), None)


def rows():
    """Return everything that is tried."""
    one, many = partial(Tried, "torch"), nn.MultiheadAttention
    theirs, timm = partial(Tried, "transformers"), partial(Tried, "timm", "Attention")
    xs, own = partial(Tried, "x-transformers", "Attention"), partial(Tried, "")
    coder = partial(one, "TransformerEncoderLayer")
    coarse = {"tolerance": 1e-4}
    shared = {"sizes": laws.Sizes(d_model=8, n_heads=4, n_kv_heads=2)}
    sdpa = F.scaled_dot_product_attention
    return [
        one("scaled_dot_product_attention", "", as_it_is(lambda: sdpa)),
        one("scaled_dot_product_attention", "enable_gqa=True", grouped_sdpa, shared),
        one("flex_attention", "", flex),
        one("MultiheadAttention", "", as_it_is(lambda: many(12, 3))),
        one("MultiheadAttention", "batch_first=True",
            as_it_is(lambda: many(12, 4, batch_first=True))),
        one("MultiheadAttention", "need_weights=True", with_weights),
        coder("", partial(encoder_layer, False)),
        coder("batch_first=True", encoder_layer),
        coder("batch_first=True, norm_first=True",
              partial(encoder_layer, norm_first=True)),
        coder("batch_first=True, fast path switched off", encoder_layer, fast=False),
        one("TransformerEncoder", "", partial(encoder, False)),
        one("TransformerEncoder", "batch_first=True", encoder),
        theirs("BertSelfAttention", "sdpa", bert),
        theirs("BertSelfAttention", "eager", partial(bert, "eager")),
        theirs("GPT2Attention", "sdpa", gpt2),
        theirs("GPT2Attention", "eager", partial(gpt2, "eager")),
        theirs("LlamaAttention", "sdpa", llama, coarse),
        theirs("LlamaAttention", "eager", partial(llama, "eager"), coarse),
        theirs("Qwen3Attention", "sdpa, with its cache", qwen3, coarse),
        theirs("Gemma2Attention", "eager", gemma2, coarse),
        theirs("GptOssAttention", "eager", gpt_oss, coarse),
        theirs("T5Attention", "sdpa, with its bias", t5),
        Tried("keras", "MultiHeadAttention", "", keras_layer, coarse),
        Tried("keras", "MultiHeadAttention", "in float64",
              partial(keras_layer, "float64")),
        Tried("jax", "dot_product_attention", "", jax_function, coarse),
        Tried("flax", "nnx.MultiHeadAttention", "", flax_nnx, coarse),
        timm("fused_attn=True", timm_layer),
        timm("fused_attn=False", partial(timm_layer, False)),
        xs("flash=True", x_transformers),
        xs("flash=False", partial(x_transformers, False)),
        xs("flash=True, with a context", cross),
        own("one fused matrix, as in nanoGPT", "", nano_gpt),
        own("four linear layers, as in The Annotated Transformer", "", four_linears),
        own("lengths, as in Dive into Deep Learning", "", lengths),
    ]  # fmt: skip


def lines(row):
    """Return how many lines the adapter and the reference of a row take."""
    f = getattr(row.make, "func", row.make)
    written = inspect.getsource(f).splitlines() if f.__name__ != "<lambda>" else []
    return len([x for x in written if x.strip()])


def checked(row, only=None):
    """Return the report on one row."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(row.fast)
    torch.manual_seed(0)
    try:
        subject, reference = row.make()
        return laws.check(subject, only, reference=reference, **row.options)
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def found(row):
    """Return what the laws say of one row, as it is stored."""
    report = checked(row)
    known = version(row.library).partition("+")[0] if row.library else ""
    below = "" if row.library in ("torch", "jax", "flax") else version("torch")
    return {
        "library": row.library, "version": known, "torch": below.partition("+")[0],
        "layer": row.layer, "mode": row.mode, "says": said(row.options),
        "lines": lines(row), "held": len(report.held),
        "broken": [x.law for x in report.broken],
        "not asked": [x.law for x in report.findings if x.verdict == "not asked"],
    }  # fmt: skip


def said(options):
    """Return what is said beside the subject and its reference, as in a call."""
    return ", ".join(f"{x}={y!r}" for x, y in options.items())


def text_of(table):
    """Return the table as JSON, one layer a line."""
    lines = (f"  {json.dumps(row)}" for row in table["layers"])
    head = f'{{"date": {json.dumps(table["date"])}, "layers": [\n'
    return head + ",\n".join(lines) + "\n]}\n"


if __name__ == "__main__":
    table = {"date": date.today().isoformat(), "layers": []}
    for row in rows():
        table["layers"].append(found(row))
        print(row.library, row.key, table["layers"][-1]["broken"], flush=True)
    STORE.write_text(text_of(table), encoding="utf-8")
