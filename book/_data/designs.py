"""The laws that each design of chapter 17 breaks on purpose: {design: slugs of laws}.

The chapter asks every law of every design and fails if this table is wrong. The law
cards of the other chapters read it, to link what is an exception to their law.
"""

# How a sentence calls them.
NAMES = {
    "grouped-query": "grouped-query attention",
    "rotary": "rotary positions",
    "QK-norm": "QK-norm",
    "window": "sliding windows",
    "ALiBi": "ALiBi",
    "soft cap": "soft-capping",
    "sink": "softmax-off-by-one",
}
BREAKS = {
    "grouped-query": "",
    "rotary": (
        "rotation_changes_nothing doubling_changes_nothing outputs_follow_tokens "
        "key_order_is_free shifting_keys_changes_nothing equals_reference "
        "every_length_alike large_scores_stay_exact rising_scores"
    ),
    "QK-norm": "shifting_keys_changes_nothing equals_reference large_scores_stay_exact",
    "window": (
        "doubling_changes_nothing outputs_follow_tokens key_order_is_free "
        "equals_reference silent_query_takes_the_mean every_length_alike "
        "rising_scores running_means"
    ),
    "ALiBi": (
        "scores_keep_unit_variance doubling_changes_nothing outputs_follow_tokens "
        "key_order_is_free head_owns_its_columns equals_reference "
        "silent_query_takes_the_mean every_length_alike rising_scores running_means"
    ),
    "soft cap": (
        "shifting_keys_changes_nothing equals_reference large_scores_stay_exact"
    ),
    "sink": (
        "rows_sum_to_one output_in_hull constant_values_stay "
        "doubling_changes_nothing shifting_keys_changes_nothing equals_reference "
        "silent_query_takes_the_mean every_length_alike large_scores_stay_exact "
        "running_means"
    ),
}
BREAKS = {name: laws.split() for name, laws in BREAKS.items()}

# Broken too, but `laws.check` asks these without shared heads.
UNSEEN = {"grouped-query": ["parameters_ignore_heads"]}


def exceptions(law: str) -> list[str]:
    """Return the designs that break a law, as a sentence calls them.

    Examples
    --------
    >>> exceptions("rows_sum_to_one")
    ['softmax-off-by-one']
    """
    return [
        NAMES[name]
        for name, slugs in BREAKS.items()
        if law in [*slugs, *UNSEEN.get(name, [])]
    ]
