"""Right answers to the exercises of one chapter, written in other ways."""

import numpy as np


def by_complex_numbers(x, positions):
    d = x.shape[-1]
    speeds = 10000.0 ** (-np.arange(0, d, 2) / d)
    turned = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * np.outer(positions, speeds))
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


def by_index(K, n_heads):
    return K[..., np.arange(n_heads) // (n_heads // K.shape[-3]), :, :]


def as_a_test(attend):
    A = attend(np.ones((8, 2)), np.ones((8, 2)), np.eye(8))
    i, j = np.nonzero(A)
    assert (abs(i - j) < 3).all()
    return True


WAYS = {
    "cache_with_windows": (37_888 / 196_608, 0.19),
    "rotate": (by_complex_numbers,),
    "share_heads": (by_index,),
    "far_keys_law": (as_a_test,),
}
