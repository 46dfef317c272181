"""Encoders as subjects: they answer `encode(X, layers, n_heads, mask)`, as a whole."""

import itertools
from collections.abc import Callable
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
FACTS = ("eps", "activation", "norm_first", "final_norm")


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
    shapes: dict[str, Any] = dict.fromkeys(FOUR, (d_model, d_model))
    shapes |= {"W_1": (d_model, d_ff), "W_2": (d_ff, d_model), "b_1": (d_ff,)}
    shapes |= dict.fromkeys(VECTORS, (d_model,))
    # Matrices of any width give numbers of the same size.
    size, layers = 2 * (d_model / SMALL.width) ** 0.5, []
    for _ in range(n_layers):
        drawn = {name: rng.standard_normal(x) / size for name, x in shapes.items()}
        # A gain near 0 would hide what the norm did.
        drawn |= {x: 1 + abs(drawn[x]) for x in ("gain_1", "gain_2")}
        layers.append({name: W.round(1) for name, W in drawn.items()})
    return layers


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
    # A twin without them gets a value of 0 from every token.
    reads_values = True
    # Calls what is underneath; each kind of encoder does it in its own way.
    run_encoder: Callable[..., Array]

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        # What was found out, by mode; all twins share it.
        self.known = {}

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
        layers = [self.scaled(weights, self.sizes.d_k) for weights in layers]
        Y = self.run_encoder(X[more], layers, self.sizes.heads, options)
        expect_shape(Y, X[more].shape)
        return Y[(0,) * len(more)]

    def with_places(self, weights: Weights, dtype: Any) -> Weights:
        """Return the weights in this dtype, without biases if it has none."""
        return {
            name: W.astype(dtype, copy=False)
            for name, W in weights.items()
            if self.takes_bias or not name.startswith("b")
        }

    def facts(self) -> dict[str, Any]:
        """Return ε, bend and both choices of norms, as they agree with `mha.encoder`.

        None of them is a law; what was said is not tried.
        """
        if self.mode not in self.known:
            self.known[self.mode] = dict(zip(FACTS, self._find_facts(), strict=True))
        return self.known[self.mode]

    eps = property(lambda self: self.facts()["eps"])
    activation = property(lambda self: self.facts()["activation"])
    norm_first = property(lambda self: self.facts()["norm_first"])
    final_norm = property(lambda self: self.facts()["final_norm"])

    def _find_facts(self):
        # The first token has so little variance that ε shows.
        X = np.random.default_rng(1).standard_normal((2, self.sizes.width))
        X[0] /= 500
        drawn = Drawn(0, self.own or SMALL).draw()
        layers = [self.with_places(w, X.dtype) for w in drawn]
        pre, last = dict(self.mode.settings).get("norm_first"), self.said.final_norm
        firsts = [False, True] if pre is None else [pre]
        lasts, Y = [False, True] if last is None else [last], self.encode(X, layers)
        epsilons, bends = (1e-5, 1e-6, 1e-8, 1e-12), ("relu", "gelu")
        for found in itertools.product(epsilons, bends, firsts, lasts):
            facts = dict(zip(FACTS, found, strict=True))
            expected = reference(X, layers, self, facts, is_causal=self.always_causal)
            if np.allclose(Y, expected, rtol=0, atol=1e-9):
                return found
        # It agrees with nothing: a pre-norm layer whose parts are silent is no change.
        if len(firsts) == 2:
            firsts = [np.allclose(self.encode(X, silenced(drawn)), X, atol=1e-6)]
        return 1e-5, "relu", firsts[0], lasts[0]

    def attend(self, Q, K, V, mask=None, *, is_causal=False, heads=1):
        """Run all of it on tokens, which ask, are asked and answer."""
        if not (Q is K is V):
            raise NotApplicable("norms stand around its attention: check that alone")
        X, layers = self.tokens(Q)
        return self.encode(X, layers, mask, is_causal=is_causal)

    def tokens(self, X: Array) -> tuple[Array, list[Weights]]:
        """Return tokens of its width, and weights of all its layers."""
        drawn = Drawn(0, self.sizes)
        self.log["attend"] = f"{self.sizes.heads} heads, tokens X @ E, {drawn!r}"
        E = np.random.default_rng(0).standard_normal((X.shape[-1], self.sizes.width))
        layers = [self.with_places(w, X.dtype) for w in drawn.draw()]
        if not self.reads_values:
            deaf = ("W_V", "b_V") if self.takes_bias else ("W_V",)
            layers = [w | {x: 0 * w[x] for x in deaf} for w in layers]
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

    def variants(self) -> list[Self]:
        if "norm_first" not in self.accepts:
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
    facts = facts or like.facts()
    last = (None, None) if facts["final_norm"] else None
    return encoder(
        X, layers, like.sizes.heads, **facts | options | {"final_norm": last}
    )


def silenced(layers: list[Weights]) -> list[Weights]:
    """Return the layers with both parts writing zeros, and with plain norms."""
    gains = {x: np.ones_like(layers[0][x]) for x in ("gain_1", "gain_2")}
    zeroed = ({x: W if x in LOUD else 0 * W for x, W in w.items()} for w in layers)
    return [weights | gains for weights in zeroed]
