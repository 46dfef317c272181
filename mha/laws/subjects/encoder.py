"""Encoders as subjects: whole, and with their attention alone, seen through the norms.

A law asks for the output of `encode(X, layers, n_heads, mask)`. The laws of attention
are asked too: tokens are framed so that norms cannot change them beyond recovery.
"""

import itertools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mha._doors import Array
from mha.encoder import encoder
from mha.laws.subjects.conventions import EPS, NotApplicable
from mha.laws.subjects.layer import FOUR, Layer
from mha.laws.subjects.results import Broke, expect_shape

__all__ = ["encoder_weights"]

Weights = dict[str, Array]
# No two of 1, √d_k, d_k, √d_model, d_model are equal, or √n for n = 2 or 5 tokens.
WIDTH, HEADS, HIDDEN = 6, 2, 7
# The two numbers of the frame stand far apart, and no token outweighs them.
FRAME = 64.0
VECTORS = "b_2 b_Q b_K b_V b_O gain_1 bias_1 gain_2 bias_2".split()
# What may stay in a layer whose two parts write nothing.
LOUD = ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V", "W_1", "b_1")


def encoder_weights(seed: int, n_layers: int = 1) -> list[Weights]:
    """Draw the weights of a small encoder, as `mha.encoder` takes them.

    Equation: see `mha.encoder_layer`  (chapter encoder_layer)

    Parameters
    ----------
    seed : int
        Fixes all numbers.
    n_layers : int, default 1
        How many layers.

    Returns
    -------
    layers : list of dict
        Matrices, biases and gains for d_model = 6 and d_ff = 7; n_heads = 2 fits.

    Examples
    --------
    >>> encoder_weights(seed=0)[0]["W_1"].shape
    (6, 7)
    """
    rng = np.random.default_rng(seed)
    return [_draw(rng) for _ in range(n_layers)]


def shapes_of(width: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all weights of a layer."""
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(FOUR, (width, width))
    shapes |= {"W_1": (width, HIDDEN), "W_2": (HIDDEN, width), "b_1": (HIDDEN,)}
    return shapes | dict.fromkeys(VECTORS, (width,))


def _draw(rng):
    weights = {name: rng.standard_normal(x) / 2 for name, x in shapes_of(WIDTH).items()}
    # A gain near 0 would hide what the norm did.
    gains = {f"gain_{i}": 1 + abs(weights[f"gain_{i}"]) for i in (1, 2)}
    return {name: W.round(1) for name, W in (weights | gains).items()}


class Drawn:
    """Weights that are known by their seed, and print as the call that draws them."""

    def __init__(self, seed: int, n_layers: int = 1) -> None:
        self.seed, self.n_layers = int(seed), n_layers

    def draw(self) -> list[Weights]:
        """Return the weights."""
        return encoder_weights(self.seed, self.n_layers)

    def __repr__(self) -> str:
        more = f", n_layers={self.n_layers}" if self.n_layers > 1 else ""
        return f"laws.encoder_weights(seed={self.seed}{more})"


class Stack(Layer):
    """An encoder, or one layer of it."""

    kind = "encoder"
    tried = "tokens of shape (2, 6) and the weights of laws.encoder_weights(0)"
    other_names = None
    final_norm = False
    # How many layers a law about the whole runs.
    depth = 1
    # What `functools.partial` has decided.
    fixed: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        # What was found out, for all modes: their copies share it.
        self.known = {}
        # A twin without them gets a value of 0 from every token.
        self.reads_values = True

    def encode(
        self, X: Array, layers: list[Weights], n_heads: int = HEADS,
        mask: Array | None = None, *, is_causal: bool = False,
    ) -> Array:  # fmt: skip
        """Return the tokens after the layers with these weights."""
        if len(layers) != 1 and self.depth == 1:
            raise NotApplicable("it is one layer")
        options = self.options(mask, is_causal, (X.shape[-2],) * 2)
        more = (None,) * self.lead if X.ndim == 2 else ()
        layers = [self.with_places(weights, X.dtype) for weights in layers]
        layers = [self.with_scale(weights, n_heads) for weights in layers]
        Y = self.run_encoder(X[more], layers, n_heads, options)
        expect_shape(Y, X[more].shape)
        return Y[(0,) * len(more)] if more else Y

    # Calls what is underneath; each kind of encoder does it in its own way.
    run_encoder: Callable[..., Array]

    def with_places(self, weights: Weights, dtype: npt.DTypeLike) -> Weights:
        """Return the weights in this dtype, without biases if it has none."""
        return {
            name: W.astype(dtype, copy=False)
            for name, W in weights.items()
            if self.takes_bias or not name.startswith("b")
        }

    @property
    def norm_first(self) -> bool:
        """Whether it is a pre-norm encoder; where it does not say, it is tried."""
        said = self.fixed if "norm_first" in self.fixed else dict(self.mode.settings)
        if "norm_first" in said:
            return said["norm_first"]
        return self._remember("norm_first", self._is_pre_norm)

    @property
    def eps(self) -> float:
        return self._remember("conventions", self._conventions)[0]

    @property
    def activation(self) -> str:
        return self._remember("conventions", self._conventions)[1]

    def _conventions(self):
        """Return the ε and the bend with which it agrees with the reference, if any."""
        # Neither is a law. The first token has so little variance that ε shows.
        X = np.array([[0.001, 0.002, 0, 0.004, 0, 0], [1.0, -2, 0, 2, 3, 1]])
        layers = [self.with_places(w, X.dtype) for w in encoder_weights(0)]
        Y = self.encode(X, layers)
        pairs = list(itertools.product((1e-5, 1e-6, 1e-8, 1e-12), ("relu", "gelu")))
        for eps, bend in pairs:
            options = {"eps": eps, "activation": bend, "is_causal": self.always_causal}
            expected = expected_encoder(self, X, layers, **options)
            if np.allclose(Y, expected, rtol=0, atol=1e-9):
                return eps, bend
        return pairs[0]

    def _is_pre_norm(self):
        X = np.array([[1.0, 2, 4, 9, 0, 3], [0.0, 3, -1, 2, 1, 7]])
        return np.allclose(self.encode(X, silenced(encoder_weights(0))), X, atol=1e-6)

    def _remember(self, what, find_out):
        key = what, self.mode
        if key not in self.known:
            self.known[key] = find_out()
        return self.known[key]

    def attend(self, Q, K, V, mask=None, *, is_causal=False, heads=1):
        """Run all of it on tokens; let its attention alone answer three inputs."""
        if not (Q is K is V):
            return super().attend(Q, K, V, mask, is_causal=is_causal, heads=heads)
        drawn = Drawn(0, self.depth)
        self.log["attend"] = f"{HEADS} heads, tokens X @ E, {drawn!r}"
        E = np.random.default_rng(0).standard_normal((Q.shape[-1], WIDTH)).round(1)
        X, layers = Q @ E.astype(Q.dtype), drawn.draw()
        if not self.reads_values:
            layers = [w | {x: 0 * w[x] for x in ("W_V", "b_V")} for w in layers]
        return self.encode(X, layers, HEADS, mask, is_causal=is_causal)

    def run_layer(self, X, weights, n_heads, options):
        if why := self._remember("hidden", self._why_hidden):
            raise NotApplicable(why)
        return self._see_through(X, weights, n_heads, options)

    def _see_through(self, X, weights, n_heads, options, size=FRAME, spare=0):
        """Return what attention alone brings home, read off framed tokens."""
        # One more head, or two, has room for the two numbers of the frame.
        d_head = X.shape[-1] // n_heads
        heads = n_heads + (1 if d_head > 1 else 2) + spare
        width = heads * d_head
        framed, spread = frame(X, width, self.eps, size)
        call = f"the encoder is called with {heads} heads on tokens of width {width}"
        self.log["frame"] = f"{call}:\ntwo more numbers keep norms from changing them"
        # Pre-norm divides by the spread what attention is to read.
        factor = spread if self.norm_first else 1.0
        # All names are there, for a reader that takes none of them to be optional.
        layer = {name: np.zeros(shape) for name, shape in shapes_of(width).items()}
        layer |= dict.fromkeys(("gain_1", "gain_2"), np.ones(width))
        for name, W in weights.items():
            wide = layer[name] = np.zeros((width,) * W.ndim, W.dtype)
            wide[tuple(map(slice, W.shape))] = W * factor if name in FOUR[:3] else W
        layer = self.with_places(layer, X.dtype)
        Y = self.run_encoder(framed, [layer], heads, options)
        expect_shape(Y, framed.shape)
        eps = EPS.get(str(self.cast), np.finfo(Y.dtype).eps)
        return unframe(Y, framed, X.shape[-1], float(eps))

    def _why_hidden(self):
        """Return why norms and residuals do not let its attention be seen, or "".

        One token alone should bring home itself; with heads one number wide not even a
        wrong scale matters here. Where it does not, its attention may be of another
        kind (a sink, shared keys): then what b_O writes must arrive unchanged, and
        what it brings home, in another frame and among more heads, must be the same.
        """
        X, eye = np.array([[1.0, -2.0]])[(None,) * self.lead], np.eye(2)
        weights = dict.fromkeys(FOUR, eye)
        writing = weights | {"W_O": 0 * eye, "b_O": X.reshape(2)}
        options = self.options(None, False, (1, 1))
        try:
            home = self._see_through(X, weights, 2, options)
            arrived = np.allclose(home, X, atol=1e-4)
            if not arrived and self.takes_bias and np.all(home):
                written = self._see_through(X, writing, 2, options)
                again = self._see_through(X, weights, 2, options, 2 * FRAME, 4)
                arrived = np.allclose([written, again], [X, home], atol=1e-4)
        except Broke as error:
            return f"one token alone gave no answer: {error}"
        brought = ", ".join(f"{x:.3g}" for x in home.flat)
        found = f"one token alone, [1, -2], should bring home itself, not [{brought}]"
        return "" if arrived else found


class StackFunction(Stack):
    """A function with the signature of `mha.encoder` or `mha.encoder_layer`."""

    takes_bias = True

    def __init__(self, *args, many=False, **options):
        super().__init__(*args, **options)
        self.many, self.depth = many, 2 if many else 1
        self.fixed = getattr(self.target, "keywords", {})

    def variants(self) -> list[Self]:
        if "norm_first" not in self.accepts or "norm_first" in self.fixed:
            return [self]
        return [self.with_settings(norm_first=pre) for pre in (False, True)]

    def trained_and_not(self) -> list[Self]:
        if "training" not in self.accepts:
            return super().trained_and_not()
        return [self.with_settings(training=training) for training in (True, False)]

    def run_encoder(self, X, layers, n_heads, options):
        weights = layers if self.many else layers[0]
        return self.call(self.target, X, weights, n_heads, **options)


def expected_encoder(
    subject: Stack, X: Array, layers: list[Weights], **options: Any
) -> Array:
    """Return what `mha.encoder`, set like the subject, makes of the same weights."""
    if "eps" not in options:
        options |= {"eps": subject.eps, "activation": subject.activation}
    options["final_norm"] = (None, None) if subject.final_norm else None
    return encoder(X, layers, HEADS, norm_first=subject.norm_first, **options)


def silenced(layers: list[Weights]) -> list[Weights]:
    """Return the layers with both parts writing zeros, and with plain norms."""
    gains = dict.fromkeys(("gain_1", "gain_2"), np.ones(WIDTH))
    zeroed = ({x: W if x in LOUD else 0 * W for x, W in w.items()} for w in layers)
    return [weights | gains for weights in zeroed]


def frame(
    X: Array, width: int, eps: float, least: float = FRAME
) -> tuple[Array, float]:
    """Return wider tokens that a norm only divides, and by what.

    Two numbers behind each token make all of them alike in mean, 0, and in length.
    """
    total, square = X.sum(-1), (X * X).sum(-1)
    size = max(least**2, 2 * X.shape[-1] * square.max(initial=0.0))
    half = np.sqrt((size - square) / 2 - total * total / 4)
    framed = np.zeros((*X.shape[:-1], width), X.dtype)
    framed[..., : X.shape[-1]] = X
    framed[..., X.shape[-1]] = half - total / 2
    framed[..., X.shape[-1] + 1] = -half - total / 2
    return framed, float(np.sqrt(size / width + eps))


def unframe(Y: Array, framed: Array, d: int, eps: float) -> Array:
    """Return by how much the first `d` numbers of each row moved, without the norms.

    Whatever norms did to a row, they did to the two numbers of its frame too.
    """
    a, b = framed[..., d : d + 1], framed[..., d + 1 : d + 2]
    y_a, y_b = Y[..., d : d + 1], Y[..., d + 1 : d + 2]
    with np.errstate(all="ignore"):
        moved = (Y[..., :d] - y_b) / (y_a - y_b) * (a - b) + b - framed[..., :d]
    # The frame is large: what is smaller than its rounding was 0.
    noise = 100 * eps * abs(a)
    return np.where(abs(moved) < noise, 0, moved)
