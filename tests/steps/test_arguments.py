"""Step 0: every argument is looked at once, at the public door, and nested steps trust.

The refusals themselves are tested beside each step; here is what the doors do.
"""

import threading

import numpy as np
import pytest
from mha.arguments import BIASES, MATRICES, NORMS, validated

import mha
from mha import _arrays, arguments
from tests.samples import nothing_modified

D, H, N = 7, 1, 5


@pytest.fixture
def layer(rng):
    weights = {name: rng.normal(size=(D, D)) for name in MATRICES}
    return weights | {name: rng.normal(size=D) for name in (*BIASES, *NORMS)}


@pytest.fixture
def looks(monkeypatch):
    """Count how often each argument is looked at."""
    names, as_array = [], _arrays.as_array

    def counted(name, x):
        names.append(name)
        return as_array(name, x)

    monkeypatch.setattr(_arrays, "as_array", counted)
    monkeypatch.setattr(arguments, "as_array", counted)
    return names


# By hand


def test_a_door_hands_on_what_the_check_returns():
    @validated(lambda x, factor: {"x": np.asarray(x, float)})
    def times(x, factor=2):
        return x * factor

    assert times([1, 2]).tolist() == [2, 4]
    assert times(x=[1, 2], factor=3).tolist() == [3, 6]


def test_what_does_not_fit_the_signature_is_refused_with_the_name_of_the_step():
    with pytest.raises(TypeError, match=r"^softmax\(\): missing a required arg.*'x'"):
        mha.softmax()
    with pytest.raises(TypeError, match=r"^softmax\(\): got an unexpected .* 'dim'"):
        mha.softmax([1.0], dim=0)


# Laws


def test_a_stack_looks_at_each_of_its_arguments_once(rng, layer, looks):
    """One layer has 17 arrays: the tokens and 16 weights. It was 106 looks before."""
    X, mask = rng.normal(size=(N, D)), np.ones((N, N), bool)
    mha.encoder(X, [layer], H, mask, final_norm=(np.ones(D), np.ones(D)))
    assert sorted(looks) == sorted(
        ["X", "mask", "the gain of final_norm", "the bias of final_norm"]
        + [f"layers[0][{name!r}]" for name in layer]
    )


@pytest.mark.parametrize("masked", [False, True])
def test_every_other_step_looks_at_each_of_its_arguments_once(
    rng, layer, looks, masked
):
    X, mask = rng.normal(size=(N, D)), np.ones((N, N), bool) if masked else None
    attention = {name: W for name, W in layer.items() if name[-1] in "QKVO"}
    calls = {
        "Q K": lambda: mha.cosine_similarity(X, X),
        "S": lambda: mha.masked_softmax(mha_scores, mask),
        "Q K V": lambda: mha.scaled_dot_product_attention(X, X, X, mask),
        "Q K V ": lambda: mha.chunked_attention(X, X, X, mask),
        " ".join(["X", "X_k", *attention]): lambda: mha.multi_head_attention(
            X, **attention, n_heads=H, mask=mask, X_k=X
        ),
        " ".join(["X", *(f"weights[{name!r}]" for name in layer)]): (
            lambda: mha.encoder_layer(X, layer, H, mask)
        ),
    }
    mha_scores = X @ X.T
    for names, call in calls.items():
        looks.clear()
        call()
        seen = (masked and not names.startswith("Q K")) or names.startswith("Q K V")
        expected = [*names.split(), *(["mask"] if masked and seen else [])]
        assert sorted(looks) == sorted(expected)


def test_after_an_error_inside_a_step_the_door_is_closed_again():
    @validated(lambda x: {})
    def fails(x):
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        fails(1)
    with pytest.raises(TypeError, match="x must hold real numbers"):
        mha.softmax(["a"])


def test_a_step_that_runs_elsewhere_opens_no_door_here():
    """One thread is inside a step while another gives an argument that is refused."""
    inside, looked = threading.Event(), threading.Event()

    @validated(lambda: {})
    def waits():
        inside.set()
        assert looked.wait(5)

    thread = threading.Thread(target=waits)
    thread.start()
    assert inside.wait(5)
    with pytest.raises(TypeError, match="x must hold real numbers"):
        mha.softmax(["a"])
    looked.set()
    thread.join()


def test_results_are_rounded_once_to_the_dtype_of_the_arguments():
    """Inside, float16 is float32: 2048 + 1 is no float16, 2049 - 2048 is one."""

    @validated(lambda x: {"x": x})
    def there_and_back(x):
        return (x + 1) - x, [x]

    (one,), [x] = there_and_back(np.array([2048], np.float16))
    assert one == 1
    assert x.dtype == np.float16


def test_a_mask_cannot_influence_the_dtype(rng):
    Q, bias = rng.normal(size=(N, D)).astype(np.float32), np.zeros((N, N))
    assert mha.scaled_dot_product_attention(Q, Q, Q, bias).dtype == np.float32


def test_a_mask_beyond_the_range_of_float32_hides_without_a_warning(rng):
    Q, bias = rng.normal(size=(N, D)).astype(np.float32), np.zeros((N, N))
    bias[:, 0] = -1e300
    with nothing_modified(Q, bias):
        _, A = mha.scaled_dot_product_attention(Q, Q, Q, bias, return_weights=True)
    assert not A[:, 0].any()


# Refusals


@pytest.mark.parametrize("function", ["multi_head_attention", "encoder_layer"])
def test_on_a_batch_a_mask_with_three_axes_is_refused(rng, layer, function):
    """Three sequences with three heads: one mask per sequence would go to the heads."""
    X = rng.normal(size=(3, N, 6))
    weights = {name: np.eye(6) for name in MATRICES}
    heads = {name: W for name, W in weights.items() if name[-1] in "QKVO"}

    def call(X, mask):
        if function == "encoder_layer":
            return mha.encoder_layer(X, weights, 3, mask)
        return mha.multi_head_attention(X, **heads, n_heads=3, mask=mask)

    mask = np.tril(np.ones((3, N, N), bool))
    with nothing_modified(X, mask), pytest.raises(ValueError) as refusal:
        call(X, mask)
    assert str(refusal.value) == (
        "mask of shape (3, 5, 5) has 3 axes, and the scores have 4: (3, 3, 5, 5) = "
        "(..., n_heads, n_q, n_k); write mask[:, None] for one mask per sequence, "
        "mask[None] for one per head"
    )
    assert call(X, mask[:, None]).shape == X.shape
    np.testing.assert_array_equal(call(X, mask[:1]), call(X, mask[0]))
    np.testing.assert_array_equal(call(X[0], mask), call(X, mask[None])[0])
