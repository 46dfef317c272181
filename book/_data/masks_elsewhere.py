"""Ask libraries what masks mean, for chapter 4: see __main__.py.

Three keys have equal scores and the values 1, 10 and 100, so the output tells which
keys were averaged. Chapter 4 explains the probe. It takes half a minute and needs

    pip install torch jax flax keras onnx onnxruntime x-transformers
"""

import os
from importlib.metadata import version

import numpy as np
import torch

os.environ.setdefault("KERAS_BACKEND", "jax")

VALUES = np.array([[1.0], [10.0], [100.0]], dtype=np.float32)
FIRST = np.array([[True, False, False]])
# Ways to say that the query may attend to the first key only.
MASKS = {
    "True": FIRST,
    "0, -inf": np.where(FIRST, 0, -np.inf).astype(np.float32),
    "1.0, 0.0": FIRST.astype(np.float32),
    "1, 0": FIRST.astype(np.int64),
}
PACKAGES = ("torch", "jax", "flax", "keras", "onnx", "onnxruntime", "x-transformers")


def torch_function(mask):
    """Return the answer of scaled_dot_product_attention."""
    q, k, v = torch.zeros(1, 1), torch.zeros(3, 1), torch.from_numpy(VALUES)
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(q, k, v, torch.from_numpy(mask))


@torch.no_grad()
def torch_module(mask, argument="attn_mask"):
    """Return the answer of MultiheadAttention, whose matrices are 0, 0, 1 and 1."""
    layer = torch.nn.MultiheadAttention(1, 1, bias=False)
    layer.in_proj_weight.copy_(torch.tensor([[0.0], [0.0], [1.0]]))
    layer.out_proj.weight.fill_(1.0)
    mask = torch.from_numpy(mask if argument == "attn_mask" else mask[0])
    q, v = torch.zeros(1, 1), torch.from_numpy(VALUES)
    return layer(q, v, v, **{argument: mask})[0]


def torch_padding(mask):
    """Return the answer of MultiheadAttention to its other mask."""
    return torch_module(mask, "key_padding_mask")


def jax_function(mask):
    """Return the answer of JAX, in its order (batch, tokens, heads, width)."""
    import jax

    q, k, v = np.zeros((1, 1, 1, 1)), np.zeros((1, 3, 1, 1)), VALUES[None, :, None]
    q, k = q.astype(np.float32), k.astype(np.float32)
    return jax.nn.dot_product_attention(q, k, v, mask=mask[None, None])


def flax_function(mask):
    """Return the answer of Flax."""
    import flax.nnx

    q, k = np.zeros((1, 1, 1), np.float32), np.zeros((3, 1, 1), np.float32)
    return flax.nnx.dot_product_attention(q, k, VALUES[:, None], mask=mask[None])


def keras_layer(mask):
    """Return the answer of MultiHeadAttention, whose matrices are 0, 0, 1 and 1."""
    import keras

    layer = keras.layers.MultiHeadAttention(1, 1, use_bias=False)
    q, v = np.zeros((1, 1, 1), np.float32), VALUES[None]
    layer(q, v)
    for weight in layer.weights:
        is_one = "value" in weight.path or "attention_output" in weight.path
        weight.assign(np.full(weight.shape, float(is_one)))
    return layer(q, v, attention_mask=mask[None])


def onnx_operator(mask):
    """Return the answer of the operator Attention in ONNX Runtime."""
    import onnx.helper as make
    import onnxruntime

    kinds = {"bool": 9, "float32": 1, "int64": 7}
    shapes = {"q": [1, 1, 1, 1], "k": [1, 1, 3, 1], "v": [1, 1, 3, 1]}
    inputs = [make.make_tensor_value_info(x, 1, shape) for x, shape in shapes.items()]
    inputs += [make.make_tensor_value_info("mask", kinds[mask.dtype.name], [1, 3])]
    output = make.make_tensor_value_info("y", 1, [1, 1, 1, 1])
    node = make.make_node("Attention", ["q", "k", "v", "mask"], ["y"])
    graph = make.make_graph([node], "probe", inputs, [output])
    opset = [make.make_opsetid("", 23)]
    model = make.make_model(graph, opset_imports=opset, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    q, k = np.zeros((1, 1, 1, 1), np.float32), np.zeros((1, 1, 3, 1), np.float32)
    feed = {"q": q, "k": k, "v": VALUES[None, None], "mask": mask}
    return session.run(None, feed)[0]


def x_transformers(mask):
    """Return the answer of Attend, the part of x-transformers that gets the mask."""
    from x_transformers.attend import Attend

    q, k = torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 3, 1)
    v = torch.from_numpy(VALUES)[None, None]
    return Attend()(q, k, v, mask=torch.from_numpy(mask)[None, None])[0]


LIBRARIES = {
    "torch F.scaled_dot_product_attention": torch_function,
    "torch MultiheadAttention attn_mask": torch_module,
    "torch MultiheadAttention key_padding_mask": torch_padding,
    "onnxruntime Attention": onnx_operator,
    "jax.nn.dot_product_attention": jax_function,
    "flax.nnx.dot_product_attention": flax_function,
    "keras MultiHeadAttention": keras_layer,
    "x_transformers Attend": x_transformers,
}


def answer_of(library, mask):
    """Return what a library answers, with one decimal, or that it refuses the mask."""
    try:
        return f"{np.asarray(library(mask)).item():.1f}"
    except ImportError:
        raise
    except Exception:  # each library has errors of its own
        return "refused"


def answers_of(library):
    """Return the answers to each mask, and to one under which no key is allowed."""
    answers = {kind: answer_of(library, mask) for kind, mask in MASKS.items()}
    true_hides = answers["True"] == "55.0"
    return answers | {"no key": answer_of(library, np.full_like(FIRST, true_hides))}


def results():
    """Yield the versions, and what each library answers."""
    yield "versions", {name: version(name).partition("+")[0] for name in PACKAGES}
    for name, library in LIBRARIES.items():
        yield name, answers_of(library)
