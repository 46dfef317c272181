"""The one file that readers print and change gives the numbers of the package."""

import numpy as np
import pytest

import mha
import mini_mha as mini
from mha import designs, laws

H, D_K, D_FF, B, N = 3, 2, 17, 5, 7
D = H * D_K
CLOSE = {"rtol": 0, "atol": 1e-12}


def drawn(rng):
    shapes = {f"W_{c}": (D, D) for c in "QKVO"} | {f"b_{c}": D for c in "QKVO"}
    shapes |= {"W_1": (D, D_FF), "b_1": D_FF, "W_2": (D_FF, D), "b_2": D}
    shapes |= dict.fromkeys(("gain_1", "bias_1", "gain_2", "bias_2"), D)
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def test_its_attention_keeps_the_laws():
    laws.assert_lawful(mini.attention)


@pytest.mark.parametrize("hidden", ["nothing", "padding", "future", "some rows"])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_its_encoder_gives_the_numbers_of_the_package(hidden, norm_first, activation):
    rng = np.random.default_rng(0)
    layers, X = [drawn(rng) for _ in range(2)], rng.normal(size=(B, N, D))
    lengths = [7, 3, 0, 1, 5]
    np.testing.assert_array_equal(
        mini.padding_mask(lengths, N), mha.padding_mask(lengths)
    )
    np.testing.assert_array_equal(mini.causal_mask(N), mha.causal_mask(N))
    mask = {
        "nothing": None,
        "padding": mini.padding_mask(lengths, N),
        "future": mini.causal_mask(N),
        "some rows": rng.random((B, H, N, N)) < 0.3,
    }[hidden]
    options = {"norm_first": norm_first}
    ours = mha.encoder(X, layers, H, mask, activation=activation, **options)
    one = mini.encoder(
        X, layers, H, mask, activation=getattr(mini, activation), **options
    )
    np.testing.assert_allclose(one, ours, **CLOSE)


def test_its_positions_are_those_of_the_package():
    x = np.random.default_rng(0).normal(size=(B, N, D))
    table = mha.sinusoidal_positional_encoding(N, D)
    np.testing.assert_allclose(mini.positions(N, D), table, **CLOSE)
    rotary = designs.rotary(x, pairs="neighbours")
    np.testing.assert_allclose(mini.rotary(x), rotary, **CLOSE)
