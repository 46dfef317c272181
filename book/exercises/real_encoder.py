"""Exercises on a real encoder; their checks do without its weights."""

import time

import numpy as np

import mha
from exercises import (
    Exercise,
    pictures,
    random_arrays,
    section,
    slips_of_the_zoo,
)
from exercises.engine import is_stub
from exercises.real_task import weights_of_a_layer

_LUCK = section(
    "real_encoder", 'Deeper: does "it" attend to the right noun in other sentences?'
)


def _to_length_1(e):
    return e / np.linalg.norm(e, axis=-1, keepdims=True)


def _total(Y, mask):
    return np.where(mask[..., None], Y, 0).sum(1)


def _sentence_cases():
    yield np.array([[[1.0, 5], [5, 3], [9, -5]]]), np.array([[True, True, False]])
    Y = np.array([[[1.0, 5.0], [5.0, 3.0]], [[4.0, -3.0], [2.0, 7.0]]])
    yield Y, np.array([[True, True], [True, False]])
    Y, padded = random_arrays((3, 5, 7), (2, 3, 5), seed=13)
    yield Y, np.arange(5) < np.array([[5], [3], [2]])
    # What a program without a mask in its softmax leaves in the rows of padding.
    padded[1, 2] = np.nan
    yield padded, np.array([[True, True, True], [True, True, False]])
    front = padded.copy()  # here the padding stands in front
    front[0, 0], front[1, 2] = np.inf, 0
    yield front, np.array([[False, True, True], [True, True, False]])


sentence_vectors = Exercise(
    task="one vector of length 1 per sentence",
    right=lambda Y, mask: _to_length_1(_total(Y, mask)),
    cases=tuple(_sentence_cases()),
    mistakes={
        "the mean of vectors of length 1 is shorter than 1: divide it by its length, "
        "and leave the tokens as they are": lambda Y, mask: (
            _total(_to_length_1(Y), mask) / mask.sum(1)[:, None]
        ),
        "you take the largest number of each column; take the mean": lambda Y, mask: (
            _to_length_1(np.where(mask[..., None], Y, -np.inf).max(1))
        ),
        "rows of padding took part: only rows where the mask is True are "
        "real": lambda Y, mask: _to_length_1(Y.mean(1)),
        "you multiplied by the mask, and 0 times NaN is NaN: padding may hold "
        "it": lambda Y, mask: _to_length_1((Y * mask[..., None]).sum(1)),
        "that is the mean; divide each vector by its length": lambda Y, mask: (
            _total(Y, mask) / mask.sum(1)[:, None]
        ),
        "that is the row of [CLS]; this model takes the mean of all real "
        "tokens": lambda Y, mask: _to_length_1(Y[:, 0]),
        "you divided every token by its length too; divide only the "
        "mean": lambda Y, mask: _to_length_1(_total(_to_length_1(Y), mask)),
    },
    reread=section("real_encoder", "One step before the encoder, and one after it"),
    praise="this is the last step of the model, and padding does not change it.",
)


def _encoded(X, layers, n_heads, mask, **changes):
    options = {"activation": "gelu", "eps": 1e-12} | changes
    return mha.encoder(X, layers, n_heads, mask, **options)


def _model_case(n, n_heads, lengths, seed, small=1.0):
    """Return inputs; where attention adds `small` numbers, ε counts."""
    (X,) = random_arrays((len(lengths), n, 6), seed=seed)
    layers = [weights_of_a_layer(seed + k, d=6, f=6) for k in (1, 2)]
    layers = [w | {x: small * w[x] for x in ("W_O", "b_O")} for w in layers]
    return small * X, layers, n_heads, mha.padding_mask(lengths)


def _padding_is_noise(encode, X, layers, n_heads, mask):
    """Return the rows of real tokens; what the others hold means nothing."""
    Y = np.asarray(encode(X, layers, n_heads, mask))
    real = np.broadcast_to(mask[:, 0, 0, :, None], X.shape)
    return np.where(real, Y, 0) if Y.shape == X.shape else Y


def _by_tanh(z):
    return z / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (z + 0.044715 * z**3)))


def _written_out(activation=mha.layers.gelu, residual=True, without=(), skip=False):
    """Return the encoder with another activation, or without some of it."""

    def encode(X, layers, n_heads, mask):
        for w in layers:
            w = w | {name: 0 * w[name] for name in without}
            weights = {n: w[n] for n in w if n[-1] in "QKVO"}
            before = X
            Z = mha.multi_head_attention(X, n_heads=n_heads, mask=mask, **weights)
            X = mha.layer_norm(Z + X * residual, w["gain_1"], w["bias_1"], 1e-12)
            Z = activation(X @ w["W_1"] + w["b_1"]) @ w["W_2"] + w["b_2"]
            X = before if skip else X * residual
            X = mha.layer_norm(Z + X, w["gain_2"], w["bias_2"], 1e-12)
        return X

    return encode


def _norms_exchanged(X, layers, n_heads, mask):
    """Return what comes out if each norm has the numbers of the other."""
    other = {"gain_1": "gain_2", "bias_1": "bias_2"}
    other |= {b: a for a, b in other.items()}
    layers = [{name: w[other.get(name, name)] for name in w} for w in layers]
    return _encoded(X, layers, n_heads, mask)


def _missing():
    """Return what is said where the published weights are missing."""
    try:
        import pretrained
    except ImportError:
        return "The published weights are not in this page. In JupyterLab they can be."
    return "" if pretrained.find() else pretrained.WAYS


def _minilm(encode):
    """Let a learner's encoder run the published model, and compare."""
    if missing := _missing():
        return pictures.said(missing)
    import pretrained
    from _data import minilm

    model, some = pretrained.load(), minilm.SIXTY[:6]
    began = time.perf_counter()
    yours = _embedded(encode, model, some)
    seconds = time.perf_counter() - began
    cosine = (yours * model.embed(some)).sum(-1).min()
    return pictures.said(
        f"Your encoder ran all-MiniLM-L6-v2, six layers and 10.6 million numbers, on "
        f"{len(some)} sentences in {seconds:.1f} s. The cosine of a sentence vector "
        f"with the right one is at least {np.floor(cosine * 1e5) / 1e5:.5f}."
    )


def _embedded(encode, model, sentences):
    """Return a vector of length 1 for each sentence, by a learner's encoder."""
    tokens = model.tokenize(sentences)
    mask = tokens.mask[:, None, None]
    X = model.look_up(tokens.ids)
    Y = np.asarray(encode(X, model.layers, model.n_heads, mask))
    return _to_length_1(Y.mean(1, where=tokens.mask[..., None]))


def search(encode, question, sentences):
    """Print sentences by how near a learner's encoder finds them to a question."""
    if is_stub(encode) or (missing := _missing()):
        first = "not attempted yet: first let your encoder pass its check"
        print(first if is_stub(encode) else missing)
        return
    import pretrained

    E = _embedded(encode, pretrained.load(), [question, *sentences])
    near = E[1:] @ E[0]
    print(question)
    for k in np.argsort(-near):
        print(f"  {near[k]:5.2f}  {sentences[k]}")


encode = Exercise(
    task="the encoder of the published model",
    right=_encoded,
    names=("X", "layers", "n_heads", "mask"),
    cases=(
        _model_case(1, 1, [1], seed=21),
        _model_case(3, 2, [3], seed=24),
        _model_case(5, 3, [5, 2], seed=27),
        _model_case(3, 3, [3, 1], seed=30, small=1e-3),
    ),
    observe=_padding_is_noise,
    forbidden=(mha.encoder, mha.encoder_layer),
    mistakes={
        "the activation is GELU, x times Φ(x), and yours is the ReLU": lambda *x: (
            _encoded(*x, activation="relu")
        ),
        "this is the GELU by tanh, which is near; the model has the exact one, with "
        "math.erf": _written_out(_by_tanh),
        "this is the GELU by a sigmoid, which is near; the model has the exact one, "
        "with math.erf": _written_out(lambda z: z / (1 + np.exp(-1.702 * z))),
        "in Φ(z) the error function is taken of z / √2": _written_out(
            lambda z: mha.layers.gelu(z * 2**0.5) / 2**0.5
        ),
        "the residual connections are missing": _written_out(residual=False),
        "the biases of attention are not used": _written_out(
            without=("b_Q", "b_K", "b_V", "b_O")
        ),
        "the second sum adds to X, what went into the layer: it adds to what the first "
        "norm returned": _written_out(skip=True),
        "gain_1 and bias_1 belong to the first norm, gain_2 and bias_2 to the "
        "second": _norms_exchanged,
        "these layers are post-norm: each norm comes behind a sum": lambda *x: _encoded(
            *x, norm_first=True
        ),
        "the ε of these norms is 10⁻¹²": lambda *x: _encoded(*x, eps=1e-5),
        "the mask is not used: padding takes part": lambda X, layers, n_heads, mask: (
            _encoded(X, layers, n_heads, None)
        ),
    }
    | slips_of_the_zoo(
        *("layers_share_weights", "only_last_layer"),
        run=lambda member: (
            lambda X, layers, n_heads, mask: member(
                X, layers, n_heads, mask, activation="gelu", eps=1e-12
            )
        ),
    ),
    reread=section("real_encoder", "The step in the package"),
    praise="your own layers can run a published model.",
    picture=_minilm,
)


def _chosen_cases():
    yield (np.array([[1, 0], [0, 1], [1, 0], [0, 1]], bool),)
    yield (np.array([[1, 1], [1, 0], [0, 0], [1, 0]], bool),)  # two are best
    yield (np.array([[1, 0], [1, 0], [1, 0], [0, 0]], bool),)
    rng = np.random.default_rng(11)
    for n_pairs, n_heads in ((7, 5), (12, 9), (11, 13)):
        yield (rng.random((n_pairs, n_heads)) < 0.5,)


def _best(right):
    return right.sum(0).argmax()


honest_score = Exercise(
    task="the score of the best head on unseen rows",
    right=lambda right: right[1::2, _best(right[::2])].mean(),
    cases=tuple(_chosen_cases()),
    mistakes={
        "you measured on all rows; leave out the even rows, "
        "on which you chose": lambda right: right[:, _best(right[::2])].mean(),
        "you chose and measured on the even rows; "
        "measure on the odd rows": lambda right: right[::2, _best(right[::2])].mean(),
        "you used the odd rows for the choice too; "
        "choose on the even rows only": lambda right: right[1::2, _best(right)].mean(),
        "this is how often the head is right; its score is the share": lambda right: (
            right[1::2, _best(right[::2])].sum()
        ),
        "you chose the head that is best on the odd rows; "
        "choose on the even rows": lambda right: right[1::2].mean(0).max(),
        "that is the number of the colleague: "
        "chosen and measured on all rows": lambda right: right.mean(0).max(),
        "you exchanged the halves: choose on even rows, "
        "measure on odd rows": lambda right: right[::2, _best(right[1::2])].mean(),
    },
    reread=_LUCK,
    praise="luck in the choice does not raise this score.",
)
