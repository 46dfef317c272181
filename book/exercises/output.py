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


sum_of_heads = Exercise(
    task="the output as a sum over the heads",
    right=lambda heads, W_O: sum(_messages(heads, W_O, _rows)),
    cases=(
        (np.array([[[1.0]], [[10.0]]]), np.array([[1.0, 2.0], [3.0, 4.0]])),
        (np.arange(1.0, 9).reshape(2, 2, 2), np.eye(4)),
        _random((3, 5, 2), (6, 7), seed=0),
        _random((2, 3, 5, 2), (6, 7), seed=1),
    ),
    mistakes=(
        Mistake(
            "heads averaged",
            "the messages add up; nobody divides by the number of heads",
            lambda heads, W_O: sum(_messages(heads, W_O, _rows)) / heads.shape[-3],
        ),
        Mistake(
            "one block for all",
            "every head writes through the first block; each has a block of its own",
            lambda heads, W_O: sum(
                _messages(heads, W_O, lambda W, r, h, d: W[:d]),
            ),
        ),
        Mistake(
            "blocks of columns",
            "head r meets rows r·d_v to (r+1)·d_v − 1 of W_O; its columns are where "
            "it writes",
            lambda heads, W_O: sum(_messages(heads, W_O, _columns)),
        ),
        Mistake(
            "interleaved rows",
            "you take every h-th row; the rows of one head stand together",
            lambda heads, W_O: sum(
                _messages(heads, W_O, lambda W, r, h, d: W[r::h]),
            ),
        ),
        Mistake(
            "only the last head",
            "each head overwrites what the one before it wrote: add",
            lambda heads, W_O: _messages(heads, W_O, _rows)[-1],
        ),
        Mistake(
            "only the first head",
            "you stop after one message: does a return stand inside a loop?",
            lambda heads, W_O: _messages(heads, W_O, _rows)[0],
        ),
        Mistake(
            "the last head left out",
            "one message is missing, that of the last head",
            lambda heads, W_O: sum(_messages(heads, W_O, _rows)[:-1]),
        ),
        Mistake(
            "W_O never met",
            "the heads lie side by side, and none has gone through its block of W_O",
            lambda heads, W_O: merge_heads(heads),
        ),
        Mistake(
            "blocks in the opposite order",
            "each head goes through the block of another: head 1 has the first rows",
            lambda heads, W_O: sum(_messages(heads[..., ::-1, :, :], W_O, _rows)),
        ),
        Mistake(
            "heads mixed with tokens",
            "a reshape cannot lay heads side by side; you need no concatenation here",
            lambda heads, W_O: (
                heads.reshape(*heads.shape[:-3], heads.shape[-2], -1) @ W_O
            ),
        ),
        Mistake(
            "heads added before W_O",
            "once the heads are added nobody can tell them apart: first the block, "
            "then the sum",
            lambda heads, W_O: (
                heads.sum(-3) @ W_O.reshape(heads.shape[-3], heads.shape[-1], -1).sum(0)
            ),
        ),
    ),
    reread=_EQUATION,
    praise="the same numbers, and no head had to wait for its neighbours.",
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
            "queries, keys and values have theirs; the output has one too",
            lambda d, h, d_k, d_v, bias: (
                _count(d, h, d_k, d_v, bias) - (h * d_v * d + bias * d)
            ),
        ),
        Mistake(
            "full width in every head",
            "a head is d_k wide and not d_model: more heads are narrower heads",
            lambda d, h, d_k, d_v, bias: h * (4 * d * d + bias * 4 * d),
        ),
        Mistake(
            "biases forgotten",
            "the matrices are right; with bias=True each column has one number more",
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
            "three biases are there; W_O has one too",
            lambda d, h, d_k, d_v, bias: _count(d, h, d_k, d_v, bias) - bias * d,
        ),
        Mistake(
            "biases as long as rows",
            "a bias is added to the result: one number for each column, not each row",
            lambda d, h, d_k, d_v, bias: (
                _count(d, h, d_k, d_v, False) + bias * (3 * d + h * d_v)
            ),
        ),
        Mistake(
            "four biases of width d_model",
            "a bias is as wide as the result of its matrix; only that of W_O has "
            "d_model",
            lambda d, h, d_k, d_v, bias: _count(d, h, d_k, d_v, False) + bias * 4 * d,
        ),
        Mistake(
            "one number a bias",
            "a bias is a row of numbers, one for each column of its matrix",
            lambda d, h, d_k, d_v, bias: _count(d, h, d_k, d_v, False) + bias * 4,
        ),
        Mistake(
            "biases of one head",
            "the matrices are right; each head has its share of the biases too",
            lambda d, h, d_k, d_v, bias: (
                _count(d, h, d_k, d_v, False) + bias * (2 * d_k + d_v + d)
            ),
        ),
        Mistake(
            "W_O square",
            "W_O takes h·d_v columns to d_model; that is a square only if they agree",
            lambda d, h, d_k, d_v, bias: (
                _count(d, h, d_k, d_v, bias) + d * d - h * d_v * d
            ),
        ),
        Mistake(
            "keys as wide as values",
            "queries and keys go with d_k; only W_V and W_O go with d_v",
            lambda d, h, d_k, d_v, bias: _count(d, h, d_v, d_v, bias),
        ),
        Mistake(
            "values as wide as keys",
            "W_V and W_O go with d_v; only queries and keys must have one width",
            lambda d, h, d_k, d_v, bias: _count(d, h, d_k, d_k, bias),
        ),
        Mistake(
            "one head",
            "that is the count for a single head; there are n_heads of them",
            lambda d, h, d_k, d_v, bias: _count(d, 1, d_k, d_v, bias),
        ),
    ),
    reread=section("output", "Experiment: how many numbers do 1, 2 and 16 heads have?"),
    praise="right for every width; with h·d_k = d_model the heads drop out.",
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
            "b_V enters before W_O: what becomes of it on its way through?",
            lambda b_V, W_O, b_O: b_O + b_V,
        ),
        Mistake(
            "wrong side of W_O",
            "a bias is a row, like every token: it stands on the left of W_O",
            lambda b_V, W_O, b_O: b_O + W_O @ b_V,
        ),
        Mistake(
            "old bias lost",
            "this is what b_V adds; the bias of the output was there already",
            lambda b_V, W_O, b_O: b_V @ W_O,
        ),
        Mistake(
            "both pushed through W_O",
            "b_O is added after W_O and never meets it",
            lambda b_V, W_O, b_O: (b_V + b_O) @ W_O,
        ),
        Mistake(
            "the wrong one pushed through W_O",
            "two biases, and you send the other one through W_O: which of them comes "
            "first in the layer?",
            lambda b_V, W_O, b_O: b_V + b_O @ W_O,
        ),
        Mistake(
            "b_V dropped",
            "b_V is not inert: the weights of a row sum to one, so it comes through",
            lambda b_V, W_O, b_O: b_O,
        ),
        Mistake(
            "b_V summed to a number",
            "b_V stays a row on its way: each of its numbers meets a row of W_O",
            lambda b_V, W_O, b_O: b_O + b_V.sum(),
        ),
        Mistake(
            "subtracted",
            "the new bias must do what b_V did, and not undo it",
            lambda b_V, W_O, b_O: b_O - b_V @ W_O,
        ),
        Mistake(
            "averaged over the columns",
            "weights average over tokens, and the bias is the same for all of them; "
            "its columns stay apart",
            lambda b_V, W_O, b_O: b_O + b_V.mean() * W_O.sum(0),
        ),
    ),
    reread=section("output", "Experiment: does the bias of the values do anything?"),
    praise="d_model numbers saved, and no output has moved.",
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


def _written(n_heads, d_v, head, seed):
    """Return outputs of a random layer before and after one head has changed."""
    d = n_heads * d_v
    before, wrote, W_O = _random((3, d), (3, d_v), (d, d), seed=seed)
    return before, before + wrote @ _rows(W_O, head, n_heads, d_v), W_O, n_heads


_PAIR = np.array([[1.0, 1.0], [1.0, -1.0]])

head_that_wrote = Exercise(
    task="the head whose matrices were changed",
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
    ),
    mistakes=(
        Mistake(
            "largest change of columns",
            "behind W_O a head has no columns of its own: all of them may move",
            _own_columns,
        ),
        Mistake(
            "largest overlap",
            "a block with large numbers overlaps with everything: ask which block can "
            "make the whole change",
            _overlap,
        ),
        Mistake(
            "blocks of columns",
            "head r writes along the rows r·d_v to (r+1)·d_v − 1 of W_O",
            lambda before, after, W_O, n_heads: int(
                np.argmin(_per_head(_left_over, after - before, W_O, n_heads, _columns))
            ),
        ),
        Mistake(
            "W_O once more",
            "you multiply by W_O a second time; it has to be undone",
            lambda before, after, W_O, n_heads: _own_columns(
                before @ W_O, after @ W_O, W_O, n_heads
            ),
        ),
        Mistake(
            "a column instead of a head",
            "that is the column of the concatenation; which head owns it?",
            lambda before, after, W_O, n_heads: int(
                _columns_of_the_concatenation(before, after, W_O).argmax()
            ),
        ),
        Mistake(
            "every h-th column",
            "the columns of one head stand side by side: the first d_v are of head 1",
            lambda before, after, W_O, n_heads: int(
                _columns_of_the_concatenation(before, after, W_O)
                .reshape(-1, n_heads)
                .sum(0)
                .argmax()
            ),
        ),
        Mistake(
            "signs left in",
            "changes up and down cancel in a sum: take them without their signs",
            _without_signs,
        ),
        Mistake(
            "largest number upwards",
            "a head may also have written less than before: look at sizes, not signs",
            _largest_entry,
        ),
        Mistake(
            "outputs instead of their difference",
            "the other heads have written too: what they wrote cancels in a difference",
            lambda before, after, W_O, n_heads: _who(0, after, W_O, n_heads),
        ),
        Mistake(
            "counted from one",
            "you found the head; heads are counted from 0",
            lambda before, after, W_O, n_heads: _who(before, after, W_O, n_heads) + 1,
        ),
        Mistake(
            "the least likely head",
            "that is the head whose block explains least; look at the other end",
            lambda before, after, W_O, n_heads: int(
                np.argmax(_per_head(_left_over, after - before, W_O, n_heads))
            ),
        ),
    ),
    reread=_BREAK,
    praise="the change lies in the rows of one block, and that names the head.",
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
    task="a law: each head is heard through its own block only",
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
            "this law lets every layer pass: does it change a head at all?",
            _silenced(_ROWS, _NOTHING),
        ),
        Mistake(
            "equal to the reference",
            "a false alarm: a layer without the scale is wrong elsewhere, and lawful "
            "here",
            _equals_reference,
        ),
        Mistake(
            "heads exchanged",
            "averaged heads survive an exchange of heads and blocks: cut one head off "
            "instead",
            _exchanged,
        ),
        Mistake(
            "W_O left out",
            "the layer that never uses W_O passes: something in W_O has to be closed",
            _slices,
        ),
        Mistake(
            "blind to averaged heads",
            "averaged heads pass: to close all of W_O, to add its parts up again or "
            "to look at a lone head does not tell whose block is whose",
            _silent_without_W_O,
        ),
        Mistake(
            "nothing closed",
            "right layers break this law: a head may write while its block is open",
            _silenced(_NOTHING, _COLUMNS),
        ),
        Mistake(
            "columns closed",
            "you close what all heads write into; the block of a head is made of rows",
            _silenced(_COLUMNS, _COLUMNS),
        ),
        Mistake(
            "True and False exchanged",
            "your law says False of what is lawful and True of what is not",
            lambda layer: not _own_block(layer),
        ),
    ),
    reread=section("output", "The law"),
    praise="three lawful layers pass, three others are caught, no false alarm.",
)
