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
from mha.check.scale import (
    doubling_law,
    mystery_divisor,
    scale_for_variance,
    scaled_scores,
    variance_left,
)
from mha.check.similarity import best_unit_key, cosine, scores, spread_at_100
from mha.check.softmax import (
    rows_law,
    score_for_half,
    softmax_jacobian,
    stable_softmax,
    temperature_for,
)

__all__ = [
    "Exercise",
    "Mistake",
    "Verdict",
    "attend",
    "batch_mask",
    "best_unit_key",
    "causal_row",
    "cosine",
    "denominator_law",
    "doubling_law",
    "key_order_law",
    "last_rows_mask",
    "mystery_divisor",
    "rows_law",
    "safe_masked_softmax",
    "scale_for_variance",
    "scaled_scores",
    "score_for_half",
    "scores",
    "self_attention",
    "softmax_jacobian",
    "spread_at_100",
    "stable_softmax",
    "temperature_for",
    "variance_left",
    "weight_of_the_middle",
]
