"""What pytest gets from `mha`: a fixture that asks the laws.

It stands outside the package, so that nobody's tests load `mha` who do not use it.
"""

import pytest


@pytest.fixture(scope="session")
def assert_lawful():
    """Return `mha.laws.assert_lawful`; it raises AssertionError if a law is broken."""
    from mha import laws

    return laws.assert_lawful
