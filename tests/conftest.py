"""What every test gets: one thread and one generator."""

import os

# The arrays are tiny and threads only wait for each other. NumPy and PyTorch read the
# variables when they are first imported, so this comes before both.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
# Arrays of a megabyte come and go, and Linux need not clear new pages for each. The
# processes that this one starts read it: those of the tests, and the kernels.
KEPT = {"MALLOC_MMAP_THRESHOLD_": 2**25, "MALLOC_TRIM_THRESHOLD_": 2**28}
for name, size in KEPT.items():
    os.environ.setdefault(name, str(size))

import hypothesis  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

# The same examples on every run: a test that fails today fails again tomorrow.
hypothesis.settings.register_profile(
    "mha", deadline=None, derandomize=True, max_examples=50
)
hypothesis.settings.load_profile("mha")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# Which law kills which bug takes seconds, and is kept: who asks it goes together.
MATRIX = "tests/laws/test_zoo.py"
ASKING = (
    "mha/laws/trial", "book/figures/front", "book/figures/finding",
    "tests/book/test_extensions", "tests/book/test_front", "tests/book/test_stress",
)  # fmt: skip


def pytest_xdist_make_scheduler(config, log):
    """Keep each module and each notebook in one process, and all exercises.

    The tests of figures take long and share nothing but the browser, so each is free.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            if nodeid.startswith("tests/browser/test_figures"):
                return nodeid.partition("[")[0]
            if nodeid.startswith(ASKING):
                return MATRIX
            if nodeid.startswith("tests/exercises"):
                return "tests/exercises"
            return super()._split_scope(nodeid)

    return Scheduling(config, log) if config.option.dist == "loadscope" else None
