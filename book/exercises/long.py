"""Exercises on long sequences: memory, a cache, and the merging of outputs."""

import numpy as np

from exercises import chapter, judged, section
from mha.attention import scaled_dot_product_attention
from mha.check import Exercise, Mistake
from mha.chunked import chunked_attention
from mha.softmax import softmax

_EQUATION, _MASKS = section("long", "The equation"), chapter("masks")
_CACHE = section("long", "Deeper: the KV cache, or must old tokens be computed again?")
_GROUPED = section("long", "Deeper: grouped-query attention and the size of a KV cache")


# ------------------------------------------------------- what all scores take

scores_memory = Exercise(
    task="the GiB of all scores of 65,536 tokens",
    right=16,
    cases=((),),
    # Nobody should fail for writing 17.2 in place of 17.18.
    observe=lambda answer: round(float(answer), 1),
    mistakes=(
        Mistake(
            "linear",
            "32 times the text has 32 times the rows of scores, and 32 times the "
            "columns",
            0.5,
        ),
        Mistake(
            "numbers instead of bytes",
            "this counts the scores, in units of 2³⁰; each of them takes four bytes",
            4,
        ),
        Mistake(
            "half of them",
            "all scores are asked for; a mask hides scores, and they still take memory",
            8,
        ),
        Mistake("float64", "a number in float32 takes four bytes, not eight", 32),
        Mistake(
            "billions of bytes",
            "that is right in GB, which count 10⁹ bytes; a GiB has 2³⁰",
            2**34 / 1e9,
        ),
        Mistake(
            "three arrays",
            "scores, exponentials and weights take that together; count scores only",
            48,
        ),
        Mistake("MiB", "these are MiB, and 1024 of them make a GiB", 16384),
        Mistake(
            "linear, in MiB",
            "these are MiB, and for a table that grows like the text; but each query "
            "has a score with each key",
            512,
        ),
        Mistake("bytes", "these are bytes, and 2³⁰ of them make a GiB", 2**34),
        Mistake(
            "bits",
            "a number in float32 has 32 bits, which are four bytes",
            128,
        ),
    ),
    reread=section("long", "The question", "By hand"),
    praise="16 GiB, for one head of one layer; the book of the question needs more.",
)


# ------------------------------------------------------- what a cache takes


def _cache(n, n_layers, n_heads, n_kv_heads, d_head, n_bytes):
    return 2 * n_layers * n_kv_heads * n * d_head * n_bytes


cache_bytes = Exercise(
    task="the bytes of a cache of keys and values",
    right=_cache,
    cases=((1, 1, 2, 1, 3, 2), (5, 3, 8, 2, 7, 4), (4096, 80, 64, 8, 128, 2)),
    mistakes=(
        Mistake(
            "keys only",
            "each step needs the keys for the scores and the values for the average: "
            "store both",
            lambda n, n_layers, n_heads, n_kv_heads, d_head, n_bytes: (
                n_layers * n_kv_heads * n * d_head * n_bytes
            ),
        ),
        Mistake(
            "a pair for each query head",
            "the query heads of a group share one key head and one value head: count "
            "n_kv_heads of each",
            lambda n, n_layers, n_heads, n_kv_heads, d_head, n_bytes: (
                2 * n_layers * n_heads * n * d_head * n_bytes
            ),
        ),
        Mistake(
            "a pair for each member of a group",
            "n_heads / n_kv_heads is the size of a group; stored are the n_kv_heads "
            "that the groups share",
            lambda n, n_layers, n_heads, n_kv_heads, d_head, n_bytes: (
                2 * n_layers * (n_heads // n_kv_heads) * n * d_head * n_bytes
            ),
        ),
        Mistake(
            "one layer",
            "each layer has keys and values of its own",
            lambda n, n_layers, n_heads, n_kv_heads, d_head, n_bytes: (
                2 * n_kv_heads * n * d_head * n_bytes
            ),
        ),
        Mistake(
            "numbers instead of bytes",
            "this is how many numbers the cache holds; each takes n_bytes bytes",
            lambda n, n_layers, n_heads, n_kv_heads, d_head, n_bytes: (
                2 * n_layers * n_kv_heads * n * d_head
            ),
        ),
        Mistake(
            "one key head",
            "that is right if all heads share one key head; here there are n_kv_heads",
            lambda n, n_layers, n_heads, n_kv_heads, d_head, n_bytes: (
                2 * n_layers * n * d_head * n_bytes
            ),
        ),
        Mistake(
            "key heads besides",
            "only key and value heads are stored: n_heads plays no part",
            lambda n, n_layers, n_heads, n_kv_heads, d_head, n_bytes: (
                2 * n_layers * (n_heads + n_kv_heads) * n * d_head * n_bytes
            ),
        ),
        Mistake(
            "scores",
            "scores are not stored; a cache has d_head numbers per token and key head",
            lambda n, n_layers, n_heads, n_kv_heads, d_head, n_bytes: (
                2 * n_layers * n_kv_heads * n * n * n_bytes
            ),
        ),
        Mistake(
            "queries too",
            "queries are not stored: each is needed in the step of its own token only",
            lambda n, n_layers, n_heads, n_kv_heads, d_head, n_bytes: (
                n_layers * (2 * n_kv_heads + n_heads) * n * d_head * n_bytes
            ),
        ),
        Mistake(
            "quadratic",
            "the time grows with n², but the cache has one key per token: use n once",
            lambda n, n_layers, n_heads, n_kv_heads, d_head, n_bytes: (
                2 * n_layers * n_kv_heads * n * n * d_head * n_bytes
            ),
        ),
    ),
    reread=_GROUPED,
    praise="the last case has the sizes of Llama 2 with 70 billion parameters: 1.3 GB.",
)


# ------------------------------------------------------- two outputs made one


def _factors(lse_a, lse_b):
    top = np.maximum(lse_a, lse_b)
    top = np.where(np.isneginf(top), 0, top)  # since -inf - -inf is NaN
    return (np.exp(lse - top)[:, None] for lse in (lse_a, lse_b))


def _merged(Y_a, lse_a, Y_b, lse_b):
    a, b = _factors(lse_a, lse_b)
    total = np.where(a + b == 0, 1, a + b)
    return (a * Y_a + b * Y_b) / total, np.logaddexp(lse_a, lse_b)


def _merged_into_nan(Y_a, lse_a, Y_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    a, b = np.exp(lse_a - lse)[:, None], np.exp(lse_b - lse)[:, None]
    return a * Y_a + b * Y_b, lse


def _merged_into_two_nans(Y_a, lse_a, Y_b, lse_b):
    top = np.maximum(lse_a, lse_b)
    a, b = (np.exp(lse - top)[:, None] for lse in (lse_a, lse_b))
    return (a * Y_a + b * Y_b) / (a + b), top + np.log(a + b)[:, 0]


def _merged_without_a_shift(Y_a, lse_a, Y_b, lse_b):
    a, b = np.exp(lse_a), np.exp(lse_b)
    Y = (a[:, None] * Y_a + b[:, None] * Y_b) / (a + b)[:, None]
    return Y, np.log(a + b)


def _merged_from_the_first(Y_a, lse_a, Y_b, lse_b):
    b = np.exp(lse_b - lse_a)
    return (Y_a + b[:, None] * Y_b) / (1 + b)[:, None], lse_a + np.log(1 + b)


def _merged_undivided(Y_a, lse_a, Y_b, lse_b):
    a, b = _factors(lse_a, lse_b)
    return a * Y_a + b * Y_b, np.logaddexp(lse_a, lse_b)


def _merged_by_logs(Y_a, lse_a, Y_b, lse_b):
    Y = (lse_a[:, None] * Y_a + lse_b[:, None] * Y_b) / (lse_a + lse_b)[:, None]
    return Y, np.logaddexp(lse_a, lse_b)


def _merged_from_the_largest_of_all(Y_a, lse_a, Y_b, lse_b):
    top = max(lse_a.max(), lse_b.max())
    Y, lse = _merged_without_a_shift(Y_a, lse_a - top, Y_b, lse_b - top)
    return Y, lse + top


def _merged_upside_down(Y_a, lse_a, Y_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    a, b = np.exp(lse - lse_a)[:, None], np.exp(lse - lse_b)[:, None]
    return a * Y_a + b * Y_b, lse


def _all_results(answer, *case):
    """Return the results as a tuple, also where they came in a list."""
    found = answer(*case)
    return tuple(found) if isinstance(found, list) else found


def _halves(*lse, seed=0):
    rng = np.random.default_rng(seed)
    lse_a, lse_b = np.array(lse[::2], float), np.array(lse[1::2], float)
    Y_a, Y_b = rng.integers(-9, 10, (2, len(lse_a), 3)).astype(float)
    return Y_a, lse_a, Y_b, lse_b


_EMPTY = (np.zeros((1, 2)), np.array([-np.inf]), np.ones((1, 2)), np.array([1.0]))
_BOTH_EMPTY = (
    np.array([[0.0, 0.0], [1.0, 2.0]]),
    np.array([-np.inf, 0.0]),
    np.array([[0.0, 0.0], [3.0, 4.0]]),
    np.array([-np.inf, 0.0]),
)

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
        _EMPTY,
        _BOTH_EMPTY,
    ),
    observe=_all_results,
    mistakes=(
        Mistake(
            "plain mean",
            "a machine whose exponentials have a larger sum should count more",
            lambda Y_a, lse_a, Y_b, lse_b: (
                (Y_a + Y_b) / 2,
                np.logaddexp(lse_a, lse_b),
            ),
        ),
        Mistake(
            "weighted by the logs",
            "lse is the logarithm of a sum; use the sums themselves as weights",
            _merged_by_logs,
        ),
        Mistake(
            "no shift",
            "that is right until a score is large: e¹⁰⁰⁰ overflows",
            _merged_without_a_shift,
        ),
        Mistake(
            "shifted by the first",
            "the first lse may be far below the second, or -∞: shift by the larger one",
            _merged_from_the_first,
        ),
        Mistake(
            "one shift for all queries",
            "next to a query with large scores, the exponentials of the others become "
            "0: shift each query by its own largest lse",
            _merged_from_the_largest_of_all,
        ),
        Mistake(
            "upside down",
            "the factors are upside down: each should be at most 1",
            _merged_upside_down,
        ),
        Mistake(
            "a plain sum",
            "both outputs are divided already, so their weights have to add up to one",
            lambda Y_a, lse_a, Y_b, lse_b: (Y_a + Y_b, np.logaddexp(lse_a, lse_b)),
        ),
        Mistake(
            "the sum, not its log",
            "Y is right; the second result should be the logarithm of this sum",
            lambda Y_a, lse_a, Y_b, lse_b: (
                _merged(Y_a, lse_a, Y_b, lse_b)[0],
                np.exp(lse_a) + np.exp(lse_b),
            ),
        ),
        Mistake(
            "shift not undone",
            "Y is right; add to the second result what you subtracted from both lse",
            lambda Y_a, lse_a, Y_b, lse_b: (
                _merged(Y_a, lse_a, Y_b, lse_b)[0],
                np.logaddexp(lse_a, lse_b) - np.maximum(lse_a, lse_b),
            ),
        ),
        Mistake(
            "not divided",
            "divide by the sum of the two factors",
            _merged_undivided,
        ),
        Mistake(
            "exchanged",
            "each output got the weight of the other",
            lambda Y_a, lse_a, Y_b, lse_b: _merged(Y_b, lse_a, Y_a, lse_b),
        ),
        Mistake(
            "logs added",
            "the sums add up; adding their logarithms would multiply them",
            lambda Y_a, lse_a, Y_b, lse_b: (
                _merged(Y_a, lse_a, Y_b, lse_b)[0],
                lse_a + lse_b,
            ),
        ),
        Mistake(
            "the larger log",
            "Y is right; the new lse should count the exponentials of both machines",
            lambda Y_a, lse_a, Y_b, lse_b: (
                _merged(Y_a, lse_a, Y_b, lse_b)[0],
                np.maximum(lse_a, lse_b),
            ),
        ),
        Mistake(
            "NaN for two empty halves",
            "where both lse are -∞ you compute -∞ - (-∞), which is NaN; a query "
            f"without keys should get zeros, as in {_MASKS}",
            _merged_into_nan,
        ),
        Mistake(
            "two NaN for two empty halves",
            "where both lse are -∞, both of your results are NaN; expected are zeros, "
            f"as in {_MASKS}, and the lse -∞",
            _merged_into_two_nans,
        ),
    ),
    reread=_EQUATION,
    praise="a text divided between two machines gives the output of one machine.",
)


# ------------------------------------------------------- one more token


def _ask(q, K, V, **options):
    return scaled_dot_product_attention(q[None], K, V, **options)[0]


def _step(x, K, V, W_Q, W_K, W_V, **options):
    K, V = np.vstack([K, x @ W_K]), np.vstack([V, x @ W_V])
    return _ask(x @ W_Q, K, V, **options), K, V


def _used(x, K, V, W_Q, W_K, W_V, roles):
    """Return a step that takes what `roles` say, 0 or 1, as keys and as values."""
    _, *cache = _step(x, K, V, W_Q, W_K, W_V)
    return _ask(x @ W_Q, *(cache[k] for k in roles)), *cache


def _step_backwards(x, K, V, W_Q, W_K, W_V):
    K, V = np.vstack([x @ W_K, K]), np.vstack([x @ W_V, V])
    return _ask(x @ W_Q, K, V), K, V


def _step_in_two_orders(x, K, V, W_Q, W_K, W_V):
    K, V = np.vstack([x @ W_K, K]), np.vstack([V, x @ W_V])
    return _ask(x @ W_Q, K, V), K, V


def _step_by_root_of_length(x, K, V, W_Q, W_K, W_V):
    return _step(x, K, V, W_Q, W_K, W_V, scale=(len(K) + 1) ** -0.5)


def _step_projecting_the_cache(x, K, V, W_Q, W_K, W_V):
    K, V = np.vstack([K, x]) @ W_K, np.vstack([V, x]) @ W_V
    return _ask(x @ W_Q, K, V), K, V


def _text(n, d, seed):
    rng = np.random.default_rng(seed)
    x, K, V = rng.normal(size=d), rng.normal(size=(n, d)), rng.normal(size=(n, d))
    return (x.round(1), K.round(1), V.round(1), *rng.integers(-2, 3, (3, d, d)) / 2.0)


decode_step = Exercise(
    task="the output for a new token, and the cache after it",
    right=_step,
    cases=(_text(0, 2, 3), _text(1, 2, 1), _text(3, 3, 2)),
    names=("x", "K", "V", "W_Q", "W_K", "W_V"),
    observe=_all_results,
    mistakes=(
        Mistake(
            "not itself",
            "a token may attend to itself: its key and value come into the cache first",
            lambda x, K, V, W_Q, W_K, W_V: (
                _ask(x @ W_Q, K, V),
                *_step(x, K, V, W_Q, W_K, W_V)[1:],
            ),
        ),
        Mistake(
            "is_causal",
            "with is_causal a single query attends to the first key only; nothing in "
            "the cache lies in the future, so leave it out",
            lambda *args: _step(*args, is_causal=True),
        ),
        Mistake(
            "no scale",
            "the scores are divided by √d_k",
            lambda *args: _step(*args, scale=1.0),
        ),
        Mistake(
            "√t",
            "divide by the root of d_k, not of the number of keys in the cache",
            _step_by_root_of_length,
        ),
        Mistake(
            "projected twice",
            "the cache holds keys and values already: project the new token only",
            _step_projecting_the_cache,
        ),
        Mistake(
            "the old cache",
            "the output is right, but the next step needs the new key and value too",
            lambda x, K, V, W_Q, W_K, W_V: (
                _step(x, K, V, W_Q, W_K, W_V)[0],
                K,
                V,
            ),
        ),
        Mistake(
            "put in front",
            "the new token comes last, so its key and value are the last rows",
            _step_backwards,
        ),
        Mistake(
            "keys in front",
            "keys and values need the same order: yours start with the new key and end "
            "with the new value",
            _step_in_two_orders,
        ),
        Mistake(
            "the token itself",
            "store the key x @ W_K and the value x @ W_V, not the token itself",
            lambda x, K, V, W_Q, W_K, W_V: _step(
                x, K, V, W_Q, np.eye(len(x)), np.eye(len(x))
            ),
        ),
        Mistake(
            "an unprojected query",
            "the query is x @ W_Q, not x",
            lambda x, K, V, W_Q, W_K, W_V: _step(x, K, V, np.eye(len(x)), W_K, W_V),
        ),
        Mistake(
            "matrices exchanged",
            "W_K makes the new key and W_V the new value; yours are exchanged",
            lambda x, K, V, W_Q, W_K, W_V: _step(x, K, V, W_Q, W_V, W_K),
        ),
        Mistake(
            "roles exchanged",
            "the scores need the keys and the average needs the values; yours are "
            "exchanged in the attention",
            lambda x, K, V, W_Q, W_K, W_V: _used(x, K, V, W_Q, W_K, W_V, (1, 0)),
        ),
        Mistake(
            "keys averaged",
            "the output is an average of the values, and yours averages the keys",
            lambda x, K, V, W_Q, W_K, W_V: _used(x, K, V, W_Q, W_K, W_V, (0, 0)),
        ),
        Mistake(
            "values matched",
            "the scores are products with the keys, and yours are with the values",
            lambda x, K, V, W_Q, W_K, W_V: _used(x, K, V, W_Q, W_K, W_V, (1, 1)),
        ),
        Mistake(
            "order of the results",
            "return the output, the keys and the values in this order",
            lambda x, K, V, W_Q, W_K, W_V: tuple(
                _step(x, K, V, W_Q, W_K, W_V)[k] for k in (0, 2, 1)
            ),
        ),
    ),
    reread=_CACHE,
    praise="a new token takes one row of scores, and no old row is computed again.",
)


# ------------------------------------------------------- a law for long texts


def in_blocks(block_size):
    """Return a correct attention that is not part of the package."""

    def attend(Q, K, V):
        S = Q @ K.T / np.sqrt(K.shape[-1])
        E, mix = np.exp(S - S.max(1, keepdims=True)), 0
        for start in range(0, len(K), block_size):
            keys = slice(start, start + block_size)
            mix = mix + E[:, keys] @ V[keys]
        return mix / E.sum(1, keepdims=True)

    attend.__name__ = f"attention_in_blocks_of_{block_size}"
    return attend


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


def draw_text(n, d=8, seed=0):
    """Return queries, and keys and values of n tokens."""
    rng = np.random.default_rng(seed)
    Q, K, V = rng.normal(size=(7, d)), rng.normal(size=(n, d)), rng.normal(size=(n, d))
    return Q, K, V


def _agrees(attend, Q, K, V, atol=1e-9):
    expected = scaled_dot_product_attention(Q, K, V)
    return bool(np.abs(attend(Q, K, V) - expected).max() <= atol)


def _order_is_free(attend, n):
    Q, K, V = draw_text(n)
    return np.allclose(attend(Q, K, V), attend(Q, K[::-1], V[::-1]), rtol=0, atol=1e-9)


def _agrees_in_falling_order(attend):
    Q, K, V = draw_text(1100)
    order = np.argsort(-(K @ Q[0]))
    return _agrees(attend, Q[:1], K[order], V[order])


def _constants_stay(attend):
    Q, K, V = draw_text(1100)
    return bool(np.allclose(attend(Q, K, np.ones_like(V)), 1))


long_text_law = Exercise(
    task="a law that detects what fails on long texts only",
    right=lambda attend: _order_is_free(attend, 1100),
    cases=(
        (scaled_dot_product_attention,),
        (chunked_attention,),
        (in_blocks(100),),
        (loses_the_last_weight,),
        (loses_the_last_key,),
        (forgetful(4),),
        (forgetful(512),),
    ),
    names=("attend",),
    observe=judged,
    mistakes=(
        Mistake(
            "passes everything",
            "this passes the wrong functions too: compare numbers",
            lambda attend: True,
        ),
        Mistake(
            "fails everything",
            "the correct functions must pass: return True if the numbers agree",
            lambda attend: False,
        ),
        Mistake(
            "turned round",
            "the results are the wrong way round: True means that the law is satisfied",
            lambda attend: not _order_is_free(attend, 1100),
        ),
        Mistake(
            "constant values",
            "if all values are equal, every weighted average is right: let them differ",
            _constants_stay,
        ),
        Mistake(
            "the largest first",
            "the mistake shows when a later block has a larger score; in your text the "
            "first block has the largest",
            _agrees_in_falling_order,
        ),
        Mistake(
            "too short",
            "in your text nothing has to be rescaled: it fits into a block of 512, or "
            "the first block has the largest score of every row",
            lambda attend: _order_is_free(attend, 8),
        ),
        Mistake(
            "to the last digit",
            "sums in another order round differently: allow for the last digits",
            lambda attend: _agrees(attend, *draw_text(1100), atol=0.0),
        ),
    ),
    reread=section("long", "The law"),
    praise="it takes more than one block, and a larger score in a later one.",
)
