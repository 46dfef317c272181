"""One small object by which anything else can be checked."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mha.laws.subjects.conventions import MASK_LIKE, Conventions
from mha.laws.subjects.results import results_in
from mha.laws.subjects.subject import OTHER_NAMES, WEIGHTS_NAMES

__all__ = ["Adapter"]

KINDS = ("attention", "layer", "encoder_layer", "encoder")
# What is handed over by name where there is a place for it, and must have a value.
# A mask has many names.
BY_NAME = {"is_causal": False, "training": False, "norm_first": False}
BY_NAME |= dict.fromkeys(WEIGHTS_NAMES, False)
# A layer may be given other tokens to attend to.
OTHERS = frozenset(name for pair in OTHER_NAMES for name in pair)


@dataclass(frozen=True)
class Adapter(Conventions):
    """Say how something is called that `check` cannot read by itself.

    Equation: see `check`  (chapter laws)

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
        they are there (one law of encoders asks with either value of `training`; else
        it is left at its default, or False), and to a layer X_k and X_v (or key and
        value), the tokens that are attended to. It gets and returns arrays, or tensors
        if arrays do not work.
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

    A GPT-style layer in PyTorch: one fused matrix for Q, K and V, always causal.

    >>> import torch
    >>> from torch.nn.functional import scaled_dot_product_attention
    >>> class Fused(torch.nn.Module):
    ...     def __init__(self, d_model, n_heads):
    ...         super().__init__()
    ...         self.n_heads = n_heads
    ...         self.qkv = torch.nn.Linear(d_model, 3 * d_model, bias=False)
    ...         self.out = torch.nn.Linear(d_model, d_model, bias=False)
    ...     def forward(self, x):
    ...         cut = (*x.shape[:2], self.n_heads, -1)
    ...         three = self.qkv(x).chunk(3, -1)
    ...         Q, K, V = (y.view(cut).transpose(1, 2) for y in three)
    ...         Y = scaled_dot_product_attention(Q, K, V, is_causal=True)
    ...         return self.out(Y.transpose(1, 2).flatten(2))
    >>> def fused(x, weights, n_heads):
    ...     layer = Fused(x.shape[-1], n_heads)
    ...     three = [weights[name].T for name in ("W_Q", "W_K", "W_V")]
    ...     layer.qkv.weight.data = torch.cat(three)
    ...     layer.out.weight.data = weights["W_O"].T
    ...     return layer(x)
    >>> laws.check(laws.Adapter(fused, batch_first=True, causal="built in")).holds
    True

    A layer that reads (n, batch, d), and whose mask says True where it hides:

    >>> def sideways(x, weights, n_heads, mask=None):
    ...     four = [weights[name] for name in ("W_Q", "W_K", "W_V", "W_O")]
    ...     mask = None if mask is None else ~mask
    ...     return mha.multi_head_attention(x.swapaxes(0, 1), *four, n_heads, mask
    ...     ).swapaxes(0, 1)
    >>> import mha
    >>> laws.check(laws.Adapter(sideways, batch_first=False, mask_true="hide")).holds
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
            if name in BY_NAME
            or MASK_LIKE.search(name)
            or (self.kind == "layer" and name in OTHERS)
        }
        return {name: p.default is p.empty for name, p in named.items()}

    def call(self, X: Any, *others: Any, **options: Any) -> Any:
        """Return what `run` gives, with the batch where the laws have it."""
        due = {name: BY_NAME.get(name) for name, must in self.accepts.items() if must}
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
