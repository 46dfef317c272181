"""Which law kills which member? Computed, never typed."""

import functools
import html
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from string import ascii_letters as LETTERS

import numpy as np
import numpy.typing as npt

from mha import zoo
from mha.laws._all import ALL, WHOLE
from mha.laws._calls import calls_agree
from mha.laws._law import Law
from mha.laws.subjects.conventions import NotApplicable
from mha.laws.subjects.recognise import as_subject

__all__ = ["KillMatrix", "kill_matrix"]


@dataclass(frozen=True, repr=False)
class KillMatrix:
    """Say which law kills which member; computed, never typed.

    Attributes
    ----------
    rows : tuple of str
        Names of the members; the correct one comes first.
    columns : tuple of str
        Slugs of the laws.
    killed : ndarray of bool, shape (len(rows), len(columns))
        True where the law of the column does not hold for the member of the row.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    killed: npt.NDArray[np.bool_]

    def killed_by(self, name: str) -> tuple[str, ...]:
        """Return the slugs of the laws that the member called `name` breaks."""
        row = self.killed[_index("member", name, self.rows)]
        return tuple(law for law, dead in zip(self.columns, row, strict=True) if dead)

    def kills(self, slug: str) -> tuple[str, ...]:
        """Return the names of the members that the law called `slug` kills."""
        column = self.killed[:, _index("law", slug, self.columns)]
        return tuple(name for name, dead in zip(self.rows, column, strict=True) if dead)

    def __repr__(self) -> str:
        letters, width = LETTERS[: len(self.columns)], max(map(len, self.rows))
        # A page is 80 columns wide.
        gap = " " * (width + 2 * len(letters) < 80)
        lines = [" " * width + "  " + gap.join(letters)]
        for name, row in zip(self.rows, self.killed, strict=True):
            marks = gap.join("✗" if dead else "·" for dead in row)
            lines.append(f"{name.ljust(width)}  {marks}")
        return "\n".join([*lines, "", *map("{} {}".format, letters, self.columns)])

    def _repr_html_(self):
        named = [*zip(LETTERS, self.columns, strict=False)]
        head = "".join(
            f'<th scope="col"><abbr title="{html.escape(law)}">{letter}</abbr></th>'
            for letter, law in named
        )
        rows = "".join(map(_html_row, self.rows, self.killed))
        legend = html.escape(", ".join(f"{letter} {law}" for letter, law in named))
        return (
            '<div role="region" aria-label="kill matrix" tabindex="0" '
            'style="overflow-x: auto"><table>'
            "<caption>Which law kills which member: ✗ killed, · not.</caption>"
            f'<thead><tr><th scope="col">member</th>{head}</tr></thead>'
            f"<tbody>{rows}</tbody></table></div><p>{legend}</p>"
        )


def _html_row(name, row):
    marks = ("not killed", "·"), ("killed", "✗")
    cell = '<td><span role="img" aria-label="{}">{}</span></td>'
    cells = "".join(cell.format(*marks[dead]) for dead in row.astype(int))
    return f'<tr><th scope="row">{html.escape(name)}</th>{cells}</tr>'


def _index(kind, name, names):
    if name not in names:
        raise ValueError(f"no {kind} is called {name!r}; there are {', '.join(names)}")
    return names.index(name)


def kill_matrix(
    laws: Iterable[Law] | None = None,
    members: Iterable[zoo.Member | zoo.EncoderMember] | None = None,
) -> KillMatrix:
    """Put every member of the zoo to every law.

    Equation: killed[m, l] ⇔ law l does not hold for member m  (chapter laws)

    Parameters
    ----------
    laws : iterable of Law, optional
        Laws of your own; by default those of `ALL`, and for encoders those of `WHOLE`.
        A good law kills somebody and spares the correct one.
    members : iterable of Member or EncoderMember, optional
        Whom to judge: those of `mha.zoo.ALL`, or `mha.zoo.ENCODERS`. A mistake that
        only tensors show is seen where torch is loaded.

    Returns
    -------
    matrix : KillMatrix
        Prints as a table; ``matrix.killed_by(name)`` and ``matrix.kills(slug)`` read a
        row and a column.

    Examples
    --------
    >>> kill_matrix().killed_by("right")
    ()
    >>> "doubling_changes_nothing" in kill_matrix().killed_by("scale_sqrt_n")
    True
    """
    members = zoo.ALL if members is None else tuple(members)
    if laws is None:
        laws = ALL if isinstance(members[0], zoo.Member) else WHOLE
    laws = tuple(laws)
    torch = "torch" in sys.modules
    killed = [[_is_killed(member, law, torch) for law in laws] for member in members]
    names = tuple(member.name for member in members)
    return KillMatrix(names, tuple(law.slug for law in laws), np.array(killed))


# Each verdict is found once; nobody asks for the example, so nothing is shrunk.
@functools.cache
def _is_killed(member, law, torch):
    subject = _subject_of(member, torch)
    # What differs from call to call says nothing where two calls are compared.
    if law is not calls_agree and breaks(calls_agree, subject):
        return False
    return breaks(law, subject)


def breaks(law, subject):
    try:
        return law.search(subject) is not None
    except NotApplicable:
        return False


@functools.cache
def _subject_of(member, torch):
    # What only tensors show is seen where torch is loaded.
    return as_subject(member)
