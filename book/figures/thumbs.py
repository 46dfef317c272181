"""One small picture for each chapter, with the numbers of the chapter where it has any.

The first line of each drawing's docstring is what a screen reader says.
"""

import json
from html import escape
from itertools import product
from pathlib import Path

import numpy as np

from figures.strip import Pen, box, line, numbers
from mha import (
    causal_mask,
    laws,
    merge_heads,
    padding_mask,
    sinusoidal_positional_encoding,
    softmax,
    zoo,
)
from mha.laws import NotApplicable, as_subject
from mha.plot.marks import SERIF
from mha.plot.palette import ink_on

WIDTH, HEIGHT = 200, 112
DATA = Path(__file__).parents[1] / "_data"
WORDS = ("dog", "food", "it", "hungry")
BOLD = 'font-weight="600"'


# Laws that take little time, for the picture of the chapter on laws.
QUICK = (
    laws.output_in_hull, laws.constant_values_stay, laws.padding_changes_nothing,
    laws.shifting_keys_changes_nothing, laws.head_owns_its_columns,
    laws.concat_is_a_sum, laws.equals_reference,
)  # fmt: skip


def stored(name):
    """Return what an experiment of the book has stored."""
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def shade(pen, boxes, role):
    """Fill boxes of ``(shade, outline)``, all of one shade at once."""
    alike = {}
    for alpha, outline in boxes:
        alpha = round(alpha, 2)
        alike[alpha] = alike.get(alpha, "") + outline
    for alpha, outline in sorted(alike.items()):
        pen.fill(outline, role, alpha)


def weights(pen, A, x, y, side, *, mask=None, figures=False):
    """Draw a table of weights: none is the background, one is the full colour."""
    boxes = []
    for (i, j), weight in np.ndenumerate(A):
        at = x + side * j, y + side * i
        if mask is not None and not mask[i, j]:
            left, top, end = at[0] + 2, at[1] + 2, side - 4
            pen.stroke(line((left, top + end), (left + end, top)), "rest", 1)
        else:
            tile = box(at[0] + 0.5, at[1] + 0.5, side - 1, side - 1)
            boxes.append((max(float(weight), 0.04), tile))
    shade(pen, boxes, "weight")
    if figures:
        for (i, j), weight in np.ndenumerate(A):
            if mask is None or mask[i, j]:
                at = x + side * (j + 0.5), y + side * (i + 0.5) + 3.8
                words = f"{weight:.2f}".removeprefix("0") if weight < 1 else "1"
                pen.write(*at, words, ink_on(round(float(weight), 2)), 10.2)
    rows, columns = np.shape(A)
    pen.stroke(box(x - 1.5, y - 1.5, side * columns + 3, side * rows + 3), "ink", 0.8)


def arrow(pen, start, end, role, width=2.2):
    """Draw an arrow."""
    start, end = np.array(start, float), np.array(end, float)
    along = (end - start) / np.hypot(*(end - start))
    aside = np.array([-along[1], along[0]])
    back = end - 9 * along
    pen.stroke(line(start, back), role, width)
    pen.fill(line(end, back + 4.4 * aside, back - 4.4 * aside) + "z", role)


def dot(pen, x, y, radius, role):
    """Draw a round point."""
    turn = f"a{radius} {radius} 0 1 0 "
    pen.fill(
        f"M{x - radius:.1f} {y:.1f}{turn}{2 * radius} 0{turn}{-2 * radius} 0z", role
    )


def arc(pen, start, end, y, width):
    """Draw where one word attends to, as an arc above the line."""
    top = y - 22 - abs(start - end) * 0.4
    path = f"M{start} {y}C{start} {top:.1f} {end} {top:.1f} {end} {y}"
    pen.stroke(path, "weight", width)


# ---------------------------------------------------------------- the chapters


def overview(pen):
    """The word "it" attends to three other words, to dog most."""
    xs = (24, 72, 118, 170)
    for x, word, weight in zip(xs, WORDS, numbers()["A"][0][2], strict=True):
        if word != "it":
            arc(pen, xs[2], x, 80, 0.8 + 11 * weight)
        pen.write(x, 98, word, size=13, style=BOLD if word == "it" else "")


def dot_product(pen):
    """Two arrows, it and dog, and the shadow of one on the other."""
    start, per = np.array([34, 92]), 66
    words, it = numbers()["X"][:, :2], 2
    dog_end, it_end = (start + per * v * (1, -1) for v in (words[0], words[it]))
    pen.stroke(line((34, 12), start, (188, 92)), "rest", 1)
    pen.fill(box(34, 89, it_end[0] - 34, 6), "query", 0.4)
    arrow(pen, start, dog_end, "key")
    arrow(pen, start, it_end, "query")
    pen.stroke(line(it_end, (it_end[0], 92)), "ink", 1)
    pen.write(it_end[0] + 14, it_end[1] + 2, "it", "query", 13, BOLD)
    pen.write(dog_end[0] - 10, 82, "dog", "key", 13, BOLD)


def softmax_(pen):
    """One unit of weight, shared by four words."""
    X = numbers()["X"]
    x = 12.0
    for word, share in zip(WORDS, softmax(X @ X[2]), strict=True):
        width = 176 * share
        pen.fill(box(x + 0.8, 38, width - 1.6, 36), "weight", 0.16 + share)
        pen.write(x + width / 2, 60, f"{share:.2f}"[1:], ink_on(0.16 + share), 10, BOLD)
        pen.write(x + width / 2, 90, word, size=10.5)
        x += width
    pen.stroke(box(12, 36.5, 176, 39), "weight", 1.3)


def scale(pen):
    """Random walks stay within a few roots of their length."""
    rng, steps = np.random.default_rng(3), np.arange(65)
    for _ in range(14):
        walk = np.concatenate([[0], np.cumsum(rng.choice([-1, 1], 64))])
        pen.stroke(line(*zip(12 + 2.6 * steps, 56 - 2 * walk, strict=True)), "rest", 1)
    for sign in (1, -1):
        root = 56 - sign * 2 * np.sqrt(steps)
        pen.stroke(line(*zip(12 + 2.6 * steps, root, strict=True)), "query", 2)
    pen.write(188, 44, "√d", "query", 13, BOLD)


def causal():
    """Return the weights of both heads under a causal mask, and the mask."""
    found = numbers(is_causal=True)
    return found["A"], found["mask"]


def masks(pen):
    """A causal mask, open on and below its diagonal, and a padding mask of columns."""
    side = 16
    for mask, x, name in (
        (causal_mask(5), 12, "causal"),
        (np.broadcast_to(padding_mask([3], 5)[0, 0], (5, 5)), 108, "padding"),
    ):
        weights(pen, mask, x, 8, side, mask=mask)
        pen.write(x + 2.5 * side, 106, name, size=12)


def attention_(pen):
    """The output of "it" lies in the triangle of the values."""
    values, output = numbers()["V"][0], numbers()["H"][0][2]

    def at(v):
        return 46 + 50 * v[0], 90 - 37 * v[1]

    pen.fill(line(*map(at, values[[0, 1, 3]])) + "z", "value", 0.16)
    for word, v in zip(WORDS, values, strict=True):
        x, y = at(v)
        dot(pen, x, y, 3.6, "value")
        right = word in ("dog", "it")
        pen.write(
            x + (17 if right else -20 if word == "food" else 0),
            y + (4 if right or word == "food" else 14),
            word, "value", 11,
        )  # fmt: skip
    dot(pen, *at(output), 5.5, "output")
    pen.write(at(output)[0] + 4, at(output)[1] - 11, "output", "output", 11, BOLD)


def why_heads(pen):
    """Under four premises, heads tell at most as many contents as there are heads."""
    counts, explained = (1, 2, 4), stored("two_dragons")
    for i, asked in enumerate(counts):
        pen.write(34, 29 + 27 * i, f"{asked} asked", size=10.5)
        for j, heads in enumerate(counts):
            part = max(0.0, float(np.mean(explained[f"u={asked} h={heads}"])))
            x, y = 66 + 44 * j, 16 + 27 * i
            pen.fill(box(x, y, 36 * part, 18), "output", 0.8)
            pen.stroke(box(x, y, 36, 18), "output", 1)
    for j, heads in enumerate(counts):
        pen.write(84 + 44 * j, 107, f"{heads} head{'s' * (heads > 1)}", size=9.5)


def split(pen):
    """One product is cut into the queries of two heads."""
    for head, x in enumerate((24, 132)):
        pen.map(numbers()["Q"][head], x, 14, 20, "query")
        pen.write(x + 20, 109, f"head {head + 1}", "query")
    pen.stroke(line((98, 8), (98, 98)), "ink", 1.2)
    arrow(pen, (90, 54), (72, 54), "query", 1.8)
    arrow(pen, (106, 54), (124, 54), "query", 1.8)


def output(pen):
    """What two heads write adds up to one output."""
    W_O = np.eye(4)[[0, 2, 1, 3]] * (1, 1, -1, 1)
    heads = numbers()["H"]
    parts = [heads[r] @ W_O[2 * r : 2 * r + 2] for r in range(2)]
    whole = merge_heads(heads) @ W_O
    names = ("head 1", "head 2", "output")
    for x, M, name in zip((8, 78, 148), (*parts, whole), names, strict=True):
        pen.map(M, x, 30, 11, "output")
        pen.write(x + 22, 92, name, "output")
    pen.write(65, 57, "+", size=16)
    pen.write(135, 57, "=", size=16)


def multi_head(pen):
    """Two heads, each with a triangle of weights of its own."""
    A, mask = causal()
    for head, x in enumerate((12, 110)):
        weights(pen, A[head], x, 12, 19.5, mask=mask, figures=True)
        pen.write(x + 39, 107, f"head {head + 1}", "weight")


def positions(pen):
    """Waves of different length, one column for each position."""
    P = sinusoidal_positional_encoding(34, 12)
    boxes = [
        (
            round(0.05 + 0.35 * (1 + float(value)), 1),
            box(15 + 5 * i, 9 + 7.8 * j, 4.6, 7.4),
        )
        for (i, j), value in np.ndenumerate(P)
    ]
    shade(pen, boxes, "ink")


def encoder_layer(pen):
    """A layer: attention and feed-forward, each with a path around it."""
    for left, right in ((16, 84), (104, 168)):
        pen.stroke(line((left, 62), (left, 26), (right, 26), (right, 51)), width=1.6)
    pen.stroke(line((6, 62), (194, 62)), width=1.6)
    pen.fill(box(30, 46, 40, 32), "paper")
    pen.fill(box(30, 46, 40, 32), "weight", 0.2)
    pen.stroke(box(30, 46, 40, 32), "weight", 1.4)
    for out, middle in ((116, 135), (156, 137)):
        half = line((out, 54), (middle, 44), (middle, 80), (out, 70)) + "z"
        pen.fill(half, "paper")
        pen.fill(half, "ink", 0.08)
        pen.stroke(half, width=1.3)
    for x in (84, 168):
        dot(pen, x, 62, 10, "paper")
        pen.stroke(line((x - 5, 62), (x + 5, 62)) + line((x, 57), (x, 67)), width=1.6)
        pen.stroke(f"M{x - 10} 62a10 10 0 1 0 20 0a10 10 0 1 0 -20 0z", width=1.3)
    pen.write(50, 98, "attention")
    pen.write(138, 98, "feed-forward")


def encoder(pen):
    """Ten wrong attentions, and all reach the full height of the right one."""
    reached = stored("wrong_attention")["reverse"]
    for i, (name, runs) in enumerate(reached.items()):
        right = name in ("right", "no_attention")
        x, height = 12 + 14.9 * i, 70 * float(np.median(runs))
        pen.fill(box(x, 84 - height, 10, height), "ink" if right else "wrong", 0.75)
        pen.write(x + 5, 99, {"right": "✓", "no_attention": "–"}.get(name, "✗"))
    pen.stroke(line((8, 84.5), (192, 84.5)), width=1)


def what_heads_learn(pen):
    """Four kinds of heads: the word before, the first word, the word itself, all."""
    n = np.arange(10)
    rows, columns = n[:, None], n[None, :]
    scores = (
        -abs(columns - np.maximum(rows - 1, 0)),
        -columns + 0 * rows,
        -abs(columns - rows),
        0.0 * (columns + rows),
    )
    for x, S in zip((9, 57, 105, 153), scores, strict=True):
        weights(pen, softmax(1.6 * S), x, 37, 3.8)


def real_encoder(pen):
    """Six layers of twelve heads each."""
    looked_at = ((3, 1), (0, 2), (5, 10))  # by the chapter
    boxes = [
        (0.9 if place in looked_at else 0.2, box(15 + 14.3 * place[1], y, 12.6, 14.6))
        for place in product(range(6), range(12))
        for y in [8 + 16.3 * place[0]]
    ]
    shade(pen, boxes, "weight")


def breaks(member, law):
    """Return whether a wrong version breaks a law, without asking on how little."""
    try:
        return law.search(as_subject(member)) is not None
    except NotApplicable:
        return False


def laws_(pen):
    """Some bugs, one per row, and which of seven laws catches them."""
    shown = [member for member in zoo.WRONG if member.chapter != "laws"]
    for i, member in enumerate(shown[1::4]):
        for j, law in enumerate(QUICK):
            tile = box(14 + 25 * j, 9 + 13.6 * i, 22, 10.6)
            caught = breaks(member, law)
            pen.fill(tile, "wrong" if caught else "ink", 0.9 if caught else 0.08)


def long(pen):
    """Memory grows with the square of the length by hand, and hardly in chunks."""
    cost, lengths = stored("cost"), [512 * 2**k for k in range(6)]
    for decade in range(4):
        pen.stroke(line((18, 98 - 22 * decade), (190, 98 - 22 * decade)), "rest", 0.8)
    for way, role in (("by hand", "ink"), ("chunked", "output")):
        heights = [98 - 22 * np.log10(cost[f"{way}, n = {n}"]["MB"]) for n in lengths]
        pen.stroke(line(*zip(range(24, 180, 28), heights, strict=False)), role, 2.2)
        last, name = cost[f"{way}, n = {lengths[-1]}"]["MB"], f"{way}: "
        size = f"{last / 1000:.1f} GB" if last >= 1000 else f"{last:.0f} MB"
        y = heights[-1] + (4 if way == "by hand" else -9)
        pen.write(104 if way == "by hand" else 140, y, name + size, role, 11, BOLD)


def since_2017(pen):
    """Four heads of queries share two heads of keys and values."""
    italic = f'font-style="italic" font-family="{SERIF}" {BOLD}'
    for head in range(4):
        x, group = 24 + 44 * head, 32 + 88 * (head // 2)
        pen.stroke(line((x + 12, 50), (group + 24, 72)), width=1.3)
        pen.stroke(box(x, 16, 24, 32), "query", 1.4)
        pen.write(x + 12, 37, "Q", "query", 14, italic)
    for x, (name, role) in product((30, 118), (("K", "key"), ("V", "value"))):
        left = x if name == "K" else x + 28
        pen.stroke(box(left, 72, 24, 30), role, 1.4)
        pen.write(left + 12, 92, name, role, 14, italic)


DRAWINGS = {
    "overview": overview, "dot_product": dot_product, "softmax": softmax_,
    "scale": scale, "masks": masks, "attention": attention_, "why_heads": why_heads,
    "split": split, "output": output, "multi_head": multi_head,
    "positions": positions, "encoder_layer": encoder_layer, "encoder": encoder,
    "what_heads_learn": what_heads_learn, "real_encoder": real_encoder, "laws": laws_,
    "long": long, "since_2017": since_2017,
}  # fmt: skip


def thumb(chapter: str) -> str:
    """Return the picture of a chapter as SVG, or nothing for an unknown chapter.

    Parameters
    ----------
    chapter : str
        Slug of the chapter.

    Returns
    -------
    svg : str
        200 by 112 units, coloured by the page with variables such as ``--mha-weight``.

    Examples
    --------
    >>> thumb("softmax")[:41]
    '<svg class="thumb" viewBox="0 0 200 112" '
    """
    draw = DRAWINGS.get(chapter)
    if draw is None:
        return ""
    pen = Pen(lit=True)
    draw(pen)
    says = escape(draw.__doc__.strip())
    return (
        f'<svg class="thumb" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{says}">{"".join(pen.marks)}</svg>'
    )
