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


def test_windows_and_best_blocks_show_the_keys_of_their_definition():
    n, size, k = 11, 3, 2
    Q, K = drawn((n, 4), (n, 4))
    blocks = [K[b : b + size].mean(0) for b in range(0, n, size)]
    for i in range(n):
        far = [j for j in range(n) if abs(i - j) < 4]
        assert np.flatnonzero(window(Q, K, 4)[i]).tolist() == far
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


LAYERS = {Qwen3: qwen3, Oss: oss, Gated: gated, Delta: delta}
SLIPS = {
    Qwen3: [
        "norm after rope", "gains swapped", "base", "neighbours", "query one ahead",
        "keys at rest", "a table of 16 angles", "tile", "groups shifted",
    ],
    Oss: [
        "sink times 1/√d", "sinks reversed", "rows of sum 1", "first column dropped",
        "window 4", "window 2",
    ],
    Gated: ["silu", "before attention", "after W_O", "columns interleaved"],
    Delta: [
        "no norm of keys", "rate and decay swapped", "read before decay",
        "one state late",
    ],
}  # fmt: skip


def pair_of(kind, slip="", **options):
    """Return a layer with this slip, and what it is compared with."""
    torch.manual_seed(0)
    layer = kind(slip).asked(**options)
    return layer, LAYERS[kind](layer.parameters)


@pytest.mark.parametrize("kind", LAYERS)
def test_no_right_layer_of_a_design_is_accused(kind):
    layer, right = pair_of(kind)
    report = laws.check(layer, reference=right)
    assert report.holds, report


@pytest.mark.parametrize("kind", LAYERS)
def test_every_slip_in_a_layer_of_a_design_is_found(kind):
    for slip in SLIPS[kind]:
        assert laws.equals_reference.breaks(*pair_of(kind, slip)), slip


@pytest.mark.parametrize(("slip", "law"), [
    ("norm after rope", "only_distance_counts"),
    ("a table of 16 angles", "only_distance_counts"),
    ("tile", "head_moves_its_own_slice"),
])  # fmt: skip
def test_a_slip_is_told_by_the_law_that_names_it(slip, law):
    assert getattr(laws, law).breaks(*pair_of(Qwen3, slip))


@pytest.mark.parametrize(
    ("kind", "slip"), [(Oss, "sink times 1/√d"), (Qwen3, "gains swapped")]
)
def test_numbers_that_are_learned_would_hide_a_slip_at_their_start(kind, slip):
    for shake, found in ((None, False), (0, True)):
        pair = pair_of(kind, slip, shake=shake)
        assert laws.equals_reference.breaks(*pair) is found


def test_a_refused_mask_of_floats_is_not_asked_about():
    with pytest.raises(NotImplementedError, match="no scores to which"):
        designs.linear(*drawn((3, 2), (3, 2), (3, 2)), mask=np.zeros((3, 3)))
    report = laws.check(designs.linear, ["float_masks_are_added"])
    assert not report.broken


def corner(at):
    """Return attention whose causal mask aligns the first tokens, or the last."""

    def attend(Q, K, V, mask=None, is_causal=False):
        n_q, n_k = Q.shape[-2], K.shape[-2]
        past = np.tri(n_q, n_k, at * (n_k - n_q), dtype=bool) if is_causal else None
        return weights(scores(Q, K), both(mask, past)) @ V

    return attend


@pytest.mark.parametrize("made", [lambda f: f, designs.in_heads])
def test_a_reference_that_takes_is_causal_says_in_which_corner_the_mask_begins(made):
    law, first, last = laws.causal_corner, made(corner(0)), made(corner(1))
    assert law.check(first).holds and law.check(last).holds
    assert law.check(first, corner(0)).holds and law.check(last, corner(1)).holds
    assert law.check(first, corner(1)).broken and law.check(last, corner(0)).broken


def test_the_layer_of_a_design_takes_its_mask_by_position_like_any_other():
    layer, W, mask = designs.in_heads(corner(0)), [np.eye(4)] * 4, np.eye(3, dtype=bool)
    X = drawn((3, 4))[0]
    assert np.array_equal(layer(X, *W, 2, mask), layer(X, *W, 2, mask=mask))
    assert not np.array_equal(layer(X, *W, 2, mask), layer(X, *W, 2))
