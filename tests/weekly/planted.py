"""Mistakes that are put into public layers: python -m tests.weekly.planted

Each takes the place of a function of a library while its layer is asked. The command
prints, for each layer, how many lines its adapter takes, which laws the layer breaks as
it is, and which it breaks with each mistake.
"""

import importlib
import time
from unittest import mock

import torch
from torch.nn import functional as F

from tests.book.load import ROOT, load

layers = load(ROOT / "book" / "_data" / "public_layers.py")
SDPA = F.scaled_dot_product_attention
MODELS = "transformers.models"


def of(path):
    """Return what stands at a path such as package.module.Class.method."""
    home, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(home), name)
    except ModuleNotFoundError:
        return getattr(of(home), name)


def put(path, wrong):
    """Return a context in which the function at a path is wrong(the right one)."""
    return lambda: mock.patch(path, wrong(of(path)))


def fused(wrong):
    """Return a context in which PyTorch's fused function is a wrong one."""
    return put("torch.nn.functional.scaled_dot_product_attention", lambda right: wrong)


# Of the fused function


def twice_as_warm(q, k, v, attn_mask=None, **options):
    return SDPA(q / 2, k, v, attn_mask, **options)


def mask_of_the_first(q, k, v, attn_mask=None, **options):
    four = attn_mask is not None and attn_mask.ndim == 4
    return SDPA(q, k, v, attn_mask[:1] if four else attn_mask, **options)


def mask_on_the_queries(q, k, v, attn_mask=None, **options):
    square = attn_mask is not None and attn_mask.shape[-2] == attn_mask.shape[-1]
    return SDPA(q, k, v, attn_mask.mT if square else attn_mask, **options)


def keys_in_turn(q, k, v, attn_mask=None, enable_gqa=False, **options):
    n = q.shape[-3] // k.shape[-3]
    k, v = (x.repeat(*[1] * (x.ndim - 3), n, 1, 1) for x in (k, v))
    return SDPA(q, k, v, attn_mask, **options)


def in_turn(right):
    return lambda x, n: x.repeat(1, n, 1, 1)


def no_mask_beside_causal(right):
    def wrong(*given, attention_mask=None, use_causal_mask=False, **options):
        mask = None if use_causal_mask else attention_mask
        return right(
            *given, attention_mask=mask, use_causal_mask=use_causal_mask, **options
        )

    return wrong


# Of positions


def keys_turned_back(right):
    return lambda q, k, cos, sin, *a, **b: (
        right(q, k, cos, sin, *a, **b)[0], right(q, k, cos, -sin, *a, **b)[1]
    )  # fmt: skip


def after_instead_of_before(right):
    return staticmethod(lambda offset, *a, **b: right(-offset, *a, **b))


def halved(right):
    return lambda *a, **b: right(*a, **b) / 2


# Of what models learn, of caches and softmax


def without_gain(right):
    def forward(self, x):
        plain = torch.ones_like(self.weight)
        with mock.patch.dict(self._parameters, {"weight": plain}):
            return right(self, x)

    return forward


def keeps_six(right):
    def update(self, *given, **options):
        right(self, *given, **options)
        own = self.layers[0]
        own.keys, own.values = own.keys[..., -6:, :], own.values[..., -6:, :]
        n = given[0].shape[-2]
        if own.keys.shape[-2] < n:
            return given[0], given[1]
        return own.keys, own.values

    return update


def eager(change):
    """Return a wrong attention function of Transformers for gpt-oss and Gemma 2."""

    def wrong(module, q, k, v, mask, scaling, softcap=None, **_):
        n = module.num_key_value_groups
        k, v = (x.repeat_interleave(n, 1) for x in (k, v))
        S = q @ k.mT * scaling
        A = change(S, 0 if mask is None else mask, softcap, module)
        return (A @ v).transpose(1, 2).contiguous(), A

    return lambda right: wrong


def capped_with_the_mask(S, mask, cap, module):
    return (cap * torch.tanh((S + mask) / cap)).softmax(-1)


def never_capped(S, mask, cap, module):
    return (S + mask).softmax(-1)


def with_sinks(S, mask, sinks):
    column = sinks.reshape(1, -1, 1, 1).expand(*S.shape[:-1], 1)
    return torch.cat([S + mask, column], -1).softmax(-1)[..., :-1]


def sinks_scaled(S, mask, cap, module):
    return with_sinks(S, mask, module.sinks * module.scaling)


def rows_made_whole(S, mask, cap, module):
    A = with_sinks(S, mask, module.sinks)
    return A / A.sum(-1, keepdim=True)


def mask_dropped(right):
    return lambda q, k, v, bias=None, mask=None, **options: right(q, k, v, **options)


def late_scale(right):
    return lambda *a, scale=None, **options: right(*a, scale=scale * 2, **options)


# What is planted where, by the layer's name in the table of public layers

PLANTED = {
    "scaled_dot_product_attention, enable_gqa=True": [fused(keys_in_turn)],
    "BertSelfAttention, sdpa": [fused(twice_as_warm), fused(mask_of_the_first)],
    "GPT2Attention, sdpa": [fused(mask_on_the_queries), fused(twice_as_warm)],
    "LlamaAttention, sdpa": [
        put(f"{MODELS}.llama.modeling_llama.apply_rotary_pos_emb", keys_turned_back),
        put("transformers.integrations.sdpa_attention.repeat_kv", in_turn),
    ],
    "Qwen3Attention, sdpa, with its cache": [
        put(f"{MODELS}.qwen3.modeling_qwen3.Qwen3RMSNorm.forward", without_gain),
        put("transformers.cache_utils.DynamicCache.update", keeps_six),
    ],
    "Gemma2Attention, eager": [
        put(f"{MODELS}.gemma2.modeling_gemma2.eager_attention_forward", eager(x))
        for x in (capped_with_the_mask, never_capped)
    ],
    "GptOssAttention, eager": [
        put(f"{MODELS}.gpt_oss.modeling_gpt_oss.eager_attention_forward", eager(x))
        for x in (sinks_scaled, rows_made_whole)
    ],
    "T5Attention, sdpa, with its bias": [
        put(f"{MODELS}.t5.modeling_t5.T5Attention._relative_position_bucket",
            after_instead_of_before),
        put(f"{MODELS}.t5.modeling_t5.T5Attention.compute_bias", halved),
    ],
    "MultiHeadAttention": [
        put("keras.layers.MultiHeadAttention.call", no_mask_beside_causal)
    ],
    "dot_product_attention": [put("jax.nn.dot_product_attention", late_scale)],
    "nnx.MultiHeadAttention": [put("jax.nn.dot_product_attention", mask_dropped)],
    "Attention, fused_attn=True": [fused(mask_on_the_queries), fused(twice_as_warm)],
    "Attention, flash=True, with a context": [
        fused(mask_of_the_first), fused(twice_as_warm),
    ],
}  # fmt: skip


def rows():
    """Return the rows of the table of public layers into which something is planted."""
    return [row for row in layers.rows() if row.key in PLANTED]


def broken(row, plant=None):
    """Return the laws that a layer breaks, with a mistake or as it is."""
    if plant is None:
        return {x.law for x in layers.checked(row).broken}
    layers.checked(row, ["calls_agree"])  # its library is imported now
    with plant():
        return {x.law for x in layers.checked(row).broken}


if __name__ == "__main__":
    for row in rows():
        began = time.process_time()
        plain = broken(row)
        took = time.process_time() - began
        caught = [sorted(broken(row, x) - plain) for x in PLANTED[row.key]]
        names = [", ".join(x[:4]) or "NOT CAUGHT" for x in caught]
        cells = row.library, row.key, layers.lines(row), sorted(plain), f"{took:.1f} s"
        print("|", *cells, *names, sep=" | ", flush=True)
