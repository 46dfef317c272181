"""Checks for the exercises: each names the mistake, not only that there is one.

``check.exercise(answer)`` returns a `Verdict` that prints *not attempted yet*,
*passed*, or what went wrong, with the smallest input on which it goes wrong.
"""

from mha.check._engine import Exercise, Mistake, Verdict
from mha.check.attention import (
    attend,
    key_order_law,
    self_attention,
    weight_of_the_middle,
)
from mha.check.masks import (
    batch_mask,
    causal_row,
    denominator_law,
    last_rows_mask,
    safe_masked_softmax,
)
from mha.check.multi_head import (
    WANTED,
    bug_hunt,
    farthest_head,
    many_heads,
    matrices_of_torch,
    row_without_mask,
    suspects,
)
from mha.check.output import (
    count_parameters,
    fold_value_bias,
    head_that_wrote,
    own_block_law,
    sum_of_heads,
)
from mha.check.scale import (
    doubling_law,
    mystery_divisor,
    scale_for_variance,
    scaled_scores,
    variance_left,
)
from mha.check.similarity import best_unit_key, cosine, scores, spread_of_thirds
from mha.check.softmax import (
    rows_law,
    score_for_half,
    softmax_jacobian,
    stable_softmax,
    temperature_for,
)
from mha.check.split import (
    fuse,
    head_and_column,
    strides_of_heads,
    to_heads,
    wrong_step,
)
from mha.check.why_heads import (
    break_the_theorem,
    heads_needed,
    rebuild,
    two_of_three,
    unmix,
)

__all__ = [
    "WANTED",
    "Exercise",
    "Mistake",
    "Verdict",
    "attend",
    "batch_mask",
    "best_unit_key",
    "break_the_theorem",
    "bug_hunt",
    "causal_row",
    "cosine",
    "count_parameters",
    "denominator_law",
    "doubling_law",
    "farthest_head",
    "fold_value_bias",
    "fuse",
    "head_and_column",
    "head_that_wrote",
    "heads_needed",
    "key_order_law",
    "last_rows_mask",
    "many_heads",
    "matrices_of_torch",
    "mystery_divisor",
    "own_block_law",
    "rebuild",
    "row_without_mask",
    "rows_law",
    "safe_masked_softmax",
    "scale_for_variance",
    "scaled_scores",
    "score_for_half",
    "scores",
    "self_attention",
    "softmax_jacobian",
    "spread_of_thirds",
    "stable_softmax",
    "strides_of_heads",
    "sum_of_heads",
    "suspects",
    "temperature_for",
    "to_heads",
    "two_of_three",
    "unmix",
    "variance_left",
    "weight_of_the_middle",
    "wrong_step",
]
