"""Attention functions and layers as subjects: what they are handed for one answer."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mha._doors import Array
from mha.laws.subjects.conventions import NotApplicable
from mha.laws.subjects.results import Broke, WrongShape, expect_shape
from mha.laws.subjects.subject import OTHER_NAMES, Subject, Weights

FOUR = ("W_Q", "W_K", "W_V", "W_O")


class Attention(Subject):
    """A function of Q, K and V."""

    def attend(self, Q, K, V, mask=None, *, is_causal=False, heads=1):
        """Attend; `heads` is for layers, which have more than one."""
        try:
            return self._attend_once(Q, K, V, mask, is_causal)
        except WrongShape:
            raise
        except Broke:
            d, d_v = Q.shape[-1], V.shape[-1]
            if d == d_v or self.direction is not None:
                raise
            # Some, such as that of JAX, want values as wide as the keys.
            parts = parts_of(V, d)
            parts = [self._attend_once(Q, K, v, mask, is_causal) for v in parts]
        return np.concatenate(parts, -1)[..., :d_v]

    def _attend_once(self, Q, K, V, mask, is_causal):
        options = self.options(mask, is_causal, (Q.shape[-2], K.shape[-2]))
        given, more = (*Q.shape[:-1], V.shape[-1]), self.lead + 2 - Q.ndim
        if (factor := self.said.factor(Q.shape[-1])) != 1:
            self.log["scale"] = f"Q is handed over times {factor:.3g}, for the scale"
            Q = Q * factor
        if more > 0:
            # Behind the axes that are there already: (b, n, d) is (b, 1, n, d).
            front = (slice(None),) * (Q.ndim - 2) + (None,) * more
            Q, K, V = Q[front], K[front], V[front]
        groups = self.said.n_kv_heads if more > 0 else None
        if groups:
            # All heads alike: two queries share the keys of each group.
            Q, K, V = Q.repeat(2 * groups, 1), K.repeat(groups, 1), V.repeat(groups, 1)
        Y = self.call(self.target, Q, K, V, **options)
        expect_shape(Y, (*Q.shape[:-1], V.shape[-1]))
        return (Y[:, :1] if groups else Y).reshape(given)

    def layer(self, *args: Any, **options: Any) -> Array:
        """Refuse."""
        raise NotApplicable("it has no weight matrices")


class Layer(Subject):
    """A function of tokens and weight matrices."""

    kind = "layer"

    def attend(self, Q, K, V, mask=None, *, is_causal=False, heads=1):
        """Let every head attend to the same Q, K, V; return the heads side by side.

        With identity matrices a layer is its attention. Values wider than the keys go
        through in several calls, because a head of a module is as wide as its keys.
        """
        d, d_v = Q.shape[-1], V.shape[-1]
        self.log["attend"] = f"{heads} head{'s' * (heads > 1)}, all matrices I"
        if d != d_v and self.direction is not None:
            raise NotApplicable("its gradients are asked with d_v = d_k")
        if heads == 1 and d == d_v:
            return self._attend_once(Q, K, V, mask, is_causal, 1)
        parts = []
        for part in parts_of(V, d):
            q, k, v = (np.tile(x, heads) for x in (Q, K, part))
            k, v = (q, q) if Q is K is V else (k, v)
            Y = self._attend_once(q, k, v, mask, is_causal, heads)
            parts.append(Y.reshape(*Y.shape[:-1], heads, d))
        Y = np.concatenate(parts, -1)[..., :d_v]
        return Y.reshape(*Y.shape[:-2], heads * d_v)

    def _attend_once(self, Q, K, V, mask, is_causal, heads):
        eye = np.eye(Q.shape[-1], dtype=Q.dtype)
        weights = dict.fromkeys(FOUR, eye)
        others = {} if Q is K is V else {"X_k": K, "X_v": V}
        return self.layer(Q, weights, heads, mask, is_causal=is_causal, **others)

    @property
    def other_names(self) -> tuple[str, str] | None:
        """What it calls the tokens that are asked and those that answer, or None."""
        return next((pair for pair in OTHER_NAMES if self.accepts >= set(pair)), None)

    @property
    def slope_keys(self) -> tuple[Any, Any, Any]:
        return (0, *self.other_names) if self.other_names else (0, 0, 0)

    run_layer: Callable[..., Array]

    def layer(
        self, X: Array, weights: Weights, n_heads: int, mask: Array | None = None, *,
        X_k: Array | None = None, X_v: Array | None = None, is_causal: bool = False,
    ) -> Array:  # fmt: skip
        """Return the output for tokens `X` and these matrices."""
        others: list[Array] = []
        if X_k is not None or X_v is not None:
            X_k = X if X_k is None else X_k
            others = [X_k, X_k if X_v is None else X_v]
        if others and self.other_names is None:
            given = weights, n_heads, mask, is_causal
            return self._as_self_attention(X, others, *given)
        if self.said.n_kv_heads and weights["W_K"].shape == weights["W_Q"].shape:
            return self._in_groups(X, others, weights, n_heads, mask, is_causal)
        weights = self.with_scale(weights, n_heads)
        shape = X.shape[-2], (others or [X])[0].shape[-2]
        options = self.options(mask, is_causal, shape)
        more = (None,) * self.lead if X.ndim == 2 else ()
        if more:
            X, others = X[more], [x[more] for x in others]
        options |= zip(self.other_names or (), others, strict=False)
        Y = self.run_layer(X, weights, n_heads, options)
        expect_shape(Y, (*X.shape[:-1], weights["W_O"].shape[1]))
        return Y[(0,) * len(more)] if more else Y

    def with_scale(self, weights: Weights, n_heads: int) -> Weights:
        """Return weights with which its scale, if one was said, comes to 1/√d_k."""
        if (factor := self.said.factor(weights["W_Q"].shape[1] // n_heads)) == 1:
            return weights
        asking = {"W_Q", "b_Q"} & weights.keys()
        self.log["scale"] = f"W_Q is handed over times {factor:.3g}, for the scale"
        return weights | {name: weights[name] * factor for name in asking}

    def _in_groups(self, X, others, weights, n_heads, mask, is_causal):
        """Let every head have the keys of a group to itself, so that nothing is shared.

        The queries of a group are the same, and each brings home its part of the sum.
        """
        groups, d_k = self.said.n_kv_heads, weights["W_Q"].shape[1] // n_heads
        each = 2
        while each * groups * d_k < X.shape[-1]:
            each *= 2
        width, total = each * groups * d_k, 0
        tokens = [_widened(x, width) for x in (X, *others)]
        self.log["call"] = (
            f"called with {each * groups} heads, {groups} of keys, X filled with 0 to "
            f"width {width}: each head\nhas the keys of a group to itself"
        )
        for start in range(0, n_heads, groups):
            # Where heads are fewer than groups, some stand there twice.
            heads = np.resize(range(start, min(start + groups, n_heads)), groups)
            share = 1 / each / np.bincount(heads)[np.repeat(heads, each)]
            share, part = np.repeat(share, d_k)[:, None], {}
            for name, W in weights.items():
                chosen = heads if name[-1] in "KV" else np.repeat(heads, each)
                block = (chosen[:, None] * d_k + np.arange(d_k)).ravel()
                if name == "W_O":
                    W = _widened(W[block] * share.astype(W.dtype), width)
                elif name == "b_O":
                    W = _widened(W * (start == 0), width)
                elif W.ndim == 2:
                    W = _widened(W[:, block].T, width).T
                else:
                    W = W[block]
                part[name] = W
            names = dict(zip(("X_k", "X_v"), tokens[1:], strict=False))
            own = _for_heads(mask, np.repeat(heads, each))
            given = tokens[0], part, each * groups, own
            Y = self.layer(*given, is_causal=is_causal, **names)
            total = total + Y[..., : weights["W_O"].shape[1]]
        return total

    def _as_self_attention(self, X, others, weights, n_heads, mask, is_causal):
        """Ask a layer that knows self-attention only about other keys and values.

        Three times as wide a token carries what asks, what is asked and what answers,
        one beside the other, and each matrix reads its own third.
        """
        n_q, n_k, d = X.shape[-2], others[0].shape[-2], X.shape[-1]
        if n_q > n_k or any(name.startswith("b_") for name in weights):
            raise NotApplicable("it knows self-attention only")
        rows = [(0, 0)] * (X.ndim - 2) + [(0, n_k - n_q), (0, 0)]
        wide = np.concatenate([np.pad(X, rows), *others], -1)
        call = (
            f"called with {3 * n_heads} heads on tokens [Q, K, V] of width {3 * d}:\n"
            "a token is a row of Q, of K and of V, and W_Q, W_K, W_V read one each"
        )
        call += "\nQ is filled up with rows of 0, left out of the output" * (n_q < n_k)
        if mask is not None and mask.shape[-2] == n_q != 1:
            call += "\nthe mask is filled up with rows of True" * (n_q < n_k)
            before = [(0, 0)] * (mask.ndim - X.ndim)
            mask = np.pad(mask, before + rows[-mask.ndim :], constant_values=True)
        three = {name: np.zeros((3 * d, 3 * d), W.dtype) for name, W in weights.items()}
        for third, name in enumerate(FOUR[:3]):
            block = slice(third * d, (third + 1) * d)
            three[name][block] = np.tile(weights[name], 3)
            three["W_O"][block, block] = weights["W_O"]
        self.log["call"] = call
        mask = _for_heads(mask, np.arange(3 * n_heads) % n_heads)
        Y = self.layer(wide, three, 3 * n_heads, mask, is_causal=is_causal)
        return Y[..., :n_q, :d]


def _for_heads(mask, heads):
    """Return the masks of these heads, if each has its own."""
    several = mask is not None and mask.ndim == 4 and mask.shape[1] > 1
    return mask[:, heads] if several else mask


def _widened(x, width):
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, width - x.shape[-1])])


def parts_of(V: Array, width: int) -> list[Array]:
    """Return the values cut into parts of this width; the last is filled with 0."""
    missing = [(0, 0)] * (V.ndim - 1) + [(0, -V.shape[-1] % width)]
    return np.split(np.pad(V, missing), -(-V.shape[-1] // width), -1)


class LayerFunction(Layer):
    """A function with the signature of `mha.multi_head_attention`."""

    def run_layer(self, X: Array, weights: Weights, n_heads: int, options: Any) -> Any:
        """Call the function with the four matrices in order, biases by name."""
        four = [weights[name] for name in FOUR]
        options |= {name: b for name, b in weights.items() if name.startswith("b_")}
        return self.call(self.target, X, *four, n_heads, **options)


class AdaptedLayer(Layer):
    """A function of tokens and a dict of weight matrices."""

    takes_bias = False

    def run_layer(self, X: Array, weights: Weights, n_heads: int, options: Any) -> Any:
        """Call the function with the dict."""
        return self.call(self.target, X, weights, n_heads, **options)
