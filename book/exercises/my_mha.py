"""The chain of exercises that ends in an encoder of one's own: `my_mha_start.py`.

The file that a learner fills in imports its checks from here, for `report` and pytest.
"""

import dataclasses
import functools
import sys

import numpy as np
import pytest

import mha
from exercises import (
    Exercise,
    chapter,
    in_use,
    random_arrays,
    section,
    slips_of_the_zoo,
)
from exercises.encoder_layer import normalise_tokens
from exercises.engine import Unfit
from exercises.long import attend_in_blocks, peak
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


_Q, _K, _V = random_arrays((2, 3, 5), (2, 7, 5), (2, 7, 2), seed=1)
_OPEN = np.random.default_rng(2).random((3, 7)) < 0.6
_OPEN[1] = False  # a query that may attend to nothing
_X, _BATCH = random_arrays((3, 4), (2, 3, 4), seed=3)
_TRI = np.tri(3, dtype=bool)
_LAYERS = [_weights(4), _weights(5)]


def _in_its_dtype(attend, Q, *given):
    """Return a result, if it has no more bits than the inputs."""
    found = attend(Q, *given)
    if Q.dtype == np.float32 and getattr(found, "dtype", None) == np.float64:
        raise Unfit(
            "the result has 64 bits, and the inputs have 32: np.sqrt(d_k), np.zeros "
            "and np.full make numbers of 64 bits; math.sqrt(d_k) and dtype=Q.dtype do "
            "not"
        )
    return found


def _none_hides_all(Q, K, V, mask):
    hidden = np.zeros((1, 1), bool) if mask is None else mask
    return mha.scaled_dot_product_attention(Q, K, V, hidden)


_attention = Exercise(
    task="attention with a mask, for any axes in front",
    right=mha.scaled_dot_product_attention,
    cases=(
        (np.array([[2.0, 1.0]]), np.eye(2), np.array([[3.0], [5.0]]), None),
        (_Q[0], _K[0], _V[0], None),
        (_Q[0], _K[0], _V[0], _OPEN),
        (_Q, _K, _V, _OPEN),
        (1000 * _Q, _K, _V, None),
        (*(x.astype(np.float32) for x in (_Q, _K, _V)), None),
    ),
    names=("Q", "K", "V", "mask"),
    observe=_in_its_dtype,
    exact=True,
    mistakes={
        "without a mask nothing is hidden, and np.where takes None for "
        "False": _none_hides_all
    }
    | slips_of_the_zoo(
        *("no_scale", "scale_sqrt_n", "scale_by_d_k", "scale_after_softmax"),
        *("softmax_over_queries", "no_max_subtraction", "nan_on_empty_rows"),
        *("mask_ignored", "mask_inverted", "mask_after_softmax", "mask_zero_score"),
        *("minus_1e9_mask", "key_reshaped"),
    ),
    reread=section("attention", "Self-attention in two lines"),
)
_blocks = dataclasses.replace(
    attend_in_blocks,
    cases=(
        *attend_in_blocks.cases,
        (*(x.astype(np.float32) for x in (_Q, _K, _V)), 3),
    ),
    observe=lambda attend, *given: _in_its_dtype(
        functools.partial(attend_in_blocks.observe, attend), *given
    ),
    exact=True,
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
    "chunked_attention": ("long", _blocks),
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


# What a learner can do with a step. Each is given the functions of her file.


def _softmax(space):
    p = space["softmax"](np.array([1.0, 2.0, 1000.0]), 0)
    return f"scores 1, 2, 1000 get the weights {_row(p)}"


def _masked_softmax(space):
    p = space["masked_softmax"](np.zeros((3, 3)), _TRI)
    return f"equal scores: {'; '.join(map(_row, p))}"


def _attend(space):
    Y = space["attention"](
        4 * np.eye(3)[[1]], np.eye(3), np.array([[10.0], [50], [20]])
    )
    return f"of values 10, 50, 20 a query like key 2 gets {Y.item():.0f}"


def _split(space):
    heads = space["split_heads"](np.zeros((5, 12)), 3)
    return f"(5, 12) becomes {heads.shape}, three heads"


def _norm(space):
    x = space["layer_norm"](1000 * np.eye(64)[:1], np.ones(64), np.zeros(64))
    return f"a token of length 1000 gets the length {np.linalg.norm(x):.1f}"


def _feed_forward(space):
    W, zeros = np.array([[1.0, -1.0]]), np.zeros(2)
    x = space["feed_forward"](np.array([[-3.0], [0], [2]]), W, zeros, W.T**2, zeros[:1])
    return f"-3, 0 and 2 become {_row(x[:, 0])} by two hidden numbers"


def _stress(space):
    words = in_use.letters_only(sys.argv[1:]) or "photograph photography".split()
    return f"it says {in_use.stressed(space['stress_scores'], words)}"


def _memory(space):
    Q, K, V = random_arrays((64, 2), (65_536, 2), (65_536, 2), seed=1)
    most = peak(space["chunked_attention"], Q, K, V)[1]
    return f"65,536 keys in {most / 1e6:.1f} MB; all scores take 33.6"


def _text(space):
    text = in_use.written(in_use.all_at_once(space["causal_model"]), 60)
    return f"it writes: {text}"


def _row(p):
    return " ".join(f"{x:.2g}" for x in p)


USES = {
    "softmax": _softmax,
    "masked_softmax": _masked_softmax,
    "attention": _attend,
    "split_heads": _split,
    "layer_norm": _norm,
    "feed_forward": _feed_forward,
    "stress_scores": _stress,
    "chunked_attention": _memory,
    "causal_model": _text,
}


def report(space):
    """Print what each function of a namespace can do, and which laws hold."""
    for name, exercise in STEPS.items():
        verdict = exercise(space.get(name))
        where = f"{chapter(_STEPS[name][0]):<11} {name:<18}"
        said = verdict.text if verdict.status == "not yet" else ""
        tried = verdict.passed and name in TRIALS
        if verdict.passed and name in USES:
            said = USES[name](space)
        found = laws_of(name, space[name]) if tried else None
        if found:
            count = sum(x.holds for x in found.findings)
            said = f"{said + ', and ' if said else ''}{count} laws hold"
        print(where, f"{verdict.status}: {said}" if said else verdict.status)
        if found is not None and not found:
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
