"""The pictures and the numbers of the front page.

Everything here is computed by the package or stored in ``book/_data`` with its script.
The words of the page are in ``book/index.md``, which names what is returned here.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from figures import finding
from figures.live_encoder import on_a_page
from figures.meaning import real
from figures.scene import paint
from figures.ten import LAWS, rows
from mha import laws, zoo

STORE = Path(__file__).parents[1] / "_data" / "learned.json"
A, B = "right", "merge_without_transpose"
ALPHABET = "abcdefghij"


@cache
def hook() -> dict[str, Any]:
    """Return what the layers of chapter 12 have learned."""
    return json.loads(STORE.read_text(encoding="utf-8"))


SAYS = {
    "A": "Layer A, weights of four heads. In each map the dark cells run along the "
    "anti-diagonal: the first row attends to the last letter, the last row to the "
    "first.",
    "B": "Layer B, weights of four heads. In each map the dark cells form a staircase "
    "of three steps, each four rows high, in three columns of its own.",
}
PILES = {"A": "four diagonals in a pile", "B": "the 48 rows make one long diagonal"}


def _cells(letters: str) -> str:
    """Return a map of weights, rows of twelve letters each, one path per shade."""
    return "".join(
        f'<path d="{path}" fill="{paint("weight")}" fill-opacity="{shade / 15:.2g}" '
        'shape-rendering="crispEdges"/>'
        for shade in range(1, 16)
        if (path := "".join(
            f"M{k % 12} {k // 12}h1v1h-1z"
            for k, letter in enumerate(letters)
            if letter == f"{shade:x}"
        ))
    )  # fmt: skip


def _figure(letter: str, size: str, says: str, inside: str) -> str:
    """Return the maps of a layer below its letter."""
    return (
        f'<figure><figcaption>Layer {letter}</figcaption><svg viewBox="-1 -1 {size}" '
        f'role="img" aria-label="{says}" fill="none" stroke="{paint("ink")}" '
        f'stroke-width="0">{inside}</svg></figure>'
    )


def layers() -> str:
    """Return the maps of the four heads of both layers, as squares."""
    found = []
    for letter, name in (("A", A), ("B", B)):
        heads = "".join(
            f'<g transform="translate({13 * (r % 2)} {13 * (r // 2)})">'
            f'<rect width="12" height="12" stroke-width="0.1"/>'
            f"{_cells(M)}</g>"
            for r, M in enumerate(hook()[name]["maps"])
        )
        found.append(_figure(letter, "27 27", SAYS[letter], heads))
    return f'<div class="layers">{"".join(found)}</div>'


def piles() -> str:
    """Return the maps of each layer one below the other."""
    found = []
    for letter, name in (("A", A), ("B", B)):
        tall = "".join(hook()[name]["maps"])
        seams = "".join(f"M0 {12 * r}h12" for r in range(5))
        lines = f'<path d="{seams}" stroke-width="0.1"/>'
        inside = f'<g transform="scale(4 1)">{_cells(tall)}{lines}</g>'
        found.append(_figure(letter, "50 50", PILES[letter], inside))
    return f'<div class="layers">{"".join(found)}</div>'


def letters(tokens: Iterable[int], expected: Sequence[int] | None = None) -> str:
    """Return tokens as letters, with wrong ones marked.

    >>> letters([0, 1], expected=[0, 2])
    'a<b>b</b>'
    """
    wanted = tokens if expected is None else expected
    pairs = zip((ALPHABET[t] for t in tokens), tokens, wanted, strict=True)
    return "".join(name if t == e else f"<b>{name}</b>" for name, t, e in pairs)


LAW = laws.future_leaves_past_alone


def _row(values: Iterable[float]) -> str:
    """Return numbers as they are printed."""
    return ", ".join(f"{round(float(x), 2):g}" for x in values).replace("-", "−")


@cache
def facts() -> dict[str, str]:
    """Return every number and picture that the words of the page name.

    >>> [facts()[name] for name in ("accuracy", "repaired")]
    ['1.000', '0.224']
    """
    right, wrong = hook()[A], hook()[B]
    found = LAW.check(zoo.merge_without_transpose)
    repaired, answer = wrong["answer_repaired"], wrong["answer"]
    if right["accuracy"] != wrong["accuracy"]:
        raise ValueError("the page says that A and B are equally good")
    correct, *others = finding.rows()
    padded = [f"{row.padded:.0f}" for row in others]
    alone = [row.alone for row in others]
    return {
        "padded": " to ".join(sorted({min(padded), max(padded)})),
        "padded_right": f"{correct.padded:.0f}",
        "alone_right": f"{correct.alone:.0f}",
        "alone_least": f"{min(alone):.0f}",
        "alone_most": f"{max(alone):.0f}",
        "encoder": on_a_page("part"),
        "real": real().svg,
        "layers": layers(),
        "piles": piles(),
        "input": letters(wrong["example"]),
        "after": letters(repaired, answer),
        "accuracy": f"{wrong['accuracy']:.3f}",
        "low": f"{max(right['loss'], wrong['loss']):.3f}",
        "repaired": f"{wrong['repaired']:.3f}",
        "good": str(sum(a == b for a, b in zip(repaired, answer, strict=True))),
        "length": str(len(wrong["example"])),
        "expected": _row(found.expected[0]),
        "got": _row(found.got[0]),
        "laws": str(len(LAWS)),
        "broken": str(next(len(row.broken) for row in rows() if row.name == B)),
    }
