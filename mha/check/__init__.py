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
from mha.check.code_review import code_review, layer_in_review
from mha.check.encoder_layer import (
    batch_law,
    layer_parameters,
    length_after_norm,
    normalise_tokens,
    wire_layer,
)
from mha.check.encoder_stack import (
    convict_ten,
    decoder_masks,
    detour,
    drop_twin,
    mirror_queries,
)
from mha.check.law_writing import grade_laws, inputs_needed, shrink
from mha.check.long import (
    cache_bytes,
    decode_step,
    long_text_law,
    merge_answers,
    scores_memory,
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
from mha.check.positions import (
    encode_positions,
    likeness_of_positions,
    position_ids,
    tells_order,
    turn_by,
)
from mha.check.real_encoder import (
    honest_score,
    previous_score,
    sentence_vectors,
    share_used,
    shares_brought,
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
    "batch_law",
    "batch_mask",
    "best_unit_key",
    "break_the_theorem",
    "bug_hunt",
    "cache_bytes",
    "causal_row",
    "code_review",
    "convict_ten",
    "cosine",
    "count_parameters",
    "decode_step",
    "decoder_masks",
    "denominator_law",
    "detour",
    "doubling_law",
    "drop_twin",
    "encode_positions",
    "farthest_head",
    "fold_value_bias",
    "fuse",
    "grade_laws",
    "head_and_column",
    "head_that_wrote",
    "heads_needed",
    "honest_score",
    "inputs_needed",
    "key_order_law",
    "last_rows_mask",
    "layer_in_review",
    "layer_parameters",
    "length_after_norm",
    "likeness_of_positions",
    "long_text_law",
    "many_heads",
    "matrices_of_torch",
    "merge_answers",
    "mirror_queries",
    "mystery_divisor",
    "normalise_tokens",
    "own_block_law",
    "position_ids",
    "previous_score",
    "rebuild",
    "row_without_mask",
    "rows_law",
    "safe_masked_softmax",
    "scale_for_variance",
    "scaled_scores",
    "score_for_half",
    "scores",
    "scores_memory",
    "self_attention",
    "sentence_vectors",
    "share_used",
    "shares_brought",
    "shrink",
    "softmax_jacobian",
    "spread_of_thirds",
    "stable_softmax",
    "strides_of_heads",
    "sum_of_heads",
    "suspects",
    "tells_order",
    "temperature_for",
    "to_heads",
    "turn_by",
    "two_of_three",
    "unmix",
    "variance_left",
    "weight_of_the_middle",
    "wire_layer",
    "wrong_step",
]
