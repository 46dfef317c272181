"""Step 7: what surrounds attention, and the stack."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from mha.arguments import BIASES, MATRICES, NORMS

from mha import (
    causal_mask,
    encoder,
    encoder_layer,
    feed_forward,
    layer_norm,
    multi_head_attention,
    padding_mask,
    sinusoidal_positional_encoding,
)
from tests import reference
from tests.samples import LEADING, SIZES, draw_mask, nothing_modified, peak_memory
from tests.tolerances import FLOAT16, FLOAT32, TORCH, assert_close

N_HEADS, N, D_K = SIZES["n_heads"], SIZES["n_q"], SIZES["d_k"]
D_MODEL = N_HEADS * D_K  # PyTorch knows no other width of the heads together
D_FF, N_LAYERS = 17, 2

every_leading = pytest.mark.parametrize("leading", LEADING, ids=str)
both_norms = pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])
both_activations = pytest.mark.parametrize("activation", ["relu", "gelu"])


def draw_layer(rng, d_model=D_MODEL, d_k=D_K, d_v=D_K, d_ff=D_FF, bias=True):
    """Return the weights of one layer, norms included, that keep tokens of size one."""
    widths = dict(Q=N_HEADS * d_k, K=N_HEADS * d_k, V=N_HEADS * d_v, O=d_model)
    rows = dict.fromkeys("QKV", d_model) | {"O": N_HEADS * d_v, "1": d_model, "2": d_ff}
    widths |= {"1": d_ff, "2": d_model}
    weights = {
        f"W_{c}": rng.normal(size=(rows[c], widths[c])) / np.sqrt(rows[c])
        for c in widths
    }
    weights |= {f"gain_{i}": rng.normal(1, 0.3, d_model) for i in "12"}
    if bias:
        weights |= {f"b_{c}": rng.normal(size=widths[c]) for c in widths}
        weights |= {f"bias_{i}": rng.normal(size=d_model) for i in "12"}
    return weights


def draw_stack(rng, n_layers=N_LAYERS, **options):
    return [draw_layer(rng, **options) for _ in range(n_layers)]


def draw_tokens(rng, leading=(), n=N, d_model=D_MODEL):
    return rng.normal(size=(*leading, n, d_model))


def matrices(value, d_model=2):
    return dict.fromkeys(MATRICES, np.full((d_model, d_model), value))


def cast(weights, dtype):
    return {name: W.astype(dtype) for name, W in weights.items()}


rows = arrays(
    np.float64, array_shapes(min_dims=1, max_dims=3, min_side=2, max_side=7),
    elements=st.floats(-100, 100), unique=True,
)  # fmt: skip


# By hand


def test_two_tokens_are_normalised_each_by_its_own_mean_and_variance():
    """1, 9: mean 5, variance 16, so (1 - 5)/4 = -1. 40, 20: mean 30, variance 100."""
    assert layer_norm([[1, 9], [40, 20]], eps=0).tolist() == [[-1, 1], [1, -1]]


def test_eps_stands_under_the_root():
    """Variance 16 and eps 9: the root of 25 is 5, and 4/5 = 0.8."""
    assert_close(layer_norm([1, 9], eps=9), [-0.8, 0.8])


def test_gain_stretches_before_bias_shifts():
    """-1·10 + 3 = -7 and 1·100 + 4 = 104."""
    assert layer_norm([1, 9], [10, 100], [3, 4], eps=0).tolist() == [-7, 104]


def test_the_variance_is_divided_by_the_number_of_features_not_one_less():
    """0, 0, 3: mean 1, squares 1 + 1 + 4 = 6, variance 6/3 = 2."""
    assert_close(layer_norm([0, 0, 3], eps=0), np.array([-1, -1, 2]) / np.sqrt(2))


def test_feed_forward_bends_between_its_two_matrices():
    """3·1 - 1 = 2 stays, 3·(-1) + 2 = -1 becomes 0: 2·10 + 0·100 + 7 = 27.

    For -5 it is the other one: -6 becomes 0 and 7 stays, 700 + 7 = 707.
    """
    y = feed_forward([[3], [-5]], [[1, -1]], [-1, 2], [[10], [100]], [7])
    assert y.tolist() == [[27], [707]]


def test_gelu_lets_through_the_share_of_the_normal_distribution_below():
    """Φ(1) = 0.841345, so 1 becomes 0.841345 and -1 becomes -(1 - 0.841345)."""
    eye = np.eye(1)
    y = feed_forward([[1], [-1], [0]], eye, None, eye, None, activation="gelu")
    assert_close(y, [[0.841345], [-0.158655], [0]], atol=1e-6)


def test_post_norm_normalises_the_sum():
    """One token looks at itself: 1, 9 twice is 2, 18, of mean 10 and half-width 8.

    So -1, 1. Feed-forward adds relu = 0, 1: -1, 2 becomes -1, 1 again, and gain 2, 3
    with bias 5, 7 makes it 3, 10.
    """
    weights = dict.fromkeys(MATRICES, np.eye(2))
    weights |= {"gain_2": [2, 3], "bias_2": [5, 7]}
    assert_close(encoder_layer([[1, 9]], weights, 1, eps=0), [[3, 10]])


def test_pre_norm_normalises_what_goes_in():
    """1, 9 plus its norm -1, 1 is 0, 10; that plus relu of -1, 1 is 0, 11."""
    weights = dict.fromkeys(MATRICES, np.eye(2))
    Y = encoder_layer([[1, 9]], weights, 1, norm_first=True, eps=0)
    assert_close(Y, [[0, 11]])


def test_the_final_norm_comes_last():
    """0, 11 of the test above has mean 5.5 and half-width 5.5."""
    layers = [dict.fromkeys(MATRICES, np.eye(2))]
    options = {"norm_first": True, "eps": 0}
    Y = encoder([[1, 9]], layers, 1, final_norm=([1, 2], None), **options)
    assert_close(Y, [[-1, 2]])


# Laws: the norm


@given(rows)
def test_every_row_has_mean_zero_and_variance_one(x):
    y = layer_norm(x, eps=0)
    assert_close(y.mean(-1), np.zeros(x.shape[:-1]), atol=1e-9)
    # Rows of almost equal numbers have lost their digits before the norm sees them, and
    # rows of tiny ones lose them when they are squared.
    wide = (x.std(-1) > 1e-6 * np.abs(x).max()) & (x.std(-1) > 1e-150)
    assert_close(y.var(-1)[wide], np.ones(x.shape[:-1])[wide], atol=1e-9)


def test_eps_takes_a_little_off_the_variance(rng):
    x, eps = rng.normal(size=(5, 7)), 0.3
    variance = x.var(-1)
    assert_close(layer_norm(x, eps=eps).var(-1), variance / (variance + eps))


@given(st.floats(-100, 100), st.floats(0.01, 100), st.integers(0, 10**6))
def test_shifting_and_stretching_a_token_changes_nothing(shift, factor, seed):
    x = np.random.default_rng(seed).normal(size=(3, 7))
    assert_close(layer_norm(factor * x + shift, eps=0), layer_norm(x, eps=0), 1e-9)


def test_turning_a_token_round_turns_its_norm_round(rng):
    x = rng.normal(size=(3, 7))
    assert_close(layer_norm(-x), -layer_norm(x))


@every_leading
def test_no_token_has_a_say_in_the_norm_of_another(rng, leading):
    """A batch of one token gives the same; batch norm would divide zero by zero."""
    x = draw_tokens(rng, leading)
    index = (*np.zeros(len(leading), int), 3)
    y = layer_norm(x)
    assert_close(layer_norm(x[index]), y[index])
    x[index] = 1000
    changed = layer_norm(x)
    others = np.ones(x.shape[:-1], bool)
    others[index] = False
    np.testing.assert_array_equal(changed[others], y[others])


@pytest.mark.parametrize("eps", [0, 1e-5])
def test_a_row_of_equal_numbers_gives_the_bias(eps):
    assert layer_norm([[4, 4, 4]], [2, 3, 5], [7, 8, 9], eps=eps).tolist() == [
        [7, 8, 9]
    ]


# Laws: feed-forward


@both_activations
@every_leading
def test_feed_forward_takes_each_token_alone(rng, leading, activation):
    x, w = draw_tokens(rng, leading), draw_layer(rng)
    parts = [w[name] for name in ("W_1", "b_1", "W_2", "b_2")]
    y = feed_forward(x, *parts, activation)
    for i in range(N):
        alone = feed_forward(x[..., i : i + 1, :], *parts, activation)
        assert_close(y[..., i : i + 1, :], alone)


@both_activations
@given(z=st.floats(-40, 40))
def test_what_an_activation_holds_back_it_lets_through_mirrored(z, activation):
    """φ(z) - φ(-z) = z for relu and for gelu."""
    eye = np.eye(1)
    up, down = feed_forward([[z], [-z]], eye, None, eye, None, activation)
    assert_close(up - down, np.array([z]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gelu_is_right_to_the_last_digit_or_two(rng, dtype):
    """Python's own error function, number by number, is the judge."""
    z = np.concatenate([np.linspace(-12, 12, 20011), rng.normal(size=997)])
    z = z.astype(dtype)[:, None]
    eye = np.eye(1, dtype=dtype)
    exact = [[t * math.erfc(-t / math.sqrt(2)) / 2] for t in z[:, 0].tolist()]
    y = feed_forward(z, eye, None, eye, None, "gelu")
    np.testing.assert_allclose(y, exact, rtol=2 * np.finfo(dtype).eps, atol=2e-15)


def test_gelu_of_numbers_of_any_size():
    z = np.array([[-1e300], [-1e20], [-10.0], [0.0], [1e300], [np.nan]])
    y = feed_forward(z, np.eye(1), None, np.eye(1), None, "gelu")
    assert_close(y, [[0], [0], [0], [0], [1e300], [np.nan]])


# Laws: the layer and the stack


@both_norms
def test_a_layer_is_its_four_parts(rng, norm_first):
    """Head widths that PyTorch does not know: d_k 11, d_v 13 and d_model 19."""
    w = draw_layer(rng, d_model=19, d_v=SIZES["d_v"])
    X = draw_tokens(rng, (2,), d_model=19)
    mask = draw_mask(rng, (2, N_HEADS, N, N))
    attention = {name: w[name] for name in w if name[-1] in "QKVO"}

    def attend(x):
        return multi_head_attention(x, n_heads=N_HEADS, mask=mask, **attention)

    def feed(x):
        return np.maximum(x @ w["W_1"] + w["b_1"], 0) @ w["W_2"] + w["b_2"]

    def norm(x, i):
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.01)
        return y * w[f"gain_{i}"] + w[f"bias_{i}"]

    if norm_first:
        Z = X + attend(norm(X, 1))
        expected = Z + feed(norm(Z, 2))
    else:
        Z = norm(X + attend(X), 1)
        expected = norm(Z + feed(Z), 2)
    Y = encoder_layer(X, w, N_HEADS, mask, norm_first=norm_first, eps=0.01)
    assert_close(Y, expected)


@both_norms
@both_activations
@pytest.mark.parametrize("final", [False, True])
def test_a_stack_is_one_layer_after_the_other(rng, norm_first, activation, final):
    X, layers = draw_tokens(rng, (2,)), draw_stack(rng, 3)
    norm = (rng.normal(size=D_MODEL), rng.normal(size=D_MODEL)) if final else None
    options = {"activation": activation, "norm_first": norm_first, "eps": 0.01}
    options |= {"mask": draw_mask(rng, (N, N)), "is_causal": True}
    Y, A = encoder(X, layers, N_HEADS, final_norm=norm, return_weights=True, **options)
    expected = X
    for weights, A_l in zip(layers, A, strict=True):
        expected, A_expected = encoder_layer(
            expected, weights, N_HEADS, return_weights=True, **options
        )
        assert_close(A_l, A_expected)
    assert_close(Y, layer_norm(expected, *norm, 0.01) if final else expected)


def test_without_layers_the_tokens_come_out_as_a_copy(rng):
    X = draw_tokens(rng)
    Y, A = encoder(X, [], N_HEADS, return_weights=True)
    np.testing.assert_array_equal(Y, X)
    assert A == [] and not np.shares_memory(X, Y)


@both_norms
@every_leading
def test_asking_for_the_weights_changes_no_answer(rng, leading, norm_first):
    X, layers = draw_tokens(rng, leading), draw_stack(rng)
    mask = draw_mask(rng, (*leading, N_HEADS, N, N))
    options = {"norm_first": norm_first, "mask": mask}
    Y, A = encoder(X, layers, N_HEADS, return_weights=True, **options)
    assert_close(Y, encoder(X, layers, N_HEADS, **options))
    assert len(A) == N_LAYERS
    for A_l in A:
        assert A_l.shape == (*leading, N_HEADS, N, N)
        assert (A_l[~mask] == 0).all() and (A_l[mask] > 0).all()
        assert_close(A_l.sum(-1), np.ones((*leading, N_HEADS, N)))


@both_norms
@every_leading
def test_permuting_the_tokens_permutes_the_output(rng, leading, norm_first):
    X, layers = draw_tokens(rng, leading), draw_stack(rng)
    order = rng.permutation(N)
    Y = encoder(X, layers, N_HEADS, norm_first=norm_first)
    permuted = encoder(X[..., order, :], layers, N_HEADS, norm_first=norm_first)
    assert_close(permuted, Y[..., order, :])


def test_positions_end_that(rng):
    X, layers = draw_tokens(rng), draw_stack(rng)
    P = sinusoidal_positional_encoding(N, D_MODEL)
    order = np.roll(np.arange(N), 1)
    Y = encoder(X + P, layers, N_HEADS)[order]
    assert np.abs(encoder(X[order] + P, layers, N_HEADS) - Y).max() > 0.01


@both_norms
@given(length=st.integers(1, N), seed=st.integers(0, 10**6))
def test_masked_padding_changes_nothing(norm_first, length, seed):
    rng = np.random.default_rng(seed)
    X, layers = draw_tokens(rng), draw_stack(rng, d_ff=3)
    options = {"norm_first": norm_first}
    mask = padding_mask([length], N)[0]
    Y = encoder(X, layers, N_HEADS, mask, **options)
    assert_close(Y[:length], encoder(X[:length], layers, N_HEADS, **options))
    X[length:] = 100 * rng.normal(size=(N - length, D_MODEL))
    other = encoder(X, layers, N_HEADS, mask, **options)
    np.testing.assert_array_equal(other[:length], Y[:length])


@both_norms
def test_changing_the_future_leaves_the_past_alone(rng, norm_first):
    X, layers = draw_tokens(rng, (2,)), draw_stack(rng)
    options = {"norm_first": norm_first}
    Y = encoder(X, layers, N_HEADS, is_causal=True, **options)
    assert_close(Y, encoder(X, layers, N_HEADS, causal_mask(N), **options))
    X[:, 3:] += 1
    changed = encoder(X, layers, N_HEADS, is_causal=True, **options)
    np.testing.assert_array_equal(changed[:, :3], Y[:, :3])
    assert np.abs(changed[:, 3:] - Y[:, 3:]).min() > 0


@both_norms
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_token_that_may_look_at_nothing_stays_finite(rng, norm_first, kind):
    """Attention brings it the bias of W_O; its own row goes on as ever."""
    X, layers = draw_tokens(rng, (2,)), draw_stack(rng)
    mask = padding_mask([0, 3], N)
    mask = mask if kind == "bool" else np.where(mask, 0.0, -np.inf)
    options = {"norm_first": norm_first}
    Y, A = encoder(X, layers, N_HEADS, mask, return_weights=True, **options)
    assert np.isfinite(Y).all() and (A[0][0] == 0).all()
    silent = [w | {"W_O": 0 * w["W_O"]} for w in layers]
    assert_close(Y[0], encoder(X[0], silent, N_HEADS, **options))


@pytest.mark.parametrize("n_layers", [1, 3])
def test_zero_matrices_leave_a_pre_norm_stack_at_the_tokens(rng, n_layers):
    X = draw_tokens(rng, d_model=2)
    layers = [matrices(0.0)] * n_layers
    np.testing.assert_array_equal(encoder(X, layers, 1, norm_first=True), X)


def test_biases_and_gains_that_are_missing_are_zeros_and_ones(rng):
    X, w = draw_tokens(rng), draw_layer(rng)
    bare = {name: w[name] for name in MATRICES}
    none = bare | dict.fromkeys((*BIASES, *NORMS))
    plain = bare | {name: np.zeros_like(w[name]) for name in (*BIASES, *NORMS)}
    plain |= {f"gain_{i}": np.ones(D_MODEL) for i in "12"}
    Y = encoder_layer(X, plain, N_HEADS)
    assert_close(encoder_layer(X, bare, N_HEADS), Y)
    assert_close(encoder_layer(X, none, N_HEADS), Y)


@pytest.mark.parametrize("name", [*MATRICES, *BIASES, *NORMS])
def test_every_weight_has_a_say(rng, name):
    """All but the bias of the keys, which adds the same to all scores of a row."""
    X, w = draw_tokens(rng), draw_layer(rng)
    for norm_first in (False, True):
        Y = encoder_layer(X, w, N_HEADS, norm_first=norm_first)
        other = w | {name: w[name] + rng.normal(size=w[name].shape)}
        change = encoder_layer(X, other, N_HEADS, norm_first=norm_first) - Y
        assert (np.abs(change).max() > 1e-3) == (name != "b_K")


@every_leading
def test_leading_axes_are_so_many_sequences(rng, leading):
    X, layers = draw_tokens(rng, leading), draw_stack(rng)
    Y = encoder(X, layers, N_HEADS)
    assert Y.shape == X.shape
    for index in np.ndindex(leading):
        assert_close(Y[index], encoder(X[index], layers, N_HEADS))


@both_norms
def test_inputs_stay_untouched(rng, norm_first):
    X, layers = draw_tokens(rng, (2,)), draw_stack(rng)
    mask = np.where(draw_mask(rng, (N, N)), 0.5, -np.inf)
    norm = (np.ones(D_MODEL), np.zeros(D_MODEL))
    weights = [W for w in layers for W in w.values()]
    keys = [list(w) for w in layers]
    with nothing_modified(X, mask, *norm, *weights):
        encoder(
            X, layers, N_HEADS, mask, norm_first=norm_first, final_norm=norm,
            activation="gelu", return_weights=True,
        )  # fmt: skip
    assert [list(w) for w in layers] == keys


@both_norms
@both_activations
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_is_kept(rng, dtype, activation, norm_first):
    layers = [cast(w, dtype) for w in draw_stack(rng)]
    X, norm = draw_tokens(rng).astype(dtype), (np.ones(D_MODEL, dtype), None)
    Y, A = encoder(
        X, layers, N_HEADS, activation=activation, norm_first=norm_first,
        final_norm=norm, eps=np.float64(1e-5), return_weights=True,
    )  # fmt: skip
    assert {Y.dtype, *(A_l.dtype for A_l in A)} == {np.dtype(dtype)}
    y, A_l = encoder_layer(
        X, layers[0], N_HEADS, activation=activation, norm_first=norm_first,
        return_weights=True,
    )  # fmt: skip
    assert {y.dtype, A_l.dtype, layer_norm(X, *norm).dtype} == {np.dtype(dtype)}


@both_norms
def test_a_float16_stack_is_computed_in_float32_and_rounded_once(rng, norm_first):
    layers = [cast(w, np.float16) for w in draw_stack(rng)]
    X = draw_tokens(rng).astype(np.float16)
    options = {"norm_first": norm_first, "return_weights": True}
    Y, A = encoder(X, layers, N_HEADS, **options)
    wide = [cast(w, np.float32) for w in layers]
    Y_2, A_2 = encoder(X.astype(np.float32), wide, N_HEADS, **options)
    np.testing.assert_array_equal(Y, Y_2.astype(np.float16))
    np.testing.assert_array_equal(A[1], A_2[1].astype(np.float16))
    one = encoder_layer(X, layers[0], N_HEADS, norm_first=norm_first)
    one_2 = encoder_layer(X.astype(np.float32), wide[0], N_HEADS, norm_first=norm_first)
    np.testing.assert_array_equal(one, one_2.astype(np.float16))


def test_the_squares_of_float16_do_not_overflow():
    """300² = 90000 lies beyond float16, whose numbers end at 65504."""
    x = np.array([[300, -300]], np.float16)
    assert layer_norm(x).tolist() == [[1, -1]]
    y = feed_forward(x, np.float16([[300], [300]]), None, np.float16([[1]]), None)
    assert y.tolist() == [[0]]


def test_lower_precision_costs_digits_and_no_more(rng):
    X, layers = draw_tokens(rng), draw_stack(rng)
    Y = encoder(X, layers, N_HEADS)
    for dtype, atol in ((np.float32, FLOAT32), (np.float16, 10 * FLOAT16)):
        low = [cast(w, dtype) for w in layers]
        assert_close(encoder(X.astype(dtype), low, N_HEADS), Y, atol)


def test_lists_and_integers_are_as_good_as_arrays():
    weights = {name: [[1, 0], [0, 1]] for name in MATRICES}
    Y = encoder([[1, 9]], (weights,), 1, final_norm=[[1, 1], None], eps=0)
    assert Y.dtype == np.float64
    assert_close(Y, [[-1, 1]])


def test_weights_that_nobody_asks_for_are_forgotten_layer_by_layer(rng):
    """At n = 251 the weights of one layer with three heads take 1.5 MB."""
    X, layers = draw_tokens(rng, n=251), draw_stack(rng)
    few = peak_memory(lambda: encoder(X, layers, N_HEADS))
    many = peak_memory(lambda: encoder(X, 5 * layers, N_HEADS))
    assert many < 1.1 * few
    kept = peak_memory(lambda: encoder(X, 5 * layers, N_HEADS, return_weights=True))
    assert kept > 2 * few


# Agreement

MASKS = ["none", "padding", "per head", "float", "causal"]


def peer_mask(rng, kind, leading):
    if kind == "none":
        return None
    if kind == "padding":
        return draw_mask(rng, (*leading, 1, 1, N))
    if kind == "causal":
        return causal_mask(N)
    mask = draw_mask(rng, (*leading, N_HEADS, N, N))
    if kind == "float":
        return np.where(mask, rng.normal(size=mask.shape), -np.inf)
    return mask


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@both_norms
@both_activations
@every_leading
def test_the_stack_equals_torchs(rng, leading, activation, norm_first, bias, kind):
    X, layers = draw_tokens(rng, leading), draw_stack(rng, bias=bias)
    norm = rng.normal(size=D_MODEL), rng.normal(size=D_MODEL) if bias else None
    mask = peer_mask(rng, kind, leading)
    options = {"activation": activation, "norm_first": norm_first, "eps": 1e-3}
    for final_norm in (None, norm):
        theirs = reference.encoder_with(
            layers, N_HEADS, final_norm=final_norm, **options
        )
        with torch.no_grad():
            expected = reference.encode(theirs, torch.as_tensor(X), mask).numpy()
        Y = encoder(X, layers, N_HEADS, mask, final_norm=final_norm, **options)
        assert_close(Y, expected, TORCH)


@pytest.mark.parametrize("affine", [True, False])
@every_leading
def test_the_norm_equals_torchs(rng, leading, affine):
    x = 10 * draw_tokens(rng, leading) + 3
    parts = [rng.normal(size=D_MODEL) for _ in range(2)] if affine else [None] * 2
    tensors = [None if p is None else torch.as_tensor(p) for p in parts]
    expected = F.layer_norm(torch.as_tensor(x), (D_MODEL,), *tensors, eps=1e-2)
    assert_close(layer_norm(x, *parts, eps=1e-2), expected, TORCH)


def test_gelu_equals_torchs_exact_one():
    z = np.linspace(-40, 40, 1009)[:, None]
    eye = np.eye(1)
    y = feed_forward(z, eye, None, eye, None, "gelu")
    assert_close(y, F.gelu(torch.as_tensor(z)))
    by_tanh = F.gelu(torch.as_tensor(z), approximate="tanh").numpy()
    assert np.abs(y - by_tanh).max() > 1e-4


# Refusals

EYE = np.eye(2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[1, 2]], [1, 2, 3]), ValueError, r"gain must have shape \(2,\), got \(3,\)"),
        (([[1, 2]], None, [1]), ValueError, r"bias must have shape \(2,\), got \(1,\)"),
        (([[1, 2]], None, None, -1), ValueError, "eps must be at least 0 .* got -1"),
        (([[1, 2]], None, None, np.nan), ValueError, "eps must be .* got nan"),
        (([[1, 2]], None, None, "1"), TypeError, "eps must be a number, got '1'"),
        (([[1, 2]], None, None, True), TypeError, "eps must be a number, got True"),
        ((3.0,), ValueError, r"x must have shape \(..., d_model\), got \(\)"),
        (([[]],), ValueError, r"x must have at least one feature, got shape \(1, 0\)"),
        (([["a"]],), TypeError, "x must hold real numbers"),
        ((EYE, ["a", "b"]), TypeError, "gain must hold real numbers"),
    ],
)
def test_the_norm_says_what_is_wrong(arguments, error, message):
    with pytest.raises(error, match=message):
        layer_norm(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((np.ones((3, 5)), EYE, None, EYE, None), ValueError, "x has 5 .* W_1 2 rows"),
        ((EYE, EYE, None, np.ones((5, 2)), None), ValueError, "has 2 .* W_2 5 rows"),
        ((EYE, EYE, [1], EYE, None), ValueError, r"b_1 must have .*\(2,\), got \(1,\)"),
        ((EYE, EYE, None, EYE, [1]), ValueError, r"b_2 must have .*\(2,\), got \(1,\)"),
        ((EYE, [1, 2], None, EYE, None), ValueError, r"W_1 must have .* got \(2,\)"),
        (([1, 2], EYE, None, EYE, None), ValueError, r"x must have .* got \(2,\)"),
        ((EYE, EYE, None, EYE, None, "tanh"), ValueError, "'relu' or 'gelu', got 'tan"),
        ((EYE, [["a"]], None, EYE, None), TypeError, "W_1 must hold real numbers"),
    ],
)
def test_feed_forward_says_what_is_wrong(arguments, error, message):
    with pytest.raises(error, match=message):
        feed_forward(*arguments)


WRONG_WEIGHTS = [
    ({"W_2": None}, ValueError, "{0} lacks W_2"),
    ({"W_1": None, "W_K": None}, ValueError, "{0} lacks W_K, W_1"),
    ({"w_q": EYE}, ValueError, "{0} holds w_q; the names are W_Q, W_K, .*bias_2"),
    ({"W_O": np.ones((2, 1))}, ValueError, r"{0}\['W_O'\] must be d_model = 2.*\(2, 1"),
    ({"W_2": np.ones((2, 3))}, ValueError, r"{0}\['W_2'\] must be d_model = 2.*\(2, 3"),
    ({"gain_1": np.ones(3)}, ValueError, r"{0}\['gain_1'\] must be d_model = 2.*\(3,"),
    ({"bias_2": 1.0}, ValueError, r"{0}\['bias_2'\] must be d_model = 2.* \(\)"),
    ({"b_1": ["a", "b"]}, TypeError, r"{0}\['b_1'\] must hold real numbers"),
    ({"W_Q": torch.eye(2)}, TypeError, r"{0}\['W_Q'\] is a torch.Tensor"),
]


@pytest.mark.parametrize(("change", "error", "message"), WRONG_WEIGHTS)
def test_wrong_weights_are_named(change, error, message):
    wrong = matrices(0.0) | change
    with pytest.raises(error, match=message.format("weights")):
        encoder_layer(EYE, wrong, 1)
    with pytest.raises(error, match=message.format(r"layers\[1\]")):
        encoder(EYE, [matrices(0.0), wrong], 1)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": [1, 2]}, ValueError, r"X must have shape \(..., n, d_model\), got \(2,"),
        ({"X": np.ones((3, 5))}, ValueError, "must be d_model = 5"),
        ({"X": torch.eye(2)}, TypeError, "X is a torch.Tensor"),
        ({"n_heads": 3}, ValueError, r"W_Q \(2\) must be divisible by n_heads \(3\)"),
        ({"n_heads": 1.0}, TypeError, "n_heads must be an integer, got 1.0"),
        ({"mask": EYE.astype(int)}, TypeError, "mask must be bool .* got dtype int64"),
        ({"mask": np.ones((3, 3), bool)}, ValueError, r"\(3, 3\) .* = \(1, 2, 2\)"),
        ({"activation": "GELU"}, ValueError, "activation must be .* got 'GELU'"),
        ({"eps": -1}, ValueError, "eps must be at least 0 and finite, got -1"),
    ],
)
def test_the_layer_and_the_stack_say_what_is_wrong(change, error, message):
    options = {"X": EYE, "n_heads": 1} | change
    with pytest.raises(error, match=message):
        encoder_layer(weights=matrices(0.0), **options)
    with pytest.raises(error, match=message):
        encoder(layers=[matrices(0.0)], **options)


@pytest.mark.parametrize(
    ("layers", "options", "error", "message"),
    [
        (matrices(0.0), {}, TypeError, "layers must be a sequence of dicts, got dict"),
        (2, {}, TypeError, "layers must be a sequence of dicts, got int"),
        ([EYE], {}, TypeError, r"layers\[0\] must be a dict, got ndarray"),
        ([], {"final_norm": True}, TypeError, "final_norm must be a pair .* got True"),
        ([], {"final_norm": ([1, 2, 3], None)}, ValueError, r"gain of .* got \(3,\)"),
        ([], {"final_norm": (None, ["a", "b"])}, TypeError, "bias of final_norm must"),
    ],
)
def test_the_stack_says_what_is_wrong(layers, options, error, message):
    with pytest.raises(error, match=message):
        encoder(EYE, layers, 1, **options)


def test_a_layer_wants_a_dict():
    with pytest.raises(TypeError, match="weights must be a dict, got list"):
        encoder_layer(EYE, [EYE] * 6, 1)
