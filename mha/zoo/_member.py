"""What everything in the zoo has: a name, a wrong step, a place where it was seen."""

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import numpy as np

import mha
from mha.zoo._steps import Step, with_steps

ENCODER_STEPS = (
    "layer_norm", "feed_forward", "add_and_norm", "encoder_layer", "encoder"
)  # fmt: skip
# A correct norm never asks for it.
train_mode = ContextVar("train_mode", default=True)


# What stands around the steps in the zoo; a member may replace it like a step.


def read_mask(mask):
    """Return a mask of 0 and 1 as False and True; others stay what they are."""
    return mask != 0 if "int" in str(mask.dtype) else mask


def join_masks(mask, causal):
    """Return what hides what either of them hides."""
    return np.where(causal, mask, False if mask.dtype == bool else -np.inf)


def share_heads(x, n_heads):
    """Return a copy of its keys for every query head; neighbours share theirs."""
    return np.repeat(x, n_heads // x.shape[-3], axis=-3)


def mask_of(mask, is_causal, Q, K):
    """Return one mask for both that a call may ask for."""
    mask = None if mask is None else read_mask(np.asarray(mask))
    if not is_causal:
        return mask
    causal = mha.causal_mask(Q.shape[-2], K.shape[-2])
    return causal if mask is None else join_masks(mask, causal)


# The doors of a member: what it computes as a whole, and a part of it. None has the
# name of a step, which would be replaced.


def attention(Q, K, V, mask=None, *, is_causal=False, **options):
    if min(Q.ndim, K.ndim) > 2 and Q.shape[-3] != K.shape[-3]:
        K, V = share_heads(K, Q.shape[-3]), share_heads(V, Q.shape[-3])
    mask = mask_of(mask, is_causal, Q, K)
    return mha.scaled_dot_product_attention(Q, K, V, mask, **options)


def multi_head(
    X, W_Q, W_K, W_V, W_O, n_heads, mask=None, *, X_k=None, is_causal=False, **options
):
    # Narrower keys are those of fewer heads, which groups of queries share.
    n_groups = n_heads * W_K.shape[-1] // W_Q.shape[-1]
    given = {"X_k": X if X_k is None else X_k, "W_K": W_K, "W_V": W_V} | options
    for name in ("W_K", "W_V", "b_K", "b_V"):
        if n_groups != n_heads and given.get(name) is not None:
            heads = mha.split_heads(np.atleast_2d(given[name]), n_groups)
            wide = mha.merge_heads(share_heads(heads, n_heads))
            given[name] = wide if name[0] == "W" else wide[0]
    mask = mask_of(mask, is_causal, X, given["X_k"])
    return mha.multi_head_attention(
        X, W_Q, W_O=W_O, n_heads=n_heads, mask=mask, **given
    )


def layer(X, weights, n_heads, mask=None, *, is_causal=False, training=True, **options):
    train_mode.set(training)
    mask = mask_of(mask, is_causal, X, X)
    return mha.encoder_layer(X, weights, n_heads, mask, **options)


def stack(X, layers, n_heads, mask=None, *, is_causal=False, training=True, **options):
    train_mode.set(training)
    mask = mask_of(mask, is_causal, X, X)
    return mha.encoder(X, layers, n_heads, mask, **options)


ATTENTION, ENCODER = (multi_head, attention), (stack, layer)
TRAINING = inspect.signature(layer).parameters["training"]
for door, like, *more in (
    (attention, mha.scaled_dot_product_attention),
    (multi_head, mha.multi_head_attention),
    (layer, mha.encoder_layer, TRAINING),
    (stack, mha.encoder, TRAINING),
):
    parameters = inspect.signature(like).parameters.values()
    vars(door)["__signature__"] = inspect.Signature([*parameters, *more])


class Member:
    """Compute multi-head attention, or an encoder, with one step replaced.

    It is called like `mha.multi_head_attention`, an encoder like `mha.encoder`, on
    NumPy arrays or torch tensors, through which gradients flow. Arguments are not
    checked: a mask of 0 and 1 is read as False and True, and fewer heads of keys are
    shared by groups of queries. Encoders take `training` too, for norms that tell train
    mode from eval mode, which no correct one does.

    Attributes
    ----------
    name, wrong, seen, link : str
        Its name in `mha.zoo`, what was done wrong, and where it was seen in public; the
        link is empty where no sighting is known.
    steps : dict of str to function
        The wrong step under the name of the step that it replaces, see `with_steps`.
    attention, layer : function
        Called like `mha.scaled_dot_product_attention`, and of an encoder like
        `mha.encoder_layer`.

    Examples
    --------
    >>> from mha import zoo
    >>> zoo.softmax_over_queries
    zoo.softmax_over_queries: The softmax runs down the columns, over the queries.
    >>> print(zoo.softmax_over_queries.source)
    def softmax(x, axis=-1):
        return mha.softmax(x, axis=-2)
    """

    wrong, seen, link = "nothing", "no public sighting known", ""
    # Whether arrays do not show the mistake, and what `mha.laws.check` is to be told.
    on_tensors = False
    says: Mapping[str, Any] = {}
    attention: Step
    layer: Step

    def __init__(
        self, name: str, steps: Mapping[str, Step], doors: Any = ATTENTION, **facts: Any
    ) -> None:
        self.name, self.steps = name, dict(steps)
        vars(self).update(facts, __module__="mha.zoo")
        part: Any
        self._whole, part = (with_steps(door, **steps) for door in doors)
        self.__signature__ = inspect.signature(self._whole)
        part.__self__, part.__name__ = self, doors[1].__name__
        setattr(self, part.__name__, part)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return what this member takes for multi-head attention, or an encoder."""
        return self._whole(*args, **options)

    @property
    def source(self) -> str:
        """The code of the wrong step, under the name of the right one."""
        return "\n\n\n".join(
            f"def {name}({mha.source(f).partition('def ')[2].partition('(')[2]}"
            for name, f in self.steps.items()
        )

    def __repr__(self) -> str:
        return f"zoo.{self.name}: {self.wrong}"

    def __reduce__(self) -> str:
        # There is one of each: copies and pickles lead back to it.
        return self.name


def seen(sentence: str) -> Callable[[Step], Step]:
    """Say of a wrong step where it was seen."""

    def put(f):
        f.seen = sentence
        return f

    return put


def bug(step: str, link: str = "", **facts: Any) -> Callable[[Step], Member]:
    """Make a function the member of the zoo in which it replaces this step.

    Its docstring says what is wrong, and `link` is an issue or a pull on GitHub.
    """
    if step in ENCODER_STEPS:
        facts["doors"] = ENCODER
    facts["link"] = link and f"https://github.com/{link}"

    def put(f):
        told = getattr(f, "seen", Member.seen)
        return Member(f.__name__, {step: f}, wrong=f.__doc__, seen=told, **facts)

    return put
