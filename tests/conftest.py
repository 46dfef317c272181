"""What every test gets: one thread, one generator, sizes that are distinct primes."""

import os

# The arrays are tiny and threads only wait for each other. NumPy and PyTorch read the
# variables when they are first imported, so this comes before both.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import hypothesis  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

from tests.samples import SIZES  # noqa: E402

# The same examples on every run: a test that fails today fails again tomorrow.
hypothesis.settings.register_profile(
    "mha", deadline=None, derandomize=True, max_examples=50
)
hypothesis.settings.load_profile("mha")


@pytest.fixture
def sizes():
    return SIZES


@pytest.fixture
def rng():
    return np.random.default_rng(0)
