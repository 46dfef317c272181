"""Exercises on the encoder layer: its norms and its wiring."""

import numpy as np

from exercises import (
    Exercise,
    Law,
    each,
    in_use,
    judged,
    named,
    partly,
    random_arrays,
    section,
)
from mha import layer_norm


def _over(axes, centre=True, root=lambda v, eps: np.sqrt(v + eps)):
    """Return a norm whose mean and variance run over `axes`, right or wrong."""

    def norm(x, gain, bias, eps):
        along = tuple(range(x.ndim))[axes] if isinstance(axes, slice) else axes
        middle = x - x.mean(along, keepdims=True)
        count = middle.size / middle.sum(along).size
        given = middle if centre else x
        variance = (given**2).sum(along, keepdims=True) / count
        return given / root(variance, eps) * gain + bias

    return norm


def _norm_case(*shape, eps, seed):
    return (*random_arrays(shape, shape[-1:], shape[-1:], seed=seed), eps)


normalise_tokens = Exercise(
    task="layer norm",
    axes=1,
    right=lambda x, gain, bias, eps: layer_norm(x, gain, bias, eps),
    forbidden=(layer_norm,),
    cases=(
        (np.array([[1.0, 9.0]]), np.ones(2), np.zeros(2), 9.0),
        (np.array([[1.0, 9.0], [4.0, 4.0]]), np.array([2.0, 3]), np.ones(2), 0.5),
        _norm_case(3, 5, eps=0.5, seed=0),
        _norm_case(2, 3, 5, eps=0.5, seed=1),
    ),
    mistakes={
        "gain and bias have changed places: gain multiplies, and bias is "
        "added": lambda x, gain, bias, eps: layer_norm(x, bias, gain, eps),
        "gain multiplies the bias too: multiply first, then "
        "add": lambda x, gain, bias, eps: gain * (layer_norm(x, eps=eps) + bias),
        "you average over batch and tokens, which is batch norm: "
        "then one sentence changes another": _over(slice(-1)),
        "all tokens of a sentence share one mean; each should have its own": _over(
            (-2, -1)
        ),
        "eps is added to the variance, under the root, and not to the root": _over(
            -1, root=lambda v, eps: np.sqrt(v) + eps
        ),
        "the mean of the token is not subtracted": _over(-1, centre=False),
    },
    reread=section("encoder_layer", "Before or after: two places for the norm"),
    praise="each token is normalised by its own numbers, even if they are all equal.",
)


def mix(x):
    """Stand in for attention: each token receives twice the token before it."""
    return 2 * np.roll(x, 1, axis=0) + 1


def bend(x):
    """Stand in for feed-forward: each number alone, and not in proportion."""
    return np.maximum(3 * x, 0) - 1


def centre(x):
    """Stand in for the norm of attention."""
    return x - x.mean(-1, keepdims=True)


def shrink(x):
    """Stand in for the norm of feed-forward."""
    return x / (1 + np.abs(x).max(-1, keepdims=True))


def _wired(post, pre):
    """Return a layer that does `post` or `pre` with the four parts it is given."""

    def layer(X, attend, feed, norm_1, norm_2, norm_first):
        return (pre if norm_first else post)(X, attend, feed, norm_1, norm_2)

    return layer


def _post(X, attend, feed, norm_1, norm_2):
    Z = norm_1(X + attend(X))
    return norm_2(Z + feed(Z))


def _pre(X, attend, feed, norm_1, norm_2):
    Z = X + attend(norm_1(X))
    return Z + feed(norm_2(Z))


# What is said to a slip, and the slip in post-norm and in pre-norm (None: not there).
# Who makes it in one order only is told "it may be this", and sees which.
_SLIPS = {
    "your layer ends with feed: its residual connection and norm_2 are missing": (
        lambda X, a, f, m, n: f(m(X + a(X))),
        lambda X, a, f, m, n: f(X + a(m(X))),
    ),
    "feed gets the tokens from before attention: give it those from after it": (
        lambda X, a, f, m, n: n(m(X + a(X)) + f(X)),
        lambda X, a, f, m, n: X + a(m(X)) + f(n(X)),
    ),
    "the input of feed must be added to its output": (
        lambda X, a, f, m, n: n(f(m(X + a(X)))),
        lambda X, a, f, m, n: f(n(X + a(m(X)))),
    ),
    "X must be added to the output of attend": (
        lambda X, a, f, m, n: n((Z := m(a(X))) + f(Z)),
        lambda X, a, f, m, n: (Z := a(m(X))) + f(n(Z)),
    ),
    "norm_2 is not used": (
        lambda X, a, f, m, n: (Z := m(X + a(X))) + f(Z),
        lambda X, a, f, m, n: (Z := X + a(m(X))) + f(Z),
    ),
    "norm_1 is not used": (
        lambda X, a, f, m, n: n((Z := X + a(X)) + f(Z)),
        lambda X, a, f, m, n: (Z := X + a(X)) + f(n(Z)),
    ),
    "the second residual connection adds what comes after the first sum, not X": (
        lambda X, a, f, m, n: n(X + f(m(X + a(X)))),
        lambda X, a, f, m, n: X + f(n(X + a(m(X)))),
    ),
    "you normalise the output of a part before it is added": (
        lambda X, a, f, m, n: (Z := X + m(a(X))) + n(f(Z)),
        lambda X, a, f, m, n: (Z := X + m(a(X))) + n(f(Z)),
    ),
    "the residual connection around feed adds what went into feed, after norm_1": (
        lambda X, a, f, m, n: n((Z := X + a(X)) + f(m(Z))),
        None,
    ),
    "the residual connection adds the tokens as they were before the norm": (
        None,
        lambda X, a, f, m, n: (Z := n((N := m(X)) + a(N))) + f(Z),
    ),
    "the residual connection around feed adds the first sum, not its norm": (
        None,
        lambda X, a, f, m, n: (Z := n(X + a(m(X)))) + f(Z),
    ),
    "the last sum is not normalised: the next layer does that at its start": (
        None,
        lambda X, a, f, m, n: n(_pre(X, a, f, m, n)),
    ),
    "your layer stops after attention: feed is missing": (
        lambda X, a, f, m, n: m(X + a(X)),
        lambda X, a, f, m, n: X + a(m(X)),
    ),
}


_X = np.array([[1.0, 9.0], [4.0, -2.0], [0.0, 3.0]])
_PARTS = (mix, bend, centre, shrink)

wire_layer = Exercise(
    task="a layer from its four parts, post-norm and pre-norm",
    right=_wired(_post, _pre),
    cases=(
        (_X[:1], *_PARTS, False),
        (_X[:1], *_PARTS, True),
        (_X, *_PARTS, False),
        (_X, *_PARTS, True),
    ),
    mistakes={hint: _wired(a or _post, b or _pre) for hint, (a, b) in _SLIPS.items()}
    | {
        "norm_first has no effect: "
        "with norm_first=False each norm comes after a sum": _wired(_pre, _pre),
    },
    reread=section("encoder_layer", "Before or after: two places for the norm"),
    praise="two parts, two residual connections and two norms, in both orders.",
    picture=in_use.deep,
)


def _shared(axes, centre=True, divide=True, only=slice(None)):
    """Return a norm of (batch, n, d_model) whose statistics run over `axes`."""

    def norm(x):
        source = x[only]
        mean = source.mean(axes, keepdims=True) if centre else 0
        root = np.sqrt(source.var(axes, keepdims=True) + 1e-5) if divide else 1
        return (x - mean) / root

    return norm


def _of_the_middle(x):
    middle = len(x) // 2
    return _shared((0, 1), only=slice(middle, middle + 1))(x)


def _own_mean(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(x.var() + 1e-5)


def _root_mean_square(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def _stored(x):
    """Be a batch norm in eval mode, with numbers stored in training."""
    features = np.arange(x.shape[-1])
    return (x - 0.1 * features) / (1 + 0.2 * features)


_LAWFUL = (
    named("layer norm", lambda x: layer_norm(x)),
    named("root mean square norm", _root_mean_square),
    named("norm over tokens", _shared(1)),
    named("norm over a sentence", _shared((1, 2))),
    named("batch norm with stored numbers", _stored),
)
_UNLAWFUL = (
    named("batch norm", _shared((0, 1))),
    named("norm over sentences", _shared(0)),
    named("batch mean taken away", _shared((0, 1), divide=False)),
    named("divided by batch spread", _shared((0, 1), centre=False)),
    named("mean of sentence 0 for all", _shared((0, 1), only=slice(1))),
    named("mean of the last sentence for all", _shared((0, 1), only=slice(-1, None))),
    named("mean of the middle sentence for all", _of_the_middle),
    named("mean of the last tokens for all", _shared((0, 1), only=np.s_[:, -1:])),
    named("own mean, spread of the batch", _own_mean),
)
_UNLAWFUL += (
    partly(_UNLAWFUL[0], _LAWFUL[0], np.s_[:, 1:], "from the second token on"),
    partly(_UNLAWFUL[0], _LAWFUL[0], np.s_[..., 1:], "from the second feature on"),
)


_DRAWN = np.random.default_rng(1).normal(size=(3, 4, 5))


def _keeps(changed, asked, power=2):
    """Return a law that changes a part of the batch and asks whether another stays."""

    def law(norm):
        other = _DRAWN.copy()
        other[changed] = 3 * other[changed] ** power + 1
        return bool(np.allclose(norm(other)[asked], norm(_DRAWN)[asked]))

    return law


def _batch_law(norm):
    return all(_keeps(b, np.arange(3) != b)(norm) for b in range(3))


batch_law = Law(
    task="the law that the rest of the batch changes nothing",
    right=_batch_law,
    cases=each(*_LAWFUL, *_UNLAWFUL),
    observe=judged,
    mistakes={
        "you also compare the sentence that you change, which may come out changed: "
        "compare only the others": _keeps(1, slice(None), power=1),
        "you test whether it is layer norm, but other norms also keep the sentences "
        "apart": lambda norm: np.allclose(norm(_DRAWN).var(-1), 1, atol=1e-3),
        "you change a token of the same sentence; the law is about other "
        "sentences": _keeps(np.s_[:, 1], np.s_[:, 0]),
    },
    reread=section("encoder_layer", "Break it"),
    praise=(
        "it detects every norm in which one sentence influences another, and no other."
    ),
)
