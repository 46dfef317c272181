"""Timings are taken one at a time, in one process."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Leave out the processes that pyproject.toml asks for."""
    config.option.numprocesses = 0
