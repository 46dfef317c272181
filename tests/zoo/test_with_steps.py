"""A replaced step is used as it is, wherever it is called, and nobody else meets it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from numpy import exp

import mha
from mha import zoo
from tests.samples import draw_qkv
from tests.tolerances import assert_close
from tests.zoo.test_members import draw_stack

attend = mha.scaled_dot_product_attention
calls = 0


def shifted(x):
    return x - np.max(x, axis=-1, keepdims=True)


def with_a_helper(x, axis=-1):
    e = np.exp(shifted(x))
    return e / np.sum(e, axis=-1, keepdims=True)


def with_an_import(x, axis=-1):
    e = exp(x)
    return e / e.sum(-1, keepdims=True)


def with_an_import_inside(x, axis=-1):
    from numpy import exp, sum

    e = exp(x)
    return e / sum(e, axis=axis, keepdims=True)


def with_a_reduction(x, axis=-1):
    return np.exp(x - np.logaddexp.reduce(x, axis=-1, keepdims=True))


def with_a_counter(x, axis=-1):
    global calls
    calls += 1
    return mha.softmax(x, axis)


def with_a_local_name(factor):
    return lambda x, axis=-1: mha.softmax(factor * x / factor, axis)


OWN = (
    with_a_helper, with_an_import, with_an_import_inside, with_a_reduction,
    with_a_counter, with_a_local_name(2.0),
)  # fmt: skip


@pytest.mark.parametrize("softmax", OWN, ids=lambda f: f.__name__)
def test_a_step_of_ones_own_may_use_what_python_offers(softmax, rng):
    Q, K, V = draw_qkv(rng)
    ours, expected = zoo.with_steps(attend, softmax=softmax), attend(Q, K, V)
    assert_close(ours(Q, K, V), expected)
    q, k, v = (torch.tensor(x, requires_grad=True) for x in (Q, K, V))
    Y = ours(q, k, v)
    assert_close(Y.detach().numpy(), expected)
    Y.square().sum().backward()
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    grads = torch.autograd.grad(expected.square().sum(), [q, k, v])
    for x, grad in zip((q, k, v), grads, strict=True):
        assert_close(x.grad.numpy(), grad.numpy(), atol=1e-10)


def test_a_counter_counts_the_calls_of_arrays_and_of_tensors():
    ours, before = zoo.with_steps(mha.encoder, softmax=with_a_counter), calls
    layers = draw_stack(np.random.default_rng(0))
    ours(np.zeros((5, 6)), layers, 3)
    ours(torch.zeros(5, 6, dtype=torch.float64), layers, 3)
    assert calls == before + 4


def test_a_step_is_replaced_wherever_it_is_called(rng):
    """The softmax of an encoder is five calls deep, and in both of its layers."""
    X, layers = rng.normal(size=(5, 6)), draw_stack(rng)
    even = zoo.with_steps(
        mha.encoder, softmax=lambda x, axis=-1: mha.softmax(0 * x, axis)
    )
    silent = [weights | {"W_Q": np.zeros((6, 6))} for weights in layers]
    assert_close(even(X, layers, 3), mha.encoder(X, silent, 3))


def test_inside_of_a_replaced_step_the_others_are_correct(rng):
    """Attention that asks attention meets neither itself nor the replaced softmax."""
    Q, K, V = draw_qkv(rng)
    ours = zoo.with_steps(
        mha.scaled_dot_product_attention,
        scaled_dot_product_attention=lambda *given: 2 * attend(*given),
        softmax=lambda x, axis=-1: x,
    )
    assert_close(ours(Q, K, V), 2 * attend(Q, K, V))


def test_several_steps_are_replaced_at_once_and_each_call_has_its_own(rng):
    Q, K, V = draw_qkv(rng)
    twice = {"dot_product_scores": lambda Q, K: 2 * mha.dot_product_scores(Q, K)}
    half = {"softmax": lambda x, axis=-1: mha.softmax(x / 2, axis)}
    assert_close(zoo.with_steps(attend, **twice, **half)(Q, K, V), attend(Q, K, V))
    scale = 2 / np.sqrt(Q.shape[-1])
    expected = attend(Q, K, V, scale=scale)
    assert_close(zoo.with_steps(attend, **twice)(Q, K, V), expected)


def test_one_replaced_staircase_may_stand_in_another(rng):
    _, K, V = draw_qkv(rng)
    inner = zoo.with_steps(attend, softmax=lambda x, axis=-1: mha.softmax(0 * x, axis))
    outer = zoo.with_steps(
        attend, masked_softmax=lambda S, mask=None, axis=-1: inner(S, S, np.eye(len(S)))
    )
    expected = np.full((7, 7), 1 / 7) @ V
    assert_close(outer(K, K, V), expected)


def test_what_is_changed_inside_of_a_step_shows_at_its_next_call(rng):
    """A debugger, a counter or an edit reaches a replaced step as any function."""
    Q, K, V = draw_qkv(rng)

    def softmax(x, axis=-1):
        return mha.softmax(factor * x, axis)

    ours, factor = zoo.with_steps(attend, softmax=softmax), 1
    assert_close(ours(Q, K, V), attend(Q, K, V))
    factor = 0
    assert_close(ours(Q, K, V), np.repeat(V.mean(0, keepdims=True), 5, 0))


def test_threads_do_not_meet_each_others_steps(rng):
    Q, K, V = draw_qkv(rng)
    members = zoo.right, zoo.no_scale, zoo.softmax_over_queries, zoo.key_reshaped
    expected = [m.attention(Q, K, V) for m in members]
    fresh = [zoo.with_steps(attend, **m.steps) for m in members]  # not yet copied
    start = threading.Barrier(8)

    def ask(i):
        start.wait()
        for _ in range(25):
            assert_close(fresh[i % 4](Q, K, V), expected[i % 4])
            assert_close(members[i % 4].attention(Q, K, V), expected[i % 4])
            assert_close(attend(Q, K, V), expected[0])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))


def test_a_mode_holds_inside_of_its_call_and_in_its_thread_only(rng):
    X, (weights, _) = rng.normal(size=(5, 6)), draw_stack(rng)
    norm = zoo.with_steps(mha.layer_norm, **zoo.batch_norm.steps)
    before = norm(X)
    zoo.batch_norm.layer(X, weights, 3, training=False)
    assert_close(norm(X), before)
    assert not np.allclose(before, X)


def test_public_steps_stay_what_they_are(rng):
    Q, K, V = draw_qkv(rng)
    before = attend(Q, K, V), mha.masks.softmax
    zoo.with_steps(attend, softmax=lambda x, axis=-1: 0 * x)(Q, K, V)
    assert mha.masks.softmax is before[1] is mha.softmax
    assert_close(attend(Q, K, V), before[0])


def test_it_is_called_like_the_step_and_says_what_is_replaced():
    ours = zoo.with_steps(attend, softmax=mha.softmax, causal_mask=mha.causal_mask)
    name = "scaled_dot_product_attention with softmax, causal_mask replaced"
    assert ours.__name__ == name


def test_a_step_that_does_not_exist_is_not_replaced():
    with pytest.raises(ValueError, match="no step of mha is called sotfmax"):
        zoo.with_steps(mha.multi_head_attention, sotfmax=mha.softmax)


def no_step():
    pass


def test_what_is_no_step_has_no_steps_to_replace():
    with pytest.raises(ValueError, match="no_step is no step of mha"):
        zoo.with_steps(no_step, softmax=mha.softmax)
