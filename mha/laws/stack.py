"""Encoders as subjects: they answer `encode(X, layers, n_heads, mask)`, as a whole."""

import itertools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from mha.encoder import encoder
from mha.laws.subject import FOUR, Array, Sizes, Subject, Weights, expect_shape
from mha.laws.words import NotApplicable

__all__ = ["encoder_weights"]

# No two of 1, √d_k, d_k, √d_model, d_model are equal, or √n for n = 2 or 5 tokens.
SMALL = Sizes()
VECTORS = "b_2 b_Q b_K b_V b_O gain_1 bias_1 gain_2 bias_2".split()
# What may stay in a layer whose two parts write nothing.
LOUD = ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V", "W_1", "b_1")


def encoder_weights(
    seed: int, n_layers: int = 1, d_model: int = SMALL.width, d_ff: int = SMALL.hidden
) -> list[Weights]:
    """Draw the weights of a small encoder, as `mha.encoder` takes them.

    Parameters
    ----------
    seed : int
        Fixes all numbers.
    n_layers, d_model, d_ff : int
        The sizes; with d_model = 6, n_heads = 2 fits.

    Returns
    -------
    layers : list of dict
        Matrices, biases and gains.

    Examples
    --------
    >>> encoder_weights(seed=0)[0]["W_1"].shape
    (6, 7)
    """
    rng = np.random.default_rng(seed)
    return [_draw(rng, d_model, d_ff) for _ in range(n_layers)]


def _draw(rng, width, hidden):
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(FOUR, (width, width))
    shapes |= {"W_1": (width, hidden), "W_2": (hidden, width), "b_1": (hidden,)}
    shapes |= dict.fromkeys(VECTORS, (width,))
    # Matrices of any width give numbers of the same size.
    size = 2 * (width / SMALL.width) ** 0.5
    weights = {name: rng.standard_normal(x) / size for name, x in shapes.items()}
    # A gain near 0 would hide what the norm did.
    gains = {f"gain_{i}": 1 + abs(weights[f"gain_{i}"]) for i in (1, 2)}
    return {name: W.round(1) for name, W in (weights | gains).items()}


class Drawn:
    """Weights that are known by their seed, and print as the call that draws them."""

    def __init__(self, seed: int, sizes: Sizes = SMALL) -> None:
        self.seed, self.sizes = int(seed), sizes

    def draw(self) -> list[Weights]:
        """Return the weights."""
        width, *_, hidden, depth = self.sizes
        return encoder_weights(self.seed, depth, width, hidden)

    def __repr__(self) -> str:
        width, *_, hidden, depth = self.sizes
        more = f", n_layers={depth}" if depth > 1 else ""
        if (width, hidden) != (SMALL.width, SMALL.hidden):
            more += f", d_model={width}, d_ff={hidden}"
        return f"laws.encoder_weights(seed={self.seed}{more})"


class Stack(Subject):
    """An encoder, or one layer of it."""

    kind = "encoder"
    tried = "tokens of shape (2, 6) and the weights of laws.encoder_weights(0)"
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

    @property
    def sizes(self):
        return self.own or SMALL._replace(depth=self.depth)

    def encode(
        self, X: Array, layers: list[Weights], mask: Array | None = None, *,
        is_causal: bool = False,
    ) -> Array:  # fmt: skip
        """Return the tokens after the layers with these weights."""
        if len(layers) != 1 and self.depth == 1:
            raise NotApplicable("it is one layer")
        options = self.options(mask, is_causal, (X.shape[-2],) * 2)
        more = (None,) * self.lead if X.ndim == 2 else ()
        layers = [self.with_places(weights, X.dtype) for weights in layers]
        layers = [self.with_scale(weights) for weights in layers]
        Y = self.run_encoder(X[more], layers, self.sizes.heads, options)
        expect_shape(Y, X[more].shape)
        return Y[(0,) * len(more)] if more else Y

    # Calls what is underneath; each kind of encoder does it in its own way.
    run_encoder: Callable[..., Array]

    def with_places(self, weights: Weights, dtype: Any) -> Weights:
        """Return the weights in this dtype, without biases if it has none."""
        return {
            name: W.astype(dtype, copy=False)
            for name, W in weights.items()
            if self.takes_bias or not name.startswith("b")
        }

    def with_scale(self, weights: Weights) -> Weights:
        """Return weights with which its scale, if one was said, comes to 1/√d_k."""
        factor = self.said.factor(self.sizes.d_k)
        asking = {"W_Q", "b_Q"} & weights.keys() if factor != 1 else ()
        return weights | {name: weights[name] * factor for name in asking}

    @property
    def norm_first(self) -> bool:
        """Whether it is a pre-norm encoder; where it does not say, it is tried."""
        said = self.fixed if "norm_first" in self.fixed else dict(self.mode.settings)
        return said["norm_first"] if "norm_first" in said else self._facts()[2]

    @property
    def final_norm(self) -> bool:
        """Whether one more norm follows the last layer."""
        if self.said.final_norm is not None:
            return self.said.final_norm
        if "final_norm" in self.fixed:
            return self.fixed["final_norm"] is not None
        return self._facts()[3]

    @property
    def eps(self) -> float:
        return self._facts()[0]

    @property
    def activation(self) -> str:
        return self._facts()[1]

    def _facts(self):
        """Return ε, bend, norm_first and final_norm, as they agree with the reference.

        None of them is a law.
        """
        if self.mode not in self.known:
            self.known[self.mode] = self._find_facts()
        return self.known[self.mode]

    def _find_facts(self):
        # The first token has so little variance that ε shows.
        X = np.random.default_rng(1).standard_normal((2, self.sizes.width))
        X[0] /= 500
        drawn = Drawn(0, self.sizes).draw()
        if self.own is None:
            drawn = drawn[:1]
        layers = [self.with_places(w, X.dtype) for w in drawn]
        Y = self.encode(X, layers)
        said = dict(self.mode.settings) | self.fixed
        firsts = [said["norm_first"]] if "norm_first" in said else [False, True]
        lasts = [self.said.final_norm or False]
        if self.said.final_norm is None:
            lasts = [False, True]
        tried = itertools.product(
            (1e-5, 1e-6, 1e-8, 1e-12), ("relu", "gelu"), firsts, lasts
        )
        for facts in tried:
            expected = reference(X, layers, self, facts, is_causal=self.always_causal)
            if np.allclose(Y, expected, rtol=0, atol=1e-9):
                return facts
        # It agrees with nothing: a pre-norm layer whose parts are silent is no change.
        pre = np.allclose(self.encode(X, silenced(drawn)), X, atol=1e-6)
        return 1e-5, "relu", pre, lasts[0]

    def attend(self, Q, K, V, mask=None, *, is_causal=False, heads=1):
        """Run all of it on tokens, which ask, are asked and answer."""
        if not (Q is K is V):
            raise NotApplicable("norms stand around its attention: check that alone")
        X, layers = self.tokens(Q)
        return self.encode(X, layers, mask, is_causal=is_causal)

    def tokens(self, X: Array) -> tuple[Array, list[Weights]]:
        """Return tokens of its width, and weights of all its layers."""
        sizes = self.sizes
        drawn = Drawn(0, sizes)
        self.log["attend"] = f"{sizes.heads} heads, tokens X @ E, {drawn!r}"
        E = np.random.default_rng(0).standard_normal((X.shape[-1], sizes.width))
        layers = [self.with_places(w, X.dtype) for w in drawn.draw()]
        if not self.reads_values:
            layers = [
                w | {x: 0 * w[x] for x in ("W_V", "b_V") if x in w} for w in layers
            ]
        return X @ E.round(1).astype(X.dtype), layers

    def one_by_one(self, X: Array, layers: list[Weights]) -> Array:
        """Return what its layers make of the tokens, each called by itself."""
        for weights in layers:
            X = self.encode(X, [weights])
        return X


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


def reference(
    X: Array, layers: list[Weights], like: Stack, facts: Any = None, **options: Any
) -> Array:
    """Return what `mha.encoder`, set like a subject, makes of the same weights."""
    if facts is None:
        facts = like.eps, like.activation, like.norm_first, like.final_norm
    eps, bend, first, last = facts
    return encoder(
        X, layers, like.sizes.heads, eps=eps, activation=bend, norm_first=first,
        final_norm=(None, None) if last else None, **options,
    )  # fmt: skip


def silenced(layers: list[Weights]) -> list[Weights]:
    """Return the layers with both parts writing zeros, and with plain norms."""
    gains = {x: np.ones_like(layers[0][x]) for x in ("gain_1", "gain_2")}
    zeroed = ({x: W if x in LOUD else 0 * W for x, W in w.items()} for w in layers)
    return [weights | gains for weights in zeroed]
