"""Find out what was handed in: a function or a module, of NumPy or of torch."""

import functools
import inspect
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from mha.laws.subjects import subject as functions
from mha.laws.subjects import tensors
from mha.laws.subjects.adapter import Adapter
from mha.laws.subjects.conventions import BY_NAME, MASK_LIKE, Conventions
from mha.laws.subjects.encoder import StackFunction
from mha.laws.subjects.subject import (
    Broke,
    NotApplicable,
    Subject,
    WrongShape,
    holds_several,
)
from mha.laws.subjects.twins import refuse
from mha.zoo import Exhibit

ACCEPTED = (
    "an attention function f(Q, K, V, mask=None), a multi-head function "
    "f(X, W_Q, W_K, W_V, W_O, n_heads, mask=None) or an encoder "
    "f(X, layers, n_heads, mask=None), in NumPy or torch, a module of mha.nn, "
    "torch.nn.MultiheadAttention, TransformerEncoderLayer or TransformerEncoder, "
    "a member of mha.zoo, or a laws.Adapter around anything else"
)
FIRST_OF_STACK = ("weights", "layers")
FIRST_OF_LAYER = ("W_Q", "W_q", "w_q", "Wq", "wq")


def as_subject(target: Any, said: Conventions | None = None) -> Subject:
    """Return the subject behind `target`, or say what would have been accepted.

    What is `said` about it stands above what its adapter says, and that above names.
    """
    if isinstance(target, Subject):
        if said is None or not said.said():
            return target
        target = target.source
    subject = _as_subject(target, said or Conventions())
    subject.source = target
    return subject


def _as_subject(target, said):
    if isinstance(target, Adapter):
        return _as_adapted(target, target.joined(said))
    if isinstance(target, Exhibit):
        said = Conventions(**target.says).joined(said)
    torch = sys.modules.get("torch")
    if isinstance(target, type) or not callable(target):
        is_class = isinstance(target, type)
        got = f"the class {target.__name__}" if is_class else type(target).__name__
        raise TypeError(f"subject must be {ACCEPTED}, got {got}")
    if torch is not None and isinstance(target, torch.nn.Module):
        return _as_module(target, _name(target), torch, said)
    return _as_function(target, _name(target), said)


def _as_function(target, name, said):
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
    subjects = [
        kind(target, name, accepts, needs_mask, lead, **options) for lead in leads
    ]
    if getattr(target, "on_tensors", False) and "torch" in sys.modules:
        subjects = [subject.but(tensors=True) for subject in subjects]
    return _first_that_runs(*(_told(subject, said) for subject in subjects))


def _as_adapted(adapter, said):
    kinds = {"attention": functions.Attention, "layer": functions.AdaptedLayer}
    kind: Any = kinds.get(adapter.kind, StackFunction)
    lead = int(adapter.batch_first is not None)
    name = adapter.name or _name(adapter.run)
    subject = kind(adapter.call, name, adapter.accepts, lead=lead)
    subject.spreads = True
    if adapter.kind != "attention":
        subject.takes_bias = adapter.biases
    if adapter.kind == "encoder":
        subject.many, subject.depth = True, 2
    if adapter.batch_first is False:
        # The axes of heads have no place there.
        subject.takes_heads = False
    return _first_that_runs(_told(subject, said))


def _told(subject, said):
    """Return the subject, which knows what was said; names say something too."""
    if name := said.mask_name(subject.accepts):
        said = Conventions(**BY_NAME.get(name, {})).joined(said)
    subject.said, subject.cast = said, said.dtype
    four_axes = said.layout is not None or said.n_kv_heads is not None
    if subject.kind == "attention":
        subject.lead = 2 if four_axes else subject.lead
        if said.layout == "bnhd":
            subject.target = _heads_behind(subject.target)
    elif said.layout:
        raise ValueError(f"layout is for attention functions, {subject.name} is none")
    elif subject.kind == "encoder" and (said.n_kv_heads or "16" in str(said.dtype)):
        raise ValueError(
            f"{subject.name} is an encoder, whose attention is seen through norms; "
            "n_kv_heads and a dtype of 16 bits are for attention functions and layers"
        )
    elif subject.kind == "encoder" and said.dtype == "float32":
        # Large numbers stand around the small ones that are seen through norms.
        subject.said = Conventions(tolerance=1e-3).joined(said)
    return subject


def _heads_behind(function):
    """Return a function of (b, h, n, d) that calls one of (b, n, h, d)."""

    def call(*tokens, **options):
        result = function(*(x.swapaxes(1, 2) for x in tokens), **options)
        Y, *rest = result if holds_several(result) else [result]
        return Y.swapaxes(1, 2), *rest

    return call


def _as_module(target, name, torch, said):
    refuse(target, name)
    # What True means in the masks of torch.nn is known.
    known = replace(said, mask_true=None)
    accepts, needs_mask = _parameters(target.forward)
    if isinstance(target, torch.nn.MultiheadAttention):
        accepts = [x for x in accepts if x != "is_causal"]
        return _told(tensors.TorchModule(target, name, accepts), known)
    if _is_stack(target, torch.nn, "TransformerEncoder", "TransformerEncoderLayer"):
        return _told(tensors.TorchEncoderModule(target, name, ("src", "mask")), known)
    if _is_stack(target, sys.modules.get("mha.nn"), "Encoder", "EncoderLayer"):
        return _told(tensors.EncoderModule(target, name, accepts, needs_mask), said)
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
    if subject.groups:
        said = Conventions(n_kv_heads=subject.groups).joined(said)
    subject = _told(subject, said)
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
    X, others, errors = np.eye(2), [], {False: [], True: []}
    for subject in subjects:
        try:
            subject.attend(X, X, X)
        except WrongShape:
            others.append(subject)
        except (Broke, NotApplicable) as error:
            errors[subject.tensors].append(error)
        else:
            others.insert(0, subject)
            break
    if others:
        others[0].trace = functions.Trace()
        return others[0]
    texts = {name: _furthest(errors[name]) for name in errors if errors[name]}
    what = f"{subjects[0].name} gives no answer to {subjects[0].tried}"
    if len(set(texts.values())) == 1:
        texts = {False: texts.popitem()[1]}
        raise TypeError(f"{what}, as arrays or as tensors, with or without axes in "
                        f"front: {texts[False]}")  # fmt: skip
    raise TypeError(f"{what}, with or without axes in front. Arrays: {texts[False]}. "
                    f"Tensors: {texts[True]}")  # fmt: skip


def _furthest(errors):
    """Return the text of the error that happened in the latest line."""

    def line(error):
        # Nothing was raised: it came to its end.
        if error.__cause__ is None:
            return sys.maxsize
        return int(getattr(error, "where", "").rpartition(":")[2] or 0)

    last = max(errors, key=line)
    where = getattr(last, "where", "")
    return f"{last} ({where})" if where else str(last)


def _parameters(function):
    """Return the names of the arguments, and whether there must be a mask."""
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError):
        # torch's own function is written in C++ and does not tell.
        return ("query", "key", "value", "attn_mask", "is_causal"), False
    names = [name for name, p in parameters.items() if p.kind is not p.VAR_KEYWORD]
    masks = [parameters[name] for name in names if MASK_LIKE.search(name)]
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
