"""From scores to weights: rules, the exponential, random scores, and masks."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

import mha
from figures.charts import as_share
from figures.live_house.numbers import IT, WORDS, numbers
from figures.meaning import SENTENCE, SMALL, WIDE
from figures.picture import Picture
from figures.scene import Scene, corners, picture

SCORES = numbers()["S"][0, IT]
ADDED = 10  # to all scores
WALKS, DRAWS = 20, 20_000  # drawn, and averaged over


def rules() -> Picture:
    """Show what three rules make of the scores of "it", and of scores that are higher.

    >>> rules().alt[:38]
    'Three rules turn the scores 5, 0, 3, 4'
    """
    scene, told = Scene(WIDE, 440), []
    share = (SCORES / SCORES.sum())[0], ((SCORES + ADDED) / (SCORES + ADDED).sum())[0]
    plan = (
        (
            "the best takes all",
            lambda s: 1.0 * (s == s.max()),
            "only the winner counts",
        ),
        ("share of the total", lambda s: s / s.sum(), "+{}: {} falls from {} to {}"),
        ("softmax", mha.softmax, "+{} changes nothing"),
    )
    for k, (name, rule, verdict) in enumerate(plan):
        y = 16 + 146 * k
        if k:
            line = [(0, y - 22), (WIDE, y - 22)]
            scene.shape(line, stroke="rest", width=1, dash=(2, 4))
        verdict = verdict.format(ADDED, WORDS[0], *map(as_share, share))
        scene.text(4, y, name, size=12.5, bold=True, anchor="start")
        role = "value" if rule is mha.softmax else "wrong"
        scene.text(WIDE - 4, y, verdict, role=role, anchor="end")
        for x, scores in ((4, SCORES), (188, SCORES + ADDED)):
            p, names = rule(scores), [f"{s:g}" for s in scores]
            _columns(scene, x, y + 96, (166, 68), p, names)
            told.append(f"{name}: {', '.join(map(as_share, p))}")
    return picture(
        scene,
        f"Three rules turn the scores {', '.join(f'{s:g}' for s in SCORES)} into "
        f"weights, and then the same scores plus {ADDED}. {'; '.join(told)}.",
    )


def exponential() -> Picture:
    """Show how the scores of "it" become powers, and the powers parts of a whole.

    >>> exponential().alt[-33:]
    'hungry 0.24, it 0.09, food <0.01.'
    """
    scene, powers, p = Scene(WIDE, 254), np.exp(SCORES), mha.softmax(SCORES)
    total, bottom = powers.sum(), 214

    def at(s: float) -> tuple[float, float]:
        return 24 + 38 * s, bottom - 196 * math.exp(s) / total

    scene.arrow([(8, bottom), (240, bottom)], role="rest", width=1)
    drops = [[(at(s)[0], bottom), at(s)] for s in SCORES]
    scene.shape(*drops, stroke="muted", width=1, dash=(2, 3))
    way = [at(s) for s in np.linspace(-0.4, 5.05, 40)]
    scene.shape(way, stroke="weight", width=2.2, radius=WIDE)
    scene.dots(*((*at(s), 4.5) for s in SCORES), fill="weight")
    for word, s, power in zip(WORDS, SCORES, powers, strict=True):
        (x, y), low = at(s), s == SCORES.min()
        look = {"anchor": "middle" if low else "end", "bold": True, "halo": True}
        scene.text(
            x - 10 * (not low), y - (10 if low else 3), f"{word} {power:.0f}", **look
        )
        scene.text(x, bottom + 15, f"{s:g}")
    scene.text(114, bottom + 32, "score s", role="muted")
    scene.text(30, at(4.7)[1], "height eˢ", role="muted", anchor="start")
    y, parts = float(bottom), sorted(zip(p, WORDS, strict=True), reverse=True)
    boxes = []
    for share, word in parts:
        high = 196 * share
        boxes.append(corners(266, y - high, 24, max(high - 1.2, 0.8)))
        place = 296, y - max(high / 2, 7) + 4  # above the stack, if a part is too thin
        scene.text(*place, f"{word} {as_share(share)}", anchor="start")
        y -= high
    scene.shape(*boxes, closed=True, fill="weight", alpha=0.92)
    scene.text(278, bottom + 15, f"{total:.0f}", bold=True)
    scene.text(278, bottom + 32, "in all", role="muted")
    listed = ", ".join(f"{word} {as_share(share)}" for share, word in parts)
    return picture(
        scene,
        "The powers of e for the scores of "
        f"{', '.join(f'{w} are {x:.0f}' for w, x in zip(WORDS, powers, strict=True))}. "
        f"Stacked they are {total:.0f}, and the parts of the stack are the weights: "
        f"{listed}.".replace("<.01", "<0.01"),
    )


def spikes() -> Picture:
    """Show random scores of four widths, and what the softmax makes of four of them.

    >>> spikes().alt[:44]
    'Random walks of 4, 16, 64 and 128 steps spre'
    """
    widths, scene = (4, 16, 64, 128), Scene(WIDE, 300)
    rng = np.random.default_rng(12)  # twenty walks that spread as most of them do
    room, wide, middle, scale, told = 89, 79, 100, 2.5, []
    scene.text(4, 212, "softmax of the four bold ends", anchor="start", bold=True)
    for k, d_k in enumerate(widths):
        left = 5 + room * k
        steps = rng.choice([-1, 1], size=(WALKS, d_k)).cumsum(axis=1)
        walks = np.pad(steps, ((0, 0), (1, 0)))
        every = max(1, d_k // 32)

        def at(t: float, s: float, left=left, d_k=d_k) -> tuple[float, float]:
            return left + wide * t / d_k, middle - scale * s

        times = [*range(0, d_k, every), d_k]
        ways = [[at(t, walk[t]) for t in times] for walk in walks]
        scene.shape(*ways[4:], stroke="muted", width=0.7, alpha=0.5)
        scene.shape(*ways[:4], stroke="weight", width=1.2)
        scene.dots(*((*at(d_k, walk[-1]), 2.2) for walk in walks[:4]), fill="weight")
        edge = np.linspace(0, d_k, 16)
        roots = [[at(t, sign * math.sqrt(t)) for t in edge] for sign in (1, -1)]
        scene.shape(*roots, stroke="key", width=1.5, dash=(4, 3))
        scene.text(left, 14, f"width {d_k}", bold=True, anchor="start")
        scene.text(left, 29, f"±√{d_k}", role="key", anchor="start")
        p = np.sort(mha.softmax(walks[:4, -1].astype(float)))[::-1]
        _columns(scene, left, 274, (wide, 44), p)
        ends = 2 * rng.binomial(d_k, 0.5, size=(DRAWS, 4)) - d_k
        largest = mha.softmax(ends.astype(float)).max(axis=-1).mean()
        words = f"on average {largest:.2f}"
        scene.text(left + wide / 2, 291, words, size=SMALL, role="muted")
        outside = np.mean(np.abs(ends) > math.sqrt(d_k))
        told.append(f"{largest:.2f} at {d_k}")
    return picture(
        scene,
        f"Random walks of {', '.join(map(str, widths[:-1]))} and {widths[-1]} steps "
        f"spread by about the root of their length; of {d_k} steps, {outside:.0%} end "
        "farther away than that. The softmax of four ends has on average a largest "
        f"weight of {', '.join(told)}.",
    )


def written() -> Picture:
    """Show what each word of a sentence may attend to while the sentence is written.

    >>> written().alt[:29]
    'A triangle: each of 9 words m'
    """
    n, s, left, top, it = len(SENTENCE), 28, 70, 62, SENTENCE.index(WORDS[IT])
    scene = Scene(WIDE, top + n * s + 24)

    def cells(pairs, d: float):
        return [
            corners(left + j * s + d, top + i * s + d, *[s - 2 * d] * 2)
            for i, j in pairs
        ]

    past = [(i, j) for i in range(n) for j in range(i + 1)]
    look = {"closed": True, "fill": "weight", "radius": 3}
    scene.shape(*cells([p for p in past if p[0] != it], 1), alpha=0.28, **look)
    scene.shape(*cells([p for p in past if p[0] == it], 1), alpha=0.9, **look)
    following = [*pairwise(range(n))]
    scene.shape(*cells(following, 2), closed=True, stroke="output", radius=3)
    later = [
        (left + (j + 0.5) * s, top + (i + 0.5) * s, 1.3)
        for i in range(n)
        for j in range(i + 2, n)
        if (i, j < 5) != (1, False)  # where words stand
    ]
    scene.dots(*later, fill="rest")
    for k, word in enumerate(SENTENCE):
        x, y = left + (k + 0.5) * s + 4, top + (k + 0.5) * s + 4
        scene.text(left - 8, y, word, bold=k == it, anchor="end")
        scene.text(x, top - 7, word, turn=-52, anchor="start")
    for i, j in following:
        x, y = left + (j + 0.5) * s, top + (i + 0.5) * s + 4.5
        scene.text(x, y, "?", bold=True, role="output")
    scene.text(
        left + n * s,
        top + 1.5 * s + 4,
        "not written yet",
        role="muted",
        anchor="end",
        halo=True,
    )
    y = top + n * s + 17
    scene.text(
        4,
        y,
        f"“it” may attend to {it + 1} words",
        role="weight",
        bold=True,
        anchor="start",
    )
    scene.text(
        WIDE - 4,
        y,
        f"and the model guesses word {it + 2}",
        role="output",
        bold=True,
        anchor="end",
    )
    return picture(
        scene,
        f"A triangle: each of {n} words may attend to itself and to the words before "
        f"it. The row of “it” has {it + 1} words, and word {it + 2} is to be guessed.",
    )


def leak() -> Picture:
    """Show that weights betray a hidden score if the mask comes after the softmax.

    >>> leak().alt[:32]
    'Hidden before the softmax, “hung'
    """
    scene, y, told = Scene(WIDE, 226), 6.0, []
    hidden, scale = (SCORES[-1], 2 * SCORES[-1]), math.sqrt(2)
    for late, title in (
        (False, "before the softmax"),
        (True, "after the softmax: a leak"),
    ):
        role = "wrong" if late else "value"
        title = f"“{WORDS[-1]}” hidden {title}"
        scene.text(4, y + 12, title, bold=True, role=role, anchor="start")
        y += 20
        for score in hidden:
            scores = np.array([*SCORES[:-1], score]) / scale
            p = mha.softmax(scores if late else scores[:-1])[:3]
            scene.text(4, y + 18, f"its score {score:g}", anchor="start", role="muted")
            _pieces(scene, (78, y, WIDE - 82, 26), p)
            if late:
                told.append(f"{1 - p.sum():.2f} if its score is {score:g}")
            y += 34
        y += 14
    shares = ", ".join(
        f"{as_share(x)} {w}" for x, w in zip(p_before(), WORDS, strict=False)
    )
    return picture(
        scene,
        f"Hidden before the softmax, “{WORDS[-1]}” leaves no trace: the weights are "
        f"{shares}, whatever its score is. Hidden after it, a part of the weight is "
        f"missing: {' and '.join(told)}.",
    )


def p_before() -> np.ndarray:
    """Return the weights of "it" if the last word is hidden."""
    return mha.softmax(SCORES[:-1] / math.sqrt(2))


def _pieces(scene: Scene, box: tuple[float, float, float, float], p) -> None:
    """Draw weights as pieces of one bar, and what is missing to 1."""
    x, y, wide, high = box
    edges = x + wide * np.append(0, np.cumsum(p))
    boxes = [corners(a, y, max(b - a - 1.2, 1), high) for a, b in pairwise(edges)]
    scene.shape(*boxes, closed=True, fill="weight", alpha=0.92)
    for (a, b), word, share in zip(pairwise(edges), WORDS, p, strict=False):
        if b - a > 34:
            told = f"{word} {as_share(share)}" if b - a > 56 else word
            scene.text((a + b) / 2, y + 17.5, told, role="on2", size=SMALL)
    if (missing := 1 - sum(p)) > 0.001:
        end, long = float(edges[-1]), wide * missing
        scene.box(end + 1, y + 0.8, long - 2, high - 1.6, radius=0, stroke="wrong")
        told = f"missing {missing:.2f}"
        scene.text(end + long / 2, y + 17.5, told, bold=True, role="wrong")


def _columns(
    scene: Scene, x: float, bottom: float, size: tuple[float, float], p,
    names: Sequence[str] = (),
) -> None:  # fmt: skip
    """Draw weights as columns with their numbers; a weight of 1 is `size` high."""
    wide, high = size
    step = wide / len(p)
    scene.shape([(x, bottom), (x + wide, bottom)], stroke="rest", width=1)
    boxes = []
    for k, share in enumerate(p):
        tall, middle = max(share * high, 0.7), x + (k + 0.5) * step
        boxes.append(corners(x + (k + 0.12) * step, bottom - tall, 0.76 * step, tall))
        words = f"{share:g}" if share in (0, 1) else as_share(share)
        words = ">.99" if 0.995 <= share < 1 else words.replace("0.", ".", 1)
        if step > 25 or share > 0.05:
            scene.text(middle, bottom - tall - 4, words, size=SMALL)
    scene.shape(*boxes, closed=True, fill="weight")
    for k, name in enumerate(names):
        scene.text(x + (k + 0.5) * step, bottom + 14, name, role="muted")
