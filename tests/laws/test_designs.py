"""Designs give the numbers of their equations, and laws find bugs in layers of them.

The layers below are written apart from `mha.designs`, as the code of a model is.
"""

import math

import numpy as np
import pytest
import torch
from torch import nn

from mha import designs, laws
from mha.designs import both, causal, scores, weights, window

# Each design against its equation, number by number ---------------------------------


def drawn(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("pairs", ["halves", "neighbours"])
def test_rotary_multiplies_each_pair_by_a_complex_number_of_its_position(pairs):
    (x,) = drawn((3, 7, 10))
    y = designs.rotary(x, 500.0, pairs, dims=6, at=np.arange(7) + 5)
    for m in range(3):
        one, two = (m, m + 3) if pairs == "halves" else (2 * m, 2 * m + 1)
        turn = np.exp(1j * (np.arange(7) + 5) * 500.0 ** (-2 * m / 6))
        due = (x[..., one] + 1j * x[..., two]) * turn
        np.testing.assert_allclose(y[..., one] + 1j * y[..., two], due)
    assert np.array_equal(y[..., 6:], x[..., 6:])


def slopes_of_the_authors(n):
    """Return the slopes as the code of Press et al. has them."""
    power = 2 ** math.floor(math.log2(n))
    if power == n:
        start = 2 ** -(2 ** -(math.log2(n) - 3))
        return [start * start**i for i in range(n)]
    half_steps = slopes_of_the_authors(2 * power)[::2]
    return slopes_of_the_authors(power) + half_steps[: n - power]


@pytest.mark.parametrize("n_heads", range(1, 18))
def test_alibi_has_the_slopes_of_the_authors_for_every_number_of_heads(n_heads):
    due = slopes_of_the_authors(n_heads)
    np.testing.assert_allclose(designs.alibi_slopes(n_heads), due)
    (X,) = drawn((n_heads, 5, 2))
    assert np.allclose(designs.alibi(X, X)[:, 4, 1], -3 * np.array(due))


def bucket(j_minus_i, buckets, far):
    """Return the bucket of one offset, as the report of T5 tells it."""
    half, distance = buckets // 2, abs(j_minus_i)
    exact, first = half // 2, half * (j_minus_i > 0)
    if distance < exact:
        return first + distance
    steps = math.log2(distance / exact) / math.log2(far / exact) * (half - exact)
    return first + min(exact + int(steps), half - 1)


def test_t5_has_the_bucket_of_every_distance():
    table, n = np.arange(32.0)[:, None] + [[0, 100]], 211
    (X,) = drawn((2, n, 3))
    bias = designs.t5_bias(X, X, table)
    due = [[bucket(j - i, 32, 128) for j in range(n)] for i in range(n)]
    assert np.array_equal(bias, [due, np.array(due) + 100])


def test_a_soft_cap_keeps_the_order_of_scores_and_hidden_keys_hidden():
    S = np.array([[-1e6, -1.0, 0.0, 2.0, 1e6]])
    np.testing.assert_allclose(
        designs.soft_cap(S, 5.0)[0, 1:4], [5 * math.tanh(s / 5) for s in (-1, 0, 2)]
    )
    seen = np.array([True, False, True, True, True])
    assert weights(designs.soft_cap(S, 5.0), seen)[0, 1] == 0


def test_a_sink_is_a_key_without_a_value_in_each_head():
    Q, K, V = drawn((2, 3, 4), (2, 5, 4), (2, 5, 6))
    sinks = np.array([0.5, -1.5])
    for h in range(2):
        e = np.exp(Q[h] @ K[h].T / 2)
        due = e @ V[h] / (math.exp(sinks[h]) + e.sum(-1, keepdims=True))
        got = weights(scores(Q, K), None, sinks)[h] @ V[h]
        np.testing.assert_allclose(got, due)


def test_windows_chunks_and_best_blocks_show_the_keys_of_their_definition():
    n, size, k = 11, 3, 2
    Q, K = drawn((n, 4), (n, 4))
    blocks = [K[b : b + size].mean(0) for b in range(0, n, size)]
    for i in range(n):
        far = [j for j in range(n) if abs(i - j) < 4]
        assert np.flatnonzero(window(Q, K, 4)[i]).tolist() == far
        part = [j for j in range(n) if i // size == j // size]
        assert np.flatnonzero(designs.chunks(Q, K, size)[i]).tolist() == part
        earlier = sorted(range(i // size), key=lambda b: -Q[i] @ blocks[b])[:k]
        seen = [j for j in range(i + 1) if j // size in (*earlier, i // size)]
        got = designs.best_blocks(Q, K, size, k)[i]
        assert np.flatnonzero(got).tolist() == seen


def test_the_best_keys_are_chosen_among_visible_ones_and_ties_are_refused():
    S, seen = np.array([[4.0, 3.0, 2.0, 1.0]]), np.array([False, True, True, True])
    assert designs.top_k(S, 2, seen).tolist() == [[False, True, True, False]]
    assert designs.top_k(S, 4, seen).tolist() == [seen.tolist()]
    with pytest.raises(NotImplementedError, match="two scores are equal"):
        designs.top_k(np.zeros((1, 3)), 2)


def test_linear_attention_is_a_state_that_sums_keys_and_values():
    Q, K, V = drawn((7, 4), (7, 4), (7, 3))
    state, total = np.zeros((4, 3)), np.zeros(4)
    phi = nn.functional.elu
    for t in range(7):
        q, k = (phi(torch.from_numpy(x[t])).numpy() + 1 for x in (Q, K))
        state, total = state + np.outer(k, V[t]), total + k
        due = q @ state / (q @ total)
        np.testing.assert_allclose(
            designs.linear(Q, K, V, causal(Q, K))[t], due, rtol=1e-6
        )


@pytest.mark.parametrize("columns", [1, 4])
def test_the_delta_rule_of_all_heads_is_its_recurrence_in_each(columns):
    Q, K, V = drawn((2, 3, 6, 4), (2, 3, 6, 4), (2, 3, 6, 5))
    beta, decay = (
        1 / (1 + np.exp(-x)) for x in drawn((2, 3, 6, 1), (2, 3, 6, columns))
    )
    Y = designs.delta_rule(Q, K, V, beta, decay)
    for at in np.ndindex(2, 3):
        S = np.zeros((4, 5))
        for t in range(6):
            S = np.diag(np.broadcast_to(decay[at][t], 4)) @ S
            S = S + np.outer(K[at][t], beta[at][t] * (V[at][t] - K[at][t] @ S))
            np.testing.assert_allclose(Y[at][t], Q[at][t] @ S)


def test_latent_attention_reads_positions_of_the_first_head_alone():
    Q, K, V = drawn((2, 5, 6), (2, 5, 6), (2, 5, 3))
    Y = designs.latent(Q, K, V, dims=2, base=50.0)
    for h, i in np.ndindex(2, 5):
        S = [
            Q[h, i, :4] @ K[h, j, :4]
            + (complex(*Q[h, i, 4:]) * complex(*K[0, j, 4:]).conjugate()
               * np.exp(1j * (i - j))).real
            for j in range(i + 1)
        ]  # fmt: skip
        e = np.exp(np.array(S) / math.sqrt(6))
        np.testing.assert_allclose(Y[h, i], e @ V[h, : i + 1] / e.sum())


def test_masks_of_booleans_and_of_floats_are_joined():
    shown, added = np.array([True, False, True]), np.array([0.5, 1.0, 2.0])
    assert both(None) is None
    assert both(shown, added, added).tolist() == [1.0, -np.inf, 4.0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_designs_keep_the_dtype(dtype):
    Q, K, V = (x.astype(dtype) for x in drawn((2, 6, 4), (2, 6, 4), (2, 6, 4)))
    table = np.ones((8, 2))
    given = {
        "rms": designs.rms(Q, np.ones(4)),
        "rotary": designs.rotary(Q),
        "ALiBi": designs.alibi(Q, K),
        "T5": designs.t5_bias(Q, K, table),
        "sink": weights(scores(Q, K), causal(Q, K), np.zeros(2)),
        "linear": designs.linear(Q, K, V, causal(Q, K).astype(int)),
        "latent": designs.latent(Q, K, V, dims=2),
        "delta rule": designs.delta_rule(Q, K, V, np.ones((6, 1), dtype)),
        "gate": designs.gate(np.ones((8, 8)))(V, np.ones((6, 8), dtype)),
    }
    assert {name for name, x in given.items() if x.dtype != dtype} == set()


# Layers with a slip -----------------------------------------------------------------


class Projections(nn.Module):
    """Four projections, of heads of width 4, and what a design does between them."""

    def __init__(self, slip="", n_heads=2, n_kv_heads=2):
        super().__init__()
        self.slip, self.n_heads, d = slip, n_heads, 4 * n_heads
        self.q_proj, self.o_proj = nn.Linear(d, d), nn.Linear(d, d)
        self.k_proj = nn.Linear(d, 4 * n_kv_heads)
        self.v_proj = nn.Linear(d, 4 * n_kv_heads)

    def heads(self, x):
        for W in (self.q_proj, self.k_proj, self.v_proj):
            yield W(x).unflatten(-1, (-1, 4)).transpose(1, 2)

    def shared(self, k, v):
        times = self.n_heads // k.shape[1]
        if self.slip == "tile":
            return k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1)
        if self.slip == "groups shifted":
            k = k.roll(1, 1)
        return k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)

    def merged(self, y):
        return y.transpose(1, 2).flatten(2)

    def asked(self, **options):
        places = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "o_proj"}
        return laws.module(self, n_heads=self.n_heads, **places, **options)


def turned(x, base, slip="", ahead=0):
    n, d = x.shape[-2:]
    place = torch.arange(n, dtype=torch.float64) + ahead
    if slip == "a table of 16 angles":
        place = place.clamp(max=15)
    speed = base ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = (place[:, None] * speed).to(x.dtype)
    c, s = angle.cos(), angle.sin()
    if slip == "neighbours":
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * c - b * s, b * c + a * s], -1).flatten(-2)
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([a * c - b * s, b * c + a * s], -1)


class Qwen3(Projections):
    """Norms of queries and keys, then rotary positions; groups of two heads."""

    def __init__(self, slip=""):
        super().__init__(slip, 4, 2)
        self.q_norm, self.k_norm = nn.RMSNorm(4, 1e-6), nn.RMSNorm(4, 1e-6)

    def forward(self, x):
        q, k, v = self.heads(x)
        base = 1e5 if self.slip == "base" else 1e6
        ahead = int(self.slip == "query one ahead")
        if self.slip == "norm after rope":
            q, k = self.q_norm(turned(q, base)), self.k_norm(turned(k, base))
        else:
            norms = self.q_norm, self.k_norm
            norms = norms[::-1] if self.slip == "gains swapped" else norms
            q, k = norms[0](q), norms[1](k)
            q = turned(q, base, self.slip, ahead)
            k = k if self.slip == "keys at rest" else turned(k, base, self.slip)
        k, v = self.shared(k, v)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(self.merged(y))


def qwen3(p):
    def attend(Q, K, V):
        Q = designs.rotary(designs.rms(Q, p["q_norm.weight"]), 1e6)
        K = designs.rotary(designs.rms(K, p["k_norm.weight"]), 1e6)
        return weights(scores(Q, K), causal(Q, K)) @ V

    return attend


class Oss(Projections):
    """A learned sink in each head, rotary positions, a window of 3."""

    def __init__(self, slip=""):
        super().__init__(slip, 4, 2)
        self.sinks = nn.Parameter(torch.zeros(4))

    def forward(self, x):
        q, k, v = self.heads(x)
        q, k, (k, v) = turned(q, 15e4), None, self.shared(turned(k, 15e4), v)
        n = x.shape[1]
        near = {"window 4": 4, "window 2": 2}.get(self.slip, 3)
        past = torch.arange(n)[:, None] - torch.arange(n)
        S = (q @ k.mT / 2).masked_fill((past < 0) | (past >= near), -torch.inf)
        sinks = self.sinks.flip(0) if self.slip == "sinks reversed" else self.sinks
        sinks = sinks / 2 if self.slip == "sink times 1/√d" else sinks
        sinks = sinks[:, None, None].expand(*S.shape[:-1], 1)
        A = torch.cat([S, sinks], -1).softmax(-1)
        A = A[..., 1:] if self.slip == "first column dropped" else A[..., :-1]
        if self.slip == "rows of sum 1":
            A = A / A.sum(-1, keepdim=True)
        return self.o_proj(self.merged(A @ v))


def oss(p):
    def attend(Q, K, V):
        Q, K = designs.rotary(Q, 15e4), designs.rotary(K, 15e4)
        seen = both(causal(Q, K), window(Q, K, 3))
        return weights(scores(Q, K), seen, p["sinks"]) @ V

    return attend


class Bert(Projections):
    """A window to both sides."""

    def forward(self, x):
        q, k, v = self.heads(x)
        n = x.shape[1]
        i_minus_j = torch.arange(n)[:, None] - torch.arange(n)
        seen = i_minus_j.abs() < (4 if self.slip == "window 4" else 3)
        if self.slip == "one side open":
            seen = i_minus_j < 3
        if self.slip == "one side closed":
            seen = (i_minus_j >= 0) & seen
        y = nn.functional.scaled_dot_product_attention(q, k, v, seen)
        return self.o_proj(self.merged(y))


def bert(p):
    return lambda Q, K, V: weights(scores(Q, K), window(Q, K, 3)) @ V


class T5(Projections):
    """A learned bias of the distance, and no 1/√d."""

    def __init__(self, slip=""):
        super().__init__(slip)
        self.bias = nn.Embedding(8, 2)

    def forward(self, x):
        q, k, v = self.heads(x)
        n = x.shape[1]
        offset = torch.arange(n) - torch.arange(n)[:, None]
        offset = -offset if self.slip == "direction" else offset
        at = 4 * (offset > 0) * (self.slip != "no direction")
        near, far = 2, 16 if self.slip == "far" else 128
        d = offset.abs()
        late = (d.clamp(min=1) / near).log2() / math.log2(far / near) * 2
        at = at + torch.where(d < near, d, (near + late.long()).clamp(max=3))
        table = self.bias.weight
        table = {"sign": -table, "abs": table.abs(), "heads": table.flip(1)}.get(
            self.slip, table
        )
        bias = table[at].permute(2, 0, 1)
        bias = bias[:, :1] if self.slip == "one row" else bias
        S = q @ k.mT / (2 if self.slip == "scaled" else 1)
        return self.o_proj(self.merged((S + bias).softmax(-1) @ v))


def t5(p):
    def attend(Q, K, V):
        return weights(scores(Q, K, 1) + designs.t5_bias(Q, K, p["bias.weight"])) @ V

    return attend


class Gated(Projections):
    """A sigmoid of the tokens multiplies the heads."""

    def __init__(self, slip=""):
        super().__init__(slip)
        self.gate = nn.Linear(8, 8, bias=False)

    def forward(self, x):
        q, k, v = self.heads(x)
        g = self.gate(x)
        g = nn.functional.silu(g) if self.slip == "silu" else g.sigmoid()
        if self.slip == "before attention":
            v = v * g.unflatten(-1, (2, 4)).transpose(1, 2)
        y = self.merged(nn.functional.scaled_dot_product_attention(q, k, v))
        if self.slip == "columns interleaved":
            g = g.unflatten(-1, (4, 2)).transpose(-1, -2).flatten(-2)
        if self.slip == "after W_O":
            return self.o_proj(y) * g
        return self.o_proj(y if self.slip == "before attention" else y * g)


def gated(p):
    def layer(X, W_Q, W_K, W_V, W_O, n_heads, **biases):
        after = designs.gate(p["gate.weight"].T)
        made = designs.in_heads(lambda Q, K, V: weights(scores(Q, K)) @ V, after)
        return made(X, W_Q, W_K, W_V, W_O, n_heads, **biases)

    layer.accepts = {"X", "W_Q", "W_K", "W_V", "W_O", "n_heads"}
    layer.accepts |= {f"b_{x}" for x in "QKVO"}
    return layer


class Delta(Projections):
    """The gated delta rule, token by token."""

    def __init__(self, slip=""):
        super().__init__(slip)
        self.rate, self.decay = nn.Linear(8, 2), nn.Linear(8, 2)

    def forward(self, x):
        q, k, v = self.heads(x)
        if self.slip != "no norm of keys":
            k = k / (k.square().sum(-1, keepdim=True) + 1e-6).sqrt()
        b, a = (
            W(x).sigmoid().transpose(1, 2)[..., None] for W in (self.rate, self.decay)
        )
        b, a = (a, b) if self.slip == "rate and decay swapped" else (b, a)
        S, rows = x.new_zeros(len(x), 2, 4, 4), []
        for t in range(x.shape[1]):
            now = (slice(None), slice(None), slice(t, t + 1))
            read = S if self.slip == "read before decay" else a[now] * S
            before = S
            S = a[now] * S + b[now] * k[now].mT @ (v[now] - k[now] @ read)
            rows.append(q[now] @ (before if self.slip == "one state late" else S))
        return self.o_proj(self.merged(torch.cat(rows, 2)))


def delta(p):
    def layer(X, W_Q, W_K, W_V, W_O, n_heads, **biases):
        beta, decay = (
            1 / (1 + np.exp(-X @ p[f"{x}.weight"].T - p[f"{x}.bias"]))
            for x in ("rate", "decay")
        )
        beta, decay = (designs.split_heads(x, n_heads) for x in (beta, decay))

        def attend(Q, K, V):
            K = designs.rms(K, 0.5, 1e-6 / 4)  # rows of length 1
            return designs.delta_rule(Q, K, V, beta, decay)

        made = designs.in_heads(attend)
        return made(X, W_Q, W_K, W_V, W_O, n_heads, **biases)

    layer.accepts = gated(p).accepts
    return layer


LAYERS = {
    (Qwen3, qwen3): [
        "norm after rope", "gains swapped", "base", "neighbours", "query one ahead",
        "keys at rest", "a table of 16 angles", "tile", "groups shifted"],
    (Oss, oss): [
        "sink times 1/√d", "sinks reversed", "rows of sum 1", "first column dropped",
        "window 4", "window 2"],
    (Bert, bert): ["window 4", "one side open", "one side closed"],
    (T5, t5): ["sign", "abs", "one row", "direction", "no direction", "scaled", "heads",
               "far"],
    (Gated, gated): ["silu", "before attention", "after W_O", "columns interleaved"],
    (Delta, delta): ["no norm of keys", "rate and decay swapped", "read before decay",
                     "one state late"],
}  # fmt: skip


# Functions with a slip


def plain(S, V, mask=None):
    S = S if mask is None else np.where(mask, S, -np.inf)
    E = np.exp(S - np.maximum(S.max(-1, keepdims=True), -1e300))
    total = E.sum(-1, keepdims=True)
    return (E / np.where(total == 0, 1, total)) @ V


def product(Q, K):
    return np.einsum("...id,...jd->...ij", Q, K) / math.sqrt(Q.shape[-1])


def positions(Q, K):
    if Q.shape[-2] != K.shape[-2]:
        raise NotImplementedError
    return np.subtract.outer(np.arange(Q.shape[-2]), np.arange(K.shape[-2]))


def capped(slip=""):
    def attend(Q, K, V, mask=None):
        S = product(Q, K)
        if slip == "cap before the scale":
            root = math.sqrt(Q.shape[-1])
            return plain(2 * np.tanh(S * root / 2) / root, V, mask)
        if slip == "cap after the mask":
            S = S if mask is None else np.where(mask, S, -np.inf)
            return plain(2 * np.tanh(S / 2), V)
        S = np.clip(S, -2, 2) if slip == "clip" else 2 * np.tanh(S / 2)
        return plain(S, V, mask)

    return attend


def soft_cap(Q, K, V, mask=None):
    return weights(designs.soft_cap(scores(Q, K), 2.0), mask) @ V


def sloped(slip=""):
    def attend(Q, K, V, mask=None):
        h = Q.shape[-3] if Q.ndim > 2 else 1
        m = np.array(slopes_of_the_authors(h))
        if slip == "2^(-8r/h) for three heads":
            m = 2.0 ** (-8 * np.arange(1, h + 1) / h)
        m = m[::-1] if slip == "slopes reversed" else m
        away = positions(Q, K)
        away = away if slip == "no absolute value" else abs(away)
        bias = m[:, None, None] * away * (1 if slip == "sign" else -1)
        bias = bias if Q.ndim > 2 else bias[0]
        return plain(product(Q, K) + bias.astype(Q.dtype), V, mask)

    return designs.in_heads(attend)


def alibi(Q, K, V, mask=None):
    return weights(scores(Q, K) + designs.alibi(Q, K), mask) @ V


def chosen(slip=""):
    def attend(Q, K, V, mask=None):
        S = product(Q, K)
        if mask is None:
            mask = np.ones(S.shape, bool)
        ranked = S if slip == "chosen before the mask" else np.where(mask, S, -np.inf)
        k = min(3 if slip == "three" else 2, S.shape[-1])
        return plain(S, V, (ranked >= np.sort(ranked, -1)[..., -k, None]) & mask)

    return attend


def top_2(Q, K, V, mask=None):
    S = scores(Q, K)
    return weights(S, designs.top_k(S, 2, mask)) @ V


def in_blocks(slip=""):
    size, k = 3 if slip == "blocks of 3" else 2, 2 if slip == "two blocks" else 1

    def attend(Q, K, V):
        n = len(positions(Q, K))
        own, many = np.arange(n)[:, None] // size, -(-n // size)
        parts = [K[..., b * size : (b + 1) * size, :] for b in range(many)]
        keys = [x[..., 0, :] if slip == "first key" else x.mean(-2) for x in parts]
        fit = np.stack([(Q * key[..., None, :]).sum(-1) for key in keys], -1)
        last = own if slip == "own block counted" else own - 1
        fit = np.where(np.arange(many) <= last, fit, -np.inf)
        better = (fit[..., None, :] > fit[..., None]).sum(-1)
        seen = ((better < k) & (fit > -np.inf)) | (np.arange(many) == own)
        seen = np.repeat(seen, size, -1)[..., :n]
        past = positions(Q, K) >= 0
        return plain(product(Q, K), V, seen if slip == "future" else seen & past)

    return attend


def blocks(Q, K, V):
    return weights(scores(Q, K), designs.best_blocks(Q, K, 2, 1)) @ V


def in_parts(slip=""):
    def attend(Q, K, V, mask=None):
        place = np.arange(len(positions(Q, K))) + (slip == "counted from 1")
        part = place // (4 if slip == "chunks of 4" else 3)
        seen = part[:, None] == part
        return plain(product(Q, K), V, seen if mask is None else seen & mask)

    return attend


def parts(Q, K, V, mask=None):
    return weights(scores(Q, K), both(mask, designs.chunks(Q, K, 3))) @ V


def by_state(slip=""):
    def phi(x):
        if slip == "relu":
            return np.maximum(x, 0)
        return np.exp(x) if slip == "exp" else np.where(x > 0, x + 1, np.exp(x))

    def attend(Q, K, V, mask=None):
        S = np.einsum("...id,...jd->...ij", phi(Q), phi(K))
        S = S if mask is None else S * mask
        total = S.sum(-1, keepdims=True)
        if slip == "not divided":
            return S @ V
        return S @ V / np.where(total == 0, 1, total)

    return attend


def spun(x, slip=""):
    """Rotate all columns."""
    n, d = x.shape[-2:]
    angle = np.arange(n)[:, None] * 1e4 ** -(np.arange(0, d, 2) / d)
    turn = np.exp(1j * angle)
    if slip == "halves":
        z = (x[..., : d // 2] + 1j * x[..., d // 2 :]) * turn
        return np.concatenate([z.real, z.imag], -1).astype(x.dtype)
    z = (x[..., ::2] + 1j * x[..., 1::2]) * turn
    return np.stack([z.real, z.imag], -1).reshape(x.shape).astype(x.dtype)


def compressed(slip=""):
    def attend(Q, K, V):
        own = K if slip == "every head its own" or K.ndim == 2 else K[..., :1, :, :]
        k = np.broadcast_to(own[..., -4:], (*K.shape[:-1], 4))
        k = k if slip == "keys at rest" else spun(k, slip)
        front = slice(4, 8) if slip == "columns swapped" else slice(0, -4)
        q = np.concatenate([Q[..., :-4], spun(Q[..., -4:], slip)], -1)
        k = np.concatenate([K[..., front], k], -1)
        S = product(q, k) * (np.sqrt(2) if slip == "scale of 4 columns" else 1)
        return plain(S, V, positions(Q, K) >= 0)

    return designs.in_heads(only_width_8(attend))


def only_width_8(attend):
    def asked(Q, K, V):
        if Q.shape[-1] != 8:
            raise NotImplementedError("four columns of eight have positions")
        return attend(Q, K, V)

    return asked


@only_width_8
def latent(Q, K, V):
    return designs.latent(Q, K, V, dims=4)


FUNCTIONS = {
    (capped, soft_cap): ["cap before the scale", "cap after the mask", "clip"],
    (sloped, alibi): ["2^(-8r/h) for three heads", "slopes reversed", "sign",
                      "no absolute value"],
    (chosen, top_2): ["three", "chosen before the mask"],
    (in_blocks, blocks): ["blocks of 3", "first key", "own block counted", "two blocks",
                          "future"],
    (in_parts, parts): ["counted from 1", "chunks of 4"],
    (by_state, designs.linear): ["relu", "exp", "not divided"],
    (compressed, latent): ["every head its own", "keys at rest", "columns swapped",
                           "halves", "scale of 4 columns"],
}  # fmt: skip
SIZES = {sloped: laws.Sizes(12, 3, 3), compressed: laws.Sizes(16, 2, 2)}


def pair_of(made, reference, slip="", seed=0):
    """Return a layer or a function with this slip, and what it is compared with."""
    if isinstance(made, type):
        torch.manual_seed(seed)
        layer = made(slip).asked()
        return layer, reference(layer.parameters)
    attend = made(slip)
    if made in SIZES:
        attend.sizes = SIZES[made]
    return attend, reference


KINDS = LAYERS | FUNCTIONS
IDS = {"ids": [made.__name__ for made, _ in KINDS]}


@pytest.mark.parametrize(("made", "reference"), KINDS, **IDS)
def test_no_right_layer_of_a_design_is_accused(made, reference):
    layer, right = pair_of(made, reference)
    report = laws.check(layer, reference=right)
    assert report.holds, report


SLIPS = [(*kind, slip) for kind, slips in KINDS.items() for slip in slips]


@pytest.mark.parametrize(
    ("made", "reference", "slip"), SLIPS,
    ids=[f"{made.__name__}: {slip}" for made, _, slip in SLIPS],
)  # fmt: skip
def test_every_slip_in_a_layer_of_a_design_is_found(made, reference, slip):
    assert laws.equals_reference.breaks(*pair_of(made, reference, slip))


@pytest.mark.parametrize(("made", "reference", "slip", "law"), [
    (Qwen3, qwen3, "norm after rope", "only_distance_counts"),
    (Qwen3, qwen3, "a table of 16 angles", "only_distance_counts"),
    (Qwen3, qwen3, "tile", "head_moves_its_own_slice"),
    (capped, soft_cap, "cap after the mask", "masked_weights_are_zero"),
    (chosen, top_2, "chosen before the mask", "rows_sum_to_one"),
    (by_state, designs.linear, "not divided", "constant_values_stay"),
])  # fmt: skip
def test_a_slip_is_told_by_the_law_that_names_it(made, reference, slip, law):
    assert getattr(laws, law).breaks(*pair_of(made, reference, slip))


@pytest.mark.parametrize(("made", "reference", "slip"), [
    (Oss, oss, "sink times 1/√d"), (Qwen3, qwen3, "gains swapped")])  # fmt: skip
def test_numbers_that_are_learned_would_hide_a_slip_at_their_start(
    made, reference, slip
):
    for shake, found in ((None, False), (0, True)):
        layer = made(slip).asked(shake=shake)
        right = reference(layer.parameters)
        assert laws.equals_reference.breaks(layer, right) is found


def test_a_refused_mask_of_floats_is_not_asked_about():
    with pytest.raises(NotImplementedError, match="no scores to which"):
        designs.linear(*drawn((3, 2), (3, 2), (3, 2)), mask=np.zeros((3, 3)))
    report = laws.check(designs.linear, ["float_masks_are_added"])
    assert not report.broken
