"""What strangers got wrong is told from the same code without the slip."""

import pytest

from mha import laws
from tests.laws.reports import breaks, broken
from tests.laws.wild import PAIRS

# True of what right code may do otherwise: it returns no zeros for a token that sees
# nothing, or another dtype.
CONVENTIONS = {"empty_rows_give_zero", "dtype_is_kept"}
# tests/weekly asks all laws.
FEW = [
    "rows_sum_to_one", "outputs_follow_tokens", "self_only_mask", "calls_agree",
    "batches_and_heads_stay_apart", "inputs_stay_untouched", "float_masks_are_added",
    "every_dtype_gives_the_numbers", "equals_reference",
]  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_the_wrong_one_breaks_a_law_that_its_right_twin_keeps(name, asked=FEW):
    pair = PAIRS[name]
    assert breaks(pair.make(True), [pair.law], pair.reference)
    asked = None if asked is None else dict.fromkeys([pair.law, *asked])
    right = laws.check(pair.make(False), asked, reference=pair.reference)
    assert {*broken(right)} <= CONVENTIONS
    assert pair.law in right.held
