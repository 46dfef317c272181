"""Exercises on the encoder layer: its norms, its wiring, its parameters."""

import numpy as np

from exercises import section
from mha.check import Exercise, Mistake
from mha.encoder import layer_norm

_EQUATION, _BREAK_IT = (
    section("encoder_layer", "The equation"),
    section("encoder_layer", "Break it"),
)
_PARAMETERS = section(
    "encoder_layer", "Deeper: how many parameters and products does each part need?"
)


def _random(*shapes, seed):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).round(1) for shape in shapes)


# ------------------------------------------------------- how long is a token afterwards


def _as_number(answer):
    """Return the one number of `answer`, NaN for words."""
    try:
        return np.asarray(answer, dtype=float).reshape(())
    except ValueError:
        if isinstance(answer, str):
            return np.nan
        raise


length_after_norm = Exercise(
    task="the length of a token of 64 numbers after layer norm",
    right=8.0,
    cases=((),),
    observe=_as_number,
    mistakes=(
        Mistake(
            "length one",
            "the variance becomes 1, which is the mean of the squares and not their "
            "sum",
            1.0,
        ),
        Mistake(
            "the squares",
            "64 is the sum of the squares; the length is its root",
            64.0,
        ),
        Mistake(
            "one number less",
            "the sum of the squares is divided by the number of features, not one less",
            63**0.5,
        ),
        Mistake(
            "the mean",
            "0 is the mean of the numbers; a vector of length 0 contains only zeros",
            0.0,
        ),
        Mistake(
            "divided by the root",
            "the numbers are about 1 in size and there are 64 of them, so multiply by "
            "the root of 64",
            0.125,
        ),
        Mistake(
            "it depends",
            "dividing by the standard deviation removes the original length, so every "
            "token (of unequal numbers) comes out with the same length",
            float("nan"),
        ),
    ),
    reread=_EQUATION,
    praise="√d_model, whatever came in: layer norm gives every token the same length.",
)


# ------------------------------------------------------- the norm of a token


def _norm_over(axes, ddof=0, power=0.5, centre=True, inside=True, affine="both"):
    """Return a norm whose mean and variance run over `axes`, right or wrong."""

    def norm(x, gain, bias, eps):
        along = tuple(range(x.ndim - 1)) if axes == "batch and tokens" else axes
        mean = x.mean(along, keepdims=True) if centre else 0
        spread = ((x - mean) ** 2).sum(along, keepdims=True)
        count = np.prod([x.shape[a] for a in along])
        variance = spread / (count - ddof)
        size = (variance + eps) ** power if inside else variance**power + eps
        return AFFINE[affine]((x - mean) / size, gain, bias)

    return norm


AFFINE = {
    "both": lambda y, gain, bias: y * gain + bias,
    "gain": lambda y, gain, bias: y * gain,
    "bias": lambda y, gain, bias: y + bias,
    "none": lambda y, gain, bias: y,
    "bias first": lambda y, gain, bias: (y + bias) * gain,
    "swapped": lambda y, gain, bias: y * bias + gain,
}


def _norm_case(*shape, eps, seed):
    return (*_random(shape, shape[-1:], shape[-1:], seed=seed), eps)


def _with_eps(change):
    """Return the right norm with another eps."""
    return lambda x, gain, bias, eps: _norm_over((-1,))(x, gain, bias, change(eps))


def _all_in_one(x, gain, bias, eps):
    return _norm_over(tuple(range(x.ndim)))(x, gain, bias, eps)


def _by_length(x, gain, bias, eps):
    d = x.shape[-1]
    y = _norm_over((-1,))(x, np.ones(d), np.zeros(d), eps / d)
    return y / d**0.5 * gain + bias


def _root_of_root(x, gain, bias, eps):
    size = np.sqrt(x.std(-1, keepdims=True) + eps)
    return (x - x.mean(-1, keepdims=True)) / size * gain + bias


normalise_tokens = Exercise(
    task="layer norm",
    right=lambda x, gain, bias, eps: layer_norm(x, gain, bias, eps),
    forbidden=(layer_norm,),
    cases=(
        (np.array([[1.0, 9.0]]), np.ones(2), np.zeros(2), 9.0),
        (np.array([[1.0, 9.0], [4.0, 4.0]]), np.array([2.0, 3]), np.ones(2), 0.5),
        _norm_case(3, 5, eps=0.5, seed=0),
        _norm_case(2, 3, 5, eps=0.5, seed=1),
    ),
    mistakes=(
        Mistake(
            "over the tokens",
            "you average each feature over the tokens; a token must be normalised by "
            "its own numbers alone",
            _norm_over((-2,)),
        ),
        Mistake(
            "batch norm",
            "you average over batch and tokens, which is batch norm: then one sentence "
            "changes another",
            _norm_over("batch and tokens"),
        ),
        Mistake(
            "over the first axis",
            "the first axis is the batch, or the tokens where there is no batch; the "
            "features of a token lie along the last one",
            _norm_over((0,)),
        ),
        Mistake(
            "no keepdims",
            "the mean has lost its axis, so it is subtracted from the wrong numbers "
            "or the shapes do not fit: use keepdims=True",
            lambda x, gain, bias, eps: (
                (x - x.mean(-1)) / np.sqrt(x.var(-1) + eps) * gain + bias
            ),
        ),
        Mistake(
            "over the whole sentence",
            "all tokens of a sentence share one mean; each should have its own",
            _norm_over((-2, -1)),
        ),
        Mistake(
            "unbiased variance",
            "divide the squares by the number of features, not by one less, as "
            "torch.var and torch.std do by default",
            _norm_over((-1,), ddof=1),
        ),
        Mistake(
            "eps outside the root",
            "eps is added to the variance, under the root, and not to the root",
            _norm_over((-1,), inside=False),
        ),
        Mistake(
            "unbiased, and eps outside",
            "two mistakes that often come together: you divide by the number of "
            "features minus one, and eps is outside the root",
            _norm_over((-1,), ddof=1, inside=False),
        ),
        Mistake(
            "eps ignored", "the argument eps is not used", _with_eps(lambda eps: 0)
        ),
        Mistake(
            "an eps of your own",
            "eps came in, and you have used another number",
            _with_eps(lambda eps: 1e-5),
        ),
        Mistake(
            "the second axis",
            "axis 1 is the last one only as long as there is no batch: count from the "
            "end",
            _norm_over((1,)),
        ),
        Mistake(
            "one mean for everything",
            "without an axis all numbers share a mean; each token should have its own",
            _all_in_one,
        ),
        Mistake(
            "the length of the token",
            "you sum the squares; the variance is their mean",
            _by_length,
        ),
        Mistake(
            "a root too many",
            "a standard deviation is already a root; eps is added to the variance",
            _root_of_root,
        ),
        Mistake(
            "divided by the variance",
            "divide by the root of the variance, not by the variance itself",
            _norm_over((-1,), power=1),
        ),
        Mistake(
            "not centred",
            "the mean of the token is not subtracted",
            _norm_over((-1,), centre=False),
        ),
        Mistake(
            "mean left in",
            "you divide by the right number, but the mean is not subtracted",
            lambda x, gain, bias, eps: (
                x / np.sqrt(x.var(-1, keepdims=True) + eps) * gain + bias
            ),
        ),
        Mistake(
            "no gain",
            "the argument gain is not used",
            _norm_over((-1,), affine="bias"),
        ),
        Mistake(
            "no bias",
            "the argument bias is not used",
            _norm_over((-1,), affine="gain"),
        ),
        Mistake(
            "neither gain nor bias",
            "the norm is right; now multiply by the gain and add the bias",
            _norm_over((-1,), affine="none"),
        ),
        Mistake(
            "bias before gain",
            "multiply by the gain first and add the bias afterwards: yours multiplies "
            "the bias by the gain too",
            _norm_over((-1,), affine="bias first"),
        ),
        Mistake(
            "gain and bias exchanged",
            "the gain multiplies and the bias is added",
            _norm_over((-1,), affine="swapped"),
        ),
    ),
    reread=_EQUATION,
    praise="each token is normalised by its own numbers, even if they are all equal.",
)


# ------------------------------------------------------- how many parameters


def _attention(d):
    return 4 * d * d + 4 * d


def _feed(d, d_ff):
    return 2 * d * d_ff + d_ff + d


layer_parameters = Exercise(
    task="how many numbers one layer learns",
    right=lambda d_model, d_ff: (
        _attention(d_model) + _feed(d_model, d_ff) + 4 * d_model
    ),
    cases=((2, 3), (5, 7), (512, 2048)),
    mistakes=(
        Mistake(
            "half of the norms",
            "there are two norms, and each has a gain and a bias for every feature",
            lambda d, d_ff: _attention(d) + _feed(d, d_ff) + 2 * d,
        ),
        Mistake(
            "no norms, or no biases in attention",
            "4 d_model parameters are missing: either the gains and biases of both "
            "norms, or the biases of the four matrices of attention",
            lambda d, d_ff: _attention(d) + _feed(d, d_ff),
        ),
        Mistake(
            "one gain and one bias a norm",
            "a norm has a gain and a bias for every feature, not one for all of them",
            lambda d, d_ff: _attention(d) + _feed(d, d_ff) + 4,
        ),
        Mistake(
            "no biases at all",
            "you count no bias: add one for every matrix (one number per column), and "
            "a gain and a bias for each norm",
            lambda d, d_ff: 4 * d * d + 2 * d * d_ff,
        ),
        Mistake(
            "matrices without biases",
            "each of the six matrices has a bias, one number per column",
            lambda d, d_ff: 4 * d * d + 2 * d * d_ff + 4 * d,
        ),
        Mistake(
            "no W_O",
            "attention has four matrices; the one that mixes the heads is missing",
            lambda d, d_ff: 3 * d * d + 3 * d + _feed(d, d_ff) + 4 * d,
        ),
        Mistake(
            "one way only",
            "the feed-forward network has two matrices, W_1 and W_2",
            lambda d, d_ff: _attention(d) + d * d_ff + d_ff + 4 * d,
        ),
        Mistake(
            "both ways to d_ff",
            "the second bias has one number per column of W_2, which has d_model "
            "columns",
            lambda d, d_ff: _attention(d) + 2 * d * d_ff + 2 * d_ff + 4 * d,
        ),
        Mistake(
            "always four times as wide",
            "d_ff is given; 4 d_model is only the usual choice",
            lambda d, d_ff: 12 * d * d + 13 * d,
        ),
        Mistake(
            "no biases in feed-forward",
            "W_1 and W_2 have biases too, one number per column",
            lambda d, d_ff: _attention(d) + 2 * d * d_ff + 4 * d,
        ),
        Mistake(
            "one bias short",
            "d_model parameters are missing: one of the biases",
            lambda d, d_ff: _attention(d) + _feed(d, d_ff) + 3 * d,
        ),
        Mistake(
            "b_1 too short",
            "the first bias has one number per column of W_1, which has d_ff columns",
            lambda d, d_ff: _attention(d) + 2 * d * d_ff + 2 * d + 4 * d,
        ),
        Mistake(
            "a square in feed-forward",
            "W_1 has the shape (d_model, d_ff) and W_2 (d_ff, d_model): neither is "
            "square",
            lambda d, d_ff: _attention(d) + 2 * d_ff**2 + d_ff + d + 4 * d,
        ),
        Mistake(
            "no attention",
            "the four matrices of attention and their biases are missing",
            lambda d, d_ff: _feed(d, d_ff) + 4 * d,
        ),
        Mistake(
            "attention only",
            "that is attention alone; the feed-forward network and the norms are "
            "missing",
            lambda d, d_ff: _attention(d),
        ),
        Mistake(
            "feed-forward for each token",
            "all tokens share one feed-forward network, so count it once",
            lambda d, d_ff: _attention(d) + 4 * d + d * _feed(d, d_ff),
        ),
    ),
    reread=_PARAMETERS,
    praise="with d_ff = 4 d_model, two thirds of them are in the feed-forward network.",
)


# ------------------------------------------------------- the wiring of a layer


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


def _slip(name, hint, post=None, pre=None):
    """Return the mistakes of a slip in both orders, in post-norm and in pre-norm."""
    slips = []
    if post and pre:
        slips.append(Mistake(name, f"in both orders {hint}", _wired(post, pre)))
    if post:
        hint_post = f"pre-norm is right, but in post-norm {hint}"
        slips.append(Mistake(f"post-norm: {name}", hint_post, _wired(post, _pre)))
    if pre:
        hint_pre = f"post-norm is right, but in pre-norm {hint}"
        slips.append(Mistake(f"pre-norm: {name}", hint_pre, _wired(_post, pre)))
    return tuple(slips)


_SLIPS = (
    _slip(
        "one Add & Norm",
        "your layer ends with feed: its residual connection and norm_2 are missing",
        lambda X, a, f, n_1, n_2: f(n_1(X + a(X))),
        lambda X, a, f, n_1, n_2: f(X + a(n_1(X))),
    ),
    _slip(
        "no second residual",
        "the input of feed must be added to its output",
        lambda X, a, f, n_1, n_2: n_2(f(n_1(X + a(X)))),
        lambda X, a, f, n_1, n_2: f(n_2(X + a(n_1(X)))),
    ),
    _slip(
        "no first residual",
        "X must be added to the output of attend",
        lambda X, a, f, n_1, n_2: n_2((Z := n_1(a(X))) + f(Z)),
        lambda X, a, f, n_1, n_2: (Z := a(n_1(X))) + f(n_2(Z)),
    ),
    _slip(
        "no residual",
        "both residual connections are missing: add the input of each part to its "
        "output",
        lambda X, a, f, n_1, n_2: n_2(f(n_1(a(X)))),
        lambda X, a, f, n_1, n_2: f(n_2(a(n_1(X)))),
    ),
    _slip(
        "no second norm",
        "norm_2 is not used",
        lambda X, a, f, n_1, n_2: (Z := n_1(X + a(X))) + f(Z),
        lambda X, a, f, n_1, n_2: (Z := X + a(n_1(X))) + f(Z),
    ),
    _slip(
        "no first norm",
        "norm_1 is not used",
        lambda X, a, f, n_1, n_2: n_2((Z := X + a(X)) + f(Z)),
        lambda X, a, f, n_1, n_2: (Z := X + a(X)) + f(n_2(Z)),
    ),
    _slip(
        "no norm",
        "neither norm is used",
        lambda X, a, f, n_1, n_2: (Z := X + a(X)) + f(Z),
        lambda X, a, f, n_1, n_2: (Z := X + a(X)) + f(Z),
    ),
    _slip(
        "the first tokens added twice",
        "the second residual connection adds what comes after the first sum, not X",
        lambda X, a, f, n_1, n_2: n_2(X + f(n_1(X + a(X)))),
        lambda X, a, f, n_1, n_2: X + f(n_2(X + a(n_1(X)))),
    ),
    _slip(
        "the norm of what a part brings",
        "you normalise the output of a part before it is added",
        lambda X, a, f, n_1, n_2: (Z := X + n_1(a(X))) + n_2(f(Z)),
        lambda X, a, f, n_1, n_2: (Z := X + n_1(a(X))) + n_2(f(Z)),
    ),
    _slip(
        "the wrong path around",
        "the residual connection around feed adds what went into feed, after norm_1",
        post=lambda X, a, f, n_1, n_2: n_2((Z := X + a(X)) + f(n_1(Z))),
    ),
    _slip(
        "the wrong stream",
        "the residual connection adds the tokens as they were before the norm",
        pre=lambda X, a, f, n_1, n_2: (M := n_2((N := n_1(X)) + a(N))) + f(M),
    ),
    _slip(
        "the wrong stream at attention",
        "the residual connection around attend adds X, not norm_1(X)",
        pre=lambda X, a, f, n_1, n_2: (Z := (N := n_1(X)) + a(N)) + f(n_2(Z)),
    ),
    _slip(
        "the wrong stream at feed-forward",
        "the residual connection around feed adds the first sum, not its norm",
        pre=lambda X, a, f, n_1, n_2: (M := n_2(X + a(n_1(X)))) + f(M),
    ),
    _slip(
        "one more norm",
        "the last sum is not normalised: the next layer does that at its start",
        pre=lambda X, a, f, n_1, n_2: n_2(_pre(X, a, f, n_1, n_2)),
    ),
    _slip(
        "norm_1 twice",
        "norm_1 is used twice: norm_2 has a gain and bias of its own",
        lambda X, a, f, n_1, n_2: _post(X, a, f, n_1, n_1),
        lambda X, a, f, n_1, n_2: _pre(X, a, f, n_1, n_1),
    ),
    _slip(
        "norms exchanged",
        "norm_1 belongs to attend and norm_2 to feed: yours are exchanged",
        lambda X, a, f, n_1, n_2: _post(X, a, f, n_2, n_1),
        lambda X, a, f, n_1, n_2: _pre(X, a, f, n_2, n_1),
    ),
    _slip(
        "feed-forward first",
        "attend comes first, and feed works on its result",
        lambda X, a, f, n_1, n_2: _post(X, f, a, n_1, n_2),
        lambda X, a, f, n_1, n_2: _pre(X, f, a, n_1, n_2),
    ),
    _slip(
        "side by side",
        "feed should work on the result of the first half, not on X",
        lambda X, a, f, n_1, n_2: n_2(n_1(X + a(X)) + f(X)),
        lambda X, a, f, n_1, n_2: X + a(n_1(X)) + f(n_2(X)),
    ),
    _slip(
        "half a layer",
        "your layer stops after attention: feed is missing",
        lambda X, a, f, n_1, n_2: n_1(X + a(X)),
        lambda X, a, f, n_1, n_2: X + a(n_1(X)),
    ),
)

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
    mistakes=(
        *(mistake for slips in _SLIPS for mistake in slips),
        Mistake(
            "always post-norm",
            "norm_first has no effect: your layer is always post-norm",
            _wired(_post, _post),
        ),
        Mistake(
            "always pre-norm",
            "norm_first has no effect: with norm_first=False each norm comes after a "
            "sum",
            _wired(_pre, _pre),
        ),
        Mistake(
            "norm_first inverted",
            "the two orders are exchanged: norm_first=True means that each part gets "
            "normalised tokens",
            _wired(_pre, _post),
        ),
    ),
    reread=_EQUATION,
    praise="two parts, two residual connections and two norms, in both orders.",
)


# ------------------------------------------------------- a law of the learner's own


def _shared(axes, centre=True, divide=True, only=slice(None)):
    """Return a norm of (batch, n, d_model) whose statistics run over `axes`."""

    def norm(x):
        source = x[only]
        mean = source.mean(axes, keepdims=True) if centre else 0
        root = np.sqrt(source.var(axes, keepdims=True) + 1e-5) if divide else 1
        return (x - mean) / root

    return norm


def _named(name, norm):
    norm.__name__ = name
    return norm


def _root_mean_square(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def _stored(x):
    """Be a batch norm in eval mode, with numbers stored in training."""
    features = np.arange(x.shape[-1])
    return (x - 0.1 * features) / (1 + 0.2 * features)


_LAWFUL = (
    _named("layer norm", lambda x: layer_norm(x)),
    _named("root mean square norm", _root_mean_square),
    _named("norm over tokens", _shared(1)),
    _named("norm over a sentence", _shared((1, 2))),
    _named("batch norm with stored numbers", _stored),
)
_UNLAWFUL = (
    _named("batch norm", _shared((0, 1))),
    _named("norm over sentences", _shared(0)),
    _named("batch mean taken away", _shared((0, 1), divide=False)),
    _named("divided by batch spread", _shared((0, 1), centre=False)),
    _named("mean of sentence 0 for all", _shared((0, 1), only=slice(1))),
    _named("mean of the last sentence for all", _shared((0, 1), only=slice(-1, None))),
)


def _verdict(law, norm):
    """Return what the law says: a plain True or False, or what else it returns."""
    said = law(norm) if callable(law) else law
    return said if said is None or np.ndim(said) else bool(said)


def _draw(n=3):
    return np.random.default_rng(1).normal(size=(2, n, 5))


def _law(norm):
    """Change each sentence in turn; no other may move."""
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    y = norm(x)
    for b in range(3):
        other = x.copy()
        other[b] = 2 * other[b] ** 2 + 1
        kept = np.arange(3) != b
        if not np.allclose(norm(other)[kept], y[kept]):
            return False
    return True


def _all_outputs(norm):
    x = _draw()
    other = x.copy()
    other[1] = 3 * other[1] + 1
    return bool(np.allclose(norm(other), norm(x)))


def _same_order(norm):
    x = _draw()
    return bool(np.allclose(norm(x[::-1]), norm(x)[::-1]))


def _changed(changed, asked):
    """Return a law that changes one sentence and asks another."""

    def law(norm):
        x = _draw()
        other = x.copy()
        other[changed] = 3 * other[changed] ** 2 + 1
        return bool(np.allclose(norm(other)[asked], norm(x)[asked]))

    return law


def _rows_are_normal(norm):
    y = norm(_draw())
    return bool(np.allclose(y.mean(-1), 0) and np.allclose(y.var(-1), 1, atol=1e-3))


def _features_are_not(norm):
    return bool(not np.allclose(norm(_draw()).mean((0, 1)), 0))


def _tokens_alone(norm):
    x = _draw()
    other = x.copy()
    other[:, 1] = 3 * other[:, 1] ** 2 + 1
    return bool(np.allclose(norm(other)[:, 0], norm(x)[:, 0]))


batch_law = Exercise(
    task="the law that the rest of the batch changes nothing",
    right=_law,
    cases=tuple((norm,) for norm in (*_LAWFUL, *_UNLAWFUL)),
    observe=_verdict,
    names=("norm",),
    mistakes=(
        Mistake(
            "always True",
            "your law returns True for every norm",
            lambda norm: norm(_draw()) is not None,
        ),
        Mistake(
            "always False",
            "your law returns False for every norm: do you also compare the sentence "
            "that you change? It may change",
            lambda norm: norm(_draw()) is None,
        ),
        Mistake(
            "the changed sentence compared too",
            "you also compare the sentence that you change, which may come out "
            "changed: compare only the others",
            _all_outputs,
        ),
        Mistake(
            "sentences exchanged",
            "a mean over the batch does not depend on the order of the sentences: "
            "change the numbers of a sentence instead",
            _same_order,
        ),
        Mistake(
            "only the last changed",
            "a norm may take its mean from one sentence only: let each sentence change "
            "in turn",
            _changed(-1, 0),
        ),
        Mistake(
            "only the first changed",
            "a norm may take its mean from the last sentence only: let each sentence "
            "change in turn",
            _changed(0, -1),
        ),
        Mistake(
            "True and False exchanged",
            "True should mean that no sentence influences how another is normalised",
            lambda norm: not _law(norm),
        ),
        Mistake(
            "rows of mean 0",
            "you test whether it is layer norm, but other norms also keep the "
            "sentences apart",
            _rows_are_normal,
        ),
        Mistake(
            "features of mean 0",
            "a mean of 0 over the batch is a sign of one kind of batch norm only: "
            "change a sentence and see whether another one changes",
            _features_are_not,
        ),
        Mistake(
            "tokens instead of sentences",
            "you change a token of the same sentence; the law is about other sentences",
            _tokens_alone,
        ),
    ),
    reread=_BREAK_IT,
    praise=(
        "it detects every norm in which one sentence influences another, and no other."
    ),
)
