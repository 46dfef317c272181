"""What strangers got wrong is told from the same code without the slip."""

import pytest

from mha import laws
from tests.laws.reports import broken
from tests.laws.wild import PAIRS

# True of what right code may do otherwise: it returns no zeros for a token that sees
# nothing, or another dtype.
CONVENTIONS = {"empty_rows_give_zero", "dtype_is_kept"}
# tests/weekly asks all laws.
FEW = [
    "rows_sum_to_one", "key_order_is_free", "outputs_follow_tokens", "self_only_mask",
    "batches_and_heads_stay_apart", "future_leaves_past_alone", "running_means",
    "inputs_stay_untouched", "float_masks_are_added", "dtype_is_kept",
    "every_dtype_gives_the_numbers", "empty_rows_give_zero",
]  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_the_wrong_one_breaks_a_law_that_its_right_twin_keeps(name, asked=FEW):
    pair = PAIRS[name]
    options = {"reference": pair.reference, "sizes": pair.sizes}
    decisive = dict.fromkeys([pair.law, "rising_scores", "equals_reference"])
    wrong = laws.check(pair.make(True), decisive, **options)
    assert pair.law in broken(wrong)
    every = None if asked is None else dict.fromkeys([*decisive, *asked])
    right = laws.check(pair.make(False), every, **options)
    assert {*broken(right)} <= CONVENTIONS
    assert pair.law in right.held
