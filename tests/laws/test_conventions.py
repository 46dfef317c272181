"""Conventions: what differs between implementations is said in one word."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import mha
import mha.nn
from mha import laws, zoo
from mha.laws.subjects import Broke, NotApplicable, as_subject
from tests.laws.reports import broken, unasked

SIZES = (2, 3, 5, 7)
MASKED = ["padding_changes_nothing", "masked_weights_are_zero", "equals_reference"]


def attend(Q, K, V, mask=None):
    return mha.scaled_dot_product_attention(Q, K, V, mask)


def hides(Q, K, V, mask=None):
    return attend(Q, K, V, None if mask is None else ~mask)


def adds(query, key, value, attn_bias=None):
    S = query @ key.mT / query.shape[-1] ** 0.5
    if attn_bias is not None:
        assert attn_bias.dtype == query.dtype
        S = S + attn_bias
    return mha.masked_softmax(S, S > -np.inf) @ value


def counts(Q, K, V, valid_lens=None):
    """As in a well known book: (batch, n, d), and the visible keys are counted."""
    _b, _n, _d = Q.shape
    if valid_lens is None:
        return attend(Q, K, V)
    assert valid_lens.shape == (len(Q),)
    return attend(Q, K, V, np.arange(K.shape[1]) < valid_lens[:, None, None])


def behind(query, key, value, bias=None, mask=None, *, is_causal=False):
    """As in JAX: (b, n, h, d), values as wide as keys, groups that share keys."""
    b, n, h, d = query.shape
    assert value.shape == key.shape
    each = h // key.shape[2]
    Q, K, V = (x.swapaxes(1, 2) for x in (query, key, value))
    K, V = (np.repeat(x, each, 1) for x in (K, V))
    assert mask is None or mask.ndim == 4
    Y = mha.scaled_dot_product_attention(Q, K, V, mask, is_causal=is_causal)
    return Y.swapaxes(1, 2).reshape(b, n, h, d)


def with_scale(scale):
    return lambda Q, K, V, mask=None: attend(Q * Q.shape[-1] ** 0.5 * scale, K, V, mask)


def groups(n_kv_heads, interleaved=False):
    """Return a layer in which groups of queries share keys and values."""

    def run(X, weights, n_heads, mask=None, is_causal=False):
        d_k = X.shape[-1] // n_heads
        assert weights["W_K"].shape == (X.shape[-1], n_kv_heads * d_k)
        whose = np.arange(n_heads) * n_kv_heads // n_heads
        whose = np.arange(n_heads) % n_kv_heads if interleaved else whose
        columns = (whose[:, None] * d_k + np.arange(d_k)).ravel()
        shared = {n: W[..., columns] for n, W in weights.items() if n[-1] in "KV"}
        return mha.multi_head_attention(
            X, **(weights | shared), n_heads=n_heads, mask=mask, is_causal=is_causal
        )

    return run


def enabled(query, key, value, mask=None):
    return F.scaled_dot_product_attention(query, key, value, mask, enable_gqa=True)


def unscaled_layer(X, W_Q, W_K, W_V, W_O, n_heads, mask=None, *, is_causal=False):
    W_Q = W_Q * (W_Q.shape[1] / n_heads) ** 0.5
    options = {"mask": mask, "is_causal": is_causal}
    return mha.multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, **options)


def unscaled_encoder(X, layers, n_heads, mask=None, *, is_causal=False):
    layers = [
        w | {n: w[n] * (len(w["W_Q"]) / n_heads) ** 0.5 for n in ("W_Q", "b_Q")}
        for w in layers
    ]
    return mha.encoder(X, layers, n_heads, mask, is_causal=is_causal)


def in_half(Q, K, V, mask=None):
    """A function that sums in the dtype that it gets, on tensors."""
    S = (Q @ K.mT).mul(Q.shape[-1] ** -0.5)
    return F.scaled_dot_product_attention(Q, K, V, mask) if S.ndim else S


WHOLE = groups(2)
LAWFUL = {
    "True hides": (hides, {"mask_true": "hide"}),
    "added, by its name": (adds, {}),
    "lengths, by their name": (counts, {}),
    "(b, n, h, d)": (behind, {"layout": "bnhd"}),
    "(b, n, h, d) in groups": (behind, {"layout": "bnhd", "n_kv_heads": 3}),
    "torch in groups": (enabled, {"n_kv_heads": 2}),
    "a scale of 1": (with_scale(1.0), {"scale": 1.0}),
    "muP": (lambda Q, K, V: attend(Q / Q.shape[-1] ** 0.5, K, V),
            {"scale": lambda d_k: 1 / d_k}),
    "layer with a scale of 1": (unscaled_layer, {"scale": 1}),
    "encoder with a scale of 1": (unscaled_encoder, {"scale": 1}),
    "module": (mha.nn.MultiHeadAttention(6, 3), {"mask_true": "attend"}),
    "bfloat16": (in_half, {"dtype": "bfloat16"}),
    "float16": (in_half, {"dtype": "float16"}),
    "float32": (in_half, {"dtype": "float32"}),
    "float32 in a layer": (mha.multi_head_attention, {"dtype": "float32"}),
    "one group": (laws.Adapter(groups(1), n_kv_heads=1, biases=True), {}),
    "two groups": (laws.Adapter(WHOLE, biases=True), {"n_kv_heads": 2}),
    "three groups": (laws.Adapter(groups(3), n_kv_heads=3), {}),
}  # fmt: skip


def told(target, **words):
    return as_subject(target, laws.Conventions(**words))


# By hand


@pytest.mark.parametrize(
    ("mask_shape", "shape"),
    [
        ("qk", (5, 7)), ("1qk", (1, 5, 7)), ("bqk", (2, 5, 7)), ("b1qk", (2, 1, 5, 7)),
        ("bhqk", SIZES), ("11qk", (1, 1, 5, 7)), ("hqk", (3, 5, 7)),
    ],
)  # fmt: skip
def test_a_mask_has_the_axes_that_are_said(mask_shape, shape):
    mask = np.tri(5, 7, dtype=bool)
    said = laws.Conventions(mask_shape=mask_shape)
    handed = said.mask_of(mask, SIZES, "qk", "float64")
    assert handed.shape == shape
    np.testing.assert_array_equal(np.broadcast_to(handed, shape), mask & handed)


def test_padding_needs_no_axis_of_queries():
    mask = np.arange(7) < np.array([7, 4])[:, None, None, None]
    handed = {
        shape: laws.Conventions(mask_shape=shape).mask_of(mask, SIZES, "qk", float)
        for shape in ("bk", "b11k", "lengths")
    }
    assert handed["bk"].tolist() == mask[:, 0, 0].tolist()
    assert handed["b11k"].shape == (2, 1, 1, 7)
    assert handed["lengths"].tolist() == [7, 4]


@pytest.mark.parametrize(
    ("mask_shape", "why"), [("bk", "no axis q"), ("lengths", "more than padding")]
)
def test_what_has_no_place_is_not_asked(mask_shape, why):
    said = laws.Conventions(mask_shape=mask_shape)
    with pytest.raises(NotApplicable, match=why):
        said.mask_of(np.tri(5, 7, dtype=bool), SIZES, "qk", "float64")


def test_three_ways_to_say_what_is_hidden():
    mask = np.array([[True, False]])
    ways = {
        way: laws.Conventions(mask_true=way).mask_of(
            mask, (1, 1, 1, 2), "qk", "float32"
        )
        for way in ("attend", "hide", "added")
    }
    assert ways["attend"] is mask
    assert ways["hide"].tolist() == [[False, True]]
    assert ways["added"].tolist() == [[0.0, -np.inf]]
    assert ways["added"].dtype == np.float32


@pytest.mark.parametrize(
    ("batch_first", "front"), [(None, {()}), (True, {(1, 1), (2, 1), (5, 1)})]
)
def test_an_adapter_gets_masks_of_one_rank_whole(batch_first, front):
    seen = set()

    def run(X, weights, n_heads, mask=None):
        assert X.ndim == (3 if batch_first else 2)
        if mask is not None:
            seen.add(mask.shape)
        return zoo.right(X, n_heads=n_heads, mask=mask, **weights)

    adapter = laws.Adapter(run, batch_first=batch_first)
    for law in MASKED:
        getattr(laws, law).check(adapter)
    assert {shape[:-2] for shape in seen} == front
    assert all(shape[-2] == shape[-1] for shape in seen)


def test_a_mask_of_three_axes_is_one_for_each_sequence():
    """With as many heads as sequences it would broadcast, to the wrong axis."""
    seen = []

    def run(X, weights, n_heads, mask=None):
        seen.append(mask)
        return X

    X, mask = np.ones((2, 3, 4)), np.stack([np.eye(3), np.ones((3, 3))]).astype(bool)
    weights = dict.fromkeys(("W_Q", "W_K", "W_V", "W_O"), np.eye(4))
    as_subject(laws.Adapter(run, batch_first=True)).layer(X, weights, 2, mask)
    assert seen[-1].tolist() == mask[:, None].tolist()


def test_what_is_said_later_stands_above_the_adapter_and_that_above_a_name():
    adapter = laws.Adapter(
        lambda Q, K, V, attn_bias=None: V, kind="attention", mask_true="hide"
    )
    assert as_subject(adapter).said.mask_true == "hide"
    assert told(adapter, mask_true="attend").said.mask_true == "attend"
    assert told(as_subject(adapter), causal="top-left").said.said() == {
        "mask_true": "hide", "causal": "top-left",
    }  # fmt: skip
    assert as_subject(adds).said.mask_true == "added"


@pytest.mark.parametrize(
    ("name", "unread"),
    [("key_padding_mask", True), ("attention_bias", True), ("src_lens", True),
     ("mask", False), ("b_K", False)],
)  # fmt: skip
def test_an_argument_that_looks_like_a_mask_and_is_not_read_is_named(name, unread):
    space = {"attend": attend}
    exec(f"def f(Q, K, V, {name}=None): return attend(Q, K, V)", space)
    subject = as_subject(space["f"])
    assert subject.unread_masks == [name] * unread
    if unread:
        finding = laws.self_only_mask.check(subject)
        assert f"what its {name} means is not known: say mask_true" in finding.why


def test_one_word_makes_it_read():
    def padded(Q, K, V, key_padding_mask=None):
        _b, _n, _d = Q.shape
        shown = None if key_padding_mask is None else ~key_padding_mask[:, None]
        return attend(Q, K, V, shown)

    assert as_subject(padded).unread_masks == ["key_padding_mask"]
    subject = told(padded, mask_true="hide", mask_shape="bk")
    assert subject.unread_masks == []
    report = laws.check(subject)
    assert report
    assert "padding_changes_nothing" not in unasked(report)


def test_beside_a_mask_that_is_read_another_is_named_until_a_word_is_said():
    def both(Q, K, V, mask=None, key_padding_mask=None):
        return attend(Q, K, V, mask)

    assert as_subject(both).unread_masks == ["key_padding_mask"]
    assert told(both, mask_true="attend").unread_masks == []


def test_what_was_tried_is_remembered_by_all_twins():
    subject = as_subject(mha.multi_head_attention)
    assert subject.trace.lengths == set()
    X = np.eye(3)
    subject.borrowing().attend(X[:2], X, X)
    assert subject.trace.lengths == {2, 3}
    assert subject.trace.batches == {1}
    assert subject.trace.dtypes == {"float64"}
    assert subject.takes_batch
    assert subject.trace.batches == {1}


# Errors


def fails(Q, K, V, mask=None):
    raise ValueError("a long story " * 20 + "with an end")


def test_an_error_keeps_all_its_text_and_the_line_of_your_own_code():
    subject = as_subject(attend).but(target=fails)
    with pytest.raises(Broke) as caught:
        subject.attend(np.eye(2), np.eye(2), np.eye(2))
    error = caught.value
    assert error.text.endswith("with an end")
    assert len(str(error)) <= 160
    line = fails.__code__.co_firstlineno + 1
    assert error.where == f"test_conventions.py:{line}"


def test_the_error_on_tensors_is_shown_beside_that_on_arrays():
    def on_tensors(Q, K, V):
        Q = torch.relu(Q)
        raise RuntimeError("shapes of tensors")

    line = on_tensors.__code__.co_firstlineno + 2
    expected = rf"Tensors: RuntimeError: shapes of tensors \(test_conventions.py:{line}"
    with pytest.raises(TypeError, match=rf"Arrays: TypeError: relu.* {expected}"):
        as_subject(on_tensors)


# Laws


@pytest.mark.parametrize("name", LAWFUL)
def test_what_is_correct_satisfies_every_law_once_its_word_is_said(name):
    target, words = LAWFUL[name]
    report = laws.check(told(target, **words))
    assert broken(report) == []
    assert report


@pytest.mark.parametrize(
    ("target", "words", "law"),
    [
        (hides, {}, "self_only_mask"),
        (attend, {"mask_true": "hide"}, "self_only_mask"),
        (with_scale(1.0), {}, "scores_keep_unit_variance"),
        (with_scale(1.0), {"scale": 0.5}, "scores_keep_unit_variance"),
        (attend, {"scale": 1.0}, "equals_reference"),
        (in_half, {"dtype": "bfloat16", "scale": 0.9}, "equals_reference"),
        (mha.multi_head_attention, {"causal": "built in"}, "future_leaves_past_alone"),
        (laws.Adapter(groups(2, interleaved=True)), {"n_kv_heads": 2},
         "head_owns_its_columns"),
    ],
)  # fmt: skip
def test_a_word_that_is_untrue_is_found_out(target, words, law):
    assert law in broken(laws.check(told(target, **words)))


def test_a_tolerance_forgives_what_is_smaller_and_nothing_else():
    def rounded(Q, K, V):
        return attend(Q, K, V).round(3)

    assert "equals_reference" in broken(laws.check(rounded))
    assert laws.check(told(rounded, tolerance=0.01))
    assert not laws.check(told(rounded, tolerance=0.0001))
    assert not laws.check(told(zoo.no_scale, tolerance=0.001))


def first_length_for_all(Q, K, V, valid_lens=None):
    first = None if valid_lens is None else np.repeat(valid_lens[:1], len(Q))
    return counts(Q, K, V, first)


def first_mask_for_all(Q, K, V, mask=None):
    _b, _n, _d = Q.shape
    return attend(Q, K, V, None if mask is None else mask[:1])


@pytest.mark.parametrize("target", [first_length_for_all, first_mask_for_all])
def test_a_function_of_a_batch_without_heads_is_asked_about_its_batch(target):
    assert "batch_masks_reach_their_own" in broken(laws.check(target))


def test_a_function_of_one_sequence_is_not_asked_about_a_batch():
    one = lambda Q, K, V: attend(Q, K, V) if Q.ndim == 2 else Q[0]  # noqa: E731
    assert "batches_and_heads_stay_apart" in unasked(laws.check(one))


def in_float32(query, key, value, attn_mask=None):
    assert query.is_floating_point()
    given = query.float(), key.float(), value.float()
    S = given[0] @ given[1].mT / query.shape[-1] ** 0.5
    if attn_mask is not None:
        S = S.masked_fill(~attn_mask, -torch.inf)
    return S.softmax(-1).nan_to_num().to(query.dtype) @ value


@pytest.mark.parametrize("words", [{"dtype": "float32"}, {"tolerance": 1e-4}])
def test_digits_that_float32_does_not_have_are_not_asked(words):
    lost = {"every_dtype_gives_the_numbers"}
    assert lost <= set(broken(laws.check(in_float32)))
    assert not broken(laws.check(in_float32, **words))


def for_all_heads(X, weights, n_heads, mask=None):
    mask = None if mask is None else mask[:, None] != 0
    return mha.multi_head_attention(X, **weights, n_heads=n_heads, mask=mask)


def test_a_mask_of_numbers_has_the_axes_that_are_said():
    given = laws.Adapter(for_all_heads, batch_first=True, mask_shape="bqk")
    report = laws.check(given)
    assert not broken(report) and "integer_masks_hide" not in unasked(report)


def test_the_report_says_which_axes_the_masks_had():
    given = laws.Adapter(for_all_heads, batch_first=True)
    assert "; masks b1qk, bhqk; " in laws.check(given).inputs
    assert "; masks bqk; " in laws.check(given, mask_shape="bqk").inputs


def of_another_shape(Q, K, V, mask=None):
    return attend(Q, K, V) if mask is None or mask.ndim == 2 else attend(Q, K, V)[None]


def test_an_answer_of_another_shape_is_no_refusal():
    assert "batch_masks_reach_their_own" in broken(laws.check(of_another_shape))


def turned(X, weights, n_heads, mask=None):
    """Turn each query and each key by its position, as rotary positions do."""
    _b, n, _d = X.shape
    weights, Y = dict(weights), 0
    d_k = weights["W_Q"].shape[1] // n_heads
    heads = np.arange(n_heads) * weights["W_K"].shape[1] // d_k // n_heads
    turn = np.exp(1j * np.arange(n))[:, None]
    for r, group in enumerate(heads):
        Q, K, V = (
            X @ weights[name][:, i * d_k : (i + 1) * d_k]
            for name, i in (("W_Q", r), ("W_K", group), ("W_V", group))
        )
        S = ((Q * turn) @ (K * turn).conj().mT).real / d_k**0.5
        W = weights["W_O"][r * d_k : (r + 1) * d_k]
        Y = Y + mha.masked_softmax(S, mask if mask is None else mask[:, 0]) @ V @ W
    return Y


def test_groups_of_turned_keys_are_not_compared_with_keys_that_are_not_turned():
    given = laws.Adapter(turned, batch_first=True, n_kv_heads=2, positional=True)
    report = laws.check(given, breaks=["equals_reference"], because="rotary positions")
    assert "groups_share_their_keys" not in broken(report) + unasked(report)


def without_slopes(query, key, value):
    if query.requires_grad:
        raise NotImplementedError("no backward on this device")
    return F.scaled_dot_product_attention(query, key, value)


def test_to_be_not_implemented_is_no_mistake():
    report = laws.check(without_slopes)
    assert not broken(report) and "gradients_are_slopes" in unasked(report)


def test_lengths_are_asked_of_padding_only():
    report = laws.check(counts)
    assert "padding_changes_nothing" not in unasked(report)
    assert {"self_only_mask", "future_leaves_past_alone"} <= set(unasked(report))


def first_keys_with_minus_1e9(Q, K, V, valid_lens=None):
    S = Q @ K.swapaxes(1, 2) / Q.shape[-1] ** 0.5
    if valid_lens is not None:
        S = np.where(np.arange(K.shape[1]) < valid_lens[:, None, None], S, -1e9)
    return mha.softmax(S) @ V


def test_a_sequence_of_length_0_is_asked_about_too():
    report = laws.check(first_keys_with_minus_1e9)
    assert broken(report) == ["empty_rows_give_zero"]
    assert not broken(laws.check(counts))


# Refusals


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ({"mask_true": True}, "mask_true must be one of 'attend', 'hide', 'added'"),
        ({"mask_shape": "kq"}, 'mask_shape must be "lengths", or b, h, q, k'),
        ({"mask_shape": "b1q1k"}, "mask_shape must be"),
        ({"layout": "nbhd"}, "layout must be one of"),
        ({"n_kv_heads": 0}, "n_kv_heads must be an integer from 1 on, got 0"),
        ({"scale": -1.0}, "scale must be a number above 0"),
        ({"scale": "1"}, "scale must be a number above 0"),
        ({"causal": True}, "causal must be one of"),
        ({"tolerance": -1}, "tolerance must be a number from 0 on"),
        ({"dtype": "int8"}, "dtype must be one of"),
        ({"positional": 1}, "positional must be True or False"),
    ],
)
def test_a_word_that_there_is_not_is_refused(words, rule):
    with pytest.raises(ValueError, match=rule):
        laws.Conventions(**words)
    with pytest.raises(ValueError, match=rule):
        laws.Adapter(attend, **words)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (mha.multi_head_attention, {"layout": "bnhd"}),
        (mha.encoder, {"n_kv_heads": 2}),
        (mha.nn.EncoderLayer(6, 2, 7), {"dtype": "bfloat16"}),
    ],
)
def test_a_word_for_another_kind_is_refused(target, words):
    with pytest.raises(ValueError, match="attention functions"):
        told(target, **words)
