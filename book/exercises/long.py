"""Exercises on long sequences: a memory budget, a cache, the merging of outputs."""

import tracemalloc

import numpy as np

from exercises import (
    Exercise,
    Law,
    chapter,
    each,
    in_use,
    judged,
    partly,
    pictures,
    random_arrays,
    section,
)
from exercises.engine import Unfit
from mha import softmax
from mha.attention import scaled_dot_product_attention
from mha.chunked import chunked_attention

_CACHE = section("long", "Deeper: the KV cache, or must old tokens be computed again?")


BUDGET = 1_000_000  # bytes at once; copies of the large inputs take a fifth


def peak(attend, *given):
    """Return a result, and the most bytes that arrays took on the way to it."""
    started = tracemalloc.is_tracing()
    if not started:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        return attend(*given), tracemalloc.get_traced_memory()[1] - before
    finally:
        if not started:
            tracemalloc.stop()


def _within_the_budget(attend, Q, K, V, block_size):
    """Return a result, if it did not take more memory than the blocks need."""
    found, most = peak(attend, Q, K, V, block_size)
    scores = Q.shape[-2] * K.shape[-2] * 8
    if scores > BUDGET < most:
        raise Unfit(
            f"your answer held {most / 1e6:.1f} MB at once, where all scores take "
            f"{scores / 1e6:.1f} MB and the budget is {BUDGET / 1e6:.0f} MB: keep the "
            "scores of one block of keys at a time"
        )
    return found


def _whole_blocks(Q, K, V, size):
    n = max(K.shape[-2] // size * size, 1)
    return Q, K[..., :n, :], V[..., :n, :]


def _rescaling(mix=True, total=True, shift=np.maximum):
    """Return attention in blocks that rescales `mix` and `total`, or does not.

    `shift` takes the maximum so far and that of a block, and returns what to subtract.
    """

    def attend(Q, K, V, block_size):
        top, weight, mixed = np.full((*Q.shape[:-1], 1), -np.inf, Q.dtype), 0, 0
        for start in range(0, K.shape[-2], block_size):
            keys = np.s_[..., start : start + block_size, :]
            S = Q @ K[keys].swapaxes(-1, -2) / K.shape[-1] ** 0.5
            above = shift(top, S.max(-1, keepdims=True))
            E, old, top = np.exp(S - above), np.exp(top - above), above
            weight = (old if total else 1) * weight + E.sum(-1, keepdims=True)
            mixed = (old if mix else 1) * mixed + E @ V[keys]
        return mixed / weight

    return attend


def _block_by_block(Q, K, V, block_size):
    """Return the mean of what the blocks give, each with a softmax of its own."""
    parts = [
        scaled_dot_product_attention(
            Q, *(x[..., k : k + block_size, :] for x in (K, V))
        )
        for k in range(0, K.shape[-2], block_size)
    ]
    return np.mean(parts, axis=0)


def _changed(change):
    """Return attention in blocks to inputs that are changed before."""
    return lambda Q, K, V, size: _rescaling()(*change(Q, K, V, size), size)


def _memory_picture(attend):
    """Tell what a learner's attention and the plain one need for more and more keys."""
    rows = []
    for n in (1_024, 8_192, 65_536):
        Q, K, V = random_arrays((64, 2), (n, 2), (n, 2), seed=n)
        plain = peak(scaled_dot_product_attention, Q, K, V)[1]
        yours = peak(attend, Q, K, V, 128)[1]
        rows.append(f"{n:,} keys: {yours / 1e6:.1f} MB, and {plain / 1e6:.1f} MB")
    told = "The most memory at once, in your blocks of 128 keys and with all scores. "
    return pictures.said(told + "; ".join(rows) + ".")


def _halved(*shapes, seed):
    return tuple(x / 2 for x in random_arrays(*shapes, seed=seed))


_Q, _K, _V = random_arrays((2, 3, 5), (2, 7, 5), (2, 7, 2), seed=1)

attend_in_blocks = Exercise(
    task="the same attention, in blocks of keys and with little memory",
    axes=2,
    right=_rescaling(),
    cases=(
        (np.array([[1.0]]), np.array([[0.0], [1.0]]), np.array([[3.0], [5.0]]), 1),
        (_Q[0], _K[0], _V[0], 7),
        (_Q[0], _K[0], _V[0], 3),
        (_Q, _K, _V, 3),
        (400 * _Q, _K, _V, 2),
        (*_halved((100, 2), (4_000, 2), (4_000, 2), seed=2), 200),
        (np.ones((1, 1)), np.array([[2000.0], [0]]), np.array([[3.0], [5.0]]), 1),
        (np.ones((1, 1)), np.array([[-2000.0], [-2001]]), np.array([[3.0], [5.0]]), 1),
    ),
    names=("Q", "K", "V", "block_size"),
    observe=_within_the_budget,
    forbidden=(chunked_attention, scaled_dot_product_attention),
    mistakes={
        "the last block is not full, and you leave it out": _changed(_whole_blocks),
        "when a later block has a larger score, both sums so far must be "
        "rescaled": _rescaling(mix=False, total=False),
        "you rescale the sum of the values, and the sum of the weights too must "
        "be": _rescaling(total=False),
        "you rescale the sum of the weights, and the sum of the values too must "
        "be": _rescaling(mix=False),
        "right until a score is large, because e¹⁰⁰⁰ overflows: subtract the largest "
        "score so far": _rescaling(shift=lambda top, own: 0 * own),
        "subtract the largest score so far, also where a later block has smaller "
        "ones: exp(old - new) overflows if it falls": _rescaling(
            shift=lambda top, own: own
        ),
        "each block subtracts its own largest score, and its sums are added to those "
        "of other blocks as they are: rescale them to one largest score first": (
            _rescaling(mix=False, total=False, shift=lambda top, own: own)
        ),
        "each block has a softmax of its own here, and its output counts as much as "
        "any other: keep the sums apart, and divide once": _block_by_block,
        "the scores are not divided by √d_k": _changed(
            lambda Q, K, V, _: (Q * K.shape[-1] ** 0.5, K, V)
        ),
        "the scores are divided by d_k, and it should be its root": _changed(
            lambda Q, K, V, _: (Q / K.shape[-1] ** 0.5, K, V)
        ),
    },
    reread=section("long", "A summary of keys, and how two are merged"),
    praise="exact attention, and never more than one block of scores.",
    picture=_memory_picture,
)


def _merged(Y_a, lse_a, Y_b, lse_b):
    top = np.maximum(lse_a, lse_b)
    top = np.where(np.isneginf(top), 0, top)  # since -inf - -inf is NaN
    a, b = np.exp(lse_a - top), np.exp(lse_b - top)
    total = np.where(a + b == 0, 1, a + b)
    return _sum(a / total, Y_a, b / total, Y_b), np.logaddexp(lse_a, lse_b)


def _sum(a, Y_a, b, Y_b):
    return a[:, None] * Y_a + b[:, None] * Y_b


def _shifted(Y_a, lse_a, Y_b, lse_b, top):
    """Return what comes out when `top`, right or not, is taken from both lse."""
    a, b = np.exp(lse_a - top), np.exp(lse_b - top)
    return _sum(a / (a + b), Y_a, b / (a + b), Y_b), top + np.log(a + b)


def _with_lse(lse):
    """Return an answer whose first result is right, and its second ``lse(a, b)``."""
    return lambda A, a, B, b: (_merged(A, a, B, b)[0], lse(a, b))


def _with_weights(weigh):
    """Return an answer with the right lse, and outputs times ``weigh(a, b, lse)``."""

    def answer(A, a, B, b):
        lse = np.logaddexp(a, b)
        of_A, of_B = weigh(a, b, lse)
        return _sum(of_A, A, of_B, B), lse

    return answer


def _all_results(answer, *case):
    """Return the results as a tuple, also where they came in a list."""
    found = answer(*case)
    return tuple(found) if isinstance(found, list) else found


def _halves(*lse, seed=0):
    rng = np.random.default_rng(seed)
    lse_a, lse_b = np.array(lse[::2], float), np.array(lse[1::2], float)
    Y_a, Y_b = rng.integers(-9, 10, (2, len(lse_a), 3)).astype(float)
    Y_a[np.isneginf(lse_a)] = Y_b[np.isneginf(lse_b)] = 0
    return Y_a, lse_a, Y_b, lse_b


merge_outputs = Exercise(
    task="one output from the outputs of two machines",
    right=_merged,
    cases=(
        (np.array([[0.0]]), np.array([0.0]), np.array([[4.0]]), np.log([3.0])),
        _halves(1.0, 2.5, -1.0, 0.5),
        _halves(-1.5, -2.0, 0.7, 0.1, seed=1),
        _halves(1000.0, 1001.0, 0.3, 1.2, seed=2),
        _halves(0.0, 1000.0, seed=3),
        _halves(1000.0, 1001.0, -1000.0, -999.0, seed=4),
        _halves(-np.inf, 1.0, seed=5),
        _halves(-np.inf, -np.inf, 0.0, 0.0, seed=6),
    ),
    observe=_all_results,
    mistakes={
        "a machine whose exponentials have a larger sum should count "
        "more": _with_weights(lambda a, b, lse: (a * 0 + 0.5, b * 0 + 0.5)),
        "lse is the logarithm of a sum; use the sums themselves as "
        "weights": _with_weights(lambda a, b, lse: (a / (a + b), b / (a + b))),
        "both outputs are divided already, so their weights have to add up to "
        "one": _with_weights(lambda a, b, lse: (a * 0 + 1, b * 0 + 1)),
        "where both lse are -∞ you compute -∞ - (-∞), which is NaN; a query without "
        f"keys should get zeros, as in {chapter('masks')}": _with_weights(
            lambda a, b, lse: (np.exp(a - lse), np.exp(b - lse))
        ),
        "-∞ - (-∞) is NaN where both machines are empty: subtract another number "
        "there": lambda A, a, B, b: _shifted(A, a, B, b, top=np.maximum(a, b)),
        "right until a score is large, because e¹⁰⁰⁰ overflows: subtract the larger "
        "lse from both": lambda A, a, B, b: _shifted(A, a, B, b, top=0 * a),
        "the first lse may be far below the second, or -∞: "
        "shift by the larger one": lambda A, a, B, b: _shifted(A, a, B, b, top=a),
        "Y is right; the second result should be the logarithm of this sum": _with_lse(
            lambda a, b: np.exp(a) + np.exp(b)
        ),
        "Y is right; add to the second result what you subtracted from both "
        "lse": _with_lse(lambda a, b: np.logaddexp(a, b) - np.maximum(a, b)),
    },
    reread=section("long", "A summary of keys, and how two are merged"),
    praise="a text divided between two machines gives the output of one machine.",
)


def _ask(q, K, V, **options):
    return scaled_dot_product_attention(q[None], K, V, **options)[0]


def _step(x, K, V, W_Q, W_K, W_V, **options):
    K, V = np.vstack([K, x @ W_K]), np.vstack([V, x @ W_V])
    return _ask(x @ W_Q, K, V, **options), K, V


def _keeping(change):
    """Return a step that attends to ``change(K, V)`` and hands the right cache on."""

    def step(x, K, V, W_Q, W_K, W_V):
        _, *cache = _step(x, K, V, W_Q, W_K, W_V)
        return _ask(x @ W_Q, *change(*cache)), *cache

    return step


def _step_backwards(x, K, V, W_Q, W_K, W_V):
    K, V = np.vstack([x @ W_K, K]), np.vstack([x @ W_V, V])
    return _ask(x @ W_Q, K, V), K, V


def _step_twisted(x, K, V, W_Q, W_K, W_V):
    K, V = np.vstack([x @ W_K, K]), np.vstack([V, x @ W_V])
    return _ask(x @ W_Q, K, V), K, V


def _step_projecting_the_cache(x, K, V, W_Q, W_K, W_V):
    K, V = np.vstack([K, x]) @ W_K, np.vstack([V, x]) @ W_V
    return _ask(x @ W_Q, K, V), K, V


def _text(n, d, seed, d_v=None):
    rng, d_v = np.random.default_rng(seed), d_v or d
    x, K, V = rng.normal(size=d), rng.normal(size=(n, d)), rng.normal(size=(n, d_v))
    W = (rng.integers(-2, 3, (d, k)) / 2.0 for k in (d, d, d_v))
    return (x.round(1), K.round(1), V.round(1), *W)


decode_step = Exercise(
    task="the output for a new token, and the cache after it",
    right=_step,
    cases=(_text(0, 2, 3), _text(1, 2, 1), _text(3, 3, 2), _text(9, 4, 5, d_v=2)),
    names=("x", "K", "V", "W_Q", "W_K", "W_V"),
    observe=_all_results,
    mistakes={
        "the scores are divided by √d_k": lambda *args: _step(*args, scale=1.0),
        "a token may attend to itself: its key and value come into the cache "
        "first": _keeping(lambda K, V: (K[:-1], V[:-1])),
        "with is_causal a single query attends to the first key only; nothing in the "
        "cache lies in the future, "
        "so leave it out": lambda *args: _step(*args, is_causal=True),
        "the cache holds keys and values already: "
        "project the new token only": _step_projecting_the_cache,
        "the new token comes last, "
        "so its key and value are the last rows": _step_backwards,
        "keys and values are in different orders: the new one comes last in "
        "both": _step_twisted,
        "store the key x @ W_K and the value x @ W_V, not the token "
        "itself": lambda x, K, V, q, k, v: _step(x, K, V, q, *2 * [np.eye(len(x))]),
    },
    reread=_CACHE,
    praise="a new token takes one row of scores, and no old row is computed again.",
    picture=in_use.writing_picture,
)


def in_blocks(Q, K, V, block_size=100):
    """Attend rightly, without a function of the package."""
    S = Q @ K.T / np.sqrt(K.shape[-1])
    E, mix = np.exp(S - S.max(1, keepdims=True)), 0
    for start in range(0, len(K), block_size):
        keys = slice(start, start + block_size)
        mix = mix + E[:, keys] @ V[keys]
    return mix / E.sum(1, keepdims=True)


def forgetful(block_size):
    """Return an attention that never rescales what it has gathered."""

    def attend(Q, K, V):
        S = Q @ K.T / np.sqrt(K.shape[-1])
        top, total, mix = -np.inf, 0, 0
        for start in range(0, len(K), block_size):
            keys = slice(start, start + block_size)
            top = np.maximum(top, S[:, keys].max(1, keepdims=True))
            E = np.exp(S[:, keys] - top)
            total, mix = total + E.sum(1, keepdims=True), mix + E @ V[keys]
        return mix / total

    attend.__name__ = f"forgets_to_rescale_in_blocks_of_{block_size}"
    return attend


def loses_the_last_weight(Q, K, V):
    A = softmax(Q @ K.T / np.sqrt(K.shape[-1]))
    return A[:, :-1] @ V[:-1]


def loses_the_last_key(Q, K, V):
    return scaled_dot_product_attention(Q, K[:-1], V[:-1])


def _agrees(n=1100, largest_first=False):
    """Return a law: attention to n tokens is what it should be."""

    def law(attend):
        Q, K, V = random_arrays((7, 8), (n, 8), (n, 8), seed=0)
        if largest_first:
            Q, K = Q[:1], K[np.argsort(-(K @ Q[0]))]
        return np.allclose(attend(Q, K, V), scaled_dot_product_attention(Q, K, V))

    return law


long_text_law = Law(
    task="a law that detects what fails on long texts only",
    right=_agrees(),
    cases=each(
        scaled_dot_product_attention,
        chunked_attention,
        in_blocks,
        loses_the_last_weight,
        loses_the_last_key,
        forgetful(4),
        forgetful(512),
        partly(
            loses_the_last_weight,
            scaled_dot_product_attention,
            np.s_[1:],
            "from the second row on",
        ),
        partly(
            loses_the_last_weight,
            scaled_dot_product_attention,
            np.s_[:, :-1],
            "in front of the last column",
        ),
    ),
    observe=judged,
    mistakes={
        "the mistake shows when a later block has a larger score; "
        "in your text the first block has the largest": _agrees(largest_first=True),
        "in your text nothing has to be rescaled: it fits into a block "
        "of 512, or the first block has the largest score of every row": _agrees(n=8),
    },
    reread=section("long", "Blocks of any size"),
    praise="it takes more than one block, and a larger score in a later one.",
)
