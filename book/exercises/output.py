"""Exercises on the output projection: what W_O mixes, and what it costs."""

import numpy as np

from exercises import section
from mha import zoo
from mha.check import Exercise, Mistake
from mha.heads import merge_heads, multi_head_attention

_BREAK, _EQUATION = section("output", "Break it"), section("output", "The equation")


def _random(*shapes, seed):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).round(1) for shape in shapes)


# ------------------------------------------------------- 8.1: the sum over heads


def _messages(heads, W_O, block):
    """Return head r times ``block(W_O, r, n_heads, d_v)``, for every r."""
    n_heads, d_v = heads.shape[-3], heads.shape[-1]
    return [heads[..., r, :, :] @ block(W_O, r, n_heads, d_v) for r in range(n_heads)]


def _rows(W_O, r, n_heads, d_v):
    return W_O[r * d_v : (r + 1) * d_v]


def _columns(W_O, r, n_heads, d_v):
    return W_O[:, r * d_v : (r + 1) * d_v].T


def _diagonal(W_O, n_heads):
    """Return only the blocks of W_O with which each head would stay in its columns."""
    same_head = np.kron(np.eye(n_heads), np.ones((W_O.shape[0] // n_heads,) * 2))
    return np.where(same_head, W_O, 0)


def _laid_out(heads):
    return zoo.merge_without_transpose.steps["merge_heads"](heads)


def _averaged(heads, W_O):
    return zoo.heads_averaged.steps["merge_heads"](heads) @ W_O


def _all_messages(heads, W_O):
    return np.stack(_messages(heads, W_O, _rows), axis=-3)


def _without_batch(heads, W_O):
    d_v = heads.shape[-1]
    return sum(heads[r] @ _rows(W_O, r, 0, d_v) for r in range(len(heads)))


def _three(heads):
    n_heads, n, d_v = heads.shape
    return n_heads, n, d_v


sum_of_heads = Exercise(
    task="the output as a sum over the heads",
    right=lambda heads, W_O: sum(_messages(heads, W_O, _rows)),
    forbidden=(merge_heads, multi_head_attention),
    cases=(
        (np.array([[[1.0]], [[10.0]]]), np.array([[1.0, 2.0], [3.0, 4.0]])),
        (np.arange(1.0, 9).reshape(2, 2, 2), np.eye(4)),
        _random((3, 5, 2), (6, 7), seed=0),
        _random((2, 3, 5, 2), (6, 7), seed=1),
    ),
    mistakes=(
        Mistake(
            "sum divided by the number of heads",
            "the products of the heads are added; you also divide by the number of "
            "heads",
            lambda heads, W_O: sum(_messages(heads, W_O, _rows)) / heads.shape[-3],
        ),
        Mistake(
            "heads averaged",
            "you average the heads first, so every block of W_O meets the same "
            "average: first each head times its own block, then the sum",
            _averaged,
        ),
        Mistake(
            "one block for all",
            "every head is multiplied by the first block; each has a block of its own",
            lambda heads, W_O: sum(
                _messages(heads, W_O, lambda W, r, h, d: W[:d]),
            ),
        ),
        Mistake(
            "W_O transposed",
            "you take the blocks from the columns of W_O, or from its transpose; the "
            "block of a head is d_v rows of W_O",
            lambda heads, W_O: sum(_messages(heads, W_O, _columns)),
        ),
        Mistake(
            "interleaved rows",
            "you take every h-th row of W_O; the d_v rows of one head are neighbours",
            lambda heads, W_O: sum(
                _messages(heads, W_O, lambda W, r, h, d: W[r::h]),
            ),
        ),
        Mistake(
            "shifted by one row",
            "the block of a head starts d_v rows below that of the head before it; "
            "yours start one row below",
            lambda heads, W_O: sum(
                _messages(heads, W_O, lambda W, r, h, d: W[r : r + d]),
            ),
        ),
        Mistake(
            "only the diagonal blocks",
            "you cut W_O into columns too; a head writes into all columns of the "
            "output, so its block is d_v rows of full width",
            lambda heads, W_O: merge_heads(heads) @ _diagonal(W_O, heads.shape[-3]),
        ),
        Mistake(
            "only the last head",
            "you return the product of the last head alone; add up those of all heads",
            lambda heads, W_O: _messages(heads, W_O, _rows)[-1],
        ),
        Mistake(
            "only the first head",
            "you return the product of the first head alone: does a return stand "
            "inside a loop?",
            lambda heads, W_O: _messages(heads, W_O, _rows)[0],
        ),
        Mistake(
            "the last head left out",
            "the last head is missing from the sum",
            lambda heads, W_O: sum(_messages(heads, W_O, _rows)[:-1]),
        ),
        Mistake(
            "not added",
            "you have one product for each head; add them up over the axis of the "
            "heads",
            _all_messages,
        ),
        Mistake(
            "added over the tokens",
            "you add over the tokens; add over the heads, the third axis from the end",
            lambda heads, W_O: _all_messages(heads, W_O).sum(-2),
        ),
        Mistake(
            "added over the first axis",
            "you add over axis 0, where a batch may stand: the heads are axis −3",
            lambda heads, W_O: _all_messages(heads, W_O).sum(0),
        ),
        Mistake(
            "axis 0 taken for the heads",
            "this works without a batch; the heads are the third axis from the end, so "
            "the first head is heads[..., 0, :, :]",
            _without_batch,
        ),
        Mistake(
            "no batch allowed",
            "this works without a batch and stops with one: read n_heads and d_v from "
            "heads.shape[-3] and heads.shape[-1]",
            lambda heads, W_O: _without_batch(heads.reshape(_three(heads)), W_O),
        ),
        Mistake(
            "the first head twice",
            "the first head is added twice: start from 0, or go on with the second",
            lambda heads, W_O: (
                sum(_messages(heads, W_O, _rows)) + _messages(heads, W_O, _rows)[0]
            ),
        ),
        Mistake(
            "no W_O",
            "the heads stand side by side, and W_O has not been used",
            lambda heads, W_O: merge_heads(heads),
        ),
        Mistake(
            "blocks in the opposite order",
            "each head meets the block of another one: the first d_v rows of W_O "
            "belong to the first head",
            lambda heads, W_O: sum(_messages(heads[..., ::-1, :, :], W_O, _rows)),
        ),
        Mistake(
            "heads mixed with tokens",
            "a reshape without a swap mixes heads and tokens, and this task needs no "
            "concatenation: take one head after the other",
            lambda heads, W_O: _laid_out(heads) @ W_O,
        ),
        Mistake(
            "heads added before W_O",
            "you add the heads before they meet W_O; first each head times its own "
            "block, then the sum",
            lambda heads, W_O: (
                heads.sum(-3) @ W_O.reshape(heads.shape[-3], heads.shape[-1], -1).sum(0)
            ),
        ),
    ),
    reread=_EQUATION,
    praise="the sum over the heads gives what concatenation and W_O give.",
)


# ------------------------------------------------------- 8.2: counting parameters


def _count(d_model, n_heads, d_k, d_v, bias):
    matrices = 2 * d_model * n_heads * d_k + 2 * d_model * n_heads * d_v
    return matrices + bias * (n_heads * (2 * d_k + d_v) + d_model)


count_parameters = Exercise(
    task="the number of parameters of a multi-head layer",
    right=_count,
    cases=(
        (4, 1, 4, 4, False),
        (4, 2, 2, 2, False),
        (4, 2, 2, 2, True),
        (6, 2, 5, 2, False),
        (6, 2, 5, 2, True),
        (512, 8, 64, 64, True),
    ),
    mistakes=(
        Mistake(
            "three matrices",
            "you count W_Q, W_K and W_V; W_O and its bias count too",
            lambda d, h, d_k, d_v, bias: (
                _count(d, h, d_k, d_v, bias) - (h * d_v * d + bias * d)
            ),
        ),
        Mistake(
            "three matrices, no biases",
            "you count three matrices without biases; W_O counts too, and with "
            "bias=True each matrix has a bias",
            lambda d, h, d_k, d_v, bias: d * h * (2 * d_k + d_v),
        ),
        Mistake(
            "W_O of one head",
            "you give W_O the d_v rows of one head; it has h·d_v rows",
            lambda d, h, d_k, d_v, bias: (
                _count(d, h, d_k, d_v, bias) - (h - 1) * d_v * d
            ),
        ),
        Mistake(
            "full width in every head",
            "you give each head d_model columns; it has d_k, or d_v for the values",
            lambda d, h, d_k, d_v, bias: h * (4 * d * d + bias * 4 * d),
        ),
        Mistake(
            "biases forgotten",
            "the matrices are right; with bias=True each matrix has a bias, with one "
            "number for each of its columns",
            lambda d, h, d_k, d_v, bias: _count(d, h, d_k, d_v, False),
        ),
        Mistake(
            "always four squares",
            "4 d_model² holds if h·d_k = h·d_v = d_model; here they may differ",
            lambda d, h, d_k, d_v, bias: 4 * d * d + bias * 4 * d,
        ),
        Mistake(
            "bias of the output too wide",
            "b_O has one number for each column of W_O, and these are d_model",
            lambda d, h, d_k, d_v, bias: (
                2 * d * h * (d_k + d_v) + bias * h * (2 * d_k + 2 * d_v)
            ),
        ),
        Mistake(
            "biases in any case",
            "with bias=False there are no biases to count",
            lambda d, h, d_k, d_v, bias: _count(d, h, d_k, d_v, True),
        ),
        Mistake(
            "bias of the output forgotten",
            "you count three biases; W_O has one too, with d_model numbers",
            lambda d, h, d_k, d_v, bias: _count(d, h, d_k, d_v, bias) - bias * d,
        ),
        Mistake(
            "biases as long as rows",
            "you count one number for each row of a matrix; a bias is added to the "
            "result, so it has one for each column",
            lambda d, h, d_k, d_v, bias: (
                _count(d, h, d_k, d_v, False) + bias * (3 * d + h * d_v)
            ),
        ),
        Mistake(
            "four biases of width d_model",
            "you give every bias d_model numbers; a bias has one for each column of "
            "its matrix, and only W_O has d_model columns",
            lambda d, h, d_k, d_v, bias: _count(d, h, d_k, d_v, False) + bias * 4 * d,
        ),
        Mistake(
            "one number a bias",
            "you count one number for each bias; it has one for each column of its "
            "matrix",
            lambda d, h, d_k, d_v, bias: _count(d, h, d_k, d_v, False) + bias * 4,
        ),
        Mistake(
            "biases of one head",
            "the matrices are right; the biases of queries, keys and values are as "
            "wide as all heads together",
            lambda d, h, d_k, d_v, bias: (
                _count(d, h, d_k, d_v, False) + bias * (2 * d_k + d_v + d)
            ),
        ),
        Mistake(
            "W_O square",
            "you count W_O as a square of width d_model; it has h·d_v rows",
            lambda d, h, d_k, d_v, bias: (
                _count(d, h, d_k, d_v, bias) + d * d - h * d_v * d
            ),
        ),
        Mistake(
            "keys as wide as values",
            "you use d_v for all four matrices; W_Q and W_K have h·d_k columns",
            lambda d, h, d_k, d_v, bias: _count(d, h, d_v, d_v, bias),
        ),
        Mistake(
            "values as wide as keys",
            "you use d_k for all four matrices; W_V has h·d_v columns, and W_O as many "
            "rows",
            lambda d, h, d_k, d_v, bias: _count(d, h, d_k, d_k, bias),
        ),
        Mistake(
            "W_O once for each head",
            "you count W_O and its bias once for each head; all heads share one W_O",
            lambda d, h, d_k, d_v, bias: (
                h * (2 * d * d_k + d * d_v + h * d_v * d)
                + bias * h * (2 * d_k + d_v + d)
            ),
        ),
        Mistake(
            "the output's bias once for each head",
            "the matrices are right; b_O is one bias of d_model numbers for all heads",
            lambda d, h, d_k, d_v, bias: (
                _count(d, h, d_k, d_v, False) + bias * h * (2 * d_k + d_v + d)
            ),
        ),
        Mistake(
            "one head",
            "this is the count of a layer with one head; there are n_heads of them",
            lambda d, h, d_k, d_v, bias: _count(d, 1, d_k, d_v, bias),
        ),
    ),
    reread=section("output", "Deeper: how many numbers do 1, 2 and 16 heads have?"),
    praise="right for every width; if h·d_k = h·d_v = d_model, the number of heads "
    "does not matter.",
    names=("d_model", "n_heads", "d_k", "d_v", "bias"),
)


# ------------------------------------------------------- 8.3: folding a bias


fold_value_bias = Exercise(
    task="one bias at the output that does the work of two",
    right=lambda b_V, W_O, b_O: b_O + b_V @ W_O,
    cases=(
        (np.array([1.0]), np.array([[2.0]]), np.array([3.0])),
        (np.array([1.0, 5.0]), np.array([[0.0, 2.0], [1.0, 0.0]]), np.zeros(2)),
        _random((4,), (4, 4), (4,), seed=2),
        _random((6,), (6, 5), (5,), seed=3),
    ),
    mistakes=(
        Mistake(
            "added as they are",
            "b_V is added to the values, before W_O; multiply it by W_O before you add",
            lambda b_V, W_O, b_O: b_O + b_V,
        ),
        Mistake(
            "wrong side of W_O",
            "you multiply W_O from the left, or its transpose; a bias is a row like "
            "every token, so it stands on the left: b_V @ W_O",
            lambda b_V, W_O, b_O: b_O + W_O @ b_V,
        ),
        Mistake(
            "old bias lost",
            "this is what b_V adds to the output; b_O is still missing",
            lambda b_V, W_O, b_O: b_V @ W_O,
        ),
        Mistake(
            "wrong side of W_O, old bias lost",
            "two steps are missing: b_V is a row and stands on the left of W_O, and "
            "b_O is added",
            lambda b_V, W_O, b_O: W_O @ b_V,
        ),
        Mistake(
            "number times number",
            "with * you multiply each column of W_O by one number of a bias; a bias "
            "times a matrix is b_V @ W_O",
            lambda b_V, W_O, b_O: b_O + b_V * W_O,
        ),
        Mistake(
            "rows of W_O not added up",
            "each number of b_V has met its row of W_O; add these rows up, which "
            "b_V @ W_O does in one step",
            lambda b_V, W_O, b_O: b_O + b_V[:, None] * W_O,
        ),
        Mistake(
            "W_O undone",
            "you divide by W_O; b_V is multiplied by it on its way to the output",
            lambda b_V, W_O, b_O: b_O + b_V @ np.linalg.inv(W_O),
        ),
        Mistake(
            "both pushed through W_O",
            "you multiply both by W_O; b_O is added after W_O, so it stays as it is",
            lambda b_V, W_O, b_O: (b_V + b_O) @ W_O,
        ),
        Mistake(
            "the wrong one pushed through W_O",
            "you multiply b_O by W_O and leave b_V as it is; b_V is the one that is "
            "added before W_O",
            lambda b_V, W_O, b_O: b_V + b_O @ W_O,
        ),
        Mistake(
            "b_V dropped",
            "b_V is missing: the weights of a row sum to 1, so every head output gets "
            "all of it",
            lambda b_V, W_O, b_O: b_O,
        ),
        Mistake(
            "b_V summed to a number",
            "you add up the numbers of b_V; each of them is multiplied by a row of W_O",
            lambda b_V, W_O, b_O: b_O + b_V.sum(),
        ),
        Mistake(
            "subtracted",
            "you subtract what b_V does; the new bias does the same, so add it",
            lambda b_V, W_O, b_O: b_O - b_V @ W_O,
        ),
        Mistake(
            "averaged over the columns",
            "you use the mean of b_V for all its columns; each number of b_V is "
            "multiplied by its own row of W_O",
            lambda b_V, W_O, b_O: b_O + b_V.mean() * W_O.sum(0),
        ),
    ),
    reread=section("output", "Deeper: does the bias of the values do anything?"),
    praise="one bias instead of two, and the layer gives the same output.",
)


# ------------------------------------------------------- 8.4: who wrote


def _left_over(change, block):
    """Return how much of the change lies outside the row space of the block."""
    wrote, *_ = np.linalg.lstsq(block.T, change.T, rcond=None)
    return np.linalg.norm(change.T - block.T @ wrote)


def _per_head(measure, change, W_O, n_heads, block=_rows):
    d_v = len(W_O) // n_heads
    return [measure(change, block(W_O, r, n_heads, d_v)) for r in range(n_heads)]


def _who(before, after, W_O, n_heads):
    return int(np.argmin(_per_head(_left_over, after - before, W_O, n_heads)))


def _own_columns(before, after, W_O, n_heads):
    change = np.split(after - before, n_heads, axis=-1)
    return int(np.argmax([np.linalg.norm(part) for part in change]))


def _overlap(before, after, W_O, n_heads):
    overlaps = _per_head(lambda c, B: np.linalg.norm(c @ B.T), after - before, W_O,
                         n_heads)  # fmt: skip
    return int(np.argmax(overlaps))


def _columns_of_the_concatenation(before, after, W_O):
    return np.abs((after - before) @ np.linalg.inv(W_O)).sum(0)


def _without_signs(before, after, W_O, n_heads):
    change = (after - before) @ np.linalg.inv(W_O)
    return int(change.reshape(len(change), n_heads, -1).sum((0, 2)).argmax())


def _largest_entry(before, after, W_O, n_heads):
    change = (after - before) @ np.linalg.inv(W_O)
    return int(change.max(0).argmax() * n_heads // len(W_O))


def _written(n_heads, d_v, head, seed, n=3):
    """Return outputs of a random layer before and after one head has changed."""
    d = n_heads * d_v
    before, wrote, W_O = _random((n, d), (n, d_v), (d, d), seed=seed)
    return before, before + wrote @ _rows(W_O, head, n_heads, d_v), W_O, n_heads


_PAIR = np.array([[1.0, 1.0], [1.0, -1.0]])


def _head_found(answer, before, after, W_O, n_heads):
    """Return the head, or the same text for all products of shapes that do not fit."""
    try:
        head = answer(before, after, W_O, n_heads)
    except (ValueError, np.linalg.LinAlgError) as error:
        words = ("mismatch in its core", "ncompatible dimensions", "must be square")
        if not any(word in str(error) for word in words):
            raise
        return "an error: the shapes do not fit"
    return head


def _sizes(before, after, W_O, n_heads):
    change = np.abs((after - before) @ np.linalg.inv(W_O))
    return change.reshape(len(change), n_heads, -1).sum((0, 2))


def _inverse_on_the_left(before, after, W_O, n_heads):
    rows = np.abs(np.linalg.inv(W_O) @ (after - before).T).sum(1)
    return int(rows.reshape(n_heads, -1).sum(1).argmax())


head_that_wrote = Exercise(
    task="the head whose matrices were changed",
    observe=_head_found,
    right=_who,
    cases=(
        (np.array([[5.0, 1.0]]), np.array([[7.0, -1.0]]), _PAIR, 2),
        (np.array([[5.0, 1.0]]), np.array([[8.0, 4.0]]), _PAIR, 2),
        (np.array([[5.0, 1.0]]), np.array([[3.0, 3.0]]), _PAIR, 2),
        _written(2, 2, 0, seed=17),
        _written(3, 2, 2, seed=5),
        _written(3, 2, 1, seed=8),
        _written(4, 1, 0, seed=31),
        _written(4, 2, 3, seed=9),
        _written(2, 2, 1, seed=6, n=1),
    ),
    mistakes=(
        Mistake(
            "largest change of columns",
            "you look at the columns of the output; W_O mixes the heads, so every head "
            "writes into all of them",
            _own_columns,
        ),
        Mistake(
            "largest overlap",
            "you multiply by the transpose of W_O, and that undoes a rotation only; "
            "use the inverse",
            _overlap,
        ),
        Mistake(
            "blocks of columns",
            "you look at the columns of W_O; the block of a head is d_v of its rows",
            lambda before, after, W_O, n_heads: int(
                np.argmin(_per_head(_left_over, after - before, W_O, n_heads, _columns))
            ),
        ),
        Mistake(
            "inverse on the wrong side",
            "you solve W_O @ x = change; the change is (new rows) @ W_O, so the "
            "inverse stands on its right, and lstsq or solve take both transposed",
            _inverse_on_the_left,
        ),
        Mistake(
            "shapes that do not fit",
            "the shapes do not fit: the change is (new rows) @ W_O, so inv(W_O) stands "
            "on its right, and lstsq or solve take W_O.T first and then change.T",
            lambda before, after, W_O, n_heads: np.linalg.lstsq(W_O, after - before),
        ),
        Mistake(
            "arguments of lstsq exchanged",
            "lstsq takes the matrix first: with its arguments exchanged it asks "
            "whether the change can make the block",
            lambda before, after, W_O, n_heads: int(
                np.argmin(
                    _per_head(
                        lambda change, block: _left_over(block, change),
                        after - before,
                        W_O,
                        n_heads,
                    )
                )
            ),
        ),
        Mistake(
            "reshaped across the tokens",
            "your reshape mixes tokens and heads: reshape to (n, n_heads, d_v), then "
            "add up over the first and the last axis",
            lambda before, after, W_O, n_heads: int(
                np.abs((after - before) @ np.linalg.inv(W_O))
                .reshape(n_heads, -1)
                .sum(1)
                .argmax()
            ),
        ),
        Mistake(
            "the smallest change",
            "you take the head that changed least; take the one that changed",
            lambda before, after, W_O, n_heads: int(
                np.argmin(_sizes(before, after, W_O, n_heads))
            ),
        ),
        Mistake(
            "the sizes of all changes",
            "these are the changes of all heads; return the index of the one that "
            "changed, for example by argmax",
            lambda before, after, W_O, n_heads: _sizes(before, after, W_O, n_heads),
        ),
        Mistake(
            "a place in the whole table",
            "argmax without an axis counts through the whole table; add up the numbers "
            "of each head first",
            lambda before, after, W_O, n_heads: int(
                np.abs((after - before) @ np.linalg.inv(W_O)).argmax()
            ),
        ),
        Mistake(
            "one over each number",
            "1 / W_O is not the inverse of a matrix: use np.linalg.inv(W_O)",
            lambda before, after, W_O, n_heads: int(
                np.abs((after - before) @ (1 / W_O))
                .reshape(len(before), n_heads, -1)
                .sum((0, 2))
                .argmax()
            ),
        ),
        Mistake(
            "the largest column",
            "you take the head of the one column that changed most; add up all columns "
            "of a head",
            lambda before, after, W_O, n_heads: int(
                np.abs(after - before).sum(0).argmax() * n_heads // len(W_O)
            ),
        ),
        Mistake(
            "W_O once more",
            "you multiply by W_O a second time; multiply by its inverse",
            lambda before, after, W_O, n_heads: _own_columns(
                before @ W_O, after @ W_O, W_O, n_heads
            ),
        ),
        Mistake(
            "a column instead of a head",
            "this is a column of the concatenation; divide by d_v, the width of a "
            "head, to get the head",
            lambda before, after, W_O, n_heads: int(
                _columns_of_the_concatenation(before, after, W_O).argmax()
            ),
        ),
        Mistake(
            "every h-th column",
            "you take every h-th column for a head; the first d_v columns belong to "
            "the first head",
            lambda before, after, W_O, n_heads: int(
                _columns_of_the_concatenation(before, after, W_O)
                .reshape(-1, n_heads)
                .sum(0)
                .argmax()
            ),
        ),
        Mistake(
            "signs left in",
            "you add changes with their signs, so they cancel: take absolute values",
            _without_signs,
        ),
        Mistake(
            "largest number upwards",
            "you look for the largest number; a change may also be negative, so take "
            "absolute values",
            _largest_entry,
        ),
        Mistake(
            "outputs instead of their difference",
            "you look at the output after the change, in which all heads have written; "
            "the other heads cancel in after − before",
            lambda before, after, W_O, n_heads: _who(0, after, W_O, n_heads),
        ),
        Mistake(
            "counted from one",
            "you found the head; the task asks for its index, which starts at 0",
            lambda before, after, W_O, n_heads: _who(before, after, W_O, n_heads) + 1,
        ),
        Mistake(
            "the least likely head",
            "this head explains the change least of all: you take the largest "
            "remainder where you need the smallest",
            lambda before, after, W_O, n_heads: int(
                np.argmax(_per_head(_left_over, after - before, W_O, n_heads))
            ),
        ),
    ),
    reread=_BREAK,
    praise="the change is made of the rows of one block, which belongs to the head.",
)


# ------------------------------------------------------- 8.5: a law


def _layer_inputs():
    X, *weights = _random((3, 4), (4, 4), (4, 4), (4, 4), (4, 4), seed=4)
    return X, weights


def _silenced(close, change):
    """Return a law: close a part of W_O, change W_V, and see whether Y moves."""

    def own_block_law(layer):
        X, (W_Q, W_K, W_V, W_O) = _layer_inputs()
        W_O[close] = 0
        changed = W_V.copy()
        changed[change] += 1
        return np.allclose(
            layer(X, W_Q, W_K, W_V, W_O, 2), layer(X, W_Q, W_K, changed, W_O, 2)
        )

    return own_block_law


_NOTHING, _ROWS, _COLUMNS = np.s_[:0], np.s_[2:], np.s_[:, 2:]
_own_block = _silenced(_ROWS, _COLUMNS)


def _equals_reference(layer):
    X, weights = _layer_inputs()
    return np.allclose(layer(X, *weights, 2), multi_head_attention(X, *weights, 2))


def _exchanged(layer):
    X, (W_Q, W_K, W_V, W_O) = _layer_inputs()
    order = [2, 3, 0, 1]
    moved = layer(X, W_Q[:, order], W_K[:, order], W_V[:, order], W_O[order], 2)
    return np.allclose(moved, layer(X, W_Q, W_K, W_V, W_O, 2))


def _silent_without_W_O(layer):
    X, (W_Q, W_K, W_V, W_O) = _layer_inputs()
    return np.allclose(layer(X, W_Q, W_K, W_V, 0 * W_O, 2), 0)


def _slices(layer):
    X, (W_Q, W_K, W_V, _) = _layer_inputs()
    changed = W_V.copy()
    changed[:, 2:] += 1
    Y = [layer(X, W_Q, W_K, W, np.eye(4), 2)[:, :2] for W in (W_V, changed)]
    return np.allclose(*Y)


own_block_law = Exercise(
    task="a law: each head reaches the output through its own block only",
    right=_own_block,
    cases=(
        (multi_head_attention,),
        (zoo.no_scale,),
        (zoo.output_within_heads,),
        (zoo.heads_averaged,),
        (zoo.no_output_projection,),
        (zoo.merge_without_transpose,),
    ),
    mistakes=(
        Mistake(
            "passes everything",
            "this law is True of every layer: does it change a head at all?",
            _silenced(_ROWS, _NOTHING),
        ),
        Mistake(
            "equal to the reference",
            "your law is False of a layer without the scale, which is wrong elsewhere; "
            "its heads reach the output through their own blocks",
            _equals_reference,
        ),
        Mistake(
            "heads exchanged",
            "your law is True of averaged heads, because an exchange of heads and "
            "blocks changes nothing for them: close the block of one head instead",
            _exchanged,
        ),
        Mistake(
            "W_O left out",
            "your law is True of the layer that never uses W_O: set a block of W_O to "
            "0",
            _slices,
        ),
        Mistake(
            "blind to averaged heads",
            "your law is True of averaged heads: set one block of W_O to 0, and change "
            "its head only",
            _silent_without_W_O,
        ),
        Mistake(
            "nothing closed",
            "your law is False of correct layers: set the block of one head to 0, "
            "change this head, and compare the two outputs of the layer",
            _silenced(_NOTHING, _COLUMNS),
        ),
        Mistake(
            "columns closed",
            "you set columns of W_O to 0; the block of a head is made of rows",
            _silenced(_COLUMNS, _COLUMNS),
        ),
        Mistake(
            "True and False exchanged",
            "your law is False of the layers that keep it and True of the others",
            lambda layer: not _own_block(layer),
        ),
    ),
    reread=section("output", "The law"),
    praise="True of the three layers that keep it, and False of the three others.",
)
