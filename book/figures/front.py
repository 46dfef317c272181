"""The pictures and the numbers of the front page.

Everything here is computed by the package or stored in ``book/_data`` with its script.
The words of the page are in ``book/index.md``, which names what is returned here.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from figures.house import IT, WORDS, drawing, numbers
from figures.scene import Scene
from figures.ten import alt as ten_alt
from figures.ten import rows as ten_rows
from figures.ten import ten, worst
from figures.thumbs import thumb
from mha import laws, zoo
from mha.plot.palette import paint

STORE = Path(__file__).parents[1] / "_data" / "hook.json"
A, B, OTHER = "right", "merge_without_transpose", "softmax_over_queries"
ALPHABET = "abcdefghij"
SENTENCE = (  # where the middle of each word is
    ("The", 26), ("dog", 76), ("ate", 124), ("the", 166), ("food", 216),
    ("because", 288), ("it", 352), ("was", 395), ("hungry.", 460),
)  # fmt: skip
HALF = 9.2 / 2  # of a letter's width
LINE = 122  # where the arcs end


@cache
def hook() -> dict[str, Any]:
    """Return what the layers of the hook have learned."""
    return json.loads(STORE.read_text(encoding="utf-8"))


# ------------------------------------------------------------------- the sentence


def sentence() -> str:
    """Return the sentence, with arcs from each of its four words."""
    weights, places = numbers()["A"][0], dict(zip(WORDS, _places(), strict=True))
    looks = "".join(
        f'<g class="look" data-of="{word}"{"" if word == WORDS[IT] else " hidden"}>'
        f"{_arcs(word, row, places)}</g>"
        for word, row in zip(WORDS, weights, strict=True)
    )
    words = "".join(_word(word, x) for word, x in SENTENCE)
    return (
        '<svg class="arcs" viewBox="0 0 506 160" role="img" '
        f'aria-label="{escape(_aloud(IT))}">{looks}{words}</svg>'
    )


def _places() -> list[int]:
    """Return where the four words stand in the sentence."""
    known = {word.strip("."): x for word, x in SENTENCE}
    return [known[word] for word in WORDS]


def _arcs(word: str, row: np.ndarray, places: dict[str, int]) -> str:
    """Return the arcs of one word, the larger the weight the wider."""
    lines, labels, start = [], [], places[word]
    for (other, end), weight in zip(places.items(), row, strict=True):
        if other == word:
            left, right = f"{start - 7} {LINE}", f"{start + 7} {LINE}"
            path = f"M{left}C{start - 24} 92 {start + 24} 92 {right}"
            x, y, least = start, 92.0, 0.3
        else:
            high = 26 + abs(end - start) * 0.33
            top = f"{LINE - 1.25 * high:.0f}"
            path = f"M{start} {LINE}C{start} {top} {end} {top} {end} {LINE}"
            x, y, least = (start + end) / 2, LINE - 0.94 * high, 0.045
            y -= max(1, 7.5 * weight) + 5
        lines.append(
            f'<path d="{path}" fill="none" stroke="{paint("weight")}" '
            f'stroke-width="{max(0.6, 15 * weight):.1f}" '
            f'stroke-opacity="{0.25 + 0.75 * weight:.2f}"/>'
        )
        if weight >= least:
            labels.append(f'<text x="{x:.0f}" y="{y:.0f}">{weight:.2f}</text>')
    return "".join(lines + labels)


def _word(word: str, x: int) -> str:
    """Return one word; the four that attend can be chosen."""
    bare = word.strip(".")
    text = f'<text x="{x}" y="147">{word}</text>'
    if bare not in WORDS:
        return text
    left, wide = x - 10 - HALF * len(word), 20 + 2 * HALF * len(word)
    box = f'<rect x="{left:.1f}" y="124" width="{wide:.1f}" height="32" rx="7"/>'
    return f'<g class="word" data-word="{bare}">{box}{text}</g>'


def sayings() -> dict[str, str]:
    """Return what is said below the sentence about each of the four words.

    Examples
    --------
    >>> sayings()["hungry"][:57]
    'The word “hungry” gives 0.89 of its attention to “dog”, s'
    """
    weights, outputs = numbers()["A"][0], numbers()["H"][0]
    return {
        word: _saying(word, row, output)
        for word, row, output in zip(WORDS, weights, outputs, strict=True)
    }


def _saying(word: str, row: np.ndarray, output: np.ndarray) -> str:
    """Return where a word attends to most, and what it receives by that."""
    most = WORDS[int(np.argmax(row))]
    target = "itself" if most == word else f"“{most}”"
    animal, edible = output
    return (
        f"The word “{word}” gives {row.max():.2f} of its attention to {target}, so it "
        f"receives mostly “animal”: {animal:.2f}, against {edible:.2f} of “edible”."
    )


def _aloud(place: int) -> str:
    """Return all the weights of one word."""
    row = numbers()["A"][0][place]
    given = [f"{w:.2f} to {word}" for word, w in zip(WORDS, row, strict=True)]
    return f"The word {WORDS[place]} gives of its attention {', '.join(given)}."


# ------------------------------------------------------------------ the two layers


def layer(letter: str) -> str:
    """Return the card of a layer: its accuracy, its maps, what it writes."""
    facts = hook()[{"A": A, "B": B}[letter]]
    told = "✓ A is correct" if letter == "A" else "✗ B is broken"
    return (
        f'<figure class="layer" data-layer="{letter}"><div class="layer-top">'
        f'<h3>Layer {letter}</h3><span class="score">{facts["accuracy"]:.3f}</span>'
        f'</div><div class="bar" aria-hidden="true"><span></span></div>'
        f"{_maps(facts['maps'], MAPS[letter])}"
        f'<div class="io" aria-hidden="true"><div><span>in</span>'
        f'{letters(facts["example"])}</div><div class="now"><span>out</span>'
        f"{letters(facts['answer'])}</div></div>"
        f'<button type="button" class="choose pst-js-only">{letter} is broken</button>'
        f'<p class="told">{told}</p></figure>'
    )


MAPS = {
    "A": "Layer A, weights of four heads. In each map the dark cells run along the "
    "anti-diagonal: the first row attends to the last letter, the last row to the "
    "first.",
    "B": "Layer B, weights of four heads. In each map the dark cells form a staircase "
    "of three steps, each four rows high, in three columns of its own.",
}


def _maps(maps: Sequence[Sequence[Sequence[float]]], says: str) -> str:
    """Return four maps; the style sheet moves them from a square to a pile."""
    heads = "".join(
        f'<g class="head" style="--x:{104 * (r % 2)}px;--y:{104 * (r // 2)}px;'
        f'--pile:{50 * r}px"><rect class="frame" width="12" height="12" '
        f'vector-effect="non-scaling-stroke"/>{_cells(A)}</g>'
        for r, A in enumerate(maps)
    )
    return (
        f'<svg class="maps" viewBox="-2 -2 208 208" role="img" '
        f'aria-label="{escape(says)}">{heads}</svg>'
    )


def _cells(A: Sequence[Sequence[float]], size: float = 1) -> str:
    """Return a map of weights, one path per shade."""
    shades: dict[int, str] = {}
    for (i, j), weight in np.ndenumerate(np.array(A)):
        if shade := round(16 * float(weight)):
            tile = f"M{j * size:g} {i * size:g}h{size:g}v{size:g}h-{size:g}z"
            shades[shade] = shades.get(shade, "") + tile
    return "".join(
        f'<path d="{path}" fill="{paint("weight")}" fill-opacity="{shade / 16:.2g}" '
        'shape-rendering="crispEdges"/>'
        for shade, path in sorted(shades.items())
    )


def piles() -> str:
    """Return the maps on top of each other, for readers without scripts."""
    says = {
        "A": "four diagonals on top of each other",
        "B": "the 48 rows make one long diagonal",
    }
    found = []
    for letter, name in (("A", A), ("B", B)):
        tall = np.reshape(hook()[name]["maps"], (48, 12))
        seams = "".join(f"M0 {12 * r}h48" for r in range(5))
        cells = "".join(_cells(tall)).replace("<path ", '<path transform="scale(4 1)" ')
        found.append(
            '<figure><svg viewBox="-1 -1 50 50" role="img" '
            f'aria-label="Layer {letter}: {says[letter]}">{cells}'
            f'<path d="{seams}" fill="none" stroke="{paint("ink")}" '
            'stroke-width="0.4"/></svg>'
            f"<figcaption>{letter}</figcaption></figure>"
        )
    return f'<div class="piles">{"".join(found)}</div>'


def letters(tokens: Iterable[int], expected: Sequence[int] | None = None) -> str:
    """Return tokens as letters, with wrong ones marked.

    Examples
    --------
    >>> letters([0, 1], expected=[0, 2])
    '<i>a</i><i class="bad">b</i>'
    """
    bad = ' class="bad"'
    return "".join(
        f"<i{bad if expected and expected[k] != t else ''}>{ALPHABET[t]}</i>"
        for k, t in enumerate(tokens)
    )


def after() -> str:
    """Return one sequence, and what B writes for it once its code is correct."""
    facts = hook()[B]
    wrong = letters(facts["answer_repaired"], facts["answer"])
    return (
        f'<div class="io after"><div><span>in</span>{letters(facts["example"])}</div>'
        f"<div><span>out</span>{wrong}</div></div>"
    )


def loss() -> str:
    """Return what training shows: two curves that end at the same height."""
    scene, ends = Scene(420, 112), {}

    def at(step: int, value: float) -> tuple[float, float]:
        return 36 + 368 * step / (steps - 1), 92 - 76 * value / 2.5

    steps = len(hook()[A]["loss"])
    scene.shape([(36, 92), (404, 92)], stroke="rest", width=1)
    for letter, name, role in (("A", A, "ink"), ("B", B, "output")):
        values = np.array(hook()[name]["loss"])
        smooth = np.convolve(np.pad(values, 2, "edge"), np.ones(5) / 5, "valid")
        scene.shape(
            [at(t, smooth[t]) for t in [*range(0, steps, 3), steps - 1]],
            stroke=role, width=2,
        )  # fmt: skip
        step = int(np.argmax(smooth < 1.2))
        x, y = at(step, smooth[step])
        place = (x - 12, y + 14) if letter == "A" else (x + 12, y - 2)
        scene.text(*place, letter, size=14, bold=True, role=role)
        ends[letter] = f"{values[-1]:.4f}"
        says = f"{letter} ends at {ends[letter]}"
        y = 60 if letter == "A" else 79
        scene.text(404, y, says, size=13.5, anchor="end", role=role)
    quiet = {"size": 13.5, "role": "muted", "anchor": "end"}
    scene.text(31, 22, "loss", **quiet)
    scene.text(404, 109, f"{steps} steps", **quiet)
    return scene.svg(
        f"Two loss curves fall together. That of A ends at {ends['A']}, that of B at "
        f"{ends['B']}."
    )


# ------------------------------------------------------------------------- the law

LAW = laws.future_leaves_past_alone


@cache
def finding() -> laws.Finding:
    """Return what the law finds in the code of B."""
    return LAW.check(zoo.merge_without_transpose)


def _row(values: Iterable[float]) -> list[str]:
    """Return numbers as they are printed."""
    return [f"{round(float(x), 2):g}" for x in values]


def law() -> str:
    """Return the smallest input on which B breaks the law."""
    found, scene = finding(), Scene(400, 178)
    X, later = found.example["X"], found.example["later"]
    quiet = {"size": 13, "role": "muted", "anchor": "start"}
    scene.text(66, 16, "input", **quiet)
    scene.text(216, 16, "output for word 1", **quiet)
    expected, got = _row(found.expected[0]), _row(found.got[0])
    for y, second, output in ((28, X[1], expected), (108, later[0], got)):
        for k, values in enumerate((X[0], second)):
            middle = y + 30 * k + 19.5
            scene.text(56, middle, f"word {k + 1}", size=13, anchor="end")
            _number_row(scene, 66, y + 30 * k, _row(values), "ink")
        scene.arrow([(134, y + 15), (208, y + 15)])
        wrong = [a != b for a, b in zip(output, expected, strict=True)]
        _number_row(scene, 216, y, output, "output", wrong)
    if got != expected:
        look = {"role": "wrong", "bold": True}
        scene.text(352, 129, "✗", size=17, **look)
        scene.text(140, 157.5, "← changed", size=13, anchor="start", **look)
    return scene.svg(
        f"Word 2 changes from {', '.join(_row(X[1]))} to {', '.join(_row(later[0]))}. "
        f"The output for word 1 changes from {', '.join(expected)} to {', '.join(got)}."
    )


def _number_row(
    scene: Scene, x: float, y: float, values: Sequence[str], role: str,
    wrong: Sequence[bool] = (),
) -> None:  # fmt: skip
    """Draw a row of numbers, wrong ones in red."""
    side = 30
    wrong = wrong or [False] * len(values)
    for j, (value, bad) in enumerate(zip(values, wrong, strict=True)):
        look = "wrong" if bad else role
        place = x + side * j + 1.2, y + 1.2, side - 2.4, side - 2.4
        scene.box(*place, fill=look, alpha=0.18 if bad else 0.1)
        ink = "wrong" if bad else "ink"
        middle = x + side * (j + 0.5), y + side / 2 + 4.7
        words = value.removeprefix("0") or "0"  # a cell has room for three letters
        scene.text(*middle, words, size=13, role=ink, bold=bad)
    edge = "wrong" if any(wrong) else role
    scene.box(x, y, side * len(values), side, radius=4, stroke=edge)


def other() -> str:
    """Return a map that looks like those of A, of a layer that breaks laws."""
    return (
        '<svg class="other" viewBox="-0.3 -0.3 12.6 12.6" role="img" '
        'aria-label="A map with a clean anti-diagonal">'
        f"{_cells(hook()[OTHER]['maps'][0])}"
        f'<path d="M0 0h12v12h-12z" fill="none" stroke="{paint("ink")}" '
        'stroke-width="0.15" stroke-opacity="0.4"/></svg>'
    )


# ------------------------------------------------------------- emblem, house, tiles


def emblem() -> str:
    """Return the emblem, for a column of text and for a phone."""
    wide, narrow = (ten(layout).svg(ten_alt()) for layout in ("wide", "narrow"))
    return f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


def house() -> str:
    """Return the house picture for the tile of the overview, and a small one."""
    scene, says = drawing("overview", "wide")
    scene.key = ""  # narrow.py has nothing to add to it
    small = thumb("overview")
    return f'<div class="wide">{scene.svg(says)}</div><div class="narrow">{small}</div>'


def tile(number: int, term: str, question: str, slug: str, address: str) -> str:
    """Return the tile of a chapter: its picture, its term, its question."""
    picture = thumb(slug)
    asked = f'<span class="tile-q">{question}</span>' if question else ""
    return (
        f'<a href="{escape(address)}"><span class="picture" aria-hidden="true">'
        f'{picture}</span><span class="tile-text"><span class="tile-term">'
        f"<b>{number}</b> {term}</span>{asked}</span></a>"
    )


def stairs(parts: Iterable[tuple[str, Sequence[tuple[int, str]]]]) -> str:
    """Return the parts of the book as flights of stairs; each tile has its number."""
    found = []
    for name, tiles in parts:
        steps = "".join(
            f'<li class="tile" style="--i:{k}">{tile}</li>'
            for k, (_, tile) in enumerate(tiles)
        )
        first = tiles[0][0]
        found.append(f'<h3 class="part">{name}</h3>')
        found.append(f'<ol class="flight" start="{first}">{steps}</ol>')
    return "".join(found)


# --------------------------------------------------------------------- the numbers


@cache
def facts() -> dict[str, str]:
    """Return every number and picture that the words of the page name.

    Examples
    --------
    >>> [facts()[name] for name in ("accuracy", "repaired", "broken", "laws")]
    ['1.000', '0.224', '9', '22']
    """
    known, found = hook(), finding()
    right, wrong = known[A], known[B]
    pairs = zip(wrong["answer_repaired"], wrong["answer"], strict=True)
    reports = {name: _broken(name) for name in (A, B, OTHER)}
    if right["accuracy"] != wrong["accuracy"]:
        raise ValueError("the page says that A and B are equally good")
    return {
        "sentence": sentence(),
        "saying": sayings()[WORDS[IT]],
        "layer_a": layer("A"),
        "layer_b": layer("B"),
        "loss": loss(),
        "piles": piles(),
        "after": after(),
        "law": law(),
        "other": other(),
        "emblem": emblem(),
        "accuracy": f"{wrong['accuracy']:.3f}",
        "low": f"{max(right['loss'][-1], wrong['loss'][-1]):.3f}",
        "repaired": f"{wrong['repaired']:.3f}",
        "good": str(sum(a == b for a, b in pairs)),
        "length": str(len(wrong["example"])),
        "expected": ", ".join(_row(found.expected[0])),
        "got": ", ".join(_row(found.got[0])),
        "laws": str(len(laws.ATTENTION)),
        "broken": str(reports[B]),
        "broken_other": str(reports[OTHER]),
        "worst": worst(),
        "data": data(),
    }


def _broken(name: str) -> int:
    """Return how many laws a layer of the hook breaks."""
    return next(len(row.broken) for row in ten_rows() if row.name == name)


def data() -> str:
    """Return what the script of the page needs."""
    wrong = hook()[B]
    table = {
        "says": sayings(),
        "before": letters(wrong["answer"]),
        "after": letters(wrong["answer_repaired"], wrong["answer"]),
        "accuracy": [wrong["accuracy"], round(wrong["repaired"], 3)],
    }
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":"))
    return f'<script type="application/json" id="front-data">{text}</script>'.replace(
        "</i>", "<\\/i>"
    )
