"""The laws of what surrounds attention: one encoder layer, and a stack of them."""

from functools import partial

import numpy as np

from mha.laws.judge import Failure, differs, law, right
from mha.laws.masks import only_these_matter
from mha.laws.stack import drawn_for, silenced
from mha.laws.words import NotApplicable, skip_if
from mha.layers import layer_norm


def stacks(rng, subject):
    """Yield tokens, and weights of one layer or two; a module has what it has."""
    sizes = subject.sizes
    for depth in (sizes.depth,) if subject.own else (1, 2):
        for n in (1, 2, 3):
            X = rng.integers(-2, 3, (n, sizes.width)).astype(float)
            drawn = drawn_for(sizes._replace(depth=depth), rng.integers(1000))
            yield {"X": X, "layers": drawn}


encoder_law = partial(law, cases=stacks, level="encoder")


@encoder_law(
    "the other sequences of the batch change nothing",
    "encoder([X_1, X_2])[b] = encoder(X_b)",
    "layer norm takes mean and variance from the token itself",
)
def batch_changes_nothing(subject, X, layers):
    skip_if(not subject.takes_batch, "it reads one sequence at a time")
    both = np.stack([X, 3 - X])
    alone = [subject.encode(x[None], layers)[0] for x in both]
    return differs(alone, subject.encode(both, layers), "X and 3 - X, alone and as two")


@encoder_law(
    "without dropout, train mode and eval mode agree",
    "encoder_train(X) = encoder_eval(X) where p = 0",
    "layer norm keeps no statistics from training",
)
def training_mode_changes_nothing(subject, X, layers):
    skip_if("training" not in subject.accepts, "it has no train mode and no eval mode")
    random = subject.switch == ("training", (False,))
    skip_if(random, "in train mode no two calls agree")
    modes = (subject.with_settings(training=x) for x in (False, True))
    return differs(*(x.encode(X, layers) for x in modes), "eval mode, then train mode")


@encoder_law(
    "where both parts return zeros, the token passes through",
    "W_O = W_2 = 0 and all biases 0 ⇒ Y = X, post-norm Y = LN_2(LN_1(X))",
    "each part adds to the token, and 0 adds nothing",
)
def silent_parts_pass_the_input_on(subject, X, layers):
    layers = silenced(layers)
    due, where = right(subject).encode(X, layers), "W_O, W_2 and biases 0: the token "
    where += "itself" if subject.facts.norm_first else "normalised"
    where += ", and then the final norm" * subject.facts.final_norm
    return differs(due, subject.encode(X, layers), where)


@encoder_law(
    "what both parts add arrives in the output",
    "W_O = W_2 = 0 ⇒ Y = X + b_O + b_2, post-norm LN(LN(X + b_O) + b_2)",
    "the second part adds to the token that the first has added to",
)
def both_parts_write_on_one_stream(subject, X, layers):
    skip_if(not subject.takes_bias, "it has no biases to write with")
    both = zip(silenced(layers), layers, strict=True)
    layers = [w | {x: loud[x] for x in ("b_O", "b_2")} for w, loud in both]
    due = right(subject).encode(X, layers)
    return differs(due, subject.encode(X, layers), "W_O and W_2 are 0")


@encoder_law(
    "where attention returns zeros, no token depends on another",
    "W_O = 0 ⇒ ∂Y[i]/∂X[j] = 0 for j ≠ i",
    "norm and feed-forward work row by row",
)
def tokens_meet_in_attention_only(subject, X, layers):
    layers = [w | {"W_O": 0 * w["W_O"]} for w in layers]
    ask, each = partial(subject.encode, layers=layers), np.eye(len(X), dtype=bool)
    return only_these_matter(ask, X, 3 - X, each, " to 3 - X, W_O is 0")


@encoder_law(
    "a post-norm row has mean 0 and variance 1",
    "Σ_c Y[i, c] = 0 and Σ_c Y[i, c]² = d_model where g = 1 and b = 0",
    "the last step is a norm",
)
def post_norm_normalises_rows(subject, X, layers):
    facts = subject.facts
    skip_if(facts.norm_first and not facts.final_norm, "pre-norm ends with a sum")
    unknown = "it equals no encoder, so where its norms are is not known"
    skip_if(not facts.known, unknown)
    one = np.ones(subject.sizes.width)
    plain = {f"gain_{i}": one for i in (1, 2)} | {f"bias_{i}": 0 * one for i in (1, 2)}
    Y = subject.encode(X, [w | plain for w in layers])
    got = np.stack([Y.mean(-1), Y.var(-1)], -1)
    lawful = np.tile([0.0, 1.0], (len(X), 1))
    # ε keeps the variance a little below 1.
    if np.allclose(got, lawful, atol=0.02):
        return None
    last = ", after the final norm" * subject.facts.final_norm
    return Failure(lawful, got, "mean and variance of each row" + last)


@encoder_law(
    "a stack is its layers, one after the other",
    "encoder_{1,2}(X) = encoder_2(encoder_1(X))",
    "layer l + 1 reads the output of layer l, with weights of its own",
)
def layers_follow_each_other(subject, X, layers):
    skip_if(len(layers) == 1, "it is one layer")
    if subject.facts.final_norm and subject.own is None:
        raise NotApplicable("its last norm hides what is between the layers")
    expected = subject.one_by_one(X, layers)
    if subject.facts.final_norm:
        expected = layer_norm(expected, eps=subject.facts.eps)
    return differs(expected, subject.encode(X, layers))
