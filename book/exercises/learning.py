"""Small trainings of a reader's functions, and the pictures of them.

Most of them measure their slopes: they move each number a little, and look how the loss
changes. So they can train any function of NumPy, however it is written, with its bugs.
"""

import functools
import time

import numpy as np

from exercises import pictures

STEPS, WORD = 40, "sandwich"
SHOWN = 0, 5, 10, STEPS
PLACES = np.arange(len(WORD))


def descend(slopes, start, steps=STEPS, rate=0.1):
    """Return the parameters before each step and after the last one, by Adam."""
    x, found = start.copy(), [start.copy()]
    mean, size = np.zeros_like(x), np.zeros_like(x)
    for t in range(1, steps + 1):
        slope = slopes(x.copy())
        mean, size = 0.9 * mean + 0.1 * slope, 0.99 * size + 0.01 * slope**2
        x -= rate * mean / (1 - 0.9**t) / (np.sqrt(size / (1 - 0.99**t)) + 1e-8)
        found.append(x.copy())
    return found


def measured(loss, x, nudge=1e-5):
    """Return how the loss changes with each number of x."""
    slopes, before = np.zeros_like(x), loss(x)
    for place in np.ndindex(x.shape):
        kept = x[place]
        x[place] = kept + nudge
        slopes[place] = (loss(x) - before) / nudge
        x[place] = kept
    return slopes


def one_hot(words):
    """Return words as numbers, of shape (letters, words · 26)."""
    codes = np.array([[ord(c) - ord("a") for c in word] for word in words])
    return np.eye(26)[codes].swapaxes(0, 1).reshape(codes.shape[1], -1)


def spelled(numbers):
    return "".join(chr(ord("a") + k) for k in numbers)


# Chapter 5: attention learns to read a word of eight letters backwards. Queries and
# keys depend on positions alone, and are learned; the values are the letters.


def _reads(attend, x, words):
    Y = np.asarray(attend(*x.copy(), one_hot(words)))
    return [*map(spelled, Y.reshape(len(Y), len(words), 26).argmax(-1).T)]


def _map(attend, x):
    return np.asarray(attend(*x.copy(), np.eye(len(WORD))))


def _loss(attend, x):
    return -np.log(np.clip(_map(attend, x)[PLACES, PLACES[::-1]], 1e-9, 1)).mean()


def _start():
    return np.random.default_rng(5).normal(size=(2, len(WORD), 4)) / 2


@functools.lru_cache(maxsize=8)
def reversing(attend):
    """Train `attend`; return its losses, maps and texts, and how many words it reads.

    The letters of the one word in the training differ; the test has 500 random words.
    """
    words = [*map(spelled, np.random.default_rng(6).integers(26, size=(500, 8)))]
    loss = functools.partial(_loss, attend)
    with np.errstate(all="ignore"):
        xs = descend(lambda x: measured(loss, x), _start())
        read = _reads(attend, xs[-1], words)
        return {
            "loss": [*map(loss, xs)],
            "maps": [_map(attend, xs[t]) for t in SHOWN],
            "texts": [_reads(attend, xs[t], [WORD])[0] for t in SHOWN],
            "right": sum(a == b[::-1] for a, b in zip(read, words, strict=True)),
        }


def reversing_picture(*attends, names=("your attention",)):
    """Draw the maps of each function at four steps, what it reads, and its loss."""
    rows, losses = [], {}
    for name, attend in zip(names, attends, strict=True):
        found = reversing(attend)
        losses[name] = found["loss"]
        steps = zip(SHOWN, found["texts"], strict=True)
        rows.append(pictures.maps(found["maps"], [f"step {t}: {s}" for t, s in steps]))
        rows.append(pictures.said(f"{name}: {found['right']} of 500 words backwards"))
    told = f"Trained to read a word backwards. Here it reads {WORD}:"
    return "".join([pictures.said(told), *rows, pictures.curves(losses)])


FINDERS = "rows_sum_to_one", "scores_keep_unit_variance", "key_order_is_free"


def wrong_picture(attend):
    """Draw a wrong attention below the right one, and name a law that it breaks."""
    from mha import laws, scaled_dot_product_attention

    names = "correct attention", "your wrong version"
    drawn = reversing_picture(scaled_dot_product_attention, attend, names=names)
    asked = (getattr(laws, name).check(attend) for name in FINDERS)
    broken = [finding for finding in asked if finding.broken]
    if not (broken := broken or laws.check(attend).broken):
        return drawn
    told = f'A law finds the mistake without any training: "{broken[0].sentence}".'
    return drawn + pictures.said(told)


def backward_picture(backward):
    """Train by the slopes of `backward` and by measured ones, and time both."""
    from mha import scaled_dot_product_attention as attend

    def slopes(x):
        dY = np.zeros((8, 8))
        dY[PLACES, PLACES[::-1]] = -1 / 8 / _map(attend, x)[PLACES, PLACES[::-1]]
        return np.stack(backward(*x.copy(), np.eye(8), dY)[:2])

    loss, losses, rows = functools.partial(_loss, attend), {}, []
    for name, way in (
        ("slopes by nudging each number", lambda x: measured(loss, x)),
        ("your slopes", slopes),
    ):
        began = time.perf_counter()
        xs = descend(way, _start())
        rows.append(f"{name}: {1000 * (time.perf_counter() - began):.0f} ms")
        losses[name] = [*map(loss, xs)]
    told = f"{STEPS} steps of the training of exercise 5.1. " + ", ".join(rows) + "."
    return pictures.said(told) + pictures.curves(losses)


# Chapter 4: attention over a line such as "dogsdogs" learns to guess the next letter.
# Its scores depend on places alone; a mask that shows the future shows the answer.

LINE, LETTERS = 8, 26


def _lines(rng, count):
    """Return lines of four random letters that come twice, as numbers."""
    half = rng.integers(LETTERS, size=(count, LINE // 2))
    return np.concatenate([half, half], axis=1)


def _guess(x, mask, lines):
    """Return weights, what each place has read, and the chances of the next letter."""
    from mha import masked_softmax

    A, read = masked_softmax(x[:, :-1], mask), np.eye(LETTERS)[lines]
    read = A @ read
    chances = np.exp(x[:, -1:] * read)
    return A, read, chances / chances.sum(-1, keepdims=True)


def guessing(mask, steps=150):
    """Train under a mask; return the losses, and how it goes on with "dogs"."""
    rng, losses = np.random.default_rng(8), []
    x = np.concatenate([rng.normal(size=(LINE, LINE)), np.ones((LINE, 1))], axis=1)

    def slopes(x):
        lines = _lines(rng, 64)
        A, read, chances = _guess(x, mask, lines)
        following = np.eye(LETTERS)[lines[:, 1:]]
        losses.append(-np.log((chances[:, :-1] * following).sum(-1)).mean())
        off = chances / (64 * (LINE - 1))
        off[:, :-1] -= following / (64 * (LINE - 1))
        off[:, -1] = 0
        dA = (x[:, -1:] * off @ np.eye(LETTERS)[lines].swapaxes(1, 2)).sum(0)
        dS = A * (dA - (A * dA).sum(-1, keepdims=True))
        return np.concatenate([dS, (off * read).sum((0, 2))[:, None]], axis=1)

    x = descend(slopes, x, steps, rate=0.3)[-1]
    text = [ord(c) - ord("a") for c in "dogs"]
    while len(text) < LINE:  # the letters to come are not there to be seen
        t = len(text)
        line = np.array([text + [0] * (LINE - t)])
        chances = _guess(x, mask & (np.arange(LINE) < t), line)[-1][0, t - 1]
        text.append(rng.choice(LETTERS, p=chances))
    return losses, spelled(text)


def guessing_picture(batch_mask):
    """Train under a colleague's mask and the reader's, and let both write."""
    masks = {
        "the colleague's mask": np.triu(np.ones((LINE, LINE), dtype=bool), k=1),
        "your mask": np.asarray(batch_mask(np.array([LINE])))[0, 0],
    }
    found = {name: guessing(mask) for name, mask in masks.items()}
    rows = [
        f'{name}: loss {losses[-1]:.2f}, and after "dogs" it goes on to "{text}"'
        for name, (losses, text) in found.items()
    ]
    told = (
        'Trained to guess the next letter in lines such as "fishfish". (Three of the '
        "seven letters cannot be known, which costs 3/7 · ln 26 = 1.40.)"
    )
    lines = map(pictures.said, [told, *rows])
    return "".join([*lines, pictures.curves({n: f[0] for n, f in found.items()})])


# Chapter 9: a layer learns to name the letters on both sides of each letter in a ring.

RING = "planet"


def neighbours(layer, n_heads):
    """Train a layer; return its losses, and what it reads on the left and right."""
    n, width = len(RING), 4
    X = np.concatenate([np.eye(n), np.eye(n)], axis=1)  # places, and the letters there
    W_V = np.concatenate([np.zeros((n, 2 * n)), np.tile(np.eye(n), (1, 2))])
    sides = np.stack([np.arange(n) - 1, np.arange(n) + 1], axis=1) % n

    def read(x):
        W = (np.concatenate([W, np.zeros((n, width))]) for W in x.copy())
        Y = layer(X.copy(), *W, W_V.copy(), np.eye(2 * n), n_heads, None)
        return np.asarray(Y).reshape(n, 2, n)

    def loss(x):
        right = np.take_along_axis(read(x), sides[..., None], axis=-1)
        return -np.log(np.clip(right, 1e-9, 1)).mean()

    start = np.random.default_rng(3).normal(size=(2, n, width))
    xs = descend(lambda x: measured(loss, x), start, rate=0.2)
    Y = read(xs[-1]).swapaxes(0, 1)
    texts = ["".join(RING[k] for k in row) for row in Y.argmax(-1)]
    return [*map(loss, xs)], Y, texts


def neighbours_picture(layer):
    """Train the reader's layer with one head and with two."""
    losses, rows = (
        {},
        [
            pictures.said(
                f"Each letter of {RING}, in a ring, is to name "
                "the letter on its left and the one on its right. Your layer learns it:"
            )
        ],
    )
    for n_heads, name in ((1, "one head"), (2, "two heads")):
        losses[name], maps, texts = neighbours(layer, n_heads)
        sides = zip(("left", "right"), texts, strict=True)
        rows.append(pictures.maps(maps, [f"{name}, {a}: {b}" for a, b in sides]))
    return "".join([*rows, pictures.curves(losses)])


# Chapters 6, 7 and 8: what a reader's function sees, how long it takes, what it finds


def readout_picture(rebuild):
    """Draw the contents of sixty nights, and the guesses from one head and from two."""
    contents = np.random.default_rng(6).uniform(0, 10, size=(60, 2))
    panels = []
    for name, weights in (
        ("one head, 0.5 and 0.5", [[0.5, 0.5]]),
        ("two heads, 0.8 and 0.2, 0.2 and 0.8", [[0.8, 0.2], [0.2, 0.8]]),
    ):
        outputs = contents @ np.transpose(weights)
        guesses = np.asarray(rebuild(outputs, contents.copy(), outputs.copy()))
        panels.append((name, contents, guesses))
    told = "Sixty nights: how both dragons glow (dots), and your guesses (rings):"
    return pictures.said(told) + pictures.dots(panels, ("left dragon", "right dragon"))


def fuse_picture(fuse):
    """Time 32 small products, and one product with the matrix that was fused."""
    rng = np.random.default_rng(7)
    X, small = rng.normal(size=(64, 256)), rng.normal(size=(32, 256, 8))
    large = np.ascontiguousarray(fuse(small.copy()))

    def shortest(run):
        times = []
        for _ in range(20):
            began = time.perf_counter()
            run()
            times.append(time.perf_counter() - began)
        return 1000 * min(times)

    apart, fused = shortest(lambda: [X @ W for W in small]), shortest(lambda: X @ large)
    text = f"32 small products take {apart:.2f} ms, one with your matrix {fused:.2f} ms"
    return pictures.said(f"64 tokens of width 256, 32 heads: {text}, on this machine.")


def writer_picture(head_that_wrote):
    """Draw two changes of an output, and what is left of them without W_O."""
    rng, tables, titles, frames = np.random.default_rng(1), [], [], []
    for k, head in enumerate((2, 0)):
        before, W_O = rng.normal(size=(5, 8)), rng.normal(size=(8, 8))
        after = before + rng.normal(size=(5, 2)) @ W_O[2 * head : 2 * head + 2]
        found = int(head_that_wrote(before.copy(), after.copy(), W_O.copy(), 4))
        tables += [after - before, (after - before) @ np.linalg.inv(W_O)]
        titles += [f"change {k + 1}", f"without W_O: head {found + 1}"]
        frames += [None, (2 * found, 2)]
    told = "Two changes of an output, and what is left if W_O is undone; framed: yours"
    return pictures.said(f"{told}.") + pictures.maps(tables, titles, frames)
