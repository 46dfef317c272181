"""Find out what was handed in; one small object by which anything else is checked."""

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mha.laws import module
from mha.laws.stack import StackFunction
from mha.laws.subject import (
    OTHER_NAMES,
    WEIGHTS_NAMES,
    AdaptedLayer,
    Attention,
    Broke,
    LayerFunction,
    Subject,
    WrongShape,
    results_in,
)
from mha.laws.words import BY_NAME, MASK_LIKE, MASK_NAMES, Conventions, NotApplicable

__all__ = ["Adapter", "as_subject"]

ACCEPTED = (
    "an attention function f(Q, K, V, mask=None), a multi-head function "
    "f(X, W_Q, W_K, W_V, W_O, n_heads, mask=None) or an encoder "
    "f(X, layers, n_heads, mask=None), in NumPy or torch, a module of mha.nn, "
    "torch.nn.MultiheadAttention, TransformerEncoderLayer or TransformerEncoder, "
    "a member of mha.zoo, or a laws.Adapter around anything else"
)
FIRST_OF_STACK = ("weights", "layers")
FIRST_OF_LAYER = ("W_Q", "W_q", "w_q", "Wq", "wq")
KINDS = ("attention", "layer", "encoder_layer", "encoder")
# What is handed over by name where there is a place for it, and must have a value.
HANDED: dict[str, Any] = {"is_causal": False, "training": False, "norm_first": False}
HANDED |= dict.fromkeys(WEIGHTS_NAMES, False)
# A layer may be given other tokens to attend to.
OTHERS = frozenset(name for pair in OTHER_NAMES for name in pair)


@dataclass(frozen=True)
class Adapter(Conventions):
    """Say how something is called that `check` cannot read by itself.

    You write one function, `run`, that puts given weights into your layer and calls
    it. Masks, layouts and the rest are translated, so that `run` never has to: besides
    what is listed here, an adapter takes by name all words of `Conventions`.

    Parameters
    ----------
    run : callable
        ``run(X, weights, n_heads, mask=None)`` for a layer, where ``weights`` is a dict
        with W_Q, W_K, W_V and W_O that stand on the right of X; the other kinds are
        below. Without an argument `mask` it is asked about no mask; `is_causal`,
        `training`, `norm_first` and `return_weights` are handed over by name too, if
        they are there, and to a layer X_k and X_v (or key and value), the tokens that
        are attended to. It gets and returns arrays, or tensors if arrays do not work.
    kind : {"layer", "attention", "encoder_layer", "encoder"}, default "layer"
        "attention" is run as ``run(Q, K, V, mask)``. "encoder_layer" gets the weights
        that `mha.encoder_layer` takes, and "encoder" a list of such dicts.
    batch_first : bool, optional
        True: X is always (batch, n, d). False: X is always (n, batch, d). By default
        it comes as it is, with or without a batch in front.
    biases : bool, default False
        Whether `run` takes biases too, as b_Q, b_K, b_V, b_O, and in an encoder b_1,
        b_2, bias_1, bias_2. An encoder's other weights are W_1 of (d_model, d_ff), W_2
        of (d_ff, d_model) for the feed-forward part, and gain_1, gain_2 of the norms.
    name : str, optional
        Heads the report; by default the name of `run`.

    Raises
    ------
    TypeError
        If `run` cannot be called.
    ValueError
        If `kind` is none of those above, or a word none of `Conventions`.

    Examples
    --------
    A layer that loops over its heads, each with matrices of its own:

    >>> import numpy as np
    >>> from mha import laws, masked_softmax
    >>> def per_head(X, weights, n_heads, mask=None):
    ...     heads, blocks = [], np.split(np.arange(X.shape[-1]), n_heads)
    ...     for block in blocks:
    ...         names = "W_Q", "W_K", "W_V"
    ...         Q, K, V = (X @ weights[name][:, block] for name in names)
    ...         scores = Q @ K.T / len(block) ** 0.5
    ...         heads.append(masked_softmax(scores, mask) @ V)
    ...     return np.concatenate(heads, -1) @ weights["W_O"]
    >>> laws.check(laws.Adapter(per_head)).holds
    True
    """

    run: Callable[..., Any]
    kind: str = "layer"
    batch_first: bool | None = None
    biases: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        if not callable(self.run) or isinstance(self.run, type):
            raise TypeError(f"run must be a function, got {self.run!r}")
        if self.kind not in KINDS:
            names = ", ".join(map(repr, KINDS))
            raise ValueError(f"kind must be one of {names}, got {self.kind!r}")
        super().__post_init__()

    @functools.cached_property
    def accepts(self) -> dict[str, bool]:
        """What `run` has a place for, and whether it must be given: {name: bool}."""
        named = {
            name: p
            for name, p in inspect.signature(self.run).parameters.items()
            if name in HANDED
            or MASK_LIKE.search(name)
            or (self.kind == "layer" and name in OTHERS)
        }
        return {name: p.default is p.empty for name, p in named.items()}

    def call(self, X: Any, *others: Any, **options: Any) -> Any:
        """Return what `run` gives, with the batch where the laws have it."""
        due = {name: HANDED.get(name) for name, must in self.accepts.items() if must}
        due |= {name: X for name in due.keys() & OTHERS}
        options, run = due | options, self.run
        if self.batch_first is False:
            asked = options.keys() & OTHERS
            options |= {name: options[name].swapaxes(0, 1) for name in asked}
            run = swapped(run, (0, 1), 3 if self.kind == "attention" else 1)
        return run(X, *others, **options)


def swapped(
    function: Callable[..., Any], axes: tuple[int, int], count: int
) -> Callable[..., Any]:
    """Return it with two axes swapped, in the first arguments and in the output."""

    def call(*args, **options):
        given = [x.swapaxes(*axes) for x in args[:count]]
        Y, *rest = results_in(function(*given, *args[count:], **options))
        return Y.swapaxes(*axes), *rest

    return call


def as_subject(
    target: Any, said: Conventions | None = None, make: Callable[..., Any] | None = None
) -> Subject:
    """Return the subject behind `target`, or say what would have been accepted.

    What is `said` about it stands above what its adapter says, and that above names.
    """
    if target is None and make is not None:
        target = make(d_model=8, n_heads=2)
    if isinstance(target, Subject):
        if make is None and (said is None or not said.said()):
            return target
        target = target.source
    said = said or Conventions()
    if isinstance(target, Adapter):
        subject = _as_adapted(target, target.joined(said))
    else:
        subject = _as_found(target, said, make)
    subject.source = target
    return subject


def _as_found(target, said, make):
    said = Conventions(**getattr(target, "says", {})).joined(said)
    torch = sys.modules.get("torch")
    if isinstance(target, type) or not callable(target):
        is_class = isinstance(target, type)
        got = f"the class {target.__name__}" if is_class else type(target).__name__
        raise TypeError(f"subject must be {ACCEPTED}, got {got}")
    if torch is not None and isinstance(target, torch.nn.Module):
        accepts, needs_mask, _ = _parameters(target.forward)
        found = module.as_module(target, _name(target), accepts, needs_mask, said, make)
        return _first_that_runs(*(_told(x, x.said) for x in found))
    return _as_function(target, _name(target), said)


def _as_function(target, name, said):
    accepts, needs_mask, takes_all = _parameters(target)
    kind: Any = Attention
    least, leads, options = 3, (0, 2, 1), {}
    if any(p in FIRST_OF_LAYER for p in accepts):
        kind, least, leads = LayerFunction, 6, (0, 1)
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
    found = _first_that_runs(*(_told(subject, said) for subject in subjects))
    return _with_mask_among(found) if takes_all else found


def _with_mask_among(subject):
    """Return it with that name of a mask which its **options hand on without error."""
    X = np.eye(2)
    for name in MASK_NAMES * (
        subject.mask_name is None and subject.kind == "attention"
    ):
        named = subject.but(accepts=subject.accepts | {name})
        try:
            named.attend(X, X, X, np.ones((2, 2), bool))
        except (Broke, NotApplicable):
            continue
        return named
    return subject


def _as_adapted(adapter, said):
    kinds = {"attention": Attention, "layer": AdaptedLayer}
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
            subject.target = swapped(subject.target, (1, 2), 3)
    elif said.layout or (subject.kind == "encoder" and said.n_kv_heads):
        word = "layout" if said.layout else "n_kv_heads"
        raise ValueError(f"{word} is for attention functions, {subject.name} is none")
    return subject


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
        others[0].trace = {name: set() for name in others[0].trace}
        return others[0]
    asked = f"{subjects[0].name} gives no answer to {subjects[0].tried}"
    what = f"{asked}, with or without "
    arrays, tensors = (_furthest(errors[name]) for name in (False, True))
    if arrays in (tensors, "") or not tensors:
        raise TypeError(f"{what}axes in front: {arrays or tensors}")
    raise TypeError(f"{what}axes in front. Arrays: {arrays}. Tensors: {tensors}")


def _furthest(errors):
    """Return the text of the error that happened in the latest line; raising none."""
    last = max(errors, key=lambda error: error.line, default="")
    return f"{last} ({last.where})" if getattr(last, "where", "") else str(last)


def _parameters(function):
    """Return its arguments, whether there must be a mask, and whether it takes all."""
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError):
        # torch's own function is written in C++ and does not tell.
        return ("query", "key", "value", "attn_mask", "is_causal"), False, False
    names = [name for name, p in parameters.items() if p.kind is not p.VAR_KEYWORD]
    masks = [parameters[name] for name in names if MASK_LIKE.search(name)]
    must = any(p.default is p.empty for p in masks)
    return tuple(names), must, len(names) < len(parameters)


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
