"""Exercises on splitting: which head owns which column."""

import numpy as np

from exercises import Exercise, each, learning, section
from mha.heads import split_heads


def _without_swap(x, n_heads):
    *leading, n, d_model = x.shape
    return x.reshape(*leading, n_heads, n, d_model // n_heads)


def _count(*shape):
    return np.arange(1.0, np.prod(shape) + 1).reshape(shape)


to_heads = Exercise(
    task="split the columns into heads, for any leading axes",
    axes=2,
    right=lambda x, n_heads: split_heads(x, n_heads),
    forbidden=(split_heads,),
    cases=(
        (_count(2, 2), 2),
        (_count(2, 4), 2),
        (_count(3, 6), 2),
        (_count(4, 6), 2),
        (_count(2, 1, 2), 2),
        (_count(2, 3, 6), 3),
        (_count(2, 2, 3, 8), 2),
    ),
    mistakes={
        "the shape is right and the tokens are mixed: a reshape alone takes the "
        "numbers in their order in memory, so swap two axes after it": _without_swap,
        "each of your heads takes every n_heads-th column; a head owns a block of "
        "neighbouring columns": lambda x, n_heads: np.moveaxis(
            x.reshape(*x.shape[:-1], -1, n_heads), -1, -3
        ),
    },
    reread=section("split", "The step in the package"),
    praise="every head has its own columns of every token, in any batch.",
)


_DIAGNOSES = (
    "split without swap",
    "merge without swap",
    "both without swap",
    "interleaved split",
    "heads in reverse order",
    "nothing is wrong",
)


def _diagnosis(answer):
    """Return which of the six texts it is, however it was copied."""
    if isinstance(answer, list | tuple) and len(answer) == 1:
        (answer,) = answer
    if not isinstance(answer, str):
        return answer
    words = " ".join(answer.lower().replace("_", " ").replace("-", " ").split())
    text = words.strip(" .\"'`")
    return text if text in _DIAGNOSES else "none of the six texts"


wrong_step = Exercise(
    task="one of six diagnoses, as a text",
    right="split without swap",
    cases=((),),
    mistakes={
        "with this mistake the first row would be 00 01 10 11 20 21, "
        "the same two columns of three tokens": "merge without swap",
        "these two mistakes undo each other when each token attends only to itself, "
        "and every number would be back in its place": "both without swap",
        "with this mistake every number would still stand in the row of its "
        "token": "interleaved split",
        "with this mistake the first row would be 04 05 02 03 00 01, "
        "and no number would leave its row": "heads in reverse order",
        "every token attends only to itself, so each row should come out as it went "
        "in; compare the first rows": "nothing is wrong",
        "answer with one of the six texts of the task: "
        + ", ".join(f'"{text}"' for text in _DIAGNOSES): "split",  # F
    },
    reread=section("split", "Break it"),
    praise="each head got the next third of the numbers in memory, so most of them "
    "left the row of their token or their column.",
    observe=_diagnosis,
)


def _side_by_side(small):
    return np.concatenate(list(small), axis=1)


fuse = Exercise(
    task="one large matrix out of many small ones",
    right=lambda small: _side_by_side(small),
    cases=each(_count(2, 3, 1), _count(2, 2, 2), _count(3, 4, 2), _count(2, 6, 3)),
    mistakes={
        "the matrices of the heads stand below one another; they belong side by "
        "side": lambda small: np.concatenate(list(small)),
        "a reshape alone takes the numbers in their order in memory, so the first head "
        "fills whole rows before the second has its "
        "turn": lambda small: small.reshape(small.shape[1], -1),
        "the columns of the heads come in turn; those of one head are neighbours": (
            lambda small: small.transpose(1, 2, 0).reshape(small.shape[1], -1)
        ),
    },
    reread=section("split", "Why the large matrix gives the same queries"),
    praise="one product now does the work of all heads.",
    picture=learning.fuse_picture,
)
