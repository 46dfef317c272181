"""Step 7: what surrounds attention."""

from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from mha import (
    causal_mask,
    encoder,
    encoder_layer,
    feed_forward,
    layer_norm,
    multi_head_attention,
)
from tests import reference
from tests.samples import LEADING, draw_mask, peak_memory
from tests.tolerances import FLOAT16, FLOAT32, TORCH, assert_close

N, N_HEADS, D_MODEL, D_FF = 5, 3, 21, 11
MATRICES = "W_Q W_K W_V W_O W_1 W_2".split()
BIASES = [f"b_{name[-1]}" for name in MATRICES]
both_norms = pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])
both_activations = pytest.mark.parametrize("activation", ["relu", "gelu"])


def draw_tokens(rng, leading=(), n=N):
    return rng.normal(size=(*leading, n, D_MODEL))


def draw_layer(rng, bias=True):
    shapes = dict.fromkeys(MATRICES, (D_MODEL, D_MODEL))
    shapes |= {"W_1": (D_MODEL, D_FF), "W_2": (D_FF, D_MODEL)}
    weights = {name: rng.normal(size=shape) / 4 for name, shape in shapes.items()}
    weights |= {f"gain_{i}": 1 + rng.normal(size=D_MODEL) / 4 for i in "12"}
    if bias:
        weights |= {name: rng.normal(size=shapes["W" + name[1:]][1]) for name in BIASES}
        weights |= {f"bias_{i}": rng.normal(size=D_MODEL) for i in "12"}
    return weights


def draw_stack(rng, bias=True):
    return [draw_layer(rng, bias) for _ in range(2)]


def cast(weights, dtype):
    return {name: W.astype(dtype) for name, W in weights.items()}


# The norm


def test_each_token_is_normalised_by_its_own_mean_and_variance():
    """Means 5 and 30, variances 16 and 100; eps 9 makes of 16 a 25 under the root."""
    x = [[1, 9], [40, 20]]
    assert_close(layer_norm(x, eps=0), [[-1, 1], [1, -1]])
    assert_close(layer_norm(x[:1], eps=9), [[-4 / 5, 4 / 5]])
    assert_close(layer_norm(x[:1], [2, 3], [10, 20], 0), [[8, 23]])
    assert_close(layer_norm(x[:1], None, [10, 20], 0), [[9, 21]])


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("leading", LEADING, ids=str)
def test_the_norm_is_that_of_torch(rng, leading, affine):
    """Rows of size 1e-3 have a variance near the default eps, where every eps shows."""
    parts = [rng.normal(size=D_MODEL) for _ in range(2)] if affine else [None] * 2
    tensors = [None if p is None else torch.as_tensor(p) for p in parts]
    for size in (1e-3, 10):
        x = size * (draw_tokens(rng, leading) + 3)
        expected = F.layer_norm(torch.as_tensor(x), (D_MODEL,), *tensors)
        assert_close(layer_norm(x, *parts), expected, TORCH)


@pytest.mark.parametrize("eps", [0, 1e-5])
def test_a_row_of_equal_numbers_gives_the_bias(eps):
    assert layer_norm([[3, 3, 3]], [2, 2, 2], [5, 6, 7], eps).tolist() == [[5, 6, 7]]


# Feed-forward


def test_feed_forward_bends_between_its_two_matrices():
    """max(0, 3·1 − 1) = 2 and max(0, −3) = 0; 2·5 + 0·7 + 100 = 110."""
    assert feed_forward([[3]], [[1, -1]], [-1, 0], [[5], [7]], [100]).tolist() == [
        [110]
    ]


def test_gelu_is_the_exact_one_of_torch():
    z = np.linspace(-40, 40, 1009)[:, None]
    y = feed_forward(z, [[1]], None, [[1]], None, "gelu")
    assert_close(y, F.gelu(torch.as_tensor(z)))
    by_tanh = F.gelu(torch.as_tensor(z), approximate="tanh").numpy()
    assert np.abs(y - by_tanh).max() > 1e-4
    far = feed_forward([[1e300, -1e300]], *[np.eye(2), None] * 2, "gelu")
    assert far.tolist() == [[1e300, 0]]


# Layer and stack, by hand


def test_a_post_norm_layer_normalises_the_sum_and_a_pre_norm_layer_what_goes_in():
    """W_V and W_O hand on what they get; the row 1, 9 has the norm −1, 1."""
    zeros = dict.fromkeys(MATRICES, np.zeros((2, 2)))
    passing = zeros | {"W_V": np.eye(2), "W_O": np.eye(2)}
    options = dict(n_heads=1, eps=0)
    assert_close(encoder_layer([[1, 9]], zeros, **options), [[-1, 1]])
    assert_close(encoder_layer([[1, 9]], zeros, **options, norm_first=True), [[1, 9]])
    Y = encoder_layer([[1, 9]], passing, **options, norm_first=True)
    assert_close(Y, [[0, 10]])
    Y = encoder(
        [[1, 9]], [passing], **options, norm_first=True, final_norm=([2, 2], [1, 1])
    )
    assert_close(Y, [[-1, 3]])


@both_norms
@both_activations
def test_a_layer_is_its_four_parts_and_a_stack_its_layers(rng, norm_first, activation):
    X, layers = draw_tokens(rng), draw_stack(rng)
    mask = draw_mask(rng, (N_HEADS, N, N))
    options = dict(norm_first=norm_first, activation=activation, eps=1e-2)

    def by_parts(X, w):
        heads = {name: W for name, W in w.items() if name[-1] in "QKVO"}
        norm_1, norm_2 = (
            lambda x, i=i: layer_norm(x, w[f"gain_{i}"], w[f"bias_{i}"], 1e-2)
            for i in "12"
        )

        def attend(x):
            return multi_head_attention(x, **heads, n_heads=N_HEADS, mask=mask)

        def feed(x):
            return feed_forward(x, w["W_1"], w["b_1"], w["W_2"], w["b_2"], activation)

        if norm_first:
            Z = X + attend(norm_1(X))
            return Z + feed(norm_2(Z))
        Z = norm_1(X + attend(X))
        return norm_2(Z + feed(Z))

    assert_close(
        encoder_layer(X, layers[0], N_HEADS, mask, **options), by_parts(X, layers[0])
    )
    Y = by_parts(by_parts(X, layers[0]), layers[1])
    assert_close(encoder(X, layers, N_HEADS, mask, **options), Y)
    gain = rng.normal(size=D_MODEL)
    Y = layer_norm(Y, gain, None, 1e-2)
    got = encoder(X, tuple(layers), N_HEADS, mask, **options, final_norm=(gain, None))
    assert_close(got, Y)


# Layer and stack, laws


@pytest.mark.parametrize("leading", LEADING, ids=str)
@both_norms
def test_asking_for_the_weights_changes_no_answer(rng, leading, norm_first):
    X, layers = draw_tokens(rng, leading), draw_stack(rng)
    options = dict(norm_first=norm_first, is_causal=True)
    Y, A = encoder(X, layers, N_HEADS, **options, return_weights=True)
    np.testing.assert_array_equal(encoder(X, layers, N_HEADS, **options), Y)
    Z, A_1 = encoder_layer(X, layers[0], N_HEADS, **options, return_weights=True)
    np.testing.assert_array_equal(encoder_layer(X, layers[0], N_HEADS, **options), Z)
    assert isinstance(A, list) and len(A) == 2
    assert_close(A[0], A_1)
    assert A[1].shape == (*leading, N_HEADS, N, N)
    assert_close(A[1].sum(-1), np.ones((*leading, N_HEADS, N)))
    assert not A[1][..., ~causal_mask(N)].any()


@both_norms
def test_masked_padding_and_the_future_change_nothing(rng, norm_first):
    X, layers = draw_tokens(rng), draw_stack(rng)
    mask, options = np.arange(N) < 3, dict(norm_first=norm_first)
    Y = encoder(X[:3], layers, N_HEADS, **options)
    assert_close(encoder(X, layers, N_HEADS, mask, **options)[:3], Y)
    Y = encoder(X[:3], layers, N_HEADS, is_causal=True, **options)
    assert_close(encoder(X, layers, N_HEADS, is_causal=True, **options)[:3], Y)
    closed = np.zeros((N, N), bool)
    assert np.isfinite(encoder(X, layers, N_HEADS, closed, **options)).all()


def test_without_layers_the_tokens_come_out_as_a_copy(rng):
    X = draw_tokens(rng)
    Y = encoder(X, [], N_HEADS)
    np.testing.assert_array_equal(Y, X)
    assert not np.shares_memory(X, Y)
    assert encoder(X, [], N_HEADS, return_weights=True)[1] == []


def test_biases_and_gains_that_are_missing_are_zeros_and_ones(rng):
    X, w = draw_tokens(rng), draw_layer(rng)
    bare = {name: w[name] for name in MATRICES}
    none = bare | dict.fromkeys(set(w) - set(bare))
    plain = w | {name: 0 * W for name, W in w.items() if name[0] == "b"}
    plain |= {f"gain_{i}": np.ones(D_MODEL) for i in "12"}
    Y = encoder_layer(X, plain, N_HEADS)
    assert_close(encoder_layer(X, bare, N_HEADS), Y)
    assert_close(encoder_layer(X, none, N_HEADS), Y)


def test_every_weight_has_a_say(rng):
    """All but the bias of the keys, which adds the same to all scores of a row."""
    X, w = draw_tokens(rng), draw_layer(rng)
    for name, norm_first in product(w, (False, True)):
        other = w | {name: w[name] + rng.normal(size=w[name].shape)}
        Y, Z = (encoder_layer(X, v, N_HEADS, norm_first=norm_first) for v in (w, other))
        assert (np.abs(Z - Y).max() > 1e-3) == (name != "b_K"), name


@both_norms
@both_activations
@pytest.mark.parametrize(
    ("dtype", "atol"),
    [("float16", 10 * FLOAT16), ("float32", FLOAT32), ("float64", 0)],
)
def test_short_floats_keep_their_dtype_and_cost_digits_only(
    rng, dtype, atol, activation, norm_first
):
    X, layers = draw_tokens(rng), draw_stack(rng)
    options = dict(activation=activation, norm_first=norm_first, return_weights=True)
    Y, A = encoder(X, layers, N_HEADS, **options)
    layers, norm = [cast(w, dtype) for w in layers], (np.ones(D_MODEL, dtype), None)
    X = X.astype(dtype)
    short, maps = encoder(X, layers, N_HEADS, **options, eps=np.float64(1e-5))
    assert {short.dtype, *(a.dtype for a in maps)} == {np.dtype(dtype)}
    assert layer_norm(X, *norm).dtype == dtype
    assert_close(short, Y, atol)
    assert_close(maps[1], A[1], atol)


def test_a_float16_stack_is_computed_in_float32_and_rounded_once(rng):
    layers = [cast(w, np.float16) for w in draw_stack(rng)]
    wide = [cast(w, np.float32) for w in layers]
    X = draw_tokens(rng).astype(np.float16)
    Y, A = encoder(X, layers, N_HEADS, return_weights=True)
    Z, B = encoder(np.float32(X), wide, N_HEADS, return_weights=True)
    np.testing.assert_array_equal(Y, Z.astype(np.float16))
    np.testing.assert_array_equal(A[1], B[1].astype(np.float16))
    x = np.array([[300, -300]], np.float16)  # 300² lies beyond float16
    assert layer_norm(x).tolist() == [[1, -1]]
    y = feed_forward(x, np.float16([[300], [300]]), None, np.float16([[1]]), None)
    assert y.tolist() == [[0]]


def test_weights_that_nobody_asks_for_are_forgotten_layer_by_layer(rng):
    """At n = 251 the weights of one layer with three heads take 1.5 MB."""
    X, layers = draw_tokens(rng, n=251), draw_stack(rng)
    few = peak_memory(lambda: encoder(X, layers, N_HEADS))
    many = peak_memory(lambda: encoder(X, 5 * layers, N_HEADS))
    assert many < 1.1 * few
    kept = peak_memory(lambda: encoder(X, 5 * layers, N_HEADS, return_weights=True))
    assert kept > 2 * few


# Agreement


def draw_kind(rng, kind, leading):
    if kind == "none":
        return None
    if kind == "padding":
        return draw_mask(rng, (*leading, 1, 1, N))
    mask = draw_mask(rng, (*leading, N_HEADS, N, N))
    return mask if kind == "bool" else np.where(mask, 0.5, -np.inf)


@pytest.mark.parametrize("kind", ["none", "padding", "bool", "float"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@both_norms
@both_activations
def test_the_stack_is_that_of_torch(rng, activation, norm_first, bias, kind):
    leading = (2,) if bias else ()
    X, layers = draw_tokens(rng, leading), draw_stack(rng, bias)
    norm = rng.normal(size=D_MODEL), rng.normal(size=D_MODEL) if bias else None
    mask = draw_kind(rng, kind, leading)
    options = {"activation": activation, "norm_first": norm_first, "eps": 1e-3}
    for final_norm in (None, norm):
        theirs = reference.encoder_with(
            layers, N_HEADS, final_norm=final_norm, **options
        )
        with torch.no_grad():
            expected = reference.encode(theirs, torch.as_tensor(X), mask).numpy()
        Y = encoder(X, layers, N_HEADS, mask, final_norm=final_norm, **options)
        assert_close(Y, expected, TORCH)
