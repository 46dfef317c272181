"""Exercises on trained heads: silence one, find one, drop one."""

import numpy as np

from exercises import Exercise, pictures, section

_BREAK_IT = section("what_heads_learn", "Four ways to silence a head")
_TWINS = section("what_heads_learn", "Deeper: does training separate two equal heads?")


def _matrix(rows, columns, seed):
    """Return W_O for heads that together need not be as wide as the tokens."""
    rng = np.random.default_rng(seed)
    return rng.integers(1, 10, size=(rows, columns)).astype(float)


def _zero(W_O, rows, columns=slice(None)):
    answer = np.array(W_O, dtype=float)
    answer[rows, columns] = 0
    return answer


def _block(size, n_heads, head):
    """Return the places of a head among `size` rows or columns."""
    return slice(head * (size // n_heads), (head + 1) * (size // n_heads))


silence_head = Exercise(
    task="W_O for a layer in which one head is silent",
    right=lambda W_O, n_heads, head: _zero(W_O, _block(len(W_O), n_heads, head)),
    cases=(
        (_matrix(2, 2, 0), 2, 1),
        (_matrix(6, 6, 1), 3, 0),
        (_matrix(6, 5, 2), 2, 1),
        (_matrix(8, 8, 3), 4, 2),
    ),
    mistakes={
        "you set columns of W_O to 0; a head owns rows, and all heads add to every "
        "column of the output": lambda W_O, n, head: _zero(
            W_O, slice(None), _block(W_O.shape[1], n, head)
        ),
        "you set one row to 0; a head owns as many rows of W_O as it is "
        "wide": lambda W_O, n, head: _zero(W_O, head),
        "you took W_O.shape[1] // n_heads as the width of a head, but here the heads "
        "together are not as wide as the output": lambda W_O, n, head: _zero(
            W_O, _block(W_O.shape[1], n, head)
        ),
        "you took every n_heads-th row; the rows of a head are next to each other in "
        "W_O": lambda W_O, n, head: _zero(W_O, slice(head, None, n)),
        "you keep this head and silence all others": lambda W_O, n, head: (
            W_O - _zero(W_O, _block(len(W_O), n, head))
        ),
        "a head adds to all columns of the output, so its rows of W_O must be 0 over "
        "their whole length": lambda W_O, n, head: _zero(
            W_O, _block(len(W_O), n, head), _block(W_O.shape[1], n, head)
        ),
    },
    reread=_BREAK_IT,
    praise="the term of this head is 0, and the other terms are what they were.",
)


def _score(follows, again=None, share=lambda a, b: a.sum() / b.sum()):
    """Return a score: `follows` says which keys count, and `again` which queries."""

    def induction_score(A, letters):
        letters = np.asarray(letters)
        wanted = follows(letters)
        rows = wanted.any(-1) if again is None else again(letters)
        given = (np.asarray(A) * wanted[:, None]).sum(-1)  # text, head, query
        return np.array([share(x * rows, rows) for x in given.swapaxes(0, 1)])

    return induction_score


def _equal(letters, shift):
    """Return where key j + shift has the letter of query i, and lies before it."""
    n = letters.shape[-1]
    i, j = np.ogrid[:n, :n]
    at = j + shift
    inside = (at >= 0) & (at < i)
    return (letters[:, np.clip(at, 0, n - 1)] == letters[:, :, None]) & inside


def _behind(letters):
    return _equal(letters, -1)


def _one(wanted, last):
    """Return a mask with the last, or the first, True of each row."""
    order = wanted[..., ::-1] if last else wanted
    first = order & (np.cumsum(order, -1) == 1)
    return first[..., ::-1] if last else first


def _texts(n_texts, n_heads, n, n_letters, seed):
    """Return weights under a causal mask, and texts with repeated letters."""
    rng = np.random.default_rng(seed)
    A = np.tril(rng.integers(1, 10, (n_texts, n_heads, n, n)).astype(float))
    return A / A.sum(-1, keepdims=True), rng.integers(0, n_letters, (n_texts, n))


def _in_training(induction_score):
    """Train a model that copies, and let a learner's score find its induction head."""
    try:
        import torch
    except ImportError:
        told = "In JupyterLab, where PyTorch is, it now looks into a trained model."
        return pictures.said(told)
    from _data import digits, induction

    torch.set_num_threads(1)
    model = induction.train(n_heads=2, seed=0, steps=400)
    letters, periods, found = induction.maps(model, rows=100)
    text = int((periods == 9).nonzero()[0, 0])
    names, maps, scores = [], [], []
    for layer, A in enumerate(found):
        for head, score in enumerate(induction_score(A.numpy(), letters.numpy())):
            scores.append((float(score), layer, head))
            names.append(f"layer {layer + 1}, head {head + 1}: {score:.2f}")
            maps.append(A[text, head, :20, :20].numpy())
    _, layer, head = max(scores)
    whole = induction.accuracy(model)
    without = induction.accuracy(digits.without_heads(model, [(layer, head)]))
    told = "A model of two layers with two heads, trained a moment ago. Your scores:"
    end = (
        f"By your score it is head {head + 1} of layer {layer + 1}. Where the text "
        f"has begun again, the model guesses {whole:.0%} of the letters rightly, and "
        f"{without:.0%} when this head is silent."
    )
    drawn = pictures.maps(maps[:2], names[:2]) + pictures.maps(maps[2:], names[2:])
    return pictures.said(told) + drawn + pictures.said(end)


_FIRST = np.array([[[[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.7, 0.1]]]])
_ALPHABETS = np.array([[0, 1, 2, 3, 4, 1, 0], [0] * 7, [0, 1, 0, 2, 0, 1, 0]])

induction_score = Exercise(
    task="how far each head looks behind the earlier places of its letter",
    right=_score(_behind),
    cases=(
        (_FIRST, np.array([[0, 1, 0]])),
        _texts(1, 2, 5, 2, seed=1),
        (_texts(3, 2, 7, 3, seed=2)[0], _ALPHABETS),
    ),
    names=("A", "letters"),
    mistakes={
        "this is the weight on the earlier places of the letter; an induction head "
        "looks at the letter behind them": _score(lambda x: _equal(x, 0)),
        "this is the weight on all keys with the letter of the query, and the query "
        "is one of them: look at the letter behind": _score(
            lambda x: (x[:, None] == x[:, :, None]) & np.tri(x.shape[1], dtype=bool)
        ),
        "this is the weight on the letter before the earlier one; the key lies behind "
        "it": _score(lambda x: _equal(x, 1)),
        "you look behind the last of the earlier places; a letter may have more of "
        "them, and all count": _score(lambda x: _one(_behind(x), last=True)),
        "you look behind the first of the earlier places; a letter may have more of "
        "them, and all count": _score(lambda x: _one(_behind(x), last=False)),
        "queries whose letter comes for the first time have no such key: leave them "
        "out of the mean": _score(_behind, lambda x: np.ones(x.shape, bool)),
        "column 0 has no letter before it, and letters[-1] is the last one": _score(
            lambda x: (
                (np.roll(x, 1, -1)[:, None] == x[:, :, None])
                & np.tri(x.shape[1], dtype=bool)
            )
        ),
        "you take the mean of the texts; here each query counts the "
        "same": lambda A, letters: np.mean(
            [
                _score(_behind)(a[None], x[None])
                for a, x in zip(A, letters, strict=True)
            ],
            axis=0,
        ),
        "a query may have several such keys: add their weights": lambda A, letters: (
            np.array(
                [
                    (a * _behind(letters)).sum() / _behind(letters).sum()
                    for a in np.asarray(A).swapaxes(0, 1)
                ]
            )
        ),
    },
    reread=section("what_heads_learn", "A model that copies"),
    praise="a score of 1 is a head that looks at nothing else.",
    picture=_in_training,
)


def _merged(into=lambda a, b: (a + b, 0)):
    """Return an answer that puts ``into(a, b)`` in the place of both blocks."""

    def drop_twin(W_O, n_heads, keep, drop):
        d = len(W_O) // n_heads
        kept, dropped = (slice(r * d, (r + 1) * d) for r in (keep, drop))
        answer = np.array(W_O, dtype=float)
        answer[kept], answer[dropped] = into(W_O[kept], W_O[dropped])
        return answer

    return drop_twin


def _square(n_heads, width, seed, d_model=None):
    size = (n_heads * width, d_model or n_heads * width)
    return np.random.default_rng(seed).integers(-9, 10, size=size).astype(float)


drop_twin = Exercise(
    task="W_O for a layer without one of two equal heads",
    right=_merged(),
    cases=(
        (_square(2, 1, 0), 2, 0, 1),
        (_square(3, 2, 1), 3, 2, 0),
        (_square(4, 2, 2), 4, 1, 2),
        (_square(2, 3, 4, d_model=4), 2, 0, 1),
    ),
    mistakes={
        "the block of head `drop` is 0, but what it used to add is now missing from "
        "the output": _merged(lambda a, b: (a, 0)),
        "you doubled the block of head `keep`; that "
        "is correct only if both blocks were equal": _merged(lambda a, b: (2 * a, 0)),
        "you took the mean of the two blocks; the output needs their sum": _merged(
            lambda a, b: ((a + b) / 2, 0)
        ),
        "you changed columns of W_O; a head owns rows, and all heads share the "
        "columns": lambda W_O, *numbers: _merged()(W_O.T, *numbers).T,
        "you added the block of head `drop` to the other one, "
        "but head `drop` must then be silent": _merged(lambda a, b: (a + b, b)),
    },
    reread=_TWINS,
    praise="the outputs of the layer are what they were, with one head fewer.",
)
