"""The exercises of chapter 11 know right answers and name each mistake."""

import numpy as np
import torch

from exercises import encoder_layer as check
from mha import layer_norm
from tests.exercises.proof import prove


def norm_in_steps(x, gain, bias, eps):
    y = np.empty_like(x)
    for index in np.ndindex(x.shape[:-1]):
        row = [float(number) for number in x[index]]
        mean = sum(row) / len(row)
        variance = sum((a - mean) ** 2 for a in row) / len(row)
        y[index] = [(a - mean) / (variance + eps) ** 0.5 for a in row]
    return gain * y + bias


def norm_of_torch(x, gain, bias, eps):
    x, gain, bias = map(torch.from_numpy, (x, gain, bias))
    return torch.nn.functional.layer_norm(x, gain.shape, gain, bias, eps)


def norm_of_deviation(x, gain, bias, eps):
    root = np.sqrt(x.std(-1, keepdims=True) ** 2 + eps)
    return (x - x.mean(-1, keepdims=True)) * (gain / root) + bias


def test_length_after_norm_is_the_root_of_the_width():
    x = np.random.default_rng(0).normal(3, 7, size=64)
    prove(
        check.length_after_norm,
        8,
        np.sqrt(64),
        float(np.linalg.norm(layer_norm(x, eps=0))),
        np.array([8.0]),
        [8],
        wrong_ways={
            "one number less": [np.sqrt(64 - 1)],
            "the squares": [8 * 8],
            "it depends": ["it depends on the token"],
        },
    )


def test_normalise_tokens_accepts_loops_torch_and_deviations():
    def unbiased(x, gain, bias, eps):
        x, gain, bias = map(torch.from_numpy, (x, gain, bias))
        variance = x.var(-1, keepdim=True)
        return gain * (x - x.mean(-1, keepdim=True)) / torch.sqrt(variance + eps) + bias

    def annotated(x, gain, bias, eps):
        x, gain, bias = map(torch.from_numpy, (x, gain, bias))
        std = x.std(-1, keepdim=True)
        return gain * (x - x.mean(-1, keepdim=True)) / (std + eps) + bias

    def over_tokens(x, gain, bias, eps):
        turned = np.swapaxes(x, -1, -2)
        turned = norm_in_steps(turned, 1, 0, eps)
        return np.swapaxes(turned, -1, -2) * gain + bias

    def root_mean_square(x, gain, bias, eps):
        return x * gain / np.sqrt(np.mean(x**2, -1, keepdims=True) + eps) + bias

    def mean_without_axis(x, gain, bias, eps):
        return (
            gain * (x - np.mean(x, axis=-1)) / np.sqrt(np.var(x, axis=-1) + eps) + bias
        )

    def along_axis_1(x, gain, bias, eps):
        mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
        return (x - mean) / (variance + eps) ** 0.5 * gain + bias

    def no_axis(x, gain, bias, eps):
        return gain * (x - x.mean()) / np.sqrt(x.var() + eps) + bias

    def first_slip(x, gain, bias, eps):
        std = x.std(-1, keepdims=True)
        return gain * (x - x.mean(-1, keepdims=True)) / (std + eps) + bias

    prove(
        check.normalise_tokens,
        norm_in_steps,
        norm_of_torch,
        norm_of_deviation,
        wrong_ways={
            "unbiased variance": [unbiased],
            "unbiased, and eps outside": [annotated],
            "over the tokens": [over_tokens],
            "eps outside the root": [first_slip],
            "no keepdims": [mean_without_axis],
            "the second axis": [along_axis_1],
            "one mean for everything": [no_axis],
        },
    )
    # Without centring the variance is the mean square about the mean, or about 0.
    assert not check.normalise_tokens(root_mean_square).passed


def test_layer_parameters_agree_with_those_of_pytorch():
    def counted(d_model, d_ff):
        layer = torch.nn.TransformerEncoderLayer(d_model, 1, d_ff, device="meta")
        return sum(p.numel() for p in layer.parameters())

    def piece_by_piece(d_model, d_ff):
        matrices = [(d_model, d_model)] * 4 + [(d_model, d_ff), (d_ff, d_model)]
        return sum(a * b + b for a, b in matrices) + 2 * 2 * d_model

    def forgot_w_o(d_model, d_ff):
        matrices = [(d_model, d_model)] * 3 + [(d_model, d_ff), (d_ff, d_model)]
        return sum(a * b + b for a, b in matrices) + 2 * 2 * d_model

    prove(
        check.layer_parameters,
        counted,
        piece_by_piece,
        wrong_ways={
            "no W_O": [forgot_w_o],
            "half of the norms": [lambda d, d_ff: piece_by_piece(d, d_ff) - d - d],
        },
    )


def test_wire_layer_accepts_any_way_to_write_the_two_orders():
    def branches(X, attend, feed, norm_1, norm_2, norm_first):
        if norm_first:
            Z = X + attend(norm_1(X))
            return Z + feed(norm_2(Z))
        Z = norm_1(X + attend(X))
        return norm_2(Z + feed(Z))

    def loop(X, attend, feed, norm_1, norm_2, norm_first):
        for part, norm in ((attend, norm_1), (feed, norm_2)):
            X = X + part(norm(X)) if norm_first else norm(X + part(X))
        return X

    def one_add_and_norm(X, attend, feed, norm_1, norm_2, norm_first):
        return feed(X + attend(norm_1(X)) if norm_first else norm_1(X + attend(X)))

    def wrong_stream(X, attend, feed, norm_1, norm_2, norm_first):
        for part, norm in ((attend, norm_1), (feed, norm_2)):
            if norm_first:
                X = norm(X)
                X = X + part(X)
            else:
                X = norm(X + part(X))
        return X

    def final_norm(X, attend, feed, norm_1, norm_2, norm_first):
        Y = loop(X, attend, feed, norm_1, norm_2, norm_first)
        return norm_2(Y) if norm_first else Y

    def before_the_sum(X, attend, feed, norm_1, norm_2, norm_first):
        for part, norm in ((attend, norm_1), (feed, norm_2)):
            X = X + part(norm(X)) if norm_first else X + norm(part(X))
        return X

    def always_pre(X, attend, feed, norm_1, norm_2, norm_first):
        return branches(X, attend, feed, norm_1, norm_2, True)

    prove(
        check.wire_layer,
        branches,
        loop,
        wrong_ways={
            "one Add & Norm": [one_add_and_norm],
            "pre-norm: the wrong stream": [wrong_stream],
            "post-norm: the norm of what a part brings": [before_the_sum],
            "pre-norm: one more norm": [final_norm],
            "always pre-norm": [always_pre],
        },
    )
    # The function has no default, so the hint names the value that goes wrong.
    assert "norm_first=False" in check.wire_layer(always_pre).text


def test_batch_law_asks_each_sentence_about_every_other():
    def alone(norm):
        x = np.random.default_rng(3).normal(size=(3, 2, 7))
        return all(np.allclose(norm(x[[b]])[0], norm(x)[b]) for b in range(3))

    def doubled_neighbour(norm):
        x = np.random.default_rng(3).normal(size=(2, 2, 7))
        found = []
        for mine, other in ((0, 1), (1, 0)):
            changed = x.copy()
            changed[other] = 5 - 2 * changed[other]
            found.append(np.allclose(norm(changed)[mine], norm(x)[mine]))
        return all(found)

    def never_raises(norm):
        return bool(np.isfinite(norm(np.ones((2, 2, 2)))).all())

    def only_the_first_is_asked(norm):
        x = np.random.default_rng(3).normal(size=(2, 3, 7))
        return np.allclose(norm(x[:1])[0], norm(x)[0])

    def only_the_last_is_asked(norm):
        x = np.random.default_rng(3).normal(size=(2, 3, 7))
        return np.allclose(norm(x[1:])[0], norm(x)[1])

    def replaced_and_compared(norm):
        x, other = np.random.default_rng(3).normal(size=(2, 2, 3, 7))
        other[0] = x[0]
        return np.allclose(norm(other), norm(x))

    prove(
        check.batch_law,
        alone,
        doubled_neighbour,
        wrong_ways={
            "always True": [never_raises, lambda norm: 2 > len(norm.__name__) - 99],
            "only the last changed": [only_the_first_is_asked],
            "only the first changed": [only_the_last_is_asked],
            "always False": [replaced_and_compared],
            "True and False exchanged": [lambda norm: not alone(norm)],
        },
    )
    forgets_to_return = check.batch_law(lambda norm: print(end=""))
    assert "is a return missing?" in forgets_to_return.text


def test_every_wrong_norm_runs_on_every_case():
    """A mistake that stopped with an error would be recognised for the wrong reason."""
    for mistake in check.normalise_tokens.mistakes:
        if mistake.name == "no keepdims":  # it stops, unless tokens and features agree
            continue
        for case in check.normalise_tokens.cases:
            with np.errstate(all="ignore"):
                y = mistake.answer(*case)
            assert np.shape(y) == case[0].shape, mistake.name


def test_the_norms_of_the_batch_law_are_judged_by_what_they_do():
    verdicts = [check.batch_law.right(*case) for case in check.batch_law.cases]
    assert verdicts == [True] * 5 + [False] * 6
