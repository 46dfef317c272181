"""The laws of a call: each catches a slip that no other law is asked about."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import mha
import mha.nn
from mha import laws, zoo
from mha.laws.subjects import as_subject
from mha.laws.subjects.conventions import Conventions
from tests.laws.reports import broken

right = mha.scaled_dot_product_attention


def found_in(function, **said):
    return broken(laws.check(as_subject(function, Conventions(**said))))


def softmax_over_dim_1(Q, K, V):
    """Right for (n, n), and for nothing with a batch in front."""
    return (Q @ K.mT / K.shape[-1] ** 0.5).softmax(1) @ V


def mask_of_the_first(Q, K, V, mask=None):
    mask = mask[:1] if mask is not None and mask.ndim == 4 else mask
    return right(Q, K, V, mask)


def one_or_the_other(Q, K, V, mask=None, is_causal=False):
    return right(Q, K, V, None if is_causal else mask, is_causal=is_causal)


def causal_from_the_middle(Q, K, V, is_causal=False):
    n_q, n_k = Q.shape[-2], K.shape[-2]
    return right(Q, K, V, np.tri(n_q, n_k, n_k // n_q - 1) > 0 if is_causal else None)


def straight_through(Q, K, V):
    """The output is right, and the slopes are those of scores without a scale."""
    S = Q @ K.mT
    scaled = S / K.shape[-1] ** 0.5
    return (scaled.detach() + S - S.detach()).softmax(-1) @ V


def weights_before_dropout(Q, K, V, return_weights=False):
    Y, A = right(Q, K, V, return_weights=True)
    return (Y, A.round(1)) if return_weights else Y


def other_output_with_weights(Q, K, V, return_weights=False):
    Y, A = right(Q, K, V, return_weights=True)
    return (A.round(2) @ V, A.round(2)) if return_weights else Y


def reads_memory(Q, K, V):
    Q, K, V = (np.ravel(x, "K").reshape(x.shape) for x in (Q, K, V))
    return right(Q, K, V)


def sees_4096(Q, K, V):
    return right(Q, K[-4096:], V[-4096:])


def blocks_of_128(Q, K, V):
    """An even number of blocks is assumed."""
    n = len(K) if len(K) < 128 else len(K) // 64 * 64
    return right(Q, K[:n], V[:n])


def bias_as_bool(Q, K, V, mask=None):
    is_float = mask is not None and mask.dtype.kind == "f"
    return right(Q, K, V, ~np.isneginf(mask) if is_float else mask)


def integers_added(Q, K, V, mask=None):
    is_integer = mask is not None and mask.dtype.kind == "i"
    return right(Q, K, V, mask * 1.0 if is_integer else mask)


def noisy(Q, K, V):
    return right(Q, K, V) + np.random.default_rng().normal(size=(len(Q), 1)) / 9


class Cache:
    """Keys of the call before stay where a shorter call does not write over them."""

    def __init__(self):
        self.keys = self.values = np.zeros((0, 0))

    def __call__(self, Q, K, V):
        before, self.keys, self.values = (self.keys, self.values), K, V
        if before[0].shape[1:] == K.shape[1:] and len(before[0]) == 11 > len(K):
            K, V = (
                np.concatenate([x, old[len(x) :]])
                for x, old in zip((K, V), before, strict=True)
            )
        return right(Q, K, V)


class Buffer:
    """The output is written where the one of the call before stood."""

    def __init__(self):
        self.kept = {}

    def __call__(self, Q, K, V):
        Y = right(Q, K, V)
        kept = self.kept.setdefault((Y.shape, len(K), Y.dtype), Y)
        kept[...] = Y
        return kept


def clipped(Q, K, V):
    S = np.clip(Q @ K.T / math.sqrt(K.shape[1]), -90, 90)
    E = np.exp(S - S.max(1, keepdims=True))
    return E / E.sum(1, keepdims=True) @ V


def always_in_float32(Q, K, V):
    return F.scaled_dot_product_attention(Q.float(), K.float(), V.float()).to(Q.dtype)


def keys_in_turn(Q, K, V):
    times = Q.shape[1] // K.shape[1]
    return F.scaled_dot_product_attention(
        Q, *(x.repeat(1, times, 1, 1) for x in (K, V))
    )


# By hand


def test_the_example_of_a_silent_query_says_how_many_keys_there_were():
    finding = laws.silent_query_takes_the_mean.check(sees_4096)
    assert finding.example["n_k"] == 4099
    assert "4099 keys" in finding.why


def test_what_is_expected_of_two_masks_is_correct_attention():
    """The mask shows key 1 alone to query 1, which then gets all of V[1]."""
    law, mask = laws.mask_and_causal_both_hide, np.array([[True, True], [False, True]])
    Q = K = np.zeros((2, 1))
    case = {"Q": Q, "K": K, "V": np.array([[8.0], [4.0]]), "mask": mask}
    failure = law.ask(as_subject(one_or_the_other), case)
    assert failure.expected.tolist() == [[8], [4]]
    assert failure.got.tolist() == [[8], [6]]


def test_what_is_expected_of_large_scores_is_three_quarters_and_one_quarter():
    finding = laws.large_scores_stay_exact.check(clipped)
    assert finding.expected.tolist() == [[0.75, 0.25]] * 2
    assert finding.got.tolist() == [[0.5, 0.5]] * 2


def test_what_is_expected_where_something_is_hidden_is_the_correct_weight():
    """The mask is wrong, and what is shown beside it is correct attention."""

    def inverted(Q, K, V, mask=None):
        return right(Q, K, V, None if mask is None else ~mask)

    finding = laws.masked_weights_are_zero.check(inverted)
    Q, K, mask = (finding.example[name] for name in ("Q", "K", "mask"))
    correct = right(Q, K, np.eye(len(K)), mask)
    assert np.allclose(finding.expected, correct)


# Laws


@pytest.mark.parametrize(
    ("function", "law"),
    [
        (softmax_over_dim_1, "batches_and_heads_stay_apart"),
        (mask_of_the_first, "batch_masks_reach_their_own"),
        (one_or_the_other, "mask_and_causal_both_hide"),
        (causal_from_the_middle, "causal_corner"),
        (straight_through, "gradients_are_slopes"),
        (weights_before_dropout, "returned_weights_make_the_output"),
        (other_output_with_weights, "returned_weights_make_the_output"),
        (reads_memory, "strides_change_nothing"),
        (sees_4096, "silent_query_takes_the_mean"),
        (blocks_of_128, "every_length_alike silent_query_takes_the_mean"),
        (bias_as_bool, "float_masks_are_added"),
        (integers_added, "integer_masks_hide"),
        (Cache(), "calls_do_not_remember"),
        (Buffer(), "calls_do_not_remember"),
        (clipped, "large_scores_stay_exact"),
        (always_in_float32, "every_dtype_gives_the_numbers"),
    ],
)  # fmt: skip
def test_a_slip_is_found_by_the_law_made_for_it_and_by_no_other(function, law):
    assert set(found_in(function)) == set(law.split())


def test_what_differs_from_call_to_call_is_found():
    assert "calls_agree" in found_in(noisy)


def test_groups_in_turn_are_found_where_shared_keys_were_said():
    assert found_in(keys_in_turn, n_kv_heads=2) == ["groups_share_their_keys"]
    assert found_in(keys_in_turn, n_kv_heads=1) == []


@pytest.mark.parametrize("corner", ["top-left", "bottom-right"])
@pytest.mark.parametrize("said", ["top-left", "bottom-right", None])
def test_either_corner_will_do_unless_one_was_said(said, corner):
    def causal(Q, K, V, mask=None, is_causal=False):
        n_q, n_k = Q.shape[-2], K.shape[-2]
        past = np.tri(n_q, n_k, n_k - n_q if corner == "bottom-right" else 0) > 0
        if is_causal:
            mask = past if mask is None else mask & past
        return right(Q, K, V, mask)

    found = laws.causal_corner.check(as_subject(causal, Conventions(causal=said)))
    assert found.holds is (said in (None, corner))


@pytest.mark.parametrize("member", [zoo.attends_across_batch, zoo.softmax_over_axis_2])
def test_a_function_that_mixes_a_batch_is_found_without_its_layer(member):
    assert "batches_and_heads_stay_apart" in found_in(member.attention)


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rotary_positions_do_not_commute_with_a_turn_of_all_columns(halves, seed):
    def turned(x):
        n, d = x.shape[-2:]
        angles = np.arange(n)[:, None] / 100 ** (np.arange(d // 2) / d)
        first, second = (
            (slice(d // 2), slice(d // 2, d)) if halves
            else (slice(0, d, 2), slice(1, d, 2))
        )  # fmt: skip
        a, b, y = x[..., first], x[..., second], np.empty_like(x)
        y[..., first] = a * np.cos(angles) - b * np.sin(angles)
        y[..., second] = a * np.sin(angles) + b * np.cos(angles)
        return y

    def rotary(Q, K, V):
        return right(turned(Q), turned(K), V)

    assert laws.rotation_changes_nothing.check(rotary, seed=seed).holds is False


@pytest.mark.parametrize(
    "law",
    [law for law in laws.ALL if law.orderless],
    ids=lambda law: law.slug,
)
def test_laws_about_order_are_not_asked_where_positions_were_said(law):
    subject = as_subject(right, Conventions(positional=True))
    finding = law.check(subject)
    assert finding.holds is None
    assert "positional=True" in finding.why


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_dtype_has_its_own_tolerance(dtype):
    subject = as_subject(F.scaled_dot_product_attention, Conventions(dtype=dtype))
    finding = laws.every_dtype_gives_the_numbers.check(subject)
    assert finding.holds


def test_a_member_that_remembers_is_right_in_every_single_call():
    X = np.random.default_rng(0).normal(size=(3, 4))
    fresh = zoo.with_steps(right, **zoo.remembers_the_mask.steps)
    assert np.allclose(fresh(X, X, X), right(X, X, X))


def test_scores_of_700_and_slopes_are_not_asked_of_sixteen_bits():
    subject = as_subject(F.scaled_dot_product_attention, Conventions(dtype="bfloat16"))
    for law in (laws.large_scores_stay_exact, laws.gradients_are_slopes):
        assert "too coarse" in law.check(subject).why


def test_gradients_of_a_module_are_held_against_slopes():
    class Stops(mha.nn.MultiHeadAttention):
        def forward(self, query, key=None, value=None, mask=None):
            return super().forward(query.detach(), key, value, mask)

    finding = laws.gradients_are_slopes.check(Stops(4, 2))
    assert finding.holds is False
    assert finding.why.startswith("gradient of Q")


def test_a_slow_layer_is_not_asked_about_4099_queries():
    def slow(X, weights, n_heads):
        Q, K, V = (X @ weights[name] for name in ("W_Q", "W_K", "W_V"))
        Y = [right(Q[i : i + 1], K[: i + 1], V[: i + 1])[0] for i in range(len(X))]
        return np.stack(Y) @ weights["W_O"]

    adapter = laws.Adapter(slow, causal="built in")
    assert laws.silent_query_takes_the_mean.check(adapter).holds


def test_a_window_of_4096_is_found_in_a_layer_of_self_attention():
    def windowed(X, weights, n_heads):
        Q, K, V = (torch.from_numpy(X @ weights[f"W_{x}"]) for x in "QKV")
        past = torch.ones(len(X), len(X), dtype=torch.bool).tril().triu(-4095)
        Y = F.scaled_dot_product_attention(Q[None], K[None], V[None], past)[0]
        return Y.numpy() @ weights["W_O"]

    adapter = laws.Adapter(windowed, causal="built in")
    finding = laws.silent_query_takes_the_mean.check(adapter)
    assert finding.holds is False
    assert finding.example["n_k"] == 4099
