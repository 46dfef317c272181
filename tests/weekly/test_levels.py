"""A core runs alone, and each deeper section after the core alone."""

import pytest

from tests.book.house import BOOK
from tests.book.test_levels import alone


@pytest.mark.parametrize("code", list(alone()))
def test_a_core_and_each_deeper_section_run_alone(code, monkeypatch):
    monkeypatch.chdir(BOOK)
    exec(compile(code, "cells", "exec"), {})
