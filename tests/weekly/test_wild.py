"""What strangers got wrong is told from the same code without the slip."""

import pytest

from mha import laws
from tests.laws.reports import breaks, broken
from tests.weekly.wild import PAIRS

# True of what right code may do otherwise: it returns no zeros for a token that sees
# nothing, or another dtype.
CONVENTIONS = {"empty_rows_give_zero", "dtype_is_kept"}


@pytest.mark.parametrize("name", PAIRS)
def test_the_wrong_one_breaks_a_law_that_its_right_twin_keeps(name):
    pair = PAIRS[name]
    assert breaks(pair.make(True), [pair.law], pair.reference)
    right = laws.check(pair.make(False), reference=pair.reference)
    assert {*broken(right)} <= CONVENTIONS
    assert pair.law in right.held
