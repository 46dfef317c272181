"""The chapters of the book in their order, and what each of them earns.

The number of a chapter is its place, counted from 0. The package knows no chapter: here
the book says which one earns a law of `mha.laws` and which one has the step that a bug
of `mha.zoo` gets wrong. What is named nowhere belongs to the chapter on laws.
"""

from typing import Any

CHAPTERS = (
    "overview",
    "dot_product",
    "softmax",
    "scale",
    "masks",
    "attention",
    "why_heads",
    "split",
    "output",
    "multi_head",
    "positions",
    "encoder_layer",
    "encoder",
    "real_task",
    "what_heads_learn",
    "real_encoder",
    "laws",
    "long",
    "since_2017",
)

# The laws and the bugs of each chapter by name, in the order of the package.
LAWS = {
    "dot_product": "rotation_changes_nothing",
    "softmax": "rows_sum_to_one output_in_hull constant_values_stay",
    "scale": "scores_keep_unit_variance doubling_changes_nothing",
    "masks": (
        "masked_weights_are_zero empty_rows_give_zero future_leaves_past_alone "
        "padding_changes_nothing self_only_mask"
    ),
    "attention": (
        "outputs_follow_tokens key_order_is_free shifting_keys_changes_nothing "
        "scores_are_not_symmetric inputs_stay_untouched dtype_is_kept"
    ),
    "split": "head_owns_its_columns",
    "output": "head_moves_its_own_slice concat_is_a_sum parameters_ignore_heads",
    "multi_head": "equals_reference",
    "encoder_layer": (
        "training_mode_changes_nothing silent_parts_pass_the_input_on "
        "tokens_meet_in_attention_only post_norm_normalises_rows"
    ),
    "encoder": "layers_follow_each_other",
    "long": "one_at_a_time_is_all_at_once",
    "since_2017": "only_distance_counts",
}
BUGS = {
    "dot_product": "key_reshaped",
    "softmax": "softmax_over_queries softmax_over_heads no_max_subtraction",
    "scale": (
        "no_scale scale_sqrt_n scale_sqrt_d_model scale_by_d_k scale_after_softmax"
    ),
    "masks": (
        "nan_on_empty_rows mask_ignored mask_inverted mask_after_softmax "
        "mask_zero_score minus_1e9_mask causal_without_diagonal "
        "padding_hides_queries mask_in_wrong_order"
    ),
    "attention": (
        "writes_into_its_input promotes_to_float64 tied_query_key attends_across_batch"
    ),
    "split": (
        "split_without_transpose merge_without_transpose both_without_transpose "
        "input_split_before_projection"
    ),
    "output": "heads_averaged output_within_heads no_output_projection",
    "encoder_layer": (
        "batch_norm norm_over_tokens norm_over_all unbiased_std "
        "one_norm_for_both one_add_and_norm no_residual residual_multiplied "
        "residual_from_the_input residual_after_norm bend_at_the_end "
        "mask_not_handed_on"
    ),
    "encoder": "layers_share_weights only_last_layer",
}


def chapter_number(slug: str) -> int:
    """Return the number of the chapter called `slug`, such as 4 for ``"masks"``."""
    if slug not in CHAPTERS:
        raise ValueError(
            f"no chapter is called {slug!r}; there are {', '.join(CHAPTERS)}"
        )
    return CHAPTERS.index(slug)


def chapter_of(name: str) -> str:
    """Return the slug of the chapter of a law or a bug, by its name in the package."""
    from mha import laws, zoo  # they take a while, and exercises need none of them

    for table in (LAWS, BUGS):
        for chapter, names in table.items():
            if name in names.split():
                return chapter
    if name not in {each.name for each in (*laws.ALL, *zoo.WRONG, *zoo.ENCODERS)}:
        raise ValueError(f"no law and no bug is called {name!r}")
    return "laws"


def laws_until(slug: str) -> list[Any]:
    """Return the laws that the chapters up to this one earn, in their order.

    >>> [law.name for law in laws_until("softmax")][:2]
    ['rotation_changes_nothing', 'rows_sum_to_one']
    """
    from mha import laws

    chapters = CHAPTERS[: chapter_number(slug) + 1]
    names = " ".join(LAWS.get(chapter, "") for chapter in chapters).split()
    return [getattr(laws, name) for name in names]
