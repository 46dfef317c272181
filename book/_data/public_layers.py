"""Ask the laws of layers that are in use: python book/_data/public_layers.py

Each function below puts given weights into a layer of some library and calls it; the
page "Test your own attention" shows them. What the laws said is stored beside this
file. It takes about four minutes and needs

    pip install torch transformers keras flax jax timm x-transformers
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from mha import laws

os.environ.setdefault("KERAS_BACKEND", "torch")

STORE = Path(__file__).with_suffix(".json")
QKV = ("W_Q", "W_K", "W_V")


def put(linear, W):
    """Write W, which is multiplied from the right, into a torch.nn.Linear."""
    linear.weight.data, linear.bias = W.T.contiguous(), None


# PyTorch


def grouped_sdpa(query, key, value, attn_mask=None, is_causal=False):
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask, is_causal=is_causal, enable_gqa=True
    )


def flex(query, key, value):
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention(query, key, value)


# Transformers


def bert(x, weights, n_heads, mask=None, mode="sdpa"):
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertSelfAttention

    sizes = {"hidden_size": x.shape[-1], "num_attention_heads": n_heads}
    layer = BertSelfAttention(BertConfig(**sizes, attn_implementation=mode)).eval()
    put(layer.query, weights["W_Q"])
    put(layer.key, weights["W_K"])
    put(layer.value, weights["W_V"])
    return layer(x, mask)[0] @ weights["W_O"]


def gpt2(x, weights, n_heads, mask=None, mode="sdpa"):
    from transformers import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

    n, d = x.shape[1:]
    config = GPT2Config(n_embd=d, n_head=n_heads, attn_implementation=mode)
    layer = GPT2Attention(config, layer_idx=0).to(x.dtype).eval()
    # Conv1D of GPT-2 keeps its matrix as we do: x @ weight.
    layer.c_attn.weight.data = torch.cat([weights[name] for name in QKV], 1)
    layer.c_proj.weight.data = weights["W_O"]
    # Without a mask, sdpa would hide the future.
    mask = torch.ones(n, n, dtype=torch.bool) if mask is None else mask
    return layer(x, attention_mask=mask)[0]


def llama(x, weights, n_heads, mask=None, groups=None, turns=0, mode="sdpa"):
    from transformers import LlamaConfig
    from transformers.models.llama import modeling_llama as home

    n, d = x.shape[1:]
    config = LlamaConfig(
        hidden_size=d, num_attention_heads=n_heads, attn_implementation=mode,
        num_key_value_heads=groups or n_heads, head_dim=d // n_heads,
    )  # fmt: skip
    layer = home.LlamaAttention(config, layer_idx=0).eval()
    for name, part in zip("QKVO", "qkvo", strict=True):
        put(getattr(layer, f"{part}_proj"), weights[f"W_{name}"])
    # At position 0 nothing is turned. The laws ask odd widths, too.
    both = home.LlamaRotaryEmbedding(config)(x, turns * torch.arange(n)[None])
    turn = [part[..., : d // n_heads] for part in both]
    # Without a mask, sdpa would hide the future.
    mask = torch.ones(n, n, dtype=torch.bool) if mask is None else mask
    return layer(x, turn, mask)[0]


# Keras, JAX and Flax


def keras_layer(x, weights, n_heads, mask=None, is_causal=False):
    import keras

    d = x.shape[-1]
    layer = keras.layers.MultiHeadAttention(
        n_heads, d // n_heads, use_bias=False, dtype=str(x.dtype)[6:]
    )
    layer.build(x.shape, x.shape)
    three = [weights[name].reshape(d, n_heads, -1) for name in QKV]
    layer.set_weights([*three, weights["W_O"].reshape(n_heads, -1, d)])
    return layer(x, x, attention_mask=mask, use_causal_mask=is_causal)


def flax_nnx(x, weights, n_heads, mask=None):
    from flax import nnx

    d, own = x.shape[-1], {"use_bias": False, "decode": False}
    layer = nnx.MultiHeadAttention(n_heads, d, rngs=nnx.Rngs(0), **own)
    for part, name in zip((layer.query, layer.key, layer.value), QKV, strict=True):
        part.kernel.value = weights[name].reshape(d, n_heads, -1)
    layer.out.kernel.value = weights["W_O"].reshape(n_heads, -1, d)
    return layer(x, mask=mask)


def jax_function():
    import jax

    return jax.nn.dot_product_attention


# timm and x-transformers


def timm_layer(x, weights, n_heads, mask=None, is_causal=False, fused=True):
    from timm.layers import Attention

    layer = Attention(x.shape[-1], n_heads).eval()
    layer.fused_attn = fused
    put(layer.qkv, torch.cat([weights[name] for name in QKV], 1))
    put(layer.proj, weights["W_O"])
    return layer(x, mask, is_causal)


def x_transformers(x, weights, n_heads, mask=None, flash=False):
    from x_transformers.x_transformers import Attention

    d = x.shape[-1]
    sizes = {"heads": n_heads, "dim_head": d // n_heads, "project_out": True}
    layer = Attention(d, **sizes, flash=flash).eval()
    put(layer.to_q, weights["W_Q"])
    put(layer.to_k, weights["W_K"])
    put(layer.to_v, weights["W_V"])
    put(layer.to_out, weights["W_O"])
    return layer(x, attn_mask=mask)


def cross(x, weights, n_heads, key, value, mask=None):
    from x_transformers.x_transformers import Attention

    d = x.shape[-1]
    sizes = {"heads": n_heads, "dim_head": d // n_heads, "project_out": True}
    layer = Attention(d, dim_context=2 * d, **sizes, flash=True).eval()
    # The layer reads one context: the keys beside the values, and W_K reads its half.
    none = torch.zeros_like(weights["W_K"])
    put(layer.to_q, weights["W_Q"])
    put(layer.to_k, torch.cat([weights["W_K"], none]))
    put(layer.to_v, torch.cat([none, weights["W_V"]]))
    put(layer.to_out, weights["W_O"])
    return layer(x, torch.cat([key, value], -1), attn_mask=mask)


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


def four_linears(x, weights, n_heads, mask=None):
    layer = MultiHeadedAttention(n_heads, x.shape[-1])
    for linear, name in zip(layer.linears, (*QKV, "W_O"), strict=True):
        put(linear, weights[name])
    return layer(x, x, x, mask)


def attention_of_lengths(queries, keys, values, valid_lens=None):
    """Attend to the first keys, in the style of Dive into Deep Learning."""
    scores = queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5
    if valid_lens is not None:
        hidden = torch.arange(keys.shape[1]) >= valid_lens[:, None, None]
        scores = scores.masked_fill(hidden, -1e6)
    return scores.softmax(-1) @ values


# The table


@dataclass
class Tried:
    """One layer in one mode: what `laws.check` is given, and with which words."""

    library: str  # its name on PyPI, "" for our own text
    layer: str
    mode: str
    make: Callable
    words: dict
    fast: bool = True  # whether PyTorch may take the fast path of its own layers

    @property
    def key(self):
        return ", ".join(filter(None, (self.layer, self.mode)))


def adapted(library, layer, run, mode="", *, kind="multi_head", **words):
    """Return a row for a function that is wrapped in an Adapter."""
    form = {"kind": kind} if kind == "attention" else {"batch_first": True}
    return Tried(library, layer, mode, partial(laws.Adapter, run, **form), words)


def direct(library, layer, make, mode="", *, fast=True, **words):
    """Return a row for something that is handed in as it is."""
    return Tried(library, layer, mode, make, words, fast)


def rows():
    """Return everything that is tried."""
    sdpa, many = F.scaled_dot_product_attention, nn.MultiheadAttention
    one, tower = nn.TransformerEncoderLayer, nn.TransformerEncoder
    first = {"batch_first": True}
    llamas = partial(adapted, "transformers", "LlamaAttention")
    return [
        direct("torch", "scaled_dot_product_attention", lambda: sdpa),
        adapted("torch", "scaled_dot_product_attention", grouped_sdpa,
                "enable_gqa=True", kind="attention", n_kv_heads=3),
        adapted("torch", "flex_attention", flex, kind="attention", layout="bhnd"),
        direct("torch", "MultiheadAttention", lambda: many(8, 2), "batch_first=False"),
        direct("torch", "MultiheadAttention", lambda: many(8, 2, **first),
               "batch_first=True"),
        direct("torch", "TransformerEncoderLayer", lambda: one(6, 2, 8),
               "batch_first=False"),
        direct("torch", "TransformerEncoderLayer", lambda: one(6, 2, 8, **first),
               "batch_first=True"),
        direct("torch", "TransformerEncoderLayer",
               lambda: one(6, 2, 8, norm_first=True, **first),
               "batch_first=True, norm_first=True"),
        direct("torch", "TransformerEncoderLayer", lambda: one(6, 2, 8, **first),
               "batch_first=True, fast path switched off", fast=False),
        direct("torch", "TransformerEncoder",
               lambda: tower(one(6, 2, 8), 2, enable_nested_tensor=False),
               "batch_first=False"),
        direct("torch", "TransformerEncoder",
               lambda: tower(one(6, 2, 8, **first), 2, enable_nested_tensor=False),
               "batch_first=True"),
        adapted("transformers", "BertSelfAttention", bert, "sdpa"),
        adapted("transformers", "BertSelfAttention", partial(bert, mode="eager"),
                "eager", mask_true="added"),
        adapted("transformers", "GPT2Attention", gpt2, "sdpa"),
        adapted("transformers", "GPT2Attention", partial(gpt2, mode="eager"), "eager",
                mask_true="added"),
        llamas(llama, "sdpa, all at position 0"),
        llamas(partial(llama, mode="eager"), "eager, all at position 0",
               mask_true="added", tolerance=1e-4),
        llamas(partial(llama, groups=2), "sdpa, 2 key heads", n_kv_heads=2),
        llamas(partial(llama, turns=1), "sdpa, rotary positions", design="rotary()",
               tolerance=1e-4),
        llamas(partial(llama, turns=1, groups=2), "sdpa, rotary positions, 2 key heads",
               design="rotary(), grouped(2)", tolerance=1e-4),
        adapted("keras", "MultiHeadAttention", keras_layer, mask_shape="bqk",
                dtype="float32"),
        adapted("keras", "MultiHeadAttention", keras_layer, "in float64",
                mask_shape="bqk"),
        direct("jax", "dot_product_attention", jax_function, layout="bnhd",
               dtype="float32"),
        direct("jax", "dot_product_attention", jax_function, "3 key heads",
               layout="bnhd", dtype="float32", n_kv_heads=3),
        adapted("flax", "nnx.MultiHeadAttention", flax_nnx, dtype="float32"),
        adapted("timm", "Attention", timm_layer, "fused_attn=True"),
        adapted("timm", "Attention", partial(timm_layer, fused=False),
                "fused_attn=False"),
        adapted("x-transformers", "Attention", x_transformers, dtype="float32"),
        adapted("x-transformers", "Attention", x_transformers, "in float64"),
        adapted("x-transformers", "Attention", partial(x_transformers, flash=True),
                "flash=True"),
        adapted("x-transformers", "Attention", cross, "flash=True, dim_context"),
        direct("", "one fused matrix, as in nanoGPT", lambda: Fused(8, 2),
               causal="built in"),
        adapted("", "four linear layers, as in The Annotated Transformer", four_linears,
                mask_shape="bqk"),
        direct("", "lengths, as in Dive into Deep Learning",
               lambda: attention_of_lengths),
    ]  # fmt: skip


def found(row):
    """Return what the laws say of one row, as it is stored."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(row.fast)
    try:
        report = laws.check(row.make(), **row.words)
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
    by = {}
    for finding in report.findings:
        by.setdefault(finding.verdict, []).append(finding.law.slug)
    known = version(row.library).partition("+")[0] if row.library else ""
    below = "" if row.library in ("torch", "jax", "flax") else version("torch")
    return {
        "library": row.library, "version": known, "torch": below.partition("+")[0],
        "layer": row.layer, "mode": row.mode,
        "says": said(row.words), "held": len(by.get("holds", ())),
        "broken": by.get("broken", []) + by.get("raised", []),
        "declared": by.get("declared", []), "not asked": by.get("not asked", []),
    }  # fmt: skip


def said(words):
    """Return the conventions as they are written in a call."""
    return ", ".join(f"{x}={y!r}" for x, y in words.items())


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
