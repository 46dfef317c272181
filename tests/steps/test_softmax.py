"""Step 2: scores become shares."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mha import softmax
from tests.samples import LEADING, nothing_modified, peak_memory
from tests.tolerances import FLOAT16, FLOAT32, NUMPY, TORCH, assert_close

scores = arrays(
    np.float64,
    array_shapes(min_dims=1, max_dims=3, max_side=5),
    elements=st.floats(-50, 50),
)
any_finite = arrays(
    np.float64, (2, 5), elements=st.floats(allow_nan=False, allow_infinity=False)
)


# By hand


def test_the_scores_0_and_root_2_share_as_1_to_e_to_the_root_2():
    """exp(0) = 1 and exp(√2), divided by their sum."""
    e = np.exp(np.sqrt(2))
    assert_close(softmax([0, np.sqrt(2)]), [1 / (1 + e), e / (1 + e)])


def test_logarithms_of_2_3_and_5_share_in_tenths():
    """exp(ln 2), exp(ln 3) and exp(ln 5) add up to 10."""
    assert_close(softmax(np.log([2, 3, 5])), [0.2, 0.3, 0.5])


def test_equal_scores_share_equally():
    assert_close(softmax([7.0] * 5), [0.2] * 5)


def test_the_axis_says_which_entries_share():
    """Down the columns ln 1 : ln 3 share 1/4 : 3/4; along the rows they are equal."""
    x = np.log([[1, 1], [3, 3]])
    assert_close(softmax(x, axis=0), [[0.25, 0.25], [0.75, 0.75]])
    assert_close(softmax(x, axis=1), [[0.5, 0.5], [0.5, 0.5]])


def test_minus_infinity_means_no_share():
    assert softmax([-np.inf, 4, 4]).tolist() == [0, 0.5, 0.5]


def test_where_every_score_is_minus_infinity_all_shares_are_zero():
    x = [[-np.inf, -np.inf], [0, 0]]
    assert softmax(x).tolist() == [[0, 0], [0.5, 0.5]]


def test_plus_infinity_and_nan_give_nan():
    """∞ − ∞ has no value, and NumPy says so with a warning of its own."""
    with pytest.warns(RuntimeWarning, match="invalid"):
        assert np.isnan(softmax([np.inf, 0])).all()
    assert np.isnan(softmax([np.nan, 0])).all()
    assert softmax([[np.nan, 0], [0, 0]])[1].tolist() == [0.5, 0.5]


# Laws


@given(scores)
def test_shares_are_positive_and_sum_to_one(x):
    p = softmax(x)
    assert (p > 0).all()
    assert (p <= 1).all()
    assert_close(p.sum(-1), np.ones(x.shape[:-1]))


@given(scores, st.floats(-1000, 1000))
def test_adding_a_constant_to_every_score_changes_nothing(x, constant):
    assert_close(softmax(x + constant), softmax(x), 1e-11)


@given(arrays(np.float64, (5,), elements=st.floats(-50, 50)), st.permutations(range(5)))
def test_reordering_the_scores_reorders_the_shares(x, order):
    assert_close(softmax(x[list(order)]), softmax(x)[list(order)])


@given(scores)
def test_a_higher_score_never_gets_a_smaller_share(x):
    p = softmax(x)
    higher = x[..., :, None] >= x[..., None, :]
    gain = p[..., :, None] - p[..., None, :]
    assert (gain[higher] >= -NUMPY).all()


@given(arrays(np.float64, (5,), elements=st.floats(-20, 20)))
def test_the_ratio_of_two_shares_is_the_exponential_of_the_gap(x):
    p = softmax(x)
    np.testing.assert_allclose(p / p[0], np.exp(x - x[0]), rtol=1e-12)


@given(any_finite)
def test_finite_scores_of_any_size_are_safe_and_raise_no_warning(x):
    with np.errstate(all="raise", under="ignore"):
        p = softmax(x)
    assert_close(p.sum(-1), [1, 1])


def test_huge_scores_stay_finite():
    """exp(1000) overflows; exp(1000 − 1000) is 1 and exp(999 − 1000) is 1/e."""
    assert_close(softmax([1000.0, 999.0]), softmax([1.0, 0.0]))
    assert softmax([1.7e308, -1.7e308]).tolist() == [1, 0]
    assert softmax(np.array([3e38, -3e38], np.float32)).tolist() == [1, 0]


def test_very_low_scores_share_too():
    """exp(-1000) is 0 for a computer, and 0/0 is no share."""
    assert_close(softmax([-1000.0, -1000.0]), [0.5, 0.5])


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_shares_sum_to_one_along_the_axis_that_was_asked_for(rng, axis):
    p = softmax(rng.normal(size=(2, 3, 5)), axis)
    assert_close(p.sum(axis), np.ones_like(p.sum(axis)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_the_dtype_is_kept(rng, dtype):
    assert softmax(rng.normal(size=(5, 7)).astype(dtype)).dtype == np.dtype(dtype)


def test_longdouble_is_computed_in_longdouble():
    """ln 1 and ln 2 share 1/3 : 2/3, to the last digits the platform has."""
    x = np.log(np.array([1, 2], np.longdouble))
    third = softmax(x)[0]
    assert abs(third - np.longdouble(1) / 3) <= 2 * np.finfo(np.longdouble).eps


def test_float32_is_computed_in_float32():
    """It takes half the memory: no array on the way is a float64 one."""
    wide = np.zeros((512, 512))
    x = wide.astype(np.float32)
    assert peak_memory(lambda: softmax(x)) < 0.6 * peak_memory(lambda: softmax(wide))


def test_float16_is_summed_in_float32():
    """70000 equal scores: each exp is 1, and 70000 ones add up to ∞ in float16."""
    p = softmax(np.zeros(70_000, np.float16))
    assert (p == np.float16(1 / 70_000)).all()


def test_integers_give_float64():
    assert softmax([0, 0]).dtype == np.float64


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (2, 0, 3)])
def test_axes_of_length_zero_are_axes_too(shape):
    assert softmax(np.ones(shape)).shape == shape


def test_inputs_may_be_read_only_and_in_any_order_in_memory(rng):
    x = rng.normal(size=(5, 7))
    expected = softmax(x)
    x = np.repeat(x, 3, axis=1)[:, ::3]
    x.flags.writeable = False
    assert_close(softmax(x), expected)


def test_inputs_stay_as_they_are(rng):
    x = rng.normal(size=(5, 7))
    with nothing_modified(x):
        p = softmax(x)
        p += 1


# Agreement


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("axis", [-1, -2])
def test_shares_agree_with_torch(rng, leading, axis):
    x = 3 * rng.normal(size=(*leading, 5, 7))
    expected = torch.softmax(torch.from_numpy(x), axis)
    assert_close(softmax(x, axis), expected.numpy(), TORCH)


@pytest.mark.parametrize(
    ("dtype", "atol"), [("float32", FLOAT32), ("float16", FLOAT16)]
)
def test_short_floats_differ_from_float64_by_rounding_only(rng, dtype, atol):
    x = rng.normal(size=(5, 7))
    assert_close(softmax(x.astype(dtype)), softmax(x), atol)


# Refusals


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_is_not_there_is_refused_with_the_shape(axis):
    x = np.ones((5, 7))
    message = rf"^axis must be an axis of x, got {axis} for shape \(5, 7\)$"
    with nothing_modified(x), pytest.raises(ValueError, match=message):
        softmax(x, axis)


@pytest.mark.parametrize("axis", [None, 1.0, (0, 1), "0", True])
def test_an_axis_that_is_no_integer_is_refused(axis):
    with pytest.raises(TypeError, match=r"^axis must be an integer, got "):
        softmax(np.ones((5, 7)), axis)


def test_a_bare_number_has_nobody_to_share_with():
    with pytest.raises(
        ValueError, match=r"^x must have shape \(\.\.\., n\), got \(\)$"
    ):
        softmax(3.0)
