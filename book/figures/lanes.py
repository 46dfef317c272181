"""Multi-head attention as lanes, one for each head, with the shape of every matrix.

The numbers are those of the encoder in chapter 14, and every matrix is drawn as wide as
its number of columns, so that twelve head outputs fill the width of X.
"""

from itertools import pairwise
from typing import Any

from figures.house import draw_plate
from figures.pipeline import slab
from figures.scene import Scene
from mha.plot.picture import Picture

HEADS, D_K = 12, 32
D_MODEL = HEADS * D_K
HIGH, WIDE = 30, 14  # points: n tokens, and the 32 columns of one head
FULL = HEADS * WIDE
MIDDLE = 192  # of X, of the concatenated outputs, and of Y
LANES = {1: 60, 2: 180, HEADS: 324}  # head: middle of its lane
APART = 38  # from queries to keys to values
SMALL: dict[str, Any] = {"size": 10, "role": "muted", "math": True}


def lanes() -> Picture:
    """Show what twelve heads do side by side, with the shape of every matrix.

    Returns
    -------
    picture : Picture
        From the top to the bottom; three of the twelve heads are drawn.

    Examples
    --------
    >>> lanes().alt.partition(":")[0]
    'Multi-head attention in lanes, from the top to the bottom'
    """
    scene = Scene(384, 486)
    for x in LANES.values():
        scene.box(x - 58, 72, 116, 232, radius=7, stroke="rest", width=1)
    for head, x in LANES.items():
        scene.arrow([(MIDDLE, 44), (MIDDLE, 60), (x, 60), (x, 108)], tip=False)
        _draw_lane(scene, head, x)
    between = sum(list(LANES.values())[1:]) / 2
    scene.text(between, 190, "…", size=16)
    _draw_wide(scene, 28, "*X*", "tokens", "ink")
    _draw_concatenated(scene, 358)
    scene.arrow([(MIDDLE, 373), (MIDDLE, 442)], "output")
    draw_plate(scene, MIDDLE - 20, 393, 40, 24, 5, "output")
    scene.text(MIDDLE - 1, 409.2, "*W_O*", role="output", math=True, bold=True)
    _say(scene, MIDDLE + 30, 404, "output projection", f"{D_MODEL} × {D_MODEL}")
    _draw_wide(scene, 458, "*Y*", "output", "output")
    return Picture(
        scene,
        "Multi-head attention in lanes, from the top to the bottom: X of shape n × "
        f"{D_MODEL} goes to each of {HEADS} heads. Three matrices of shape {D_MODEL} × "
        f"{D_K} turn it into Q, K and V, n × {D_K}. Q and K give the weights A, n × n, "
        f"and A times V is the head's output, n × {D_K}. The {HEADS} outputs are "
        f"concatenated to n × {D_MODEL}, and W_O, {D_MODEL} × {D_MODEL}, turns them "
        f"into Y, n × {D_MODEL}.",
    )


def _draw_lane(scene: Scene, head: int, x: float) -> None:
    """Draw one head: three projections, the weights, and the output."""
    scene.box(x - 26, 76, 52, 30, radius=0, fill="paper")
    scene.text(x, 88, f"head {head}", bold=True)
    scene.text(x, 102, f"each *W*: {D_MODEL} × {D_K}", **SMALL)
    roles = {"Q": "query", "K": "key", "V": "value"}
    places = [x - APART, x, x + APART]
    for left, right in pairwise(places):
        scene.shape([(left, 110), (right, 110)], stroke="ink", width=1.6)
    for (letter, role), at in zip(roles.items(), places, strict=True):
        scene.arrow([(at, 110), (at, 150)], role)
        draw_plate(scene, at - 14, 116, 28, 20, 5, role)
        scene.text(
            at - 1, 130, f"*W_{letter}*", size=10, role=role, math=True, bold=True
        )
        shape = f"n × {D_K}"
        slab(scene, (at, 166), (WIDE, HIGH), f"*{letter}*", shape, role)
    scene.arrow(
        [(x - APART, 198), (x - APART, 206), (x - 25, 206), (x - 25, 218)], "query"
    )
    scene.arrow([(x, 198), (x, 206), (x - 9, 206), (x - 9, 218)], "key")
    slab(scene, (x - 17, 233), (HIGH, HIGH), "*A*", "", "weight")
    scene.text(x + 2, 237, "n × n", anchor="start", **SMALL)
    scene.arrow([(x - 17, 248), (x - 17, 256), (x - 4, 256), (x - 4, 266)], "weight")
    scene.arrow(
        [(x + APART, 198), (x + APART, 256), (x + 4, 256), (x + 4, 266)], "value"
    )
    _draw_output(scene, head, x)


def _draw_output(scene: Scene, head: int, x: float) -> None:
    """Draw the output of a head and its way to its columns."""
    column = MIDDLE - FULL / 2 + WIDE * (head - 0.5)
    turn = 318 if column > x or head == HEADS else 312
    scene.arrow([(x, 294), (x, turn), (column, turn), (column, 343)], "output")
    slab(scene, (x, 281), (WIDE, HIGH), "", "", "output")
    name: dict[str, Any] = {"role": "output", "math": True, "bold": True}
    scene.text(x - 12, 285, f"*H*_{head}", anchor="end", **name)
    scene.text(x + 12, 285, f"n × {D_K}", anchor="start", **SMALL)


def _draw_wide(scene: Scene, y: float, name: str, words: str, role: str) -> None:
    """Draw a matrix as wide as the model."""
    slab(scene, (MIDDLE, y), (FULL, HIGH), name, "", role)
    _say(scene, MIDDLE + FULL / 2 + 8, y, words, f"n × {D_MODEL}", role)


def _draw_concatenated(scene: Scene, y: float) -> None:
    """Draw twelve head outputs side by side."""
    for r in range(1, HEADS + 1):
        left = MIDDLE - FULL / 2 + WIDE * (r - 1)
        alpha = 0.3 if r in LANES else 0.08
        look = {"fill": "output", "alpha": alpha, "stroke": "output", "width": 0.9}
        scene.box(left, y - HIGH / 2, WIDE, HIGH, radius=2, **look)
    words = f"n × {D_MODEL}"
    _say(scene, MIDDLE + FULL / 2 + 8, y, "concatenated", words, "output")


def _say(
    scene: Scene, x: float, y: float, words: str, shape: str, role: str = "output"
) -> None:
    scene.text(x, y - 2, words, role=role, anchor="start", bold=True)
    scene.text(x, y + 12, shape, anchor="start", **SMALL)
