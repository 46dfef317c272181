"""Words that look for words: a sentence, the lists of one word, and a real head."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from figures.live_house.numbers import FEATURES, IT, WORDS, X, numbers
from figures.picture import Picture
from figures.scene import Point, Scene, curve, picture, places

STORE = Path(__file__).parents[1] / "_data" / "minilm_it.json"
SENTENCE = "The dog ate the food because it was hungry".split()
WIDE = 358  # points: as wide as a phone, on which type of 11.3 points has 11 pixels
SMALL = 11.3
THINNEST, LEAST = 0.9, 0.03  # points of an arc, and a weight that is drawn
# What each list is for, its matrix, and the names of its two numbers.
LISTS = (
    ("query", "looks for", "W_Q", ("animal", "wanting")),
    ("key", "is found by", "W_K", ("animal", "wanting")),
    ("value", "gives", "W_V", ("animal", "edible")),
)


def sentence() -> Picture:
    """Show the sentence of the book, and how "it" shares its attention.

    >>> sentence().alt[-28:]
    'the other words have no arc.'
    """
    row = dict(zip(WORDS, map(float, numbers()["A"][0, IT]), strict=True))
    scene = Scene(WIDE, 158)
    _arcs(scene, SENTENCE, 118, row, labels=WORDS)
    shares = ", ".join(f"{share:.2f} to {word}" for word, share in row.items())
    return picture(
        scene,
        f"The sentence “{' '.join(SENTENCE)}”. Arcs lead from “it” to four words, as "
        f"wide as their weights: {shares}; the other words have no arc.",
    )


def real() -> Picture:
    """Show to which words "it" attends in a head of a real model, with two endings.

    >>> real().alt[:34]
    'Head 2 of layer 4 of all-MiniLM-L6'
    """
    stored = json.loads(STORE.read_text(encoding="utf-8"))
    scene, found = Scene(WIDE, 334), []
    for k, (end, row) in enumerate(stored.items()):
        weights = {"start" if t == "[CLS]" else t: w for t, w in row}
        words = [*weights][: [*weights].index(end) + 1]
        _arcs(scene, words, 124 + 168 * k, weights, ("start", "dog", "food", end))
        found.append(
            f"with “{end}”, “it” gives {weights['dog']:.2f} to dog, "
            f"{weights['food']:.2f} to food, {weights['start']:.2f} to the start sign"
        )
    return picture(
        scene,
        "Head 2 of layer 4 of all-MiniLM-L6-v2 reads “A dog ate the food because it "
        f"was …”: {'; '.join(found)}.",
    )


def recipe(matrices: bool = False) -> Picture:
    """Show how the vector of "it" becomes its query, its key and its value.

    Parameters
    ----------
    matrices : bool, default False
        Whether the matrices that do it are named.

    >>> recipe().alt[:37]
    'The vector of “it” is animal 1, edibl'
    """
    scene, (wide, high), right, found = Scene(350, 304), (104, 28), 238, []
    left = {name: 66 + 44 * k for k, name in enumerate(FEATURES)}
    vector = dict(zip(FEATURES, X[IT], strict=True))
    scene.text(8, 54, f"{WORDS[IT]}: its vector", size=12.5, bold=True, anchor="start")
    for r, (name, says, matrix, slots) in enumerate(LISTS):
        top, W = 8 + 100 * r, numbers()[matrix][0]
        scene.text(right + 1, top + 10, name, bold=True, role=name, anchor="start")
        says = f"*{matrix}*" if matrices else says
        look: dict[str, Any] = {"role": name, "anchor": "end", "math": matrices}
        scene.text(right + wide, top + 10, says, **look)
        row = dict(zip(slots, X[IT] @ W, strict=True))
        for column, slot in enumerate(slots):
            y = top + 16 + 32 * column
            _slot(scene, (right, y, wide, high), slot, row[slot], name)
            for feature, factor in zip(FEATURES, W[:, column], strict=True):
                if factor:
                    ends = (8 + wide, left[feature] + high / 2), (right, y + high / 2)
                    _way(scene, *ends, name, factor)
        found.append(f"its {name} {_listed(row)}")
    for name, value in vector.items():
        _slot(scene, (8, left[name], wide, high), name, value, "ink")
    return picture(
        scene,
        f"The vector of “it” is {_listed(vector)}. Arrows from its numbers make "
        f"{', '.join(found)}. One arrow doubles: wanting becomes 2 for animal.",
    )


def _listed(numbers: Mapping[str, float]) -> str:
    """Return numbers with their names."""
    return ", ".join(f"{name} {value:g}" for name, value in numbers.items())


def _slot(
    scene: Scene, box: tuple[float, float, float, float], name: str, value: float,
    role: str,
) -> None:  # fmt: skip
    """Draw the place of one number; that of a 0 is empty."""
    x, y, wide, _ = box
    scene.box(*box, radius=5, fill=role, alpha=0.1 * bool(value), stroke=role)
    scene.text(x + 8, y + 18.5, name, anchor="start")
    scene.text(x + wide - 9, y + 18.5, f"{value:g}", size=13, bold=True, anchor="end")


def _way(scene: Scene, start: Point, end: Point, role: str, factor: float) -> None:
    """Draw an arrow that bends, as wide as its factor, which is written if not 1."""
    (x0, y0), (x1, y1) = start, end
    middle = (x0 + x1) / 2
    way = curve(start, (middle, y0), (middle - 8, y1), (x1 - 6, y1))
    scene.arrow([*way, end], role, width=1.6 * factor, radius=WIDE)
    if factor != 1:
        look: dict[str, Any] = {"size": 13, "role": role, "bold": True, "halo": True}
        scene.text(x1 - 24, y1 - 7, f"×{factor:g}", **look)


def _arcs(
    scene: Scene, words: Sequence[str], base: float, weights: Mapping[str, float],
    labels: Sequence[str],
) -> None:  # fmt: skip
    """Draw a line of words above which arcs lead from "it" to others.

    The arc of a word to itself is below it. `labels` are the words whose arcs have
    their number.
    """
    size = 14 if len(words) < 10 else 13
    middle = dict(zip(words, places(words, size, 6, WIDE - 6), strict=True))
    it = middle["it"]
    least = min(LEAST, *(weights[word] for word in labels))
    drawn = [word for word in words if weights.get(word, 0) >= least]
    before = [word for word in drawn if middle[word] < it]
    for word in drawn:
        share, x, big = weights[word], middle[word], word in labels
        width = max(THINNEST, 15 * share)
        look: dict[str, Any] = {"stroke": "weight", "width": width, "radius": WIDE}
        told: dict[str, Any] = {"role": "weight", "bold": share > 0.1, "halo": True}
        if word == "it":
            y = base + size + 3
            loop = curve((it - 4, y), (it - 16, y + 24), (it + 16, y + 24), (it + 4, y))
            scene.shape(loop, **look)
            place = it + 13, y + 15, f"{share:.2f}" * big
            scene.text(*place, size=SMALL, anchor="start", **told)
            continue
        # the farther a word before "it", the farther right its end: no arcs cross
        end = it + 5 if x > it else it - 1 - 9 * before.index(word) / len(before)
        high = 12 + 0.36 * abs(x - end)
        top = base - high * 4 / 3
        arc = curve((end, base), (end, top), (x, top), (x, base))
        scene.shape(arc, alpha=min(1, 0.4 + 1.2 * share), **look)
        place = (x + end) / 2, base - high - width / 2 - 4
        scene.text(*place, f"{share:.2f}" * big, size=12, **told)
    for word, x in middle.items():
        bold = word in labels or word == "it"
        role = "ink" if bold else "muted"
        scene.text(x, base + size, word, size=size, bold=bold, role=role)
