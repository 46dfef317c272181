"""The correct encoder, and versions that are wrong around its attention.

Every member overrides one method of `EncoderMember`, so its source *is* the mistake.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from mha.zoo._arrays import _gelu, _mean, _normalised, _plus, _relu
from mha.zoo._attention import right
from mha.zoo._exhibit import Array, Exhibit, exhibit

__all__ = [
    "ENCODERS", "EncoderMember", "batch_norm", "bend_at_the_end",
    "layers_share_weights", "mask_not_handed_on", "no_residual", "norm_over_all",
    "norm_over_tokens", "one_add_and_norm", "one_norm_for_both", "only_last_layer",
    "residual_after_norm", "residual_from_the_input", "residual_multiplied",
    "right_encoder", "unbiased_std",
]  # fmt: skip

Weights = Mapping[str, Array]
Step = Callable[[Array], Array]
ACTIVATIONS: dict[str, Step] = {"relu": _relu, "gelu": _gelu}


class EncoderMember(Exhibit):
    """Compute an encoder, one method a step.

    Equation: Z = LN(X + MultiHead(X)), Y = LN(Z + FFN(Z)); with `norm_first`
    Z = X + MultiHead(LN(X)), Y = Z + FFN(LN(Z))  (chapters encoder_layer and encoder)

    A member is called like `mha.encoder`, and its `layer` like `mha.encoder_layer`, on
    NumPy arrays or torch tensors. `training` is for norms that tell train mode from
    eval mode, which no correct one does. Arguments are not checked.

    Examples
    --------
    >>> import numpy as np
    >>> weights = dict.fromkeys("W_Q W_K W_V W_O W_1 W_2".split(), np.zeros((2, 2)))
    >>> right_encoder([[1.0, 9.0], [40.0, 20.0]], [weights], n_heads=1, eps=0)
    array([[-1.,  1.],
           [ 1., -1.]])
    """

    multi_head_attention: Callable[..., Any] = right

    def __call__(
        self, X: Array, layers: Iterable[Weights], n_heads: int,
        mask: Array | None = None, *, activation: str = "relu",
        norm_first: bool = False, eps: float = 1e-5,
        final_norm: tuple[Array | None, Array | None] | None = None,
        is_causal: bool = False, training: bool = True,
    ) -> Array:  # fmt: skip
        """Return what this member takes for `mha.encoder`."""
        layer = partial(
            self.layer, n_heads=n_heads, mask=mask, activation=activation,
            norm_first=norm_first, eps=eps, is_causal=is_causal, training=training,
        )  # fmt: skip
        Y = self.stack(X, layers, layer)
        return Y if final_norm is None else self.norm(Y, *final_norm, eps, training)

    def layer(
        self, X: Array, weights: Weights, n_heads: int, mask: Array | None = None, *,
        activation: str = "relu", norm_first: bool = False, eps: float = 1e-5,
        is_causal: bool = False, training: bool = True,
    ) -> Array:  # fmt: skip
        """Return what this member takes for `mha.encoder_layer`."""
        norms = (
            partial(
                self.norm,
                gain=weights.get(f"gain_{i}"),
                bias=weights.get(f"bias_{i}"),
                eps=eps,
                training=training,
            )
            for i in (1, 2)
        )
        attend = partial(self.attend, weights, n_heads, mask, is_causal)
        feed = partial(self.feed, weights, ACTIVATIONS[activation])
        return self.pass_through(X, norm_first, attend, feed, *norms)

    def stack(
        self, X: Array, layers: Iterable[Weights], layer: Callable[..., Array]
    ) -> Array:
        """Send the tokens through one layer after the other."""
        for weights in layers:
            X = layer(X, weights)
        return X

    def pass_through(
        self, X: Array, norm_first: bool, attend: Step, feed: Step, norm_1: Step,
        norm_2: Step,
    ) -> Array:  # fmt: skip
        """Send the tokens through both parts of a layer."""
        if norm_first:
            Z = X + attend(norm_1(X))
            return Z + feed(norm_2(Z))
        Z = norm_1(X + attend(X))
        return norm_2(Z + feed(Z))

    def attend(
        self, weights: Weights, n_heads: int, mask: Array | None, is_causal: bool,
        x: Array,
    ) -> Array:  # fmt: skip
        """Let the tokens attend to each other."""
        weights = {name: W for name, W in weights.items() if name[-1] in "QKVO"}
        options = {"n_heads": n_heads, "mask": mask, "is_causal": is_causal}
        return self.multi_head_attention(x, **weights, **options)

    def feed(self, weights: Weights, bend: Step, x: Array) -> Array:
        """Send every token, alone, through a wide layer and back."""
        hidden = bend(_plus(x @ weights["W_1"], weights.get("b_1")))
        return _plus(hidden @ weights["W_2"], weights.get("b_2"))

    def norm(
        self, x: Array, gain: Array | None, bias: Array | None, eps: float,
        training: bool,
    ) -> Array:  # fmt: skip
        """Give every token mean 0 and variance 1, then stretch and shift it."""
        y = _normalised(x, -1, eps)
        return _plus(y if gain is None else y * gain, bias)


@exhibit
class right_encoder(EncoderMember):
    seen = ""


@exhibit
class batch_norm(EncoderMember, chapter="encoder_layer"):
    wrong = "Batch norm: each feature is normalised over all tokens of the batch."
    seen = "A reader took the right axis for a mistake and proposed this one."
    link = "https://github.com/Kyubyong/transformer/issues/40"

    def norm(self, x, gain, bias, eps, training):
        # Fresh running statistics are mean 0 and variance 1.
        batch = tuple(range(x.ndim - 1))
        y = _normalised(x, batch, eps) if training else x
        return _plus(y if gain is None else y * gain, bias)


@exhibit
class norm_over_tokens(EncoderMember, chapter="encoder_layer"):
    wrong = "Each feature is normalised over the tokens of the sequence."
    seen = "98 % accuracy on a translation task: the norm let the future in."
    link = "https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/19"

    def norm(self, x, gain, bias, eps, training):
        y = _normalised(x, -2, eps)
        return _plus(y if gain is None else y * gain, bias)


@exhibit
class norm_over_all(EncoderMember, chapter="encoder_layer"):
    wrong = "The whole sequence is normalised at once, over tokens and features."
    seen = "The baseline transformer of a research library."
    link = (
        "https://github.com/Qualcomm-AI-research/geometric-algebra-transformer/pull/8"
    )

    def norm(self, x, gain, bias, eps, training):
        y = _normalised(x, (-2, -1), eps)
        return _plus(y if gain is None else y * gain, bias)


@exhibit
class unbiased_std(EncoderMember, chapter="encoder_layer"):
    wrong = "The norm divides by the unbiased standard deviation, plus ε."
    seen = "The best known annotated transformer, where std() has this default."
    link = "https://github.com/harvardnlp/annotated-transformer/pull/119"

    def norm(self, x, gain, bias, eps, training):
        d, centred = x.shape[-1], x - _mean(x, -1)
        variance = _mean(centred * centred, -1) * d / (d - 1)
        y = centred / (variance**0.5 + eps)
        return _plus(y if gain is None else y * gain, bias)


@exhibit
class one_norm_for_both(EncoderMember, chapter="encoder_layer"):
    wrong = "Both norms are the first one: its gain and bias are used twice."
    seen = "A language model trained with it, with little difference until then."
    link = "https://github.com/allenai/OLMo/issues/222"

    def pass_through(self, X, norm_first, attend, feed, norm_1, norm_2):
        return super().pass_through(X, norm_first, attend, feed, norm_1, norm_1)


@exhibit
class one_add_and_norm(EncoderMember, chapter="encoder_layer"):
    wrong = "The layer ends with feed-forward: the second Add & Norm is missing."
    seen = "A common version ends the layer there; no public issue known."

    def pass_through(self, X, norm_first, attend, feed, norm_1, norm_2):
        if norm_first:
            return feed(norm_2(X + attend(norm_1(X))))
        return feed(norm_1(X + attend(X)))


@exhibit
class no_residual(EncoderMember, chapter="encoder_layer"):
    wrong = "What attention returns replaces the token; it must be added."
    seen = "An audio model lacked the path around its cross-attention."
    link = "https://github.com/lucidrains/audiolm-pytorch/issues/150"

    def pass_through(self, X, norm_first, attend, feed, norm_1, norm_2):
        Z = attend(norm_1(X)) if norm_first else norm_1(attend(X))
        return Z + feed(norm_2(Z)) if norm_first else norm_2(Z + feed(Z))


@exhibit
class residual_multiplied(EncoderMember, chapter="encoder_layer"):
    wrong = "Feed-forward is multiplied with the token; it must be added."
    seen = "A re-implementation of a vision transformer; its author: a severe bug."
    link = "https://github.com/ChristophReich1996/MaxViT/issues/8"

    def pass_through(self, X, norm_first, attend, feed, norm_1, norm_2):
        Z = X + attend(norm_1(X)) if norm_first else norm_1(X + attend(X))
        return Z * feed(norm_2(Z)) if norm_first else norm_2(Z * feed(Z))


@exhibit
class residual_from_the_input(EncoderMember, chapter="encoder_layer"):
    wrong = "Feed-forward is added to the input, and attention's own part is lost."
    seen = "A transformer in TensorFlow, until a reader sent the repair."
    link = "https://github.com/strutive07/transformer-tensorflow2.0/issues/14"

    def pass_through(self, X, norm_first, attend, feed, norm_1, norm_2):
        Z = X + attend(norm_1(X)) if norm_first else norm_1(X + attend(X))
        return X + feed(norm_2(Z)) if norm_first else norm_2(X + feed(Z))


@exhibit
class residual_after_norm(EncoderMember, chapter="encoder_layer"):
    wrong = "Pre-norm adds to the normalised token; it must add to the token itself."
    seen = "The author found it; old checkpoints would not have survived the repair."
    link = "https://github.com/Howuhh/faster-trajectory-transformer/issues/3"

    def pass_through(self, X, norm_first, attend, feed, norm_1, norm_2):
        if not norm_first:
            return super().pass_through(X, norm_first, attend, feed, norm_1, norm_2)
        Z = norm_1(X) + attend(norm_1(X))
        return norm_2(Z) + feed(norm_2(Z))


@exhibit
class bend_at_the_end(EncoderMember, chapter="encoder_layer"):
    wrong = "Feed-forward bends after its second matrix: two matrices make one."
    seen = "A network for electricity meters, until a reader asked."
    link = "https://github.com/goruck/nilm/issues/1"

    def feed(self, weights, bend, x):
        hidden = _plus(x @ weights["W_1"], weights.get("b_1"))
        return bend(_plus(hidden @ weights["W_2"], weights.get("b_2")))


@exhibit
class mask_not_handed_on(EncoderMember, chapter="encoder_layer"):
    wrong = "The layer takes a mask and does not hand it to its attention."
    seen = "A model of time series; a reader asks whether it needs no mask."
    link = "https://github.com/imperial-qore/TranAD/issues/10"

    def attend(self, weights, n_heads, mask, is_causal, x):
        return super().attend(weights, n_heads, None, False, x)


@exhibit
class layers_share_weights(EncoderMember, chapter="encoder"):
    wrong = "One layer is run several times, where each should have its own weights."
    seen = "A reader's simplification of a speech toolkit: the result is very bad."
    link = "https://github.com/espnet/espnet/issues/1278"

    def stack(self, X, layers, layer):
        for _ in layers:
            X = layer(X, layers[0])
        return X


@exhibit
class only_last_layer(EncoderMember, chapter="encoder"):
    wrong = "Every layer reads the embeddings, so only the last one counts."
    seen = "The notebook of a deep learning course at a university."
    link = "https://github.com/Atcold/NYU-DLSP20/issues/270"

    def stack(self, X, layers, layer):
        Y = X
        for weights in layers:
            Y = layer(X, weights)
        return Y


ENCODERS: tuple[EncoderMember, ...] = tuple(
    x for x in list(globals().values()) if isinstance(x, EncoderMember)
)
