"""The live house: one encoder layer with all its numbers, or the part of a chapter."""

from typing import Any

from chapters import chapter_number, chapter_of
from figures.live_house.numbers import DATA, IT, WORDS, numbers
from figures.live_house.sheet import Sheet
from figures.view import View
from mha import laws, zoo

LAYOUTS = "wide", "narrow"
SHARED = "words", "features", "follow", "stages", "matrices", "input"
OPTIONS = {"given": [], "walk": False, "break": False, "goal": None}


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
    plan, alt = DATA["parts"][part], alt_of(part)
    sheets = {layout: Sheet(part, layout) for layout in LAYOUTS}
    data = {name: DATA[name] for name in SHARED}
    data |= {name: plan.get(name, usual) for name, usual in OPTIONS.items()}
    data |= {
        "part": part, "task": plan["task"], "laws": asked(plan.get("laws", [])),
        "bugs": [bug | facts(bug["id"]) for bug in DATA["bugs"]],
        "places": {layout: sheet.places() for layout, sheet in sheets.items()},
        "stills": {layout: sheet.svg(alt) for layout, sheet in sheets.items()},
    }  # fmt: skip
    return View(__file__, data, lambda: sheets["wide"].picture(alt))


def still(part: str, layout: str = "wide") -> str:
    """Return the still picture of a part as SVG."""
    return Sheet(part, layout).svg(alt_of(part))


def alt_of(part: str) -> str:
    """Return what the still picture of a part shows."""
    row = numbers()["A"][0][IT]
    found = (
        f"“{WORDS[IT]}” attends to {WORDS[row.argmax()]} with weight {row.max():.2f}"
    )
    return DATA["parts"][part]["alt"].format(found=found)


def asked(slugs: list[str]) -> list[dict[str, Any]]:
    """Return the laws of a part, each with its name and the chapter that earns it."""
    return [
        {"id": slug, "name": getattr(laws, slug).name,
         "chapter": chapter_number(chapter_of(slug))}
        for slug in slugs
    ]  # fmt: skip


def facts(bug: str) -> dict[str, str]:
    """Return what the zoo knows of a bug: what is wrong, and where it was seen."""
    member = getattr(zoo, bug, None)
    return {"wrong": member.wrong, "seen": member.seen} if member else {}
