"""A fixture for tests: ``pytest_plugins = ["mha.testing"]`` in a conftest.py."""

from collections.abc import Callable

import pytest

from mha import laws


@pytest.fixture(scope="session")
def assert_lawful() -> Callable[..., None]:
    """Return `mha.laws.assert_lawful`; it raises AssertionError if a law is broken."""
    return laws.assert_lawful
