"""What a law asks: a plain function, whose answers are checked and written down."""

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mha import designs

__all__ = ["Asked", "Broke", "NotAsked", "Sizes", "Subject", "Unable", "WrongReference"]

FOUR = "W_Q", "W_K", "W_V", "W_O"
SIGNATURES = {
    "attend": "attend(Q, K, V, mask=None)",
    "layer": "layer(X, W_Q, W_K, W_V, W_O, n_heads, mask=None)",
    "encoder_layer": "encoder_layer(X, weights, n_heads, mask=None)",
    "encode": "encode(X, layers, n_heads, mask=None)",
}
MARKS = {"W_Q": "layer", "layers": "encode", "weights": "encoder_layer"}
TOLERANCE = 1e-5  # a wrong version is off by hundredths, float32 by less than this


class NotAsked(Exception):
    """Raise it where a subject or a reference has no answer to some input."""


class Unable(NotAsked):
    """It cannot be asked for gradients, weights, a cache or train mode."""


class Broke(Exception):
    """The subject raised an error, or returned what no law can judge."""


class WrongReference(ValueError):
    """The reference raised an error, or returned no finite array of the right shape."""


@dataclass(frozen=True)
class Sizes:
    """Widths of a layer. A module has its own, `fixed`; a function takes any."""

    d_model: int = 4
    n_heads: int = 2
    n_kv_heads: int = 2
    depth: int = 2
    d_ff: int = 5
    fixed: bool = False

    @property
    def d_k(self) -> int:
        """Width of a head."""
        return self.d_model // self.n_heads


Weights = dict[str, np.ndarray]


def draw_matrices(rng: Any, sizes: Sizes, integers: bool = True) -> Weights:
    """Draw W_Q … W_O; wide ones give numbers of the same size as narrow ones."""
    d, kv = sizes.d_model, sizes.n_kv_heads * sizes.d_k
    shapes = zip(FOUR, ((d, d), (d, kv), (d, kv), (d, d)), strict=True)
    draw: Any = partial(rng.integers, -2, 3) if integers else rng.standard_normal
    smaller = 2 * np.sqrt(max(d, 6) / 6)
    return {name: (draw(size=shape) / smaller).round(2) for name, shape in shapes}


def draw_layers(rng: Any, sizes: Sizes, depth: int | None = None) -> list[Weights]:
    """Draw the weights of an encoder. No gain is 1 and no bias is 0."""
    d, f = sizes.d_model, sizes.d_ff
    shapes = {"W_1": (d, f), "W_2": (f, d), "b_1": (f,)}
    shapes |= {f"b_{x}": (d,) for x in "QKVO2"}
    shapes |= {"bias_1": (d,), "bias_2": (d,)}

    def one() -> Weights:
        drawn = {
            name: rng.normal(size=shape).round(2) for name, shape in shapes.items()
        }
        gains = {f"gain_{i}": rng.uniform(0.5, 2, d).round(2) for i in (1, 2)}
        return draw_matrices(rng, sizes, False) | drawn | gains

    return [one() for _ in range(sizes.depth if depth is None else depth)]


class Subject:
    """A function of one of the `SIGNATURES`, on NumPy arrays, as the laws ask it."""

    def __init__(
        self, f: Callable[..., Any], sizes: Sizes | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:  # fmt: skip
        if not callable(f):
            raise TypeError(
                f"a subject must be a function, got {type(f).__name__}; write "
                f"def {SIGNATURES['attend']}"
            )
        self.f, self.tolerance = f, tolerance
        self.name, self.accepts = name_of(f), accepted(f)
        kinds = (MARKS[x] for x in MARKS if x in self.accepts)
        self.kind = next(kinds, "attend")
        self.sizes = sizes or _sizes_of(f)
        self.head = 0  # which head of a layer answers about attention
        self.reference = self
        self.declared = True  # whether, as a reference, it may break laws on purpose
        self.known: dict[Any, Any] = {}  # what it answered before, as a reference
        self.borrows = False  # whether it gets the arrays of a law, and no copies
        self.calls: list[Any] | None = None
        self.tried: dict[str, set[Any]] = {"tokens": set(), "batches": set()}
        self.last: dict[str, Any] = {}

    def as_reference(self, f: Callable[..., Any]) -> "Subject":
        """Return `f`, which is correct, as it is asked in the place of this one."""
        kind = Subject(f).kind
        if (kind, self.kind) == ("attend", "layer"):
            f = designs.in_heads(f)
        elif kind != self.kind:
            raise TypeError(
                f"{self.name} is called {SIGNATURES[self.kind]}, and its reference "
                f"{SIGNATURES[kind]}; they must have the same signature"
            )
        return Subject(f, self.sizes, self.tolerance)

    def width(self, d: int) -> int:
        """Return how wide a token must be."""
        return d if self.kind == "attend" else self.sizes.d_model

    @contextlib.contextmanager
    def recorded(self) -> Iterator[list[Any]]:
        """Yield a list to which calls by a law are added, as (given, answer)."""
        self.calls = []
        try:
            yield self.calls
        finally:
            self.calls = None

    def blamed_for(self, error: Broke) -> WrongReference:
        """Return what stops a check: an error of a reference must not silence a law."""
        return WrongReference(
            f"the reference {self.name} raised {error}; raise NotImplementedError "
            "where it has no answer"
        )

    # What a law may ask ---------------------------------------------------------------

    def attend(self, Q: Any, K: Any, V: Any, mask: Any = None, **options: Any) -> Any:
        """Ask about attention; a layer answers with one of its heads."""
        if self.kind == "attend":
            lead = np.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
            shape = (*lead, Q.shape[-2], V.shape[-1])
            return self._call(shape, Q, K, V, mask=mask, **options)
        if self.kind != "layer":
            raise NotAsked("norms stand around its attention: check that alone")
        if max(map(np.ndim, (Q, K, V))) > 2:
            raise NotAsked("it makes its heads itself")
        return self._in_a_head(Q, K, V, mask, **options)

    def layer(
        self, X: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, n_heads: int,
        mask: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        """Ask a layer; options may be X_k, biases, is_causal."""
        if self.kind != "layer":
            why = "it has no weight matrices", "norms stand around its matrices"
            raise NotAsked(why[self.kind != "attend"])
        shape, four = (*X.shape[:-1], W_O.shape[1]), (W_Q, W_K, W_V, W_O)
        return self._call(shape, X, *four, n_heads, mask=mask, **options)

    def encode(self, X: Any, layers: Any, mask: Any = None, **options: Any) -> Any:
        """Ask an encoder, or a layer of one, which is given the first weights."""
        if self.kind not in ("encode", "encoder_layer"):
            raise NotAsked("it is no encoder")
        weights = layers if self.kind == "encode" else layers[0]
        return self._call(X.shape, X, weights, self.sizes.n_heads, mask=mask, **options)

    def tokens(self, X: Any, mask: Any = None, **options: Any) -> Any:
        """Let tokens attend to each other; the weights are the same in every call."""
        if self.kind == "attend":
            if np.ndim(mask) == 4:  # a mask for each head
                shape = (len(X), mask.shape[1], *X.shape[1:])
                X = np.broadcast_to(X[:, None], shape).copy()
            return self.attend(X, X, X, mask, **options)
        rng = np.random.default_rng(5)
        if self.kind == "layer":
            W = _cast(draw_matrices(rng, self.sizes, False), X.dtype)
            n_heads = self.sizes.n_heads
            return self.layer(X, **W, n_heads=n_heads, mask=mask, **options)
        layers = _cast(draw_layers(rng, self.sizes), X.dtype)
        return self.encode(X, layers, mask, **options)

    # How it is called -----------------------------------------------------------------

    def _call(self, shape: tuple[int, ...], *given: Any, **options: Any) -> Any:
        """Call the function on copies; its answer must be an array of this shape."""
        options = {x: y for x, y in options.items() if y is not None}
        options = {x: y for x, y in options.items() if x != "is_causal" or y}
        if "parts" not in self.accepts:  # without a cache, parts are all at once
            options.pop("parts", None)
        if missing := options.keys() - self.accepts:
            able = missing <= {"return_weights", "training"}
            raise (Unable if able else NotAsked)(f"it takes no {', '.join(missing)}")
        names = ("Q", "K", "V") if self.kind == "attend" else ("X", *FOUR)
        self.last = dict(zip(names, given, strict=False)) | options
        own = given[:2] if self.kind == "attend" else (given[0], options.get("X_k"))
        self.tried["tokens"].add(max(x.shape[-2] for x in own if x is not None))
        self.tried["batches"].add(given[0].shape[0] if given[0].ndim > 2 else 1)
        if not self.borrows:
            given, options = _copies(given), _copies(options)
        return self._answer(partial(self.f, *given, **options), shape, options)

    def _answer(self, run: Any, shape: tuple[int, ...], options: Any) -> Any:
        try:
            Y = run()
        except (NotAsked, NotImplementedError) as why:
            raise NotAsked(str(why)) from why
        except Exception as error:
            text = str(error).partition("\n")[0]
            raise Broke(f"{type(error).__name__}: {text}") from error
        if "return_weights" in options:
            if not (isinstance(Y, tuple) and len(Y) == 2):
                raise Broke(f"returns {type(Y).__name__}, where (Y, A) is due")
            return Y
        if not isinstance(Y, np.ndarray):
            kind = type(Y).__name__
            hint = ": hand it over as laws.torch(f)" if kind == "Tensor" else ""
            raise Broke(f"returns {kind}, where a NumPy array is due{hint}")
        if Y.shape != shape:
            raise Broke(f"returns shape {Y.shape}, where {shape} is due")
        return Y

    def _in_a_head(self, Q: Any, K: Any, V: Any, mask: Any, **options: Any) -> Any:
        """Ask a layer about attention: all heads get Q, K and V, and one answers.

        A token holds its query, key and value side by side, and each matrix picks one.
        The columns of V that do not fit beside them are asked for in further calls.
        """
        (n_q, d), (n_k, d_v), z = Q.shape, V.shape, self.sizes
        cross = "X_k" in self.accepts and (
            n_q != n_k or (z.fixed and 3 * d > z.d_model)
        )
        if n_q > n_k and not cross:
            raise NotAsked("it knows self-attention only")
        if n_q < n_k and not cross and options.get("is_causal"):
            raise NotAsked("it knows self-attention only")
        D, h, kv = z.d_model, z.n_heads, z.n_kv_heads
        if not z.fixed:  # heads of width d, and as many as a token needs for all three
            h, kv = (n * -(-3 // z.n_heads) for n in (h, kv))
            D = h * d
        d_k, most = D // h, min(D // h, D - 2 * d)
        if d > d_k or most < 1:
            raise NotAsked(f"its heads have {d_k} columns, and its tokens {D}")
        if not cross and np.ndim(mask) == 2 and 1 < len(mask) < n_k:
            mask = np.concatenate([mask, np.ones((n_k - n_q, n_k), mask.dtype)])
        parts, A = [], None
        for columns in np.split(V, range(most, d_v, most), axis=1):
            tokens = self._side_by_side(Q, K, columns, D, cross)
            W = self._picking(d, columns.shape[1], (D, h, kv), Q.dtype)
            more = options | ({"X_k": tokens[1]} if cross else {})
            Y = self.layer(tokens[0], n_heads=h, mask=mask, **W, **more)
            Y, A = Y if isinstance(Y, tuple) else (Y, None)
            parts.append(Y[:n_q, : columns.shape[1]])
        whole = np.concatenate(parts, 1)
        return whole if A is None else (whole, A[self.head][:n_q])

    def _side_by_side(self, Q: Any, K: Any, V: Any, D: int, cross: bool) -> Any:
        """Return tokens that hold Q in their first columns, then K, then V."""
        (n_q, d), n_k = Q.shape, len(K)
        X, X_k = (
            np.zeros((n_q if cross else n_k, D), Q.dtype),
            np.zeros((n_k, D), Q.dtype),
        )
        X[:n_q, :d] = Q
        own = X_k if cross else X
        own[:, d : 2 * d], own[:, 2 * d : 2 * d + V.shape[1]] = K, V
        return X, X_k

    def _picking(self, d: int, w: int, sizes: Any, dtype: Any) -> Weights:
        """Return W_Q … W_O that pick Q, K and V, and the output of one head."""
        (D, h, kv), i, j = sizes, np.arange(d), np.arange(w)
        d_k = D // h
        shapes = (D, D), (D, kv * d_k), (D, kv * d_k), (D, D)
        W = {x: np.zeros(z, dtype) for x, z in zip(FOUR, shapes, strict=True)}
        for r in range(h):
            W["W_Q"][i, r * d_k + i] = np.sqrt(d_k / d)  # it divides by √d_k, not √d
        for r in range(kv):
            W["W_K"][d + i, r * d_k + i] = W["W_V"][2 * d + j, r * d_k + j] = 1
        W["W_O"][self.head * d_k + j, j] = 1
        return W

    @property
    def way(self) -> str:
        """Which head of a layer answers about attention, in words."""
        return f"head {self.head + 1}, alone" if self.kind == "layer" else ""


def _sizes_of(f: Any) -> Sizes:
    """Return its own widths; a member of the zoo may say how many key heads show it."""
    n_kv = getattr(f, "says", {}).get("n_kv_heads")
    return getattr(f, "sizes", Sizes(8, 4, n_kv) if n_kv else Sizes())


def name_of(f: Any) -> str:
    """Return how a report calls it."""
    return str(getattr(f, "name", None) or getattr(f, "__name__", type(f).__name__))


def accepted(f: Any) -> set[str]:
    """Return the names of its arguments, which must be those of a signature."""
    if hasattr(f, "accepts"):
        return set(f.accepts)
    name, known = name_of(f), "\n    ".join(["", *SIGNATURES.values()])
    try:
        names = [*inspect.signature(f).parameters]
    except ValueError as error:
        raise TypeError(f"{name} tells no arguments; write one of{known}") from error
    needed = ({"Q", "K", "V"}, {"X", *FOUR, "n_heads"}, {"X", "layers", "n_heads"})
    if not any(some <= {*names} for some in (*needed, {"X", "weights", "n_heads"})):
        raise TypeError(
            f"{name}({', '.join(names)}) is called like none of{known}\n"
            f"write a function that is, and call {name} in it; for a module of torch "
            "laws.module(m, n_heads=2, q='q_proj', k='k_proj', v='v_proj', o='o_proj', "
            "call=lambda m, X, mask=None: m(X, mask)) does"
        )
    return {*names}


class Asked:
    """What a law gets as its first argument: one question, asked of one subject."""

    def __init__(self, subject: Subject, what: str) -> None:
        self.subject, self.what = subject, what
        self.ask = getattr(subject, what)

    def __call__(self, *given: Any, **options: Any) -> Any:
        """Ask, and write down what was given and answered."""
        calls = self.subject.calls
        if calls is None:
            return self.ask(*given, **options)
        names = inspect.signature(self.ask).parameters
        kept = _copies(dict(zip(names, given, strict=False)) | options)
        Y = self.ask(*given, **options)
        calls.append((kept, (Y[0] if isinstance(Y, tuple) else Y).copy()))
        return Y

    @property
    def kind(self) -> str:
        """Which signature the subject has."""
        return self.subject.kind

    @property
    def sizes(self) -> Sizes:
        """The widths of the subject."""
        return self.subject.sizes

    @property
    def tolerance(self) -> float:
        """How far from the reference its numbers may be."""
        return self.subject.tolerance

    def takes(self, name: str) -> bool:
        """Return whether the subject has an argument of this name."""
        return name in self.subject.accepts

    def need(self, name: str) -> None:
        """Go on only if the subject has an argument of this name."""
        if not self.takes(name):
            raise Unable(f"it takes no {name}")

    def due(self, *given: Any, **options: Any) -> Any:
        """Return what the reference answers."""
        try:
            return getattr(self.subject.reference, self.what)(*given, **options)
        except Broke as error:
            raise self.subject.reference.blamed_for(error) from error

    def cast(self, dtype: str) -> "Asked":
        """Return the same question, asked in this dtype; its answers are float64."""
        f = self.subject.f
        if dtype == "bfloat16":
            if not hasattr(f, "cast"):
                raise Unable("NumPy has no bfloat16")
            twin = self._twin(f.cast(dtype))
        else:
            twin = self._twin(
                lambda *given, **options: np.asarray(
                    f(*_cast(given, dtype), **_cast(options, dtype))
                ).astype(float)
            )
        return Asked(twin, self.what)

    def in_train_mode(self) -> "Asked":
        """Return the same question, asked in train mode."""
        f: Any = self.subject.f
        if self.takes("training"):
            return Asked(self._twin(partial(f, training=True)), self.what)
        if getattr(f, "module", None) is None:
            raise Unable("it has no train mode: laws.module has")
        return Asked(self._twin(f.trained), self.what)

    def gradients(self, direction: Any, *given: Any, **options: Any) -> list[Any]:
        """Return the slopes of the sum of outputs times direction, array by array."""
        f, found = self.subject.f, []
        if not hasattr(f, "gradients"):
            raise Unable(
                "NumPy has no gradients: a function of tensors has, laws.torch(f)"
            )

        def run(*given: Any, **options: Any) -> Any:
            Y, slopes = f.gradients(direction, *given, **options)
            found.append(slopes)
            return Y

        Asked(self._twin(run), self.what)(*given, **options)
        return found[-1]

    def whole(self) -> "Asked":
        """Return the question that has all arguments of the subject's signature."""
        what = "encode" if self.kind == "encoder_layer" else self.kind
        return Asked(self.subject, what)

    def head(self, r: int) -> "Asked":
        """Return the question about attention that head r of the layer answers."""
        twin = self._twin(self.subject.f)
        twin.head = r
        return Asked(twin, "attend")

    def _twin(self, f: Callable[..., Any]) -> Subject:
        twin = copy.copy(self.subject)
        twin.f, twin.calls = f, None
        return twin


def _cast(x: Any, dtype: Any) -> Any:
    """Return nested containers with their floating-point arrays in this dtype."""
    if isinstance(x, np.ndarray):
        return x.astype(dtype) if x.dtype.kind == "f" else x
    if isinstance(x, dict):
        return {name: _cast(y, dtype) for name, y in x.items()}
    return type(x)(_cast(y, dtype) for y in x) if isinstance(x, list | tuple) else x


def _copies(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.copy()
    if isinstance(x, dict):
        return {name: _copies(y) for name, y in x.items()}
    return type(x)(map(_copies, x)) if isinstance(x, list | tuple) else x
