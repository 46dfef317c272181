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
