"""The live house: one encoder layer with all its numbers, or the part of a chapter."""

import json
from typing import Any

from chapters import chapter_number, chapter_of
from figures.live_house.numbers import DATA, IT, WORDS, matrices, numbers
from figures.live_house.sheet import Sheet
from figures.view import live
from mha import laws, zoo
from mha.view import View

LAYOUTS = "wide", "narrow"
SHARED = "words", "features", "follow", "stages"
OPTIONS = {"given": [], "walk": False, "goal": None, "scale": True, "alone": False}


def house(part: str = "whole") -> View:
    """Show one encoder layer, or a part of it, in which every number explains itself.

    Its still picture has the numbers of the start, computed by `mha`.

    Four words go through a layer with two heads. Words are rows in every matrix, and a
    product has its left factor on its left and its right factor above it, so each
    number is where its row and its column cross. Any number can be changed.

    Parameters
    ----------
    part : str
        "whole", or a part that ``house.json`` names, such as "attention".

    Raises
    ------
    ValueError
        If there is no such part.

    >>> house("attention")
    View: One head, from X to its outputs H: “it” attends to dog with weight 0.57.
    """
    if part not in DATA["parts"]:
        raise ValueError(f"no part is called {part!r}; there are {[*DATA['parts']]}")
    plan, row = DATA["parts"][part], numbers(part)["A"][0][IT]
    best = WORDS[row.argmax()]
    found = f"“{WORDS[IT]}” attends to {best} with weight {row.max():.2f}"
    alt = plan["alt"].format(found=found)
    given = DATA["input"] | plan.get("input", {})
    sheets = {layout: Sheet(part, layout) for layout in LAYOUTS}
    data = {name: DATA[name] for name in SHARED}
    data |= {name: plan.get(name, usual) for name, usual in OPTIONS.items()}
    data |= {
        "part": part, "task": plan["task"], "laws": [*map(law, plan.get("laws", []))],
        "matrices": matrices(part), "input": json.dumps(given),  # a view rounds numbers
        "bugs": [*map(bug, plan.get("bugs", []))],
        "places": {layout: sheet.places() for layout, sheet in sheets.items()},
        "stills": {layout: sheet.svg(alt) for layout, sheet in sheets.items()},
    }  # fmt: skip
    return live(__file__, alt, data, lambda: sheets["wide"].picture(alt))


def law(name: str) -> dict[str, Any]:
    """Return a law with its sentence and the chapter that earns it."""
    chapter, sentence = chapter_number(chapter_of(name)), getattr(laws, name).sentence
    if name == "future_leaves_past_alone":  # whatever mask the reader draws
        sentence += ", when later words are hidden"
    return {"id": name, "name": sentence, "chapter": chapter}


def bug(slug: str) -> dict[str, Any]:
    """Return a bug with what the zoo knows: what is wrong, and where it was seen."""
    member = getattr(zoo, slug, None)
    seen = {"wrong": member.wrong, "seen": member.seen} if member else {}
    return {"id": slug} | seen | DATA["bugs"][slug]
