"""A name in a report is an accusation: the same wrong numbers, or nobody is named."""

import time
from functools import partial

import numpy as np
import pytest
import torch

import mha
import mha.nn
from mha import laws, zoo
from mha.laws import _lookalike
from mha.laws.subjects import as_subject

EVERY_LAW = (*laws.ALL, *laws.ENCODER)


def named(subject):
    """Return the name under which it is known, were every law broken."""
    like = _lookalike.lookalike(as_subject(subject), EVERY_LAW)
    return None if like is None else like.member.name


def scores(Q, K):
    return Q @ K.swapaxes(-1, -2) / Q.shape[-1] ** 0.5


def softmax(S):
    E = np.exp(S - np.where(np.isinf(S), 0, S).max(-1, keepdims=True))
    return E / np.maximum(E.sum(-1, keepdims=True), 1e-300)


def visible(S, mask, is_causal, k=0):
    seen = np.ones(S.shape[-2:], bool) if mask is None else mask
    return seen & np.tri(*S.shape[-2:], k=k, dtype=bool) if is_causal else seen


def attention(change_scores=None, change_weights=None, mix=None, hide=None):
    """Return correct attention with one step exchanged."""

    def attend(Q, K, V, mask=None, is_causal=False):
        S = scores(Q, K)
        S = S if change_scores is None else change_scores(S, Q, K)
        seen = visible(S, mask, is_causal)
        S = np.where(seen, S, -np.inf) if hide is None else hide(S, mask, is_causal)
        A = softmax(S)
        A = A if change_weights is None else change_weights(A, seen)
        return A @ V if mix is None else mix(A, Q, K, V)

    return attend


def hidden_at(number):
    return lambda S, mask, c: np.where(visible(S, mask, c), S, number)


def shared(A):
    return A / np.maximum(A.sum(-1, keepdims=True), 1e-300)


def strongest(A, seen, k=1):
    return shared(A * (A >= np.sort(A)[..., -k:][..., :1]))


def turned(X):
    """Rotate pairs of columns by the position, as rotary positions do."""
    n, d = X.shape[-2:]
    if d % 2:
        X = np.concatenate([X, X[..., :1]], -1)
    angle = np.arange(n)[:, None] / 10.0 ** np.arange((d + 1) // 2)
    a, b, c, s = X[..., ::2], X[..., 1::2], np.cos(angle), np.sin(angle)
    return np.concatenate([a * c - b * s, a * s + b * c], -1)


def steps_apart(S):
    return np.abs(np.arange(S.shape[-2])[:, None] - np.arange(S.shape[-1]))


def only(kind):
    """Hide where True in masks of one kind alone: padding, or square ones."""

    def hide(S, mask, is_causal):
        wrong = mask is not None and (mask.shape[-2] == 1) == (kind == "padding")
        return np.where(visible(S, ~mask if wrong else mask, is_causal), S, -np.inf)

    return hide


def at_random(A, seen, rng=np.random.default_rng(0)):  # noqa: B008
    return A * (rng.random(A.shape) < 0.9) / 0.9


# Attention functions with a bug that nobody in the zoo has.
FUNCTIONS = {
    "half of it": attention(mix=lambda A, Q, K, V: A @ V / 2),
    "too sharp": attention(lambda S, Q, K: 2 * S),
    "root of d plus one": attention(lambda S, Q, K: S * (Q.shape[-1] / 9) ** 0.5),
    "cube root": attention(lambda S, Q, K: S * Q.shape[-1] ** (1 / 6)),
    "root of n and d": attention(lambda S, Q, K: S / len(K) ** 0.5),
    "absolute scores": attention(lambda S, Q, K: abs(S)),
    "negated scores": attention(lambda S, Q, K: -S),
    "clipped scores": attention(lambda S, Q, K: np.clip(S, -1, 1)),
    "soft cap": attention(lambda S, Q, K: 2 * np.tanh(S / 2)),
    "cosine": attention(
        lambda S, Q, K: S / np.linalg.norm(K, axis=-1)[..., None, :].clip(1e-9)
    ),
    "distance": attention(lambda S, Q, K: S - (K * K).sum(-1)[..., None, :]),
    "nearby first": attention(lambda S, Q, K: S - steps_apart(S) / 8),
    "rotary": attention(lambda S, Q, K: scores(turned(Q), turned(K))),
    "two softmaxes": attention(change_weights=lambda A, seen: softmax(A)),
    "one more silent key": attention(
        change_weights=lambda A, seen: A / (1 + 0.1 * A.max(-1, keepdims=True))
    ),
    "uniform": attention(lambda S, Q, K: 0 * S),
    "the strongest alone": attention(change_weights=strongest),
    "the two strongest": attention(change_weights=partial(strongest, k=2)),
    "rounded weights": attention(change_weights=lambda A, seen: A.round(1)),
    "weights squared": attention(change_weights=lambda A, seen: shared(A * A)),
    "weights over d": attention(mix=lambda A, Q, K, V: A @ V / Q.shape[-1]),
    "adds its query": attention(mix=lambda A, Q, K, V: A @ V + Q),
    "mixes the keys": attention(mix=lambda A, Q, K, V: A @ K),
    "values centred": attention(
        mix=lambda A, Q, K, V: A @ (V - V.mean(-2, keepdims=True))
    ),
    "the last key is lost": attention(
        change_weights=lambda A, seen: shared(A * (1 - np.eye(A.shape[-1])[-1]))
    ),
    "hidden at minus five": attention(hide=hidden_at(-5.0)),
    "hidden at minus ten thousand": attention(hide=hidden_at(-1e4)),
    "a mask that is added": attention(
        hide=lambda S, mask, c: S + (visible(S, mask, c)).astype(float)
    ),
    "a mask with minus 1e9 added": attention(
        hide=lambda S, mask, c: S - 1e9 * ~visible(S, mask, c)
    ),
    "padding inverted": attention(hide=only("padding")),
    "square masks inverted": attention(hide=only("square")),
    "one step into the future": attention(
        hide=lambda S, mask, c: np.where(visible(S, mask, c, k=1), S, -np.inf)
    ),
    "causal, and then no mask": attention(
        hide=lambda S, mask, c: np.where(visible(S, None if c else mask, c, 1), S, -9e9)
    ),
    "empty rows take the first value": attention(
        change_weights=lambda A, seen: np.where(
            seen.any(-1, keepdims=True), A, np.arange(A.shape[-1]) == 0
        )
    ),
    "near ones only": attention(
        lambda S, Q, K: np.where(steps_apart(S) < 2, S, -np.inf)
    ),
    "dropout": attention(change_weights=at_random),
    "always NaN": attention(mix=lambda A, Q, K, V: A @ V * np.nan),
    "zeros": attention(mix=lambda A, Q, K, V: 0 * (A @ V)),
}  # fmt: skip


def layer(change=lambda **w: w, project=np.matmul, cut=None, attend=None, end=None):
    """Return a correct layer with one step exchanged."""
    attend = attend or mha.scaled_dot_product_attention

    def run(X, W_Q, W_K, W_V, W_O, n_heads, mask=None, *, is_causal=False):
        w = change(W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O)
        split, merge = cut or (mha.split_heads, mha.merge_heads)
        three = (split(project(X, w[f"W_{x}"]), n_heads) for x in "QKV")
        Y = merge(attend(*three, mask, is_causal=is_causal)) @ w["W_O"]
        return Y if end is None else end(X, Y)

    return run


def interleaved(x, n_heads):
    *leading, n, d = x.shape
    return (
        x.reshape(*leading, n, d // n_heads, n_heads).swapaxes(-1, -2).swapaxes(-2, -3)
    )


def in_groups(Q, K, V, mask, **options):
    K, V = (np.broadcast_to(x[..., :1, :, :], x.shape) for x in (K, V))
    return mha.scaled_dot_product_attention(Q, K, V, mask, **options)


LAYERS = {
    "query and key swapped": layer(lambda W_Q, W_K, **w: {"W_Q": W_K, "W_K": W_Q} | w),
    "values by W_K": layer(lambda **w: w | {"W_V": w["W_K"]}),
    "queries by W_V": layer(lambda **w: w | {"W_Q": w["W_V"]}),
    "all transposed": layer(lambda **w: {name: W.T for name, W in w.items()}),
    "W_O transposed": layer(lambda **w: w | {"W_O": w["W_O"].T}),
    "W_O twice": layer(lambda **w: w | {"W_O": w["W_O"] @ w["W_O"]}),
    "heads in turn": layer(cut=(interleaved, mha.merge_heads)),
    "heads reversed": layer(cut=(
        mha.split_heads, lambda x: mha.merge_heads(x[..., ::-1, :, :]))),
    "one head": layer(cut=(lambda x, n: x[..., None, :, :], lambda x: x[..., 0, :, :])),
    "one head for keys": layer(attend=in_groups),
    "first head alone": layer(cut=(
        mha.split_heads,
        lambda x: mha.merge_heads(x * np.eye(x.shape[-3])[0, :, None, None]))),
    "adds its input": layer(end=lambda X, Y: X + Y),
    "batch averaged": layer(
        end=lambda X, Y: Y if Y.ndim < 3 else 0 * Y + Y.mean(0, keepdims=True)),
    "projection of a softmax": layer(project=lambda X, W: np.tanh(X @ W)),
}  # fmt: skip


def encoder(**steps):
    """Return a correct encoder with one step exchanged."""
    return zoo.EncoderMember("own", steps)


def norms_swapped(X, weights, *args, **options):
    parts = ("gain_1", "gain_2"), ("bias_1", "bias_2")
    swapped = {x: weights[y] for a, b in parts for x, y in ((a, b), (b, a))}
    return mha.encoder_layer(X, {**weights, **swapped}, *args, **options)


def halved(*args, **options):
    Y, A = mha.multi_head_attention(*args, **options)
    return Y / 2, A


def rotated(X, W_Q, W_K, W_V, W_O, n_heads, mask, is_causal, **rest):
    attend = layer(attend=FUNCTIONS["rotary"])
    return attend(X, W_Q, W_K, W_V, W_O, n_heads, mask, is_causal=is_causal), None


def feeds_twice(x, *weights):
    return mha.feed_forward(mha.feed_forward(x, *weights), *weights)


def b_1_lost(x, W_1, b_1, *weights):
    return mha.feed_forward(x, W_1, None, *weights)


def gain_lost(x, gain=None, bias=None, eps=1e-5):
    return mha.layer_norm(x, None, bias, eps)


def backwards(X, layers, *args, **options):
    return mha.encoder(X, layers[::-1], *args, **options)


ENCODERS = {
    "norms swapped": encoder(encoder_layer=norms_swapped),
    "feeds twice": encoder(feed_forward=feeds_twice),
    "b_1 is lost": encoder(feed_forward=b_1_lost),
    "gain is lost": encoder(layer_norm=gain_lost),
    "layers backwards": encoder(encoder=backwards),
    "half of its attention": encoder(multi_head_attention=halved),
    "rotary": encoder(multi_head_attention=rotated),
}

OTHERS = {"function": FUNCTIONS, "layer": LAYERS, "encoder": ENCODERS}
OTHERS = [
    pytest.param(f, id=f"{k}, {n}") for k, x in OTHERS.items() for n, f in x.items()
]


# By hand


def test_the_sizes_tell_every_scale_from_every_other():
    """√d, d, √d_model, d_model, √n and n are six numbers."""
    for n, d, heads in _lookalike.SIZES:
        numbers = {x**p for x in (d, heads * d, n) for p in (0.5, 1)}
        assert len(numbers) == 6 and 1 not in numbers


def test_two_laws_broken_as_by_no_scale_are_no_evidence():
    """It breaks what `no_scale` breaks, and its numbers are others."""
    suspect = FUNCTIONS["too sharp"]
    both = ["scores_keep_unit_variance", "equals_reference"]
    report = laws.check(suspect, only=both)
    assert [f.law.slug for f in report.broken] == both
    assert report.looks_like is None
    report = laws.check(zoo.no_scale.attention, only=both)
    assert report.looks_like is zoo.no_scale


# Laws


@pytest.mark.parametrize("bug", OTHERS)
def test_nobody_is_named_for_a_bug_that_is_not_in_the_zoo(bug):
    assert named(bug) is None
    assert not is_right(bug)


def is_right(bug):
    """Whether it answers as correct attention does wherever it is compared."""
    subject = as_subject(bug)
    variant = subject.variants()[0]
    setting = _lookalike._setting(variant)
    right = zoo.ENCODERS[0] if variant.kind == "encoder" else zoo.right
    probes = _lookalike._probes(*setting[:4])
    pairs = [
        (_lookalike._answer(variant, p), _lookalike._theirs(right, setting, i))
        for i, p in enumerate(probes)
    ]
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    return not any(_lookalike._differ(a, b, _lookalike.WRONG) for a, b in both)


def inside(member, **options):
    return partial(zoo.EncoderMember(member.name, member.steps), **options)


# Where a member hides no score at all, an encoder's layer that hands no mask on is it.
SAME = {"mask_ignored": "mask_not_handed_on"}
PLACES = {
    "function": lambda member: member.attention,
    "layer": lambda member: member,
    "post-norm": partial(inside, norm_first=False),
    "pre-norm": partial(inside, norm_first=True),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("member", zoo.WRONG, ids=lambda member: member.name)
def test_a_member_is_named_itself_or_not_at_all(member, place):
    allowed = {None, member.name} | (
        {SAME.get(member.name)} if "norm" in place else set()
    )
    assert named(PLACES[place](member)) in allowed


@pytest.mark.parametrize("member", zoo.ENCODERS[1:], ids=lambda member: member.name)
def test_a_wrong_encoder_is_named_itself_or_not_at_all(member):
    assert named(member) == member.name
    assert named(member.layer) in {None, member.name}


def test_most_members_are_named_as_layers():
    found = [named(member) for member in zoo.WRONG]
    assert len([name for name in found if name]) > 0.7 * len(found)


@pytest.mark.parametrize(
    "right",
    [mha.scaled_dot_product_attention, mha.multi_head_attention, mha.encoder,
     mha.nn.MultiHeadAttention(6, 3), mha.nn.EncoderLayer(6, 3, 7)],
    ids=["function", "layer", "encoder", "module", "encoder layer"],
)  # fmt: skip
def test_a_right_one_is_never_named(right):
    assert named(right) is None


def test_a_second_bug_in_other_numbers_leaves_nobody_named():
    """Half of the output without a scale: neither bug alone gives these numbers."""

    def both(Q, K, V, mask=None):
        return zoo.no_scale.attention(Q, K, V, mask) / 2

    assert named(both) is None


def test_an_error_of_the_subject_compares_with_nothing():
    """It refuses some masks; on what it answers, it divides by √n."""

    def refuses(Q, K, V, mask=None):
        if mask is not None and len(mask) == 1:
            raise ValueError("one row is too few")
        return zoo.scale_sqrt_n.attention(Q, K, V, mask)

    assert named(refuses) == "scale_sqrt_n"


def test_a_causal_attention_with_rotary_positions_is_looked_up_without_an_error():
    def run(Q, K, V):
        return FUNCTIONS["rotary"](Q, K, V, is_causal=True)

    subject = as_subject(laws.Adapter(run, kind="attention", causal="built in"))
    assert _lookalike.lookalike(subject, EVERY_LAW) is None


@pytest.mark.parametrize("name", ["no_scale", "mask_inverted", "nan_on_empty_rows"])
def test_a_bug_on_tensors_is_named_as_one_on_arrays(name):
    member = getattr(zoo, name)

    def attend(query, key, value, attn_mask=None):
        assert isinstance(query, torch.Tensor)
        return member.attention(query, key, value, attn_mask)

    assert named(attend) == name


def test_a_bug_in_a_declared_design_is_not_named_after_another():
    subject = as_subject(zoo.no_scale.attention, laws.Conventions(positional=True))
    assert _lookalike.lookalike(subject, EVERY_LAW) is None


def test_nothing_is_named_where_the_broken_laws_are_the_declared_ones():
    both = ["scores_keep_unit_variance", "equals_reference"]
    report = laws.check(zoo.no_scale, breaks=both, because="the scale is part of W_Q")
    assert report.looks_like is None
    assert "behaves like" not in repr(report)


@pytest.mark.parametrize("subject", [zoo.no_scale.attention, zoo.no_scale, mha.encoder])
def test_the_search_takes_less_than_half_a_second(subject):
    start = time.process_time()
    named(subject)
    assert time.process_time() - start < 0.5
