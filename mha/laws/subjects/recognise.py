"""Find out what was handed in: a function or a module, of NumPy or of torch."""

import functools
import inspect
import sys
from typing import Any

import numpy as np

from mha.laws.subjects import subject as functions
from mha.laws.subjects import tensors
from mha.laws.subjects.adapter import Adapter
from mha.laws.subjects.encoder import StackFunction
from mha.laws.subjects.subject import Broke, NotApplicable, Subject, WrongShape
from mha.laws.subjects.twins import refuse

ACCEPTED = (
    "an attention function f(Q, K, V, mask=None), a multi-head function "
    "f(X, W_Q, W_K, W_V, W_O, n_heads, mask=None) or an encoder "
    "f(X, layers, n_heads, mask=None), in NumPy or torch, a module of mha.nn, "
    "torch.nn.MultiheadAttention, TransformerEncoderLayer or TransformerEncoder, "
    "a member of mha.zoo, or a laws.Adapter around anything else"
)
FIRST_OF_STACK = ("weights", "layers")
FIRST_OF_LAYER = ("W_Q", "W_q", "w_q", "Wq", "wq")


def as_subject(target: Any) -> Subject:
    """Return the subject behind `target`, or say what would have been accepted."""
    if isinstance(target, Subject):
        return target
    if isinstance(target, Adapter):
        return _as_adapted(target)
    torch = sys.modules.get("torch")
    if isinstance(target, type) or not callable(target):
        is_class = isinstance(target, type)
        got = f"the class {target.__name__}" if is_class else type(target).__name__
        raise TypeError(f"subject must be {ACCEPTED}, got {got}")
    if torch is not None and isinstance(target, torch.nn.Module):
        return _as_module(target, _name(target), torch)
    return _as_function(target, _name(target))


def _as_function(target, name):
    accepts, needs_mask = _parameters(target)
    kind: Any = functions.Attention
    least, leads, options = 3, (0, 2, 1), {}
    if any(p in FIRST_OF_LAYER for p in accepts):
        kind, least, leads = functions.LayerFunction, 6, (0, 1)
    if len(accepts) >= 3 and accepts[1] in FIRST_OF_STACK:
        kind, least, leads = StackFunction, 3, (0, 1)
        options = {"many": accepts[1] == "layers"}
    if len(accepts) < least:
        raise TypeError(f"subject must be {ACCEPTED}, got {name}({', '.join(accepts)})")
    return _first_that_runs(
        *(kind(target, name, accepts, needs_mask, lead, **options) for lead in leads)
    )


def _as_adapted(adapter):
    kinds = {"attention": functions.Attention, "layer": functions.AdaptedLayer}
    kind: Any = kinds.get(adapter.kind, StackFunction)
    subject = kind(adapter.call, adapter.name or _name(adapter.run), adapter.accepts)
    subject.always_causal = adapter.always_causal
    if adapter.kind != "attention":
        subject.takes_bias = adapter.biases
    if adapter.kind == "encoder":
        subject.many, subject.depth = True, 2
    return _first_that_runs(subject)


def _as_module(target, name, torch):
    refuse(target, name)
    accepts, needs_mask = _parameters(target.forward)
    if isinstance(target, torch.nn.MultiheadAttention):
        return tensors.TorchModule(target, name, set(accepts) - {"is_causal"})
    if _is_stack(target, torch.nn, "TransformerEncoder", "TransformerEncoderLayer"):
        return tensors.TorchEncoderModule(target, name, ("src", "mask"))
    if _is_stack(target, sys.modules.get("mha.nn"), "Encoder", "EncoderLayer"):
        return tensors.EncoderModule(target, name, accepts, needs_mask)
    four = (getattr(target, f"W_{letter}", None) for letter in "QKVO")
    if not all(isinstance(W, torch.nn.Linear) for W in four):
        raise TypeError(
            "a module must be an attention layer or encoder of torch.nn or mha.nn, or "
            f"have four torch.nn.Linear named W_Q, W_K, W_V, W_O, got {name}; give "
            "laws.check a laws.Adapter, or a function f(X, W_Q, W_K, W_V, W_O, "
            "n_heads, mask=None) that runs it with these matrices"
        )
    # A batch in front comes first: without it some answer, and mean something else.
    subject = tensors.Module(target, name, accepts, needs_mask, 1)
    return _first_that_runs(subject, subject.but(lead=0))


def _is_stack(target, home, many, one):
    """Whether it is one of the layers of `home`, or an encoder made of such layers."""
    if home is None:
        return False
    if isinstance(target, getattr(home, many)):
        target = next(iter(target.layers), None)
    return isinstance(target, getattr(home, one))


def _first_that_runs(*subjects):
    """Return the first reading of the subject under which it gives an answer."""
    if "torch" in sys.modules:
        # Functions are tried on arrays first, and then on tensors.
        subjects += tuple(x.but(tensors=True) for x in subjects if not x.tensors)
    X, others, errors = np.eye(2), [], []
    for subject in subjects:
        try:
            subject.attend(X, X, X)
            return subject
        except WrongShape:
            others.append(subject)
        except (Broke, NotApplicable) as error:
            errors.append(error)
    if others:
        return others[0]
    raise TypeError(
        f"{subjects[0].name} gives no answer to {subjects[0].tried}, as arrays or as "
        f"tensors, with or without axes in front: {errors[0]}"
    )


def _parameters(function):
    """Return the names of the arguments, and whether there must be a mask."""
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError):
        # torch's own function is written in C++ and does not tell.
        return ("query", "key", "value", "attn_mask", "is_causal"), False
    names = [name for name, p in parameters.items() if p.kind is not p.VAR_KEYWORD]
    masks = [parameters[name] for name in names if name in functions.MASK_NAMES]
    if len(names) < len(parameters):
        names.append("mask")
    return tuple(names), any(p.default is p.empty for p in masks)


def _name(target):
    if isinstance(target, functools.partial):
        return _name(target.func)
    owner = getattr(target, "__self__", target)
    if type(owner).__module__.startswith("mha.zoo"):
        return f"zoo.{owner.name}" + ("" if owner is target else f".{target.__name__}")
    named = target if hasattr(target, "__name__") else type(target)
    if named.__name__ == "<lambda>":
        return "a lambda"
    return _home(named.__module__ or "") + named.__name__


def _home(module):
    """Return the package one imports it from, with a dot."""
    root = module.partition(".")[0]
    if root == "mha":
        return "mha.nn." if module.startswith("mha.nn") else "mha."
    return "torch.nn." if root == "torch" and ".nn." in module else ""
