"""A sheet of the house: where its matrices are, the arrows between them, the numbers.

What is drawn here is the still picture. The script takes the same drawing and the same
places, removes the numbers and puts its own cells there, so both always agree. All
lengths are in units of the drawing, from the upper left corner.
"""

import re
from collections.abc import Iterator
from html import escape
from itertools import pairwise

import numpy as np

from figures.live_house.numbers import (
    DATA,
    HEADS,
    IT,
    WORDS,
    digits,
    matrices,
    numbers,
    short,
)
from figures.picture import Picture, finished
from figures.scene import SANS, Scene, paint

Flow = tuple[str, str]
LOOK = re.compile(r'font-size="([\d.]+)"([^>]*) fill="([^"]+)"')
LEFT, RIGHT, RAIL = 46, 14, 7  # room for words, for arrows, and for one way down
LABEL, NAMES, PILL, CAPTION = 20, 39, 28, 36  # heights above and below a matrix
GAP, SEAM, BEHIND, LANE, BEND = 62, 5, 5, 10, 6
SIZE, SMALL = 11.5, 11.3  # of type: on a phone no text has less than 11 pixels


class Sheet:
    """One layout of a part of the house, drawn.

    Parameters
    ----------
    part, layout : str
        Which part of the house, and for which width, "wide" or "narrow".

    Attributes
    ----------
    at : dict {name: (x, y)}
        The upper left corner of each matrix.
    bands : list of (x, y, width)
        On each floor the row of the first word; a band lies behind the word to follow.
    """

    def __init__(self, part: str, layout: str) -> None:
        plan = DATA["parts"][part][layout]
        self.width, (self.w, self.h) = plan["width"], plan["cell"]
        self.specs, self.numbers = matrices(part), numbers(part)
        for name, own in plan.get("matrices", {}).items():
            self.specs[name] |= own
        self.below = CAPTION if plan.get("shapes", True) else CAPTION - 14
        bare = plan.get("bare", DATA["parts"][part].get("bare", ()))
        if DATA["parts"][part].get("alone"):  # then no second head is behind the first
            self.specs = {name: s | {"heads": False} for name, s in self.specs.items()}
        self.above = {  # the right factor of each product, unless the part omits it
            name: spec["above"]
            for name, spec in self.specs.items()
            if "above" in spec and name not in bare
        }
        self.floors: list[list[str]] = plan["floors"]
        self.floor = {}  # of each matrix
        for k, floor in enumerate(self.floors):
            for name in floor:
                self.floor |= {name: k, self.above.get(name, name): k}
        self.extra = DATA["parts"][part].get("flows", [])
        self.flows = list(dict.fromkeys(self._flows()))
        self.rails = [f for f in self.flows if self.floor[f[1]] > self.floor[f[0]] + 1]
        self.x = {name: x for floor in self.floors for name, x in self._across(floor)}
        self.lanes = self._lanes()
        self.at, self.bands = {}, []
        self.height = self._downwards()
        scenes = (Scene(self.width, self.height) for _ in range(4))
        # behind the numbers, these, and what is said while scores are (not) divided
        self.back, self.front, self.divided, self.undivided = scenes
        self._draw()

    def _size(self, name: str) -> tuple[float, float]:
        rows, columns = self.numbers[name].shape[-2:]
        return self.w * columns, self.h * rows

    def _flows(self) -> Iterator[Flow]:
        """Yield which matrix goes into which: neighbours among those that are here."""
        for chain in DATA["chains"]:
            yield from pairwise(name for name in chain if name in self.floor)
        yield from map(tuple, self.extra)

    def _is_straight(self, flow: Flow) -> bool:
        """Return whether an arrow leads from one matrix to its neighbour."""
        a, b = flow
        floor = map(list, pairwise(self.floors[self.floor[b]]))
        return (a != "X" or b == "Y") and [a, b] in floor

    def _across(self, floor: list[str]) -> Iterator[tuple[str, float]]:
        """Yield where the matrices of a floor begin, and those above them."""
        wide = [self._size(name)[0] for name in floor]
        room = self.width - LEFT - RIGHT - RAIL * len(self.rails) - sum(wide)
        gap, x = min(GAP, room / max(len(floor) - 1, 1)), LEFT
        for name, w in zip(floor, wide, strict=True):
            yield name, x
            if over := self.above.get(name):
                yield over, x + (w - self._size(over)[0]) / 2
            x += w + gap

    def _edge(self, name: str) -> float:
        behind = BEHIND if self.specs[name].get("heads") else 0
        return self.x[name] + self._size(name)[0] + behind

    def _middle(self, name: str) -> float:
        return self.x[name] + self._size(name)[0] / 2

    def _rail(self, flow: Flow) -> float:
        return self.width - 4 - RAIL * self.rails.index(flow)

    def _lanes(self) -> list[dict[Flow, int]]:
        """Return for each floor the ways above it, and which lane each of them has."""
        taken: list[list[tuple[float, float, str]]] = [[] for _ in self.floors]
        lanes: list[dict[Flow, int]] = [{} for _ in self.floors]
        for flow in self.flows:
            a, b = flow
            if self._is_straight(flow):
                continue
            turns = [self._edge(a) + BEND, self._middle(b)]
            if flow in self.rails:
                turns.insert(1, self._rail(flow))
                self._take(taken, lanes, self.floor[a] + 1, flow, turns[:2])
            self._take(taken, lanes, self.floor[b], flow, turns[-2:])
        return lanes

    def _take(self, taken, lanes, floor: int, flow: Flow, ends: list[float]) -> None:
        """Give a way the first lane that no other matrix uses there."""
        low, high = min(ends) - 8, max(ends) + 8
        lane = 0
        while any(
            lane == k and name != flow[0] and low < end and start < high
            for k, start, end, name in taken[floor]
        ):
            lane += 1
        taken[floor].append((lane, low, high, flow[0]))
        lanes[floor][flow] = lane

    def _downwards(self) -> float:
        """Place all matrices; return the height of the sheet."""
        y = 2.0
        self.channels = []
        for floor, lanes in zip(self.floors, self.lanes, strict=True):
            self.channels.append(y + 5)
            y += LANE * (max(lanes.values(), default=-1) + 1) + 8
            y += max(self._head(name) for name in floor)
            for name in floor:
                self.at[name] = self.x[name], y
                if over := self.above.get(name):
                    self.at[over] = self.x[over], y - SEAM - self._size(over)[1]
            self.bands.append((0, y, self.width - RAIL * len(self.rails)))
            y += self.h * len(WORDS) + self.below
        return y

    def _head(self, name: str) -> float:
        """Return how much room a matrix needs above it."""
        over, spec = self.above.get(name), self.specs[name]
        names = NAMES if (self.specs[over] if over else spec).get("top") else 0
        if over:
            return SEAM + self._size(over)[1] + names + LABEL
        return names + (PILL if "step" in spec else BEHIND)

    def _draw(self) -> None:
        for x, y, w in self.bands:
            place = x, y + IT * self.h, w, self.h
            self.front.box(*place, radius=6, fill="ink", alpha=0.07)
            self._words(LEFT, y)
        for name in dict.fromkeys(a for a, _ in self.flows):
            self._draw_ways(name)
        for floor in self.floors:
            for name in floor:
                self._draw_head(name)
                self._draw_matrix(name)
                self._caption(name)

    def _words(self, x: float, y: float) -> None:
        """Write the words to the left of a matrix."""
        for i, word in enumerate(WORDS):
            look = {"size": SIZE, "anchor": "end", "bold": i == IT}
            self.back.text(x - 7, y + (i + 0.5) * self.h + 4, word, **look)

    def _heads(self, x: float, y: float) -> None:
        """Say to the left of W_O which of its rows belong to which head."""
        high = self._size("W_O")[1] / HEADS
        for r in range(HEADS):
            top, look = y + r * high, {"size": SMALL, "role": "output"}
            ends = [(x - 5, top + 2), (x - 5, top + high - 2)]
            self.back.shape(ends, stroke="output", width=2)
            middle = x - 10, top + high / 2
            self.back.text(*middle, f"head {r + 1}", turn=-90, **look)
        line = [(x - 9, y + high), (x + self._size("W_O")[0], y + high)]
        self.back.shape(line, stroke="output", width=1.6)

    def _draw_ways(self, name: str) -> None:
        """Draw all that leads from one matrix to others, over what is drawn already."""
        spec, y = self.specs[name], self.at[name][1] + (IT + 0.5) * self.h
        twin = 4 if spec.get("heads") else 0
        ways = []
        for flow in self.flows:
            if flow[0] == name:
                end = [(self.x[flow[1]] - 2, y)] if self._is_straight(flow) else None
                ways.append([(self._edge(name) + 1, y), *(end or self._way(flow, y))])
        self.back.shape(*ways, stroke="paper", width=twin + 6, radius=6)
        for way in ways:
            self.back.arrow(way, spec["role"], width=1.5, twin=twin, radius=6)

    def _way(self, flow: Flow, y: float) -> Iterator[tuple[float, float]]:
        """Yield the corners of a way through the lanes, and its end."""
        a, b = flow
        x, end = self._edge(a) + BEND, self._middle(b)
        yield x, y
        if flow in self.rails:
            lane = self._lane(self.floor[a] + 1, flow)
            x, before = self._rail(flow), x
            yield from ((before, lane), (x, lane))
        lane = self._lane(self.floor[b], flow)
        yield from ((x, lane), (end, lane))
        floor = self.floors[self.floor[b]]
        column = next(c for c in floor if b in (c, self.above.get(c)))
        yield end, self.at[column][1] - self._head(column) - 1

    def _lane(self, floor: int, flow: Flow) -> float:
        return self.channels[floor] + LANE * self.lanes[floor][flow]

    def _draw_head(self, name: str) -> None:
        """Draw what stands above a matrix: names, a step, or what it is times."""
        over, spec = self.above.get(name), self.specs[name]
        y = self.at[name][1]
        if over:
            self._draw_matrix(over)
            spec, y = self.specs[over], self.at[over][1]
        if over == "mask":  # its rows are not those of the words on the left
            self._words(self.x[over], y)
        if over == "W_O":
            self._heads(self.x[over], y)
        if "top" in spec:
            for j, word in enumerate(DATA[spec["top"]]):
                x = self.at[over or name][0] + (j + 0.55) * self.w
                look = {"size": SMALL, "role": "muted", "anchor": "start"}
                self.back.text(x, y - 7, word, turn=-55, **look)
            y -= NAMES
        if over:
            look = {"size": SIZE, "role": spec["role"], "bold": True, "math": True}
            self.back.text(self._middle(over), y - 10, spec["label"], **look)
        elif "step" in spec:
            self._pill(name, y)

    def _pill(self, name: str, y: float) -> None:
        """Draw a step on the way to the matrix below it."""
        words = self.specs[name]["step"]
        scene = self.divided if name == "T" else self.back
        w = 14 + 6 * len(words.replace("*", "").replace("_", ""))
        x = self._middle(name)
        scene.arrow([(x, y - 12), (x, y - 2)], width=1.5)
        scene.plate(x - w / 2, y - PILL, w, 20, 10, "ink")
        scene.text(x, y - PILL + 14, words, size=SMALL, bold=True, math=True)

    def _draw_matrix(self, name: str) -> None:
        spec, (x, y), (wide, high) = self.specs[name], self.at[name], self._size(name)
        M, role = self.numbers[name], spec["role"]
        M = M[0] if M.ndim == 3 else M
        if spec.get("heads"):
            self._draw_sheet_behind(x, y, wide, high, role)
        self.back.box(x, y, wide, high, radius=4, fill="paper")
        places, top, cells = digits(M, self.w), np.abs(M).max() or 1, []
        for (i, j), value in np.ndenumerate(M):
            place = x + j * self.w + 1, y + i * self.h + 1
            if name == "mask":
                size = self.w - 2, self.h - 2
                self.front.box(*place, *size, stroke="rest", width=1)
                continue
            alpha = value if role == "weight" else 0.06 + 0.26 * abs(value) / top
            number = short(value, places, role == "weight")
            cells.append((*place, number, max(round(float(alpha), 3), 0.035)))
        self.front.cells(cells, self.w - 2, self.h - 2, role, size=SIZE)
        self.front.box(x, y, wide, high, radius=4, stroke=role)

    def _draw_sheet_behind(
        self, x: float, y: float, w: float, h: float, role: str
    ) -> None:
        """Draw the second head, of which the edge shows behind the first."""
        d = BEHIND
        edge = [(x + d, y), (x + d, y - d), (x + w + d, y - d), (x + w + d, y + h - d)]
        sheet = [*edge, (x + w, y + h - d), (x + w, y)]
        self.back.shape(sheet, fill="paper", closed=True)
        self.back.shape(sheet, fill=role, alpha=0.2, closed=True)
        self.back.shape([*edge, (x + w, y + h - d)], stroke=role, width=1, radius=3)

    def _caption(self, name: str) -> None:
        spec, y = self.specs[name], self.at[name][1] + self.h * len(WORDS)
        # A long label begins with its matrix, so that no way beside it crosses it.
        half = 3.3 * len(spec["label"].replace("*", ""))
        x = max(self._middle(name), self.x[name] + half)
        look = {"size": SIZE, "role": spec["role"], "bold": True, "math": True}
        scene = self.divided if name == "T" else self.back
        scene.text(x, y + 14, spec["label"], **look)
        if name == "T":
            self.undivided.text(x, y + 14, "not divided", **look)
        if self.below == CAPTION and "shape" in spec:
            look = {"size": SMALL, "role": "muted", "math": True}
            self.back.text(x, y + 29, spec["shape"], **look)

    def svg(self, alt: str) -> str:
        """Return the sheet as SVG; what the script replaces is a group of its own."""
        parts = {
            "back": self.back, "divided": self.divided,
            "undivided": self.undivided, "first": self.front,
        }  # fmt: skip
        marks = ""
        for name, scene in parts.items():
            hidden = ' style="display:none"' * (name == "undivided")
            inside = "".join(mark.svg() for mark in scene.marks)
            marks += f'<g class="{name}"{hidden}>{inside}</g>'
        marks = LOOK.sub(r'style="font-size:\1px;fill:\3"\2', marks)  # beats the page
        return (
            '<svg class="mha-sheet" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 '
            f'{self.width:g} {self.height:g}" role="img" aria-label="{escape(alt)}" '
            f'style="display:block;margin:0 auto;max-width:{1.2 * self.width:.0f}px" '
            f'font-family="{escape(SANS)}" fill="{paint("ink")}">{marks}</svg>'
        )

    def picture(self, alt: str) -> Picture:
        """Return the sheet for paper, and for a notebook that runs no script."""
        scene = Scene(self.width, self.height)
        scene.marks = [*self.back.marks, *self.divided.marks, *self.front.marks]
        return finished(scene.figure(), alt, self.svg(alt))

    def places(self) -> dict[str, object]:
        """Return what the script needs to put its cells where the numbers are."""
        ends = [y + self.h * len(WORDS) + self.below for _, y, _ in self.bands]
        return {
            "width": self.width, "height": self.height, "ends": ends,
            "cell": (self.w, self.h), "at": self.at, "bands": self.bands,
        }  # fmt: skip
