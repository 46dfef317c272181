"""What is right is accused of nothing, and told true reasons."""

import time

import pytest

from mha import laws
from tests.laws.reports import broken
from tests.laws.right import RIGHT

# tests/weekly asks all of them and more, under four seeds.
ONE_OF_EACH_KIND = (
    "NumPy attention", "hidden where True", "filled and zeroed", "lengths",
    "causal layer", "grouped, torch",
)  # fmt: skip


@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_what_is_right_breaks_no_law(name):
    report = laws.check(RIGHT[name])
    assert broken(report) == []
    assert report.holds


@pytest.mark.parametrize(
    ("name", "law", "why"),
    [
        ("double loop", laws.batches_and_heads_stay_apart, "one sequence at a time"),
        ("double loop", laws.mask_and_causal_both_hide, "it takes no mask"),
        ("double loop", laws.gradients_are_slopes, "out of reach"),
        ("without gradients", laws.gradients_are_slopes, "no gradient flows"),
        ("grouped, NumPy", laws.gradients_are_slopes, "out of reach"),
        ("loop with a mask", laws.causal_corner, "it has no is_causal"),
        ("loop with a mask", laws.float_masks_are_added, "but hides keys here"),
        ("hidden by where", laws.float_masks_are_added, "but hides keys here"),
        ("hidden where True", laws.float_masks_are_added, "but hides keys here"),
        ("hidden by index", laws.float_masks_are_added, "refuses a mask of floats"),
        ("hidden by index", laws.integer_masks_hide, "a mask of integers"),
        ("torch's function", laws.integer_masks_hide, "refuses a mask of integers"),
        ("torch's function", laws.mask_and_causal_both_hide, "beside is_causal"),
        ("torch's function", laws.returned_weights_make_the_output, "no attention"),
        ("always causal", laws.mask_and_causal_both_hide, "it is always causal"),
        ("causal layer", laws.causal_corner, "self-attention only"),
        ("NumPy attention", laws.groups_share_their_keys, "nobody said n_kv_heads"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_told_the_true_reason(name, law, why):
    assert why in law.check(RIGHT[name]).why


@pytest.mark.parametrize("name", ["NumPy attention", "torch's function"])
def test_one_check_of_a_function_takes_less_than_a_second(name):
    began = time.process_time()
    laws.check(RIGHT[name], seed=3)
    assert time.process_time() - began < 1
