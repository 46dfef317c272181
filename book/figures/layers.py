"""A layer as a diagram: shapes of matrices, lanes of heads, ways around, and norms.

Each number of a shape is drawn as long everywhere, so that one sees which matrices can
be multiplied.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from figures.live_house import numbers
from figures.picture import Picture
from figures.scene import Scene, picture

Array = NDArray[Any]
N, D_MODEL, D_K = 42, 72, 24  # how long n, d_model and d_k are, in points
ROLES = {"Q": "query", "K": "key", "V": "value"}
WIDTHS = {"Q": "d_k", "K": "d_k", "V": "d_v"}
SMALL: dict[str, Any] = {"size": 12, "role": "muted", "math": True}
# Of the lanes: n tokens, the 32 columns of a head, where X is, and the heads shown.
HIGH, WIDE, MIDDLE, LANES = 30, 14, 192, {1: 60, 2: 180, 12: 324}
COLUMN, STEP = 160, 38  # of the ways: points from one to the next, and downwards
BOX, AROUND = (104, 24), 18  # width and height of a box; how far beside it a path goes
DOWN_BY = {"(": 0.5}  # steps; a fork needs less room than the 1 of all others
TINTS = {"attention": "output", "multi-head attention": "output"}
TINTS |= {"feed-forward": "amber"}
POST = ("(", "multi-head attention", "+", "layer norm")
POST += ("(", "feed-forward", "+", "layer norm")
DEPTH = np.array([0.55, -0.42])  # where one step into the picture leads on paper
ACROSS, DOWN = np.array([1.0, 0]), np.array([0.0, 1.0])


def one_head() -> Picture:
    """Show one head from its words to its output, with the shape of every matrix.

    From the top to the bottom. The weights are those of the house picture.

    >>> one_head().alt.partition(":")[0]
    'One head, from the top to the bottom'
    """
    q, k, v = 48, 165, 282  # where they are, from the left
    scene = Scene(384, 574)
    _slab(scene, (k, 36), (D_MODEL, N), "*X*", "n × d_model", "ink", beside="words")
    for aside, x, (letter, role) in zip(
        (-14, 0, 14), (q, k, v), ROLES.items(), strict=True
    ):
        bend = [(k + aside, 78), (x, 78)] if aside else []
        scene.arrow([(k + aside, 59), *bend, (x, 146)], role)
        scene.plate(x - 18, 92, 36, 24, 5, role)
        look: dict[str, Any] = {"size": 12, "math": True, "bold": True}
        scene.text(x - 1, 108.2, f"*W_{letter}*", role=role, **look)
        size = f"d_model × {WIDTHS[letter]}"
        scene.text(x + 22, 108, size, anchor="start", **SMALL)
        _slab(scene, (x, 170), (D_K, N), f"*{letter}*", "", role)
        size = f"n × {WIDTHS[letter]}"
        scene.text(x + D_K / 2 + 5, 166, size, anchor="start", **SMALL)
    scene.arrow([(q, 194), (q, 238), (84, 238)], "query")
    scene.arrow([(k, 194), (k, 238), (128, 238)], "key")
    scene.arrow([(106, 238), (106, 268)])
    _step(scene, 106, 238, "*Q Kᵀ*", 44)
    _slab(scene, (106, 292), (N, N), "*S*", "n × n", "ink", beside="scores")
    scene.arrow([(106, 314), (106, 404)])
    _step(scene, 106, 334, "÷ √d_k", 52)
    _step(scene, 106, 358, "mask", 52)
    _step(scene, 106, 382, "softmax", 62)
    _weights(scene, 106, 428)
    beside: dict[str, Any] = {"anchor": "start", "math": True}
    scene.text(133, 424, "*A* weights", role="weight", bold=True, **beside)
    scene.text(133, 439, "n × n", role="muted", **beside)
    scene.arrow([(106, 450), (106, 484), (178, 484)], "weight")
    scene.arrow([(v, 194), (v, 484), (216, 484)], "value")
    scene.arrow([(197, 484), (197, 506)], "output")
    _step(scene, 197, 484, "*A V*", 36)
    _slab(scene, (197, 530), (D_K, N), "*H*", "n × d_v", "output", beside="output")
    return picture(
        scene,
        "One head, from the top to the bottom: X of shape n × d_model is projected to "
        "Q and K of shape n × d_k and V of shape n × d_v. Q times the transpose of K "
        "gives n × n scores; divided by the root of d_k, masked and through a softmax, "
        "they are the weights A. A times V is the output, n × d_v.",
    )


def lanes() -> Picture:
    """Show what twelve heads do side by side, with the shape of every matrix.

    From the top to the bottom; three of the twelve heads are drawn.

    The numbers are those of the encoder in chapter 15, and every matrix is as wide as
    its number of columns, so that twelve head outputs fill the width of X.

    >>> lanes().alt.partition(":")[0]
    'Multi-head attention in lanes, from the top to the bottom'
    """
    heads, d_k, wide = max(LANES), 32, f"n × {max(LANES) * 32}"
    scene = Scene(384, 486)
    for x in LANES.values():
        scene.box(x - 58, 72, 116, 232, radius=7, stroke="rest", width=1)
    for head, x in LANES.items():
        scene.arrow([(MIDDLE, 44), (MIDDLE, 60), (x, 60), (x, 108)], tip=False)
        _lane(scene, head, x, d_k, heads)
    scene.text((LANES[2] + LANES[heads]) / 2, 190, "…", size=16)
    full = heads * WIDE, HIGH
    aside = MIDDLE + full[0] / 2 + 8
    _slab(scene, (MIDDLE, 28), full, "*X*", "", "ink")
    _say(scene, aside, 28, "tokens", wide, "ink")
    for r in range(1, heads + 1):
        left = MIDDLE - full[0] / 2 + WIDE * (r - 1)
        look = {"fill": "output", "alpha": 0.3 if r in LANES else 0.08}
        place = left, 358 - HIGH / 2, WIDE, HIGH
        scene.box(*place, radius=2, stroke="output", width=0.9, **look)
    _say(scene, aside, 358, "concatenated", wide)
    scene.arrow([(MIDDLE, 373), (MIDDLE, 442)], "output")
    scene.plate(MIDDLE - 20, 393, 40, 24, 5, "output")
    scene.text(MIDDLE - 1, 409.2, "*W_O*", role="output", math=True, bold=True)
    square = f"{heads * d_k} × {heads * d_k}"
    _say(scene, MIDDLE + 30, 404, "output projection", square)
    _slab(scene, (MIDDLE, 458), full, "*Y*", "", "output")
    _say(scene, aside, 458, "output", wide)
    return picture(
        scene,
        "Multi-head attention in lanes, from the top to the bottom: X of shape "
        f"{wide} goes to each of {heads} heads. Three matrices of shape "
        f"{heads * d_k} × {d_k} turn it into Q, K and V, n × {d_k}. Q and K give the "
        f"weights A, n × n, and A times V is the head's output, n × {d_k}. The {heads} "
        f"outputs are concatenated to {wide}, and W_O, {square}, turns them into Y, "
        f"{wide}.",
    )


def paths(columns: Mapping[str, Sequence[str]], *, alt: str) -> Picture:
    """Show what happens on the way through a layer, from the top to the bottom.

    Parameters
    ----------
    columns : dict {label: sequence of str}
        One way for each label, its steps in order. ``"("`` is where a path around the
        next steps begins, ``"+"`` where it joins again and is added. Any other word
        is a box.

    >>> paths({"residual": ["(", "attention", "+"]}, alt="The input goes around, too.")
    Picture: The input goes around, too.
    """
    scene = Scene(COLUMN * len(columns) + 10, max(map(_high, columns.values())) + 90)
    for k, (label, steps) in enumerate(columns.items()):
        x = COLUMN * (k + 0.5) + 20
        scene.text(x, 14, label, bold=True)
        scene.text(x, 36, "*X*", math=True)
        end = _path(scene, x, 44, steps)
        scene.arrow([(x, end), (x, end + 20)])
        scene.text(x, end + 36, "*Y*", math=True)
    return picture(scene, alt)


def whole() -> Picture:
    """Show the whole encoder, from the words to one vector for each of them.

    >>> whole().alt[:39]
    'The whole encoder, from the top to the '
    """
    scene, x, wide, top = Scene(344, 436), 142, 142, 122
    scene.text(x, 14, "The dog ate the food …", bold=True)
    end = _path(scene, x, 26, ["word vectors", "+"], wide)
    scene.arrow([(x + 100, end - 9), (x + 9, end - 9)])
    scene.text(x + 104, end - 5, "positions", anchor="start", bold=True)
    scene.shape([(x, end), (x, top)], stroke="ink", width=1.6)
    frame = x - wide / 2 - 34, top, wide + 52, _high(POST) + 4
    scene.box(*frame, radius=10, stroke="rest")
    for y, words in enumerate(("layer,", "repeated", "6 times, say")):
        look = {"role": "muted"} if y == 2 else {"bold": True}
        scene.text(x + 102, 242 + 16 * y, words, anchor="start", **look)
    end = _path(scene, x, top, POST, wide)
    scene.shape([(x, end), (x, end + 20)], stroke="ink", width=1.6)
    _path(scene, x, end + 20, ["one vector per word"], wide)
    return picture(
        scene,
        "The whole encoder, from the top to the bottom: words become vectors, to which "
        "their positions are added. Then a layer is repeated: multi-head attention, "
        "its input added to its output, a norm; feed-forward, its input added to its "
        "output, a norm. At the end there is one vector per word.",
    )


def blocks(panels: Mapping[str, ArrayLike], *, alt: str) -> Picture:
    """Show which numbers of a block belong together.

    The group is filled, the other numbers are empty.

    Parameters
    ----------
    panels : dict {label: bool ndarray of shape (batch, tokens, features)}
        True for a number that belongs to the group. The first axis leads into the
        picture, the second downwards, the third to the right. Only the front, the top
        and the right side are seen, so choose a group that shows there.

    >>> row = np.zeros((2, 3, 4), dtype=bool)
    >>> row[0, 1] = True
    >>> blocks({"layer norm": row}, alt="One token of one sentence.")
    Picture: One token of one sentence.
    """
    named = {label: np.asarray(block) for label, block in panels.items()}
    across = max(_size(block.shape)[0] for block in named.values())
    cell = min(22, (366 / len(named) - 46) / across)
    step = cell * across + 46
    high = max(cell * _size(block.shape)[1] for block in named.values())
    scene = Scene(step * len(named), high + 46)
    for k, (label, block) in enumerate(named.items()):
        width, height = np.multiply(cell, _size(block.shape))
        x = step * (k + 0.5) - width / 2 + 8
        _block(scene, block, (x, 14 + high - height, cell))
        scene.text(step * (k + 0.5), high + 40, label)
    return picture(scene, alt)


def _slab(
    scene: Scene, middle: tuple[float, float], size: tuple[float, float], name: str,
    shape: str, role: str, *, beside: str = "",
) -> None:  # fmt: skip
    """Draw a matrix as a rectangle with its letter, its shape, and what it is."""
    (x, y), (w, h) = middle, size
    scene.plate(x - w / 2, y - h / 2, w, h, 4, role)
    scene.text(x, y + 4.5, name, role=role, math=True, bold=True)
    if beside:
        left = x + w / 2 + 9
        scene.text(left, y - 2, beside, role=role, anchor="start", bold=True)
        scene.text(left, y + 13, shape, role="muted", anchor="start", math=True)
    else:
        scene.text(x, y + h / 2 + 13, shape, **SMALL)


def _step(scene: Scene, x: float, y: float, name: str, w: float) -> None:
    scene.plate(x - w / 2, y - 10, w, 20, 10, "ink")
    scene.text(x, y + 4, name, size=12, bold=True, math=True)


def _weights(scene: Scene, x: float, y: float) -> None:
    """Draw the weights of the house picture as tints, in a square of n rows."""
    A = numbers()["A"][0]
    cell = N / len(A)
    for (i, j), weight in np.ndenumerate(A):
        place = x - N / 2 + j * cell + 0.6, y - N / 2 + i * cell + 0.6
        side = cell - 1.2
        scene.box(*place, side, side, radius=1.5, fill="weight", alpha=float(weight))
    scene.box(x - N / 2, y - N / 2, N, N, radius=4, stroke="weight")


def _lane(scene: Scene, head: int, x: float, d_k: int, heads: int) -> None:
    """Draw one head: three projections, the weights, and the output."""
    scene.box(x - 26, 76, 52, 30, radius=0, fill="paper")
    scene.text(x, 88, f"head {head}", bold=True)
    scene.text(x, 102, f"each *W*: {heads * d_k} × {d_k}", **SMALL)
    q, k, v = places = x - 38, x, x + 38
    for left, right in pairwise(places):
        scene.shape([(left, 110), (right, 110)], stroke="ink", width=1.6)
    for (letter, role), at in zip(ROLES.items(), places, strict=True):
        scene.arrow([(at, 110), (at, 150)], role)
        scene.plate(at - 14, 116, 28, 20, 5, role)
        look: dict[str, Any] = {"size": 12, "role": role, "math": True, "bold": True}
        scene.text(at - 1, 130, f"*W_{letter}*", **look)
        _slab(scene, (at, 166), (WIDE, HIGH), f"*{letter}*", f"n × {d_k}", role)
    scene.arrow([(q, 198), (q, 206), (x - 25, 206), (x - 25, 218)], "query")
    scene.arrow([(k, 198), (k, 206), (x - 9, 206), (x - 9, 218)], "key")
    _slab(scene, (x - 17, 233), (HIGH, HIGH), "*A*", "", "weight")
    scene.text(x + 2, 237, "n × n", anchor="start", **SMALL)
    scene.arrow([(x - 17, 248), (x - 17, 256), (x - 4, 256), (x - 4, 266)], "weight")
    scene.arrow([(v, 198), (v, 256), (x + 4, 256), (x + 4, 266)], "value")
    column = MIDDLE + WIDE * (head - 0.5 - heads / 2)
    turn = 318 if column > x or head == heads else 312
    scene.arrow([(x, 294), (x, turn), (column, turn), (column, 343)], "output")
    _slab(scene, (x, 281), (WIDE, HIGH), "", "", "output")
    name: dict[str, Any] = {"role": "output", "math": True, "bold": True}
    scene.text(x - 12, 285, f"*H*_{head}", anchor="end", **name)
    scene.text(x + 12, 285, f"n × {d_k}", anchor="start", **SMALL)


def _say(
    scene: Scene, x: float, y: float, words: str, shape: str, role: str = "output"
) -> None:
    scene.text(x, y - 2, words, role=role, anchor="start", bold=True)
    scene.text(x, y + 12, shape, anchor="start", **SMALL)


def _high(steps: Iterable[str]) -> float:
    return STEP * sum(DOWN_BY.get(step, 1) for step in steps)


def _path(
    scene: Scene, x: float, top: float, steps: Iterable[str], width: float = BOX[0]
) -> float:
    """Draw the boxes on the way down, and each path around them; return the end."""
    y, end, fork, high = top, top, None, BOX[1]
    for step in steps:
        down = STEP * DOWN_BY.get(step, 1)
        middle, y = y + down / 2, y + down
        if step == "(":
            fork = middle
            continue
        half = 9 if step == "+" else high / 2
        scene.arrow([(x, end), (x, middle - half)])
        end = middle + half
        if step == "+":
            scene.plus(x, middle)
            side = x - width / 2 - AROUND
            around = (side, fork), (side, middle), (x - 9, middle)
            if fork:
                scene.arrow([(x, fork), *around])
            fork = None
        else:
            role = TINTS.get(step, "ink")
            scene.plate(x - width / 2, middle - half, width, high, 11, role)
            scene.text(x, middle + 4, step, role=role, bold=True)
    return end


def _size(shape: tuple[int, ...]) -> tuple[float, float]:
    """Return width and height of a block on paper, in cells."""
    a, b, c = shape
    return c + a * DEPTH[0], b - a * DEPTH[1]


def _faces(block: Array) -> Iterator[tuple[bool, Array, Array, Array]]:
    """Yield each cell that is seen: is it True, its corner, and its two edges."""
    a, b, c = block.shape
    for j, k in np.ndindex(b, c):
        yield block[0, j, k], k * ACROSS + j * DOWN, ACROSS, DOWN
    for i, k in np.ndindex(a, c):
        yield block[i, 0, k], k * ACROSS + i * DEPTH, ACROSS, DEPTH
    for i, j in np.ndindex(a, b):
        yield block[i, j, -1], c * ACROSS + j * DOWN + i * DEPTH, DOWN, DEPTH


def _block(scene: Scene, block: Array, place: tuple[float, float, float]) -> None:
    """Draw a block with the names of its axes."""
    (a, b, c), (left, top, cell) = block.shape, place
    front = np.array([left, top - a * DEPTH[1] * cell])  # its upper left corner
    for together, start, u, v in _faces(block):
        face = [start, start + u, start + u + v, start + v]
        points = [tuple((front + cell * p).tolist()) for p in face]
        look = {"fill": "ink", "alpha": 0.45} if together else {}
        scene.shape(points, closed=True, stroke="ink", width=0.9, **look)
    x, y = (front + cell * (a / 2 * DEPTH)).tolist()
    slope = math.degrees(math.atan2(DEPTH[1], DEPTH[0]))
    (left, top), size = front.tolist(), 11.5
    scene.text(left + cell * c / 2, top + cell * b + 12, "feature", size=size)
    scene.text(left - 5, top + cell * b / 2, "token", size=size, turn=-90)
    scene.text(x - 3, y - 3, "batch", size=size, turn=slope)
