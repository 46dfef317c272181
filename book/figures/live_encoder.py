"""The live encoder: the model of chapter 13, which runs on the pages of the book.

What comes here is a picture and the script that brings the rest of it: the scripts, the
style sheet and the models in ``book/_static/live_encoder``, which `_data.live_encoder`
makes. In a notebook and on paper the picture stays.
"""

import base64
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import mha
from figures.picture import Picture
from figures.scene import Scene, picture
from figures.view import text
from mha.view import View

BOOK = Path(__file__).parents[1]
STORED = BOOK / "_data" / "live_encoder.json"
SCRIPT = BOOK / "_static" / "live_encoder" / "right.js"
PARTS = "whole", "part"
RIGHT = "right"
NAMES = {  # of the models, as chapter 13 says them
    RIGHT: "correct attention",
    "softmax_over_queries": "softmax over queries",
    "mask_ignored": "padding visible",
    "merge_without_transpose": "merge, no transpose",
    "mask_zero_score": "hidden scores 0",
    "split_without_transpose": "split, no transpose",
}
ENDINGS = ["s", "y", "ic", "al", "er", "ing", "ity", "ation", "ee"]
SHOWN = "photograph", "photography", "photographic"
COLUMN, LINE, BAR = 34, 92, 42  # points


def live_encoder(part: str = "whole") -> View:
    """Show the encoder of chapter 13, or the part that marks the stress of a word.

    >>> live_encoder("part").kind
    'encoder'
    """
    if part not in PARTS:
        raise ValueError(f"part must be one of {PARTS}, got {part!r}")
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    data = {"part": part, "words": stored["words"]}
    if part == "whole":
        models = {k: m | {"called": NAMES[k]} for k, m in stored["models"].items()}
        data |= {"tested": stored["tested"], "models": models}
        data |= {"endings": ENDINGS}
    still = drawn()
    data |= {"stills": {"wide": still.svg, "narrow": still.svg}}
    code = text(Path(__file__).with_suffix(".js"))
    return View(still.alt, data, drawn, kind="encoder", code=code)


def on_a_page(part: str) -> str:
    """Return the figure for a page that no notebook makes, with a drawing for an image.

    Pages of notebooks get theirs from _ext/portable.py.
    """
    view = live_encoder(part)
    html = re.sub("<img[^>]*>", lambda _: view.still.svg, view._repr_html_(), count=1)
    data = json.loads(view.data)
    del data["stills"]
    return html.replace(view.data, json.dumps(data, ensure_ascii=False))


@cache
def model() -> Any:
    """Return the model of the pages as `mha.encoder` takes it."""
    script = SCRIPT.read_text(encoding="utf-8")
    return unpacked(json.loads(script.partition(" = ")[2].removesuffix(";\n")))


def unpacked(x: Any) -> Any:
    """Return what `_data.live_encoder` has packed."""
    if isinstance(x, list):
        return [unpacked(part) for part in x]
    if not isinstance(x, dict):
        return x
    read = {name: base64.b64decode(x[name]) for name in x if isinstance(x[name], str)}
    if "exact" in read:
        return np.frombuffer(read["exact"], "<f4").astype(float)
    if "whole" in read:
        scales = np.frombuffer(read["scales"], "<f4").astype(float)
        integers = np.frombuffer(read["whole"], np.int8)
        return integers.reshape(len(scales), -1) * scales[:, None]
    return {name: unpacked(part) for name, part in x.items()}


def answer(word: str) -> tuple[Any, Any]:
    """Return how probable the model finds the stress on each letter, and all weights.

    >>> p, A = answer("photography")
    >>> "photography"[p.argmax()], len(A), A[0].shape
    ('o', 2, (4, 11, 11))
    """
    m = model()
    X = m["embed"][[ord(letter) - 96 for letter in word]] + m["positions"][: len(word)]
    Y, A = mha.encoder(
        X, m["layers"], m["n_heads"], norm_first=True, final_norm=m["final_norm"],
        return_weights=True,
    )  # fmt: skip
    w, b = m["score"]
    return mha.softmax(Y @ w + b), A


@cache
def drawn() -> Picture:
    """Return three words, with a bar above each letter."""
    scene = Scene(COLUMN * max(map(len, SHOWN)) + 8, LINE * len(SHOWN))
    said = []
    for k, word in enumerate(SHOWN):
        p, _ = answer(word)
        top, base = p.argmax(), LINE * k + BAR + 22
        said.append(word[:top] + word[top].upper() + word[top + 1 :])
        for i, letter in enumerate(word):
            x, role = 4 + COLUMN * (i + 0.5), "output" if i == top else "rest"
            h = max(1.5, BAR * p[i])
            scene.box(x - 9, base - h, 18, h, fill=role, radius=2)
            look = {"size": 20, "bold": True, "role": "output"} if i == top else {}
            name = letter.upper() if i == top else letter
            scene.text(x, base + 21, name, anchor="middle", **{"size": 18, **look})
            if p[i] >= 0.045:
                number = f"{100 * p[i]:.0f} %"
                scene.text(x, base - h - 4, number, size=13, anchor="middle")
    words = ", ".join(said)
    return picture(scene, f"Where the encoder of chapter 13 finds the stress: {words}.")
