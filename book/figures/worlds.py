"""Averages, turns and sums: two dragons, rotary positions, and the road of a word."""

import math

import numpy as np

from figures.live_house.numbers import IT, WORDS, numbers
from figures.meaning import SMALL, WIDE
from figures.picture import Picture
from figures.scene import Point, Scene, curve, picture
from mha import designs

NIGHTS, EVEN, HEADS = ((3, 1), (1, 3), (2, 5)), (0.5, 0.5), ((0.8, 0.2), (0.2, 0.8))
SIDES, GLOWS = ("left", "right"), ("amber", "olive")
PLACES = ((2, 0), (5, 3), (12, 10), (5, 1))  # of query and key
PARTS = (("attention", "weight", "adds from all words"),)
PARTS += (("feed-forward", "amber", "adds from “it” alone"),)


def worlds() -> Picture:
    """Show nights that one average cannot tell apart, and a second one that can.

    >>> worlds().alt[-37:]
    'crosses it at the night (3, 1) alone.'
    """
    scene = Scene(WIDE, 430)
    for k, night in enumerate(NIGHTS[:2]):
        _bars(scene, 8 + 176 * k, night, ("one night", "another night")[k])
    left, bottom, unit = 64, 396, 34

    def at(a: float, b: float) -> Point:
        return left + unit * a, bottom - unit * b

    scene.arrow([at(0, 0), at(7.4, 0)], role="muted", width=1)
    scene.arrow([at(0, 0), at(0, 5.9)], role="muted", width=1)
    scene.text(
        at(7.4, 0)[0],
        bottom + 28,
        "glow of the left dragon →",
        role="amber",
        anchor="end",
    )
    place = left - 22, at(0, 4.9)[1], "glow of the right dragon →"
    scene.text(*place, role="olive", turn=-90, anchor="end")
    for n in range(1, 7):
        scene.text(at(n, 0)[0], bottom + 14, n, size=SMALL, role="muted")
        if n < 6:
            scene.text(
                left - 6, at(0, n)[1] + 4, n, size=SMALL, role="muted", anchor="end"
            )
    averages = [float(np.dot(weights, NIGHTS[0])) for weights in HEADS]
    (a, b), (c, d) = HEADS
    first = [at((averages[0] - b * y) / a, y) for y in (0, 5.6)]
    second = [at(x, (averages[1] - c * x) / d) for x in (0, 6.4)]
    scene.shape(first, stroke="output", width=2.4)
    scene.shape(second, stroke="output", width=1.8, dash=(5, 4))
    scene.dots(*((*at(*night), 5) for night in (NIGHTS[0], NIGHTS[2])), fill="output")
    for night in (NIGHTS[0], NIGHTS[2]):
        x, y = at(*night)
        scene.text(x + 10, y - 6, f"{night}", bold=True, anchor="start", halo=True)
    look = {"role": "output", "anchor": "start", "halo": True}
    x, y = at(2.75, 3.5)
    scene.text(x, y, f"head 1: weights {a:g} and {b:g}", bold=True, **look)
    scene.text(x, y + 15, f"gives {averages[0]:.1f} on this whole line", **look)
    x, y = at(4.4, 1.8)
    scene.text(x, y - 8, f"head 2: {c:g} and {d:g}", bold=True, **look)
    scene.text(x, y + 7, f"gives {averages[1]:.1f} (dashed)", **look)
    return picture(
        scene,
        "With equal weights, the glows 3 and 1 of the left and the right dragon have "
        "the average 2, and so do 1 and 3. In the plane of both glows, all nights with "
        f"one average lie on a line: head 1 gives {averages[0]:.1f} on the nights "
        f"(3, 1) and (2, 5). The line of head 2, {averages[1]:.1f}, crosses it at "
        "the night (3, 1) alone.",
    )


def _bars(scene: Scene, x: float, night: tuple[int, int], title: str) -> None:
    """Draw the glows of the left and the right dragon as bars, and their average."""
    bottom, unit, average = 140, 28, float(np.dot(EVEN, night))
    scene.text(x, 20, title, bold=True, anchor="start")
    scene.shape([(x, bottom), (x + 104, bottom)], stroke="ink", width=1.4)
    for place, name, glow, role in zip((0, 56), SIDES, night, GLOWS, strict=True):
        scene.box(x + place + 4, bottom - unit * glow, 40, unit * glow, fill=role)
        middle = x + place + 24
        scene.text(middle, bottom - unit * glow - 5, glow, role=role, bold=True)
        scene.text(middle, bottom + 16, name, role=role)
    y = bottom - unit * average
    scene.shape([(x, y), (x + 104, y)], stroke="output", width=1.8, dash=(5, 4))
    look = {"role": "output", "size": SMALL, "anchor": "start"}
    scene.text(x + 110, y + 4, f"average {average:g}", **look)


def rotary() -> Picture:
    """Show a query and a key turned by their positions: the score needs the distance.

    Equation: q R_tᵀ (k R_sᵀ)ᵀ = q R_{t−s}ᵀ kᵀ  (chapter positions)

    >>> rotary().alt[:45]
    'Four clocks, each with the query of it and th'
    """
    scene, r, told = Scene(WIDE, 388), 50, []
    q, k = numbers()["Q"][0, IT], numbers()["K"][0, 0]
    for n, (i, j) in enumerate(PLACES):
        cx, cy = WIDE * (0.25 + 0.5 * (n % 2)), 92 + 190 * (n // 2)
        score = (_turned(q, i) @ _turned(k, j)).item()
        a, b = math.atan2(q[1], q[0]) + i, math.atan2(k[1], k[0]) + j

        def tip(turn: float, far: float = r, cx=cx, cy=cy) -> Point:
            return cx + far * math.cos(turn), cy - far * math.sin(turn)

        same = i - j == PLACES[0][0] - PLACES[0][1]
        role = "weight" if same else "wrong"
        scene.dots((cx, cy, r + 5), stroke="rest")
        wedge = [(cx, cy), *(tip(t, 26) for t in np.linspace(b, a, 20))]
        scene.shape(wedge, closed=True, fill=role, alpha=0.3)
        scene.arrow([(cx, cy), tip(a)], role="query", width=2.6)
        scene.arrow([(cx, cy), tip(b)], role="key", width=2.6)
        look = {"bold": True}
        scene.text(
            cx - 5,
            cy - r - 26,
            f"{WORDS[IT]} at {i}",
            role="query",
            anchor="end",
            **look,
        )
        scene.text(
            cx + 5,
            cy - r - 26,
            f"{WORDS[0]} at {j}",
            role="key",
            anchor="start",
            **look,
        )
        scene.text(cx, cy - r - 11, f"{i - j} places apart", role="muted")
        words = f"score {score:.2f}".replace("-", "−")
        scene.text(cx, cy + r + 24, words, role="ink" if same else "wrong", **look)
        told.append(f"at {i} and {j} the {words}")
    return picture(
        scene,
        f"Four clocks, each with the query of {WORDS[IT]} and the key of {WORDS[0]}, "
        f"turned by one radian per position: {'; '.join(told)}. At the same offset the "
        "angle between them and the score are the same.",
    )


def _turned(x: np.ndarray, place: int) -> np.ndarray:
    """Return two numbers, rotated by one radian per position."""
    return designs.rotated(x[None], np.array([[float(place)]]))[0]


def road() -> Picture:
    """Show the vector of a word as a road to which each part of a layer adds.

    >>> road().alt[:39]
    'The vector of “it” runs down a road thr'
    """
    scene, x0, wide = Scene(344, 442), 62, 13
    scene.text(x0 + 8, 24, WORDS[IT], size=17, bold=True)
    scene.text(x0 + 24, 24, "its vector enters", role="muted", anchor="start")
    strands = [(x0, 34, "rest")]
    box, high = (186, 154), 42
    for n, (name, role, says) in enumerate(PARTS * 2):
        top, edge = 62 + 86 * n, x0 + wide * (n + 1)
        join = top + 60
        scene.box(
            box[0], top, box[1], high, radius=6, fill=role, alpha=0.1, stroke=role
        )
        middle = box[0] + box[1] / 2
        scene.text(middle, top + 17, name, size=12.5, bold=True, role=role)
        scene.text(middle, top + 33, says, size=SMALL)
        copy = curve(
            (edge + 2, top - 6), (edge + 40, top - 6), (136, top + 14), (172, top + 14)
        )
        scene.arrow(
            [*copy, (box[0] - 1, top + 14)], role="muted", width=1.2, radius=WIDE
        )
        x = edge + wide / 2
        back = curve((box[0], top + 31), (136, top + 31), (x, top + 26), (x, join))
        scene.shape(back, stroke=role, width=wide - 2.5, radius=WIDE)
        strands.append((edge, join - 0.5, role))
        if n == 0:
            scene.text(
                edge + 36, top - 10, "reads a copy", role="muted", anchor="start"
            )
    for x, top, role in strands:
        scene.box(x + 1.2, top, wide - 2.5, 414 - top, radius=0, fill=role)
    for n in range(2):
        top = 54 + 172 * n
        scene.shape([(x0 - 12, top), (x0 - 12, top + 160)], stroke="rest", width=2)
        scene.text(x0 - 20, top + 80, f"layer {n + 1}", role="muted", turn=-90)
    scene.text(x0 + 76, 412, "each is added;", anchor="start")
    scene.text(x0 + 76, 428, "none replaces another", anchor="start", bold=True)
    return picture(
        scene,
        "The vector of “it” runs down a road through two layers. In each layer, "
        "attention and then feed-forward read a copy of all that is on the road and "
        "add a strand of their own. Each is added, and none replaces another.",
    )
