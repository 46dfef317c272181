"""How close is close? One number for each reason to differ."""

import numpy as np

# Two float64 programs that add the same hundred terms of size one in another order
# differ by about 1e-15; three digits are left for unlucky sums.
NUMPY = 1e-12

# PyTorch may fuse products, scale later and use other kernels for exp.
TORCH = 1e-10

# float32 and float16 keep about 7 and 3 digits; two are left for the sums.
FLOAT32 = 1e-5
FLOAT16 = 5e-3


def assert_close(actual, expected, atol=NUMPY):
    """Assert equal shapes and, up to `atol`, equal numbers; there is no rtol."""
    assert np.shape(actual) == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)
