"""The chain of exercises that ends in an encoder of one's own: `my_mha_start.py`.

The file that a learner fills in imports its checks from here, for `report` and pytest.
"""

import dataclasses

import numpy as np
import pytest

import mha
from exercises import Exercise, chapter, random_arrays, section, slips_of_the_zoo
from exercises.encoder_layer import normalise_tokens
from exercises.masks import safe_masked_softmax
from exercises.multi_head import many_heads
from exercises.real_task import stress_scores
from exercises.real_task import weights_of_a_layer as _weights
from exercises.softmax import stable_softmax
from exercises.split import to_heads
from mha import zoo

_ALL = tuple(step for step in vars(mha).values() if callable(step))


def _without(*names, value=0):
    """Return an encoder layer that takes `value` for these weights."""
    return lambda X, weights, n_heads, mask: mha.encoder_layer(
        X, weights | {n: value + 0 * weights[n] for n in names}, n_heads, mask
    )


def _of_the_zoo(member):
    return lambda X, layers, n_heads, mask: member(X, layers, n_heads, mask)


def _causal(X, layers, n_heads, **options):
    options = {"is_causal": True, "norm_first": True} | options
    return mha.encoder(X, layers, n_heads, **options)


def _in_blocks(change):
    """Return attention in blocks whose keys and values are changed before."""

    def attend(Q, K, V, block_size):
        K, V = change(K, V, block_size)
        return mha.scaled_dot_product_attention(Q, K, V)

    return attend


def _whole_blocks(K, V, size):
    n = max(K.shape[-2] // size * size, 1)
    return K[..., :n, :], V[..., :n, :]


def _rescaling(mix):
    """Return attention in blocks that never rescales its total, or neither sum."""

    def attend(Q, K, V, block_size):
        top, total, mixed = np.full((*Q.shape[:-1], 1), -np.inf), 0, 0
        for start in range(0, K.shape[-2], block_size):
            keys = np.s_[..., start : start + block_size, :]
            S = Q @ K[keys].swapaxes(-1, -2) / K.shape[-1] ** 0.5
            above = np.maximum(top, S.max(-1, keepdims=True))
            E, old, top = np.exp(S - above), np.exp(top - above), above
            total = total + E.sum(-1, keepdims=True)
            mixed = (old if mix else 1) * mixed + E @ V[keys]
        return mixed / total

    return attend


_Q, _K, _V = random_arrays((2, 3, 5), (2, 7, 5), (2, 7, 2), seed=1)
_OPEN = np.random.default_rng(2).random((3, 7)) < 0.6
_OPEN[1] = False  # a query that may attend to nothing
_X, _BATCH = random_arrays((3, 4), (2, 3, 4), seed=3)
_TRI = np.tri(3, dtype=bool)
_LAYERS = [_weights(4), _weights(5)]

_attention = Exercise(
    task="attention with a mask, for any axes in front",
    right=mha.scaled_dot_product_attention,
    cases=(
        (np.array([[2.0, 1.0]]), np.eye(2), np.array([[3.0], [5.0]]), None),
        (_Q[0], _K[0], _V[0], None),
        (_Q[0], _K[0], _V[0], _OPEN),
        (_Q, _K, _V, _OPEN),
        (1000 * _Q, _K, _V, None),
    ),
    names=("Q", "K", "V", "mask"),
    mistakes=slips_of_the_zoo(
        *("no_scale", "scale_sqrt_n", "scale_by_d_k", "scale_after_softmax"),
        *("softmax_over_queries", "no_max_subtraction", "nan_on_empty_rows"),
        *("mask_ignored", "mask_inverted", "mask_after_softmax", "mask_zero_score"),
        *("minus_1e9_mask", "key_reshaped"),
    ),
    reread=section("attention", "Self-attention in two lines"),
)
_merge = Exercise(
    task="the heads side by side again",
    right=mha.merge_heads,
    cases=((_V,), (np.arange(48.0).reshape(2, 3, 2, 4),)),
    names=("heads",),
    mistakes={
        zoo.merge_without_transpose.wrong: zoo.merge_without_transpose.steps[
            "merge_heads"
        ],
        "each head keeps its columns together; yours come in turn": lambda heads: (
            np.moveaxis(heads, -3, -1).reshape(*heads.shape[:-3], heads.shape[-2], -1)
        ),
        "you add up the heads: lay them side by side": lambda heads: heads.sum(-3),
    },
    reread=section("split", "Why the large matrix gives the same queries"),
)
_feed = Exercise(
    task="the feed-forward network",
    right=mha.feed_forward,
    cases=tuple(
        (x, *(_weights(seed)[name] for name in ("W_1", "b_1", "W_2", "b_2")))
        for x, seed in ((_X, 6), (_BATCH, 7))
    ),
    names=("x", "W_1", "b_1", "W_2", "b_2"),
    mistakes={
        "the ReLU between the two products is missing": lambda x, W, b, U, c: (
            (x @ W + b) @ U + c
        ),
        "the ReLU belongs between the two products, not behind them": (
            lambda x, W, b, U, c: np.maximum((x @ W + b) @ U + c, 0)
        ),
        "b_1 is added before the ReLU": lambda x, W, b, U, c: (
            (np.maximum(x @ W, 0) + b) @ U + c
        ),
    },
    reread=section("encoder_layer", "Before or after: two places for the norm"),
)
_layer = Exercise(
    task="one post-norm layer",
    right=lambda X, weights, n_heads, mask: mha.encoder_layer(
        X, weights, n_heads, mask
    ),
    cases=((_X, _weights(4), 2, None), (_BATCH, _weights(5), 3, _TRI)),
    mistakes=slips_of_the_zoo(
        *("one_norm_for_both", "one_add_and_norm", "no_residual", "mask_not_handed_on"),
        *("residual_from_the_input", "bend_at_the_end", "norm_over_tokens"),
        run=lambda member: member.layer,
    )
    | {
        "the biases of attention are not used": _without("b_Q", "b_K", "b_V", "b_O"),
        "the biases of feed-forward are not used": _without("b_1", "b_2"),
        "the gains are not used": _without("gain_1", "gain_2", value=1),
        "this is pre-norm: each norm belongs behind a sum": (
            lambda X, weights, n_heads, mask: mha.encoder_layer(
                X, weights, n_heads, mask, norm_first=True
            )
        ),
    },
    reread=section("encoder_layer", "Before or after: two places for the norm"),
)
_stack = Exercise(
    task="one layer after the other",
    right=lambda X, layers, n_heads, mask: mha.encoder(X, layers, n_heads, mask),
    cases=((_X, _LAYERS, 2, None), (_BATCH, _LAYERS, 2, _TRI)),
    mistakes=slips_of_the_zoo(
        "layers_share_weights", "only_last_layer", "mask_not_handed_on", run=_of_the_zoo
    ),
    reread=section("encoder", "A stack is a loop"),
)
_chunked = Exercise(
    task="the same attention, in blocks of keys",
    right=_in_blocks(lambda K, V, size: (K, V)),
    cases=((_Q, _K, _V, 7), (_Q, _K, _V, 3), (400 * _Q, _K, _V, 2)),
    names=("Q", "K", "V", "block_size"),
    mistakes={
        "the last block is not full, and you leave it out": _in_blocks(_whole_blocks),
        "when a later block has a larger score, both sums so far must be "
        "rescaled": _rescaling(mix=False),
        "you rescale the sum of the values, and the sum of the weights too must "
        "be": _rescaling(mix=True),
    },
    reread=section("long", "A summary of keys, and how two are merged"),
)
_model = Exercise(
    task="pre-norm layers under a causal mask",
    right=_causal,
    cases=((_X, _LAYERS, 2), (_BATCH, _LAYERS, 3)),
    names=("X", "layers", "n_heads"),
    mistakes={
        "later tokens are not hidden": lambda *x: _causal(*x, is_causal=False),
        "these layers are post-norm": lambda *x: _causal(*x, norm_first=False),
        "a token may attend to itself too": lambda X, layers, n_heads: mha.encoder(
            X, layers, n_heads, np.tri(X.shape[-2], k=-1, dtype=bool), norm_first=True
        ),
    },
    reread=section("since_2017", "Only the offset is left"),
)

# A step, and the chapter after which it can be written.
_STEPS = {
    "softmax": ("softmax", stable_softmax),
    "masked_softmax": ("masks", safe_masked_softmax),
    "attention": ("attention", _attention),
    "split_heads": ("split", to_heads),
    "merge_heads": ("split", _merge),
    "multi_head": ("multi_head", many_heads),
    "layer_norm": ("encoder_layer", normalise_tokens),
    "feed_forward": ("encoder_layer", _feed),
    "encoder_layer": ("encoder_layer", _layer),
    "encoder": ("encoder", _stack),
    "stress_scores": ("real_task", stress_scores),
    "chunked_attention": ("long", _chunked),
    "causal_model": ("since_2017", _model),
}
STEPS = {
    name: dataclasses.replace(exercise, forbidden=_ALL)
    for name, (_, exercise) in _STEPS.items()
}
# What `mha.laws` puts on trial, and the reference where plain attention is none.
TRIALS = {
    "multi_head": None,
    "encoder_layer": None,
    "encoder": None,
    "chunked_attention": None,
    "causal_model": _causal,
}


def laws_of(name, function):
    """Return the report of the laws on a step that its check has passed."""
    from mha import laws

    return laws.check(function, reference=TRIALS[name])


def report(space):
    """Print what has become of each function in a namespace; try the last one."""
    verdicts = {name: exercise(space.get(name)) for name, exercise in STEPS.items()}
    last = [name for name in TRIALS if verdicts[name].passed][-1:]
    for name, verdict in verdicts.items():
        where = f"{chapter(_STEPS[name][0]):<11} {name:<18}"
        said = verdict.text if verdict.status == "not yet" else ""
        print(where, f"{verdict.status}: {said}" if said else verdict.status)
        if name in last:
            found = laws_of(name, space[name])
            print(" " * len(where), str(found).partition("\n")[0].partition(": ")[2])
            if not found:
                print(found)


@pytest.mark.parametrize("name", STEPS)
def test_step(name, request):
    """Fail with the verdict of the notebooks."""
    verdict = STEPS[name](getattr(request.module, name, None))
    if verdict.status == "not attempted yet":
        pytest.skip(str(verdict))
    if not verdict.passed:
        pytest.fail(str(verdict), pytrace=False)


@pytest.mark.parametrize("name", TRIALS)
def test_laws(name, request):
    """Fail with the report of the laws."""
    function = getattr(request.module, name, None)
    if not STEPS[name](function).passed:
        pytest.skip("its check comes first")
    if not (found := laws_of(name, function)):
        pytest.fail(str(found), pytrace=False)
