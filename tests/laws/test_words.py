"""What differs between implementations is said in a word, or put into an adapter."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import mha
import mha.nn
from mha import laws, zoo
from tests.laws.reports import broken, unasked

SIZES = (2, 3, 5, 7)
FOUR = ("W_Q", "W_K", "W_V", "W_O")
MASKED = ["padding_changes_nothing", "masked_weights_are_zero", "equals_reference"]
# tests/weekly asks all laws.
FEW = [
    *MASKED, "self_only_mask", "scores_keep_unit_variance", "head_owns_its_columns",
    "future_leaves_past_alone", "every_dtype_gives_the_numbers",
]  # fmt: skip


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
    _b, _n, _d = Q.shape
    if valid_lens is None:
        return attend(Q, K, V)
    assert valid_lens.shape == (len(Q),)
    return attend(Q, K, V, np.arange(K.shape[1]) < valid_lens[:, None, None])


def behind(query, key, value, bias=None, mask=None, *, is_causal=False):
    """As in JAX: (b, n, h, d), values as wide as keys, groups that share keys."""
    b, n, h, d = query.shape
    assert value.shape == key.shape
    Q, K, V = (x.swapaxes(1, 2) for x in (query, key, value))
    K, V = (np.repeat(x, h // key.shape[2], 1) for x in (K, V))
    Y = mha.scaled_dot_product_attention(Q, K, V, mask, is_causal=is_causal)
    return Y.swapaxes(1, 2).reshape(b, n, h, d)


def with_scale(scale):
    return lambda Q, K, V, mask=None: attend(Q * Q.shape[-1] ** 0.5 * scale, K, V, mask)


def groups(n_kv, interleaved=False):
    """Return a layer in which groups of queries share keys and values."""

    def run(X, weights, n_heads, mask=None, is_causal=False):
        d_k = weights["W_Q"].shape[1] // n_heads
        assert weights["W_K"].shape == (X.shape[-1], n_kv * d_k)
        whose = np.arange(n_heads) * n_kv // n_heads
        whose = np.arange(n_heads) % n_kv if interleaved else whose
        columns = (whose[:, None] * d_k + np.arange(d_k)).ravel()
        shared = {n: W[..., columns] for n, W in weights.items() if n[-1] in "KV"}
        return mha.multi_head_attention(
            X, **(weights | shared), n_heads=n_heads, mask=mask, is_causal=is_causal
        )

    return run


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


def on_tensors(Q, K, V, mask=None):
    return F.scaled_dot_product_attention(torch.as_tensor(Q) @ torch.eye(
        Q.shape[-1], dtype=Q.dtype), K, V, mask)  # fmt: skip


def padded(query, key, value, key_padding_mask=None):
    _b, _n, _d = query.shape
    shown = None if key_padding_mask is None else ~key_padding_mask[:, None]
    return attend(query, key, value, shown)


def takes_all(query, key, value, **options):
    return F.scaled_dot_product_attention(query, key, value, **options)


def named_and_all(query, key, value, attn_mask=None, **options):
    return F.scaled_dot_product_attention(query, key, value, attn_mask)


def fused(X, weights, n_heads, scale=None):
    """One matrix for Q, K and V, as in GPT: always causal, (batch, n, d)."""
    W = torch.cat([weights[name] for name in FOUR[:3]], 1)
    parts = (X @ W).chunk(3, 2)
    three = (x.unflatten(-1, (n_heads, -1)).transpose(1, 2) for x in parts)
    Y = F.scaled_dot_product_attention(*three, is_causal=True, scale=scale)
    return Y.transpose(1, 2).flatten(2) @ weights["W_O"]


def unscaled_fused(X, weights, n_heads):
    return fused(X, weights, n_heads, scale=1.0)


def sideways(x, weights, n_heads, mask=None):
    """(n, batch, d) in and out; True hides."""
    shown = None if mask is None else ~mask
    four = [weights[name] for name in FOUR]
    Y = mha.multi_head_attention(np.moveaxis(x, 0, 1), *four, n_heads, shown)
    return np.moveaxis(Y, 0, 1)


def block(x, weights, n_heads):
    options = {"activation": "gelu", "norm_first": True, "is_causal": True}
    return mha.encoder_layer(x, weights, n_heads, **options)


def adapted(run, **words):
    return laws.Adapter(run, **words)


GPT = {"batch_first": True, "causal": "built in"}
LAWFUL = {
    "True hides": (hides, {"mask_true": "hide"}),
    "added, by its name": (adds, {}),
    "lengths, by their name": (counts, {}),
    "padding alone": (padded, {"mask_true": "hide", "mask_shape": "bk"}),
    "(b, n, h, d) in groups": (behind, {"layout": "bnhd", "n_kv_heads": 3}),
    "a scale of 1": (with_scale(1.0), {"scale": 1.0}),
    "muP": (lambda Q, K, V: attend(Q / Q.shape[-1] ** 0.5, K, V),
            {"scale": lambda d_k: 1 / d_k}),
    "layer with a scale of 1": (unscaled_layer, {"scale": 1}),
    "encoder with a scale of 1": (unscaled_encoder, {"scale": 1}),
    "bfloat16": (on_tensors, {"dtype": "bfloat16"}),
    "float32": (on_tensors, {"dtype": "float32"}),
    "one group": (adapted(groups(1), n_kv_heads=1, biases=True), {}),
    "two groups": (adapted(groups(2), biases=True), {"n_kv_heads": 2}),
    "**options": (takes_all, {}),
    "attn_mask and **options": (named_and_all, {}),
    "fused and causal": (adapted(fused, **GPT), {}),
    "sideways": (adapted(sideways, batch_first=False, mask_true="hide"), {}),
    "a block": (adapted(block, kind="encoder_layer", causal="built in", biases=True),
                {}),
}  # fmt: skip


@pytest.mark.parametrize("name", LAWFUL)
def test_what_is_right_breaks_no_law_once_its_word_is_said(name, asked=FEW):
    target, words = LAWFUL[name]
    report = laws.check(target, asked, **words)
    assert broken(report) == []
    assert report and not report.unread
    # Options that are handed on are asked about masks.
    assert "options" not in name or laws.self_only_mask.check(target).holds


@pytest.mark.parametrize(
    ("target", "words", "law"),
    [
        (hides, {}, "self_only_mask"),
        (attend, {"mask_true": "hide"}, "self_only_mask"),
        (with_scale(1.0), {"scale": 0.5}, "scores_keep_unit_variance"),
        (attend, {"scale": 1.0}, "equals_reference"),
        (mha.multi_head_attention, {"causal": "built in"}, "future_leaves_past_alone"),
        (adapted(groups(2, interleaved=True)), {"n_kv_heads": 2},
         "head_owns_its_columns"),
        (mha.encoder, {"final_norm": True}, "equals_reference"),
    ],
)  # fmt: skip
def test_a_word_that_is_untrue_is_found_out(target, words, law):
    assert law in broken(laws.check(target, [law], **words))


NAMED = pytest.mark.parametrize(
    ("run", "words", "name"),
    [(unscaled_fused, GPT, "no_scale"),
     (sideways, {"batch_first": False}, "mask_inverted")],
)  # fmt: skip


@NAMED
def test_a_bug_in_an_adapter_is_named(run, words, name, asked=FEW[:5]):
    report = laws.check(adapted(run, **words), asked)
    assert report.looks_like is getattr(zoo, name)


@pytest.mark.parametrize(
    ("mask_shape", "shape"),
    [
        ("qk", (5, 7)), ("1qk", (1, 5, 7)), ("bqk", (2, 5, 7)), ("b1qk", (2, 1, 5, 7)),
        ("bhqk", SIZES), ("11qk", (1, 1, 5, 7)), ("hqk", (3, 5, 7)),
    ],
)  # fmt: skip
def test_a_mask_has_the_axes_that_are_said(mask_shape, shape):
    mask = np.tri(5, 7, dtype=bool)
    handed = laws.Conventions().mask_of(mask, SIZES, mask_shape, "float64")
    assert handed.shape == shape
    np.testing.assert_array_equal(np.broadcast_to(handed, shape), mask & handed)


def test_padding_needs_no_axis_of_queries_and_a_square_mask_does():
    mask = np.arange(7) < np.array([7, 4])[:, None, None, None]
    said = laws.Conventions()
    assert said.mask_of(mask, SIZES, "bk", float).tolist() == mask[:, 0, 0].tolist()
    assert said.mask_of(mask, SIZES, "lengths", float).tolist() == [7, 4]
    for axes, why in (("bk", "no axis q"), ("lengths", "more than padding")):
        with pytest.raises(laws.NotApplicable, match=why):
            said.mask_of(np.tri(5, 7, dtype=bool), SIZES, axes, float)


def test_three_ways_to_say_what_is_hidden():
    mask = np.array([[True, False]])
    ways = {
        way: laws.Conventions(mask_true=way).mask_of(mask, (1, 1, 1, 2), "qk", "f4")
        for way in ("attend", "hide", "added")
    }
    assert ways["attend"] is mask
    assert ways["hide"].tolist() == [[False, True]]
    assert ways["added"].tolist() == [[0.0, -np.inf]]
    assert ways["added"].dtype == np.float32


def test_what_is_said_later_stands_above_the_adapter_and_that_above_a_name():
    adapter = laws.Adapter(
        lambda Q, K, V, attn_bias=None: V, kind="attention", mask_true="hide"
    )
    said = laws.Conventions(mask_true="attend")
    assert laws.as_subject(adapter).said.mask_true == "hide"
    assert laws.as_subject(adapter, said).said.mask_true == "attend"
    assert laws.as_subject(adds).said.mask_true == "added"


@pytest.mark.parametrize(
    ("name", "unread"),
    [("key_padding_mask", True), ("attention_bias", True), ("src_lens", True),
     ("mask", False), ("b_K", False)],
)  # fmt: skip
def test_an_argument_that_looks_like_a_mask_and_is_not_read_is_named(name, unread):
    space = {"attend": attend}
    exec(f"def f(Q, K, V, {name}=None): return attend(Q, K, V)", space)
    report = laws.check(space["f"], ["self_only_mask"])
    assert list(report.unread) == [name] * unread
    if unread:
        (why,) = report.unasked
        assert f"what its {name} means is not known: say mask_true" in why
        with pytest.raises(AssertionError, match=f"{name} looks like a mask"):
            laws.assert_lawful(space["f"])


def test_an_adapter_is_handed_what_it_has_a_place_for():
    seen = []

    def run(X, weights, n_heads, *, mask, is_causal):
        seen.append((sorted(weights), X.shape, is_causal))
        assert mask is None or mask.dtype == bool
        return zoo.right(X, n_heads=n_heads, mask=mask, is_causal=is_causal, **weights)

    assert laws.check(laws.Adapter(run), MASKED)
    assert {tuple(names) for names, *_ in seen} == {tuple(sorted(FOUR))}
    assert {causal for *_, causal in seen} == {False, True}


@pytest.mark.parametrize(
    ("batch_first", "shape"), [(None, (3, 2)), (True, (1, 3, 2)), (False, (3, 1, 2))]
)
def test_tokens_come_in_the_layout_that_is_asked_for(batch_first, shape):
    seen = set()

    def run(X, weights, n_heads):
        seen.add(X.shape)
        return 2 * X

    subject = laws.as_subject(laws.Adapter(run, batch_first=batch_first))
    Y = subject.layer(np.ones((3, 2)), dict.fromkeys(FOUR, np.eye(2)), 1)
    assert (Y == 2).all() and shape in seen


def test_the_error_on_tensors_is_shown_beside_that_on_arrays():
    def tensors(Q, K, V):
        Q = torch.relu(Q)
        raise RuntimeError("shapes of tensors")

    line = tensors.__code__.co_firstlineno + 2
    expected = rf"Tensors: RuntimeError: shapes of tensors \(test_words.py:{line}"
    with pytest.raises(TypeError, match=rf"Arrays: TypeError: relu.* {expected}"):
        laws.check(tensors)


def test_lengths_are_asked_of_padding_only():
    left = unasked(laws.check(counts))
    assert "padding_changes_nothing" not in left
    assert {"self_only_mask", "future_leaves_past_alone"} <= set(left)


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ({"mask_true": True}, "mask_true must be one of 'attend', 'hide', 'added'"),
        ({"mask_shape": "kq"}, 'mask_shape must be "lengths", or b, h, q, k'),
        ({"layout": "nbhd"}, "layout must be one of"),
        ({"n_kv_heads": 0}, "n_kv_heads must be an integer from 1 on, got 0"),
        ({"n_heads": 1.5}, "n_heads must be an integer"),
        ({"scale": -1.0}, "scale must be a number above 0"),
        ({"causal": True}, "causal must be one of"),
        ({"tolerance": -1}, "tolerance must be a number from 0 on"),
        ({"dtype": "int8"}, "dtype must be one of"),
        ({"positional": 1}, "positional must be True or False"),
    ],
)
def test_a_word_that_there_is_not_is_refused(words, rule):
    for kind in laws.Conventions, lambda **w: laws.Adapter(attend, **w):
        with pytest.raises(ValueError, match=rule):
            kind(**words)


@pytest.mark.parametrize(
    ("target", "words", "error"),
    [
        (mha.multi_head_attention, {"layout": "bnhd"}, ValueError),
        (mha.encoder, {"n_kv_heads": 2}, ValueError),
        (lambda x: x, {}, TypeError),
        (torch.nn.Linear, {}, TypeError),
        (3, {}, TypeError),
    ],
)
def test_what_cannot_be_checked_is_refused(target, words, error):
    with pytest.raises(error, match="attention function"):
        laws.check(target, **words)


@pytest.mark.parametrize("run", [None, 3, torch.nn.Linear])
def test_an_adapter_around_no_function_is_refused(run):
    with pytest.raises(TypeError, match="run must be a function, got"):
        laws.Adapter(run)
