"""Drag what words are found by, and watch "it" move (chapter overview)."""

import math

from figures.live_house.numbers import IT, WORDS, X, numbers
from figures.picture import Picture
from figures.scene import Scene, picture
from figures.view import live
from mha import scaled_dot_product_attention
from mha.view import View

PLACES = (
    (22, -20, "start"),
    (12, -4, "start"),
    (-14, -2, "end"),
    (-14, -22, "end"),
)
FOOD = WORDS.index("food")


def mixing(last: str = "hungry") -> View:
    """Show one query, four keys to drag, and the weighted average of the values.

    Parameters
    ----------
    last : str, default "hungry"
        The last word. Any other than "hungry" has the vector of "food".

    >>> mixing().alt[-35:]
    'close to the value of dog at first.'
    """
    words, vectors = [*WORDS[:-1], last], X.copy()
    if last != WORDS[-1]:
        vectors[-1] = X[FOOD]
    Q, K, V = (vectors @ numbers()[name][0] for name in ("W_Q", "W_K", "W_V"))
    H, A = scaled_dot_product_attention(Q, K, V, return_weights=True)
    alt = (
        "Two planes. In the first, the keys of four words can be dragged. In the "
        f"second, “it” moves from its value (1, 1) to its output ({H[IT, 0]:.2f}, "
        f"{H[IT, 1]:.2f}), which is close to the value of {words[A[IT].argmax()]} at "
        "first."
    )
    data = {"words": words, "query": Q[IT], "keys": K, "values": V}
    data["drag"] = FOOD if last == WORDS[-1] else len(words) - 1
    return live(__file__, alt, data, lambda: still(words, V, A[IT], H[IT], alt))


def still(words, V, weights, output, alt: str) -> Picture:
    """Draw the plane of the values, and where their average moves "it"."""
    scene, unit = Scene(350, 290), 100
    at = [(40 + unit * x, 246 - unit * y) for x, y in (*V, output)]
    dog, food, it, last, out = at
    scene.shape([dog, food, last], closed=True, fill="muted", alpha=0.1)
    scene.arrow([(40, 246), (315, 246)], role="muted", width=1)
    scene.arrow([(40, 246), (40, 8)], role="muted", width=1)
    scene.text(315, 263, "animal →", size=11.3, role="muted", anchor="end")
    scene.text(18, 8, "edible →", size=11.3, role="muted", turn=-90, anchor="end")
    for place, weight in zip(at, weights, strict=False):
        scene.shape([place, out], stroke="value", width=max(0.8, 9 * weight), alpha=0.3)
    rings = zip(at, weights, strict=False)
    scene.dots(*((x, y, 27 * math.sqrt(w)) for (x, y), w in rings), fill="value")
    scene.arrow([it, (out[0] - 3, out[1] - 5)], role="output", width=3)
    scene.dots((*out, 5.5), fill="output")
    labels = zip(at, words, weights, PLACES, strict=False)
    for (x, y), word, weight, (dx, dy, anchor) in labels:
        look = {"anchor": anchor, "halo": True}
        scene.text(x + dx, y + dy, word, bold=True, **look)
        scene.text(x + dx, y + dy + 12, f"{weight:.2f}", role="value", **look)
    look = {"role": "output", "anchor": "start", "halo": True}
    scene.text(it[0] + 12, it[1] - 10, "“it” before (1, 1)", **look)
    told = f"“it” after ({output[0]:.2f}, {output[1]:.2f})"
    scene.text(out[0] + 6, out[1] - 34, told, bold=True, **look)
    return picture(scene, alt)
