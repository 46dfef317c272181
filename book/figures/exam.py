"""The ten wrong attentions of chapter 12, as training and as laws see them."""

from collections.abc import Mapping, Sequence

from figures.scene import Scene
from figures.ten import NAMES, RIGHT, alt, ten
from mha.plot.picture import Picture

NONE = "no_attention"
LEFT, STEP, TOP, HIGH = 120, 49, 46, 21  # points
ROLES = {"worse": "wrong", "better": "output"}

Exam = Mapping[str, Sequence[float]]  # the seeds of each member


def bugs() -> Picture:
    """Show the accuracy of the ten, and the laws that each of them breaks.

    Returns
    -------
    picture : Picture
        The emblem of the book, for a column of text; the page adds one for phones.

    Examples
    --------
    >>> bugs().alt[:34]
    '11 attention layers in 11 rows. Th'
    """
    scene = ten("chapter")
    scene.key = "ten chapter"
    return Picture(scene, alt())


def exam(
    table: Mapping[str, Exam], *, alt: str, margin: float = 0, digits: int = 3,
    lower_is_better: bool = False,
) -> Picture:  # fmt: skip
    """Show how each member does in several exams, and where it differs.

    Parameters
    ----------
    table : dict {heading of a column: {name of a member: one number per seed}}
        A heading has one line or two.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    margin : float
        A cell is tinted if each of its seeds is worse, or better, by more than this
        than every seed of correct attention.
    digits : int
        Decimals of the means.
    lower_is_better : bool
        For a loss.

    Returns
    -------
    picture : Picture
        A cell is the mean of the seeds.

    Raises
    ------
    ValueError
        If there are more than five columns, or `alt` is empty.

    Examples
    --------
    >>> exam({"cards": {"right": [1.0], "no_scale": [0.9]}}, alt="It is worse.")
    Picture: It is worse.
    """
    if not 1 <= len(table) <= 5:
        raise ValueError(f"table must have 1 to 5 columns, got {len(table)}")
    names = [n for n in (NONE, *NAMES) if n in next(iter(table.values()))]
    scene = Scene(LEFT + STEP * len(table) + 4, TOP + HIGH * len(names) + 8)
    for k, name in enumerate(names):
        label = "no attention" if name == NONE else NAMES[name][0]
        y = TOP + HIGH * k + 14
        look = {"anchor": "end", "bold": name == RIGHT, "math": True}
        scene.text(LEFT - 7, y, label, size=10.5, **look)
    for column, (heading, members) in enumerate(table.items()):
        x = LEFT + STEP * column
        lines = heading.split("\n")
        for k, line in enumerate(lines):
            y = TOP - 9 - 13 * (len(lines) - 1 - k)
            scene.text(x + STEP / 2, y, line, size=10.5, role="muted")
        for k, name in enumerate(names):
            found = verdict(members[name], members[RIGHT], margin, lower_is_better)
            role, tint = ROLES.get(found, "ink"), 0.22 if found else 0.04
            mean = sum(members[name]) / len(members[name])
            place = x + 1.2, TOP + HIGH * k + 1.2, STEP - 2.4, HIGH - 2.4
            scene.cell(*place, f"{mean:.{digits}f}", role, tint)
    return Picture(scene, alt)


def verdict(
    seeds: Sequence[float], right: Sequence[float], margin: float = 0,
    lower_is_better: bool = False,
) -> str:  # fmt: skip
    """Return whether all seeds are worse, or better, than all of correct attention.

    Examples
    --------
    >>> verdict([0.7, 0.8], [1.0, 0.9]), verdict([0.7, 0.95], [1.0, 0.9])
    ('worse', '')
    """
    above = min(seeds) > max(right) + margin
    below = max(seeds) < min(right) - margin
    if lower_is_better:
        above, below = below, above
    return "better" if above else "worse" if below else ""
