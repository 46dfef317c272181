"""The zoo: one mistake per member, and the laws that kill it."""

import copy
import inspect
import pickle
import re
import string

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import mha
import mha.nn
from mha import laws, zoo
from tests.laws.reports import killed_by
from tests.tolerances import TORCH, assert_close

# Who must kill whom. More may; the law that equals the reference kills most.
MUST_KILL = {
    "no_scale": "scores_keep_unit_variance equals_reference",
    "scale_sqrt_n": "scores_keep_unit_variance doubling_changes_nothing "
    "padding_changes_nothing equals_reference",
    "scale_sqrt_d_model": "scores_keep_unit_variance head_owns_its_columns "
    "equals_reference",
    "scale_by_d_k": "scores_keep_unit_variance equals_reference",
    "scale_after_softmax": "rows_sum_to_one output_in_hull constant_values_stay "
    "scores_keep_unit_variance equals_reference",
    "key_reshaped": "rotation_changes_nothing key_order_is_free "
    "shifting_keys_changes_nothing outputs_follow_tokens equals_reference",
    "softmax_over_queries": "rows_sum_to_one output_in_hull constant_values_stay "
    "doubling_changes_nothing padding_changes_nothing future_leaves_past_alone "
    "shifting_keys_changes_nothing equals_reference",
    "softmax_over_heads": "rows_sum_to_one constant_values_stay equals_reference",
    "no_max_subtraction": "rows_sum_to_one",
    "nan_on_empty_rows": "empty_rows_give_zero",
    "mask_ignored": "masked_weights_are_zero future_leaves_past_alone "
    "padding_changes_nothing self_only_mask empty_rows_give_zero equals_reference",
    "mask_inverted": "masked_weights_are_zero future_leaves_past_alone "
    "padding_changes_nothing self_only_mask empty_rows_give_zero equals_reference",
    "mask_after_softmax": "rows_sum_to_one constant_values_stay self_only_mask "
    "future_leaves_past_alone padding_changes_nothing equals_reference",
    "mask_zero_score": "masked_weights_are_zero future_leaves_past_alone "
    "padding_changes_nothing self_only_mask empty_rows_give_zero equals_reference",
    "minus_1e9_mask": "empty_rows_give_zero",
    "causal_without_diagonal": "future_leaves_past_alone equals_reference",
    "padding_hides_queries": "padding_changes_nothing equals_reference",
    "mask_in_wrong_order": "padding_changes_nothing equals_reference",
    "writes_into_its_input": "inputs_stay_untouched",
    "promotes_to_float64": "dtype_is_kept",
    "split_without_transpose": "outputs_follow_tokens self_only_mask "
    "future_leaves_past_alone head_owns_its_columns head_moves_its_own_slice "
    "equals_reference",
    "merge_without_transpose": "outputs_follow_tokens self_only_mask "
    "future_leaves_past_alone head_owns_its_columns head_moves_its_own_slice "
    "equals_reference",
    "both_without_transpose": "outputs_follow_tokens head_owns_its_columns "
    "head_moves_its_own_slice concat_is_a_sum equals_reference",
    "input_split_before_projection": "head_owns_its_columns head_moves_its_own_slice "
    "concat_is_a_sum parameters_ignore_heads equals_reference",
    "tied_query_key": "scores_are_not_symmetric parameters_ignore_heads "
    "equals_reference",
    "attends_across_batch": "outputs_follow_tokens equals_reference",
    "heads_averaged": "head_owns_its_columns head_moves_its_own_slice "
    "concat_is_a_sum equals_reference",
    "output_within_heads": "parameters_ignore_heads equals_reference",
    "no_output_projection": "concat_is_a_sum parameters_ignore_heads equals_reference",
    "softmax_over_axis_2": "batches_and_heads_stay_apart padding_changes_nothing "
    "equals_reference",
    "mask_of_first_sequence": "batch_masks_reach_their_own padding_changes_nothing "
    "equals_reference",
    "subtracts_one_maximum": "large_scores_stay_exact padding_changes_nothing",
    "groups_interleaved": "groups_share_their_keys head_owns_its_columns",
}
# Right in all that the other laws ask: these laws kill, and no other.
KILLED_BY_THESE_ALONE = {
    "causal_replaces_mask": "mask_and_causal_both_hide",
    "causal_from_neither_corner": "causal_corner",
    "gradient_stopped": "gradients_are_slopes",
    "returns_unmasked_weights": "returned_weights_make_the_output",
    "returns_scores": "returned_weights_make_the_output",
    "ignores_strides": "strides_change_nothing",
    "window_of_256": "silent_query_takes_the_mean every_length_alike",
    "window_of_4096": "silent_query_takes_the_mean",
    "drops_last_block": "silent_query_takes_the_mean every_length_alike",
    "drops_full_block": "every_length_alike",
    "float_mask_only_hides": "float_masks_are_added",
    "integer_mask_added": "integer_masks_hide",
    "dropout_in_evaluation": "calls_agree",
    "remembers_the_mask": "calls_do_not_remember",
    "clips_scores": "large_scores_stay_exact",
    "computes_in_float32": "every_dtype_gives_the_numbers",
    "rounds_float32_scores": "every_dtype_gives_the_numbers",
}
MUST_KILL |= KILLED_BY_THESE_ALONE
# The same for what stands around attention.
MUST_KILL_ENCODER = {
    "batch_norm": "batch_changes_nothing training_mode_changes_nothing "
    "tokens_meet_in_attention_only post_norm_normalises_rows",
    "norm_over_tokens": "tokens_meet_in_attention_only self_only_mask "
    "future_leaves_past_alone padding_changes_nothing",
    "norm_over_all": "tokens_meet_in_attention_only self_only_mask "
    "future_leaves_past_alone padding_changes_nothing",
    "unbiased_std": "silent_parts_pass_the_input_on post_norm_normalises_rows",
    "one_norm_for_both": "equals_reference",
    "one_add_and_norm": "silent_parts_pass_the_input_on post_norm_normalises_rows",
    "no_residual": "silent_parts_pass_the_input_on both_parts_write_on_one_stream",
    "residual_multiplied": "silent_parts_pass_the_input_on",
    "residual_from_the_input": "both_parts_write_on_one_stream",
    "residual_after_norm": "silent_parts_pass_the_input_on",
    "bend_at_the_end": "both_parts_write_on_one_stream",
    "mask_not_handed_on": "future_leaves_past_alone padding_changes_nothing "
    "self_only_mask empty_rows_give_zero",
    "layers_share_weights": "layers_follow_each_other",
    "only_last_layer": "layers_follow_each_other",
}
# The output is correct; only a second call, or the dtype, gives the mistake away.
RIGHT_NUMBERS = {
    "writes_into_its_input", "promotes_to_float64", "mask_of_first_sequence",
    "groups_interleaved", "subtracts_one_maximum", *KILLED_BY_THESE_ALONE,
} - {"dropout_in_evaluation"}  # fmt: skip
NEED_A_MASK = {
    "nan_on_empty_rows", "mask_ignored", "mask_inverted", "mask_after_softmax",
    "mask_zero_score", "minus_1e9_mask", "causal_without_diagonal",
    "padding_hides_queries", "mask_in_wrong_order",
}  # fmt: skip

WRONG_ENCODERS = zoo.ENCODERS[1:]
every_encoder = pytest.mark.parametrize("member", zoo.ENCODERS, ids=lambda m: m.name)
every_wrong_encoder = pytest.mark.parametrize(
    "member", WRONG_ENCODERS, ids=lambda m: m.name
)
every_member = pytest.mark.parametrize("member", zoo.ALL, ids=lambda m: m.name)
every_wrong_one = pytest.mark.parametrize("member", zoo.WRONG, ids=lambda m: m.name)


def draw_layer(rng, b=2, n=5, n_heads=3, d_head=2):
    d = n_heads * d_head
    X = rng.normal(size=(b, n, d))
    names = ("W_Q", "W_K", "W_V", "W_O")
    return X, {name: rng.normal(size=(d, d)) / 2 for name in names}


def draw_stack(rng, n_layers=2, d=6, d_ff=7):
    shapes = {f"W_{name}": (d, d) for name in "QKVO"} | {"W_1": (d, d_ff)}
    shapes |= {"W_2": (d_ff, d), "b_1": d_ff, "b_2": d, "b_V": d, "b_O": d}
    shapes |= {f"{name}_{i}": d for name in ("gain", "bias") for i in (1, 2)}
    return [
        {name: rng.normal(size=shape) for name, shape in shapes.items()}
        for _ in range(n_layers)
    ]


def tensors(weights):
    return {name: torch.tensor(W, requires_grad=True) for name, W in weights.items()}


# By hand


def test_without_a_scale_the_scores_two_and_zero_are_not_halved():
    """d_k = 4: the right scores are 1 and 0, the unscaled ones 2 and 0."""
    Q, K = np.array([[2.0, 0, 0, 0]]), np.array([[1.0, 0, 0, 0], [0, 0, 0, 0]])
    _, A = zoo.right.attention(Q, K, np.eye(2), return_weights=True)
    assert_close(A, np.array([[np.e, 1]]) / (np.e + 1))
    _, A = zoo.no_scale.attention(Q, K, np.eye(2), return_weights=True)
    assert_close(A, np.array([[np.e**2, 1]]) / (np.e**2 + 1))


def test_over_the_queries_each_column_is_shared_out():
    X = np.zeros((3, 2))
    _, A = zoo.softmax_over_queries.attention(X, X[:2], X[:2], return_weights=True)
    assert_close(A, np.full((3, 2), 1 / 3))


def test_minus_1e9_looks_at_everything_where_it_may_look_at_nothing():
    V, nothing = np.array([[2.0], [4.0]]), np.zeros((1, 2), bool)
    Q, K = np.ones((1, 2)), np.ones((2, 2))
    assert zoo.minus_1e9_mask.attention(Q, K, V, nothing).tolist() == [[3.0]]
    assert zoo.right.attention(Q, K, V, nothing).tolist() == [[0.0]]


def test_merging_without_a_transpose_gives_token_0_two_tokens_of_head_0():
    heads = np.array([[[1], [2]], [[3], [4]]])
    assert zoo.right.merge(heads).tolist() == [[1, 3], [2, 4]]
    assert zoo.merge_without_transpose.merge(heads).tolist() == [[1, 2], [3, 4]]


def test_splitting_without_a_transpose_gives_head_0_the_first_token_only():
    x = np.array([[1, 2], [3, 4]])
    assert zoo.right.split(x, 2).tolist() == [[[1], [3]], [[2], [4]]]
    assert zoo.split_without_transpose.split(x, 2).tolist() == [[[1], [2]], [[3], [4]]]


def test_masks_in_the_wrong_order_give_sample_0_the_mask_of_sample_1():
    """Two samples, two heads: folded, row 2 is (head 1, sample 0) and takes mask 1."""
    S, mask = np.zeros((2, 2, 1, 2)), np.array([[True, False], [True, True]])
    hidden = zoo.mask_in_wrong_order.hide(S, mask[:, None, None])
    assert np.isneginf(hidden[0, :, 0]).tolist() == [[False, True], [False, False]]


def test_a_mask_that_is_turned_round_in_place_is_wrong_at_the_second_call():
    X, mask = np.eye(3), mha.causal_mask(3)
    attend = zoo.writes_into_its_input.attention
    first, second = attend(X, X, X, mask), attend(X, X, X, mask)
    assert_close(first, mha.scaled_dot_product_attention(X, X, X, is_causal=True))
    future = ~mha.causal_mask(3)
    assert_close(second, mha.scaled_dot_product_attention(X, X, X, future))


def test_both_without_a_transpose_undo_each_other_and_keep_the_tokens_apart():
    """Two tokens, two heads: head 0 gets token 0 alone, and gives it back."""
    x = np.array([[1, 2], [3, 4]])
    heads = zoo.both_without_transpose.split(x, 2)
    assert heads.tolist() == [[[1], [2]], [[3], [4]]]
    assert zoo.both_without_transpose.merge(heads).tolist() == x.tolist()


def test_a_float_mask_is_added_to_the_scaled_scores():
    """d_k = 4 halves the scores, and ln 3 is added behind that: 3/4 and 1/4."""
    Q, K, V = np.zeros((1, 4)), np.zeros((2, 4)), np.eye(2)
    mask = np.array([[np.log(3), 0.0]])
    assert_close(zoo.right.attention(Q, K, V, mask), [[0.75, 0.25]])
    assert_close(zoo.float_mask_only_hides.attention(Q, K, V, mask), [[0.5, 0.5]])


def test_zero_and_one_that_are_added_hide_nothing():
    Q, K, V, mask = np.zeros((1, 2)), np.zeros((2, 2)), np.eye(2), np.array([[1, 0]])
    assert zoo.right.attention(Q, K, V, mask).tolist() == [[1, 0]]
    Y = zoo.integer_mask_added.attention(Q, K, V, mask)
    assert_close(Y, np.array([[np.e, 1]]) / (np.e + 1))


def test_four_heads_share_two_key_heads_side_by_side_or_in_turn():
    assert zoo.right.groups(4, 2) == [0, 0, 1, 1]
    assert zoo.groups_interleaved.groups(4, 2) == [0, 1, 0, 1]
    Q, K = np.zeros((4, 1, 1)), np.zeros((2, 1, 1))
    V = np.array([[[1.0]], [[2.0]]])
    assert zoo.right.attention(Q, K, V).ravel().tolist() == [1, 1, 2, 2]
    assert zoo.groups_interleaved.attention(Q, K, V).ravel().tolist() == [1, 2, 1, 2]


def test_a_block_of_64_keys_is_lost_where_it_is_full_or_where_it_is_not():
    def mean_of(member, n):
        Y = member.attention(np.zeros((1, 1)), np.zeros((n, 1)), np.arange(n)[:, None])
        return Y.item()

    assert mean_of(zoo.drops_full_block, 128) == mean_of(zoo.right, 64)
    assert mean_of(zoo.drops_full_block, 130) == mean_of(zoo.right, 130)
    assert mean_of(zoo.drops_last_block, 130) == mean_of(zoo.right, 128)
    assert mean_of(zoo.drops_last_block, 128) == mean_of(zoo.right, 128)
    assert mean_of(zoo.drops_last_block, 7) == mean_of(zoo.right, 7)


def test_a_mask_that_is_kept_hides_in_the_next_call_too():
    Q, V, mask = np.zeros((1, 2)), np.eye(2), np.array([[True, False]])
    ask = zoo.remembers_the_mask.attention
    assert ask(Q, V, V).tolist() == [[0.5, 0.5]]
    assert ask(Q, V, V, mask).tolist() == [[1, 0]]
    assert ask(Q, V, V).tolist() == [[1, 0]]


def test_without_a_residual_a_silent_layer_forgets_its_token():
    (weights,) = draw_stack(np.random.default_rng(0), n_layers=1)
    silent = {name: 0 * W for name, W in weights.items()}
    X = np.arange(12.0).reshape(2, 6)
    assert not zoo.no_residual.layer(X, silent, 2, norm_first=True).any()
    assert_close(zoo.right_encoder.layer(X, silent, 2, norm_first=True), X)


def test_batch_norm_of_one_token_leaves_nothing_of_it():
    norm = {"gain": None, "bias": None, "eps": 0.5, "training": True}
    x = np.array([[3.0, 5.0]])
    assert not zoo.batch_norm.norm(x, **norm).any()
    assert zoo.batch_norm.norm(x, **(norm | {"training": False})).tolist() == [[3, 5]]


def test_the_unbiased_std_of_two_numbers_is_larger_by_the_root_of_two():
    x, norm = np.array([[1.0, 3.0]]), {"gain": None, "bias": None, "training": True}
    assert_close(zoo.unbiased_std.norm(x, eps=0, **norm), [[-(0.5**0.5), 0.5**0.5]])
    assert_close(zoo.right_encoder.norm(x, eps=0, **norm), [[-1.0, 1.0]])


def test_the_last_layer_alone_is_what_only_last_layer_runs(rng):
    first, second = draw_stack(rng)
    X = rng.normal(size=(5, 6))
    alone = mha.encoder(X, [second], 3)
    assert_close(zoo.only_last_layer(X, [first, second], 3), alone)


def test_the_matrix_reads_as_a_table_with_a_legend():
    lines = repr(laws.kill_matrix()).splitlines()
    letters = list(string.ascii_letters[: len(laws.ALL)])
    assert list(lines[0].strip()) == letters
    assert lines[1].split() == ["right", "·" * len(laws.ALL)]
    legend = [f"{a} {law.slug}" for a, law in zip(letters, laws.ALL, strict=True)]
    assert lines[-len(legend) :] == legend
    assert max(map(len, lines)) <= 80


# Laws


@every_wrong_one
def test_the_named_laws_kill_the_member(member):
    assert set(MUST_KILL[member.name].split()) <= set(killed_by(member))


@pytest.mark.parametrize("name", KILLED_BY_THESE_ALONE)
def test_what_only_a_call_shows_is_killed_by_the_laws_made_for_it_alone(name):
    assert set(killed_by(getattr(zoo, name))) == set(
        KILLED_BY_THESE_ALONE[name].split()
    )


def test_a_small_matrix_has_room_between_its_columns():
    laws_of_two = [laws.rows_sum_to_one, laws.output_in_hull]
    matrix = laws.kill_matrix(laws_of_two, [zoo.right, zoo.scale_after_softmax])
    assert repr(matrix).splitlines()[:3] == [
        "                     a b",
        "right                · ·",
        "scale_after_softmax  ✗ ✗",
    ]


def test_every_member_has_its_killers_named_here():
    assert set(MUST_KILL) == {member.name for member in zoo.WRONG}


@every_wrong_encoder
def test_the_named_laws_kill_the_encoder(member):
    assert set(MUST_KILL_ENCODER[member.name].split()) <= set(killed_by(member))


def test_every_encoder_has_its_killers_named_here():
    assert set(MUST_KILL_ENCODER) == {member.name for member in WRONG_ENCODERS}


def test_no_law_kills_the_right_one():
    assert killed_by(zoo.right) == ()
    assert killed_by(zoo.right_encoder) == ()
    assert zoo.ENCODERS[0] is zoo.right_encoder
    assert zoo.ALL == (zoo.right, *zoo.WRONG)


def test_the_kill_matrix_has_no_empty_row_and_no_empty_column():
    matrix = laws.kill_matrix()
    assert matrix.killed[1:].any(1).all()
    assert matrix.killed.any(0).all()
    assert matrix.rows[1:] == tuple(member.name for member in zoo.WRONG)
    assert matrix.columns == tuple(law.slug for law in laws.ALL)


def test_the_kill_matrix_of_encoders_has_no_empty_row_and_no_empty_column():
    matrix = laws.kill_matrix(members=zoo.ENCODERS)
    assert matrix.killed[1:].any(1).all()
    assert matrix.killed.any(0).all()
    assert not matrix.killed[0].any()
    assert matrix.columns == tuple(law.slug for law in laws.WHOLE)


def test_some_encoders_are_caught_by_one_law_alone_and_some_laws_catch_one_encoder():
    matrix = laws.kill_matrix(members=zoo.ENCODERS)
    assert matrix.kills("batch_changes_nothing") == ("batch_norm",)
    assert matrix.kills("training_mode_changes_nothing") == ("batch_norm",)
    assert matrix.kills("layers_follow_each_other") == (
        "layers_share_weights",
        "only_last_layer",
    )
    assert killed_by(zoo.one_norm_for_both) == ("equals_reference",)


def test_rows_and_columns_of_the_kill_matrix_say_the_same():
    matrix = laws.kill_matrix()
    for law in matrix.columns:
        for name in matrix.rows:
            assert (name in matrix.kills(law)) == (law in matrix.killed_by(name))


def test_no_single_law_is_enough_not_even_the_oracle():
    """The comparison with the reference kills most, and these survive it."""
    best = max(laws.ALL, key=lambda law: len(laws.kill_matrix().kills(law.slug)))
    assert best is laws.equals_reference
    survivors = {m.name for m in zoo.WRONG} - set(laws.kill_matrix().kills(best.slug))
    assert survivors == {
        "no_max_subtraction", "nan_on_empty_rows", "minus_1e9_mask",
        "writes_into_its_input", "promotes_to_float64", "subtracts_one_maximum",
        *KILLED_BY_THESE_ALONE,
    }  # fmt: skip


@every_wrong_one
def test_a_member_overrides_one_step_and_shows_it(member):
    own = [name for name in vars(type(member)) if inspect.isfunction(
        vars(type(member))[name])]  # fmt: skip
    # Two reshapes that belong together make one mistake.
    assert len(own) == (2 if member is zoo.both_without_transpose else 1)
    assert own[0] in vars(zoo.Member)
    assert member.source.startswith(f"def {own[0]}(")


@every_wrong_encoder
def test_an_encoder_overrides_one_step_and_shows_it(member):
    own = [name for name, x in vars(type(member)).items() if inspect.isfunction(x)]
    assert len(own) == 1
    assert own[0] in vars(zoo.EncoderMember)
    assert member.source.startswith(f"def {own[0]}(")


def test_the_right_one_shows_every_step():
    assert "def merge(self, heads" in zoo.right.source
    assert "def pass_through(" in zoo.right_encoder.source


@every_wrong_one
def test_a_law_of_its_own_chapter_kills_the_member(member):
    chapters = {law.slug: law.chapter for law in laws.ALL}
    assert member.chapter in {chapters[slug] for slug in killed_by(member)}


def test_the_mistakes_of_encoders_belong_to_the_chapters_on_encoders():
    chapters = {member.chapter for member in WRONG_ENCODERS}
    assert chapters == {"encoder_layer", "encoder"}


@pytest.mark.parametrize(
    "member", (*zoo.WRONG, *WRONG_ENCODERS), ids=lambda member: member.name
)
def test_a_member_says_what_is_wrong_and_where_it_was_seen(member):
    assert getattr(zoo, member.name) is member
    assert re.fullmatch(r"[A-Z].*[^ ]\.", member.wrong)
    assert member.seen
    kinds = r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+"
    assert not member.link or re.fullmatch(kinds, member.link)
    assert bool(member.link) or "no public" in member.seen


@pytest.mark.parametrize(
    "member", (*zoo.ALL, *zoo.ENCODERS), ids=lambda member: member.name
)
def test_there_is_one_of_each(member):
    assert copy.deepcopy(member) is member
    assert pickle.loads(pickle.dumps(member)) is member


@given(st.integers(0, 2**32 - 1))
def test_the_right_one_is_multi_head_attention(seed):
    X, weights = draw_layer(np.random.default_rng(seed))
    expected, A = mha.multi_head_attention(X, n_heads=3, **weights, return_weights=True)
    Y, B = zoo.right(X, n_heads=3, **weights, return_weights=True)
    assert_close(Y, expected)
    assert_close(B, A)


@every_wrong_one
def test_a_wrong_one_gives_other_numbers_unless_it_needs_a_mask_for_it(member, rng):
    X, weights = draw_layer(rng)
    difference = zoo.right(X, n_heads=3, **weights) - member(X, n_heads=3, **weights)
    harmless = {*NEED_A_MASK, *RIGHT_NUMBERS, "no_max_subtraction"}
    assert (np.abs(difference).max() > 1e-3) == (member.name not in harmless)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from(["relu", "gelu"]))
def test_the_right_encoder_is_the_encoder(seed, norm_first, activation):
    rng = np.random.default_rng(seed)
    X, layers = rng.normal(size=(2, 5, 6)), draw_stack(rng)
    options = {"norm_first": norm_first, "activation": activation}
    options |= {"mask": mha.padding_mask([5, 2]), "is_causal": True}
    options |= {"final_norm": (layers[0]["gain_1"], None)}
    expected = mha.encoder(X, layers, 3, **options)
    assert_close(zoo.right_encoder(X, layers, 3, **options), expected)


@every_wrong_encoder
def test_a_wrong_encoder_gives_other_numbers(member, rng):
    X, layers = rng.normal(size=(2, 5, 6)), draw_stack(rng)
    options = {"mask": mha.causal_mask(5), "norm_first": True}
    Y, right = (m(X, layers, 3, **options) for m in (member, zoo.right_encoder))
    assert np.abs(Y - right).max() > 1e-3


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("kind", ["none", "bool", "float"])
def test_the_right_one_reads_masks_as_the_package_does(kind, is_causal, rng):
    X, weights = draw_layer(rng)
    shown = mha.padding_mask([5, 2])
    masks = {"none": None, "bool": shown, "float": np.where(shown, 0.5, -np.inf)}
    options = {"mask": masks[kind], "is_causal": is_causal, "n_heads": 3}
    expected = mha.multi_head_attention(X, **weights, **options)
    assert_close(zoo.right(X, **weights, **options), expected)


def test_biases_other_tokens_and_another_scale_are_taken(rng):
    X, weights = draw_layer(rng)
    weights |= {f"b_{letter}": rng.normal(size=6) for letter in "QKVO"}
    options = {"n_heads": 3, "X_k": X[:, :3], "X_v": X[:, 1:4]}
    expected = mha.multi_head_attention(X, **weights, **options)
    assert_close(zoo.right(X, **weights, **options), expected)
    expected = mha.scaled_dot_product_attention(X, X, X, scale=0.3)
    assert_close(zoo.right.attention(X, X, X, scale=0.3), expected)


# Agreement


@pytest.mark.parametrize(
    "member",
    [member for member in zoo.ALL if member is not zoo.dropout_in_evaluation],
    ids=lambda m: m.name,
)
@pytest.mark.parametrize("is_causal", [False, True])
def test_arrays_and_tensors_give_the_same_numbers(member, is_causal, rng):
    X, weights = draw_layer(rng)
    options = {"n_heads": 3, "is_causal": is_causal}
    if member is zoo.attends_across_batch and is_causal:
        X = X[:1].repeat(5, 0)
    Y = member(X, **weights, **options)
    on_tensors = member(torch.tensor(X), **tensors(weights), **options)
    assert on_tensors.dtype == torch.float64
    atol = 1e-6 if member is zoo.computes_in_float32 else TORCH
    assert_close(on_tensors.detach().numpy(), Y, atol=atol)


@every_encoder
@pytest.mark.parametrize("norm_first", [False, True])
def test_encoders_give_the_same_numbers_for_arrays_and_tensors(member, norm_first, rng):
    X, layers = rng.normal(size=(2, 5, 6)), draw_stack(rng)
    options = {"norm_first": norm_first, "activation": "gelu", "is_causal": True}
    Y = member(X, layers, 3, **options)
    on_tensors = member(torch.tensor(X), list(map(tensors, layers)), 3, **options)
    assert_close(on_tensors.detach().numpy(), Y, atol=TORCH)


@every_encoder
def test_gradients_reach_the_first_matrices_of_an_encoder(member, rng):
    layers = list(map(tensors, draw_stack(rng)))
    X = torch.tensor(rng.normal(size=(2, 5, 6)), requires_grad=True)
    member(X, layers, 3).square().sum().backward()
    assert X.grad.isfinite().all()
    reached = [weights["W_V"].grad is not None for weights in layers]
    assert reached == {
        "only_last_layer": [False, True],
        "layers_share_weights": [True, False],
    }.get(member.name, [True, True])


@every_member
def test_gradients_reach_every_matrix_the_member_uses(member, rng):
    X, weights = draw_layer(rng)
    weights = tensors(weights)
    member(torch.tensor(X), n_heads=3, **weights).square().sum().backward()
    unused = {"tied_query_key": {"W_K"}, "no_output_projection": {"W_O"}}
    unused["gradient_stopped"] = {"W_Q", "W_K"}
    for name, W in weights.items():
        reached = W.grad is not None and W.grad.abs().max() > 0
        assert reached == (name not in unused.get(member.name, set())), name
        assert W.grad is None or W.grad.isfinite().all()


def test_the_right_one_has_finite_gradients_where_a_token_sees_nothing(rng):
    X, weights = draw_layer(rng)
    weights = tensors(weights)
    mask = torch.tensor(mha.padding_mask([5, 0]))
    Y = zoo.right(torch.tensor(X), n_heads=3, mask=mask, **weights)
    Y.sum().backward()
    assert (Y[1] == 0).all()
    assert all(W.grad.isfinite().all() for W in weights.values())


def test_a_member_trains_inside_a_module():
    """Ten steps of plain descent on a copy task bring the loss down."""

    class Layer(torch.nn.Module):
        def __init__(self, member):
            super().__init__()
            self.member = member
            W = torch.randn(4, 6, 6, generator=torch.Generator().manual_seed(0)) / 3
            self.W = torch.nn.Parameter(W)

        def forward(self, X):
            return self.member(X, *self.W, n_heads=3)

    X = torch.randn(7, 5, 6, generator=torch.Generator().manual_seed(1))
    for member in (zoo.right, zoo.merge_without_transpose):
        layer, losses = Layer(member), []
        optimiser = torch.optim.SGD(layer.parameters(), lr=0.2)
        for _ in range(10):
            loss = (layer(X) - X).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert losses[-1] < 0.97 * losses[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@every_member
def test_a_member_keeps_the_dtype_of_tensors(member, dtype):
    X = torch.eye(4, dtype=dtype)[None]
    eye = torch.eye(4, dtype=dtype)
    assert member(X, eye, eye, eye, eye, n_heads=2, is_causal=True).dtype == dtype


# Refusals


def test_an_unknown_member_or_law_is_refused_by_the_matrix():
    with pytest.raises(ValueError, match="no member is called 'dodo'"):
        laws.kill_matrix().killed_by("dodo")
    with pytest.raises(ValueError, match="no law is called 'dodo'"):
        laws.kill_matrix().kills("dodo")
