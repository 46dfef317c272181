"""Every number of multi-head attention on one sheet (chapter multi_head)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from figures.scene import Scene
from mha.plot.picture import Picture

WIDE, LEFT, HEAD = 384, 48, 170  # of the sheet, the first column, from head to head
ROW, ABOVE, BELOW = 18, 28, 26  # height of a row, and room above and below a table
ROLES = {"Q": "query", "K": "key", "V": "value"}
ONE = "X", "W_Q", "W_K", "W_V", "W_O", "Y"
NUMBER = 10.5  # points


def sheet(
    parts: Mapping[str, Any], tokens: Sequence[str], features: Sequence[str], *,
    alt: str,
) -> Picture:  # fmt: skip
    """Show all steps from the words to the output, with the numbers as they are given.

    Equation: Y = Concat(H_1, H_2) W_O with H_r = A_r V_r  (chapter multi_head)

    Parameters
    ----------
    parts : dict
        X, W_Q, W_K, W_V, W_O and Y are matrices; Q, K, V, S, A and H hold one matrix
        for each of two heads. W_Q, Q and S are written without their factor c.
        Fractions are written as fractions.
    tokens, features : sequence of str
        The words, and the names of the columns of X.
    alt : str
        One sentence with the finding, for readers who do not see the picture.

    Returns
    -------
    picture : Picture
        Seven steps from the top to the bottom, the heads side by side.

    Raises
    ------
    ValueError
        If a part is missing, or there are not two heads.

    Examples
    --------
    >>> one = [[1]]
    >>> parts = dict.fromkeys(ONE, one) | dict.fromkeys("QKVSAH", [one, one])
    >>> sheet(parts, ["dog"], ["animal"], alt="One word attends to itself.")
    Picture: One word attends to itself.
    """
    missing = [name for name in (*ONE, *"QKVSAH") if name not in parts]
    if missing:
        raise ValueError(f"parts lacks {', '.join(missing)}")
    if any(len(parts[name]) != 2 for name in "QKVSAH"):
        raise ValueError("Q, K, V, S, A and H must hold one matrix for each of 2 heads")
    heights = [ROW * len(tokens) + ABOVE + BELOW] * 7
    heights[1] = ROW * len(features) + ABOVE + BELOW
    scene = Scene(WIDE, sum(heights) + 2)
    tops = [16 + sum(heights[:k]) for k in range(7)]
    for top, step, (words, rows) in zip(
        tops, range(1, 8), _headlines(tokens, features), strict=True
    ):
        scene.text(6, top, step, size=12, anchor="start", bold=True)
        scene.text(24, top, words, anchor="start", bold=True, math=True)
        for i, row in enumerate(rows):
            y = top + ABOVE + (i + 0.5) * ROW + 4
            scene.text(LEFT - 6, y, row, size=10, anchor="end")
    _draw_matrix(scene, (110, tops[0]), parts["X"], 42, "ink", names=features)
    for k, (letter, role) in enumerate({**ROLES, "O": "output"}.items()):
        title = f"*W_{letter}*" + " / *c*" * (letter == "Q")
        place = LEFT + 86 * k, tops[1]
        _draw_matrix(scene, place, parts[f"W_{letter}"], 18.5, role, title)
    for r in range(2):
        x, head = LEFT + r * HEAD, f"head {r + 1}"
        for k, (letter, role) in enumerate(ROLES.items()):
            title = f"*{letter}*_{r + 1}" + " / *c*" * (letter == "Q")
            place = x + 52 * k, tops[2]
            _draw_matrix(scene, place, parts[letter][r], 22, role, title)
        _draw_matrix(scene, (x, tops[3]), parts["S"][r], 37, "ink", head)
        _draw_matrix(scene, (x, tops[4]), parts["A"][r], 37, "weight", head)
        place = 110 + 84 * r, tops[5]
        _draw_matrix(scene, place, parts["H"][r], 42, "output", head)
    _draw_matrix(scene, (110, tops[6]), parts["Y"], 42, "output", names=features)
    return Picture(scene, alt)


def _headlines(
    tokens: Sequence[str], features: Sequence[str]
) -> list[tuple[str, Sequence[str]]]:
    """Return what each step is called, and the names of its rows."""
    return [
        ("the words, *X*", tokens),
        ("the four matrices", features),
        ("times *W_Q*, *W_K*, *W_V*, and split into heads", tokens),
        ("scores *Q Kᵀ* in units of *c*; scaled, in units of ln 2", tokens),
        ("attention weights *A*, from powers of 2", tokens),
        ("head outputs *A V*, side by side", tokens),
        ("times *W_O*: the output *Y*", tokens),
    ]


def _draw_matrix(
    scene: Scene, place: tuple[float, float], M: Sequence[Sequence[Any]], wide: float,
    role: str, title: str = "", names: Sequence[str] = (),
) -> None:  # fmt: skip
    """Draw a matrix with its title, or with the names of its columns."""
    x, y = place[0], place[1] + ABOVE
    for i, line in enumerate(M):
        for j, number in enumerate(line):
            tint = float(number) if role == "weight" else 0.07
            words = "−∞" if number == -math.inf else str(number).replace("-", "−")
            box = x + j * wide + 0.7, y + i * ROW + 0.7, wide - 1.4, ROW - 1.4
            scene.cell(*box, words, role, tint, size=NUMBER)
    across = wide * len(M[0])
    scene.box(x, y, across, ROW * len(M), radius=3, stroke=role, width=1.1)
    look: dict[str, Any] = {"role": role, "size": 10, "math": True}
    scene.text(x + across / 2, y - 5, title, bold=True, **look)
    for j, name in enumerate(names):
        scene.text(x + (j + 0.5) * wide, y - 5, name, size=9.4, role="muted")
