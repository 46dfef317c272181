"""The laws of what surrounds attention: one encoder layer, and a stack of them."""

from functools import partial

import numpy as np

from mha.laws.judge import Failure, differs, law, skip_if
from mha.laws.subject import draw_layers


def stacks(rng, subject):
    """Yield tokens, and weights of one layer, two or three."""
    sizes = subject.sizes
    depths = (1, 2, 3) if subject.kind == "encode" else (1,)
    for depth in (sizes.depth,) if sizes.fixed else depths:
        for n in (1, 2, 3):
            X = rng.integers(-2, 3, (n, sizes.d_model)).astype(float)
            yield {"X": X, "layers": draw_layers(rng, sizes, depth)}


encoder_law = partial(law, cases=stacks)


def changed(layers, zeros=(), plain_norms=False):
    """Return the weights with some of them 0, and gains 1 and biases of norms 0."""

    def value(name, W):
        norm = plain_norms and name[:4] in ("gain", "bias")
        return np.full_like(W, name[0] == "g") if norm else W * (name not in zeros)

    return [{name: value(name, W) for name, W in w.items()} for w in layers]


def normed(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


@encoder_law(
    "without dropout, train mode and eval mode agree",
    "encoder_train(X) = encoder_eval(X) where p = 0",
    "layer norm keeps no statistics from training",
    alone=True,
)
def training_mode_changes_nothing(encode, X, layers):
    encode.need("training")
    train, evaluated = (encode(X, layers, training=x) for x in (True, False))
    return differs(evaluated, train, "eval mode, then train mode")


def with_and_without_biases(rng, subject):
    for case in stacks(rng, subject):
        yield from (case | {"biases": x} for x in (False, True))


@law(
    "where both parts return zeros, the token passes through, or is normalised",
    "W_O = W_2 = 0 ⇒ Y = X + b_O + b_2 for pre-norm, and LN(LN(X + b_O) + b_2) for "
    "post-norm, where b_O and b_2 may be 0",
    "each part adds to the token, the second to what the first has added to",
    cases=with_and_without_biases,
)
def silent_parts_pass_the_input_on(encode, X, layers, biases):
    silent = ("W_O", "W_2") if biases else ("W_O", "W_2", "b_O", "b_2")
    layers = changed(layers, silent, plain_norms=True)
    pre_norm = post_norm = X
    for w in layers:
        pre_norm = pre_norm + w["b_O"] + w["b_2"]
        post_norm = normed(normed(post_norm + w["b_O"]) + w["b_2"])
    # Which of the two it is, the reference knows.
    first = not differs(pre_norm, encode.due(X, layers), within=1e-3)
    where = "b_O and b_2 are not 0" if biases else ""
    return differs(pre_norm if first else post_norm, encode(X, layers), where, 1e-3)


@encoder_law(
    "where attention returns zeros, no token depends on another",
    "W_O = 0 ⇒ ∂Y[i]/∂X[j] = 0 for j ≠ i",
    "norm and feed-forward work row by row",
    rank=-1,
)
def tokens_meet_in_attention_only(encode, X, layers):
    layers = changed(layers, ("W_O",))
    Y = encode(X, layers)
    for stays in np.eye(len(X), dtype=bool):
        got = encode(np.where(stays[:, None], X, 3 - X), layers)
        where = f"W_O is 0; token {np.flatnonzero(stays)} stays, the others are 3 - X"
        if failure := differs(Y[stays], got[stays], where):
            return failure
    return None


@encoder_law(
    "a post-norm row has mean 0 and variance 1",
    "Σ_c Y[i, c] = 0 and Σ_c Y[i, c]² = d_model where g = 1 and b = 0",
    "the last step is a norm",
)
def post_norm_normalises_rows(encode, X, layers):
    Y = encode(X, changed(layers, plain_norms=True))
    got, lawful = np.stack([Y.mean(-1), Y.var(-1)], -1), np.array([[0.0, 1.0]] * len(X))
    # ε keeps the variance a little below 1.
    if np.allclose(got, lawful, atol=0.02):
        return None
    return Failure(lawful, got, "mean and variance of each row")


@encoder_law(
    "a stack is its layers, one after the other",
    "encoder_{1…L}(X) = encoder_L(encoder_{1…L−1}(X))",
    "layer l + 1 reads the output of layer l, with weights of its own",
)
def layers_follow_each_other(encode, X, layers):
    skip_if(len(layers) == 1, "it is one layer")
    skip_if(encode.sizes.fixed, "it has a fixed number of layers")
    return differs(encode(encode(X, layers[:-1]), layers[-1:]), encode(X, layers))
