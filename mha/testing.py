"""A fixture for your tests. pytest finds it where `mha` is installed."""

from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def assert_lawful() -> Callable[..., None]:
    """Return `mha.laws.assert_lawful`; it raises AssertionError if a law is broken."""
    from mha import laws  # not at the start of every run of every project

    return laws.assert_lawful
