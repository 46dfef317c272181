"""The house picture: multi-head attention and the layer around it, a part of it lit.

Where things are and what is said stands in ``house.toml``; every number is computed.
"""

import tomllib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray as Array

from figures.scene import Scene
from mha.attention import scaled_dot_product_attention
from mha.encoder import encoder_layer, layer_norm
from mha.heads import linear, merge_heads, split_heads
from mha.masks import causal_mask
from mha.plot.picture import Picture
from mha.similarity import dot_product_scores

WORDS = ("dog", "food", "it", "hungry")
FEATURES = ("animal", "edible", "wanting", "thing")
IT = 2  # the word to follow
X = np.array([[2.0, 0, 1, 0], [0, 2, 0, 1], [1, 1, 1, 0], [1, 0, 2, 0]])
WEIGHTS = {  # columns 1 and 2 belong to head 1, columns 3 and 4 to head 2
    "W_Q": np.array([[0.0, 0, 0, 1], [0, 1, 0, 0], [2, 0, 1, 0], [0, 0, 0, 0]]),
    "W_K": np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]),
    "W_V": np.array([[1.0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]),
    "W_O": np.array([[1.0, 0, 0, 0], [0, -1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]),
    "W_1": np.array([[1.0, -1], [-1, 1], [0, 0], [0, 0]]),
    "W_2": np.array([[0.0, 0, 1, 0], [0, 0, 0, 1]]),
}
TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PARTS = {slug: frozenset(parts) for slug, parts in TABLES["lit"].items()}
EVERY = frozenset().union(*PARTS.values()) - {"all"}


def house(
    lit: str | Collection[str] = "overview", layout: Literal["wide", "narrow"] = "wide",
    is_causal: bool = False,
) -> Picture:  # fmt: skip
    """Show multi-head attention and the layer around it, with a part of it lit.

    Four words are followed through one encoder layer with two heads. Words are rows, in
    every matrix, and a product has its left factor on its left and its right factor
    above it, so each number is where its row and its column cross.

    Parameters
    ----------
    lit : str or collection of str
        The slug of a chapter, whose parts are lit, or names of parts, such as
        ``{"Q", "K", "scores"}``; "overview" lights everything. The other parts have no
        colour, and no number unless the lit ones read them.
    layout : {"wide", "narrow"}
        For a column of text, or for a phone.
    is_causal : bool, default False
        Hide later words. The chapter "masks" always does.

    Returns
    -------
    picture : Picture
        Its alt text says what the lit part shows.

    Raises
    ------
    ValueError
        If there is no such chapter, part or layout.

    Examples
    --------
    >>> house({"norm"})
    Picture: The house picture: multi-head attention in an encoder layer, norm lit.
    """
    return Picture(*drawing(lit, layout, is_causal))


def drawing(
    lit: str | Collection[str], layout: str, is_causal: bool = False
) -> tuple[Scene, str]:
    """Return the drawing and what it shows."""
    parts, given = _chosen(lit)
    if layout not in ("wide", "narrow"):
        raise ValueError(f'layout must be "wide" or "narrow", got {layout!r}')
    found = numbers(is_causal or lit == "masks")
    scene = draw(TABLES[layout], parts, given, found, facts(found, short))
    names = lit if isinstance(lit, str) else ",".join([*sorted(lit), ""])
    scene.key = f"house {names}" + " causal" * is_causal
    return scene, _alt(lit, facts(found, spoken))


def _chosen(lit: str | Collection[str]) -> tuple[Collection[str] | None, list[str]]:
    """Return the lit parts, None for all, and the parts that these read."""
    if isinstance(lit, str):
        if lit not in PARTS:
            raise ValueError(f"lit: no chapter {lit!r}; there are {', '.join(PARTS)}")
        parts = PARTS[lit]
        return None if "all" in parts else parts, TABLES["given"].get(lit, [])
    unknown = sorted(set(lit) - EVERY)
    if unknown or not lit:
        raise ValueError(
            f"lit: no part {unknown[0] if unknown else 'given'!r}; "
            f"there are {', '.join(sorted(EVERY))}"
        )
    return lit, []


def _alt(lit: str | Collection[str], said: dict[str, str]) -> str:
    if isinstance(lit, str):
        return TABLES["alt"].get(lit, TABLES["alt"]["overview"]).format(**said)
    parts = ", ".join(sorted(lit))
    return f"The house picture: multi-head attention in an encoder layer, {parts} lit."


def numbers(is_causal: bool = False) -> dict[str, Array]:
    """Return every matrix of the picture; those of attention have an axis of heads.

    Examples
    --------
    >>> numbers()["S"][0, IT]
    array([5., 0., 3., 4.])
    """
    Q, K, V = (split_heads(linear(X, WEIGHTS[f"W_{name}"]), 2) for name in "QKV")
    H, A = scaled_dot_product_attention(
        Q, K, V, is_causal=is_causal, return_weights=True
    )
    C = merge_heads(H)
    Y = linear(C, WEIGHTS["W_O"])
    S, Z = dot_product_scores(Q, K), layer_norm(X + Y)
    N = encoder_layer(X, WEIGHTS, 2, is_causal=is_causal)
    mask = causal_mask(len(X)) if is_causal else np.ones((len(X), len(X)), bool)
    found = {
        "mask": mask,
        "X": X,
        "Q": Q,
        "K": K.swapaxes(-1, -2),
        "S": S,
        "A": A,
        "V": V,
        "H": H,
    }
    return found | {"C": C, "Y": Y, "Z": Z, "N": N}


def facts(found: dict[str, Array], write: Callable[[float], str]) -> dict[str, str]:
    """Return what captions and alt texts say about the row of "it"."""
    (q, k), A, S = (found["Q"][0, IT], found["K"][0, :, 0]), found["A"], found["S"]
    hidden = int((~found["mask"]).sum())
    terms = [f"{write(a)}·{write(b)}" for a, b in zip(q, k, strict=True)]
    row = [f"{write(a)} for {word}" for a, word in zip(A[0, IT], WORDS, strict=True)]
    return {
        "product": " + ".join(terms),
        "score": write(S[0, IT, 0]),
        "scores": ", ".join(map(write, S[0, IT])),
        "weight": write(A[0, IT, 0]),
        "weight_2": write(A[1, IT, 0]),
        "weights": ", ".join(row),
        "animal": write(found["H"][0, IT, 0]),
        "output": ", ".join(map(write, found["Y"][IT])),
        "pairs": str(S[0].size),
        "hidden": str(hidden),
        "sizes": f"here n = {len(X)}, d_model = {X.shape[1]}, d_k = d_v = {len(k)}",
        "mask": "hides later words" if hidden else "hides nothing",
    }


def short(x: float, digits: int = 2) -> str:
    """Return a number as a cell has room for it.

    Examples
    --------
    >>> [short(x) for x in (2.0, 0.566, -1.55, 0.001)]
    ['2', '.57', '−1.55', '0']
    """
    text = f"{abs(x):.{digits}f}"
    if float(text) == 0:
        return "0"
    if abs(x - round(x)) < 1e-9:
        text = f"{abs(x):.0f}"
    return ("−" if x < 0 else "") + text.removeprefix("0")


def spoken(x: float) -> str:
    """Return a number as it is read aloud, such as 0.57 and 5."""
    x = round(x, 2) + 0.0  # never a minus before zero
    return f"{x:.2f}".replace("-", "−") if x % 1 else f"{x:.0f}"


def draw(
    layout: dict[str, Any], lit: Collection[str] | None, given: Collection[str],
    found: dict[str, Array], said: dict[str, str],
) -> Scene:  # fmt: skip
    """Return the drawing of one layout."""
    width, height = layout["size"]
    scene = Scene(width, height, lit, given)
    if lit is None:
        for x, y, length in layout["thread"]:
            high = layout["row"] - 2
            scene.box(x, y, length, high, radius=6, fill="ink", alpha=0.06)
    _draw_lines(scene, layout)
    _draw_steps(scene, layout)
    _draw_stencil(scene, found["mask"], *layout["stencil"])
    for letter, (part, role, words, shape) in TABLES["matrices"].items():
        scene.part(part)
        x, y, across = layout["at"][letter]
        M, high = found[letter], layout["row"]
        seen = found["mask"] if letter == "A" else None
        draw_matrix(scene, M, x, y, (across, high), role, seen)
        if letter == "C":  # what W_O multiplies is one matrix, from two heads
            seam = x + 2 * across
            scene.shape([(seam, y), (seam, y + 4 * high)], stroke=role, width=2)
        low = y + high * M.shape[-2] + 17, "middle", 14
        place = x + across * M.shape[-1] / 2, *low
        x, y, anchor, below = layout["caption"].get(letter, place)
        label: dict[str, Any] = {"anchor": anchor, "math": True}
        scene.text(x, y, words, role=role, bold=True, **label)
        scene.text(x, y + below, shape, role="muted", **label)
    _draw_words(scene, layout)
    _draw_notes(scene, layout, lit, said)
    return scene


def draw_matrix(
    scene: Scene, M: Array, x: float, y: float, cell: tuple[float, float], role: str,
    seen: Array | None = None,
) -> None:  # fmt: skip
    """Draw one matrix with its numbers; of a second head the edge shows behind."""
    if behind := M.ndim == 3:
        M = M[0]
    (w, h), (rows, columns) = cell, M.shape
    wide, high = w * columns, h * rows
    if behind:
        _draw_edge(scene, x, y, wide, high, role)
    digits = 1 if M.min() < 0 else 2
    top = np.abs(M).max() or 1
    for (i, j), value in np.ndenumerate(M):
        place = x + j * w + 1.25, y + i * h + 1.25, w - 2.5, h - 2.5
        if seen is not None and not seen[i, j]:
            scene.hatched(*place)
            continue
        alpha = value if role == "weight" else 0.06 + 0.26 * abs(value) / top
        size = 11 if w < 25 else 0.404 * w
        scene.cell(*place, short(value, digits), role, max(alpha, 0.035), size=size)
    scene.box(x, y, wide, high, radius=4, stroke=role)


def _draw_edge(
    scene: Scene, x: float, y: float, w: float, h: float, role: str, d: float = 7
) -> None:
    """Draw what shows of the sheet behind, so that it fits on any background."""
    edge = [(x + d, y), (x + d, y - d), (x + w + d, y - d), (x + w + d, y + h - d)]
    edge.append((x + w, y + h - d))
    scene.shape([*edge, (x + w, y)], fill=role, alpha=0.18, closed=True)
    scene.shape(edge, stroke=role, radius=4)


def _draw_lines(scene: Scene, layout: dict[str, Any]) -> None:
    for parts, role, width, kind, radius, points in layout["lines"]:
        scene.part(*parts)
        look: dict[str, Any] = {"twin": 5 * (kind == "twin"), "tip": kind != "plain"}
        scene.arrow(points, role, width=width, radius=radius, **look)
    scene.part("split", "projections")
    for role, x, y in layout["forks"]:
        scene.box(x - 3.6, y - 3.6, 7.2, 7.2, radius=3.6, fill=role)


def _draw_steps(scene: Scene, layout: dict[str, Any]) -> None:
    """Draw what the lines pass through: matrices, functions, sums, the network."""
    for part, role, name, x, y in layout["learned"]:
        scene.part(part)
        draw_plate(scene, x - 18, y - 12, 36, 24, 5, role)
        look: dict[str, Any] = {"size": 10.8, "math": True, "bold": True}
        scene.text(x - 1, y + 4.2, f"*{name}*", role=role, **look)
    for part, name, x, y, w in layout["pills"]:
        scene.part(part)
        draw_plate(scene, x, y - 11, w, 22, 11, "ink")
        scene.text(x + w / 2, y + 4, name, bold=True, math=True)
    scene.part("residual")
    for name, x, y in layout["chips"]:
        draw_plate(scene, x - 10, y, 20, 18, 4, "ink")
        scene.text(x, y + 13.5, f"*{name}*", size=10.8, math=True)
    for x, y in layout["sums"]:
        draw_sum(scene, x, y)
    scene.part("feed-forward")
    x, y = layout["bowtie"]
    draw_network(scene, x, y, 42, 13, 25)


def draw_sum(scene: Scene, x: float, y: float) -> None:
    """Draw a plus in a circle: two ways meet and are added."""
    draw_plate(scene, x - 9, y - 9, 18, 18, 9, "paper")
    cross = [(x - 4.5, y), (x + 4.5, y)], [(x, y - 4.5), (x, y + 4.5)]
    scene.shape(*cross, stroke="ink", width=1.6)


def draw_plate(
    scene: Scene, x: float, y: float, w: float, h: float, radius: float, role: str
) -> None:
    """Draw a box that hides the line behind it."""
    scene.box(x, y, w, h, radius=radius, fill="paper")
    edge = "ink" if role == "paper" else role
    scene.box(x, y, w, h, radius=radius, fill=role, alpha=0.08, stroke=edge)


def draw_network(
    scene: Scene, x: float, y: float, w: float, thin: float, wide: float
) -> None:
    """Draw a feed-forward network: each word out to a larger width, and back."""
    half = w / 2 - 1.5
    for a, p, q in ((x, thin, wide), (x + w - half, wide, thin)):
        corners = [(a, y - p), (a + half, y - q), (a + half, y + q), (a, y + p)]
        scene.shape(corners, fill="paper", closed=True)
        scene.shape(corners, fill="ink", alpha=0.08, stroke="ink", closed=True)


def _draw_stencil(scene: Scene, mask: Array, x: float, y: float, a: float) -> None:
    """Draw the mask: open cells are empty, the others hatched."""
    scene.part("mask")
    edge = "muted" if scene.level == 2 else "rest"
    for (i, j), may_attend in np.ndenumerate(mask):
        place = x + j * a + 0.8, y + i * a + 0.8, a - 1.6, a - 1.6
        scene.box(*place, radius=1.5, stroke=edge, width=0.9)
        if not may_attend:
            scene.hatched(*place)
    side = len(mask) * a + 3
    scene.box(x - 1.5, y - 1.5, side, side, stroke="ink")


def _draw_words(scene: Scene, layout: dict[str, Any]) -> None:
    """Name the rows, the features, and the columns of the keys."""
    for parts, x, y, anchor in layout["words"]:
        scene.part(*parts)
        for i, word in enumerate(WORDS):
            low = y + (i + 0.5) * layout["row"] + 3.8
            scene.text(x, low, word, anchor=anchor, bold=i == IT)
    scene.part("words")
    x, y, step = layout["features"]
    for j, name in enumerate(FEATURES):
        place = x + j * step, y, name
        scene.text(*place, role="muted", anchor="start", turn=-48)
    x, y, step, parts = layout["keys"]
    scene.part(*parts)
    for j, word in enumerate(WORDS):
        look: dict[str, Any] = {"anchor": "start", "turn": -35, "bold": j == IT}
        scene.text(x + j * step, y, word, **look)


def _draw_notes(
    scene: Scene, layout: dict[str, Any], lit: Collection[str] | None,
    said: dict[str, str],
) -> None:  # fmt: skip
    """Write what stands beside the parts, and outline the row of "it"."""
    for parts, words, x, y, anchor, role, bold, quiet in layout["notes"]:
        scene.part(*parts)
        if scene.level or not quiet:
            look: dict[str, Any] = {"anchor": anchor, "role": role, "bold": bold}
            scene.text(x, y, words.format(**said), **look)
    scene.level = 2
    for parts, x, y, w, h in layout["outlines"]:
        if lit is None or set(parts) <= set(lit):
            place = x - 1.2, y - 1.2, w + 2.4, h + 2.4
            scene.box(*place, radius=5, stroke="ink", width=1.7)
    if lit is None:
        _tell(scene, layout, said)


def _tell(scene: Scene, layout: dict[str, Any], said: dict[str, str]) -> None:
    """Follow one number from the words to the output, and say how large all is."""
    x, y = layout["story"]
    head: dict[str, Any] = {"size": 16, "serif": True, "bold": True}
    scene.text(x, y, "Follow “it”", anchor="start", **head)
    for k, line in enumerate(layout["told"]):
        words = x, y + 19 + 14.5 * k, line.format(**said)
        scene.text(*words, role="muted", anchor="start")
    x, y = layout["sizes"]
    scene.text(x, y, said["sizes"], role="muted", anchor="end", math=True)
