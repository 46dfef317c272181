"""Encoders as subjects: they answer `encode(X, layers, n_heads, mask)`, as a whole."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mha.laws.subject import FOUR, Called, Sizes, Subject, Weights, expect_shape
from mha.laws.words import skip_if
from mha.layers import encoder

__all__ = ["encoder_weights"]

# No two of 1, √d_k, d_k, √d_model, d_model are equal, or √n for n = 2 or 5 tokens.
SMALL = Sizes()
VECTORS = "b_2 b_Q b_K b_V b_O gain_1 bias_1 gain_2 bias_2".split()
LOUD = "W_Q W_K W_V b_Q b_K b_V W_1 b_1".split()  # may stay where nothing is written


class encoder_weights(list[Weights]):
    """Draw the weights of a small encoder, as `mha.encoder` takes them.

    They print as the call that draws them.

    Parameters
    ----------
    seed, n_layers, d_model, d_ff : int
        What fixes all numbers, and the sizes; with d_model = 6, n_heads = 2 fits.

    Examples
    --------
    >>> encoder_weights(seed=0)[0]["W_1"].shape
    (6, 7)
    """

    def __init__(
        self, seed: int, n_layers: int = 1, d_model: int = 6, d_ff: int = 7
    ) -> None:
        rng, sizes = np.random.default_rng(seed), (d_model, d_ff)
        shapes: dict[str, Any] = dict.fromkeys(FOUR, (d_model, d_model))
        shapes |= {"W_1": sizes, "W_2": sizes[::-1], "b_1": (d_ff,)}
        shapes |= dict.fromkeys(VECTORS, (d_model,))
        # Matrices of any width give numbers of the same size.
        size = 2 * (d_model / SMALL.width) ** 0.5
        for _ in range(n_layers):
            drawn = {name: rng.standard_normal(x) / size for name, x in shapes.items()}
            # A gain near 0 would hide what the norm did.
            drawn |= {x: 1 + abs(drawn[x]) for x in ("gain_1", "gain_2")}
            self.append({name: W.round(1) for name, W in drawn.items()})
        self.call = f"laws.encoder_weights(seed={seed}"
        self.call += f", n_layers={n_layers}" if n_layers > 1 else ""
        if sizes != (SMALL.width, SMALL.hidden):
            self.call += f", d_model={d_model}, d_ff={d_ff}"

    def __repr__(self) -> str:
        return f"{self.call})"


def drawn_for(sizes: Sizes, seed: int = 0) -> list[Weights]:
    return encoder_weights(seed, sizes.depth, sizes.width, sizes.hidden)


class Facts(NamedTuple):
    """What is no law, and must be known to compare an encoder with `mha.encoder`."""

    eps: float = 1e-5
    activation: str = "relu"
    norm_first: bool = False
    final_norm: bool = False
    known: bool = True  # whether the place of its norms was told or found


class Stack(Subject):
    kind = "encoder"
    tried = "tokens of shape (2, 6) and the weights of laws.encoder_weights(0)"
    reads_values = True  # a twin without them gets a value of 0 from every token
    # The layers of a module, each as a subject; a function runs one alone as well.
    parts: Callable[[], list[Subject]] = list

    def __init__(self, called: Called, lead: int = 0, many: bool = False) -> None:
        super().__init__(called, lead)
        self.many, self.depth = many, 2 if many else 1
        self.known: dict[str, Facts] = {}  # by mode; all twins share it
        if "norm_first" in self.accepts:
            self.switch = "norm_first", (False, True)

    @property
    def sizes(self):
        return self.own or SMALL._replace(depth=self.depth)

    def encode(self, X, layers, mask=None, *, is_causal=False):
        skip_if(len(layers) != 1 and not self.many, "it is one layer")
        more, n_heads = (None,) * self.lead if X.ndim == 2 else (), self.sizes.heads
        layers = [self.with_places(weights, X.dtype) for weights in layers]
        layers = [self.scaled(weights, self.sizes.d_k) for weights in layers]
        options = self.options(X[more], X.shape[-2], mask, is_causal, n_heads)
        given = layers if self.many else layers[0]
        self.log["given"] = {"X": X[more]} | options
        Y = self.call(self.target, X[more], given, n_heads, **options)
        expect_shape(Y, X[more].shape)
        return Y[(0,) * len(more)]

    def with_places(self, weights, dtype):
        """Return the weights in this dtype, without biases if it has none."""
        return {
            name: W.astype(dtype, copy=False)
            for name, W in weights.items()
            if self.takes_bias or not name.startswith("b")
        }

    @property
    def facts(self) -> Facts:
        """What agrees with `mha.encoder`; what was said is not tried."""
        if self.mode not in self.known:
            self.known[self.mode] = self._find_facts()
        return self.known[self.mode]

    def _find_facts(self):
        # The first token has so little variance that ε shows.
        X = np.random.default_rng(1).standard_normal((2, self.sizes.width))
        X[0] /= 500
        drawn = drawn_for(self.own or SMALL)
        layers = [self.with_places(w, X.dtype) for w in drawn]
        pre, last = self.settings.get("norm_first"), self.said.final_norm
        firsts = [False, True] if pre is None else [pre]
        lasts, Y = [False, True] if last is None else [last], self.encode(X, layers)
        epsilons, bends = (1e-5, 1e-6, 1e-8, 1e-12), ("relu", "gelu")
        for some in itertools.product(epsilons, bends, firsts, lasts):
            facts = Facts(*some)
            settings = as_settings(facts) | {"is_causal": self.always_causal}
            expected = encoder(X, layers, self.sizes.heads, **settings)
            if np.allclose(Y, expected, rtol=0, atol=1e-9):
                return facts
        # It agrees with nothing: a pre-norm layer whose parts are silent is no change.
        if len(firsts) == 2:
            firsts = [np.allclose(self.encode(X, silenced(drawn)), X, atol=1e-6)]
        known = pre is not None or last is not None
        return Facts(norm_first=firsts[0], final_norm=lasts[0], known=known)

    def attend(self, Q, K, V, mask=None, *, is_causal=False, heads=1):
        """Run all of it on tokens of its width, which ask, are asked and answer."""
        skip_if(not (Q is K is V), "norms stand around its attention: check that alone")
        X, drawn = Q, drawn_for(self.sizes)
        self.log["attend"] = f"{self.sizes.heads} heads, tokens X @ E, {drawn!r}"
        E = np.random.default_rng(0).standard_normal((X.shape[-1], self.sizes.width))
        layers = [self.with_places(w, X.dtype) for w in drawn]
        if not self.reads_values:
            deaf = ("W_V", "b_V") if self.takes_bias else ("W_V",)
            layers = [w | {x: 0 * w[x] for x in deaf} for w in layers]
        X = X @ E.round(1).astype(X.dtype)
        return self.encode(X, layers, mask, is_causal=is_causal)

    def one_by_one(self, X, layers):
        parts: Any = self.parts() or [self] * len(layers)
        for part, weights in zip(parts, layers, strict=True):
            X = part.but(settings=self.settings).encode(X, [weights])
        return X


def as_settings(facts: Facts) -> dict[str, Any]:
    last = (None, None) if facts.final_norm else None
    settings = facts._asdict() | {"final_norm": last}
    return {name: x for name, x in settings.items() if name != "known"}


def silenced(layers: list[Weights]) -> list[Weights]:
    """Return the layers with both parts writing zeros, and with plain norms."""
    gains = {x: np.ones_like(layers[0][x]) for x in ("gain_1", "gain_2")}
    zeroed = ({x: W if x in LOUD else 0 * W for x, W in w.items()} for w in layers)
    return [weights | gains for weights in zeroed]
