"""Subjects: one pair of methods, whatever is underneath."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import mha
import mha.nn
from mha.laws.subjects import Broke, NotApplicable, as_subject

FUNCTIONS = {
    "NumPy": mha.scaled_dot_product_attention,
    "torch": mha.nn.scaled_dot_product_attention,
    "torch's own": F.scaled_dot_product_attention,
}
LAYERS = {
    "NumPy layer": mha.multi_head_attention,
    "module": mha.nn.MultiHeadAttention(6, 3),
    "torch's own layer": torch.nn.MultiheadAttention(6, 3),
}


def weights_by_hand(Q, K):
    return mha.softmax(Q @ K.T / Q.shape[1] ** 0.5)


WITH_SLOPES = {
    name: target
    for name, target in {**FUNCTIONS, **LAYERS}.items()
    if not name.startswith("NumPy")
}


def self_attention_only(X, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    """A layer of tensors that knows no other keys and values."""
    Q, K, V = (
        (X @ W).unflatten(-1, (n_heads, -1)).transpose(-3, -2) for W in (W_Q, W_K, W_V)
    )
    Y = F.scaled_dot_product_attention(Q, K, V, mask)
    return Y.transpose(-3, -2).flatten(-2) @ W_O


WITH_SLOPES["self-attention only"] = self_attention_only


@pytest.fixture
def three(rng):
    return rng.standard_normal((3, 2)), *rng.standard_normal((2, 5, 2))


# By hand


def test_a_nested_list_is_read_as_an_array():
    subject = as_subject(lambda Q, K, V: weights_by_hand(Q, K).dot(V).tolist())
    X = np.eye(2)
    assert subject.attend(X, X, 3 * np.ones((2, 2))).tolist() == [[3.0, 3.0]] * 2


@pytest.mark.parametrize("answer", [None, "text", 3.0, [[1.0], [2.0, 3.0]]])
def test_what_is_no_array_is_said_to_be_none(answer):
    subject = as_subject(mha.scaled_dot_product_attention)
    with pytest.raises(Broke, match="it returned"):
        subject.call(lambda Q, K: answer, np.eye(2), np.eye(2))


# Against other implementations


@pytest.mark.parametrize("name", FUNCTIONS)
def test_batch_and_heads_are_handed_over_and_the_mask_with_them(name, rng):
    subject = as_subject(FUNCTIONS[name])
    Q, (K, V) = rng.standard_normal((2, 3, 5, 7)), rng.standard_normal((2, 2, 3, 11, 7))
    mask = np.arange(11) < np.array([11, 4])[:, None, None, None]
    assert subject.takes_heads
    np.testing.assert_allclose(
        subject.attend(Q, K, V, mask), mha.scaled_dot_product_attention(Q, K, V, mask)
    )


@pytest.mark.parametrize(("lead", "shape"), [(1, (2, 3, 5)), (2, (2, 1, 3, 5))])
def test_one_axis_in_front_stands_before_the_one_that_a_function_wants(lead, shape):
    seen = []

    def run(Q, K, V, mask=None):
        assert Q.ndim == lead + 2
        seen.append(Q.shape)
        return mha.scaled_dot_product_attention(Q, K, V, mask)

    X = np.arange(30.0).reshape(2, 3, 5) / 30
    expected = mha.scaled_dot_product_attention(X, X, X)
    np.testing.assert_allclose(as_subject(run).attend(X, X, X), expected)
    assert seen[-1] == shape


@pytest.mark.parametrize(
    "target", [self_attention_only, lambda Q, K, V: Q[0] @ K[0] * V, LAYERS["module"]]
)
def test_what_reads_no_heads_is_known_by_one_trial(target):
    assert not as_subject(target).takes_heads


@pytest.mark.parametrize("name", ["NumPy", "torch", "NumPy layer", "module"])
def test_returned_weights_make_the_output(name, three):
    subject, (Q, K, V) = as_subject((FUNCTIONS | LAYERS)[name]), three
    Y, A = subject.attend_with_weights(Q, K, V)
    np.testing.assert_allclose(A, weights_by_hand(Q, K))
    np.testing.assert_allclose(Y, A @ V)


def test_weights_that_always_come_too_are_seen():
    def both(Q, K, V):
        A = weights_by_hand(Q, K)
        return A @ V, A

    X = np.eye(3)
    assert as_subject(both).attend_with_weights(X, X, X)[1].shape == (3, 3)


def test_without_returned_weights_nothing_can_be_asked_about_them(three):
    with pytest.raises(NotApplicable, match=r"returns no attention weights$"):
        as_subject(F.scaled_dot_product_attention).attend_with_weights(*three)


def test_what_has_another_shape_is_not_taken_for_weights(three):
    def with_cache(Q, K, V):
        return weights_by_hand(Q, K) @ V, K

    with pytest.raises(NotApplicable, match=r"attention weights of shape \(3, 5\)"):
        as_subject(with_cache).attend_with_weights(*three)


@pytest.mark.parametrize("name", WITH_SLOPES)
def test_slopes_are_central_differences(name, three, rng):
    subject, direction = as_subject(WITH_SLOPES[name]), rng.standard_normal((3, 2))
    slopes = subject.slopes(*three, None, direction)
    for i, slope in enumerate(slopes):
        for index in np.ndindex(slope.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [x.copy() for x in three]
                moved[i][index] += step
                ends.append((subject.attend(*moved) * direction).sum())
            assert slope[index] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)


def test_a_gradient_that_is_stopped_is_0(three):
    def stopped(Q, K, V):
        return F.scaled_dot_product_attention(Q, K.detach(), V)

    dQ, dK, dV = as_subject(stopped).slopes(*three, None, np.ones((3, 2)))
    assert dQ.any()
    assert dV.any()
    assert not dK.any()


def test_arrays_have_no_gradients(three):
    with pytest.raises(NotApplicable, match="gradients are out of reach"):
        as_subject(FUNCTIONS["NumPy"]).slopes(*three, None, np.ones((3, 2)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", WITH_SLOPES)
def test_a_cast_reaches_what_is_underneath_and_the_law_gets_its_own_dtype(
    name, dtype, three
):
    subject = as_subject(WITH_SLOPES[name])
    Y, cast = subject.attend(*three), subject.but(cast=dtype).attend(*three)
    assert cast.dtype == np.float64
    assert 1e-9 < abs(cast - Y).max() < 0.05


def test_numpy_has_no_bfloat16(three):
    subject = as_subject(FUNCTIONS["NumPy"])
    assert subject.but(cast="float16").attend(*three).dtype == np.float64
    with pytest.raises(NotApplicable, match="no bfloat16"):
        subject.but(cast="bfloat16").attend(*three)


def test_a_mask_of_numbers_arrives_as_it_is(three):
    added = np.where(np.arange(5) < 3, 0.0, -np.inf) * np.ones((3, 1))
    subject = as_subject(F.scaled_dot_product_attention)
    np.testing.assert_allclose(
        subject.attend(*three, added), subject.attend(*three, added == 0)
    )
