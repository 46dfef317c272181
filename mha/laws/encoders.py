"""The laws of what surrounds attention: one encoder layer, and a stack of them."""

import numpy as np

from mha.laws.judge import Failure, differs, law
from mha.laws.stack import Drawn, reference, silenced
from mha.laws.words import NotApplicable

__all__ = [
    "batch_changes_nothing", "both_parts_write_on_one_stream",
    "layers_follow_each_other", "post_norm_normalises_rows",
    "silent_parts_pass_the_input_on", "tokens_meet_in_attention_only",
    "training_mode_changes_nothing",
]  # fmt: skip


def _drawn(*shapes, apart=False):
    """Return cases: tokens of these shapes, and weights of so many layers.

    A module has as many layers as it has.
    """

    def cases(rng, subject):
        sizes = subject.sizes
        for *leading, depth in shapes:
            X = rng.integers(-2, 3, (*leading, sizes.width)).astype(float)
            case = {"X": X}
            if apart:
                case["others"] = rng.integers(-2, 3, X.shape).astype(float) + 3
            depth = sizes.depth if subject.own else depth
            drawn = Drawn(rng.integers(1000), sizes._replace(depth=depth))
            yield case | {"layers": drawn}

    return cases


some_tokens = _drawn((1, 1), (2, 1), (3, 1), (3, 2))


@law(
    "the other sequences of the batch change nothing",
    "encoder([X_1, X_2])[b] = encoder(X_b)",
    "layer norm takes mean and variance from the token itself",
    cases=_drawn((2, 1, 1), (2, 2, 1), (2, 3, 1), (3, 2, 2)),
    level="encoder",
)
def batch_changes_nothing(subject, X, layers):
    if not subject.takes_batch:
        raise NotApplicable("it reads one sequence at a time")
    layers = layers.draw()
    Y = subject.encode(X, layers)
    for b, x in enumerate(X):
        where = f"sequence {b}, alone and in the batch"
        if failure := differs(subject.encode(x[None], layers)[0], Y[b], where):
            return failure
    return None


@law(
    "without dropout, train mode and eval mode agree",
    "encoder_train(X) = encoder_eval(X) where p = 0",
    "layer norm keeps no statistics from training",
    cases=some_tokens,
    level="encoder",
)
def training_mode_changes_nothing(subject, X, layers):
    layers = layers.draw()
    training, evaluating = subject.trained_and_not()
    expected = evaluating.encode(X, layers)
    return differs(expected, training.encode(X, layers), "eval mode, then train mode")


@law(
    "where both parts return zeros, the token passes through",
    "W_O = W_2 = 0 and all biases 0 ⇒ Y = X, post-norm Y = LN_2(LN_1(X))",
    "each part adds to the token, and 0 adds nothing",
    cases=some_tokens,
    level="encoder",
)
def silent_parts_pass_the_input_on(subject, X, layers):
    layers = silenced(layers.draw())
    Y, where = subject.encode(X, layers), "W_O, W_2 and biases 0: the token "
    if subject.norm_first and not subject.final_norm:
        return differs(X, Y, f"{where}itself is due")
    return differs(reference(X, layers, subject), Y, f"{where}normalised")


@law(
    "what both parts add arrives in the output",
    "W_O = W_2 = 0 ⇒ Y = X + b_O + b_2, post-norm LN(LN(X + b_O) + b_2)",
    "the second part adds to the token that the first has added to",
    cases=some_tokens,
    level="encoder",
)
def both_parts_write_on_one_stream(subject, X, layers):
    if not subject.takes_bias:
        raise NotApplicable("it has no biases to write with")
    drawn = layers.draw()
    # Silent but for the biases that both parts write.
    layers = [
        silent | {name: w[name] for name in ("b_O", "b_2")}
        for silent, w in zip(silenced(drawn), drawn, strict=True)
    ]
    Y = subject.encode(X, layers)
    return differs(reference(X, layers, subject), Y, "W_O and W_2 are 0")


@law(
    "where attention returns zeros, no token depends on another",
    "W_O = 0 ⇒ ∂Y[i]/∂X[j] = 0 for j ≠ i",
    "norm and feed-forward work row by row",
    cases=_drawn((2, 1), (3, 1), (2, 2), apart=True),
    level="encoder",
)
def tokens_meet_in_attention_only(subject, X, others, layers):
    layers = [w | {"W_O": 0 * w["W_O"]} for w in layers.draw()]
    Y = subject.encode(X, layers)
    for i in range(len(X)):
        changed = others.copy()
        changed[i] = X[i]
        where = f"W_O is 0; token {i}, all others changed"
        if failure := differs(Y[i], subject.encode(changed, layers)[i], where):
            return failure
    return None


@law(
    "a post-norm row has mean 0 and variance 1",
    "Σ_c Y[i, c] = 0 and Σ_c Y[i, c]² = d_model where g = 1 and b = 0",
    "the last step of the layer is a norm",
    cases=some_tokens,
    level="encoder",
)
def post_norm_normalises_rows(subject, X, layers):
    if subject.norm_first and not subject.final_norm:
        raise NotApplicable("pre-norm ends with a sum")
    one = np.ones(subject.sizes.width)
    plain = {f"gain_{i}": one for i in (1, 2)} | {f"bias_{i}": 0 * one for i in (1, 2)}
    Y = subject.encode(X, [w | plain for w in layers.draw()])
    got = np.stack([Y.mean(-1), Y.var(-1)], -1)
    lawful = np.tile([0.0, 1.0], (len(X), 1))
    # ε keeps the variance a little below 1.
    if np.allclose(got, lawful, atol=0.02):
        return None
    return Failure(lawful, got, "mean and variance of each row")


@law(
    "a stack is its layers, one after the other",
    "encoder_{1,2}(X) = encoder_2(encoder_1(X))",
    "layer l + 1 reads the output of layer l, with weights of its own",
    cases=_drawn((1, 2), (2, 2), (3, 2)),
    level="encoder",
)
def layers_follow_each_other(subject, X, layers):
    layers = layers.draw()
    if subject.final_norm and subject.own is None:
        # It hides what is between the layers, so the second one is made silent.
        silent = [layers[0], *silenced(layers[1:])]
        expected = subject.encode(X, layers[:1])
        return differs(expected, subject.encode(X, silent), "layer 1 silent")
    expected, where = subject.one_by_one(X, layers), ""
    if subject.final_norm:
        centred = expected - expected.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        expected, where = centred / np.sqrt(variance + subject.eps), "and a last norm"
    return differs(expected, subject.encode(X, layers), where)
