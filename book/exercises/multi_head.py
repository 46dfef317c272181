"""Exercises on multi-head attention, and the bug hunt that ends Part II."""

import functools
import reprlib
import textwrap
from fractions import Fraction

import numpy as np

from exercises import section
from mha import zoo
from mha.attention import scaled_dot_product_attention
from mha.check import Exercise, Mistake, Verdict, is_stub
from mha.heads import merge_heads, multi_head_attention, split_heads
from mha.softmax import softmax

_BREAK_IT = section("multi_head", "Break it")
_IN_PRACTICE = section("multi_head", "In practice")


def _random(*shapes, seed):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).round(1) for shape in shapes)


# ------------------------------------------------------- one row of the sheet


def _numbers(answer):
    """Return a row of fractions, floats or texts such as "1/2" as floats."""
    if isinstance(answer, str):
        answer = answer.strip(" ()[]").split(",")
    try:
        row = np.array(answer, dtype=object).ravel()
        row = [float(Fraction(x)) for x in row]
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        return "no row of numbers"
    return np.array(row) if len(row) == 4 else "not four numbers"


def _row_with(power, second=(1, 1, 2)):
    """Return the row of "is" without the mask; `power` turns integers into shares."""
    raised = [power(np.array(scores)) for scores in ((0.0, 2, 1), second)]
    V = np.array([[[3, 0], [0, 3], [3, 3]], [[6, 0], [0, 6], [0, 0]]])
    a, b = (r / r.sum() @ v for r, v in zip(raised, V, strict=True))
    return tuple(np.concatenate([a + b, a - b]))  # what the W_O of the sheet does


row_without_mask = Exercise(
    task='the row of "is" in Y, without the causal mask',
    right=(39 / 14, 57 / 14, -3 / 14, 15 / 14),
    cases=((),),
    observe=_numbers,
    mistakes=(
        Mistake(
            "mask kept",
            'the causal mask is still on; without it "is" attends to "well" too',
            (18 / 5, 27 / 5, -12 / 5, -3 / 5),
        ),
        Mistake(
            "no W_O",
            "these are the two head outputs side by side; the product with W_O is "
            "missing",
            (9 / 7, 18 / 7, 3 / 2, 3 / 2),
        ),
        Mistake(
            "powers of e",
            "you raised e to the integers; the scaled scores are integers times ln 2, "
            "so raise 2 to them",
            _row_with(np.exp),
        ),
        Mistake(
            "scaled twice",
            "the integers on the sheet are scaled already, because c contains √d_k",
            _row_with(lambda s: 2 ** (s / 2**0.5)),
        ),
        Mistake(
            "shares not divided",
            "the powers of 2 do not sum to 1 yet: divide each row by its sum",
            (21, 30, -3, 6),
        ),
        Mistake(
            'the row of "All"',
            'this is the row of "All"; the task asks for the row of "is"',
            (57 / 14, 39 / 14, 15 / 14, -3 / 14),
        ),
        Mistake(
            "the first head for both",
            "you used the weights of the first head for both; the second has its own",
            _row_with(np.exp2, second=(0, 2, 1)),
        ),
        Mistake(
            "mask kept in the second head",
            'the first head is right; in the second, "is" may attend to "well" too',
            _row_with(np.exp2, second=(1, 1, -np.inf)),
        ),
        Mistake(
            "no powers",
            "you divided the scores by their sum; raise 2 to each one first",
            _row_with(lambda s: s),
        ),
        Mistake(
            'the row of "well"',
            'this is the row of "well"; the task asks for the row of "is"',
            (7 / 2, 7 / 2, 1 / 2, 1 / 2),
        ),
        Mistake(
            "another kind of answer",
            "answer with a list of four numbers, such as [Fraction(1, 2), 0, 1, "
            "Fraction(-3, 4)]",
            "fractions",
        ),
        Mistake(
            "another count of numbers",
            "answer with four numbers, one for each column of Y",
            (39 / 14, 57 / 14),
        ),
        Mistake(
            "rounded",
            "these are right to three decimals; the task asks for exact fractions",
            (2.786, 4.071, -0.214, 1.071),
        ),
    ),
    reread=section("multi_head", "Deeper: a second sheet to print, All is well"),
    praise="exact fractions, with both heads and W_O.",
)


# ------------------------------------------------------- the function from the steps


def _zoo(name):
    """Return the member of the zoo of this name, called as the exercise is."""
    member = getattr(zoo, name)

    def answer(X, W_Q, W_K, W_V, W_O, n_heads, mask):
        return member(X, W_Q, W_K, W_V, W_O, n_heads, mask)

    return answer


def _with(
    *, matrices=lambda *three: three, project=lambda X, W, n_heads: X @ W,
    scores=lambda Q, K: Q @ K.swapaxes(-1, -2), factor=lambda d_k, h, n: d_k**-0.5,
    weights=None, hide=lambda S, mask: np.where(mask, S, -np.inf),
    merge=lambda heads: merge_heads(heads), output=lambda concat, W_O, h: concat @ W_O,
):  # fmt: skip
    """Return correct attention with these parts replaced."""

    def shares(S, scale, mask):
        return softmax(S * scale if mask is None else hide(S * scale, mask))

    def answer(X, W_Q, W_K, W_V, W_O, n_heads, mask):
        three = matrices(W_Q, W_K, W_V)
        Q, K, V = (split_heads(project(X, W, n_heads), n_heads) for W in three)
        scale = factor(Q.shape[-1], n_heads, len(X))
        heads = (weights or shares)(scores(Q, K), scale, mask) @ V
        return output(merge(heads), W_O, n_heads)

    return answer


def _given(change):
    """Return the right answer to arguments that `change` has made of those given."""

    def answer(X, W_Q, W_K, W_V, W_O, n_heads, mask):
        changed = change(X, W_Q, W_K, W_V, W_O, n_heads, mask)
        return multi_head_attention(*changed)

    return answer


def _heads(X, W_Q, W_K, W_V, n_heads, mask):
    Q, K, V = (split_heads(X @ W, n_heads) for W in (W_Q, W_K, W_V))
    return scaled_dot_product_attention(Q, K, V, mask)


def _ring(n):
    """Each token sees itself and the next: its opposite leaves no row empty."""
    eye = np.eye(n, dtype=bool)
    return eye | np.roll(eye, 1, axis=1)


def _layer_case(n, d_model, n_heads, d_k, d_v, mask, seed):
    widths = (n_heads * d_k, n_heads * d_k, n_heads * d_v)
    shapes = [(n, d_model), *((d_model, width) for width in widths)]
    return (*_random(*shapes, (n_heads * d_v, d_model), seed=seed), n_heads, mask)


def _no_swap_at_all(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    """Let every token attend over its own heads: they stand where tokens should."""
    Q, K, V = ((X @ W).reshape(len(X), n_heads, -1) for W in (W_Q, W_K, W_V))
    return scaled_dot_product_attention(Q, K, V, mask).reshape(len(X), -1) @ W_O


def _interleaved(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    Q, K, V = (
        np.moveaxis((X @ W).reshape(len(X), -1, n_heads), -1, 0)
        for W in (W_Q, W_K, W_V)
    )
    return merge_heads(scaled_dot_product_attention(Q, K, V, mask)) @ W_O


def _interleaved_both(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    Q, K, V = (
        np.moveaxis((X @ W).reshape(len(X), -1, n_heads), -1, 0)
        for W in (W_Q, W_K, W_V)
    )
    heads = scaled_dot_product_attention(Q, K, V, mask)
    return np.moveaxis(heads, 0, -1).reshape(len(X), -1) @ W_O


def _columns_first(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    """Merge the heads so that their first columns come first, then their second."""
    heads = _heads(X, W_Q, W_K, W_V, n_heads, mask)
    return np.moveaxis(heads, 0, -1).reshape(len(X), -1) @ W_O


def _diagonal_blocks(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    """Give head r its part of the columns of X, and that block of each matrix."""
    parts = np.split(X, n_heads, axis=1)
    Q, K, V = (
        np.stack(
            [
                part @ np.split(rows, n_heads, axis=1)[r]
                for r, (part, rows) in enumerate(
                    zip(parts, np.split(W, n_heads), strict=True)
                )
            ]
        )
        for W in (W_Q, W_K, W_V)
    )
    return merge_heads(scaled_dot_product_attention(Q, K, V, mask)) @ W_O


def _root_of_values(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    W_Q = W_Q * np.sqrt(W_Q.shape[1] / W_V.shape[1])
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, mask)


def _none_hides(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    hidden = np.zeros((len(X), len(X)), dtype=bool) if mask is None else mask
    Y = multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, hidden)
    return Y * np.nan if mask is None else Y


def _one_width(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    d_k = X.shape[1] // n_heads
    for W in (W_Q, W_K, W_V):
        W.reshape(len(W), n_heads, d_k)
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, mask)


def _causal_if_masked(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    causal = None if mask is None else np.tri(len(X), dtype=bool)
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, causal)


def _root_of_d_model(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    W_Q = W_Q * np.sqrt(W_Q.shape[1] // n_heads / X.shape[1])
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, mask)


many_heads = Exercise(
    task="multi-head attention, with a mask and any widths",
    right=lambda X, W_Q, W_K, W_V, W_O, n_heads, mask: multi_head_attention(
        X, W_Q, W_K, W_V, W_O, n_heads, mask
    ),
    forbidden=(multi_head_attention, zoo.right.__call__),
    cases=(
        _layer_case(3, 2, 1, 2, 2, None, seed=5),
        _layer_case(3, 4, 2, 2, 2, None, seed=6),
        _layer_case(3, 4, 2, 2, 2, _ring(3), seed=7),
        _layer_case(5, 3, 3, 2, 7, _ring(5), seed=8),
    ),
    mistakes=(
        Mistake(
            "split across the tokens",
            "your split reshapes without a swap, which cuts heads across the tokens: "
            "reshape to (n, heads, d_k), then swap the first two axes",
            _zoo("split_without_transpose"),
        ),
        Mistake(
            "merge across the tokens",
            "your merge reshapes without a swap: swap heads and tokens back before the "
            "reshape",
            _zoo("merge_without_transpose"),
        ),
        Mistake(
            "both across the tokens",
            "you split and merge by reshapes without a swap: the shapes are right, and "
            "the tokens are mixed",
            _zoo("both_without_transpose"),
        ),
        Mistake(
            "heads behind the tokens",
            "each token attends over its own heads, because the heads stand where the "
            "tokens should: swap the two axes",
            _no_swap_at_all,
        ),
        Mistake(
            "interleaved",
            "each of your heads takes every n_heads-th column; a head owns "
            "neighbouring columns",
            _interleaved,
        ),
        Mistake(
            "interleaved both ways",
            "your split and your merge take the columns of the heads in turn; a head "
            "owns neighbouring columns",
            _interleaved_both,
        ),
        Mistake(
            "merge interleaved",
            "your merge puts the first columns of all heads first; the columns of one "
            "head should stay neighbours",
            _columns_first,
        ),
        Mistake(
            "tokens cut before the projection",
            "you cut the tokens into heads before the projection, so a head sees a "
            "part of each token; first X @ W, then the cut",
            _zoo("input_split_before_projection"),
        ),
        Mistake(
            "tokens and matrices cut",
            "you cut X and the rows of the matrices into heads, so a head sees a part "
            "of each token; first X @ W, then cut the columns of the product",
            _diagonal_blocks,
        ),
        Mistake(
            "root of the whole width",
            "you divide by the root of the width of all heads together; each head "
            "divides by the root of its own width",
            _zoo("scale_sqrt_d_model"),
        ),
        Mistake(
            "root of d_model",
            "you divide by √d_model, the root of the width of X; divide by √d_k, the "
            "root of the width of one head",
            _root_of_d_model,
        ),
        Mistake(
            "root of the number of tokens",
            "you divide by the root of the number of tokens; divide by √d_k, the root "
            "of the width of one head",
            _zoo("scale_sqrt_n"),
        ),
        Mistake(
            "root of the width of a value",
            "you divide by the root of the width of a value; divide by √d_k, the root "
            "of the width of a key",
            _root_of_values,
        ),
        Mistake(
            "root of the number of heads",
            "you divide by the root of the number of heads; divide by √d_k, the root "
            "of the width of one head",
            _with(factor=lambda d_k, n_heads, n_k: n_heads**-0.5),
        ),
        Mistake(
            "width without root",
            "your scores are divided by d_k: by d_k without the root, or by √d_k "
            "twice, because the package's attention divides too",
            _zoo("scale_by_d_k"),
        ),
        Mistake(
            "multiplied by the root",
            "you multiply the scores by √d_k; divide by it",
            _with(factor=lambda d_k, n_heads, n_k: d_k**0.5),
        ),
        Mistake(
            "scale after the softmax",
            "you divide by √d_k after the softmax, so the weights do not sum to 1",
            _zoo("scale_after_softmax"),
        ),
        Mistake("no scale", "the scores are not divided by √d_k", _zoo("no_scale")),
        Mistake(
            "softmax over the queries",
            "your softmax runs over the queries; the weights of each query sum to 1 "
            "over the keys, which is the last axis",
            _zoo("softmax_over_queries"),
        ),
        Mistake(
            "softmax over the heads",
            "your softmax runs over the heads; the weights of each query sum to 1 over "
            "the keys, which is the last axis",
            _zoo("softmax_over_heads"),
        ),
        Mistake(
            "no softmax",
            "you use the scores as weights; the softmax is missing",
            _with(
                weights=lambda S, scale, mask: (
                    S * scale if mask is None else np.where(mask, S * scale, 0)
                )
            ),
        ),
        Mistake(
            "keys not transposed",
            "you reshape the keys where they must be transposed: swap their last two "
            "axes",
            _zoo("key_reshaped"),
        ),
        Mistake(
            "queries and keys exchanged",
            "your scores have one row for each key; they need one row for each query",
            _with(scores=lambda Q, K: K @ Q.swapaxes(-1, -2)),
        ),
        Mistake(
            "keys made with W_Q",
            "your keys are made with W_Q; they have a matrix of their own, W_K",
            _zoo("tied_query_key"),
        ),
        Mistake(
            "queries made with W_K",
            "your queries are made with W_K; they have a matrix of their own, W_Q",
            _with(matrices=lambda W_Q, W_K, W_V: (W_K, W_K, W_V)),
        ),
        Mistake(
            "values made with W_K",
            "your values are made with W_K; they have a matrix of their own, W_V",
            _with(matrices=lambda W_Q, W_K, W_V: (W_Q, W_K, W_K)),
        ),
        Mistake(
            "W_K and W_V exchanged",
            "W_K makes the keys and W_V the values; yours are exchanged",
            _with(matrices=lambda W_Q, W_K, W_V: (W_Q, W_V, W_K)),
        ),
        Mistake(
            "values not projected",
            "your values are the tokens themselves; multiply X by W_V first",
            _with(matrices=lambda W_Q, W_K, W_V: (W_Q, W_K, np.eye(len(W_V)))),
        ),
        Mistake(
            "no projection",
            "the tokens themselves are your queries, keys and values; multiply X by "
            "W_Q, W_K and W_V first",
            _with(project=lambda X, W, n_heads: X),
        ),
        Mistake(
            "transposed matrices",
            "you multiply by the transposes of W_Q, W_K and W_V, as PyTorch does; here "
            "it is X @ W",
            _with(project=lambda X, W, n_heads: X @ W.T),
        ),
        Mistake(
            "all four matrices transposed",
            "you multiply by the transposes of all four matrices, as PyTorch does; "
            "here it is X @ W",
            lambda X, W_Q, W_K, W_V, W_O, n_heads, mask: _with(
                project=lambda X, W, n_heads: X @ W.T
            )(X, W_Q, W_K, W_V, W_O.T, n_heads, mask),
        ),
        Mistake(
            "no W_O",
            "the head outputs stand side by side; the product with W_O is missing",
            _zoo("no_output_projection"),
        ),
        Mistake(
            "W_O transposed",
            "you multiply by the transpose of W_O; its rows belong to the columns of "
            "the concatenation, so it is @ W_O",
            _with(output=lambda concat, W_O, n_heads: concat @ W_O.T),
        ),
        Mistake(
            "W_O head by head",
            "you use only the diagonal blocks of W_O; a head writes into all columns "
            "of the output",
            _zoo("output_within_heads"),
        ),
        Mistake(
            "one wide head",
            "you compute one head as wide as all of them; cut Q, K and V into n_heads "
            "heads before the scores",
            _given(
                lambda X, W_Q, W_K, W_V, W_O, n_heads, mask: (
                    X,
                    W_Q,
                    W_K,
                    W_V,
                    W_O,
                    1,
                    mask,
                )
            ),
        ),
        Mistake(
            "heads averaged",
            "you average the heads; lay them side by side, so that each meets its own "
            "rows of W_O",
            _zoo("heads_averaged"),
        ),
        Mistake(
            "the first head for all",
            "every place of your concatenation holds the first head; each head has its "
            "own",
            _with(merge=lambda heads: merge_heads(0 * heads + heads[:1])),
        ),
        Mistake(
            "the last head for all",
            "every place of your concatenation holds the last head; each head has its "
            "own",
            _with(merge=lambda heads: merge_heads(0 * heads + heads[-1:])),
        ),
        Mistake(
            "heads in the wrong order",
            "your heads stand in reverse order; the first head belongs on the left, "
            "where its rows of W_O are the first",
            _with(merge=lambda heads: merge_heads(heads[::-1])),
        ),
        Mistake(
            "mask ignored",
            "the mask is given and you do not use it",
            _zoo("mask_ignored"),
        ),
        Mistake(
            "mask inverted",
            "True means may attend; you hide what may be attended to",
            _zoo("mask_inverted"),
        ),
        Mistake(
            "mask transposed",
            "your mask is transposed: its rows belong to the queries and its columns "
            "to the keys",
            _given(
                lambda X, W_Q, W_K, W_V, W_O, n_heads, mask: (
                    X,
                    W_Q,
                    W_K,
                    W_V,
                    W_O,
                    n_heads,
                    None if mask is None else mask.T,
                )
            ),
        ),
        Mistake(
            "mask after the softmax",
            "you hide weights after the softmax, so a row no longer sums to 1: hide "
            "the scores before it",
            _zoo("mask_after_softmax"),
        ),
        Mistake(
            "hidden scores set to 0",
            "a hidden score is 0 in your answer, or multiplied by 0, and exp(0) is 1, "
            "so it still gets a weight: set it to −∞",
            _zoo("mask_zero_score"),
        ),
        Mistake(
            "mask added",
            "a hidden score is only 1 lower than without the mask, as happens when you "
            "add the mask to the scores: set it to −∞",
            _with(hide=lambda S, mask: S + mask),
        ),
        Mistake(
            "always causal",
            "you hide the future in every case; the given mask decides, and None hides "
            "nothing",
            lambda X, W_Q, W_K, W_V, W_O, n_heads, mask: multi_head_attention(
                X, W_Q, W_K, W_V, W_O, n_heads, is_causal=True
            ),
        ),
        Mistake(
            "causal instead of the given mask",
            "where a mask is given you hide the future instead; use the given mask",
            _causal_if_masked,
        ),
        Mistake(
            "causal besides the given mask",
            "where a mask is given you hide the future too; use the given mask alone",
            lambda X, W_Q, W_K, W_V, W_O, n_heads, mask: multi_head_attention(
                X, W_Q, W_K, W_V, W_O, n_heads, mask, is_causal=mask is not None
            ),
        ),
        Mistake(
            "only the weights",
            "these are the weights of the heads; average the values with them, merge "
            "the heads and multiply by W_O",
            lambda X, W_Q, W_K, W_V, W_O, n_heads, mask: multi_head_attention(
                X, W_Q, W_K, W_V, W_O, n_heads, mask, return_weights=True
            )[1],
        ),
        Mistake(
            "None hides everything",
            "with mask None nothing is hidden, but np.where takes None for False: ask "
            "whether the mask is None first",
            _none_hides,
        ),
        Mistake(
            "one width for all",
            "here the widths differ: a query and a key of a head are W_Q.shape[1] // "
            "n_heads wide, a value is W_V.shape[1] // n_heads wide, and d_model is a "
            "third number",
            _one_width,
        ),
        Mistake(
            "heads not merged",
            "these are the outputs of the heads, each by itself; merge them and "
            "multiply by W_O",
            lambda X, W_Q, W_K, W_V, W_O, n_heads, mask: _heads(
                X, W_Q, W_K, W_V, n_heads, mask
            ),
        ),
    ),
    reread=section("multi_head", "The equation"),
    praise="it agrees with the package, masks and unequal widths included.",
)


# ------------------------------------------------------- what a mean of maps hides


def _eighths(*maps):
    return np.array(maps) / 8


def _far(A, centre):
    return np.abs(A - centre).sum(axis=(1, 2))


_FORWARD, _BACK = [[0, 8, 0], [0, 0, 8]], [[8, 0, 0], [4, 4, 0]]
_EVEN, _MILD = [[2, 4, 2], [2, 2, 4]], [[3, 3, 2], [3, 3, 2]]

farthest_head = Exercise(
    task="the head that the mean hides best",
    right=lambda A: int(_far(A, A.mean(axis=0)).argmax()),
    cases=(
        (_eighths(_FORWARD, _FORWARD, _FORWARD, _BACK),),
        (_eighths(_FORWARD, _MILD, _FORWARD, _EVEN),),
        (_eighths([[0, 1, 7]], [[0, 1, 7]], [[0, 0, 8]], [[4, 4, 0]]),),
        (
            _eighths(
                [[8, 0, 0, 0], [2, 2, 2, 2]],
                [[4, 4, 0, 0], [4, 4, 0, 0]],
                [[5, 1, 2, 0], [3, 3, 1, 1]],
                [[1, 1, 3, 3], [1, 1, 3, 3]],
            ),
        ),
        (_eighths(_BACK, _FORWARD, _FORWARD, _FORWARD),),
        (
            # Three measures, three heads: sums, sums of squares, single differences.
            _eighths(
                [[0, 8, 0, 0], [2, 2, 0, 4]],
                [[0, 0, 0, 8], [1, 5, 2, 0]],
                [[0, 0, 0, 8], [8, 0, 0, 0]],
                [[8, 0, 0, 0], [1, 2, 1, 4]],
            ),
        ),
    ),
    mistakes=(
        Mistake(
            "differences that cancel",
            "you add differences with their signs, and those of a head add up to 0: "
            "take their absolute values first",
            lambda A: int((A - A.mean(axis=0)).sum(axis=(1, 2)).round(9).argmax()),
        ),
        Mistake(
            "squares",
            "you add the squares of the differences; the task adds their absolute "
            "values",
            lambda A: int(((A - A.mean(axis=0)) ** 2).sum(axis=(1, 2)).argmax()),
        ),
        Mistake(
            "the largest difference",
            "you look at the one largest difference; add up all differences of a head",
            lambda A: int(np.abs(A - A.mean(axis=0)).max(axis=(1, 2)).argmax()),
        ),
        Mistake(
            "the nearest head",
            "this head is the most like the mean; the task asks for the one least like "
            "it",
            lambda A: int(_far(A, A.mean(axis=0)).argmin()),
        ),
        Mistake(
            "far from equal shares",
            "you measure how far a head is from equal weights; measure how far it is "
            "from the mean of the heads",
            lambda A: int(_far(A, 1 / A.shape[-1]).argmax()),
        ),
        Mistake(
            "the largest weight",
            "you look for the largest weight, which all heads may share; compare each "
            "head with the mean",
            lambda A: int(A.max(axis=(1, 2)).argmax()),
        ),
        Mistake(
            "counted from one",
            "you found the head; the task asks for its index, which starts at 0",
            lambda A: int(_far(A, A.mean(axis=0)).argmax()) + 1,
        ),
        Mistake(
            "far from the first head",
            "you compare each head with the first one; compare it with the mean of all",
            lambda A: int(_far(A, A[0]).argmax()),
        ),
        Mistake(
            "all distances",
            "these are the distances of all heads; return the index of the largest, by "
            "argmax",
            lambda A: _far(A, A.mean(axis=0)),
        ),
        Mistake(
            "the map, not the index",
            "this is the map of the head; return its index",
            lambda A: A[_far(A, A.mean(axis=0)).argmax()],
        ),
        Mistake(
            "the distance, not the head",
            "this is the distance; return the index of the head that has it",
            lambda A: _far(A, A.mean(axis=0)).max(),
        ),
    ),
    reread=_BREAK_IT,
    praise="this is the head that the mean hides most.",
)


# ------------------------------------------------------- weights of PyTorch


def _thirds(w, axis=0):
    return tuple(np.split(w, 3, axis=axis))


def _three_matrices(answer, w):
    """Return a list or a stack of matrices as a tuple, for it unpacks like one."""
    result = answer(w) if callable(answer) else answer
    stack = getattr(result, "ndim", 0) == 3
    return tuple(result) if stack or isinstance(result, list) else result


matrices_of_torch = Exercise(
    task="W_Q, W_K and W_V from in_proj_weight",
    observe=_three_matrices,
    right=lambda in_proj_weight: tuple(w.T for w in _thirds(in_proj_weight)),
    cases=(
        (np.arange(3.0)[:, None],),
        (np.arange(12.0).reshape(6, 2),),
        _random((9, 3), seed=9),
    ),
    mistakes=(
        Mistake(
            "not transposed",
            "these are the matrices as PyTorch stores them; we compute X @ W, so each "
            "has to be transposed",
            _thirds,
        ),
        Mistake(
            "reshaped after the transpose",
            "a reshape after the transpose mixes the three: cut first, then transpose "
            "each",
            lambda w: tuple(w.T.reshape(3, w.shape[1], w.shape[1])),
        ),
        Mistake(
            "every third row",
            "you take every third row; the three matrices lie one below the other",
            lambda w: tuple(w[r::3].T for r in range(3)),
        ),
        Mistake(
            "cut into columns",
            "you cut the columns; each matrix has all columns and a third of the rows",
            lambda w: _thirds(w, axis=1),
        ),
        Mistake(
            "query, value, key",
            "W_K and W_V are exchanged: from the top it is W_Q, W_K, W_V",
            lambda w: tuple(_thirds(w)[r].T for r in (0, 2, 1)),
        ),
        Mistake(
            "key, query, value",
            "W_Q and W_K are exchanged: from the top it is W_Q, W_K, W_V",
            lambda w: tuple(_thirds(w)[r].T for r in (1, 0, 2)),
        ),
        Mistake(
            "value, key, query",
            "W_Q and W_V are exchanged: from the top it is W_Q, W_K, W_V",
            lambda w: tuple(part.T for part in reversed(_thirds(w))),
        ),
        Mistake(
            "transposed the wrong way",
            "with .T an array of three axes turns all of them round; swap the last two",
            lambda w: w.reshape(3, w.shape[1], w.shape[1]).T,
        ),
        Mistake(
            "cut into columns, not transposed",
            "you cut the transpose into rows; cut the stored array into three blocks "
            "of rows, then transpose each",
            lambda w: _thirds(w.T),
        ),
        Mistake(
            "only the first",
            "this is W_Q; return W_Q, W_K and W_V",
            lambda w: _thirds(w)[0].T,
        ),
        Mistake(
            "not cut",
            "the array is transposed and still one; cut it into three",
            lambda w: w.T,
        ),
    ),
    reread=_IN_PRACTICE,
    praise="with these three, our function gives what PyTorch's layer gives.",
)


# ------------------------------------------------------- the bug hunt

_GUILTY = {
    "A": "mask_after_softmax",
    "B": "scale_sqrt_n",
    "C": "output_within_heads",
    "D": "tied_query_key",
    "E": "merge_without_transpose",
    "F": "input_split_before_projection",
}
# Any two of them break different laws, so the laws alone decide.
WANTED = (
    "no_scale",
    "scale_sqrt_n",
    "scale_after_softmax",
    "softmax_over_queries",
    "mask_ignored",
    "mask_after_softmax",
    "merge_without_transpose",
    "input_split_before_projection",
    "tied_query_key",
    "heads_averaged",
    "output_within_heads",
    "no_output_projection",
)


class Suspect:
    """Compute multi-head attention, with one step wrong, and do not say which.

    A suspect is called like `mha.multi_head_attention` and can be put to any law.

    Attributes
    ----------
    step : str
        The code of the wrong step, for those who want to see it.

    Examples
    --------
    >>> suspects["B"]
    suspect B
    """

    def __init__(self, letter):
        # Reports call a subject by these two.
        self.__name__, self.__module__ = f"suspect {letter}", ""
        self._letter = letter

    def __call__(
        self, X, W_Q, W_K, W_V, W_O, n_heads, mask=None, *, X_k=None, X_v=None,
        b_Q=None, b_K=None, b_V=None, b_O=None, is_causal=False, return_weights=False,
    ):  # fmt: skip
        """Return what this suspect takes for `mha.multi_head_attention`."""
        return self._member()(
            X, W_Q, W_K, W_V, W_O, n_heads, mask, X_k=X_k, X_v=X_v, b_Q=b_Q, b_K=b_K,
            b_V=b_V, b_O=b_O, is_causal=is_causal, return_weights=return_weights,
        )  # fmt: skip

    @property
    def step(self):
        """The code of the wrong step."""
        return self._member().source

    def _member(self):
        return getattr(zoo, _GUILTY[self._letter])

    def __repr__(self):
        return self.__name__


suspects = {letter: Suspect(letter) for letter in _GUILTY}


@functools.cache
def suspect_exercise(letter):
    """Return the exercise for one suspect; its hints follow from the kill matrix."""
    guilty = _GUILTY[letter]
    return Exercise(
        task=f"the mistake of suspect {letter}",
        right=guilty,
        cases=((),),
        observe=_slug,
        mistakes=tuple(
            Mistake(slug, _alibi(letter, guilty, slug), slug)
            for slug in WANTED
            if slug != guilty
        ),
        reread=section("multi_head", "The law"),
    )


def _slug(answer):
    """Return the slug, whether it came as text, as a sentence or as a member."""
    if not isinstance(answer, str):
        return getattr(answer, "name", repr(answer))
    wanted = answer.strip().removeprefix("zoo.")
    return next((m.name for m in zoo.WRONG if wanted == m.wrong), wanted)


def _alibi(letter, guilty, accused):
    """Return why the accused is innocent: a law on which the two differ."""
    from mha import laws

    matrix, names = laws.kill_matrix(), {law.slug: law.name for law in laws.ALL}
    broken, suspected = set(matrix.killed_by(guilty)), set(matrix.killed_by(accused))
    for slug, name in names.items():
        if slug in suspected - broken:
            return f'{accused} would break "{name}", and {letter} keeps it'
    slug = next(slug for slug in names if slug in broken - suspected)
    return f'{accused} would keep "{names[slug]}", and {letter} breaks it'


class Hunt(Exercise):
    """Say, for each suspect that is accused, whether it did it."""

    def judge(self, answer):
        """Return the `Verdict` on a dict of accusations, one for each letter."""
        if not isinstance(answer, dict):
            text = (
                f'give a dict, such as {{"A": "no_scale"}}, got {reprlib.repr(answer)}'
            )
            return Verdict("not yet", text)
        if unknown := [key for key in answer if key not in tuple(suspects)]:
            text = f"there are suspects {', '.join(suspects)}, got {unknown[0]}"
            return Verdict("not yet", text)
        accused = {a: x for a, x in answer.items() if not is_stub(x)}
        if not accused:
            return Verdict("not attempted yet", self.task)
        verdicts = {a: suspect_exercise(a)(x) for a, x in accused.items()}
        if len(accused) == len(suspects) and all(v.passed for v in verdicts.values()):
            return Verdict("passed", self.praise)
        lines = [_reply(a, accused[a], v) for a, v in sorted(verdicts.items())]
        if free := [a for a in suspects if a not in accused]:
            lines.append(f"not accused yet: {', '.join(free)}")
        mistake = next((v.mistake for v in verdicts.values() if v.mistake), None)
        return Verdict("not yet", "\n".join(lines), mistake)


bug_hunt = Hunt(
    task="six suspects and what each did wrong",
    right=_GUILTY,
    cases=((),),
    mistakes=(),  # each suspect has its own: see suspect_exercise
    reread=section("multi_head", "The law"),
    praise="all six are right.",
)


def _reply(letter, answer, verdict):
    """Return what is said to one accusation; the engine would give the answer away."""
    if verdict.passed:
        text = "mistake found"
    elif verdict.mistake is None:
        text = f"{_slug(answer)} is not on the list; check.WANTED holds twelve"
    else:
        mistakes = suspect_exercise(letter).mistakes
        text = next(m.hint for m in mistakes if m.name == verdict.mistake)
    return textwrap.fill(f"{letter}: {text}", 60, subsequent_indent="   ")
