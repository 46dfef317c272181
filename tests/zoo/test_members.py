"""The members of the zoo, one wrong step each, on arrays and tensors."""

import copy
import inspect
import pickle
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import mha
from mha import zoo
from tests.tolerances import NUMPY, assert_close

WRONG = (*zoo.WRONG, *zoo.ENCODERS[1:])
EVERY = (*zoo.ALL, *zoo.ENCODERS)


def of(members):
    return pytest.mark.parametrize("member", members, ids=lambda m: m.name)


def draw_layer(rng, b=2, n=5, n_heads=3, d_head=2):
    d = n_heads * d_head
    names = ("W_Q", "W_K", "W_V", "W_O")
    X = rng.normal(size=(b, n, d))
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


def test_both_without_a_transpose_undo_each_other_and_keep_the_tokens_apart():
    """Two tokens, two heads: head 0 gets token 0 alone, and gives it back."""
    x, steps = np.array([[1, 2], [3, 4]]), zoo.both_without_transpose.steps
    heads = steps["split_heads"](x, 2)
    assert heads.tolist() == [[[1], [2]], [[3], [4]]]
    assert steps["merge_heads"](heads).tolist() == x.tolist()


def test_four_heads_share_two_key_heads_side_by_side_or_in_turn():
    Q, K = np.zeros((4, 1, 1)), np.zeros((2, 1, 1))
    V = np.array([[[1.0]], [[2.0]]])
    assert zoo.right.attention(Q, K, V).ravel().tolist() == [1, 1, 2, 2]
    assert zoo.groups_interleaved.attention(Q, K, V).ravel().tolist() == [1, 2, 1, 2]
    X, eye, W = np.ones((1, 4)), np.eye(4), np.ones((4, 2))
    biases = {"b_K": np.zeros(2), "b_V": np.array([3.0, 5.0])}
    Y = zoo.right(X, eye, W, 0 * W, eye, 4, **biases)
    assert Y.tolist() == [[3, 3, 5, 5]]


def test_a_mask_that_is_kept_hides_in_the_next_call_too_until_a_shape_does_not_fit():
    Q, V, mask = np.zeros((1, 2)), np.eye(2), np.array([[True, False]])
    ask = zoo.remembers_the_mask.attention
    assert ask(V, V, V).tolist() == mha.scaled_dot_product_attention(V, V, V).tolist()
    assert ask(Q, V, V).tolist() == [[0.5, 0.5]]
    assert ask(Q, V, V, mask).tolist() == [[1, 0]]
    assert ask(Q, V, V).tolist() == [[1, 0]]
    # Tensors have a memory of their own, and what is correct has none.
    q, v = torch.tensor(Q), torch.tensor(V)
    assert (
        ask(q, v, v).tolist() == zoo.right.attention(Q, V, V).tolist() == [[0.5, 0.5]]
    )


def test_batch_norm_of_one_token_leaves_nothing_of_it_but_in_eval_mode():
    weights = dict.fromkeys("W_Q W_K W_V W_O W_1 W_2".split(), np.zeros((2, 2)))
    X = np.array([[3.0, 5.0]])
    assert not zoo.batch_norm.layer(X, weights, 1, eps=0.5).any()
    Y = zoo.batch_norm.layer(X, weights, 1, eps=0.5, training=False)
    assert Y.tolist() == X.tolist()


def test_the_source_of_a_member_is_its_wrong_step_and_nothing_else():
    assert zoo.no_max_subtraction.source == (
        "def softmax(x, axis=-1):\n"
        "    e = np.exp(x)\n"
        "    total = e.sum(axis, keepdims=True)\n"
        "    return e / np.where(total == 0, 1, total)"
    )
    head = "def add_and_norm(X, norm_first, attend, feed, norm_1, norm_2):\n"
    assert zoo.no_residual.source.startswith(head)
    assert zoo.both_without_transpose.source.count("def ") == 2


# Members


def test_lists_hold_the_right_one_first_and_then_what_plain_calls_show():
    assert (zoo.ALL, zoo.ENCODERS[0]) == ((zoo.right, *zoo.WRONG), zoo.right_encoder)
    assert zoo.WRONG[: len(zoo.STEPS)] == zoo.STEPS
    names = [m.name for m in EVERY]
    assert sorted(names) == sorted(k for k, m in vars(zoo).items() if m in EVERY)


@of(WRONG)
def test_a_member_says_what_is_wrong_and_where_it_was_seen(member):
    assert getattr(zoo, member.name) is member
    assert re.fullmatch(r"[A-Z].*[^ ]\.", member.wrong)
    kinds = r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+"
    assert not member.link or re.fullmatch(kinds, member.link)
    assert bool(member.link) or "no public" in member.seen
    (step, *_) = member.steps
    assert member.source.startswith(f"def {step}(")


@of(EVERY)
def test_there_is_one_of_each(member):
    assert copy.deepcopy(member) is member
    assert pickle.loads(pickle.dumps(member)) is member
    assert pickle.loads(pickle.dumps(member.attention)) == member.attention


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("kind", ["none", "bool", "float"])
@given(seed=st.integers(0, 2**32 - 1))
def test_the_right_one_is_multi_head_attention(kind, is_causal, seed):
    rng = np.random.default_rng(seed)
    X, weights = draw_layer(rng)
    weights |= {f"b_{letter}": rng.normal(size=6) for letter in "QKVO"}
    shown = mha.padding_mask([5, 2])
    masks = {"none": None, "bool": shown, "float": np.where(shown, 0.5, -np.inf)}
    options = {"mask": masks[kind], "is_causal": is_causal, "n_heads": 3}
    options |= {"X_k": X + 1, "return_weights": True}
    expected = mha.multi_head_attention(X, **weights, **options)
    for ours, theirs in zip(zoo.right(X, **weights, **options), expected, strict=True):
        assert_close(ours, theirs)
    expected = mha.scaled_dot_product_attention(X, X, X, scale=0.3)
    assert_close(zoo.right.attention(X, X, X, scale=0.3), expected)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from(["relu", "gelu"]))
def test_the_right_encoder_is_the_encoder(seed, norm_first, activation):
    rng = np.random.default_rng(seed)
    X, layers = rng.normal(size=(2, 5, 6)), draw_stack(rng)
    options = {"norm_first": norm_first, "activation": activation, "is_causal": True}
    options |= {"mask": mha.padding_mask([5, 2])}
    options |= {"final_norm": (layers[0]["gain_1"], None)}
    expected = mha.encoder(X, layers, 3, **options)
    assert_close(zoo.right_encoder(X, layers, 3, **options), expected)


# Agreement


@pytest.mark.parametrize("is_causal", [False, True])
@of([member for member in EVERY if member is not zoo.dropout_in_evaluation])
def test_arrays_and_tensors_give_the_same_numbers(member, is_causal, rng):
    X, given = draw_layer(rng)
    on_tensors, options = tensors(given), {"n_heads": 3, "is_causal": is_causal}
    if member in zoo.ENCODERS:
        given = {"layers": draw_stack(rng)}
        on_tensors = {"layers": [*map(tensors, given["layers"])]}
        options |= {"norm_first": True, "activation": "gelu"}
    # One member remembers; what is shorter makes it forget the tests before.
    member(X[:, :3], **given, n_heads=3)
    member(torch.tensor(X[:, :3]), **on_tensors, n_heads=3)
    if member is zoo.attends_across_batch and is_causal:
        X = X[:1].repeat(5, 0)
    theirs = member(torch.tensor(X), **on_tensors, **options)
    assert theirs.dtype == torch.float64
    atol = 1e-6 if member is zoo.computes_in_float32 else NUMPY
    assert_close(theirs.detach().numpy(), member(X, **given, **options), atol=atol)


@of(zoo.ENCODERS)
def test_gradients_reach_the_first_matrices_of_an_encoder(member, rng):
    layers = list(map(tensors, draw_stack(rng)))
    X = torch.tensor(rng.normal(size=(2, 5, 6)), requires_grad=True)
    member(X, layers, 3).square().sum().backward()
    reached = [weights["W_V"].grad is not None for weights in layers]
    one = {"only_last_layer": [False, True], "layers_share_weights": [True, False]}
    assert X.grad.isfinite().all() and reached == one.get(member.name, [True, True])


@of(zoo.ALL)
def test_gradients_reach_every_matrix_the_member_uses(member, rng):
    X, weights = draw_layer(rng)
    weights = tensors(weights)
    Y = member(torch.tensor(X), n_heads=3, **weights)
    Y.square().sum().backward()
    for name, W in weights.items():
        reached = W.grad is not None and W.grad.abs().max() > 0
        changed = weights | {name: W.detach() + torch.tensor(rng.random(W.shape))}
        used = not torch.allclose(Y, member(torch.tensor(X), n_heads=3, **changed))
        stopped = member.name == "gradient_stopped" and name in ("W_Q", "W_K")
        assert reached == (used and not stopped), name
        assert W.grad is None or W.grad.isfinite().all()


def test_the_right_one_has_finite_gradients_where_a_token_sees_nothing(rng):
    X, weights = draw_layer(rng)
    weights = tensors(weights)
    Y = zoo.right(torch.tensor(X), n_heads=3, mask=mha.padding_mask([5, 0]), **weights)
    Y.sum().backward()
    assert (Y[1] == 0).all()
    assert all(W.grad.isfinite().all() for W in weights.values())


HALF = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", [*HALF, torch.float32, torch.float64], ids=str)
@of(EVERY)
def test_a_member_keeps_the_dtype_of_tensors(member, dtype):
    eye = torch.eye(4, dtype=dtype)
    weights = dict.fromkeys("W_Q W_K W_V W_O".split(), eye)
    if member.encoder:
        weights = {"layers": [weights | {"W_1": eye, "W_2": eye}]}
    Y = member(torch.stack([eye] * 4), **weights, n_heads=2, is_causal=True)
    wider = member is zoo.promotes_to_float64
    assert Y.dtype == (torch.float64 if wider else dtype)


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_16_bits_are_computed_in_float32_and_rounded_once(dtype, rng):
    Q, K, V = (torch.tensor(rng.normal(size=(n, 3))).to(dtype) for n in (5, 7, 7))
    Q.requires_grad = True
    Y = zoo.right.attention(Q, K, V)
    expected = zoo.right.attention(Q.float(), K.float(), V.float())
    assert Y.equal(expected.to(dtype))
    Y.sum().backward()
    assert Q.grad.dtype == dtype and Q.grad.abs().max() > 0


@pytest.mark.parametrize("member", [zoo.right, zoo.right_encoder], ids=repr)
def test_a_member_is_called_like_the_step_that_it_imitates(member):
    whole, part, method = mha.encoder, mha.encoder_layer, "layer"
    if member is zoo.right:
        whole, part = mha.multi_head_attention, mha.scaled_dot_product_attention
        method = "attention"
    for ours, theirs in ((member, whole), (getattr(member, method), part)):
        ours, theirs = (inspect.signature(f).parameters for f in (ours, theirs))
        assert {**ours} | {**theirs} == {**ours}
        assert ours.keys() - theirs.keys() <= {"training"}
