"""What happens to the shapes: the projections, one head, and many heads.

Each number of a shape is drawn as long everywhere, so that one sees which matrices can
be multiplied. Here d_model is three times d_k: there are three heads.
"""

from typing import Any

from figures.house import draw_plate, numbers
from figures.scene import Scene
from mha.plot.picture import Picture

N, D_MODEL, D_K = 42, 72, 24  # how long n, d_model and d_k are, in points
HEADS = D_MODEL // D_K
ROLES = {"Q": "query", "K": "key", "V": "value"}
WORDS = {"Q": "queries", "K": "keys", "V": "values"}
WIDTHS = {"Q": "d_k", "K": "d_k", "V": "d_v"}
AT = {"Q": 48, "K": 165, "V": 282}  # where they are, from the left
BEHIND = 5  # from one sheet to the next


def projections() -> Picture:
    """Show how one matrix of words becomes queries, keys and values.

    Returns
    -------
    picture : Picture
        Three products, from left to right, with the shape of each factor.

    Examples
    --------
    >>> projections()
    Picture: X times W_Q gives Q, X times W_K gives K, X times W_V gives V, with n rows.
    """
    scene = Scene(350, 330)
    for (letter, role), y in zip(ROLES.items(), (52, 160, 268), strict=True):
        start = 160 + (y - 160) / 15
        bend = [(112, start), (112, y)] if y != start else []
        scene.arrow([(86, start), *bend, (158, y)], role)
        W = f"d_model × {WIDTHS[letter]}"
        slab(scene, (174, y), (D_K, D_MODEL), f"*W_{letter}*", W, role)
        scene.arrow([(190, y), (252, y)], role)
        size = f"n × {WIDTHS[letter]}"
        slab(scene, (268, y), (D_K, N), f"*{letter}*", size, role)
        scene.text(286, y + 4, WORDS[letter], role=role, anchor="start", bold=True)
    slab(scene, (46, 160), (D_MODEL, N), "*X*", "n × d_model", "ink")
    products = ", ".join(f"X times W_{letter} gives {letter}" for letter in ROLES)
    return Picture(scene, f"{products}, with n rows.")


def one_head() -> Picture:
    """Show one head from its words to its output, with the shape of every matrix.

    Returns
    -------
    picture : Picture
        From the top to the bottom. The weights are those of the house picture.

    Examples
    --------
    >>> one_head().alt.partition(":")[0]
    'One head, from the top to the bottom'
    """
    scene = Scene(384, 574)
    _draw_projections(scene, sheets=1)
    q, k, v = AT.values()
    scene.arrow([(q, 194), (q, 238), (84, 238)], "query")
    scene.arrow([(k, 194), (k, 238), (128, 238)], "key")
    scene.arrow([(106, 238), (106, 268)])
    _draw_step(scene, 106, 238, "*Q Kᵀ*", 44)
    slab(scene, (106, 292), (N, N), "*S*", "n × n", "ink", beside="scores")
    scene.arrow([(106, 314), (106, 404)])
    _draw_step(scene, 106, 334, "÷ √d_k", 52)
    _draw_step(scene, 106, 358, "mask", 52)
    _draw_step(scene, 106, 382, "softmax", 62)
    _draw_weights(scene, 106, 428)
    look: dict[str, Any] = {"anchor": "start", "math": True}
    scene.text(133, 424, "*A* weights", role="weight", bold=True, **look)
    scene.text(133, 439, "n × n", role="muted", **look)
    scene.arrow([(106, 450), (106, 484), (178, 484)], "weight")
    scene.arrow([(v, 194), (v, 484), (216, 484)], "value")
    scene.arrow([(197, 484), (197, 506)], "output")
    _draw_step(scene, 197, 484, "*A V*", 36)
    slab(scene, (197, 530), (D_K, N), "*Y*", "n × d_v", "output", beside="output")
    return Picture(
        scene,
        "One head, from the top to the bottom: X of shape n × d_model is projected to "
        "Q and K of shape n × d_k and V of shape n × d_v. Q times the transpose of K "
        "gives n × n scores; divided by the root of d_k, masked and through a softmax, "
        "they are the weights A. A times V is the output, n × d_v.",
    )


def many_heads() -> Picture:
    """Show multi-head attention, with the shape of every matrix.

    Returns
    -------
    picture : Picture
        From the top to the bottom, with three heads as three sheets.

    Examples
    --------
    >>> many_heads().alt.partition(":")[0]
    'Multi-head attention, from the top to the bottom'
    """
    scene = Scene(384, 528)
    _draw_projections(scene, sheets=HEADS)
    for letter, x in AT.items():
        scene.arrow([(x, 194), (x, 222)], ROLES[letter])
    _draw_sheets(scene, 22, 234, 286, 46, "ink")
    scene.text(165, 254, "attention in every head", bold=True)
    words = "softmax(*Q Kᵀ* / √d_k) *V*"
    scene.text(165, 271, words, size=10, math=True)
    scene.arrow([(165, 281), (165, 312)], "output")
    _draw_concatenated(scene, 165, 336)
    scene.arrow([(165, 358), (165, 474)], "output")
    slab(
        scene,
        (165, 414),
        (D_MODEL, D_MODEL),
        "*W_O*",
        "h d_v × d_model",
        "output",
        beside="output projection",
    )
    slab(
        scene, (165, 498), (D_MODEL, N), "*Y*", "n × d_model", "output", beside="output"
    )
    return Picture(
        scene,
        "Multi-head attention, from the top to the bottom: X of shape n × d_model is "
        "projected to Q, K and V, and each is cut into h heads of shape n × d_k or "
        "n × d_v. Every head attends on its own. The h head outputs are concatenated "
        "to n × h d_v, and W_O, of shape h d_v × d_model, mixes them into Y, "
        "n × d_model.",
    )


def slab(
    scene: Scene, middle: tuple[float, float], size: tuple[float, float], name: str,
    shape: str, role: str, *, beside: str = "", sheets: int = 1,
) -> None:  # fmt: skip
    """Draw a matrix as a rectangle with its letter, its shape, and what it is."""
    (x, y), (w, h) = middle, size
    _draw_sheets(scene, x - w / 2, y - h / 2, w, h, role, sheets)
    scene.text(x, y + 4.5, name, role=role, math=True, bold=True)
    if beside:
        left = x + w / 2 + 9
        scene.text(left, y - 2, beside, role=role, anchor="start", bold=True)
        scene.text(left, y + 13, shape, role="muted", anchor="start", math=True)
    else:
        scene.text(x, y + h / 2 + 13, shape, size=10, role="muted", math=True)


def _draw_sheets(
    scene: Scene, x: float, y: float, w: float, h: float, role: str, sheets: int = HEADS
) -> None:
    """Draw one rectangle for each head, the first one in front."""
    for k in range(sheets - 1, -1, -1):
        aside = BEHIND * k
        scene.box(x + aside, y - aside, w, h, radius=4, fill="paper")
        look = {"fill": role, "alpha": 0.08, "stroke": role}
        scene.box(x + aside, y - aside, w, h, radius=4, **look)


def _draw_projections(scene: Scene, sheets: int) -> None:
    """Draw how X becomes three matrices, each cut into its heads."""
    top = AT["K"]
    slab(scene, (top, 36), (D_MODEL, N), "*X*", "n × d_model", "ink", beside="words")
    for k, (letter, x) in enumerate(AT.items()):
        role, start = ROLES[letter], top + 14 * (k - 1)
        bend = [(start, 78), (x, 78)] if x != start else []
        scene.arrow([(start, 59), *bend, (x, 146 - 10 * (sheets > 1))], role)
        draw_plate(scene, x - 18, 92, 36, 24, 5, role)
        look: dict[str, Any] = {"size": 10, "math": True, "bold": True}
        scene.text(x - 1, 108.2, f"*W_{letter}*", role=role, **look)
        aside: dict[str, Any] = {"size": 10, "role": "muted", "anchor": "start"}
        columns = "h " * (sheets > 1) + WIDTHS[letter]
        scene.text(x + 22, 108, f"d_model × {columns}", math=True, **aside)
        middle = x, 170
        slab(scene, middle, (D_K, N), f"*{letter}*", "", role, sheets=sheets)
        left = x + D_K / 2 + 5 + BEHIND * (sheets - 1)
        scene.text(left, 166, f"n × {WIDTHS[letter]}", math=True, **aside)
        if sheets > 1:
            scene.text(left, 180, "h heads", **aside)


def _draw_step(scene: Scene, x: float, y: float, name: str, w: float) -> None:
    draw_plate(scene, x - w / 2, y - 10, w, 20, 10, "ink")
    scene.text(x, y + 4, name, size=10, bold=True, math=True)


def _draw_weights(scene: Scene, x: float, y: float) -> None:
    """Draw the weights of the house picture as tints, in a square of n rows."""
    A = numbers()["A"][0]
    cell = N / len(A)
    for (i, j), weight in [((i, j), A[i, j]) for i in range(4) for j in range(4)]:
        corner = x - N / 2 + j * cell + 0.6, y - N / 2 + i * cell + 0.6
        scene.box(
            *corner, cell - 1.2, cell - 1.2, radius=1.5, fill="weight", alpha=weight
        )
    scene.box(x - N / 2, y - N / 2, N, N, radius=4, stroke="weight")


def _draw_concatenated(scene: Scene, x: float, y: float) -> None:
    """Draw the outputs of the heads side by side."""
    for k in range(HEADS):
        left = x - D_MODEL / 2 + k * D_K
        _draw_sheets(scene, left, y - N / 2, D_K, N, "output", 1)
        name = f"*H*_{k + 1}" if k < HEADS - 1 else "*H*_h"
        scene.text(left + D_K / 2, y + 4, name, size=10, role="output", math=True)
    left = x + D_MODEL / 2 + 9
    scene.text(
        left,
        y - 2,
        "concatenated head outputs",
        role="output",
        anchor="start",
        bold=True,
    )
    scene.text(left, y + 13, "n × h d_v", role="muted", anchor="start", math=True)
