"""Find out what was handed in; one small object by which anything else is checked."""

import contextlib
import functools
import inspect
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mha.laws import module
from mha.laws.stack import Stack
from mha.laws.subject import (
    FOUR,
    OTHER_NAMES,
    Attention,
    Broke,
    Called,
    Layer,
    Subject,
    WrongShape,
    quiet,
    results_in,
)
from mha.laws.words import MASK_NAMES, TELLING_NAMES, Conventions, NotApplicable

__all__ = ["Adapter", "as_subject"]

ACCEPTED = (
    "an attention function f(Q, K, V, mask=None), a multi-head function "
    "f(X, W_Q, W_K, W_V, W_O, n_heads, mask=None) or an encoder "
    "f(X, layers, n_heads, mask=None), in NumPy or torch, a module of mha.nn, "
    "torch.nn.MultiheadAttention, TransformerEncoderLayer or TransformerEncoder, "
    "a member of mha.zoo, or a laws.Adapter around anything else"
)
KINDS: dict[str, Any] = {
    "attention": Attention, "layer": Layer, "encoder_layer": Stack,
    "encoder": functools.partial(Stack, many=True),
}  # fmt: skip
OTHERS = frozenset(name for pair in OTHER_NAMES for name in pair)


@dataclass(frozen=True)
class Adapter(Conventions):
    """Say how something is called that `check` cannot read by itself.

    You write one function, `run`, that puts given weights into your layer and calls
    it. An adapter takes by name all words of `Conventions`, too.

    Parameters
    ----------
    run : callable
        ``run(X, weights, n_heads, mask=None)`` for a layer, where ``weights`` is a dict
        with W_Q, W_K, W_V and W_O that stand on the right of X. Without an argument
        `mask` it is asked about no mask; `is_causal`, `training`, `norm_first` and
        `return_weights` are handed over by name too, if they are there, and to a layer
        X_k and X_v (or key and value), the tokens that are attended to. It gets and
        returns arrays, or tensors if arrays do not work.
    kind : {"layer", "attention", "encoder_layer", "encoder"}, default "layer"
        "attention" is run as ``run(Q, K, V, mask)``. "encoder_layer" gets the weights
        that `mha.encoder_layer` takes, and "encoder" a list of such dicts.
    batch_first : bool, optional
        Whether X is always (batch, n, d), or always (n, batch, d). By default it comes
        as it is, with or without a batch in front.
    biases : bool, default False
        Whether `run` takes biases too, as b_Q, b_K, b_V, b_O, and in an encoder b_1,
        b_2, bias_1, bias_2. An encoder's other weights are W_1 of (d_model, d_ff), W_2
        of (d_ff, d_model) for the feed-forward part, and gain_1, gain_2 of the norms.
    step : callable, optional
        Called like `run`, it feeds the tokens one at a time through your cache and
        returns all outputs. A law asks whether both agree under a causal mask.
    name : str, optional
        Heads the report; by default the name of `run`.

    Raises
    ------
    TypeError, ValueError
        If `run` cannot be called, or `kind` or a word is none of those above.

    Examples
    --------
    A layer that gets its matrices side by side:

    >>> import numpy as np
    >>> from mha import laws, multi_head_attention
    >>> def fused(X, W_QKV, W_O, n_heads, mask=None):
    ...     return multi_head_attention(X, *np.split(W_QKV, 3, 1), W_O, n_heads, mask)
    >>> def run(X, weights, n_heads, mask=None):
    ...     three = [weights[name] for name in ("W_Q", "W_K", "W_V")]
    ...     return fused(X, np.hstack(three), weights["W_O"], n_heads, mask)
    >>> laws.check(laws.Adapter(run)).holds
    True
    """

    run: Callable[..., Any]
    kind: str = "layer"
    batch_first: bool | None = None
    biases: bool = False
    step: Callable[..., Any] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if not callable(self.run) or isinstance(self.run, type):
            raise TypeError(f"run must be a function, got {self.run!r}")
        if self.kind not in KINDS:
            names = ", ".join(map(repr, KINDS))
            raise ValueError(f"kind must be one of {names}, got {self.kind!r}")
        super().__post_init__()

    def call(self, X: Any, *others: Any, **options: Any) -> Any:
        """Return what `run` gives, with the batch where the laws have it."""
        run = self.run
        if self.batch_first is False:
            asked = options.keys() & OTHERS
            options |= {name: options[name].swapaxes(0, 1) for name in asked}
            run = swapped(run, (0, 1), 3 if self.kind == "attention" else 1)
        return run(X, *others, **options)


def swapped(function, axes, count):
    """Return it with two axes swapped, in the first arguments and in the output."""

    def call(*args, **options):
        given = [x.swapaxes(*axes) for x in args[:count]]
        Y, *rest = results_in(function(*given, *args[count:], **options))
        return Y.swapaxes(*axes), *rest

    return call


def as_subject(target: Any, said: Conventions | None = None) -> Subject:
    """Return the subject behind `target`, or say what would have been accepted."""
    if isinstance(target, Subject):
        return target
    said = said or Conventions()
    with quiet():
        found = _found(target, said)
    found.source = target, said
    return found


def _found(target, said):
    torch = sys.modules.get("torch")
    if isinstance(target, Adapter):
        found = _first_that_runs([_as_adapted(target)], target.joined(said))
        if target.step:
            cached = replace(target, run=target.step, step=None)
            found.step = as_subject(cached, said)
        return found
    said = Conventions(**getattr(target, "says", {})).joined(said)
    is_class = isinstance(target, type)
    if is_class or not callable(target):
        got = f"the class {target.__name__}" if is_class else type(target).__name__
        raise TypeError(f"subject must be {ACCEPTED}, got {got}")
    if torch is None or not isinstance(target, torch.nn.Module):
        found = _first_that_runs(as_functions(target), said)
        return _with_mask_among(found) if _parameters(target)[1] else found
    called = _called(target, target.forward)
    found = module.as_module(called, said)
    return _first_that_runs(found, found[0].said)


def _as_adapted(adapter):
    name = adapter.name or _name(adapter.run)
    called = _called(adapter.call, adapter.run, name)
    subject = KINDS[adapter.kind](called, lead=int(adapter.batch_first is not None))
    subject.spreads = True
    subject.takes_bias = adapter.biases and adapter.kind != "attention"
    if adapter.batch_first is False:
        # The axes of heads have no place there.
        subject.takes_heads = False
    return subject


def as_functions(target):
    """Return the readings of a function, with more or less axes in front."""
    called, names = _called(target, target), [*_parameters(target)[0]]
    kind, least, leads, takes_bias = Attention, 3, (0, 2, 1), False
    if {*names} & {"W_Q", "W_q", "w_q", "Wq", "wq"}:
        kind, least, leads, takes_bias = Layer, 6, (0, 1), "b_Q" in names
        called = called._replace(target=_with_matrices(target))
    if names[1:2] in (["weights"], ["layers"]) and len(names) > 2:
        kind = KINDS["encoder" if names[1] == "layers" else "encoder_layer"]
        leads, takes_bias = (0, 1), True
    if len(names) < least:
        got = f"{called.name}({', '.join(names)})"
        raise TypeError(f"subject must be {ACCEPTED}, got {got}")
    on_tensors = getattr(target, "on_tensors", False) and "torch" in sys.modules
    facts = {"takes_bias": takes_bias, "tensors": on_tensors}
    return [kind(called, lead=lead).but(**facts) for lead in leads]


def _with_matrices(function):
    def run(X, weights, n_heads, **options):
        four = [weights[name] for name in FOUR]
        biases = {name: b for name, b in weights.items() if name not in FOUR}
        return function(X, *four, n_heads, **biases, **options)

    return run


def _with_mask_among(subject):
    """Return it with that name of a mask which its **options hand on without error."""
    if subject.kind != "attention" or subject.mask_name:
        return subject
    X = np.eye(2)
    for name in MASK_NAMES:
        named = subject.but(accepts=subject.accepts | {name}, mask_name=name)
        with contextlib.suppress(Broke, NotApplicable):
            named.attend(X, X, X, np.ones((2, 2), bool))
            return named
    return subject


def told(subject, said):
    if name := said.mask_name(subject.accepts):
        said = Conventions(**TELLING_NAMES.get(name, {})).joined(said)
    subject.said, subject.cast = said, said.dtype
    if subject.kind == "attention":
        if said.layout or said.n_kv_heads:
            subject.lead = 2
        if said.layout == "bnhd":
            subject.target = swapped(subject.target, (1, 2), 3)
    elif subject.kind == "encoder" and said.bends:
        about = "is about attention: check that of the encoder by itself"
        raise ValueError(f"design={list(said.bends)} {about}")
    elif said.layout or (subject.kind == "encoder" and said.n_kv_heads):
        word = "layout" if said.layout else "n_kv_heads"
        raise ValueError(f"{word} is for attention functions, {subject.name} is none")
    return subject


def _first_that_runs(subjects, said):
    """Return the first reading of the subject under which it gives an answer."""
    subjects = [told(subject, said) for subject in subjects]
    if "torch" in sys.modules:
        # Functions are tried on arrays first, and then on tensors.
        subjects += [x.but(tensors=True) for x in subjects if not x.tensors]
    X, found = np.eye(2), []
    errors: dict[str, list[str]] = {"Arrays": [], "Tensors": []}
    for subject in subjects:
        try:
            subject.attend(X, X, X)
        except WrongShape:
            found.append(subject)
        except (Broke, NotApplicable) as error:
            where = f" ({error.where})" if getattr(error, "where", "") else ""
            errors["Tensors" if subject.tensors else "Arrays"].append(f"{error}{where}")
        else:
            found.insert(0, subject)
            break
    if not found:
        what = f"{subjects[0].name} gives no answer to {subjects[0].tried}"
        both = ". ".join(f"{name}: {x[-1]}" for name, x in errors.items() if x)
        raise TypeError(f"{what}, with or without axes in front. {both}")
    _ = found[0].designs
    found[0].trace = defaultdict(set)
    return found[0]


def _parameters(function):
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError):
        # torch's own function is written in C++ and does not tell.
        names = "query", "key", "value", "attn_mask", "is_causal"
        return {x: inspect.Parameter(x, 1, default=None) for x in names}, False
    named = {name: p for name, p in parameters.items() if p.kind is not p.VAR_KEYWORD}
    return named, len(named) < len(parameters)


def _called(target, function, name=""):
    named, _ = _parameters(function)
    needs = (x for x, p in named.items() if p.default is p.empty)
    return Called(target, name or _name(target), frozenset(named), frozenset(needs))


def _name(target):
    if isinstance(target, functools.partial):
        return _name(target.func)
    owner = getattr(target, "__self__", target)
    if type(owner).__module__.startswith("mha.zoo"):
        return f"zoo.{owner.name}" + ("" if owner is target else f".{target.__name__}")
    named = target if hasattr(target, "__name__") else type(target)
    if named.__name__ == "<lambda>":
        return "a lambda"
    home = f"{named.__module__}."
    packages = (x for x in ("mha.nn.", "mha.", "torch.nn.") if home.startswith(x))
    return next(packages, "") + named.__name__
