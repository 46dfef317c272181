"""Which laws each member of the zoo breaks."""

import pytest

from mha import laws, zoo
from tests.laws.reports import STORED

EVERY = (*zoo.ALL, *zoo.ENCODERS)


# Chapter 15 counts daily all laws that a member breaks, and tests/weekly compares them.
@pytest.mark.parametrize("member", EVERY, ids=lambda m: m.name)
def test_a_member_breaks_the_laws_that_are_stored_for_it(member):
    stored = STORED[member.name]
    asked = [getattr(laws, slug) for slug in stored] or None
    matrix = laws.kill_matrix(asked, [member])
    assert sorted(matrix.killed_by(member.name)) == stored


def test_every_wrong_member_breaks_a_law_and_the_right_ones_none():
    assert list(STORED) == [member.name for member in EVERY]
    assert [name for name in STORED if not STORED[name]] == ["right", "right_encoder"]
