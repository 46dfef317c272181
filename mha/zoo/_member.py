"""The staircase with some of its steps replaced, on arrays and tensors, as a member."""

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from types import CodeType, FunctionType
from typing import Any

import numpy as np

import mha

Step = Callable[..., Any]
# What is around the steps, in the zoo and in a layer.
BESIDE = "read_mask", "join_masks", "share_heads", "add_and_norm"
ENCODER_STEPS = (
    "layer_norm", "feed_forward", "add_and_norm", "encoder_layer", "encoder"
)  # fmt: skip


def with_steps(f: Step, **wrong: Step) -> Step:
    """Return `f` with these steps in the place of its own, however deep they are.

    Parameters
    ----------
    f : function
        A step of `mha`, such as `mha.multi_head_attention` or `mha.encoder`.
    **wrong : function
        By the name of the step that it replaces, a function that is called like it.
        Inside of it ``mha.softmax`` and the others are the correct steps.

    Returns
    -------
    step : function
        Called like `f`, with NumPy arrays or torch tensors, through which gradients
        flow: for tensors, ``np`` stands for torch inside of each step. Arguments are
        not checked.

    Examples
    --------
    Attention that gives every visible token the same weight, whatever its score:

    >>> def softmax(x, axis=-1):
    ...     return mha.softmax(0 * x, axis)
    >>> attend = with_steps(mha.scaled_dot_product_attention, softmax=softmax)
    >>> attend(np.ones((1, 1)), np.array([[0.0], [9.0]]), np.array([[2.0], [4.0]]))
    array([[3.]])
    """
    if unknown := wrong.keys() - {*mha.__all__, *BESIDE}:
        raise ValueError(f"no step of mha is called {', '.join(sorted(unknown))}")

    @functools.cache
    def on(device):
        library = np if device is None else InTorch(device)
        right = Steps(library, {})
        return Steps(library, {name: right.copy(g) for name, g in wrong.items()}).of(f)

    def step(*args, **options):
        tensor = getattr(sys.modules.get("torch"), "Tensor", ())
        found = (x for x in (*args, *options.values()) if isinstance(x, tensor))
        return on(getattr(next(found, None), "device", None))(*args, **options)

    step.__name__ = f"{f.__name__} with {', '.join(wrong) or 'no step'} replaced"
    step.__signature__ = inspect.signature(f)  # type: ignore[attr-defined]
    return step


class Steps:
    """Copies of the steps for one library, some of them replaced; `mha` to them."""

    def __init__(self, library: Any, wrong: Mapping[str, Step]) -> None:
        self.library, self.wrong = library, wrong
        self.copies: dict[Step, Step] = {}

    def __getattr__(self, name: str) -> Any:
        return vars(self).setdefault(name, self.of(getattr(mha, name)))

    def of(self, x: Any) -> Any:
        """Return what stands here for `x`, something that a step knows by name."""
        if x is np:
            return self.library
        if x is mha:
            return self
        if not isinstance(x, FunctionType) or not x.__module__.startswith("mha."):
            return x
        if x.__name__ == "gelu" and self.library is not np:
            return self.library.nn.functional.gelu
        return self.wrong.get(x.__name__) or self.copy(x)

    def copy(self, f: Any) -> Any:
        """Return `f` without its door, with all that it knows by name replaced."""
        f = inspect.unwrap(f)
        if isinstance(f, FunctionType) and f not in self.copies:
            known = dict(f.__globals__)
            # A default that remembers must not remember for others.
            defaults = copy.deepcopy(f.__defaults__)
            twin = FunctionType(f.__code__, known, f.__name__, defaults, f.__closure__)
            twin.__kwdefaults__ = f.__kwdefaults__
            self.copies[f] = twin
            for name in known.keys() & names_in(f.__code__):
                known[name] = self.of(known[name])
            if self.library is not np:
                known["bool"] = self.library.bool
        return self.copies.get(f, f)


def names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that the code uses, and those of the functions in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


class InTorch:
    """What steps ask of NumPy, in torch; what both spell alike is torch's own."""

    errstate, random = np.errstate, np.random

    def __init__(self, device: Any) -> None:
        self.torch, self.device = sys.modules["torch"], device

    def __getattr__(self, name):
        own = getattr(self.torch, name)
        if name in ("arange", "eye", "ones"):
            return functools.partial(own, device=self.device)
        return own

    def asarray(self, x, dtype=None):
        return self.torch.as_tensor(x, dtype=dtype, device=self.device)

    def where(self, mask, x, y):
        return self.torch.where(self.asarray(mask), x, y)

    def max(self, x, axis, keepdims=False, initial=None):
        return x.amax(axis, keepdim=keepdims)

    def maximum(self, x, least):
        return x.clamp(min=least)

    def copy(self, x):
        return x.clone()

    def ravel(self, x, order):
        return (x.mT if x.mT.is_contiguous() else x).reshape(-1)

    def tri(self, n, m=None, k=0, dtype=None):
        return self.ones((n, n if m is None else m), dtype=dtype).tril(k)


# What stands around the steps in the zoo; a member may replace it like a step. A norm
# that is correct never asks for the mode.
train_mode = ContextVar("train_mode", default=True)


def read_mask(mask):
    """Return a mask of 0 and 1 as False and True; others stay what they are."""
    return mask != 0 if "int" in str(mask.dtype) else mask


def join_masks(mask, causal):
    """Return what hides what either of them hides."""
    return np.where(causal, mask, False if mask.dtype == bool else -np.inf)


def share_heads(x, n_heads):
    """Return a copy of its keys for every query head; neighbours share theirs."""
    return x[..., np.arange(n_heads) * x.shape[-3] // n_heads, :, :]


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
