"""Which laws each member of the zoo breaks, and whether it is called by its name."""

import pytest

from mha import laws, zoo
from tests.laws.reports import STORED

WRONG = (*zoo.WRONG, *zoo.ENCODERS[1:])
EVERY = (*zoo.ALL, *zoo.ENCODERS)
# These hold for most, and on the inputs of all but the last many numbers differ.
ALSO = (
    "rows_sum_to_one", "calls_agree", "returned_weights_make_the_output",
    "equals_reference",
)  # fmt: skip


# Chapter 16 counts daily all laws that a member breaks, and tests/weekly compares them.
@pytest.mark.parametrize("member", EVERY, ids=lambda m: m.name)
def test_a_member_breaks_the_laws_that_are_stored_for_it(member):
    stored = STORED[member.name]
    matrix = laws.kill_matrix(dict.fromkeys([*stored, *ALSO]), [member])
    assert sorted(matrix.killed_by(member.name)) == stored


def test_every_wrong_member_breaks_a_law_and_the_right_ones_none():
    assert list(STORED) == [member.name for member in EVERY]
    assert [name for name in STORED if not STORED[name]] == ["right", "right_encoder"]


def test_a_member_is_named_by_its_own_numbers_and_by_no_others(every=13, unnamed=2):
    """What is random, or wrong in what a call may ask besides, may have no name."""
    names = []
    for member in WRONG[::every]:
        subject = laws.torch(member) if member.on_tensors else member
        alike = laws.check(subject, STORED[member.name][:2]).alike
        assert alike in ("", member.name)
        names.append(alike)
    assert names.count("") <= unnamed
