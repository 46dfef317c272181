"""Functions of tensors, modules and caches as plain functions of arrays.

Nothing is guessed: each helper says how something is called. A module is never changed,
since its weights are handed over by `torch.func.functional_call`.
"""

import copy
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mha.laws.subject import FOUR, NotAsked, Sizes, accepted, name_of

__all__ = ["each", "encoder", "module", "padding", "ready", "steps", "torch"]

PARTS = "Q", "K", "V", "O"
NORM = {"weight": "gain", "bias": "bias"}  # PyTorch's names of the two, and ours


@dataclass
class Adapted:
    """A function with what a law must know of it: its arguments, name and widths.

    `parameters` are those that no law hands over.
    """

    f: Callable[..., Any]
    accepts: set[str]
    name: str
    sizes: Sizes = field(default_factory=Sizes)
    parameters: dict[str, np.ndarray] = field(default_factory=dict)

    def __call__(self, *given: Any, **options: Any) -> Any:
        """Call the function."""
        return self.f(*given, **options)


@dataclass
class Tensors(Adapted):
    """A function of tensors as one of arrays; it also has gradients and bfloat16."""

    axes: int | None = None  # how many axes its tokens must have
    dtype: str = ""
    module: Any = None  # what has a train mode

    def __call__(self, *given: Any, **options: Any) -> Any:
        """Return arrays, as the function returns tensors."""
        return _arrays(self._run(given, options)[0])

    def gradients(self, direction: Any, *given: Any, **options: Any) -> Any:
        """Return the output, and the slopes of its sum times direction."""
        t: Any = sys.modules["torch"]
        Y, leaves = self._run(given, options, slopes=True)
        loss = (Y * t.from_numpy(direction)).sum()
        found: Any = [None] * len(leaves)
        if Y.requires_grad:
            found = t.autograd.grad(loss, leaves, allow_unused=True)
        shapes = [x.shape for x in given if isinstance(x, np.ndarray)]
        pairs = zip(shapes, found, strict=True)
        slopes = [np.zeros(z) if x is None else x.numpy().reshape(z) for z, x in pairs]
        return _arrays(Y), slopes

    def trained(self, *given: Any, **options: Any) -> Any:
        """Call the module in train mode; its random numbers are nobody else's."""
        t: Any = sys.modules["torch"]
        self.module.train()
        try:
            with t.random.fork_rng(devices=[]):
                return self(*given, **options)
        finally:
            self.module.eval()

    def cast(self, dtype: str) -> "Tensors":
        """Return the same function, which gets tensors of this dtype."""
        return replace(self, dtype=dtype)

    def _run(self, given: Any, options: Any, slopes: bool = False) -> Any:
        import torch as t

        first = given[0].ndim
        given = [self._tensors(x) for x in given]
        options = {x: self._tensors(y, fits=x == "X_k") for x, y in options.items()}
        tensors = [x for x in given if isinstance(x, t.Tensor)]
        numbers = [x for x in tensors if slopes and x.is_floating_point()]
        leaves = [x.requires_grad_() for x in numbers]
        with t.set_grad_enabled(slopes):
            Y = self.f(*self._fit(given), **options)
        # The axes that were put in front are taken away again.
        more = max(0, (self.axes or 0) - first)
        if isinstance(Y, tuple):
            return tuple(y.reshape(y.shape[more:]) for y in Y), leaves
        return Y.reshape(Y.shape[more:]), leaves

    def _fit(self, given: list[Any]) -> list[Any]:
        """Put axes of length 1 in front of tokens, or of queries, keys and values."""
        if not self.axes:
            return given
        many = 1 if "X" in self.accepts else 3
        if any(x.ndim > self.axes for x in given[:many]):
            raise NotAsked(f"its tensors have {self.axes} axes")
        fitted = (x[(None,) * max(0, self.axes - x.ndim)] for x in given[:many])
        return [*fitted, *given[many:]]

    def _tensors(self, x: Any, fits: bool = False) -> Any:
        import torch as t

        if isinstance(x, np.ndarray):
            plain = all(s >= 0 for s in x.strides) and x.flags.writeable
            y = t.from_numpy(x if plain else x.copy())
            if self.dtype and x.dtype.kind == "f":
                y = y.to(getattr(t, self.dtype))
            return y[(None,) * max(0, (self.axes or 0) - y.ndim)] if fits else y
        if isinstance(x, dict):
            return {name: self._tensors(y) for name, y in x.items()}
        return [self._tensors(y) for y in x] if isinstance(x, list) else x


def _arrays(y: Any) -> Any:
    if isinstance(y, tuple):
        return tuple(map(_arrays, y))
    if not hasattr(y, "detach"):
        return y
    y = y.detach()
    return (y.double() if str(y.dtype) == "torch.bfloat16" else y).numpy()


def torch(f: Callable[..., Any], axes: int | None = None) -> Tensors:
    """Return a function of tensors as one of arrays, which a law can ask.

    Parameters
    ----------
    f : function
        Of one of the signatures of `mha.laws.check`, with tensors.
    axes : int, optional
        How many axes its tokens, or queries, keys and values must have, if not any:
        with 4, matrices get two axes of length 1 in front.

    Returns
    -------
    subject : callable
        It can be asked for gradients and bfloat16, too.

    Examples
    --------
    >>> from mha import laws
    >>> def attend(Q, K, V, mask=None):
    ...     S = Q @ K.mT / K.shape[-1] ** 0.5
    ...     return (S if mask is None else S.masked_fill(~mask, -1e9)).softmax(-1) @ V
    >>> [x.law for x in laws.check(torch(attend)).broken]
    ['empty_rows_give_zero']
    """
    return Tensors(f, accepted(f), name_of(f), axes=axes)


def _taken_by(call: Callable[..., Any]) -> set[str]:
    """Return what ``call(m, X, mask=None)`` takes besides the module and tokens."""
    return set([*inspect.signature(call).parameters][2:])


def module(
    m: Any, *, n_heads: int, q: str = "", k: str = "", v: str = "", o: str = "",
    qkv: str = "", kv: str = "", call: Callable[..., Any] | None = None,
    shake: int | None = 0,
) -> Tensors:  # fmt: skip
    """Return a module of torch as ``layer(X, W_Q, W_K, W_V, W_O, n_heads, mask)``.

    Parameters
    ----------
    m : torch.nn.Module
        It is asked in eval mode and in its own sizes, and not changed.
    n_heads : int
        Its number of query heads.
    q, k, v, o, qkv, kv : str
        Names of its projections, such as "q_proj": four, or `qkv` and `o` if one makes
        queries, keys and values one after the other, or `q`, `kv` and `o`.
    call : function, optional
        ``call(m, X, mask=None)`` returns its output, with X of shape (batch, n,
        d_model) and True in the mask = may attend. What else it takes says what the
        module can do: X_k, is_causal, return_weights, state. `m` is there a function
        that calls the module with the weights of the law. By default ``m(X)``.
    shake : int or None
        Seed of random numbers that are added to all its other parameters, such as gains
        and sinks, since at their start values a mistake in them cannot be seen.
        ``layer.parameters`` holds them for the reference. None leaves them.

    Returns
    -------
    layer : callable

    Examples
    --------
    >>> from torch import nn
    >>> from mha import laws
    >>> theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    >>> layer = module(theirs, n_heads=2, qkv="in_proj", o="out_proj",
    ...                call=lambda m, X: m(X, X, X)[0])
    >>> laws.check(layer).holds
    True
    """
    places = {"Q": q or qkv, "K": k or kv or qkv, "V": v or kv or qkv, "O": o}
    call = call or (lambda m, X: m(X))
    m = copy.deepcopy(m).eval()
    at, other = _places(m, places), _shaken(m, [*places.values()], shake)

    def layer(
        X: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, n_heads: int, **options: Any
    ):
        W = dict(zip(PARTS, (W_Q, W_K, W_V, W_O), strict=True))
        b = {x: options.pop(f"b_{x}", None) for x in PARTS}
        return call(_filled(m, _handed(m, at, W, b) | other, X), X, **options)

    shapes = {x: m.get_parameter(f"{y}weight").shape for x, y in at.items()}
    own = dict(m.named_parameters())
    biases = {f"b_{x}" for x, y in at.items() if f"{y}bias" in own}
    return Tensors(
        layer, {"X", *FOUR, "n_heads"} | biases | _taken_by(call), type(m).__name__,
        _sizes_of(n_heads, shapes, at), _as_arrays(other), axes=3, module=m,
    )  # fmt: skip


def encoder(
    m: Any, *, n_heads: int, places: dict[str, str], layers: str = "",
    call: Callable[..., Any] | None = None, shake: int | None = 0,
) -> Tensors:  # fmt: skip
    """Return a module of torch as ``encode(X, layers, n_heads, mask)``.

    Parameters
    ----------
    m, n_heads, call, shake :
        As in `module`.
    places : dict of str to str
        The names of its parts in one layer: "Q", "K", "V" and "O" are projections, "1"
        and "2" those of feed-forward, "norm_1" and "norm_2" the norms after attention
        and after feed-forward, or before them.
    layers : str
        What holds the layers, such as "layers". Without it the module is one layer, and
        becomes ``encoder_layer(X, weights, n_heads, mask)``.

    Examples
    --------
    >>> from torch import nn
    >>> from mha import laws
    >>> places = {x: "self_attn.in_proj" for x in "QKV"} | {"O": "self_attn.out_proj"}
    >>> places |= {"1": "linear1", "2": "linear2", "norm_1": "norm1", "norm_2": "norm2"}
    >>> theirs = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> laws.check(encoder(theirs, n_heads=2, places=places)).holds
    True
    """
    call = call or (lambda m, X: m(X))
    m = copy.deepcopy(m).eval()
    count = len(m.get_submodule(layers)) if layers else 1
    fronts = [f"{layers}.{i}." if layers else "" for i in range(count)]
    at = [_places(m, {x: front + y for x, y in places.items()}) for front in fronts]
    other = _shaken(m, [front + y for front in fronts for y in places.values()], shake)

    def encode(X: Any, layers: Any, n_heads: int, **options: Any) -> Any:
        given = dict(other)
        for places_here, w in zip(at, layers, strict=True):
            W, b = ({x: w[f"{kind}_{x}"] for x in "QKVO12"} for kind in "Wb")
            given |= _handed(m, places_here, W, b)
            for i in "12":
                norm = places_here[f"norm_{i}"]
                given |= {f"{norm}{x}": w[f"{y}_{i}"] for x, y in NORM.items()}
        return call(_filled(m, given, X), X, **options)

    def encoder_layer(X: Any, weights: Any, n_heads: int, **options: Any) -> Any:
        return encode(X, [weights], n_heads, **options)

    shapes = {x: m.get_parameter(f"{at[0][x]}weight").shape for x in "QKVO1"}
    own = _sizes_of(n_heads, shapes, at[0])
    return Tensors(
        encode if layers else encoder_layer,
        {"X", "layers" if layers else "weights", "n_heads"} | _taken_by(call),
        type(m).__name__, replace(own, depth=count, d_ff=shapes["1"][0]),
        _as_arrays(other), axes=3,
    )  # fmt: skip


def _as_arrays(parameters: dict[str, Any]) -> dict[str, np.ndarray]:
    return {x: _arrays(y.double()) for x, y in parameters.items()}


def _places(m: Any, places: dict[str, str]) -> dict[str, str]:
    """Return how the names of the parameters of each part begin."""
    own = dict(m.named_parameters())
    known = f"its parameters are {', '.join(own)}"
    if missing := [x for x, y in places.items() if not y]:
        raise ValueError(f"what makes {', '.join(missing)}? Name a projection; {known}")
    # A linear layer has q_proj.weight, nn.MultiheadAttention has in_proj_weight.
    at = {x: f"{y}{'.' if f'{y}.weight' in own else '_'}" for x, y in places.items()}
    for name, place in at.items():
        if f"{place}weight" not in own:
            raise ValueError(f"it has no {places[name]}.weight; {known}")
    return at


def _handed(m: Any, at: dict[str, str], W: Any, b: Any) -> dict[str, Any]:
    """Return matrices and biases under the names that the module has for them."""
    t: Any = sys.modules["torch"]
    given, own = {}, dict(m.named_parameters())
    for place in dict.fromkeys(at[x] for x in W):
        here = [x for x in W if at[x] == place]
        given[f"{place}weight"] = t.cat([W[x] for x in here], 1).T
        if f"{place}bias" in own:
            zeros = {x: W[x].new_zeros(W[x].shape[1]) for x in here}
            given[f"{place}bias"] = t.cat(
                [zeros[x] if b[x] is None else b[x] for x in here]
            )
    return given


def _filled(m: Any, given: dict[str, Any], X: Any) -> Callable[..., Any]:
    """Return the module with these parameters, in the dtype of its tokens."""
    t: Any = sys.modules["torch"]
    given = {x: y.to(X.dtype) if y.is_floating_point() else y for x, y in given.items()}
    if m.training:  # a norm may write into its buffers
        given = {x: y.clone() for x, y in given.items()}
    return lambda *x, **y: t.func.functional_call(m, given, x, y)


def _shaken(m: Any, but: list[str], seed: int | None) -> dict[str, Any]:
    """Return all other parameters, with random numbers added, and the buffers."""
    import torch as t

    made = t.Generator().manual_seed(seed or 0)
    starts = tuple(x + end for x in but for end in "._")
    other = {x: y.detach() for x, y in m.named_parameters() if not x.startswith(starts)}
    if seed is not None:
        noise = {x: t.randn(y.shape, generator=made) for x, y in other.items()}
        other = {x: y + 0.3 * noise[x] for x, y in other.items()}
    return other | {x: y for x, y in m.named_buffers() if not x.startswith(starts)}


def _sizes_of(n_heads: int, shapes: dict[str, Any], at: dict[str, str]) -> Sizes:
    """Return the widths of a module; one matrix may hold several projections."""
    d_model = shapes["Q"][1]
    d_k = shapes["O"][1] // n_heads
    rows = shapes["K"][0] - (n_heads * d_k if at["K"] == at["Q"] else 0)
    n_kv = rows // d_k // (2 if at["K"] == at["V"] else 1)
    if d_k * n_heads != d_model:
        raise NotAsked(f"its heads are {d_k} wide: d_model must be n_heads · d_k")
    return Sizes(d_model, n_heads, n_kv, fixed=True)


def padding(mask: Any, X: Any) -> Any:
    """Return a mask of padding as (batch, n), True = real, for what takes no other.

    Where a law asks about another mask, it is told that this one is not taken.
    """
    if mask is None:
        return None
    boolean = "bool" in str(mask.dtype)
    if not boolean or mask.shape[-2] != 1 or (mask.ndim > 2 and mask.shape[1] > 1):
        raise NotAsked("it takes a mask of padding only")
    mask = mask.reshape(-1, mask.shape[-1])
    batch = len(X) if X.ndim > 2 else 1
    return mask if len(mask) == batch else mask[[0] * batch]


def each(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of matrices as one of batches, which it gets one by one."""
    accepts = accepted(f)
    many = 1 if "X" in accepts else 3

    def batched(*given: Any, **options: Any) -> Any:
        arrays, rest = given[:many], given[many:]
        if arrays[0].ndim == 2:
            return f(*given, **options)
        many_masks = [x for x in ("mask", "X_k") if np.ndim(options.get(x, 0)) > 2]
        answers = []
        for b in range(len(arrays[0])):
            own = {x: options[x][b % len(options[x])] for x in many_masks}
            answers.append(batched(*(x[b] for x in arrays), *rest, **options | own))
        return np.stack(answers)

    return Adapted(batched, accepts, name_of(f))


def steps(step: Callable[..., Any]) -> Any:
    """Return a layer with a cache as one that takes its tokens in parts.

    Parameters
    ----------
    step : function
        ``step(X, …, state=None)`` returns the output of some tokens and the state to
        hand over with the next ones. A mask reaches up to its last token.

    Returns
    -------
    layer : callable
        Like `step`, without a state and with ``parts=(6, 1, 1)``, the number of tokens
        of each call. `one_at_a_time_is_all_at_once` asks it for parts of many lengths.

    Examples
    --------
    Keys and values that are kept, for one matrix of tokens:

    >>> from mha import laws, scaled_dot_product_attention
    >>> def step(Q, K, V, mask=None, state=None):
    ...     before = 0 if state is None else len(state[0])
    ...     K, V = (K, V) if state is None else map(np.concatenate, zip(state, (K, V)))
    ...     past = np.tri(before + len(Q), dtype=bool)[before:]
    ...     past = past if mask is None else past & mask
    ...     return scaled_dot_product_attention(Q, K, V, past), (K, V)
    >>> laws.one_at_a_time_is_all_at_once.check(laws.each(steps(step))).holds
    True
    """
    inner, accepts = getattr(step, "f", step), accepted(step)
    many = 1 if "X" in accepts else 3

    def layer(*given: Any, parts: Any = None, mask: Any = None, **options: Any) -> Any:
        tokens, rest, state, found, at = given[:many], given[many:], None, [], 0
        for n in parts or (tokens[0].shape[-2],):
            here = (x[..., at : at + n, :] for x in tokens)
            more = {} if mask is None else {"mask": mask[..., : at + n]}
            more |= {} if state is None else {"state": state}
            y, state = inner(*here, *rest, **options, **more)
            found.append(y)
            at += n
        return _joined(found)

    accepts = accepts - {"state"} | {"parts"}
    if isinstance(step, Adapted):
        return replace(step, f=layer, accepts=accepts)
    return Adapted(layer, accepts, name_of(step))


def _joined(parts: list[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, -2)
    return sys.modules["torch"].cat(parts, -2)


# What needs no adapter --------------------------------------------------------------


def ready(subject: Any) -> Any:
    """Return PyTorch's own attention, and that of `mha.nn`, as a function of arrays.

    All else is returned as it is.
    """
    t: Any = sys.modules.get("torch")
    if t is None:
        return subject
    if subject is t.nn.functional.scaled_dot_product_attention:
        return torch(scaled_dot_product_attention)
    if isinstance(subject, t.nn.MultiheadAttention):
        call = _call_of(subject.num_heads, subject.batch_first)
        found: Any = {"qkv": "in_proj", "o": "out_proj", "call": call}
        return module(subject, n_heads=subject.num_heads, **found)
    ours: Any = sys.modules.get("mha.nn")
    if ours and isinstance(subject, ours.MultiHeadAttention):
        found = {x.lower(): f"W_{x}" for x in PARTS} | {"call": _call_of_ours}
        return module(subject, n_heads=subject.n_heads, **found)
    return subject


def scaled_dot_product_attention(
    Q: Any, K: Any, V: Any, mask: Any = None, is_causal: bool = False
) -> Any:
    """Call PyTorch's function, with what it takes."""
    F: Any = sys.modules["torch.nn.functional"]
    if mask is not None and is_causal:
        raise NotAsked("it refuses a mask beside is_causal")
    return F.scaled_dot_product_attention(Q, K, V, mask, is_causal=is_causal)


def _call_of(n_heads: int, batch_first: bool) -> Callable[..., Any]:
    """Return how nn.MultiheadAttention is called, where True in a mask hides."""
    t: Any = sys.modules["torch"]

    def call(
        m: Any, X: Any, X_k: Any = None, mask: Any = None, is_causal: bool = False,
        return_weights: bool = False,
    ) -> Any:  # fmt: skip
        X_k = X if X_k is None else X_k
        (batch, n_q, _), n_k = X.shape, X_k.shape[1]
        if is_causal:
            past = t.ones(n_q, n_k, dtype=t.bool).tril()
            mask = past if mask is None else past & mask
        if mask is not None:
            hides = ~mask if mask.dtype == t.bool else mask
            mask = hides.expand(batch, n_heads, n_q, n_k).flatten(0, 1)
        given = [x if batch_first else x.transpose(0, 1) for x in (X, X_k, X_k)]
        shown = {"need_weights": return_weights, "average_attn_weights": False}
        Y, A = m(*given, attn_mask=mask, **shown)
        Y = Y if batch_first else Y.transpose(0, 1)
        return (Y, A) if return_weights else Y

    return call


def _call_of_ours(
    m: Any, X: Any, X_k: Any = None, mask: Any = None, is_causal: bool = False,
    return_weights: bool = False,
) -> Any:  # fmt: skip
    options = {"is_causal": is_causal, "return_weights": return_weights}
    return m(X, X_k, mask=mask, **options)
