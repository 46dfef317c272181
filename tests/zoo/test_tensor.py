"""What NumPy's functions do with a tensor is what they do with an array."""

import numpy as np
import pytest
import torch

from mha.zoo._tensor import Tensor, on_tensors
from tests.tolerances import assert_close

FUNCTIONS = {
    "exp": np.exp,
    "sum": lambda x: np.sum(x, axis=-1, keepdims=True) + x.sum(0),
    "sum of all": lambda x: x.sum() + np.add.reduce(x),
    "mean": lambda x: np.mean(x, axis=-2) - x.mean(),
    "max": lambda x: np.max(x, axis=1, initial=0.3) + x.max(axis=None),
    "max of nothing": lambda x: np.max(x[:, :0], axis=1, initial=-np.inf),
    "min": lambda x: x.min(-1, keepdims=True),
    "var": lambda x: np.var(x, axis=-1) + x.std(-1, ddof=1),
    "where": lambda x: np.where(x > 0, x, -np.inf),
    "where of numbers": lambda x: np.where(x > 0, 0.0, -np.inf),
    "where of arrays": lambda x: (
        np.where([True, False, True], x, 1) + np.reshape(x, (2, -1))
    ),
    "clip": lambda x: np.clip(x, -0.5, 0.5) + x.clip(-1, 0.1),
    "maximum": lambda x: np.maximum(x, 0) + np.minimum(0.5, x),
    "power": lambda x: x**2 + 2**x - 10 / (3 + x * x),
    "compare": lambda x: (x == x.max()) | ~(x < 0) & (x != 0.1),
    "matmul": lambda x: x @ x.T + np.eye(2) @ x @ np.ones((3, 2)),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "axes": lambda x: x[None].swapaxes(0, -1) * np.expand_dims(x.transpose(1, 0), -1),
    "T": lambda x: x.reshape(1, 2, 3).T - np.transpose(x.reshape(1, 2, 3), (2, 1, 0)),
    "stack": lambda x: np.concatenate([x, x * 2], -1) + np.stack([x, x]).reshape(2, 6),
    "index": lambda x: x[..., np.array([2, 0])] + x[:, 1:] + x[1, 0],
    "index with a mask": lambda x: x[x > 0],
    "repeat": lambda x: np.repeat(x, 2, axis=-1) + x.repeat(2, 1),
    "ravel": lambda x: np.ravel(x.T, order="K") + x.ravel(),
    "dtype": lambda x: x.astype(np.float32).astype(x.dtype) * (x.dtype == np.float64),
    "like": lambda x: np.zeros_like(x) + np.ones_like(x) * np.full_like(x, 3),
    "copy": lambda x: np.copy(x) + x.copy(),
    "triangle": lambda x: np.tril(x) + np.cumsum(x, axis=-1),
    "arrays": lambda x: np.arange(3.0) * x + x / np.float64(3) - np.ones((2, 1)),
    "number": lambda x: np.asarray(float(x[0, 0]) + int(x[1, 1]) + len(x) + x.size),
    "truth": lambda x: x if (x > -99).all() and np.shape(x) == (2, 3) else -x,
    "rows": lambda x: sum(row for row in x),
    "nothing": lambda x: np.full((2, 2), 0.5),
}


def ours(f, x):
    return on_tensors(f, (torch.tensor(x),), {}).numpy()


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_gives_the_numbers_and_the_dtype_that_it_gives_for_an_array(f, rng):
    x = rng.normal(size=(2, 3))
    assert_close(ours(f, x), f(x))
    assert ours(f, x).dtype == f(x).dtype


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_dtypes_meet_as_in_numpy(dtype):
    x = np.array([[0, 1, 1]], dtype)
    for f in (lambda x: x * 2.5, lambda x: x + 1, lambda x: x + np.ones(3, np.int64)):
        assert ours(f, x).dtype == f(x).dtype or dtype == np.float32
        assert_close(ours(f, x), f(x))


def test_a_number_does_not_widen_a_tensor():
    x = Tensor(torch.ones(2))
    assert (x / np.sqrt(5)).dtype == (2.5 * x).dtype == np.float32
    assert (x * np.ones(2)).dtype == np.float64


def test_a_step_may_write_into_a_tensor_and_its_caller_sees_it():
    def f(x, mask):
        mask ^= True
        x[mask] = 0
        x += np.arange(3)
        return x * x

    x, mask = torch.ones(3), torch.tensor([True, False, True])
    assert on_tensors(f, (x, mask), {}).tolist() == [1, 1, 9]
    assert x.tolist() == [1, 1, 3] and mask.tolist() == [False, True, False]


def test_gradients_flow_through_everything(rng):
    x = torch.tensor(rng.normal(size=(2, 3)), requires_grad=True)
    for name in ("exp", "var", "where", "max", "power", "matmul", "stack", "copy"):
        f = FUNCTIONS[name]
        assert torch.autograd.gradcheck(
            lambda x, f=f: torch.nan_to_num(on_tensors(f, (x,), {}), neginf=0), x
        ), name


def test_an_array_that_would_lose_a_gradient_is_refused():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        on_tensors(lambda x: np.asarray(x) * 2, (x,), {})


def test_what_torch_has_no_word_for_here_is_refused_by_name():
    x = torch.ones(2)
    with pytest.raises(TypeError, match=r"numpy\.median"):
        on_tensors(np.median, (x,), {})
    with pytest.raises(AttributeError, match="no masked_fill"):
        on_tensors(lambda x: x.masked_fill(0, 0), (x,), {})


def test_nested_tensors_come_and_go():
    def f(layers, pair):
        return [layers[0]["W"] * 2, (pair[0], None)], {"n": len(layers)}

    (W, (x, none)), n = on_tensors(
        f, ([{"W": torch.ones(2)}],), {"pair": (torch.ones(1), None)}
    )
    assert (W.tolist(), x.tolist(), none, n) == ([2, 2], [1], None, {"n": 1})
