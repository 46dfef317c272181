"""Step 0: what every function says about an argument before it computes anything."""

from fractions import Fraction

import numpy as np
import pytest
import torch

import mha
from mha import _arrays
from tests.samples import nothing_modified
from tests.tolerances import assert_close

EYE = np.eye(2)

# For each function: a call whose argument of that name is replaced by something wrong.
CALLS = {
    "dot_product_scores: Q": ("Q", lambda x: mha.dot_product_scores(x, EYE)),
    "dot_product_scores: K": ("K", lambda x: mha.dot_product_scores(EYE, x)),
    "cosine_similarity: Q": ("Q", lambda x: mha.cosine_similarity(x, EYE)),
    "cosine_similarity: K": ("K", lambda x: mha.cosine_similarity(EYE, x)),
    "softmax: x": ("x", mha.softmax),
    "masked_softmax: S": ("S", mha.masked_softmax),
    "attention: Q": ("Q", lambda x: mha.scaled_dot_product_attention(x, EYE, EYE)),
    "attention: K": ("K", lambda x: mha.scaled_dot_product_attention(EYE, x, EYE)),
    "attention: V": ("V", lambda x: mha.scaled_dot_product_attention(EYE, EYE, x)),
    "split_heads: x": ("x", lambda x: mha.split_heads(x, 1)),
    "merge_heads: heads": ("heads", mha.merge_heads),
} | {
    f"multi_head_attention: {name}": (
        name,
        lambda x, name=name: mha.multi_head_attention(
            **dict(X=EYE, W_Q=EYE, W_K=EYE, W_V=EYE, W_O=EYE, n_heads=1) | {name: x}
        ),
    )
    for name in "X X_k X_v W_Q W_K W_V W_O b_Q b_K b_V b_O".split()
}

every_argument = pytest.mark.parametrize(("name", "call"), CALLS.values(), ids=CALLS)


# By hand


def test_the_scale_is_one_over_the_root_of_d_k():
    """1 / √16 = 1/4, a Python float: a NumPy scalar would promote float32."""
    scale = _arrays.as_scale(None, 16)
    assert scale == 0.25
    assert type(scale) is float


def test_vectors_without_entries_keep_the_scale_finite():
    """1 / √0 is no number; the scores are 0 anyway, so any factor will do."""
    assert _arrays.as_scale(None, 0) == 1


def test_zero_is_replaced_by_one_and_nothing_else_is():
    assert_close(_arrays.never_zero(np.array([0.0, -0.0, 1e-300, -3.0])), [1, 1, 0, -3])
    assert _arrays.never_zero(np.array([1e-300])) == 1e-300


# Laws


@pytest.mark.parametrize(
    ("given", "works_in"),
    [
        ("float16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
        ("longdouble", "longdouble"),
    ],
)
def test_only_float16_is_computed_in_a_wider_dtype(given, works_in):
    assert _arrays.working_dtype(np.ones(2, given)) == np.dtype(works_in)


def test_two_dtypes_meet_in_the_wider_one():
    half, single = np.ones(2, np.float16), np.ones(2, np.float32)
    assert _arrays.working_dtype(half, single) == np.float32
    assert _arrays.working_dtype(single, np.ones(2)) == np.float64


@pytest.mark.parametrize(
    "x", [[1, 2], [True, False], (1.0, 2.0), np.arange(2, dtype="u1")]
)
def test_lists_and_integers_become_float64(x):
    assert _arrays.as_floats("x", x).dtype == np.float64


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_a_floating_point_array_is_passed_on_without_a_copy(dtype):
    x = np.ones(3, dtype)
    assert _arrays.as_floats("x", x) is x


@pytest.mark.parametrize("n", [3, np.int32(3), np.uint8(3)])
def test_a_count_is_any_kind_of_integer(n):
    assert type(_arrays.as_count("n", n)) is int


@pytest.mark.parametrize("scale", [2, 2.0, np.float32(2), np.float64(2), Fraction(2)])
def test_a_scale_is_any_kind_of_real_number(scale):
    got = _arrays.as_scale(scale, 3)
    assert got == 2
    assert type(got) is float


# Agreement


@pytest.mark.parametrize(
    "leading",
    [[(), ()], [(2,), ()], [(2, 1), (3,)], [(0,), (1,)], [(5,), (2, 5), (1, 1)]],
    ids=str,
)
def test_leading_axes_broadcast_as_numpy_does_it(leading):
    arrays = {f"x{i}": np.ones((*shape, 2, 3)) for i, shape in enumerate(leading)}
    expected = np.broadcast_arrays(*(np.ones(shape) for shape in leading))[0].shape
    assert _arrays.broadcast_leading(arrays) == expected


# Refusals


@every_argument
@pytest.mark.parametrize(
    "x", [torch.eye(2), torch.nn.Parameter(torch.eye(2))], ids=type
)
def test_a_tensor_is_sent_to_mha_nn(name, call, x):
    with pytest.raises(TypeError, match=rf"^{name} is a torch\.\w+; .*mha\.nn"):
        call(x)


@every_argument
@pytest.mark.parametrize(
    ("x", "dtype"),
    [
        (EYE + 0j, "complex128"),
        ([["a", "b"], ["c", "d"]], "<U1"),
        ([[None, 1], [2, 3]], "object"),
        (np.zeros((2, 2), "M8[D]"), r"datetime64\[D\]"),
    ],
    ids=["complex", "str", "object", "date"],
)
def test_only_real_numbers_are_taken(name, call, x, dtype):
    with pytest.raises(TypeError, match=f"^{name} must hold real numbers.*{dtype}$"):
        call(x)


@every_argument
def test_rows_of_different_lengths_are_refused(name, call):
    with pytest.raises(ValueError, match=f"^{name} must be rectangular"):
        call([[1.0, 2.0], [3.0]])


@every_argument
def test_a_bare_number_is_refused_with_the_axes_that_are_missing(name, call):
    with (
        nothing_modified(EYE),
        pytest.raises(ValueError, match=rf"^{name} .*got \(\)$"),
    ):
        call(3.0)


@pytest.mark.parametrize(
    ("axes", "x"),
    [("n", 3.0), ("n_q, d_k", [1.0]), ("n_heads, n, d_head", [[1.0]])],
)
def test_too_few_axes_are_counted(axes, x):
    shape = np.shape(x)
    with pytest.raises(ValueError) as refusal:
        _arrays.as_floats("x", x, axes)
    assert str(refusal.value) == f"x must have shape (..., {axes}), got {shape}"


@pytest.mark.parametrize(
    "n", [2.0, "2", True, np.bool_(True), None, np.float64(2), [2]]
)
def test_a_count_that_is_no_integer_is_refused(n):
    with pytest.raises(TypeError, match=r"^n_heads must be an integer, got "):
        _arrays.as_count("n_heads", n)


@pytest.mark.parametrize(("n", "at_least"), [(0, 1), (-1, 0), (np.int8(-3), 1)])
def test_a_count_that_is_too_small_is_refused_with_both_numbers(n, at_least):
    with pytest.raises(ValueError, match=f"^n must be at least {at_least}, got {n}$"):
        _arrays.as_count("n", n, at_least)


@pytest.mark.parametrize("scale", ["1", True, np.bool_(True), 1j, np.array(1.0), [1.0]])
def test_a_scale_that_is_no_number_is_refused(scale):
    with pytest.raises(TypeError, match=r"^scale must be a number or None, got "):
        _arrays.as_scale(scale, 3)


@pytest.mark.parametrize("scale", [np.inf, -np.inf, np.nan, np.float32("inf")])
def test_a_scale_that_is_not_finite_is_refused(scale):
    with pytest.raises(ValueError, match=f"^scale must be finite, got {scale}$"):
        _arrays.as_scale(scale, 3)


def test_widths_that_differ_are_named_with_both_numbers():
    a, b = np.ones((2, 3)), np.ones((2, 5))
    with pytest.raises(ValueError) as refusal:
        _arrays.same_last_axis("Q", a, "K", b, "d_k")
    assert str(refusal.value) == (
        "Q and K must have the same last axis d_k, got 3 and 5"
    )


def test_leading_axes_that_do_not_fit_are_shown_with_every_shape():
    arrays = {"Q": np.ones((2, 5, 11)), "K": np.ones((3, 7, 11))}
    with pytest.raises(ValueError) as refusal:
        _arrays.broadcast_leading(arrays)
    assert str(refusal.value) == (
        "leading axes do not broadcast: Q (2, 5, 11), K (3, 7, 11)"
    )
