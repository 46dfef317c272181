"""The laws of what surrounds attention: one encoder layer, and a stack of them."""

import numpy as np

from mha.laws._law import Failure, differs, law
from mha.laws.subjects.conventions import NotApplicable
from mha.laws.subjects.encoder import WIDTH, Drawn, expected_encoder, silenced

__all__ = [
    "batch_changes_nothing", "both_parts_write_on_one_stream",
    "layers_follow_each_other", "post_norm_normalises_rows",
    "silent_parts_pass_the_input_on", "tokens_meet_in_attention_only",
    "training_mode_changes_nothing",
]  # fmt: skip


def _tokens(rng, *shape):
    return rng.integers(-2, 3, (*shape, WIDTH)).astype(float)


def _drawn(rng, n_layers=1):
    return Drawn(rng.integers(1000), n_layers)


def cases(rng):
    for n, n_layers in ((1, 1), (2, 1), (3, 1), (3, 2)):
        yield {"X": _tokens(rng, n), "layers": _drawn(rng, n_layers)}


def batch_cases(rng):
    for b, n, n_layers in ((2, 1, 1), (2, 2, 1), (2, 3, 1), (3, 2, 2)):
        yield {"X": _tokens(rng, b, n), "layers": _drawn(rng, n_layers)}


@law(
    "the other sequences of the batch change nothing",
    cases=batch_cases,
    equation="encoder([X_1, X_2])[b] = encoder(X_b)",
    chapter="encoder_layer",
    reason="layer norm takes mean and variance from the token itself",
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
    cases=cases,
    equation="encoder_train(X) = encoder_eval(X) where p = 0",
    chapter="encoder_layer",
    reason="layer norm keeps no statistics from training",
    level="encoder",
)
def training_mode_changes_nothing(subject, X, layers):
    layers = layers.draw()
    training, evaluating = subject.trained_and_not()
    expected = evaluating.encode(X, layers)
    return differs(expected, training.encode(X, layers), "eval mode, then train mode")


@law(
    "where both parts return zeros, the token passes through",
    cases=cases,
    equation="W_O = W_2 = 0 and all biases 0 ⇒ Y = X, post-norm Y = LN_2(LN_1(X))",
    chapter="encoder_layer",
    reason="each part adds to the token, and 0 adds nothing",
    level="encoder",
)
def silent_parts_pass_the_input_on(subject, X, layers):
    layers = silenced(layers.draw())
    Y, where = subject.encode(X, layers), "W_O, W_2 and biases 0: the token "
    if subject.norm_first and not subject.final_norm:
        return differs(X, Y, f"{where}itself is due")
    return differs(expected_encoder(subject, X, layers), Y, f"{where}normalised")


def _writing(layers):
    """Return silent layers whose two parts write their biases, and nothing else."""
    pairs = zip(silenced(layers), layers, strict=True)
    return [silent | {name: w[name] for name in ("b_O", "b_2")} for silent, w in pairs]


@law(
    "what both parts add arrives in the output",
    cases=cases,
    equation="W_O = W_2 = 0 ⇒ Y = X + b_O + b_2, post-norm LN(LN(X + b_O) + b_2)",
    chapter="encoder_layer",
    reason="the second part adds to the token that the first has added to",
    level="encoder",
)
def both_parts_write_on_one_stream(subject, X, layers):
    if not subject.takes_bias:
        raise NotApplicable("it has no biases to write with")
    layers = _writing(layers.draw())
    Y = subject.encode(X, layers)
    return differs(expected_encoder(subject, X, layers), Y, "W_O and W_2 are 0")


def meeting_cases(rng):
    for n, n_layers in ((2, 1), (3, 1), (2, 2)):
        case = {"X": _tokens(rng, n), "others": _tokens(rng, n) + 3}
        yield case | {"layers": _drawn(rng, n_layers)}


@law(
    "where attention returns zeros, no token depends on another",
    cases=meeting_cases,
    equation="W_O = 0 ⇒ ∂Y[i]/∂X[j] = 0 for j ≠ i",
    chapter="encoder_layer",
    reason="norm and feed-forward work row by row",
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


def _plain_norms(weights):
    gains = dict.fromkeys(("gain_1", "gain_2"), np.ones(WIDTH))
    return weights | gains | dict.fromkeys(("bias_1", "bias_2"), np.zeros(WIDTH))


@law(
    "a post-norm row has mean 0 and variance 1",
    cases=cases,
    equation="Σ_c Y[i, c] = 0 and Σ_c Y[i, c]² = d_model where g = 1 and b = 0",
    chapter="encoder_layer",
    reason="the last step of the layer is a norm",
    level="encoder",
)
def post_norm_normalises_rows(subject, X, layers):
    if subject.norm_first and not subject.final_norm:
        raise NotApplicable("pre-norm ends with a sum")
    Y = subject.encode(X, [_plain_norms(w) for w in layers.draw()])
    got = np.stack([Y.mean(-1), Y.var(-1)], -1)
    lawful = np.tile([0.0, 1.0], (len(X), 1))
    # ε keeps the variance a little below 1.
    if np.allclose(got, lawful, atol=0.02):
        return None
    return Failure(lawful, got, "mean and variance of each row")


def follow_cases(rng):
    for n in (1, 2, 3):
        yield {"X": _tokens(rng, n), "layers": _drawn(rng, 2)}


@law(
    "a stack is its layers, one after the other",
    cases=follow_cases,
    equation="encoder_{1,2}(X) = encoder_2(encoder_1(X))",
    chapter="encoder",
    reason="layer l + 1 reads the output of layer l, with weights of its own",
    level="encoder",
)
def layers_follow_each_other(subject, X, layers):
    first, second = layers.draw()
    if subject.final_norm:
        # It hides what is between the layers, so the second one is made silent.
        (silent,) = silenced([second])
        expected = subject.encode(X, [first])
        return differs(expected, subject.encode(X, [first, silent]), "layer 1 silent")
    Y = subject.encode(X, [first, second])
    return differs(subject.encode(subject.encode(X, [first]), [second]), Y)
