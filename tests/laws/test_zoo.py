"""Which laws each member of the zoo breaks, and whether it is called by its name."""

import pytest

from mha import laws, zoo
from tests.laws.reports import STORED

WRONG = (*zoo.WRONG, *zoo.ENCODERS[1:])
EVERY = (*zoo.ALL, *zoo.ENCODERS)
# These hold for most, and on the inputs of the first many numbers differ.
ALSO = ["rows_sum_to_one", "calls_agree", "equals_reference"]


# Chapter 15 counts daily all laws that a member breaks, and tests/weekly compares them.
@pytest.mark.parametrize("member", EVERY, ids=lambda m: m.name)
def test_a_member_breaks_the_laws_that_are_stored_for_it(member):
    stored = STORED[member.name]
    matrix = laws.kill_matrix(dict.fromkeys([*stored, *ALSO]), [member])
    assert sorted(matrix.killed_by(member.name)) == stored


def test_every_wrong_member_breaks_a_law_and_the_right_ones_none():
    assert list(STORED) == [member.name for member in EVERY]
    assert [name for name in STORED if not STORED[name]] == ["right", "right_encoder"]
    assert laws.check(zoo.right).holds and laws.check(zoo.right_encoder).holds


def test_a_member_is_named_by_its_own_numbers_and_by_no_others():
    """By two of the laws that it breaks; what is random or asks more has no name."""
    named = {}
    for member in WRONG:
        subject = laws.torch(member) if member.on_tensors else member
        named[member.name] = laws.check(subject, STORED[member.name][:2]).alike
    assert {name for name in named if named[name] not in ("", name)} == set()
    assert list(named.values()).count("") <= 12
