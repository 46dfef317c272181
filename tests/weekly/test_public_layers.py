"""Public layers on trial again, and what the page says of designs and positions."""

from importlib.metadata import version

import pytest

from mha import laws
from tests.book.test_stored_layers import (
    PYTHON,
    ROWS,
    STORED,
    layers,
    names_of_page,
    needs,
)


@pytest.mark.parametrize("i", range(len(ROWS)), ids=[x.library + x.key for x in ROWS])
def test_the_laws_say_what_is_stored(i):
    library, stored = ROWS[i].library, STORED[i]
    needs(library)
    if library and version(library).partition("+")[0] != stored["version"]:
        pytest.skip(f"stored for {library} {stored['version']}")
    assert layers.found(ROWS[i]) == stored


def test_the_number_of_key_heads_is_found():
    names = names_of_page()
    for shared in (1, 2):
        report = laws.check(names["Rotary"](16, 4, shared, turns=(0, 0)))
        assert report.holds
        assert report.tried["said"] == [f"n_kv_heads={shared}"]


def test_neither_test_finds_wrong_speeds():
    names = names_of_page()
    source = next(x for x in PYTHON if "def rotated" in x)
    names = {**names, "__name__": "other_speeds"}
    exec(source.replace("10000.0", "7.0"), names)
    exec(next(x for x in PYTHON if "def change" in x).split("\n\n\n")[0], names)
    assert names["change_by_offset"]((1, 1)) < 1e-12
    assert laws.check(names["Rotary"](16, 4), **names["rotary"]).holds


def test_a_layer_without_positions_is_not_the_declared_design():
    names = names_of_page()
    without = names["Rotary"](16, 4, turns=(0, 0))
    assert names["change_by_offset"]((0, 0)) < 1e-12
    report = laws.check(without, **names["rotary"])
    broken = {f.law.slug for f in report.findings if f.verdict == "broken"}
    assert broken == set(names["rotary"]["breaks"])


def test_a_declared_law_that_is_not_asked_fails_nothing():
    names = names_of_page()
    report = laws.check(names["Rotary"](16, 4, turns=(0, 0)), breaks=["causal_corner"])
    by = {f.law.slug: f.verdict for f in report.findings}
    assert by["causal_corner"] == "not asked"
    assert report.holds
