"""What is right is accused of nothing, and told true reasons."""

import time

import pytest

import mha
from mha import laws, zoo
from tests.laws.reports import broken
from tests.laws.right import RIGHT

# tests/weekly asks all laws under four seeds.
FEW = [
    "rows_sum_to_one", "padding_changes_nothing", "batches_and_heads_stay_apart",
    "batch_masks_reach_their_own", "key_order_is_free", "self_only_mask",
    "scores_keep_unit_variance", "empty_rows_give_zero", "float_masks_are_added",
    "integer_masks_hide", "large_scores_stay_exact", "dtype_is_kept",
    "every_dtype_gives_the_numbers", "concat_is_a_sum", "equals_reference",
]  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_breaks_no_law(name, seeds=(0,), asked=FEW):
    subject, options = RIGHT[name]
    for seed in seeds:
        report = laws.check(subject, asked, seed=seed, **options)
        assert broken(report) == []
        assert "equals_reference" in report.held


@pytest.mark.parametrize(("name", "law", "why"), [
    ("loop", "gradients_are_slopes", "NumPy has no gradients"),
    ("loop", "causal_corner", "it takes no is_causal"),
    ("loop", "float_masks_are_added", "all 0, hides keys: hand over"),
    ("lengths", "self_only_mask", "lengths say where padding begins"),
    ("always causal", "padding_changes_nothing", "it takes no mask"),
    ("grouped", "parameters_ignore_heads", "heads that share keys have fewer"),
    ("NumPy attention", "head_owns_its_columns", "it has no weight matrices"),
    ("NumPy layer", "one_at_a_time_is_all_at_once", "it has no cache"),
])  # fmt: skip
def test_what_cannot_be_asked_is_told_the_true_reason(name, law, why):
    subject, options = RIGHT[name]
    (reason,) = laws.check(subject, [law], **options).unasked
    assert why in reason


# The last is the member of the zoo that takes longest.
@pytest.mark.parametrize("subject", [mha.multi_head_attention, zoo.scale_sqrt_d_model])
def test_one_check_takes_less_than_three_seconds_right_or_wrong(subject):
    began = time.process_time()
    laws.check(subject, seed=3)
    assert time.process_time() - began < 3
