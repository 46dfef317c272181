"""Exercises on splitting: which head owns which column."""

import numpy as np

from exercises import section
from mha.check import Exercise, Mistake
from mha.heads import split_heads

_BY_HAND, _STEP = (
    section("split", "By hand"),
    section("split", "The step in the package"),
)


def _several_numbers(answer):
    """Return a prediction of several numbers as an array, whatever holds them."""
    return np.array([float(number) for number in answer])


def _unquoted(answer):
    """Return a text without the quotes and the full stop that it was copied with."""
    return answer.strip(" .\"'") if isinstance(answer, str) else answer


head_and_column = Exercise(
    task="a head, and a column within it, of two whole numbers",
    right=(6, 5),
    cases=((),),
    mistakes=(
        Mistake(
            "counted from one",
            "both numbers are one too large: indices of heads and columns start at 0",
            (7, 6),
        ),
        Mistake(
            "head counted from one",
            "the column is right; how many whole blocks lie before it?",
            (7, 5),
        ),
        Mistake(
            "interleaved",
            "you deal the columns out in turn, as cards; a head owns a block of them",
            (5, 32),
        ),
        Mistake(
            "divided by the number of heads",
            "a block is as wide as a head, and not as wide as there are heads",
            (32, 5),
        ),
        Mistake(
            "quotient not cut off",
            "heads are whole: how many blocks are complete before column 389?",
            (389 / 64, 5),
        ),
        Mistake(
            "exchanged",
            "those are the two numbers; first comes the head, then its column",
            (5, 6),
        ),
        Mistake(
            "column of the large matrix",
            "the head is right; count its column from where its block begins",
            (6, 389),
        ),
    ),
    reread=_BY_HAND,
    praise="a quotient for the head, a remainder for its column.",
    observe=_several_numbers,
)


def _without_swap(x, n_heads):
    *leading, n, d_model = x.shape
    return x.reshape(*leading, n_heads, n, d_model // n_heads)


def _interleaved(x, n_heads):
    *leading, d_model = x.shape
    return np.moveaxis(x.reshape(*leading, d_model // n_heads, n_heads), -1, -3)


def _one_sequence_only(x, n_heads):
    n, d_model = x.shape
    return x.reshape(n, n_heads, d_model // n_heads).transpose(1, 0, 2)


def _one_batch_axis_only(x, n_heads):
    batch, n, d_model = x.shape
    return x.reshape(batch, n, n_heads, d_model // n_heads).swapaxes(1, 2)


def _swapped(first, second):
    """Return a split that counts the axes of its swap from the front."""

    def split(x, n_heads):
        return x.reshape(*x.shape[:-1], n_heads, -1).swapaxes(first, second)

    return split


def _count(*shape):
    return np.arange(1.0, np.prod(shape) + 1).reshape(shape)


to_heads = Exercise(
    task="split the columns into heads, for any leading axes",
    right=lambda x, n_heads: split_heads(x, n_heads),
    forbidden=(split_heads,),
    cases=(
        (_count(2, 2), 2),
        (_count(2, 4), 2),
        (_count(3, 6), 2),
        (_count(2, 3, 6), 3),
        (_count(2, 2, 3, 8), 2),
    ),
    mistakes=(
        Mistake(
            "no swap",
            "the shape is right and the tokens are mixed: reshape alone deals the "
            "numbers out in the order of the tape",
            _without_swap,
        ),
        Mistake(
            "interleaved",
            "each head takes every n_heads-th column; it should own neighbours",
            _interleaved,
        ),
        Mistake(
            "heads and columns exchanged",
            "the new axes are exchanged: each head is now n_heads columns wide",
            lambda x, n_heads: x.reshape(*x.shape[:-1], -1, n_heads).swapaxes(-3, -2),
        ),
        Mistake(
            "columns swapped with heads",
            "the swap took the wrong pair: heads and tokens should change places",
            lambda x, n_heads: x.reshape(*x.shape[:-1], n_heads, -1).swapaxes(-2, -1),
        ),
        Mistake(
            "heads behind the tokens",
            "the columns are cut well, and the heads still stand behind the tokens",
            lambda x, n_heads: x.reshape(*x.shape[:-1], n_heads, -1),
        ),
        Mistake(
            "one sequence only",
            "this works for one sequence; name the last axes by −1, −2, −3, so that a "
            "batch may stand in front",
            _one_sequence_only,
        ),
        Mistake(
            "first two axes swapped",
            "the swap counts its axes from the front, and there a batch may stand",
            _swapped(0, 1),
        ),
        Mistake(
            "one batch axis only",
            "this works for exactly one axis in front of the tokens; there may be none",
            _one_batch_axis_only,
        ),
        Mistake(
            "second and third axis swapped",
            "this is right behind one batch axis; count the axes from the end",
            _swapped(1, 2),
        ),
        Mistake(
            "heads in front of the batch",
            "the heads went to the very front; they belong right before the tokens",
            lambda x, n_heads: np.moveaxis(split_heads(x, n_heads), -3, 0),
        ),
        Mistake(
            "heads transposed",
            "each head is the transpose of what it should be: one swap too many",
            lambda x, n_heads: split_heads(x, n_heads).swapaxes(-1, -2),
        ),
        Mistake(
            "heads in reverse order",
            "head 1 owns the leftmost columns, and yours are counted from the right",
            lambda x, n_heads: split_heads(x, n_heads)[..., ::-1, :, :],
        ),
    ),
    reread=_STEP,
    praise="every head has its own columns of every token, in any batch.",
)

strides_of_heads = Exercise(
    task="four steps, one an axis, counted in numbers",
    right=(60, 4, 12, 1),
    cases=((),),
    mistakes=(
        Mistake(
            "a fresh array",
            "those are the steps of an array laid out anew; splitting moves no number",
            (60, 20, 4, 1),
        ),
        Mistake(
            "before the swap",
            "the steps are right and belong to (batch, token, head, column)",
            (60, 12, 4, 1),
        ),
        Mistake(
            "in bytes",
            "NumPy counts in bytes, eight for a float64; the question is in numbers",
            (480, 32, 96, 8),
        ),
        Mistake(
            "the shape",
            "that is how many there are on each axis; how far is it to the next?",
            (2, 3, 5, 4),
        ),
        Mistake(
            "interleaved",
            "these steps go with heads that take every third column",
            (60, 1, 12, 3),
        ),
        Mistake(
            "keys transposed",
            "the last two axes are exchanged: the columns of a head are neighbours",
            (60, 4, 1, 12),
        ),
    ),
    reread=_STEP,
    praise="the next head is four columns on, the next token twelve.",
    observe=_several_numbers,
)

wrong_step = Exercise(
    task="one of six diagnoses, as a text",
    right="split without swap",
    cases=((),),
    mistakes=(
        Mistake(
            "merge",
            "then row 0 would hold the same two columns of three tokens",
            "merge without swap",
        ),
        Mistake(
            "both",
            "two mistakes of this kind undo each other, and every number would be back "
            "in its place",
            "both without swap",
        ),
        Mistake(
            "interleaved",
            "then every number would still stand in the row of its token",
            "interleaved split",
        ),
        Mistake(
            "order",
            "then row 0 would begin with 04 05, and no token would leave its row",
            "heads in reverse order",
        ),
        Mistake(
            "nothing",
            "every token looks at itself, so each row should come back as it went in",
            "nothing is wrong",
        ),
    ),
    reread=section("split", "Break it"),
    praise="the columns stand where they should, and the tokens do not.",
    observe=_unquoted,
)


def _side_by_side(small):
    return np.concatenate(list(small), axis=1)


def _block_diagonal(small):
    n_heads, d_model, d_k = small.shape
    W = np.zeros((n_heads * d_model, n_heads * d_k))
    for r, block in enumerate(small):
        W[r * d_model : (r + 1) * d_model, r * d_k : (r + 1) * d_k] = block
    return W


fuse = Exercise(
    task="one large matrix out of many small ones",
    right=lambda small: _side_by_side(small),
    cases=(
        (_count(2, 3, 1),),
        (_count(2, 2, 2),),
        (_count(3, 4, 2),),
        (_count(2, 6, 3),),
    ),
    mistakes=(
        Mistake(
            "no swap",
            "reshape alone takes the numbers in the order of the tape: head 1 fills "
            "whole rows before head 2 has its turn",
            lambda small: small.reshape(small.shape[1], -1),
        ),
        Mistake(
            "on top of each other",
            "the small matrices stand on top of each other; a head owns columns",
            lambda small: np.concatenate(list(small), axis=0),
        ),
        Mistake(
            "interleaved",
            "the columns are dealt out in turn; those of one head should be neighbours",
            lambda small: small.transpose(1, 2, 0).reshape(small.shape[1], -1),
        ),
        Mistake(
            "block diagonal",
            "with blocks on the diagonal each head sees a slice of its own, and here "
            "all heads see the whole token",
            _block_diagonal,
        ),
        Mistake(
            "transposed",
            "that is how PyTorch stores it; ours is multiplied from the right, X @ W",
            lambda small: _side_by_side(small).T,
        ),
        Mistake(
            "heads in reverse order",
            "head 1 comes first, from the left",
            lambda small: _side_by_side(small[::-1]),
        ),
        Mistake(
            "summed",
            "a sum of the matrices is one head, and nothing can take it apart again",
            lambda small: small.sum(axis=0),
        ),
    ),
    reread=section("split", "The equation"),
    praise="one product now does the work of all heads.",
)
