"""A fixture for tests: ``pytest_plugins = ["mha.laws.fixture"]`` in a conftest.py."""

import pytest

from mha import laws


@pytest.fixture(scope="session")
def assert_lawful():
    """Return `mha.laws.assert_lawful`; it raises AssertionError if a law is broken."""
    return laws.assert_lawful
