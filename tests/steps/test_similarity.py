"""Step 1: dot products and cosines of every query with every key."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mha import cosine_similarity, dot_product_scores
from tests.samples import LEADING, draw_qkv, nothing_modified
from tests.tolerances import FLOAT16, FLOAT32, TORCH, assert_close

BOTH = pytest.mark.parametrize("function", [dot_product_scores, cosine_similarity])

# Quarters, not any floats: turning a vector of length 1e-310 loses its direction.
quarters = st.integers(-40, 40).map(lambda n: n / 4)
rows = arrays(np.float64, (3, 2), elements=quarters)


# By hand


def test_a_score_is_the_sum_of_products():
    """[2, 3] · [5, 7] = 10 + 21 = 31 and [2, 3] · [-1, 1] = -2 + 3 = 1."""
    assert_close(dot_product_scores([[2, 3]], [[5, 7], [-1, 1]]), [[31, 1]])


def test_queries_are_rows_and_keys_are_columns():
    """Queries e₁, e₂ read off the first and the second entry of each of three keys."""
    K = [[1, 2], [3, 4], [5, 6]]
    assert_close(dot_product_scores(np.eye(2), K), [[1, 3, 5], [2, 4, 6]])


def test_the_angle_of_the_3_4_5_triangle_has_cosine_three_fifths():
    """[1, 0] · [3, 4] = 3, and the lengths are 1 and 5."""
    assert_close(cosine_similarity([[1, 0]], [[3, 4]]), [[0.6]])


def test_cosines_of_same_right_and_opposite_directions_are_1_0_and_minus_1():
    K = [[7, 0], [0, 0.5], [-2, 0]]
    assert cosine_similarity([[3, 0]], K).tolist() == [[1, 0, -1]]


def test_a_vector_of_length_zero_is_at_right_angles_to_all():
    """It points nowhere, so its cosine is 0 by decree, and not 0/0."""
    zero, other = [[0.0, 0.0]], [[3.0, 4.0]]
    assert cosine_similarity(zero, other).tolist() == [[0]]
    assert cosine_similarity(other, zero).tolist() == [[0]]
    assert cosine_similarity(zero, zero).tolist() == [[0]]


# Laws


@given(rows, rows)
def test_exchanging_queries_and_keys_transposes_the_scores(Q, K):
    assert_close(dot_product_scores(K, Q), dot_product_scores(Q, K).T)


@given(rows, rows, rows)
def test_scores_add_up_when_keys_are_added(Q, K, L):
    together = dot_product_scores(Q, K + L)
    assert_close(together, dot_product_scores(Q, K) + dot_product_scores(Q, L))


@BOTH
@given(Q=rows, K=rows, angle=st.floats(0, 7))
def test_turning_queries_and_keys_together_changes_nothing(function, Q, K, angle):
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    assert_close(function(Q @ turn, K @ turn), function(Q, K), 1e-9)


@given(rows, rows)
def test_a_score_is_both_lengths_times_the_cosine(Q, K):
    lengths = np.linalg.norm(Q, axis=1)[:, None] * np.linalg.norm(K, axis=1)
    assert_close(lengths * cosine_similarity(Q, K), dot_product_scores(Q, K))


@given(
    arrays(
        np.float64, (4, 3), elements=st.floats(allow_nan=False, allow_infinity=False)
    )
)
def test_a_cosine_never_leaves_minus_one_to_one(X):
    C = cosine_similarity(X, X)
    assert np.abs(C).max() <= 1


@given(rows, st.floats(1e-3, 1e3))
def test_length_does_not_change_a_cosine(X, factor):
    assert_close(cosine_similarity(factor * X, X), cosine_similarity(X, X))


@pytest.mark.parametrize("size", [1e-300, 1e300], ids=["tiny", "huge"])
def test_squares_that_leave_the_range_of_floats_do_not_matter(size):
    """(10³⁰⁰)² overflows and (10⁻³⁰⁰)² is 0; the 3-4-5 angle does not care."""
    assert_close(cosine_similarity([[size, 0]], [[3 * size, 4 * size]]), [[0.6]])


def test_the_cosine_of_a_vector_with_itself_is_never_above_one(rng):
    """Unclipped, about one row in three comes out at 1.0000000000000002."""
    for x in rng.normal(size=(50, 1, 11)):
        assert cosine_similarity(x, x) <= 1


@BOTH
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_the_dtype_is_kept(rng, function, dtype):
    Q, K, _ = draw_qkv(rng, dtype=dtype)
    assert function(Q, K).dtype == np.dtype(dtype)


@BOTH
def test_two_dtypes_give_the_wider_one(rng, function):
    Q, K, _ = draw_qkv(rng, dtype=np.float32)
    assert function(Q, K.astype(np.float16)).dtype == np.float32
    assert function(Q, K.astype(np.float64)).dtype == np.float64


def test_float16_is_summed_in_float32():
    """2048 + 1 is 2048 in float16, so 4096 ones would never get beyond it."""
    ones = np.ones((1, 4096), np.float16)
    assert dot_product_scores(ones, ones) == 4096


def test_the_cosine_of_float16_is_not_lost_in_overflow():
    """The square of the length, 70000, is beyond 65504, the largest float16."""
    x = np.ones((1, 70_000), np.float16)
    assert_close(cosine_similarity(x, x), [[1]], FLOAT16)


@BOTH
@pytest.mark.parametrize(
    ("a", "b", "leading"),
    [((), (2,), (2,)), ((2, 1), (3,), (2, 3)), ((2, 3), (1, 1), (2, 3))],
)
def test_leading_axes_broadcast(rng, function, a, b, leading):
    Q, K = rng.normal(size=(*a, 5, 11)), rng.normal(size=(*b, 7, 11))
    S = function(Q, K)
    assert S.shape == (*leading, 5, 7)
    Q, K = np.broadcast_to(Q, (*leading, 5, 11)), np.broadcast_to(K, (*leading, 7, 11))
    for i in np.ndindex(leading):
        assert_close(S[i], function(Q[i], K[i]))


@BOTH
@pytest.mark.parametrize(
    ("n_q", "n_k", "d_k"), [(0, 7, 11), (5, 0, 11), (0, 0, 11), (5, 7, 0)]
)
def test_axes_of_length_zero_are_axes_too(function, n_q, n_k, d_k):
    S = function(np.ones((2, n_q, d_k)), np.ones((2, n_k, d_k)))
    assert S.shape == (2, n_q, n_k)
    assert not S.any()


@BOTH
def test_inputs_may_be_read_only_and_in_any_order_in_memory(rng, function):
    Q, K, _ = draw_qkv(rng)
    expected = function(Q, K)
    Q, K = np.asfortranarray(Q), np.repeat(K, 2, axis=1)[:, ::2]
    Q.flags.writeable = K.flags.writeable = False
    assert_close(function(Q, K), expected)


@BOTH
def test_inputs_stay_as_they_are(rng, function):
    Q, K, _ = draw_qkv(rng)
    with nothing_modified(Q, K):
        function(Q, K)


# Agreement


@pytest.mark.parametrize("leading", LEADING)
def test_scores_agree_with_torch(rng, leading):
    Q, K, _ = draw_qkv(rng, leading)
    expected = torch.from_numpy(Q) @ torch.from_numpy(K).mT
    assert_close(dot_product_scores(Q, K), expected.numpy(), TORCH)


@pytest.mark.parametrize("leading", LEADING)
def test_cosines_agree_with_torch(rng, leading):
    Q, K, _ = draw_qkv(rng, leading)
    q, k = torch.from_numpy(Q)[..., :, None, :], torch.from_numpy(K)[..., None, :, :]
    expected = torch.cosine_similarity(q, k, dim=-1)
    assert_close(cosine_similarity(Q, K), expected.numpy(), TORCH)


@BOTH
def test_float32_differs_from_float64_by_rounding_only(rng, function):
    Q, K, _ = draw_qkv(rng)
    single = function(Q.astype(np.float32), K.astype(np.float32))
    assert_close(single, function(Q, K), FLOAT32)


# Refusals


@BOTH
def test_keys_of_another_width_are_refused_with_both_numbers(rng, function):
    Q, K = rng.normal(size=(5, 11)), rng.normal(size=(7, 13))
    message = "^Q and K must have the same last axis d_k, got 11 and 13$"
    with nothing_modified(Q, K), pytest.raises(ValueError, match=message):
        function(Q, K)


@BOTH
def test_a_single_key_does_not_stretch_to_the_width_of_the_queries(function):
    """NumPy would broadcast a width of 1; a dot product must not."""
    with pytest.raises(ValueError, match=r"got 11 and 1$"):
        function(np.ones((5, 11)), np.ones((7, 1)))


@BOTH
def test_leading_axes_that_do_not_fit_are_refused_with_the_shapes(function):
    message = r"^leading axes do not broadcast: Q \(2, 5, 11\), K \(3, 7, 11\)$"
    with pytest.raises(ValueError, match=message):
        function(np.ones((2, 5, 11)), np.ones((3, 7, 11)))


@BOTH
def test_a_lone_vector_is_refused_with_the_shape_it_should_have(function):
    with pytest.raises(
        ValueError, match=r"^Q must have .*\(\.\.\., n_q, d_k\), got \(3,\)"
    ):
        function([1.0, 2.0, 3.0], np.eye(3))
    with pytest.raises(
        ValueError, match=r"^K must have .*\(\.\.\., n_k, d_k\), got \(3,\)"
    ):
        function(np.eye(3), [1.0, 2.0, 3.0])
