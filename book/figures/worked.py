"""Worked examples: batches, exponentials, and products with all their numbers."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from figures.picture import Picture
from figures.scene import Scene, picture

Array = NDArray[Any]
NUMBER = 11.9  # points
ABOVE, BELOW, ROW = 28, 26, 18  # of a table of the sheet, and the height of its rows
ROLES = {"Q": "query", "K": "key", "V": "value"}


def batch(sentences: Sequence[Sequence[str]], *, alt: str) -> Picture:
    """Show a batch as a rectangle of words and padding, and its mask below.

    Padding is hatched, in the batch and in the mask.

    Parameters
    ----------
    sentences : sequence of sequence of str
        The words of each sentence; the longest one sets the width of the rectangle.

    >>> batch([["dog", "hungry"], ["it"]], alt="One place is padding.")
    Picture: One place is padding.
    """
    left, wide, high, gap = 14, 64, 23, 5
    n = max(map(len, sentences))
    tall = len(sentences) * (high + gap)
    scene = Scene(2 * left + n * wide, 2 * tall + 62)
    for k, title in enumerate(("the batch", "padding mask: True = may be attended to")):
        top = k * (tall + 32) + 22
        scene.text(left, top - 8, title, anchor="start", bold=True)
        for row, sentence in enumerate(sentences):
            for j in range(n):
                box = left + j * wide, top + row * (high + gap), wide, high
                real = j < len(sentence)
                words = (sentence[j] if real else "pad", str(real))[k]
                scene.box(*box, radius=0, stroke="rest", width=0.8)
                if real:
                    cell = (*box[:2], words, 0.08 if k else 0)
                    scene.cells([cell], wide, high, "ink")
                else:
                    scene.hatched(*box)
                    middle = box[0] + wide / 2, box[1] + high / 2 + 0.36 * 11
                    scene.text(*middle, words, role="muted")
    return picture(scene, alt)


def masks_of_heads(
    masks: Mapping[str, ArrayLike], padding: ArrayLike, *, alt: str
) -> Picture:
    """Show which keys two heads may see in each sentence, and where that is wrong.

    Parameters
    ----------
    masks : mapping of title to array_like of bool
        Masks that broadcast to the shape (sentence, head, 1, key) of the scores.
    padding : array_like of bool, of shape (n_sentences, n_keys)
        What should be visible: True at a word, False at an empty place.

    >>> padding = [[True, True], [True, False]]
    >>> masks_of_heads({"none": [True, True]}, padding, alt="An empty place is seen.")
    Picture: An empty place is seen.
    """
    padding = np.asarray(padding, bool)
    (sentences, n), left, cell, high = padding.shape, 74, 32, 25
    wide, tall = n * cell + 14, 52 + sentences * (high + 7)
    scene = Scene(left + 2 * wide, len(masks) * tall)
    for panel, (title, mask) in enumerate(masks.items()):
        top = panel * tall + 14
        scene.text(0, top, title, anchor="start", bold=True)
        seen = np.broadcast_to(mask, (sentences, 2, 1, n))[:, :, 0]
        for head in (0, 1):
            middle = left + head * wide + n * cell / 2
            scene.text(middle, top + 20, f"head {head + 1}", role="muted")
        for b, head, k in np.ndindex(seen.shape):
            x, y = left + head * wide + k * cell, top + 28 + b * (high + 7)
            if head == k == 0:
                scene.text(0, y + 17, f"sentence {b + 1}", anchor="start", role="muted")
            place = x, y, cell - 4, high
            wrong = seen[b, head, k] != padding[b, k]
            look = {"stroke": "wrong", "width": 2.4} if wrong else {"stroke": "rest"}
            if not seen[b, head, k]:
                scene.box(*place, fill="rest", alpha=0.5)
            scene.box(*place, **look)
            word = "✓" if seen[b, head, k] else ""
            scene.text(x + cell / 2 - 2, y + 17, word, size=12)
    return picture(scene, alt)


def fused(
    X: ArrayLike, blocks: Sequence[ArrayLike], words: Sequence[str], *,
    follow: tuple[int, int],
) -> Picture:  # fmt: skip
    """Show that X times two matrices side by side is two products side by side.

    Each head has one colour, in its matrix and in its part of the product.

    Equation: X [W_Q^(1) | W_Q^(2)] = [Q_1 | Q_2]  (chapter split)

    Parameters
    ----------
    X : array_like of shape (n, d_model)
        One row for each word.
    blocks : two array_like of shape (d_model, d_k)
        The query matrices of the two heads.
    words : sequence of str
        The n tokens.
    follow : pair of int
        Row and column of one number of the product. It gets a frame, and so do the
        row and the column that it is made from.

    >>> fused([[1, 2]], [[[1], [0]], [[0], [1]]], ["it"], follow=(0, 1)).alt[-57:]
    'The number 2 needs one row of X and one column of head 2.'
    """
    wide, high, top, left, sign = 22.5, 22, 46, 52, 24
    x, matrices = np.asarray(X), [np.asarray(block) for block in blocks]
    (n, d_model), d_k, (row, column) = x.shape, matrices[0].shape[1], follow
    product = [x @ m for m in matrices]
    right = left + wide * d_model + sign  # where W begins, and then the product
    last = right + wide * 2 * d_k + sign
    scene = Scene(last + wide * 2 * d_k + 8, top + high * max(n, d_model) + 12)
    for k, word in enumerate(words):
        scene.text(left - 6, top + high * (k + 0.66), word, anchor="end")
    middle = top + high * min(n, d_model) / 2 + 5
    scene.text(right - sign / 2, middle, "·", size=17, bold=True)
    scene.text(last - sign / 2, middle, "=", size=15, bold=True)
    scene.text(left + wide * d_model / 2, top - 9, "*X*", math=True, bold=True)
    _tiles(scene, (left, top), x, (wide, high), "ink", 0.04)
    titles = ("*W_Q*⁽¹⁾", "*W_Q*⁽²⁾"), ("*Q*_1", "*Q*_2")
    pairs = (right, matrices), (last, product)
    for (start, pair), title in zip(pairs, titles, strict=True):
        for r, part in enumerate(pair):
            x0 = start + wide * d_k * r
            _tiles(scene, (x0, top), part, (wide, high), "query", 0.12 + 0.16 * r)
            look = {"role": "query", "bold": True}
            middle = x0 + wide * d_k / 2
            scene.text(middle, top - 25, f"head {r + 1}", **look)
            scene.text(middle, top - 9, title[r], math=True, **look)
        bar = start + wide * d_k
        ends = [(bar, top - 3), (bar, top + high * len(pair[0]) + 3)]
        scene.shape(ends, stroke="ink", width=1.6)
    frame = {"stroke": "ink", "width": 2, "radius": 3}
    scene.box(left, top + high * row, wide * d_model, high, **frame)
    scene.box(right + wide * column, top, wide, high * d_model, **frame)
    scene.box(last + wide * column, top + high * row, wide, high, **frame)
    number = np.hstack(product)[row, column]
    return picture(
        scene,
        "X times the matrices of two heads side by side gives the product of head 1 "
        f"and the product of head 2 side by side. The number {number:g} needs one row "
        f"of X and one column of head {column // d_k + 1}.",
    )


def sheet(
    parts: Mapping[str, Any], tokens: Sequence[str], features: Sequence[str], *,
    alt: str,
) -> Picture:  # fmt: skip
    """Show all steps from the words to the output, with the numbers as they are given.

    Seven steps from the top to the bottom, the heads side by side.

    Equation: Y = Concat(H_1, H_2) W_O with H_r = A_r V_r  (chapter multi_head)

    Parameters
    ----------
    parts : dict
        X, W_Q, W_K, W_V, W_O and Y are matrices; Q, K, V, S, A and H hold one matrix
        for each of two heads. W_Q, Q and S are written without their factor c.
        Fractions are written as fractions.
    tokens, features : sequence of str
        The words, and the names of the columns of X.

    >>> one = [[1]]
    >>> parts = dict.fromkeys(["X", "W_Q", "W_K", "W_V", "W_O", "Y"], one)
    >>> parts |= dict.fromkeys("QKVSAH", [one, one])
    >>> sheet(parts, ["dog"], ["animal"], alt="One word attends to itself.")
    Picture: One word attends to itself.
    """
    left = 48
    steps = [
        ("the words, *X*", tokens),
        ("the four matrices", features),
        ("times *W_Q*, *W_K*, *W_V*, and split into heads", tokens),
        ("scores *Q Kᵀ* in units of *c*; scaled, in units of ln 2", tokens),
        ("attention weights *A*, from powers of 2", tokens),
        ("head outputs *A V*, side by side", tokens),
        ("times *W_O*: the output *Y*", tokens),
    ]
    heights = [ROW * len(rows) + ABOVE + BELOW for _, rows in steps]
    scene = Scene(384, sum(heights) + 2)
    tops = [16 + sum(heights[:k]) for k in range(7)]
    for step, (top, (words, rows)) in enumerate(zip(tops, steps, strict=True), 1):
        scene.text(6, top, step, anchor="start", bold=True)
        scene.text(24, top, words, anchor="start", bold=True, math=True)
        for i, row in enumerate(rows):
            y = top + ABOVE + (i + 0.5) * ROW + 4
            scene.text(left - 6, y, row, anchor="end")
    _matrix(scene, (110, tops[0]), parts["X"], 42, "ink", names=features)
    for k, (letter, role) in enumerate({**ROLES, "O": "output"}.items()):
        title = f"*W_{letter}*" + " / *c*" * (letter == "Q")
        place = left + 86 * k, tops[1]
        _matrix(scene, place, parts[f"W_{letter}"], 18.5, role, title)
    for r in range(2):
        x, head = left + r * 170, f"head {r + 1}"
        for k, (letter, role) in enumerate(ROLES.items()):
            title = f"*{letter}*_{r + 1}" + " / *c*" * (letter == "Q")
            _matrix(scene, (x + 52 * k, tops[2]), parts[letter][r], 22, role, title)
        _matrix(scene, (x, tops[3]), parts["S"][r], 37, "ink", head)
        _matrix(scene, (x, tops[4]), parts["A"][r], 37, "weight", head)
        _matrix(scene, (110 + 84 * r, tops[5]), parts["H"][r], 42, "output", head)
    _matrix(scene, (110, tops[6]), parts["Y"], 42, "output", names=features)
    return picture(scene, alt)


def _tiles(
    scene: Scene, at: tuple[float, float], M: Array, cell: tuple[float, float],
    role: str, alpha: float,
) -> None:  # fmt: skip
    """Draw the numbers of a matrix on the tint of a role."""
    (x, y), (wide, high) = at, cell
    cells = (
        (x + wide * j + 0.7, y + high * i + 0.7, f"{number:g}", alpha)
        for (i, j), number in np.ndenumerate(M)
    )
    scene.cells(cells, wide - 1.4, high - 1.4, role)


def _matrix(
    scene: Scene, place: tuple[float, float], M: Sequence[Sequence[Any]], wide: float,
    role: str, title: str = "", names: Sequence[str] = (),
) -> None:  # fmt: skip
    """Draw a matrix of the sheet with its title, or the names of its columns."""
    x, y = place[0], place[1] + ABOVE
    cells = []
    for i, line in enumerate(M):
        for j, number in enumerate(line):
            tint = float(number) if role == "weight" else 0.07
            words = "−∞" if number == -math.inf else str(number).replace("-", "−")
            cells.append((x + j * wide + 0.7, y + i * ROW + 0.7, words, tint))
    scene.cells(cells, wide - 1.4, ROW - 1.4, role, size=NUMBER)
    across = wide * len(M[0])
    scene.box(x, y, across, ROW * len(M), radius=3, stroke=role, width=1.1)
    look: dict[str, Any] = {"role": role, "size": 12, "math": True}
    scene.text(x + across / 2, y - 5, title, bold=True, **look)
    for j, name in enumerate(names):
        scene.text(x + (j + 0.5) * wide, y - 5, name, size=12, role="muted")
