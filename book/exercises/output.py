"""Exercises on the output projection: what W_O mixes, and what it costs."""

import numpy as np

from exercises import (
    Exercise,
    Law,
    each,
    learning,
    named,
    partly,
    random_arrays,
    section,
)
from mha import zoo
from mha.attention import scaled_dot_product_attention
from mha.heads import merge_heads, multi_head_attention, split_heads

_BREAK, _EQUATION = (
    section("output", "Break it"),
    section("output", "One product, or one term for each head"),
)


def _rows(W_O, r, n_heads, d_v):
    return W_O[r * d_v : (r + 1) * d_v]


def _messages(heads, W_O, block=_rows):
    """Return head r times ``block(W_O, r, n_heads, d_v)``, stacked over r."""
    n_heads, d_v = heads.shape[-3], heads.shape[-1]
    blocks = np.stack([block(W_O, r, n_heads, d_v) for r in range(n_heads)])
    return heads @ blocks


def _columns(W_O, r, n_heads, d_v):
    return W_O[:, r * d_v : (r + 1) * d_v].T


sum_of_heads = Exercise(
    task="the output as a sum over the heads",
    axes=3,
    right=lambda heads, W_O: _messages(heads, W_O).sum(-3),
    forbidden=(merge_heads, multi_head_attention),
    cases=(
        (np.array([[[1.0]], [[10.0]]]), np.array([[1.0, 2.0], [3.0, 4.0]])),
        (np.arange(1.0, 9).reshape(2, 2, 2), np.eye(4)),
        (np.array([[[[1.0]], [[10.0]]], [[[2.0]], [[0.0]]]]), np.array([[1.0], [3.0]])),
        random_arrays((3, 5, 2), (6, 7), seed=0),
        random_arrays((2, 3, 5, 2), (6, 7), seed=1),
    ),
    mistakes={
        "you add up heads and blocks before you multiply, so each head meets all "
        "blocks": lambda heads, W_O: (
            heads.sum(-3) @ W_O.reshape(heads.shape[-3], -1, W_O.shape[1]).sum(0)
        ),
        "every head is multiplied by the first block; each has a block of its "
        "own": lambda heads, W_O: _messages(heads, W_O, lambda W, r, h, d: W[:d]).sum(
            -3
        ),
        "you cut W_O into columns; the block of a head is d_v of its "
        "rows": lambda heads, W_O: _messages(heads, W_O, _columns).sum(-3),
        "you take every h-th row of W_O; the d_v rows of one head are neighbours": (
            lambda heads, W_O: _messages(heads, W_O, lambda W, r, h, d: W[r::h]).sum(-3)
        ),
        "you return the product of the first head alone: does a return stand inside a "
        "loop?": lambda heads, W_O: _messages(heads, W_O)[..., 0, :, :],
        "the heads stand side by side, and W_O has not been used": lambda heads, W_O: (
            merge_heads(heads)
        ),
    },
    reread=_EQUATION,
    praise="the sum over the heads gives what concatenation and W_O give.",
)


def _left_over(change, block):
    """Return how much of the change lies outside the row space of the block."""
    wrote, *_ = np.linalg.lstsq(block.T, change.T, rcond=None)
    return np.linalg.norm(change.T - block.T @ wrote)


def _per_head(measure, before, after, W_O, n_heads, block=_rows):
    d_v, change = len(W_O) // n_heads, after - before
    return [measure(change, block(W_O, r, n_heads, d_v)) for r in range(n_heads)]


def _who(*case):
    return int(np.argmin(_per_head(_left_over, *case)))


def _undone(before, after, W_O, n_heads):
    return (after - before) @ np.linalg.inv(W_O)


def _largest(columns, n_heads):
    """Return the head whose columns, its own neighbours, add up to most."""
    return int(columns.reshape(len(columns), n_heads, -1).sum((0, 2)).argmax())


def _written(n_heads, d_v, head, seed, n=3, still=0):
    """Return outputs of a random layer before and after one head has changed.

    The first `still` tokens stay as they are.
    """
    d = n_heads * d_v
    before, wrote, W_O = random_arrays((n, d), (n, d_v), (d, d), seed=seed)
    wrote[:still] = 0
    return before, before + wrote @ _rows(W_O, head, n_heads, d_v), W_O, n_heads


_PAIR = np.array([[1.0, 1.0], [1.0, -1.0]])


head_that_wrote = Exercise(
    task="the head whose matrices were changed",
    right=_who,
    names=("before", "after", "W_O", "n_heads"),
    cases=(
        (np.array([[5.0, 1.0]]), np.array([[7.0, -1.0]]), _PAIR, 2),
        (np.array([[5.0, 1.0]]), np.array([[8.0, 4.0]]), _PAIR, 2),
        (np.array([[5.0, 1.0]]), np.array([[3.0, 3.0]]), _PAIR, 2),
        (np.zeros((1, 2)), np.array([[1.0, 2.0]]), np.array([[1.0, 2], [0, 1]]), 2),
        _written(2, 2, 0, seed=17),
        _written(3, 2, 2, seed=5),
        _written(3, 2, 1, seed=8),
        _written(4, 1, 0, seed=31),
        _written(4, 2, 3, seed=9),
        _written(2, 2, 1, seed=6, n=1),
        _written(3, 2, 2, seed=11, still=1),
    ),
    mistakes={
        "you look at the columns of W_O; the block of a head is d_v of its "
        "rows": lambda *case: int(np.argmin(_per_head(_left_over, *case, _columns))),
        "you look at the columns of the output; W_O mixes the heads, so every head "
        "writes into all of "
        "them": lambda before, after, W_O, h: _largest((after - before) ** 2, h),
        "you multiply by the transpose of W_O, and that undoes a rotation only; use "
        "the inverse": lambda *case: int(
            np.argmax(_per_head(lambda c, B: np.linalg.norm(c @ B.T), *case))
        ),
        "you multiply by W_O once more; undo it, with its inverse": lambda *case: (
            _largest(np.abs((case[1] - case[0]) @ case[2]), case[3])
        ),
        "you solve W_O @ x = change; the change is (new rows) @ W_O, so the inverse "
        "stands on its right, "
        "and lstsq or solve take both transposed": lambda before, after, W_O, h: (
            _largest(np.abs(np.linalg.inv(W_O) @ (after - before).T).T, h)
        ),
        "you add changes with their signs, so they cancel: "
        "take absolute values": lambda *case: _largest(_undone(*case), case[3]),
        "this is the column with the largest change; a head has d_v neighbouring "
        "columns, so add those up": lambda *case: int(
            np.abs(_undone(*case)).sum(axis=0).argmax()
        ),
    },
    reread=_BREAK,
    praise="the change is made of the rows of one block, which belongs to the head.",
    picture=learning.writer_picture,
)


def _own_block(layer, heads=range(3)):
    X, W_Q, W_K, W_V, W_O = random_arrays((4, 6), *[(6, 6)] * 4, seed=4)
    for r in heads:
        without, louder = W_O.copy(), W_V.copy()
        _rows(without, r, 3, 2)[:] = 0
        louder[:, 2 * r : 2 * r + 2] += 1
        calls = [layer(X, W_Q, W_K, W, without, 3) for W in (W_V, louder)]
        if not np.allclose(*calls):
            return False
    return True


def _leaking(head):
    """Return a layer that adds one head to its neighbour, whose block it reaches."""

    def layer(X, W_Q, W_K, W_V, W_O, n_heads):
        Q, K, V = (split_heads(X @ W, n_heads) for W in (W_Q, W_K, W_V))
        heads = scaled_dot_product_attention(Q, K, V)
        r = {"first": 0, "middle": n_heads // 2, "last": n_heads - 1}[head]
        heads[(r + 1) % n_heads] += heads[r]
        return merge_heads(heads) @ W_O

    layer.__doc__ = f"Write the {head} head into the block of its neighbour, too."
    return named(f"{head}_head_leaks", layer)


def _silent_without_W_O(layer):
    X, W_Q, W_K, W_V, W_O = random_arrays((4, 6), *[(6, 6)] * 4, seed=4)
    return np.allclose(layer(X, W_Q, W_K, W_V, 0 * W_O, 3), 0)


own_block_law = Law(
    task="a law: each head reaches the output through its own block only",
    right=_own_block,
    cases=each(
        multi_head_attention,
        zoo.no_scale,
        zoo.output_within_heads,
        zoo.heads_averaged,
        zoo.no_output_projection,
        zoo.merge_without_transpose,
        _leaking("first"),
        _leaking("middle"),
        _leaking("last"),
        partly(
            _leaking("first"),
            multi_head_attention,
            np.s_[1:],
            "from the second token on",
        ),
        partly(
            _leaking("first"),
            multi_head_attention,
            np.s_[:, 1:],
            "from the second column on",
        ),
    ),
    mistakes={
        "your law is True of averaged heads too, and should not be: set one block of "
        "W_O to 0, and change its head only": _silent_without_W_O,
    },
    changes={
        "W_V": "of its inputs your law changes W_V only, which can be enough: change "
        "just the columns that make the values of one head, let the rows of W_O that "
        "belong to this head be 0 in both calls, and do so for each head",
        "": "you call the layer once, so other faults matter too: change one head, and "
        "compare two outputs",
    },
    reread=section("output", "Switch off a head"),
    praise="True of the three layers that keep it, and False of the eight others.",
)
